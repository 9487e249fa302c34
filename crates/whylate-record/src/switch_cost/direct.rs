//! Times of context switches, kind by kind: without tracing, and once more with it.

use std::ffi::OsString;

use whylate_clock::HardwareCounter;
use whylate_model::host::Knob;
use whylate_model::series::{Definition, Series};
use whylate_model::switch_cost::{
    Between, Direct, DirectRow, How, KernelCount, Outcome, Tick, Traced,
};
use whylate_model::warning::Warning;
use whylate_model::{Hertz, Nanos, Pid, TicksDelta};
use whylate_stats::Histogram;
use whylate_threads::ThreadsError;
use whylate_threads::switch_cost::stitch::Line;
use whylate_threads::switch_cost::{self as instrument, Class, Crew, Ended, Seating, Trial, Work};

use super::attend::{Attendance, Notes, With, step};
use super::evidence::{self, Passage, Seen};
use super::{PRIORITY, Recording, needs_real_time, times};
use crate::intervals::Interval;
use crate::progress::Progress;
use crate::summary::{self, Description};

/// Runners of a kind of switch.
const TWO: u32 = 2;
/// CPU time after which a runner gives the CPU up.
const AFTER: Nanos = Nanos(100_000);
/// A delta above this is a gap: less than any switch takes, more than the loop.
const THRESHOLD: Nanos = Nanos(200);
/// Gaps of a runner beside its turns for which there is room, a second.
const GAPS_A_SECOND: u64 = 20_000;
/// Stretches of a runner at most: 64 MB.
const MOST_ROOM: u64 = 4_000_000;
/// Intervals of time of a series, or as many as there are repetitions.
const INTERVALS: u64 = 10;
/// Repetitions of each kind, at most, and the least time that one takes: some quanta.
const REPETITIONS: u64 = 10;
const LEAST: Nanos = Nanos(100_000_000);

const ROWS: [(Between, How); 6] = [
    (Between::Threads, How::Involuntary),
    (Between::Threads, How::Yield),
    (Between::Threads, How::HandOff),
    (Between::Processes, How::Involuntary),
    (Between::Processes, How::Yield),
    (Between::Processes, How::HandOff),
];

/// A part of a row.
struct Part {
    line: Line,
    over: Nanos,
    kernel: KernelCount,
    tids: Vec<Pid>,
    cut: Cut,
}

/// What ended a part before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Nothing, or who runs it.
    Not,
    /// A log of its runners was full.
    Log,
    /// The kernel's trace had more events than are kept.
    Trace,
}

impl Cut {
    fn warning(self, part: &str, over: Nanos) -> Option<Warning> {
        let reason = match self {
            Self::Not => return None,
            Self::Log => format!("there was room for {over} of it"),
            Self::Trace => format!("the kernel's trace of {over} has as many events as are kept"),
        };
        Some(Warning::PartEndedEarly { part: part.to_owned(), reason })
    }
}

impl Part {
    fn lengths(&self) -> Vec<TicksDelta> {
        self.line.switches().map(|of| of.length()).collect()
    }
}

/// What the parts of a row have come to so far.
struct Gathered {
    between: Between,
    how: How,
    parts: u64,
    lengths: Vec<TicksDelta>,
    turns: Vec<TicksDelta>,
    /// The cost to expect of each part that has one.
    medians: Vec<Nanos>,
    all: Histogram,
    intervals: Vec<Interval>,
    over: Nanos,
    kernel: KernelCount,
    /// Why the row has no numbers; one part without numbers is enough.
    refused: Option<String>,
}

impl Gathered {
    fn of(between: Between, how: How) -> Self {
        Self {
            between,
            how,
            parts: 0,
            lengths: Vec::new(),
            turns: Vec::new(),
            medians: Vec::new(),
            all: Histogram::new(),
            intervals: Vec::new(),
            over: Nanos(0),
            kernel: KernelCount::default(),
            refused: None,
        }
    }

