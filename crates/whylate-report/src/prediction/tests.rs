//! Planted jobs and gaps: what took too long is found with the gap behind it.

use whylate_model::cause::Cause;
use whylate_model::gap::{Evidence, Gap, GapKind};
use whylate_model::prediction::{
    JobVerdict, MachineCause, OverBy, OverCause, PredictedPolicy, PredictedResponse,
};
use whylate_model::segments::{Limits, StoredGap, Writer};
use whylate_model::threads::MissGap;
use whylate_model::{CpuId, TicksDelta};

use super::told::{beside_measured, told_jobs, violations};
use super::*;
use crate::execution::recorded::tests::{empty, set};

const MS: u64 = 1_000_000;

/// A prediction of `bound` ms for each of the threads.
pub(crate) fn predicted(bounds_ms: &[u64]) -> Prediction {
    let task = |(thread, bound): (usize, &u64)| PredictedTask {
        name: format!("t{thread}"),
        thread: thread as u32,
        priority: Some(9 - thread as u32),
        execution: Nanos(3 * MS),
        period: Nanos(10 * MS),
        deadline: Nanos(10 * MS),
        jitter: Nanos(0),
        delay: Nanos(0),
        blocking: Nanos(0),
        response: Some(PredictedResponse::Bounded {
            nominal: Nanos(bound * MS),
            actual: Nanos(bound * MS),
        }),
        slack_ns: Some(10 * MS as i64 - (bound * MS) as i64),
        simulated: Some(Nanos(bound * MS)),
        simulated_misses: 0,
        measured: None,
    };
    Prediction {
        policy: PredictedPolicy::FixedPriority,
        assignment: None,
        overheads: None,
        utilisation: 0.3,
        feasible: Some(true),
        tasks: bounds_ms.iter().enumerate().map(task).collect(),
        fits: None,
        demand: None,
        admission: None,
        simulation: None,
        notes: Vec::new(),
        with_measured_jitter: None,
    }
}

/// The response of a task of these when so much is lost: two of 3 ms each 10 ms.
#[expect(clippy::unnecessary_wraps, reason = "has the shape of an analysis, which may refuse")]
pub(super) fn alone(_: usize, lost: Nanos) -> Option<PredictedResponse> {
    let nominal = Nanos(6 * MS + lost.0);
    Some(PredictedResponse::Bounded { nominal, actual: nominal })
}

/// Job `index` of a thread, released every 10 ms, that took so many ms.
fn job(thread: u16, index: u64, took_ms: u64, woken_ms: u64) -> StoredJob {
    let release = Ticks(1_000 + index * 10 * MS);
    let after = |ms: u64| release + TicksDelta(ms * MS);
    StoredJob {
        thread,
        index,
        release,
        deadline: after(10),
        woke: Some(after(woken_ms + 1)),
        done: Some(after(took_ms)),
        received: Nanos(3 * MS),
        verdict: if took_ms > 10 { Verdict::Late } else { Verdict::Hit },
        threads: Nanos(MS),
        waking: Nanos(woken_ms * MS),
        interrupts: Nanos(0),
        host: Nanos(0),
        blocked: Nanos(0),
        away: Nanos(0),
        unknown: Nanos(0),
    }
}

fn gap(thread: u16, from_ms: u64, to_ms: u64, cause: &str) -> StoredGap {
    let at = |ms: u64| Ticks(1_000 + ms * MS);
    let gap = Gap {
        start: at(from_ms),
        end: at(to_ms),
        resumed: at(to_ms),
        cpu_before: CpuId(1),
        cpu_after: CpuId(1),
        kind: GapKind::Interruption,
        evidence: Evidence::default(),
    };
    StoredGap { thread, gap, cause: Some(cause.into()) }
}

