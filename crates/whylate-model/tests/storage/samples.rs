//! Runs to store: one of everything, and any.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whylate_model::cause::{
    Cause, CauseTotal, Coverage, Part, PriorityClass, Rule, Sender, SenderTotal, Validation,
    WorstGap,
};
use whylate_model::digest::Digest;
use whylate_model::event::{Event, EventKind, Softirq};
use whylate_model::foreign::{ForeignProcess, ForeignThread};
use whylate_model::gap::{GapKind, RseqWord};
use whylate_model::host::{Fingerprint, Knob};
use whylate_model::load::{LoadFacts, LoadPoint};
use whylate_model::origin::{Measure, Origin, Share, Spread};
use whylate_model::run::{
    Anchor, Capture, ClockFacts, Closure, Confidence, CountingCost, CpuOffset, CpuSteal, Drift,
    Evidence as RunEvidence, FORMAT_VERSION, Finding, FrequencySource, GapSummary, LoopKind, Moved,
    MovedOff, ProcDelta, Rate, Run, RunState, Segment, SelfTest, SelfTestKind, TimeShare,
    TimeWeighted, TraceFacts, Verdict,
};
use whylate_model::series::{
    Censored, Class, Definition, Denominator, Quantile, Series, Snr, Stationarity, Tail,
};
use whylate_model::settings::{Placed, Placement, Policy, Setting, Settings};
use whylate_model::threads::{
    ActivationSummary, CpuTime, Deadlines, JobDemand, Miss, MissCause, MissGap, PhaseSummary,
    RuntimeSummary, StepTime, SwitchCounts, TakenFrom, ThreadSummary,
};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};

use crate::happened::any_event;

/// Load with something in every field.
fn load() -> LoadFacts {
    LoadFacts {
        load: "net:udp".to_owned(),
        what: "UDP over loopback, received on CPU 1".to_owned(),
        amount: 199_990,
        unit: "datagrams".to_owned(),
        time: Nanos(10_000_000_001),
        offered: Some(200_000),
        lost: Some(10),
        course: vec![LoadPoint { time: Nanos(5_000_000_000), amount: 99_990 }],
        ended_early: true,
        notes: vec!["held back by its bound".to_owned()],
    }
}

/// A thread of a set with something in every field.
fn thread() -> ThreadSummary {
    let cause = Cause::Host;
    let taken = TakenFrom {
        threads_ns: 1e6,
        waking_ns: 7.5,
        interrupts_ns: 2.5,
        host_ns: 0.1,
        blocked_ns: 0.25,
        away_ns: 0.5,
        unknown_ns: 0.0,
    };
    let miss = Miss {
        job: 7,
        release: Ticks(100),
        deadline: Ticks(200),
        done: Some(Ticks(250)),
        skipped: false,
        cause: Some(cause.clone()),
        demand: Some(JobDemand { asked_ns: Nanos(40), left_over_ns: Nanos(20) }),
        taken,
        gap: Some(MissGap {
            start: Ticks(120),
            length: Nanos(30),
            cause: cause.clone(),
            kind: GapKind::Dispatch,
        }),
    };
    ThreadSummary {
        name: "audio".to_owned(),
        workload: "PERIODIC 3ms 8ms".to_owned(),
        timer: "clock_nanosleep absolute".to_owned(),
        timer_slack: Some(Nanos(1)),
        policy: "SCHED_FIFO 50".to_owned(),
        reservation: Some("hard, 3.00ms in 8.00ms".to_owned()),
        cpus: vec![CpuId(1)],
        tid: Pid(4_711),
        start: Ticks(100),
        end: Ticks(1_000),
        threshold: TicksDelta(250),
        received: Nanos(400),
        waited: Nanos(300),
        lost: Nanos(200),
        blocks: 12,
        gaps: 11,
        dropped: 1,
        passes: Some(2.5),
        closure: Closure::Holds,
        switches: SwitchCounts { voluntary: 5, involuntary: 6, traced: Some(11), inferred: 10 },
        cpu_time: Some(CpuTime {
            kernel: Nanos(410),
            unswitched: Nanos(10),
            around_switches: Some(Nanos(1)),
            host: Nanos(2),
            residual: -0.002,
        }),
        deadlines: Some(Deadlines {
            hits: 90,
            misses: 10,
            skipped: 2,
            unfinished: 1,
            unrecorded: 2,
            deadline: Some(Nanos(33_000_000)),
            miss_share_interval: Some((0.05, 0.17)),
            causes: vec![
                MissCause { cause, misses: 7 },
                MissCause { cause: Cause::OwnDemand, misses: 2 },
                MissCause { cause: Cause::LeftOver, misses: 1 },
            ],
            unexplained: Some(1),
            first: vec![miss],
            ordinary: Some(taken),
        }),
        overruns: Some(3),
        held_periods: Some(5),
        drift: Some(Nanos(17)),
        skipped_wakeups: 4,
        phases: vec![PhaseSummary {
            name: "decode".to_owned(),
            passes: 3,
            run_asked: Nanos(5),
            run_ns: Some(5.25),
            runtime: Some(RuntimeSummary {
                asked: Nanos(8),
                lasted_ns: Some(9.5),
                received_ns: Some(4.5),
                longest_over: Nanos(2),
            }),
            period_asked: Some(Nanos(40)),
            activations: Some(ActivationSummary {
                count: 3,
                distance_ns: Some(41.5),
                put_off: 1,
                put_off_by: Nanos(4),
                last_late: Nanos(5),
            }),
            length_asked: Some(Nanos(13)),
            period_ns: Some(43.0),
            lost_ns: Some(1.5),
        }],
        steps: Some(StepTime { run: Nanos(16), runtime: Nanos(14), other: Nanos(1) }),
    }
}

