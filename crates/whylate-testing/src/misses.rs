//! When a deadline that was missed is explained: predicates over what was recorded of jobs. Figures ask them of
//! live runs.

use std::collections::BTreeMap;

use whylate_model::execution::{StoredJob, Verdict};
use whylate_model::threads::Miss;
use whylate_model::{Hertz, Ticks};

/// Whoever has not enough beyond what was planned to be taken from it must have lost more than this, in
/// nanoseconds: the slack of the paper's set is larger.
const UNPLANNED: f64 = 1e6;

/// The first miss that nothing explains, of a thread under fixed priorities.
///
/// From a job another thread takes `planned_each_8ms` nanoseconds of each 8 ms; what nobody planned adds up to
/// more than a millisecond, or the job before was missed, too.
pub fn unexplained(first: &[Miss], planned_each_8ms: f64, hz: Hertz) -> Option<&Miss> {
    let mut last = None;
    first.iter().find(|miss| {
        let behind = last.is_some() && last == miss.job.checked_sub(1);
        last = Some(miss.job);
        let Some(done) = miss.done else { return false };
        let window = done.since(miss.release).to_nanos(hz);
        let planned = planned_each_8ms * (window.0 as f64 / 8e6).ceil();
        let unplanned = miss.taken.total_ns() - miss.taken.threads_ns.min(planned);
        !behind && unplanned <= UNPLANNED
    })
}

/// Jobs of reserved threads: hits, misses, and misses that nothing explains.
#[derive(Debug, Default, PartialEq)]
pub struct Reserved {
    pub hits: u64,
    pub misses: u64,
    pub unexplained: Vec<StoredJob>,
}

/// What interrupts, the host and the wake-up took from a job while it was the one to run.
fn charged(job: &StoredJob) -> u64 {
    job.waking.0 + job.interrupts.0 + job.host.0 + job.unknown.0
}

/// What was taken from the jobs of all threads that overlapped so long before a release or the job itself:
/// whoever is behind has the earlier deadline, and runs first.
fn taken_around(miss: &StoredJob, jobs: &[StoredJob], window: Ticks) -> u64 {
    let begin = miss.release.0.saturating_sub(window.0);
    let end = miss.done.unwrap_or(miss.deadline);
    let around = |job: &&StoredJob| {
        job.release < end && job.done.unwrap_or(job.deadline).0.max(job.deadline.0) > begin
    };
    jobs.iter().filter(around).map(charged).sum()
}

