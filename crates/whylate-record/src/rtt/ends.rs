//! The two ends of a flow: the client's port, and a reflector where none is there.

use std::fmt;
use std::net::Ipv4Addr;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use whylate_host::calibrations::{self, Way};
use whylate_host::watch::Watched;
use whylate_model::flow::Direction;
use whylate_model::{CpuId, Nanos, Pid};
use whylate_net::lab::{Bed, Role};
use whylate_net::open_loop::Ended;
use whylate_net::process::ToldStalls;
use whylate_net::serve::visits::Visits;
use whylate_net::{NetError, ReflectorProcess};
use whylate_port::open::{Client, Target as Place, Transport};
use whylate_port::{FrameStamping, Framing, LinkOptions, Port, Setup, Wait};

use super::across::{self, OuterPorts};
use super::link;
use super::request::{FlowRequest, Request};
use super::tail::Reflecting;
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
    /// Nobody: what the client sends by one of these ports it hears itself at the other.
    Across(OuterPorts),
}

impl Target {
    /// The CPU of this host that the other end is known to use.
    #[must_use]
    pub fn cpu(&self) -> Option<CpuId> {
        match self {
            Self::Own { cpu, .. } => Some(*cpu),
            Self::At(_) | Self::Across(_) => None,
        }
    }

    /// What times of messages to it count, and over which path they go. What the path holds them back by
    /// is not known.
    pub(super) fn way(&self) -> Way {
        let over = match self {
            Self::Own { bed: None, .. } => "loopback".to_owned(),
            Self::Own { bed: Some(bed), .. } | Self::Across(OuterPorts::Bed(bed)) => {
                calibrations::over_bed(bed.kind())
            }
            Self::At(place) => format!("the way to {place}"),
            Self::Across(OuterPorts::Host { .. }) => "two ports of this machine".to_owned(),
        };
        let definition = match self {
            Self::Across(_) => "one-way",
            Self::Own { .. } | Self::At(_) => "rtt",
        };
        Way { definition: definition.to_owned(), over, delay: None }
    }
}

impl Target {
    /// Who and where it is, on whichever CPU.
    pub(super) fn place(&self) -> String {
        self.told("")
    }

