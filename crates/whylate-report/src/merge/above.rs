//! Causes of gaps above a threshold that is larger than the one they were recorded with.
//!
//! Totals by cause are of all gaps of a recording; what those below the threshold took of them stands in no
//! file. So the causes of a recording that is cut come from its table of single gaps: each gap counts whole
//! for the cause that it is named after. Gaps that the table has not are counted under [`Cause::Unknown`],
//! so that what the causes took is what was lost.

use std::collections::BTreeMap;

use whylate_cause::naming;
use whylate_model::cause::{Cause, CauseTotal, Coverage};
use whylate_model::directory::RunDir;
use whylate_model::run::{GapSummary, Run, Segment};
use whylate_model::segments::{self, StoredGap};
use whylate_model::{CpuId, Hertz, Nanos};
use whylate_stats::Histogram;

/// What was left out of a series: gaps below the threshold of the sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// How many.
    pub(super) gaps: u64,
    /// Their lengths.
    pub(super) ns: u128,
}

/// A series of gaps of the run that is cut.
struct Of<'a> {
    gaps: &'a GapSummary,
    floor: Nanos,
    period_ns: f64,
    /// What the histograms left out of it.
    left: LeftOut,
    /// The same by the table.
    below: LeftOut,
    kept: BTreeMap<Cause, Kept>,
}

#[derive(Default)]
struct Kept {
    gaps: u64,
    lost_ns: f64,
    longest: Nanos,
}

/// Takes the causes of a run's gaps of at least these lengths in place of all; `left` is what the
/// histograms left out of each series. Answers with what was left out by the lengths of single gaps, where
/// the table has them all.
pub(super) fn cut(
    directory: &RunDir,
    run: &mut Run,
    floors: &BTreeMap<String, Nanos>,
    left: &BTreeMap<String, LeftOut>,
) -> BTreeMap<String, LeftOut> {
    let hz = run.clock.hz;
    let mut all: Vec<Of<'_>> = run
        .gaps
        .iter()
        .map(|gaps| Of {
            gaps,
            floor: floors.get(&gaps.series).copied().unwrap_or_default(),
            period_ns: gaps.period_ticks * 1e9 / hz.0,
            left: left.get(&gaps.series).copied().unwrap_or_default(),
            below: LeftOut::default(),
            kept: BTreeMap::new(),
        })
        .collect();
    let known: BTreeMap<String, Cause> =
        run.causes.iter().map(|total| (total.cause.stored(), total.cause.clone())).collect();
    let bins = Histogram::new();
    for (rate, series, listed) in tables(run) {
        for stored in listed.iter().flat_map(|segment| rows(directory, segment)) {
            let name = series.get(stored.thread as usize);
            let Some(of) = all.iter_mut().find(|of| Some(&of.gaps.series) == name) else {
                continue;
            };
            of.add(&stored, rate, &known, &bins);
        }
    }
    let exact = all.iter().filter(|of| of.below.gaps == of.left.gaps && of.has_all());
    let exact = exact.map(|of| (of.gaps.series.clone(), of.below)).collect();
    all.iter_mut().for_each(Of::close);
    let (causes, coverage) = (totals(&all), coverage(&all));
    (run.causes, run.coverage) = (causes, coverage);
    exact
}

/// Each recording's clock, its series by thread, and its tables.
pub(crate) fn tables(run: &Run) -> Vec<(Hertz, Vec<String>, Vec<Segment>)> {
    if !run.is_merged() {
        let series = run.gaps.iter().map(|gaps| gaps.series.clone()).collect();
        return vec![(run.clock.hz, series, run.segments.clone())];
    }
    let of_origins = run.origins.iter().map(|origin| {
        let gaps = origin.series.iter().filter(|share| share.threshold.is_some());
        (origin.clock.hz, gaps.map(|of| of.series.clone()).collect(), origin.segments.clone())
    });
    of_origins.collect()
}

/// The gaps of a table; none of one that is of something else or cannot be read.
pub(crate) fn rows(directory: &RunDir, segment: &Segment) -> Vec<StoredGap> {
    if segments::kind_of(segment) != Some("gaps") {
        return Vec::new();
    }
    let path = directory.path().join(&segment.file);
    let content = std::fs::read(&path).ok();
    content.and_then(|content| segments::decode_gaps(&path, content).ok()).unwrap_or_default()
}

