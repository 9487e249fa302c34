//! The recording of a box: rounds of measurements by processes of their own, and what is told of them.

mod ports;
mod rates;
mod told;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_clock::Counter;
use whylate_host::configuration::Applied;
use whylate_host::cpus;
use whylate_host::topology::Topology;
use whylate_model::device::{Device, by_direction};
use whylate_model::directory::RunDir;
use whylate_model::flow::Direction;
use whylate_model::run::Run;
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Ticks};
use whylate_stats::Histogram;
use whylate_stats::sample::{Blocks, counts};
use whylate_sys::affinity;

use super::configured::{self, ReadBack};
use super::errors;
use super::fan_in;
use super::judge::{Ledger, Place};
use super::outcome::DeviceError;
use super::place::{Missing, Places, Standing};
use super::plan::{Slot, Turn, turns};
use super::question::Question;
use super::seen::{self, SeenWay, WAYS};
use super::the_box::TheBox;
use super::words::Client;
use crate::child::Program;
use crate::progress::{Progress, Step};
use crate::storage::{Limits, Storage};
use crate::workbench::{Need, Workbench};
use crate::{RecordError, Recorded};

/// Where the runs of the processes that measured lie, below the run's own directory.
const PARTS: &str = "parts";
/// What a measurement takes beside its own time: to start both processes, and to end them.
const AROUND: Nanos = Nanos(2_500_000_000);
/// A process of a measurement is ended after so long beyond its own time.
const PATIENCE: Duration = Duration::from_secs(60);
/// A measurement that failed is made again so often: a machine may be busy for once.
const TRIES: u32 = 2;
/// Doubts of measurements that are told, each kind once.
const MOST_DOUBTS: usize = 5;

/// Measures into `directory` until all rounds are over or `stop` is set.
///
/// # Errors
/// What cannot be measured here, by name; a box that could not be measured twice in a row.
pub fn record(
    question: &Question,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let undo = directory.undo();
    let recorded = possible(question).and_then(|(question, refused)| {
        Recording::begin(&question, refused, directory, stop)
            .and_then(|mut recording| recording.measure(progress).map(|()| recording))
            .and_then(Recording::conclude)
    });
    if recorded.is_err() {
        undo.remove();
    }
    recorded
}

/// The question without what this host cannot have, and why it cannot.
fn possible(question: &Question) -> Result<(Question, Vec<String>), RecordError> {
    question.check()?;
    if let Some(fan_in) = &question.fan_in {
        fan_in::are_here(fan_in)?;
    }
    let (configurations, refused) = configured::possible(question)?;
    let topology = Topology::read(Path::new("/"))?;
    let allowed = cpus::allowed(&topology)?;
    let housekeeping = question.beside_both(&topology, &allowed, &affinity::get())?;
    Ok((Question { configurations, housekeeping, ..question.clone() }, refused))
}

struct Recording<'a> {
    question: &'a Question,
    stop: &'a AtomicBool,
    bench: Workbench,
    storage: Storage,
    places: Places<'a>,
    parts: PathBuf,
    began: Ticks,
    /// Processes of measurements so far.
    made: u32,
    ledger: Ledger,
    read_back: ReadBack,
    device: Device,
    doubts: Vec<String>,
    warnings: Vec<Warning>,
}

/// What one measurement left.
struct Left {
    client: RunDir,
    run: Run,
    /// The run of the box, or of the delay line, where it is a process of ours.
    own: Option<PathBuf>,
    /// Somebody else changed what was in force meanwhile.
    is_changed: bool,
}

