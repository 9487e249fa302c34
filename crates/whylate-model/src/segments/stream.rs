//! The segments of one kind: one being filled, and those before it.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use super::rows::{MOST_ROWS, Rows, encode};
use crate::digest::Digest;
use crate::error::ModelError;
use crate::files;
use crate::run::Segment;
use crate::units::Ticks;

/// Most segments of one kind: a directory with more files is slow to list, and `run.json` names
/// each.
const MOST_SEGMENTS: usize = 10_000;

pub(super) struct Stream<R> {
    /// Rows of the segment that is being filled, on disk already or not.
    rows: R,
    /// First and last tick of these rows.
    span: Option<(Ticks, Ticks)>,
    rows_wanted: usize,
    rows_on_disk: usize,
    number: u64,
    /// The segment being filled as far as it is on disk.
    current: Option<Segment>,
    full: VecDeque<Segment>,
    news: Vec<Segment>,
    /// Is the segment full and could not be written?
    stuck: bool,
    lost: u64,
}

impl<R: Rows> Stream<R> {
    pub(super) fn new(rows_wanted: usize) -> Self {
        Self {
            rows: R::default(),
            span: None,
            rows_wanted: rows_wanted.clamp(1, MOST_ROWS),
            rows_on_disk: 0,
            number: 1,
            current: None,
            full: VecDeque::new(),
            news: Vec::new(),
            stuck: false,
            lost: 0,
        }
    }

    /// Adds a row. True when the segment is full and is to be written now.
    pub(super) fn push(&mut self, row: &R::Row) -> bool {
        if self.stuck {
            self.lost += 1;
            return false;
        }
        let (from, to) = R::span(row);
        self.span = Some(match self.span {
            None => (from, to),
            Some((first, last)) => (first.min(from), last.max(to)),
        });
        self.rows.push(row);
        self.is_full()
    }

    /// Writes what is not on disk yet, and begins a new segment when this one is full.
    pub(super) fn write(&mut self, directory: &Path, epoch: Ticks) -> Result<(), ModelError> {
        let count = self.rows.len();
        let Some((from, to)) = self.span else { return Ok(()) };
        if count > self.rows_on_disk {
            let file = format!("{}-{:04}.parquet", R::KIND, self.number);
            let path = directory.join(&file);
            self.stuck = self.is_full();
            let before = self.current.as_ref().and_then(|segment| segment.digest);
            let content = encode(&self.rows, epoch, before).map_err(|why| {
                ModelError::Unreadable { path: path.clone(), what: why.to_string() }
            })?;
            files::replace(&path, &content)?;
            self.stuck = false;
            self.rows_on_disk = count;
            let bytes = content.len() as u64;
            let digest = Some(Digest::of(&content));
            let segment = Segment { file, rows: count as u64, from, to, bytes, digest };
            self.news.retain(|news| news.file != segment.file);
            self.news.push(segment.clone());
            self.current = Some(segment);
        }
        if self.is_full() {
            self.begin_next();
        }
        Ok(())
    }

    /// Segments written since this was last asked for.
    pub(super) fn take_news(&mut self) -> Vec<Segment> {
        std::mem::take(&mut self.news)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Segment> {
        self.full.iter().chain(&self.current)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.all().map(|segment| segment.bytes).sum()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Deletes the oldest full segment. False when there is none.
    pub(super) fn delete_oldest(&mut self, directory: &Path) -> Result<bool, ModelError> {
        let Some(oldest) = self.full.pop_front() else { return Ok(false) };
        self.news.retain(|news| news.file != oldest.file);
        let path = directory.join(&oldest.file);
        match std::fs::remove_file(&path) {
            // Somebody made room already.
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(why) => {
                // It still takes its room.
                self.full.push_front(oldest);
                Err(ModelError::write(&path, why))
            }
            Ok(()) => Ok(true),
        }
    }

    pub(super) fn too_many(&self) -> bool {
        self.full.len() >= MOST_SEGMENTS
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_wanted || self.rows.heavy()
    }

    fn begin_next(&mut self) {
        self.full.extend(self.current.take());
        self.rows.clear();
        self.span = None;
        self.rows_on_disk = 0;
        self.number += 1;
    }
}
