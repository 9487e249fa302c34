//! Each reason by a job that has nothing else, jobs with several in their order, and any jobs at random: what is
//! named reaches the lateness, and nothing is named of a job whose parts do not.
//!
//! Knows nothing of gaps; ledgers have tests of their own.

use proptest::prelude::*;

use super::*;

const MS: f64 = 1e6;

fn shares(of: &[(Share, f64)]) -> Shares {
    let mut sums = Shares::default();
    for (share, ms) in of {
        sums.add(*share, ms * MS);
    }
    sums
}

/// A job that asks for so much in 8 ms and ends when all of this is over.
fn job(asked: f64, left_over: f64, taken: &[(Share, f64)]) -> LateJob {
    let taken = shares(taken);
    LateJob {
        deadline_ns: 8.0 * MS,
        response_ns: Some((asked + left_over) * MS + taken.total()),
        began: true,
        asked_ns: Some(asked * MS),
        left_over_ns: left_over * MS,
        overcommitted: false,
        over_budget: false,
        taken,
        ordinary: Shares::default(),
    }
}

fn reason(of: &LateJob) -> Reason {
    why(of).reason
}

#[test]
fn a_job_that_asks_for_more_than_lies_before_its_deadline_is_late_by_that_whatever_else_took_time()
{
    let taken = [(Share::Interrupts, 0.4), (Share::NoEvent, 1.5), (Share::Set, 2.0)];
    let nine = job(9.0, 0.0, &taken);
    assert_eq!(why(&nine), Why { reason: Reason::OwnDemand, explained: true });
    // Two `run` of 20 and 1 ms before a timer of 10 ms: late by 11.6 ms, of which 1.5 were taken.
    let program = LateJob { deadline_ns: 10.0 * MS, ..job(21.0, 0.0, &[(Share::NoEvent, 0.6)]) };
    assert_eq!(reason(&program), Reason::OwnDemand);
    let never = LateJob { response_ns: None, ..nine };
    assert_eq!(reason(&never), Reason::OwnDemand);
}

#[test]
fn a_set_that_asks_for_more_than_the_cpus_have_is_late_by_that_and_its_most_urgent_thread_is_not() {
    let beside = job(5.0, 0.0, &[(Share::Set, 5.0), (Share::Interrupts, 0.2)]);
    assert_eq!(reason(&LateJob { overcommitted: true, ..beside }), Reason::OwnDemand);
    assert_eq!(reason(&beside), Reason::Taken(Share::Set));
    let urgent = LateJob { overcommitted: true, ..job(5.0, 0.0, &[(Share::NoEvent, 4.0)]) };
    assert_eq!(reason(&urgent), Reason::Taken(Share::NoEvent));
}

#[test]
fn what_the_job_before_left_over_is_named_where_it_reaches_the_lateness() {
    let behind = job(3.0, 5.0, &[(Share::NoEvent, 0.5)]);
    assert_eq!(why(&behind), Why { reason: Reason::LeftOver, explained: true });
    let skipped = LateJob { began: false, response_ns: None, asked_ns: None, ..behind };
    assert_eq!(why(&skipped), Why { reason: Reason::LeftOver, explained: true });
    // Late by 4 ms, of which the job before made one.
    let little = job(3.0, 1.0, &[(Share::NoEvent, 8.0)]);
    assert_eq!(reason(&little), Reason::Taken(Share::NoEvent));
}

#[test]
fn of_several_parts_that_reach_the_lateness_the_first_in_the_order_names_the_job() {
    let all = [Share::Set, Share::Throttled, Share::Waking, Share::Threads];
    for first in 0..all.len() {
        // Each later one took more, and each alone more than the job is late.
        let taken: Vec<_> =
            all[first..].iter().zip(1..).map(|(of, n)| (*of, 7.0 + f64::from(n))).collect();
        let late = LateJob { response_ns: Some(15.5 * MS), ..job(0.5, 0.0, &taken) };
        assert_eq!(reason(&late), Reason::Taken(all[first]));
    }
    let gaps = [(Share::Interrupts, 2.0), (Share::NoEvent, 2.5), (Share::Threads, 2.2)];
    let late = LateJob { response_ns: Some(9.5 * MS), ..job(2.8, 0.0, &gaps) };
    assert_eq!(reason(&late), Reason::Taken(Share::NoEvent), "the largest of the gaps");
}

