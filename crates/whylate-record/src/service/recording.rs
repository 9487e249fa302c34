//! A service's run directory: what it did, readable while it goes on.

use std::path::Path;

use whylate_clock::Counter;
use whylate_clock::facts::RecordingCost;
use whylate_host::watch::{HostWatch, Watched};
use whylate_model::delay::DelayLine;
use whylate_model::directory::RunDir;
use whylate_model::forward::Forward;
use whylate_model::reflect::Reflected;
use whylate_model::run::{ClockFacts, Run, RunState};
use whylate_model::series::Series;
use whylate_model::settings::Settings;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Ticks};
use whylate_threads::placement::Seat;

use super::threads::{Look, attend, crew};
use super::{Asked, Attended, Crew, Pace, Service, Taker};
use crate::progress::Progress;
use crate::storage::{Limits, Storage};
use crate::verdict::{judged, unique};
use crate::workbench::{Need, Workbench};
use crate::{RecordError, Recorded};

/// What a service adds to its run.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) settings: Settings,
    pub(crate) series: Vec<Series>,
    /// What its threads asked for and did not get, where the account does not say.
    pub(crate) refused: Vec<Warning>,
    /// About series that changed while they were measured.
    pub(crate) drifts: Vec<Warning>,
    /// What it did; none where it has not told yet.
    pub(crate) account: Option<Account>,
}

/// What a service did. Warnings of an account are the run's, and all of the run's are the account's.
pub(crate) enum Account {
    Delay(Box<DelayLine>),
    Forward(Box<Forward>),
    Server(Box<Reflected>),
}

impl Account {
    fn warnings(&mut self) -> &mut Vec<Warning> {
        match self {
            Self::Delay(of) => &mut of.warnings,
            Self::Forward(of) => &mut of.warnings,
            Self::Server(of) => &mut of.warnings,
        }
    }

    fn put_into(self, run: &mut Run) {
        match self {
            Self::Delay(of) => run.delay = Some(of),
            Self::Forward(of) => run.forward = Some(of),
            Self::Server(of) => run.reflected = Some(of),
        }
    }
}

/// Records into `directory`: `service` is what stands on the workbench, `work` has it run until it ends. A
/// directory in which nothing was recorded is taken away again.
///
/// # Errors
/// It cannot be set up or written to, or what `work` says. What was done until the last checkpoint stays.
pub(crate) fn record<'a, S: Service>(
    (asked, directory): (&'a Asked, RunDir),
    need: &Need,
    progress: &mut dyn Progress,
    service: impl FnOnce(&Workbench, &mut dyn Progress) -> S,
    work: impl FnOnce(&mut Recording<'a, S>, &mut dyn Progress) -> Result<(), RecordError>,
) -> Result<Recorded, RecordError> {
    let undo = directory.undo();
    let mut recording = match Recording::begin((asked, directory), need, progress, service) {
        Ok(recording) => recording,
        Err(error) => {
            undo.remove();
            return Err(error);
        }
    };
    match work(&mut recording, progress) {
        Ok(()) => Ok(recording.conclude()),
        Err(error) => {
            if !recording.written {
                undo.remove();
            }
            Err(error)
        }
    }
}

/// A service and what its recording stands on.
pub(crate) struct Recording<'a, S> {
    pub(crate) service: S,
    pub(crate) bench: Workbench,
    storage: Storage,
    asked: &'a Asked,
    /// What was seen of the host meanwhile.
    warnings: Vec<Warning>,
    began: Ticks,
    written: bool,
}

