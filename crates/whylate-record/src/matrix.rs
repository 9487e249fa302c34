//! x
use crate::{RecordError, Recorded, gaps::Request, progress::Progress};
use std::sync::atomic::AtomicBool;
use whylate_model::RunDir;
/// x
pub fn record(request: &Request, directory: RunDir, stop: &AtomicBool, progress: &mut dyn Progress) -> Result<Recorded, RecordError> { crate::gaps::record(request, directory, stop, progress) }
