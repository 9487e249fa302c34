//! Sums of gaps that are planted one by one.

use whylate_model::cause::{Part, Rule, Sender};
use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Gap, RseqWord};
use whylate_model::run::Finding;
use whylate_model::{Pid, TicksDelta};

use super::*;
use crate::planted::{self, CPU};
use crate::rules::Standing;
use crate::split::Arrival;

const OTHER: CpuId = CpuId(3);

/// Two CPUs, of which the second has the longer period; two ticks are a nanosecond.
fn context(virtualised: bool) -> Context {
    let mut context = planted::context(virtualised);
    context.hz = Hertz(2e9);
    let first = context.threads[0];
    context.threads.push(crate::context::Measured {
        index: 1,
        cpu: OTHER,
        period_ticks: 30.0,
        ..first
    });
    context
}

/// A traced gap of the first thread with these parts, named after the first of them.
fn gap(start: u64, parts: &[(u64, Cause)]) -> Attributed {
    let length = parts.iter().map(|(length, _)| length).sum::<u64>();
    let mut at = start;
    let part = |(length, cause): &(u64, Cause)| {
        let start = Ticks(at);
        at += length;
        Part { start, length: TicksDelta(*length), cause: cause.clone(), sender: None }
    };
    let event = Event {
        ticks: Ticks(start),
        cpu: CPU,
        pid: Pid(1),
        kind: EventKind::WorkStart { function: 0 },
    };
    Attributed {
        thread: 0,
        gap: planted::gap(start, start + length),
        parts: parts.iter().map(part).collect(),
        cause: parts[0].1.clone(),
        rule: None,
        basis: Basis::Trace,
        switched: None,
        switched_out: 0,
        own: TicksDelta(0),
        events: vec![event],
        sends: Vec::new(),
        arrivals: Vec::new(),
    }
}

fn of(gaps: &[Attributed], context: &Context) -> Totals {
    let mut totals = Totals::new(2);
    for gap in gaps {
        totals.add(gap, context);
    }
    totals
}

fn timer() -> Cause {
    planted::interrupt("local_timer")
}

fn findings(totals: &Totals, context: &Context, standing: Standing) -> Vec<Finding> {
    let evidence = Evidence::default();
    totals.findings(context, Beside { standing, evidence: &evidence })
}

#[test]
fn nothing_is_told_of_no_gap_and_no_share_of_no_time() {
    let nothing = of(&[], &context(true)).summary(&context(true), &[(CPU, Nanos(9))]);
    assert_eq!((nothing.coverage, nothing.causes.len()), (None, 0));
    let one = of(&[gap(100, &[(110, timer())])], &context(true));
    let rows = one.summary(&context(true), &[]).causes;
    let [all, on_cpu] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(
        (all.share_of_lost.to_string(), all.share_of_elapsed.to_string()),
        ("1".into(), "0".into())
    );
    assert_eq!((all.cpu, on_cpu.cpu, on_cpu.lost_ns.to_string()), (None, Some(CPU), "50".into()));
}

#[test]
fn each_cpu_has_the_period_of_its_own_loop_and_its_own_time() {
    let context = context(true);
    let second = Attributed { thread: 1, ..gap(500, &[(130, timer())]) };
    let totals = of(&[gap(100, &[(110, timer())]), second], &context);
    let rows = totals.summary(&context, &[(CPU, Nanos(1_000)), (OTHER, Nanos(500))]).causes;
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.cpu, row.lost_ns.to_string(), (row.share_of_elapsed * 1e4).round() as u64))
        .collect();
    // 110 less 10 and 130 less 30 ticks, of which two are a nanosecond.
    let row = |cpu, lost: &str, share| (cpu, lost.to_owned(), share);
    assert_eq!(
        told,
        [row(None, "100", 667), row(Some(CPU), "50", 500), row(Some(OTHER), "50", 1_000)]
    );
    assert_eq!(rows[0].longest, Nanos(65));
}

