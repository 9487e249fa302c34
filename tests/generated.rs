//! Generated runs: gaps planted into the measuring loop, events beside them, series with few samples or bursts,
//! jobs of simulated schedules, wake-ups and flows of requests go through the functions by which a recording computes
//! its figures. What comes out holds together, and so does the sum of two; text, page and JSON are made of it.
//!
//! They are the same each time. `PROPTEST_CASES` says how many others, and `PROPTEST_RNG_SEED` which.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use whylate_cause::attribute::Limits as Kept;
use whylate_cause::rules::Standing;
use whylate_cause::totals::Beside;
use whylate_cause::{Attributed, Attributor, Totals as CauseTotals};
use whylate_clock::mock::{MockCounter, PlantedGap};
use whylate_gap::blocks::Blocks;
use whylate_gap::hot::{self, Limits, Live, Recorder};
use whylate_gap::table::LogLinear;
use whylate_gap::workload::{Nothing, Workload};
use whylate_gap::{Totals, ring};
use whylate_model::directory::RunDir;
use whylate_model::event::{Event, EventKind, Softirq, Task};
use whylate_model::foreign::{ForeignProcess, ForeignThread};
use whylate_model::gap::Gap;
use whylate_model::run::{Beginning, CpuSteal, Evidence, Run, RunState};
use whylate_model::segments::{self, StoredGap, Writer};
use whylate_model::series::{Censored, Definition, Series};
use whylate_model::{CpuId, Nanos, Pid, Ticks, TicksDelta};
use whylate_record::collector::{Collector, Wanted};
use whylate_record::summary::{self, Setting};
use whylate_report::merge::{Request, TABLE_BYTES, merge};
use whylate_report::{Style, compare, render};
use whylate_stats::Histogram;

use crate::drawn::{self, DrawnWakes, Logged, added_up};
use crate::exchanges::{self, DrawnFlow};
use crate::schedules::{self, DrawnSet};
use crate::{holds, mocked, program};

/// Runs where `PROPTEST_CASES` does not say.
const CASES: u32 = 2_000;
/// Sums of two where it does not say.
const SUMS: u32 = 200;
/// Which they are then.
const SEED: u64 = 1;
/// Ticks between two readings of the loop.
const PERIOD: u64 = 100;
/// Threads that have a CPU now and then; the second and the third have one name.
const THREADS: [(i32, &str, i32); 3] = [(501, "hog", 120), (502, "gap/0", 49), (503, "gap/0", 120)];

/// One run to be.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    cpus: Vec<DrawnCpu>,
    series: Vec<DrawnSeries>,
    set: Option<DrawnSet>,
    flow: Option<DrawnFlow>,
    wakes: Option<DrawnWakes>,
    virtualised: bool,
    traced: bool,
    /// Steal time is known of all CPUs together, and of each.
    stolen: (bool, bool),
    /// The processes of threads are known.
    processes: bool,
    worst: usize,
}

#[derive(Debug, Clone)]
struct DrawnCpu {
    gaps: Vec<DrawnGap>,
    /// Readings behind the last gap.
    tail: u64,
    steal_ticks: u64,
}

#[derive(Debug, Clone)]
struct DrawnGap {
    /// Readings since the gap before.
    after: u64,
    /// Length in ticks.
    length: u64,
    what: Vec<What>,
}

/// What the kernel records in a gap.
#[derive(Debug, Clone, Copy)]
enum What {
    Timer,
    Softirq,
    PageFault,
    Thread(usize),
}

/// Values by block of time.
#[derive(Debug, Clone)]
struct DrawnSeries {
    definition: Definition,
    blocks: Vec<Vec<u64>>,
    /// So many of the largest are only known to be larger.
    censored: usize,
}

fn any_gap() -> impl Strategy<Value = DrawnGap> {
    let what = prop_oneof![
        Just(What::Timer),
        Just(What::Softirq),
        Just(What::PageFault),
        (0..THREADS.len()).prop_map(What::Thread),
    ];
    let length = prop_oneof![
        4 => 3 * PERIOD..5_000,
        2 => 5_000..200_000_u64,
        1 => 200_000..80_000_000_u64,
    ];
    (3..300_u64, length, vec(what, 0..4)).prop_map(|(after, length, what)| DrawnGap {
        after,
        length,
        what,
    })
}

