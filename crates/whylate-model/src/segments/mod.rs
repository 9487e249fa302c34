//! Segments: gaps, kernel events, blocks of CPU time, jobs, requests, their points, the truths of
//! frames and the interruptions of a self-test one by one, in Parquet files with raw ticks.
//!
//! `gaps-0001.parquet`, `events-0001.parquet` and so on. A file that has its final name is whole, at
//! any time and after any crash: a segment is written under another name, brought down to the disk,
//! and renamed. Until a segment is full, each checkpoint replaces it by one that holds more, so that
//! a quiet host does not leave a small file behind every few seconds. When the files reach the bound
//! on disk space, the oldest are deleted and counted.
//!
//! Ticks are those of the run's counter; `clock.hz`, `clock.epoch` and `clock.anchors` in `run.json`
//! relate them to time. Every file carries the keys `whylate.format_version` and
//! `whylate.epoch_ticks`. In DuckDB, the ten longest gaps of a run are
//!
//! ```sql
//! SELECT cause, cpu_before, "end" - start AS ticks FROM 'run/gaps-*.parquet'
//! ORDER BY ticks DESC LIMIT 10;
//! ```
//!
//! # Columns of gaps
//!
//! | column | type | |
//! |---|---|---|
//! | `thread` | uint16 | index of the measuring thread, as in `gaps` of `run.json` |
//! | `start`, `end`, `resumed` | uint64 | ticks: last reading before, first after, first after recording |
//! | `cpu_before`, `cpu_after` | uint32 | |
//! | `rseq` | string | `unarmed`, `set`, `cleared` |
//! | `involuntary_switches` | uint32, nullable | since the gap before, where read |
//! | `in_recording` | bool | the gap lies inside the recording of the one before it |
//! | `cause` | string, nullable | cause of the gap, as in reports |
//!
//! # Columns of blocks
//!
//! | column | type | |
//! |---|---|---|
//! | `thread` | uint16 | number of the thread, as in `threads` of `run.json` |
//! | `cpu` | uint32 | the CPU that it had |
//! | `start`, `end` | uint64 | ticks: first and last reading |
//!
//! # Columns of jobs
//!
//! | column | type | |
//! |---|---|---|
//! | `thread`, `index` | uint16, uint64 | which thread, which job of its schedule |
//! | `release`, `deadline` | uint64 | ticks |
//! | `woke`, `done` | uint64, nullable | ticks: when it began and when it had its execution time |
//! | `received_ns` | uint64 | the execution time that it asked for and received |
//! | `verdict` | string | `hit`, `late`, `unfinished`, `skipped` |
//! | `threads_ns`, `waking_ns`, `interrupts_ns`, `host_ns`, `blocked_ns`, `away_ns`, `unknown_ns` | uint64 | what it lost, by who had it |
//!
//! # Columns of packets
//!
//! One row for each measured request, in the order in which they were settled.
//!
//! | column | type | |
//! |---|---|---|
//! | `flow` | uint16 | number of the flow, as in `flows` of `run.json` |
//! | `number` | uint64, nullable | its number in the order of sending; none of one that was never sent |
//! | `intended`, `sent` | uint64, nullable | ticks: when it was to leave, none in a closed loop; when it left |
//! | `at` | uint64 | ticks: when it was answered or given up |
//! | `outcome` | string | `answered`, `unanswered`, `refused` by the kernel, `never_sent`, `one_way` |
//! | `service_ns`, `response_ns` | uint64, nullable | of what was answered: from `sent` and from `intended` to `at` |
//! | `lateness_ns` | uint64, nullable | of what left: from `intended` to `sent` |
//!
//! # Columns of journeys
//!
//! One row for each request of which points on its way are known, as they were told.
//!
//! | column | type | |
//! |---|---|---|
//! | `flow` | uint16 | number of the flow, as in `flows` of `run.json`; 0 where a process was watched |
//! | `number` | uint64 | its number in the order of sending |
//! | `request_intended`, `request_sent`, `request_queued`, `request_driver`, `request_wire_out`, `request_tap`, `request_wire_in`, `request_arrived`, `request_delivered`, `request_woken`, `request_running`, `request_read` | uint64, nullable | ticks: when the request passed the point |
//! | `reply_intended` to `reply_read` | uint64, nullable | the same of the reply |
//! | `sources` | string | a letter for each point that is known, in their order: `o` own reading, `t` told by the other end, `s` stamp of the kernel, `h` of the card, `k` tracepoint, `p` tap, `m` metadata of a frame |
//!
//! # Columns of truths
//!
//! One row for each frame that came to a delay line, and one for each duplicate that it made, in the
//! order in which they were settled.
//!
//! | column | type | |
//! |---|---|---|
//! | `direction` | uint8 | 0 from the first port to the second, 1 back |
//! | `ordinal` | uint64 | its number among those of its direction; a duplicate has its original's |
//! | `arrival`, `due` | uint64 | ticks: when it was seen in the ring, when it was to leave |
//! | `departure` | uint64, nullable | ticks: immediately before it was handed over |
//! | `bytes` | uint32 | with tags, without check sequence |
//! | `number`, `cookie` | uint64, nullable | of the measured message in it, as the client numbered it |
//! | `fate` | string | `released`, `duplicate`, `lost`, `overflow`, `rate_dropped`, `ring_full`, `refused`, `too_long`, `runt`, `waiting` |
//!
//! # Columns of injections
//!
//! One row for each interruption that a self-test made, kind by kind, in the order in which they were made.
//!
//! | column | type | |
//! |---|---|---|
//! | `kind` | string | as in `selftest` of `run.json` |
//! | `since` | uint64 | ticks: when the injector began to act for it |
//! | `start`, `end` | uint64 | ticks: by the code that interrupted, or by its sender before and after |
//! | `asked` | uint64 | ticks that the interrupting code had to spin; 0 where it did not |
//!
//! # Columns of events
//!
//! | column | type | filled for |
//! |---|---|---|
//! | `ticks`, `cpu`, `pid` | uint64, uint32, int32 | all: when, where, the thread that was current |
//! | `kind` | string | all: `vector_entry`, `switch`, `wakeup`, ... as in `run.json` |
//! | `name` | string | vectors, handlers, softirqs |
//! | `number` | int64 | vectors, handlers (the interrupt), softirqs, signals |
//! | `task_pid`, `task_comm`, `task_prio` | int32, string, int32 | `switch` (who got the CPU), `wakeup`, `migrate`, `signal_generate` (the target; no `task_prio`) |
//! | `from_pid`, `from_comm`, `from_prio`, `from_runnable` | int32, string, int32, bool | `switch`: who left the CPU |
//! | `from_cpu` | uint32 | `migrate` |
//! | `target_cpu` | uint32 | `wakeup`, `migrate`, `call_queued` |
//! | `target_cpus` | list of uint32 | `ipi_send` |
//! | `user`, `address`, `ip` | bool, uint64, uint64 | `page_fault` |
//! | `callsite` | uint64 | `ipi_send`, `call_queued` |
//! | `function` | uint64 | `ipi_send` (the callback), `call_queued`, `work_start`, `work_end` |
//! | `duration_ns` | int64 | `nmi` |

