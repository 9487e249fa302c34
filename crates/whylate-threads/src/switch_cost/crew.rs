//! The runners of one CPU, from the side of who measures: threads or processes, trial by trial.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use whylate_clock::Counter;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks, TicksDelta};
use whylate_sys::thread;

use super::board::{Board, How, MOST_RUNNERS, State, Stop};
use super::hot::Terms;
use super::runner::{Seating, Work, live};
use crate::error::ThreadsError;

/// Between two looks at a crew.
const LOOK: Duration = Duration::from_millis(4);
/// Runners sit down in this time, or something is wrong. A large working set takes a second.
const PATIENCE: Duration = Duration::from_secs(20);
/// A trial that has not ended this long after its end never will.
const OVERTIME: Duration = Duration::from_secs(10);
/// From the gate to the begin of a trial: runners wake up, and warm their caches.
const LEAD: Nanos = Nanos(3_000_000);
/// A runner sees a stop after this time.
const LOOK_INSIDE: Nanos = Nanos(1_000_000);

/// One trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// How runners give the CPU up.
    pub how: How,
    /// Which runners take part, a bit each.
    pub active: u64,
    /// CPU time of a turn; none for no end.
    pub quantum: Option<Nanos>,
    /// A delta above this is a gap.
    pub threshold: Nanos,
    /// How long.
    pub length: Nanos,
}

/// Called every few milliseconds while a trial lasts: false ends it.
pub type Watch<'a> = dyn FnMut() -> bool + 'a;

/// What a trial was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its first instant.
    pub begin: Ticks,
    /// Its last: where it was ended early, when it was told to or found no room.
    pub end: Ticks,
    /// It was ended by the watch.
    pub told: bool,
    /// It was ended because a log was full.
    pub full: bool,
}

enum Members {
    Threads(Vec<JoinHandle<()>>),
    Processes(Vec<Child>),
}

/// The runners of one CPU. Dropping it ends them all.
pub struct Crew {
    board: Arc<Board>,
    members: Members,
}

