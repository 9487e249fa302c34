//! The loops on a mock counter: planted gaps are recorded once each, with their length and their CPU,
//! and what finds the ring full is counted, not lost.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::MockCounter;
use whylate_clock::mock::PlantedGap;
use whylate_gap::Totals;
use whylate_gap::blocks::Blocks;
use whylate_gap::closure::noise_below_threshold;
use whylate_gap::hot::{Limits, Live, Recorder, chain};
use whylate_gap::ring::{CAPACITY, Consumer, ring};
use whylate_gap::table::LogLinear;
use whylate_gap::workload::Nothing;
use whylate_model::gap::Gap;
use whylate_model::{CpuId, Hertz, Ticks, TicksDelta};

const PERIOD: u64 = 25;

struct Outcome {
    live: Live,
    overflow: LogLinear,
    blocks: Blocks,
    consumer: Consumer,
}

/// Runs the chain loop over the planted gaps until `end`.
fn run(gaps: Vec<PlantedGap>, end: Ticks) -> Outcome {
    let counter = MockCounter::new(Hertz(2.5e9)).starting_at(Ticks(1)).with_period(&[PERIOD]);
    let mut counter = counter.with_gaps(gaps);
    let (producer, consumer) = ring();
    let (live, overflow) = (Live::default(), LogLinear::default());
    let blocks = Blocks::new(4096, PERIOD as f64);
    let stop = AtomicBool::new(false);
    let limits = Limits {
        threshold: TicksDelta(250),
        recording: TicksDelta(1_000),
        recording_with_switches: TicksDelta(1_000),
        stop_at: TicksDelta(u64::MAX),
        begin: Ticks(0),
        end,
    };
    let mut recorder = Recorder::new(producer, &overflow, &live, &stop, None, limits);
    chain(&mut counter, &mut Nothing, &mut recorder, &blocks);
    drop(recorder);
    Outcome { live, overflow, blocks, consumer }
}

fn planted(count: u64, apart: u64) -> Vec<PlantedGap> {
    let length = |n: u64| TicksDelta(1_000 + n % 500);
    let gap = |n: u64| PlantedGap { at: Ticks(n * apart), length: length(n), new_cpu: None };
    (1..=count).map(gap).collect()
}

/// Runs the chain loop towards `BEGIN` from a reading, and beyond it until `END`; what was measured, and its gaps.
fn measured_from(woken: Ticks, gaps: Vec<PlantedGap>) -> (Totals, Vec<Gap>) {
    let counter = MockCounter::new(Hertz(2.5e9)).starting_at(woken).with_period(&[PERIOD]);
    let mut counter = counter.with_gaps(gaps);
    let (producer, mut consumer) = ring();
    let (unseen, live, overflow) = (Live::default(), Live::default(), LogLinear::default());
    let blocks = Blocks::new(4096, PERIOD as f64);
    let stop = AtomicBool::new(false);
    let mut recorder = Recorder::new(producer, &overflow, &unseen, &stop, None, LIMITS);
    recorder.settles(&mut counter, &live, BEGIN);
    chain(&mut counter, &mut Nothing, &mut recorder, &blocks);
    recorder.measures(&overflow, END);
    chain(&mut counter, &mut Nothing, &mut recorder, &blocks);
    let mut found = Vec::new();
    consumer.drain(&mut found);
    found.retain(|gap| gap.end > BEGIN);
    (Totals::of(&live, None), found)
}

const BEGIN: Ticks = Ticks(10_000_000);
const END: Ticks = Ticks(20_000_000);
const LIMITS: Limits = Limits {
    threshold: TicksDelta(250),
    recording: TicksDelta(1_000),
    recording_with_switches: TicksDelta(1_000),
    stop_at: TicksDelta(u64::MAX),
    begin: Ticks(0),
    end: Ticks(0),
};

/// All of the time is in iterations, gaps and their recording.
fn is_closed(of: &Totals) -> bool {
    let accounted = of.iterations * PERIOD + of.gap_ticks.0 + of.recording_ticks.0;
    of.elapsed().0.abs_diff(accounted) < 20 * PERIOD
}

