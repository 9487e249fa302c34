//! Events of one traced CPU, waiting for the gaps they belong to, and the judgement on each of
//! them: inside a gap, outside, or in the recording of one.
//!
//! Memory is bounded: when the lane is full the oldest quarter goes, is counted, and its stretch
//! counts as lost, so that no gap there is called the host's for want of events.

use std::collections::VecDeque;

use whylate_model::Ticks;
use whylate_model::event::Event;

use crate::split::Span;

/// Stretches of lost events kept; beyond that the newest two become one.
const LOST_MAX: usize = 1024;

/// Where an event of a measured CPU fell.
///
/// Only events between the start and the end of a measuring thread on that CPU are inside or
/// outside; every event of a measured CPU is kernel code that ran in the loop's stead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCounts {
    /// Inside a recorded gap.
    pub inside: u64,
    /// While the loop ran, as far as its gaps say.
    pub outside: u64,
    /// While a gap was being recorded.
    pub in_recording: u64,
    /// While no measuring thread was on the CPU: before the start, after the end.
    pub unattended: u64,
    /// Came after the mark that said all up to there had come; not used.
    pub late: u64,
    /// Came out of order and were put in their place.
    pub out_of_order: u64,
    /// Dropped because the lane was full.
    pub dropped: u64,
}

impl EventCounts {
    /// Share of the events inside gaps among those that were inside or outside.
    #[must_use]
    pub fn share_inside(&self) -> Option<f64> {
        let judged = self.inside + self.outside;
        (judged > 0).then(|| self.inside as f64 / judged as f64)
    }

    /// Adds another CPU's counts.
    pub fn add(&mut self, other: &Self) {
        self.inside += other.inside;
        self.outside += other.outside;
        self.in_recording += other.in_recording;
        self.unattended += other.unattended;
        self.late += other.late;
        self.out_of_order += other.out_of_order;
        self.dropped += other.dropped;
    }
}

/// What was going on when an event was recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum During {
    Gap = 1,
    Recording = 2,
    Running = 4,
}

#[derive(Debug)]
struct Held {
    event: Event,
    during: u8,
}

/// Events of one CPU.
#[derive(Debug)]
pub(crate) struct Lane {
    held: VecDeque<Held>,
    max: usize,
    /// All events up to here have come.
    pub(crate) complete_to: Ticks,
    evicted_to: Ticks,
    lost: Vec<Span>,
    pub(crate) counts: EventCounts,
}

