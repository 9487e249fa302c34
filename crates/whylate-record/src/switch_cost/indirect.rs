//! What switches cost through the caches: pairs of trials, one runner against ten.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use whylate_host::caches;
use whylate_host::procfs::Steal;
use whylate_model::switch_cost::{
    Between, How as DirectHow, IndirectRow, ReadBandwidth, TimedPasses, Trials,
};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::rng::Rng;
use whylate_threads::switch_cost::stitch::Line;
use whylate_threads::switch_cost::{
    Class, Crew, How, Passes, Seating, Trial, Work, measure_bandwidth, measure_passes,
};

use super::attend::{Attendance, With, step};
use super::formula::{BREAKS_APART, Judged, Pairs, Worked, judge};
use super::refill::LevelSet;
use super::{Indirect, PRIORITY, Recording, TEN, breaks, growth, refill, times};
use crate::progress::Progress;

/// A busy thread alone is watched for so long for what a tick takes, and what takes longer than this
/// from it is a break: a tick of 100 Hz comes often enough, and every tick takes longer.
const WATCHED: Nanos = Nanos::SECOND;
const SHORTEST_BREAK: Nanos = Nanos(500);
/// Pairs tried for each that is wanted.
const TRIES: u32 = 3;
/// Rounds of passes that tell what filling the caches takes.
const ROUNDS: usize = 15;
/// Between two trials the CPU is left to others for this part of a trial, so that real-time
/// runners stay below what the kernel grants them.
const PAUSE_PART: u64 = 10;
/// A quantum of the kernel where none was measured.
const USUAL_QUANTUM: Nanos = Nanos(4_000_000);
/// Stretches of a runner beside its turns.
const SPARE_ROOM: u64 = 1 << 14;
/// The fewest good pairs that make an interval of a run that was stopped.
const FEWEST: usize = 2;

/// How trials are made.
pub(super) fn trials(asked: &Indirect) -> Trials {
    Trials {
        longest_break: breaks::longest(None),
        tick: None,
        quantum: asked.quantum,
        length: asked.length,
        runners: TEN,
        wanted: asked.trials,
        most: asked.trials.saturating_mul(TRIES),
        breaks_apart: BREAKS_APART,
    }
}

/// What a trial left, or that it could not be used.
struct Held {
    worked: Worked,
    turn: Option<Nanos>,
}

/// How the trials of a working set ended.
enum Ending {
    /// All that were wanted or allowed were held.
    Complete,
    /// The run was stopped.
    Stopped,
    /// A trial failed: what was held before is kept.
    Cut(String),
}

