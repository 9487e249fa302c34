//! Planted job tables: what each job above its bound is put down to, and what is not judged.

use whylate_model::execution::Verdict;
use whylate_model::prediction::Prediction;

use super::*;
use crate::execution::recorded;
use crate::prediction::tests::predicted;

/// A tenth of a millisecond, in ticks of 1 GHz and in nanoseconds.
const TENTH: u64 = 100_000;
const RATE: Hertz = Hertz(1e9);

/// The response of each of two tasks by fixed priorities, by hand: 2 ms each 10 ms before 6 ms.
#[expect(clippy::unnecessary_wraps, reason = "has the shape of an analysis, which may refuse")]
fn by_hand(task: usize, lost: Nanos) -> Option<PredictedResponse> {
    let own = [20, 60][task] * TENTH + lost.0;
    let mut nominal = own;
    if task == 1 {
        loop {
            let next = own + nominal.div_ceil(100 * TENTH) * 20 * TENTH;
            if next == nominal {
                break;
            }
            nominal = next;
        }
    }
    Some(PredictedResponse::Bounded { nominal: Nanos(nominal), actual: Nanos(nominal) })
}

/// Those two tasks, the second each 20 ms.
fn two() -> Prediction {
    let mut of = predicted(&[2, 8]);
    of.tasks[0].execution = Nanos(20 * TENTH);
    of.tasks[1].execution = Nanos(60 * TENTH);
    of.tasks[1].period = Nanos(200 * TENTH);
    of
}

/// A job that was released, and done or not, at these instants; all in tenths of a millisecond.
fn job(index: u64, release: u64, done: Option<u64>, received: u64) -> StoredJob {
    let at = |tenths: u64| Ticks(TENTH * (1_000 + tenths));
    let verdict = if done.is_some() { Verdict::Hit } else { Verdict::Unfinished };
    StoredJob {
        release: at(release),
        deadline: at(release + 100),
        woke: Some(at(release)),
        done: done.map(at),
        received: Nanos(received * TENTH),
        ..recorded::tests::job(0, index, verdict)
    }
}

fn woken_late(by: u64, of: StoredJob) -> StoredJob {
    let by = by * TENTH;
    StoredJob { waking: Nanos(by), woke: of.woke.map(|woke| Ticks(woke.0 + by)), ..of }
}

fn interrupted(by: u64, of: StoredJob) -> StoredJob {
    StoredJob { interrupts: Nanos(by * TENTH), ..of }
}

/// All jobs of both tasks judged; of the first, so many records are lost.
fn judged_jobs(of: &Prediction, jobs: [&[StoredJob]; 2], lost: u64) -> [JudgedJobs; 2] {
    let jobs = jobs.map(|jobs| jobs.iter().collect::<Vec<_>>());
    let table = |task: usize| JobTable {
        task: &of.tasks[task],
        jobs: &jobs[task],
        unrecorded: if task == 0 { lost } else { 0 },
        cut: false,
        step: Nanos(160),
        misses: &[],
    };
    let tables = [table(0), table(1)];
    let judge = Judge::new((RATE, true), of.policy, &by_hand);
    [0, 1].map(|task| {
        let level = judge.level(&tables, task);
        let bound = of.tasks[task].nominal().unwrap();
        let response =
            |job: &StoredJob| job.done.map(|done| done.since(job.release).to_nanos(RATE));
        let above: Vec<Above<'_>> = jobs[task]
            .iter()
            .filter(|job| response(job) > Some(bound))
            .map(|job| {
                let (verdict, with_lost) = judge.judge(&level, (task, &tables[task]), job);
                (*job, verdict, with_lost)
            })
            .collect();
        let found = judged(&tables[task], RATE, &above).unwrap();
        let all = found.within + found.machine + found.violated + found.not_judged;
        assert_eq!(all, jobs[task].len() as u64 + tables[task].unrecorded, "each once: {found:?}");
        let by_cause: u64 = found.machine_by.iter().map(|of| of.jobs).sum();
        assert_eq!(by_cause, found.machine, "each by one cause: {found:?}");
        found
    })
}

fn counts(of: &JudgedJobs) -> [u64; 4] {
    [of.within, of.machine, of.violated, of.not_judged]
}

fn machine(lost: u64, cause: MachineCause, part: u64) -> MachineTime {
    let time = |tenths: u64| Nanos(tenths * TENTH);
    MachineTime { lost_ns: time(lost), cause: Some(cause), cause_ns: time(part) }
}

