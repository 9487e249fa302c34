//! The closed loop: the next request leaves when the one before was answered or given up.
//!
//! Nothing is intended: a request that would have left while another one waits for its reply is never
//! made, so what a server does meanwhile is hidden. A named mode, for the rows of papers that have it.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_port::Port;

use super::receiver::Receiver;
use super::sender::{Sender, Sending};
use super::{Ended, LOOK};

/// Sends one request after the other until the sender's end. One thread does all, however the port
/// waits.
#[inline(never)]
pub(super) fn pump<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    sender: &mut Sender<'_>,
    receiver: &mut Receiver<'_>,
    stop: &AtomicBool,
) -> Ended {
    let limit = LOOK.min(receiver.timeout());
    let (begin, end) = (sender.due(), sender.end());
    loop {
        let (now, _) = counter.read_ordered();
        if begin.is_some_and(|begin| now < begin) {
            continue;
        }
        if now >= end {
            return Ended::Duration;
        }
        if stop.load(Ordering::Relaxed) {
            return Ended::Stopped;
        }
        match sender.send_now(port, now) {
            Sending::Left | Sending::Refused => (),
            Sending::Failed(error) => return Ended::Failed(error),
        }
        while receiver.is_waiting() {
            if let Err(error) = receiver.look(port, limit) {
                return Ended::Failed(error);
            }
            if !receiver.is_waiting() {
                break;
            }
            if let Err(error) = receiver.take_stamps(port) {
                return Ended::Failed(error);
            }
            receiver.give_up(counter.read_ordered().0);
            if stop.load(Ordering::Relaxed) {
                return Ended::Stopped;
            }
        }
        // The next request is nobody's yet: what this takes is in no service time.
        if let Err(error) = receiver.take_stamps(port) {
            return Ended::Failed(error);
        }
    }
}
