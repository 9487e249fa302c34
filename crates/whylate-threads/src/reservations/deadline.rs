//! Reservations by SCHED_DEADLINE: a guarantee, which the kernel admits or refuses.
//!
//! [`sched(7)`](https://man7.org/linux/man-pages/man7/sched.7.html), constant bandwidth servers with
//! the deadline at the end of the period. Needs `CAP_SYS_NICE`. Each thread is told when it overruns
//! (`SCHED_FLAG_DL_OVERRUN`), which is counted; see [`whylate_sys::overrun`] for what that counts.
//!
//! A thread with a deadline cannot start threads, and cannot be bound to fewer CPUs than its
//! scheduling domain has: on some CPUs only, reservations get an exclusive cpuset. What a thread
//! gives up or leaves behind at its end the kernel frees at the end of its period.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use whylate_host::guard::{CpusetPlan, ExclusiveCpuset, Guard, RtThrottling};
use whylate_host::journal::Journal;
use whylate_host::topology::Topology;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};
use whylate_sys::overrun::{self, OverrunCounter};
use whylate_sys::sched::{self, DeadlineFlags, Denial, Policy};
use whylate_sys::{SysError, process};

use super::limits::{LEAST_AMOUNT, Limits};
use super::{Applied, Request, ReservationKind, ReservationScheduler, Reservations, sum};
use crate::error::ThreadsError;

/// What the fair server holds of each CPU since Linux 6.12, unless it was changed.
const FAIR_SERVER: f64 = 0.05;

/// How much of a CPU may be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grant {
    /// What the host is configured for: 95 % unless changed, less the fair server's share.
    #[default]
    AsConfigured,
    /// All of it, less the fair server's share: `sched_rt_runtime_us` is set to the period, and put
    /// back. Meanwhile nothing holds back a runaway real-time thread.
    WholeCpu,
}

/// SCHED_DEADLINE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadline {
    /// How much of a CPU may be reserved.
    pub grant: Grant,
}

impl Deadline {
    /// As configured where that is enough for these requests, the whole CPU where it is not. A fair
    /// server whose share is not shown is taken to hold what it does since Linux 6.12.
    #[must_use]
    pub fn that_grants(requests: &[Request], cpus: &[CpuId]) -> Self {
        let limits = Limits::read(Path::new("/"), cpus);
        let server = limits.fair_server.unwrap_or(FAIR_SERVER);
        let enough =
            limits.share.is_none_or(|share| sum(requests) <= (share - server) * cpus.len() as f64);
        Self { grant: if enough { Grant::AsConfigured } else { Grant::WholeCpu } }
    }

    fn limits(self, cpus: &[CpuId]) -> Limits {
        let mut limits = Limits::read(Path::new("/"), cpus);
        if self.grant == Grant::WholeCpu {
            limits.share = limits.share.map(|share| share.max(1.0));
        }
        limits
    }

    fn plan(cpus: &[CpuId]) -> Result<Option<CpusetPlan>, ThreadsError> {
        let root = Path::new("/");
        let online = Topology::read(root)?;
        if online.online().iter().all(|cpu| cpus.contains(cpu)) {
            return Ok(None);
        }
        CpusetPlan::of(root, cpus).map(Some).map_err(ThreadsError::from)
    }
}

fn check(requests: &[Request], cpus: usize, limits: &Limits) -> Result<(), ThreadsError> {
    for request in requests {
        request.check()?;
        if request.amount < LEAST_AMOUNT {
            let why = format!("the kernel takes no amount below {} ns", LEAST_AMOUNT.0);
            return Err(request.impossible(why));
        }
        let bounds = [
            limits.period_min.filter(|least| request.period < *least).map(|least| {
                format!("the shortest period is {least} (sched_deadline_period_min_us)")
            }),
            limits
                .period_max
                .filter(|most| request.period > *most)
                .map(|most| format!("the longest period is {most} (sched_deadline_period_max_us)")),
        ];
        if let Some(why) = bounds.into_iter().flatten().next() {
            return Err(request.impossible(why));
        }
    }
    let sum = sum(requests);
    match limits.grants(cpus) {
        Some(limit) if sum > limit => {
            Err(ThreadsError::Overbooked { sum, limit, cpus, reason: limits.reason() })
        }
        _ => Ok(()),
    }
}

