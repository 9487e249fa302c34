//! Whole runs: planted interruptions of two CPUs, handed over late and in batches, and what comes
//! out of attribution, validation and totals.

use proptest::prelude::*;
use whylate_model::cause::{Cause, PriorityClass, Rule, Validation};
use whylate_model::event::{Event, EventKind, Softirq};
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::{CpuId, Nanos, Pid, Ticks, TicksDelta};

use super::{CPU, Dice, OWN, Script, context, gap, hog, interrupt, own, task, thread};
use crate::attribute::{Attributed, Attributor, Basis, EventCounts, Limits};
use crate::context::{Context, Measured, Placement};
use crate::error::CauseError;
use crate::naming::OTHERS;
use crate::rules::{Corroboration, Standing};
use crate::totals::{Beside, Totals};
use crate::validate;

const OTHER_CPU: CpuId = CpuId(3);
const OTHER: Pid = Pid(101);
const END: Ticks = Ticks(4_000_000_000);

/// The kinds of interruption that are planted, and what each must be named.
const KINDS: usize = 6;

fn truth(kind: usize) -> Cause {
    match kind {
        0 => interrupt("local_timer"),
        1 => interrupt("call_function_single"),
        2 => thread("hog", PriorityClass::Ordinary),
        3 => Cause::PageFault,
        4 => Cause::Signal { signal: 10 },
        _ => Cause::Host,
    }
}

/// One CPU's part of a planted run.
struct Lane {
    cpu: CpuId,
    gaps: Vec<Gap>,
    kinds: Vec<usize>,
    events: Vec<Event>,
    sends: Vec<Event>,
}

/// Interruptions of every kind about every 3 ms, some microseconds long.
fn plant(cpu: CpuId, pid: Pid, seed: u64) -> Lane {
    let mut dice = Dice(seed);
    let own = task(pid.0, "whylate", 120);
    let mut lane =
        Lane { cpu, gaps: Vec::new(), kinds: Vec::new(), events: Vec::new(), sends: Vec::new() };
    let mut at = 1_000_000;
    loop {
        at += 1_000_000 + dice.below(4_000_000);
        if at + 100_000 > END.0 {
            return lane;
        }
        let kind = dice.below(KINDS as u64) as usize;
        let (from, length) = (at + 2_000, 2_000 + dice.below(8_000));
        let to = from + length;
        let script = Script::on(cpu, own.clone());
        let script = match kind {
            0 => script.vector("local_timer", from, to).softirq(Softirq::Timer, to + 50, to + 150),
            1 => {
                let sent = EventKind::IpiSend { targets: vec![cpu], callsite: 1, callback: 9 };
                let (ticks, pid) = (Ticks(at + 500), Pid(55));
                lane.sends.push(Event { ticks, cpu: CpuId(0), pid, kind: sent });
                script.vector("call_function_single", from, to)
            }
            2 => script
                .vector("reschedule", from - 600, from - 500)
                .switch(from, &hog())
                .switch(to, &own),
            3 => script.at(from, EventKind::PageFault { user: true, address: 1, ip: 2 }),
            4 => script.at(from, EventKind::SignalDeliver { signal: 10 }),
            _ => script,
        };
        let rseq = if matches!(kind, 2 | 4) { RseqWord::Cleared } else { RseqWord::Set };
        let involuntary_switches = (rseq == RseqWord::Cleared).then_some(u32::from(kind == 2));
        let evidence = Evidence { rseq, involuntary_switches, in_recording: false };
        let end = Ticks(to + 1_000);
        lane.gaps.push(Gap {
            start: Ticks(at),
            end,
            resumed: Ticks(end.0 + 25),
            cpu_before: cpu,
            cpu_after: cpu,
            kind: GapKind::Interruption,
            evidence,
        });
        lane.kinds.push(kind);
        lane.events.extend(script.events);
        at = end.0;
    }
}

fn two_cpus() -> (Context, [Lane; 2]) {
    let mut context = context(true);
    context.threads.push(Measured {
        index: 1,
        pid: OTHER,
        cpu: OTHER_CPU,
        placement: Placement::Pinned,
        period_ticks: 10.0,
        always_runs: true,
        slack: TicksDelta(0),
    });
    context.learn_name(Pid(55), "storm");
    (context, [plant(CPU, OWN, 11), plant(OTHER_CPU, OTHER, 12)])
}

