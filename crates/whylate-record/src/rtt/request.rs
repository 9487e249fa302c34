//! What is asked of a recording of requests and replies.

use std::net::SocketAddr;
use std::path::PathBuf;

use whylate_model::flow::Direction;
use whylate_model::{CpuId, Hertz, Nanos};
use whylate_net::schedule::{Arrivals, Plan};
use whylate_net::{Cookie, OpenLoop, Protocol, Speaks};
use whylate_port::open::Transport;
use whylate_port::{Options, Wait};

use super::breakdown::TakeApart;
use super::ends::Target;
use super::tail::Causes;
use crate::RecordError;
use crate::calibrate::planted::Tail;
use crate::intervals::Intervals;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The flows, each with a thread, a socket and another end of its own. The first is the one the
    /// question is about.
    pub flows: Vec<FlowRequest>,
    /// A request without a reply after this time is given up.
    pub timeout: Nanos,
    /// Discarded time before the measurement.
    pub warmup: Nanos,
    /// Time measured.
    pub duration: Nanos,
    /// How late the p99.9 of departures may be.
    pub tolerance: Nanos,
    /// CPUs of the recording's own thread, where the user chose some.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Lock all memory.
    pub lock_memory: bool,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// The question in one sentence.
    pub question: String,
    /// What is asked about slow requests of every flow that asks for replies.
    pub causes: Causes,
    /// What is asked about where requests spend their time; none where nothing is.
    pub take_apart: Option<TakeApart>,
    /// What is asked of the clients' sockets.
    pub options: Options,
    /// The clients' own address; none leaves the choice to the kernel, or to the interface.
    pub from: Option<SocketAddr>,
    /// Every request in the log, one by one.
    pub log_packets: bool,
    /// Histograms wait for no longer until they are stored, and a checkpoint with them.
    pub checkpoint: Nanos,
    /// Receptions that are stamped late on purpose, of a client that hears its messages itself.
    pub plant: Option<Tail>,
    /// This program: its command `reflect` is the reflector.
    pub program: PathBuf,
}

/// One flow of messages.
#[derive(Debug, Clone)]
pub struct FlowRequest {
    /// What it is called, also in the names of its series: letters, digits and `-`.
    pub name: String,
    /// The client's CPU.
    pub cpu: CpuId,
    /// The client's real-time priority, where it is to have one.
    pub fifo: Option<u8>,
    /// The other end.
    pub target: Target,
    /// From which end of the bed it is sent.
    pub direction: Direction,
    /// How messages go.
    pub transport: Transport,
    /// What both ends speak.
    pub protocol: Speaks,
    /// How the client waits for replies, and its own reflector for requests.
    pub wait: Wait,
    /// Bytes of a message.
    pub bytes: usize,
    /// The pattern of arrivals.
    pub arrivals: Arrivals,
    /// What is replayed, where it is a capture.
    pub replayed: Option<Replayed>,
    /// Messages per second.
    pub per_second: f64,
    /// Requests under way at most.
    pub most_under_way: Option<u64>,
    /// Nothing asks for a reply: the other end counts what comes.
    pub one_way: bool,
    /// How long resolving the target's name took, before the run, where it has one.
    pub resolved_in: Option<Nanos>,
}

/// A capture whose times are replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Its file.
    pub path: PathBuf,
    /// Packets in it.
    pub packets: usize,
    /// From the first to the last.
    pub lasts: Nanos,
    /// It ends in the middle of a packet, and what lies before that is replayed.
    pub was_cut: bool,
}

impl Request {
    /// Refuses what cannot be measured, before anything is touched.
    ///
    /// # Errors
    /// The first thing of it that cannot be measured.
    pub fn check(&self) -> Result<(), RecordError> {
        super::across::check(self)?;
        for (index, flow) in self.flows.iter().enumerate() {
            if self.flows[..index].iter().any(|other| other.name == flow.name) {
                let reason = "another flow has that name".to_owned();
                return Err(RecordError::Flow { flow: flow.name.clone(), reason });
            }
            flow.check()?;
            super::link::check(flow, &self.options, self.from)?;
            // The frequency is found out later, and nothing is refused for it.
            let settings = self.open_loop(flow, Hertz(1e9));
            settings.check(&*flow.speaks(Cookie::fresh()))?;
        }
        if let Some(asked) = &self.take_apart {
            asked.check(self)?;
        }
        self.shared_cpu()
    }

    /// Has the client both ports, and nobody else an end?
    pub(super) fn is_across(&self) -> bool {
        matches!(self.flows.first().map(|flow| &flow.target), Some(Target::Across(_)))
    }

