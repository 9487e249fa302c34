//! A part: a delay line and a client, each a process of its own, or a client alone back to back.
//!
//! The line is up before the client begins and is told to end after it. Both have a time of their own after
//! which they end by themselves, so that nothing spins on where this process dies.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use whylate_model::calibration_parts::PartOf;
use whylate_model::directory::RunDir;
use whylate_model::flow::Flow;
use whylate_model::run::Run;
use whylate_model::{CpuId, Nanos};
use whylate_net::lab::OPEN_PORTS;
use whylate_port::Transport;

use super::planted::Tail;
use crate::RecordError;
use crate::child::{ChildError, Program, Running};
use crate::rtt::backends::Backend;

/// What a child may take beyond its measurement: to start, to drain, to write down.
const SPARE: Duration = Duration::from_secs(60);
/// A line says that it is there, after it has measured itself.
const READY: Duration = Duration::from_secs(30);
/// A line that was told to end writes down what it has.
const ENDING: Duration = Duration::from_secs(30);
/// What a delay line says when it is there.
const DELAYING: &str = "delaying between";

/// Where parts are measured, and what is the same for all.
pub(super) struct Site<'a> {
    pub(super) program: &'a Path,
    /// The directory of the calibration.
    pub(super) path: PathBuf,
    /// Names of the beds: one left open for the line, one whose ends are back to back.
    pub(super) open: String,
    pub(super) direct: String,
    pub(super) line_cpu: CpuId,
    pub(super) client_cpu: CpuId,
    pub(super) line_port: Transport,
    /// CPUs that children may use: this process may have gone to some of them.
    pub(super) allowed: Vec<CpuId>,
    pub(super) bytes: usize,
    pub(super) hold_idle_states: bool,
    pub(super) seed: u64,
    /// What the client plants into its stamps behind the line.
    pub(super) plant: Option<Tail>,
    pub(super) stop: &'a AtomicBool,
}

/// One part.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) backend: Backend,
    pub(super) between: PartOf,
    pub(super) per_second: f64,
    pub(super) duration: Nanos,
    pub(super) warmup: Nanos,
    /// Below the directory of the calibration.
    pub(super) directory: String,
}

/// What a part left.
pub(super) struct Left {
    pub(super) client: (RunDir, Run),
    pub(super) line: Option<(RunDir, Run)>,
    pub(super) commands: Vec<String>,
}

/// A delay line that is up.
pub(super) struct Line {
    running: Running,
    directory: PathBuf,
    pub(super) command: String,
}

impl Left {
    /// The client's only flow.
    pub(super) fn flow(&self) -> Result<&Flow, ChildError> {
        self.client.1.flows.first().ok_or_else(|| ChildError {
            what: self.commands.last().cloned().unwrap_or_default(),
            why: "its run has no flow".to_owned(),
        })
    }

    /// Messages a second that were sent, and that came behind the line.
    pub(super) fn rates(&self) -> Result<(f64, f64), ChildError> {
        let flow = self.flow()?;
        let sent = flow.departures.per_second.unwrap_or(0.0);
        let came = flow.packets.received as f64 / flow.packets.sent.max(1) as f64;
        Ok((sent, sent * came))
    }
}

