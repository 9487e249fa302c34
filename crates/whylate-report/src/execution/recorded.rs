//! The execution trace of a run directory: what of it is drawn, read once.
//!
//! Memory is bounded, however many blocks there are: those of one window are kept for the trace, and
//! the first of all for context switches. What is missing, damaged or cut becomes a sentence; the
//! rest is shown.

use whylate_model::directory::RunDir;
use whylate_model::execution::{Block, StoredJob, Verdict};
use whylate_model::run::Run;
use whylate_model::threads::ThreadSummary;
use whylate_model::{ModelError, Nanos, Ticks, segments};

use super::{ThreadRow, Window, rows, switch_times};
use crate::numbers::Value;
use crate::svg::switches::{MOST_PANELS, Panel};

/// Title of the figure.
pub(crate) const TITLE: &str = "Execution trace";

/// What a context switch is here.
pub(crate) const SWITCHES: &str = "A context switch is the gap between the blocks of two threads on one CPU; where threads wait, \
     the time in which the CPU was idle lies in it. Contaminated: more than twice what is to be \
     expected, so that something else happened in it, too.";

/// Blocks and jobs that are looked at: some seconds of reading.
const MOST_READ: usize = 20_000_000;
/// Blocks kept for a window, and for context switches: 24 bytes each.
const MOST_KEPT: usize = 500_000;
/// Errors of single segments that are told one by one.
const MOST_NOTES: usize = 4;
/// Length of the window where no job gives one.
const FIRST: Nanos = Nanos::SECOND;
/// Deadlines in the window where all were met: more are too narrow to be told apart.
const DEADLINES: u64 = 10;
/// Deadlines before and after a missed one that are in its window: the five periods of Figure 6.
const AROUND: u64 = 2;
/// A job that is done this many deadlines late is not drawn to its end.
const LATEST: u64 = 10;

/// Which thread had which CPU when, in a window of a run, and what its context switches took.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    rows: Option<Vec<ThreadRow>>,
    window: Window,
    chosen: Chosen,
    switches: Vec<Panel>,
    notes: Vec<String>,
}

/// Why this window.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Chosen {
    Asked,
    Beginning,
    Miss { thread: String, job: u64 },
}

/// A job whose deadline was missed.
#[derive(Debug, Clone, Copy)]
struct Missed {
    thread: u16,
    job: u64,
    release: Ticks,
    deadline: Ticks,
    done: Option<Ticks>,
}

impl Recorded {
    /// Reads what a directory holds of its run, for the window asked for or one that shows most:
    /// around the first missed deadline, or the beginning. None for a run without a set of threads, or
    /// whose threads only wake: they have no blocks.
    #[must_use]
    pub fn read(directory: &RunDir, run: &Run, asked: Option<Window>) -> Option<Self> {
        if run.threads.is_empty() || run.only_wakes() {
            return None;
        }
        let mut notes = Vec::new();
        if run.is_merged() {
            notes.push(
                "there is no execution trace: a sum of recordings has no time of its own"
                    .to_owned(),
            );
            let window = Window { from: Nanos(0), length: FIRST };
            let chosen = Chosen::Beginning;
            return Some(Self { rows: None, window, chosen, switches: Vec::new(), notes });
        }
        let begin = beginning(run);
        let (window, chosen) = match asked {
            Some(window) => (window, Chosen::Asked),
            None => choose(directory, run, begin, &mut notes),
        };
        let ends = run.threads.iter().map(|thread| thread.end).max().unwrap_or_default();
        let length = ends.since(begin).to_nanos(run.clock.hz);
        if window.from >= length {
            notes.push(format!("the run lasted {length}: the window asked for lies behind it"));
        }
        let kept = Kept::read(directory, run, begin, window, &mut notes);
        let names: Vec<String> = run.threads.iter().map(|thread| thread.name.clone()).collect();
        let rows = kept.as_ref().map(|kept| rows(&kept.shown, &names, begin, run.clock.hz));
        let switches = kept.map_or_else(Vec::new, |kept| panels(kept.first, run, &mut notes));
        Some(Self { rows, window, chosen, switches, notes })
    }