/// Hands a run over in batches of random sizes, gaps and events with different delays.
fn stream(context: &Context, lanes: &[Lane], seed: u64) -> (Vec<Attributed>, Attributor) {
    let mut dice = Dice(seed);
    let mut attributor = Attributor::new(context.clone(), Limits::default());
    attributor.trace_sends(CpuId(0));
    for (thread, lane) in lanes.iter().enumerate() {
        attributor.trace_cpu(lane.cpu);
        attributor.begin(thread as u16, Ticks(1_000_000)).unwrap();
    }
    let mut out = Vec::new();
    let (mut gaps_at, mut events_at, mut sends_at) =
        (vec![0; lanes.len()], vec![0; lanes.len()], vec![0; lanes.len()]);
    let mut now = 0;
    while now < END.0 {
        now += dice.below(200_000_000);
        for (thread, lane) in lanes.iter().enumerate() {
            let upto = |delay: u64| Ticks(now.saturating_sub(delay));
            let (for_gaps, for_events) =
                (upto(dice.below(90_000_000)), upto(dice.below(90_000_000)));
            let to = lane.gaps.partition_point(|gap| gap.resumed <= for_gaps).max(gaps_at[thread]);
            attributor.push_gaps(thread as u16, &lane.gaps[gaps_at[thread]..to]).unwrap();
            gaps_at[thread] = to;
            let to = lane.events.partition_point(|e| e.ticks <= for_events).max(events_at[thread]);
            attributor.push_events(lane.cpu, lane.events[events_at[thread]..to].iter().cloned());
            events_at[thread] = to;
            attributor.events_complete(lane.cpu, for_events);
            let to = lane.sends.partition_point(|e| e.ticks <= Ticks(now)).max(sends_at[thread]);
            attributor.push_sends(lane.sends[sends_at[thread]..to].iter().cloned());
            sends_at[thread] = to;
        }
        attributor.sends_complete(CpuId(0), Ticks(now));
        attributor.drain(&mut |gap| out.push(gap));
    }
    for (thread, lane) in lanes.iter().enumerate() {
        attributor.push_gaps(thread as u16, &lane.gaps[gaps_at[thread]..]).unwrap();
        attributor.push_events(lane.cpu, lane.events[events_at[thread]..].iter().cloned());
        attributor.end(thread as u16, END).unwrap();
    }
    attributor.finish(&mut |gap| out.push(gap));
    (out, attributor)
}

fn counts(attributor: &Attributor) -> EventCounts {
    let mut all = EventCounts::default();
    attributor.event_counts().values().for_each(|counts| all.add(counts));
    all
}

#[test]
fn every_planted_interruption_is_found_and_named_whatever_the_batches() {
    let (context, lanes) = two_cpus();
    for seed in 1..6 {
        let (out, attributor) = stream(&context, &lanes, seed);
        for (thread, lane) in lanes.iter().enumerate() {
            let mine: Vec<_> = out.iter().filter(|gap| usize::from(gap.thread) == thread).collect();
            assert_eq!(mine.len(), lane.gaps.len());
            let mut named = [0_usize; KINDS];
            for ((gap, planted), kind) in mine.iter().zip(&lane.gaps).zip(&lane.kinds) {
                assert_eq!(gap.gap, *planted, "out of order");
                assert_eq!(gap.cause, truth(*kind));
                assert_eq!(gap.basis, Basis::Trace);
                assert_eq!(gap.switched, Some(*kind == 2));
                let by_sender = gap.arrivals.iter().filter(|a| a.sender.comm == "storm").count();
                assert_eq!((by_sender, gap.sends.len()), if *kind == 1 { (1, 1) } else { (0, 0) });
                named[*kind] += 1;
            }
            assert!(named.iter().all(|count| *count > 100), "{named:?}");
        }
        let all = counts(&attributor);
        let events: usize = lanes.iter().map(|lane| lane.events.len()).sum();
        assert_eq!(all, EventCounts { inside: events as u64, ..EventCounts::default() });
        assert_eq!(attributor.shed(), whylate_model::run::Shed::default());
    }
}

