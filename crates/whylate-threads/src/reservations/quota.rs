//! Reservations by the quota or the weight of a cgroup: weaker, and there without `CAP_SYS_NICE`
//! where a cgroup was delegated.
//!
//! A hard one is a quota: never more than the amount in a period, but no promise of it either, for
//! the thread competes with all others. A soft one is a weight: its share of the CPU while everybody
//! wants it all, against one other group. Nothing is admitted or refused by the kernel.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use whylate_host::guard::{CgroupQuota, CpuQuota, Guard, Weight};
use whylate_host::journal::Journal;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};
use whylate_sys::{process, sched};

use super::{Applied, Request, ReservationKind, ReservationScheduler, Reservations, sum};
use crate::error::ThreadsError;

/// The scheduler of ordinary threads, with cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota;

impl ReservationScheduler for Quota {
    fn name(&self) -> &'static str {
        "cgroup quota"
    }

    fn strength(&self) -> &'static str {
        "hard: never more than the amount in each period, in the mean; no guarantee of it, since the \
         thread competes with all others. soft: a weight that gives the share of the CPU while one \
         other group of usual weight wants it all; neither a limit nor a guarantee. the kernel \
         admits every request. for a guarantee use SCHED_DEADLINE."
    }

    fn check(&self, requests: &[Request], cpus: &[CpuId]) -> Result<(), ThreadsError> {
        for request in requests {
            request.check()?;
            if request.kind == ReservationKind::Hard {
                quota_of(*request).check()?;
            }
        }
        let (sum, limit) = (sum(requests), cpus.len() as f64);
        if sum > limit {
            let reason = "each CPU has 1, and this scheduler would take the rest from all of them \
                          without saying so"
                .to_owned();
            return Err(ThreadsError::Overbooked { sum, limit, cpus: cpus.len(), reason });
        }
        Ok(())
    }

    fn offer(&self, _cpus: &[CpuId]) -> Result<Vec<String>, ThreadsError> {
        Ok(vec![CgroupQuota::what_would_be_changed(Path::new("/"))?])
    }

    fn prepare(
        &self,
        journal: &Journal,
        _cpus: &[CpuId],
    ) -> Result<Box<dyn Reservations>, ThreadsError> {
        // Refuses here what would otherwise fail on the first thread.
        CgroupQuota::what_would_be_changed(Path::new("/"))?;
        Ok(Box::new(Prepared { journal: journal.clone(), threads: Mutex::default() }))
    }
}

fn quota_of(request: Request) -> CpuQuota {
    CpuQuota { amount: request.amount, period: request.period }
}

/// The weight whose share against one group of usual weight is the utilisation.
fn weight_of(request: Request) -> Weight {
    let share = request.utilisation().min(0.99);
    Weight::nearest(f64::from(Weight::DEFAULT.get()) * share / (1.0 - share))
}

/// A host with a cpu controller.
#[derive(Debug)]
struct Prepared {
    journal: Journal,
    threads: Mutex<Vec<(Pid, CgroupQuota)>>,
}

impl Prepared {
    fn threads(&self) -> MutexGuard<'_, Vec<(Pid, CgroupQuota)>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservations for Prepared {
    fn apply(&self, request: Request) -> Result<Applied, ThreadsError> {
        let thread = process::tid();
        let (quota, weight) = match request.kind {
            ReservationKind::Hard => (Some(quota_of(request)), Weight::DEFAULT),
            ReservationKind::Soft => (None, weight_of(request)),
        };
        let group = CgroupQuota::make(&self.journal, &thread.to_string(), quota, weight)?;
        group.adopt(thread)?;
        self.threads().push((thread, group));
        Ok(Applied { thread, policy: sched::policy() })
    }

    fn join(&self) -> Result<(), ThreadsError> {
        Ok(())
    }

    fn give_up(&self) -> Result<(), ThreadsError> {
        let mine = process::tid();
        let group = {
            let mut threads = self.threads();
            threads.iter().position(|(thread, _)| *thread == mine).map(|at| threads.remove(at))
        };
        drop(group);
        Ok(())
    }

    fn overruns(&self, thread: Pid) -> Option<u64> {
        let threads = self.threads();
        threads.iter().find(|(who, _)| *who == thread)?.1.throttled_periods()
    }
}

impl Guard for Prepared {
    fn describe(&self) -> Vec<String> {
        self.threads().iter().flat_map(|(_, group)| group.describe()).collect()
    }

    fn restore(&mut self) -> Vec<Warning> {
        let threads = std::mem::take(&mut *self.threads());
        threads.into_iter().flat_map(|(_, mut group)| group.restore()).collect()
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_suite::absent;
    use whylate_sys::nanosleep::{Clock, clock_ns};

    use super::*;

    const MS: u64 = 1_000_000;

    fn request(amount: u64, period: u64, kind: ReservationKind) -> Request {
        Request { amount: Nanos(amount), period: Nanos(period), kind }
    }

    #[test]
    fn quotas_below_a_millisecond_and_sums_above_the_cpus_are_refused() {
        let one = [CpuId(0)];
        let short = request(MS / 2, 8 * MS, ReservationKind::Hard);
        let refusal = Quota.check(&[short], &one).unwrap_err().to_string();
        assert!(refusal.contains("longer period"), "{refusal}");
        // A weight has no such bound.
        Quota.check(&[Request { kind: ReservationKind::Soft, ..short }], &one).unwrap();
        let more = [request(6 * MS, 10 * MS, ReservationKind::Hard); 2];
        let refusal = Quota.check(&more, &one).unwrap_err();
        assert!(matches!(refusal, ThreadsError::Overbooked { .. }), "{refusal}");
        Quota.check(&more, &[CpuId(0), CpuId(1)]).unwrap();
    }

    #[test]
    fn a_soft_share_is_a_weight_against_one_other_group() {
        let weight = |amount| weight_of(request(amount, 10 * MS, ReservationKind::Soft)).get();
        assert_eq!((weight(5 * MS), weight(2 * MS), weight(8 * MS)), (100, 25, 400));
        assert!(weight(10 * MS) <= 10_000);
    }

    #[test]
    fn a_thread_is_held_to_its_quota_and_comes_out_again() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let prepared = match Quota.prepare(&journal, &[CpuId(0)]) {
            Ok(prepared) => prepared,
            Err(refusal) => return absent(&refusal),
        };
        let offer = Quota.offer(&[CpuId(0)]).unwrap();
        if offer[0].contains("this whole process") {
            return eprintln!(
                "skipped: here a quota holds the whole process, other tests included"
            );
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let wanted = request(20 * MS, 100 * MS, ReservationKind::Hard);
                let applied = match prepared.apply(wanted) {
                    Ok(applied) => applied,
                    Err(refusal) => return absent(&refusal),
                };
                // Whoever else wants the CPU, in some period it gets its quota and wants more.
                let end = clock_ns(Clock::Monotonic) + 180_000 * MS;
                while prepared.overruns(applied.thread).unwrap() == 0 {
                    assert!(clock_ns(Clock::Monotonic) < end, "never held in minutes");
                }
                prepared.give_up().unwrap();
                assert_eq!(prepared.overruns(applied.thread), None);
            });
        });
        assert_eq!(journal.entries(), []);
    }
}
