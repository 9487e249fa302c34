//! Times of context switches, kind by kind: without tracing, and once more with it.

use std::ffi::OsString;

use whylate_clock::HardwareCounter;
use whylate_model::series::{Definition, Series};
use whylate_model::switch_cost::{
    Between, Direct, DirectRow, How, KernelCount, Outcome, Tick, Traced,
};
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Pid, TicksDelta};
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
/// Intervals of time of a series.
const INTERVALS: u64 = 10;

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
    /// All kinds of switches, `length` each.
    pub(super) fn direct(&mut self, length: Nanos, progress: &mut dyn Progress) {
        // The numbers come from the part without tracing.
        let half = if self.request.trace { Nanos(length.0 / 2) } else { length };
        for (between, how) in ROWS {
            if self.is_stopped() {
                return;
            }
            let outcome = match self.untraced(between, how, half, progress) {
                Ok(direct) => Outcome::Measured(Box::new(direct)),
                Err(NoPart::NoSwitch(_)) if self.is_stopped() => return,
                Err(no) => Outcome::Refused { reason: no.to_string() },
            };
            self.found.direct.push(DirectRow { between, how, outcome });
            self.checkpoint();
        }
        if self.is_stopped() {
            return;
        }
        let Some(trace) = self.start_trace() else { return };
        let mut notes = Notes::new(trace, self.bench.rate, self.request.cpu);
        for index in 0..self.found.direct.len() {
            if !self.is_stopped() {
                self.traced(index, half, &mut notes, progress);
            }
        }
        let (mut facts, left) = notes.into_trace().finish();
        facts.events_in_gaps = self.in_breaks;
        self.trace = Some(facts);
        self.warnings.extend(left);
        self.found.tick = self.tick();
        self.checkpoint();
    }

    fn untraced(
        &mut self,
        between: Between,
        how: How,
        length: Nanos,
        progress: &mut dyn Progress,
    ) -> Result<Direct, NoPart> {
        let part = self.part((between, how), length, None, progress)?;
        let rate = self.bench.rate;
        let lengths = part.lengths();
        let times = times::times(&lengths, None, rate).ok_or(NoPart::NoSwitch(part.over))?;
        let named = format!("{} of {}", how.name(), between.name());
        self.warnings.extend(part.cut.warning(&named, part.over));
        let series = self.series_of(between, how, &part);
        let name = series.name.clone();
        self.series.push(series);
        let quantum = match how {
            How::Involuntary => times::quantum(&part.line.turns(), times.n, part.over, rate),
            How::Yield | How::HandOff => None,
        };
        Ok(Direct {
            series: name,
            runners: TWO,
            policy: class_of(how).to_string(),
            after: (how != How::Involuntary).then_some(AFTER),
            over: part.over,
            times,
            kernel: part.kernel,
            traced: None,
            quantum,
        })
    }

    /// The same row with the trace on; what cannot be had is left out, for its numbers are there.
    fn traced(
        &mut self,
        index: usize,
        length: Nanos,
        notes: &mut Notes,
        progress: &mut dyn Progress,
    ) {
        let Some(DirectRow { between, how, outcome: Outcome::Measured(_) }) =
            self.found.direct.get(index)
        else {
            return;
        };
        let (between, how) = (*between, *how);
        notes.clear();
        let part = match self.part((between, how), length, Some(notes), progress) {
            Ok(part) => part,
            Err(no) => {
                self.warnings.push(Warning::PartLeftOut {
                    part: format!("{} of {}, traced", how.name(), between.name()),
                    reason: no.to_string(),
                });
                return;
            }
        };
        let named = format!("{} of {}, traced", how.name(), between.name());
        self.warnings.extend(part.cut.warning(&named, part.over));
        let judged: Vec<_> = evidence::judge(&part.line, &notes.kept, &part.tids).collect();
        self.in_breaks += evidence::inside(&part.line, &notes.events);
        let ticks = judged.iter().filter(|(of, seen)| {
            !of.changes_hands() && seen.tick && !seen.interrupt && seen.passage == Passage::Unseen
        });
        self.ticks.0.extend(ticks.map(|(of, _)| of.length()));
        self.ticks.1.extend(evidence::timer_distances(&notes.kept));
        let rate = self.bench.rate;
        let switches: Vec<(TicksDelta, Seen)> = judged
            .into_iter()
            .filter(|(of, _)| of.is_switch())
            .map(|(of, seen)| (of.length(), seen))
            .collect();
        let as_asked: Vec<TicksDelta> =
            switches.iter().filter(|(_, seen)| seen.is(how)).map(|(length, _)| *length).collect();
        let count =
            |is: fn(&Seen) -> bool| switches.iter().filter(|(_, seen)| is(seen)).count() as u64;
        let contaminated = count(|seen| seen.interrupt || seen.passage == Passage::Others);
        let traced = Traced {
            times: times::times(&as_asked, Some(contaminated), rate),
            switches: switches.len() as u64,
            runnable: count(|seen| seen.passage == Passage::Direct { runnable: true }),
            sleeping: count(|seen| seen.passage == Passage::Direct { runnable: false }),
            with_tick: count(|seen| seen.tick),
            with_interrupt: count(|seen| seen.interrupt),
            with_others: count(|seen| seen.passage == Passage::Others),
            unseen: count(|seen| seen.passage == Passage::Unseen),
        };
        if let Some(DirectRow { outcome: Outcome::Measured(direct), .. }) =
            self.found.direct.get_mut(index)
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
        let line = Line::of(runners.clone().map(|of| (of, board.stretches(of))), end)?;
        let mut kernel = KernelCount::default();
        for (voluntary, involuntary) in runners.clone().map(|of| board.switches(of)) {
            kernel.voluntary += voluntary;
            kernel.involuntary += involuntary;
        }
        let over = line.over().min(end.since(begin)).to_nanos(rate);
        let tids = runners.filter_map(|of| board.tid(of)).collect();
        Ok(Part { line, over, kernel, tids, cut })
    }

    /// All switches of a part, in the log by intervals of time.
    fn series_of(&mut self, between: Between, how: How, part: &Part) -> Series {
        let rate = self.bench.rate;
        let description = Description {
            name: format!("switch-{}-{}", between.name(), how.name()),
            label: format!("switch, {}, {}", between.name(), how.name()),
            paper_row: None,
            from: "last reading of the runner before",
            to: "first reading of the next runner",
            clock: <HardwareCounter as whylate_clock::Counter>::KIND.to_owned(),
            definition: Definition::ContextSwitch,
            resolution_ns: self.bench.resolution_ns(),
            lost: 0,
        };
        let first = part.line.switches().next().map_or(self.begin, |of| of.at);
        let width = Nanos((part.over.0 / INTERVALS).max(1));
        let mut by_interval = vec![Histogram::new(); INTERVALS as usize];
        for of in part.line.switches() {
            let at = of.at.since(first).to_nanos(rate).0 / width.0;
            let interval = at.min(INTERVALS - 1) as usize;
            by_interval[interval].record(of.length().to_nanos(rate).0);
        }
        let offset = first.since(self.begin).to_nanos(rate);
        let mut all = Histogram::new();
        for (number, histogram) in (0..).zip(&by_interval) {
            all.add(histogram);
            let start = Nanos(offset.0 + width.0 * number);
            if !histogram.is_empty() {
                self.storage.interval(&description.name, histogram, start, width);
            }
        }
        let intervals: Vec<Interval> = by_interval.iter().map(Interval::of).collect();
        let mut series = summary::of_histogram(&all, &intervals, &description);
        // The paper's classes and its signal-to-noise ratio are about noise: a switch takes what
        // it takes.
        (series.class, series.class_by, series.tail, series.snr) = (None, None, None, None);
        series
    }

    /// What a tick takes, from all ticks that switched to nobody.
    fn tick(&mut self) -> Option<Tick> {
        let (lengths, distances) = std::mem::take(&mut self.ticks);
        let n = lengths.len() as u64;
        let (cost, _) = times::median(lengths)?;
        let (period, _) = times::median(distances)?;
        let rate = self.bench.rate;
        Some(Tick { n, cost: cost.to_nanos(rate), period: period.to_nanos(rate) })
    }
}

fn class_of(how: How) -> Class {
    match how {
        _ if needs_real_time(how) => Class::Fifo(PRIORITY),
        How::HandOff => Class::Batch,
        How::Involuntary | How::Yield => Class::Ordinary,
    }
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
}