#[test]
fn events_shifted_by_1_4_ms_fall_outside_the_gaps() {
    let (context, mut lanes) = two_cpus();
    for lane in &mut lanes {
        lane.events.iter_mut().for_each(|event| event.ticks.0 += 1_400_000);
    }
    let (out, attributor) = stream(&context, &lanes, 1);
    let share = counts(&attributor).share_inside().unwrap();
    assert!(share < 0.01, "{share}");
    let hosts = out.iter().filter(|gap| gap.cause == Cause::Host).count();
    assert!(hosts as f64 > 0.8 * out.len() as f64 * 5.0 / 6.0, "{hosts} of {}", out.len());
}

#[test]
fn evidence_b_is_judged_by_the_trace() {
    let (context, mut lanes) = two_cpus();
    let switches = lanes.iter().flat_map(|lane| &lane.kinds).filter(|kind| **kind == 2).count();
    let all: usize = lanes.iter().map(|lane| lane.gaps.len()).sum();
    let validation = validate::validate(&stream(&context, &lanes, 1).0);
    let right = Validation {
        switch_as_switch: switches as u64,
        none_as_none: (all - switches) as u64,
        ..Validation::default()
    };
    assert_eq!(validation, right);

    // Evidence spoilt on purpose shows in each cell.
    let lane = &mut lanes[0];
    let of = |wanted: usize| lane.kinds.iter().position(|kind| *kind == wanted).unwrap();
    let (hog_gap, signal_gap, timer_gap) = (of(2), of(4), of(0));
    lane.gaps[hog_gap].evidence.involuntary_switches = Some(0);
    lane.gaps[signal_gap].evidence.involuntary_switches = Some(1);
    lane.gaps[timer_gap].evidence = Evidence { rseq: RseqWord::Cleared, ..Evidence::default() };
    let spoilt = validate::validate(&stream(&context, &lanes, 1).0);
    assert_eq!(
        (spoilt.switch_as_none, spoilt.none_as_switch, spoilt.undecided),
        (1, 1, 1),
        "{spoilt:?}"
    );
    assert_eq!(spoilt.switch_as_switch, right.switch_as_switch - 1);
    assert_eq!(spoilt.none_as_none, right.none_as_none - 2);
}

#[test]
fn lost_time_is_shared_out_over_the_causes_and_sums_up() {
    let (context, lanes) = two_cpus();
    let (out, _) = stream(&context, &lanes, 1);
    let mut totals = Totals::new(7);
    for gap in &out {
        totals.add(gap, &context);
    }
    let elapsed = [(CPU, Nanos(END.0)), (OTHER_CPU, Nanos(END.0))];
    let summary = totals.summary(&context, &elapsed);
    let lost: f64 = out.iter().map(|gap| gap.gap.length().0 as f64 - 10.0).sum();

    let rows = |cpu| summary.causes.iter().filter(move |row| row.cpu == cpu);
    for cpu in [None, Some(CPU), Some(OTHER_CPU)] {
        let share: f64 = rows(cpu).map(|row| row.share_of_lost).sum();
        assert!((share - 1.0).abs() < 1e-9, "{share}");
    }
    let sum: f64 = rows(None).map(|row| row.lost_ns).sum();
    assert!((sum / lost - 1.0).abs() < 1e-9);
    let of_elapsed: f64 = rows(None).map(|row| row.share_of_elapsed).sum();
    assert!((of_elapsed / (lost / (2.0 * END.0 as f64)) - 1.0).abs() < 1e-9);
    let gaps: u64 = rows(None).map(|row| row.gaps).sum();
    assert_eq!(gaps, out.len() as u64);

    let hog_row = rows(None).find(|row| row.cause == truth(2)).unwrap();
    let hogs = out.iter().filter(|gap| gap.cause == truth(2));
    assert_eq!(hog_row.gaps, hogs.clone().count() as u64);
    assert_eq!(hog_row.parts, hog_row.gaps);
    assert_eq!(hog_row.longest.0, hogs.map(|gap| gap.gap.length().0).max().unwrap());

    let coverage = summary.coverage.unwrap();
    let all = coverage.by_events + coverage.by_residuals + coverage.by_nothing;
    assert!((all - 1.0).abs() < 1e-9, "{coverage:?}");
    let host_row = rows(None).find(|row| row.cause == Cause::Host).unwrap();
    assert!((coverage.by_nothing - host_row.share_of_lost).abs() < 1e-9);

    let lengths: Vec<_> = summary.worst.iter().map(|gap| gap.length.0).collect();
    let mut longest: Vec<_> = out.iter().map(|gap| gap.gap.length().0).collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(lengths, longest[..7]);

    let sent = out.iter().filter(|gap| gap.cause == truth(1)).count() as u64;
    let counted: u64 = summary.senders.iter().map(|row| row.count).sum();
    assert_eq!((summary.senders.len(), counted), (2, sent));
    assert!(summary.senders.iter().all(|row| row.comm == "storm" && row.from == CpuId(0)));
}

