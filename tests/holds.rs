//! What holds of the numbers of every run, whatever was measured: shares lie between nothing and all, no part
//! is above its whole, parts add up, and what is withheld once is withheld everywhere.

use std::collections::BTreeMap;

use whylate_model::CpuId;
use whylate_model::cause::{Cause, CauseTotal};
use whylate_model::run::Run;
use whylate_model::series::Series;

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
}

/// The causes of a run of gaps: those of each CPU add up to what it lost, and the totals are the sums of those of
/// each CPU, as stored and as shown.
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
        for (cause, [whole, parts]) in &by_cause {
            assert!(whole.near(parts), "{of}, {how}: {cause}: {whole:?} {parts:?}");
        }
        for (cpu, sums) in &by_cpu {
            let own = run.gaps.iter().filter(|gaps| cpu.is_none_or(|cpu| gaps.cpu == cpu));
            let (gaps, lost) =
                own.fold((0, 0), |(n, lost), gaps| (n + gaps.gaps, lost + gaps.lost.0));
            assert_eq!(sums.gaps, gaps, "{of}, {how}: gaps on {cpu:?}");
            // Each of them was rounded.
            let off = (sums.lost_ns - lost as f64).abs();
            assert!(off <= 1.0 + run.gaps.len() as f64, "{of}, {how}: {cpu:?}: {sums:?} of {lost}");
            let shares = if lost > 0 { 1.0 } else { 0.0 };
            assert!(
                (sums.share_of_lost - shares).abs() < 1e-6 || lost == 0,
                "{of}, {how}: {sums:?}"
            );
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

/// Each percentile that a report has in the table of series, or in that of intervals, is one that the series shows;
/// what it withholds is withheld in both.
pub(crate) fn withheld(of: &str, run: &Run, text: &str) {
    let columns = [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9")];
    for one in &run.series {
        let rows = text.lines().filter(|line| line.starts_with(&format!("{}  ", one.label)));
        for row in rows {
            // The head of its own table: below the blank line before it.
            let above: Vec<&str> = text.lines().take_while(|line| *line != row).collect();
            let table = above.rsplit(|line| line.is_empty()).next().unwrap_or_default();
            let Some(head) = table.iter().find(|line| line.contains("p50")) else { continue };
            let (cells, names) = (cells(row), cells(head));
            let first = cells.len().saturating_sub(names.len());
            for (percent, name) in columns {
                let at = one.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9);
                let (Some(at), Some(place)) = (at, names.iter().position(|of| of == name)) else {
                    continue;
                };
                let cell = cells[first + place].as_str();
                let is_bound = cell.starts_with('≥') || cell.starts_with(">=");
                let shown = !is_bound && !["–", "-"].contains(&cell);
                let interval = head.starts_with("95% intervals");
                let known = if interval { at.low.and(at.high) } else { at.value };
                assert_eq!(known.is_some(), shown, "{of}: {} {name}: {row}", one.label);
            }
        }
    }
}

/// The cells of a row, which two blanks or more part.
fn cells(row: &str) -> Vec<String> {
    let cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}
