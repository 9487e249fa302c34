//! What run directories hold of one tool, or of the log of a box: all its runs, block by block of time.

use whylate_model::RunDir;
use whylate_model::calibration::Trust;
use whylate_model::run::Run;
use whylate_model::series::Definition;
use whylate_stats::Histogram;
use whylate_stats::dependence::Exceedances;
use whylate_stats::sample::{Blocks, Sample, counts};

use crate::PaperError;

/// A stretch of a log, in seconds since the box began.
pub(super) type Window = (f64, f64);

/// Series of one kind, all runs and both ways together.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// Run by run, in blocks of time.
    pub(super) sample: Sample,
    /// Of all intervals of time.
    dependence: Exceedances,
    /// The parts that it comes from.
    pub(super) parts: Vec<String>,
    /// Messages that were sent, and that did not come.
    pub(super) sent: u64,
    pub(super) lost: u64,
    /// Messages a second that left, all flows together, of each run.
    pub(super) per_second: Vec<f64>,
    /// Smallest step of the clock.
    pub(super) resolution_ns: f64,
    /// How far the client's numbers may be trusted, by its calibration on this host: the lowest limit of
    /// all runs.
    pub(super) trust: Option<Trust>,
}

impl Measured {
    pub(super) fn histogram(&self) -> &Histogram {
        self.sample.values()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.histogram().is_empty()
    }

    /// How many independent samples it is worth at a percentile.
    pub(super) fn n_eff(&self, percent: f64) -> f64 {
        self.dependence.effective_n(self.histogram(), percent)
    }

    /// Messages a second in the mean of its runs; none without a run that says so.
    pub(super) fn rate(&self) -> Option<f64> {
        let n = self.per_second.len() as f64;
        (n > 0.0).then(|| self.per_second.iter().sum::<f64>() / n)
    }

    /// Takes in a run of a client.
    pub(super) fn take_client(
        &mut self,
        part: &str,
        (directory, run): &(RunDir, Run),
    ) -> Result<(), PaperError> {
        self.take(part, directory, run, (&latencies(run), None))?;
        for flow in &run.flows {
            self.limit(flow.trust.as_ref());
            self.sent += flow.departures.sent;
            self.lost += flow.packets.lost;
            self.resolution_ns = self.resolution_ns.max(flow.way.resolution_ns);
        }
        let rates: Option<Vec<f64>> =
            run.flows.iter().map(|flow| flow.departures.per_second).collect();
        self.per_second.extend(rates.map(|rates| rates.iter().sum::<f64>()));
        Ok(())
    }

    /// Keeps the lower one of two limits; none is below all.
    fn limit(&mut self, other: Option<&Trust>) {
        let Some(other) = other else { return };
        let known = self.trust.as_ref().map(|known| known.limit_percent);
        if known.is_none_or(|known| other.limit_percent < known) {
            self.trust = Some(other.clone());
        }
    }

    /// Share of the samples below which it lies beyond what may be trusted; none where nothing is known.
    pub(super) fn beyond_share(&self) -> Option<f64> {
        let trust = self.trust.as_ref()?;
        Some(trust.limit_percent.map_or(1.0, |percent| 1.0 - percent / 100.0))
    }

    /// Takes in what the log of a box says of the time in which a client measured; of one that tells no time
    /// at all, all that the log says. Where it is not known when the client measured nothing is taken in, and
    /// false is told.
    pub(super) fn take_log(
        &mut self,
        part: &str,
        (directory, run): &(RunDir, Run),
        client: Option<&Run>,
    ) -> Result<bool, PaperError> {
        let window = client.and_then(|client| window(since(run)?, client));
        if client.is_some() && window.is_none() {
            return Ok(false);
        }
        self.take(part, directory, run, (&residences(run), window))?;
        self.resolution_ns = self.resolution_ns.max(run.clock.resolution_ns);
        Ok(true)
    }

    /// Takes in values that lie in no run directory, as one block.
    pub(super) fn take_values(&mut self, part: &str, values: &Histogram, resolution_ns: f64) {
        let mut blocks = Blocks::new(1);
        blocks.add(0.0, 1.0, &counts(values));
        self.sample.push(blocks, values);
        self.dependence.add(values);
        self.parts.push(part.to_owned());
        self.resolution_ns = self.resolution_ns.max(resolution_ns);
    }

    /// Adds the runs of another one.
    pub(super) fn join(&mut self, other: &Self) {
        other.sample.runs().iter().for_each(|run| self.sample.push_run(run.clone()));
        self.sample.add_values(other.histogram());
        for block in other.sample.blocks() {
            let mut values = Histogram::new();
            for (value, count) in block {
                values.record_n(*value, *count);
            }
            self.dependence.add(&values);
        }
        self.limit(other.trust.as_ref());
        self.parts.extend(other.parts.iter().cloned());
        self.per_second.extend(&other.per_second);
        self.sent += other.sent;
        self.lost += other.lost;
        self.resolution_ns = self.resolution_ns.max(other.resolution_ns);
    }