impl<'a, S: Service> Recording<'a, S> {
    fn begin(
        (asked, directory): (&'a Asked, RunDir),
        need: &Need,
        progress: &mut dyn Progress,
        service: impl FnOnce(&Workbench, &mut dyn Progress) -> S,
    ) -> Result<Self, RecordError> {
        let mut bench = Workbench::set_up(need)?;
        let service = service(&bench, progress);
        let storage = Storage::open(directory, bench.observer.epoch(), Limits::default())?;
        let began = bench.counter.read();
        let (warnings, written) = (Vec::new(), false);
        Ok(Self { service, bench, storage, asked, warnings, began, written })
    }

    /// Writes what is there, if it is time.
    pub(crate) fn checkpoint(&mut self, elapsed: Nanos) {
        let due = self.storage.checkpoint_is_due(elapsed) || !self.written;
        if !due || !self.service.has_account() {
            return;
        }
        self.written = true;
        let clock = self.bench.clock_facts(RecordingCost::default());
        let mut run = self.run(RunState::Running, clock);
        self.storage.checkpoint(&mut run);
    }

    fn conclude(mut self) -> Recorded {
        let clock = self.bench.final_clock_facts(RecordingCost::default());
        self.storage.close();
        // To be told to end is how a service ends.
        let mut run = self.run(RunState::Complete, clock);
        self.storage.conclude(&mut run);
        Recorded { run }
    }

    fn run(&mut self, state: RunState, clock: ClockFacts) -> Run {
        let Page { settings, series, refused, drifts, mut account } =
            self.service.page(state, &clock);
        let mut warnings = refused;
        warnings.extend(self.warnings.iter().cloned());
        warnings.extend(self.bench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        warnings.extend(drifts);
        warnings.extend(clock.wall_clock_stepped());
        if let Some(account) = &mut account {
            warnings.append(account.warnings());
        }
        let warnings = unique(warnings);
        let asked = (&self.asked.command_line[..], &*self.asked.question, self.asked.seed);
        let beginning = self.bench.beginning(asked, state, clock);
        let mut run = Run {
            settings,
            evidence: self.bench.evidence(),
            series,
            warnings,
            segments: self.storage.segments(),
            ..Run::begun(beginning)
        };
        if let Some(mut account) = account {
            account.warnings().clone_from(&run.warnings);
            account.put_into(&mut run);
            run.settle_residences();
        }
        judged(run, None)
    }
}

impl<S: Attended> Recording<'_, S> {
    /// A crew that has so many histograms open at once.
    pub(crate) fn crew<M, T>(
        &self,
        open: usize,
        touched: impl Fn() -> T,
    ) -> (Crew<M, T>, Taker<M, T>) {
        let allowed = Some(self.bench.allowed().to_vec());
        crew((self.bench.counter, self.bench.rate), allowed, (open, touched))
    }

    /// Has a thread of this name do `work`, and attends to it until it ends.
    ///
    /// # Errors
    /// There is no thread to be had, or what `work` says.
    pub(crate) fn attend<W: Send>(
        &mut self,
        taker: &Taker<S::Told, S::Times>,
        thread: (&str, Pace),
        work: impl FnOnce() -> Result<W, RecordError> + Send,
        progress: &mut dyn Progress,
    ) -> Result<W, RecordError> {
        self.began = self.bench.counter.read();
        self.bench.measurement_begins();
        let mut watch = Watching::default();
        let done = attend(thread, work, |look| {
            self.service.take(taker, Some(&mut self.storage), progress);
            if look == Look::Brief {
                return;
            }
            for warning in watch.poll(self.service.seats()) {
                progress.say(&warning.to_string());
                self.warnings.push(warning);
            }
            if look == Look::Thorough {
                self.bench.sample();
                let elapsed = self.elapsed();
                self.checkpoint(elapsed);
            }
        })?;
        self.bench.measurement_ends();
        Ok(done)
    }

    /// Since the work began.
    pub(crate) fn elapsed(&mut self) -> Nanos {
        self.bench.counter.read().since(self.began).to_nanos(self.bench.rate)
    }
}

/// Looks whether the host changes under threads that were pinned.
#[derive(Default)]
struct Watching {
    watch: Option<HostWatch>,
    /// Threads that are watched.
    threads: usize,
}

impl Watching {
    fn poll(&mut self, seats: &[Seat]) -> Vec<Warning> {
        if seats.len() > self.threads {
            self.threads = seats.len();
            let pinned = seats.iter().filter_map(|seat| Some((seat.tid, seat.cpu?)));
            let (threads, cpus): (Vec<Watched>, Vec<CpuId>) =
                pinned.map(|(tid, cpu)| (Watched { tid, cpus: vec![cpu] }, cpu)).unzip();
            self.watch = Some(HostWatch::start(Path::new("/"), &cpus, &threads));
        }
        self.watch.as_mut().map(HostWatch::poll).unwrap_or_default()
    }
}
