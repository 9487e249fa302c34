//! From two lists of directories to a comparison.

use std::collections::BTreeSet;

use whylate_model::Nanos;
use whylate_model::calibration::Trust;
use whylate_model::difference::Difference;
use whylate_model::identity::Identity;
use whylate_model::run::RunState;
use whylate_model::trust::{self, Level};

use super::likeness::{Unlikeness, unlike};
use super::load::{self, Loaded, Measured, Wanted};
use super::pair::Drawn;
use super::{
    Caution, Comparison, FORMAT_VERSION, Judged, Limit, Measure, Outcome, Pair, PairResult,
    Request, RunFacts, Side, Unpaired, causes, differs, limited, shown,
};
use crate::{ReportError, trusted};

/// Fewer intervals than this on a side make intervals of confidence doubtful.
const FEW_INTERVALS: usize = 20;
/// With fewer runs than this on a side, Student's t says little.
const FEW_RUNS: usize = 5;
/// Measuring times further apart than this are told.
const OTHER_DURATION: f64 = 0.1;

/// Pairs of names that are proposed.
const MOST_NAMES: usize = 4;

/// A comparison and the values behind it, for the figure.
pub struct Compared {
    /// What is printed.
    pub comparison: Comparison,
    /// Of each pair, what A and B measured.
    pub(super) measured: Vec<(Measured, Measured)>,
}

/// Compares what is alike, and names what is not.
pub fn compare(request: &Request) -> Result<Compared, ReportError> {
    let (a, b) = (load::runs(&request.before)?, load::runs(&request.after)?);
    let (names, unpaired) = paired(request, &a, &b);
    let mut cautions = cautions(&a, &b);
    cautions.extend(other_names(&a, &b, &unpaired));
    let floors: Vec<Nanos> =
        names.iter().map(|(left, right)| thresholds(&a, left).max(thresholds(&b, right))).collect();
    let wanted = |pick: fn(&(String, String)) -> &String| -> Vec<Wanted> {
        let all = names.iter().zip(&floors);
        all.map(|(name, floor)| Wanted { series: pick(name).clone(), floor: *floor }).collect()
    };
    let before = load::side(&a, &wanted(|name| &name.0), &mut cautions);
    let after = load::side(&b, &wanted(|name| &name.1), &mut cautions);
    let measured: Vec<(Measured, Measured)> = before.into_iter().zip(after).collect();
    let (mut pairs, mut limits) = (Vec::new(), Vec::new());
    for ((name, floor), (x, y)) in names.iter().zip(&floors).zip(&measured) {
        let one = OnePair { request, a: &a, b: &b, name, floor: *floor, x, y };
        let (pair, mut judged) = one.compare(&mut cautions);
        pairs.push(pair);
        limits.append(&mut judged);
    }
    limits.extend(limits_without_series(&request.limits, &pairs));
    if pairs.iter().any(|pair| matches!(pair.result, PairResult::Compared(_))) {
        cautions.splice(0..0, few_runs(&a, &b));
        let sides = [(Side::A, &a), (Side::B, &b)];
        cautions.extend(sides.into_iter().filter_map(|(side, runs)| limited::caution(side, runs)));
    }
    let comparison = Comparison {
        format_version: FORMAT_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        before: a.iter().map(facts).collect(),
        after: b.iter().map(facts).collect(),
        pairs,
        unpaired,
        differences: differs::between(&a, &b),
        cautions,
        limits,
    };
    Ok(Compared { comparison, measured })
}

/// One pair of series, alike or not.
struct OnePair<'a> {
    request: &'a Request,
    a: &'a [Loaded],
    b: &'a [Loaded],
    name: &'a (String, String),
    floor: Nanos,
    x: &'a Measured,
    y: &'a Measured,
}

