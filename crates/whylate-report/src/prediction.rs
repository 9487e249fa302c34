//! What a run has to say to a prediction: how long its jobs took, which of them took too long, and
//! the gap behind each of those.
//!
//! Everything is read from the run directory. A release arrived when the kernel woke its thread;
//! without the kernel's trace that instant is not known, and the first reading of the running thread
//! stands for it, which also waits for more urgent threads.

use std::collections::BTreeMap;

use whylate_model::directory::RunDir;
use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::prediction::{
    Comparison, JobVerdict, MeasuredTask, PredictedTask, Prediction, WorstJob,
};
use whylate_model::run::Run;
use whylate_model::segments;
use whylate_model::threads::{Miss, TakenFrom};
use whylate_model::{Hertz, ModelError, Nanos, Ticks};

pub(crate) mod fits;
mod judged;
mod over;
mod section;
mod told;

pub use judged::WithLost;
use judged::{JobTable, Judge, judged};
use over::Over;
pub(crate) use section::{document, section};
pub(crate) use told::{Exceeded, exceeded};

/// Jobs that are looked at: some hundred bytes of memory each.
const MOST_JOBS: usize = 2_000_000;
/// Gaps that are looked at for those behind slow jobs.
const MOST_GAPS: usize = 20_000_000;
/// Releases kept for each thread: 16 bytes each.
const MOST_RELEASES: usize = 1_000_000;

/// Releases of a thread: nominal instant and arrival, from the beginning of the run.
pub type Releases = Vec<(Nanos, Nanos)>;

/// Puts what a run measured beside the prediction for its set, and judges each job by it; gives the releases
/// of each task.
pub fn beside(
    directory: &RunDir,
    run: &Run,
    prediction: &mut Prediction,
    with_lost: &WithLost<'_>,
) -> Result<Vec<Releases>, ModelError> {
    let jobs = segments::read_jobs(directory)?.take(MOST_JOBS);
    let jobs = jobs.collect::<Result<Vec<StoredJob>, _>>()?;
    if jobs.len() == MOST_JOBS {
        prediction.notes.push(format!("only the first {MOST_JOBS} jobs of the run were read"));
    }
    let (releases, mut over) = judge(run, &jobs, prediction, with_lost);
    let hint = without_overheads(prediction);
    prediction.notes.extend(hint);
    if over.iter().any(|over| over.len() > 0) {
        let mut of_thread: BTreeMap<u32, Vec<&mut Over>> = BTreeMap::new();
        for (task, over) in prediction.tasks.iter().zip(&mut over) {
            of_thread.entry(task.thread).or_default().push(over);
        }
        for (number, stored) in segments::read_gaps(directory)?.enumerate() {
            if number == MOST_GAPS {
                let note = format!("only the first {MOST_GAPS} gaps of the run were read");
                prediction.notes.push(note);
                break;
            }
            let stored = stored?;
            let own = of_thread.get_mut(&u32::from(stored.thread));
            own.into_iter().flatten().for_each(|over| over.look(&stored));
        }
    }
    for (task, over) in prediction.tasks.iter_mut().zip(&mut over) {
        if let Some(measured) = &mut task.measured {
            over.name(misses(run, task.thread));
            over.tell(measured, run.clock.hz);
        }
    }
    Ok(releases)
}

/// The deadlines that a thread missed, as far as they are kept one by one.
fn misses(run: &Run, thread: u32) -> &[Miss] {
    let deadlines = run.threads.get(thread as usize).and_then(|of| of.deadlines.as_ref());
    deadlines.map_or(&[], |of| &of.first)
}

/// What to do about jobs that took longer than was predicted for a system that costs nothing.
fn without_overheads(prediction: &Prediction) -> Option<String> {
    let over = |task: &&PredictedTask| task.measured.as_ref().is_some_and(|of| of.over > 0);
    let tasks = prediction.tasks.iter().filter(over).count();
    (tasks > 0 && prediction.overheads.is_none()).then(|| {
        format!(
            "{tasks} of {} tasks took longer than R, and R leaves out what switches, ticks and \
             wake-ups take here: measure that with `whylate switch-cost` and give it with \
             --overhead measured, or write it, such as --overhead switch=3us,tick=15us/4ms",
            prediction.tasks.len()
        )
    })
}

