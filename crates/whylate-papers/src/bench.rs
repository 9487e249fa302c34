//! Where experiments are run: one recording after the other, each in a directory of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_gap::Threshold;
use whylate_load::Kind;
use whylate_model::configuration::Configurations;
use whylate_model::execution::StoredJob;
use whylate_model::paper::Scenario;
use whylate_model::run::{Run, Verdict};
use whylate_model::{CpuId, Nanos, RunDir, segments};
use whylate_record::progress::Progress;
use whylate_record::set::{self, SetRecorded};
use whylate_record::storage;
use whylate_rta::hourglass;
use whylate_rta::task_set::{TaskSet, Thread};
use whylate_threads::timers;

use crate::{PaperError, Request};

/// Jobs of a part that are read again: more than minutes make of them.
const MOST_JOBS: usize = 2_000_000;

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

    /// Another CPU than that of the experiments, where this process may use one.
    pub(crate) fn another_cpu(&self) -> Option<CpuId> {
        whylate_sys::affinity::get().into_iter().find(|cpu| *cpu != self.request.cpu)
    }

    pub(crate) fn program(&self) -> &std::path::Path {
        &self.request.program
    }

    /// The tools that were named.
    pub(crate) fn tools(&self) -> Option<&[String]> {
        self.request.tools.as_deref()
    }

    /// The configurations that were named.
    pub(crate) fn configurations(&self) -> Option<&Configurations> {
        self.request.configurations.as_ref()
    }

    /// Results of other tools.
    pub(crate) fn imports(&self) -> &[whylate_report::import::Wanted] {
        &self.request.imports
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

    /// The kernel's slice of ordinary threads, where it can be read.
    pub(crate) fn slice() -> Option<Nanos> {
        whylate_host::quanta::read(std::path::Path::new("/")).base_slice
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

    /// Where a part lies.
    pub(crate) fn place(&self, part: &str) -> PathBuf {
        self.request.directory.join(part)
    }

    /// The directory of a part, made and named in its scenario.
    pub(crate) fn directory(
        &self,
        part: &str,
        scenario: &mut Scenario,
    ) -> Result<RunDir, PaperError> {
        let directory = RunDir::create(self.place(part))?;
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
            [] => format!("whylate hourglass {} --cpus {cpu}", for_a_shell(&words)),
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
            warmup: None,
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
            command_line: whylate_record::command_line(),
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

    /// The jobs of a part, in the order of their threads' schedules.
    pub(crate) fn jobs(&self, part: &str) -> Result<Vec<StoredJob>, PaperError> {
        let directory = RunDir::open(self.request.directory.join(part))?;
        let jobs = segments::read_jobs(&directory)?.take(MOST_JOBS);
        Ok(jobs.collect::<Result<_, _>>()?)
    }

    /// The paper's timer, where this machine has one; else the best of today, and a note of it.
    pub(crate) fn real_time_clock(scenario: &mut Scenario) -> &'static str {
        match timers::named(&whylate_rta::Call::bare("RTC")) {
            Ok(_) => "RTC",
            Err(error) => {
                scenario.notes.push(format!("HR in place of the paper's timer, the RTC: {error}"));
                "HR"
            }
        }
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
        scenario.notes.push(format!("trust in {part} is poor: {}", reasons.join("; ")));
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

/// Words as a shell takes them.
fn for_a_shell(words: &[String]) -> String {
    let quoted = words
        .iter()
        .map(|word| if word.contains('(') { format!("'{word}'") } else { word.clone() });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A time as Hourglass takes it.
fn seconds(time: Nanos) -> String {
    format!("{}s", time.0 / Nanos::SECOND.0)
}

#[cfg(test)]
mod tests {
    use whylate_rta::flag;

    use super::*;

    /// The threads and the loads that a command asks for.
    fn asked(command: &str) -> (Vec<Thread>, Vec<Kind>) {
        let words =
            command.split("--thread \"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let threads =
            words.enumerate().flat_map(|(index, word)| flag::threads(word, index).unwrap());
        let loads = command.split("--load ").nth(1).unwrap();
        (threads.collect(), whylate_load::parse(loads).unwrap())
    }

    #[test]
    fn the_command_that_repeats_a_part_beside_load_asks_for_the_threads_that_were_run() {
        for (words, loads) in [
            ("-d 20s -n 1 -t 0 -p LOW -w LAT 1s -i HR", vec![Kind::NET]),
            ("-d 20s -n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i RTC", vec![Kind::NET]),
            ("-d 360s -n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i HR", vec![Kind::DISK, Kind::NET]),
            (
                "-d 5s -n 2 -t 0 -p RTMED -w CPU -t 1 -w CPU_PERIODIC 1ms 9ms -i grid(10ms)",
                vec![Kind::NET],
            ),
        ] {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            let parsed = hourglass::parse(&words).unwrap();
            let command = beside(&parsed.set, &loads, CpuId(1), parsed.duration);
            let duration = format!("--cpus 1 --duration {} --load", seconds(parsed.duration));
            assert!(command.contains(&duration), "{command}");
            assert_eq!(asked(&command), (parsed.set.threads, loads), "{command}");
        }
    }
}
