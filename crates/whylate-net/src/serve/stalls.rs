//! What a spinning server tells of its own stalls, as lines that whoever started it reads.
//!
//! `stall FROM TO` for each, in ticks of the counter that both ends read; ten times a second `until
//! TICK`, before which everything has been told; `limits LOOK WORK` and `missed COUNT` at the end. A
//! line is written whole or not at all, and never waited for: what finds no room is counted.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

use crate::error::NetError;
use crate::turns::{Did, Turns};

/// `until` is told this often.
const EVERY: Nanos = Nanos(100_000_000);
/// Bytes of a line at most: two numbers of twenty digits and a word.
const LONGEST: usize = 64;

/// Tells stalls into a pipe.
#[derive(Debug)]
pub struct Telling {
    pipe: File,
    turns: Turns,
    every: TicksDelta,
    next: Ticks,
    missed: u64,
}

/// One line of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The server did not run.
    Stall {
        /// The last reading before.
        from: Ticks,
        /// The first one after.
        to: Ticks,
    },
    /// Everything before has been told.
    Until(Ticks),
    /// What a turn that looks, and one that answers, may take.
    Limits([TicksDelta; 2]),
    /// So many stalls found no room.
    Missed(u64),
}

impl Telling {
    /// Into `pipe`, by a counter of this rate.
    pub fn new(pipe: OwnedFd, rate: Hertz) -> Result<Self, NetError> {
        not_waiting(&pipe)?;
        let every = EVERY.to_ticks(rate);
        let (pipe, turns) = (File::from(pipe), Turns::new(rate));
        Ok(Self { pipe, turns, every, next: Ticks(0), missed: 0 })
    }

    /// Into this process's standard output, which is nothing else's then.
    pub fn on_stdout(rate: Hertz) -> Result<Self, NetError> {
        let pipe = std::io::stdout().as_fd().try_clone_to_owned();
        Self::new(pipe.map_err(|source| NetError::Pipe { source })?, rate)
    }

    /// A turn ended at `now`.
    #[inline]
    pub(super) fn turn(&mut self, now: Ticks, did: Did) {
        if let Some(from) = self.turns.ended(now, did) {
            self.stall(from, now);
        }
        if now >= self.next {
            self.until(now);
        }
    }

    #[cold]
    fn stall(&mut self, from: Ticks, to: Ticks) {
        if !self.line(Line::Stall { from, to }) {
            self.missed += 1;
        }
    }

    #[cold]
    fn until(&mut self, now: Ticks) {
        self.next = now + self.every;
        self.line(Line::Until(now));
    }

    /// The last words.
    pub(super) fn finish(mut self, now: Option<Ticks>) {
        if let Some(now) = now {
            self.line(Line::Until(now));
        }
        self.line(Line::Limits(self.turns.limits()));
        self.line(Line::Missed(self.missed));
    }

    /// Says one line; false when there is no room for it.
    fn line(&mut self, line: Line) -> bool {
        // To say it takes as long as an interruption.
        self.turns.pause();
        let text = match line {
            Line::Stall { from, to } => format!("stall {} {}\n", from.0, to.0),
            Line::Until(at) => format!("until {}\n", at.0),
            Line::Limits([look, work]) => format!("limits {} {}\n", look.0, work.0),
            Line::Missed(count) => format!("missed {count}\n"),
        };
        // A pipe takes so short a line whole or not at all.
        self.pipe.write(text.as_bytes()).is_ok_and(|written| written == text.len())
    }
}

impl Line {
    /// Reads a line; none for anything else.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        if line.len() > LONGEST {
            return None;
        }
        let mut words = line.split(' ');
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let parsed = match kind {
            "stall" => {
                let (from, to) = (Ticks(number()?), Ticks(number()?));
                (from < to).then_some(Self::Stall { from, to })?
            }
            "until" => Self::Until(Ticks(number()?)),
            "limits" => Self::Limits([TicksDelta(number()?), TicksDelta(number()?)]),
            "missed" => Self::Missed(number()?),
            _ => return None,
        };
        words.next().is_none().then_some(parsed)
    }
}

/// A pipe that is never waited for.
pub(crate) fn not_waiting(pipe: impl AsFd) -> Result<(), NetError> {
    let refused = |errno: rustix::io::Errno| NetError::Pipe { source: errno.into() };
    let flags = fcntl_getfl(&pipe).map_err(refused)?;
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).map_err(refused)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn lines_are_read_as_they_were_told_and_nonsense_is_none() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut telling = Telling::new(write, Hertz(1e9)).unwrap();
        telling.turn(Ticks(1_000), Did::Look);
        telling.turn(Ticks(2_000), Did::Look);
        telling.turn(Ticks(90_000), Did::Look);
        telling.finish(Some(Ticks(90_500)));
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).unwrap();
        let lines: Vec<Line> = text.lines().map(|line| Line::parse(line).unwrap()).collect();
        let stall = Line::Stall { from: Ticks(2_000), to: Ticks(90_000) };
        assert_eq!(lines[..3], [Line::Until(Ticks(1_000)), stall, Line::Until(Ticks(90_500))]);
        assert!(matches!(lines[3..], [Line::Limits(_), Line::Missed(0)]), "{text}");
        let long = format!("until {}", "9".repeat(80));
        for nonsense in ["", "stall 5", "stall 9 5", "stall 5 9 3", "until x", "hello 5 9", &long] {
            assert_eq!(Line::parse(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_pipe_that_nobody_reads_costs_stalls_and_no_time() {
        let (_read, write) = rustix::pipe::pipe().unwrap();
        let mut telling = Telling::new(write, Hertz(1e9)).unwrap();
        for number in 1..=10_000_u64 {
            telling.turn(Ticks(number * 1_000_000), Did::Look);
        }
        assert!(telling.missed > 100, "{}", telling.missed);
    }
}