/// Judges jobs that reserved `margin` nanoseconds beyond their execution time, of which the longest period is
/// `window` nanoseconds.
///
/// A miss is explained where more than the margin was taken from it; where the job of its thread before it was
/// done only then, or had overdrawn what was reserved; or where the other thread was held up by at least as
/// much as this one is late.
pub fn reserved(jobs: &[StoredJob], margin: u64, window: f64, hz: Hertz) -> Reserved {
    let rate = hz.0 / 1e9;
    let window = Ticks((window * rate) as u64);
    let mut found = Reserved::default();
    // Of each thread's job before: when it was done, and what the jobs until then owe.
    let mut before: BTreeMap<u16, (Option<Ticks>, u64)> = BTreeMap::new();
    for job in jobs {
        // What is charged to it, from its wake-up on, and what kept the CPU from everybody. The kernel
        // enforces a reservation at its ticks and takes what was overdrawn off the next periods'
        // budgets: what a job had taken beyond the margin is paid back by the margins after it.
        let taken = charged(job) + job.away.0;
        let owed = before.get(&job.thread).map_or(0, |(_, owed)| *owed);
        let owing = (owed + taken).saturating_sub(margin);
        let last = before.insert(job.thread, (job.done, owing));
        match job.verdict {
            Verdict::Hit => found.hits += 1,
            // What came of a job that never began was decided in the job before it.
            Verdict::Skipped => {}
            Verdict::Late | Verdict::Unfinished => {
                found.misses += 1;
                let behind = last.is_some_and(|(done, owed)| {
                    done.is_none_or(|done| done > job.release) || owed > 0
                });
                let done = job.done.unwrap_or(job.deadline);
                let late = (done.0.saturating_sub(job.deadline.0)) as f64 / rate;
                let passed_on = taken_around(job, jobs, window) as f64 >= late;
                if !(taken > margin || behind || (job.done.is_some() && passed_on)) {
                    found.unexplained.push(*job);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_model::threads::TakenFrom;

    use super::*;

    const HZ: Hertz = Hertz(1e9);
    const MARGIN: u64 = 100_000;

    fn miss(job: u64, took: u64, taken: TakenFrom) -> Miss {
        let release = job * 8_000_000;
        Miss {
            job,
            release: Ticks(release),
            deadline: Ticks(release + 8_000_000),
            done: Some(Ticks(release + took)),
            skipped: false,
            cause: None,
            demand: None,
            taken,
            gap: None,
        }
    }

    fn unexplained_of(misses: &[Miss], planned: f64) -> Option<u64> {
        unexplained(misses, planned, HZ).map(|miss| miss.job)
    }

    #[test]
    fn a_miss_is_explained_by_a_millisecond_that_nobody_planned_or_by_the_miss_before() {
        let by_host = |ns: f64| TakenFrom { host_ns: ns, ..TakenFrom::default() };
        assert_eq!(unexplained_of(&[miss(3, 9_000_000, by_host(1.1e6))], 0.0), None);
        assert_eq!(unexplained_of(&[miss(3, 9_000_000, by_host(0.9e6))], 0.0), Some(3));
        let behind = [miss(3, 9_000_000, by_host(1.1e6)), miss(4, 9_000_000, by_host(0.0))];
        assert_eq!(unexplained_of(&behind, 0.0), None);
        let apart = [miss(3, 9_000_000, by_host(1.1e6)), miss(5, 9_000_000, by_host(0.0))];
        assert_eq!(unexplained_of(&apart, 0.0), Some(5));
        // Of one that was never done nobody knows how much was taken.
        let never = Miss { done: None, ..miss(7, 0, by_host(0.0)) };
        assert_eq!(unexplained_of(&[never], 0.0), None);
    }

    #[test]
    fn what_the_thread_above_was_planned_to_take_explains_nothing() {
        let by_threads = |ns: f64| TakenFrom { threads_ns: ns, ..TakenFrom::default() };
        // 34 ms are five windows of 8 ms: 15 ms of them were planned.
        assert_eq!(unexplained_of(&[miss(1, 34_000_000, by_threads(15.9e6))], 3e6), Some(1));
        assert_eq!(unexplained_of(&[miss(1, 34_000_000, by_threads(16.1e6))], 3e6), None);
    }

    /// A job of 8 ms that was done a millisecond after its deadline.
    fn job(thread: u16, index: u64, verdict: Verdict) -> StoredJob {
        let (release, none) = (index * 8_000_000, Nanos(0));
        StoredJob {
            thread,
            index,
            release: Ticks(release),
            deadline: Ticks(release + 8_000_000),
            woke: Some(Ticks(release)),
            done: Some(Ticks(release + 9_000_000)),
            received: Nanos(3_000_000),
            verdict,
            threads: none,
            waking: none,
            interrupts: none,
            host: none,
            blocked: none,
            away: none,
            unknown: none,
        }
    }

    fn judged(jobs: &[StoredJob]) -> (u64, u64, Vec<u64>) {
        let of = reserved(jobs, MARGIN, 33e6, HZ);
        (of.hits, of.misses, of.unexplained.iter().map(|job| job.index).collect())
    }

    #[test]
    fn a_reserved_job_is_missed_for_more_than_its_margin_or_without_an_explanation() {
        let by = |ns: u64| StoredJob { host: Nanos(ns), ..job(0, 3, Verdict::Late) };
        assert_eq!(judged(&[by(MARGIN + 1)]), (0, 1, vec![]));
        // As late as a millisecond, and less was taken than that.
        assert_eq!(judged(&[by(MARGIN)]), (0, 1, vec![3]));
        let away = StoredJob { away: Nanos(MARGIN + 1), ..job(0, 3, Verdict::Unfinished) };
        assert_eq!(judged(&[away]), (0, 1, vec![]));
        assert_eq!(judged(&[job(0, 1, Verdict::Hit), job(0, 2, Verdict::Skipped)]), (1, 0, vec![]));
    }

    #[test]
    fn a_job_behind_a_late_one_or_behind_one_that_overdrew_is_explained() {
        let late = StoredJob { host: Nanos(2_000_000), ..job(0, 1, Verdict::Late) };
        // Done a millisecond after the next release.
        assert_eq!(judged(&[late, job(0, 2, Verdict::Late)]), (0, 2, vec![]));
        // In time, but 500 us beyond its margin, which four margins after it do not pay back.
        let overdrew = StoredJob {
            done: Some(Ticks(12_000_000)),
            host: Nanos(600_000),
            ..job(0, 1, Verdict::Hit)
        };
        assert_eq!(judged(&[overdrew, job(0, 2, Verdict::Late)]), (1, 1, vec![]));
        let hits = (2..8).map(|index| StoredJob {
            done: Some(Ticks(index * 8_000_000 + 4_000_000)),
            ..job(0, index, Verdict::Hit)
        });
        let paid: Vec<StoredJob> =
            [overdrew].into_iter().chain(hits).chain([job(0, 8, Verdict::Late)]).collect();
        assert_eq!(judged(&paid), (7, 1, vec![8]));
    }

    #[test]
    fn a_job_is_late_for_what_was_taken_from_the_other_thread_and_for_no_more() {
        // Late by a millisecond.
        let of = |other: u64| {
            let other = StoredJob { interrupts: Nanos(other), ..job(1, 3, Verdict::Hit) };
            judged(&[other, job(0, 3, Verdict::Late)])
        };
        assert_eq!(of(1_000_000), (1, 1, vec![]));
        assert_eq!(of(999_999), (1, 1, vec![3]));
        // Long before it explains nothing.
        let before = StoredJob {
            done: Some(Ticks(5_000_000)),
            interrupts: Nanos(2_000_000),
            ..job(1, 0, Verdict::Hit)
        };
        assert_eq!(judged(&[before, job(0, 9, Verdict::Late)]), (1, 1, vec![9]));
    }
}
