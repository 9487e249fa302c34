//! Simulated runs with planted truth: causes that slow requests down, and causes that only lie there.

use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::tail::{End, Tail, TailVerdict};
use whylate_model::{Hertz, Nanos, Ticks};
use whylate_stats::rng::Rng;

use super::join::Window;
use super::{Looking, Scope, Taken};

/// Ticks are nanoseconds.
const MS: u64 = 1_000_000;
const RATE: Hertz = Hertz(1e9);

fn scope(duration_ms: u64, seed: u64) -> Scope {
    let duration = Nanos(duration_ms * MS);
    let start = Ticks(1_000 * MS);
    Scope { lanes: 2, start, duration, longest: Nanos(100 * MS), rate: RATE, seed }
}

fn thread(name: &str) -> Cause {
    Cause::Thread { comm: name.to_owned(), class: PriorityClass::RealTime }
}

fn timer() -> Cause {
    Cause::Interrupt { name: "local_timer".to_owned() }
}

/// Interruptions of one lane: from, to, cause.
type Lane = Vec<(u64, u64, Cause)>;

/// Every `period`, give or take half of it, for `length`.
fn every(period: u64, length: u64, cause: &Cause, of: Scope, rng: &mut Rng) -> Lane {
    let end = of.start.0 + of.duration.0;
    let mut at = of.start.0;
    let mut lane = Lane::new();
    while at < end {
        let from = at + rng.below(period / 2);
        lane.push((from, from + length, cause.clone()));
        at += period;
    }
    lane
}

/// Two kinds of interruptions on one CPU: those of the second lie where the first leave room.
fn both(mut first: Lane, second: Lane) -> Lane {
    let free = |(from, to, _): &(u64, u64, Cause)| {
        !first.iter().any(|(other, end, _)| from < end && other < to)
    };
    let free: Lane = second.into_iter().filter(free).collect();
    first.extend(free);
    first.sort_by_key(|(from, ..)| *from);
    first
}

/// When work that begins at `from` and takes `work` is done, on a CPU that is interrupted.
fn done(from: u64, work: u64, lane: &Lane) -> u64 {
    let (mut at, mut left) = (from, work);
    let first = lane.partition_point(|(_, to, _)| *to <= from);
    for (begin, end, _) in &lane[first..] {
        if *begin >= at + left {
            break;
        }
        left -= begin.saturating_sub(at).min(left);
        at = at.max(*end);
    }
    at + left
}

/// Requests at `per_second` whose service takes what `work` says; `slowed` by what lies in the lane of
/// the other end, or not at all.
fn run(of: Scope, lanes: &[Lane; 2], slowed: bool, mut work: impl FnMut(&mut Rng) -> u64) -> Tail {
    let mut rng = Rng::stream(of.seed, 9);
    let mut looking = Looking::new(of);
    for (lane, end) in [End::Client, End::Other].into_iter().enumerate() {
        for (from, to, cause) in &lanes[lane] {
            let taken = Taken { from: Ticks(*from), to: Ticks(*to), cause: cause.clone() };
            looking.interruption(lane, end, &[taken]);
        }
    }
    let apart = 500_000;
    for number in 0..of.duration.0 / apart {
        let from = of.start.0 + number * apart + rng.below(apart / 2);
        let work = work(&mut rng);
        let to = if slowed { done(from, work, &lanes[1]) } else { from + work };
        looking.request(Window { from: Ticks(from), to: Ticks(to) });
        if number % 64 == 0 {
            looking.complete(Ticks(from.saturating_sub(200 * MS)));
        }
    }
    looking.finish(None)
}

/// Some 14 us, and one in fifty 0.2 to 0.6 ms for reasons of its own.
fn slow_by_itself(rng: &mut Rng) -> u64 {
    let quick = 10_000 + rng.exponential(4_000.0) as u64;
    if rng.below(50) == 0 { 200_000 + rng.below(400_000) } else { quick }
}

fn quick(rng: &mut Rng) -> u64 {
    10_000 + rng.exponential(4_000.0) as u64
}

fn claimed(tail: &Tail) -> Vec<(End, Cause)> {
    tail.claimed().map(|cause| (cause.end, cause.cause.clone())).collect()
}

