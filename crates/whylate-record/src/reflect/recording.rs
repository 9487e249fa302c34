//! A server's run directory: what it did, how long requests stayed and at which distances came what
//! asks for no answer.
//!
//! Between two requests the serving thread hands over one interval's histograms after the other; it works
//! out no percentile and waits for nobody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::directory::RunDir;
use whylate_model::reflect::Reflected;
use whylate_model::run::{ClockFacts, RunState};
use whylate_model::series::{Definition, Series};
use whylate_model::settings::Settings;
use whylate_model::warning::Warning;
use whylate_model::{Hertz, Nanos};
use whylate_net::Serve;
use whylate_net::serve::{Circumstances, Intervals, Served, Tell, Times, serve_telling};
use whylate_threads::placement::Seat;

use super::{Opened, ReflectRequest, announcement, open};
use crate::kept::{INTERVAL, Kept};
use crate::progress::Progress;
use crate::service::{
    self, Account, Asked, Attended, Crew, Pace, Page, Recording, Service, Taker, placed,
};
use crate::storage::Storage;
use crate::summary::{self, Description};
use crate::workbench::Need;
use crate::{RecordError, Recorded, date_ns};

/// Intervals between two accounts: a checkpoint is written as often.
const ACCOUNT_EVERY: u64 = 10;
/// The thread's name, and when what it has told is looked for.
const THREAD: (&str, Pace) = ("reflector", Pace { every: Duration::from_millis(200), thorough: 1 });
/// Names of the series and their tags.
const RESIDENCE: &str = "reflect-residence";
const GAPS: &str = "reflect-gaps";

/// What the serving thread tells.
#[expect(clippy::large_enum_variant, reason = "one is sent a second; a box would be allocated")]
enum Told {
    /// It listens.
    Listening { announcement: String, seat: Seat, warnings: Vec<Warning> },
    /// An interval is over. Its histograms go back empty.
    Interval { index: u64, times: Times, so_far: Option<Box<Reflected>> },
}

/// Serves as [`run`](super::run) does, on a thread of its own, and records into `directory`.
///
/// # Errors
/// As `run`, or the run directory cannot be written.
pub fn record(
    request: &ReflectRequest,
    asked: &Asked,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let need = Need {
        measured: request.cpu.into_iter().collect(),
        hold_idle_states: request.hold_dma_latency,
        real_time: request.fifo.is_some(),
        ..Need::default()
    };
    service::record(
        (asked, directory),
        &need,
        progress,
        |bench, _| Server::new(request, bench.rate),
        |recording, progress| serve(recording, stop, progress),
    )
}

/// Serves until it is to end.
fn serve(
    recording: &mut Recording<'_, Server<'_>>,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), RecordError> {
    let (crew, taker) = recording.crew(1, Times::touched);
    let Server { request, since_ns, .. } = recording.service;
    let work = || work(request, since_ns, &crew, stop);
    let served = recording.attend(&taker, THREAD, work, progress)?;
    let lasted = recording.elapsed();
    recording.service.served = Some((served, lasted));
    Ok(())
}

/// What the serving thread told, added up.
struct Server<'a> {
    request: &'a ReflectRequest,
    since_ns: u64,
    seat: Option<Seat>,
    refused: Vec<Warning>,
    residence: Kept,
    gaps: Kept,
    intervals: u64,
    /// What it did so far.
    so_far: Option<Box<Reflected>>,
    /// What it left when it ended, and how long it listened.
    served: Option<(Served, Nanos)>,
}

impl<'a> Server<'a> {
    fn new(request: &'a ReflectRequest, rate: Hertz) -> Self {
        Self {
            request,
            since_ns: date_ns(),
            seat: None,
            refused: Vec::new(),
            residence: Kept::new(RESIDENCE, rate),
            gaps: Kept::new(GAPS, rate),
            intervals: 0,
            so_far: None,
            served: None,
        }
    }

    /// What it did: all of it where it has ended.
    fn told(&self, clock: &ClockFacts) -> Option<Box<Reflected>> {
        let Some((served, lasted)) = &self.served else { return self.so_far.clone() };
        Some(Box::new(served.told(Circumstances {
            protocol: &self.request.protocol.to_string(),
            cpu: self.request.cpu,
            since_ns: self.since_ns,
            hz: clock.hz,
            bound_ppm: clock.hz_bound_ppm,
            lasted: *lasted,
            warnings: Vec::new(),
        })))
    }

    /// The residence; none where no measured request was answered.
    fn residence_series(&self, resolution_ns: f64) -> Option<Series> {
        let description = Description {
            name: RESIDENCE.to_owned(),
            label: "residence".to_owned(),
            paper_row: None,
            from: "after the receiving system call",
            to: "before the sending one",
            clock: HardwareCounter::KIND.to_owned(),
            definition: Definition::Residence,
            resolution_ns,
            lost: 0,
        };
        self.residence.series(self.intervals, &description)
    }

