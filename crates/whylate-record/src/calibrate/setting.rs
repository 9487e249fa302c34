//! Where a calibration is made: two beds for its time, a CPU for the line and one for the client.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_host::cpus::Opposite;
use whylate_model::calibration_parts::PartOf;
use whylate_model::lab::BedKind;
use whylate_model::settings::{Setting as Told, Settings};
use whylate_model::{CpuId, Nanos};
use whylate_net::NetError;
use whylate_net::lab::{self, Bed, Borrowed};
use whylate_port::Transport;
use whylate_sys::affinity;

use super::Request;
use super::part::{Left, Line, Plan, Site};
use super::planted::{Plant, Tail};
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
        let Site { line_cpu, line_port, .. } = &self.site;
        settings(request, (*line_cpu, *line_port), common_pps)
    }
}

/// Settings as used, with a delay line on this CPU by this port.
fn settings(
    request: &Request,
    (line_cpu, line_port): (CpuId, Transport),
    common_pps: f64,
) -> Settings {
    let planted = match request.plant {
        None => [None, None],
        Some(Plant::Bias(by)) => [Some(("planted bias", by.into())), None],
        Some(Plant::Tail(Tail { one_in, by })) => {
            [Some(("planted tail", by.into())), Some(("planted in one of", one_in.into()))]
        }
    };
    let entries: [(_, Told); 10] = [
        ("client", vec![request.client_cpu].into()),
        ("delay line", vec![line_cpu].into()),
        ("delay line by", line_port.to_string().into()),
        ("delays", request.delays.clone().into()),
        ("duration", request.duration.into()),
        ("rate", Told::RatePerS(common_pps)),
        ("runs", request.runs.into()),
        ("size", Told::SizeBytes(request.bytes as u64)),
        ("tolerance", request.tolerance.into()),
        ("warm-up", request.warmup.into()),
    ];
    let all = entries.into_iter().chain(planted.into_iter().flatten());
    all.map(|(name, value)| (name.to_owned(), value)).collect()
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use whylate_model::settings::unfit;

    use super::*;

    #[test]
    fn settings_of_a_calibration_are_values_and_its_delays_and_its_rate_are_whole() {
        let mut request = Request {
            program: PathBuf::new(),
            backends: Vec::new(),
            delays: vec![Nanos(1_234_567), Nanos(0)],
            per_second: 2e3,
            bytes: 64,
            runs: 3,
            duration: Nanos::SECOND,
            warmup: Nanos(1),
            tolerance: Nanos(2),
            line_port: None,
            line_cpu: None,
            client_cpu: CpuId(1),
            hold_idle_states: false,
            plant: None,
            foreign: None,
            command_line: Vec::new(),
            seed: 1,
        };
        let of = |request: &Request| settings(request, (CpuId(0), Transport::Xdp), 1_999.971);
        let told = of(&request);
        assert_eq!(unfit(&told), [""; 0]);
        assert_eq!(told["client"], vec![CpuId(1)].into());
        assert_eq!(told["delay line"], vec![CpuId(0)].into());
        assert_eq!(told["delays"], vec![Nanos(1_234_567), Nanos(0)].into());
        assert_eq!(told["rate"], Told::RatePerS(1_999.971));
        assert_eq!(told["size"], Told::SizeBytes(64));
        request.plant = Some(Plant::Tail(Tail { one_in: 100, by: Nanos(20_000) }));
        let told = of(&request);
        assert_eq!(unfit(&told), [""; 0]);
        assert_eq!(told["planted tail"], Nanos(20_000).into());
        assert_eq!(told["planted in one of"], 100_u64.into());
        request.plant = Some(Plant::Bias(Nanos(100)));
        assert_eq!(of(&request)["planted bias"], Nanos(100).into());
    }
}