impl OnePair<'_> {
    fn compare(&self, cautions: &mut Vec<Caution>) -> (Pair, Vec<Judged>) {
        let (before, after) =
            (shown::of(self.a, &self.name.0, self.x), shown::of(self.b, &self.name.1, self.y));
        let wanted: Vec<&Limit> = self
            .request
            .limits
            .iter()
            .filter(|limit| limit.series.as_ref().is_none_or(|series| *series == self.name.0))
            .filter(|limit| limit.series.is_some() || self.can_have(limit))
            .collect();
        let spoilt = spoilt(self.a, self.b);
        let judged = |outcome: &dyn Fn(&Limit) -> Outcome| -> Vec<Judged> {
            // What an untrustworthy run holds is not known; what it exceeds, it may well exceed.
            let outcome = |limit: &Limit| match (outcome(limit), &spoilt) {
                (exceeded @ Outcome::Exceeded { .. }, _) => exceeded,
                (_, Some(reason)) => Outcome::CannotBeJudged { reason: reason.clone() },
                (judged, None) => judged,
            };
            let one = |limit: &&Limit| Judged {
                series: self.name.0.clone(),
                limit: limit.to_string(),
                runs: (self.x.sample.runs().len(), self.y.sample.runs().len()),
                outcome: outcome(limit),
            };
            wanted.iter().map(one).collect()
        };
        let not = |reason: String| Outcome::CannotBeJudged { reason };
        let Unlikeness { refused, allowed } = self.unlike();
        let fields: Vec<Difference> = refused.into_iter().map(|(_, of)| of).collect();
        let has_none = |side: &Measured| side.sample.values().is_empty();
        // No gap is something to compare: nothing was lost.
        let both_lasted = !self.x.lost.is_empty() && !self.y.lost.is_empty();
        let empty = (has_none(self.x) || has_none(self.y)) && !both_lasted;
        let (result, limits) = if self.request.side_by_side {
            let reason = "--side-by-side judges nothing";
            (PairResult::SideBySide, judged(&|_| not(reason.to_owned())))
        } else if !fields.is_empty() {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let reason = format!("the two differ in {}", names.join(", "));
            (PairResult::Unlike { fields }, judged(&|_| not(reason.clone())))
        } else if empty {
            let reason = self.why_empty();
            (PairResult::NoData { reason: reason.clone() }, judged(&|_| not(reason.clone())))
        } else {
            self.caution(cautions);
            let drawn = Drawn::new((self.x, &before), (self.y, &after));
            let above = (self.floor > Nanos(0)).then_some(self.floor);
            let limits = judged(&|limit| {
                let beyond = self.why_beyond(limit).map(not);
                beyond.unwrap_or_else(|| drawn.judge(limit).unwrap_or_else(not))
            });
            let mut compared = drawn.compared(above);
            compared.across = allowed;
            let sides = ((self.a, self.name.0.as_str()), (self.b, self.name.1.as_str()));
            compared.causes = causes::changed(sides.0, sides.1, self.floor);
            self.withhold(&mut compared);
            (PairResult::Compared(Box::new(compared)), limits)
        };
        (Pair { series: self.name.0.clone(), before, after, result }, limits)
    }

    /// A limit that names no series is for those only that can have what it limits.
    fn can_have(&self, limit: &Limit) -> bool {
        limit.measure != super::Measure::Lost
            || self.a.iter().any(|run| run.gaps(&self.name.0).is_some())
    }

    /// Every run of both sides against the first of A.
    fn unlike(&self) -> Unlikeness {
        let sides = [(self.a, &self.name.0), (self.b, &self.name.1)];
        let all: Vec<Identity> = sides
            .into_iter()
            .flat_map(|(runs, name)| runs.iter().filter_map(|run| Identity::of(&run.run, name)))
            .collect();
        let Some((first, others)) = all.split_first() else { return Unlikeness::default() };
        let mut allowed = Vec::new();
        for other in others {
            let found = unlike(first, other, &self.request.across);
            if !found.refused.is_empty() {
                return found;
            }
            let new = |of: &Difference| !allowed.contains(of);
            let new: Vec<Difference> = found.allowed.into_iter().filter(new).collect();
            allowed.extend(new);
        }
        Unlikeness { allowed, ..Unlikeness::default() }
    }

    /// How far the calibrations of both sides' backends let this series be trusted.
    fn trusts(&self) -> impl Iterator<Item = &Trust> {
        let a = self.a.iter().filter_map(|run| trusted::of_series(&run.run, &self.name.0));
        a.chain(self.b.iter().filter_map(|run| trusted::of_series(&run.run, &self.name.1)))
    }

    /// Does a percentile lie beyond what is trusted on either side?
    fn is_beyond(&self, percent: f64) -> bool {
        self.trusts().any(|trust| trust.is_beyond(percent))
    }

    /// Takes back verdicts on what may be the client's own.
    fn withhold(&self, compared: &mut super::Compared) {
        for quantile in compared.quantiles.iter_mut().filter(|of| self.is_beyond(of.percent)) {
            quantile.verdict = None;
        }
        if self.is_beyond(trusted::MAX) {
            compared.max.verdict = None;
        }
    }

    /// Why a limit cannot be judged that is on something beyond what is trusted.
    fn why_beyond(&self, limit: &Limit) -> Option<String> {
        let percent = match limit.measure {
            Measure::Quantile(percent) => percent,
            Measure::Max => trusted::MAX,
            Measure::Lost => return None,
        };
        let what = match limit.measure {
            Measure::Max => "the maximum".to_owned(),
            _ => format!("p{percent}"),
        };
        self.is_beyond(percent)
            .then(|| format!("{what} is beyond what the calibration of the client lets be trusted"))
    }

    fn why_empty(&self) -> String {
        let sides = [("A", self.x, self.a, &self.name.0), ("B", self.y, self.b, &self.name.1)];
        let none = |(side, measured, runs, name): &(&str, &Measured, &[Loaded], &String)| {
            if !measured.sample.values().is_empty() {
                return None;
            }
            let counted: u64 = runs.iter().filter_map(|run| run.series(name)).map(|s| s.n).sum();
            Some(match counted {
                0 => format!("side {side} has no samples"),
                _ if measured.logged > 0 => format!(
                    "all {} samples of side {side} are below {}, the larger of the two thresholds",
                    measured.logged, self.floor
                ),
                n => format!(
                    "the histogram log of side {side} holds none of its {n} samples (cells of a \
                     matrix are compared by their own directories)"
                ),
            })
        };
        sides.iter().filter_map(none).collect::<Vec<_>>().join("; ")
    }

    fn caution(&self, cautions: &mut Vec<Caution>) {
        let series = self.name.0.clone();
        let intervals = self.x.intervals.min(self.y.intervals);
        if intervals < FEW_INTERVALS {
            cautions.push(Caution::FewIntervals { series: series.clone(), intervals });
        }
        if let Some(what) = self.trusts().find_map(|trust| trust.stale.clone()) {
            cautions.push(Caution::StaleCalibration { series: series.clone(), what });
        }
        if let Some(least) = self.trusts().min_by(|a, b| a.reach().total_cmp(&b.reach())) {
            let percent = least.limit_percent;
            cautions.push(Caution::BeyondTrust { series: series.clone(), percent });
        }
        if let (Some(x), Some(y)) = (self.x.elapsed, self.y.elapsed) {
            let (x, y) = (x.0 as f64 / 1e9, y.0 as f64 / 1e9);
            if (x - y).abs() > OTHER_DURATION * x.max(y) {
                cautions.push(Caution::OtherDuration { series, before_s: x, after_s: y });
            }
        }
    }
}