/// Two threads; the second job of the second took 9 ms of a predicted 5.
fn planted(traced: bool) -> (Prediction, Vec<Releases>) {
    let (_home, directory) = empty();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    for index in 0..5 {
        writer.push_job(&job(0, index, 4, 0)).unwrap();
        let slow = if index == 1 { (9, 2) } else { (3, 0) };
        writer.push_job(&job(1, index, slow.0, slow.1)).unwrap();
    }
    for gap in [
        gap(0, 11, 19, "of another thread"),
        gap(1, 9, 11, "before and into it"),
        gap(1, 12, 15, "the host"),
        gap(1, 18, 40, "reaches out of it"),
    ] {
        writer.push_gap(&gap).unwrap();
    }
    writer.checkpoint().unwrap();
    let mut run = set();
    run.clock.hz = Hertz(1e9);
    if !traced {
        run.evidence.trace = None;
    }
    assert_eq!(run.evidence.trace.is_some(), traced);
    let mut prediction = predicted(&[4, 5]);
    let releases = beside(&directory, &run, &mut prediction, &alone).unwrap();
    (prediction, releases)
}

#[test]
fn a_bound_without_overheads_that_is_exceeded_says_how_to_give_them() {
    let (prediction, _) = planted(true);
    let [note] = prediction.notes.as_slice() else { panic!("{:?}", prediction.notes) };
    assert!(note.starts_with("1 of 2 tasks took longer"), "{note}");
    assert!(note.contains("--overhead switch=3us,tick=15us/4ms"), "{note}");
    let overheads = whylate_model::prediction::PredictedOverheads {
        switch: Nanos(3_000),
        tick: None,
        tick_period: None,
        from: "as given".to_owned(),
        doubt: None,
    };
    let with = Prediction { overheads: Some(overheads), ..prediction };
    assert_eq!(without_overheads(&with), None);
    assert_eq!(without_overheads(&predicted(&[4])), None, "nothing was measured");
}

#[test]
fn the_slowest_job_is_told_with_the_gap_that_took_most_of_it() {
    let (prediction, _) = planted(true);
    let first = prediction.tasks[0].measured.clone().unwrap();
    assert_eq!((first.jobs, first.over, first.max), (5, 0, Some(Nanos(4 * MS))));
    assert_eq!((first.comparison, first.worst), (Some(Comparison::Consistent), None));
    let second = prediction.tasks[1].measured.clone().unwrap();
    assert_eq!((second.jobs, second.over, second.max), (5, 1, Some(Nanos(9 * MS))));
    // Of its 9 ms the two received 6.
    assert_eq!(second.comparison, None);
    let judged = second.judged.unwrap();
    assert_eq!((judged.within, judged.machine, judged.violated, judged.not_judged), (4, 1, 0, 0));
    assert_eq!(judged.most.unwrap().machine.lost_ns, Nanos(3 * MS));
    let worst = second.worst.unwrap();
    assert_eq!((worst.job, worst.response), (1, Nanos(9 * MS)));
    let gap = worst.gap.unwrap();
    assert_eq!((gap.cause.as_deref(), gap.length), (Some("the host"), Nanos(3 * MS)));
}

/// A miss of job `index` that is named after a gap that begins at so many ms.
fn throttled(index: u64, from_ms: u64) -> Miss {
    let at = |ms: u64| Ticks(1_000 + ms * MS);
    Miss {
        job: index,
        release: at(index * 10),
        deadline: at(index * 10 + 10),
        done: Some(at(index * 10 + 15)),
        skipped: false,
        cause: Some(Cause::Throttled),
        demand: None,
        taken: TakenFrom::default(),
        gap: Some(MissGap {
            start: at(from_ms),
            length: Nanos(5 * MS),
            cause: Cause::Throttled,
            kind: GapKind::Interruption,
        }),
    }
}