#[test]
fn rows_stand_the_largest_first_and_of_two_alike_in_the_order_of_causes() {
    let context = context(true);
    let gaps = [
        gap(100, &[(60, Cause::Nmi)]),
        gap(300, &[(60, timer())]),
        gap(500, &[(110, Cause::Host)]),
        gap(700, &[(10, Cause::PageFault)]),
    ];
    let mut alike = [timer(), Cause::Nmi];
    alike.sort();
    let expected = [Cause::Host, alike[0].clone(), alike[1].clone(), Cause::PageFault];
    let rows = of(&gaps, &context).summary(&context, &[]).causes;
    let causes: Vec<Cause> = rows.into_iter().map(|row| row.cause).collect();
    assert_eq!(causes, [expected.clone(), expected].concat());
}

#[test]
fn lost_time_is_covered_by_events_by_residuals_beside_them_and_by_nothing() {
    let context = context(true);
    let parts = [(50, timer()), (20, Cause::EntryResidual), (30, Cause::Host)];
    let coverage = of(&[gap(100, &parts)], &context).summary(&context, &[]).coverage.unwrap();
    let shares = [coverage.by_events, coverage.by_residuals, coverage.by_nothing];
    assert!(shares.iter().zip([0.5, 0.2, 0.3]).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?}");
}

#[test]
fn the_time_of_what_was_sent_is_told_in_nanoseconds() {
    let sender = Sender { cpu: CpuId(0), pid: Pid(5), comm: "storm".to_owned() };
    let arrival = Arrival { cause: timer(), sender, cpu: CPU, length: TicksDelta(300) };
    let sent = Attributed { arrivals: vec![arrival], ..gap(100, &[(400, timer())]) };
    let senders = of(&[sent.clone(), sent], &context(true)).summary(&context(true), &[]).senders;
    assert_eq!((senders[0].count, senders[0].lost_ns.to_string()), (2, "300".to_owned()));
}

#[test]
fn what_is_said_of_other_threads_is_what_the_trace_or_else_the_thread_itself_counted() {
    let context = context(true);
    let says = |gaps: &[Attributed]| {
        let of = findings(&of(gaps, &context), &context, Standing::RealTime(50));
        of.into_iter().find(|finding| finding.rule == Rule::R3).unwrap().text
    };
    let untraced = |switches: Option<u32>| {
        let mut gap = Attributed { basis: Basis::Thread, ..gap(100, &[(50, timer())]) };
        gap.gap.evidence.rseq = RseqWord::Cleared;
        gap.gap.evidence.involuntary_switches = switches;
        gap
    };
    let traced = || gap(100, &[(50, timer())]);
    let hog =
        || gap(100, &[(50, planted::thread("hog", whylate_model::cause::PriorityClass::Ordinary))]);
    assert!(says(&[untraced(None)]).ends_with("never blocks"), "{}", says(&[untraced(None)]));
    let counted = says(&[untraced(Some(1)), untraced(Some(1)), untraced(None)]);
    assert!(counted.starts_with("2 of 3 gaps hold another thread"), "{counted}");
    let alone = says(&[traced(), untraced(Some(1))]);
    assert!(alone.ends_with("the trace shows no other"), "{alone}");
    let both = says(&[traced(), hog(), hog()]);
    assert!(both.starts_with("2 of 3 gaps hold another thread"), "{both}");
}

#[test]
fn what_no_event_accounts_for_is_what_host_and_firmware_took_of_any_gap() {
    let context = context(true);
    let gaps = [
        gap(100, &[(1_010, Cause::Host)]),
        gap(2_000, &[(4_010, Cause::Firmware)]),
        gap(9_000, &[(50, timer())]),
    ];
    let of = findings(&of(&gaps, &context), &context, Standing::Ordinary);
    let text = &of.iter().find(|finding| finding.rule == Rule::R8).unwrap().text;
    assert!(text.contains("2 gaps, 2.50us in all"), "{text}");
}

