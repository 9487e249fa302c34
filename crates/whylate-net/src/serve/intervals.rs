//! What a server hands over while it goes on, of one interval after the other: how long requests
//! stayed, and at which distances came what asks for no answer.

use whylate_model::{Hertz, Nanos, Ticks};
use whylate_stats::histogram::Histogram;

use super::Served;
use crate::conversation::Scale;

/// Shorter intervals are taken as this.
const SHORTEST: Nanos = Nanos(10_000_000);

/// Is called on the serving thread as an interval closes: with its number, from 0, its times, and
/// everything that was done until then. Leaves empty histograms behind, which are those of the next
/// interval.
pub type Watch<'a> = dyn FnMut(u64, &mut Times, &Served) + Send + 'a;

/// Times of one interval, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Residence of the measured requests that were answered in it.
    pub residence: Histogram,
    /// From one measured message that asks for no answer to the next one of the same client, which
    /// came in it.
    pub gaps: Histogram,
}

impl Times {
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
        self.gaps.clear();
    }
}

/// The intervals of a server's time, from the first time that it looks for a message.
pub struct Intervals<'a> {
    watch: &'a mut Watch<'a>,
    scale: Scale,
    ticks: u64,
    begin: Option<Ticks>,
    end: Ticks,
    index: u64,
    open: Times,
}

impl<'a> Intervals<'a> {
    /// Intervals of this length, 10 ms at least, by a counter of this rate.
    pub fn new(watch: &'a mut Watch<'a>, length: Nanos, rate: Hertz) -> Self {
        let scale = Scale::new(rate);
        let ticks = scale.ticks(length.max(SHORTEST)).0.max(1);
        let open = Times::touched();
        Self { watch, scale, ticks, begin: None, end: Ticks(0), index: 0, open }
    }

    /// A request that came at `from` was answered at `to`.
    #[inline]
    pub(super) fn answered(&mut self, from: Ticks, to: Ticks) {
        self.open.residence.record(self.scale.nanos(from, to).0);
    }

    /// What asks for no answer came at `at`, and from the same client one before it.
    #[inline]
    pub(super) fn received(&mut self, before: Ticks, at: Ticks) {
        self.open.gaps.record(self.scale.nanos(before, at).0);
    }

    /// Is the interval over?
    #[inline]
    pub(super) fn is_over(&mut self, now: Ticks) -> bool {
        if self.begin.is_none() {
            (self.begin, self.end) = (Some(now), Ticks(now.0.saturating_add(self.ticks)));
        }
        now >= self.end
    }

    /// Hands the open interval over and begins the one that `now` lies in.
    #[cold]
    pub(super) fn close(&mut self, now: Ticks, served: &Served) {
        (self.watch)(self.index, &mut self.open, served);
        let Some(begin) = self.begin else { return };
        self.index = now.since(begin).0 / self.ticks;
        let end = (self.index + 1).saturating_mul(self.ticks);
        self.end = Ticks(begin.0.saturating_add(end));
    }

    /// Hands over what is left.
    pub(super) fn finish(mut self, served: &Served) {
        (self.watch)(self.index, &mut self.open, served);
    }
}