impl Crew {
    /// Threads of this process.
    pub fn of_threads<C: Counter + Send + Clone + 'static>(
        counter: &C,
        seating: Seating,
        runners: u32,
        room: usize,
        work: Work,
    ) -> Result<Self, ThreadsError> {
        let board = Board::new(runners, room, seating).map_err(ThreadsError::Resource)?;
        let mut crew = Self { board: Arc::new(board), members: Members::Threads(Vec::new()) };
        for runner in 0..crew.board.runners() {
            let (board, mut counter) = (Arc::clone(&crew.board), counter.clone());
            let body = move || {
                let _ = thread::set_name(&format!("runner/{runner}"));
                live(&board, runner, &mut counter, work);
            };
            let spawned = std::thread::Builder::new().spawn(body).map_err(ThreadsError::Spawn)?;
            if let Members::Threads(threads) = &mut crew.members {
                threads.push(spawned);
            }
        }
        crew.wait_until_ready()?;
        Ok(crew)
    }

    /// Processes: each is `program` with the words of its number, which must call
    /// [`run_stdin`](super::run_stdin).
    pub fn of_processes(
        program: &Path,
        words: &dyn Fn(u32) -> Vec<OsString>,
        seating: Seating,
        runners: u32,
        room: usize,
    ) -> Result<Self, ThreadsError> {
        let board = Board::new(runners, room, seating).map_err(ThreadsError::Resource)?;
        let mut crew = Self { board: Arc::new(board), members: Members::Processes(Vec::new()) };
        for runner in 0..crew.board.runners() {
            let memory = crew.board.memory().descriptor().try_clone_to_owned();
            let memory = memory.map_err(ThreadsError::Spawn)?;
            let child = Command::new(program)
                .args(words(runner))
                .stdin(Stdio::from(memory))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                // A Ctrl-C on the terminal is for whoever measures, who ends them.
                .process_group(0)
                .spawn()
                .map_err(ThreadsError::Spawn)?;
            if let Members::Processes(children) = &mut crew.members {
                children.push(child);
            }
        }
        crew.wait_until_ready()?;
        Ok(crew)
    }

    /// What its runners wrote.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Threads to be watched, with their CPU.
    #[must_use]
    pub fn watched(&self) -> Vec<(Pid, CpuId)> {
        let cpu = self.board.seating().cpu;
        let tids = (0..self.board.runners()).filter_map(|runner| self.board.tid(runner));
        tids.map(|tid| (tid, cpu)).collect()
    }

    /// Holds one trial.
    pub fn hold<C: Counter>(
        &mut self,
        trial: &Trial,
        counter: &mut C,
        rate: Hertz,
        watch: &mut Watch<'_>,
    ) -> Result<Ended, ThreadsError> {
        let begin = counter.read() + LEAD.to_ticks(rate);
        let end = begin + trial.length.to_ticks(rate);
        let terms = Terms {
            quantum: trial.quantum.map_or(TicksDelta(u64::MAX), |of| of.to_ticks(rate)),
            threshold: trial.threshold.to_ticks(rate),
            look: LOOK_INSIDE.to_ticks(rate),
            begin,
            end,
        };
        let gate = self.board.open_gate(trial.how, trial.active, &terms);
        let takes_part = |runner: &u32| trial.active >> runner & 1 == 1;
        let last = end + Nanos(OVERTIME.as_nanos() as u64).to_ticks(rate);
        let mut told = None;
        loop {
            let mut active = (0..self.board.runners()).filter(takes_part);
            if active.all(|runner| self.board.has_ended(runner, gate)) {
                let full = self.board.is_full();
                let filled = self.board.filled_at().filter(|_| full);
                let end = told.into_iter().chain(filled).fold(end, Ticks::min);
                return Ok(Ended { begin, end, told: told.is_some(), full });
            }
            if let Err(lost) = self.roll_call() {
                self.board.stop(Stop::Told);
                return Err(lost);
            }
            if !watch() && told.is_none() {
                // What runners do from here on is leaving.
                told = Some(counter.read());
                self.board.stop(Stop::Told);
            }
            if counter.read() > last {
                self.board.stop(Stop::Told);
                let why = "it did not come to its end".to_owned();
                return Err(ThreadsError::RunnerLost { runner: 0, why });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Is every runner still there?
    fn roll_call(&mut self) -> Result<(), ThreadsError> {
        for runner in 0..self.board.runners() {
            if let (State::Refused, why) = self.board.state(runner) {
                return Err(ThreadsError::RunnerRefused { why });
            }
        }
        match &mut self.members {
            Members::Threads(threads) => {
                let ended = threads.iter().position(JoinHandle::is_finished);
                let why = "its thread died".to_owned();
                ended.map_or(Ok(()), |runner| {
                    Err(ThreadsError::RunnerLost { runner: runner as u32, why })
                })
            }
            Members::Processes(children) => {
                for (runner, child) in (0..).zip(children) {
                    if let Ok(Some(status)) = child.try_wait() {
                        let why = format!("its process {} ended: {status}", child.id());
                        return Err(ThreadsError::RunnerLost { runner, why });
                    }
                }
                Ok(())
            }
        }
    }

    fn wait_until_ready(&mut self) -> Result<(), ThreadsError> {
        debug_assert!(self.board.runners() <= MOST_RUNNERS);
        let mut waited = Duration::ZERO;
        loop {
            let mut runners = 0..self.board.runners();
            if runners.all(|runner| self.board.state(runner).0 == State::Ready) {
                return Ok(());
            }
            self.roll_call()?;
            if waited >= PATIENCE {
                let why = format!("it was not there after {} s", PATIENCE.as_secs());
                return Err(ThreadsError::RunnerLost { runner: 0, why });
            }
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.board.dismiss();
        match &mut self.members {
            Members::Threads(threads) => {
                // They look at the board each millisecond.
                for thread in threads.drain(..) {
                    let _ = thread.join();
                }
            }
            Members::Processes(children) => {
                for child in children {
                    // What was dismissed holds nothing that it would have to put back. Both fail
                    // only for a child that is gone already.
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        }
    }
}
