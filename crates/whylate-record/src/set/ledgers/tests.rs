//! Planted jobs and gaps: what is taken from each job, and what misses are named after.
//!
//! Guarantees nothing of recordings, whose gaps overlap jobs as they happen to.

use super::*;
use crate::set::planted::attributed;

const HZ: Hertz = Hertz(1e9);

fn job(index: u64, release: u64, done: u64, verdict: Verdict) -> Job {
    let (release, deadline) = (Ticks(release), Ticks(release + 1_000));
    let (woke, done) = (Some(release), Some(Ticks(done)));
    Job { index, release, deadline, woke, done, received: TicksDelta(300), verdict }
}

fn other(class: PriorityClass) -> Cause {
    Cause::Thread { comm: "other".to_owned(), class }
}

fn of_one(above_ordinary: bool, budget: Option<Nanos>) -> Tallies {
    Tallies::of(std::iter::once(Claim { above_ordinary, budget, ..Claim::default() }))
}

fn timer() -> Cause {
    Cause::Interrupt { name: "local_timer".to_owned() }
}

/// A hit that lost 40 to interrupts, and a miss that lost 900 to a thread, 60 to interrupts and
/// 500 to the host, of which 100 lie behind its end; a sleep between them is nobody's doing.
fn planted(above_ordinary: bool) -> Tallies {
    let mut tallies = of_one(above_ordinary, None);
    tallies.job(0, job(0, 1_000, 1_400, Verdict::Hit));
    tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]), HZ);
    tallies.gap(&attributed(1_400, GapKind::Sleep, &[(600, other(PriorityClass::Idle))]), HZ);
    tallies.job(0, Job { received: TicksDelta(640), ..job(1, 2_000, 4_000, Verdict::Late) });
    let preempted = [(60, timer()), (900, other(PriorityClass::Ordinary))];
    tallies.gap(&attributed(2_100, GapKind::Interruption, &preempted), HZ);
    tallies.gap(&attributed(3_600, GapKind::Interruption, &[(500, Cause::Host)]), HZ);
    tallies.settle(true, HZ);
    tallies
}

#[test]
fn a_miss_is_named_after_the_gap_that_took_most_of_it_and_what_was_taken_adds_up() {
    let mut tallies = planted(false);
    assert_eq!(tallies.deadlines(), (1, 1));
    let ordinary = tallies.thread(0).ordinary().unwrap();
    assert!((ordinary.interrupts_ns - 40.0).abs() < 1e-9);
    assert!((ordinary.total_ns() - 40.0).abs() < 1e-9, "a sleep takes nothing: {ordinary:?}");
    let miss = &tallies.thread(0).first[0];
    let taken = miss.taken;
    assert_eq!((miss.job, taken.threads_ns, taken.interrupts_ns), (1, 900.0, 60.0));
    assert!((taken.host_ns - 400.0).abs() < 1e-9, "what lies behind the end is not the job's");
    let gap = miss.gap.as_ref().unwrap();
    assert_eq!((gap.start, gap.length), (Ticks(2_100), Nanos(960)));
    assert_eq!(gap.cause, other(PriorityClass::Ordinary));
    let stored = tallies.take_fresh();
    assert_eq!(stored.len(), 2);
    assert_eq!((stored[1].threads, stored[1].host), (Nanos(900), Nanos(400)));
    assert_eq!(tallies.into_jobs()[0], [(Nanos(300), Nanos(40)), (Nanos(640), Nanos(460))]);
}

#[test]
fn a_thread_above_the_ordinary_ones_that_sees_them_run_was_throttled() {
    let tallies = planted(true);
    assert_eq!(tallies.thread(0).causes, BTreeMap::from([(Cause::Throttled, 1)]));
}

#[test]
fn a_wake_up_that_came_late_took_the_time_and_no_thread_did() {
    let mut tallies = of_one(true, None);
    tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
    let late = [(700, Cause::TimerLate), (40, timer()), (9, other(PriorityClass::RealTime))];
    tallies.gap(&attributed(1_000, GapKind::Dispatch, &late), HZ);
    tallies.settle(true, HZ);
    let miss = &tallies.thread(0).first[0];
    assert_eq!((miss.taken.waking_ns, miss.taken.threads_ns), (700.0, 9.0));
    assert_eq!(miss.gap.as_ref().unwrap().cause, Cause::TimerLate);
}

