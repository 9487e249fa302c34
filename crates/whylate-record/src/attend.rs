//! Looking after the host while something is measured on a thread of its own.
//!
//! This thread, on its housekeeping CPU, looks some times a second whether the host has changed under
//! the measurement, takes sandwiches for the calibration, and says how far it is. What is counted on
//! the measured CPUs is counted for that stretch.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_host::watch::{HostWatch, Watched};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Ticks};

use crate::RecordError;
use crate::progress::{Progress, Step};
use crate::workbench::Workbench;

/// Time between two looks. Each takes some 50 us of a CPU that may hold the other end of the
/// messages: more of them would reach its p99.9.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The last turn of a recording ends so long after what it measures.
const SOON_AFTER: Duration = Duration::from_millis(2);

/// How long this turn lasts of turns that last `turn`: to the end of the measurement at most, which is
/// then noticed soon.
pub(crate) fn this_turn(turn: Duration, elapsed: Nanos, duration: Nanos) -> Duration {
    turn.min(Duration::from_nanos(duration.0.saturating_sub(elapsed.0)) + SOON_AFTER)
}

/// A part, and what must not change while it is measured.
pub(crate) struct Part<'a> {
    pub(crate) what: &'a str,
    pub(crate) duration: Nanos,
    /// CPUs that take part.
    pub(crate) cpus: &'a [CpuId],
    /// Threads and processes that must stay where they are.
    pub(crate) watched: &'a [Watched],
}

/// Whoever looks after the host meanwhile.
pub(crate) struct Attendant<'a> {
    pub(crate) bench: &'a mut Workbench,
    pub(crate) progress: &'a mut dyn Progress,
    pub(crate) warnings: &'a mut Vec<Warning>,
    /// Time between two looks: [`LOOK_EVERY`] as a rule.
    pub(crate) every: Duration,
    /// Time between two looks at the host, no shorter than that: each takes far longer than to wake.
    pub(crate) host_every: Duration,
    /// Is called at each look, with the counter's reading.
    pub(crate) beside: &'a mut dyn FnMut(Ticks),
}

impl Attendant<'_> {
    /// Does `work` on a thread of its own and looks after the host meanwhile.
    pub(crate) fn attend<T: Send>(
        &mut self,
        part: &Part<'_>,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, RecordError> {
        let mut watch = HostWatch::start(Path::new("/"), part.cpus, part.watched);
        self.progress.step(&Step::of(part.what, part.duration));
        let rate = self.bench.rate;
        let began = self.bench.counter.read();
        self.bench.measurement_begins();
        let done = thread::scope(|scope| {
            let waiting = thread::current();
            let worker = thread::Builder::new().name("whylate-part".to_owned());
            let worker = worker.spawn_scoped(scope, move || {
                let done = work();
                waiting.unpark();
                done
            })?;
            let mut looked = began;
            while !worker.is_finished() {
                thread::park_timeout(self.every);
                self.bench.sample();
                let now = self.bench.counter.read();
                (self.beside)(now);
                if u128::from(now.since(looked).to_nanos(rate).0) < self.host_every.as_nanos() {
                    continue;
                }
                looked = now;
                self.look(&mut watch);
                let elapsed = now.since(began).to_nanos(rate);
                self.progress.step(&Step { elapsed, ..Step::of(part.what, part.duration) });
            }
            Ok(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        self.bench.measurement_ends();
        self.look(&mut watch);
        done.map_err(RecordError::NoThread)
    }

    fn look(&mut self, watch: &mut HostWatch) {
        for warning in watch.poll() {
            self.progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_turn_ends_soon_after_the_measurement_and_no_turn_is_longer_than_asked() {
        let turn = Duration::from_millis(20);
        let at = |ms: u64| this_turn(turn, Nanos(ms * 1_000_000), Nanos(100_000_000)).as_millis();
        assert_eq!([0, 81, 82, 83, 95, 100, 5_000].map(at), [20, 20, 20, 19, 7, 2, 2]);
    }
}
