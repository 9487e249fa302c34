//! The noise injector: known interruptions of a measured CPU.
//!
//! An instrument that finds gaps must find the gaps that are known to be there. The injector
//! interrupts a measuring thread a prime number of times in each of five ways while it measures,
//! and keeps when each interruption was. Where code of ours runs on the measured CPU (a FIFO
//! thread, a busy thread, a signal handler) it stamps its own start and end, so the length is
//! known; for interrupts and page faults only the sender's stamps are, which bracket the gap.

mod handler;
mod preempt;

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};
use whylate_stats::rng::Rng;
use whylate_sys::{membarrier, process};

use crate::GapError;

/// One way to interrupt a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A SCHED_FIFO thread preempts the measuring thread.
    FifoPreemption,
    /// `membarrier` on another CPU sends an interrupt.
    Ipi,
    /// A signal handler on the measuring thread touches pages that are not there.
    PageFault,
    /// A signal is handled on the measuring thread.
    Signal,
    /// An ordinary thread takes its share of the CPU.
    CpuHog,
}

impl Kind {
    /// All kinds, in the order they are injected.
    pub const ALL: [Self; 5] =
        [Self::FifoPreemption, Self::Ipi, Self::PageFault, Self::Signal, Self::CpuHog];

    /// How many are injected: a prime for each kind, so that a count tells its kind.
    #[must_use]
    pub fn count(self) -> usize {
        match self {
            Self::FifoPreemption => 503,
            // More than the others: one that finds another thread on the CPU interrupts nothing.
            Self::Ipi => 1009,
            Self::PageFault => 523,
            Self::Signal => 541,
            Self::CpuHog => 509,
        }
    }

    /// Name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FifoPreemption => "fifo preemption",
            Self::Ipi => "ipi",
            Self::PageFault => "page fault",
            Self::Signal => "signal",
            Self::CpuHog => "cpu hog",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Is the length known, because our code ran on the measured CPU for all of it?
    #[must_use]
    pub fn length_known(self) -> bool {
        matches!(self, Self::FifoPreemption | Self::Signal | Self::CpuHog)
    }

    /// Name of the thread that interrupts, where a thread does.
    #[must_use]
    pub fn thread_name(self) -> Option<&'static str> {
        match self {
            Self::FifoPreemption => Some(preempt::FIFO_NAME),
            Self::CpuHog => Some(preempt::HOG_NAME),
            _ => None,
        }
    }

    /// The signal that interrupts, where one does.
    #[must_use]
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signal => Some(handler::signal_to_spin()),
            Self::PageFault => Some(handler::signal_to_fault()),
            _ => None,
        }
    }
}

/// One interruption that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injected {
    /// How.
    pub kind: Kind,
    /// When the injector began to act for it: sending a signal, dropping pages and waking a thread
    /// interrupt the CPU, too.
    pub since: Ticks,
    /// First instant known to belong to it, or the sender's stamp before sending.
    pub start: Ticks,
    /// Last instant known to belong to it, or the sender's stamp after it was served.
    pub end: Ticks,
    /// What the interrupting code had to spin, where it spun.
    pub asked: TicksDelta,
}

/// Whom to interrupt, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The measured CPU.
    pub cpu: CpuId,
    /// The measuring thread.
    pub tid: Pid,
    /// Where the injector runs: another CPU.
    pub from: CpuId,
}

/// What one kind did.
#[derive(Debug)]
pub enum Outcome {
    /// These interruptions were made.
    Made(Vec<Injected>),
    /// None could be made, and why.
    Skipped(Kind, GapError),
}

/// Pause between two interruptions: random within these bounds, so that no beat with the tick or
/// with the measuring loop forms.
const PAUSE: (Nanos, Nanos) = (Nanos(400_000), Nanos(1_600_000));

/// Interrupts the target in all ways, one kind after the other, and returns what was done.
///
/// Blocks for about five seconds; call it on a thread of its own. `counts` shortens a kind, for
/// tests. Stops early when `stop` is set.
pub fn run(
    target: Target,
    mut counter: HardwareCounter,
    rate: Hertz,
    seed: u64,
    count: impl Fn(Kind) -> usize,
    stop: &AtomicBool,
) -> Vec<Outcome> {
    let mut rng = Rng::new(seed);
    if let Err(source) = whylate_sys::affinity::set(&[target.from]) {
        let error = GapError::Inject { what: "anything from another CPU".to_owned(), source };
        return vec![Outcome::Skipped(Kind::Ipi, error)];
    }
    Kind::ALL
        .into_iter()
        .map(|kind| {
            let mut pacer = Pacer { rng: &mut rng, rate, left: count(kind), stop };
            let made = match kind {
                Kind::FifoPreemption | Kind::CpuHog => {
                    preempt::inject(kind, target, counter, &mut pacer)
                }
                Kind::Ipi => ipis(&mut counter, &mut pacer),
                Kind::Signal | Kind::PageFault => {
                    handler::inject(kind, target, &mut counter, &mut pacer)
                }
            };
            match made {
                Ok(injected) => Outcome::Made(injected),
                Err(error) => Outcome::Skipped(kind, error),
            }
        })
        .collect()
}

/// Gives the word for each interruption and draws its length.
struct Pacer<'a> {
    rng: &'a mut Rng,
    rate: Hertz,
    left: usize,
    stop: &'a AtomicBool,
}

impl Pacer<'_> {
    /// Sleeps a random pause and draws a length between the bounds; none when it is enough.
    fn next(&mut self, shortest: Nanos, longest: Nanos) -> Option<TicksDelta> {
        if self.left == 0 || self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.left -= 1;
        let pause = self.between(PAUSE.0, PAUSE.1).0;
        std::thread::sleep(std::time::Duration::from_nanos(pause));
        Some(self.between(shortest, longest).to_ticks(self.rate))
    }

    fn between(&mut self, shortest: Nanos, longest: Nanos) -> Nanos {
        Nanos(shortest.0 + self.rng.below(longest.0 - shortest.0 + 1))
    }
}

/// A membarrier makes the kernel interrupt every CPU that runs a thread of this process.
fn ipis(counter: &mut HardwareCounter, pacer: &mut Pacer) -> Result<Vec<Injected>, GapError> {
    let fail = |source| GapError::Inject { what: "interrupts by membarrier".to_owned(), source };
    membarrier::register_private_expedited().map_err(fail)?;
    let mut injected = Vec::with_capacity(pacer.left);
    while pacer.next(Nanos(0), Nanos(0)).is_some() {
        let start = counter.read();
        membarrier::private_expedited().map_err(fail)?;
        let end = counter.read();
        injected.push(Injected { kind: Kind::Ipi, since: start, start, end, asked: TicksDelta(0) });
    }
    Ok(injected)
}

/// The thread id that sends the interrupts of [`Kind::Ipi`] when called on the injector's thread.
#[must_use]
pub fn sender() -> Pid {
    process::tid()
}
