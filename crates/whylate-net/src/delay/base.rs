//! What a line adds by itself, measured before the first frame.
//!
//! Frames of memory go through a line that is like the one that is to come, thread, clock and queues, while
//! it looks at the real rings at each turn, writes into as many slots as a real ring has, and calls the
//! kernel behind each departure, with nothing to send. So the time between two looks, the copies and the
//! readings are in it, with caches as they are behind a call; how long the kernel takes to send is not: that
//! comes behind the departure. Frames of others that come meanwhile are dropped, as before a line has begun; probes
//! of whether the ports are joined outside are looked for among them, so that none has to be waited for.
//!
//! Frames that follow each other closely find everything in the caches. One that was held for long leaves
//! by a path that has not been taken since, while the kernel took in others: a few are held for so long, more
//! memory is written meanwhile than a CPU has caches of its own, and the error covers them.

use std::sync::{Mutex, PoisonError};

use whylate_clock::Counter;
use whylate_clock::cost::resolution_ticks;
use whylate_model::delay::DelayBase;
use whylate_model::{Hertz, Nanos, Ticks};
use whylate_port::PortError;
use whylate_port::frames::{Arrival, Burst, Drops, Frames, FramesFacts};
use whylate_stats::Histogram;

use super::capacity::Capacity;
use super::fifo::Fifo;
use super::lane::Delayed;
use super::law::Law;
use super::line::{Line, Settings};
use super::truth::truths;
use crate::forward::probe::{Joined, Pair, Probing};
use crate::schedule::Rate;

/// Frames behind each number.
pub(super) const FRAMES: u64 = 4_000;
/// Those before them warm caches up.
const WARM_UP: u64 = 200;
/// The delay at which the error is measured: many turns long, and short enough for thousands of them.
pub(super) const AT: Nanos = Nanos(10_000);
/// A delay after which caches have forgotten the way out, frames that are held for so long, and those before
/// them.
const RESTED: Nanos = Nanos(10_000_000);
const RESTED_FRAMES: u64 = 20;
const RESTED_WARM_UP: u64 = 1;
/// Of so few, nine of ten count, and twice what they have: rings that the kernel shares are further away than
/// memory of this process.
const RESTED_PERCENT: f64 = 90.0;
const COLDER: u64 = 2;
/// Memory that is written while one of them is held, a line of a cache at a time: more than the second cache
/// of any CPU has.
const FORGOTTEN_BYTES: usize = 8 << 20;
const LINE_BYTES: usize = 64;
/// Bytes of a frame.
const BYTES: usize = 60;
/// Bytes of all slots that frames leave by at most, and of the status of one, which is looked at first.
const MOST_SLOT_BYTES: usize = 8 << 20;
const STATUS: usize = 32;
/// Turns that a frame may take at most: a counter that does not move does not hold this up for ever.
const MOST_TURNS: u32 = 10_000_000;
/// All of this may take as long: a line that is disturbed has fewer frames behind its numbers.
const PATIENCE: Nanos = Nanos(500_000_000);

/// A port through which frames of memory come, beside a real one.
struct Inside<'a, C> {
    real: &'a mut dyn Frames,
    /// Which of the two it is, and what looks at frames of others.
    at: usize,
    probing: &'a Mutex<Probing>,
    facts: FramesFacts,
    clock: C,
    frame: [u8; BYTES],
    coming: bool,
    /// As many slots as the real ring has, and the one that is next.
    slots: Vec<u8>,
    slot_bytes: usize,
    next: usize,
}

impl<'a, C: Counter> Inside<'a, C> {
    fn new((at, real): (usize, &'a mut dyn Frames), probing: &'a Mutex<Probing>, clock: C) -> Self {
        let facts = real.facts().clone();
        let slot_bytes = facts.room.max(facts.buffer as usize).max(BYTES) + STATUS;
        let wanted = (facts.rings.send as usize).clamp(1, MOST_SLOT_BYTES / slot_bytes + 1);
        let slots = vec![1; wanted * slot_bytes];
        // Some frame of UDP: it is read as others are.
        let mut frame = [2; BYTES];
        frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        frame[38..40].copy_from_slice(&[0, 26]);
        Self { real, at, probing, facts, clock, frame, coming: false, slots, slot_bytes, next: 0 }
    }
}

impl<C: Counter> Frames for Inside<'_, C> {
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        let real = self.real.receive(limit)?;
        if real.count > 0 {
            let mut probing = self.probing.lock().unwrap_or_else(PoisonError::into_inner);
            probing.take(self.at, self.real, real);
        }
        let at = real.at;
        Ok(Burst { count: usize::from(std::mem::take(&mut self.coming)), at })
    }

    fn frame(&self, _at: usize) -> Arrival<'_> {
        Arrival { bytes: &self.frame, stripped: None, kernel: None, queue: 0 }
    }

    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        let at = self.next * self.slot_bytes;
        let last = at + 2 * self.slot_bytes > self.slots.len();
        let slot = self.slots.get_mut(at..at + self.slot_bytes)?;
        self.next = if last { 0 } else { self.next + 1 };
        // A real ring is asked whether the slot is free.
        (std::hint::black_box(slot[0]) == 1).then_some(())?;
        slot.get_mut(STATUS..STATUS + length)
    }

    fn flush(&mut self) -> Result<Ticks, PortError> {
        let at = self.clock.read();
        // A port that fails here fails again when the line has begun, and is told of there.
        let _ = self.real.urge();
        Ok(at)
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        self.real.urge()
    }

    fn facts(&self) -> &FramesFacts {
        &self.facts
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        Ok(Vec::new())
    }
}

