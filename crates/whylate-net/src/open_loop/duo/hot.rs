//! The loop of two flows in turns. Each pass is a turn of the one and a turn of the other, with a reading
//! of the counter before each; its only system calls are those of the two ports.

use std::sync::atomic::AtomicBool;

use whylate_clock::Counter;
use whylate_model::Ticks;
use whylate_port::Port;

use super::Ports;
use crate::open_loop::Ended;
use crate::open_loop::hot::Lane;
use crate::turns::Did;

/// Passes of the loop between two times that the second flow hears how long turns take.
const PASSES: u32 = 256;

/// Sends what is due of both flows, and takes in what comes, until both schedules have ended, or one of
/// them cannot go on.
#[inline(never)]
pub(super) fn pump<A, B, C>(
    ports: &mut Ports<'_, A, B>,
    counter: &mut C,
    (mut there, mut back): (Lane<'_, '_, '_>, Lane<'_, '_, '_>),
    stop: &AtomicBool,
) -> [Ended; 2]
where
    A: Port + ?Sized,
    B: Port + ?Sized,
    C: Counter,
{
    let (mut there_over, mut back_over) = (false, false);
    let (mut did, mut passes) = (Did::Look, 0_u32);
    let ended = loop {
        let now = tick(counter, &mut there, &mut back, did);
        let others = soonest(&mut back, back_over);
        did = match step(&mut there, &mut there_over, &mut ports.there(), (now, others), stop) {
            Ok(did) => did,
            Err(Ended::Failed(error)) => break [Ended::Failed(error), Ended::Stopped],
            Err(_) => break [Ended::Stopped, Ended::Stopped],
        };
        let now = tick(counter, &mut there, &mut back, did);
        let others = soonest(&mut there, there_over);
        did = match step(&mut back, &mut back_over, &mut ports.back(), (now, others), stop) {
            Ok(did) => did,
            Err(Ended::Failed(error)) => break [Ended::Stopped, Ended::Failed(error)],
            Err(_) => break [Ended::Stopped, Ended::Stopped],
        };
        if there_over && back_over {
            break [Ended::Duration, Ended::Duration];
        }
        passes += 1;
        if passes == PASSES {
            passes = 0;
            back.sender.pacing.learn_of(&there.sender.pacing);
        }
    };
    back.sender.pacing.learn_of(&there.sender.pacing);
    ended
}

/// Reads the counter. The first flow follows the turns of the loop for both.
#[inline(always)]
fn tick<C: Counter>(
    counter: &mut C,
    there: &mut Lane<'_, '_, '_>,
    back: &mut Lane<'_, '_, '_>,
    did: Did,
) -> Ticks {
    let (now, _) = counter.read_ordered();
    if let Some(since) = there.sender.pacing.turn(now, did) {
        interrupted(there, back, (since, now), did);
    }
    now
}

/// A turn of the loop took too long, for both.
#[cold]
fn interrupted(
    there: &mut Lane<'_, '_, '_>,
    back: &mut Lane<'_, '_, '_>,
    (since, now): (Ticks, Ticks),
    did: Did,
) {
    there.receiver.ledger.stall(since, now);
    back.sender.pacing.turn_of(&there.sender.pacing, (since, now), did);
    back.receiver.ledger.stall(since, now);
}

/// When the other flow's next request is due; none where it sends no more.
#[inline(always)]
fn soonest(other: &mut Lane<'_, '_, '_>, over: bool) -> Option<Ticks> {
    if over { None } else { other.sender.due() }
}

/// One turn of a flow, whether it still sends or not.
#[inline(always)]
fn step<P: Port>(
    lane: &mut Lane<'_, '_, '_>,
    over: &mut bool,
    port: &mut P,
    (now, others): (Ticks, Option<Ticks>),
    stop: &AtomicBool,
) -> Result<Did, Ended> {
    if *over {
        return lane.listen(port, now, others, stop);
    }
    match lane.turn(port, now, others, stop) {
        Err(Ended::Duration) => {
            *over = true;
            Ok(Did::Look)
        }
        turned => turned,
    }
}