    /// Distances of receptions; none where no client sent two messages that ask for no answer.
    fn gaps_series(&self, resolution_ns: f64) -> Option<Series> {
        let description = Description {
            name: GAPS.to_owned(),
            label: "receptions".to_owned(),
            paper_row: None,
            from: "after a receiving system call",
            to: "after that of the same client's next message",
            clock: HardwareCounter::KIND.to_owned(),
            definition: Definition::Receptions,
            resolution_ns,
            lost: 0,
        };
        self.gaps.series(self.intervals, &description)
    }

    fn settings(&self, reflected: Option<&Reflected>) -> Settings {
        let request = self.request;
        let mut settings = Settings::from([
            ("server".to_owned(), placed(request.cpu.as_slice(), request.fifo)),
            ("ends when idle for".to_owned(), request.idle.into()),
            ("protocol".to_owned(), request.protocol.to_string().into()),
        ]);
        if let Some(of) = reflected {
            settings.insert("listening at".to_owned(), of.listening.clone().into());
            settings.insert("waiting by".to_owned(), of.wait.clone().into());
            settings.insert("carried by".to_owned(), of.backend.clone().into());
        }
        if let Some((bed, role)) = &request.bed {
            settings.insert("bed".to_owned(), format!("{} ({role})", bed.name()).into());
        }
        settings
    }
}

impl Service for Server<'_> {
    fn has_account(&self) -> bool {
        self.so_far.is_some()
    }

    fn page(&mut self, _state: RunState, clock: &ClockFacts) -> Page {
        let residence = self.residence_series(clock.resolution_ns);
        let gaps = self.gaps_series(clock.resolution_ns);
        let reflected = self.told(clock);
        Page {
            settings: self.settings(reflected.as_deref()),
            // At which distances messages come is their senders' matter.
            drifts: summary::not_stationary(residence.as_slice()),
            series: residence.into_iter().chain(gaps).collect(),
            refused: self.refused.clone(),
            account: reflected.map(Account::Server),
        }
    }
}

impl Attended for Server<'_> {
    type Told = Told;
    type Times = Times;

    fn take(
        &mut self,
        taker: &Taker<Told, Times>,
        mut storage: Option<&mut Storage>,
        progress: &mut dyn Progress,
    ) {
        while let Some(told) = taker.heard() {
            match told {
                Told::Listening { announcement, seat, warnings } => {
                    progress.say(&announcement);
                    self.seat = Some(seat);
                    self.refused.extend(warnings);
                }
                Told::Interval { index, mut times, so_far } => {
                    self.intervals = self.intervals.max(index + 1);
                    self.residence.take(index, &times.residence, storage.as_deref_mut());
                    self.gaps.take(index, &times.gaps, storage.as_deref_mut());
                    times.clear();
                    taker.give_back(times);
                    self.so_far = so_far.or(self.so_far.take());
                }
            }
        }
    }

    fn seats(&self) -> &[Seat] {
        self.seat.as_slice()
    }
}

/// Serves on the calling thread, and tells what comes of it.
fn work(
    request: &ReflectRequest,
    since_ns: u64,
    crew: &Crew<Told, Times>,
    stop: &AtomicBool,
) -> Result<Served, RecordError> {
    crew.spread()?;
    let (mut counter, rate) = (crew.counter, crew.rate);
    let Opened { mut port, protocol, seat, warnings, .. } = open(request, counter, rate)?;
    let announcement = announcement(port.as_ref());
    crew.tell(Told::Listening { announcement, seat, warnings });
    let began = counter.read();
    let name = protocol.name();
    let mut hand_over = move |index: u64, times: &mut Times, served: &Served| {
        let so_far = index.is_multiple_of(ACCOUNT_EVERY).then(|| {
            Box::new(served.so_far(Circumstances {
                protocol: name,
                cpu: seat.cpu,
                since_ns,
                hz: rate,
                bound_ppm: 0.0,
                lasted: counter.read().since(began).to_nanos(rate),
                warnings: Vec::new(),
            }))
        });
        crew.tell(Told::Interval { index, times: crew.taken(times), so_far });
    };
    let intervals = Some(Intervals::new(&mut hand_over, INTERVAL, rate));
    let settings = Serve { idle: request.idle, once: request.once, rate };
    let mut go_on = || !stop.load(Ordering::Relaxed);
    let tell = Tell { stalls: None, intervals, visits: None };
    Ok(serve_telling(&mut port, &*protocol, settings, &mut go_on, tell)?)
}