impl<'a> Recording<'a> {
    fn begin(
        question: &'a Question,
        refused: Vec<String>,
        directory: RunDir,
        stop: &'a AtomicBool,
    ) -> Result<Self, RecordError> {
        let need = Need {
            measured: vec![question.client_cpu],
            housekeeping: question.housekeeping.clone(),
            hold_idle_states: question.hold_idle_states,
            real_time: false,
        };
        let mut bench = Workbench::set_up(&need)?;
        let parts = directory.path().join(PARTS);
        let places = Places::set_up(question, &bench.journal, bench.allowed())?;
        let storage = Storage::open(directory, bench.observer.epoch(), Limits::default())?;
        let began = bench.counter.read();
        let mut notes = refused;
        if let Some(line) = &question.line {
            let [near, far] = &line.client;
            notes.push(format!(
                "lower bounds hold as far as {near} and {far} are cards like those of the box: what they add \
                 was measured of them"
            ));
        }
        let device = Device { notes, ..told::described(question, &places) };
        Ok(Self {
            question,
            stop,
            bench,
            storage,
            places,
            parts,
            began,
            made: 0,
            ledger: Ledger::default(),
            read_back: ReadBack::default(),
            device,
            doubts: Vec::new(),
            warnings: Vec::new(),
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sizes of the frames, each once.
    fn sizes(&self) -> Vec<u32> {
        let mut sizes = self.question.sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// About how long it takes in all.
    fn about(&self) -> Nanos {
        let (question, sizes) = (self.question, self.sizes().len() as u64);
        let slots = self.places.slots().len() as u64;
        let each = question.duration.0 + question.warmup.0 + AROUND.0;
        let rounds = u64::from(question.rounds) * slots * sizes * each;
        let searches = question
            .throughput
            .map_or(0, |of| sizes * (u64::from(of.trials) + 1) * (of.duration.0 + AROUND.0));
        let shares = question.fan_in.as_ref().map_or(0, |of| fan_in::about(of).0);
        Nanos(rounds + searches * question.configurations.len().max(1) as u64 + shares)
    }

    fn elapsed(&mut self) -> Nanos {
        self.bench.counter.read().since(self.began).to_nanos(self.bench.rate)
    }

    fn measure(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        let (about, question) = (self.about(), self.question);
        progress.say(&format!("measuring {} takes about {about}", question.the_box));
        self.bench.measurement_begins();
        self.look_at_line()?;
        let (sizes, mut slots) = (self.sizes(), self.places.slots());
        for round in 0..question.rounds {
            if self.is_stopped() {
                break;
            }
            self.device.order.push(Vec::new());
            for turn in turns(&slots, &sizes, question.seed, round) {
                if self.is_stopped() {
                    break;
                }
                if !slots.contains(&turn.slot) {
                    continue;
                }
                self.note(turn);
                self.step(turn, round, about, progress);
                if let Err(error) = self.turn(turn, round) {
                    self.failed(turn, &error, &mut slots)?;
                }
            }
        }
        if let Some(searching) = question.throughput {
            self.throughput(searching, about, progress)?;
        }
        if let Some(fan_in) = &question.fan_in {
            let ground = fan_in::Ground {
                journal: &self.bench.journal,
                allowed: self.bench.allowed(),
                stop: self.stop,
            };
            let (shares, notes) = fan_in::measure(fan_in, ground, progress)?;
            self.device.fan_in = shares;
            self.device.notes.extend(notes);
        }
        self.bench.measurement_ends();
        Ok(())
    }

    fn note(&mut self, turn: Turn) {
        let what = format!("{} {}", self.name(turn.slot), turn.frame_bytes);
        if let Some(round) = self.device.order.last_mut() {
            round.push(what);
        }
    }

    fn step(&mut self, turn: Turn, round: u32, about: Nanos, progress: &mut dyn Progress) {
        let elapsed = self.elapsed();
        let what = format!(
            "{}, {} bytes, round {} of {}",
            self.name(turn.slot),
            turn.frame_bytes,
            round + 1,
            self.question.rounds
        );
        let so_far = String::new();
        progress.step(&Step { what, elapsed, duration: about.max(elapsed), so_far });
    }

    /// What stands between the ports, in words.
    fn name(&self, slot: Slot) -> String {
        let what = match slot {
            Slot::Link(_) => "bare link".to_owned(),
            Slot::Line(_) => "delay line".to_owned(),
            Slot::Boxed(_) => self.question.the_box.to_string(),
        };
        match self.question.configurations.get(slot.configuration()) {
            Some(of) => format!("{what} {}", of.name()),
            None => what,
        }
    }

    /// Without the box there is nothing to tell; what else fails is left out from then on, and told.
    fn failed(
        &mut self,
        turn: Turn,
        error: &RecordError,
        slots: &mut Vec<Slot>,
    ) -> Result<(), RecordError> {
        if self.is_stopped() {
            return Ok(());
        }
        let what = format!("{} with {} bytes", self.name(turn.slot), turn.frame_bytes);
        let why = error.to_string();
        if matches!(turn.slot, Slot::Boxed(_)) {
            return Err(RecordError::Device(DeviceError::NotMeasured { what, why }));
        }
        slots.retain(|slot| *slot != turn.slot);
        let missing = format!("no {} from then on: {why}", self.name(turn.slot));
        self.device.notes.push(missing.clone());
        let configuration = Some(turn.slot.configuration());
        self.places.missing.push(Missing { configuration, why: missing });
        Ok(())
    }

    /// One measurement, made again where it failed for once.
    fn turn(&mut self, turn: Turn, round: u32) -> Result<(), RecordError> {
        let question = self.question;
        let (logs, is_line) = (self.is_joined(turn.slot), matches!(turn.slot, Slot::Line(_)));
        let seed = question.seed.wrapping_add(u64::from(round));
        let mut tries = 0;
        let left = loop {
            let started = self.elapsed();
            match self.once(turn, logs, seed) {
                Ok(left) => break (left, started),
                Err(error) if tries + 1 == TRIES || self.is_stopped() => return Err(error),
                Err(_) => tries += 1,
            }
        };
        let (left, started) = left;
        if self.is_stopped() {
            return Ok(());
        }
        if left.is_changed {
            // Of no configuration that was asked for: what is left has fewer runs.
            let what = format!("{} with {} bytes", self.name(turn.slot), turn.frame_bytes);
            self.read_back.leave_out(what);
            return Ok(());
        }
        let ways = seen::client(&left.client, &left.run)?;
        self.keep(turn, &ways, started);
        self.doubt(turn, &left.run);
        if let Some(own) = &left.own {
            let own = RunDir::open(own)?;
            if is_line {
                self.errors(turn, &left, &own)?;
            } else if logs {
                self.truths(turn, &left, &own)?;
            } else {
                self.residence(turn, &left, &own)?;
            }
        }
        self.ledger.take(turn.slot, turn.frame_bytes, ways);
        Ok(())
    }

    /// Is what the client logs joined with the log of a delay line?
    fn is_joined(&self, slot: Slot) -> bool {
        match slot {
            Slot::Line(_) => true,
            Slot::Boxed(_) => matches!(self.question.the_box, TheBox::Delay(_)),
            Slot::Link(_) => false,
        }
    }

    /// A directory for the runs of the next measurement.
    fn next_place(&mut self, what: &str) -> Result<PathBuf, RecordError> {
        self.made += 1;
        let place = self.parts.join(format!("{:04}-{what}", self.made));
        std::fs::create_dir_all(&place).map_err(|why| {
            RecordError::Device(DeviceError::Files {
                what: format!("make {}", place.display()),
                why,
            })
        })?;
        Ok(place)
    }

    fn once(&mut self, turn: Turn, logged: bool, seed: u64) -> Result<Left, RecordError> {
        let question = self.question;
        let Turn { slot, frame_bytes } = turn;
        let what = format!("{}-{frame_bytes}", slug(&self.name(slot)));
        let place = self.next_place(&what)?;
        let took = Nanos(question.duration.0 + question.warmup.0);
        let standing = self.stand(slot, &place, took)?;
        let client = Client {
            through: self.places.through(slot)?,
            frame_bytes,
            per_second: question.rate.per_second(frame_bytes),
            duration: question.duration,
            warmup: question.warmup,
            both_ways: true,
            logged,
            seed,
        };
        let words = client.words(question);
        let (client, run, is_changed) =
            self.run_client(slot, &standing, &words, &place.join("client"), took)?;
        let own = standing.end()?;
        Ok(Left { client, run, own, is_changed })
    }

    /// Starts what stands between the ports, which ends by itself some time after so long.
    fn stand(&self, slot: Slot, place: &Path, took: Nanos) -> Result<Standing, RecordError> {
        let patience = u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        let most = Nanos(took.0.saturating_add(patience));
        self.places.start(slot, &place.join("box"), most, self.stop)
    }

    /// Runs the client, with the slot's configuration in force meanwhile. Whether somebody else changed that
    /// is told beside what it left.
    fn run_client(
        &mut self,
        slot: Slot,
        standing: &Standing,
        words: &str,
        into: &Path,
        took: Nanos,
    ) -> Result<(RunDir, Run, bool), RecordError> {
        let question = self.question;
        let pid = standing.pid();
        let applied = configured::in_force(question, slot, pid, &self.bench.journal)?;
        let of_box = applied.as_ref().map_or(&[][..], Applied::cpus);
        let program = Program::whylate(&question.program, words)
            .into_directory(into)
            .on(&configured::beside(self.bench.allowed(), of_box));
        let most = Duration::from_nanos(took.0) + PATIENCE;
        let ended = program.run(self.stop, Some(most));
        let is_changed = applied.as_ref().is_some_and(|of| self.read_back.take(slot, of));
        drop(applied);
        ended?.recorded()?;
        self.bench.sample();
        let directory = RunDir::open(into)?;
        let run = directory.read_run()?;
        Ok((directory, run, is_changed))
    }

    /// Puts what came of the box into the run's own log, where curves are drawn from.
    fn keep(&mut self, turn: Turn, ways: &[SeenWay], started: Nanos) {
        if !matches!(turn.slot, Slot::Boxed(_)) {
            return;
        }
        for way in ways {
            let place = place(turn, way.direction);
            let name = series_name(self.question, place);
            self.storage.interval(&name, &way.values, started, self.question.duration);
        }
    }

    fn doubt(&mut self, turn: Turn, run: &Run) {
        for reason in seen::doubts(run).iter().map(|reason| by_direction(reason)) {
            let known = self.doubts.iter().any(|known| known.ends_with(reason.as_str()));
            if !known && self.doubts.len() < MOST_DOUBTS {
                self.doubts.push(format!(
                    "through {}, {} bytes: {reason}",
                    self.name(turn.slot),
                    turn.frame_bytes
                ));
            }
        }
    }

    fn errors(&mut self, turn: Turn, left: &Left, line: &RunDir) -> Result<(), RecordError> {
        let mut found: [Vec<i64>; 2] = [Vec::new(), Vec::new()];
        let met = errors::joined((&left.client, &left.run), line, |frame| {
            found[usize::from(frame.direction == Direction::Back)].push(frame.error_ns);
        })?;
        let without: u64 = met.iter().map(|of| of.without_truth + of.too_early).sum();
        if without > 0 && self.doubts.len() < MOST_DOUBTS {
            self.doubts.push(format!(
                "{without} frames of {} bytes came through the delay line without a truth of their own: they \
                 are in no error",
                turn.frame_bytes
            ));
        }
        for ((way, errors), met) in WAYS.into_iter().zip(&found).zip(&met) {
            if !errors.is_empty() {
                let of = self.ledger.errors.entry(place(turn, way)).or_default();
                of.take(errors, met.never_had());
            }
        }
        Ok(())
    }

    /// What a delay line that is the box wrote down of the frames that were measured, and no others.
    fn truths(&mut self, turn: Turn, left: &Left, own: &RunDir) -> Result<(), RecordError> {
        let mut found = [Histogram::new(), Histogram::new()];
        errors::joined((&left.client, &left.run), own, |frame| {
            found[usize::from(frame.direction == Direction::Back)].record(frame.truth_ns);
        })?;
        for (way, values) in WAYS.into_iter().zip(&found) {
            let mut blocks = Blocks::new(1);
            blocks.add(0.0, 1.0, &counts(values));
            self.own(turn, way, values, blocks);
        }
        Ok(())
    }

    fn residence(&mut self, turn: Turn, left: &Left, own: &RunDir) -> Result<(), RecordError> {
        let run = own.read_run()?;
        let Some(found) = seen::residence((own, &run), &left.run)? else {
            let what = self.name(turn.slot);
            let doubt =
                format!("when the client of {what} measured is not known: its log is left out");
            if !self.doubts.contains(&doubt) && self.doubts.len() < MOST_DOUBTS {
                self.doubts.push(doubt);
            }
            return Ok(());
        };
        for (way, (values, blocks)) in WAYS.into_iter().zip(found) {
            self.own(turn, way, &values, blocks);
        }
        Ok(())
    }

    fn own(&mut self, turn: Turn, way: Direction, values: &Histogram, blocks: Blocks) {
        if !values.is_empty() {
            self.ledger.own.entry(place(turn, way)).or_default().push(blocks, values);
        }
    }
}

/// What the series of the box at one place is called.
fn series_name(question: &Question, place: Place) -> String {
    let configuration = question.configurations.get(place.slot.configuration());
    let configuration = configuration.map(|of| format!("{}-", slug(of.name())));
    let way = if place.back { "back" } else { "there" };
    format!("box-{}{}-{way}", configuration.unwrap_or_default(), place.frame_bytes)
}

fn place(turn: Turn, way: Direction) -> Place {
    let Turn { slot, frame_bytes } = turn;
    Place { slot, frame_bytes, back: way == Direction::Back }
}

/// Words as a part of a name of a file or a series.
fn slug(words: &str) -> String {
    words.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
