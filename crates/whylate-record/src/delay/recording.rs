//! A delay line's run directory: the truth of each frame, what became of all of them, how late they left,
//! second by second.

use std::sync::atomic::AtomicBool;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::delay::DelayLine;
use whylate_model::directory::RunDir;
use whylate_model::run::{ClockFacts, RunState};
use whylate_model::settings::Settings;
use whylate_net::delay::Delayed;

use super::sums::Sums;
use super::threads::Work;
use super::{DelayRequest, THREAD, netem};
use crate::progress::Progress;
use crate::service::{self, Account, Asked, Circumstances, Page, Recording, Service, placed};
use crate::workbench::Need;
use crate::{RecordError, Recorded, summary};

/// Delays as [`run`](super::run) does, and records into `directory`.
///
/// # Errors
/// As `run`, or the run directory cannot be written.
pub fn record(
    request: &DelayRequest,
    asked: &Asked,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    if let Err(refused) = request.check() {
        directory.undo().remove();
        return Err(refused);
    }
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
        |bench, progress| Sums::new(request, bench.rate, netem::said(request, progress)),
        |recording, progress| delay(recording, request, stop, progress),
    )
}

/// Delays until it is to end.
fn delay(
    recording: &mut Recording<'_, Sums<'_>>,
    request: &DelayRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), RecordError> {
    let (crew, taker) = recording.crew(2, Delayed::touched);
    let journal = recording.bench.journal.clone();
    let shown = recording.service.shown();
    let line = Work { request, crew: &crew, journal: Some(&journal), shown };
    recording.attend(&taker, THREAD, || line.run(stop), progress)
}

impl Service for Sums<'_> {
    fn has_account(&self) -> bool {
        self.has_told()
    }

    fn page(&mut self, state: RunState, clock: &ClockFacts) -> Page {
        let series = self.series(HardwareCounter::KIND, clock.resolution_ns);
        let line = self.told(Circumstances::of_run(state, clock));
        Page {
            settings: settings(self, &line),
            drifts: summary::not_stationary(&series),
            series,
            account: Some(Account::Delay(Box::new(line))),
            ..Page::default()
        }
    }
}

fn settings(sums: &Sums<'_>, line: &DelayLine) -> Settings {
    let request = sums.request;
    let mut settings = Settings::from([
        ("delay line".to_owned(), placed(request.cpu.as_slice(), request.fifo)),
        ("ports".to_owned(), line.ports.join(" and ").into()),
        ("carried by".to_owned(), line.transport.clone().into()),
        ("waiting by".to_owned(), line.wait.clone().into()),
    ]);
    for (way, law) in ["there", "back"].into_iter().zip(request.laws()) {
        settings.insert(format!("law at the start, {way}"), law.to_string().into());
    }
    settings
}
