//! What the host took of a part, and what would be left of missed deadlines without it.

use whylate_model::execution::StoredJob;
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};
use whylate_record::set::{SetRecorded, Stretch};

/// What the host took of the CPU of a part while a thread had it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Taken {
    /// Share of the time of the part.
    pub(crate) share: f64,
    /// Stretches.
    pub(crate) stretches: u64,
    /// The longest.
    pub(crate) longest: Nanos,
}

impl Taken {
    /// Of a part on one CPU; none where the kernel's trace does not tell.
    pub(crate) fn of(set: &SetRecorded, cpu: CpuId) -> Option<Self> {
        let threads = &set.recorded.run.threads;
        let begin = threads.iter().map(|of| of.start).min()?;
        let end = threads.iter().map(|of| of.end).max()?;
        let own = set.host.as_ref()?.iter().filter(|of| of.cpu == cpu);
        Some(Self::among(own, end.since(begin), set.recorded.run.clock.hz))
    }

    fn among<'a>(
        stretches: impl Iterator<Item = &'a Stretch>,
        elapsed: TicksDelta,
        hz: Hertz,
    ) -> Self {
        let (mut count, mut ticks, mut longest) = (0, 0, 0);
        for of in stretches {
            let length = of.end.since(of.start).0;
            count += 1;
            ticks += length;
            longest = longest.max(length);
        }
        let share = ticks as f64 / (elapsed.0 as f64).max(1.0);
        Self { share, stretches: count, longest: TicksDelta(longest).to_nanos(hz) }
    }
}

/// Which of a thread's jobs would still have missed their deadlines had the host taken nothing.
///
/// Of each job is taken off what the host had between its begin (its release, or the end of the job
/// before it) and its end, so that delay that was handed on from job to job goes, too. A job that
/// never began, and one that the host alone drove over its reservation `budget`, is given the time
/// of the median job. What a coarse timer would have done otherwise is not known to it.
pub(crate) fn missed_without(
    jobs: &[&StoredJob],
    host: &[Stretch],
    budget: Option<Nanos>,
) -> Vec<bool> {
    let Some(ordinary) = ordinary(jobs, host) else { return vec![true; jobs.len()] };
    let (mut before, mut free) = (Ticks(0), Ticks(0));
    let judged = jobs.iter().map(|job| {
        let from = job.release.max(free);
        let Some(done) = job.done else {
            let end = from + ordinary;
            if end <= job.deadline {
                free = end;
            }
            return end > job.deadline;
        };
        let own = own(job, done, before, host);
        let charged = job.received.0 + job.interrupts.0;
        let driven_over = budget.is_some_and(|of| charged <= of.0 && charged + job.host.0 > of.0);
        let end = from + if driven_over { own.min(ordinary) } else { own };
        (before, free) = (done, end);
        end > job.deadline
    });
    judged.collect()
}

/// Time of a job from where it could begin, without what the host took of it.
fn own(job: &StoredJob, done: Ticks, before: Ticks, host: &[Stretch]) -> TicksDelta {
    let begin = job.release.max(before);
    TicksDelta(done.since(begin).0.saturating_sub(had(host, begin, done)))
}

/// What the host had of a stretch of time, in ticks.
fn had(host: &[Stretch], from: Ticks, to: Ticks) -> u64 {
    let first = host.partition_point(|of| of.end <= from);
    let within = host[first..].iter().take_while(|of| of.start < to);
    within.map(|of| of.end.min(to).since(of.start.max(from)).0).sum()
}

/// Latencies on one CPU, each with its end, without what the host had of them; in the same order.
pub(crate) fn late_without(
    latencies: impl Iterator<Item = (Ticks, Nanos)>,
    host: &[Stretch],
    hz: Hertz,
) -> Vec<Nanos> {
    let without = |(end, late): (Ticks, Nanos)| {
        let begin = Ticks(end.0.saturating_sub(late.to_ticks(hz).0));
        Nanos(late.0.saturating_sub(TicksDelta(had(host, begin, end)).to_nanos(hz).0))
    };
    latencies.map(without).collect()
}

