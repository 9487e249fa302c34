//! The slowest requests: their points for what slow requests consist of, and a few with the kernel's
//! events beside them.
//!
//! Both are bounded. Of the points the slowest [`MOST_SLOW`] requests are kept; that is exact for the
//! thousandth part of 16 million. Events are kept for a while, [`MOST_RECENT`] of them, for requests
//! that turn out to be slow when they have ended; of those that come later a request gets its own. A
//! request that began before events that were thrown away by then may lack some, and says so.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use whylate_model::Ticks;
use whylate_model::breakdown::{Beside, Journey, Passed, Point};
use whylate_model::event::{Event, EventKind};
use whylate_model::tail::End;

/// Slow requests of which the points are kept: some 4 MB.
pub(super) const MOST_SLOW: usize = 1 << 14;
/// Events that are kept for what is found to be slow later: some 10 MB.
const MOST_RECENT: usize = 1 << 16;
/// Events that are collected for one request before the longest stretches are chosen.
const MOST_COLLECTED: usize = 1 << 12;
/// Events that a request keeps: a table that is still read.
pub(super) const MOST_BESIDE: usize = 96;
/// Requests with events, at most.
const MOST_JOURNEYS: usize = 64;

/// The slowest requests' points.
#[derive(Debug, Clone, Default)]
pub(super) struct Slowest {
    heap: BinaryHeap<Reverse<Kept>>,
}

/// Ordered by how long it took; among those that took as long, by number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    took: u64,
    number: u64,
    points: Box<[(Point, Ticks)]>,
}

impl Slowest {
    pub(super) fn add(&mut self, number: u64, took: u64, points: &[(Point, Ticks)]) {
        if self.heap.len() >= MOST_SLOW {
            let faster =
                |Reverse(least): &Reverse<Kept>| (took, number) <= (least.took, least.number);
            if self.heap.peek().is_some_and(faster) {
                return;
            }
            self.heap.pop();
        }
        self.heap.push(Reverse(Kept { took, number, points: points.into() }));
    }

    /// The slow ones of so many requests, slowest first: their time and their points, and the
    /// percentile above which all of them lie, the one that is asked for where enough are kept.
    pub(super) fn slow(self, requests: u64, percent: f64) -> (f64, Vec<Slow>) {
        let wanted = above(requests, percent);
        let kept = self.heap.len() as u64;
        let percent =
            if wanted <= kept { percent } else { 100.0 * (1.0 - kept as f64 / requests as f64) };
        let slow = self.heap.into_sorted_vec().into_iter();
        let slow = slow.take(usize::try_from(wanted).unwrap_or(usize::MAX));
        (percent, slow.map(|Reverse(kept)| (kept.took, kept.points)).collect())
    }
}

/// A slow request: how many ticks it took, and its points.
pub(super) type Slow = (u64, Box<[(Point, Ticks)]>);

/// How many of so many requests lie above a percentile.
fn above(requests: u64, percent: f64) -> u64 {
    // A thousandth of 1000 is one, whatever a double makes of 99.9.
    (requests as f64 * (100.0 - percent.clamp(0.0, 100.0)) / 100.0 + 1e-6).floor() as u64
}

/// The few slowest requests with what the kernel did meanwhile.
#[derive(Debug, Clone)]
pub(super) struct Journeys {
    most: usize,
    /// Slowest first.
    kept: Vec<Candidate>,
    recent: VecDeque<Beside>,
    /// The latest event that was thrown away to make room. Events come CPU by CPU, and so not in order.
    thrown_away: Option<Ticks>,
}

#[derive(Debug, Clone)]
struct Candidate {
    took: u64,
    number: u64,
    from: Ticks,
    to: Ticks,
    passed: Vec<Passed>,
    beside: Vec<Beside>,
    left_out: u64,
    /// Events of its time may have been thrown away before it was known to be slow.
    events_gone: bool,
}

impl Journeys {
    pub(super) fn new(most: usize) -> Self {
        let (kept, recent) = (Vec::new(), VecDeque::new());
        Self { most: most.min(MOST_JOURNEYS), kept, recent, thrown_away: None }
    }

    /// Would a request that took so long be among the slowest?
    pub(super) fn wants(&self, took: u64, number: u64) -> bool {
        let full = self.kept.len() >= self.most;
        let slower = self.kept.last().is_none_or(|last| (took, number) > (last.took, last.number));
        self.most > 0 && (!full || slower)
    }

    /// Keeps a request that [`Journeys::wants`] took.
    pub(super) fn add(&mut self, number: u64, (from, to): (Ticks, Ticks), passed: Vec<Passed>) {
        let took = to.since(from).0;
        let events_gone = self.thrown_away.is_some_and(|at| at >= from);
        let mut candidate = Candidate {
            took,
            number,
            from,
            to,
            passed,
            beside: Vec::new(),
            left_out: 0,
            events_gone,
        };
        self.recent.iter().for_each(|beside| candidate.meet(beside));
        let after = |other: &Candidate| (other.took, other.number) > (took, number);
        let place = self.kept.partition_point(after);
        self.kept.insert(place, candidate);
        self.kept.truncate(self.most);
    }

