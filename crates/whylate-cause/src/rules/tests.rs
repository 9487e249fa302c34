//! Each rule by what it needs and nothing else: when it speaks, how sure it is, and in which words.

use super::*;
use whylate_model::Ticks;
use whylate_model::gap::{Evidence, GapKind};

const CPU: CpuId = CpuId(1);

#[test]
fn r3_speaks_only_for_the_highest_priority_and_admits_when_its_premise_fails() {
    use Standing::{Ordinary, RealTime};
    assert_eq!(r3_highest_priority(Ordinary, CPU, 5, Some(0)), None);
    assert_eq!(r3_highest_priority(RealTime(50), CPU, 0, Some(0)), None);
    let says = |with_thread| {
        let finding = r3_highest_priority(RealTime(50), CPU, 5, with_thread).unwrap();
        (finding.confidence, finding.text)
    };
    assert_eq!(says(None).0, Confidence::Possible);
    assert_eq!(says(Some(0)).0, Confidence::Certain);
    assert!(says(Some(2)).1.starts_with("2 of 5 gaps hold another thread"));
}

#[test]
fn r4_blames_the_load_only_for_more_gaps_than_chance_gives() {
    let counted = |gaps| Counted { gaps, time: Nanos(10 * Nanos::SECOND.0) };
    let says = |idle, loaded| r4_load(counted(idle), counted(loaded)).unwrap();
    assert!(says(100, 900).text.starts_with("the load causes gaps"));
    assert!(says(900, 100).text.starts_with("gaps are rarer under load"));
    let equal = says(100, 105);
    assert!(equal.text.starts_with("no difference shown"), "{}", equal.text);
    assert_eq!(equal.confidence, Confidence::Possible);
    let nothing = Counted { gaps: 0, time: Nanos(0) };
    assert!(r4_load(nothing, counted(1)).is_err());
}

#[test]
fn r5_blames_the_timer_that_is_late_alone() {
    let on_time = vec![Nanos(5_000); 1000];
    let mut late = on_time.clone();
    late[..60].fill(Nanos(8_000_000));
    let limit = Nanos(1_000_000);
    let says = |a: &[Nanos], b: &[Nanos], preemption| {
        r5_timers(("NATIVE", a), ("HR", b), limit, preemption).unwrap()
    };
    let sure = says(&late, &on_time, Preemption::Full).unwrap();
    assert_eq!(sure.confidence, Confidence::Likely);
    assert!(sure.text.contains("timer NATIVE is at fault: 60 of 1000"), "{}", sure.text);
    let less = says(&late, &on_time, Preemption::Partial).unwrap();
    assert_eq!(less.confidence, Confidence::Possible);
    assert_eq!(says(&late, &late, Preemption::Full), None);
    assert_eq!(says(&on_time, &late, Preemption::Full), None);
    assert_eq!(says(&on_time, &on_time, Preemption::Full), None);
    assert!(r5_timers(("a", &[]), ("b", &late), limit, Preemption::Full).is_err());
}

#[test]
fn r8_says_whether_it_is_borne_out() {
    let says = |virtualised, beside| r8_no_kernel_event(virtualised, CPU, 3, 5e6, beside).unwrap();
    let steal = |ns| Corroboration { steal_ns: ns, smi_count: None };
    let smi = |count| Corroboration { steal_ns: None, smi_count: count };
    for (finding, taker, confidence) in [
        (says(true, steal(Some(4e6))), "; the hypervisor took them", Confidence::Likely),
        (says(true, steal(Some(2.6e6))), "; the hypervisor took them", Confidence::Likely),
        (says(true, steal(Some(1.2e6))), "; perhaps the hypervisor", Confidence::Possible),
        (says(true, steal(Some(0.0))), "; perhaps the hypervisor", Confidence::Possible),
        (says(true, steal(None)), "; perhaps the hypervisor", Confidence::Possible),
        (says(false, smi(Some(2))), "; the firmware took", Confidence::Likely),
        (says(false, smi(Some(0))), "; the hardware took", Confidence::Possible),
        (says(false, smi(None)), "; firmware or hardware took", Confidence::Possible),
    ] {
        let all = "no kernel event accounts for 3 gaps, 5.00ms in all";
        assert!(finding.text.starts_with(all), "{}", finding.text);
        assert!(finding.text.contains(taker), "{}", finding.text);
        assert_eq!(finding.confidence, confidence);
    }
    let a_quarter = says(true, steal(Some(1.2e6))).text;
    assert!(a_quarter.ends_with("1.20ms of steal time were counted meanwhile, 24% of that"));
    assert_eq!(r8_no_kernel_event(true, CPU, 0, 0.0, Corroboration::default()), None);
}