fn any_cpu() -> impl Strategy<Value = DrawnCpu> {
    let gaps = prop_oneof![1 => vec(any_gap(), 0..3), 3 => vec(any_gap(), 0..60)];
    // Behind some the loop finds a block without a gap, and its period.
    let tail = prop_oneof![2_u64..500, Just(3 * Nothing::BLOCK)];
    (gaps, tail, 0..12_u64).prop_map(|(gaps, tail, steal_ticks)| DrawnCpu {
        gaps,
        tail,
        steal_ticks,
    })
}

fn any_series() -> impl Strategy<Value = DrawnSeries> {
    let definition = prop_oneof![
        Just(Definition::Response),
        Just(Definition::DispatchLatency),
        Just(Definition::Departures),
        Just(Definition::Slack),
    ];
    // Bursts: a block has one size, and others have another.
    let block = (0..60_usize, prop_oneof![1..100_u64, 1..10_000_000_u64], 1..50_u64)
        .prop_map(|(n, about, spread)| (0..n as u64).map(|at| about + at * 7 % spread).collect());
    (definition, vec(block, 0..14), 0..4_usize)
        .prop_map(|(definition, blocks, censored)| DrawnSeries { definition, blocks, censored })
}

fn any_run() -> impl Strategy<Value = Drawn> {
    let facts = (any::<bool>(), any::<bool>(), any::<(bool, bool)>(), any::<bool>(), 0..5_usize);
    let set = prop::option::of(schedules::any_set());
    let flow = prop::option::of(exchanges::any_flow());
    let wakes = prop::option::of(drawn::any_wakes());
    let parts = (vec(any_cpu(), 1..4), vec(any_series(), 0..3), set, flow, wakes);
    (parts, facts).prop_map(|((cpus, series, set, flow, wakes), facts)| {
        let (virtualised, traced, stolen, processes, worst) = facts;
        Drawn { cpus, series, set, flow, wakes, virtualised, traced, stolen, processes, worst }
    })
}

impl Drawn {
    /// The threads of its set and of its wake-ups, with their series.
    fn put_threads(&self, run: &mut Run) {
        if let Some(set) = &self.set {
            drawn::put_deadlines(&schedules::run(set), run);
        }
        if let Some(wakes) = &self.wakes {
            drawn::put_wakes(wakes, run);
            run.threads.extend(run.wakes.iter().map(drawn::woken));
        }
    }

    /// What the log of its run, which has no threads, holds of each series.
    fn logged(&self) -> Vec<Logged> {
        let cpus = (0..).map(CpuId).zip(&self.cpus);
        let mut logged: Vec<Logged> = cpus
            .map(|(cpu, of)| {
                let lengths = measure(of, cpu).gaps;
                let lengths = lengths.iter().map(|gap| gap.length().to_nanos(mocked::RATE).0);
                (format!("gap-cpu{cpu}"), vec![lengths.collect()])
            })
            .collect();
        logged.extend(self.series.iter().enumerate().map(|(number, of)| {
            let blocks = of.blocks.iter().map(|values| values.iter().copied().collect());
            (format!("other-{number}"), blocks.collect())
        }));
        logged.extend(self.flow.iter().flat_map(exchanges::logged));
        logged
    }
}

/// What the loop on one CPU recorded.
struct Measured {
    totals: Totals,
    gaps: Vec<Gap>,
    events: Vec<Event>,
}

