//! What holds of the numbers of every run, whatever was measured: shares lie between nothing and all, no part
//! is above its whole, parts add up, and what is withheld once is withheld everywhere.

use std::collections::BTreeMap;

use whylate_model::cause::{Cause, CauseTotal};
use whylate_model::run::Run;
use whylate_model::series::{Quantile, Series};
use whylate_model::threads::Deadlines;
use whylate_model::wake::{LaterThan, WakeSummary};
use whylate_model::{CpuId, Nanos};
use whylate_report::compare::{Comparison, Judged, Outcome, PairResult, Shown};

/// All of it; `of` says which run it is.
pub(crate) fn run(of: &str, run: &Run) {
    for gaps in &run.gaps {
        assert!(is_share(gaps.lost_share), "{of}: {gaps:?}");
        assert!(gaps.lost_share_interval.is_none_or(|(low, high)| {
            is_share(low) && low <= gaps.lost_share && gaps.lost_share <= high && is_share(high)
        }));
        // Of the kept self-test they add up to more than its begin and end are apart.
        let taken = gaps.gap_ticks + gaps.recording_ticks;
        let fits = taken <= gaps.end.since(gaps.start);
        assert!(fits || run.selftest.is_some(), "{of}: {gaps:?}");
        assert!(gaps.rates.iter().all(|rate| rate.count <= gaps.gaps), "{of}: {gaps:?}");
        for share in &gaps.time_shares {
            assert!(is_share(share.of_elapsed) && is_share(share.of_inside), "{of}: {share:?}");
            assert!(share.of_elapsed <= share.of_inside, "{of}: {share:?}");
        }
    }
    run.series.iter().for_each(|one| series(of, one));
    if let Some(coverage) = run.coverage {
        let parts = [coverage.by_events, coverage.by_residuals, coverage.by_nothing];
        assert!(parts.iter().all(|part| is_share(*part)), "{of}: {parts:?}");
        assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{of}: {parts:?}");
    }
    for gap in &run.worst {
        let parts: u64 = gap.parts.iter().map(|part| part.length.to_nanos(run.clock.hz).0).sum();
        // Each part is rounded to a nanosecond.
        assert!(parts.abs_diff(gap.length.0) <= gap.parts.len() as u64 + 1, "{of}: {gap:?}");
    }
    if let Some(trace) = &run.evidence.trace {
        assert!(trace.events_in_gaps <= trace.events_measured, "{of}: {trace:?}");
    }
    assert!(run.flows.iter().all(|flow| flow.packets.add_up()), "{of}");
    run.threads
        .iter()
        .filter_map(|thread| thread.deadlines.as_ref())
        .for_each(|one| deadlines(of, one));
    run.wakes.iter().for_each(|one| wakes(of, one));
}

/// Each deadline is met or missed, and each miss has one cause at most.
fn deadlines(of: &str, one: &Deadlines) {
    let judged = one.hits + one.misses;
    assert!(one.skipped + one.unfinished <= one.misses, "{of}: {one:?}");
    assert!(one.unexplained.unwrap_or(0) <= one.misses, "{of}: {one:?}");
    assert!(one.first.len() as u64 <= one.misses, "{of}: {one:?}");
    assert!(one.causes.iter().map(|of| of.misses).sum::<u64>() <= one.misses, "{of}: {one:?}");
    assert_eq!(one.miss_share_interval.is_some(), judged > 0, "{of}: {one:?}");
    if let Some((low, high)) = one.miss_share_interval {
        let share = one.misses as f64 / judged as f64;
        assert!(is_share(low) && low <= share && share <= high && is_share(high), "{of}: {one:?}");
    }
}

