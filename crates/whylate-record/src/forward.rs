//! Forwarding frames from here: the network function between two ends of somebody's measurement.

mod recording;
pub(crate) mod sums;
pub(crate) mod tags;
mod threads;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use whylate_host::journal::Journal;
use whylate_model::CpuId;
use whylate_model::forward::Forward;
use whylate_net::forward::{Plan, Times};
use whylate_net::lab::Bed;

use crate::RecordError;
use crate::progress::Progress;
use crate::service::{Pace, Unrecorded};

use sums::Sums;

pub use crate::service::Asked;
pub use recording::record;

/// Name of the first thread, and when what both have told is looked for.
const THREAD: (&str, Pace) = ("forward/0", Pace { every: Duration::from_millis(200), thorough: 1 });
/// Intervals between two looks for which histograms are kept ready, at most: the shortest have a 100th of a
/// second.
const MOST_INTERVALS: u128 = 20;

/// What is to be forwarded, how, and where the threads run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardRequest {
    /// What, and how.
    pub plan: Plan,
    /// In the device's part of this bed; where the process is without one.
    pub bed: Option<Bed>,
    /// CPUs of the threads: none leaves the affinity as it is, one is for both directions, two are for
    /// one each.
    pub cpus: Vec<CpuId>,
    /// Under SCHED_FIFO with this priority.
    pub fifo: Option<u8>,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_dma_latency: bool,
}

impl ForwardRequest {
    /// Histograms that are open or on their way at once: one of each direction for each interval between
    /// two looks at what was told.
    fn open_histograms(&self) -> usize {
        let look = THREAD.1.every.as_nanos();
        let intervals = look.div_ceil(u128::from(self.plan.interval.0.max(1)));
        2 * usize::try_from(intervals.clamp(1, MOST_INTERVALS)).unwrap_or(1)
    }
}

/// Forwards until `stop` is set, the time is over or a port is gone, on threads of its own. Says when it
/// begins.
///
/// # Errors
/// The ports cannot be opened, are joined outside or taken, or a thread failed.
pub fn run(
    request: &ForwardRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Forward, RecordError> {
    let unrecorded = Unrecorded::set_up(request.hold_dma_latency)?;
    let mut sums = Sums::new(request, unrecorded.rate);
    let (crew, taker) = unrecorded.crew(request.open_histograms(), Times::touched);
    // Nothing is changed but where a port takes frames from a driver.
    let Plan { transport, interfaces, .. } = &request.plan;
    let journal = tags::concern(*transport, interfaces).then(Journal::open).transpose()?;
    let work = || threads::work(request, (&crew, journal.as_ref()), stop);
    let of = unrecorded.attend((&mut sums, &taker), THREAD, work, progress)?;
    Ok(sums.told(of))
}
