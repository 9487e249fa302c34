//! The closure of METHOD 2, checked on every record as it is drained.
//!
//! Gap and recording intervals are ordered, disjoint and inside [start, end]; then the rest of the
//! elapsed time is loop time by construction.

use whylate_model::gap::Gap;
use whylate_model::run::Closure;
use whylate_model::{Ticks, TicksDelta};

use crate::session::Totals;

/// Checks the records of one thread in the order they were made. Memory does not grow.
#[derive(Debug, Clone)]
pub struct Check {
    last: Option<Ticks>,
    gap_ticks: TicksDelta,
    recording_ticks: TicksDelta,
    records: u64,
    broken: Option<String>,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            last: None,
            gap_ticks: TicksDelta(0),
            recording_ticks: TicksDelta(0),
            records: 0,
            broken: None,
        }
    }
}

impl Check {
    /// Takes the next record.
    pub fn push(&mut self, gap: &Gap) {
        self.records += 1;
        self.gap_ticks = self.gap_ticks + gap.length();
        self.recording_ticks = self.recording_ticks + gap.recording();
        let fault = if gap.end < gap.start || gap.resumed < gap.end {
            Some("runs backwards")
        } else if self.last.is_some_and(|last| gap.start < last) {
            Some("overlaps the one before")
        } else {
            None
        };
        if let (Some(fault), None) = (fault, &self.broken) {
            self.broken = Some(format!("record {} at tick {} {fault}", self.records, gap.start.0));
        }
        self.last = Some(gap.resumed);
    }

    /// The verdict, given what the thread itself counted.
    #[must_use]
    pub fn verdict(&self, totals: &Totals) -> Closure {
        if let Some(reason) = &self.broken {
            return Closure::Broken(reason.clone());
        }
        if totals.dropped > 0 {
            return Closure::SumsOnly;
        }
        let elapsed = totals.end.since(totals.start);
        let faults = [
            (self.records != totals.gaps, "the thread counted another number of gaps"),
            (self.gap_ticks != totals.gap_ticks, "the thread counted other gap time"),
            (self.recording_ticks.0 > totals.recording_ticks.0, "recordings add up to more"),
            (self.last.is_some_and(|last| last > totals.end), "a record lies after the end"),
            (self.gap_ticks + totals.recording_ticks > elapsed, "gaps exceed the elapsed time"),
        ];
        match faults.iter().find(|(broken, _)| *broken) {
            Some((_, reason)) => Closure::Broken((*reason).to_owned()),
            None => Closure::Holds,
        }
    }
}

/// Lost time: of each gap, what is more than one period of the loop.
#[must_use]
pub fn lost_ticks(totals: &Totals, period_ticks: f64) -> f64 {
    (totals.gap_ticks.0 as f64 - totals.gaps as f64 * period_ticks).max(0.0)
}

/// Loop time below the threshold against the period, as a signed share of elapsed.
///
/// What is left of it after the iterations' own `period_ticks` is noise too short to be a gap. None
/// while nothing was measured.
#[must_use]
pub fn noise_below_threshold(totals: &Totals, period_ticks: f64) -> Option<f64> {
    let elapsed = totals.end.since(totals.start).0 as f64;
    let quiet = (totals.iterations - totals.gaps.min(totals.iterations)) as f64;
    let inside = match totals.inside_ticks {
        TicksDelta(0) => elapsed - (totals.gap_ticks + totals.recording_ticks).0 as f64,
        inside => inside.0 as f64,
    };
    (elapsed > 0.0).then(|| (inside - quiet * period_ticks) / elapsed)
}