/// Names that both sides have, or that the user has paired, and those that one side has alone.
fn paired(request: &Request, a: &[Loaded], b: &[Loaded]) -> (Vec<(String, String)>, Vec<Unpaired>) {
    let names = |side: &[Loaded]| -> BTreeSet<String> {
        side.iter().flat_map(|run| run.run.series.iter().map(|s| s.name.clone())).collect()
    };
    let (left, right) = (names(a), names(b));
    if request.series.is_empty() {
        let alone = |own: &BTreeSet<String>, other: &BTreeSet<String>, only_in: Side| {
            let names = own.difference(other).cloned();
            names.map(|series| Unpaired { series, only_in }).collect::<Vec<_>>()
        };
        let mut unpaired = alone(&left, &right, Side::A);
        unpaired.extend(alone(&right, &left, Side::B));
        let both = left.intersection(&right).map(|name| (name.clone(), name.clone()));
        return (both.collect(), unpaired);
    }
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    for (x, y) in &request.series {
        match (left.contains(x), right.contains(y)) {
            (true, true) => pairs.push((x.clone(), y.clone())),
            (true, false) => unpaired.push(Unpaired { series: x.clone(), only_in: Side::A }),
            (false, _) => unpaired.push(Unpaired { series: y.clone(), only_in: Side::B }),
        }
    }
    (pairs, unpaired)
}