mod block_rows;
mod column;
mod event_rows;
mod gap_rows;
mod guarded;
mod import;
mod injection_rows;
mod job_rows;
mod journey_rows;
mod packet_rows;
mod pages;
mod places;
mod reader;
mod rows;
mod stream;
mod truth_rows;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::breakdown::StoredJourney;
use crate::delay::Truth;
use crate::directory::RunDir;
use crate::error::ModelError;
use crate::event::Event;
use crate::execution::{Block, StoredJob};
use crate::gap::Gap;
use crate::injection::Injection;
use crate::packet::StoredPacket;
use crate::run::Segment;
use crate::units::{CpuId, Ticks};

use block_rows::BlockRows;
use event_rows::EventRows;
use gap_rows::GapRows;
use injection_rows::InjectionRows;
use job_rows::JobRows;
use journey_rows::JourneyRows;
use packet_rows::PacketRows;
use rows::Rows;
use stream::Stream;
use truth_rows::TruthRows;

pub use import::{import, kind_of};
pub(crate) use reader::SEGMENT_LIMIT;
pub use reader::{
    Survey, decode_blocks, decode_brief_gaps, decode_events, decode_gaps, decode_injections,
    decode_jobs, decode_journeys, decode_packets, decode_truths, gap_files, read_blocks,
    read_brief_gaps, read_events, read_gaps, read_injections, read_jobs, read_journeys,
    read_packets, read_truths, survey,
};
pub(crate) use rows::goes_on_from;