/// One of each kind.
fn settings() -> Settings {
    let cpus = || vec![CpuId(1), CpuId(3)];
    let all: [(&str, Setting); 11] = [
        ("duration", Nanos(1).into()),
        ("delays", vec![Nanos(1), Nanos(u64::MAX)].into()),
        ("records", u64::MAX.into()),
        ("rate", Setting::RatePerS(0.1)),
        ("size", Setting::SizeBytes(64)),
        ("lock memory", true.into()),
        ("housekeeping", cpus().into()),
        ("policy", vec![Policy::Ordinary, Policy::Fifo { priority: 99 }].into()),
        ("client", Placed { cpus: cpus(), policy: Policy::Ordinary }.into()),
        ("placement", Placement::Floating { threads: 2, cpus: cpus() }.into()),
        ("loop", "chain".into()),
    ];
    all.into_iter().map(|(name, setting)| (name.to_owned(), setting)).collect()
}

/// A run with something in every field.
pub(crate) fn run() -> Run {
    Run {
        format_version: FORMAT_VERSION,
        tool_version: "0.1.0".to_owned(),
        command_line: vec!["whylate".to_owned(), "gaps".to_owned()],
        question: "What did a busy thread not get?".to_owned(),
        seed: u64::MAX,
        state: RunState::Complete,
        host: host(),
        clock: clock(),
        settings: settings(),
        series: vec![series()],
        gaps: vec![summary()],
        threads: vec![thread()],
        causes: vec![CauseTotal {
            cause: Cause::Interrupt { name: "local_timer".to_owned() },
            cpu: Some(CpuId(1)),
            gaps: 23,
            parts: 24,
            lost_ns: 1234.5,
            share_of_lost: 0.25,
            share_of_elapsed: 1e-7,
            longest: Nanos(2_500),
        }],
        coverage: Some(Coverage { by_events: 0.9, by_residuals: 0.075, by_nothing: 0.025 }),
        worst: vec![worst()],
        senders: vec![SenderTotal {
            comm: "ksoftirqd/0".to_owned(),
            from: CpuId(0),
            to: CpuId(1),
            cause: Cause::Softirq { vector: Softirq::NetRx },
            count: 3,
            lost_ns: 0.1,
        }],
        moved_off: vec![MovedOff {
            what: Moved::Interrupts,
            moved: 3,
            refused: 1,
            told: vec!["moved 3 interrupts off cpus 1".to_owned()],
        }],
        evidence: evidence(),
        findings: vec![Finding {
            rule: Rule::R9,
            cpu: None,
            text: "a cluster every 4 ms".to_owned(),
            confidence: Confidence::Likely,
        }],
        validation: Some(Validation { switch_as_switch: 500, ..Validation::default() }),
        selftest: Some(SelfTest { kinds: vec![selftest_kind()], ..SelfTest::default() }),
        warnings: warnings(),
        verdict: Verdict::Untrustworthy { reasons: vec!["records were dropped".to_owned()] },
        segments: vec![segment("gaps-0001.parquet")],
        log_bytes: Some(4_096),
        log_digest: Some(Digest::of(b"log")),
        captures: vec![Capture {
            file: "tap-0001.pcapng".to_owned(),
            bytes: 3,
            digest: Digest::of(b"tap"),
        }],
        origins: vec![origin()],
        spreads: vec![
            Spread {
                series: "gap".to_owned(),
                of: Measure::Quantile { percent: 99.9 },
                value: 64_000.0,
                within: Some((60_000.0, 70_000.0)),
                between: None,
                ratio: None,
            },
            Spread {
                series: "gap".to_owned(),
                of: Measure::Rate { at_least: Nanos(1_000) },
                value: 12.0,
                within: Some((11.0, 13.0)),
                between: Some((2.0, 22.0)),
                ratio: Some(100.5),
            },
        ],
        foreign_threads: foreign_threads(),
        prediction: None,
        reflected: None,
        backends: None,
        forward: None,
        delay: None,
        watched: None,
        calibration: None,
        calibration_parts: None,
        device: None,
        files: whylate_model::trust::Files::default(),
        wakes: Vec::new(),
        loads: vec![load()],
        flows: Vec::new(),
        switch_cost: None,
    }
}

