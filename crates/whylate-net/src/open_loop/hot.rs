//! The loop of an open-loop client: sends when it is due, and looks for replies in between. Its
//! only system calls are the port's: one for each message sent, one for each look.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks, TicksDelta};
use whylate_port::Port;

use super::Ended;
use super::receiver::Receiver;
use super::sender::{Sender, Sending};

/// A look that found nothing takes this long at most before the next send: when less is left, the
/// loop only reads the clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard(pub(super) TicksDelta);

/// Messages sent late in a row before one look: replies must not pile up while it catches up.
const LATE_BEFORE_A_LOOK: u32 = 4;
/// Turns of the loop between two looks at the stop flag and at requests to give up.
const TURNS: u32 = 256;

/// Sends everything that is due until `until`, and takes in what comes. Ends when the schedule
/// has, when it may not catch up any longer, or when the run is to stop.
#[inline(never)]
pub(super) fn pump<P: Port + ?Sized, C: Counter>(
    port: &mut P,
    counter: &mut C,
    sender: &mut Sender<'_>,
    receiver: &mut Receiver<'_>,
    guard: Guard,
    until: Ticks,
    stop: &AtomicBool,
) -> Ended {
    let (mut turns, mut in_a_row) = (0_u32, 0_u32);
    loop {
        let (now, _) = counter.read_ordered();
        let Some(due) = sender.due() else { return Ended::Duration };
        if now >= due && in_a_row < LATE_BEFORE_A_LOOK && sender.may_send() {
            if now > until {
                return Ended::Duration;
            }
            in_a_row += u32::from(now.since(due) > guard.0);
            match sender.send(port, now) {
                Sending::Left | Sending::Refused => (),
                Sending::Failed(error) => return Ended::Failed(error),
            }
            continue;
        }
        if now >= due || due.since(now) > guard.0 {
            in_a_row = 0;
            if let Err(error) = receiver.look(port, Nanos(0)) {
                return Ended::Failed(error);
            }
        }
        turns += 1;
        if turns == TURNS {
            turns = 0;
            receiver.give_up(now);
            if stop.load(Ordering::Relaxed) {
                return Ended::Stopped;
            }
        }
        if now > until && !sender.may_send() {
            return Ended::Duration;
        }
    }
}
