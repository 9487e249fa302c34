//! Jobs above the bound of their task: does what the machine took account for them?
//!
//! The busy period of a job begins with the arrival before which none of its tasks, which are its own and
//! those that are no less urgent, had anything to do, and ends with the job. What the machine took of it
//! is by gap accounting: its length, less what its jobs received and what the job waited for a less urgent
//! task, up to the blocking that its bound counts. An arrival is the release, or the wake-up as far as
//! delay and jitter of the task allow for it to be late. Inside reservations the tasks of a busy period are
//! the job's own alone, and what other threads took is not the machine's.
//!
//! Overheads that the bound counts are time of the machine here, too: with them a violation is found
//! late rather than early.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Add, Sub};

use whylate_model::cause::Cause;
use whylate_model::execution::StoredJob;
use whylate_model::prediction::{
    AboveJob, JobVerdict, JudgedJobs, MachineCause, MachineJobs, MachineTime, PredictedPolicy,
    PredictedResponse, PredictedTask,
};
use whylate_model::threads::Miss;
use whylate_model::{Hertz, Nanos, Ticks};

use super::Above;

/// Analyses that are made for jobs above their bounds: some seconds of work.
const MOST_ANALYSES: usize = 2_000;
/// Violations of a task that are told one by one.
const MOST_TOLD: usize = 10;

/// The response of a task, by its place in the prediction, when so much more is taken from it.
pub type WithLost<'a> = dyn Fn(usize, Nanos) -> Option<PredictedResponse> + 'a;

/// The jobs of one thread, in the order of their releases, and what is known of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobTable<'a> {
    pub(super) task: &'a PredictedTask,
    pub(super) jobs: &'a [&'a StoredJob],
    /// Jobs of which no record was kept.
    pub(super) unrecorded: u64,
    /// The table ends before the run did.
    pub(super) cut: bool,
    /// What a job may receive beyond what it asks for: its last reading of the clock.
    pub(super) step: Nanos,
    /// Those of its deadlines that were missed and kept one by one.
    pub(super) misses: &'a [Miss],
}

/// How the jobs of a run are to be judged.
pub(super) struct Judge<'a> {
    rate: Hertz,
    /// A wake-up tells when a thread was woken, not only when it first ran.
    traced: bool,
    policy: PredictedPolicy,
    with_lost: &'a WithLost<'a>,
    analyses: Cell<usize>,
    known: RefCell<BTreeMap<(usize, Nanos), Option<PredictedResponse>>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        (rate, traced): (Hertz, bool),
        policy: PredictedPolicy,
        with_lost: &'a WithLost<'a>,
    ) -> Self {
        let (analyses, known) = (Cell::new(0), RefCell::default());
        Self { rate, traced, policy, with_lost, analyses, known }
    }

    /// The busy periods that the jobs of a task lie in.
    pub(super) fn level(&self, tables: &[JobTable<'_>], own: usize) -> Level {
        let of = &tables[own];
        let of_level = |(at, other): &(usize, &JobTable<'_>)| match self.policy {
            PredictedPolicy::FixedPriority => other.task.priority >= of.task.priority,
            _ => *at == own,
        };
        let tables = tables.iter().enumerate().filter(of_level);
        Level::new(tables.map(|(_, table)| table), self)
    }

    /// Judges a job that was done and took longer than its bound.
    pub(super) fn judge(
        &self,
        level: &Level,
        (index, of): (usize, &JobTable<'_>),
        job: &StoredJob,
    ) -> (JobVerdict, Option<Nanos>) {
        let not_judged = (JobVerdict::NotJudged, None);
        let (Some(bound), Some(done)) = (of.task.nominal(), job.done) else { return not_judged };
        let Some((begin, sums)) = level.busy_period(self.arrival(of.task, job), done) else {
            return not_judged;
        };
        let elapsed = done.since(begin).to_nanos(self.rate).0;
        let lost = match self.policy {
            PredictedPolicy::FixedPriority => {
                let waited = job.blocked.0.min(of.task.blocking.0);
                elapsed.saturating_sub(sums.received).saturating_sub(waited)
            }
            _ => sums.lost().max(elapsed.saturating_sub(sums.received + sums.threads)),
        };
        let machine = self.named(of, job, &sums, lost);
        let response = done.since(job.release).to_nanos(self.rate);
        // Each time was rounded by itself.
        let above = |bound: Nanos| response.0 > bound.0.saturating_add(sums.jobs);
        // What is lost makes the bound longer by as much at least.
        let least = Nanos(bound.0.saturating_add(lost));
        if !above(least) {
            return (JobVerdict::Machine { machine }, Some(least));
        }
        match self.with_lost(index, Nanos(lost)) {
            Some(PredictedResponse::Bounded { nominal, .. }) if above(nominal) => {
                (JobVerdict::Violated { machine }, Some(nominal))
            }
            Some(PredictedResponse::Bounded { nominal, .. }) => {
                (JobVerdict::Machine { machine }, Some(nominal))
            }
            Some(PredictedResponse::Unbounded) => (JobVerdict::Machine { machine }, None),
            Some(PredictedResponse::Undecided) | None => not_judged,
        }
    }

    fn with_lost(&self, task: usize, lost: Nanos) -> Option<PredictedResponse> {
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get(&(task, lost)) {
            return *known;
        }
        if self.analyses.get() == MOST_ANALYSES {
            return None;
        }
        self.analyses.set(self.analyses.get() + 1);
        let found = (self.with_lost)(task, lost);
        known.insert((task, lost), found);
        found
    }

    /// When a job arrived, as far as its task may arrive late.
    fn arrival(&self, task: &PredictedTask, job: &StoredJob) -> Ticks {
        let ticks = |time: Nanos| time.to_ticks(self.rate);
        let latest = job.release + ticks(Nanos(task.delay.0.saturating_add(task.jitter.0)));
        let first = job.woke.unwrap_or(job.release);
        let woken = if self.traced { job.release + ticks(job.waking) } else { first };
        woken.min(first).min(latest).max(job.release)
    }

    /// What took most of what the machine took.
    fn named(&self, of: &JobTable<'_>, own: &StoredJob, all: &Sums, lost: u64) -> MachineTime {
        let mut parts = vec![
            (MachineCause::LateWakeUp, all.waking),
            (MachineCause::Interrupts, all.interrupts),
            (MachineCause::NoEvent, all.host),
        ];
        // Of what a job did not have while it waited, the jobs before it count their own part.
        let others = *all - Sums::of(own, own.received.0);
        let away = own.away.0.saturating_sub(others.interrupts + others.host);
        parts.push((MachineCause::OffCpu, away));
        if self.policy == PredictedPolicy::FixedPriority {
            let threads = own.threads.0.saturating_sub(others.received);
            parts.push((of.cause_of_threads(own), threads));
        }
        let known: u64 = parts.iter().map(|(_, part)| part).sum();
        parts.push((MachineCause::Unknown, lost.saturating_sub(known)));
        // The first of the largest.
        let most = parts.iter().rev().max_by_key(|(_, part)| *part);
        let most = most.filter(|(_, part)| *part > 0 && lost > 0);
        MachineTime {
            lost_ns: Nanos(lost),
            cause: most.map(|(cause, _)| *cause),
            cause_ns: Nanos(most.map_or(0, |(_, part)| lost.min(*part))),
        }
    }
}

/// What jobs received, and did not, in ns.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    jobs: u64,
    received: u64,
    threads: u64,
    waking: u64,
    interrupts: u64,
    host: u64,
    away: u64,
    unknown: u64,
}