fn origin() -> Origin {
    Origin {
        directory: "host-1/monday".to_owned(),
        tool_version: "0.1.0".to_owned(),
        command_line: vec!["whylate".to_owned()],
        question: "What did it not get?".to_owned(),
        seed: 3,
        state: RunState::Stopped,
        host: host(),
        clock: clock(),
        settings: BTreeMap::from([("loop".to_owned(), "chain".into())]),
        series: vec![Share {
            series: "gap".to_owned(),
            recorded_as: "gap-cpu1".to_owned(),
            n: 12,
            left_out: 3,
            p50: Some(Nanos(120)),
            p99: None,
            p999: None,
            max: Some(Nanos(64_000_000)),
            elapsed: Some(Nanos::SECOND),
            lost_share: Some(0.064),
            lost_share_interval: Some((0.06, 0.07)),
            threshold: Some(Nanos(110)),
            period_ns: Some(8.5),
            rates: summary().rates,
            quantiles: series().quantiles,
            trust: None,
        }],
        worst: vec![worst()],
        warnings: vec![Warning::Interrupted],
        verdict: Verdict::Pending,
        doubts: vec!["the time in the box has no bounds".to_owned()],
        segments: vec![segment("gaps-0002.parquet")],
        loads: vec![load()],
        switch_cost: None,
        traced: Some(true),
    }
}

pub(crate) fn segment(file: &str) -> Segment {
    Segment {
        file: file.to_owned(),
        rows: 7,
        from: Ticks(100),
        to: Ticks(200),
        bytes: 4096,
        digest: Some(Digest::of(file.as_bytes())),
    }
}

/// One warning of every kind.
pub(crate) fn warnings() -> Vec<Warning> {
    let text = || "why".to_owned();
    vec![
        Warning::TapDisagrees {
            flow: "rtt".to_owned(),
            requests: 40,
            of: 800,
            largest: Nanos(2_500),
            within: Nanos(82),
        },
        Warning::NoiseBelowThreshold { cpu: CpuId(1), share: -0.012 },
        Warning::RecordsDropped { cpu: CpuId(1), dropped: 9 },
        Warning::JobsUnrecorded { thread: "audio".to_owned(), records: 3 },
        Warning::TraceLost { cpu: CpuId(1), events: Some(3) },
        Warning::TraceLost { cpu: CpuId(1), events: None },
        Warning::NoSenders {
            reason: "busy".to_owned(),
            remedy: "Wait until it has ended.".to_owned(),
        },
        Warning::ActionFailed { what: "marker: not permitted".to_owned() },
        Warning::TraceLeftOff,
        Warning::CausesIncomplete { gaps_forced: 2, sends: 3 },
        Warning::NoKernelTrace { reason: text(), remedy: "Run as root.".to_owned() },
        Warning::RseqUnusable { reason: text() },
        Warning::FrequencyFromRegressionOnly,
        Warning::FrequencyDisagreement { ppm: 12.5 },
        Warning::HostChanged { what: text() },
        Warning::NoHousekeepingCpu,
        Warning::MemoryNotLocked { reason: text() },
        Warning::PolicyRefused { reason: text() },
        Warning::RtThrottling { runtime: Nanos(950_000_000), period: Nanos::SECOND },
        Warning::ThresholdNearPeriod { threshold: Nanos(20), period: Nanos(9) },
        Warning::SegmentsRotated { deleted: 2 },
        Warning::SetStarved { cpu: CpuId(1), patience: Nanos(3_000_000_000) },
        Warning::ExecutionCut { kept: 300_000, lost: 7 },
        Warning::WritingFailed { reason: text() },
        Warning::Interrupted,
        Warning::AnotherRun { pid: 4321, same_cpu: false },
        Warning::AnotherRun { pid: 4322, same_cpu: true },
        Warning::NotStationary { series: text(), test: text(), p_value: 1e-9 },
        Warning::IdleStatesNotHeld { reason: text() },
        Warning::Guard { what: text() },
        Warning::PacketsUnlogged { records: 9 },
        Warning::MessagesRefused { flow: text(), refused: 3, reason: text() },
    ]
}

