//! Gaps, events and sends that come late, in disorder, lost or too many, and from CPUs that a thread
//! leaves: what waits, what is counted, and what is called nobody's.

use whylate_model::cause::{Cause, PriorityClass, Rule};
use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Evidence, Gap, RseqWord};
use whylate_model::{CpuId, Pid, Ticks};

use super::stream_cases::{OTHER, OTHER_CPU, counts};
use super::{CPU, Script, context, gap, hog, interrupt, own, task, thread};
use crate::attribute::{Attributor, Basis, EventCounts, Limits};
use crate::context::{Measured, Placement};
use crate::error::CauseError;
use crate::naming::OTHERS;
use crate::totals::Totals;
use crate::validate;

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
    let member =
        |comm: &str| Cause::Member { comm: comm.to_owned(), class: PriorityClass::Ordinary };
    let expected = [
        (0, member("whylate/b")),
        (1, member("whylate/2")),
        (1, interrupt("local_timer")),
        (1, member("whylate/2")),
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
