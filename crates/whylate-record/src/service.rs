//! What runs until it is told to end, and is recorded meanwhile: a forwarder, a delay line, a server.
//!
//! Its threads do the work and hand over what comes of it (`threads.rs`). The recording's own thread takes
//! that in between two looks, watches the host, and writes a checkpoint after the first account and then
//! every ten seconds (`recording.rs`); or there is no run directory, and it only adds up (`unrecorded.rs`).
//! Threads that work are never waited for, and work nothing out that the other can. What differs from one
//! kind of service to the other is said by [`Service`] and [`Attended`].

mod recording;
mod threads;
mod unrecorded;

use whylate_clock::Counter;
use whylate_clock::cost::resolution_ticks;
use whylate_model::run::{ClockFacts, RunState};
use whylate_model::settings::{Placed, Policy, Setting};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz};
use whylate_threads::placement::Seat;

use crate::progress::Progress;
use crate::storage::Storage;

pub(crate) use recording::{Account, Page, Recording, record};
pub(crate) use threads::{Crew, Pace, Taker};
pub(crate) use unrecorded::Unrecorded;

/// What a run says of how it came about.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The command line.
    pub command_line: Vec<String>,
    /// The question in one sentence.
    pub question: String,
    /// Seed of everything random, where something is.
    pub seed: u64,
}

/// A service that is recorded.
pub(crate) trait Service {
    /// Has it told what it has done? Before that there is nothing to write down.
    fn has_account(&self) -> bool;

    /// What it adds to its run.
    fn page(&mut self, state: RunState, clock: &ClockFacts) -> Page;
}

/// A service whose threads tell what comes of their work.
pub(crate) trait Attended: Service {
    /// What they tell.
    type Told: Send;
    /// Histograms that they hand over, and get back empty.
    type Times: Default + Send;

    /// Takes in what was told since the last time, and writes down what belongs on the disk, where there is
    /// a storage.
    fn take(
        &mut self,
        taker: &Taker<Self::Told, Self::Times>,
        storage: Option<&mut Storage>,
        progress: &mut dyn Progress,
    );

    /// Threads that have their place: the host is watched for their sake.
    fn seats(&self) -> &[Seat];
}

/// What a service does not know of the account that it gives.
pub(crate) struct Circumstances {
    pub(crate) bound_ppm: f64,
    pub(crate) resolution_ns: f64,
    pub(crate) warnings: Vec<Warning>,
    /// Is it over?
    pub(crate) over: bool,
}

impl Circumstances {
    /// Those of a run in this state, by this clock. Its warnings are the run's.
    pub(crate) fn of_run(state: RunState, clock: &ClockFacts) -> Self {
        Self {
            bound_ppm: clock.hz_bound_ppm,
            resolution_ns: clock.resolution_ns,
            warnings: Vec::new(),
            over: state != RunState::Running,
        }
    }
}

/// The smallest step of the counter in nanoseconds.
fn resolution_ns<C: Counter>(counter: &mut C, rate: Hertz) -> f64 {
    resolution_ticks(counter).0 as f64 * 1e9 / rate.0
}

/// Where and how threads run, as settings say it.
pub(crate) fn placed(cpus: &[CpuId], fifo: Option<u8>) -> Setting {
    Placed { cpus: cpus.to_vec(), policy: Policy::fifo(fifo) }.into()
}
