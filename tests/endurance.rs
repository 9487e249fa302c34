//! Three days of measurement, by a clock that runs through them as fast as it can be read.

use std::sync::atomic::AtomicBool;

use whylate_clock::mock::{MockCounter, PlantedGap};
use whylate_gap::Totals;
use whylate_gap::blocks::Blocks;
use whylate_gap::closure::Check;
use whylate_gap::hot::{self, Limits, Live, Recorder};
use whylate_gap::ring;
use whylate_gap::table::LogLinear;
use whylate_gap::workload::{Nothing, Workload};
use whylate_model::directory::RunDir;
use whylate_model::run::Closure;
use whylate_model::segments::{self, Writer};
use whylate_model::{Hertz, Ticks, TicksDelta};
use whylate_stats::histogram::Histogram;
use whylate_stats::rng::Rng;

use crate::program;

const HOURS: u64 = 72;
const HZ: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * HZ;
/// A reading each 2 ms of simulated time.
const PERIOD: u64 = HZ / 500;
/// Gaps come in the second half of each minute: blocks without a gap are left, and the loop is
/// between two simulated hours when no gap is.
const MINUTE: u64 = 60 * HZ;
const GAPS_IN_A_MINUTE: u64 = 150;
/// Bytes of all segments, as `--max-disk` bounds them.
const DISK: u64 = 4 << 20;
/// What the process may grow by between the second simulated hour and the last.
const GROWTH_KIB: u64 = 8 << 10;

#[test]
fn memory_and_disk_stay_flat_over_three_days_and_nothing_is_lost() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    let mut writer = Writer::new(&directory, Ticks(0), segments::Limits::within(DISK));
    let mut log = directory.histogram_log().unwrap();
    let planted = plant();
    let mut counter =
        MockCounter::new(Hertz(HZ as f64)).with_period(&[PERIOD]).with_gaps(planted.clone());
    let (producer, mut consumer) = ring::ring();
    let (live, stop, overflow) = (Live::default(), AtomicBool::new(false), LogLinear::default());
    let blocks = Blocks::new(Nothing::BLOCK, PERIOD as f64);
    let limits = Limits {
        threshold: TicksDelta(PERIOD * 2),
        recording: TicksDelta(PERIOD),
        recording_with_switches: TicksDelta(PERIOD),
        stop_at: TicksDelta(u64::MAX),
        end: Ticks(0),
    };
    let mut recorder = Recorder::new(producer, &overflow, &live, &stop, None, limits);
    let (mut check, mut batch, mut found) = (Check::default(), Vec::new(), 0);
    let mut resident = Vec::new();
    for hour in 1..=HOURS {
        recorder.limits.end = Ticks(hour * HOUR);
        hot::chain(&mut counter, &mut Nothing, &mut recorder, &blocks);
        batch.clear();
        found += consumer.drain(&mut batch);
        let mut lengths = Histogram::new();
        for gap in &batch {
            check.push(gap);
            writer.push_gap(0, gap).unwrap();
            lengths.record(gap.length().0);
        }
        writer.checkpoint().unwrap();
        log.append("gap-cpu0", &lengths, (hour * 3600) as f64, 3600.0).unwrap();
        log.sync().unwrap();
        let on_disk: u64 = writer.segments().iter().map(|segment| segment.bytes).sum();
        assert!(on_disk <= DISK, "hour {hour}: {on_disk} bytes of segments");
        resident.push(resident_kib());
    }
    let totals = totals(&live, &blocks, counter.last());
    assert_eq!(found, planted.len(), "gaps found against gaps planted");
    assert_eq!((totals.gaps, totals.dropped), (planted.len() as u64, 0));
    assert_eq!(writer.lost_rows(), 0);
    assert!(writer.deleted() > 0, "the bound of the disk was never reached");
    assert_eq!(check.verdict(&totals), Closure::Holds);
    let (early, last) = (resident[1], resident[resident.len() - 1]);
    assert!(last <= early + GROWTH_KIB, "resident KiB by the hour: {resident:?}");
    let period = totals.period.expect("half of the time is free of gaps").median;
    assert!((period / PERIOD as f64 - 1.0).abs() < 0.001, "period {period} ticks");
}

/// Gaps of three periods and more, well apart from each other.
fn plant() -> Vec<PlantedGap> {
    let mut random = Rng::new(72);
    let step = MINUTE / 2 / GAPS_IN_A_MINUTE;
    (0..HOURS * 60)
        .map(|minute| minute * MINUTE + MINUTE / 2)
        .flat_map(|half| (0..GAPS_IN_A_MINUTE).map(move |gap| half + gap * step))
        .map(|at| PlantedGap {
            at: Ticks(at),
            length: TicksDelta(PERIOD * 3 + random.below(step / 2)),
            new_cpu: None,
        })
        .collect()
}

fn totals(live: &Live, blocks: &Blocks, end: Ticks) -> Totals {
    let read =
        |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    Totals {
        start: Ticks(0),
        end,
        iterations: read(&live.iterations),
        gaps: read(&live.gaps),
        dropped: read(&live.dropped),
        migrations: read(&live.migrations),
        gap_ticks: TicksDelta(read(&live.gap_ticks)),
        recording_ticks: TicksDelta(read(&live.recording_ticks)),
        inside_ticks: TicksDelta(0),
        period: blocks.period(),
        tripped: None,
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
