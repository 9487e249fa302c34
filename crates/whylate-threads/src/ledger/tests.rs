//! Planted marks, judged.

use whylate_model::{Nanos, Ticks, TicksDelta};

use super::*;
use crate::relation::Tie;
use crate::timer::TimerNanos;

const MS: u64 = 1_000_000;

/// A tick is a nanosecond, and both clocks show the same.
fn line() -> Segment {
    let tie = |at| Tie { ticks: Ticks(at), at: TimerNanos(at), half_width: TicksDelta(0) };
    Segment::between(tie(0), tie(1_000_000_000)).unwrap()
}

fn run(mut ledger: Ledger, marks: &[Mark], end: u64) -> (Ledger, Vec<Job>) {
    let term = Term { start: TimerNanos(0), end: TimerNanos(end) };
    ledger.begin(term, Calendar { start: term.start, interval: Nanos::SECOND });
    let mut jobs = Vec::new();
    let mut enter = |entry| {
        if let Entry::Job(job) = entry {
            jobs.push(job);
        }
    };
    for mark in marks {
        ledger.take(mark, &line(), &mut enter);
    }
    ledger.finish(Last { at: Ticks(end), lossy: false }, &line(), &mut enter);
    (ledger, jobs)
}

fn woke(index: u64, intended: u64, at: u64) -> Mark {
    Mark::Woke { index, intended: TimerNanos(intended), at: Ticks(at) }
}

fn done(index: u64, at: u64) -> Mark {
    Mark::Done { index, received: TicksDelta(MS), at: Ticks(at) }
}

fn jobs(period: u64) -> Ledger {
    Ledger::Jobs(JobLedger::new(Nanos(period), Nanos(period)))
}

#[test]
fn a_job_done_by_its_deadline_is_a_hit_and_the_next_tick_is_a_miss() {
    for (at, expected) in [(8 * MS, Verdict::Hit), (8 * MS + 1, Verdict::Late)] {
        let (ledger, jobs) = run(jobs(8 * MS), &[woke(0, 0, 5), done(0, at)], 8 * MS + 2);
        assert_eq!(jobs[0].verdict, expected);
        let account = ledger.account().unwrap();
        assert_eq!(
            (account.hits, account.misses),
            (u64::from(at == 8 * MS), u64::from(at > 8 * MS))
        );
        assert_eq!(account.lateness.whole.max(), Some(5));
    }
}

#[test]
fn skipped_releases_are_misses_of_their_own_and_every_deadline_is_judged_once() {
    let marks = [
        woke(0, 0, 0),
        done(0, 27 * MS),
        Mark::Skipped { index: 1, count: 2, at: Ticks(27 * MS) },
        woke(3, 24 * MS, 27 * MS),
        done(3, 30 * MS),
    ];
    let (ledger, jobs) = run(jobs(8 * MS), &marks, 40 * MS);
    let verdicts: Vec<_> = jobs.iter().map(|job| (job.index, job.verdict)).collect();
    let expected = [
        (0, Verdict::Late),
        (1, Verdict::Skipped),
        (2, Verdict::Skipped),
        (3, Verdict::Hit),
        (4, Verdict::Skipped),
    ];
    assert_eq!(verdicts, expected, "the release at 32 ms never began, and 40 ms are over");
    let account = ledger.account().unwrap();
    assert_eq!((account.hits, account.misses, account.skipped), (1, 4, 3));
    assert_eq!(account.response.whole.max().map(|ns| ns / MS), Some(27));
}

#[test]
fn a_job_without_its_time_at_the_end_is_a_miss_only_when_its_deadline_has_passed() {
    let open = [woke(0, 0, 0)];
    let (early, none) = run(jobs(8 * MS), &open, 7 * MS);
    assert_eq!((early.account().unwrap().misses, none.len()), (0, 0));
    let (late, one) = run(jobs(8 * MS), &open, 9 * MS);
    assert_eq!((late.account().unwrap().unfinished, one[0].verdict), (1, Verdict::Unfinished));
}

#[test]
fn frames_move_their_deadline_with_each_completion_and_with_each_miss() {
    // Period 50 ms. Frames at 10, 20, then one at 175: deadlines at 70, 120 and 170 pass.
    let frames = Ledger::Frames(FrameLedger::new(Nanos(50 * MS)));
    let marks = [woke(0, 0, 0), done(0, 10 * MS), done(1, 20 * MS), done(2, 175 * MS)];
    let (ledger, jobs) = run(frames, &marks, 200 * MS);
    let account = ledger.account().unwrap();
    assert_eq!((account.hits, account.misses), (3, 3));
    let missed = jobs.iter().filter(|job| job.verdict == Verdict::Late);
    let deadlines: Vec<u64> = missed.map(|job| job.deadline.0 / MS).collect();
    assert_eq!(deadlines, [70, 120, 170]);
}

