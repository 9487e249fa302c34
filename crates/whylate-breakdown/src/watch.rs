//! Requests of a process that knows nothing of being looked at.
//!
//! A request is a message that one of its threads reads from a socket; its reply is what answers that,
//! by [`turns`](crate::turns). Of each one it is known when it arrived at this host, when it was
//! delivered, whether and when its reader was woken and had a CPU, when it was read, when the reply was
//! sent, queued and given to the driver.
//!
//! A socket by which the process asks others is none by which it is asked, and cannot be told from one
//! by what happens there: such a connection gives rows of its own if replies and questions take turns.

use std::collections::BTreeSet;

use whylate_model::breakdown::{Point, Source, Station};
use whylate_model::{Pid, Ticks, TicksDelta};

use crate::follow::Passage;
use crate::instants::Instants;
use crate::met::Met;
use crate::turns::{Answered, Numbered, TurnCounts, Turns};

/// Watches the threads of a process.
#[derive(Debug)]
pub struct Watching {
    threads: BTreeSet<Pid>,
    turns: Turns,
    patience: TicksDelta,
    passages: u64,
    requests: u64,
}

impl Watching {
    /// Watches these threads. What is not answered for as long as `patience` counts as unanswered.
    #[must_use]
    pub fn new(threads: Vec<Pid>, patience: TicksDelta) -> Self {
        let threads = threads.into_iter().collect();
        Self { threads, turns: Turns::default(), patience, passages: 0, requests: 0 }
    }

    /// Another thread belongs to the process.
    pub fn thread(&mut self, pid: Pid) {
        self.threads.insert(pid);
    }

    /// Nothing of this thread can come any more: it ended long ago, and its number may be another's.
    pub fn forget(&mut self, pid: Pid) {
        self.threads.remove(&pid);
    }

    /// Takes a message; those of others are left.
    pub fn passage(&mut self, passage: Passage) {
        let message = Numbered { number: self.passages, passage };
        self.passages += 1;
        if passage.reader.is_some_and(|reader| self.threads.contains(&reader)) {
            self.turns.read(message);
        }
        if passage.sender.is_some_and(|sender| self.threads.contains(&sender)) {
            self.turns.sent(message);
        }
    }

    /// The requests that are known by now, in the order in which it was known, numbered by it.
    /// Everything that began before `to` has come: [`Follower::settled`](crate::Follower::settled).
    pub fn complete(&mut self, to: Ticks) -> Vec<Met> {
        self.turns.complete(to, Ticks(to.0.saturating_sub(self.patience.0)));
        let pairs = std::mem::take(&mut self.turns.pairs);
        pairs.into_iter().map(|pair| self.met(&pair)).collect()
    }

    /// No more will come.
    pub fn finish(&mut self) -> Vec<Met> {
        self.turns.complete(Ticks(u64::MAX), Ticks(u64::MAX));
        self.complete(Ticks(u64::MAX))
    }

    /// What was read, answered and left out.
    #[must_use]
    pub fn counts(&self) -> TurnCounts {
        self.turns.counts
    }

    fn met(&mut self, pair: &Answered) -> Met {
        let (asked, answer) = (pair.asked.whole, pair.answer.passage);
        let mut instants = Instants::default();
        for (station, at) in [
            (Station::Arrived, asked.arrived),
            (Station::Delivered, asked.delivered),
            (Station::Woken, asked.woken),
            (Station::Running, asked.running),
            (Station::Read, Some(pair.asked.read)),
        ] {
            if let Some(at) = at {
                instants.set(Point::there(station), at, Source::Trace);
            }
        }
        for (station, at) in [
            (Station::Sent, answer.sent),
            (Station::Queued, answer.queued),
            (Station::Driver, answer.driver),
        ] {
            if let Some(at) = at {
                instants.set(Point::back(station), at, Source::Trace);
            }
        }
        let number = self.requests;
        self.requests += 1;
        Met { number, instants, beside: Vec::new(), twice: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
