//! Serving requests from here: the other end of somebody's measurement.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::{Calibrator, HardwareCounter};
use whylate_host::guard::{CpuDmaLatency, Guard};
use whylate_model::reflect::Reflected;
use whylate_model::{CpuId, Nanos};
use whylate_net::lab::{Bed, Role};
use whylate_net::serve::Circumstances;
use whylate_net::{Cookie, Serve, Speaks, feed, serve};
use whylate_port::open::several;
use whylate_port::{Options, Port, Server, Setup, Target, Transport, Wait};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_threads::Placement;

use crate::RecordError;
use crate::progress::Progress;

/// The port that sockperf listens at, too.
pub const USUAL_PORT: u16 = 11_111;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// One transport at one place; the place is found by the bed, or is this host alone.
    Usual(Transport),
    /// One transport at this place.
    At(Transport, Target),
    /// The sockets of a list.
    List(PathBuf),
}

/// What is to be served, where and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReflectRequest {
    /// Where to listen.
    pub listen: Listen,
    /// Inside the server of this bed.
    pub bed: Option<Bed>,
    /// What is asked of the sockets.
    pub options: Options,
    /// How to wait for messages; none chooses by the number of sockets.
    pub wait: Option<Wait>,
    /// What is spoken.
    pub protocol: Speaks,
    /// Pinned to this CPU.
    pub cpu: Option<CpuId>,
    /// Under SCHED_FIFO with this priority.
    pub fifo: Option<u8>,
    /// End after so long without any message.
    pub idle: Nanos,
    /// End when the first client has finished.
    pub once: bool,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_dma_latency: bool,
}

/// Serves on the calling thread until `stop` is set, nothing comes any more, or a client has
/// finished. `ready` is told where it listens, as soon as it does.
///
/// The thread enters the network namespace of the bed and stays there.
pub fn run(
    request: &ReflectRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Reflected, RecordError> {
    if let Some(bed) = &request.bed {
        bed.enter(Role::Server)?;
    }
    let servers = servers(request)?;
    let placement = Placement { cpu: request.cpu, fifo: request.fifo };
    let (seat, mut warnings) = placement.settle()?;
    let counter = HardwareCounter::open()?;
    let mut calibrator = Calibrator::of_this_host(counter);
    let rate = calibrator.quick()?.hz;
    let protocol = request.protocol.with(Cookie::fresh());
    let wait = request.wait.unwrap_or(match &servers[..] {
        [one] if one.transport != Transport::Tcp => Wait::Block,
        _ => Wait::Epoll,
    });
    let setup = Setup { counter, rate, wait };
    let mut port: Box<dyn Port> = match &servers[..] {
        [one] => one.open(setup, protocol.framing())?,
        all => several(all, setup, protocol.framing())?,
    };
    let held = request.hold_dma_latency.then(CpuDmaLatency::hold);
    let _held = match held {
        Some(Ok(guard)) => {
            guard.describe().iter().for_each(|line| progress.say(line));
            Some(guard)
        }
        Some(Err(error)) => {
            warnings.push(CpuDmaLatency::not_held(&error));
            None
        }
        None => None,
    };
    let since_ns = clock_ns(Clock::Realtime);
    progress.say(&announcement(port.as_ref()));
    let settings = Serve { idle: request.idle, once: request.once, rate };
    let mut go_on = || !stop.load(Ordering::Relaxed);
    let served = serve(&mut port, &*protocol, settings, &mut go_on)?;
    drop(port);
    let clock = calibrator.finish()?;
    warnings.extend(clock.warnings());
    let protocol = protocol.name();
    Ok(served.told(Circumstances { protocol, cpu: seat.cpu, since_ns, clock: &clock, warnings }))
}

/// Scripts wait for this line.
fn announcement(port: &dyn Port) -> String {
    let facts = port.facts();
    let local = facts.socket.as_ref().map(|socket| socket.local.as_str()).unwrap_or_default();
    format!("listening on {local} ({}, waiting by {})", facts.backend, facts.wait)
}

fn servers(request: &ReflectRequest) -> Result<Vec<Server>, RecordError> {
    let options = &request.options;
    let one = |transport, target| Server { transport, target, options: options.clone() };
    Ok(match &request.listen {
        Listen::At(transport, target) => vec![one(*transport, target.clone())],
        Listen::Usual(transport) => {
            let here = match &request.bed {
                Some(_) => Bed::address(Role::Server),
                None => std::net::Ipv4Addr::LOCALHOST,
            };
            let target = match transport {
                Transport::Unix => Target::Path(std::env::temp_dir().join("whylate-reflect")),
                _ => Target::Address(SocketAddr::new(here.into(), USUAL_PORT)),
            };
            vec![one(*transport, target)]
        }
        Listen::List(path) => feed::read(path)?
            .into_iter()
            .map(|socket| one(socket.transport, Target::Address(socket.address)))
            .collect(),
    })
}