impl Of<'_> {
    fn add(
        &mut self,
        stored: &StoredGap,
        rate: Hertz,
        known: &BTreeMap<String, Cause>,
        bins: &Histogram,
    ) {
        let length = stored.gap.length().to_nanos(rate);
        // As the histograms decide it, which know bins alone.
        if bins.bin_of(length.0) < self.floor.0 {
            self.below.gaps += 1;
            self.below.ns += u128::from(length.0);
            return;
        }
        let cause = stored.cause.as_deref().and_then(|name| known.get(name));
        let kept = self.kept.entry(cause.cloned().unwrap_or(Cause::Unknown)).or_default();
        kept.gaps += 1;
        kept.lost_ns += (length.0 as f64 - self.period_ns).max(0.0);
        kept.longest = kept.longest.max(length);
    }

    /// Gaps that count.
    fn wanted(&self) -> u64 {
        self.gaps.gaps.saturating_sub(self.left.gaps)
    }

    fn in_table(&self) -> u64 {
        self.kept.values().map(|kept| kept.gaps).sum()
    }

    fn has_all(&self) -> bool {
        self.in_table() == self.wanted()
    }

    /// What the gaps that count have lost.
    fn lost_ns(&self) -> f64 {
        let left = if self.has_all() { self.below } else { self.left };
        let below = lost_ns(left, self.period_ns);
        (self.gaps.lost.0 as f64 - below).max(0.0)
    }

    /// What is in no table is known of no cause: those gaps count, with what the others leave of the lost
    /// time. What is over by rounding is shared out.
    fn close(&mut self) {
        let (wanted, lost_ns) = (self.wanted(), self.lost_ns());
        let taken = |of: &Self| of.kept.values().map(|kept| kept.lost_ns).sum::<f64>();
        let (found, missing) = (taken(self), wanted.saturating_sub(self.in_table()));
        if missing > 0 {
            let kept = self.kept.entry(Cause::Unknown).or_default();
            kept.gaps += missing;
            kept.lost_ns += (lost_ns - found).max(0.0);
        }
        let all = taken(self);
        if all > 0.0 {
            self.kept.values_mut().for_each(|kept| kept.lost_ns *= lost_ns / all);
        }
    }
}

/// Time lost in gaps: of each, what is more than one period of the loop.
pub(super) fn lost_ns(of: LeftOut, period_ns: f64) -> f64 {
    (of.ns as f64 - period_ns * of.gaps as f64).max(0.0)
}