    /// The same with its CPU behind the word that says who it is.
    fn told(&self, on_cpu: &str) -> String {
        match self {
            Self::Own { bed: None, .. } => format!("a reflector{on_cpu} over loopback"),
            Self::Own { bed: Some(bed), .. } => {
                format!("a reflector{on_cpu} through the bed {}", bed.name())
            }
            Self::At(place) => place.to_string(),
            Self::Across(ports) => ports.to_string(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_cpu = self.cpu().map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
        f.pad(&self.told(&on_cpu))
    }
}

/// What is to be told beside the messages: by a reflector that is started of itself, and by the client's
/// frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is told or not, by itself")]
pub(super) struct Wish {
    /// When it was kept from running.
    pub(super) stalls: bool,
    /// When it had each request, and answered it.
    pub(super) visits: bool,
    /// When the kernel took a request in for it, and sent its answer.
    pub(super) stamps: bool,
    /// When the client's frames came and left: their metadata (AF_XDP).
    pub(super) frames: bool,
}

/// The client's port, and the reflector's process.
pub(super) struct Ends {
    pub(super) near: Box<dyn Port>,
    reflector: Option<(ReflectorProcess, CpuId)>,
    told: Option<ToldStalls>,
    /// What the reflector tells of each request.
    pub(super) visits: Option<Visits>,
}

impl Ends {
    /// Of a client that needs nobody else.
    pub(super) fn alone(near: Box<dyn Port>) -> Self {
        Self { near, reflector: None, told: None, visits: None }
    }

    /// The reflector's process, where it was started here.
    pub(super) fn reflector(&self) -> Option<Pid> {
        self.reflector.as_ref().map(|(of, _)| of.pid())
    }

    /// What the reflector tells of itself, for whoever looks at it.
    pub(super) fn reflecting(&mut self) -> Option<Reflecting> {
        let told = self.told.take();
        self.reflector.as_ref().map(|(of, cpu)| Reflecting { pid: of.pid(), cpu: *cpu, told })
    }

    /// The client's port, and the reflector's process, where it was started here.
    pub(super) fn halves(&mut self) -> (&mut dyn Port, Option<&ReflectorProcess>) {
        (&mut *self.near, self.reflector.as_ref().map(|(of, _)| of))
    }

    /// What must stay where it is.
    pub(super) fn watched(&self) -> Vec<Watched> {
        let reflector = self.reflector.iter();
        reflector.map(|(of, cpu)| Watched { tid: of.pid(), cpus: vec![*cpu] }).collect()
    }

    /// The client's port by itself, and the reflector, which lives as long as that is kept.
    pub(super) fn apart(self) -> (Box<dyn Port>, Option<ReflectorProcess>) {
        (self.near, self.reflector.map(|(process, _)| process))
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
    flow: &FlowRequest,
    bench: (&Workbench, Wish),
    framing: Framing,
) -> Result<Ends, RecordError> {
    open_unlike(request, (flow, flow), bench, framing)
}

/// Opens ends that need not go by the same way: the client's by that of `flow`, and the reflector's by
/// that of `far`.
pub(super) fn open_unlike(
    request: &Request,
    (flow, far): (&FlowRequest, &FlowRequest),
    (bench, wish): (&Workbench, Wish),
    framing: Framing,
) -> Result<Ends, RecordError> {
    let setup = Setup { counter: bench.counter, rate: bench.rate, wait: flow.wait };
    let asked = &request.options.link;
    let (place, bed, reflector) = match &flow.target {
        Target::Across(ports) => {
            let opened = across::port(request, (flow, ports), bench, &mut None)?;
            return Ok(Ends::alone(opened.port));
        }
        Target::At(place) => (place.clone(), None, None),
        Target::Own { cpu, bed } => {
            let (process, place) =
                reflector(bench, &request.program, far, (*cpu, bed.as_ref()), (asked, wish))?;
            (place, bed.as_ref(), Some((process, *cpu)))
        }
    };
    let (transport, mut options) = (flow.transport, request.options.clone());
    if wish.frames {
        options.link.stamping = FrameStamping::Asked;
    }
    let from =
        request.from.or_else(|| link::own_address(flow, bed.map(|_| roles(flow.direction)[0])));
    let client = Client { transport, target: place, from, options };
    let near = match bed {
        None => client.open(setup, framing)?,
        Some(bed) => inside(bed, roles(flow.direction)[0], || Ok(client.open(setup, framing)?))?,
    };
    let (reflector, told, visits) = match reflector {
        Some((Started { process, told, visits }, cpu)) => (Some((process, cpu)), told, visits),
        None => (None, None, None),
    };
    Ok(Ends { near, reflector, told, visits })
}

/// A socket belongs to the namespace that it was made in, whoever uses it afterwards.
pub(super) fn inside<T: Send>(
    bed: &Bed,
    role: Role,
    make: impl FnOnce() -> Result<T, RecordError> + Send,
) -> Result<T, RecordError> {
    let entered = || {
        bed.enter(role)?;
        make()
    };
    thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// The parts of a bed that send and reflect.
pub(super) fn roles(direction: Direction) -> [Role; 2] {
    match direction {
        Direction::There => [Role::Client, Role::Server],
        Direction::Back => [Role::Server, Role::Client],
    }
}

/// A reflector that was started, and what it tells.
struct Started {
    process: ReflectorProcess,
    told: Option<ToldStalls>,
    visits: Option<Visits>,
}

/// Starts this program as the other end; where it listens.
fn reflector(
    bench: &Workbench,
    program: &Path,
    flow: &FlowRequest,
    (cpu, bed): (CpuId, Option<&Bed>),
    (options, wish): (&LinkOptions, Wish),
) -> Result<(Started, Place), RecordError> {
    let [_, role] = roles(flow.direction);
    let socket = format!("whylate-{}-{}", flow.name, std::process::id());
    let path = std::env::temp_dir().join(socket);
    let listen = match (flow.transport, bed) {
        (Transport::Unix, _) => path.display().to_string(),
        (_, None) => format!("{}:0", Ipv4Addr::LOCALHOST),
        (_, Some(_)) => format!("{}:0", Bed::address(role)),
    };
    // One socket is waited for in the same way as the client's; many connections cannot be.
    let wait = match flow.transport {
        Transport::Tcp if !flow.wait.takes_many_sockets() => Wait::Epoll,
        _ => flow.wait,
    };
    let mut words = vec!["reflect".to_owned(), "--once".to_owned(), "--no-dma-latency".to_owned()];
    words.push("--until-eof".to_owned());
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("--listen", listen);
    option("--transport", flow.transport.to_string());
    option("--wait", wait.to_string());
    option("--protocol", flow.protocol.to_string());
    option("--cpus", cpu.to_string());
    option("--idle", "30s".to_owned());
    // It is the same counter, and would take 0.1 s to find that out.
    option("--counter-hz", bench.rate.0.to_string());
    if let Some(bed) = bed {
        option("--bed", bed.name().to_owned());
        option("--bed-end", role.to_string());
    }
    if flow.transport.carries_frames() {
        words.extend(link::words(options, flow.transport));
    }
    let visits = if wish.visits { Some(Visits::new()?) } else { None };
    // It has the memory open for as long as it takes to start it.
    let left = visits.as_ref().map(Visits::leave).transpose()?;
    if let Some(left) = &left {
        words.extend(["--tell-visits".to_owned(), left.word().display().to_string()]);
        if wish.stamps {
            words.push("--tell-stamps".to_owned());
        }
    }
    let (process, told, said) = if wish.stalls && !wait.sleeps() {
        words.push("--tell-stalls".to_owned());
        let (process, said, told) = ReflectorProcess::spawn_telling(program, words, cpu)?;
        (process, Some(told), said)
    } else {
        let (process, said) = ReflectorProcess::spawn_listening(program, words, cpu)?;
        (process, None, said)
    };
    let place = if flow.transport == Transport::Unix {
        Place::Path(path)
    } else {
        let Ok(address) = said.parse() else {
            let exe = program.to_owned();
            return Err(NetError::NotListening { exe, said }.into());
        };
        Place::Address(address)
    };
    drop(left);
    Ok((Started { process, told, visits }, place))
}