#[test]
fn skipped_wake_ups_count_at_their_own_lateness() {
    let wakes = Ledger::Wakes(WakeLedger::absolute(Nanos(MS)));
    let skipped = Mark::Skipped { index: 2, count: 3, at: Ticks(4 * MS + 500_000) };
    let (ledger, _) = run(wakes, &[woke(1, MS, 4 * MS + 500_000), skipped], 10 * MS);
    let account = ledger.account().unwrap();
    assert_eq!((account.lateness.whole.len(), account.corrected.whole.len()), (1, 4));
    assert_eq!(account.corrected.whole.min(), Some(500_000));
    assert_eq!(account.skipped, 3);
}

#[test]
fn a_schedule_that_starts_anew_drifts_by_its_lateness() {
    let wakes = Ledger::Wakes(WakeLedger::phased(Nanos(MS)));
    let marks = [woke(0, MS, MS + 100), woke(1, 2 * MS + 100, 2 * MS + 300)];
    let (ledger, _) = run(wakes, &marks, 10 * MS);
    let account = ledger.account().unwrap();
    assert_eq!(account.drift, Some(Nanos(100)));
    assert!(account.corrected.whole.is_empty());
}

/// A program of one phase.
fn passes(marks: &[Mark], end: u64) -> (Ledger, Vec<Job>, Vec<Pass>) {
    let mut ledger = Ledger::Passes(PassLedger::new(1));
    let term = Term { start: TimerNanos(0), end: TimerNanos(end) };
    ledger.begin(term, Calendar { start: term.start, interval: Nanos::SECOND });
    let (mut jobs, mut rows) = (Vec::new(), Vec::new());
    let mut enter = |entry| match entry {
        Entry::Job(job) => jobs.push(job),
        Entry::Pass(pass) => rows.push(pass),
        Entry::Wake { .. } => panic!("no thread that only wakes"),
    };
    for mark in marks {
        ledger.take(mark, &line(), &mut enter);
    }
    ledger.finish(Last { at: Ticks(end), lossy: false }, &line(), &mut enter);
    (ledger, jobs, rows)
}

fn due(index: u64, release: u64, due: u64) -> Mark {
    let (release, due) = (TimerNanos(release), TimerNanos(due));
    Mark::Due { index, release, due, at: Ticks(0) }
}

fn passed(run: u64, at: u64) -> Mark {
    Mark::Passed { phase: 0, run: TicksDelta(run), lost: TicksDelta(MS), at: Ticks(at) }
}

fn fired(intended: u64, put_off: u64, at: u64) -> Mark {
    let (intended, put_off) = (TimerNanos(intended), Nanos(put_off));
    Mark::Fired { timer: 0, intended, put_off, at: Ticks(at) }
}

#[test]
fn jobs_of_a_program_are_judged_at_their_timers_and_passes_are_added_up() {
    // The first is in time, the second late and its relative timer begins anew at 24 ms, the third
    // has begun when the run ends, and its deadline is over.
    let marks = [
        Mark::Began { at: Ticks(5) },
        due(0, 0, 10 * MS),
        done(0, 3 * MS),
        fired(10 * MS, 0, 10 * MS + 7),
        passed(2 * MS, 10 * MS + 7),
        due(1, 10 * MS, 20 * MS),
        done(1, 24 * MS),
        fired(24 * MS, 4 * MS, 24 * MS),
        passed(2 * MS + 1_000, 24 * MS),
        due(2, 24 * MS, 34 * MS),
    ];
    let (ledger, jobs, rows) = passes(&marks, 40 * MS);
    let verdicts: Vec<Verdict> = jobs.iter().map(|job| job.verdict).collect();
    assert_eq!(verdicts, [Verdict::Hit, Verdict::Late, Verdict::Unfinished]);
    assert_eq!(jobs[0].woke, Some(Ticks(5)));
    assert_eq!((jobs[1].woke, jobs[1].release), (Some(Ticks(10 * MS + 7)), Ticks(10 * MS)));
    let account = ledger.account().unwrap();
    assert_eq!((account.hits, account.misses, account.unfinished), (1, 2, 1));
    assert_eq!(account.slack.whole.max().unwrap() / MS, 7);
    assert_eq!(account.tardiness.whole.max().unwrap() / MS, 4);
    assert_eq!(account.lateness.whole.max(), Some(7));
    let of = &account.phases[0];
    assert_eq!(
        (of.passes, of.run, of.elapsed, of.lost),
        (2, TicksDelta(4 * MS + 1_000), TicksDelta(24 * MS - 5), TicksDelta(2 * MS))
    );
    let timers = of.timers;
    assert_eq!((timers.count, timers.between), (2, Nanos(24 * MS)), "from the timer's beginning");
    assert_eq!((timers.put_off, timers.put_off_by), (1, Nanos(4 * MS)));
    let slack: Vec<i64> = rows.iter().map(|row| row.slack_ns / 1_000_000).collect();
    assert_eq!((slack, rows[0].late, rows[1].late), (vec![7, -4], Nanos(7), Nanos(0)));
    assert_eq!(rows[1].start, rows[0].end);
}