#[test]
fn a_job_is_within_its_bound_or_above_it_by_the_machine_or_a_violation() {
    let jobs = [
        job(0, 0, Some(20), 20),
        woken_late(7, job(1, 100, Some(127), 20)),
        // It received more than a job asks for, and nothing was lost.
        job(2, 200, Some(225), 25),
        // Half of what it took longer is the machine's.
        interrupted(2, job(3, 300, Some(324), 22)),
    ];
    let [first, _] = judged_jobs(&two(), [&jobs, &[]], 0);
    assert_eq!(counts(&first), [1, 1, 2, 0]);
    assert_eq!(first.pessimistic_by_ns, None);
    let most = first.most.unwrap();
    assert_eq!((most.job, most.response_ns), (1, Nanos(27 * TENTH)));
    assert_eq!(most.machine, machine(7, MachineCause::LateWakeUp, 7));
    let [own, half] = first.violated_first.as_slice() else { panic!("{:?}", first.violated_first) };
    let nothing = MachineTime { lost_ns: Nanos(0), cause: None, cause_ns: Nanos(0) };
    assert_eq!((own.job, own.machine, own.bound_ns), (2, nothing, Some(Nanos(20 * TENTH))));
    assert_eq!((half.job, half.bound_ns), (3, Some(Nanos(22 * TENTH))));
    assert_eq!(half.machine, machine(2, MachineCause::Interrupts, 2));
}

#[test]
fn jobs_that_the_machine_accounts_for_are_counted_by_what_took_most_the_most_frequent_first() {
    let jobs = [
        woken_late(7, job(0, 0, Some(27), 20)),
        interrupted(2, job(1, 100, Some(122), 20)),
        interrupted(3, job(2, 200, Some(223), 20)),
    ];
    let [first, _] = judged_jobs(&two(), [&jobs, &[]], 0);
    assert_eq!(counts(&first), [0, 3, 0, 0]);
    let by = |cause, jobs| MachineJobs { cause, jobs };
    let expected = [by(MachineCause::Interrupts, 2), by(MachineCause::LateWakeUp, 1)];
    assert_eq!(first.machine_by, expected);
}

#[test]
fn where_all_jobs_are_within_the_bound_it_is_pessimistic_by_what_is_left() {
    let mut of = two();
    of.tasks[0].execution = Nanos(15 * TENTH);
    let jobs = [job(0, 0, Some(15), 15), job(1, 100, Some(118), 15)];
    let [first, second] = judged_jobs(&of, [&jobs, &[]], 0);
    assert_eq!((counts(&first), first.pessimistic_by_ns), ([2, 0, 0, 0], Some(Nanos(2 * TENTH))));
    assert_eq!((counts(&second), second.pessimistic_by_ns), ([0; 4], None), "no job, no verdict");
}

#[test]
fn a_reading_later_than_the_last_of_its_work_is_no_violation() {
    let last = Nanos(20 * TENTH + 160);
    let done = Some(Ticks(TENTH * 1_000 + last.0));
    let mut late = StoredJob { received: last, done, ..job(0, 0, Some(20), 20) };
    let [first, _] = judged_jobs(&two(), [&[late], &[]], 0);
    assert_eq!(counts(&first), [0, 1, 0, 0]);
    late.received = Nanos(last.0 + 1);
    late.done = late.done.map(|done| Ticks(done.0 + 1));
    let [first, _] = judged_jobs(&two(), [&[late], &[]], 0);
    assert_eq!(counts(&first), [0, 0, 1, 0]);
}

/// Both are woken 1 ms late; the first is interrupted for 0.5 ms, the second for 1 ms, so that a second
/// job of the first comes before it is done.
fn of_several() -> ([StoredJob; 2], [StoredJob; 1]) {
    let first =
        [interrupted(5, woken_late(10, job(0, 0, Some(35), 20))), job(1, 100, Some(120), 20)];
    let second = interrupted(10, woken_late(10, job(0, 0, Some(125), 60)));
    (first, [StoredJob { threads: Nanos(40 * TENTH), away: Nanos(5 * TENTH), ..second }])
}

#[test]
fn what_was_lost_in_the_whole_busy_period_counts_once_and_may_let_in_another_job() {
    let (first, second) = of_several();
    let [first, second] = judged_jobs(&two(), [&first, &second], 0);
    assert_eq!(counts(&first), [1, 1, 0, 0]);
    assert_eq!(first.most.unwrap().machine, machine(15, MachineCause::LateWakeUp, 10));
    // 12.5 ms less 2 + 6 + 2 received: R + L would be 10.5 ms, and R of B + L is 12.5 ms.
    assert_eq!(counts(&second), [0, 1, 0, 0]);
    let most = second.most.unwrap();
    assert_eq!(most.machine, machine(25, MachineCause::Interrupts, 15));
    assert_eq!(most.bound_ns, Some(Nanos(125 * TENTH)));
}