impl Recording<'_> {
    /// All working sets.
    pub(super) fn indirect(&mut self, asked: &Indirect, progress: &mut dyn Progress) {
        if self.is_stopped() {
            return;
        }
        let tick = self.found.tick.map(|tick| tick.cost).or_else(|| self.tick_alone(progress));
        if let Some(trials) = &mut self.found.trials {
            (trials.tick, trials.longest_break) = (tick, breaks::longest(tick));
        }
        let sets = refill::sets(&self.found.caches, caches::memory_available(Path::new("/")));
        self.found.bandwidths = sets.into_iter().map(|set| self.bandwidth(set)).collect();
        for bytes in self.sweep.sizes.clone() {
            if self.is_stopped() {
                return;
            }
            let row = match self.size(asked, bytes, progress) {
                Ok(row) => row,
                Err(reason) => refused(bytes, reason),
            };
            if row.tried > 0 || row.reason.is_some() {
                self.found.indirect.push(row);
            }
            self.found.growth = growth::of(&self.found.indirect, &self.found.caches);
            self.checkpoint();
        }
        let left_out = std::mem::take(&mut self.sweep.left_out);
        let left_out = left_out.into_iter().map(|(bytes, reason)| refused(bytes, reason));
        self.found.indirect.extend(left_out);
        self.found.growth = growth::of(&self.found.indirect, &self.found.caches);
    }

    /// What a tick takes from a busy thread, without a trace; none where that is not found.
    fn tick_alone(&mut self, progress: &mut dyn Progress) -> Option<Nanos> {
        let (mut counter, rate) = (self.bench.counter, self.bench.rate);
        let seating = Seating { cpu: self.request.cpu, class: Class::Ordinary };
        let room = SPARE_ROOM as usize;
        let mut crew = Crew::of_threads(&counter, seating, 1, room, Work::Nothing).ok()?;
        let trial = Trial {
            how: How::Never,
            active: 1,
            quantum: None,
            threshold: SHORTEST_BREAK,
            length: WATCHED,
        };
        let with = With {
            bench: &mut self.bench,
            notes: None,
            warnings: &mut self.warnings,
            stop: self.stop,
            progress,
        };
        let step = step("what a tick takes".to_owned(), WATCHED, String::new());
        let mut attendance = Attendance::begin(with, &crew.watched(), step);
        // A log that is full holds the breaks up to there.
        let ended = crew.hold(&trial, &mut counter, rate, &mut || attendance.look()).ok()?;
        attendance.end(&mut counter);
        let line = Line::of([(0, crew.board().stretches(0))], ended.end, TicksDelta(0)).ok()?;
        let found: Vec<(Ticks, TicksDelta)> =
            line.breaks().map(|of| (of.at, of.length())).collect();
        breaks::tick(&found, rate)
    }

    /// How fast a set is read from its level.
    fn bandwidth(&self, set: LevelSet) -> ReadBandwidth {
        let LevelSet { level, bytes, refused } = set;
        let none = |reason| ReadBandwidth {
            level,
            bytes,
            gb_per_s: None,
            pieces: 0,
            reason: Some(reason),
        };
        if let Some(reason) = refused {
            return none(reason);
        }
        let seating = Seating { cpu: self.request.cpu, class: Class::Ordinary };
        let stop = self.stop;
        let go_on = || !stop.load(Ordering::Relaxed);
        match measure_bandwidth(&self.bench.counter, seating, bytes as usize, &go_on) {
            Ok(Some(streamed)) => ReadBandwidth {
                level,
                bytes,
                gb_per_s: streamed.bytes_per_ns(self.bench.rate),
                pieces: streamed.pieces,
                reason: None,
            },
            Ok(None) => none("the run was stopped".to_owned()),
            Err(error) => none(error.to_string()),
        }
    }

    /// From which length on a break of the runners counts.
    fn longest_break(&self) -> Nanos {
        self.found.trials.map_or(breaks::longest(None), |trials| trials.longest_break)
    }

    /// How long a runner has the CPU at a time.
    fn turn(&self, asked: &Indirect) -> Nanos {
        let direct = self.found.measured(Between::Threads, DirectHow::Involuntary);
        let kernels = direct.and_then(|direct| direct.quantum).map(|quantum| quantum.median);
        asked.quantum.or(kernels).unwrap_or(USUAL_QUANTUM)
    }

    fn size(
        &mut self,
        asked: &Indirect,
        bytes: u64,
        progress: &mut dyn Progress,
    ) -> Result<IndirectRow, String> {
        let told = |error: whylate_threads::ThreadsError| error.to_string();
        let cpu = self.request.cpu;
        let (counter, stop) = (self.bench.counter, self.stop);
        let class = if asked.quantum.is_some() { Class::Fifo(PRIORITY) } else { Class::Ordinary };
        let seating = Seating { cpu, class };
        let go_on = || !stop.load(Ordering::Relaxed);
        let sets = (TEN as usize, bytes as usize);
        let turn = self.turn(asked);
        let rounds = (ROUNDS, turn.to_ticks(self.bench.rate));
        let passes = measure_passes(&counter, seating, sets, rounds, &go_on).map_err(told)?;
        let turns = asked.quantum.map_or(0, |quantum| asked.length.0 / quantum.0.max(1));
        let room = turns.saturating_add(SPARE_ROOM) as usize;
        let work = Work::Scan { bytes: bytes as usize };
        let mut crew = Crew::of_threads(&counter, seating, TEN, room, work).map_err(told)?;
        let mut row = refused(bytes, String::new());
        row.reason = None;
        let (mut pairs, mut turn, mut cut) = (Pairs::default(), asked.quantum, None);
        let mut rng = Rng::stream(self.request.seed, bytes);
        let most = trials(asked).most;
        while pairs.len() < asked.trials as usize && row.tried < most && !self.is_stopped() {
            let solo = row.tried % TEN;
            let (alone, together) = (1_u64 << solo, (1_u64 << TEN) - 1);
            let alone_first = rng.below(2) == 0;
            let order = if alone_first { [alone, together] } else { [together, alone] };
            let what = format!("{} KiB", bytes >> 10);
            let so_far = format!("{} of {} pairs", pairs.len(), asked.trials);
            let mut held = Vec::with_capacity(order.len());
            for active in order {
                let words = (what.clone(), so_far.clone());
                match self.trial((&mut crew, work), asked, active, words, progress) {
                    Ok(of) => held.extend(of),
                    Err(why) => cut = Some(why),
                }
                if cut.is_some() {
                    break;
                }
            }
            // A trial that was told to end, or failed, is no trial.
            let Ok([first, second]) = <[Held; 2]>::try_from(held) else { break };
            let (alone, together) = if alone_first { (first, second) } else { (second, first) };
            row.tried += 1;
            turn = turn.or(together.turn);
            match judge(&alone.worked, &together.worked, asked.length, Steal::unit_ns()) {
                Judged::Good(penalty) => pairs.add(penalty, alone.worked, together.worked),
                Judged::Discarded { by_host } => {
                    row.discarded += 1;
                    row.discarded_by_host += u32::from(by_host);
                }
                Judged::Empty => row.empty += 1,
            }
        }
        let ending = match cut {
            Some(why) => Ending::Cut(why),
            None if self.is_stopped() => Ending::Stopped,
            None => Ending::Complete,
        };
        conclude(&mut row, &pairs, asked.trials, &ending);
        let (caches, bandwidths) = (&self.found.caches, &self.found.bandwidths);
        row.refill = refill::predicted((bytes, TEN), turn, caches, bandwidths);
        row.passes = passes.map(|passes| timed(&passes, turn, self.bench.rate));
        Ok(row)
    }

    /// One trial; none where it was told to end.
    fn trial(
        &mut self,
        (crew, work): (&mut Crew, Work),
        asked: &Indirect,
        active: u64,
        (what, so_far): (String, String),
        progress: &mut dyn Progress,
    ) -> Result<Option<Held>, String> {
        let longest = self.longest_break();
        let trial = Trial {
            how: if asked.quantum.is_some() { How::Yield } else { How::Never },
            active,
            quantum: asked.quantum,
            threshold: longest,
            length: asked.length,
        };
        let (mut counter, rate) = (self.bench.counter, self.bench.rate);
        let with = With {
            bench: &mut self.bench,
            notes: None,
            warnings: &mut self.warnings,
            stop: self.stop,
            progress,
        };
        let mut attendance =
            Attendance::begin(with, &crew.watched(), step(what, asked.length, so_far));
        let steal = Steal::read(Path::new("/")).ok();
        let ended = crew
            .hold(&trial, &mut counter, rate, &mut || attendance.look())
            .map_err(|error| error.to_string())?;
        attendance.end(&mut counter);
        let cpus = [self.request.cpu];
        let stolen_ns = steal.zip(Steal::read(Path::new("/")).ok());
        let stolen_ns = stolen_ns.and_then(|(before, after)| before.delta_ns(&after, &cpus));
        if ended.told {
            return Ok(None);
        }
        if ended.full {
            return Err(
                "its runners had more gaps than there was room for: shorten --trial-time or \
                        lengthen --quantum"
                    .to_owned(),
            );
        }
        let board = crew.board();
        let runners = 0..board.runners();
        let of = runners.clone().filter(|runner| active >> runner & 1 == 1);
        let stretches = of.clone().map(|runner| (runner, board.stretches(runner)));
        let line = Line::of(stretches, ended.end, longest.to_ticks(rate))
            .map_err(|overlap| overlap.to_string())?;
        let taken = line.taken(ended.begin, longest.to_ticks(rate)).0 as f64;
        let worked = Worked {
            passes: of.map(|runner| work.passes(board.work(runner))).sum(),
            switches: line.changes() as u64,
            break_share: taken / ended.end.since(ended.begin).0.max(1) as f64,
            stolen_ns,
        };
        let turn = times::median(line.turns()).map(|(median, _)| median.to_nanos(rate));
        std::thread::sleep(Duration::from_nanos(asked.length.0 / PAUSE_PART));
        Ok(Some(Held { worked, turn }))
    }
}