/// What is said of gaps that begin every 4 ms.
fn periodic(
    gaps: usize,
    virtualised: bool,
    of_one: impl Fn(Attributed) -> Attributed,
) -> Vec<String> {
    let context = context(virtualised);
    let mut totals = Totals::new(0);
    for number in 1..=gaps as u64 {
        totals.add(&of_one(gap(number * 8_000_000, &[(50, Cause::Nmi)])), &context);
    }
    let of = findings(&totals, &context, Standing::Ordinary);
    let r9 = of.into_iter().filter(|finding| finding.rule == Rule::R9);
    r9.map(|finding| finding.text).collect()
}

#[test]
fn a_period_is_named_by_what_the_gaps_hold() {
    let says = |virtualised, of_one: fn(Attributed) -> Attributed, what: &str| {
        let text = periodic(600, virtualised, of_one).concat();
        let expected = format!("100 % of 600 {what}");
        assert_eq!(text, expected);
    };
    let with = |cause: Cause| {
        move |gap: Attributed| {
            let mut gap = gap;
            gap.parts[0].cause = cause.clone();
            gap
        }
    };
    let tick = "come every 4 ms (250 Hz): ";
    says(
        true,
        |gap| gap,
        "gaps with other events come every 4 ms (250 Hz): periodic work of the kernel",
    );
    for name in ["local_timer", "arch_timer"] {
        let text = periodic(600, true, with(planted::interrupt(name))).concat();
        assert_eq!(
            text,
            format!("100 % of 600 gaps with a timer interrupt {tick}the kernel's tick")
        );
    }
    let silent: fn(Attributed) -> Attributed = |gap| Attributed { events: Vec::new(), ..gap };
    says(true, silent, &format!("gaps without a kernel event {tick}the hypervisor's tick"));
    says(
        false,
        silent,
        &format!("gaps without a kernel event {tick}periodic work of the firmware"),
    );
    let untraced: fn(Attributed) -> Attributed = |gap| Attributed { basis: Basis::Thread, ..gap };
    says(true, untraced, &format!("gaps {tick}the kernel's tick or a hypervisor's"));
    let lossy = |gap| Attributed { basis: Basis::TraceWithLosses, ..gap };
    assert_eq!(periodic(600, true, lossy), Vec::<String>::new());
}

#[test]
fn the_first_gaps_are_looked_at_and_all_are_counted() {
    let said = periodic(periodic::STARTS_MAX + 2, true, |gap| gap).concat();
    assert!(said.contains("of the first 20000 of 20002 gaps"), "{said}");
    let said = periodic(periodic::STARTS_MAX, true, |gap| gap).concat();
    assert!(said.contains("of 20000 gaps"), "{said}");
}

#[test]
fn gaps_of_a_thread_that_waits_have_its_own_period_and_are_not_asked_for_one() {
    let mut waits = context(true);
    waits.threads[0].always_runs = false;
    let mut totals = Totals::new(0);
    for number in 1..600 {
        totals.add(&gap(number * 8_000_000, &[(50, Cause::Nmi)]), &waits);
    }
    assert!(findings(&totals, &waits, Standing::Ordinary).iter().all(|of| of.rule != Rule::R9));
}

#[test]
fn a_gap_of_an_unknown_thread_counts_for_the_cpu_it_began_on() {
    let context = context(true);
    let mut stray = Attributed { thread: 9, ..gap(100, &[(110, timer())]) };
    stray.gap = Gap { cpu_before: CpuId(7), ..stray.gap };
    let rows = of(&[stray], &context).summary(&context, &[]).causes;
    // The period of its loop is not known, and nothing is taken off for it.
    assert_eq!((rows[1].cpu, rows[1].lost_ns.to_string()), (Some(CpuId(7)), "55".to_owned()));
}