/// Lets the loop run through the gaps of a CPU.
fn measure(of: &DrawnCpu, cpu: CpuId) -> Measured {
    let (mut at, mut planted) = (10 * PERIOD, Vec::new());
    for gap in &of.gaps {
        at += gap.after * PERIOD;
        planted.push(PlantedGap { at: Ticks(at), length: TicksDelta(gap.length), new_cpu: None });
        at += gap.length;
    }
    let mut counter =
        MockCounter::new(mocked::RATE).with_period(&[PERIOD]).on_cpu(cpu).with_gaps(planted);
    let (producer, mut consumer) = ring::ring();
    let (live, stop, overflow) = (Live::default(), AtomicBool::new(false), LogLinear::default());
    let blocks = Blocks::new(Nothing::BLOCK, PERIOD as f64);
    let limits = Limits {
        threshold: TicksDelta(PERIOD * 2),
        recording: TicksDelta(PERIOD),
        recording_with_switches: TicksDelta(PERIOD),
        stop_at: TicksDelta(u64::MAX),
        begin: Ticks(0),
        end: Ticks(at + of.tail * PERIOD),
    };
    let mut recorder = Recorder::new(producer, &overflow, &live, &stop, None, limits);
    hot::chain(&mut counter, &mut Nothing, &mut recorder, &blocks);
    let mut gaps = Vec::new();
    consumer.drain(&mut gaps);
    let totals =
        Totals { start: Ticks(PERIOD), end: counter.last(), ..Totals::of(&live, blocks.period()) };
    let drawn = of.gaps.iter().map(|gap| gap.what.as_slice()).chain(std::iter::repeat(&[][..]));
    let events = gaps.iter().zip(drawn).flat_map(|(gap, what)| events(gap, what, cpu)).collect();
    Measured { totals, gaps, events }
}

/// The events of a gap, one after the other within it.
fn events(gap: &Gap, what: &[What], cpu: CpuId) -> Vec<Event> {
    let step = gap.length().0 / (3 * what.len() as u64 + 1);
    let own = Task { pid: mocked::pid(cpu), comm: "gap".to_owned(), prio: 120 };
    let mut at = gap.start;
    let mut next = || {
        at = at + TicksDelta(step);
        at
    };
    let mut found = Vec::new();
    let mut put = |ticks, pid, kind| found.push(Event { ticks, cpu, pid, kind });
    for what in what {
        let pid = own.pid;
        match *what {
            What::Timer => {
                let (name, vector) = ("local_timer".to_owned(), 236);
                put(next(), pid, EventKind::VectorEntry { name: name.clone(), vector });
                put(next(), pid, EventKind::VectorExit { name, vector });
            }
            What::Softirq => {
                put(next(), pid, EventKind::SoftirqEntry { vector: Softirq::Timer });
                put(next(), pid, EventKind::SoftirqExit { vector: Softirq::Timer });
            }
            What::PageFault => {
                put(next(), pid, EventKind::PageFault { user: true, address: 1, ip: 2 });
            }
            What::Thread(which) => {
                let (tid, comm, prio) = THREADS[which];
                let other = Task { pid: Pid(tid), comm: comm.to_owned(), prio };
                let (from, to) = (own.clone(), other.clone());
                put(next(), pid, EventKind::Switch { from, from_runnable: true, to });
                let (from, to) = (other, own.clone());
                put(next(), from.pid, EventKind::Switch { from, from_runnable: true, to });
            }
        }
    }
    found
}

