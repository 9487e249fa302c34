//! A process that knows nothing of us is watched: where its requests spend their time.
//!
//! The kernel's tracepoints say when a message for it arrived, was in its socket's queue, woke a thread
//! and was read, and when what that thread sent next was given to the driver. That is a request and its
//! reply, from the one driver to the other. The process is neither changed nor asked: its threads are
//! read from `/proc`, now and then, and it pays for the tracepoints that it passes.

mod queued;
mod recording;
mod threads;
mod whom;

use std::sync::atomic::AtomicBool;

use whylate_model::Nanos;
use whylate_model::directory::RunDir;

use crate::progress::Progress;
use crate::{RecordError, Recorded};

pub use whom::{Asked, NotFound, Whom, find};

/// What is watched, and for how long.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whom.
    pub whom: Whom,
    /// For so long; none until it is told to end, or the process ends.
    pub duration: Option<Nanos>,
    /// Every request in the log, one by one.
    pub log_requests: bool,
    /// The percentile from which on a request is slow.
    pub slow_from: f64,
    /// CPUs of the recording's own thread, where the user chose some.
    pub housekeeping: Option<Vec<whylate_model::CpuId>>,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// Seed of everything random: nothing is.
    pub seed: u64,
}

/// Watches into `directory` until the time is over, the process ends, or `stop` is set.
///
/// # Errors
/// The process cannot be found or watched, or the run directory cannot be written.
pub fn record(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let undo = directory.undo();
    let recorded = recording::Recording::begin(request, directory, stop).map(|mut recording| {
        recording.watch(progress);
        recording
    });
    match recorded {
        Ok(recording) => Ok(recording.conclude()),
        Err(error) => {
            undo.remove();
            Err(error)
        }
    }
}
