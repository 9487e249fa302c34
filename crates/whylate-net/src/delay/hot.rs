//! The path of frames through the line: taken out of one ring, held, put into the other.
//!
//! The bytes of each frame are copied twice: when it comes, as the ring's slot is the kernel's again with
//! the next look, and when it leaves. There is no allocation, no reading of the counter and no call but
//! those of the rings; what is drawn of chance costs a few multiplications, and a logarithm where the delay
//! is normal or exponential.

use whylate_model::Ticks;
use whylate_model::delay::{Fate, Truth};
use whylate_port::frame::{ETHERNET, TAG};
use whylate_port::frames::{Arrival, Burst, Frames};

use super::fifo::Held;
use super::lane::Lane;
use super::mark::message;
use super::truth::TruthWriter;
use crate::forward::hot::write;

/// Copies that are handed over at once.
pub(super) const BATCH: usize = 64;

/// A frame in the sending ring that was not handed over yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    held: Held,
    /// Is it the second of its kind?
    again: bool,
    /// Was it let past those that wait?
    past: bool,
}

/// Takes the frames of the last burst of `from` in. Those that are let past others are put into the
/// sending ring of `to` at once.
#[inline(never)]
pub(super) fn take<R, S>(
    from: &R,
    to: &mut S,
    burst: Burst,
    lane: &mut Lane,
    truths: &mut Option<TruthWriter>,
) where
    R: Frames + ?Sized,
    S: Frames + ?Sized,
{
    for at in 0..burst.count {
        let frame = from.frame(at);
        let length = frame.bytes.len() + if frame.stripped.is_some() { TAG } else { 0 };
        let ordinal = lane.counts.received;
        lane.counts.received += 1;
        lane.received_bytes += length as u64;
        let (arrival, due) = (burst.at, burst.at);
        let mut held = Held { arrival, due, ordinal, length: length as u32, ..Held::default() };
        if truths.is_some() {
            let mark = message(frame.bytes).and_then(&lane.tells);
            if let Some(mark) = mark {
                (held.number, held.flow) = (mark.number, mark.cookie);
            }
        }
        if let Some(fate) = keep(to, lane, &frame, held) {
            count(lane, fate);
            tell(truths, lane.direction, &held, None, fate);
        }
    }
}

