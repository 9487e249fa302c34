//! What a run has to say to a prediction: how long its jobs took, which of them took too long, and
//! the gap behind it.
//!
//! Everything is read from the run directory. A release arrived when the kernel woke its thread;
//! without the kernel's trace that instant is not known, and the first reading of the running thread
//! stands for it, which also waits for more urgent threads.

use std::collections::BTreeMap;

use whylate_model::directory::RunDir;
use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::prediction::{
    Comparison, MeasuredTask, PredictedTask, Prediction, WorstJob, WorstJobGap,
};
use whylate_model::run::Run;
use whylate_model::segments;
use whylate_model::threads::TakenFrom;
use whylate_model::{Hertz, ModelError, Nanos, Ticks};

/// Jobs that are looked at: some hundred bytes of memory each.
const MOST_JOBS: usize = 2_000_000;
/// Gaps that are looked at for those behind slow jobs.
const MOST_GAPS: usize = 20_000_000;
/// Releases kept for each thread: 16 bytes each.
const MOST_RELEASES: usize = 1_000_000;

/// Releases of a thread: nominal instant and arrival, from the beginning of the run.
pub type Releases = Vec<(Nanos, Nanos)>;

/// Puts what a run measured beside the prediction for its set; gives the releases of each task.
pub fn beside(
    directory: &RunDir,
    run: &Run,
    prediction: &mut Prediction,
) -> Result<Vec<Releases>, ModelError> {
    let jobs = segments::read_jobs(directory)?.take(MOST_JOBS);
    let jobs = jobs.collect::<Result<Vec<StoredJob>, _>>()?;
    if jobs.len() == MOST_JOBS {
        prediction.notes.push(format!("only the first {MOST_JOBS} jobs of the run were read"));
    }
    let releases = judge(run, &jobs, &mut prediction.tasks);
    let mut searched = slow(&prediction.tasks, run.clock.hz);
    if !searched.is_empty() {
        for (number, stored) in segments::read_gaps(directory)?.enumerate() {
            if number == MOST_GAPS {
                let note = format!("only the first {MOST_GAPS} gaps of the run were read");
                prediction.notes.push(note);
                break;
            }
            let stored = stored?;
            for one in searched.iter_mut().filter(|one| one.thread == u32::from(stored.thread)) {
                one.look(stored.gap.start, stored.gap.end, stored.cause.as_deref());
            }
        }
    }
    for found in searched {
        let worst = prediction.tasks[found.task].measured.as_mut();
        if let Some(worst) = worst.and_then(|measured| measured.worst.as_mut()) {
            worst.gap = found.told(run.clock.hz);
        }
    }
    Ok(releases)
}

/// A slow job whose longest gap is looked for.
struct Searched {
    task: usize,
    thread: u32,
    from: Ticks,
    to: Ticks,
    longest: Option<(u64, Ticks, Ticks, Option<String>)>,
}

impl Searched {
    fn look(&mut self, start: Ticks, end: Ticks, cause: Option<&str>) {
        let inside = end.min(self.to).since(start.max(self.from)).0;
        if inside > 0 && self.longest.as_ref().is_none_or(|(most, ..)| inside > *most) {
            self.longest = Some((inside, start, end, cause.map(str::to_owned)));
        }
    }

    fn told(self, rate: Hertz) -> Option<WorstJobGap> {
        let (_, start, end, cause) = self.longest?;
        Some(WorstJobGap { start, length: end.since(start).to_nanos(rate), cause })
    }
}

fn slow(tasks: &[PredictedTask], rate: Hertz) -> Vec<Searched> {
    let of = |(task, of): (usize, &PredictedTask)| {
        let worst = of.measured.as_ref()?.worst.as_ref()?;
        let (from, to) = (worst.release, worst.release + worst.response.to_ticks(rate));
        Some(Searched { task, thread: of.thread, from, to, longest: None })
    };
    tasks.iter().enumerate().filter_map(of).collect()
}

/// Judges each task by its jobs; gives the releases of each.
fn judge(run: &Run, jobs: &[StoredJob], tasks: &mut [PredictedTask]) -> Vec<Releases> {
    let begin = jobs.iter().map(|job| job.release).min().unwrap_or_default();
    let mut by_thread: BTreeMap<u32, Vec<&StoredJob>> = BTreeMap::new();
    for job in jobs {
        by_thread.entry(job.thread.into()).or_default().push(job);
    }
    let judged = tasks.iter_mut().map(|task| {
        let own = by_thread.get(&task.thread).map_or(&[][..], Vec::as_slice);
        task.measured = Some(measured(task, own, run.clock.hz));
        releases(run, begin, own)
    });
    judged.collect()
}

fn measured(task: &PredictedTask, jobs: &[&StoredJob], rate: Hertz) -> MeasuredTask {
    let bound = task.nominal();
    let response = |job: &StoredJob| Some(job.done?.since(job.release).to_nanos(rate));
    let done = || jobs.iter().filter_map(|job| Some((response(job)?, *job)));
    // The first of the slowest.
    let worst = done().rev().max_by_key(|(response, _)| *response);
    let never = jobs.iter().filter(|job| job.done.is_none());
    let beyond = |job: &&&StoredJob| {
        bound.is_some_and(|bound| job.deadline.since(job.release).to_nanos(rate) >= bound)
    };
    let late = done().filter(|(response, _)| bound.is_some_and(|bound| *response > bound));
    let never_over = never.clone().filter(beyond).count() as u64;
    let comparison = match (bound, worst) {
        (Some(bound), Some((max, _))) if max > bound || never_over == 0 => {
            Some(Comparison::of(bound, max))
        }
        // What was never done took longer than its deadline.
        (Some(bound), _) if never_over > 0 => {
            Some(Comparison::Violated { by: Nanos(task.deadline.0.saturating_sub(bound.0)) })
        }
        _ => None,
    };
    MeasuredTask {
        jobs: done().count() as u64,
        never_done: never.count() as u64,
        over: late.count() as u64 + never_over,
        max: worst.map(|(response, _)| response),
        comparison,
        worst: worst
            .filter(|(max, _)| bound.is_some_and(|bound| *max > bound))
            .map(|(max, job)| told(job, max)),
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

fn told(job: &StoredJob, response: Nanos) -> WorstJob {
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
