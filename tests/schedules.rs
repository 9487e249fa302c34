//! Simulated schedules under fixed priorities on a CPU from which a machine takes time: their jobs beside the
//! prediction for their tasks.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;
use whylate_model::directory::RunDir;
use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::prediction::Prediction;
use whylate_model::run::Run;
use whylate_model::{Nanos, Ticks};
use whylate_report::prediction::beside;
use whylate_rta::analysis::of_set::{OfSet, Policy};
use whylate_rta::analysis::{Overheads, Task, cbs};
use whylate_rta::prediction::{Asked, predict, response_with_lost};

/// The step of a schedule, in ticks of a nanosecond.
const STEP: u64 = 100_000;
/// Where the first job is released.
const BEGIN: u64 = 1_000;
/// How long a schedule is, in steps.
const STEPS: u64 = 400;

/// A set of tasks, the most urgent first.
#[derive(Debug, Clone)]
pub(crate) struct DrawnSet {
    tasks: Vec<DrawnTask>,
    /// Steps that the machine takes: from where, and how many.
    taken: Vec<(u64, u64)>,
    /// Overheads stand in the prediction.
    overheads: bool,
}

/// Times in steps.
#[derive(Debug, Clone)]
struct DrawnTask {
    execution: u64,
    period: u64,
    /// By how much the timer is late, job by job and then anew.
    late: Vec<u64>,
}

pub(crate) fn any_set() -> impl Strategy<Value = DrawnSet> {
    let late = vec(prop_oneof![4 => Just(0_u64), 1 => 1..6_u64], 1..5);
    let task = (1..8_u64, 8..60_u64, late).prop_map(|(execution, period, late)| DrawnTask {
        execution,
        period,
        late,
    });
    let taken = vec((0..STEPS, 1..12_u64), 0..12);
    (vec(task, 1..4), taken, any::<bool>()).prop_map(|(tasks, taken, overheads)| DrawnSet {
        tasks,
        taken,
        overheads,
    })
}

/// A job on its way.
struct Open {
    stored: StoredJob,
    wakes: u64,
    left: u64,
}

/// The jobs of a schedule, in the order in which they were done.
pub(crate) fn run(of: &DrawnSet) -> Vec<StoredJob> {
    let at = |step: u64| Ticks(BEGIN + step * STEP);
    let mut open: Vec<VecDeque<Open>> = of.tasks.iter().map(|_| VecDeque::new()).collect();
    let mut jobs = Vec::new();
    for step in 0..STEPS {
        for (thread, task) in of.tasks.iter().enumerate().filter(|(_, of)| step % of.period == 0) {
            let index = step / task.period;
            // Behind a job that is not done a timer is not waited for.
            let late = task.late[index as usize % task.late.len()];
            let late = if open[thread].is_empty() { late } else { 0 };
            let stored = job(thread, index, at(step), at(step + task.period));
            let stored = StoredJob { waking: Nanos(late * STEP), ..stored };
            open[thread].push_back(Open { stored, wakes: step + late, left: task.execution });
        }
        let machine = of.taken.iter().any(|(from, steps)| (*from..from + steps).contains(&step));
        let ready = open.iter().position(|jobs| jobs.front().is_some_and(|job| job.wakes <= step));
        let Some(thread) = ready else { continue };
        let job = &mut open[thread][0];
        job.stored.woke.get_or_insert(at(step));
        if machine {
            job.stored.interrupts.0 += STEP;
            continue;
        }
        job.left -= 1;
        for other in open.iter_mut().enumerate().filter(|(other, _)| *other > thread) {
            other.1.iter_mut().for_each(|job| job.stored.threads.0 += STEP);
        }
        let job = &mut open[thread][0];
        if job.left == 0 {
            let mut stored = job.stored;
            stored.done = Some(at(step + 1));
            stored.received = Nanos(of.tasks[thread].execution * STEP);
            let in_time = at(step + 1) <= stored.deadline;
            stored.verdict = if in_time { Verdict::Hit } else { Verdict::Late };
            jobs.push(stored);
            open[thread].pop_front();
        }
    }
    // What was over when the schedule ended is known to be unfinished.
    let over = open.iter().flatten().filter(|job| job.stored.deadline <= at(STEPS));
    jobs.extend(over.map(|job| job.stored));
    jobs
}

fn job(thread: usize, index: u64, release: Ticks, deadline: Ticks) -> StoredJob {
    StoredJob {
        thread: thread as u16,
        index,
        release,
        deadline,
        woke: None,
        done: None,
        received: Nanos(0),
        verdict: Verdict::Unfinished,
        threads: Nanos(0),
        waking: Nanos(0),
        interrupts: Nanos(0),
        host: Nanos(0),
        blocked: Nanos(0),
        away: Nanos(0),
        unknown: Nanos(0),
    }
}

/// The prediction for a set beside its jobs, which lie in the directory.
pub(crate) fn judged(of: &DrawnSet, run: &Run, directory: &RunDir) -> Prediction {
    let tasks = of.tasks.iter().enumerate().map(|(number, task)| Task {
        priority: (of.tasks.len() - number) as u32,
        ..Task::new(format!("t{number}"), Nanos(task.execution * STEP), Nanos(task.period * STEP))
    });
    let set = OfSet {
        tasks: tasks.collect(),
        threads: (0..of.tasks.len()).collect(),
        left_out: Vec::new(),
        cut: Vec::new(),
    };
    let overheads =
        Overheads { switch: Nanos(STEP / 2), tick: Some((Nanos(STEP), Nanos(40 * STEP))) };
    let asked = Asked {
        tasks: &set,
        policy: Policy::FixedPriority,
        assignment: None,
        overheads: of.overheads.then_some((overheads, "as drawn")),
        delays: &[],
        simulation: None,
        limit: cbs::Limit::LINUX,
    };
    let mut prediction = predict(&asked).unwrap();
    let with_lost = |task, lost| response_with_lost(&asked, task, lost);
    beside(directory, run, &mut prediction, &with_lost).unwrap();
    prediction
}

/// Each job is judged once, and none is a violation: its tasks asked for no more than was predicted, and all else
/// was the machine's.
pub(crate) fn holds(of: Option<&Prediction>) {
    for task in of.iter().flat_map(|of| &of.tasks) {
        let measured = task.measured.as_ref().unwrap();
        let Some(judged) = &measured.judged else {
            assert_eq!((task.nominal(), measured.over), (None, 0), "{task:?}");
            continue;
        };
        let all = judged.within + judged.machine + judged.violated + judged.not_judged;
        assert_eq!(all, measured.jobs + measured.never_done, "{task:?}");
        assert_eq!(judged.violated, 0, "{task:?}");
        assert!(
            judged.machine <= measured.over && measured.over <= all - judged.within,
            "{task:?}"
        );
        let most = judged.most.as_ref().map(|of| of.machine);
        assert!(most.is_none_or(|of| of.cause_ns <= of.lost_ns), "{task:?}");
        assert_eq!(most.is_some(), judged.machine > 0, "{task:?}");
        let within = judged.within > 0 && judged.within == all;
        assert_eq!(judged.pessimistic_by_ns.is_some(), within, "{task:?}");
        assert_eq!(
            measured.over_by.iter().map(|of| of.jobs).sum::<u64>(),
            measured.over,
            "{task:?}"
        );
    }
}
