//! A run that is readable while it is recorded, and after its process was killed.
//!
//! From the first interval on, and every ten seconds, `run.json` has the times of the intervals so
//! far. The account of requests and messages is the measuring thread's until its end: a checkpoint
//! has none, and no flow.

use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::{Hertz, Nanos, Ticks};

use super::flow::{Of, series_of};
use super::intervals::Collected;
use super::line::Beside;
use crate::storage::Storage;

/// Writes checkpoints.
pub(super) struct Checkpoint {
    /// The run without what has been measured.
    begun: Run,
    timeout: Nanos,
    rate: Hertz,
    /// When the first look was taken, and whether anything was written since.
    first: Option<Ticks>,
    written: bool,
}

impl Checkpoint {
    /// Of a run that begins.
    pub(super) fn new(begun: Run, timeout: Nanos, rate: Hertz) -> Self {
        Self { begun, timeout, rate, first: None, written: false }
    }

    /// Writes one if it is time. Nothing is written before anything was measured, so that a run that
    /// cannot begin leaves nothing behind.
    pub(super) fn look(&mut self, now: Ticks, flows: &[Beside<'_>], storage: &mut Storage) {
        let first = *self.first.get_or_insert(now);
        let elapsed = now.since(first).to_nanos(self.rate);
        let due = storage.checkpoint_is_due(elapsed) || !self.written;
        if due && flows.iter().any(|of| !of.collected.sum().is_empty()) {
            self.written = true;
            let mut run = self.run(flows);
            // What is pushed until the segments are written is in the next checkpoint.
            storage.close();
            run.warnings.extend(storage.warnings());
            storage.checkpoint(&mut run);
        }
    }

    fn run(&self, flows: &[Beside<'_>]) -> Run {
        let series = flows.iter().flat_map(|of| self.series(of.collected));
        Run { series: series.collect(), ..self.begun.clone() }
    }

    fn series(&self, collected: &Collected) -> Vec<Series> {
        let sum = collected.sum();
        // What was given up, or never left, stands at its timeout or above: from there on nothing is
        // known.
        let one = |of: Of| {
            let values = of.pick(sum);
            let given_up = values.max().is_some_and(|max| max >= self.timeout.0);
            series_of(of, values, collected, (0, given_up.then_some(self.timeout)))
        };
        Of::ALL.into_iter().filter_map(one).collect()
    }
}