/// A gap as a segment holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGap {
    /// Index of the measuring thread that saw it, as in `gaps` of `run.json`.
    pub thread: u16,
    /// The gap.
    pub gap: Gap,
    /// Its cause, as a [`Cause`](crate::cause::Cause) reads in reports; none where
    /// nobody looked.
    pub cause: Option<Arc<str>>,
}

/// The gaps of a segment without their evidence: what a timeline is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BriefGaps {
    /// Names of causes, of each group of rows once.
    pub causes: Vec<Arc<str>>,
    /// The gaps in the order of the segment.
    pub gaps: Vec<BriefGap>,
}

/// One of [`BriefGaps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BriefGap {
    /// Index of the measuring thread that saw it, as in `gaps` of `run.json`.
    pub thread: u16,
    /// The last reading before it.
    pub start: Ticks,
    /// The first reading after it.
    pub end: Ticks,
    /// The CPU before it.
    pub cpu: CpuId,
    /// Which of the names its cause has; none where nobody looked.
    pub cause: Option<u32>,
}

impl BriefGaps {
    /// Adds those behind them, whose names come behind these.
    fn append(&mut self, others: Self) {
        let named = self.causes.len() as u32;
        let gap = |gap: BriefGap| BriefGap { cause: gap.cause.map(|cause| named + cause), ..gap };
        self.gaps.extend(others.gaps.into_iter().map(gap));
        self.causes.extend(others.causes);
    }
}

/// How large segments may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all segments together. The segment that is being filled is never deleted.
    pub max_bytes: u64,
    /// Rows of a segment of gaps.
    pub gap_rows: usize,
    /// Rows of a segment of events.
    pub event_rows: usize,
}

impl Default for Limits {
    /// 1 GiB; a full segment takes about 6 MiB of memory and one or two MiB on disk.
    fn default() -> Self {
        Self { max_bytes: 1 << 30, gap_rows: 1 << 17, event_rows: 1 << 16 }
    }
}

impl Limits {
    /// The usual segments, made smaller where that is needed to stay within `max_bytes`.
    #[must_use]
    pub fn within(max_bytes: u64) -> Self {
        let usual = Self::default();
        // The segments being filled are outside the bound's reach: keep them to a small part of it.
        let rows = usize::try_from(max_bytes / (8 * BYTES_PER_ROW)).unwrap_or(usize::MAX);
        let rows = rows.max(FEWEST_ROWS);
        Self {
            max_bytes,
            gap_rows: usual.gap_rows.min(rows),
            event_rows: usual.event_rows.min(rows),
        }
    }
}

/// A generous guess of what a row takes on disk.
const BYTES_PER_ROW: u64 = 64;
/// Fewer rows in a file would be mostly footer.
const FEWEST_ROWS: usize = 1 << 10;

/// A row of journeys takes so many times the memory of another's.
const WIDE: usize = 4;