/// All that a recording makes of it, in its directory.
fn record(of: &Drawn, directory: &RunDir) -> Run {
    let cpus: Vec<CpuId> = (0..of.cpus.len() as u32).map(CpuId).collect();
    let measured: Vec<Measured> =
        of.cpus.iter().zip(&cpus).map(|(of, cpu)| measure(of, *cpu)).collect();
    let context = mocked::context(&cpus, PERIOD, of.virtualised);
    let wanted = Wanted {
        rate: mocked::RATE,
        interval: Nanos(1_000_000),
        worst: of.worst,
        validate: false,
        keep_all: false,
        counting: false,
    };
    let facts = cpus.iter().map(|cpu| mocked::facts(*cpu, PERIOD));
    let mut collector = Collector::of_threads(facts, context.clone(), &wanted);
    for (index, of) in measured.iter().enumerate() {
        collector.take(index, &of.totals, &of.gaps, |_| {});
    }
    let plan = mocked::plan(cpus.clone());
    let setting =
        Setting { plan: &plan, rate: mocked::RATE, resolution_ns: 1.0, counter: "mock", seed: 1 };
    let (mut gaps, mut series) = (Vec::new(), Vec::new());
    for (thread, of) in collector.threads().iter().zip(&measured) {
        let one = summary::gaps(thread, &of.totals, &setting);
        series.push(summary::gap_series(thread, &of.totals, &one, &setting));
        gaps.push(one);
    }
    series.extend(of.series.iter().enumerate().map(|(number, of)| other_series(of, number)));
    let mut writer = Writer::new(directory, Ticks(0), segments::Limits::default());
    let mut causes = CauseTotals::new(of.worst);
    let attributor = attribute(of, &measured, &context, |attributed| {
        let cause = of.traced.then(|| Arc::from(attributed.cause.stored()));
        let stored = StoredGap { thread: attributed.thread, gap: attributed.gap, cause };
        writer.push_gap(&stored).unwrap();
        causes.add(attributed, &context);
    });
    let elapsed: Vec<(CpuId, Nanos)> =
        gaps.iter().map(|of| (of.cpu, of.end.since(of.start).to_nanos(mocked::RATE))).collect();
    let found = causes.summary(attributor.context(), &elapsed);
    let evidence = evidence(of, &cpus);
    let beside = Beside { standing: Standing::Ordinary, evidence: &evidence };
    let findings = causes.findings(attributor.context(), beside);
    let jobs = of.set.as_ref().map(schedules::run).unwrap_or_default();
    for job in &jobs {
        writer.push_job(job).unwrap();
    }
    writer.checkpoint().unwrap();
    let kept = program::read(&program::file("runs/gaps"));
    let mut clock = kept.clock;
    (clock.hz, clock.epoch) = (mocked::RATE, Ticks(0));
    let mut run = Run {
        series,
        gaps,
        causes: found.causes,
        coverage: found.coverage,
        worst: found.worst,
        senders: found.senders,
        foreign_threads: if of.processes { foreign() } else { Vec::new() },
        evidence,
        findings,
        segments: writer.segments(),
        ..Run::begun(Beginning {
            command_line: vec!["whylate".to_owned()],
            question: "What does a generated run say?".to_owned(),
            seed: 1,
            state: RunState::Complete,
            host: kept.host,
            clock,
        })
    };
    if let Some(flow) = &of.flow {
        exchanges::put(flow, &mut run);
    }
    run.prediction = of.set.as_ref().map(|set| schedules::judged(set, &run, directory));
    run
}

fn attribute(
    of: &Drawn,
    measured: &[Measured],
    context: &whylate_cause::Context,
    mut sink: impl FnMut(&Attributed),
) -> Attributor {
    let mut attributor = Attributor::new(context.clone(), Kept::default());
    for (index, of_cpu) in measured.iter().enumerate() {
        let (thread, cpu) = (index as u16, CpuId(index as u32));
        if of.traced {
            attributor.trace_cpu(cpu);
        }
        attributor.begin(thread, of_cpu.totals.start).unwrap();
        if of.traced {
            attributor.push_events(cpu, of_cpu.events.iter().cloned());
        }
        attributor.push_gaps(thread, &of_cpu.gaps).unwrap();
        attributor.end(thread, of_cpu.totals.end).unwrap();
    }
    attributor.finish(&mut |attributed| sink(&attributed));
    attributor
}

fn evidence(of: &Drawn, cpus: &[CpuId]) -> Evidence {
    let stolen: Vec<CpuSteal> = cpus
        .iter()
        .zip(&of.cpus)
        .map(|(cpu, of)| CpuSteal { cpu: *cpu, steal_ns: of.steal_ticks as f64 * 1e7 })
        .collect();
    let (known, by_cpu) = of.stolen;
    Evidence {
        steal_ns: known.then(|| stolen.iter().map(|of| of.steal_ns).sum()),
        steal_by_cpu: if known && by_cpu { stolen } else { Vec::new() },
        ..Evidence::default()
    }
}

/// The process of the last thread is not known.
fn foreign() -> Vec<ForeignThread> {
    let known =
        |tid: i32| (tid < 503).then(|| ForeignProcess { pid: Pid(500), name: "stress".to_owned() });
    let thread = |(tid, comm, _): (i32, &str, i32)| ForeignThread {
        comm: comm.to_owned(),
        tid: Pid(tid),
        process: known(tid),
    };
    THREADS.into_iter().map(thread).collect()
}

