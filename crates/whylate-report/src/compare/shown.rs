//! What one side measured: summed up by the function that sums up every series, so that a comparison tells no number
//! that a report withholds.

use whylate_model::Nanos;
use whylate_model::series::summary::Identity;
use whylate_model::series::{Definition, Quantile, Series};
use whylate_stats::quantile::smallest_n;

use super::load::{Loaded, Measured};
use super::{Pair, Shown};
use crate::numbers::Value;

/// The series of one side.
pub(super) fn of(side: &[Loaded], name: &str, measured: &Measured) -> Shown {
    let first = side.iter().find_map(|run| run.series(name));
    let told = side.iter().filter_map(|run| run.series(name));
    let text = |pick: fn(&Series) -> &String| first.map_or(String::new(), |of| pick(of).clone());
    let label = side.iter().find_map(|run| Some(run.run.label_of(run.series(name)?)));
    let identity = Identity {
        name: name.to_owned(),
        label: label.unwrap_or_default(),
        paper_row: None,
        from: text(|of| &of.from),
        to: text(|of| &of.to),
        clock: text(|of| &of.clock),
        definition: first.map_or(Definition::Gap, |of| of.definition),
        resolution_ns: told.map(|of| of.resolution_ns).fold(0.0, f64::max),
        lost: 0,
    };
    // Of one run its own report tells how much its samples are worth, and what they show.
    let alone = first.filter(|_| side.len() == 1);
    let (sample, values) = (&measured.sample, measured.sample.values());
    let n_eff = |percent: f64| {
        let own = values.value_at(percent).map_or(0.0, |value| sample.effective_n(value));
        let told = alone.and_then(|of| at(&of.quantiles, percent)).map(|of| of.n_eff);
        told.filter(|told| *told > 0.0).map_or(own, |told| own.min(told))
    };
    let mut series = Series::summarise(identity, values, n_eff, None);
    if let Some(censored) = measured.censored.filter(|_| !values.is_empty()) {
        series.censor_sum(values, censored);
    }
    if let Some(alone) = alone {
        series.withhold_as(alone);
    }
    Shown {
        name: series.name,
        label: series.label,
        from: series.from,
        to: series.to,
        clock: series.clock,
        definition: series.definition,
        resolution_ns: series.resolution_ns,
        runs: sample.runs().len(),
        n: series.n,
        censored: series.censored,
        min: series.min,
        max: series.max,
        quantiles: series.quantiles,
    }
}

fn at(quantiles: &[Quantile], percent: f64) -> Option<&Quantile> {
    quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9)
}

impl Pair {
    /// Does a side withhold a percentile because of samples that were given up?
    pub(crate) fn is_timed_out(&self, percent: f64) -> bool {
        [&self.before, &self.after].iter().any(|side| side.is_timed_out(percent))
    }

    /// Did a side give up samples?
    pub(crate) fn gave_up(&self) -> bool {
        [&self.before, &self.after].iter().any(|side| side.censored.is_some())
    }
}

impl Shown {
    /// A percentile; none where its report withholds it.
    pub(crate) fn value(&self, percent: f64) -> Option<Nanos> {
        at(&self.quantiles, percent)?.value
    }

    /// The largest value; of one beyond what was waited for its lower bound.
    pub(crate) fn largest(&self) -> Value {
        let beyond = self.censored.map(|of| Value::AtLeast(of.above.0 as f64));
        self.max.map(Value::from).or(beyond).unwrap_or(Value::Absent)
    }

    /// Is a percentile withheld because of samples that were given up, of which there are enough?
    pub(crate) fn is_timed_out(&self, percent: f64) -> bool {
        let is_withheld = self.censored.is_some() && self.value(percent).is_none();
        is_withheld && self.n > 0 && self.too_few(percent).is_none()
    }