/// Writes gaps, events, blocks, jobs, packets, journeys, truths and injections into the segments of a run.
///
/// Rows are kept in memory until [`Writer::checkpoint`] or until a segment is full; what was pushed
/// since then is lost when the process dies. A failure to write, such as a full disk, is an error,
/// and the writer can be used on: it keeps what it holds and tries again at the next checkpoint.
/// Once the segment is full, what is pushed meanwhile is counted and not kept, without a further
/// error.
pub struct Writer {
    directory: PathBuf,
    epoch: Ticks,
    max_bytes: u64,
    gaps: Stream<GapRows>,
    events: Stream<EventRows>,
    blocks: Stream<BlockRows>,
    jobs: Stream<JobRows>,
    packets: Stream<PacketRows>,
    journeys: Stream<JourneyRows>,
    truths: Stream<TruthRows>,
    injections: Stream<InjectionRows>,
    deleted: u64,
}

impl Writer {
    /// A writer into the directory of a new run. Nothing is written until the first checkpoint.
    #[must_use]
    pub fn new(directory: &RunDir, epoch: Ticks, limits: Limits) -> Self {
        Self {
            directory: directory.path().to_owned(),
            epoch,
            max_bytes: limits.max_bytes,
            gaps: Stream::new(limits.gap_rows),
            events: Stream::new(limits.event_rows),
            blocks: Stream::new(limits.gap_rows),
            jobs: Stream::new(limits.gap_rows),
            packets: Stream::new(limits.gap_rows),
            journeys: Stream::new(limits.gap_rows / WIDE),
            truths: Stream::new(limits.gap_rows),
            injections: Stream::new(limits.gap_rows),
            deleted: 0,
        }
    }