/// A series that is none of gaps.
fn other_series(of: &DrawnSeries, number: usize) -> Series {
    let blocks: Vec<Histogram> =
        of.blocks.iter().map(|values| values.iter().copied().collect()).collect();
    let (name, label) = (format!("other-{number}"), format!("other {number}"));
    let (mut series, all) = added_up([&name, &label], ["here", "there"], of.definition, &blocks);
    let mut values = of.blocks.concat();
    values.sort_unstable();
    let above = values.len().checked_sub(of.censored).and_then(|first| values.get(first));
    if let Some(above) = above {
        let censored = Censored { count: of.censored as u64, above: Nanos(*above) };
        series.censor(&all, censored);
    }
    series
}

/// Draws runs, `usually` so many, and hands each to `check` with its directory, until one does not hold; it is then made as small as
/// can be.
pub(crate) fn each(usually: u32, check: impl Fn(&Drawn, &RunDir, &Run)) {
    drawing(usually, &any_run(), |drawn, home| {
        let path = home.join("run");
        let directory = RunDir::create_with_room(&path, 0).unwrap();
        let run = record(&drawn, &directory);
        check(&drawn, &directory, &run);
    });
}

/// Draws so many things and hands each to `check` with a directory that is empty.
fn drawing<S: Strategy>(usually: u32, any: &S, check: impl Fn(S::Value, &Path)) {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let usual = ProptestConfig::default();
    let rng_seed = match usual.rng_seed {
        RngSeed::Random if asked.is_none() => RngSeed::Fixed(SEED),
        asked => asked,
    };
    let cases = asked.unwrap_or(usually);
    let config = ProptestConfig { cases, rng_seed, failure_persistence: None, ..usual };
    let home = tempfile::tempdir().unwrap();
    let found = TestRunner::new(config).run(any, |drawn| {
        let path = home.path().join("drawn");
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        check(drawn, &path);
        Ok(())
    });
    found.unwrap();
}

#[test]
fn figures_of_generated_runs_hold_together_and_text_page_and_json_are_made_of_each() {
    each(CASES, |drawn, directory, run| {
        let mut run = run.clone();
        drawn.put_threads(&mut run);
        let run = &run;
        holds::run("generated", run);
        holds::causes("generated", run);
        schedules::holds(run.prediction.as_ref());
        let planted: usize = drawn.cpus.iter().map(|cpu| cpu.gaps.len()).sum();
        let gaps: u64 = run.gaps.iter().map(|gaps| gaps.gaps).sum();
        assert_eq!(gaps, planted as u64, "each planted gap is one");
        let text = render(run, Style { width: holds::WIDE, ..Style::default() });
        exchanges::holds(run, &text);
        drawn::holds(run, &text);
        holds::withheld("generated", run, &text);
        let page = whylate_report::html::render(directory, run);
        for gaps in &run.gaps {
            // The text and the page have one number for the same share.
            let label = run.thread_name(gaps);
            assert!(text.contains(&label) && page.contains(&label), "{label}: {text}");
        }
        directory.write_run(run).unwrap();
        let read = directory.read_run().unwrap();
        assert_eq!(
            serde_json::to_value(&read).unwrap(),
            serde_json::to_value(run).unwrap(),
            "what is read is what was written"
        );
    });
}

/// Records it into a directory with the log of its series, as a recording with this seed.
fn written(of: &Drawn, path: &Path, seed: u64) -> Run {
    let directory = RunDir::create_with_room(path, 0).unwrap();
    let mut run = Run { seed, ..record(of, &directory) };
    let mut logged = of.logged();
    logged.extend(of.wakes.iter().flat_map(|wakes| drawn::put_wakes(wakes, &mut run)));
    let mut log = directory.histogram_log().unwrap();
    for (name, blocks) in &logged {
        for (at, block) in blocks.iter().enumerate().filter(|(_, block)| !block.is_empty()) {
            log.append(name, block, at as f64 / 1e3, 1e-3).unwrap();
        }
    }
    log.count_in(&mut run);
    directory.write_run(&run).unwrap();
    run
}