#[test]
fn a_late_job_has_one_cause_in_the_table_the_list_and_in_what_the_machine_took() {
    let (_home, directory) = empty();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    for index in 0..4 {
        let took = if index < 3 { 9 } else { 3 };
        let threads = Nanos(if index < 3 { 6 * MS } else { 0 });
        writer.push_job(&StoredJob { threads, ..job(0, index, took, 0) }).unwrap();
    }
    for (from, cause) in [(1, "thread rustc (ordinary)"), (11, "thread opt (ordinary)")] {
        writer.push_gap(&gap(0, from, from + 5, cause)).unwrap();
    }
    writer.push_gap(&gap(0, 21, 26, "thread rustc (ordinary)")).unwrap();
    writer.checkpoint().unwrap();
    let mut run = set();
    run.clock.hz = Hertz(1e9);
    run.threads[0].deadlines.as_mut().unwrap().first =
        vec![throttled(0, 1), throttled(1, 11), throttled(2, 21)];
    let mut prediction = predicted(&[4]);
    beside(&directory, &run, &mut prediction, &alone).unwrap();
    let measured = prediction.tasks[0].measured.as_ref().unwrap();
    let cause = OverCause::Named { cause: "throttled".to_owned() };
    assert_eq!(measured.over_by, [OverBy { cause, jobs: 3 }]);
    let one_by_one = measured.over_first.iter().map(|job| job.gap.as_ref().unwrap().cause.clone());
    assert_eq!(one_by_one.collect::<Vec<_>>(), vec![Some("throttled".to_owned()); 3]);
    let most = measured.judged.as_ref().unwrap().most.as_ref().unwrap();
    assert_eq!(most.machine.cause, Some(MachineCause::Throttled));
    let said = told_jobs(&prediction).join("\n");
    assert!(said.contains("of which throttled 6 ms"), "{said}");
}

/// 40 jobs of one thread with a bound of 4 ms: each third is in time, and the others have a gap of
/// their own behind them, or none.
fn many_slow() -> MeasuredTask {
    let (_home, directory) = empty();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    for index in 0..40 {
        let took = if index % 3 == 0 { 3 } else { 5 + index % 3 };
        writer.push_job(&job(0, index, took, 0)).unwrap();
        let at = index * 10;
        match index {
            // In time: what is behind it is not counted.
            _ if index % 3 == 0 => writer.push_gap(&gap(0, at + 1, at + 2, "in time")).unwrap(),
            0..=20 => {
                writer.push_gap(&gap(0, at + 1, at + 2, "the shorter one")).unwrap();
                writer.push_gap(&gap(0, at + 2, at + 4, "the host")).unwrap();
            }
            21..=35 => writer.push_gap(&gap(0, at + 1, at + 3, "a softirq")).unwrap(),
            _ => {}
        }
    }
    writer.checkpoint().unwrap();
    let mut run = set();
    run.clock.hz = Hertz(1e9);
    let mut prediction = predicted(&[4]);
    beside(&directory, &run, &mut prediction, &alone).unwrap();
    prediction.tasks.remove(0).measured.unwrap()
}

#[test]
fn every_job_over_its_bound_is_counted_by_its_longest_gap_and_the_first_are_told() {
    let measured = many_slow();
    let by = |cause: OverCause, jobs| OverBy { cause, jobs };
    let named = |cause: &str| OverCause::Named { cause: cause.to_owned() };
    // Of 1 to 20 each but 3, 6, .. 18; of 21 to 35 each but 21, 24, .. 33; of 36 to 39 37 and 38.
    let expected =
        vec![by(named("the host"), 14), by(named("a softirq"), 10), by(OverCause::NoGap, 2)];
    assert_eq!(measured.over_by, expected);
    assert_eq!(measured.over, 26, "each is counted once");
    let told: Vec<u64> = measured.over_first.iter().map(|of| of.job).collect();
    assert_eq!(told, [1, 2, 4, 5, 7, 8, 10, 11, 13, 14]);
    let second = &measured.over_first[1];
    assert_eq!((second.response, second.by), (Some(Nanos(7 * MS)), Nanos(3 * MS)));
    let gap = second.gap.as_ref().unwrap();
    assert_eq!((gap.cause.as_deref(), gap.length), (Some("the host"), Nanos(2 * MS)));
    let mut prediction = predicted(&[4]);
    prediction.tasks[0].measured = Some(measured);
    let beside = beside_measured(&prediction);
    assert_eq!(beside.rows[0][3..], ["7 ms", "14", "26", "0"], "{beside:?}");
    let jobs = told_jobs(&prediction);
    assert_eq!(
        jobs,
        [
            "task t0: jobs that the machine accounts for: unknown 26",
            "task t0: the machine took most of job 2, which took 7 ms: L = 4 ms, of which unknown 3 ms"
        ]
    );
    let told = violations(&prediction).unwrap();
    assert_eq!(told.more, ["task t0: 16 more jobs took longer than R"]);
    assert_eq!((told.by_cause.rows.len(), told.first.rows.len()), (3, 10));
    assert_eq!(told.by_cause.rows[0], ["t0", "14", "54%", "the host"]);
    assert!(violations(&predicted(&[4])).is_none(), "nothing was measured");
}