    /// Adds a gap.
    pub fn push_gap(&mut self, gap: &StoredGap) -> Result<(), ModelError> {
        if self.gaps.push(gap) {
            self.gaps.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds a kernel event.
    pub fn push_event(&mut self, event: &Event) -> Result<(), ModelError> {
        if self.events.push(event) {
            self.events.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds a block of the execution trace.
    pub fn push_block(&mut self, block: &Block) -> Result<(), ModelError> {
        if self.blocks.push(block) {
            self.blocks.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds a job.
    pub fn push_job(&mut self, job: &StoredJob) -> Result<(), ModelError> {
        if self.jobs.push(job) {
            self.jobs.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds a request.
    pub fn push_packet(&mut self, packet: &StoredPacket) -> Result<(), ModelError> {
        if self.packets.push(packet) {
            self.packets.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds the points of a request.
    pub fn push_journey(&mut self, journey: &StoredJourney) -> Result<(), ModelError> {
        if self.journeys.push(journey) {
            self.journeys.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds the truth of a frame.
    pub fn push_truth(&mut self, truth: &Truth) -> Result<(), ModelError> {
        if self.truths.push(truth) {
            self.truths.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds an interruption of a self-test.
    pub fn push_injection(&mut self, injection: &Injection) -> Result<(), ModelError> {
        if self.injections.push(injection) {
            self.injections.write(&self.directory, self.epoch)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Brings everything pushed so far down to the disk.
    ///
    /// Returns the segments that are new or hold more than at the last checkpoint. When writing one
    /// kind fails, the others are written all the same.
    pub fn checkpoint(&mut self) -> Result<Vec<Segment>, ModelError> {
        let gaps = self.gaps.write(&self.directory, self.epoch);
        let events = self.events.write(&self.directory, self.epoch);
        let blocks = self.blocks.write(&self.directory, self.epoch);
        let jobs = self.jobs.write(&self.directory, self.epoch);
        let packets = self.packets.write(&self.directory, self.epoch);
        let journeys = self.journeys.write(&self.directory, self.epoch);
        let truths = self.truths.write(&self.directory, self.epoch);
        let injections = self.injections.write(&self.directory, self.epoch);
        let of_requests = packets.and(journeys).and(truths);
        gaps.and(events).and(blocks).and(jobs).and(of_requests).and(injections)?;
        self.make_room()?;
        let mut news = self.gaps.take_news();
        news.extend(self.events.take_news());
        news.extend(self.blocks.take_news());
        news.extend(self.jobs.take_news());
        news.extend(self.packets.take_news());
        news.extend(self.journeys.take_news());
        news.extend(self.truths.take_news());
        news.extend(self.injections.take_news());
        Ok(news)
    }

    /// All segments in the directory, oldest first: what `run.json` lists.
    #[must_use]
    pub fn segments(&self) -> Vec<Segment> {
        let traced = self.gaps.all().chain(self.events.all()).chain(self.injections.all());
        let of_sets = self.blocks.all().chain(self.jobs.all());
        let of_requests = self.packets.all().chain(self.journeys.all()).chain(self.truths.all());
        let all = traced.chain(of_sets).chain(of_requests);
        let mut all: Vec<Segment> = all.cloned().collect();
        all.sort_by_key(|segment| (segment.from, segment.to));
        all
    }

    /// How many segments were deleted to stay within the bound.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// Rows that were pushed while nothing could be written, and are lost.
    #[must_use]
    pub fn lost_rows(&self) -> u64 {
        let of_sets = self.blocks.lost() + self.jobs.lost();
        let of_requests = self.packets.lost() + self.journeys.lost() + self.truths.lost();
        let traced = self.gaps.lost() + self.events.lost() + self.injections.lost();
        traced + of_sets + of_requests
    }

    /// Deletes the oldest segments of the kind that takes more room, so that a flood of events does
    /// not drive out the gaps.
    fn make_room(&mut self) -> Result<(), ModelError> {
        let directory = self.directory.clone();
        loop {
            let mut kinds: [&mut dyn Oldest; 8] = [
                &mut self.injections,
                &mut self.truths,
                &mut self.journeys,
                &mut self.packets,
                &mut self.events,
                &mut self.blocks,
                &mut self.gaps,
                &mut self.jobs,
            ];
            kinds.sort_by_key(|kind| std::cmp::Reverse(kind.bytes()));
            let too_large = kinds.iter().map(|kind| kind.bytes()).sum::<u64>() > self.max_bytes;
            let mut deleted = false;
            for kind in kinds {
                if !deleted && (too_large || kind.too_many()) {
                    deleted = kind.delete_oldest(&directory)?;
                }
            }
            if !deleted {
                return Ok(());
            }
            self.deleted += 1;
        }
    }
}

/// A stream whose oldest segment can go.
trait Oldest {
    fn bytes(&self) -> u64;
    fn too_many(&self) -> bool;
    fn delete_oldest(&mut self, directory: &Path) -> Result<bool, ModelError>;
}

impl<R: Rows> Oldest for Stream<R> {
    fn bytes(&self) -> u64 {
        Self::bytes(self)
    }

    fn too_many(&self) -> bool {
        Self::too_many(self)
    }

    fn delete_oldest(&mut self, directory: &Path) -> Result<bool, ModelError> {
        Self::delete_oldest(self, directory)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("directory", &self.directory)
            .field("segments", &self.segments())
            .finish_non_exhaustive()
    }
}

/// Can this be the name of a segment? Nothing that has such a name lies outside its directory.
#[must_use]
pub fn is_segment_name(name: &str) -> bool {
    number_of(name).is_some()
}

/// The kind and number of a segment by its name.
fn number_of(name: &str) -> Option<(&str, u64)> {
    let (kind, number) = name.strip_suffix(".parquet")?.split_once('-')?;
    let kind_fits = (1..=16).contains(&kind.len()) && kind.bytes().all(|c| c.is_ascii_lowercase());
    let number_fits =
        (4..=12).contains(&number.len()) && number.bytes().all(|c| c.is_ascii_digit());
    if kind_fits && number_fits { Some((kind, number.parse().ok()?)) } else { None }
}
