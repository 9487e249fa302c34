//! A forwarder's run directory: what became of frames, how long they stayed, second by second.

use std::sync::atomic::AtomicBool;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::directory::RunDir;
use whylate_model::forward::Forward;
use whylate_model::run::{ClockFacts, RunState};
use whylate_model::settings::Settings;
use whylate_net::forward::Times;

use super::sums::Sums;
use super::{ForwardRequest, THREAD, threads};
use crate::progress::Progress;
use crate::service::{self, Account, Asked, Circumstances, Page, Recording, Service, placed};
use crate::workbench::Need;
use crate::{RecordError, Recorded, summary};

/// Forwards as [`run`](super::run) does, and records into `directory`.
///
/// # Errors
/// As `run`, or the run directory cannot be written.
pub fn record(
    request: &ForwardRequest,
    asked: &Asked,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let need = Need {
        measured: request.cpus.clone(),
        hold_idle_states: request.hold_dma_latency,
        real_time: request.fifo.is_some(),
        ..Need::default()
    };
    service::record(
        (asked, directory),
        &need,
        progress,
        |bench, _| Sums::new(request, bench.rate),
        |recording, progress| forward(recording, request, stop, progress),
    )
}

/// Forwards until it is to end.
fn forward(
    recording: &mut Recording<'_, Sums<'_>>,
    request: &ForwardRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), RecordError> {
    let (crew, taker) = recording.crew(request.open_histograms(), Times::touched);
    let journal = recording.bench.journal.clone();
    let work = || threads::work(request, (&crew, Some(&journal)), stop);
    recording.attend(&taker, THREAD, work, progress)
}

impl Service for Sums<'_> {
    fn has_account(&self) -> bool {
        self.have_told()
    }

    fn page(&mut self, state: RunState, clock: &ClockFacts) -> Page {
        let series = self.series(HardwareCounter::KIND, clock.resolution_ns);
        let forward = self.told(Circumstances::of_run(state, clock));
        Page {
            settings: settings(self.request, &forward),
            drifts: summary::not_stationary(&series),
            series,
            account: Some(Account::Forward(Box::new(forward))),
            ..Page::default()
        }
    }
}

fn settings(request: &ForwardRequest, forward: &Forward) -> Settings {
    Settings::from([
        ("forwarder".to_owned(), placed(&request.cpus, request.fifo)),
        ("ports".to_owned(), request.plan.interfaces.join(" and ").into()),
        ("carried by".to_owned(), forward.backend.clone().into()),
        ("waiting by".to_owned(), forward.wait.clone().into()),
        ("stamps".to_owned(), forward.stamps.clone().into()),
        ("work for each frame".to_owned(), forward.work.into()),
    ])
}