impl Lane {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            held: VecDeque::new(),
            max: max.max(4),
            complete_to: Ticks(0),
            evicted_to: Ticks(0),
            lost: Vec::new(),
            counts: EventCounts::default(),
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        if event.ticks < self.evicted_to {
            self.counts.late += 1;
            return;
        }
        if self.held.len() >= self.max {
            self.shed();
        }
        let held = Held { event, during: 0 };
        match self.held.back() {
            Some(last) if held.event.ticks < last.event.ticks => {
                self.counts.out_of_order += 1;
                let at = self.held.partition_point(|h| h.event.ticks <= held.event.ticks);
                self.held.insert(at, held);
            }
            _ => self.held.push_back(held),
        }
    }

    /// Drops the oldest quarter.
    fn shed(&mut self) {
        let quarter = self.max / 4;
        let gone: Vec<_> = self.held.drain(..quarter).collect();
        if let (Some(first), Some(last)) = (gone.first(), gone.last()) {
            self.counts.dropped += gone.len() as u64;
            let span = Span { from: first.event.ticks, to: last.event.ticks };
            self.evicted_to = self.evicted_to.max(span.to);
            self.note_lost(span);
        }
    }

    pub(crate) fn note_lost(&mut self, span: Span) {
        let full = self.lost.len() >= LOST_MAX;
        match self.lost.last_mut() {
            Some(last) if full => last.to = last.to.max(span.to),
            _ => self.lost.push(span),
        }
    }

    /// Stretches in which events were lost and that meet `span`.
    pub(crate) fn lost_in(&self, span: Span) -> impl Iterator<Item = Span> {
        self.lost.iter().filter(move |lost| lost.meets(&span)).copied()
    }

    /// Notes what went on over the closed `span` and returns the events in it.
    pub(crate) fn mark(&mut self, span: Span, during: During) -> impl Iterator<Item = &Event> {
        let from = self.held.partition_point(|held| held.event.ticks < span.from);
        let to = self.held.partition_point(|held| held.event.ticks <= span.to).max(from);
        self.held.range_mut(from..to).map(move |held| {
            held.during |= during as u8;
            &held.event
        })
    }

    /// Judges and lets go of every event before `safe`: no gap to come can contain it.
    pub(crate) fn evict(&mut self, safe: Ticks) {
        let safe = safe.min(self.complete_to);
        while let Some(held) = self.held.front()
            && held.event.ticks < safe
        {
            let during = held.during;
            self.judge(during);
            self.held.pop_front();
        }
        self.evicted_to = self.evicted_to.max(safe);
        self.lost.retain(|span| span.to >= safe);
    }

    /// Judges what is left at the end of the run.
    pub(crate) fn finish(&mut self) {
        while let Some(held) = self.held.pop_front() {
            self.judge(held.during);
        }
    }

    /// With several threads on a CPU an event lies in the gaps of those that waited; it counts
    /// as outside if one of them ran.
    fn judge(&mut self, during: u8) {
        let count = if during & During::Running as u8 != 0 {
            &mut self.counts.outside
        } else if during & During::Gap as u8 != 0 {
            &mut self.counts.inside
        } else if during & During::Recording as u8 != 0 {
            &mut self.counts.in_recording
        } else {
            &mut self.counts.unattended
        };
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::event::EventKind;
    use whylate_model::{CpuId, Pid};

    fn event(ticks: u64) -> Event {
        let kind = EventKind::WorkStart { function: 0 };
        Event { ticks: Ticks(ticks), cpu: CpuId(0), pid: Pid(1), kind }
    }

    fn span(from: u64, to: u64) -> Span {
        Span { from: Ticks(from), to: Ticks(to) }
    }

    #[test]
    fn each_event_is_judged_once_by_what_went_on() {
        let mut lane = Lane::new(100);
        for ticks in [5, 10, 15, 20, 25, 30] {
            lane.push(event(ticks));
        }
        assert_eq!(lane.mark(span(10, 15), During::Gap).count(), 2);
        lane.mark(span(16, 20), During::Recording).for_each(drop);
        lane.mark(span(21, 25), During::Running).for_each(drop);
        lane.complete_to = Ticks(100);
        lane.evict(Ticks(100));
        let counts = EventCounts {
            inside: 2,
            outside: 1,
            in_recording: 1,
            unattended: 2,
            ..EventCounts::default()
        };
        assert_eq!(lane.counts, counts);
        assert!((counts.share_inside().unwrap() - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_disordered_event_is_put_in_its_place_and_a_late_one_counted() {
        let mut lane = Lane::new(100);
        lane.push(event(20));
        lane.push(event(10));
        assert_eq!(lane.counts.out_of_order, 1);
        let seen: Vec<_> = lane.mark(span(0, 30), During::Gap).map(|event| event.ticks.0).collect();
        assert_eq!(seen, [10, 20]);
        lane.complete_to = Ticks(40);
        lane.evict(Ticks(40));
        lane.push(event(30));
        assert_eq!(lane.counts.late, 1);
    }

    #[test]
    fn a_full_lane_drops_its_oldest_events_and_calls_their_stretch_lost() {
        let mut lane = Lane::new(8);
        (0..9).for_each(|ticks| lane.push(event(ticks)));
        assert_eq!(lane.counts.dropped, 2);
        assert_eq!(lane.lost_in(span(1, 5)).collect::<Vec<_>>(), [span(0, 1)]);
        assert!(lane.lost_in(span(2, 5)).next().is_none());
    }

    #[test]
    fn counts_add_up_each_by_itself_and_without_a_judged_event_there_is_no_share() {
        let of = |n: u64| EventCounts {
            inside: n,
            outside: 2 * n,
            in_recording: 3 * n,
            unattended: 4 * n,
            late: 5 * n,
            out_of_order: 6 * n,
            dropped: 7 * n,
        };
        let mut sum = of(10);
        sum.add(&of(100));
        assert_eq!(sum, of(110));
        assert_eq!(EventCounts { late: 1, ..EventCounts::default() }.share_inside(), None);
    }

    #[test]
    fn of_what_went_on_at_once_a_running_thread_counts_first_and_then_a_gap() {
        let mut lane = Lane::new(100);
        for ticks in [10, 20, 30] {
            lane.push(event(ticks));
        }
        lane.mark(span(10, 30), During::Recording).for_each(drop);
        lane.mark(span(10, 20), During::Gap).for_each(drop);
        lane.mark(span(10, 10), During::Running).for_each(drop);
        lane.finish();
        let counts =
            EventCounts { inside: 1, outside: 1, in_recording: 1, ..EventCounts::default() };
        assert_eq!(lane.counts, counts);
    }

    #[test]
    fn events_are_let_go_before_the_mark_and_before_what_is_complete_and_none_at_either() {
        let mut lane = Lane::new(100);
        for ticks in [10, 20, 30, 40] {
            lane.push(event(ticks));
        }
        lane.complete_to = Ticks(30);
        lane.evict(Ticks(20));
        assert_eq!(lane.counts.unattended, 1);
        lane.evict(Ticks(90));
        assert_eq!(lane.counts.unattended, 2);
        // An earlier mark takes nothing back: what comes at the later one is in time, only disordered.
        lane.evict(Ticks(10));
        for ticks in [30, 29] {
            lane.push(event(ticks));
        }
        assert_eq!((lane.counts.late, lane.counts.out_of_order), (1, 1));
        let held: Vec<_> = lane.mark(span(0, 90), During::Gap).map(|event| event.ticks.0).collect();
        assert_eq!(held, [30, 30, 40]);
    }

    #[test]
    fn disordered_events_of_one_tick_keep_the_order_they_came_in() {
        let mut lane = Lane::new(100);
        for (ticks, pid) in [(20, 1), (10, 2), (10, 3), (20, 4)] {
            lane.push(Event { pid: Pid(pid), ..event(ticks) });
        }
        let held: Vec<_> = lane.mark(span(10, 20), During::Gap).map(|event| event.pid.0).collect();
        assert_eq!((held, lane.counts.out_of_order), (vec![2, 3, 1, 4], 2));
    }

    #[test]
    fn what_comes_before_the_events_that_were_dropped_is_late() {
        let mut lane = Lane::new(8);
        (10..19).for_each(|ticks| lane.push(event(ticks)));
        assert_eq!(lane.lost_in(span(0, 100)).collect::<Vec<_>>(), [span(10, 11)]);
        for ticks in [11, 10] {
            lane.push(event(ticks));
        }
        assert_eq!((lane.counts.late, lane.counts.out_of_order), (1, 1));
    }

    #[test]
    fn losses_are_kept_while_a_gap_may_meet_them_and_beyond_their_number_the_last_grows() {
        let mut lane = Lane::new(8);
        let losses = LOST_MAX as u64 + 2;
        (0..losses).for_each(|at| lane.note_lost(span(10 * at, 10 * at + 1)));
        // One that lies within the last takes nothing from it.
        lane.note_lost(span(0, 1));
        let all: Vec<_> = lane.lost_in(span(0, 10 * losses)).collect();
        let last = span(10 * (LOST_MAX as u64 - 1), 10 * (losses - 1) + 1);
        assert_eq!((all.len(), all.last()), (LOST_MAX, Some(&last)));
        lane.complete_to = Ticks(10 * losses);
        lane.evict(Ticks(11));
        let left: Vec<_> = lane.lost_in(span(0, 20)).collect();
        assert_eq!(left, [span(10, 11), span(20, 21)]);
    }
}
