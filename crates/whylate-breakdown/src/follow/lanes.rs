//! The events of several CPUs, waiting until each CPU is complete, and taken in the order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use whylate_model::event::Event;
use whylate_model::{CpuId, Pid, Ticks};

use super::counts::FollowCounts;
use super::note::{Note, What};

/// The events of one CPU.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Note>,
    /// The stamp of the last event.
    last: Ticks,
    complete: Ticks,
    blind: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Lanes {
    each: Vec<Lane>,
    numbers: HashMap<CpuId, usize>,
    /// The first event of every lane that has one.
    heads: BinaryHeap<Reverse<(Ticks, usize)>>,
    /// Events of one lane at the most.
    most: usize,
    /// All CPUs are complete up to here.
    horizon: Ticks,
    /// The stamp of the last event that was taken.
    taken: Ticks,
}

impl Lanes {
    pub(super) fn new(cpus: &[CpuId], most: usize) -> Self {
        let mut numbers = HashMap::new();
        for cpu in cpus {
            let next = numbers.len();
            numbers.entry(*cpu).or_insert(next);
        }
        Self {
            each: (0..numbers.len()).map(|_| Lane::default()).collect(),
            numbers,
            heads: BinaryHeap::new(),
            most: most.max(4),
            horizon: Ticks(0),
            taken: Ticks(0),
        }
    }

    pub(super) fn push(&mut self, cpu: CpuId, events: &[Event], counts: &mut FollowCounts) {
        let Some(&number) = self.numbers.get(&cpu) else {
            counts.elsewhere += events.len() as u64;
            return;
        };
        let complete = self.each[number].complete;
        for event in events {
            let Some(what) = What::of(event) else { continue };
            counts.events += 1;
            // All up to this moment are said to have come; some were taken already.
            if event.ticks <= complete && event.ticks < self.taken {
                counts.late += 1;
                continue;
            }
            if self.each[number].waiting.len() >= self.most {
                counts.no_room += 1;
                self.lost(cpu, counts);
                continue;
            }
            if event.ticks < self.each[number].last {
                counts.out_of_order += 1;
            }
            if std::mem::take(&mut self.each[number].blind) {
                self.append(number, event.ticks, Pid(0), What::Sees);
            }
            self.append(number, event.ticks, event.pid, what);
        }
    }

    /// From the last event of the CPU on, or from the last that was taken of any.
    pub(super) fn lost(&mut self, cpu: CpuId, counts: &mut FollowCounts) {
        let Some(&number) = self.numbers.get(&cpu) else { return };
        if std::mem::replace(&mut self.each[number].blind, true) {
            return;
        }
        counts.losses += 1;
        let from = self.each[number].last.max(self.taken);
        self.append(number, from, Pid(0), What::Blind);
    }

    fn append(&mut self, number: usize, at: Ticks, pid: Pid, what: What) {
        let lane = &mut self.each[number];
        let at = at.max(lane.last);
        lane.last = at;
        if lane.waiting.is_empty() {
            self.heads.push(Reverse((at, number)));
        }
        lane.waiting.push_back(Note { at, lane: number, pid, what });
    }

    pub(super) fn complete(&mut self, cpu: CpuId, to: Ticks) {
        if let Some(&number) = self.numbers.get(&cpu) {
            let complete = &mut self.each[number].complete;
            *complete = to.max(*complete);
            self.horizon = self.each.iter().map(|lane| lane.complete).min().unwrap_or_default();
        }
    }

    /// All CPUs are complete up to here.
    pub(super) fn horizon(&self) -> Ticks {
        self.horizon
    }

    /// The next event of all, where it is known to be that.
    pub(super) fn next(&mut self) -> Option<Note> {
        let Reverse((at, number)) = *self.heads.peek()?;
        if at > self.horizon {
            return None;
        }
        self.heads.pop();
        let waiting = &mut self.each[number].waiting;
        let note = waiting.pop_front()?;
        if let Some(next) = waiting.front() {
            self.heads.push(Reverse((next.at, number)));
        }
        self.taken = self.taken.max(at);
        Some(note)
    }
}
