//! Reading segments back, from directories whole, incomplete or hostile.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use super::block_rows::BlockRows;
use super::event_rows::EventRows;
use super::gap_rows::GapRows;
use super::injection_rows::InjectionRows;
use super::job_rows::JobRows;
use super::journey_rows::JourneyRows;
use super::packet_rows::PacketRows;
use super::rows::{Rows, decode, decode_by};
use super::truth_rows::TruthRows;
use super::{BriefGaps, StoredGap, is_segment_name, number_of};
use crate::breakdown::StoredJourney;
use crate::delay::Truth;
use crate::directory::RunDir;
use crate::error::ModelError;
use crate::event::Event;
use crate::execution::{Block, StoredJob};
use crate::files;
use crate::injection::Injection;
use crate::packet::StoredPacket;
use crate::run::Run;
use crate::text::Printable;

/// Most bytes of a segment: whylate writes a few MiB.
pub(crate) const SEGMENT_LIMIT: u64 = 64 << 20;

/// The gaps of a run in the order of its segments.
///
/// Reads what is in the directory, whether `run.json` lists it or not; [`survey`] tells what is
/// missing. A segment that cannot be read is one error, and reading goes on with the next.
pub fn read_gaps(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<StoredGap, ModelError>> + use<>, ModelError> {
    read::<GapRows>(directory)
}

/// The segments of gaps of a run, in their order.
///
/// # Errors
/// The directory cannot be read.
pub fn gap_files(directory: &RunDir) -> Result<Vec<PathBuf>, ModelError> {
    segments_of(directory.path(), GapRows::KIND)
}

/// The gaps of a segment without their evidence, which takes a fraction of the time.
///
/// # Errors
/// The segment cannot be read; what is not needed of it is not looked at.
pub fn read_brief_gaps(path: &Path) -> Result<BriefGaps, ModelError> {
    decode_brief_gaps(path, files::read_plain(path, SEGMENT_LIMIT)?)
}

/// The gaps in the content of a segment without their evidence, as [`decode_gaps`].
pub fn decode_brief_gaps(path: &Path, file: Vec<u8>) -> Result<BriefGaps, ModelError> {
    let mut all = BriefGaps::default();
    decode_by::<GapRows>(path, file, &mut |columns| {
        all.append(GapRows::read_brief(columns)?);
        Ok(())
    })?;
    Ok(all)
}

/// The kernel events of a run in the order of its segments.
///
/// As [`read_gaps`]. Within a segment, events of one CPU are in order; those of different CPUs are
/// as they were drained.
pub fn read_events(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<Event, ModelError>> + use<>, ModelError> {
    read::<EventRows>(directory)
}

/// The blocks of a run in the order of its segments; within one they are in the order of their ends,
/// thread by thread.
pub fn read_blocks(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<Block, ModelError>> + use<>, ModelError> {
    read::<BlockRows>(directory)
}

/// The jobs of a run in the order of its segments.
pub fn read_jobs(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<StoredJob, ModelError>> + use<>, ModelError> {
    read::<JobRows>(directory)
}

/// The requests of a run in the order of its segments.
pub fn read_packets(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<StoredPacket, ModelError>> + use<>, ModelError> {
    read::<PacketRows>(directory)
}

/// The requests in the content of a segment, as [`decode_gaps`].
pub fn decode_packets(path: &Path, content: Vec<u8>) -> Result<Vec<StoredPacket>, ModelError> {
    decode::<PacketRows>(path, content)
}

/// The points of requests of a run in the order of its segments.
pub fn read_journeys(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<StoredJourney, ModelError>> + use<>, ModelError> {
    read::<JourneyRows>(directory)
}

/// The points of requests in the content of a segment, as [`decode_gaps`].
pub fn decode_journeys(path: &Path, content: Vec<u8>) -> Result<Vec<StoredJourney>, ModelError> {
    decode::<JourneyRows>(path, content)
}

/// The truths of a run's frames in the order of its segments.
pub fn read_truths(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<Truth, ModelError>> + use<>, ModelError> {
    read::<TruthRows>(directory)
}

/// The truths of frames in the content of a segment, as [`decode_gaps`].
pub fn decode_truths(path: &Path, content: Vec<u8>) -> Result<Vec<Truth>, ModelError> {
    decode::<TruthRows>(path, content)
}

/// The interruptions that a self-test made, in the order of its segments.
pub fn read_injections(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<Injection, ModelError>> + use<>, ModelError> {
    read::<InjectionRows>(directory)
}

/// The interruptions of a self-test in the content of a segment, as [`decode_gaps`].
pub fn decode_injections(path: &Path, content: Vec<u8>) -> Result<Vec<Injection>, ModelError> {
    decode::<InjectionRows>(path, content)
}

/// The blocks in the content of a segment, as [`decode_gaps`].
pub fn decode_blocks(path: &Path, content: Vec<u8>) -> Result<Vec<Block>, ModelError> {
    decode::<BlockRows>(path, content)
}

/// The jobs in the content of a segment, as [`decode_gaps`].
pub fn decode_jobs(path: &Path, content: Vec<u8>) -> Result<Vec<StoredJob>, ModelError> {
    decode::<JobRows>(path, content)
}

/// The gaps in the content of a segment, which `path` names in errors.
///
/// Nothing in it is trusted: a content of any kind gives gaps or an error.
pub fn decode_gaps(path: &Path, content: Vec<u8>) -> Result<Vec<StoredGap>, ModelError> {
    decode::<GapRows>(path, content)
}

/// The events in the content of a segment, as [`decode_gaps`].
pub fn decode_events(path: &Path, content: Vec<u8>) -> Result<Vec<Event>, ModelError> {
    decode::<EventRows>(path, content)
}

/// What a run directory holds beside what its `run.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// Segments that are listed and not there.
    pub missing: Vec<String>,
    /// Segments that are there and not listed: closed after the last `run.json` was written.
    pub unlisted: Vec<String>,
    /// Files that never were finished: the recording was killed, or is still going on.
    pub unfinished: Vec<String>,
}

/// Compares the directory with what its `run.json` lists.
pub fn survey(directory: &RunDir, run: &Run) -> Result<Survey, ModelError> {
    let unfinished_end = format!(".{}", files::UNFINISHED);
    let mut there = BTreeSet::new();
    let mut survey = Survey::default();
    for name in names(directory.path())? {
        if name.ends_with(&unfinished_end) {
            survey.unfinished.push(name);
        } else if is_segment_name(&name) {
            there.insert(name);
        }
    }
    let listed: BTreeSet<String> = run.segments.iter().map(|s| s.file.clone()).collect();
    survey.missing = listed.difference(&there).cloned().collect();
    survey.unlisted = there.difference(&listed).cloned().collect();
    survey.unfinished.sort();
    Ok(survey)
}

impl Survey {
    /// Is the directory as its `run.json` says?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Survey {
    /// One sentence for each thing that is not as `run.json` says; nothing when all is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [
            (
                &self.missing,
                "listed in run.json and missing: single stalls or events are not complete",
            ),
            (&self.unlisted, "written after the last run.json; they are read all the same"),
            (&self.unfinished, "never finished, and not read: the recording was killed or goes on"),
        ];
        let mut before = "";
        for (names, fact) in facts {
            if let Some(first) = names.first() {
                let others = match names.len() - 1 {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(f, "{before}{}{others}: {fact}", Printable(first))?;
                before = "; ";
            }
        }
        Ok(())
    }
}

fn read<R: Rows>(
    directory: &RunDir,
) -> Result<impl Iterator<Item = Result<R::Row, ModelError>> + use<R>, ModelError> {
    let files = segments_of(directory.path(), R::KIND)?;
    Ok(files.into_iter().flat_map(|path| {
        let rows =
            files::read_plain(&path, SEGMENT_LIMIT).and_then(|file| decode::<R>(&path, file));
        match rows {
            Ok(rows) => Rest::Rows(rows.into_iter()),
            Err(error) => Rest::Error(Some(error)),
        }
    }))
}

/// What one segment gives: its rows, or one error.
enum Rest<T> {
    Rows(std::vec::IntoIter<T>),
    Error(Option<ModelError>),
}

impl<T> Iterator for Rest<T> {
    type Item = Result<T, ModelError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Rows(rows) => rows.next().map(Ok),
            Self::Error(error) => error.take().map(Err),
        }
    }
}

/// The segments of one kind by their number.
fn segments_of(directory: &Path, kind: &str) -> Result<Vec<PathBuf>, ModelError> {
    let mut found: Vec<(u64, String)> = names(directory)?
        .into_iter()
        .filter_map(|name| match number_of(&name) {
            Some((of, number)) if of == kind => Some((number, name)),
            _ => None,
        })
        .collect();
    found.sort();
    Ok(found.into_iter().map(|(_, name)| directory.join(name)).collect())
}

fn names(directory: &Path) -> Result<Vec<String>, ModelError> {
    let failed = |why| ModelError::read(directory, why);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        // A name that is not text is none of ours.
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}