#[test]
fn a_worst_gap_carries_its_events_and_the_sends_that_led_to_them() {
    let (context, lanes) = two_cpus();
    let (out, _) = stream(&context, &lanes, 1);
    let mut totals = Totals::new(out.len());
    for gap in &out {
        totals.add(gap, &context);
    }
    let worst = totals.summary(&context, &[]).worst;
    let sent = worst.iter().find(|gap| gap.cause == truth(1)).unwrap();
    let kinds: Vec<_> = sent.events.iter().map(|event| &event.kind).collect();
    assert!(
        matches!(
            kinds[..],
            [
                EventKind::IpiSend { .. },
                EventKind::VectorEntry { .. },
                EventKind::VectorExit { .. }
            ]
        ),
        "{kinds:?}"
    );
}

#[test]
fn the_rules_for_one_thread_speak_of_a_run() {
    let context = context(true);
    let mut totals = Totals::new(1);
    let mut attributor = Attributor::new(context.clone(), Limits::default());
    attributor.trace_cpu(CPU);
    attributor.begin(0, Ticks(0)).unwrap();
    let mut dice = Dice(5);
    let mut hosts = 0;
    for tick in 1..1000 {
        let at = tick * 4_000_000 + dice.below(5_000);
        let script = Script::new().vector("local_timer", at + 500, at + 5_000);
        attributor.push_events(CPU, script.events);
        attributor.push_gaps(0, &[gap(at, at + 6_000)]).unwrap();
        if dice.below(3) == 0 {
            let at = at + 100_000 + dice.below(3_500_000);
            attributor.push_gaps(0, &[gap(at, at + 5_000)]).unwrap();
            hosts += 1;
        }
    }
    attributor.finish(&mut |gap| totals.add(&gap, &context));
    let corroboration = Corroboration { steal_ns: Some(1.0), smi_count: None };
    let beside = Beside { standing: Standing::RealTime(50), corroboration };
    let findings = totals.findings(&context, beside);
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::R3, Rule::R6, Rule::R8, Rule::R9], "{findings:#?}");
    assert!(findings[2].text.contains(&format!("{hosts} gaps")), "{}", findings[2].text);
    assert!(findings[3].text.contains("250 Hz: the kernel"), "{}", findings[3].text);
}

#[test]
fn events_beside_the_gaps_are_counted_by_what_went_on() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    attributor.begin(0, Ticks(1_000)).unwrap();
    // Before the start, in the gap, in its recording, while running, after the end.
    let at = |ticks| EventKind::WorkStart { function: ticks };
    let ticks = [500, 2_500, 3_010, 3_020, 3_021, 8_999, 9_500];
    let script = ticks.iter().fold(Script::new(), |script, &ticks| script.at(ticks, at(ticks)));
    attributor.push_gaps(0, &[gap(2_000, 3_000)]).unwrap();
    attributor.push_events(CPU, script.events);
    attributor.end(0, Ticks(9_000)).unwrap();
    attributor.finish(&mut drop);
    let expected = EventCounts {
        inside: 1,
        in_recording: 2,
        outside: 2,
        unattended: 2,
        ..EventCounts::default()
    };
    assert_eq!(counts(&attributor), expected);
}

