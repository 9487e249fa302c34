//! Where experiments are run: one recording after the other, each in a directory of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_gap::Threshold;
use whylate_load::Kind;
use whylate_model::paper::Scenario;
use whylate_model::run::{Run, Verdict};
use whylate_model::{CpuId, Nanos, RunDir};
use whylate_record::progress::Progress;
use whylate_record::set::{self, SetRecorded};
use whylate_record::storage;
use whylate_rta::hourglass;
use whylate_rta::task_set::{TaskSet, Thread};

use crate::{PaperError, Request};

/// A bench for the experiments of a paper.
pub(crate) struct Bench<'a> {
    request: &'a Request,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) progress: &'a mut dyn Progress,
}

/// How long a part runs: as usual, and when time is short.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) usual: u64,
    pub(crate) quick: u64,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        request: &'a Request,
        stop: &'a AtomicBool,
        progress: &'a mut dyn Progress,
    ) -> Self {
        Self { request, stop, progress }
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.progress.say(text);
    }

    pub(crate) fn cpu(&self) -> CpuId {
        self.request.cpu
    }

    pub(crate) fn quick(&self) -> bool {
        self.request.quick
    }

    pub(crate) fn seed(&self) -> u64 {
        self.request.seed
    }

    pub(crate) fn runner_words(&self) -> Vec<std::ffi::OsString> {
        self.request.runner_words.clone()
    }

    /// No part begins after the run was stopped.
    pub(crate) fn go_on(&self) -> Result<(), PaperError> {
        if self.stop.load(Ordering::Relaxed) { Err(PaperError::Stopped) } else { Ok(()) }
    }

    /// How long a part runs.
    pub(crate) fn time(&self, times: Times) -> Nanos {
        let seconds = if self.request.quick { times.quick } else { times.usual };
        Nanos(seconds * Nanos::SECOND.0)
    }

    /// The directory of a part, made and named in its scenario.
    pub(crate) fn directory(
        &self,
        part: &str,
        scenario: &mut Scenario,
    ) -> Result<RunDir, PaperError> {
        let path: PathBuf = self.request.directory.join(part);
        let directory = RunDir::create(path)?;
        scenario.runs.push(part.to_owned());
        Ok(directory)
    }

    /// Runs a command line of Hourglass, as the paper has it, for so long, with load beside it.
    pub(crate) fn hourglass(
        &mut self,
        part: &str,
        words: &str,
        times: Times,
        load: &[Kind],
        scenario: &mut Scenario,
    ) -> Result<SetRecorded, PaperError> {
        self.go_on()?;
        let duration = self.time(times);
        let line = format!("-d {duration} {words}", duration = seconds(duration));
        let words: Vec<String> = line.split_whitespace().map(ToOwned::to_owned).collect();
        let parsed = hourglass::parse(&words)?;
        let cpu = self.request.cpu;
        let command = match load {
            [] => format!("whylate hourglass {line} --cpus {cpu}"),
            loads => beside(&parsed.set, loads, cpu, duration),
        };
        scenario.commands.push(command);
        let directory = self.directory(part, scenario)?;
        let request = set::Request {
            question: set::question(&parsed.set, &[cpu], parsed.duration),
            set: parsed.set,
            tables_in: None,
            cpus: vec![cpu],
            duration: parsed.duration,
            threshold: Threshold::Automatic,
            housekeeping: None,
            lock_memory: true,
            hold_idle_states: true,
            trace: true,
            validate: false,
            worst: 3,
            records: parsed.records,
            passes: 0,
            storage: storage::Limits::default(),
            seed: self.request.seed,
            command_line: std::env::args().collect(),
            load: load.to_vec(),
            bed: None,
            notes: Vec::new(),
        };
        let path = directory.path().to_owned();
        let recorded = set::record(&request, directory, self.stop, self.progress)?;
        let run = &recorded.recorded.run;
        self.page(&path, run);
        distrust(part, run, scenario);
        Ok(recorded)
    }

    /// The part's own page; without it its run is as good as before.
    pub(crate) fn page(&mut self, path: &std::path::Path, run: &Run) {
        let directory = RunDir::open(path).map_err(Into::into);
        if let Err(error) = directory.and_then(|of| whylate_report::html::write(&of, run)) {
            self.progress.say(&error.to_string());
        }
    }
}

/// What must not be relied on is said beside the figures.
pub(crate) fn distrust(part: &str, run: &Run, scenario: &mut Scenario) {
    if let Verdict::Untrustworthy { reasons } = &run.verdict {
        scenario.notes.push(format!("{part} is not to be relied on: {}", reasons.join("; ")));
    }
}

/// The command that runs a set beside load: Hourglass has none.
fn beside(set: &TaskSet, loads: &[Kind], cpu: CpuId, duration: Nanos) -> String {
    let threads = set.threads.iter().map(|thread| {
        let Thread { workload, timer, priority, .. } = thread;
        format!("--thread \"{workload}, timer {timer}, priority {priority}\"")
    });
    let threads: Vec<String> = threads.collect();
    let loads: Vec<String> = loads.iter().map(ToString::to_string).collect();
    format!(
        "whylate threads {} --cpus {cpu} --duration {} --load {}",
        threads.join(" "),
        seconds(duration),
        loads.join(",")
    )
}

/// A time as Hourglass takes it.
fn seconds(time: Nanos) -> String {
    format!("{}s", time.0 / Nanos::SECOND.0)
}