/// Measures a line between two ports on the CPU that the calling thread is on, and looks meanwhile how they are
/// joined outside. Takes about a quarter of a second, one and a half at most.
///
/// # Errors
/// A port fails before or behind that.
pub(super) fn measure_apart<C: Counter + Clone>(
    counter: C,
    rate: Hertz,
    pair: &mut dyn Pair,
    with_truths: bool,
) -> Result<(DelayBase, Option<Joined>), PortError> {
    let probing = Mutex::new(Probing::begin(pair, rate)?);
    let base = measure(counter, rate, (pair.both(), &probing), with_truths);
    let probing = probing.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((base, probing.end(pair)?))
}

fn measure<'a, C: Counter + Clone>(
    mut counter: C,
    rate: Hertz,
    ([first, second], probing): ([&'a mut dyn Frames; 2], &'a Mutex<Probing>),
    with_truths: bool,
) -> DelayBase {
    let resolution = resolution_ticks(&mut counter);
    let resolution = Nanos((resolution.0 as f64 * 1e9 / rate.0).ceil() as u64);
    let ports = [(0, first), (1, second)];
    let [first, second] = ports.map(|of| Inside::new(of, probing, counter.clone()));
    let ports = (first, second);
    let (writer, mut reader) = truths(0);
    let capacity = Capacity::default();
    let settings = Settings {
        laws: [Law::default(), Law::default()],
        capacity,
        queues: [Fifo::new(capacity), Fifo::new(capacity)],
        fastest: Rate::Packets(1.0),
        tells: [Box::new(|_| None), Box::new(|_| None)],
        truths: with_truths.then_some(writer),
        duration: None,
        rate,
        interfaces: [u32::MAX; 2],
    };
    let mut line = Line::new(ports, counter, settings);
    line.begin();
    let mut drain = || reader.drain(|_| ());
    let mut others = vec![0_u8; FORGOTTEN_BYTES];
    let mut forget = || {
        for of in std::hint::black_box(&mut others).iter_mut().step_by(LINE_BYTES) {
            *of = of.wrapping_add(1);
        }
    };
    let many = (WARM_UP, FRAMES);
    let at_once = went_through(&mut line, Nanos(0), rate, many, (&mut drain, &mut || ()));
    let later = went_through(&mut line, AT, rate, many, (&mut drain, &mut || ()));
    let rested = (RESTED_WARM_UP, RESTED_FRAMES);
    let rested = went_through(&mut line, RESTED, rate, rested, (&mut drain, &mut forget));
    let value = |of: &Histogram, percent: f64| Nanos(of.value_at(percent).unwrap_or(0));
    let late = |percent: f64| value(&later.lateness, percent);
    let longest = Nanos(rested.lateness.max().unwrap_or(0));
    let colder = Nanos(COLDER * value(&rested.lateness, RESTED_PERCENT).0);
    DelayBase {
        base: value(&at_once.residence, 50.0),
        error: late(99.0).max(colder).max(resolution),
        error_median: late(50.0),
        error_max: Nanos(later.lateness.max().unwrap_or(0)).max(longest).max(colder),
        at: AT,
        frames: at_once.residence.len().min(later.lateness.len()),
        resolution,
    }
}

/// Frames that went through one by one at this delay. Something is drained behind each, and something is done
/// while each is held.
fn went_through<C: Counter>(
    line: &mut Line<C, Inside<'_, C>>,
    delay: Nanos,
    rate: Hertz,
    (warm_up, frames): (u64, u64),
    (drain, held): (&mut dyn FnMut(), &mut dyn FnMut()),
) -> Delayed {
    let begin = line.hand.counter.read();
    line.lanes[0].set(&Law::constant(delay), begin, rate);
    let end = begin + PATIENCE.to_ticks(rate);
    for number in 0..warm_up + frames {
        if number == warm_up {
            line.lanes[0].times.clear();
        }
        let passed = line.lanes[0].counts.passed_on;
        line.ports.first.coming = true;
        let mut turns = 0;
        while line.lanes[0].counts.passed_on == passed && turns < MOST_TURNS {
            // As above, of looks.
            let _ = line.round();
            if turns == 0 {
                held();
            }
            turns += 1;
        }
        drain();
        if line.hand.last > end {
            break;
        }
    }
    std::mem::replace(&mut line.lanes[0].times, Delayed::touched())
}
