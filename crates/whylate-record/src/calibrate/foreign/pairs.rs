//! The truth of requests and replies that are not ours, out of the line's own log.
//!
//! Nothing in such a message says what it belongs to. A client that waits for each reply has one message on
//! its way: what comes back next belongs to what went there last. Where a second one went there before
//! anything came back, the first is left alone and counted: of a client that does not wait nothing is
//! claimed.

use whylate_model::delay::{Fate, Truth};
use whylate_model::{Hertz, Ticks, TicksDelta};
use whylate_stats::Histogram;

/// Passes through the line of what a tool's number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// There and back.
    Both,
    /// There.
    One,
}

impl Passes {
    /// How many.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::Both => 2,
            Self::One => 1,
        }
    }
}

/// Truths of what went through, and what could not be paired.
pub(super) struct Paired {
    pub(super) truth: Histogram,
    /// Messages that went there and after which nothing came back.
    pub(super) alone: u64,
    /// First and last arrival of what was taken.
    span: Option<(Ticks, Ticks)>,
    passes: Passes,
    rate: Hertz,
    under_way: Option<(Ticks, TicksDelta)>,
}

impl Paired {
    pub(super) fn new(passes: Passes, rate: Hertz) -> Self {
        let truth = Histogram::new();
        Self { truth, alone: 0, span: None, passes, rate, under_way: None }
    }

    /// Takes one more row, in the order of the log.
    pub(super) fn take(&mut self, row: &Truth) {
        let Some(departure) = row.departure.filter(|_| row.fate == Fate::Released) else { return };
        let stayed = departure.since(row.arrival);
        match (row.direction, self.passes) {
            (0, Passes::One) => self.record(row.arrival, stayed),
            (0, Passes::Both) => {
                let before = self.under_way.replace((departure, stayed));
                self.alone += u64::from(before.is_some());
            }
            (_, Passes::One) => {}
            (_, Passes::Both) => {
                // What came before the request had left belongs to something else.
                if let Some((_, there)) = self.under_way.take_if(|(left, _)| row.arrival >= *left) {
                    self.record(row.arrival, TicksDelta(there.0 + stayed.0));
                }
            }
        }
    }

    fn record(&mut self, at: Ticks, truth: TicksDelta) {
        self.truth.record(truth.to_nanos(self.rate).0);
        let (first, _) = self.span.unwrap_or((at, at));
        self.span = Some((first, at));
    }

    /// Messages a second, from the first to the last.
    pub(super) fn per_second(&self) -> f64 {
        let Some((first, last)) = self.span else { return 0.0 };
        let seconds = last.since(first).to_nanos(self.rate).0 as f64 / 1e9;
        if seconds > 0.0 { self.truth.len().saturating_sub(1) as f64 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Hertz = Hertz(1e9);

    fn row(direction: u8, arrival: u64, stayed: u64) -> Truth {
        Truth {
            direction,
            ordinal: 0,
            arrival: Ticks(arrival),
            due: Ticks(arrival + stayed),
            departure: Some(Ticks(arrival + stayed)),
            bytes: 60,
            number: None,
            flow: None,
            fate: Fate::Released,
        }
    }

    fn paired(passes: Passes, rows: &[Truth]) -> Paired {
        let mut paired = Paired::new(passes, RATE);
        for row in rows {
            paired.take(row);
        }
        paired
    }

    #[test]
    fn a_request_and_the_reply_after_it_are_one_truth() {
        let rows: Vec<Truth> = (0..100)
            .flat_map(|at| [row(0, 1_000 * at, 100), row(1, 1_000 * at + 300, 50)])
            .collect();
        let of = paired(Passes::Both, &rows);
        assert_eq!((of.truth.len(), of.truth.min(), of.truth.max()), (100, Some(150), Some(150)));
        assert_eq!(of.alone, 0);
        assert!((of.per_second() - 1e6).abs() < 1.0, "{}", of.per_second());
        let of = paired(Passes::One, &rows);
        assert_eq!((of.truth.len(), of.truth.max()), (100, Some(100)));
    }

    #[test]
    fn what_is_not_answered_before_the_next_is_alone_and_strangers_pair_with_nothing() {
        let lost = Truth { fate: Fate::Lost, departure: None, ..row(0, 10_000, 100) };
        let rows = [
            // Nothing went there before.
            row(1, 10, 50),
            row(0, 1_000, 100),
            row(0, 2_000, 100),
            // Came while the request was still in the line.
            row(1, 2_050, 40),
            row(1, 2_300, 60),
            // A second one after that.
            row(1, 2_400, 60),
            lost,
            row(1, 10_500, 60),
        ];
        let of = paired(Passes::Both, &rows);
        assert_eq!((of.truth.len(), of.truth.max(), of.alone), (1, Some(160), 1));
    }
}