impl Site<'_> {
    /// Measures a part.
    pub(super) fn measure(&self, plan: &Plan) -> Result<Left, RecordError> {
        let place = self.path.join(&plan.directory);
        let line = match plan.between {
            PartOf::Line { delay } => Some(self.line(delay, time(plan), &place.join("line"))?),
            PartOf::BackToBack => None,
        };
        let mut commands: Vec<String> = line.iter().map(|line| line.command.clone()).collect();
        let directory = place.join("client");
        let words = self.client_words(plan);
        let client =
            Program::whylate(self.program, &words).into_directory(&directory).on(&self.allowed);
        commands.push(client.named().to_owned());
        let most = duration(plan.warmup) + duration(plan.duration) + SPARE;
        // Its line ends first, whatever became of it.
        let ended = client.run(self.stop, Some(most));
        let line = line.map(Line::end).transpose();
        ended?.recorded()?;
        let client = read(directory)?;
        Ok(Left { client, line: line?, commands })
    }

    /// A delay line that is up, for at most so long.
    pub(super) fn line(
        &self,
        delay: Nanos,
        most: Duration,
        directory: &Path,
    ) -> Result<Line, RecordError> {
        let program = Program::whylate(self.program, &self.line_words(delay, most))
            .into_directory(directory)
            .on(&self.allowed);
        let mut running = program.start()?;
        running.wait_for(DELAYING, self.stop, READY)?;
        let command = program.named().to_owned();
        Ok(Line { running, directory: directory.to_owned(), command })
    }

    fn line_words(&self, delay: Nanos, most: Duration) -> String {
        let Self { open, line_port, line_cpu, seed, .. } = self;
        let [first, second] = OPEN_PORTS;
        let (delay, seconds, idle) = (delay.0, most.as_secs(), self.idle());
        format!(
            "delay {first} {second} --bed {open} --transport {line_port} --delay {delay}ns --cpus {line_cpu} \
             --no-netem --seed {seed} --duration {seconds}s{idle}"
        )
    }

    fn client_words(&self, plan: &Plan) -> String {
        let Backend { transport, wait } = plan.backend;
        let (bed, plant) = match plan.between {
            PartOf::Line { .. } => (&self.open, self.plant),
            PartOf::BackToBack => (&self.direct, None),
        };
        let plant = plant.map(|tail| format!(" --plant-late {tail}")).unwrap_or_default();
        let (per_second, bytes, cpu, seed) =
            (plan.per_second, self.bytes, self.client_cpu, self.seed);
        let (duration, warmup, idle) = (plan.duration.0, plan.warmup.0, self.idle());
        format!(
            "rtt --bed {bed} --across --transport {transport} --wait {wait} --rate {per_second:.3}pps --size \
             {bytes} --duration {duration}ns --warmup {warmup}ns --cpus {cpu} --seed {seed} --no-trace \
             --log-packets{idle}{plant}"
        )
    }

    /// The word that leaves idle states as they are, where that is asked.
    pub(super) fn idle(&self) -> &'static str {
        if self.hold_idle_states { "" } else { " --no-dma-latency" }
    }
}

impl Line {
    /// Tells it to end; what it left.
    pub(super) fn end(self) -> Result<(RunDir, Run), RecordError> {
        self.running.end(ENDING)?.recorded()?;
        read(self.directory)
    }
}

/// How long the line of a part may be up.
fn time(plan: &Plan) -> Duration {
    duration(plan.warmup) + duration(plan.duration) + SPARE + SPARE
}

fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}

fn read(directory: PathBuf) -> Result<(RunDir, Run), RecordError> {
    let directory = RunDir::open(directory)?;
    let run = directory.read_run()?;
    Ok((directory, run))
}

#[cfg(test)]
mod tests {
    use whylate_port::Wait;

    use super::*;

    #[test]
    fn both_commands_name_bed_ports_cpus_and_times_exactly() {
        let stop = AtomicBool::new(false);
        let site = Site {
            program: Path::new("/usr/bin/whylate"),
            path: PathBuf::from("/runs/one"),
            open: "cal".to_owned(),
            direct: "cal-d".to_owned(),
            line_cpu: CpuId(0),
            client_cpu: CpuId(1),
            line_port: Transport::Packet,
            allowed: vec![CpuId(0), CpuId(1)],
            bytes: 64,
            hold_idle_states: true,
            seed: 7,
            plant: None,
            stop: &stop,
        };
        let words = site.line_words(Nanos(10_000), Duration::from_secs(125));
        assert_eq!(
            words,
            "delay to-client to-server --bed cal --transport packet --delay 10000ns --cpus 0 --no-netem --seed 7 \
             --duration 125s"
        );
        let plan = Plan {
            backend: Backend { transport: Transport::Xdp, wait: Wait::Spin },
            between: PartOf::BackToBack,
            per_second: 10_000.0,
            duration: Nanos(2_000_000_000),
            warmup: Nanos(300_000_000),
            directory: "parts/1".to_owned(),
        };
        let tail = Some(Tail { one_in: 2, by: Nanos(500) });
        let site = Site { hold_idle_states: false, plant: tail, ..site };
        // Nothing is planted into what is taken off.
        let words = site.client_words(&plan);
        assert_eq!(
            words,
            "rtt --bed cal-d --across --transport xdp --wait spin --rate 10000.000pps --size 64 --duration \
             2000000000ns --warmup 300000000ns --cpus 1 --seed 7 --no-trace --log-packets --no-dma-latency"
        );
        let through = Plan { between: PartOf::Line { delay: Nanos(10_000) }, ..plan };
        let words = site.client_words(&through);
        assert!(words.ends_with("--no-dma-latency --plant-late 1in2:500ns"), "{words}");
    }
}