#[test]
fn what_jobs_in_time_do_without_too_is_no_reason() {
    let ordinary = shares(&[(Share::Set, 4.0)]);
    let late = LateJob { ordinary, ..job(3.0, 0.0, &[(Share::Set, 4.0), (Share::NoEvent, 2.0)]) };
    assert_eq!(reason(&late), Reason::Taken(Share::NoEvent));
    let more = LateJob { ordinary, ..job(3.0, 0.0, &[(Share::Set, 6.0), (Share::NoEvent, 0.2)]) };
    assert_eq!(reason(&more), Reason::Taken(Share::Set));
}

#[test]
fn a_job_over_its_budget_was_throttled_whoever_ran() {
    let taken = [(Share::Set, 3.0), (Share::Threads, 3.0), (Share::Interrupts, 0.1)];
    let late = LateJob { over_budget: true, ..job(3.0, 0.0, &taken) };
    assert_eq!(reason(&late), Reason::Taken(Share::Throttled));
}

#[test]
fn no_part_is_named_that_does_not_reach_a_lateness_which_all_together_do_not() {
    let unseen =
        LateJob { response_ns: Some(14.0 * MS), ..job(3.0, 0.0, &[(Share::Interrupts, 0.04)]) };
    assert_eq!(why(&unseen), Why { reason: Reason::Unknown, explained: false });
    let together =
        job(3.0, 0.0, &[(Share::Interrupts, 3.0), (Share::NoEvent, 3.5), (Share::Waking, 2.5)]);
    let late = LateJob { response_ns: Some(12.0 * MS), ..together };
    assert_eq!(why(&late), Why { reason: Reason::Taken(Share::NoEvent), explained: true });
}

#[test]
fn every_cause_of_a_gap_counts_for_one_share() {
    let member = Cause::Member {
        comm: "b".to_owned(),
        class: whylate_model::cause::PriorityClass::RealTime,
    };
    for (cause, share) in [
        (member, Share::Set),
        (Cause::Whylate, Share::Threads),
        (Cause::IdleExit, Share::Waking),
        (Cause::Host, Share::NoEvent),
        (Cause::EntryResidual, Share::Interrupts),
        (Cause::TraceLost, Share::Unknown),
    ] {
        assert_eq!(Share::of(&cause), share, "{cause}");
    }
}

proptest! {
    #[test]
    fn a_job_whose_time_is_accounted_for_is_explained_and_has_a_name(
        asked in 0.1..9.0_f64,
        left_over in 0.0..9.0_f64,
        taken in prop::collection::vec(0.0..9.0_f64, Share::ALL.len()),
    ) {
        let taken: Vec<_> = Share::ALL.into_iter().zip(taken).collect();
        let of = job(asked, left_over, &taken);
        prop_assume!(of.response_ns > Some(of.deadline_ns));
        let why = why(&of);
        prop_assert!(why.explained);
        prop_assert_ne!(why.reason, Reason::Unknown);
    }
}

#[test]
fn what_is_asked_for_or_left_over_is_own_demand_only_beyond_the_deadline() {
    let just = job(8.0, 0.0, &[(Share::NoEvent, 1.0)]);
    assert_eq!(reason(&just), Reason::Taken(Share::NoEvent), "it asks for all there is, no more");
    // Of a set that asks for too much it is the set's demand only where that alone is too much for the job.
    let of_set = |set: f64, left_over: f64| LateJob {
        overcommitted: true,
        ..job(3.0, left_over, &[(Share::Set, set), (Share::NoEvent, 4.0)])
    };
    assert_eq!(reason(&of_set(5.0, 0.0)), Reason::Taken(Share::Set));
    assert_eq!(reason(&of_set(5.1, 0.0)), Reason::OwnDemand);
    assert_eq!(reason(&of_set(3.1, 2.0)), Reason::OwnDemand, "with what was left over");
    let skipped = LateJob { began: false, response_ns: None, ..of_set(0.0, 0.0) };
    assert_eq!(why(&skipped), Why { reason: Reason::OwnDemand, explained: true });
}

