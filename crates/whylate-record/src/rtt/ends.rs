//! The two ends of a flow: the client's port, and a reflector where none is there.

use std::fmt;
use std::net::Ipv4Addr;
use std::panic::resume_unwind;
use std::thread;

use whylate_host::watch::Watched;
use whylate_model::{CpuId, Nanos};
use whylate_net::lab::{Bed, Role};
use whylate_net::open_loop::Ended;
use whylate_net::{NetError, ReflectorProcess};
use whylate_port::open::{Client, Target as Place, Transport};
use whylate_port::options::Options;
use whylate_port::{Framing, Port, Setup, Wait};

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
    let (place, bed, reflector) = match &request.target {
        Target::At(place) => (place.clone(), None, None),
        Target::Own { cpu, bed } => {
            let (process, place) = reflector(request, *cpu, bed.as_ref())?;
            (place, bed.as_ref(), Some((process, *cpu)))
        }
    };
    let (transport, options) = (request.transport, Options::default());
    let client = Client { transport, target: place, from: None, options };
    let near = match bed {
        None => client.open(setup, framing)?,
        Some(bed) => inside(bed, || Ok(client.open(setup, framing)?))?,
    };
    Ok(Ends { near, reflector })
}

/// A socket belongs to the namespace that it was made in, whoever uses it afterwards.
fn inside<T: Send>(
    bed: &Bed,
    make: impl FnOnce() -> Result<T, RecordError> + Send,
) -> Result<T, RecordError> {
    let entered = || {
        bed.enter(Role::Client)?;
        make()
    };
    thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Starts this program as the other end; where it listens.
fn reflector(
    request: &Request,
    cpu: CpuId,
    bed: Option<&Bed>,
) -> Result<(ReflectorProcess, Place), RecordError> {
    let path = std::env::temp_dir().join(format!("whylate-rtt-{}", std::process::id()));
    let listen = match (request.transport, bed) {
        (Transport::Unix, _) => path.display().to_string(),
        (_, None) => format!("{}:0", Ipv4Addr::LOCALHOST),
        (_, Some(_)) => format!("{}:0", Bed::address(Role::Server)),
    };
    // One socket is waited for in the same way as the client's; many connections cannot be.
    let wait = match request.transport {
        Transport::Tcp if !request.wait.takes_many_sockets() => Wait::Epoll,
        _ => request.wait,
    };
    let mut words = vec!["reflect".to_owned(), "--once".to_owned(), "--no-dma-latency".to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("--listen", listen);
    option("--port", request.transport.to_string());
    option("--wait", wait.to_string());
    option("--protocol", request.protocol.to_string());
    option("--cpu", cpu.to_string());
    option("--idle", "30s".to_owned());
    if let Some(bed) = bed {
        option("--bed", bed.name().to_owned());
    }
    let (process, said) = ReflectorProcess::spawn_listening(&request.program, words, cpu)?;
    let place = match request.transport {
        Transport::Unix => Place::Path(path),
        Transport::Udp | Transport::Tcp => {
            let Ok(address) = said.parse() else {
                let exe = request.program.clone();
                return Err(NetError::NotListening { exe, said }.into());
            };
            Place::Address(address)
        }
    };
    Ok((process, place))
}