impl Sums {
    fn of(job: &StoredJob, received: u64) -> Self {
        Self {
            jobs: 1,
            received,
            threads: job.threads.0,
            waking: job.waking.0,
            interrupts: job.interrupts.0,
            host: job.host.0,
            away: job.away.0,
            unknown: job.unknown.0,
        }
    }

    fn lost(&self) -> u64 {
        self.waking + self.interrupts + self.host + self.away + self.unknown
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            jobs: of(self.jobs, other.jobs),
            received: of(self.received, other.received),
            threads: of(self.threads, other.threads),
            waking: of(self.waking, other.waking),
            interrupts: of(self.interrupts, other.interrupts),
            host: of(self.host, other.host),
            away: of(self.away, other.away),
            unknown: of(self.unknown, other.unknown),
        }
    }
}

impl Add for Sums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }
}

impl Sub for Sums {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

/// The busy periods of tasks that are no less urgent than one of them.
#[derive(Debug)]
pub(super) struct Level {
    /// Where each begins.
    begins: Vec<Ticks>,
    /// The end of each job, with the sums up to it.
    done: Vec<(Ticks, Sums)>,
    /// Where jobs may have been at work that are not known: from where, and up to where those from there
    /// and before may have been.
    unknown: Vec<(Ticks, Ticks)>,
}

impl Level {
    fn new<'a>(tables: impl Iterator<Item = &'a JobTable<'a>>, judge: &Judge<'_>) -> Self {
        let (mut jobs, mut unknown) = (Vec::new(), Vec::new());
        for table in tables {
            for job in table.jobs {
                let arrival = judge.arrival(table.task, job);
                match job.done {
                    Some(done) => jobs.push((arrival, done, Sums::of(job, table.counted(job)))),
                    // It worked on it until the run ended.
                    None if job.woke.is_some() => unknown.push((arrival, Ticks(u64::MAX))),
                    None => {}
                }
            }
            unknown.extend(table.holes());
        }
        unknown.sort();
        let mut latest = Ticks(0);
        for (_, to) in &mut unknown {
            latest = latest.max(*to);
            *to = latest;
        }
        jobs.sort_by_key(|(arrival, done, _)| (*arrival, *done));
        let (mut begins, mut busy_to, mut woken_to) = (Vec::new(), Ticks(0), Ticks(0));
        for (arrival, done, sums) in &mut jobs {
            if *arrival >= busy_to {
                begins.push(*arrival);
            }
            busy_to = busy_to.max(*done);
            // What is late for several of them is late once.
            let woken = *arrival + Nanos(sums.waking).to_ticks(judge.rate);
            sums.waking = woken.since((*arrival).max(woken_to)).to_nanos(judge.rate).0;
            woken_to = woken_to.max(woken);
        }
        jobs.sort_by_key(|(_, done, _)| *done);
        let mut all = Sums::default();
        let done = jobs.into_iter().map(|(_, done, sums)| {
            all = all + sums;
            (done, all)
        });
        Self { begins, done: done.collect(), unknown }
    }