#[test]
fn r6_and_r7_are_tallied_apart() {
    let gap = |rseq, switches, cpu_after| Gap {
        start: Ticks(0),
        end: Ticks(10),
        resumed: Ticks(11),
        cpu_before: CPU,
        cpu_after,
        kind: GapKind::Interruption,
        evidence: Evidence { rseq, involuntary_switches: switches, in_recording: false },
    };
    let mut tally = Tally::default();
    for (rseq, switches, cpu) in [
        (RseqWord::Set, None, CPU),
        (RseqWord::Cleared, Some(0), CPU),
        (RseqWord::Cleared, Some(1), CPU),
        (RseqWord::Cleared, None, CPU),
        (RseqWord::Cleared, Some(1), CpuId(2)),
    ] {
        tally.count(&gap(rseq, switches, cpu));
    }
    let expected = Tally { kept_certain: 1, kept: 1, switched: 1, migrated: 1, undecided: 1 };
    assert_eq!(tally, expected);
    let rules: Vec<_> = tally.findings(CPU).iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::R6, Rule::R6, Rule::R7]);
    assert!(Tally::default().findings(CPU).is_empty());
    let kept = Tally { kept: 498, undecided: 2, ..Tally::default() };
    assert_eq!(kept.findings(CPU), [], "the kernel counted no switch: R6 has nothing to say");
}

#[test]
fn rules_say_what_they_go_by() {
    let text = |with_thread| {
        r3_highest_priority(Standing::RealTime(50), CPU, 5, with_thread).unwrap().text
    };
    let ours = "the thread runs under SCHED_FIFO 50 and never blocks";
    let kinds = "interrupts, softirqs, NMIs, SMIs or the hypervisor";
    assert_eq!(text(None), format!("all 5 gaps are {kinds}: {ours}"));
    assert_eq!(
        text(Some(0)),
        format!("all 5 gaps are {kinds}: {ours}, and the trace shows no other")
    );
    assert_eq!(
        text(Some(2)),
        format!(
            "2 of 5 gaps hold another thread although {ours}: one of higher priority, the kernel's \
             own, or RT throttling"
        )
    );

    let counted = |gaps, seconds| Counted { gaps, time: Nanos(seconds * Nanos::SECOND.0) };
    let finding = r4_load(counted(100, 8), counted(900, 4)).unwrap();
    let expected = "the load causes gaps: 12.500 gaps per second idle (100 in 8.00s), 225.000 loaded \
                    (900 in 4.00s), p = ";
    assert!(finding.text.starts_with(expected), "{}", finding.text);
    assert_eq!(
        (finding.rule, finding.cpu, finding.confidence),
        (Rule::R4, None, Confidence::Likely)
    );
    // The rates are one, though one was counted ten times as long.
    let equal = r4_load(counted(1_000, 10), counted(100, 1)).unwrap();
    assert!(equal.text.starts_with("no difference shown"), "{}", equal.text);
    for empty in [
        r4_load(counted(1, 1), counted(1, 0)).unwrap_err(),
        r4_load(counted(1, 0), counted(1, 1)).unwrap_err(),
    ] {
        assert!(matches!(empty, CauseError::EmptySample { .. }), "{empty}");
    }
}

