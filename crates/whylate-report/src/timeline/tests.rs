//! Planted gaps lie where they were lost, under the names that tables have.

use std::path::Path;

use proptest::prelude::*;
use whylate_model::cause::Cause;
use whylate_model::directory::parse_run;
use whylate_model::gap::{Evidence, Gap, GapKind};
use whylate_model::run::CpuSteal;
use whylate_model::segments::StoredGap;

use super::*;

/// A recorded run, to be changed.
pub(crate) fn recorded() -> Run {
    let json = include_bytes!("../../../../tests/runs/gaps/run.json");
    parse_run(Path::new("run.json"), json).unwrap()
}

/// A run of one thread from tick 1000 on for a million ticks of a nanosecond, without a gap.
pub(crate) fn quiet() -> Run {
    let mut run = recorded();
    run.clock.hz = Hertz(1e9);
    run.clock.epoch = Ticks(0);
    run.gaps[0].start = Ticks(1_000);
    run.gaps[0].end = Ticks(1_001_000);
    run.causes.clear();
    run.worst.clear();
    run
}

pub(crate) fn gap(start: u64, length: u64, cause: Option<&str>) -> StoredGap {
    let gap = Gap {
        start: Ticks(start),
        end: Ticks(start.saturating_add(length)),
        resumed: Ticks(start.saturating_add(length)),
        cpu_before: CpuId(1),
        cpu_after: CpuId(1),
        kind: GapKind::Interruption,
        evidence: Evidence::default(),
    };
    StoredGap { thread: 0, gap, cause: cause.map(Arc::from) }
}

pub(crate) fn add(builder: &mut Builder, stored: &StoredGap) {
    builder.add(&segment(std::slice::from_ref(stored)));
}

/// The gaps as one segment has them, each name once.
fn segment(stored: &[StoredGap]) -> BriefGaps {
    let mut of = BriefGaps::default();
    for StoredGap { thread, gap, cause } in stored {
        let cause = cause.as_ref().map(|name| {
            let known = of.causes.iter().position(|of| of == name);
            known.unwrap_or_else(|| {
                of.causes.push(name.clone());
                of.causes.len() - 1
            }) as u32
        });
        let (start, end, cpu) = (gap.start, gap.end, gap.cpu_before);
        of.gaps.push(BriefGap { thread: *thread, start, end, cpu, cause });
    }
    of
}

fn sum(timeline: &Timeline, slot: usize) -> f64 {
    timeline.lanes.iter().flat_map(|lane| &lane.cells).map(|cell| cell[slot]).sum()
}

#[test]
fn time_lies_in_the_bins_it_was_lost_in_and_under_its_cause() {
    let mut builder = Builder::new(&quiet(), Start::OfAll);
    // 245 ticks a bin: this one covers the end of the first, all of the second, half the third.
    add(&mut builder, &gap(1_200, 400, Some("host")));
    add(&mut builder, &gap(900_000, 50, None));
    let timeline = builder.finish();
    let cells = &timeline.lanes[0].cells;
    let host = timeline.slot_of("no kernel event").unwrap();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(near(timeline.bin_ns(), 245.0), "{}", timeline.bin_ns());
    assert!(near(cells[0][host], 45.0) && near(cells[1][host], 245.0));
    assert!(near(cells[2][host], 110.0) && near(sum(&timeline, NOT_ATTRIBUTED), 50.0));
    assert_eq!(timeline.longest.len(), 2);
    assert!(near(timeline.longest[0].start_ns, 200.0) && timeline.complete_from_ns == 0.0);
}

#[test]
fn the_timeline_names_time_without_an_event_as_the_table_of_its_cpu_does() {
    let mut run = recorded();
    let total = run.causes[0].clone();
    let without = |cpu: Option<u32>, lost_ns| CauseTotal {
        cause: Cause::Host,
        cpu: cpu.map(CpuId),
        lost_ns,
        ..total.clone()
    };
    run.causes = vec![without(None, 200.0), without(Some(1), 100.0), without(Some(2), 100.0)];
    let stolen = |cpu, steal_ns| CpuSteal { cpu: CpuId(cpu), steal_ns };
    run.evidence.steal_by_cpu = vec![stolen(1, 60.0), stolen(2, 0.0)];
    run.clock.hz = Hertz(1e9);
    run.gaps[0].start = Ticks(1_000);
    run.gaps[0].end = Ticks(1_001_000);
    let mut builder = Builder::new(&run.as_shown(), Start::OfAll);
    let mut other = gap(1_300, 7, Some("host"));
    other.gap.cpu_before = CpuId(2);
    let last = gap(1_400, 1, Some("host"));
    builder.add(&segment(&[gap(1_200, 30, Some("host")), other, last]));
    let timeline = builder.finish();
    let taken = |name| sum(&timeline, timeline.slot_of(name).unwrap());
    assert!((taken("hypervisor") - 31.0).abs() < 1e-6);
    assert!((taken("no kernel event") - 7.0).abs() < 1e-6);
}