    /// Where the busy period begins that a job arrived in, and the sums of its jobs up to the job's end;
    /// none where that is not known.
    fn busy_period(&self, arrival: Ticks, done: Ticks) -> Option<(Ticks, Sums)> {
        let at = self.begins.partition_point(|begin| *begin <= arrival);
        let begin = *self.begins.get(at.checked_sub(1)?)?;
        let before = self.unknown.partition_point(|(from, _)| *from < done);
        let unknown = before.checked_sub(1).is_some_and(|last| self.unknown[last].1 > begin);
        (!unknown).then(|| (begin, self.up_to(done) - self.up_to(begin)))
    }

    fn up_to(&self, at: Ticks) -> Sums {
        let jobs = self.done.partition_point(|(done, _)| *done <= at);
        jobs.checked_sub(1).map_or_else(Sums::default, |last| self.done[last].1)
    }
}

impl JobTable<'_> {
    /// What a job received of what it asked for: a thread notes that it has all at its next reading.
    fn counted(&self, job: &StoredJob) -> u64 {
        let (received, asked) = (job.received.0, self.task.execution.0);
        if received <= asked.saturating_add(self.step.0) { received.min(asked) } else { received }
    }

    /// What other threads had the CPU for: a job whose miss is named after throttling was not let.
    fn cause_of_threads(&self, job: &StoredJob) -> MachineCause {
        let mut own = self.misses.iter().filter(|miss| miss.job == job.index);
        if own.any(|miss| miss.cause == Some(Cause::Throttled)) {
            MachineCause::Throttled
        } else {
            MachineCause::OtherThreads
        }
    }

    /// Where jobs were of which no record was kept.
    fn holes(&self) -> Vec<(Ticks, Ticks)> {
        let Some(last) = self.jobs.last() else {
            let lost = self.unrecorded > 0 || self.cut;
            return lost.then_some((Ticks(0), Ticks(u64::MAX))).into_iter().collect();
        };
        let (mut holes, mut inside, mut before) = (Vec::new(), 0, (0, Ticks(0)));
        for job in self.jobs {
            if job.index > before.0 {
                inside += job.index - before.0;
                holes.push((before.1, job.release));
            }
            before = (job.index + 1, job.release);
        }
        if self.unrecorded > inside || self.cut {
            holes.push((last.release, Ticks(u64::MAX)));
        }
        holes
    }
}

/// The jobs of a task judged, from what was found of those above its bound.
pub(super) fn judged(of: &JobTable<'_>, rate: Hertz, above: &[Above<'_>]) -> Option<JudgedJobs> {
    let bound = of.task.nominal()?;
    let response = |job: &StoredJob| Some(job.done?.since(job.release).to_nanos(rate));
    let mut found = JudgedJobs { not_judged: of.unrecorded, ..JudgedJobs::default() };
    let mut longest = Nanos(0);
    for job in of.jobs {
        match response(job) {
            Some(took) => longest = longest.max(took),
            None => found.not_judged += 1,
        }
        found.within += u64::from(response(job).is_some_and(|took| took <= bound));
    }
    for (job, verdict, with_lost) in above {
        let told = |machine| {
            Some(AboveJob {
                job: job.index,
                release_ticks: job.release,
                response_ns: response(job)?,
                bound_ns: *with_lost,
                machine,
            })
        };
        match *verdict {
            JobVerdict::NotJudged => found.not_judged += 1,
            JobVerdict::Machine { machine } => {
                found.machine += 1;
                count(&mut found.machine_by, machine.cause.unwrap_or(MachineCause::Unknown));
                let most = found.most.as_ref().map(|most| most.machine.lost_ns);
                if Some(machine.lost_ns) > most {
                    found.most = told(machine);
                }
            }
            JobVerdict::Violated { machine } => {
                found.violated += 1;
                if found.violated_first.len() < MOST_TOLD {
                    found.violated_first.extend(told(machine));
                }
            }
        }
    }
    found.machine_by.sort_by_key(|of| Reverse(of.jobs));
    let all = found.within > 0 && found.machine + found.violated + found.not_judged == 0;
    found.pessimistic_by_ns = all.then(|| Nanos(bound.0.saturating_sub(longest.0)));
    Some(found)
}

/// One job more by this cause.
fn count(all: &mut Vec<MachineJobs>, cause: MachineCause) {
    match all.iter_mut().find(|of| of.cause == cause) {
        Some(known) => known.jobs += 1,
        None => all.push(MachineJobs { cause, jobs: 1 }),
    }
}

#[cfg(test)]
mod tests;
