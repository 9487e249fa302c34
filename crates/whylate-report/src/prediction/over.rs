//! The gap behind each job that took longer than was predicted.
//!
//! Gaps are read once, in whatever order. A gap that lies in several jobs of its thread, because one
//! was released before the one before it was done, counts for each of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use whylate_model::execution::StoredJob;
use whylate_model::prediction::{
    JobVerdict, MeasuredTask, OverBy, OverCause, OverJob, WorstJobGap,
};
use whylate_model::segments::StoredGap;
use whylate_model::threads::Miss;
use whylate_model::{Hertz, Nanos, Ticks};

/// Jobs of a task that are told one by one.
const MOST_FIRST: usize = 10;
/// Causes of a task that are counted apart.
const MOST_CAUSES: usize = 16;

/// A job that took too long, whose longest gap is looked for.
#[derive(Debug)]
struct Searched {
    job: u64,
    from: Ticks,
    /// Where it was done; of one that never was, its deadline.
    to: Ticks,
    response: Option<Nanos>,
    by: Nanos,
    judged: JobVerdict,
    longest: Option<Longest>,
}

/// The gap that took most of a job's time, so far.
#[derive(Debug)]
struct Longest {
    /// Of it, inside the job.
    inside: u64,
    start: Ticks,
    end: Ticks,
    cause: Option<Arc<str>>,
}

impl Searched {
    fn gap(&self, rate: Hertz) -> Option<WorstJobGap> {
        let of = self.longest.as_ref()?;
        Some(WorstJobGap {
            start: of.start,
            length: of.end.since(of.start).to_nanos(rate),
            cause: of.cause.as_deref().map(str::to_owned),
        })
    }
}

/// The jobs of one task that took longer than was predicted, in the order of their releases.
#[derive(Debug)]
pub(super) struct Over {
    jobs: Vec<Searched>,
    /// For each, the latest end of it and of those before.
    reach: Vec<Ticks>,
}

impl Over {
    /// Those of `jobs` that took longer than the bound, and those that were never done though the
    /// bound ends with their deadline or before; none without a bound. Each is judged once.
    pub(super) fn of<'a>(
        bound: Option<Nanos>,
        jobs: &[&'a StoredJob],
        rate: Hertz,
        mut judge: impl FnMut(&'a StoredJob) -> JobVerdict,
    ) -> Self {
        let over = |job: &&'a StoredJob| {
            let bound = bound?;
            let to = job.done.unwrap_or(job.deadline);
            let known = to.since(job.release).to_nanos(rate);
            let is_over = if job.done.is_some() { known > bound } else { known >= bound };
            is_over.then(|| Searched {
                job: job.index,
                from: job.release,
                to,
                response: job.done.map(|_| known),
                by: Nanos(known.0 - bound.0),
                judged: judge(job),
                longest: None,
            })
        };
        let mut jobs: Vec<Searched> = jobs.iter().filter_map(over).collect();
        jobs.sort_by_key(|job| job.from);
        let mut latest = Ticks(0);
        let mut reach = Vec::with_capacity(jobs.len());
        for job in &jobs {
            latest = latest.max(job.to);
            reach.push(latest);
        }
        Self { jobs, reach }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Offers a gap of the task's thread to the jobs that it lies in.
    pub(super) fn look(&mut self, of: &StoredGap) {
        let (start, end) = (of.gap.start, of.gap.end);
        let before = self.jobs.partition_point(|job| job.from < end);
        let jobs = self.jobs[..before].iter_mut().zip(&self.reach[..before]).rev();
        for (job, _) in jobs.take_while(|(_, reach)| **reach > start) {
            let inside = end.min(job.to).since(start.max(job.from)).0;
            if inside > job.longest.as_ref().map_or(0, |longest| longest.inside) {
                job.longest = Some(Longest { inside, start, end, cause: of.cause.clone() });
            }
        }
    }

    /// A gap that a miss is named after has the same name behind each job that took too long.
    pub(super) fn name(&mut self, misses: &[Miss]) {
        let of_misses: BTreeMap<Ticks, Arc<str>> = misses
            .iter()
            .filter_map(|miss| miss.gap.as_ref())
            .map(|gap| (gap.start, gap.cause.stored().into()))
            .collect();
        for longest in self.jobs.iter_mut().filter_map(|job| job.longest.as_mut()) {
            if let Some(named) = of_misses.get(&longest.start) {
                longest.cause = Some(Arc::clone(named));
            }
        }
    }

    /// Says what was found.
    pub(super) fn tell(&self, measured: &mut MeasuredTask, rate: Hertz) {
        measured.over_by = self.by_cause();
        let told = |of: &Searched| OverJob {
            job: of.job,
            release: of.from,
            response: of.response,
            by: of.by,
            gap: of.gap(rate),
            judged: Some(of.judged),
        };
        measured.over_first = self.jobs.iter().take(MOST_FIRST).map(told).collect();
        if let Some(worst) = &mut measured.worst {
            let own = self.jobs.iter().find(|of| of.job == worst.job && of.response.is_some());
            worst.gap = own.and_then(|of| of.gap(rate));
        }
    }

    /// All of them by what their longest gap is named after.
    fn by_cause(&self) -> Vec<OverBy> {
        let mut counts: BTreeMap<Behind<'_>, u64> = BTreeMap::new();
        for job in &self.jobs {
            *counts.entry(Behind::of(job.longest.as_ref())).or_default() += 1;
        }
        let mut apart: Vec<(Behind<'_>, u64)> = counts.into_iter().collect();
        apart.sort_by_key(|(_, jobs)| Reverse(*jobs));
        let others = apart.split_off(apart.len().min(MOST_CAUSES));
        let mut told: Vec<OverBy> =
            apart.into_iter().map(|(behind, jobs)| OverBy { cause: behind.told(), jobs }).collect();
        if !others.is_empty() {
            told.push(OverBy {
                cause: OverCause::Others { causes: others.len() as u64 },
                jobs: others.iter().map(|(_, jobs)| *jobs).sum(),
            });
        }
        told
    }
}

/// What stands behind a slow job.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Behind<'a> {
    Named(&'a str),
    NotNamed,
    NoGap,
}

impl<'a> Behind<'a> {
    fn of(longest: Option<&'a Longest>) -> Self {
        match longest.map(|longest| longest.cause.as_deref()) {
            Some(Some(cause)) => Self::Named(cause),
            Some(None) => Self::NotNamed,
            None => Self::NoGap,
        }
    }

    fn told(self) -> OverCause {
        match self {
            Self::Named(cause) => OverCause::Named { cause: cause.to_owned() },
            Self::NotNamed => OverCause::NotNamed,
            Self::NoGap => OverCause::NoGap,
        }
    }
}