/// Series that are one by all but their names, of those that nothing pairs.
fn other_names(a: &[Loaded], b: &[Loaded], unpaired: &[Unpaired]) -> Vec<Caution> {
    let of = |runs: &[Loaded], side: Side| -> Vec<(String, Identity)> {
        let names = unpaired.iter().filter(|one| one.only_in == side).map(|one| &one.series);
        let known = |name: &String| runs.iter().find_map(|run| Identity::of(&run.run, name));
        names.filter_map(|name| Some((name.clone(), known(name)?))).collect()
    };
    let mut others = of(b, Side::B);
    let mut found = Vec::new();
    for (before, identity) in of(a, Side::A) {
        let same = |(_, other): &(String, Identity)| identity.differences(other).is_empty();
        let Some(at) = others.iter().position(same) else { continue };
        let (after, _) = others.remove(at);
        found.push(Caution::OtherNames { before, after });
        if found.len() == MOST_NAMES {
            break;
        }
    }
    found
}

fn thresholds(side: &[Loaded], name: &str) -> Nanos {
    side.iter().filter_map(|run| run.threshold(name)).max().unwrap_or_default()
}

fn cautions(a: &[Loaded], b: &[Loaded]) -> Vec<Caution> {
    let mut cautions = Vec::new();
    if let (Some(x), Some(y)) = (a.first(), b.first()) {
        let (x, y) = (&x.run, &y.run);
        if x.host.architecture != y.host.architecture {
            let (before, after) = (x.host.architecture.clone(), y.host.architecture.clone());
            cautions.push(Caution::OtherArchitecture { before, after });
        }
        if x.tool_version != y.tool_version {
            let (before, after) = (x.tool_version.clone(), y.tool_version.clone());
            cautions.push(Caution::OtherVersion { before, after });
        }
    }
    let both = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    for (x, y) in both.filter(|(x, y)| x.shares_a_recording(y)) {
        let (before, after) = (x.name.clone(), y.name.clone());
        cautions.push(Caution::SameRecording { before, after });
    }
    for (side, runs) in [(Side::A, a), (Side::B, b)] {
        let fields = differs::within(runs);
        if !fields.is_empty() {
            cautions.push(Caution::MixedSide { side, fields });
        }
        for loaded in runs {
            let directory = loaded.name.clone();
            // Whether a limit was exceeded is no matter here.
            let reasons = trust::Trust::of(&loaded.run).poor();
            if !reasons.is_empty() {
                cautions.push(Caution::NotTrustworthy { directory, reasons });
            } else if loaded.run.state != RunState::Complete {
                cautions.push(Caution::Unfinished { directory });
            }
        }
    }
    cautions
}

/// A run in which trust is poor.
fn spoilt(a: &[Loaded], b: &[Loaded]) -> Option<String> {
    let mut runs = a.iter().chain(b);
    let run = runs.find(|run| trust::Trust::of(&run.run).level() == Level::Poor)?;
    Some(format!("trust in `{}` is poor", run.name))
}

fn few_runs(a: &[Loaded], b: &[Loaded]) -> Option<Caution> {
    let count = |side: &[Loaded]| side.iter().map(Loaded::recordings).sum();
    match (count(a), count(b)) {
        (1, 1) => Some(Caution::OneRunEach),
        (before, after) if before.min(after) < FEW_RUNS => Some(Caution::FewRuns { before, after }),
        _ => None,
    }
}

/// Limits that no pair has: they cannot be judged, and must not pass for kept.
fn limits_without_series(limits: &[Limit], pairs: &[Pair]) -> Vec<Judged> {
    let unjudged = |limit: &&Limit| match &limit.series {
        Some(series) => pairs.iter().all(|pair| pair.series != *series),
        None => pairs.is_empty(),
    };
    let judged = |limit: &Limit| {
        let reason = "the two sides have no such series in common".to_owned();
        Judged {
            series: limit.series.clone().unwrap_or_default(),
            limit: limit.to_string(),
            runs: (0, 0),
            outcome: Outcome::CannotBeJudged { reason },
        }
    };
    limits.iter().filter(unjudged).map(judged).collect()
}

