//! Three days of measurement, by a clock that runs through them as fast as it can be read.
//!
//! The loop, its ring, and everything a recording keeps in memory and on disk are the real ones.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use whylate_cause::rules::Standing;
use whylate_cause::totals::Beside;
use whylate_clock::mock::{MockCounter, PlantedGap};
use whylate_gap::Totals;
use whylate_gap::blocks::Blocks;
use whylate_gap::hot::{self, Limits, Live, Recorder};
use whylate_gap::ring;
use whylate_gap::table::LogLinear;
use whylate_gap::workload::{Nothing, Workload};
use whylate_model::directory::RunDir;
use whylate_model::run::{Closure, Evidence, GapSummary};
use whylate_model::segments::{self, StoredGap, Writer};
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_record::collector::{Collector, Wanted};
use whylate_record::summary::{self, Setting};
use whylate_stats::rng::Rng;

use crate::{mocked, program};

const HOURS: u64 = 72;
const CPU: CpuId = CpuId(0);
const HZ: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * HZ;
/// A reading each 2 ms of simulated time.
const PERIOD: u64 = HZ / 500;
/// Gaps come in the second half of each minute: blocks without a gap are left, and the loop is
/// between two simulated hours when no gap is.
const MINUTE: u64 = 60 * HZ;
const GAPS_IN_A_MINUTE: u64 = 300;
/// Bytes of all segments, as `--max-disk` bounds them.
const DISK: u64 = 4 << 20;
/// What the process may grow by between the second simulated hour and the last: bins that were not
/// hit before. Kept one by one, the lengths of these gaps would take 40 MiB.
const GROWTH_KIB: u64 = 8 << 10;
/// Hours between two looks at the numbers, as at a checkpoint.
const LOOK_EVERY: u64 = 12;

/// Set in the process that runs through them.
const BY_ITSELF: &str = "WHYLATE_TESTS_BY_ITSELF";

#[test]
fn memory_and_disk_stay_flat_over_three_days_and_nothing_is_lost() {
    if std::env::var_os(BY_ITSELF).is_some() {
        return three_days();
    }
    // In a process of its own: the memory of this one is that of other tests, too.
    let name = "endurance::memory_and_disk_stay_flat_over_three_days_and_nothing_is_lost";
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args([name, "--exact", "--nocapture"]).env(BY_ITSELF, "1").output();
    let output = output.unwrap();
    let text = program::said(&output);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn three_days() {
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
        begin: Ticks(0),
        end: Ticks(0),
    };
    let mut recorder = Recorder::new(producer, &overflow, &live, &stop, None, limits);
    let mut collector = Collector::of_threads(
        [mocked::facts(CPU, PERIOD)],
        mocked::context(&[CPU], PERIOD, true),
        &wanted(),
    );
    let (mut batch, mut found, mut named) = (Vec::new(), 0, 0);
    let mut resident = Vec::new();
    for hour in 1..=HOURS {
        recorder.limits.end = Ticks(hour * HOUR);
        hot::chain(&mut counter, &mut Nothing, &mut recorder, &blocks);
        let totals = totals(&live, &blocks, counter.last());
        batch.clear();
        found += consumer.drain(&mut batch);
        collector.take(0, &totals, &batch, |gap| {
            named += 1;
            let cause = Some(gap.cause.to_string().into());
            writer.push_gap(&StoredGap { thread: 0, gap: gap.gap, cause }).unwrap();
        });
        for closed in collector.take_closed() {
            let [start, length] = [closed.start, closed.length].map(|time| time.0 as f64 / 1e9);
            log.append("gap-cpu0", &closed.lengths, start, length).unwrap();
        }
        writer.checkpoint().unwrap();
        log.sync().unwrap();
        let on_disk: u64 = writer.segments().iter().map(|segment| segment.bytes).sum();
        assert!(on_disk <= DISK, "hour {hour}: {on_disk} bytes of segments");
        if hour == 1 || hour % LOOK_EVERY == 0 {
            let summary = look(&collector, &totals);
            assert_eq!(summary.gaps, collector.threads()[0].lengths.len(), "hour {hour}");
            assert!(summary.lost_share_interval.is_some(), "hour {hour}");
        }
        resident.push(resident_kib());
    }
    let totals = totals(&live, &blocks, counter.last());
    assert_eq!(found, planted.len(), "gaps found against gaps planted");
    assert_eq!((totals.gaps, totals.dropped), (planted.len() as u64, 0));
    assert_eq!((named, writer.lost_rows()), (planted.len(), 0), "gaps with a cause");
    assert!(writer.deleted() > 0, "the bound of the disk was never reached");
    let (early, last) = (resident[1], resident[resident.len() - 1]);
    assert!(last <= early + GROWTH_KIB, "resident KiB by the hour: {resident:?}");
    let period = totals.period.expect("half of the time is free of gaps").median;
    assert!((period / PERIOD as f64 - 1.0).abs() < 0.001, "period {period} ticks");
    let summary = look(&collector, &totals);
    assert_eq!(summary.closure, Closure::Holds);
    let taken: u64 = planted.iter().map(|gap| gap.length.0).sum();
    let off = summary.lost.0 as f64 / taken as f64 - 1.0;
    assert!(off.abs() < 0.001, "lost time is off by {off}");
    // 72 hours in intervals of a second would be 259 200 of them.
    assert!(summary.interval_lost_ns.len() <= 240, "{}", summary.interval_lost_ns.len());
}

/// Everything that a checkpoint makes of what was collected.
fn look(collector: &Collector, totals: &Totals) -> GapSummary {
    let plan = mocked::plan(vec![CPU]);
    let setting = Setting {
        plan: &plan,
        rate: Hertz(HZ as f64),
        resolution_ns: 1.0,
        counter: "mock",
        seed: 1,
    };
    let thread = &collector.threads()[0];
    let summary = summary::gaps(thread, totals, &setting);
    let series = summary::gap_series(thread, totals, &summary, &setting);
    assert_eq!(series.n, summary.gaps);
    let stationarity = series.stationarity.expect("more than ten intervals");
    assert!(stationarity.p50.iter().all(Option::is_some), "{stationarity:?}");
    let context = collector.attributor().context();
    let elapsed = Nanos(totals.end.since(totals.start).0);
    let causes = collector.causes().summary(context, &[(CPU, elapsed)]);
    let gaps: u64 = causes.causes.iter().filter(|of| of.cpu.is_none()).map(|of| of.gaps).sum();
    assert_eq!(gaps, summary.gaps, "gaps with a cause");
    let evidence = Evidence::default();
    let beside = Beside { standing: Standing::Ordinary, evidence: &evidence };
    let findings = collector.causes().findings(context, beside);
    assert!(findings.len() < 100, "{findings:?}");
    summary
}

fn wanted() -> Wanted {
    Wanted {
        rate: Hertz(HZ as f64),
        interval: Nanos::SECOND,
        worst: 10,
        validate: false,
        keep_all: false,
        counting: false,
    }
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
    Totals { start: Ticks(PERIOD), end, ..Totals::of(live, blocks.period()) }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