#[test]
fn interrupts_of_the_time_that_another_thread_had_are_not_charged_to_the_job() {
    let mut tallies = of_one(false, None);
    tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
    let away =
        [(5, timer()), (300, other(PriorityClass::RealTime)), (70, Cause::Host), (9, timer())];
    let back = (200, other(PriorityClass::RealTime));
    let parts: Vec<_> = away.into_iter().chain([back, (3, timer())]).collect();
    tallies.gap(&attributed(1_100, GapKind::Interruption, &parts), HZ);
    tallies.settle(true, HZ);
    let taken = tallies.thread(0).first[0].taken;
    assert_eq!((taken.threads_ns, taken.away_ns), (500.0, 79.0));
    assert_eq!((taken.interrupts_ns, taken.host_ns), (8.0, 0.0));
}

#[test]
fn a_job_that_waited_for_a_lock_is_late_for_that() {
    let mut tallies = of_one(true, None);
    tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
    let low = [(20, timer()), (800, other(PriorityClass::RealTime))];
    tallies.gap(&attributed(1_100, GapKind::Blocked, &low), HZ);
    tallies.gap(&attributed(2_100, GapKind::Interruption, &[(40, timer())]), HZ);
    tallies.settle(true, HZ);
    let miss = &tallies.thread(0).first[0];
    assert_eq!((miss.taken.blocked_ns, miss.taken.interrupts_ns), (820.0, 40.0));
    let gap = miss.gap.as_ref().unwrap();
    assert_eq!((gap.kind, &gap.cause), (GapKind::Blocked, &other(PriorityClass::RealTime)));
    assert_eq!(tallies.thread(0).causes, BTreeMap::from([(Cause::Blocked, 1)]));
}

#[test]
fn a_thread_that_used_up_its_budget_was_throttled_whoever_ran_then() {
    for (budget, cause) in [(330, Cause::Throttled), (350, other(PriorityClass::Deadline))] {
        let mut tallies = of_one(true, Some(Nanos(budget)));
        tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
        tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]), HZ);
        let away = [(800, other(PriorityClass::Deadline))];
        tallies.gap(&attributed(1_200, GapKind::Interruption, &away), HZ);
        tallies.settle(true, HZ);
        assert_eq!(tallies.thread(0).causes, BTreeMap::from([(cause, 1)]));
    }
}

#[test]
fn a_miss_is_named_after_what_took_more_than_it_takes_from_the_ordinary_job() {
    let mut tallies = of_one(false, None);
    let planned = [(500, other(PriorityClass::RealTime))];
    for index in 0..3 {
        let release = 1_000 * (index + 1);
        tallies.job(0, job(index, release, release + 900, Verdict::Hit));
        tallies.gap(&attributed(release + 10, GapKind::Interruption, &planned), HZ);
    }
    tallies.job(0, job(3, 4_000, 5_300, Verdict::Late));
    tallies.gap(&attributed(4_010, GapKind::Interruption, &planned), HZ);
    tallies.gap(&attributed(4_700, GapKind::Interruption, &[(400, Cause::Host)]), HZ);
    tallies.settle(true, HZ);
    let miss = &tallies.thread(0).first[0];
    let gap = miss.gap.as_ref().unwrap();
    assert_eq!((gap.cause.clone(), gap.length), (Cause::Host, Nanos(400)));
}

#[test]
fn a_job_waits_until_its_gaps_are_known() {
    let mut tallies = of_one(false, None);
    tallies.job(0, job(0, 1_000, 1_400, Verdict::Late));
    tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]), HZ);
    tallies.settle(false, HZ);
    assert!(tallies.take_fresh().is_empty());
    tallies.gap(&attributed(1_500, GapKind::Interruption, &[(40, timer())]), HZ);
    tallies.settle(false, HZ);
    assert_eq!(tallies.take_fresh().len(), 1);
}

