//! The open loop of a client that sleeps until a reply comes: one thread sends, another waits. A
//! reply pays for its wake-up, as it does in whoever waits like that.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_port::{Port, PortError};

use super::Ended;
use super::receiver::Receiver;
use super::sender::{Sender, Sending};
use crate::conversation::Scale;

/// Name of the thread that waits, as `ps -L` shows it.
const THREAD_NAME: &str = "client/replies";
/// A wait ends after so long without a message, to give up requests and to notice the end.
const LOOK: Nanos = Nanos(20_000_000);
/// The sending thread wakes so long before a request is due and spins from there: timers are late
/// by the kernel's slack of 50 us, and by the exit from idle.
const AWAKE_BEFORE: Nanos = Nanos(150_000);
/// It sleeps no longer than this, to notice a stop.
const LONGEST_SLEEP: Nanos = Nanos(100_000_000);

/// As [`pump`](super::hot::pump), on two threads: this one sends by `sending`, a second one
/// receives by `port`.
pub(super) fn pump<P: Port + ?Sized, C: Counter + Clone>(
    (port, sending): (&mut P, &mut dyn Port),
    counter: &mut C,
    scale: Scale,
    sender: &mut Sender<'_>,
    receiver: &mut Receiver<'_>,
    until: Ticks,
    stop: &AtomicBool,
) -> Ended {
    let over = AtomicBool::new(false);
    let mut own = counter.clone();
    let receive = || -> Result<(), PortError> {
        while !over.load(Ordering::Relaxed) {
            if let Err(error) = receiver.look(port, LOOK) {
                over.store(true, Ordering::Relaxed);
                return Err(error);
            }
            receiver.give_up(own.read_ordered().0);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let receiving = thread::Builder::new().name(THREAD_NAME.to_owned());
        let receiving = match receiving.spawn_scoped(scope, receive) {
            Ok(receiving) => receiving,
            Err(error) => return Ended::Failed(PortError::NoThread { error }),
        };
        let ended = send(sending, counter, scale, sender, until, [stop, &over]);
        over.store(true, Ordering::Relaxed);
        match receiving.join().unwrap_or_else(|panic| resume_unwind(panic)) {
            Ok(()) => ended,
            Err(error) => Ended::Failed(error),
        }
    })
}

fn send<C: Counter>(
    port: &mut dyn Port,
    counter: &mut C,
    scale: Scale,
    sender: &mut Sender<'_>,
    until: Ticks,
    [stop, over]: [&AtomicBool; 2],
) -> Ended {
    let awake_before = scale.ticks(AWAKE_BEFORE);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ended::Stopped;
        }
        let Some(due) = sender.due() else { return Ended::Duration };
        let (now, _) = counter.read_ordered();
        // The receiving thread ends only when its port has failed.
        if now > until || over.load(Ordering::Relaxed) {
            return Ended::Duration;
        }
        if now < due {
            let left = due.since(now);
            if left > awake_before {
                let asleep = scale.nanos(now, due).0 - AWAKE_BEFORE.0;
                thread::sleep(Duration::from_nanos(asleep.min(LONGEST_SLEEP.0)));
            }
        } else if sender.may_send()
            && let Sending::Failed(error) = sender.send(port, now)
        {
            return Ended::Failed(error);
        }
    }
}