fn refused(bytes: u64, reason: String) -> IndirectRow {
    IndirectRow {
        bytes,
        tried: 0,
        discarded: 0,
        discarded_by_host: 0,
        empty: 0,
        penalty: None,
        reason: Some(reason),
        refill: None,
        passes: None,
    }
}

/// The mean of what was held, and what is to be said of it.
fn conclude(row: &mut IndirectRow, pairs: &Pairs, wanted: u32, ending: &Ending) {
    let enough = if matches!(ending, Ending::Complete) { wanted as usize } else { FEWEST };
    row.penalty = if pairs.len() >= enough { pairs.penalty() } else { None };
    row.reason = reason(row, pairs.len(), wanted, ending);
}

/// Why a row has no number, why its number is not told from zero, and what cut it short.
fn reason(row: &IndirectRow, good: usize, wanted: u32, ending: &Ending) -> Option<String> {
    let cut = match ending {
        Ending::Cut(why) => Some(format!("cut short after {good} good pairs of {wanted}: {why}")),
        Ending::Stopped | Ending::Complete => None,
    };
    let Some(penalty) = &row.penalty else {
        return cut.or_else(|| {
            Some(match ending {
                Ending::Stopped => format!("stopped after {good} good pairs of {wanted}"),
                _ => format!(
                    "{good} good pairs of {wanted} in {} tries: {} discarded, for longer breaks \
                     took more of one trial than of the other ({} of these by the hypervisor), {} without \
                     a switch or a pass",
                    row.tried, row.discarded, row.discarded_by_host, row.empty
                ),
            })
        });
    };
    let (low, high) = penalty.interval_ns;
    let half = Nanos(((high - low) / 2.0).round() as u64);
    let scatter = (!penalty.is_shown()).then(|| {
        format!(
            "pairs scatter by more than the effect: the mean of {} is known to {half}; more \
             --trials would narrow it",
            penalty.pairs
        )
    });
    let said: Vec<String> = cut.into_iter().chain(scatter).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What timed passes differ by, as far as a runner comes in its turn.
fn timed(passes: &Passes, turn: Option<Nanos>, rate: Hertz) -> TimedPasses {
    let ns = |ticks: TicksDelta| ticks.0 as f64 * 1e9 / rate.0;
    let (warm_ns, cold_ns) = (ns(passes.warm), ns(passes.cold));
    let difference_ns = refill::reached(turn, cold_ns) * (cold_ns - warm_ns);
    TimedPasses { warm_ns, cold_ns, difference_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::switch_cost::Penalty;

    #[test]
    fn timed_passes_differ_as_far_as_a_turn_reaches() {
        let passes = Passes { warm: TicksDelta(2_000), cold: TicksDelta(6_000), rounds: 9 };
        let whole = timed(&passes, Some(Nanos(200_000)), Hertz(2e9));
        assert!((whole.difference_ns - 2_000.0).abs() < 1e-9, "{whole:?}");
        let part = timed(&passes, Some(Nanos(1_500)), Hertz(2e9));
        assert!((part.difference_ns - 1_000.0).abs() < 1e-9, "{part:?}");
    }

    #[test]
    fn a_row_says_why_it_has_no_number_or_none_that_is_told_from_zero() {
        let mut row = refused(4096, String::new());
        (row.tried, row.discarded, row.empty) = (45, 40, 1);
        let said = reason(&row, 4, 15, &Ending::Complete).unwrap();
        assert!(said.contains("4 good pairs of 15 in 45 tries: 40 discarded"), "{said}");
        assert!(reason(&row, 4, 15, &Ending::Stopped).unwrap().contains("stopped after 4"));
        let mut penalty = Penalty {
            pairs: 15,
            mean_ns: 100.0,
            interval_ns: (-400.0, 600.0),
            of_pairs_ns: Vec::new(),
            passes_alone: 1.0,
            passes_together: 1.0,
            switches: 1.0,
        };
        row.penalty = Some(penalty.clone());
        assert!(reason(&row, 15, 15, &Ending::Complete).unwrap().contains("known to 500ns"));
        penalty.interval_ns = (50.0, 150.0);
        row.penalty = Some(penalty);
        assert_eq!(reason(&row, 15, 15, &Ending::Complete), None);
    }

    #[test]
    fn a_trial_that_fails_costs_its_pair_and_keeps_those_before() {
        let worked = |passes| Worked { passes, switches: 100, break_share: 0.0, stolen_ns: None };
        let mut pairs = Pairs::default();
        let mut row = refused(4096, String::new());
        let cut = Ending::Cut("its log was full".to_owned());
        pairs.add(1_000.0, worked(100.0), worked(90.0));
        conclude(&mut row, &pairs, 15, &cut);
        let said = row.reason.as_deref().unwrap();
        assert!(said.contains("cut short after 1 good pairs of 15: its log was full"), "{said}");
        assert!(row.penalty.is_none(), "one has no interval");
        for penalty in [1_010.0, 990.0] {
            pairs.add(penalty, worked(100.0), worked(90.0));
        }
        conclude(&mut row, &pairs, 15, &cut);
        assert_eq!(row.penalty.as_ref().unwrap().pairs, 3);
        assert!(row.reason.as_deref().unwrap().contains("cut short after 3 good pairs of 15"));
        conclude(&mut row, &pairs, 15, &Ending::Complete);
        assert!(row.penalty.is_none(), "a whole row has all of its pairs");
    }
}
