//! A client that has both outer ports of what lies between them: no other end answers, and the time from
//! the one port to the other is one way, by one clock.
//!
//! One way is a port that sends by the one and receives by the other. Both ways are two flows over the
//! same two ports: in turns on one thread where the wait spins, and on threads of their own where it
//! sleeps.

use std::fmt;
use std::net::SocketAddr;

use whylate_model::flow::Across as ToldPorts;
use whylate_net::NetError;
use whylate_net::lab::{Bed, Role};
use whylate_net::schedule::Arrivals;
use whylate_port::across::{Across, Side, interface_of};
use whylate_port::device::{Device, DeviceName};
use whylate_port::open::Transport;
use whylate_port::{LinkOptions, Options, Port, PortError, Setup, Threads, Wait};

use super::ends::{Target, inside};
use super::request::{FlowRequest, Request};
use crate::RecordError;
use crate::workbench::Workbench;

/// The two ports of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OuterPorts {
    /// Those of a bed: the client's and the server's, each in its namespace.
    Bed(Bed),
    /// Two interfaces of this host, or two devices of DPDK.
    Host {
        /// The one that the first flow leaves by.
        near: OuterPort,
        /// The one that it comes back by.
        far: OuterPort,
    },
}

/// One of two ports of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OuterPort {
    /// Its interface, or its device.
    pub name: String,
    /// Its address, which the kernel need not have; port 0 is any.
    pub address: SocketAddr,
}

impl fmt::Display for OuterPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bed(bed) => write!(f, "the bed {}, both ends by one client", bed.name()),
            Self::Host { near, far } => {
                write!(f, "what lies between {} and {}, both by one client", near.name, far.name)
            }
        }
    }
}

/// Which of the two.
#[derive(Debug, Clone, Copy)]
enum Which {
    Near,
    Far,
}

impl OuterPorts {
    /// Where one of them is to be, and what is asked of it.
    fn asked(&self, which: Which, request: &Request) -> (SocketAddr, Options) {
        let options = request.options.clone();
        let port = match (self, which) {
            (Self::Bed(_), which) => {
                return (SocketAddr::new(Bed::address(role(which)).into(), 0), options);
            }
            (Self::Host { near, .. }, Which::Near) => near,
            (Self::Host { far, .. }, Which::Far) => far,
        };
        // The near device may be a card by its place or a virtual one: its words have told which.
        let device = match which {
            Which::Near => options.link.device.clone(),
            Which::Far => {
                let name = Some(DeviceName::of(&port.name));
                Device { name, ..options.link.device.clone() }
            }
        };
        let link = LinkOptions { device, ..options.link.clone() };
        (port.address, Options { interface: Some(port.name.clone()), link, ..options })
    }

    /// Does something where one of them is.
    fn there<T: Send>(
        &self,
        which: Which,
        make: impl FnOnce() -> Result<T, RecordError> + Send,
    ) -> Result<T, RecordError> {
        match self {
            Self::Bed(bed) => inside(bed, role(which), make),
            Self::Host { .. } => make(),
        }
    }
}

fn role(which: Which) -> Role {
    match which {
        Which::Near => Role::Client,
        Which::Far => Role::Server,
    }
}

/// What a flow is measured by.
pub(super) struct Opened {
    pub(super) port: Box<dyn Port>,
    /// Both ports, as the run tells them.
    pub(super) told: ToldPorts,
}

/// Opens what a flow is measured by. The first flow opens both ports, and leaves behind what the second
/// one is measured by: the far port where both take turns on one thread, else one of its own.
pub(super) fn port(
    request: &Request,
    (flow, ports): (&FlowRequest, &OuterPorts),
    bench: &Workbench,
    left: &mut Option<Opened>,
) -> Result<Opened, RecordError> {
    if let Some(opened) = left.take() {
        return Ok(opened);
    }
    let both_ways = request.flows.len() > 1;
    let sleeps = flow.wait.sleeps();
    let threads = if both_ways && sleeps { Threads::Two } else { Threads::One };
    let [near, far] = open(request, (flow, ports), bench, threads)?;
    let told = told(&*near, &*far, !sleeps);
    let other = ToldPorts { out: told.back.clone(), back: told.out.clone(), ..told.clone() };
    if !both_ways {
        return Ok(Opened { port: Box::new(Across::new(near, far)), told });
    }
    if request.takes_turns() {
        *left = Some(Opened { port: far, told: other });
        return Ok(Opened { port: near, told });
    }
    let (near_out, far_out) = (near.duplicate()?, far.duplicate()?);
    *left = Some(Opened { port: Box::new(Across::new(far_out, near)), told: other });
    Ok(Opened { port: Box::new(Across::new(near_out, far)), told })
}

/// Both ports, led to each other.
fn open(
    request: &Request,
    (flow, ports): (&FlowRequest, &OuterPorts),
    bench: &Workbench,
    threads: Threads,
) -> Result<[Box<dyn Port>; 2], RecordError> {
    let setup = Setup { counter: bench.counter, rate: bench.rate, wait: flow.wait };
    let open = |which| {
        let (at, options) = ports.asked(which, request);
        ports.there(which, || Ok(Side::open(flow.transport, at, &options, threads, setup)?))
    };
    let (near, far) = (open(Which::Near)?, open(Which::Far)?);
    let (at_near, at_far) = (near.at(), far.at());
    Ok([
        ports.there(Which::Near, || Ok(near.facing(at_far, setup)?))?,
        ports.there(Which::Far, || Ok(far.facing(at_near, setup)?))?,
    ])
}