/// Runs of these directories against each other, beside each other and with limits, hold together with the reports
/// of each. Returns how many percentiles were withheld because of what was given up.
fn compared_holds(of: &str, paths: [&Path; 2], runs: [&Run; 2]) -> usize {
    let mut given_up = 0;
    for side_by_side in [false, true] {
        let [before, after] = paths.map(|path| vec![path.to_owned()]);
        let request = compare::Request {
            before,
            after,
            across: ["rate", "timeout"].map(|of| of.parse().unwrap()).to_vec(),
            side_by_side,
            limits: holds::LIMITS.iter().map(|(limit, _)| limit.parse().unwrap()).collect(),
            ..compare::Request::default()
        };
        let found = compare::compare(&request).unwrap().comparison;
        given_up += holds::compared(of, runs, &found);
    }
    given_up
}

#[test]
fn what_a_report_of_a_generated_run_withholds_is_no_number_in_a_comparison() {
    let given_up = Cell::new(0);
    drawing(SUMS, &(any_run(), any_run()), |(mut first, mut second), home| {
        (first.set, second.set) = (None, None);
        for (one, other) in second.series.iter_mut().zip(&first.series) {
            one.definition = other.definition;
        }
        let paths = ["first", "second"].map(|name| home.join(name));
        let [one, other] = [&*paths[0], &*paths[1]];
        let [a, b] = [written(&first, one, 1), written(&second, other, 2)];
        let mut found = compared_holds("with itself", [one, one], [&a, &a]);
        found += compared_holds("with another", [one, other], [&a, &b]);
        found += compared_holds("another with it", [other, one], [&b, &a]);
        given_up.set(given_up.get() + found);
    });
    assert!(given_up.get() > 100, "{} percentiles were withheld", given_up.get());
}

/// Samples of a series. What skipped no wake-up has one row for both.
fn samples(run: &Run, name: &str) -> u64 {
    let of = |name: &str| run.series.iter().find(|series| series.name == name).map(|of| of.n);
    let raw = (name == "wake-corrected").then(|| of("wake"));
    of(name).or(raw.flatten()).unwrap_or(0)
}

#[test]
fn the_sum_of_two_generated_runs_has_what_both_have_and_holds_together() {
    drawing(SUMS, &(any_run(), any_run()), |(mut first, mut second), home| {
        // A set of threads adds up to nothing. Series of one name are of one kind.
        (first.set, second.set) = (None, None);
        for (one, other) in second.series.iter_mut().zip(&first.series) {
            one.definition = other.definition;
        }
        let paths = ["first", "second"].map(|name| home.join(name));
        let both = [written(&first, &paths[0], 1), written(&second, &paths[1], 2)];
        let request = Request {
            directories: paths.to_vec(),
            across: ["rate", "timeout"].map(|of| of.parse().unwrap()).to_vec(),
            tables: true,
            table_bytes: TABLE_BYTES,
            ..Request::default()
        };
        let into = home.join("sum");
        let sum = merge(&request, &into).unwrap().run;
        holds::run("sum", &sum);
        holds::causes("sum", &sum);
        let all = |of: &dyn Fn(&Run) -> u64| both.iter().map(of).sum::<u64>();
        for series in &sum.series {
            assert_eq!(series.n, all(&|run| samples(run, &series.name)), "{}", series.name);
        }
        let gaps = |run: &Run| run.gaps.iter().map(|of| of.gaps).sum();
        let lost = |run: &Run| run.gaps.iter().map(|of| of.lost.0).sum();
        let sent = |run: &Run| run.flows.iter().map(|of| of.packets.sent).sum();
        let woken = |run: &Run| run.wakes.iter().map(|of| of.woken).sum();
        let counts: [&dyn Fn(&Run) -> u64; 4] = [&gaps, &lost, &sent, &woken];
        for (at, count) in counts.into_iter().enumerate() {
            assert_eq!(count(&sum), all(count), "count {at}");
        }
        let text = render(&sum, Style { width: holds::WIDE, ..Style::default() });
        holds::withheld("sum", &sum, &text);
        let directory = RunDir::open(&into).unwrap();
        let page = whylate_report::html::render(&directory, &sum);
        for gaps in &sum.gaps {
            let label = sum.thread_name(gaps);
            assert!(text.contains(&label) && page.contains(&label), "{label}: {text}");
        }
        let read = directory.read_run().unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&sum).unwrap());
        compared_holds("sum with itself", [&into, &into], [&sum, &sum]);
        compared_holds("sum with a part", [&into, &paths[0]], [&sum, &both[0]]);
    });
}