fn host() -> Fingerprint {
    Fingerprint {
        hostname: "lab1".to_owned(),
        microcode: Knob::Value("0x1".to_owned()),
        hypervisor: Some("KVM".to_owned()),
        cpus_online: vec![CpuId(0), CpuId(1)],
        memory_bytes: 1 << 34,
        knobs: BTreeMap::from([("nosmt".to_owned(), Knob::Unknown)]),
        ..Fingerprint::default()
    }
}

fn clock() -> ClockFacts {
    ClockFacts {
        counter: "tsc".to_owned(),
        hz: Hertz(2_596_120_000.125),
        hz_bound_ppm: 0.01,
        sources: vec![FrequencySource {
            name: "regression".to_owned(),
            hz: Hertz(2_596_120_001.0),
            bound_ppm: Some(0.02),
            independent: false,
            difference_ppm: -0.003,
        }],
        epoch: Ticks(1 << 60),
        anchors: vec![Anchor {
            ticks: Ticks(1 << 60),
            realtime_ns: 1_700_000_000_000_000_000,
            raw_ns: 99,
            bound_ns: 12.0,
        }],
        read_cost_min_ns: 8.1,
        read_cost_median_ns: 8.9,
        resolution_ns: 0.4,
        drift: Some(Drift { ppm_per_s: 0.01, bound_ppm_per_s: 0.002 }),
        jitter_ns: Some(12.5),
        cross_cpu: vec![CpuOffset {
            reference: CpuId(0),
            cpu: CpuId(1),
            offset_ticks: -17,
            bound: TicksDelta(90),
            offset_ticks_at_end: Some(i64::MIN),
        }],
        gap_recording_ns: Some(31.0),
        sample_recording_ns: None,
    }
}

fn series() -> Series {
    Series {
        name: "gap-cpu1".to_owned(),
        label: "gaps of CPU 1".to_owned(),
        paper_row: Some("1c".to_owned()),
        from: "last reading".to_owned(),
        to: "first reading".to_owned(),
        clock: "tsc".to_owned(),
        definition: Definition::Gap,
        resolution_ns: 0.4,
        n: 10_000,
        lost: 1,
        censored: Some(Censored { count: 1, above: Nanos(1_000_000_000) }),
        min: Some(Nanos(110)),
        max: Some(Nanos(64_000_000)),
        mean_ns: Some(1000.25),
        quantiles: vec![Quantile {
            percent: 99.9,
            value: Some(Nanos(120_000)),
            low: None,
            high: None,
            n_eff: 9999.5,
        }],
        class: Some(Class::Ugly),
        class_by: Some(Nanos(120_000)),
        tail: Some(Tail { count: 2, share: 0.0065, denominator: Denominator::Elapsed }),
        snr: Some(Snr { by_count: Some(999.0), by_time: None }),
        stationarity: Some(Stationarity {
            p50: vec![Some(Nanos(1)), None],
            p99: vec![],
            trend_p50: Some(0.5),
            trend_p99: None,
            blocks_differ: Some(1.0),
        }),
        trust: None,
    }
}

fn summary() -> GapSummary {
    GapSummary {
        cpu: CpuId(1),
        series: "gap-cpu1".to_owned(),
        loop_kind: LoopKind::Chain,
        start: Ticks(1),
        end: Ticks(2),
        iterations: 1 << 40,
        threshold: TicksDelta(312),
        threshold_rule: "8 x p99.9 of the warm-up".to_owned(),
        period_ticks: 25.5,
        period_spread_ticks: (25.4, 25.6),
        blocks: 1000,
        gaps: 23,
        dropped: 0,
        migrations: 1,
        gap_ticks: TicksDelta(9),
        recording_ticks: TicksDelta(8),
        unseen_ticks: TicksDelta(0),
        closure: Closure::Broken("two gaps overlap".to_owned()),
        noise_below_threshold: -0.001,
        lost: Nanos(77),
        lost_share: 0.001,
        lost_share_interval: Some((0.0009, 0.0011)),
        rates: vec![Rate {
            at_least: Nanos(1_000),
            count: 0,
            per_second: 0.0,
            interval: (0.0, 0.0499),
        }],
        time_weighted: vec![TimeWeighted { percent: 99.9, value: Nanos(0) }],
        time_shares: vec![TimeShare { at_least: Nanos(1_000), of_elapsed: 0.1, of_inside: 0.2 }],
        counting: Some(CountingCost { period_with: 45.0, period_without: 25.5 }),
        interval_lost_ns: vec![0.0, 1.5, 2e9],
    }
}