#[test]
fn a_gap_in_the_recording_of_another_has_its_own_events() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    let first = Gap { resumed: Ticks(9_000), ..gap(2_000, 3_000) };
    let mut second = gap(3_000, 9_000);
    second.evidence.in_recording = true;
    attributor.push_events(CPU, Script::new().vector("local_timer", 4_000, 8_000).events);
    attributor.push_gaps(0, &[first, second]).unwrap();
    let mut causes = Vec::new();
    attributor.finish(&mut |gap| causes.push(gap.cause));
    assert_eq!(causes, [Cause::Host, interrupt("local_timer")]);
    assert_eq!(counts(&attributor).inside, 2);
}

#[test]
fn a_gap_waits_until_its_events_and_all_sends_are_complete() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    attributor.trace_sends(CpuId(0));
    attributor.trace_sends(CpuId(1));
    attributor.begin(0, Ticks(0)).unwrap();
    attributor.push_gaps(0, &[gap(2_000, 3_000)]).unwrap();
    let ready = |attributor: &mut Attributor| {
        let mut ready = 0;
        attributor.drain(&mut |_| ready += 1);
        ready
    };
    attributor.sends_complete(CpuId(0), Ticks(3_000));
    attributor.sends_complete(CpuId(1), Ticks(2_999));
    attributor.events_complete(CPU, Ticks(2_999));
    assert_eq!(ready(&mut attributor), 0);
    attributor.events_complete(CPU, Ticks(3_000));
    assert_eq!(ready(&mut attributor), 0);
    attributor.sends_complete(CpuId(1), Ticks(3_000));
    assert_eq!(ready(&mut attributor), 1);
    assert_eq!(attributor.shed().gaps_forced, 0);
}

#[test]
fn a_gap_with_a_change_of_cpu_waits_for_the_events_of_both() {
    let mut context = context(true);
    context.threads[0].placement = Placement::Floating;
    let mut attributor = Attributor::new(context, Limits::default());
    attributor.trace_cpu(CPU);
    attributor.trace_cpu(OTHER_CPU);
    let mut moves = gap(2_000, 3_000);
    moves.cpu_after = OTHER_CPU;
    attributor.push_gaps(0, &[moves]).unwrap();
    let mut ready = 0;
    attributor.events_complete(CPU, Ticks(9_000));
    attributor.drain(&mut |_| ready += 1);
    assert_eq!(ready, 0);
    attributor.events_complete(OTHER_CPU, Ticks(3_000));
    attributor.drain(&mut |_| ready += 1);
    assert_eq!(ready, 1);
}

#[test]
fn a_send_that_an_earlier_gap_answered_names_nobody_in_a_later_one() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    attributor.trace_sends(CpuId(0));
    attributor.begin(0, Ticks(0)).unwrap();
    let kind = EventKind::IpiSend { targets: vec![CPU], callsite: 1, callback: 0 };
    attributor.push_sends([Event { ticks: Ticks(2_050), cpu: CpuId(0), pid: Pid(55), kind }]);
    let script =
        Script::new().vector("reschedule", 2_100, 2_200).vector("reschedule", 5_100, 5_200);
    attributor.push_events(CPU, script.events);
    attributor.push_gaps(0, &[gap(2_000, 3_000), gap(5_000, 6_000)]).unwrap();
    let mut arrivals = Vec::new();
    attributor.finish(&mut |gap| arrivals.push(gap.arrivals.len()));
    assert_eq!(arrivals, [1, 0]);
}