    /// A row for each thread; none where there is no block at all.
    #[must_use]
    pub fn rows(&self) -> Option<&[ThreadRow]> {
        self.rows.as_deref()
    }

    /// The window that the rows are of.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// What context switches took, CPU by CPU.
    #[must_use]
    pub fn switches(&self) -> &[Panel] {
        &self.switches
    }

    /// What could not be read, or was cut.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Which window this is, and why.
    pub(crate) fn window_in_words(&self) -> String {
        let Window { from, length } = self.window;
        let to = Nanos(from.0.saturating_add(length.0));
        let [from, to, length] = [from, to, length].map(Value::from);
        match &self.chosen {
            Chosen::Asked => format!("From {from} to {to}, as asked."),
            Chosen::Beginning => format!("The first {length} of the run."),
            Chosen::Miss { thread, job } => format!(
                "Around the first missed deadline, of job {job} of thread {thread}: from {from} to {to}."
            ),
        }
    }
}

/// First instant of the set: that of its first block or job, for its threads were there before.
/// Where the first segments are gone, the first reading of a thread is the nearest to it.
pub(crate) fn beginning(run: &Run) -> Ticks {
    let first = ["blocks-0001.parquet", "jobs-0001.parquet"];
    let of_segments = run.segments.iter().filter(|segment| first.contains(&segment.file.as_str()));
    let of_threads = run.threads.iter().map(|thread| thread.start);
    of_segments.map(|segment| segment.from).min().or(of_threads.min()).unwrap_or_default()
}

/// The window that shows most.
fn choose(
    directory: &RunDir,
    run: &Run,
    begin: Ticks,
    notes: &mut Vec<String>,
) -> (Window, Chosen) {
    let ns = |ticks: Ticks| ticks.since(begin).to_nanos(run.clock.hz).0;
    let end = run.threads.iter().map(|thread| ns(thread.end)).max().unwrap_or_default().max(1);
    let (longest, missed) = jobs(directory, run, notes);
    let Some(missed) = missed.or_else(|| summarised(&run.threads)) else {
        let wanted = longest.map_or(FIRST.0, |ticks| {
            ticks.to_nanos(run.clock.hz).0.saturating_mul(DEADLINES).clamp(1, FIRST.0)
        });
        let window = Window { from: Nanos(0), length: Nanos(wanted.min(end)) };
        return (window, Chosen::Beginning);
    };
    let (release, deadline) = (ns(missed.release), ns(missed.deadline));
    let each = deadline.saturating_sub(release).max(1);
    let latest = deadline.saturating_add(each.saturating_mul(LATEST));
    let done = missed.done.map_or(deadline, ns).clamp(deadline, latest);
    let from = release.saturating_sub(each.saturating_mul(AROUND)).min(end - 1);
    let to = done.saturating_add(each.saturating_mul(AROUND)).min(end).max(from + 1);
    let thread = run.threads.get(usize::from(missed.thread));
    let thread = thread.map_or_else(|| missed.thread.to_string(), |thread| thread.name.clone());
    let window = Window { from: Nanos(from), length: Nanos(to - from) };
    (window, Chosen::Miss { thread, job: missed.job })
}

/// The longest time between release and deadline, and the first missed deadline.
fn jobs(
    directory: &RunDir,
    run: &Run,
    notes: &mut Vec<String>,
) -> (Option<whylate_model::TicksDelta>, Option<Missed>) {
    let mut longest = None;
    let mut missed: Option<Missed> = None;
    let read = segments::read_jobs(directory);
    each(
        read,
        "jobs",
        notes,
        |StoredJob { thread, index, release, deadline, done, verdict, .. }| {
            if usize::from(thread) >= run.threads.len() {
                return;
            }
            longest = longest.max(Some(deadline.since(release)));
            let sooner = missed.is_none_or(|known| deadline < known.deadline);
            if verdict != Verdict::Hit && sooner {
                missed = Some(Missed { thread, job: index, release, deadline, done });
            }
        },
    );
    (longest, missed)
}