/// Fewer wake-ups are later than a larger length, and none has two causes.
fn wakes(of: &str, one: &WakeSummary) {
    let all = one.woken + one.skipped.unwrap_or(0);
    for later in &one.later {
        let LaterThan { raw, corrected, without_host, perhaps_host, .. } = *later;
        assert!(raw <= one.woken && corrected.unwrap_or(raw) >= raw, "{of}: {one:?}");
        assert!(corrected.unwrap_or(0) <= all, "{of}: {one:?}");
        assert!(without_host.unwrap_or(0) <= raw, "{of}: {one:?}");
        assert!(perhaps_host.unwrap_or(0) <= without_host.unwrap_or(raw), "{of}: {one:?}");
    }
    assert!(one.later.is_sorted_by(|a, b| a.than < b.than && a.raw >= b.raw), "{of}: {one:?}");
    assert!(one.causes.iter().map(|of| of.wakes).sum::<u64>() <= one.woken, "{of}: {one:?}");
    for cause in &one.causes {
        assert!(cause.later.iter().all(|later| *later <= cause.wakes), "{of}: {cause:?}");
        assert!(cause.latest.0 as f64 <= cause.late_ns + 1.0, "{of}: {cause:?}");
    }
    for part in &one.split {
        assert!(
            part.wakes <= one.woken && part.most.0 as f64 <= part.total_ns + 1.0,
            "{of}: {part:?}"
        );
    }
}

/// The causes of a run: the totals are the sums of those of each CPU, as stored and as shown, and in a run of gaps
/// those of each CPU add up to what it lost.
pub(crate) fn causes(of: &str, run: &Run) {
    for (how, run) in [("stored", run.clone()), ("shown", run.as_shown())] {
        let mut by_cause: BTreeMap<&Cause, [Sums; 2]> = BTreeMap::new();
        let mut by_cpu: BTreeMap<Option<CpuId>, Sums> = BTreeMap::new();
        for total in &run.causes {
            assert!(is_share(total.share_of_lost) && is_share(total.share_of_elapsed), "{total:?}");
            let sums = by_cause.entry(&total.cause).or_default();
            sums[usize::from(total.cpu.is_some())].add(total);
            by_cpu.entry(total.cpu).or_default().add(total);
        }
        // Threads of a set have them without a CPU.
        let by_cpus = by_cpu.keys().any(Option::is_some);
        for (cause, [whole, parts]) in by_cause.iter().filter(|_| by_cpus) {
            assert!(whole.near(parts), "{of}, {how}: {cause}: {whole:?} {parts:?}");
        }
        for (cpu, sums) in &by_cpu {
            let own = run.gaps.iter().filter(|gaps| cpu.is_none_or(|cpu| gaps.cpu == cpu));
            let (gaps, lost) =
                own.fold((0, 0), |(n, lost), gaps| (n + gaps.gaps, lost + gaps.lost.0));
            // Threads of a set have their gaps to themselves, and lose the same time together.
            if run.gaps.is_empty() {
                continue;
            }
            assert_eq!(sums.gaps, gaps, "{of}, {how}: gaps on {cpu:?}");
            // Each of them was rounded.
            let off = (sums.lost_ns - lost as f64).abs();
            let most = 1.0 + run.gaps.len() as f64;
            assert!(off <= most, "{of}, {how}: {cpu:?}: {sums:?} of {lost}");
            let is_whole = (sums.share_of_lost - 1.0).abs() < 1e-6;
            assert!(is_whole || sums.lost_ns < 1.0, "{of}, {how}: {sums:?}");
            assert!(sums.share_of_elapsed <= 1.0 + 1e-9, "{of}, {how}: {sums:?}");
        }
    }
}

#[derive(Debug, Default)]
struct Sums {
    gaps: u64,
    parts: u64,
    lost_ns: f64,
    share_of_lost: f64,
    share_of_elapsed: f64,
    longest: u64,
}

impl Sums {
    fn add(&mut self, of: &CauseTotal) {
        self.gaps += of.gaps;
        self.parts += of.parts;
        self.lost_ns += of.lost_ns;
        self.share_of_lost += of.share_of_lost;
        self.share_of_elapsed += of.share_of_elapsed;
        self.longest = self.longest.max(of.longest.0);
    }