#[test]
fn sends_of_several_cpus_may_come_one_cpu_after_the_other() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    let sent = |ticks, cpu| {
        let kind = EventKind::IpiSend { targets: vec![CPU], callsite: 1, callback: 0 };
        Event { ticks: Ticks(ticks), cpu: CpuId(cpu), pid: Pid(55), kind }
    };
    attributor.push_sends([sent(5_050, 0)]);
    attributor.push_sends([sent(2_050, 1)]);
    let script =
        Script::new().vector("reschedule", 2_100, 2_200).vector("reschedule", 5_100, 5_200);
    attributor.push_events(CPU, script.events);
    attributor.push_gaps(0, &[gap(2_000, 3_000), gap(5_000, 6_000)]).unwrap();
    let mut from = Vec::new();
    attributor.finish(&mut |gap| from.push(gap.arrivals[0].sender.cpu.0));
    assert_eq!(from, [1, 0]);
}

#[test]
fn events_before_a_thread_begins_belong_to_nobody() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    let work = |ticks| Script::new().at(ticks, EventKind::WorkStart { function: 1 }).events;
    attributor.push_events(CPU, work(100));
    attributor.events_complete(CPU, Ticks(200));
    attributor.drain(&mut drop);
    attributor.push_events(CPU, work(300));
    attributor.events_complete(CPU, Ticks(400));
    attributor.drain(&mut drop);
    let expected = EventCounts { unattended: 2, ..EventCounts::default() };
    assert_eq!(counts(&attributor), expected);
}

#[test]
fn a_thread_that_runs_without_gaps_lets_events_go() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    attributor.begin(0, Ticks(0)).unwrap();
    let script = Script::new().at(500, EventKind::WorkStart { function: 1 });
    attributor.push_events(CPU, script.events);
    attributor.ran_until(0, Ticks(1_000)).unwrap();
    attributor.drain(&mut drop);
    assert_eq!(counts(&attributor), EventCounts::default(), "events may still come");
    attributor.events_complete(CPU, Ticks(1_000));
    attributor.drain(&mut drop);
    assert_eq!(counts(&attributor).outside, 1);
}

#[test]
fn losses_of_the_trace_are_not_called_the_hosts_and_leave_validation_undecided() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    attributor.trace_cpu(CPU);
    attributor.push_gaps(0, &[gap(2_000, 3_000), gap(5_000, 6_000)]).unwrap();
    attributor.events_lost(CPU, Ticks(1_500), Ticks(2_500));
    let mut out = Vec::new();
    attributor.finish(&mut |gap| out.push(gap));
    let says: Vec<_> = out.iter().map(|gap| (gap.cause.clone(), gap.basis)).collect();
    assert_eq!(says, [(Cause::TraceLost, Basis::TraceWithLosses), (Cause::Host, Basis::Trace)]);
    let validation = validate::validate(&out);
    assert_eq!((validation.undecided, validation.none_as_none), (1, 1));
}

#[test]
fn without_a_trace_evidence_b_names_the_gaps_at_once() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    let mut switched = gap(5_000, 6_000);
    switched.evidence =
        Evidence { rseq: RseqWord::Cleared, involuntary_switches: Some(1), in_recording: false };
    attributor.push_gaps(0, &[gap(2_000, 3_000), switched]).unwrap();
    let mut out = Vec::new();
    attributor.drain(&mut |gap| out.push(gap));
    let says: Vec<_> = out.iter().map(|gap| (gap.cause.clone(), gap.rule, gap.basis)).collect();
    let expected = [
        (Cause::NotSwitched, Some(Rule::R6), Basis::Thread),
        (Cause::ContextSwitch, Some(Rule::R6), Basis::Thread),
    ];
    assert_eq!(says, expected);
    assert!(out.iter().all(|gap| gap.parts.len() == 1 && gap.switched.is_none()));
    assert_eq!(validate::validate(&out).undecided, 2);
    let context = context(true);
    let mut totals = Totals::new(1);
    for gap in &out {
        totals.add(gap, &context);
    }
    let coverage = totals.summary(&context, &[]).coverage.unwrap();
    assert!((coverage.by_nothing - 1.0).abs() < 1e-12);
}