/// Keeps a frame, or says what becomes of it at once.
#[inline]
fn keep<S>(to: &mut S, lane: &mut Lane, frame: &Arrival<'_>, mut held: Held) -> Option<Fate>
where
    S: Frames + ?Sized,
{
    let length = held.length as usize;
    if frame.bytes.len() < ETHERNET {
        return Some(Fate::Runt);
    }
    if !lane.room.holds(length, frame.bytes, frame.stripped) {
        return Some(Fate::TooLong);
    }
    if lane.dice.loses() {
        return Some(Fate::Lost);
    }
    let Some(passage) = lane.limiter.passage(held.arrival, held.length) else {
        return Some(Fate::RateDropped);
    };
    held.twice = lane.dice.doubles();
    if lane.dice.lets_past()
        && !lane.fifo.is_empty()
        && lane.leaving.len() + 2 <= BATCH
        && let Some(place) = to.put(length)
    {
        write(place, frame.bytes, frame.stripped);
        lane.limiter.take(passage);
        lane.leaving.push(Leaving { held, again: false, past: true });
        if held.twice {
            match to.put(length) {
                Some(place) => {
                    write(place, frame.bytes, frame.stripped);
                    lane.leaving.push(Leaving { held, again: true, past: false });
                }
                None => lane.counts.duplicates_lost += 1,
            }
        }
        return None;
    }
    let delay = lane.dice.delay(held.arrival);
    // Never before one that came earlier.
    held.due = Ticks(passage.passed.0.saturating_add(delay)).max(lane.last_due);
    let Some(place) = lane.fifo.push(held) else { return Some(Fate::Overflow) };
    write(place, frame.bytes, frame.stripped);
    lane.limiter.take(passage);
    lane.last_due = held.due;
    None
}

/// Puts what is due at `now` into the sending ring of `to`, until a batch is full. Says whether more is due.
#[inline(never)]
pub(super) fn release<S: Frames + ?Sized>(
    to: &mut S,
    now: Ticks,
    lane: &mut Lane,
    truths: &mut Option<TruthWriter>,
) -> bool {
    while let Some(&held) = lane.fifo.front() {
        if held.due > now {
            return false;
        }
        if lane.leaving.len() + 1 + usize::from(held.twice) > BATCH {
            return true;
        }
        match to.put(held.length as usize) {
            Some(place) => place.copy_from_slice(lane.fifo.bytes(&held)),
            // The ring may have room when what it holds was handed over.
            None if !lane.leaving.is_empty() => return true,
            None => {
                lane.fifo.pop();
                lane.counts.duplicates_lost += u64::from(held.twice);
                count(lane, Fate::RingFull);
                tell(truths, lane.direction, &held, None, Fate::RingFull);
                continue;
            }
        }
        lane.leaving.push(Leaving { held, again: false, past: false });
        if held.twice {
            match to.put(held.length as usize) {
                Some(place) => {
                    place.copy_from_slice(lane.fifo.bytes(&held));
                    lane.leaving.push(Leaving { held, again: true, past: false });
                }
                None => lane.counts.duplicates_lost += 1,
            }
        }
        lane.fifo.pop();
    }
    false
}

/// What was put has been handed over at `departure`; none where the kernel refused it.
#[inline(never)]
pub(super) fn settle(departure: Option<Ticks>, lane: &mut Lane, truths: &mut Option<TruthWriter>) {
    for at in 0..lane.leaving.len() {
        let Leaving { held, again, past } = lane.leaving[at];
        let Some(left) = departure else {
            if again {
                lane.counts.duplicates_lost += 1;
            } else {
                count(lane, Fate::Refused);
                tell(truths, lane.direction, &held, None, Fate::Refused);
            }
            continue;
        };
        lane.passed_bytes += u64::from(held.length);
        let fate = if again { Fate::Duplicate } else { Fate::Released };
        if again {
            lane.counts.duplicated += 1;
        } else {
            count(lane, fate);
            lane.counts.let_past += u64::from(past);
            // RFC 4737: one that leaves behind a later one.
            lane.counts.reordered += u64::from(held.ordinal < lane.next_ordinal);
            lane.next_ordinal = lane.next_ordinal.max(held.ordinal + 1);
            lane.times.residence.record(lane.scale.nanos(held.arrival, left).0);
            lane.times.lateness.record(lane.scale.nanos(held.due, left).0);
        }
        tell(truths, lane.direction, &held, departure, fate);
    }
    lane.leaving.clear();
}

/// Counts what became of a frame.
#[inline]
pub(super) fn count(lane: &mut Lane, fate: Fate) {
    let counts = &mut lane.counts;
    *match fate {
        Fate::Released => &mut counts.passed_on,
        Fate::Duplicate => &mut counts.duplicated,
        Fate::Lost => &mut counts.lost_on_purpose,
        Fate::Overflow => &mut counts.overflow,
        Fate::RateDropped => &mut counts.rate_dropped,
        Fate::RingFull => &mut counts.ring_full,
        Fate::Refused => &mut counts.refused,
        Fate::TooLong => &mut counts.too_long,
        Fate::Runt => &mut counts.runts,
        Fate::Waiting => &mut counts.waiting_at_the_end,
    } += 1;
}

/// Writes the truth of a frame down, where that is wanted.
#[inline]
pub(super) fn tell(
    truths: &mut Option<TruthWriter>,
    direction: u8,
    held: &Held,
    departure: Option<Ticks>,
    fate: Fate,
) {
    let Some(truths) = truths else { return };
    let Held { arrival, due, ordinal, number, flow, length, .. } = *held;
    truths.push(&Truth {
        direction,
        ordinal,
        arrival,
        due,
        departure,
        bytes: length,
        number,
        flow,
        fate,
    });
}
