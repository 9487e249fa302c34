//! What all rounds of one backend add up to: each round an interval of its own, in the log and in memory.

use whylate_model::series::Series;
use whylate_model::{Nanos, TicksDelta};
use whylate_net::open_loop::OpenOutcome;
use whylate_stats::Histogram;

use super::super::flow::{Names, Of, series_over};
use crate::intervals::{Interval, Tables};
use crate::storage::Storage;

/// The times that are kept: lateness is the client's, whatever carries its requests.
const KEPT: [Of; 2] = [Of::Service, Of::Response];

/// Where the clock starts and stops of every backend: at the client's own code.
const HANDED_OVER: &str = "before the client hands the request to its port";
const TAKEN_IN: &str = "after its port has taken the reply in";

/// All rounds of one backend.
pub(super) struct Pooled {
    names: Names,
    /// As in [`KEPT`].
    times: [Times; 2],
    /// Requests that were never answered.
    lost: u64,
    /// One more than the number of the last round.
    rounds: u64,
}

/// One kind of time.
struct Times {
    all: Histogram,
    /// By round, which stand for ticks here.
    tables: Tables,
    /// Nothing is known of values from here on.
    above: Option<Nanos>,
}

impl Pooled {
    pub(super) fn new(names: Names) -> Self {
        let times =
            || Times { all: Histogram::new(), tables: Tables::new(TicksDelta(1)), above: None };
        Self { names, times: [times(), times()], lost: 0, rounds: 0 }
    }

    /// Names of the series of service and response; a closed loop has no response.
    pub(super) fn names(&self, closed: bool) -> (String, Option<String>) {
        let [service, response] = KEPT.map(|of| of.series(&self.names.flow));
        (service, (!closed).then_some(response))
    }

    /// Adds a round, which began so long after the first of all and lasted so long.
    pub(super) fn add(
        &mut self,
        outcome: &OpenOutcome,
        (round, start, length): (u32, Nanos, Nanos),
        storage: &mut Storage,
    ) {
        let given_up = [outcome.given_up.service_above, outcome.given_up.response_above];
        for ((of, times), above) in KEPT.into_iter().zip(&mut self.times).zip(given_up) {
            let values = of.pick(&outcome.latencies);
            if !values.is_empty() {
                storage.interval(&of.series(&self.names.flow), values, start, length);
                times.tables.add(TicksDelta(u64::from(round)), Interval::of(values));
                times.all.add(values);
            }
            times.above = [times.above, above].into_iter().flatten().min();
        }
        self.lost = self.lost.saturating_add(outcome.accounting.lost);
        self.rounds = self.rounds.max(u64::from(round) + 1);
    }

    /// The series of all rounds together; none of what has no values.
    pub(super) fn series(&self) -> Vec<Series> {
        let rounds = TicksDelta(self.rounds);
        let one = |(of, times): (Of, &Times)| {
            let tables = times.tables.whole(rounds);
            let lost = (self.lost, times.above);
            let mut series = series_over(of, &times.all, (&self.names, tables), lost)?;
            // The same two instants of every backend, whether it makes system calls or not.
            if of == Of::Service {
                HANDED_OVER.clone_into(&mut series.from);
            }
            TAKEN_IN.clone_into(&mut series.to);
            Some(series)
        };
        KEPT.into_iter().zip(&self.times).filter_map(one).collect()
    }
}