#[test]
fn what_exceeds_the_limits_is_counted_and_never_called_the_hosts() {
    let limits =
        Limits { events_per_cpu: 8, gaps_per_thread: 2, sends_per_cpu: 2, events_per_gap: 3 };
    let mut attributor = Attributor::new(context(true), limits);
    attributor.trace_cpu(CPU);
    attributor.begin(0, Ticks(0)).unwrap();
    // Gaps whose events never come: all but as many as may wait are handed out.
    let gaps: Vec<_> = (1..6).map(|k| gap(k * 1_000, k * 1_000 + 100)).collect();
    attributor.push_gaps(0, &gaps).unwrap();
    let mut causes = Vec::new();
    attributor.drain(&mut |gap| causes.push(gap.cause));
    assert_eq!(causes, [Cause::TraceLost, Cause::TraceLost, Cause::TraceLost]);
    assert_eq!(attributor.shed().gaps_forced, 3);
    // A gap with more events than are kept or handed out.
    let script = (0..6).fold(Script::new(), |script, k| {
        script.vector("local_timer", 10_000 + k * 100, 10_050 + k * 100)
    });
    attributor.push_events(CPU, script.events);
    attributor.push_gaps(0, &[gap(9_900, 10_700)]).unwrap();
    let mut last = None;
    attributor.finish(&mut |gap| last = Some(gap));
    let last = last.unwrap();
    assert_eq!(last.events.len(), 3);
    assert_eq!(last.basis, Basis::TraceWithLosses);
    let length: u64 = last.parts.iter().map(|part| part.length.0).sum();
    assert_eq!(length, 800);
    let all = counts(&attributor);
    assert_eq!((all.inside + all.dropped, all.dropped), (12, 4));
    assert_eq!(attributor.shed().events_cut, 5);
    let sends = (0..5).map(|k| {
        let kind = EventKind::Wakeup { task: hog(), target: CPU };
        Event { ticks: Ticks(k), cpu: CpuId(0), pid: Pid(1), kind }
    });
    attributor.push_sends(sends);
    assert_eq!(attributor.shed().sends, 3);
}

#[test]
fn a_floating_thread_is_followed_and_the_cpus_it_left_are_not_counted() {
    let mut context = context(true);
    context.threads[0].placement = Placement::Floating;
    let mut attributor = Attributor::new(context, Limits::default());
    attributor.trace_cpu(CPU);
    attributor.trace_cpu(OTHER_CPU);
    attributor.begin(0, Ticks(1_000)).unwrap();
    let mut moves = gap(2_000, 3_000);
    moves.cpu_after = OTHER_CPU;
    attributor.push_gaps(0, &[moves]).unwrap();
    let left = Script::new().switch(2_100, &hog()).vector("local_timer", 5_000, 5_100);
    attributor.push_events(CPU, left.events);
    let joined = Script::on(OTHER_CPU, task(0, "swapper/3", 120))
        .vector("local_timer", 1_500, 1_600)
        .switch(2_900, &own())
        .vector("local_timer", 4_000, 4_100)
        .vector("local_timer", 7_000, 7_100);
    attributor.push_events(OTHER_CPU, joined.events);
    attributor.end(0, Ticks(9_000)).unwrap();
    let mut out = Vec::new();
    attributor.finish(&mut |gap| out.push(gap));
    assert_eq!(out[0].cause, thread("hog", PriorityClass::Ordinary));
    assert_eq!(out[0].switched, Some(true));
    // Beside the gap only the timers of the CPU that the thread had moved to is outside.
    let all = counts(&attributor);
    assert_eq!((all.inside, all.outside, all.unattended), (2, 4, 4), "{all:?}");
}

#[test]
fn a_gap_that_leads_to_an_untraced_cpu_claims_nothing_there() {
    let mut context = context(true);
    context.threads[0].placement = Placement::Floating;
    let mut attributor = Attributor::new(context, Limits::default());
    attributor.trace_cpu(CPU);
    let mut moves = gap(2_000, 3_000);
    moves.cpu_after = CpuId(9);
    attributor.push_gaps(0, &[moves]).unwrap();
    attributor.push_events(CPU, Script::new().vector("reschedule", 2_100, 2_200).events);
    attributor.push_events(CpuId(9), Script::new().vector("reschedule", 2_100, 2_200).events);
    let mut out = Vec::new();
    attributor.finish(&mut |gap| out.push(gap));
    assert_eq!((out[0].cause.clone(), out[0].switched), (Cause::TraceLost, None));
    assert_eq!(attributor.shed().foreign, 2);
}

