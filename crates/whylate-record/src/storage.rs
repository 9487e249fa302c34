//! A recording's files: segments, histogram log, `run.json`.
//!
//! Before the measurement every failure is an error. During it none is: a disk that fills up must
//! not cost what is still being measured, so summaries go on and the run says what is missing.

use whylate_model::directory::RunDir;
use whylate_model::event::Event;
use whylate_model::gap::Gap;
use whylate_model::hlog::HistogramLog;
use whylate_model::run::{Run, Segment};
use whylate_model::segments::{self, Writer};
use whylate_model::warning::Warning;
use whylate_model::{ModelError, Nanos, Ticks};
use whylate_stats::Histogram;
use whylate_sys::nanosleep::{Clock, clock_ns};

/// Disk bound and time between checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all segments together.
    pub max_bytes: u64,
    /// Time between checkpoints.
    pub checkpoint: Nanos,
}

/// The files of a run being recorded.
pub(crate) struct Storage {
    directory: RunDir,
    segments: Writer,
    log: HistogramLog,
    limits: Limits,
    next_checkpoint: Nanos,
    failure: Option<String>,
}

impl Storage {
    pub(crate) fn open(
        directory: RunDir,
        epoch: Ticks,
        limits: Limits,
    ) -> Result<Self, ModelError> {
        let segments = Writer::new(&directory, epoch, segments::Limits::within(limits.max_bytes));
        let mut log = directory.histogram_log()?;
        log.set_base_time(Nanos(clock_ns(Clock::Realtime)))?;
        let next_checkpoint = limits.checkpoint;
        Ok(Self { directory, segments, log, limits, next_checkpoint, failure: None })
    }

    pub(crate) fn gap(&mut self, thread: usize, gap: &Gap) {
        let result = self.segments.push_gap(thread as u16, gap);
        self.note(result);
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let result = self.segments.push_event(event);
        self.note(result);
    }

    pub(crate) fn interval(&mut self, tag: &str, lengths: &Histogram, start: Nanos, length: Nanos) {
        let seconds = |nanos: Nanos| nanos.0 as f64 / 1e9;
        let result = self.log.append(tag, lengths, seconds(start), seconds(length));
        self.note(result);
    }

    pub(crate) fn checkpoint_is_due(&mut self, elapsed: Nanos) -> bool {
        let due = elapsed >= self.next_checkpoint;
        if due {
            self.next_checkpoint = Nanos(elapsed.0 + self.limits.checkpoint.0);
        }
        due
    }

    /// Brings everything down to the disk, so that a killed run is readable up to here.
    pub(crate) fn checkpoint(&mut self, run: &Run) {
        self.close();
        let result = self.directory.write_run(run);
        self.note(result);
    }

    /// Closes the segments and the log.
    pub(crate) fn close(&mut self) {
        let result = self.segments.checkpoint().map(|_| ());
        self.note(result);
        let result = self.log.sync();
        self.note(result);
    }

    /// Writes the run for good; here a failure is an error again.
    pub(crate) fn conclude(&self, run: &Run) -> Result<(), ModelError> {
        self.directory.write_run(run)
    }

    pub(crate) fn segments(&self) -> Vec<Segment> {
        self.segments.segments()
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some(reason) = &self.failure {
            warnings.push(Warning::WritingFailed { reason: reason.clone() });
        }
        let deleted = self.segments.deleted();
        if deleted > 0 {
            warnings.push(Warning::SegmentsRotated { deleted });
        }
        if self.segments.lost_rows() > 0 {
            let reason = format!("{} records could not be stored", self.segments.lost_rows());
            warnings.push(Warning::WritingFailed { reason });
        }
        warnings
    }

    /// Keeps the first failure: the ones that follow are its consequences.
    fn note(&mut self, result: Result<(), ModelError>) {
        if let Err(error) = result {
            self.failure.get_or_insert_with(|| error.to_string());
        }
    }
}