    /// The percentile itself where its samples are too few for it, or the first one below that they are too few for:
    /// what is withheld of one is withheld of each higher one.
    pub(crate) fn too_few(&self, percent: f64) -> Option<&Quantile> {
        let needs = |of: &&Quantile| smallest_n(of.percent / 100.0) > (of.n_eff as u64).min(self.n);
        let is_too_few = |of: &&Quantile| of.value.is_none() && needs(of);
        let own = at(&self.quantiles, percent).filter(is_too_few);
        let mut below = self.quantiles.iter().take_while(|of| of.percent < percent);
        own.or_else(|| below.find(is_too_few))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use whylate_model::directory::RunDir;
    use whylate_model::run::Run;
    use whylate_model::series::Censored;
    use whylate_stats::Histogram;

    use super::*;
    use crate::compare::{Comparison, Judged, Outcome, PairResult, Request, compare};
    use crate::trusted::tests::calibrated;
    use crate::{Letters, Style, first_of_comparison, full_of_comparison};

    const SECOND: u64 = 1_000_000_000;
    const SECONDS: u64 = 20;
    const EACH: u64 = 2_000;

    /// Requests of which so many were given up after this time, beside some that took up to two seconds; with the
    /// series that its report has.
    fn written(home: &Path, name: &str, given_up: u64, after: u64, slow: u64) -> (PathBuf, Series) {
        let mut run: Run = calibrated(None);
        run.flows[0].trust = None;
        let lost = std::mem::take(&mut run.flows[0].packets.lost);
        run.flows[0].packets.received += lost;
        run.flows[0].packets.arrived += lost;
        (run.coverage, run.evidence.steal_ns) = (None, None);
        (run.segments, run.worst, run.warnings) = (Vec::new(), Vec::new(), Vec::new());
        // Another name is another recording.
        run.host.hostname = name.to_owned();
        let path = home.join(name);
        let directory = RunDir::create(&path).unwrap();
        let (mut log, mut all) = (directory.histogram_log().unwrap(), Histogram::new());
        for second in 0..SECONDS {
            let (lost, late) = (given_up / SECONDS, slow / SECONDS);
            let mut values: Histogram =
                (0..EACH - lost - late).map(|n| 10_000 + (n * 7_919 + second) % 997).collect();
            values.record_n(after, lost);
            values.add(
                &(0..late).map(|n| SECOND + (n * 37 + second * 101) % 1_000 * 900_000).collect(),
            );
            all.add(&values);
            log.append("rtt-response", &values, second as f64, 1.0).unwrap();
        }
        let of = &run.series[0];
        let identity = Identity {
            name: of.name.clone(),
            label: of.label.clone(),
            paper_row: None,
            from: of.from.clone(),
            to: of.to.clone(),
            clock: of.clock.clone(),
            definition: of.definition,
            resolution_ns: of.resolution_ns,
            lost: 0,
        };
        let mut series = Series::summarise(identity, &all, |_| all.len() as f64, None);
        let count = all.count_at_least(after);
        if count > 0 {
            series.censor(&all, Censored { count, above: Nanos(after) });
        }
        run.series[0] = series.clone();
        directory.write_run(&run).unwrap();
        (path, series)
    }

    fn found(before: &[&PathBuf], after: &[&PathBuf], side_by_side: bool) -> Comparison {
        let side = |paths: &[&PathBuf]| paths.iter().map(|path| (*path).clone()).collect();
        let limits = ["p90=+10%", "p99=+10%", "max=+10%"];
        let request = Request {
            before: side(before),
            after: side(after),
            side_by_side,
            limits: limits.iter().map(|limit| limit.parse().unwrap()).collect(),
            ..Request::default()
        };
        compare(&request).unwrap().comparison
    }

    fn texts(of: &Comparison) -> [String; 2] {
        let style = Style { letters: Letters::Unicode, ..Style::default() };
        [first_of_comparison(of, style), full_of_comparison(of, style)]
    }

    /// The cells of a row of a table that has this name among its first words.
    fn row(text: &str, name: &str) -> Vec<String> {
        let cells = |line: &str| -> Vec<String> {
            line.split("  ").map(str::trim).filter(|of| !of.is_empty()).map(str::to_owned).collect()
        };
        let has = |line: &&str| {
            let cells = cells(line);
            cells.len() > 2 && cells[0].split([' ', ',']).any(|word| word == name)
        };
        cells(text.lines().find(has).unwrap_or_else(|| panic!("no {name} in {text}")))
    }

    #[test]
    fn beside_each_other_requests_that_were_given_up_are_bounds_as_in_a_report() {
        let home = tempfile::tempdir().unwrap();
        let (a, report) = written(home.path(), "a", 400, SECOND, 0);
        let (b, _) = written(home.path(), "b", 0, SECOND, 0);
        assert!(report.quantiles[2].value.is_none() && report.max.is_none(), "planted: {report:?}");
        let found = found(&[&a], &[&b], true);
        let shown = &found.pairs[0].before;
        assert_eq!((shown.max, shown.censored), (None, report.censored));
        let values = |of: &[Quantile]| of.iter().map(|of| of.value).collect::<Vec<_>>();
        assert_eq!(values(&shown.quantiles), values(&report.quantiles));
        for text in texts(&found) {
            for name in ["max", "p99", "p99.9"] {
                let row = row(&text, name);
                assert!(row[1].starts_with('≥') && !row[2].starts_with('≥'), "{row:?} in {text}");
            }
            assert!(!row(&text, "p90")[1].starts_with('≥'), "{text}");
        }
    }

    #[test]
    fn a_percentile_whose_interval_reaches_into_what_was_given_up_has_no_difference_and_no_verdict()
    {
        let home = tempfile::tempdir().unwrap();
        // Of 40 000 a bit less than a hundredth: the p99 itself was answered.
        let (a, report) = written(home.path(), "a", 380, SECOND, 0);
        let (b, _) = written(home.path(), "b", 0, SECOND, 0);
        assert!(380 < SECONDS * EACH / 100 && report.quantiles[2].value.is_none(), "planted");
        for (before, after) in [(&a, &b), (&b, &a), (&a, &a)] {
            let found = found(&[before], &[after], false);
            let PairResult::Compared(compared) = &found.pairs[0].result else {
                panic!("{found:?}")
            };
            let known: Vec<bool> =
                compared.quantiles.iter().map(|of| of.difference.is_some()).collect();
            assert_eq!(known[..4], [true, true, false, false], "{compared:?}");
            let p99 = &compared.quantiles[2];
            let sides = [(before, p99.before), (after, p99.after)];
            assert!(sides.iter().all(|(side, value)| value.is_none() == (**side == a)), "{p99:?}");
            assert!(compared.max.difference.is_none() && p99.verdict.is_none());
            let outcomes: Vec<String> = found.limits.iter().map(Judged::sentence).collect();
            assert!(!matches!(found.limits[0].outcome, Outcome::CannotBeJudged { .. }));
            assert!(outcomes[1].contains("p99 falls among samples that timed out"), "{outcomes:?}");
            assert!(outcomes[2].contains("the maximum is not known"), "{outcomes:?}");
            if before != after {
                for text in texts(&found) {
                    assert_eq!(row(&text, "p99").last().unwrap(), "timed out", "{text}");
                    let max = row(&text, "max");
                    assert_eq!(max.last().unwrap(), "timed out", "{text}");
                    assert_eq!(max.iter().filter(|of| of.starts_with('≥')).count(), 1, "{text}");
                }
            }
        }
    }

    #[test]
    fn where_one_run_gave_up_later_what_it_knows_beyond_the_lower_bound_tells_no_percentile() {
        let home = tempfile::tempdir().unwrap();
        let (one, _) = written(home.path(), "one", 40, SECOND, 0);
        let (other, known) = written(home.path(), "other", 40, 5 * SECOND, 1_600);
        let (quick, _) = written(home.path(), "quick", 0, SECOND, 0);
        assert!(known.quantiles[2].value > Some(Nanos(SECOND)), "planted: {known:?}");
        let found = found(&[&one, &other], &[&quick], true);
        let shown = &found.pairs[0].before;
        // Of 80 000 the last 1 680 took a second or more, of which 80 were given up; p99 has 800 above it.
        assert!(shown.value(90.0).is_some_and(|value| value.0 < SECOND), "{shown:?}");
        assert_eq!(shown.value(99.0), None, "{shown:?}");
        assert!(shown.is_timed_out(99.0), "{shown:?}");
        assert_eq!(shown.censored.map(|of| (of.count, of.above.0)), Some((80, SECOND)));
    }
}