impl ReservationScheduler for Deadline {
    fn name(&self) -> &'static str {
        "SCHED_DEADLINE"
    }

    fn strength(&self) -> &'static str {
        "hard: the kernel guarantees the amount in each period and never gives more (it admits no \
         more than it can keep, and throttles who has used it up). soft: the same guarantee, and \
         run time that no reservation uses may be had on top (SCHED_FLAG_RECLAIM), up to what \
         deadlines may have of the CPU. interrupts and the hypervisor take from both."
    }

    fn check(&self, requests: &[Request], cpus: &[CpuId]) -> Result<(), ThreadsError> {
        check(requests, cpus.len(), &self.limits(cpus))
    }

    fn offer(&self, cpus: &[CpuId]) -> Result<Vec<String>, ThreadsError> {
        let cpuset = Self::plan(cpus)?.map(|plan| plan.what_would_be_changed());
        let limit = match self.grant {
            Grant::AsConfigured => None,
            Grant::WholeCpu => Some(
                "sched_rt_runtime_us is set to sched_rt_period_us and put back in the end: \
                 meanwhile a runaway real-time thread keeps its CPU"
                    .to_owned(),
            ),
        };
        Ok(cpuset.into_iter().chain(limit).collect())
    }

    fn prepare(
        &self,
        journal: &Journal,
        cpus: &[CpuId],
    ) -> Result<Box<dyn Reservations>, ThreadsError> {
        let limit = match (self.grant, RtThrottling::detect(Path::new("/"))) {
            (Grant::WholeCpu, Some(limits)) if limits.throttles() => {
                Some(RtThrottling::set(journal, limits.period_us)?)
            }
            _ => None,
        };
        let cpuset = match Self::plan(cpus)? {
            Some(plan) => Some(ExclusiveCpuset::make(journal, &plan)?),
            None => None,
        };
        let limits = self.limits(cpus);
        let (cpus, threads) = (cpus.to_vec(), Mutex::default());
        Ok(Box::new(Prepared { threads, cpuset, limit, limits, cpus }))
    }
}

/// A host on which deadlines can be granted.
#[derive(Debug)]
struct Prepared {
    threads: Mutex<Vec<Reserved>>,
    cpuset: Option<ExclusiveCpuset>,
    limit: Option<RtThrottling>,
    limits: Limits,
    cpus: Vec<CpuId>,
}

/// A thread that has, or had, a deadline.
#[derive(Debug)]
struct Reserved {
    request: Request,
    counter: OverrunCounter,
}

impl Prepared {
    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<Reserved>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is granted already, by this program.
    fn granted(&self) -> f64 {
        self.threads().iter().map(|reserved| reserved.request.utilisation()).sum()
    }

    fn refused(&self, request: Request, source: SysError) -> ThreadsError {
        let SysError::Scheduling { denial, .. } = &source else {
            return ThreadsError::ReservationRefused { request, source };
        };
        match denial {
            Denial::NoBandwidth => ThreadsError::NotAdmitted {
                request,
                sum: self.granted() + request.utilisation(),
                cpus: self.cpus.len(),
                reason: self.limits.reason(),
            },
            Denial::NarrowAffinity => {
                let offer = match Deadline::plan(&self.cpus) {
                    Ok(Some(plan)) if self.cpuset.is_none() => plan.what_would_be_changed(),
                    _ => "it has one already: let it run on all CPUs there instead of binding it"
                        .to_owned(),
                };
                ThreadsError::NotFreeToRun { request, offer }
            }
            _ => ThreadsError::ReservationRefused { request, source },
        }
    }
}

impl Reservations for Prepared {
    fn apply(&self, request: Request) -> Result<Applied, ThreadsError> {
        let thread = process::tid();
        if let Some(cpuset) = &self.cpuset {
            cpuset.adopt(thread)?;
        }
        // Before the deadline: an overrun that nobody handles ends the process.
        let counter = OverrunCounter::of_this_thread()
            .map_err(|source| ThreadsError::ReservationRefused { request, source })?;
        let flags = match request.kind {
            ReservationKind::Hard => DeadlineFlags::DL_OVERRUN,
            ReservationKind::Soft => DeadlineFlags::DL_OVERRUN.with(DeadlineFlags::RECLAIM),
        };
        let Request { amount: runtime, period, .. } = request;
        let wanted = Policy::Deadline { runtime, deadline: period, period, flags };
        sched::set(wanted).map_err(|source| self.refused(request, source))?;
        self.threads().push(Reserved { request, counter });
        Ok(Applied { thread, policy: sched::policy() })
    }