#[test]
fn a_busy_period_ends_with_its_work_and_the_next_begins_anew() {
    let (first, second) = of_several();
    // 0.3 ms longer than its own busy period lets it be, though the one before lost 2.5 ms.
    let more = job(1, 200, Some(283), 60);
    let third = job(2, 200, Some(220), 20);
    let first = [first[0], first[1], third];
    let second = [second[0], StoredJob { received: Nanos(63 * TENTH), ..more }];
    let [_, second] = judged_jobs(&two(), [&first, &second], 0);
    assert_eq!(counts(&second), [0, 1, 1, 0]);
    assert_eq!(second.violated_first[0].machine.lost_ns, Nanos(0));
}

#[test]
fn what_a_less_urgent_task_lost_is_nothing_to_a_more_urgent_one() {
    let first = [job(0, 100, Some(125), 25), interrupted(3, job(1, 200, Some(223), 20))];
    let second = [interrupted(30, woken_late(90, job(0, 0, Some(205), 60)))];
    let [first, second] = judged_jobs(&two(), [&first, &second], 0);
    assert_eq!(counts(&first), [0, 1, 1, 0]);
    assert_eq!(first.violated_first[0].machine.lost_ns, Nanos(0));
    assert_eq!(first.most.unwrap().machine, machine(3, MachineCause::Interrupts, 3));
    assert_eq!(counts(&second)[1], 1);
}

#[test]
fn what_a_bound_allows_for_is_not_the_machine_s() {
    let mut of = two();
    (of.tasks[0].blocking, of.tasks[1].jitter) = (Nanos(4 * TENTH), Nanos(10 * TENTH));
    // The first waits 0.4 ms for a lock, as its bound of 2 ms (which is planted) is taken to allow.
    let waits = StoredJob { blocked: Nanos(4 * TENTH), ..job(0, 0, Some(24), 20) };
    let longer = StoredJob { blocked: Nanos(6 * TENTH), ..job(1, 100, Some(126), 20) };
    // The second arrives 1 ms late, as its jitter allows, and 1.5 ms more.
    let late = woken_late(25, job(0, 400, Some(485), 60));
    let [first, second] = judged_jobs(&of, [&[waits, longer], &[late]], 0);
    assert_eq!(first.violated_first[0].machine.lost_ns, Nanos(0), "{first:?}");
    assert_eq!(first.violated_first[1].machine.lost_ns, Nanos(2 * TENTH), "{first:?}");
    assert_eq!(second.most.unwrap().machine.lost_ns, Nanos(15 * TENTH));
}

#[test]
fn a_job_that_was_never_done_is_not_judged_nor_is_one_that_it_kept_waiting() {
    let never = job(1, 100, None, 0);
    let first = [job(0, 0, Some(25), 20), never];
    let second = [job(0, 0, Some(90), 60), job(1, 90, Some(190), 60)];
    let [first, second] = judged_jobs(&two(), [&first, &second], 0);
    // 0.5 ms were lost before it.
    assert_eq!(counts(&first), [0, 1, 0, 1]);
    assert_eq!(counts(&second), [0, 1, 0, 1]);
}

#[test]
fn where_a_record_is_lost_its_job_and_those_near_it_are_not_judged() {
    // The second of four is lost.
    let first = [job(0, 0, Some(21), 20), job(2, 200, Some(221), 20), job(3, 300, Some(323), 20)];
    let second = [job(0, 0, Some(95), 60), job(1, 180, Some(290), 60), job(2, 290, Some(380), 60)];
    let [first, second] = judged_jobs(&two(), [&first, &second], 1);
    assert_eq!(counts(&first), [0, 2, 0, 2], "that of the job at 0 lies in what is not known");
    assert_eq!(counts(&second), [0, 1, 0, 2]);
    // A record that is lost at the end leaves what comes after the last one open.
    let first = [job(0, 0, Some(21), 20), job(1, 100, Some(121), 20)];
    let [first, _] = judged_jobs(&two(), [&first, &[]], 1);
    assert_eq!(counts(&first), [0, 1, 0, 2]);
    let [first, _] = judged_jobs(&two(), [&[], &[]], 3);
    assert_eq!(counts(&first), [0, 0, 0, 3]);
}

#[test]
fn inside_reservations_other_threads_and_tasks_are_not_the_machine_s() {
    let mut of = two();
    of.policy = PredictedPolicy::Reservations;
    let away = |threads, of: StoredJob| StoredJob { threads: Nanos(threads * TENTH), ..of };
    let first =
        [away(10, job(0, 0, Some(30), 20)), interrupted(3, away(2, job(1, 100, Some(123), 20)))];
    let second = [woken_late(50, job(0, 0, Some(200), 60))];
    let [first, _] = judged_jobs(&of, [&first, &second], 0);
    assert_eq!(counts(&first), [0, 1, 1, 0]);
    assert_eq!(first.violated_first[0].machine.lost_ns, Nanos(0));
    assert_eq!(first.most.unwrap().machine, machine(3, MachineCause::Interrupts, 3));
}
