//! The kernel's events beside the switches: what each one was.
//!
//! Pure: events and switches in, classes out.

use whylate_cause::rules::r9_period;
use whylate_model::event::{Event, EventKind};
use whylate_model::switch_cost::How;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks};
use whylate_threads::switch_cost::stitch::{Break, Line};

/// The vector of the timer, in whose interrupt quanta expire.
const TIMER: &str = "local_timer";
/// Events kept of one part: 40 bytes each.
pub(super) const MOST_EVENTS: usize = 4_000_000;

/// What is kept of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// From a thread, which was still runnable or not, to another one.
    Switch { from: Pid, runnable: bool, to: Pid },
    /// An interrupt of the timer.
    Timer,
    /// Another one, or an NMI.
    Interrupt,
}

/// An event of the measured CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) at: Ticks,
    pub(super) what: What,
}

impl Note {
    /// What of an event counts here; none for events of other CPUs and other kinds.
    pub(super) fn of(event: &Event, cpu: CpuId) -> Option<Self> {
        let what = match &event.kind {
            EventKind::Switch { from, from_runnable, to } => {
                What::Switch { from: from.pid, runnable: *from_runnable, to: to.pid }
            }
            EventKind::VectorEntry { name, .. } if name == TIMER => What::Timer,
            EventKind::VectorEntry { .. }
            | EventKind::HandlerEntry { .. }
            | EventKind::Nmi { .. } => What::Interrupt,
            _ => return None,
        };
        (event.cpu == cpu).then_some(Self { at: event.ticks, what })
    }
}

/// How the CPU went from one runner to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// By one switch between the two; the first was still runnable, or slept.
    Direct { runnable: bool },
    /// With others in between.
    Others,
    /// The trace shows no switch.
    Unseen,
}

/// What the kernel says of a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) passage: Passage,
    /// The timer interrupted before the first switch.
    pub(super) tick: bool,
    /// Something else interrupted, or the timer later.
    pub(super) interrupt: bool,
}

impl Seen {
    /// Is it what was asked for, with nothing else in it?
    pub(super) fn is(self, how: How) -> bool {
        let passage = match how {
            How::Involuntary | How::Yield => Passage::Direct { runnable: true },
            How::HandOff => Passage::Direct { runnable: false },
        };
        let expires = how == How::Involuntary;
        self.passage == passage && self.tick == expires && !self.interrupt
    }
}

/// What the events inside each break say of it; `notes` in the order of time.
pub(super) fn judge<'a>(
    line: &'a Line,
    notes: &'a [Note],
    tids: &'a [Pid],
) -> impl Iterator<Item = (Break, Seen)> + 'a {
    let mut from = 0;
    line.breaks().map(move |of| {
        from += notes[from..].partition_point(|note| note.at < of.at);
        let inside = notes[from..].iter().take_while(|note| note.at <= of.until);
        let mut seen = Seen { passage: Passage::Unseen, tick: false, interrupt: false };
        for note in inside {
            match note.what {
                What::Switch { from, runnable, to } => {
                    let of_runners = tids.get(of.from as usize) == Some(&from)
                        && tids.get(of.to as usize) == Some(&to);
                    seen.passage = match seen.passage {
                        Passage::Unseen if of_runners => Passage::Direct { runnable },
                        _ => Passage::Others,
                    };
                }
                What::Timer if seen.passage == Passage::Unseen && !seen.tick => seen.tick = true,
                What::Timer | What::Interrupt => seen.interrupt = true,
            }
        }
        (of, seen)
    })
}

/// Events of the CPU in the parts with tracing, and how many of them lie inside breaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) events: u64,
    pub(super) in_breaks: u64,
}

impl Inside {
    /// Counts those of one part. They come from two traces, one after the other, and are put in order.
    pub(super) fn add(&mut self, line: &Line, events: &mut [Ticks]) {
        events.sort_unstable();
        // Breaks are in order and do not overlap: an instant that two of them share is in one.
        let mut from = 0;
        for of in line.breaks() {
            from += events[from..].partition_point(|at| *at < of.at);
            let within = events[from..].partition_point(|at| *at <= of.until);
            from += within;
            self.in_breaks += within as u64;
        }
        self.events += events.len() as u64;
    }
}

/// Interrupts of the timer.
pub(super) fn timers(notes: &[Note]) -> impl Iterator<Item = Ticks> + '_ {
    notes.iter().filter(|note| note.what == What::Timer).map(|note| note.at)
}

/// The period of the kernel's tick: as it was built, where that is known, or by a cluster of these
/// interrupts of the timer (rule R9). What else sets the timer makes distances between them that are no
/// tick's.
pub(super) fn tick_period(timers: &[Ticks], built: Option<u32>, rate: Hertz) -> Option<Nanos> {
    let found = || r9_period(timers, rate)?.tick_hz();
    let hz = built.filter(|hz| *hz > 0).or_else(found)?;
    Some(Nanos(Nanos::SECOND.0 / u64::from(hz)))
}