/// A job that asks for so much in 1 000 and ends when that and all its gaps are over.
fn asking(index: u64, release: u64, received: u64, done: u64) -> Job {
    Job { received: TicksDelta(received), ..job(index, release, done, Verdict::Late) }
}

#[test]
fn jobs_that_ask_for_more_than_lies_before_their_deadline_are_late_by_that_and_by_nothing_else() {
    let mut tallies = of_one(false, None);
    // 9 in 8, as the paper writes it: each job is late by what it asks for, and by the ones before it.
    for index in 0..4 {
        let (release, begin) = (1_000 * index, 1_225 * index);
        tallies.job(0, asking(index, release, 1_125, begin + 1_225));
        tallies.gap(&attributed(begin + 10, GapKind::Interruption, &[(60, timer())]), HZ);
        tallies.gap(&attributed(begin + 300, GapKind::Interruption, &[(40, Cause::Host)]), HZ);
    }
    tallies.settle(true, HZ);
    let thread = tallies.thread(0);
    assert_eq!(thread.causes, BTreeMap::from([(Cause::OwnDemand, 4)]));
    assert_eq!(thread.unexplained, 0);
    let last = thread.first.last().unwrap();
    let (asked_ns, left_over_ns) = (Nanos(1_125), Nanos(675));
    assert_eq!((&last.cause, &last.gap), (&Some(Cause::OwnDemand), &None));
    assert_eq!(last.demand, Some(JobDemand { asked_ns, left_over_ns }));
}

#[test]
fn a_job_that_waits_of_its_own_accord_asks_for_that_time_too() {
    let mut tallies = of_one(false, None);
    tallies.job(0, asking(0, 0, 700, 1_130));
    tallies.gap(&attributed(100, GapKind::Sleep, &[(400, other(PriorityClass::Idle))]), HZ);
    tallies.gap(&attributed(900, GapKind::Interruption, &[(30, timer())]), HZ);
    tallies.settle(true, HZ);
    assert_eq!(tallies.thread(0).causes, BTreeMap::from([(Cause::OwnDemand, 1)]));
}

#[test]
fn what_a_stall_left_over_names_the_jobs_behind_it_and_the_stall_the_first() {
    let mut tallies = of_one(true, None);
    tallies.job(0, asking(0, 0, 300, 2_600));
    tallies.gap(&attributed(100, GapKind::Interruption, &[(2_300, Cause::Host)]), HZ);
    tallies.job(
        0,
        Job { woke: None, done: None, verdict: Verdict::Skipped, ..asking(1, 1_000, 0, 0) },
    );
    tallies.job(0, asking(2, 2_000, 500, 3_140));
    tallies.gap(&attributed(2_700, GapKind::Interruption, &[(40, timer())]), HZ);
    tallies.settle(true, HZ);
    let expected = BTreeMap::from([(Cause::Host, 1), (Cause::LeftOver, 2)]);
    assert_eq!(tallies.thread(0).causes, expected);
}

#[test]
fn a_thread_of_the_set_and_one_of_the_tool_are_named_as_what_they_are() {
    let class = PriorityClass::RealTime;
    let member = Cause::Member { comm: "hourglass/0".to_owned(), class };
    // The set's thread comes first, though the other took more.
    for (parts, cause) in [
        (vec![(400, member.clone()), (500, other(class))], member),
        (vec![(900, Cause::Whylate)], Cause::Whylate),
    ] {
        let mut tallies = of_one(true, None);
        tallies.job(0, asking(0, 0, 400, 1_300));
        tallies.gap(&attributed(100, GapKind::Interruption, &parts), HZ);
        tallies.settle(true, HZ);
        assert_eq!(tallies.thread(0).causes, BTreeMap::from([(cause, 1)]));
    }
}

#[test]
fn a_miss_whose_parts_do_not_reach_its_lateness_is_named_after_none_of_them() {
    let mut tallies = of_one(false, None);
    tallies.job(0, asking(0, 0, 300, 3_000));
    tallies.gap(&attributed(100, GapKind::Interruption, &[(40, timer())]), HZ);
    tallies.settle(true, HZ);
    let thread = tallies.thread(0);
    assert_eq!((&thread.causes, thread.unexplained), (&BTreeMap::from([(Cause::Unknown, 1)]), 1));
}
