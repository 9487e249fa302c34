//! Interruptions of a thread that sleeps between its messages, from the scheduler's events.
//!
//! It cannot see them itself: between two of its readings it may have slept, rightly. But the kernel
//! tells when it was woken and when it got the CPU (a dispatch), when it was preempted and when it went
//! on, when an interrupt came while it ran, and when a signal stopped it.
//!
//! Says nothing about time that no event tells of: the host's, while the thread ran or slept.

use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Evidence, Gap, GapKind};
use whylate_model::{CpuId, Pid, Ticks};

/// Events that wait for their order.
const MOST_WAITING: usize = 1 << 17;
/// Signals that stop a thread, by their numbers on Linux.
const STOPPING: [i32; 4] = [19, 20, 21, 22];

/// What the scheduler did with one thread.
#[derive(Debug)]
pub struct Scheduled {
    own: Pid,
    cpu: CpuId,
    waiting: Vec<Event>,
    state: State,
    /// A signal that stops was delivered, and the thread has not left the CPU since.
    stopping: bool,
    /// Events that found no room.
    pub shed: u64,
}

/// Since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is known yet.
    Unknown,
    Running,
    /// An interrupt has come upon it.
    Interrupted(Ticks),
    /// It could run, and another had the CPU.
    Preempted(Ticks),
    Asleep,
    Stopped(Ticks),
    Woken(Ticks),
}

impl Scheduled {
    /// The thread `own`, which runs on `cpu` alone.
    #[must_use]
    pub fn new(own: Pid, cpu: CpuId) -> Self {
        let (waiting, state) = (Vec::new(), State::Unknown);
        Self { own, cpu, waiting, state, stopping: false, shed: 0 }
    }

    /// Takes an event, of any CPU and in any order.
    pub fn event(&mut self, event: &Event) {
        if !self.concerns(event) {
            return;
        }
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push(event.clone());
        } else {
            self.shed += 1;
        }
    }

    /// All events up to `to` have come: the interruptions that they tell of, and up to where all are
    /// told.
    pub fn complete(&mut self, to: Ticks, gaps: &mut Vec<Gap>) -> Ticks {
        self.waiting.sort_by_key(|event| event.ticks);
        let count = self.waiting.partition_point(|event| event.ticks <= to);
        let events: Vec<Event> = self.waiting.drain(..count).collect();
        for event in &events {
            if let Some((start, kind)) = self.step(event)
                && start < event.ticks
            {
                gaps.push(self.gap(start, event.ticks, kind));
            }
        }
        match self.state {
            State::Interrupted(since)
            | State::Preempted(since)
            | State::Stopped(since)
            | State::Woken(since) => since.min(to),
            State::Unknown | State::Running | State::Asleep => to,
        }
    }

    fn concerns(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Switch { from, to, .. } => from.pid == self.own || to.pid == self.own,
            EventKind::Wakeup { task, .. } => task.pid == self.own,
            EventKind::VectorEntry { .. }
            | EventKind::VectorExit { .. }
            | EventKind::SignalDeliver { .. } => event.pid == self.own && event.cpu == self.cpu,
            _ => false,
        }
    }

    /// Where an interruption began that this event ends.
    fn step(&mut self, event: &Event) -> Option<(Ticks, GapKind)> {
        let now = event.ticks;
        let (state, ended) = match (&event.kind, self.state) {
            (EventKind::Switch { to, .. }, state) if to.pid == self.own => {
                let ended = match state {
                    State::Woken(since) => Some((since, GapKind::Dispatch)),
                    State::Preempted(since) | State::Stopped(since) => {
                        Some((since, GapKind::Interruption))
                    }
                    _ => None,
                };
                (State::Running, ended)
            }
            (EventKind::Switch { from_runnable, .. }, _) => {
                let stopping = std::mem::take(&mut self.stopping);
                let state = match (from_runnable, stopping) {
                    (true, _) => State::Preempted(now),
                    (false, true) => State::Stopped(now),
                    (false, false) => State::Asleep,
                };
                (state, None)
            }
            (EventKind::Wakeup { .. }, State::Asleep) => (State::Woken(now), None),
            (EventKind::SignalDeliver { signal }, state) => {
                self.stopping |= STOPPING.contains(signal);
                (state, None)
            }
            (EventKind::VectorEntry { .. }, State::Running | State::Unknown) => {
                (State::Interrupted(now), None)
            }
            (EventKind::VectorExit { .. }, State::Interrupted(since)) => {
                (State::Running, Some((since, GapKind::Interruption)))
            }
            (_, state) => (state, None),
        };
        self.state = state;
        ended
    }

    fn gap(&self, start: Ticks, end: Ticks, kind: GapKind) -> Gap {
        let (cpu_before, cpu_after) = (self.cpu, self.cpu);
        Gap { start, end, resumed: end, cpu_before, cpu_after, kind, evidence: Evidence::default() }
    }
}

