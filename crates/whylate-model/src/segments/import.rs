//! Taking over the segments of another directory, for a run that is the sum of several.

use super::block_rows::BlockRows;
use super::event_rows::EventRows;
use super::gap_rows::GapRows;
use super::injection_rows::InjectionRows;
use super::job_rows::JobRows;
use super::journey_rows::JourneyRows;
use super::packet_rows::PacketRows;
use super::reader::SEGMENT_LIMIT;
use super::rows::{Rows, decode};
use super::truth_rows::TruthRows;
use super::{is_segment_name, number_of};
use crate::digest::Digest;
use crate::directory::RunDir;
use crate::error::{ModelError, quote};
use crate::files;
use crate::run::Segment;

/// Copies a segment into another run's directory under the next `number` of its kind.
///
/// The content stays as it is, raw ticks and the epoch that they count from included. It is decoded
/// first: what cannot be read is an error and is not copied. A segment of a kind that this version
/// does not know is an error, too.
pub fn import(
    from: &RunDir,
    segment: &Segment,
    into: &RunDir,
    number: u64,
) -> Result<Segment, ModelError> {
    let path = from.path().join(&segment.file);
    let unsafe_name =
        || ModelError::UnsafeFileName { path: path.clone(), file: quote(&segment.file) };
    if !is_segment_name(&segment.file) {
        return Err(unsafe_name());
    }
    let content = files::read_plain(&path, SEGMENT_LIMIT)?;
    let (kind, _) = number_of(&segment.file).ok_or_else(unsafe_name)?;
    let rows = match kind {
        GapRows::KIND => decode::<GapRows>(&path, content.clone())?.len(),
        BlockRows::KIND => decode::<BlockRows>(&path, content.clone())?.len(),
        JobRows::KIND => decode::<JobRows>(&path, content.clone())?.len(),
        PacketRows::KIND => decode::<PacketRows>(&path, content.clone())?.len(),
        JourneyRows::KIND => decode::<JourneyRows>(&path, content.clone())?.len(),
        TruthRows::KIND => decode::<TruthRows>(&path, content.clone())?.len(),
        InjectionRows::KIND => decode::<InjectionRows>(&path, content.clone())?.len(),
        EventRows::KIND => decode::<EventRows>(&path, content.clone())?.len(),
        _ => return Err(ModelError::malformed(&path, "a kind of segment that is not known")),
    };
    let file = format!("{kind}-{number:04}.parquet");
    files::replace(&into.path().join(&file), &content)?;
    let (rows, bytes) = (rows as u64, content.len() as u64);
    Ok(Segment { file, rows, bytes, digest: Some(Digest::of(&content)), ..segment.clone() })
}

/// The kind of a segment by its name: `gaps`, `events`, `blocks`, `jobs`, `packets`, `journeys`,
/// `truths` or `injections`.
#[must_use]
pub fn kind_of(segment: &Segment) -> Option<&str> {
    number_of(&segment.file).map(|(kind, _)| kind)
}
