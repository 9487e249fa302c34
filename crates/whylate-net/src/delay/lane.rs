//! One direction of a delay line: what waits, by which law, and what is kept of it.

use whylate_clock::Counter;
use whylate_model::delay::{DelayCounts, Fate};
use whylate_model::{Hertz, Nanos, Ticks};
use whylate_port::PortError;
use whylate_port::frames::{Burst, Frames};
use whylate_stats::Histogram;

use super::dice::Dice;
use super::fifo::Fifo;
use super::hot::{BATCH, Leaving, release, settle, take, tell};
use super::law::Law;
use super::limiter::Limiter;
use super::mark::Tells;
use super::truth::TruthWriter;
use crate::conversation::Scale;
use crate::forward::Room;
use crate::forward::way::{Failure, URGE_EVERY};

/// Batches of a direction before the other one has its turn: as many frames leave as can come.
const BATCHES: u32 = 2;
/// Pauses at the end at most, of so long each, for whoever writes truths down.
const PAUSES: u32 = 1_000;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);

/// What frames of one direction took, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Delayed {
    /// From when a frame was seen in the ring to when it was handed over.
    pub residence: Histogram,
    /// From when it was to leave to when it was handed over.
    pub lateness: Histogram,
}

impl Delayed {
    /// Empty histograms whose memory has been touched.
    #[must_use]
    pub fn touched() -> Self {
        let mut fresh = Self::default();
        fresh.clear();
        fresh
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.residence.clear();
        self.lateness.clear();
    }
}

/// One direction.
pub struct Lane {
    pub(super) direction: u8,
    pub(super) room: Room,
    pub(super) fifo: Fifo,
    pub(super) dice: Dice,
    pub(super) limiter: Limiter,
    pub(super) tells: Tells,
    pub(super) scale: Scale,
    /// When the newest of those that wait is to leave.
    pub(super) last_due: Ticks,
    /// One more than the largest number that left.
    pub(super) next_ordinal: u64,
    /// Put, and not handed over yet.
    pub(super) leaving: Vec<Leaving>,
    pub(super) counts: DelayCounts,
    pub(super) received_bytes: u64,
    pub(super) passed_bytes: u64,
    /// Of the open interval. Whoever takes them leaves empty ones behind.
    pub times: Delayed,
    pub(super) law: String,
    pub(super) refusals: u64,
    pub(super) first_refusal: Option<String>,
    /// Looks in vain in a row.
    silent: u32,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane")
            .field("direction", &self.direction)
            .field("law", &self.law)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// What the directions share.
#[derive(Debug)]
pub(super) struct Hand<C> {
    pub(super) counter: C,
    /// The last reading.
    pub(super) last: Ticks,
    pub(super) looks: u64,
    pub(super) in_vain: u64,
    pub(super) truths: Option<TruthWriter>,
}

impl Lane {
    pub(super) fn new(direction: u8, room: Room, fifo: Fifo, tells: Tells, rate: Hertz) -> Self {
        let law = Law::default();
        Self {
            direction,
            room,
            fifo,
            dice: Dice::new(&law, direction, Ticks(0), rate),
            limiter: Limiter::default(),
            tells,
            scale: Scale::new(rate),
            last_due: Ticks(0),
            next_ordinal: 0,
            leaving: Vec::with_capacity(BATCH),
            counts: DelayCounts::default(),
            received_bytes: 0,
            passed_bytes: 0,
            times: Delayed::touched(),
            law: law.to_string(),
            refusals: 0,
            first_refusal: None,
            silent: 0,
        }
    }

    /// Goes on by another law from `now` on: what waits leaves when it was to leave.
    pub(super) fn set(&mut self, law: &Law, now: Ticks, rate: Hertz) {
        self.dice = Dice::new(law, self.direction, now, rate);
        self.limiter = Limiter::new(law.rate, rate);
        self.law = law.to_string();
    }

    /// What became of its frames until now.
    pub(super) fn counts(&self) -> DelayCounts {
        let waiting = self.counts.waiting_at_the_end + self.fifo.len() as u64;
        DelayCounts { waiting_at_the_end: waiting, ..self.counts }
    }

    /// Looks once at what has come by `from`, and hands over to `to` what is due.
    #[inline]
    pub(super) fn turn<C, R, S>(
        &mut self,
        from: &mut R,
        to: &mut S,
        hand: &mut Hand<C>,
    ) -> Result<(), Failure>
    where
        C: Counter,
        R: Frames + ?Sized,
        S: Frames + ?Sized,
    {
        hand.looks += 1;
        let (burst, failed) = match from.receive(Nanos(0)) {
            Ok(burst) => (burst, None),
            // What waits leaves all the same.
            Err(error) => (Burst { count: 0, at: hand.counter.read() }, Some(error)),
        };
        hand.last = burst.at;
        if burst.count == 0 {
            hand.in_vain += 1;
        } else {
            take(from, to, burst, self, &mut hand.truths);
            // That took its time.
            hand.last = hand.counter.read();
        }
        let is_due = self.fifo.front().is_some_and(|front| front.due <= hand.last);
        if is_due || !self.leaving.is_empty() {
            self.silent = 0;
            self.hand_over(to, hand)?;
        } else if burst.count == 0 {
            self.rest(to)?;
        }
        if let Some(truths) = &mut hand.truths {
            truths.show();
        }
        failed.map_or(Ok(()), |error| Err(Failure::receiving(error)))
    }

    /// Hands over what is due.
    #[inline]
    fn hand_over<C, S>(&mut self, to: &mut S, hand: &mut Hand<C>) -> Result<(), Failure>
    where
        S: Frames + ?Sized,
    {
        for _ in 0..BATCHES {
            let more = release(to, hand.last, self, &mut hand.truths);
            if self.leaving.is_empty() {
                break;
            }
            match to.flush() {
                Ok(departure) => {
                    hand.last = departure;
                    settle(Some(departure), self, &mut hand.truths);
                }
                Err(error) => {
                    settle(None, self, &mut hand.truths);
                    return Err(Failure::sending(error));
                }
            }
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Nothing has come and nothing is due: what could not leave at once may do so now.
    #[inline]
    fn rest<S: Frames + ?Sized>(&mut self, to: &mut S) -> Result<(), Failure> {
        self.silent = self.silent.wrapping_add(1);
        // Not at once: what comes or is due right behind a frame that left would find the line in a call.
        if self.silent % URGE_EVERY == URGE_EVERY / 2 {
            to.urge().map_err(Failure::sending)?;
        }
        Ok(())
    }

    /// The kernel refused to send.
    #[cold]
    pub(super) fn refused(&mut self, why: &PortError) {
        self.refusals += 1;
        self.first_refusal.get_or_insert_with(|| why.to_string());
    }

    /// It is over: what waits is told of, and will not leave.
    pub(super) fn finish(&mut self, truths: &mut Option<TruthWriter>) {
        let mut pauses = 0;
        while let Some(held) = self.fifo.pop() {
            // Nothing is measured any more: whoever writes truths down is waited for, a second at most.
            while truths.as_mut().is_some_and(|truths| !truths.may_push()) && pauses < PAUSES {
                std::thread::sleep(PAUSE);
                pauses += 1;
            }
            self.counts.waiting_at_the_end += 1;
            tell(truths, self.direction, &held, None, Fate::Waiting);
        }
        if let Some(truths) = truths {
            truths.show();
        }
    }
}