    fn series(&self) -> String {
        format!("switch-{}-{}", self.between.name(), self.how.name())
    }

    /// None without a switch.
    fn measured(&self, rate: Hertz) -> Option<Direct> {
        let times = times::times(&self.lengths, None, rate)?;
        let quantum = match self.how {
            How::Involuntary => times::quantum(&self.turns, times.n, self.over, rate),
            How::Yield | How::HandOff => None,
        };
        let over = (self.parts > 1).then(|| times::over(&self.medians, times.cluster_median));
        Some(Direct {
            series: self.series(),
            runners: TWO,
            policy: class_of(self.how).to_string(),
            after: (self.how != How::Involuntary).then_some(AFTER),
            over: self.over,
            times,
            kernel: self.kernel,
            traced: None,
            quantum,
            repetitions: over,
        })
    }
}

/// Switches of a row by the kernel's events.
#[derive(Default)]
struct Judged {
    switches: Vec<(TicksDelta, Seen)>,
}

impl Judged {
    fn told(&self, how: How, rate: Hertz) -> Traced {
        let asked = self.switches.iter().filter(|(_, seen)| seen.is(how));
        let as_asked: Vec<TicksDelta> = asked.map(|(length, _)| *length).collect();
        let count = |is: fn(&Seen) -> bool| {
            self.switches.iter().filter(|(_, seen)| is(seen)).count() as u64
        };
        let contaminated = count(|seen| seen.interrupt || seen.passage == Passage::Others);
        Traced {
            times: times::times(&as_asked, Some(contaminated), rate),
            switches: self.switches.len() as u64,
            runnable: count(|seen| seen.passage == Passage::Direct { runnable: true }),
            sleeping: count(|seen| seen.passage == Passage::Direct { runnable: false }),
            with_tick: count(|seen| seen.tick),
            with_interrupt: count(|seen| seen.interrupt),
            with_others: count(|seen| seen.passage == Passage::Others),
            unseen: count(|seen| seen.passage == Passage::Unseen),
        }
    }
}

/// Why a part has no numbers.
#[derive(Debug, thiserror::Error)]
enum NoPart {
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    #[error(transparent)]
    Overlap(#[from] instrument::stitch::Overlap),
    #[error("there was no switch in {0}: give it longer (--duration)")]
    NoSwitch(Nanos),
}

impl Recording<'_> {
    /// All kinds of switches, `length` each, in repetitions that take turns: what drifts is in all of
    /// them, and how far repetitions differ is in the interval.
    pub(super) fn direct(&mut self, length: Nanos, progress: &mut dyn Progress) {
        // The numbers come from the part without tracing.
        let half = if self.request.trace { Nanos(length.0 / 2) } else { length };
        let repetitions = repetitions(half);
        let each = Nanos(half.0 / repetitions);
        let mut rows = ROWS.map(|(between, how)| Gathered::of(between, how));
        for index in turns(repetitions) {
            if self.is_stopped() {
                break;
            }
            let row = &mut rows[index];
            if row.refused.is_some() {
                continue;
            }
            match self.part((row.between, row.how), each, None, progress) {
                Ok(part) => self.gather(row, &part, INTERVALS.div_ceil(repetitions)),
                Err(no) => row.refused = Some(no.to_string()),
            }
            self.store(&rows);
        }
        if self.is_stopped() {
            return;
        }
        let Some(trace) = self.start_trace() else { return };
        let mut notes = Notes::new(trace, self.bench.rate, self.request.cpu);
        let mut seen = ROWS.map(|_| Judged::default());
        for index in turns(repetitions) {
            let (between, how) = ROWS[index];
            if !self.is_stopped() && self.found.measured(between, how).is_some() {
                self.traced(index, each, (&mut notes, &mut seen[index]), progress);
            }
        }
        let (mut facts, left) = notes.into_trace().finish();
        (facts.events_measured, facts.events_in_gaps) = (self.inside.events, self.inside.in_breaks);
        self.trace = Some(facts);
        self.warnings.extend(left);
        self.found.tick = self.tick();
        self.checkpoint();
    }

