//! Whole runs: planted interruptions of two CPUs, handed over late and in batches, and what comes
//! out of attribution, validation and totals.

use proptest::prelude::*;
use whylate_model::cause::{Cause, PriorityClass, Rule, Validation};
use whylate_model::event::{Event, EventKind, Softirq};
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::run::CpuSteal;
use whylate_model::{CpuId, Nanos, Pid, Ticks, TicksDelta};

use super::{CPU, Dice, OWN, Script, context, gap, hog, interrupt, task, thread};
use crate::attribute::{Attributed, Attributor, Basis, EventCounts, Limits};
use crate::context::{Context, Measured, Placement};
use crate::rules::Standing;
use crate::totals::{Beside, Totals};
use crate::validate;

pub(super) const OTHER_CPU: CpuId = CpuId(3);
pub(super) const OTHER: Pid = Pid(101);
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

pub(super) fn counts(attributor: &Attributor) -> EventCounts {
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
    let evidence = whylate_model::run::Evidence { steal_ns: Some(1.0), ..Default::default() };
    let beside = Beside { standing: Standing::RealTime(50), evidence: &evidence };
    let findings = totals.findings(&context, beside);
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::R3, Rule::R6, Rule::R8, Rule::R9], "{findings:#?}");
    assert!(findings[2].text.contains(&format!("{hosts} gaps")), "{}", findings[2].text);
    assert!(findings[3].text.contains("(250 Hz): the kernel"), "{}", findings[3].text);
}

#[test]
fn r8_of_a_cpu_is_borne_out_by_its_own_steal_time_alone() {
    let (context, lanes) = two_cpus();
    let (out, _) = stream(&context, &lanes, 1);
    let mut totals = Totals::new(1);
    for gap in &out {
        totals.add(gap, &context);
    }
    let r8 = |steal: &[(u32, f64)]| -> Vec<bool> {
        let stolen = |&(cpu, steal_ns)| CpuSteal { cpu: CpuId(cpu), steal_ns };
        let evidence = whylate_model::run::Evidence {
            steal_ns: Some(1e12),
            steal_by_cpu: steal.iter().map(stolen).collect(),
            ..Default::default()
        };
        let beside = Beside { standing: Standing::Ordinary, evidence: &evidence };
        let findings = totals.findings(&context, beside).into_iter();
        let r8 = findings.filter(|finding| finding.rule == Rule::R8);
        r8.map(|finding| finding.text.contains("the hypervisor took them: ")).collect()
    };
    let cpus: Vec<u32> = context.threads.iter().map(|thread| thread.cpu.0).collect();
    let [first, second] = cpus.as_slice() else { panic!("{cpus:?}") };
    let everywhere = r8(&[]);
    assert_eq!(everywhere, [true, true], "where only the sum is known, it is taken");
    assert_eq!(r8(&[(*first, 1e12), (*second, 0.0)]), [true, false]);
    assert_eq!(r8(&[(*first, 0.0), (*second, 1e12)]), [false, true]);
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
