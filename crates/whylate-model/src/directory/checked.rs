//! Reading a run together with the state of its files: is each there, and as it was recorded?

use std::fs::File;
use std::io::{self, Read};

use super::{RUN_FILE, RunDir, parse_run};
use crate::digest::{Digest, Sealed, sealed};
use crate::error::ModelError;
use crate::files;
use crate::hlog::HISTOGRAM_FILE;
use crate::pcapng::PACKETS_FILE;
use crate::run::{Capture, Run, RunState, Segment};
use crate::segments::{SEGMENT_LIMIT, goes_on_from};
use crate::tap::TAP_FILE;
use crate::text::Printable;
use crate::trust::Files;

/// A file that a run counts on.
struct Counted<'a> {
    file: &'a str,
    bytes: u64,
    digest: Option<Digest>,
    /// May it go on beyond these bytes?
    grows: bool,
}

impl RunDir {
    /// Reads `run.json`, and looks whether it and the files that it counts on are as they were recorded.
    pub fn read_checked(&self) -> Result<Run, ModelError> {
        let mut run = self.read_sealed()?;
        let mut files = std::mem::take(&mut run.files);
        self.look(&run, &mut files);
        run.files = files;
        Ok(run)
    }

    /// Reads `run.json`, and looks whether it is as it was recorded, and at no other file: for what needs none.
    pub fn read_sealed(&self) -> Result<Run, ModelError> {
        let json = self.read_json()?;
        let mut run = parse_run(&self.path.join(RUN_FILE), &json)?;
        match sealed(&json) {
            Sealed::Whole => {}
            Sealed::Changed => run.files.problems.push(not_as_recorded(RUN_FILE)),
            Sealed::No => run.files.undigested.push(RUN_FILE.to_owned()),
        }
        Ok(run)
    }

    /// The captures of packets in the directory, as they are now.
    #[must_use]
    pub fn captures(&self) -> Vec<Capture> {
        [PACKETS_FILE, TAP_FILE].into_iter().filter_map(|name| self.captured(name)).collect()
    }

    /// A file of the directory as it is now; none that is not there, or is no plain file.
    #[must_use]
    pub fn captured(&self, name: &str) -> Option<Capture> {
        let file = files::open_plain(&self.path.join(name)).ok()?;
        let bytes = file.metadata().ok()?.len();
        let digest = Digest::read(file.take(bytes)).ok()?;
        Some(Capture { file: name.to_owned(), bytes, digest })
    }

    /// Is each file there that the run counts on, and is its content what it was?
    fn look(&self, run: &Run, files: &mut Files) {
        for segment in &run.segments {
            let Segment { file, bytes, digest, .. } = segment;
            let counted = Counted { file, bytes: *bytes, digest: *digest, grows: false };
            let problem = self.problem(&counted);
            // What a run wrote after its last checkpoint goes on from what it had counted.
            if problem.is_some() && run.state == RunState::Running && self.goes_on(segment) {
                continue;
            }
            files.problems.extend(problem);
            files.undigested.extend(digest.is_none().then(|| Printable(file).to_string()));
        }
        for Capture { file, bytes, digest } in &run.captures {
            let counted = Counted { file, bytes: *bytes, digest: Some(*digest), grows: false };
            files.problems.extend(self.problem(&counted));
        }
        let log = self.path.join(HISTOGRAM_FILE);
        if let Some(bytes) = run.log_bytes.filter(|bytes| *bytes > 0) {
            let digest = run.log_digest;
            let counted = Counted { file: HISTOGRAM_FILE, bytes, digest, grows: true };
            files.problems.extend(self.problem(&counted));
        }
        if run.log_digest.is_none() && log.exists() {
            files.undigested.push(HISTOGRAM_FILE.to_owned());
        }
    }

    fn problem(&self, counted: &Counted<'_>) -> Option<String> {
        let name = Printable(counted.file);
        let opened = files::open_plain(&self.path.join(counted.file)).and_then(|file| {
            let length = file.metadata().map_err(|why| ModelError::read(&self.path, why))?.len();
            Ok((file, length))
        });
        let (file, length) = match opened {
            Ok(opened) => opened,
            Err(ModelError::Read { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
                return Some(format!("{name} is missing"));
            }
            Err(ModelError::Read { why, .. }) => {
                return Some(format!("{name} cannot be read: {why}"));
            }
            Err(_) => return Some(format!("{name} is not a plain file")),
        };
        let longer = length > counted.bytes && !counted.grows;
        if length < counted.bytes || (longer && counted.digest.is_none()) {
            return Some(format!("{name} has {length} bytes of {}", counted.bytes));
        }
        let changed =
            longer || counted.digest.is_some_and(|digest| !has(file, counted.bytes, digest));
        changed.then(|| not_as_recorded(counted.file))
    }

    fn goes_on(&self, segment: &Segment) -> bool {
        let path = self.path.join(&segment.file);
        let Some(before) = segment.digest else { return false };
        files::read_plain(&path, SEGMENT_LIMIT)
            .is_ok_and(|content| goes_on_from(&path, content, before))
    }
}

/// Have the first so many bytes of the file this digest?
fn has(file: File, bytes: u64, digest: Digest) -> bool {
    Digest::read(file.take(bytes)).is_ok_and(|found| found == digest)
}

pub(crate) fn not_as_recorded(file: &str) -> String {
    format!("{} is not as it was recorded", Printable(file))
}