    /// A part has been held.
    fn gather(&mut self, row: &mut Gathered, part: &Part, intervals: u64) {
        let named = format!("{} of {}", row.how.name(), row.between.name());
        self.warnings.extend(part.cut.warning(&named, part.over));
        let lengths = part.lengths();
        let alone = times::times(&lengths, None, self.bench.rate);
        row.medians.extend(alone.and_then(|of| of.cluster_median));
        row.parts += 1;
        row.lengths.extend(lengths);
        row.turns.extend(part.line.turns());
        row.over.0 += part.over.0;
        row.kernel.voluntary += part.kernel.voluntary;
        row.kernel.involuntary += part.kernel.involuntary;
        self.log(row, part, intervals);
    }

    /// Makes rows of what was gathered so far.
    fn store(&mut self, rows: &[Gathered]) {
        (self.found.direct, self.series) = (Vec::new(), Vec::new());
        for row in rows {
            let outcome = match (&row.refused, row.measured(self.bench.rate)) {
                (Some(reason), _) => Outcome::Refused { reason: reason.clone() },
                (None, Some(direct)) => {
                    let series = self.series_of(row, &direct.series);
                    self.series.push(series);
                    Outcome::Measured(Box::new(direct))
                }
                (None, None) if row.parts == 0 || self.is_stopped() => continue,
                (None, None) => Outcome::Refused { reason: NoPart::NoSwitch(row.over).to_string() },
            };
            let (between, how) = (row.between, row.how);
            self.found.direct.push(DirectRow { between, how, outcome });
        }
        self.checkpoint();
    }

    /// A part of a row with the trace on; what cannot be had is left out, for its numbers are there.
    fn traced(
        &mut self,
        index: usize,
        length: Nanos,
        (notes, seen): (&mut Notes, &mut Judged),
        progress: &mut dyn Progress,
    ) {
        let (between, how) = ROWS[index];
        let named = format!("{} of {}, traced", how.name(), between.name());
        notes.clear();
        let part = match self.part((between, how), length, Some(notes), progress) {
            Ok(part) => part,
            Err(no) => {
                self.warnings.push(Warning::PartLeftOut { part: named, reason: no.to_string() });
                return;
            }
        };
        self.warnings.extend(part.cut.warning(&named, part.over));
        let judged: Vec<_> = evidence::judge(&part.line, &notes.kept, &part.tids).collect();
        self.inside.add(&part.line, &mut notes.events);
        let ticks = judged.iter().filter(|(of, seen)| {
            !of.changes_hands() && seen.tick && !seen.interrupt && seen.passage == Passage::Unseen
        });
        self.ticks.0.extend(ticks.map(|(of, _)| of.length()));
        self.ticks.1.extend(evidence::timers(&notes.kept));
        let switches = judged.into_iter().filter(|(of, _)| of.is_switch());
        seen.switches.extend(switches.map(|(of, seen)| (of.length(), seen)));
        let traced = seen.told(how, self.bench.rate);
        let same = |row: &&mut DirectRow| (row.between, row.how) == (between, how);
        if let Some(DirectRow { outcome: Outcome::Measured(direct), .. }) =
            self.found.direct.iter_mut().find(same)
        {
            direct.traced = Some(traced);
        }
    }