/// Judges each task by its jobs; gives the releases of each, and its jobs that took too long.
fn judge(
    run: &Run,
    jobs: &[StoredJob],
    prediction: &mut Prediction,
    with_lost: &WithLost<'_>,
) -> (Vec<Releases>, Vec<Over>) {
    let rate = run.clock.hz;
    let begin = jobs.iter().map(|job| job.release).min().unwrap_or_default();
    let mut by_thread: BTreeMap<u32, Vec<&StoredJob>> = BTreeMap::new();
    for job in jobs {
        by_thread.entry(job.thread.into()).or_default().push(job);
    }
    let tables = tables(run, &by_thread, jobs.len() == MOST_JOBS, &prediction.tasks);
    let judge = Judge::new((rate, run.evidence.trace.is_some()), prediction.policy, with_lost);
    let mut found = Vec::with_capacity(tables.len());
    for (index, table) in tables.iter().enumerate() {
        let level = judge.level(&tables, index);
        let mut above = Vec::new();
        let over = Over::of(table.task.nominal(), table.jobs, rate, |job| {
            let (verdict, with_lost) = judge.judge(&level, (index, table), job);
            if job.done.is_some() {
                above.push((job, verdict, with_lost));
            }
            verdict
        });
        found.push((measured(table, &over, &above, rate), releases(run, begin, table.jobs), over));
    }
    let told = prediction.tasks.iter_mut().zip(found).map(|(task, (measured, releases, over))| {
        task.measured = Some(measured);
        (releases, over)
    });
    told.unzip()
}

/// The jobs of each task, in the order of the tasks.
fn tables<'a>(
    run: &'a Run,
    by_thread: &'a BTreeMap<u32, Vec<&'a StoredJob>>,
    cut: bool,
    tasks: &'a [PredictedTask],
) -> Vec<JobTable<'a>> {
    let table = |task: &'a PredictedTask| {
        let thread = run.threads.get(task.thread as usize);
        let deadlines = thread.and_then(|thread| thread.deadlines.as_ref());
        JobTable {
            task,
            jobs: by_thread.get(&task.thread).map_or(&[][..], Vec::as_slice),
            unrecorded: deadlines.map_or(0, |of| of.unrecorded),
            cut,
            step: thread.map_or(Nanos(0), |thread| thread.threshold.to_nanos(run.clock.hz)),
            misses: misses(run, task.thread),
        }
    };
    tasks.iter().map(table).collect()
}

/// A job above its bound, what is to be said of it, and the bound with what the machine took.
type Above<'a> = (&'a StoredJob, JobVerdict, Option<Nanos>);

fn measured(of: &JobTable<'_>, over: &Over, above: &[Above<'_>], rate: Hertz) -> MeasuredTask {
    let bound = of.task.nominal();
    let response = |job: &StoredJob| Some(job.done?.since(job.release).to_nanos(rate));
    let done = || of.jobs.iter().filter_map(|job| Some((response(job)?, *job)));
    // The first of the slowest.
    let worst = done().rev().max_by_key(|(response, _)| *response);
    let judged = judged(of, rate, above);
    let violated = above.iter().filter(|(_, of, _)| matches!(of, JobVerdict::Violated { .. }));
    let longest = violated.filter_map(|(job, ..)| response(job)).max();
    let comparison = bound.zip(judged.as_ref()).and_then(|(bound, judged)| {
        let all_within = judged.pessimistic_by_ns.and(worst);
        longest.or(all_within.map(|(max, _)| max)).map(|max| Comparison::of(bound, max))
    });
    let jobs = done().count() as u64;
    MeasuredTask {
        jobs,
        never_done: of.jobs.len() as u64 - jobs,
        over: over.len() as u64,
        max: worst.map(|(response, _)| response),
        comparison,
        judged,
        worst: worst
            .filter(|(max, _)| bound.is_some_and(|bound| *max > bound))
            .map(|(max, job)| worst_of(job, max)),
        over_by: Vec::new(),
        over_first: Vec::new(),
        releases: None,
    }
}

/// Releases of a thread, from the first of the run.
fn releases(run: &Run, begin: Ticks, jobs: &[&StoredJob]) -> Releases {
    let rate = run.clock.hz;
    // With a trace a job knows how long it took to wake its thread.
    let traced = run.evidence.trace.is_some();
    let arrived = |job: &&StoredJob| {
        let nominal = job.release.since(begin).to_nanos(rate);
        let first = job.woke?.since(begin).to_nanos(rate).max(nominal);
        let woken = Nanos(nominal.0.saturating_add(job.waking.0));
        Some((nominal, if traced { woken.min(first) } else { first }))
    };
    let started = jobs.iter().filter(|job| job.verdict != Verdict::Skipped);
    started.filter_map(arrived).take(MOST_RELEASES).collect()
}

fn worst_of(job: &StoredJob, response: Nanos) -> WorstJob {
    WorstJob {
        job: job.index,
        release: job.release,
        response,
        taken: TakenFrom {
            threads_ns: job.threads.0 as f64,
            waking_ns: job.waking.0 as f64,
            interrupts_ns: job.interrupts.0 as f64,
            host_ns: job.host.0 as f64,
            blocked_ns: job.blocked.0 as f64,
            away_ns: job.away.0 as f64,
            unknown_ns: job.unknown.0 as f64,
        },
        gap: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
