//! Every delta of a counting run by interval of time: what the tables grew by since the last look.
//!
//! The loop counts into tables that know no time. They are looked at once per interval, from
//! another CPU, and the differences are kept in the bounded store of [`crate::intervals`]. What a
//! late look finds belongs to the interval that it was due for.

use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_stats::Histogram;

use crate::intervals::{Interval, Tables};

/// The deltas of one thread by interval of time.
#[derive(Debug, Clone)]
pub struct Deltas {
    width: TicksDelta,
    rate: Hertz,
    /// When to look again.
    due: TicksDelta,
    /// What was there at the last look, ascending: as many entries as the tables have bins.
    seen: Vec<(TicksDelta, u64)>,
    tables: Tables,
    scale: Histogram,
    /// What looks found since they were last asked for.
    found: Vec<Found>,
}

/// What one look found, for the histogram log.
#[derive(Debug, Clone)]
pub struct Found {
    /// Start of the interval that it belongs to, counted from the start of the measurement.
    pub start: Nanos,
    /// Length of that interval.
    pub length: Nanos,
    /// The deltas, in nanoseconds.
    pub values: Histogram,
}

impl Deltas {
    /// Nothing seen yet; one look per `width`.
    #[must_use]
    pub fn new(width: TicksDelta, rate: Hertz) -> Self {
        let width = TicksDelta(width.0.max(1));
        Self {
            width,
            rate,
            due: width,
            seen: Vec::new(),
            tables: Tables::new(width),
            scale: Histogram::new(),
            found: Vec::new(),
        }
    }

    /// Looks at the tables, (delta, count) in ascending order, when that is due `offset` after the
    /// start. Costs nothing when it is not.
    pub fn look(
        &mut self,
        offset: TicksDelta,
        counts: impl IntoIterator<Item = (TicksDelta, u64)>,
    ) {
        if offset >= self.due {
            let ended = TicksDelta(self.due.0 - 1);
            self.due = TicksDelta((offset.0 / self.width.0 + 1) * self.width.0);
            self.take(ended, counts);
        }
    }

    /// Looks before that is due: what is new belongs to the interval that is not over yet.
    pub fn look_now(&mut self, counts: impl IntoIterator<Item = (TicksDelta, u64)>) {
        self.take(TicksDelta(self.due.0 - 1), counts);
    }

    fn take(&mut self, within: TicksDelta, counts: impl IntoIterator<Item = (TicksDelta, u64)>) {
        let mut before = self.seen.iter().copied().peekable();
        let (mut now, mut new) = (Vec::with_capacity(self.seen.len()), Interval::default());
        let mut values = Histogram::new();
        for (delta, count) in counts {
            while before.next_if(|(earlier, _)| *earlier < delta).is_some() {}
            let known = before.next_if(|(same, _)| *same == delta).map_or(0, |(_, known)| known);
            let more = count.saturating_sub(known);
            if more > 0 {
                let delta_ns = delta.to_nanos(self.rate).0;
                values.record_n(delta_ns, more);
                new.add(Nanos(self.scale.bin_of(delta_ns)), more);
            }
            now.push((delta, count));
        }
        self.seen = now;
        if !values.is_empty() {
            let length = self.width.to_nanos(self.rate);
            let start = Nanos((within.0 / self.width.0).saturating_mul(length.0));
            self.found.push(Found { start, length, values });
        }
        self.tables.add(within, new);
    }

    /// All deltas up to the last look, ascending, with their counts.
    pub fn counts(&self) -> impl Iterator<Item = (TicksDelta, u64)> + '_ {
        self.seen.iter().copied()
    }

    /// What looks found since the last call.
    pub fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// The intervals so far.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        self.tables.whole(TicksDelta(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use whylate_stats::rng::Rng;

    use super::*;
    use crate::summary::{Description, delta_series};

    const RATE: Hertz = Hertz(1e9);

    fn description() -> Description {
        Description {
            name: "delta-cpu0".to_owned(),
            label: "two reads, CPU 0".to_owned(),
            paper_row: None,
            from: "a reading of the counter",
            to: "the next reading",
            clock: "mock".to_owned(),
            definition: whylate_model::series::Definition::ReadDelta,
            resolution_ns: 1.0,
            lost: 0,
        }
    }

    /// A table that grows in `seconds` seconds by 1000 deltas each, of which so many take 50 ns as
    /// `slow` says, and the others 10.
    fn counted(seconds: u64, mut slow: impl FnMut() -> u64) -> (Deltas, Vec<(TicksDelta, u64)>) {
        let mut deltas = Deltas::new(TicksDelta(1_000), RATE);
        let mut table = vec![(TicksDelta(10), 0), (TicksDelta(50), 0)];
        for second in 1..=seconds {
            let long = slow();
            table[0].1 += 1_000 - long;
            table[1].1 += long;
            deltas.look(TicksDelta(second * 1_000 - 500), [(TicksDelta(7), u64::MAX)]);
            deltas.look(TicksDelta(second * 1_000 + 3), table.iter().copied());
        }
        (deltas, table)
    }

    #[test]
    fn looks_find_every_delta_once_and_the_last_one_before_it_is_due() {
        let (mut deltas, mut table) = counted(20, || 3);
        table[1].1 += 7;
        deltas.look_now(table.iter().copied());
        deltas.look_now(table.iter().copied());
        let found = deltas.take_found();
        assert_eq!(found.len(), 21);
        let all: u64 = found.iter().map(|found| found.values.len()).sum();
        assert_eq!(all, 20 * 1_000 + 7);
        assert_eq!(found[20].start, Nanos(20_000));
        assert_eq!(found[20].values.max(), Some(50));
        assert!(deltas.take_found().is_empty());
    }

    #[test]
    fn each_interval_holds_what_the_table_grew_by() {
        let mut turn = 0;
        let (deltas, _) = counted(5, || {
            turn += 1;
            turn * 10
        });
        let slow: Vec<u64> = deltas.intervals().iter().map(|i| i.above(Nanos(10))).collect();
        assert_eq!(slow.iter().sum::<u64>(), 10 + 20 + 30 + 40 + 50);
        assert_eq!(deltas.intervals().iter().map(Interval::len).sum::<u64>(), 5_000);
        assert!(slow.windows(2).all(|pair| pair[0] <= pair[1]), "{slow:?}");
    }

    #[test]
    fn deltas_that_are_slow_in_bursts_are_worth_less_than_their_number() {
        let mut dice = Rng::new(8);
        let mut even = Rng::new(9);
        let (bursts, table) = counted(50, || if dice.unit() < 0.1 { 500 } else { 0 });
        let n_eff = |deltas: &Deltas, table: Vec<(TicksDelta, u64)>| {
            let series =
                delta_series(table.into_iter(), Some(deltas.intervals()), &description(), RATE);
            series.quantiles[0].n_eff / series.n as f64
        };
        assert!(n_eff(&bursts, table) < 0.05, "bursts of 500 are worth one each");
        let (even, table) =
            counted(50, || (0..1_000).filter(|_| even.unit() < 0.05).count() as u64);
        assert!(n_eff(&even, table) > 0.4, "independent deltas are worth themselves");
    }

    #[test]
    fn without_intervals_the_interval_of_a_quantile_is_not_known() {
        let series =
            delta_series([(TicksDelta(10), 100_000)].into_iter(), None, &description(), RATE);
        let median = series.quantiles[0];
        assert_eq!((median.value, median.low, median.high), (Some(Nanos(10)), None, None));
        assert!(median.n_eff.abs() < f64::EPSILON);
    }
}
