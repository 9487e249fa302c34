//! Holding frames or messages back from here: the delay line that instruments are judged by.

mod netem;
mod recording;
mod sums;
mod threads;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use whylate_host::journal::Journal;
use whylate_model::CpuId;
use whylate_model::delay::DelayLine;
use whylate_net::delay::{DelayError, Delayed, Law, Plan, ProxyPlan};
use whylate_net::lab::{Bed, OPEN_PORTS};
use whylate_net::{NetError, Speaks};

use crate::RecordError;
use crate::forward::tags;
use crate::progress::Progress;
use crate::service::{Pace, Unrecorded};

use sums::Sums;
use threads::Work;

pub use crate::service::Asked;
pub(crate) use netem::{emulator, own_error};
pub use recording::record;

/// The thread's name, and when what it has told, and truths on their way, are looked for.
const THREAD: (&str, Pace) = ("delay", Pace { every: Duration::from_millis(20), thorough: 10 });

/// What is held back.
#[derive(Debug, Clone)]
pub enum What {
    /// Frames between two ports.
    Frames(Plan),
    /// Messages from clients to a server.
    Messages(ProxyPlan),
}

/// What is to be held back, how, and where the thread runs.
#[derive(Debug, Clone)]
pub struct DelayRequest {
    /// What, and how.
    pub what: What,
    /// In the device's part of this bed; where the process is without one.
    pub bed: Option<Bed>,
    /// What the messages are, so that truths have their numbers.
    pub speaks: Speaks,
    /// CPU of the thread: none leaves the affinity as it is.
    pub cpu: Option<CpuId>,
    /// Under SCHED_FIFO with this priority.
    pub fifo: Option<u8>,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_dma_latency: bool,
    /// A Unix socket that takes orders.
    pub control: Option<PathBuf>,
    /// Measure what netem makes of the same delay, where the kernel has it.
    pub netem: bool,
}

impl DelayRequest {
    /// Refuses the ports of a bed in the other order, before anything is measured.
    pub(crate) fn check(&self) -> Result<(), RecordError> {
        let (What::Frames(plan), Some(_)) = (&self.what, &self.bed) else { return Ok(()) };
        let [first, second] = &plan.interfaces;
        if [second.as_str(), first.as_str()] != OPEN_PORTS {
            return Ok(());
        }
        let swapped = DelayError::Swapped { first: first.clone(), second: second.clone() };
        Err(NetError::from(swapped).into())
    }

    /// Names of the ports, or where a proxy listens and where it leads.
    pub(crate) fn ports(&self) -> [String; 2] {
        match &self.what {
            What::Frames(plan) => plan.interfaces.clone(),
            What::Messages(plan) => [plan.way.listen.to_string(), plan.way.to.to_string()],
        }
    }

    /// What carries.
    pub(crate) fn transport(&self) -> String {
        match &self.what {
            What::Frames(plan) => plan.transport.name().to_owned(),
            What::Messages(plan) => format!("proxy {}", plan.way.kind.name()),
        }
    }

    pub(crate) fn wait(&self) -> String {
        match &self.what {
            What::Frames(plan) => plan.wait.to_string(),
            What::Messages(plan) => plan.wait.to_string(),
        }
    }

    pub(crate) fn laws(&self) -> &[Law; 2] {
        match &self.what {
            What::Frames(plan) => &plan.laws,
            What::Messages(plan) => &plan.laws,
        }
    }
}

/// Delays until `stop` is set, the time is over or a port is gone, on a thread of its own. Says when it
/// begins.
///
/// # Errors
/// The ports cannot be opened, are joined outside or taken, there is no room for the delay, or a thread
/// failed.
pub fn run(
    request: &DelayRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<DelayLine, RecordError> {
    request.check()?;
    let unrecorded = Unrecorded::set_up(request.hold_dma_latency)?;
    let beside = netem::said(request, progress);
    let mut sums = Sums::new(request, unrecorded.rate, beside);
    let (crew, taker) = unrecorded.crew(2, Delayed::touched);
    // Nothing is changed but where a port takes frames from a driver.
    let concerned = match &request.what {
        What::Frames(plan) => tags::concern(plan.transport, &plan.interfaces),
        What::Messages(_) => false,
    };
    let journal = concerned.then(Journal::open).transpose()?;
    let line = Work { request, crew: &crew, journal: journal.as_ref(), shown: sums.shown() };
    let work = || line.run(stop);
    let of = unrecorded.attend((&mut sums, &taker), THREAD, work, progress)?;
    Ok(sums.told(of))
}