#[cfg(test)]
mod tests {
    use GapKind::{Dispatch, Interruption};
    use whylate_model::event::Task;

    use super::*;

    fn task(pid: i32) -> Task {
        Task { pid: Pid(pid), comm: "x".to_owned(), prio: 120 }
    }

    fn event(ticks: u64, pid: i32, kind: EventKind) -> Event {
        Event { ticks: Ticks(ticks), cpu: CpuId(1), pid: Pid(pid), kind }
    }

    fn switch(ticks: u64, from: i32, from_runnable: bool, to: i32) -> Event {
        let kind = EventKind::Switch { from: task(from), from_runnable, to: task(to) };
        event(ticks, from, kind)
    }

    fn woken(ticks: u64, pid: i32) -> Event {
        let kind = EventKind::Wakeup { task: task(pid), target: CpuId(1) };
        Event { cpu: CpuId(0), ..event(ticks, 3, kind) }
    }

    fn vector(ticks: u64, entry: bool) -> Event {
        let (name, vector) = ("local_timer".to_owned(), 1);
        let kind = if entry {
            EventKind::VectorEntry { name, vector }
        } else {
            EventKind::VectorExit { name, vector }
        };
        event(ticks, 7, kind)
    }

    fn found(scheduled: &mut Scheduled, to: u64) -> (Vec<(u64, u64, GapKind)>, u64) {
        let mut gaps = Vec::new();
        let told = scheduled.complete(Ticks(to), &mut gaps);
        (gaps.iter().map(|gap| (gap.start.0, gap.end.0, gap.kind)).collect(), told.0)
    }

    #[test]
    fn sleep_is_none_and_what_lies_between_wake_up_and_cpu_is_one() {
        let mut of = Scheduled::new(Pid(7), CpuId(1));
        // From two CPUs, whose buffers are read one after the other.
        for event in [
            switch(10, 7, false, 0),
            switch(130, 0, true, 7),
            switch(200, 7, true, 9),
            switch(260, 9, false, 7),
            vector(300, true),
            vector(310, false),
            woken(100, 7),
            woken(105, 9),
        ] {
            of.event(&event);
        }
        let (gaps, told) = found(&mut of, 1_000);
        assert_eq!(
            gaps,
            [(100, 130, Dispatch), (200, 260, Interruption), (300, 310, Interruption)]
        );
        assert_eq!(told, 1_000);
    }

    #[test]
    fn a_thread_that_a_signal_stops_is_interrupted_until_it_has_the_cpu_again() {
        let mut of = Scheduled::new(Pid(7), CpuId(1));
        of.event(&switch(5, 0, true, 7));
        of.event(&event(10, 7, EventKind::SignalDeliver { signal: 19 }));
        of.event(&switch(12, 7, false, 0));
        assert_eq!(found(&mut of, 500), (vec![], 12), "what goes on is not told yet");
        of.event(&woken(900, 7));
        of.event(&switch(905, 0, true, 7));
        assert_eq!(found(&mut of, 1_000).0, [(12, 905, GapKind::Interruption)]);
    }