#[test]
fn of_activations_the_lateness_of_the_last_is_kept_and_not_the_largest() {
    let marks = [
        Mark::Began { at: Ticks(5) },
        due(0, 0, 10 * MS),
        done(0, 3 * MS),
        fired(10 * MS, 0, 10 * MS + 9),
        passed(MS, 10 * MS + 9),
        due(1, 10 * MS, 20 * MS),
        done(1, 13 * MS),
        fired(20 * MS, 0, 20 * MS + 3),
        passed(MS, 20 * MS + 3),
        // A pass without an activation changes nothing.
        passed(MS, 21 * MS),
    ];
    let (ledger, _, _) = passes(&marks, 40 * MS);
    let timers = ledger.account().unwrap().phases[0].timers;
    assert_eq!((timers.count, timers.last_late), (2, Nanos(3)));
    // Two periods of 10 ms and that: what is late in the middle is nearer to what comes next.
    assert_eq!(timers.between, Nanos(20 * MS + 3));
}

#[test]
fn what_keeps_busy_by_the_clock_is_told_apart_from_what_it_receives() {
    let busy = |over, elapsed, received| {
        let [over, elapsed, received] = [over, elapsed, received].map(TicksDelta);
        Mark::Busy { over, elapsed, received, at: Ticks(0) }
    };
    let marks = [
        Mark::Began { at: Ticks(0) },
        busy(7, 3 * MS, MS),
        passed(5, 4 * MS),
        busy(2, 2 * MS, 2 * MS),
        passed(0, 8 * MS),
        passed(0, 9 * MS),
    ];
    let (ledger, _, rows) = passes(&marks, 40 * MS);
    let of = &ledger.account().unwrap().phases[0];
    let busy = of.busy;
    assert_eq!((of.run, busy.elapsed), (TicksDelta(5), TicksDelta(5 * MS)));
    assert_eq!((busy.received, busy.over), (TicksDelta(3 * MS), TicksDelta(7)));
    let received: Vec<u64> = rows.iter().map(|row| row.busy.received.0).collect();
    assert_eq!(received, [MS, 2 * MS, 0], "each in its own pass");
}

#[test]
fn a_pass_without_a_timer_has_no_deadline() {
    let marks = [Mark::Began { at: Ticks(0) }, passed(2 * MS, 5 * MS), passed(2 * MS, 11 * MS)];
    let (ledger, jobs, rows) = passes(&marks, 40 * MS);
    let account = ledger.account().unwrap();
    assert_eq!((account.hits + account.misses, jobs.len(), rows.len()), (0, 0, 2));
    assert!(account.response.whole.is_empty());
    assert_eq!((rows[1].end.since(rows[1].start), rows[1].slack_ns), (TicksDelta(6 * MS), 0));
}

#[test]
fn jobs_whose_records_found_no_room_are_neither_hit_nor_missed() {
    // Of ten releases: 0 recorded, 1 and 2 lost, 3 without its end, 4 recorded, the rest lost.
    let marks = [woke(0, 0, 5), done(0, MS), woke(3, 24 * MS, 24 * MS + 5)];
    let more = [woke(4, 32 * MS, 32 * MS + 5), done(4, 33 * MS)];
    let term = Term { start: TimerNanos(0), end: TimerNanos(80 * MS) };
    let mut ledger = jobs(8 * MS);
    ledger.begin(term, Calendar { start: term.start, interval: Nanos::SECOND });
    for mark in marks.iter().chain(&more) {
        ledger.take(mark, &line(), &mut |_| {});
    }
    ledger.finish(Last { at: Ticks(80 * MS), lossy: true }, &line(), &mut |_| {});
    let account = ledger.account().unwrap();
    assert_eq!((account.hits, account.misses, account.unrecorded), (2, 0, 8));
}