    fn take(
        &mut self,
        part: &str,
        directory: &RunDir,
        run: &Run,
        (series, window): (&[String], Option<Window>),
    ) -> Result<(), PaperError> {
        let (mut blocks, mut values) = (Blocks::new(1), Histogram::new());
        let begin = window.map_or(0.0, |(from, _)| from.max(0.0));
        for interval in directory.histograms_of(run)? {
            let interval = interval?;
            let end = interval.start_s + interval.length_s;
            let inside = window.is_none_or(|(from, to)| interval.start_s >= from && end <= to);
            if !inside || !series.contains(&interval.tag) {
                continue;
            }
            blocks.add(interval.start_s - begin, interval.length_s, &counts(&interval.histogram));
            values.add(&interval.histogram);
            self.dependence.add(&interval.histogram);
        }
        if !values.is_empty() {
            self.sample.push(blocks, &values);
            self.parts.push(part.to_owned());
        }
        Ok(())
    }
}

/// What is said of a log that is left out.
pub(super) fn left_out(part: &str) -> String {
    format!("when the client beside {part} measured is not known: that log is left out")
}

/// Names of the series of latencies, flow by flow.
fn latencies(run: &Run) -> Vec<String> {
    run.flows.iter().filter_map(|flow| flow.service.clone()).collect()
}

/// Names of the series of how long frames stayed in the box, both ways, by its own readings.
fn residences(run: &Run) -> Vec<String> {
    let of_line = |name: &String| {
        let lines = run.delay.iter().flat_map(|line| &line.directions);
        lines.flat_map(|way| &way.series).any(|known| known == name)
    };
    let all = run.series.iter().filter(|series| series.definition == Definition::Residence);
    let names = all.map(|series| series.name.clone());
    if run.delay.is_some() {
        names.filter(of_line).collect()
    } else {
        // From when the kernel had the frame is another time.
        names.filter(|name| !name.contains("kernel")).collect()
    }
}

/// When a box began, nanoseconds since 1970.
fn since(run: &Run) -> Option<u64> {
    let line = run.delay.as_ref().map(|line| line.since_ns);
    line.or_else(|| run.forward.as_ref().map(|forward| forward.since_ns))
}

/// The time in which a client measured, in seconds since the box began.
fn window(since_ns: u64, client: &Run) -> Option<Window> {
    let at = |ticks| client.clock.realtime_ns(ticks);
    let began = client.flows.iter().filter_map(|flow| at(flow.began?)).min()?;
    let ended = client.flows.iter().filter_map(|flow| at(flow.ended?)).max()?;
    let seconds = |ns: u64| (ns as f64 - since_ns as f64) / 1e9;
    (ended > began).then(|| (seconds(began), seconds(ended)))
}

#[cfg(test)]
pub(super) mod tests {
    use whylate_model::Nanos;
    use whylate_stats::rng::Rng;

    use super::*;

    /// Runs of values, each in blocks of a thousand.
    pub(in crate::killer2017) fn planted(
        runs: u64,
        blocks: u64,
        value: impl Fn(u64, &mut Rng) -> u64,
    ) -> Measured {
        let mut measured = Measured { resolution_ns: 1.0, ..Measured::default() };
        for run in 0..runs {
            let mut rng = Rng::stream(7, run);
            let (mut of_run, mut values) = (Blocks::new(1), Histogram::new());
            for block in 0..blocks {
                let some: Histogram = (0..1_000).map(|n| value(n, &mut rng)).collect();
                of_run.add(block as f64, 1.0, &counts(&some));
                measured.dependence.add(&some);
                values.add(&some);
            }
            measured.sample.push(of_run, &values);
            measured.parts.push(format!("part-{run}"));
            measured.per_second.push(20_000.0);
        }
        measured
    }

    #[test]
    fn runs_and_their_values_are_added_up() {
        let of = planted(3, 10, |n, _| 1_000 + n);
        assert_eq!((of.histogram().len(), of.sample.runs().len()), (30_000, 3));
        assert_eq!(of.parts, ["part-0", "part-1", "part-2"]);
        assert!((of.rate().unwrap() - 20_000.0).abs() < 1e-9 && !of.is_empty());
        assert!(Measured::default().is_empty() && Measured::default().rate().is_none());
    }

    #[test]
    fn the_lowest_limit_of_all_runs_counts_and_none_is_below_all() {
        let trust = |limit_percent| Trust {
            backend: "xdp spin".to_owned(),
            limit_percent,
            limit_raw_percent: None,
            base: None,
            tolerance: Nanos(1_000),
            calibrated_at_ns: 1,
            age: Nanos(1),
            calibrated_pps: 10_000.0,
            stale: None,
            other: Vec::new(),
        };
        let mut of = Measured::default();
        assert_eq!(of.beyond_share(), None);
        for (limit, share) in [(Some(99.0), 0.01), (Some(99.9), 0.01), (None, 1.0)] {
            let other = Measured { trust: Some(trust(limit)), ..Measured::default() };
            of.join(&other);
            assert!((of.beyond_share().unwrap() - share).abs() < 1e-12, "{limit:?}");
        }
    }

    #[test]
    fn values_of_no_run_directory_are_one_block() {
        let mut of = Measured::default();
        of.take_values("sockperf-1", &(0..100).map(|n| 5_000 + n).collect(), 1.0);
        assert_eq!((of.histogram().len(), of.sample.runs().len()), (100, 1));
        assert!((of.resolution_ns - 1.0).abs() < 1e-9);
    }
}