    fn join(&self) -> Result<(), ThreadsError> {
        match &self.cpuset {
            Some(cpuset) => Ok(cpuset.adopt(process::tid())?),
            None => Ok(()),
        }
    }

    fn give_up(&self) -> Result<(), ThreadsError> {
        sched::set_other(0).map_err(ThreadsError::Seated)
    }

    fn overruns(&self, thread: Pid) -> Option<u64> {
        let threads = self.threads();
        let reserved = threads.iter().find(|reserved| reserved.counter.thread() == thread);
        reserved.map(|reserved| reserved.counter.told())
    }
}

impl Guard for Prepared {
    fn describe(&self) -> Vec<String> {
        let cpuset = self.cpuset.iter().flat_map(Guard::describe);
        cpuset.chain(self.limit.iter().flat_map(Guard::describe)).collect()
    }

    fn restore(&mut self) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = self.cpuset.iter_mut().flat_map(Guard::restore).collect();
        warnings.extend(self.limit.iter_mut().flat_map(Guard::restore));
        warnings
    }
}

/// Overruns that were told on a thread without a reservation of this program: they belong to one
/// that had, and blocked the signal.
#[must_use]
pub fn overruns_told_elsewhere() -> u64 {
    overrun::told_elsewhere()
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_suite::absent as skip;
    use whylate_sys::affinity;
    use whylate_sys::nanosleep::{Clock, clock_ns};

    use super::*;
    use crate::testing;

    const MS: u64 = 1_000_000;

    fn request(amount: u64, period: u64, kind: ReservationKind) -> Request {
        Request { amount: Nanos(amount), period: Nanos(period), kind }
    }

    fn hard(amount: u64, period: u64) -> Request {
        request(amount, period, ReservationKind::Hard)
    }

    fn usual() -> Limits {
        Limits {
            share: Some(0.95),
            fair_server: Some(0.05),
            period_min: Some(Nanos(100_000)),
            period_max: Some(Nanos(4_194_304_000)),
        }
    }

    #[test]
    fn the_sum_is_held_against_the_limit_with_both_in_the_error() {
        let paper = [hard(3 * MS, 8 * MS), hard(17 * MS, 33 * MS)];
        check(&paper, 1, &usual()).unwrap();
        let generous = [hard(3_100_000, 8 * MS), hard(17_100_000, 33 * MS)];
        let refusal = check(&generous, 1, &usual()).unwrap_err().to_string();
        for part in ["0.906", "0.900", "fair server", "sched_rt_runtime_us"] {
            assert!(refusal.contains(part), "{part}: {refusal}");
        }
        check(&generous, 2, &usual()).unwrap();
        // The server's share unknown, only what cannot be right is refused.
        check(&generous, 1, &Limits { fair_server: None, ..usual() }).unwrap();
        check(&generous, 1, &Limits { share: None, ..usual() }).unwrap();
    }

    #[test]
    fn amounts_and_periods_outside_the_kernel_s_bounds_are_refused() {
        for bad in [hard(1_023, MS), hard(2_000, 99_999), hard(MS, 4_200 * MS), hard(MS, MS - 1)] {
            let refusal = check(&[bad], 1, &usual()).unwrap_err();
            assert!(matches!(refusal, ThreadsError::Reservation { .. }), "{refusal}");
        }
        check(&[hard(1_024, 100_000)], 1, &usual()).unwrap();
    }

    fn on_this_host(body: impl FnOnce(&dyn Reservations, CpuId)) {
        prepared_by(Deadline::default(), body);
    }

    /// Runs `body` with reservations on the last CPU of this host, or says why not.
    fn prepared_by(scheduler: Deadline, body: impl FnOnce(&dyn Reservations, CpuId)) {
        let _alone = testing::alone();
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let cpu = *affinity::get().last().unwrap();
        match scheduler.prepare(&journal, &[cpu]) {
            Ok(prepared) => {
                body(&*prepared, cpu);
                drop(prepared);
                assert_eq!(journal.entries(), []);
            }
            Err(error) => skip(&error),
        }
    }

    /// A thread that never blocks, under a reservation, until it has overrun it so often; gives the policy
    /// that it had.
    fn reserved(
        reservations: &dyn Reservations,
        request: Request,
        overruns: u64,
    ) -> Result<Policy, ThreadsError> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let applied = reservations.apply(request)?;
                let end = clock_ns(Clock::Monotonic) + 180_000 * MS;
                while reservations.overruns(applied.thread).unwrap() < overruns {
                    assert!(clock_ns(Clock::Monotonic) < end, "never overrun in minutes");
                }
                reservations.give_up()?;
                Ok(applied.policy)
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn overruns_of_a_reservation_are_counted_and_a_soft_one_may_reclaim() {
        on_this_host(|reservations, _| {
            for (kind, overruns) in [(ReservationKind::Hard, 2), (ReservationKind::Soft, 0)] {
                let wanted = request(4 * MS, 20 * MS, kind);
                let had = match reserved(reservations, wanted, overruns) {
                    Ok(had) => had,
                    Err(refusal) => return skip(&refusal),
                };
                let Policy::Deadline { runtime, deadline, period, flags } = had else {
                    panic!("{had:?}")
                };
                assert_eq!(
                    (runtime, deadline, period),
                    (wanted.amount, wanted.period, wanted.period)
                );
                assert!(flags.has(DeadlineFlags::DL_OVERRUN), "{flags:?}");
                let soft = kind == ReservationKind::Soft;
                assert_eq!(flags.has(DeadlineFlags::RECLAIM), soft, "{flags:?}");
            }
        });
    }

    #[test]
    fn a_pair_above_the_usual_limit_is_admitted_where_the_whole_cpu_may_be_reserved() {
        let pair = [hard(3_100_000, 8 * MS), hard(17_100_000, 33 * MS)];
        let whole = Deadline { grant: Grant::WholeCpu };
        prepared_by(whole, |reservations, cpu| {
            whole.check(&pair, &[cpu]).unwrap();
            std::thread::scope(|scope| {
                let overrun = |request| move || reserved(reservations, request, 1);
                let both = pair.map(|request| scope.spawn(overrun(request)));
                for (wanted, thread) in pair.iter().zip(both) {
                    match thread.join().unwrap() {
                        Ok(Policy::Deadline { runtime, .. }) => assert_eq!(runtime, wanted.amount),
                        Ok(other) => panic!("{other:?}"),
                        Err(refusal) => skip(&refusal),
                    }
                }
            });
        });
    }

    #[test]
    fn what_the_kernel_does_not_admit_is_explained_with_the_sum_and_the_limit() {
        on_this_host(|reservations, _| match reserved(reservations, hard(99 * MS, 100 * MS), 0) {
            Ok(_) => skip(&"this machine admits 0.99 of a CPU"),
            Err(refusal @ ThreadsError::NotAdmitted { .. }) => {
                let text = refusal.to_string();
                println!("{text}");
                assert!(text.contains("0.990") && text.contains("of each CPU"), "{text}");
            }
            Err(refusal) => skip(&refusal),
        });
    }

    #[test]
    fn a_bound_thread_is_offered_the_cpuset_with_its_effect() {
        let _alone = testing::alone();
        let cpus = affinity::get();
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        // Prepared for all CPUs, so without a cpuset of its own.
        let topology = Topology::read(Path::new("/")).unwrap();
        let prepared = Deadline::default().prepare(&journal, topology.online()).unwrap();
        assert!(prepared.describe().is_empty());
        if cpus.len() < 2 {
            return skip(&"this process has a single CPU");
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                affinity::set(&cpus[..1]).unwrap();
                match prepared.apply(hard(MS, 100 * MS)) {
                    Err(refusal @ ThreadsError::NotFreeToRun { .. }) => {
                        let text = refusal.to_string();
                        assert!(text.contains("exclusive cpuset"), "{text}");
                    }
                    Err(refusal) => skip(&refusal),
                    Ok(_) => {
                        prepared.give_up().unwrap();
                        skip(&"somebody has made this CPU a scheduling domain of its own");
                    }
                }
            });
        });
        let offer = Deadline { grant: Grant::WholeCpu }.offer(&cpus[..1]);
        match offer {
            Ok(offer) => assert!(offer.len() == 2 && offer[0].contains("exclusive"), "{offer:?}"),
            Err(refusal) => skip(&refusal),
        }
    }
}