/// Totals over all CPUs and by CPU. Shares are those of the sum, which works them out.
fn totals(all: &[Of<'_>]) -> Vec<CauseTotal> {
    let mut sums: BTreeMap<(Option<CpuId>, &Cause), Kept> = BTreeMap::new();
    for of in all {
        for (cause, kept) in &of.kept {
            for cpu in [None, Some(of.gaps.cpu)] {
                let sum = sums.entry((cpu, cause)).or_default();
                sum.gaps += kept.gaps;
                sum.lost_ns += kept.lost_ns;
                sum.longest = sum.longest.max(kept.longest);
            }
        }
    }
    let total = |((cpu, cause), sum): ((Option<CpuId>, &Cause), Kept)| CauseTotal {
        cause: cause.clone(),
        cpu,
        gaps: sum.gaps,
        parts: sum.gaps,
        lost_ns: sum.lost_ns,
        share_of_lost: 0.0,
        share_of_elapsed: 0.0,
        longest: sum.longest,
    };
    sums.into_iter().map(total).collect()
}

fn coverage(all: &[Of<'_>]) -> Option<Coverage> {
    let (mut found, mut lost) = (Coverage::default(), 0.0);
    for (cause, kept) in all.iter().flat_map(|of| &of.kept) {
        lost += kept.lost_ns;
        *match cause {
            cause if naming::is_named_by_events(cause) => &mut found.by_events,
            cause if naming::is_residual(cause) => &mut found.by_residuals,
            _ => &mut found.by_nothing,
        } += kept.lost_ns;
    }
    (lost > 0.0).then(|| Coverage {
        by_events: found.by_events / lost,
        by_residuals: found.by_residuals / lost,
        by_nothing: found.by_nothing / lost,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use whylate_model::Ticks;
    use whylate_model::directory::parse_run;
    use whylate_model::gap::{Evidence, Gap, GapKind};

    use super::*;

    fn stored(length: u64, cause: Option<&str>) -> StoredGap {
        let gap = Gap {
            start: Ticks(1_000),
            end: Ticks(1_000 + length),
            resumed: Ticks(1_000 + length),
            cpu_before: CpuId(1),
            cpu_after: CpuId(1),
            kind: GapKind::Interruption,
            evidence: Evidence::default(),
        };
        StoredGap { thread: 0, gap, cause: cause.map(Into::into) }
    }

    #[test]
    fn gaps_of_a_table_count_from_the_floor_on_and_what_the_table_has_not_is_of_no_cause() {
        let json = include_bytes!("../../../../tests/runs/gaps/run.json");
        let run = parse_run(Path::new("run.json"), json).unwrap();
        let mut gaps = GapSummary { cpu: CpuId(1), gaps: 4, ..run.gaps[0].clone() };
        // Of each, one period of a nanosecond is not lost.
        gaps.lost = Nanos(49 + 99 + 149 + 299);
        let known = [Cause::PageFault, Cause::EntryResidual].map(|of| (of.stored(), of));
        let known = BTreeMap::from(known);
        let closed = |gaps: &GapSummary| {
            let mut of = Of {
                gaps,
                floor: Nanos(100),
                period_ns: 1.0,
                left: LeftOut { gaps: 1, ns: 50 },
                below: LeftOut::default(),
                kept: BTreeMap::new(),
            };
            let bins = Histogram::new();
            let [fault, residual] = [Cause::PageFault, Cause::EntryResidual].map(|of| of.stored());
            for (length, cause) in
                [(50, None), (100, Some(&*residual)), (150, Some(&*fault)), (300, Some("x"))]
            {
                of.add(&stored(length, cause), Hertz(1e9), &known, &bins);
            }
            assert_eq!(of.below, LeftOut { gaps: 1, ns: 50 });
            let has_all = of.has_all();
            of.close();
            let totals = totals(std::slice::from_ref(&of));
            let rows = |cpu: Option<CpuId>| {
                let rows = totals.iter().filter(move |total| total.cpu == cpu);
                let rows = rows.map(|of| (of.cause.clone(), of.gaps, of.lost_ns, of.longest.0));
                rows.collect::<Vec<_>>()
            };
            assert_eq!(rows(None), rows(Some(CpuId(1))));
            (has_all, rows(None), coverage(&[of]).unwrap())
        };
        let find = |rows: &[(Cause, u64, f64, u64)], cause: Cause| {
            let (_, gaps, lost_ns, longest) =
                rows.iter().find(|row| row.0 == cause).unwrap().clone();
            (gaps, (lost_ns * 1e6).round() / 1e6, longest)
        };
        let (has_all, rows, found) = closed(&gaps);
        assert!(has_all && rows.len() == 3);
        assert_eq!(find(&rows, Cause::EntryResidual), (1, 99.0, 100));
        assert_eq!(find(&rows, Cause::PageFault), (1, 149.0, 150));
        assert_eq!(find(&rows, Cause::Unknown), (1, 299.0, 300));
        for (share, of) in
            [(found.by_events, 149.0), (found.by_residuals, 99.0), (found.by_nothing, 299.0)]
        {
            assert!((share - of / 547.0).abs() < 1e-12, "{found:?}");
        }
        // Two more that no table has, and what they lost.
        (gaps.gaps, gaps.lost) = (6, Nanos(gaps.lost.0 + 80));
        let (has_all, rows, _) = closed(&gaps);
        assert!(!has_all);
        assert_eq!(find(&rows, Cause::Unknown), (3, 379.0, 300));
        assert_eq!(find(&rows, Cause::PageFault), (1, 149.0, 150));
        assert_eq!(lost_ns(LeftOut { gaps: 9, ns: 3 }, 1.0).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn gaps_that_no_table_has_count_also_where_those_that_it_has_took_all_that_was_lost() {
        let json = include_bytes!("../../../../tests/runs/gaps/run.json");
        let run = parse_run(Path::new("run.json"), json).unwrap();
        let mut gaps = run.gaps[0].clone();
        (gaps.gaps, gaps.lost) = (3, Nanos(15));
        let kept = Kept { gaps: 2, lost_ns: 20.0, longest: Nanos(10) };
        let mut of = Of {
            gaps: &gaps,
            floor: Nanos(0),
            period_ns: 1.0,
            left: LeftOut::default(),
            below: LeftOut::default(),
            kept: BTreeMap::from([(Cause::Host, kept)]),
        };
        of.close();
        let found: Vec<(&Cause, u64)> =
            of.kept.iter().map(|(cause, kept)| (cause, kept.gaps)).collect();
        assert_eq!(found, [(&Cause::Host, 2), (&Cause::Unknown, 1)]);
        let lost: f64 = of.kept.values().map(|kept| kept.lost_ns).sum();
        assert!((lost - 15.0).abs() < 1e-9, "{lost}");
    }
}