#[test]
fn a_gap_in_two_jobs_counts_for_both_and_rare_causes_are_counted_together() {
    let (_home, directory) = empty();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    // One stop of 30 ms: the job in it, and the two behind it that were never begun.
    writer.push_job(&job(0, 0, 33, 0)).unwrap();
    for index in 1..3 {
        let never =
            StoredJob { done: None, woke: None, verdict: Verdict::Skipped, ..job(0, index, 3, 0) };
        writer.push_job(&never).unwrap();
    }
    writer.push_gap(&gap(0, 1, 31, "a stop")).unwrap();
    for index in 4..24 {
        writer.push_job(&job(0, index, 6, 0)).unwrap();
        let at = index * 10;
        writer.push_gap(&gap(0, at + 1, at + 4, &format!("cause {index}"))).unwrap();
    }
    writer.checkpoint().unwrap();
    let mut run = set();
    run.clock.hz = Hertz(1e9);
    let mut prediction = predicted(&[4]);
    beside(&directory, &run, &mut prediction, &alone).unwrap();
    let measured = prediction.tasks[0].measured.clone().unwrap();
    assert_eq!((measured.over, measured.never_done), (23, 2));
    let stop = OverBy { cause: OverCause::Named { cause: "a stop".to_owned() }, jobs: 3 };
    assert_eq!(measured.over_by[0], stop);
    // 16 are told apart, of 21.
    let others = OverBy { cause: OverCause::Others { causes: 5 }, jobs: 5 };
    assert_eq!((measured.over_by.len(), measured.over_by.last()), (17, Some(&others)));
    assert_eq!(measured.over_by.iter().map(|of| of.jobs).sum::<u64>(), measured.over);
    let never = &measured.over_first[1];
    assert_eq!((never.job, never.response, never.by), (1, None, Nanos(6 * MS)));
    assert_eq!(never.gap.as_ref().unwrap().cause.as_deref(), Some("a stop"));
}

#[test]
fn a_job_that_is_never_done_is_above_a_bound_within_its_deadline_and_is_not_judged() {
    let (_home, directory) = empty();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    let never = StoredJob { done: None, woke: None, verdict: Verdict::Skipped, ..job(0, 1, 3, 0) };
    for job in [job(0, 0, 3, 0), never] {
        writer.push_job(&job).unwrap();
    }
    writer.checkpoint().unwrap();
    let mut run = set();
    run.clock.hz = Hertz(1e9);
    let mut prediction = predicted(&[4]);
    beside(&directory, &run, &mut prediction, &alone).unwrap();
    let measured = prediction.tasks[0].measured.clone().unwrap();
    assert_eq!((measured.jobs, measured.never_done, measured.over), (1, 1, 1));
    let judged = measured.judged.unwrap();
    assert_eq!((judged.within, judged.violated, judged.not_judged), (1, 0, 1));
    assert_eq!(
        (measured.comparison, measured.over_first[0].judged),
        (None, Some(JobVerdict::NotJudged))
    );
    // Of a bound behind the deadline nobody knows: it may have taken 11 ms, or 13.
    let mut prediction = predicted(&[12]);
    beside(&directory, &run, &mut prediction, &alone).unwrap();
    let measured = prediction.tasks[0].measured.clone().unwrap();
    assert_eq!((measured.jobs, measured.never_done, measured.over), (1, 1, 0));
    assert_eq!(measured.comparison, None);
}

#[test]
fn a_release_arrives_when_its_thread_was_woken_or_without_a_trace_when_it_first_ran() {
    let (_, traced) = planted(true);
    let late = |releases: &Releases| -> Vec<u64> {
        releases.iter().map(|(nominal, arrival)| (arrival.0 - nominal.0) / MS).collect()
    };
    assert_eq!(late(&traced[1]), [0, 2, 0, 0, 0]);
    let (_, alone) = planted(false);
    assert_eq!(late(&alone[1]), [1, 3, 1, 1, 1]);
    assert_eq!(alone[0][2].0, Nanos(20 * MS), "from the first release of the run");
}