/// The time of the median job, without the host.
fn ordinary(jobs: &[&StoredJob], host: &[Stretch]) -> Option<TicksDelta> {
    let mut before = Ticks(0);
    let mut times = Vec::new();
    for job in jobs {
        if let Some(done) = job.done {
            times.push(own(job, done, before, host));
            before = done;
        }
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::execution::Verdict;

    use super::*;

    /// A job of 100 every 1000, due at the next release; a tick is a nanosecond.
    pub(crate) fn job(index: u64, done: Option<u64>) -> StoredJob {
        let (release, none) = (index * 1_000, Nanos(0));
        let deadline = release + 1_000;
        StoredJob {
            thread: 0,
            index,
            release: Ticks(release),
            deadline: Ticks(deadline),
            woke: done.map(|_| Ticks(release)),
            done: done.map(Ticks),
            received: Nanos(100),
            verdict: match done {
                None => Verdict::Skipped,
                Some(done) if done > deadline => Verdict::Late,
                Some(_) => Verdict::Hit,
            },
            threads: none,
            waking: none,
            interrupts: none,
            host: none,
            blocked: none,
            away: none,
            unknown: none,
        }
    }

    fn stretch(start: u64, end: u64) -> Stretch {
        Stretch { cpu: CpuId(1), start: Ticks(start), end: Ticks(end) }
    }

    fn judged(jobs: &[StoredJob], host: &[Stretch], budget: Option<Nanos>) -> Vec<bool> {
        missed_without(&jobs.iter().collect::<Vec<_>>(), host, budget)
    }

    #[test]
    fn a_stall_of_the_host_and_the_backlog_behind_it_are_taken_off_and_nothing_else() {
        // Job 1 is held from 1 050 to 3 200 by the host: 2 never begins, 3 begins late, 4 is on time.
        // Job 6 is late by itself.
        let jobs = [
            job(0, Some(100)),
            job(1, Some(3_250)),
            job(2, None),
            job(3, Some(3_350)),
            job(4, Some(4_100)),
            job(5, Some(5_100)),
            job(6, Some(7_300)),
            job(7, Some(7_400)),
        ];
        let host = [stretch(1_050, 3_200), stretch(9_000, 9_500)];
        let missed = |index: usize| jobs[index].verdict != Verdict::Hit;
        assert!(missed(1) && missed(2) && missed(6));
        let without = judged(&jobs, &host, None);
        assert_eq!(without, [false, false, false, false, false, false, true, false]);
        let all = judged(&jobs, &[], None);
        assert!(all[1] && all[6], "without a stretch of the host all is as it was: {all:?}");
    }

    #[test]
    fn where_the_host_took_a_part_the_rest_decides() {
        // Late by 500, of which the host took 400: still late. Of 600: not.
        for (end, late) in [(1_000, true), (1_200, false)] {
            let jobs = [job(0, Some(100)), job(1, Some(2_500)), job(3, Some(3_100))];
            // From 600 on: only what lies inside the job counts.
            let host = [stretch(400, 500), stretch(1_600, 1_000 + end)];
            assert_eq!(judged(&jobs, &host, None)[1], late, "{end}");
        }
    }

    #[test]
    fn a_job_that_the_host_drove_over_its_reservation_is_given_the_median_jobs_time() {
        // Charged 100 and 30 of the host against a reservation of 110, it waited for the next one.
        let mut over = job(1, Some(2_250));
        over.host = Nanos(30);
        let jobs = [job(0, Some(100)), over, job(3, Some(3_100)), job(4, Some(4_100))];
        let host = [stretch(1_020, 1_050)];
        assert_eq!(judged(&jobs, &host, Some(Nanos(110))), [false; 4]);
        assert!(judged(&jobs, &host, None)[1], "without a reservation it was late by itself");
        assert!(judged(&jobs, &host, Some(Nanos(90)))[1], "it was over without the host, too");
    }

    #[test]
    fn what_the_host_had_of_a_latency_is_taken_off_and_what_lies_outside_is_not() {
        let host = [stretch(900, 1_300), stretch(2_000, 2_100), stretch(5_000, 9_000)];
        // From 1 000 to 1 500, from 1 900 to 2 500, from 3 000 to 4 000, and from 6 000 to 7 000.
        let late = [(1_500, 500), (2_500, 600), (4_000, 1_000), (7_000, 1_000)];
        let late = late.into_iter().map(|(end, late)| (Ticks(end), Nanos(late)));
        let without = late_without(late, &host, Hertz(1e9));
        assert_eq!(without, [Nanos(200), Nanos(500), Nanos(1_000), Nanos(0)]);
    }

    #[test]
    fn what_the_host_took_is_a_share_of_the_time_with_its_longest() {
        let all = [stretch(0, 100), stretch(300, 600)];
        let taken = Taken::among(all.iter(), TicksDelta(10_000), Hertz(1e9));
        assert_eq!((taken.stretches, taken.longest), (2, Nanos(300)));
        assert!((taken.share - 0.04).abs() < 1e-12);
    }
}