fn facts(loaded: &Loaded) -> RunFacts {
    RunFacts {
        directory: loaded.name.clone(),
        tool_version: loaded.run.tool_version.clone(),
        hostname: loaded.run.host.hostname.clone(),
        architecture: loaded.run.host.architecture.clone(),
        state: loaded.run.state,
        recordings: loaded.run.origins.len().max(1),
        measured: crate::first::subject::of(&loaded.run),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use whylate_model::directory::RunDir;
    use whylate_stats::Histogram;

    use super::*;
    use crate::trusted::tests::calibrated;

    /// A recording of round trips around `level` whose backend is trusted up to p99.
    fn written(home: &Path, name: &str, level: u64) -> PathBuf {
        let path = home.join(name);
        let directory = RunDir::create(&path).unwrap();
        let mut run = calibrated(Some(99.0));
        run.segments.clear();
        run.worst.clear();
        run.series[0].n = 30_000;
        let mut log = directory.histogram_log().unwrap();
        for second in 0..30u32 {
            let values: Histogram = (0..1_000)
                .map(|number| level + (number * 7_919 + u64::from(second)) % 997)
                .collect();
            log.append("rtt-response", &values, f64::from(second), 1.0).unwrap();
        }
        directory.write_run(&run).unwrap();
        path
    }

    #[test]
    fn no_verdict_is_claimed_beyond_the_limit_of_trust() {
        let home = tempfile::tempdir().unwrap();
        let limits = ["p50=+10%", "p99.9=+10%", "max=+10%"];
        let request = Request {
            before: vec![written(home.path(), "a", 10_000)],
            after: vec![written(home.path(), "b", 14_000)],
            limits: limits.iter().map(|limit| limit.parse().unwrap()).collect(),
            ..Request::default()
        };
        let found = compare(&request).unwrap().comparison;
        let PairResult::Compared(of) = &found.pairs[0].result else { panic!("{found:?}") };
        let at = |percent: f64| {
            of.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9).unwrap()
        };
        assert!(at(50.0).verdict.is_some() && at(99.0).verdict.is_some(), "{of:?}");
        assert!(at(99.9).difference.is_some() && at(99.9).verdict.is_none(), "{of:?}");
        assert!(of.max.verdict.is_none());
        assert_eq!(found.limits[0].outcome.word(), "exceeded", "{:?}", found.limits);
        for beyond in &found.limits[1..] {
            assert!(matches!(beyond.outcome, Outcome::CannotBeJudged { .. }), "{beyond:?}");
        }
        let caution =
            |caution: &Caution| matches!(caution, Caution::BeyondTrust { percent: Some(99.0), .. });
        assert!(found.cautions.iter().any(caution), "{:?}", found.cautions);
        let text = crate::full_of_comparison(&found, crate::Style::default());
        assert!(text.contains("beyond trust"), "{text}");
    }
    #[test]
    fn rates_of_lengths_below_the_larger_threshold_are_not_compared() {
        let home = tempfile::tempdir().unwrap();
        let kept = Path::new(crate::kept::RUNS).join("before");
        for file in std::fs::read_dir(&kept).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), home.path().join(file.file_name())).unwrap();
        }
        let directory = RunDir::open(home.path()).unwrap();
        let mut run = directory.read_run().unwrap();
        run.seed += 1;
        run.gaps[0].threshold = Nanos(30_000).to_ticks(run.clock.hz);
        directory.write_run(&run).unwrap();
        let after = vec![home.path().to_owned()];
        let request = Request { before: vec![kept], after, ..Request::default() };
        let found = compare(&request).unwrap().comparison;
        let PairResult::Compared(of) = &found.pairs[0].result else { panic!("{found:?}") };
        let lengths: Vec<u64> = of.rates.iter().map(|of| of.at_least.0).collect();
        assert_eq!(lengths, [100_000, 1_000_000]);
    }
}
