//! The command line of Hourglass 0.5 (Regehr, "Inferring Scheduling Behavior with Hourglass", 2002,
//! Appendix A).
//!
//! | option | means |
//! |---|---|
//! | `-n N` | threads; the only mandatory option |
//! | `-d TIME` | duration, 10 s if left out |
//! | `-c` | the raw trace, in cycles, besides the usual one |
//! | `-t I`, `-a` | what follows is for thread I, for all threads |
//! | `-e N` | records of the execution trace, 300 000 if left out |
//! | `-p`, `-w`, `-i` | priority, workload, timer |
//! | `-rh`, `-rs` | hard, soft reservation: amount and period |
//! | `-s`, `-f` | start and finish |
//!
//! What the paper leaves open is decided so: `-n` counts wherever it stands. `-t I` ends at the
//! next `-t` or `-a`, and `-a` at the next `-t`; where both set an option, what stands later wins.
//! An option is given once under `-a` and once for each thread. The words of `-w` reach to the next
//! word that begins with `-` and a letter. Times always have a unit. Names of workloads, timers and
//! priorities are found where they run, not here.
//!
//! Not of the paper, and collected apart ([`Extra`]): `--cpus`, `-o` (`--out`), `--seed`, `--threshold`,
//! `--raw`; they may stand anywhere.

use std::path::PathBuf;

use whylate_model::{CpuId, Nanos};

use crate::call::CallError;
use crate::task_set::{MOST_THREADS, TaskSet, TaskSetError, Thread};
use crate::words::Exact;

mod options;
mod scope;

use options::{Given, Option_, given};
use scope::Scope;

/// The paper's duration.
const DURATION: Nanos = Nanos(10_000_000_000);
/// The paper's size of the execution trace.
const RECORDS: u64 = 300_000;
/// Records are kept in memory until the end, some 32 bytes each: this is 3 GB.
const MOST_RECORDS: u64 = 100_000_000;

/// A command line of Hourglass.
#[derive(Debug, Clone, PartialEq)]
pub struct Hourglass {
    /// The threads, named by their numbers; checked.
    pub set: TaskSet,
    /// How long to run.
    pub duration: Nanos,
    /// Whether to print the raw trace, too.
    pub raw_trace: bool,
    /// Records of the execution trace.
    pub records: u64,
    /// What the paper does not have.
    pub extra: Extra,
}