/// The first missed deadline that the run itself tells of.
fn summarised(threads: &[ThreadSummary]) -> Option<Missed> {
    let first = |(number, thread): (usize, &ThreadSummary)| {
        let miss = thread.deadlines.as_ref()?.first.first()?;
        Some(Missed {
            thread: u16::try_from(number).ok()?,
            job: miss.job,
            release: miss.release,
            deadline: miss.deadline,
            done: miss.done,
        })
    };
    threads.iter().enumerate().filter_map(first).min_by_key(|missed| missed.deadline)
}

/// Blocks in memory.
struct Kept {
    /// Those of the window.
    shown: Vec<Block>,
    /// The first of all.
    first: Vec<Block>,
}

impl Kept {
    /// None where there are none.
    fn read(
        directory: &RunDir,
        run: &Run,
        begin: Ticks,
        window: Window,
        notes: &mut Vec<String>,
    ) -> Option<Self> {
        let ticks = |at: f64| (at * run.clock.hz.0 / 1e9).max(0.0) as u64;
        let from = Ticks(begin.0.saturating_add(ticks(window.begin_ns())));
        let to = Ticks(begin.0.saturating_add(ticks(window.end_ns()).saturating_add(1)));
        let mut kept = Self { shown: Vec::new(), first: Vec::new() };
        let (mut seen, mut cut) = (0_u64, false);
        let read = segments::read_blocks(directory);
        each(read, "blocks", notes, |block| {
            seen += 1;
            if kept.first.len() < MOST_KEPT {
                kept.first.push(block);
            }
            if block.start < to && block.end > from {
                if kept.shown.len() < MOST_KEPT {
                    kept.shown.push(block);
                } else {
                    cut = true;
                }
            }
        });
        if cut {
            notes.push(format!(
                "the execution trace is cut: of its window only the first {MOST_KEPT} blocks are \
                 drawn; ask for a shorter one with --timeline"
            ));
        }
        if seen > kept.first.len() as u64 {
            notes.push(format!(
                "context switches are those between the first {MOST_KEPT} of {seen} blocks"
            ));
        }
        if seen == 0 {
            notes.push(
                "there is no execution trace: the run directory holds no block of CPU time that \
                 can be read"
                    .to_owned(),
            );
        }
        (seen > 0).then_some(kept)
    }
}

/// Every row that can be read, up to the bound.
fn each<T>(
    read: Result<impl Iterator<Item = Result<T, ModelError>>, ModelError>,
    what: &str,
    notes: &mut Vec<String>,
    mut take: impl FnMut(T),
) {
    let read = match read {
        Ok(read) => read,
        Err(error) => return notes.push(format!("{what} cannot be read: {error}")),
    };
    let mut unread = 0;
    for (number, row) in read.enumerate() {
        if number >= MOST_READ {
            notes.push(format!("only the first {MOST_READ} {what} were read"));
            break;
        }
        match row {
            Ok(row) => take(row),
            Err(error) => {
                unread += 1;
                if unread <= MOST_NOTES {
                    notes.push(format!("a segment of {what} is missing here: {error}"));
                }
            }
        }
    }
    if unread > MOST_NOTES {
        notes.push(format!("{unread} segments of {what} are missing here in all"));
    }
}

/// Context switches of each CPU that has some.
fn panels(blocks: Vec<Block>, run: &Run, notes: &mut Vec<String>) -> Vec<Panel> {
    let mut blocks = blocks;
    blocks.sort_by_key(|block| block.cpu);
    let mut panels = Vec::new();
    let mut refused = 0;
    for own in blocks.chunk_by(|a, b| a.cpu == b.cpu) {
        let cpu = own[0].cpu.0;
        match switch_times(own, run.clock.hz) {
            Ok(Some(_)) if panels.len() == MOST_PANELS => {
                notes.push(format!("context switches are those of the first {MOST_PANELS} CPUs"));
                break;
            }
            Ok(Some(times)) => panels.push(Panel { label: format!("CPU {cpu}"), times }),
            Ok(None) => {}
            Err(error) => {
                refused += 1;
                if refused <= MOST_NOTES {
                    notes.push(format!("CPU {cpu}: {error}"));
                }
            }
        }
    }
    panels
}

#[cfg(test)]
pub(crate) mod tests;
