//! A runner: sits down on its CPU, waits at the gate, and runs each trial that it is part of.

use std::io::stdin;
use std::os::fd::AsFd;

use whylate_clock::{Counter, HardwareCounter};
use whylate_gap::workload::{LINE, Scan, Workload};
use whylate_model::CpuId;
use whylate_sys::sched::{self, Policy};
use whylate_sys::shared_memory::SharedMemory;
use whylate_sys::{SysError, process, switches};

use super::board::{Board, Did, How, Stop};
use super::hot::{self, Book, Load, Terms};
use crate::error::ThreadsError;
use crate::placement::Placement;

/// Lines that are read between two readings of the counter: 4 KiB, so that reading the counter is
/// little beside reading memory.
pub(super) const LINES_AT_ONCE: usize = 64;

/// Where and how runners run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seating {
    /// Their CPU.
    pub cpu: CpuId,
    /// Their scheduling class.
    pub class: Class,
}

/// A scheduling class of runners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// As the process was started.
    Ordinary,
    /// SCHED_BATCH: as ordinary, but whom it wakes does not take the CPU from it at once.
    Batch,
    /// SCHED_FIFO with this priority.
    Fifo(u8),
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ordinary => f.write_str("SCHED_OTHER"),
            Self::Batch => f.write_str("SCHED_BATCH"),
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
        }
    }
}

/// What a runner does while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Nothing but reading the counter.
    Nothing,
    /// Reads through a working set of its own, over and over again.
    Scan {
        /// Its size.
        bytes: usize,
    },
}

impl Work {
    /// Passes over the working set that so many iterations are.
    #[must_use]
    pub fn passes(self, iterations: u64) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Scan { bytes } => {
                let lines = bytes.div_ceil(LINE).max(1);
                iterations as f64 * LINES_AT_ONCE as f64 / lines as f64
            }
        }
    }
}

struct Nothing;

impl Load for Nothing {
    #[inline(always)]
    fn once(&mut self) {}
}

struct Lines(Scan);

impl Load for Lines {
    #[inline(always)]
    fn once(&mut self) {
        for _ in 0..LINES_AT_ONCE {
            self.0.work();
        }
    }
}

/// A runner in a process of its own: takes the board over from standard input and runs as `runner`
/// until the crew is dismissed, or the parent is gone.
pub fn run_stdin(runner: u32) -> Result<(), ThreadsError> {
    process::die_with_parent().map_err(ThreadsError::Resource)?;
    let no_board = |why: String| ThreadsError::RunnerRefused { why };
    let file = stdin().as_fd().try_clone_to_owned().map_err(|error| no_board(error.to_string()))?;
    let memory = SharedMemory::inherited(file).map_err(ThreadsError::Resource)?;
    let board = Board::inherited(memory)
        .filter(|board| runner < board.runners())
        .ok_or_else(|| no_board("standard input holds no board of this version".to_owned()))?;
    // Gone before it could be asked for: nobody would ever end this one.
    if process::parent() != Some(board.crew()) {
        return Err(no_board("who started it is gone".to_owned()));
    }
    let mut counter = HardwareCounter::open().map_err(|error| no_board(error.to_string()))?;
    live(&board, runner, &mut counter, Work::Nothing);
    Ok(())
}

/// The whole life of a runner.
pub(super) fn live<C: Counter>(board: &Board, runner: u32, counter: &mut C, work: Work) {
    let lived = match work {
        Work::Nothing => serve(board, runner, counter, &mut Nothing),
        Work::Scan { bytes } => serve(board, runner, counter, &mut Lines(Scan::new(bytes))),
    };
    if let Err(why) = lived {
        board.refuse(runner, &why.to_string());
    }
}

fn serve<C: Counter, L: Load>(
    board: &Board,
    runner: u32,
    counter: &mut C,
    load: &mut L,
) -> Result<(), ThreadsError> {
    settle(board.seating())?;
    let (log, _) = board.pages(runner);
    for word in log.iter().step_by(512) {
        // A page fault here is none in a trial.
        word.store(0, std::sync::atomic::Ordering::Relaxed);
    }
    board.ready(runner, process::tid());
    let mut seen = 0;
    while let Some(gate) = board.wait_at_gate(seen).map_err(ThreadsError::Resource)? {
        seen = gate;
        let (how, active, terms) = board.trial();
        if active >> runner & 1 == 1 {
            let did = take_part(board, runner, (counter, load), (how, active), &terms);
            board.end(runner, gate, &did.map_err(ThreadsError::Resource)?);
        }
    }
    Ok(())
}

fn settle(seating: Seating) -> Result<(), ThreadsError> {
    Placement { cpu: Some(seating.cpu), fifo: None }.settle()?;
    let nice = match sched::policy() {
        Policy::Other { nice } | Policy::Batch { nice } => nice,
        _ => 0,
    };
    match seating.class {
        Class::Ordinary => sched::set(Policy::Other { nice }),
        Class::Batch => sched::set(Policy::Batch { nice }),
        Class::Fifo(priority) => sched::set_fifo(priority),
    }
    .map_err(|refusal| ThreadsError::RunnerRefused { why: refusal.to_string() })
}

fn take_part<C: Counter, L: Load>(
    board: &Board,
    runner: u32,
    (counter, load): (&mut C, &mut L),
    (how, active): (How, u64),
    terms: &Terms,
) -> Result<Did, SysError> {
    let next = following(runner, active);
    if how == How::HandOff {
        board.take_turn(runner)?;
    }
    let stop = board.stop_word();
    hot::warm_up(counter, load, stop, terms);
    let before = switches::thread_switches();
    let (log, count) = board.pages(runner);
    let mut book = Book::new(log, count);
    let ran = match how {
        How::Never => hot::run(counter, load, &mut book, stop, terms, &mut || {}),
        How::Yield => hot::run(counter, load, &mut book, stop, terms, &mut std::thread::yield_now),
        How::HandOff => {
            let mut pass = || {
                // Both fail only where the kernel has no futex: then nobody waits either.
                if next != runner {
                    let _ = board.give_turn(next);
                    let _ = board.take_turn(runner);
                }
            };
            hot::run(counter, load, &mut book, stop, terms, &mut pass)
        }
    };
    let after = switches::thread_switches();
    if ran.full {
        board.stop(Stop::Full);
    }
    if how == How::HandOff {
        board.give_turn(next)?;
    }
    Ok(Did {
        work: ran.work,
        voluntary: after.voluntary - before.voluntary,
        involuntary: after.involuntary - before.involuntary,
    })
}

/// The next active runner in the round.
fn following(runner: u32, active: u64) -> u32 {
    let after = (runner + 1..u64::BITS).chain(0..=runner);
    after.into_iter().find(|other| active >> other & 1 == 1).unwrap_or(runner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_among_those_who_take_part() {
        assert_eq!(following(0, 0b1011), 1);
        assert_eq!(following(1, 0b1011), 3);
        assert_eq!(following(3, 0b1011), 0);
        assert_eq!(following(2, 0b0100), 2);
        assert_eq!(following(63, 1), 0);
    }

    #[test]
    fn iterations_are_passes_by_their_lines() {
        let work = Work::Scan { bytes: 64 * 128 };
        assert!((work.passes(10) - 5.0).abs() < 1e-12);
        assert!(Work::Nothing.passes(10).abs() < 1e-12);
    }
}