#[test]
fn a_run_without_its_summary_grows_its_bins_and_names_its_threads() {
    let mut run = quiet();
    run.gaps.clear();
    run.segments.clear();
    let mut builder = Builder::new(&run, Start::OfAll);
    for n in 0..20_000_u64 {
        add(&mut builder, &gap(n * 1_000_000, 1_000, Some("host")));
    }
    let timeline = builder.finish();
    assert_eq!((timeline.lanes.len(), timeline.gaps), (1, 20_000));
    assert_eq!(timeline.lanes[0].label, "thread 0");
    assert!((sum(&timeline, 0) - 2e7).abs() < 1.0);
    assert!(timeline.bins() <= BINS && timeline.bins() > BINS / 4);
}

#[test]
fn time_counts_from_the_start_of_the_measurement_or_of_each_thread() {
    let mut run = quiet();
    run.gaps.push(GapSummary {
        start: Ticks(501_000),
        end: Ticks(1_501_000),
        ..run.gaps[0].clone()
    });
    for (start, wanted, length) in
        [(Start::OfAll, 600_000.0, 1_500_000.0), (Start::OfEach, 100_000.0, 1_000_000.0)]
    {
        let mut builder = Builder::new(&run, start);
        add(&mut builder, &StoredGap { thread: 1, ..gap(601_000, 50, None) });
        let timeline = builder.finish();
        assert!((timeline.longest[0].start_ns - wanted).abs() < 1e-6, "{timeline:?}");
        assert!((timeline.length_ns() - length).abs() < 1e-6);
    }
}

#[test]
fn more_causes_than_colours_are_added_up() {
    let mut builder = Builder::new(&quiet(), Start::OfAll);
    for n in 0..100_u64 {
        add(&mut builder, &gap(2_000 + n * 100, 10, Some(&format!("thread {n}"))));
    }
    let timeline = builder.finish();
    assert_eq!(timeline.names.len(), SLOTS);
    assert!((sum(&timeline, OTHERS) - 10.0 * (100 - NAMED) as f64).abs() < 1e-6);
}

#[test]
fn only_the_longest_gaps_are_kept_one_by_one() {
    let mut run = quiet();
    run.gaps[0].end = Ticks(1_000_000_000);
    let mut builder = Builder::new(&run, Start::OfAll);
    for n in 0..30_000_u64 {
        add(&mut builder, &gap(2_000 + n * 10_000, 1 + n % 5_000, None));
    }
    let timeline = builder.finish();
    assert_eq!(timeline.longest.len(), MOST_SINGLE);
    let shortest = timeline.longest.iter().map(|g| g.length_ns).fold(f64::MAX, f64::min);
    assert!((shortest - timeline.complete_from_ns).abs() < 1e-9);
    let as_long = (0..30_000_u64).filter(|n| (1 + n % 5_000) as f64 > shortest).count();
    assert!(as_long <= MOST_SINGLE, "{as_long} are longer than the shortest kept");
}

#[test]
fn coarser_bins_hold_the_same_time() {
    let mut builder = Builder::new(&quiet(), Start::OfAll);
    for n in 0..900_u64 {
        add(&mut builder, &gap(2_000 + n * 1_000, n, Some("host")));
    }
    let fine = builder.finish();
    let coarse = fine.coarsened(100);
    assert!(coarse.bins() <= 100 && coarse.cells() < fine.cells());
    assert!((sum(&fine, 0) - sum(&coarse, 0)).abs() < 1e-3);
}

proptest! {
    #[test]
    fn nothing_is_lost_whatever_a_damaged_file_holds(
        gaps in prop::collection::vec((any::<u64>(), any::<u64>(), 0u16..3), 0..60)
    ) {
        let run = quiet();
        let mut builder = Builder::new(&run, Start::OfAll);
        for (start, length, thread) in &gaps {
            add(&mut builder, &StoredGap { thread: *thread, ..gap(*start, *length, Some("x")) });
        }
        let timeline = builder.finish();
        prop_assert_eq!(timeline.gaps + timeline.left_out, gaps.len() as u64);
        prop_assert!(timeline.lanes[0].cells.len() <= BINS);
        prop_assert!(timeline.largest_share() <= 1.0);
    }
}