/// Refuses what two ports of one client cannot do, with what to do instead.
pub(super) fn check(request: &Request) -> Result<(), RecordError> {
    for flow in &request.flows {
        let Target::Across(ports) = &flow.target else { continue };
        if let Some(reason) = refusal(request, flow, ports) {
            return Err(RecordError::Flow { flow: flow.name.clone(), reason });
        }
    }
    Ok(())
}

fn refusal(request: &Request, flow: &FlowRequest, ports: &OuterPorts) -> Option<String> {
    if request.flows.iter().any(|of| !matches!(of.target, Target::Across(_))) {
        return Some("a client with both ports has no other flow beside it".to_owned());
    }
    let refused = of_transport(flow, ports).or_else(|| of_ports(ports, &request.options));
    if refused.is_some() {
        return refused;
    }
    if flow.arrivals == Arrivals::Closed {
        return Some(
            "a closed loop sends when the reply has come, and nobody replies to a client with both \
             ports: choose another pattern of arrivals"
                .to_owned(),
        );
    }
    if flow.one_way {
        return Some(
            "the client hears its messages itself, and nobody else counts them: leave one-way out"
                .to_owned(),
        );
    }
    let divided = request.flows.len() > 1 && flow.wait.sleeps();
    if divided && flow.transport == Transport::Xdp {
        return Some(format!(
            "with {} each way has a thread that sends and one that receives, and an xdp port cannot be \
             divided between them: let it wait by spin or busy-poll, measure one way, or take --transport \
             packet",
            flow.wait
        ));
    }
    if request.take_apart.is_some() {
        return Some(
            "a request that nobody answers is one part: there is nothing to break it down to"
                .to_owned(),
        );
    }
    None
}

fn of_transport(flow: &FlowRequest, ports: &OuterPorts) -> Option<String> {
    let (port, wait) = (flow.transport, flow.wait);
    match (port, ports) {
        (Transport::Tcp | Transport::Unix, _) => Some(format!(
            "{port} has no two ports that something could lie between: choose udp, packet, xdp or dpdk"
        )),
        (Transport::Udp, OuterPorts::Host { .. }) => Some(
            "the kernel delivers between two of its own addresses by itself, and nothing would leave \
             this machine: take --transport packet or xdp, or a bed (--bed), whose ends are namespaces"
                .to_owned(),
        ),
        (Transport::Dpdk, OuterPorts::Bed(_)) => Some(
            "a device of DPDK leads to whoever is at its other end, and not into a bed: name two \
             devices, --vdev and --across"
                .to_owned(),
        ),
        (Transport::Packet, _) if wait == Wait::BusyPoll => Some(
            "busy-poll has no effect on the rings of a packet socket: use --wait spin, block, poll or \
             epoll"
                .to_owned(),
        ),
        (Transport::Dpdk, _) if wait != Wait::Spin => {
            Some("a DPDK device is polled and cannot be waited for: use --wait spin".to_owned())
        }
        (port, _) if port.carries_frames() && wait == Wait::IoUring => Some(format!(
            "{port} receives from rings without system calls, which io-uring would wait for: use \
             --wait spin"
        )),
        _ => None,
    }
}

fn of_ports(ports: &OuterPorts, options: &Options) -> Option<String> {
    if options.link.mac.is_some() {
        return Some("two ports cannot have one hardware address: leave --mac out".to_owned());
    }
    let (near, far) = match ports {
        OuterPorts::Bed(bed) => {
            return options.interface.as_ref().map(|_| {
                format!("the ports of the bed {} are its ends: leave --interface out", bed.name())
            });
        }
        OuterPorts::Host { near, far } => (near, far),
    };
    if near.name == far.name {
        return Some(format!(
            "{} is one port, and what it sends it does not receive: name the other one with --across",
            near.name
        ));
    }
    if near.address.ip() == far.address.ip() {
        return Some(format!(
            "both ports would be {}: give each its own address",
            near.address.ip()
        ));
    }
    (near.address.is_ipv4() != far.address.is_ipv4())
        .then(|| format!("{} and {} are of different versions of IP", near.address, far.address))
}

/// The ports as the run tells them, where messages leave by `out` and come back by `back`.
fn told(out: &dyn Port, back: &dyn Port, one_thread: bool) -> ToldPorts {
    let name = |port: &dyn Port| {
        let facts = port.facts();
        interface_of(facts).map_or_else(|| facts.path.clone(), str::to_owned)
    };
    ToldPorts { out: name(out), back: name(back), one_thread }
}

/// Why nothing could be measured: of a client with both ports, that nothing came through.
pub(super) fn unheard(error: NetError, target: &Target) -> RecordError {
    if !matches!(target, Target::Across(_)) {
        return error.into();
    }
    match error {
        NetError::NoReflector { path, limit, .. } => {
            RecordError::NothingThrough { what: format!("nothing came within {limit} ({path})") }
        }
        NetError::Port(error @ (PortError::NoRoute { .. } | PortError::Refused { .. })) => {
            RecordError::NothingThrough { what: error.to_string() }
        }
        other => other.into(),
    }
}