    pub(super) fn events(&mut self, end: Option<End>, events: &[Event]) {
        if self.most == 0 {
            return;
        }
        for event in events.iter().filter(|event| tells(&event.kind)) {
            let beside = Beside { end, event: event.clone() };
            self.kept.iter_mut().for_each(|candidate| candidate.meet(&beside));
            if self.recent.len() >= MOST_RECENT
                && let Some(gone) = self.recent.pop_front()
            {
                self.thrown_away = self.thrown_away.max(Some(gone.event.ticks));
            }
            self.recent.push_back(beside);
        }
    }

    pub(super) fn finish(self) -> Vec<Journey> {
        self.kept.into_iter().map(Candidate::finish).collect()
    }
}

impl Candidate {
    fn meet(&mut self, beside: &Beside) {
        if beside.event.ticks < self.from || beside.event.ticks > self.to {
            return;
        }
        if self.beside.len() < MOST_COLLECTED {
            self.beside.push(beside.clone());
        } else {
            self.left_out += 1;
        }
    }

    fn finish(self) -> Journey {
        let collected = self.beside.len();
        let beside = longest_stretches(self.beside, self.to);
        let cut = (collected - beside.len()) as u64;
        Journey {
            number: self.number,
            passed: self.passed,
            beside,
            events_left_out: self.left_out + cut,
            events_gone: self.events_gone,
        }
    }
}

/// Of too many events those with which the longest stretches begin, until the next on their CPU.
fn longest_stretches(mut events: Vec<Beside>, to: Ticks) -> Vec<Beside> {
    events.sort_by_key(|beside| (beside.event.cpu, beside.event.ticks));
    if events.len() > MOST_BESIDE {
        let next = |at: usize| {
            let event = &events[at].event;
            let next = events.get(at + 1).filter(|next| next.event.cpu == event.cpu);
            next.map_or(to, |next| next.event.ticks).since(event.ticks)
        };
        let mut order: Vec<usize> = (0..events.len()).collect();
        order.sort_by_key(|at| Reverse(next(*at)));
        let mut kept = vec![false; events.len()];
        order.into_iter().take(MOST_BESIDE).for_each(|at| kept[at] = true);
        let mut kept = kept.into_iter();
        events.retain(|_| kept.next().unwrap_or(false));
    }
    events.sort_by_key(|beside| beside.event.ticks);
    events
}

/// Does it tell of what a request waits for? Faults, signals, work and calls between CPUs do not.
fn tells(kind: &EventKind) -> bool {
    !matches!(
        kind,
        EventKind::PageFault { .. }
            | EventKind::SignalGenerate { .. }
            | EventKind::SignalDeliver { .. }
            | EventKind::WorkStart { .. }
            | EventKind::WorkEnd { .. }
            | EventKind::IpiSend { .. }
            | EventKind::CallQueued { .. }
    )
}

#[cfg(test)]
mod tests {
    use whylate_model::event::Softirq;
    use whylate_model::{CpuId, Pid};

    use super::*;

    /// One event a tick, from this one on.
    fn events(from: u64, count: usize) -> Vec<Event> {
        let kind = EventKind::SoftirqEntry { vector: Softirq::NetRx };
        let ticks = (from..).take(count);
        ticks
            .map(|at| Event { ticks: Ticks(at), cpu: CpuId(1), pid: Pid(1), kind: kind.clone() })
            .collect()
    }

    /// Of a request from here to there that is known to be slow now.
    fn journey(journeys: &mut Journeys, from: u64, to: u64) -> Journey {
        journeys.add(0, (Ticks(from), Ticks(to)), Vec::new());
        journeys.clone().finish().remove(0)
    }

    #[test]
    fn a_request_that_began_before_events_were_thrown_away_says_that_some_may_be_gone() {
        let most = MOST_RECENT as u64;
        let mut all = Journeys::new(1);
        all.events(None, &events(1_000, MOST_RECENT));
        let whole = journey(&mut all.clone(), 990, 1_050);
        assert_eq!((whole.beside.len(), whole.events_left_out, whole.events_gone), (51, 0, false));
        // Those of 1000 to 1009 make room.
        all.events(None, &events(1_000 + most, 10));
        let late = journey(&mut all.clone(), 990, 1_050);
        assert_eq!((late.beside.len(), late.events_left_out, late.events_gone), (41, 0, true));
        assert!(journey(&mut all.clone(), 1_009, 1_050).events_gone);
        assert!(!journey(&mut all.clone(), 1_010, 1_050).events_gone);
        // Another CPU's, which are earlier and came later: what is gone is the latest all the same.
        all.events(None, &events(500, MOST_RECENT + 5));
        assert!(journey(&mut all.clone(), 1_010 + most - 1, 2_000 + most).events_gone);
        assert!(!journey(&mut all, 1_010 + most, 2_000 + most).events_gone);
    }

    #[test]
    fn what_a_slow_request_had_before_it_was_thrown_away_is_not_gone() {
        let mut all = Journeys::new(1);
        all.events(None, &events(1_000, 20));
        let (from, to) = (Ticks(1_000), Ticks(1_019));
        all.add(0, (from, to), Vec::new());
        all.events(None, &events(2_000, MOST_RECENT));
        let journey = all.finish().remove(0);
        assert_eq!((journey.beside.len(), journey.events_gone), (20, false));
    }
}
