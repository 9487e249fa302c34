//! The open loop of a client that sleeps until a reply comes: one thread sends, another waits. A
//! reply pays for its wake-up, as it does in whoever waits like that.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_port::{Port, PortError};

use super::receiver::Receiver;
use super::sender::{Sender, Sending};
use super::{Ended, LOOK};
use crate::conversation::Scale;
use crate::turns::Did;

/// Name of the thread that waits, as `ps -L` shows it.
const THREAD_NAME: &str = "client/replies";
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
    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut own = counter.clone();
    // The half that receives takes the stamps of what the other half sends.
    let stamped = receiver.has_stamps();
    let receive = || -> Result<(), PortError> {
        receiver.ledger.thread(own.read_ordered().0);
        while !over.load(Ordering::Relaxed) {
            if let Err(error) = receiver.look(port, LOOK) {
                over.store(true, Ordering::Relaxed);
                return Err(error);
            }
            if stamped && let Err(error) = receiver.take_stamps(port) {
                over.store(true, Ordering::Relaxed);
                return Err(error);
            }
            receiver.give_up(own.read_ordered().0);
            looks.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let receiving = thread::Builder::new().name(THREAD_NAME.to_owned());
        let receiving = match receiving.spawn_scoped(scope, receive) {
            Ok(receiving) => receiving,
            Err(error) => return Ended::Failed(PortError::NoThread { error }),
        };
        let told = Beside { stop, over: &over, looks: &looks };
        let ended = send(sending, counter, scale, sender, until, &told);
        over.store(true, Ordering::Relaxed);
        match receiving.join().unwrap_or_else(|panic| resume_unwind(panic)) {
            Ok(()) => ended,
            Err(error) => Ended::Failed(error),
        }
    })
}

/// What the sending thread hears of the others.
struct Beside<'a> {
    stop: &'a AtomicBool,
    over: &'a AtomicBool,
    /// Turns of the receiving thread, which shares the CPU.
    looks: &'a AtomicU64,
}

fn send<C: Counter>(
    port: &mut dyn Port,
    counter: &mut C,
    scale: Scale,
    sender: &mut Sender<'_>,
    until: Ticks,
    beside: &Beside<'_>,
) -> Ended {
    let awake_before = scale.ticks(AWAKE_BEFORE);
    let (mut did, mut looks) = (Did::Look, 0);
    loop {
        if beside.stop.load(Ordering::Relaxed) {
            return Ended::Stopped;
        }
        let Some(due) = sender.due() else { return Ended::Duration };
        let (now, _) = counter.read_ordered();
        // The client's other thread had the CPU for its own sake: that is no interruption.
        let looked = beside.looks.load(Ordering::Relaxed);
        let shared = std::mem::replace(&mut looks, looked) != looked;
        sender.pacing.turn(now, if shared && did == Did::Look { Did::Take } else { did });
        did = Did::Look;
        // The receiving thread ends only when its port has failed.
        if now > until || beside.over.load(Ordering::Relaxed) {
            return Ended::Duration;
        }
        if now < due {
            sender.pacing.nothing_due();
            let left = due.since(now);
            if left > awake_before {
                let asleep = scale.nanos(now, due).0 - AWAKE_BEFORE.0;
                sleep(counter, scale, sender, (now, Nanos(asleep.min(LONGEST_SLEEP.0))));
            }
        } else if sender.may_send() {
            did = Did::Send;
            if let Sending::Failed(error) = sender.send(port, now) {
                return Ended::Failed(error);
            }
        }
    }
}

/// Sleeps from `now` on for so long. Whoever wakes too late for what was due then was kept from
/// running.
fn sleep<C: Counter>(
    counter: &mut C,
    scale: Scale,
    sender: &mut Sender<'_>,
    (now, length): (Ticks, Nanos),
) {
    thread::sleep(Duration::from_nanos(length.0));
    let wanted = now + scale.ticks(length);
    let (woke, _) = counter.read_ordered();
    if woke > wanted + scale.ticks(AWAKE_BEFORE) {
        sender.pacing.overslept(wanted, woke);
    }
    sender.pacing.pause();
}
