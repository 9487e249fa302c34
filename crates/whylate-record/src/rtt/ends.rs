//! The two ends of a flow: the client's port, and a reflector where none is there.

use std::fmt;

use whylate_host::watch::Watched;
use whylate_model::{CpuId, Nanos};
use whylate_net::ReflectorProcess;
use whylate_net::lab::{self, Bed};
use whylate_net::open_loop::Ended;
use whylate_port::open::{Client, Target as Place, Transport};
use whylate_port::options::Options;
use whylate_port::{Framing, Port, Setup, inherited, udp, unix};

use super::Request;
use crate::RecordError;
use crate::workbench::Workbench;

/// A reflector that was told that this is the end takes a moment to go.
const LEAVE_TAKING: Nanos = Nanos(500_000_000);

/// The other end of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A reflector that the recording starts on this CPU, over the loopback interface or through a
    /// bed.
    Own {
        /// Its CPU.
        cpu: CpuId,
        /// The bed.
        bed: Option<Bed>,
    },
    /// Whoever listens there.
    At(Place),
}

impl Target {
    /// The CPU of this host that the other end is known to use.
    #[must_use]
    pub fn cpu(&self) -> Option<CpuId> {
        match self {
            Self::Own { cpu, .. } => Some(*cpu),
            Self::At(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own { cpu, bed: None } => write!(f, "a reflector on CPU {cpu} over loopback"),
            Self::Own { cpu, bed: Some(bed) } => {
                write!(f, "a reflector on CPU {cpu} through the bed {}", bed.name())
            }
            Self::At(place) => place.fmt(f),
        }
    }
}

/// The client's port, and the reflector's process.
pub(super) struct Ends {
    pub(super) near: Box<dyn Port>,
    reflector: Option<(ReflectorProcess, CpuId)>,
}

impl Ends {
    /// What must stay where it is.
    pub(super) fn watched(&self) -> Vec<Watched> {
        let reflector = self.reflector.iter();
        reflector.map(|(of, cpu)| Watched { tid: of.pid(), cpus: vec![*cpu] }).collect()
    }

    /// Why the flow ended before its time; none when it did not.
    pub(super) fn cut_short(&mut self, why: &Ended, told_to_go: bool) -> Option<String> {
        let limit = if told_to_go { LEAVE_TAKING } else { Nanos(0) };
        let left = self.reflector.as_mut().and_then(|(of, _)| of.wait(limit).ok().flatten());
        let died = left.filter(|status| !status.success());
        let died = died.map(|status| format!("the reflector's process ended by {status}"));
        match (super::failure(why), died) {
            (Some(failure), Some(died)) => Some(format!("{died}; {failure}")),
            (failure, died) => failure.or(died),
        }
    }
}

pub(super) fn open(
    request: &Request,
    bench: &Workbench,
    framing: Framing,
) -> Result<Ends, RecordError> {
    let setup = Setup { counter: bench.counter, rate: bench.rate, wait: request.wait };
    let (cpu, bed) = match &request.target {
        Target::At(place) => {
            let (transport, target) = (request.transport, place.clone());
            let client = Client { transport, target, from: None, options: Options::default() };
            return Ok(Ends { near: client.open(setup, framing)?, reflector: None });
        }
        Target::Own { cpu, bed } => (*cpu, bed),
    };
    let (near, far) = match (request.transport, bed) {
        (Transport::Unix, _) => unix::pair()?,
        (Transport::Tcp, _) => return Err(RecordError::NoOwnReflector("tcp")),
        (Transport::Udp, None) => udp::loopback_pair(udp::Family::V4)?,
        (Transport::Udp, Some(bed)) => lab::udp_pair(bed)?,
    };
    let words = ["reflect-stdin".to_owned(), "--cpu".to_owned(), cpu.to_string()];
    let waiting = ["--wait".to_owned(), request.wait.to_string()];
    let words = words.into_iter().chain(waiting);
    let near = inherited::open(near, setup)?;
    let reflector = ReflectorProcess::spawn(&request.program, words, far, cpu)?;
    Ok(Ends { near, reflector: Some((reflector, cpu)) })
}