    /// Runs two runners of a kind for a while.
    fn part(
        &mut self,
        (between, how): (Between, How),
        length: Nanos,
        notes: Option<&mut Notes>,
        progress: &mut dyn Progress,
    ) -> Result<Part, NoPart> {
        let seating = Seating { cpu: self.request.cpu, class: class_of(how) };
        let room = room(how, length);
        let mut counter = self.bench.counter;
        let mut crew = match between {
            Between::Threads => Crew::of_threads(&counter, seating, TWO, room, Work::Nothing)?,
            Between::Processes => {
                let words = |runner: u32| -> Vec<OsString> {
                    let mut words = self.request.runner_words.clone();
                    words.push(runner.to_string().into());
                    words
                };
                Crew::of_processes(&self.program, &words, seating, TWO, room)?
            }
        };
        let trial = Trial {
            how: match how {
                How::Involuntary => instrument::How::Never,
                How::Yield => instrument::How::Yield,
                How::HandOff => instrument::How::HandOff,
            },
            active: (1 << TWO) - 1,
            quantum: (how != How::Involuntary).then_some(AFTER),
            threshold: THRESHOLD,
            length,
        };
        let so_far = if notes.is_some() { "with the kernel's trace" } else { "" };
        let what = format!("{}, {}", between.name(), how.name());
        let rate = self.bench.rate;
        let with = With {
            bench: &mut self.bench,
            notes,
            warnings: &mut self.warnings,
            stop: self.stop,
            progress,
        };
        let mut attendance =
            Attendance::begin(with, &crew.watched(), step(what, length, so_far.to_owned()));
        let Ended { begin, end, full, .. } =
            crew.hold(&trial, &mut counter, rate, &mut || attendance.look())?;
        let full_of_events = attendance.end(&mut counter);
        let cut = if full {
            Cut::Log
        } else if full_of_events {
            Cut::Trace
        } else {
            Cut::Not
        };
        let board = crew.board();
        let runners = 0..board.runners();
        let unseen = THRESHOLD.to_ticks(rate);
        let line = Line::of(runners.clone().map(|of| (of, board.stretches(of))), end, unseen)?;
        let mut kernel = KernelCount::default();
        for (voluntary, involuntary) in runners.clone().map(|of| board.switches(of)) {
            kernel.voluntary += voluntary;
            kernel.involuntary += involuntary;
        }
        let over = line.over().min(end.since(begin)).to_nanos(rate);
        let tids = runners.filter_map(|of| board.tid(of)).collect();
        Ok(Part { line, over, kernel, tids, cut })
    }

    /// The switches of a part, into the log by intervals of time.
    fn log(&mut self, row: &mut Gathered, part: &Part, intervals: u64) {
        let rate = self.bench.rate;
        let first = part.line.switches().next().map_or(self.begin, |of| of.at);
        let width = Nanos((part.over.0 / intervals).max(1));
        let mut by_interval = vec![Histogram::new(); intervals as usize];
        for of in part.line.switches() {
            let at = of.at.since(first).to_nanos(rate).0 / width.0;
            let interval = at.min(intervals - 1) as usize;
            by_interval[interval].record(of.length().to_nanos(rate).0);
        }
        let (name, offset) = (row.series(), first.since(self.begin).to_nanos(rate));
        for (number, histogram) in (0..).zip(by_interval) {
            let start = Nanos(offset.0 + width.0 * number);
            if !histogram.is_empty() {
                self.storage.interval(&name, &histogram, start, width);
            }
            row.intervals.push(Interval::of(&histogram));
            row.all.add(&histogram);
        }
    }

    /// All switches of a row as a series.
    fn series_of(&self, row: &Gathered, name: &str) -> Series {
        let description = Description {
            name: name.to_owned(),
            label: format!("switch, {}, {}", row.between.name(), row.how.name()),
            paper_row: None,
            from: "last reading of the runner before",
            to: "first reading of the next runner",
            clock: <HardwareCounter as whylate_clock::Counter>::KIND.to_owned(),
            definition: Definition::ContextSwitch,
            resolution_ns: self.bench.resolution_ns(),
            lost: 0,
        };
        summary::of_histogram(&row.all, &row.intervals, &description)
    }