#[cfg(test)]
mod tests {
    use whylate_model::TicksDelta;

    use super::*;

    const A: Pid = Pid(10);
    const B: Pid = Pid(11);
    const OTHER: Pid = Pid(99);

    fn switch(at: u64, from: Pid, runnable: bool, to: Pid) -> Note {
        Note { at: Ticks(at), what: What::Switch { from, runnable, to } }
    }

    fn note(at: u64, what: What) -> Note {
        Note { at: Ticks(at), what }
    }

    /// One switch from A to B in 100 .. 200 with these events.
    fn seen(notes: &[Note]) -> Seen {
        let readings = [(0, vec![(Ticks(0), Ticks(100))]), (1, vec![(Ticks(200), Ticks(300))])];
        let line = Line::of(readings, Ticks(1_000), TicksDelta(0)).unwrap();
        judge(&line, notes, &[A, B]).next().unwrap().1
    }

    #[test]
    fn each_kind_of_switch_is_told_by_its_events() {
        let tick = note(110, What::Timer);
        let expired = seen(&[tick, switch(150, A, true, B)]);
        assert!(expired.is(How::Involuntary));
        assert!(!expired.is(How::Yield) && !expired.is(How::HandOff));
        let yielded = seen(&[switch(150, A, true, B)]);
        assert!(yielded.is(How::Yield) && !yielded.is(How::Involuntary));
        let handed = seen(&[switch(150, A, false, B)]);
        assert!(handed.is(How::HandOff) && !handed.is(How::Yield));
    }

    #[test]
    fn others_in_between_and_further_interrupts_contaminate() {
        let there = switch(140, A, true, OTHER);
        let back = switch(160, OTHER, false, B);
        assert_eq!(seen(&[there, back]).passage, Passage::Others);
        let handed = switch(150, A, false, B);
        for more in [note(120, What::Interrupt), note(170, What::Timer), note(120, What::Timer)] {
            let mut notes = vec![handed, more];
            notes.sort_by_key(|note| note.at);
            assert!(!seen(&notes).is(How::HandOff), "{more:?}");
        }
        let twice = [note(110, What::Timer), note(120, What::Timer), switch(150, A, true, B)];
        assert!(!seen(&twice).is(How::Involuntary));
    }

    #[test]
    fn events_outside_of_a_break_are_not_of_it() {
        let outside = [note(90, What::Timer), switch(95, A, true, B), note(250, What::Interrupt)];
        let seen = seen(&outside);
        assert_eq!((seen.passage, seen.tick, seen.interrupt), (Passage::Unseen, false, false));
        let readings = [(0, vec![(Ticks(0), Ticks(100)), (Ticks(200), Ticks(300))])];
        let line = Line::of(readings, Ticks(1_000), TicksDelta(0)).unwrap();
        let mut counted = Inside::default();
        counted.add(&line, &mut [90, 100, 150, 200, 250].map(Ticks));
        assert_eq!(counted, Inside { events: 5, in_breaks: 3 });
    }

    #[test]
    fn events_inside_breaks_are_never_more_than_there_are() {
        // A turn of a single reading: two breaks share an instant. Events of two traces are not in order.
        let turns = [(0, vec![(Ticks(0), Ticks(100))]), (1, vec![(Ticks(200), Ticks(200))])];
        let last = (2, vec![(Ticks(300), Ticks(400))]);
        let line = Line::of(turns.into_iter().chain([last]), Ticks(1_000), TicksDelta(0)).unwrap();
        let mut counted = Inside::default();
        counted.add(&line, &mut [150, 200, 300, 90, 120, 200, 500].map(Ticks));
        assert_eq!(counted, Inside { events: 7, in_breaks: 5 });
        counted.add(&line, &mut []);
        assert_eq!(counted.events, 7);
    }

    #[test]
    fn the_period_of_the_tick_is_the_kernel_s_whatever_else_sets_the_timer() {
        let notes = [note(5, What::Timer), note(7, What::Interrupt), note(45, What::Timer)];
        assert_eq!(timers(&notes).collect::<Vec<_>>(), [5, 45].map(Ticks));
        // A tick of 250 Hz, and a timer of something else each millisecond beside it.
        let ms = |ms: u64| Ticks(1_000_000 * ms);
        let rate = Hertz(1e9);
        let ticks: Vec<Ticks> = (0..500).map(|n| ms(4 * n)).collect();
        let mut both: Vec<Ticks> = (0..2_000).map(|n| Ticks(ms(n).0 + 300_000)).collect();
        both.extend(&ticks);
        both.sort_unstable();
        let period = Some(Nanos(4_000_000));
        assert_eq!(tick_period(&both, Some(250), rate), period);
        assert_eq!(tick_period(&ticks, None, rate), period);
        assert_eq!(tick_period(&[ms(1), ms(2)], None, rate), None, "two are no cluster");
    }
}
