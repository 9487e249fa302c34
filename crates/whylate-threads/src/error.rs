//! What can keep a thread from being measured.

use whylate_model::{CpuId, Nanos};
use whylate_sys::SysError;

use crate::reservations::Request;
use crate::wake::lat_abs;

/// Why a thread could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ThreadsError {
    /// The period lies outside what a sleeping thread can follow or a user can wait for.
    #[error(
        "period {0} is outside {min} to {max}: choose one inside",
        min = lat_abs::MIN_PERIOD,
        max = lat_abs::MAX_PERIOD
    )]
    Period(Nanos),
    /// Not one activation fits.
    #[error("duration {duration} is shorter than the period {period}: nothing would be measured")]
    DurationShorterThanPeriod {
        /// Duration asked for.
        duration: Nanos,
        /// Period asked for.
        period: Nanos,
    },
    /// Warm-up and duration together are beyond any sensible run.
    #[error(
        "a run of {0} in all is longer than {max}: choose a shorter one",
        max = lat_abs::MAX_LENGTH
    )]
    TooLong(Nanos),
    /// The thread could not be made.
    #[error("cannot start the measuring thread: {0}; raise `ulimit -u`, or end other programs")]
    Spawn(std::io::Error),
    /// The thread could not be put on its CPU.
    #[error("cannot pin the measuring thread to cpu {cpu}: {source}")]
    Pin {
        /// The CPU.
        cpu: CpuId,
        /// The kernel's answer.
        source: SysError,
    },
    /// The kernel said yes and did something else.
    #[error(
        "the measuring thread was pinned to cpu {cpu} but may run on {allowed:?}: \
         is something else changing affinities?"
    )]
    PinNotKept {
        /// The CPU asked for.
        cpu: CpuId,
        /// Where the thread may run.
        allowed: Vec<CpuId>,
    },
    /// A thread could not be put where it belongs.
    #[error("thread {thread} cannot be put on its CPUs: {source}")]
    Seat {
        /// Which.
        thread: String,
        /// The kernel's answer.
        source: SysError,
    },
    /// Something that threads share failed.
    #[error("what the threads of the set share failed: {0}")]
    Resource(SysError),
    /// A runner could not sit down.
    #[error("{why}")]
    RunnerRefused {
        /// What it said.
        why: String,
    },
    /// A runner ended before it was dismissed.
    #[error("runner {runner} was lost: {why}; what the others measured is not used")]
    RunnerLost {
        /// Which.
        runner: u32,
        /// What is known of it.
        why: String,
    },
    /// A thread panicked.
    #[error("a thread of the set died; what it recorded up to then is kept")]
    Died,
    /// The user gave up before the set ran.
    #[error("stopped while the threads were being set up: nothing was run")]
    Stopped,
    /// No model has this name.
    #[error("`{name}` is not a thread model: choose one of {known}")]
    UnknownModel {
        /// As written.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A model or a timer was given arguments that it does not take.
    #[error(transparent)]
    Call(#[from] whylate_rta::call::CallError),
    /// A timer failed.
    #[error("timer {timer} failed: {source}")]
    Timer {
        /// Which.
        timer: &'static str,
        /// The kernel's answer.
        source: SysError,
    },
    /// A reservation that no scheduler, or not this one, could keep.
    #[error("a reservation of {request} cannot be kept: {why}")]
    Reservation {
        /// What was asked for.
        request: Request,
        /// Why.
        why: String,
    },
    /// More is to be reserved than there is.
    #[error(
        "reservations of {sum:.3} CPUs are more than the {limit:.3} that {} can grant ({reason}): \
         reserve less, or raise the limit of real-time tasks for the run",
        of_cpus(*cpus)
    )]
    Overbooked {
        /// All of them together, in CPUs.
        sum: f64,
        /// What can be granted.
        limit: f64,
        /// Of how many CPUs.
        cpus: usize,
        /// How the limit comes about.
        reason: String,
    },
    /// The kernel's admission test said no.
    #[error(
        "a reservation of {request} was not admitted (EBUSY): with it this set would hold \
         {sum:.3} of {}; the kernel grants {reason}, and other programs, or a reservation given up \
         within its last period, may hold some; reserve less, or raise the limit of real-time tasks \
         for the run",
        of_cpus(*cpus)
    )]
    NotAdmitted {
        /// What was asked for.
        request: Request,
        /// All of this program together, this one included, in CPUs.
        sum: f64,
        /// On how many CPUs.
        cpus: usize,
        /// What the kernel grants.
        reason: String,
    },
    /// A thread with a deadline must be free to run on its whole scheduling domain.
    #[error(
        "a reservation of {request} was refused (EPERM), since the thread is bound to fewer CPUs \
         than its scheduling domain has; an exclusive cpuset mends that: {offer}"
    )]
    NotFreeToRun {
        /// What was asked for.
        request: Request,
        /// What would be changed to grant it.
        offer: String,
    },
    /// Another reason.
    #[error("a reservation of {request} was refused: {source}")]
    ReservationRefused {
        /// What was asked for.
        request: Request,
        /// The kernel's answer.
        source: SysError,
    },
    /// A policy was not taken.
    #[error("{0}")]
    Seated(SysError),
    /// The host could not be made ready.
    #[error(transparent)]
    Host(#[from] whylate_host::HostError),
    /// No timer has this name.
    #[error("no timer is called `{name}`: write one of {}", crate::timers::names())]
    UnknownTimer {
        /// As written.
        name: String,
    },
    /// A timer that this system does not have.
    #[error("timer {timer} cannot be used: {why}")]
    TimerNotHere {
        /// Which.
        timer: &'static str,
        /// Why, and what to use instead.
        why: &'static str,
    },
}

fn of_cpus(count: usize) -> String {
    if count == 1 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
}