    /// Does one thread send and receive both ways in turns?
    pub(super) fn takes_turns(&self) -> bool {
        self.is_across()
            && self.flows.len() == 2
            && self.flows.iter().all(|flow| !flow.wait.sleeps())
    }

    /// Width of the intervals whose times are kept apart.
    pub(super) fn interval(&self) -> Nanos {
        Intervals::width_for(self.duration)
    }

    pub(super) fn open_loop(&self, flow: &FlowRequest, rate: Hertz) -> OpenLoop {
        let (arrivals, per_second) = (flow.arrivals.clone(), flow.per_second);
        OpenLoop {
            plan: Plan { arrivals, per_second, seed: self.seed_of(flow) },
            bytes: flow.bytes,
            timeout: self.timeout,
            most_under_way: flow.most_under_way,
            one_way: flow.one_way,
            warmup: self.warmup,
            duration: self.duration,
            interval: self.interval(),
            rate,
        }
    }

    /// Two ways between the same ports are two processes, and no copies of each other.
    fn seed_of(&self, flow: &FlowRequest) -> u64 {
        let back = flow.direction == Direction::Back && self.is_across();
        self.seed.wrapping_add(u64::from(back))
    }

    /// Two threads that spin on one CPU take it from each other in slices of milliseconds.
    fn shared_cpu(&self) -> Result<(), RecordError> {
        if self.takes_turns() {
            return Ok(());
        }
        let mut busy: Vec<(CpuId, &str)> = Vec::new();
        for flow in self.flows.iter().filter(|flow| !flow.wait.sleeps()) {
            for cpu in [Some(flow.cpu), flow.target.cpu()].into_iter().flatten() {
                // On a host of one CPU the ends of one flow have no choice.
                let other = busy.iter().find(|(taken, by)| *taken == cpu && *by != flow.name);
                if let Some((_, other)) = other {
                    let reason = format!(
                        "it and the flow {other} both spin on CPU {cpu}: name another cpu or \
                         other-cpu, or let it wait=block"
                    );
                    return Err(RecordError::Flow { flow: flow.name.clone(), reason });
                }
                busy.push((cpu, &flow.name));
            }
        }
        Ok(())
    }

    /// CPUs that take part, each once, those of the first flow first.
    pub(super) fn cpus(&self) -> Vec<CpuId> {
        let mut cpus = Vec::new();
        for cpu in self.flows.iter().flat_map(|flow| [Some(flow.cpu), flow.target.cpu()]).flatten()
        {
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
        }
        cpus
    }
}

impl FlowRequest {
    /// Messages per second in the mean: those of the pattern, where it has distances of its own; 0 of
    /// a closed loop.
    pub(super) fn mean_rate(&self) -> f64 {
        let (arrivals, per_second) = (self.arrivals.clone(), self.per_second);
        Plan { arrivals, per_second, seed: 0 }.mean_rate()
    }

    /// Requests a second that it is expected to come to, whoever sets its pace.
    pub(super) fn expected_rate(&self) -> f64 {
        /// What a closed loop may come to.
        const CLOSED: f64 = 50_000.0;
        if self.arrivals == Arrivals::Closed { CLOSED } else { self.mean_rate() }
    }

    /// The protocol of its messages, with this cookie where it has any.
    pub(super) fn speaks(&self, cookie: Cookie) -> Box<dyn Protocol> {
        match self.target {
            Target::Across(_) => self.protocol.through(cookie),
            Target::Own { .. } | Target::At(_) => self.protocol.with(cookie),
        }
    }

    fn check(&self) -> Result<(), RecordError> {
        let refuse = |reason: &str| {
            Err(RecordError::Flow { flow: self.name.clone(), reason: reason.to_owned() })
        };
        let ours = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if self.name.is_empty() || self.name.len() > 32 || !self.name.bytes().all(ours) {
            return refuse("a name has 1 to 32 letters, digits and hyphens");
        }
        if self.one_way && self.arrivals == Arrivals::Closed {
            return refuse("a closed loop waits for replies: leave one-way out");
        }
        if self.most_under_way.is_some() && self.arrivals == Arrivals::Closed {
            return refuse("a closed loop has 1 request in flight: leave outstanding out");
        }
        match (self.direction, &self.target) {
            (Direction::Back, Target::At(_)) => {
                refuse("only the other machine can send from its end: run whylate rtt there")
            }
            (Direction::Back, Target::Own { bed: None, .. }) => refuse(
                "over loopback there is no server end to send from: use --bed lab (whylate lab up)",
            ),
            _ => Ok(()),
        }
    }
}