#[test]
fn a_timer_is_at_fault_from_ten_times_as_many_late_wake_ups_on() {
    let limit = Nanos(1_000);
    // Late from the limit on.
    let late = |count: usize| {
        let mut all = vec![Nanos(999); 1_000];
        all[..count].fill(limit);
        all
    };
    let says = |a: &[Nanos], b: &[Nanos]| {
        r5_timers(("A", a), ("B", b), limit, Preemption::Partial).unwrap()
    };
    let found = says(&late(100), &late(10)).unwrap();
    let expected = "timer A is at fault: 100 of 1000 wake-ups are 1.00us late or more, with B 10 of \
                    1000 (p = ";
    assert!(found.text.starts_with(expected), "{}", found.text);
    assert!(found.text.ends_with(", the kernel is not fully preemptible)"), "{}", found.text);
    assert_eq!(says(&late(99), &late(10)), None);
    // So few may be chance.
    assert_eq!(says(&late(4), &late(0)), None);
    let full = r5_timers(("A", &late(60)), ("B", &late(0)), limit, Preemption::Full).unwrap();
    assert!(full.unwrap().text.ends_with(", the kernel is fully preemptible)"));
    assert!(r5_timers(("A", &late(1)), ("B", &[]), limit, Preemption::Full).is_err());
    // The shares count, not the numbers: 20 of 4000 are fewer than 10 of 1000.
    let fewer = [late(5), late(5), late(5), late(5)].concat();
    assert!(says(&late(100), &fewer).is_some());
}

#[test]
fn what_bears_out_that_time_was_taken_is_told_in_numbers() {
    let says = |lost_ns, steal_ns| {
        let beside = Corroboration { steal_ns, smi_count: None };
        let found = r8_no_kernel_event(true, CPU, 3, lost_ns, beside).unwrap();
        (found.text, found.confidence)
    };
    let of = |lost: &str, what: &str| {
        format!("no kernel event accounts for 3 gaps, {lost} in all; {what}")
    };
    for (lost_ns, steal, lost, what, confidence) in [
        (
            5e6,
            Some(2.5e6),
            "5.00ms",
            "the hypervisor took them: 2.50ms of steal time were counted meanwhile",
            Confidence::Likely,
        ),
        (
            5e6,
            Some(2.4e6),
            "5.00ms",
            "perhaps the hypervisor took them: 2.40ms of steal time were counted meanwhile, 48% of \
             that",
            Confidence::Possible,
        ),
        (
            5e6,
            Some(0.0),
            "5.00ms",
            "perhaps the hypervisor took them, but no steal time was counted",
            Confidence::Possible,
        ),
        (
            5e6,
            None,
            "5.00ms",
            "perhaps the hypervisor took them: steal time is not readable",
            Confidence::Possible,
        ),
        // What is lost may come out below nothing: a period is taken off each gap.
        (
            -3.0,
            Some(0.4),
            "0ns",
            "perhaps the hypervisor took them: 0ns of steal time were counted meanwhile, 40% of that",
            Confidence::Possible,
        ),
    ] {
        assert_eq!(says(lost_ns, steal), (of(lost, what), confidence));
    }
    let metal = |smi_count| {
        let beside = Corroboration { steal_ns: Some(9e9), smi_count };
        r8_no_kernel_event(false, CPU, 1, 5e6, beside).unwrap().text
    };
    assert!(metal(Some(0)).ends_with("; the hardware took them: no SMI was counted"));
    assert!(metal(Some(7)).ends_with("; the firmware took them: SMIs were counted"));
    let unread = "; firmware or hardware took them: the SMI count is not readable";
    assert!(metal(None).ends_with(unread));
}

#[test]
fn tallies_are_told_with_their_sums() {
    let tally = Tally { kept_certain: 2, kept: 3, switched: 5, migrated: 7, undecided: 11 };
    let told: Vec<_> =
        tally.findings(CPU).into_iter().map(|of| (of.rule, of.text, of.confidence)).collect();
    let expected = [
        (
            Rule::R6,
            "in 2 of 28 gaps the thread was not preempted, migrated or signalled: the rseq word was \
             still set",
            Confidence::Certain,
        ),
        (
            Rule::R6,
            "in 8 gaps with the rseq word cleared the thread was switched out 5 times, by the \
             kernel's count of switches",
            Confidence::Likely,
        ),
        (Rule::R7, "in 7 of 28 gaps the thread was migrated", Confidence::Certain),
    ];
    let expected = expected.map(|(rule, text, sure)| (rule, text.to_owned(), sure));
    assert_eq!(told, expected);
}