#[test]
fn a_thread_that_gets_its_cpu_after_the_begin_has_lost_what_it_did_not_have_until_then() {
    for woken in [Ticks(15_000_000), Ticks(25_000_000)] {
        let (totals, found) = measured_from(woken, Vec::new());
        let lost = woken.since(BEGIN).0;
        assert_eq!((totals.start, totals.gaps, found.len()), (BEGIN, 1, 1));
        assert!(totals.gap_ticks.0.abs_diff(lost) < 4 * PERIOD, "{totals:?}");
        assert_eq!((found[0].start, found[0].length()), (BEGIN, totals.gap_ticks));
        assert_eq!(found[0].evidence.involuntary_switches, Some(1));
        assert!(is_closed(&totals), "{totals:?}");
        let elapsed = END.max(woken).since(BEGIN).0;
        assert!(totals.elapsed().0.abs_diff(elapsed) < 3 * 4_096 * PERIOD, "{totals:?}");
    }
}

#[test]
fn a_gap_across_the_begin_is_lost_from_the_begin_on_and_one_before_it_is_not() {
    let gap = |at, length| PlantedGap { at: Ticks(at), length: TicksDelta(length), new_cpu: None };
    let gaps = vec![gap(9_000_000, 2_000), gap(9_990_000, 5_010_000), gap(18_000_000, 3_000)];
    let (totals, found) = measured_from(Ticks(1), gaps);
    assert_eq!((totals.start, totals.gaps, found.len()), (BEGIN, 2, 2));
    assert!(totals.gap_ticks.0.abs_diff(5_000_000 + 3_000) < 4 * PERIOD, "{totals:?}");
    assert!(totals.recording_ticks.0 < 4_100 * PERIOD && is_closed(&totals), "{totals:?}");

    let (quiet, found) = measured_from(Ticks(1), vec![gap(9_000_000, 2_000)]);
    assert_eq!((quiet.gaps, quiet.recording_ticks, found.len()), (0, TicksDelta(0), 0));
    assert!(quiet.start >= BEGIN && is_closed(&quiet), "{quiet:?}");
}

#[test]
fn each_planted_gap_is_recorded_once_with_its_length() {
    let gaps = planted(1_009, 50_000);
    let mut outcome = run(gaps.clone(), Ticks(60_000_000));
    let mut found: Vec<Gap> = Vec::new();
    outcome.consumer.drain(&mut found);
    assert_eq!(found.len(), gaps.len());
    for (gap, planted) in found.iter().zip(&gaps) {
        // The loop's own iteration is in the delta.
        assert_eq!(gap.length(), TicksDelta(planted.length.0 + PERIOD));
    }
    let period = outcome.blocks.period().expect("most blocks hold no gap");
    assert!((period.median - PERIOD as f64).abs() < 0.01, "{period:?}");
}

#[test]
fn gap_with_a_change_of_cpu_is_kept_and_marked() {
    let length = TicksDelta(90_000);
    let moved = PlantedGap { at: Ticks(1_000_000), length, new_cpu: Some(CpuId(7)) };
    let mut outcome = run(vec![moved], Ticks(5_000_000));
    let mut found = Vec::new();
    outcome.consumer.drain(&mut found);
    assert_eq!(found.len(), 1);
    assert!(found[0].migrated());
    assert_eq!(found[0].cpu_after, CpuId(7));
    assert_eq!(outcome.live.migrations.load(Ordering::Relaxed), 1);
}

#[test]
fn what_finds_the_ring_full_is_in_the_histogram_and_counted() {
    let more = 5_003;
    let count = CAPACITY as u64 + more;
    let mut outcome = run(planted(count, 5_000), Ticks((count + 100) * 5_000));
    let mut kept = Vec::new();
    outcome.consumer.drain(&mut kept);
    let in_histogram: u64 = outcome.overflow.bins().map(|(_, count)| count).sum();
    assert_eq!(kept.len(), CAPACITY);
    assert_eq!(outcome.live.dropped.load(Ordering::Relaxed), more);
    assert_eq!(in_histogram, more);
    assert_eq!(outcome.live.gaps.load(Ordering::Relaxed), count);
}

#[test]
fn noise_too_short_to_be_a_gap_is_found_as_its_share_of_the_time() {
    // 100 ticks in every 10 000, below the threshold of 250: one part in a hundred.
    let short = (1..6_000).map(|n| PlantedGap {
        at: Ticks(n * 10_000),
        length: TicksDelta(100),
        new_cpu: None,
    });
    let live = run(short.collect(), Ticks(60_000_000)).live;
    assert_eq!(live.gaps.load(Ordering::Relaxed), 0);
    let totals = Totals::of(&live, None);
    let noise = noise_below_threshold(&totals, PERIOD as f64).expect("time has passed");
    assert!((noise - 0.01).abs() < 0.0002, "{noise}");
}
