//! Where a calibration is made: two beds for its time, a CPU for the line and one for the client.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_host::cpus::Opposite;
use whylate_model::calibration_parts::PartOf;
use whylate_model::lab::BedKind;
use whylate_model::settings::Settings;
use whylate_model::{CpuId, Nanos};
use whylate_net::NetError;
use whylate_net::lab::{self, Bed, Borrowed};
use whylate_port::Transport;
use whylate_sys::affinity;

use super::Request;
use super::part::{Left, Line, Plan, Site};
use super::planted::Plant;
use crate::RecordError;
use crate::progress::Progress;
use crate::workbench::{Need, Workbench};

/// Ports of the line that are tried where none was named, the quicker one first.
const LINE_PORTS: [Transport; 2] = [Transport::Xdp, Transport::Packet];

/// A line that is only tried ends by itself after so long.
const TRIED: Duration = Duration::from_secs(60);

/// Beds, CPUs and the workbench of a calibration.
pub(super) struct Setting<'a> {
    open: Borrowed,
    direct: Borrowed,
    pub(super) site: Site<'a>,
    /// A line of this port has come up already: what fails now is no fault of the port.
    proved: bool,
    pub(super) bench: Workbench,
}

impl<'a> Setting<'a> {
    pub(super) fn set_up(
        request: &'a Request,
        directory: &Path,
        stop: &'a AtomicBool,
    ) -> Result<Self, RecordError> {
        let allowed = affinity::get();
        let client_cpu = request.client_cpu;
        if allowed.len() < 2 {
            return Err(RecordError::NotCalibrated(
                "the line and the client each need a CPU of their own that they need not share, and \
                 this process may use one only"
                    .to_owned(),
            ));
        }
        let need = Need {
            measured: request.line_cpu.into_iter().chain([client_cpu]).collect(),
            housekeeping: None,
            hold_idle_states: request.hold_idle_states,
            real_time: false,
        };
        let bench = Workbench::set_up(&need)?;
        let line_cpu = request.line_cpu.or_else(|| another(&bench, client_cpu));
        let line_cpu = line_cpu.filter(|line| *line != client_cpu).ok_or_else(|| {
            RecordError::NotCalibrated(format!("there is no other CPU than CPU {client_cpu}"))
        })?;
        let [open, direct] = ["", "-d"].map(|end| format!("cal-{}{end}", std::process::id()));
        let borrow = |name: &str, kind| {
            lab::borrow(&bench.journal, name, kind, NonZeroU32::MIN).map_err(refused)
        };
        let (open_bed, direct_bed) =
            (borrow(&open, BedKind::Open)?, borrow(&direct, BedKind::Direct)?);
        let site = Site {
            program: &request.program,
            path: directory.to_owned(),
            open,
            direct,
            line_cpu,
            client_cpu,
            line_port: request.line_port.unwrap_or(LINE_PORTS[0]),
            allowed,
            bytes: request.bytes,
            hold_idle_states: request.hold_idle_states,
            seed: request.seed,
            plant: request.plant.map(Plant::as_tail),
            stop,
        };
        let proved = request.line_port.is_some();
        Ok(Self { bench, site, proved, open: open_bed, direct: direct_bed })
    }

    /// Measures a part.
    pub(super) fn measure(
        &mut self,
        plan: &Plan,
        progress: &mut dyn Progress,
    ) -> Result<Left, RecordError> {
        if let PartOf::Line { delay } = plan.between {
            self.prove(delay, progress)?;
        }
        self.site.measure(plan)
    }

    /// Where no port was named for the line, starts one once by the first of [`LINE_PORTS`], and takes the
    /// other where that fails.
    pub(super) fn prove(
        &mut self,
        delay: Nanos,
        progress: &mut dyn Progress,
    ) -> Result<(), RecordError> {
        if self.proved {
            return Ok(());
        }
        let place = self.site.path.join("line").join(self.site.line_port.to_string());
        let tried = self.site.line(delay, TRIED, &place).and_then(Line::end);
        if let Err(error) = tried {
            if self.site.stop.load(Ordering::Relaxed) {
                return Err(error);
            }
            let [first, other] = LINE_PORTS;
            progress.say(&format!("the delay line goes by {other}: by {first} it fails: {error}"));
            self.site.line_port = other;
        }
        self.proved = true;
        Ok(())
    }

    /// The bed that the line is in.
    pub(super) fn bed(&self) -> &Bed {
        self.open.bed()
    }

    /// The bed whose ends are back to back.
    pub(super) fn direct(&self) -> &Bed {
        self.direct.bed()
    }

    /// Settings as the run tells them.
    pub(super) fn told(&self, request: &Request, common_pps: f64) -> Settings {
        let site = &self.site;
        let delays: Vec<String> = request.delays.iter().map(ToString::to_string).collect();
        let mut told = Settings::from([
            ("client".to_owned(), format!("CPU {}", site.client_cpu).into()),
            (
                "delay line".to_owned(),
                format!("CPU {}, by {}", site.line_cpu, site.line_port).into(),
            ),
            ("delays".to_owned(), delays.join(", ").into()),
            ("duration".to_owned(), request.duration.into()),
            ("rate".to_owned(), format!("{common_pps:.0} messages a second").into()),
            ("runs".to_owned(), request.runs.into()),
            ("size".to_owned(), format!("{} bytes", request.bytes).into()),
            ("tolerance".to_owned(), request.tolerance.into()),
            ("warm-up".to_owned(), request.warmup.into()),
        ]);
        if let Some(plant) = request.plant {
            told.insert("PLANTED ON PURPOSE".to_owned(), plant.to_string().into());
        }
        told
    }
}

fn another(bench: &Workbench, cpu: CpuId) -> Option<CpuId> {
    bench.opposite(cpu).map(|other| match other {
        Opposite::OtherCore(cpu) | Opposite::Sibling(cpu) => cpu,
    })
}

/// Without the right to make a bed something is left, and is named.
fn refused(error: NetError) -> RecordError {
    match error {
        NetError::NoPrivilege(why) => RecordError::NotCalibrated(format!(
            "it makes network namespaces for the client and the delay line: {why}; without that \
             `whylate delay --proxy udp:127.0.0.1:4100=127.0.0.1:4021` holds datagrams back between \
             `whylate rtt 127.0.0.1:4100` and `whylate reflect --listen 127.0.0.1:4021`, which shows what \
             udp makes of a known delay"
        )),
        error => error.into(),
    }
}
