//! CPU reservations: an amount of CPU time in each period, kept by a scheduler of the kernel.
//!
//! Two schedulers, behind one trait: [`deadline`] (a guarantee, admitted or refused) and [`quota`]
//! (a limit, without a guarantee). A set is checked first, then the host is prepared
//! ([`ReservationScheduler::prepare`]), then each thread takes its reservation itself
//! ([`Reservations::apply`]). Dropping what was prepared takes the changes of the host back.
//!
//! Another scheduler is another file that implements the two traits.

pub mod deadline;
pub mod limits;
pub mod quota;

use std::fmt;

use whylate_host::guard::Guard;
use whylate_host::journal::Journal;
use whylate_model::{CpuId, Nanos, Pid};
use whylate_rta::task_set;
pub use whylate_rta::task_set::ReservationKind;
use whylate_sys::sched::Policy;

pub use self::deadline::{Deadline, Grant};
pub use self::quota::Quota;
use crate::error::ThreadsError;

/// What a thread asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// CPU time in each period.
    pub amount: Nanos,
    /// The period.
    pub period: Nanos,
    /// Whether there may be more where time is left over.
    pub kind: ReservationKind,
}

impl Request {
    /// The share of one CPU.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.amount.0 as f64 / self.period.0.max(1) as f64
    }

    /// What no scheduler can keep: nothing, or more than the whole period.
    fn check(&self) -> Result<(), ThreadsError> {
        if self.amount.0 == 0 || self.period.0 == 0 {
            return Err(self.impossible("an amount and a period above zero are needed".to_owned()));
        }
        if self.amount > self.period {
            let why = "a thread cannot have more than the whole period: take a longer period";
            return Err(self.impossible(why.to_owned()));
        }
        Ok(())
    }

    fn impossible(&self, why: String) -> ThreadsError {
        ThreadsError::Reservation { request: *self, why }
    }
}

impl From<&task_set::Reservation> for Request {
    fn from(reservation: &task_set::Reservation) -> Self {
        let task_set::Reservation { kind, amount, period, .. } = *reservation;
        Self { amount, period, kind }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ReservationKind::Hard => "hard",
            ReservationKind::Soft => "soft",
        };
        write!(f, "{kind} {} in {}", self.amount, self.period)
    }
}

/// What came of taking a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The thread.
    pub thread: Pid,
    /// Its policy, as read back.
    pub policy: Policy,
}

/// A part of the kernel that can keep reservations.
pub trait ReservationScheduler: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What its hard and soft reservations are worth, in sentences.
    fn strength(&self) -> &'static str;

    /// Can these be kept together on these CPUs? Refuses what the kernel is known to refuse.
    fn check(&self, requests: &[Request], cpus: &[CpuId]) -> Result<(), ThreadsError>;

    /// What [`ReservationScheduler::prepare`] would change on the host, a sentence each.
    fn offer(&self, cpus: &[CpuId]) -> Result<Vec<String>, ThreadsError>;

    /// Makes the host ready for reservations on these CPUs.
    fn prepare(
        &self,
        journal: &Journal,
        cpus: &[CpuId],
    ) -> Result<Box<dyn Reservations>, ThreadsError>;
}

/// A host that was made ready; the changes are taken back when it is dropped, after the threads
/// have ended.
pub trait Reservations: Guard + Sync {
    /// Gives the calling thread a reservation, from now on and until it is given up or ends.
    fn apply(&self, request: Request) -> Result<Applied, ThreadsError>;

    /// Lets the calling thread run on these CPUs, too, without a reservation.
    fn join(&self) -> Result<(), ThreadsError>;

    /// Gives the calling thread's up: it is an ordinary thread again.
    fn give_up(&self) -> Result<(), ThreadsError>;

    /// How often `thread` wanted more than its reservation and was told or held back, as far as the
    /// kernel says; `None` where it does not. Also after the thread has ended.
    fn overruns(&self, thread: Pid) -> Option<u64>;
}

/// The scheduler that a task set names.
#[must_use]
pub fn scheduler(which: task_set::ReservationScheduler) -> Box<dyn ReservationScheduler> {
    match which {
        task_set::ReservationScheduler::Deadline => Box::new(Deadline::default()),
        task_set::ReservationScheduler::Quota => Box::new(Quota),
    }
}

fn sum(requests: &[Request]) -> f64 {
    requests.iter().map(Request::utilisation).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_requests_are_refused_by_every_scheduler() {
        let schedulers: [Box<dyn ReservationScheduler>; 2] =
            [Box::new(Deadline::default()), Box::new(Quota)];
        for scheduler in schedulers {
            for (amount, period) in [(0, 1_000_000), (1_000_000, 0), (9_000_001, 9_000_000)] {
                let (amount, period) = (Nanos(amount), Nanos(period));
                let request = Request { amount, period, kind: ReservationKind::Hard };
                let refusal = scheduler.check(&[request], &[CpuId(0)]).unwrap_err();
                assert!(matches!(refusal, ThreadsError::Reservation { .. }), "{refusal}");
            }
            assert!(!scheduler.strength().is_empty());
        }
    }

    #[test]
    fn a_request_says_what_it_asks_for() {
        let request = Request {
            amount: Nanos(3_100_000),
            period: Nanos(8_000_000),
            kind: ReservationKind::Hard,
        };
        assert_eq!(request.to_string(), "hard 3.10ms in 8.00ms");
        assert!((request.utilisation() - 0.3875).abs() < 1e-12);
    }
}