/// Options that Hourglass 0.5 does not have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra {
    /// `--cpus`: where all threads run; none: on one CPU, as in the paper.
    pub cpus: Option<Vec<CpuId>>,
    /// `-o`, `--out`: the run directory to write.
    pub output: Option<PathBuf>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--threshold`.
    pub threshold: Option<Threshold>,
    /// `--raw`: print the lines of the paper rather than a report.
    pub raw: bool,
}

/// From which length on a gap is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Twice the loop's usual time, as in the paper (3.1).
    Paper,
    /// As whylate finds it.
    Auto,
    /// So long.
    Exactly(Nanos),
}

/// Why a command line is none of Hourglass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HourglassError {
    /// The one option that must be there.
    #[error("-n is missing: say how many threads, such as -n 2; it is the only mandatory option")]
    NoCount,
    /// Not a number of threads.
    #[error("-n {0} is not a number of threads: use 1 to {MOST_THREADS}")]
    Count(String),
    /// No thread of that number.
    #[error("there is no thread {index} for -t: with -n {count} they are {}", range(*count))]
    NoSuchThread {
        /// As written.
        index: String,
        /// How many there are.
        count: usize,
    },
    /// An option of a thread before any thread.
    #[error(
        "{0} is for a thread, and none is named yet: write -t NUMBER or -a before it, as in \
         `-n 1 -t 0 -p RTHIGH`"
    )]
    NoScope(&'static str),
    /// No such option.
    #[error(
        "`{0}` is not an option of hourglass: they are -n -d -c -t -a -e, for threads -p -rh -rs -w -i \
         -s -f, and besides --cpus --seed --threshold --raw -o"
    )]
    Unknown(String),
    /// A word that belongs to no option.
    #[error("`{word}` belongs to no option{}", after(*.option))]
    Stray {
        /// The word.
        word: String,
        /// The option before it, and how it is written.
        option: Option<&'static str>,
    },
    /// An option without what it takes.
    #[error("{option} lacks its value: write {usage}")]
    Missing {
        /// Which.
        option: &'static str,
        /// How it is written.
        usage: &'static str,
    },
    /// An option given twice.
    #[error("{option} is given twice{}: remove one", .place)]
    Twice {
        /// Which.
        option: &'static str,
        /// For whom.
        place: String,
    },
    /// Both kinds of reservation.
    #[error("-rh and -rs are both given{0}: a reservation is hard or soft; remove one")]
    TwoReservations(String),
    /// A value that is none.
    #[error("{option}: {reason}")]
    Value {
        /// Of which.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A name with its arguments that is none.
    #[error("{option}: {error}")]
    Call {
        /// Of which.
        option: &'static str,
        /// What is wrong with it.
        error: CallError,
    },
    /// A thread that would never start.
    #[error(
        "thread {thread} starts at {}, and the run ends at {}: let it start earlier, or raise -d",
        Exact(*.start),
        Exact(*.duration)
    )]
    StartsTooLate {
        /// Which.
        thread: usize,
        /// Its start.
        start: Nanos,
        /// The end of the run.
        duration: Nanos,
    },
    /// The threads cannot be run.
    #[error(transparent)]
    Set(#[from] TaskSetError),
}

/// Reads a command line; `words` are those behind `hourglass`.
pub fn parse(words: &[String]) -> Result<Hourglass, HourglassError> {
    let options = given(words)?;
    let mut line = Line::new(count(&options)?);
    for option in &options {
        line.take(option)?;
    }
    line.finish()
}

/// The value of `-n`, wherever it stands.
fn count(options: &[Given]) -> Result<usize, HourglassError> {
    let mut counts = options.iter().filter(|given| given.option == Option_::Count);
    let Some(Given { values, .. }) = counts.next() else { return Err(HourglassError::NoCount) };
    let text = values.concat();
    match text.parse::<usize>() {
        Ok(count @ 1..=MOST_THREADS) => Ok(count),
        Ok(count) if count > MOST_THREADS => Err(TaskSetError::TooManyThreads(count).into()),
        _ => Err(HourglassError::Count(text)),
    }
}

/// The command line as far as it was read.
struct Line {
    scope: Scope,
    /// Global options that were given.
    seen: Vec<Option_>,
    duration: Nanos,
    raw_trace: bool,
    records: u64,
    extra: Extra,
}

impl Line {
    fn new(count: usize) -> Self {
        Self {
            scope: Scope::new(count),
            seen: Vec::new(),
            duration: DURATION,
            raw_trace: false,
            records: RECORDS,
            extra: Extra::default(),
        }
    }

    fn take(&mut self, given: &Given) -> Result<(), HourglassError> {
        if given.option.is_of_a_thread() {
            return self.scope.take(given);
        }
        let is_scope = matches!(given.option, Option_::Thread | Option_::All);
        if !is_scope && self.seen.contains(&given.option) {
            let option = given.option.name();
            return Err(HourglassError::Twice { option, place: String::new() });
        }
        self.seen.push(given.option);
        match given.option {
            Option_::Thread => self.scope.one(&given.values[0])?,
            Option_::All => self.scope.all(),
            Option_::Duration => self.duration = given.time_above_zero(0)?,
            Option_::Raw => self.raw_trace = true,
            Option_::Records => self.records = records(given)?,
            Option_::Cpus => {
                let list = crate::words::cpu_list(&given.values[0]);
                self.extra.cpus = Some(list.map_err(|reason| given.wrong(reason))?);
            }
            Option_::Output => self.extra.output = Some(PathBuf::from(&given.values[0])),
            Option_::Seed => {
                let text = &given.values[0];
                let seed = text.parse();
                let wrong = |_| given.wrong(format!("`{text}` is not a whole number"));
                self.extra.seed = Some(seed.map_err(wrong)?);
            }
            Option_::Print => self.extra.raw = true,
            Option_::Threshold => self.extra.threshold = Some(threshold(given)?),
            // Read beforehand; those of threads were taken above.
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Hourglass, HourglassError> {
        let set = TaskSet { threads: self.scope.threads(), resources: Vec::new() };
        set.check()?;
        let late = |thread: &Thread| thread.start >= self.duration;
        if let Some(thread) = set.threads.iter().position(late) {
            let start = set.threads[thread].start;
            return Err(HourglassError::StartsTooLate { thread, start, duration: self.duration });
        }
        Ok(Hourglass {
            set,
            duration: self.duration,
            raw_trace: self.raw_trace,
            records: self.records,
            extra: self.extra,
        })
    }
}

fn records(given: &Given) -> Result<u64, HourglassError> {
    let text = &given.values[0];
    match text.parse() {
        Ok(records @ 1..=MOST_RECORDS) => Ok(records),
        _ => Err(given.wrong(format!(
            "`{text}` is not a number of records from 1 to {MOST_RECORDS}; all are kept in memory \
             until the end"
        ))),
    }
}

fn threshold(given: &Given) -> Result<Threshold, HourglassError> {
    match given.values[0].as_str() {
        "paper" => Ok(Threshold::Paper),
        "auto" => Ok(Threshold::Auto),
        _ => given.time_above_zero(0).map(Threshold::Exactly),
    }
}

fn range(count: usize) -> String {
    match count {
        1 => "0 alone".to_owned(),
        _ => format!("0 to {}", count - 1),
    }
}

fn after(option: Option<&'static str>) -> String {
    match option {
        Some(usage) => format!(": before it stands {usage}, and takes no more"),
        None => ": begin with one, such as -n 2".to_owned(),
    }
}

#[cfg(test)]
mod tests;