    fn near(&self, other: &Self) -> bool {
        let counts = |of: &Self| (of.gaps, of.parts, of.longest);
        let off = (self.lost_ns - other.lost_ns).abs();
        counts(self) == counts(other) && off <= 1e-6 * self.lost_ns.max(1.0)
    }
}

fn is_share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

/// Percentiles are in order between the smallest and the largest, and none is shown above one that is not.
pub(crate) fn series(of: &str, series: &Series) {
    let name = &series.name;
    if let Some(censored) = series.censored {
        assert!(censored.count <= series.n, "{of} {name}: {censored:?}");
        for at in &series.quantiles {
            let known = [at.low, at.value, at.high];
            let all = known.into_iter().flatten().all(|known| known <= censored.above);
            assert!(all, "{of} {name}: {at:?} {censored:?}");
        }
    }
    assert!(series.tail.is_none_or(|of| of.count <= series.n && is_share(of.share)), "{of} {name}");
    let shown = series.quantiles.iter().take_while(|of| of.value.is_some()).count();
    assert!(series.quantiles[shown..].iter().all(|of| of.value.is_none()), "{of} {name}");
    let values = series.quantiles[..shown].iter().map(|of| of.value);
    let all: Vec<_> =
        [series.min].into_iter().chain(values).chain([series.max]).flatten().collect();
    assert!(all.is_sorted(), "{of} {name}: {all:?}");
    for at in &series.quantiles[..shown] {
        assert!(at.low.is_none_or(|low| Some(low) <= at.value), "{of} {name}: {at:?}");
        assert!(at.high.is_none_or(|high| Some(high) >= at.value), "{of} {name}: {at:?}");
    }
}

/// The limits that [`compared`] looks at.
pub(crate) const LIMITS: [(&str, f64); 4] =
    [("p50=+10%", 50.0), ("p99=+10%", 99.0), ("p99.9=+10%", 99.9), ("max=+10%", 100.0)];

/// What the report of a run withholds is no number in its comparison with another one, is in no difference and is
/// judged by no limit. Returns how many percentiles of a side were withheld because of what was given up.
pub(crate) fn compared(of: &str, runs: [&Run; 2], found: &Comparison) -> usize {
    let mut given_up = 0;
    for pair in &found.pairs {
        let of = format!("{of}: {}", pair.series);
        let sides = [&pair.before, &pair.after];
        for (run, shown) in runs.iter().zip(sides) {
            let own = run.series.iter().find(|own| own.name == shown.name).unwrap();
            given_up += side(&of, own, shown);
        }
        let known = |percent: f64| sides.map(|side| value(&side.quantiles, percent));
        if let PairResult::Compared(compared) = &pair.result {
            for at in &compared.quantiles {
                assert_eq!([at.before, at.after], known(at.percent), "{of}: {at:?}");
                let both = at.before.is_some() && at.after.is_some();
                assert!(both || (at.difference.is_none() && at.verdict.is_none()), "{of}: {at:?}");
            }
            let max = &compared.max;
            assert_eq!([max.before, max.after], sides.map(|side| side.max), "{of}");
            assert!(max.difference.is_none() || max.before.is_some() && max.after.is_some());
        }
        let judged = |one: &&Judged| {
            let judged = matches!(
                one.outcome,
                Outcome::Held { .. } | Outcome::NotShown { .. } | Outcome::Exceeded { .. }
            );
            judged && one.series == pair.series
        };
        for one in found.limits.iter().filter(judged) {
            let (_, percent) = LIMITS.iter().find(|(limit, _)| *limit == one.limit).unwrap();
            let known = if *percent < 100.0 { known(*percent) } else { sides.map(|side| side.max) };
            assert!(known.iter().all(Option::is_some), "{of}: {one:?} of {known:?}");
        }
    }
    given_up
}

