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