fn foreign_threads() -> Vec<ForeignThread> {
    let process = ForeignProcess { pid: Pid(7), name: "stress-ng".to_owned() };
    let thread = |tid, process| ForeignThread { comm: "stress".to_owned(), tid: Pid(tid), process };
    vec![thread(8, Some(process)), thread(9, None)]
}

fn worst() -> WorstGap {
    WorstGap {
        start: Ticks(5),
        length: Nanos(64_000_000),
        cpu_before: CpuId(1),
        cpu_after: CpuId(0),
        cause: Cause::Thread { comm: "stress".to_owned(), class: PriorityClass::RealTime },
        rule: Some(Rule::R1),
        parts: vec![Part {
            start: Ticks(5),
            length: TicksDelta(100),
            cause: Cause::EntryResidual,
            sender: Some(Sender { cpu: CpuId(0), pid: Pid(-1), comm: String::new() }),
        }],
        events: vec![Event {
            ticks: Ticks(6),
            cpu: CpuId(1),
            pid: Pid(0),
            kind: EventKind::SoftirqEntry { vector: Softirq::Unknown(99) },
        }],
        rseq: RseqWord::Cleared,
        involuntary_switches: Some(1),
    }
}

fn evidence() -> RunEvidence {
    RunEvidence {
        trace: Some(TraceFacts { clock: "x86-tsc".to_owned(), ..TraceFacts::default() }),
        messages: None,
        rseq: true,
        counted_over: Some(Nanos(16_000_000_000)),
        proc_deltas: vec![ProcDelta { name: "interrupts LOC".to_owned(), cpu: CpuId(1), count: 1 }],
        steal_ns: Some(0.0),
        steal_by_cpu: vec![CpuSteal { cpu: CpuId(1), steal_ns: 0.0 }],
        smi_count: None,
    }
}

fn selftest_kind() -> SelfTestKind {
    SelfTestKind {
        kind: "ipi".to_owned(),
        injected: 503,
        found: 503,
        ascribed: 503,
        ascribed_rightly: 500,
        named_right: 499,
        with_trace: true,
        length_error_ns: None,
        length_error_p99_ns: Some(120.0),
    }
}

/// Any finite number that JSON can hold.
pub(crate) fn finite() -> impl Strategy<Value = f64> {
    proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO
}

/// Runs whose numbers, texts and lists are anything.
pub(crate) fn any_run() -> impl Strategy<Value = Run> {
    let texts = vec(any::<String>(), 0..4);
    let events = vec(any_event(), 0..4);
    let numbers = vec(finite(), 12);
    (texts, events, numbers, any::<[u64; 4]>(), vec(option::of(any::<u64>()), 0..9)).prop_map(
        |(texts, events, numbers, whole, blocks)| {
            let mut run = run();
            run.settings.extend(texts.iter().map(|text| (text.clone(), text.clone().into())));
            run.verdict = Verdict::Untrustworthy { reasons: texts.clone() };
            run.warnings.extend(texts.iter().map(|text| Warning::Guard { what: text.clone() }));
            run.command_line = texts;
            run.worst[0].events = events;
            run.seed = whole[0];
            run.worst[0].length = Nanos(whole[1]);
            run.clock.epoch = Ticks(whole[2]);
            run.clock.hz = Hertz(numbers[0].abs().max(f64::MIN_POSITIVE));
            run.clock.anchors[0].realtime_ns = whole[3];
            run.causes[0].lost_ns = numbers[1].abs();
            run.gaps[0].period_spread_ticks = (numbers[2], numbers[3]);
            run.gaps[0].interval_lost_ns = numbers;
            let stationarity = run.series[0].stationarity.as_mut().unwrap();
            stationarity.p50 = blocks.into_iter().map(|block| block.map(Nanos)).collect();
            run
        },
    )
}