    #[test]
    fn what_others_do_and_what_another_cpu_does_is_no_event_of_the_thread() {
        let mut of = Scheduled::new(Pid(7), CpuId(1));
        let entry = EventKind::VectorEntry { name: "local_timer".to_owned(), vector: 1 };
        for other in [
            switch(10, 8, true, 9),
            woken(20, 9),
            event(30, 8, entry.clone()),
            Event { cpu: CpuId(2), ..event(40, 7, entry) },
            event(50, 7, EventKind::WorkStart { function: 0 }),
        ] {
            of.event(&other);
        }
        assert_eq!((of.waiting.len(), of.shed), (0, 0));
        of.event(&switch(60, 9, true, 7));
        assert_eq!(of.waiting.len(), 1);
    }

    #[test]
    fn events_are_kept_up_to_their_limit_and_those_beyond_are_counted() {
        let mut of = Scheduled::new(Pid(7), CpuId(1));
        of.waiting = vec![woken(5, 7); MOST_WAITING - 1];
        of.event(&woken(5, 7));
        of.event(&woken(5, 7));
        assert_eq!((of.waiting.len(), of.shed), (MOST_WAITING, 1));
    }

    #[test]
    fn an_event_at_the_mark_has_come_and_what_goes_on_is_told_up_to_its_beginning() {
        let begun = |events: &[Event], to| {
            let mut of = Scheduled::new(Pid(7), CpuId(1));
            for event in events {
                of.event(event);
            }
            found(&mut of, to)
        };
        assert_eq!(begun(&[vector(40, true)], 39), (vec![], 39));
        assert_eq!(begun(&[vector(40, true)], 90), (vec![], 40));
        assert_eq!(begun(&[vector(40, true)], 40), (vec![], 40));
        assert_eq!(begun(&[switch(40, 7, true, 9)], 90), (vec![], 40));
        assert_eq!(begun(&[switch(40, 7, false, 9)], 90), (vec![], 90), "asleep");
        assert_eq!(begun(&[switch(40, 7, false, 9), woken(50, 7)], 90), (vec![], 50));
        let ended = [vector(40, true), vector(50, false)];
        assert_eq!(begun(&ended, 50), (vec![(40, 50, Interruption)], 50));
        // Without length it is none.
        assert_eq!(begun(&[vector(40, true), vector(40, false)], 90), (vec![], 90));
    }

    #[test]
    fn a_signal_that_stops_counts_until_the_thread_next_leaves_the_cpu_and_others_never() {
        let signalled = |signal: i32, then: &[Event]| {
            let mut of = Scheduled::new(Pid(7), CpuId(1));
            of.event(&switch(5, 0, true, 7));
            of.event(&event(10, 7, EventKind::SignalDeliver { signal }));
            of.event(&event(11, 7, EventKind::SignalDeliver { signal: 10 }));
            for event in then {
                of.event(event);
            }
            found(&mut of, 100).0
        };
        let away = [switch(20, 7, false, 0), switch(50, 0, true, 7)];
        assert_eq!(signalled(19, &away), [(20, 50, Interruption)]);
        assert_eq!(signalled(10, &away), []);
        let again = event(12, 7, EventKind::SignalDeliver { signal: 20 });
        let twice = [&[again], &away[..]].concat();
        assert_eq!(signalled(19, &twice), [(20, 50, Interruption)]);
        // Once it was preempted the signal lies behind it.
        let preempted = [
            switch(20, 7, true, 9),
            switch(30, 9, true, 7),
            switch(40, 7, false, 0),
            switch(50, 0, true, 7),
        ];
        assert_eq!(signalled(19, &preempted), [(20, 30, Interruption)]);
    }
}
