//! A recording's files: segments, histogram log, `run.json`.
//!
//! Before the measurement every failure is an error. From then on none is: a disk that fills up must
//! not cost what is being measured, so summaries go on, the run says what is missing, and it is
//! printed even where it could not be stored.

use std::path::Path;

use whylate_cause::Attributed;
use whylate_model::breakdown::StoredJourney;
use whylate_model::delay::Truth;
use whylate_model::directory::{Reserve, RunDir};
use whylate_model::event::Event;
use whylate_model::execution::{Block, StoredJob};
use whylate_model::hlog::HistogramLog;
use whylate_model::injection::Injection;
use whylate_model::packet::StoredPacket;
use whylate_model::pcapng::PacketFile;
use whylate_model::run::{Run, Segment};
use whylate_model::segments::{self, StoredGap, Writer};
use whylate_model::settings;
use whylate_model::trust;
use whylate_model::warning::Warning;
use whylate_model::{ModelError, Nanos, Ticks};
use whylate_stats::Histogram;

use crate::date_ns;

/// Disk bound and time between checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all segments together.
    pub max_bytes: u64,
    /// Time between checkpoints.
    pub checkpoint: Nanos,
}

impl Default for Limits {
    /// A gigabyte, and a checkpoint every ten seconds.
    fn default() -> Self {
        Self { max_bytes: 1 << 30, checkpoint: Nanos(10 * Nanos::SECOND.0) }
    }
}

/// The files of a run being recorded.
pub(crate) struct Storage {
    directory: RunDir,
    segments: Writer,
    log: HistogramLog,
    limits: Limits,
    next_checkpoint: Nanos,
    failure: Option<String>,
    reserve: Option<Reserve>,
}

impl Storage {
    pub(crate) fn open(
        directory: RunDir,
        epoch: Ticks,
        limits: Limits,
    ) -> Result<Self, ModelError> {
        let segments = Writer::new(&directory, epoch, segments::Limits::within(limits.max_bytes));
        let mut log = directory.histogram_log()?;
        log.set_base_time(Nanos(date_ns()))?;
        let next_checkpoint = limits.checkpoint;
        let reserve = directory.reserve();
        Ok(Self { directory, segments, log, limits, next_checkpoint, failure: None, reserve })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn gap(&mut self, attributed: &Attributed) {
        let result = self.segments.push_gap(&StoredGap {
            thread: attributed.thread,
            gap: attributed.gap,
            cause: Some(attributed.cause.stored().into()),
        });
        self.note(result);
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let result = self.segments.push_event(event);
        self.note(result);
    }

    pub(crate) fn block(&mut self, block: &Block) {
        let result = self.segments.push_block(block);
        self.note(result);
    }

    pub(crate) fn job(&mut self, job: &StoredJob) {
        let result = self.segments.push_job(job);
        self.note(result);
    }

    pub(crate) fn packet(&mut self, packet: &StoredPacket) {
        let result = self.segments.push_packet(packet);
        self.note(result);
    }

    pub(crate) fn journey(&mut self, journey: &StoredJourney) {
        let result = self.segments.push_journey(journey);
        self.note(result);
    }

    pub(crate) fn truth(&mut self, truth: &Truth) {
        let result = self.segments.push_truth(truth);
        self.note(result);
    }

    pub(crate) fn injection(&mut self, injection: &Injection) {
        let result = self.segments.push_injection(injection);
        self.note(result);
    }

    /// Puts a capture file into the run; says whether it is there.
    pub(crate) fn packet_file(&mut self, file: &PacketFile) -> bool {
        let result = self.directory.write_packets(file);
        let there = result.is_ok();
        self.note(result);
        there
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
    pub(crate) fn checkpoint(&mut self, run: &mut Run) {
        debug_assert_eq!(settings::unfit(&run.settings), [""; 0], "these are values");
        self.close();
        run.segments = self.segments();
        self.log.count_in(run);
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

    /// Writes the run for good, into the room that was kept for it. When even that fails, the run in
    /// memory says so and is no longer to be trusted; the last checkpoint stays on the disk.
    pub(crate) fn conclude(&mut self, run: &mut Run) {
        debug_assert_eq!(settings::unfit(&run.settings), [""; 0], "these are values");
        self.reserve = None;
        self.log.count_in(run);
        run.captures = self.directory.captures();
        let Err(error) = self.directory.write_run(run) else { return };
        run.warnings.push(Warning::WritingFailed { reason: error.to_string() });
        run.verdict = trust::verdict(run);
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