#[test]
fn a_job_that_was_never_done_is_late_by_what_is_known_of_it() {
    let never = |taken: &[(Share, f64)]| LateJob { response_ns: None, ..job(3.0, 0.0, taken) };
    // Nine of eight ms: late by one, at least.
    let one = never(&[(Share::Waking, 1.0), (Share::NoEvent, 5.0)]);
    assert_eq!(why(&one), Why { reason: Reason::Taken(Share::Waking), explained: true });
    let less = never(&[(Share::Waking, 0.9), (Share::NoEvent, 5.1)]);
    assert_eq!(reason(&less), Reason::Taken(Share::NoEvent));
    // What is known is less than there was before the deadline: it is late by who knows what.
    let in_time = never(&[(Share::Interrupts, 1.0)]);
    assert_eq!(why(&in_time), Why { reason: Reason::Taken(Share::Interrupts), explained: false });
    let unknown = LateJob { asked_ns: None, ..never(&[(Share::Away, 1.0), (Share::Set, 0.5)]) };
    assert_eq!(why(&unknown), Why { reason: Reason::Taken(Share::Away), explained: false });
    let nothing = LateJob { asked_ns: None, ..never(&[]) };
    assert_eq!(why(&nothing), Why { reason: Reason::Unknown, explained: false });
}

#[test]
fn nineteen_of_twenty_parts_of_a_lateness_reach_it() {
    for (set, named) in [(1.9, Share::Set), (1.89, Share::NoEvent)] {
        let taken = [(Share::Set, set), (Share::NoEvent, 1.95)];
        let late = LateJob { response_ns: Some(10.0 * MS), ..job(6.15, 0.0, &taken) };
        assert_eq!(reason(&late), Reason::Taken(named), "{set}");
    }
    for (left_over, named) in [(1.9, Reason::LeftOver), (1.89, Reason::Taken(Share::NoEvent))] {
        let late = job(2.0, left_over, &[(Share::NoEvent, 1.95)]);
        let late = LateJob { response_ns: Some(10.0 * MS), ..late };
        assert_eq!(reason(&late), named, "{left_over}");
    }
    for (taken, explained) in [(3.9, true), (3.89, false)] {
        let late =
            LateJob { response_ns: Some(10.0 * MS), ..job(6.0, 0.0, &[(Share::Away, taken)]) };
        assert_eq!(why(&late).explained, explained, "{taken}");
    }
}

#[test]
fn of_equal_parts_the_first_in_the_order_is_named() {
    let gaps = [(Share::NoEvent, 2.0), (Share::Interrupts, 2.0), (Share::Threads, 2.0)];
    let late = LateJob { response_ns: Some(9.5 * MS), ..job(2.8, 0.0, &gaps) };
    assert_eq!(reason(&late), Reason::Taken(Share::Threads));
    // None reaches it alone.
    let all = [(Share::Blocked, 2.0), (Share::Throttled, 2.0), (Share::Set, 2.0)];
    let late = LateJob { response_ns: Some(11.0 * MS), ..job(5.0, 0.0, &all) };
    assert_eq!(reason(&late), Reason::Taken(Share::Set));
}

#[test]
fn shares_add_up_and_are_divided_one_by_one() {
    let mut sum = shares(&[(Share::Set, 1.0), (Share::Unknown, 2.0)]);
    sum.add_all(&shares(&[(Share::Set, 0.5), (Share::Away, 4.0)]));
    sum.add(Share::Away, 2.0 * MS);
    assert_eq!(sum, shares(&[(Share::Set, 1.5), (Share::Away, 6.0), (Share::Unknown, 2.0)]));
    assert!((sum.total() - 9.5 * MS).abs() < 1e-6);
    let half = shares(&[(Share::Set, 0.75), (Share::Away, 3.0), (Share::Unknown, 1.0)]);
    assert_eq!(sum.divided(2.0), half);
    let threads: Vec<Share> = Share::ALL.into_iter().filter(|share| share.is_thread()).collect();
    assert_eq!(threads, [Share::Set, Share::Throttled, Share::Threads]);
}