#[test]
fn two_threads_on_one_cpu_share_the_events_of_their_gaps() {
    let mut context = context(true);
    let second = Measured { index: 1, pid: OTHER, ..context.threads[0] };
    context.threads.push(second);
    let mut attributor = Attributor::new(context, Limits::default());
    attributor.trace_cpu(CPU);
    attributor.begin(0, Ticks(0)).unwrap();
    attributor.begin(1, Ticks(0)).unwrap();
    // The first runs to 1000, the second from 1100 to 2000, then the first again.
    let other = task(OTHER.0, "whylate/b", 120);
    let script = Script::new()
        .switch(1_050, &other)
        .vector("local_timer", 1_500, 1_550)
        .switch(2_050, &own());
    attributor.push_events(CPU, script.events);
    attributor.push_gaps(0, &[Gap { resumed: Ticks(2_100), ..gap(1_000, 2_100) }]).unwrap();
    attributor.push_gaps(1, &[Gap { resumed: Ticks(1_100), ..gap(0, 1_100) }]).unwrap();
    attributor.push_gaps(1, &[Gap { resumed: Ticks(1_560), ..gap(1_490, 1_560) }]).unwrap();
    attributor.push_gaps(1, &[Gap { resumed: Ticks(3_000), ..gap(2_000, 3_000) }]).unwrap();
    let mut causes = Vec::new();
    attributor.finish(&mut |gap| causes.push((gap.thread, gap.cause)));
    let expected = [
        (0, thread("whylate/b", PriorityClass::Ordinary)),
        (1, thread("whylate/2", PriorityClass::Ordinary)),
        (1, interrupt("local_timer")),
        (1, thread("whylate/2", PriorityClass::Ordinary)),
    ];
    assert_eq!(causes, expected);
    assert_eq!(counts(&attributor).inside, 4);
}

#[test]
fn gaps_of_an_unknown_thread_are_refused_and_disordered_ones_counted() {
    let mut attributor = Attributor::new(context(true), Limits::default());
    let error = attributor.push_gaps(9, &[gap(1, 2)]);
    assert_eq!(error, Err(CauseError::UnknownThread { thread: 9 }));
    attributor.push_gaps(0, &[gap(500, 600), gap(100, 200)]).unwrap();
    assert_eq!(attributor.shed().gaps_disordered, 1);
}

#[test]
fn threads_with_ever_new_names_are_added_up_together_in_the_end() {
    let context = context(true);
    let mut totals = Totals::new(0);
    for k in 0..5_000_u64 {
        let name = format!("worker-{k}");
        let script = Script::new()
            .switch(k * 1_000 + 10, &task(7, &name, 120))
            .switch(k * 1_000 + 90, &own());
        let mut attributor = Attributor::new(context.clone(), Limits::default());
        attributor.trace_cpu(CPU);
        attributor.push_events(CPU, script.events);
        attributor.push_gaps(0, &[gap(k * 1_000, k * 1_000 + 100)]).unwrap();
        attributor.finish(&mut |gap| totals.add(&gap, &context));
    }
    let summary = totals.summary(&context, &[]);
    let overall = summary.causes.iter().filter(|row| row.cpu.is_none());
    assert!(overall.clone().count() <= 4097);
    let gaps: u64 = overall.map(|row| row.gaps).sum();
    assert_eq!(gaps, 5_000);
    let others = thread(OTHERS, PriorityClass::Ordinary);
    assert!(summary.causes.iter().any(|row| row.cause == others && row.gaps > 800));
    assert!(summary.worst.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn batches_make_no_difference(seed in 6..u64::MAX) {
        let (context, lanes) = two_cpus();
        let by_thread = |mut out: Vec<Attributed>| {
            out.sort_by_key(|gap| (gap.thread, gap.gap.start));
            out
        };
        let (first, _) = stream(&context, &lanes, 1);
        let (second, attributor) = stream(&context, &lanes, seed);
        prop_assert_eq!(by_thread(first), by_thread(second));
        prop_assert_eq!(counts(&attributor).outside, 0);
    }
}