#[test]
fn a_thread_that_takes_the_other_ends_cpu_is_claimed_and_the_tick_beside_it_is_not() {
    let of = scope(4_000, 1);
    let mut rng = Rng::new(1);
    let hog = every(60 * MS, 3 * MS, &thread("hog"), of, &mut rng);
    let tick = every(4 * MS, 12_000, &timer(), of, &mut rng);
    let beside = every(4 * MS, 12_000, &timer(), of, &mut rng);
    let tail = run(of, &[beside, both(hog, tick)], true, quick);
    assert_eq!(claimed(&tail), [(End::Other, thread("hog"))], "{tail:#?}");
    let hog = &tail.causes[0];
    assert!(hog.of_slow > 0.95 && hog.of_ordinary < 0.2 && hog.episodes >= 20, "{hog:?}");
    let lift = hog.lift.unwrap();
    assert!(lift.low > 2.0 && lift.low <= lift.ratio && lift.ratio <= lift.high, "{lift:?}");
    assert!(tail.not_explained * 20 < tail.slow, "{tail:?}");
}

#[test]
fn a_tick_that_lies_in_long_requests_by_chance_is_not_claimed_however_often_it_does() {
    let mut rng = Rng::new(2);
    let of = scope(6_000, 2);
    // In almost every slow request, and in few ordinary ones: they are too short to meet it.
    let tick = every(250_000, 150_000, &timer(), of, &mut rng);
    let tail = run(of, &[Lane::new(), tick], false, slow_by_itself);
    let tick = &tail.causes[0];
    assert!(tick.lift.unwrap().low > 2.0, "oftener than in ordinary ones: {tick:?}");
    assert_eq!(claimed(&tail), [], "{tail:#?}");
    assert_eq!(tail.verdict, TailVerdict::NoneStands);
}

#[test]
fn where_causes_have_nothing_to_do_with_latency_one_run_in_twenty_claims_one_at_most() {
    let false_claims = (0..200).filter(|seed| {
        let of = scope(3_000, *seed);
        let mut rng = Rng::stream(*seed, 1);
        let stalls = every(150 * MS, 20 * MS, &Cause::Host, of, &mut rng);
        let ticks = every(4 * MS, 80_000, &timer(), of, &mut rng);
        let threads = every(40 * MS, 2 * MS, &thread("other"), of, &mut rng);
        let soft = every(10 * MS, 300_000, &thread("ksoftirqd/1"), of, &mut rng);
        let lanes = [both(stalls, ticks), both(threads, soft)];
        let tail = run(of, &lanes, false, slow_by_itself);
        tail.verdict == TailVerdict::Claimed
    });
    let false_claims = false_claims.count();
    eprintln!("{false_claims} of 200 claimed a cause");
    assert!(false_claims <= 10, "{false_claims} of 200");
}

#[test]
fn a_cause_of_few_episodes_and_a_run_of_few_requests_claim_nothing() {
    let of = scope(4_000, 4);
    let mut rng = Rng::new(4);
    let rare = every(1_000 * MS, 30 * MS, &thread("hog"), of, &mut rng);
    let tail = run(of, &[Lane::new(), rare.clone()], true, quick);
    assert_eq!(
        (tail.verdict, tail.causes[0].episodes),
        (TailVerdict::NothingStruck, 4),
        "{tail:?}"
    );
    assert!(tail.causes[0].of_slow > 0.9, "it is told all the same: {tail:?}");
    let short = scope(100, 4);
    assert_eq!(run(short, &[Lane::new(), rare], true, quick).verdict, TailVerdict::TooFew);
}

#[test]
fn of_a_hundred_thousand_requests_the_slowest_thousandth_is_slow_unless_asked_otherwise() {
    let of = scope(60_000, 5);
    let none = [Lane::new(), Lane::new()];
    let tail = run(of, &none, false, slow_by_itself);
    assert!((tail.percent - 99.9).abs() < 1e-9 && tail.slow <= 120, "{tail:?}");
    assert_eq!((tail.requests, tail.not_explained), (120_000, tail.slow));
    assert_eq!(tail.left_aside, 0);
}

#[test]
fn requests_that_whylate_itself_had_for_half_of_their_time_are_left_out_and_no_others() {
    let of = scope(100, 6);
    let mut looking = Looking::new(of);
    let begin = of.start.0 + MS;
    for (number, (own, cause)) in
        [(50, Cause::Whylate), (49, Cause::Whylate), (99, thread("hog"))].into_iter().enumerate()
    {
        let from = begin + number as u64 * 1_000;
        let taken = [Taken { from: Ticks(from), to: Ticks(from + own), cause }];
        looking.interruption(0, End::Client, &taken);
        looking.request(Window { from: Ticks(from), to: Ticks(from + 100) });
    }
    let tail = looking.finish(None);
    assert_eq!((tail.by_whylate, tail.requests, tail.left_aside), (1, 2, 0), "{tail:?}");
}