    /// What a tick takes, from all ticks that switched to nobody.
    fn tick(&mut self) -> Option<Tick> {
        let (lengths, timers) = std::mem::take(&mut self.ticks);
        let (n, rate) = (lengths.len() as u64, self.bench.rate);
        let (cost, _) = times::median(lengths)?;
        let built = match self.bench.fingerprint.knobs.get("hz") {
            Some(Knob::Value(hz)) => hz.trim().parse().ok(),
            Some(Knob::Unknown) | None => None,
        };
        let period = evidence::tick_period(&timers, built, rate)?;
        Some(Tick { n, cost: cost.to_nanos(rate), period })
    }
}

fn class_of(how: How) -> Class {
    match how {
        _ if needs_real_time(how) => Class::Fifo(PRIORITY),
        How::HandOff => Class::Batch,
        How::Involuntary | How::Yield => Class::Ordinary,
    }
}

/// How often each kind is repeated in so much time.
fn repetitions(length: Nanos) -> u64 {
    (length.0 / LEAST.0).clamp(1, REPETITIONS)
}

/// The rows in the order of their turns: there and back again, so that a steady drift of the host
/// falls on all of them alike.
fn turns(repetitions: u64) -> impl Iterator<Item = usize> {
    let last = ROWS.len() - 1;
    (0..repetitions).flat_map(move |repetition| {
        (0..=last).map(move |at| if repetition % 2 == 0 { at } else { last - at })
    })
}

fn room(how: How, length: Nanos) -> usize {
    let turns = if how == How::Involuntary { 0 } else { length.0 / AFTER.0 };
    let gaps =
        (u128::from(length.0) * u128::from(GAPS_A_SECOND) / u128::from(Nanos::SECOND.0)) as u64;
    turns.saturating_add(gaps).saturating_add(1 << 12).min(MOST_ROOM) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_ended_early_says_what_cut_it_traced_or_not() {
        let over = Nanos(300_000_000);
        assert_eq!(Cut::Not.warning("yield of threads", over), None);
        for (cut, words) in [(Cut::Log, "room for 300ms"), (Cut::Trace, "as many events")] {
            let warning = cut.warning("yield of threads, traced", over).unwrap();
            assert!(warning.spoils_trust());
            let said = warning.to_string();
            assert!(said.contains(words) && said.contains("threads, traced"), "{said}");
        }
    }

    #[test]
    fn kinds_take_turns_there_and_back_and_short_parts_are_not_cut_to_pieces() {
        assert_eq!(turns(2).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0]);
        let of = |ms: u64| repetitions(Nanos(ms * 1_000_000));
        assert_eq!([of(1), of(250), of(500), of(60_000)], [1, 2, 5, REPETITIONS]);
    }

    #[test]
    fn a_row_of_repetitions_that_differ_has_their_interval_and_not_that_of_one_cluster() {
        let rate = Hertz(1e9);
        let mut row = Gathered::of(Between::Threads, How::Yield);
        assert!(row.measured(rate).is_none(), "nothing was switched yet");
        // Each as narrow as can be, but 2 000, 2 100 and 2 200 ns.
        for around in [2_000, 2_100, 2_200] {
            let lengths: Vec<TicksDelta> = (0..300).map(|n| TicksDelta(around + n % 10)).collect();
            row.medians.extend(times::times(&lengths, None, rate).unwrap().cluster_median);
            row.lengths.extend(lengths);
            row.parts += 1;
        }
        let direct = row.measured(rate).unwrap();
        assert_eq!(direct.repetitions.as_ref().unwrap().medians.len(), 3);
        let (low, high) = direct.times.cluster_interval.unwrap();
        let (from, to) = direct.interval().unwrap();
        assert!(to.0 - from.0 > 2 * (high.0 - low.0), "{low} .. {high} and {from} .. {to}");
        // Student's t of 2 degrees, 4.303, by 100 / sqrt(3).
        let half = (to.0 - from.0) / 2;
        assert!((245..=252).contains(&half), "{from} .. {to}");
        row.parts = 1;
        assert!(row.measured(rate).unwrap().repetitions.is_none());
    }
}