/// One side beside its own report.
fn side(of: &str, own: &Series, shown: &Shown) -> usize {
    let of = format!("{of} {shown:?} {own:?}");
    let mut given_up = 0;
    for at in &shown.quantiles {
        let Some(told) = own.quantiles.iter().find(|of| (of.percent - at.percent).abs() < 1e-9)
        else {
            continue;
        };
        assert!(told.value.is_some() || at.value.is_none(), "p{}: {of}", at.percent);
        assert!(at.value.is_some() || at.high.is_none(), "p{}: {of}", at.percent);
        let above = own.censored.map(|of| of.above);
        let mut all = [at.low, at.value, at.high].into_iter().flatten();
        assert!(above.is_none_or(|above| all.all(|known| known <= above)), "{of}");
        given_up += usize::from(told.value.is_none() && own.censored.is_some());
    }
    let known = shown.quantiles.iter().take_while(|at| at.value.is_some()).count();
    assert!(shown.quantiles[known..].iter().all(|at| at.value.is_none()), "{of}");
    if shown.n > 0 {
        assert!(own.max.is_some() || shown.max.is_none(), "{of}");
        assert!(own.min.is_some() || shown.min.is_none(), "{of}");
        assert_eq!(own.censored, shown.censored, "{of}");
    }
    given_up
}

fn value(quantiles: &[Quantile], percent: f64) -> Option<Nanos> {
    quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9)?.value
}

/// How wide a report must be for each row to be one line.
pub(crate) const WIDE: usize = 400;
/// How the head of the table of intervals begins.
const INTERVALS: &str = "95% intervals";

/// Each percentile that a report of [`WIDE`] columns has in a table is one that the series shows; what it withholds
/// is withheld in each. Every series with samples has its rows: one among all series, and one among the intervals
/// where it has one.
pub(crate) fn withheld(of: &str, run: &Run, text: &str) {
    let tables: Vec<(&str, Vec<&str>)> = tables(text).collect();
    for one in run.as_shown().series.iter().filter(|one| one.n > 0) {
        let is_own = |row: &&str| {
            let rest = row.strip_prefix(one.label.as_str());
            rest.is_some_and(|rest| rest.starts_with("  ") || rest.starts_with(" ["))
        };
        let (mut among_all, mut among_intervals) = (0, 0);
        for (head, rows) in &tables {
            for row in rows.iter().filter(|row| is_own(row)) {
                let names = cells(head);
                among_all += usize::from(names.last().is_some_and(|name| name == "class"));
                among_intervals += usize::from(names[0] == INTERVALS);
                percentiles(&format!("{of}: {row}"), one, &names, row);
            }
        }
        let has_one = one.quantiles.iter().any(|of| of.low.is_some());
        assert_eq!(
            (among_all, among_intervals),
            (1, usize::from(has_one)),
            "{of}: rows of {}: {text}",
            one.label
        );
    }
}

/// The tables with a column for the median: each head with the rows below it.
fn tables(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let lines: Vec<&str> = text.lines().collect();
    let blocks: Vec<Vec<&str>> =
        lines.split(|line| line.is_empty()).map(<[&str]>::to_vec).collect();
    blocks.into_iter().filter_map(|block| {
        let head = block.iter().position(|line| cells(line).iter().any(|name| name == "p50"))?;
        Some((block[head], block[head + 1..].to_vec()))
    })
}

/// In a row of a series each percentile is shown that is known, and no other.
fn percentiles(of: &str, series: &Series, names: &[String], row: &str) {
    let cells = cells(row);
    let first = cells.len().saturating_sub(names.len());
    for (percent, name) in [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9")] {
        let at = series.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9);
        let (Some(at), Some(place)) = (at, names.iter().position(|of| of == name)) else {
            continue;
        };
        // One that lies beyond trust is marked.
        let cell = cells[first + place].trim_start_matches('~');
        let is_bound = cell.starts_with('≥') || cell.starts_with(">=");
        let shown = !is_bound && !["–", "-"].contains(&cell);
        let known = if names[0] == INTERVALS { at.low.and(at.high) } else { at.value };
        assert_eq!(known.is_some(), shown, "{name}: {of}");
    }
}

/// The cells of a row, which two blanks or more part.
fn cells(row: &str) -> Vec<String> {
    let cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}
