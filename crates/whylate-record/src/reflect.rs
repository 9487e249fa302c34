//! Serving requests from here: the other end of somebody's measurement.

mod kernel;
mod recording;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::{Calibrator, HardwareCounter};
use whylate_model::reflect::Reflected;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos};
use whylate_net::lab::{Bed, Role};
use whylate_net::serve::stalls::Telling;
use whylate_net::serve::visits::Visiting;
use whylate_net::serve::{Circumstances, Tell, serve_telling};
use whylate_net::{Cookie, Protocol, Serve, Speaks, feed};
use whylate_port::open::several;
use whylate_port::{Options, Port, PortError, Server, Setup, StampWish, Target, Transport, Wait};
use whylate_threads::Placement;
use whylate_threads::placement::Seat;

use crate::progress::Progress;
use crate::workbench::hold_idle_states;
use crate::{RecordError, date_ns};

pub use crate::service::Asked;
pub use kernel::{KernelRequest, record_in_kernel, run_in_kernel};
pub use recording::record;

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
#[derive(Debug, Clone, PartialEq)]
pub struct ReflectRequest {
    /// Where to listen.
    pub listen: Listen,
    /// Inside this part of a bed.
    pub bed: Option<(Bed, Role)>,
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
    /// The counter's rate, where whoever starts it has found it.
    pub rate: Option<Hertz>,
    /// End after so long without any message.
    pub idle: Nanos,
    /// End when the first client has finished.
    pub once: bool,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_dma_latency: bool,
    /// Tell on standard output, which is a pipe, when a spinning server was kept from running.
    pub tell_stalls: bool,
    /// Tell of every measured request through the shared memory that this word leads to.
    pub tell_visits: Option<PathBuf>,
    /// With stamps of the kernel beside.
    pub stamps: Option<StampWish>,
}

/// Serves on the calling thread until `stop` is set, nothing comes any more, or a client has
/// finished. `ready` is told where it listens, as soon as it does.
///
/// The thread enters the network namespace of the bed and stays there.
///
/// # Errors
/// It cannot listen where it was asked to, or its port failed.
pub fn run(
    request: &ReflectRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Reflected, RecordError> {
    let counter = HardwareCounter::open()?;
    let mut calibrator = Calibrator::of_this_host(counter);
    let rate = match request.rate {
        Some(told) => told,
        None => calibrator.quick()?.hz,
    };
    let Opened { mut port, protocol, seat, mut warnings, wait } = open(request, counter, rate)?;
    let _held = hold_idle_states(request.hold_dma_latency, &mut warnings);
    let since_ns = date_ns();
    progress.say(&announcement(port.as_ref()));
    let settings = Serve { idle: request.idle, once: request.once, rate };
    let mut go_on = || !stop.load(Ordering::Relaxed);
    let telling = request.tell_stalls && !wait.sleeps();
    let stalls = telling.then(|| Telling::on_stdout(rate)).transpose()?;
    let visits = request.tell_visits.as_deref().map(Visiting::inherited).transpose()?;
    if let Some(wish) = &request.stamps
        && let Some(without) = unstamped(port.stamp(wish))?
    {
        progress.say(&without.to_string());
        warnings.push(without);
    }
    let tell = Tell { stalls, intervals: None, visits };
    let served = serve_telling(&mut port, &*protocol, settings, &mut go_on, tell)?;
    drop(port);
    let clock = calibrator.finish()?;
    warnings.extend(clock.warnings());
    Ok(served.told(Circumstances {
        protocol: protocol.name(),
        cpu: seat.cpu,
        since_ns,
        hz: clock.hz,
        bound_ppm: clock.bound_ppm,
        lasted: clock.span,
        warnings,
    }))
}

/// Where there are no stamps, requests are answered all the same: what there is to say.
fn unstamped(asked: Result<(), PortError>) -> Result<Option<Warning>, RecordError> {
    match asked {
        Ok(()) => Ok(None),
        Err(
            refused @ (PortError::StampsRefused { .. }
            | PortError::StampsNotHere { .. }
            | PortError::FramesNotStamped { .. }
            | PortError::WaitUnfit { .. }),
        ) => Ok(Some(Warning::PartLeftOut {
            part: "the kernel's stamps of the reflector".to_owned(),
            reason: format!("{refused}; requests are answered without them"),
        })),
        Err(other) => Err(other.into()),
    }
}

/// A server that listens, on the thread that is to serve.
struct Opened {
    port: Box<dyn Port>,
    protocol: Box<dyn Protocol>,
    seat: Seat,
    warnings: Vec<Warning>,
    wait: Wait,
}

/// Takes the calling thread to where it is to serve, and listens there.
fn open(
    request: &ReflectRequest,
    counter: HardwareCounter,
    rate: Hertz,
) -> Result<Opened, RecordError> {
    if let Some((bed, role)) = &request.bed {
        bed.enter(*role)?;
    }
    let servers = servers(request)?;
    let placement = Placement { cpu: request.cpu, fifo: request.fifo };
    let (seat, warnings) = placement.settle()?;
    let protocol = request.protocol.with(Cookie::fresh());
    let wait = request.wait.unwrap_or(match &servers[..] {
        // Its drivers look, and do not sleep.
        [one] if one.transport == Transport::Dpdk => Wait::Spin,
        [one] if one.transport != Transport::Tcp => Wait::Block,
        _ => Wait::Epoll,
    });
    let setup = Setup { counter, rate, wait };
    let port: Box<dyn Port> = match &servers[..] {
        [one] => one.open(setup, protocol.framing())?,
        all => several(all, setup, protocol.framing())?,
    };
    Ok(Opened { port, protocol, seat, warnings, wait })
}

/// Scripts wait for this line.
fn announcement(port: &dyn Port) -> String {
    let facts = port.facts();
    let local = facts.socket.as_ref().map(|socket| socket.local.as_str()).unwrap_or_default();
    format!("listening on {local} ({}, --wait {})", facts.backend, facts.wait)
}

fn servers(request: &ReflectRequest) -> Result<Vec<Server>, RecordError> {
    let options = &request.options;
    let one = |transport, target| Server { transport, target, options: options.clone() };
    Ok(match &request.listen {
        Listen::At(transport, target) => vec![one(*transport, target.clone())],
        Listen::Usual(transport) => {
            let here = match &request.bed {
                Some((_, role)) => Bed::address(*role),
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

#[cfg(test)]
mod tests {
    use std::thread;

    use whylate_net::{ClosedLoop, Raw};
    use whylate_port::Client;
    use whylate_sys::Errno;

    use super::*;
    use crate::progress::Step;

    /// Keeps what is said.
    #[derive(Default)]
    struct Said(Vec<String>);

    impl Progress for Said {
        fn step(&mut self, _: &Step) {}
        fn say(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
    }

    /// Over a port that has no stamps, as where the kernel takes none.
    #[test]
    fn a_reflector_whose_stamps_are_refused_answers_without_them_and_says_so() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("at");
        let request = ReflectRequest {
            rate: None,
            listen: Listen::At(Transport::Unix, Target::Path(path.clone())),
            bed: None,
            options: Options::default(),
            wait: Some(Wait::Block),
            protocol: Speaks::Raw,
            cpu: None,
            fifo: None,
            idle: Nanos(20 * Nanos::SECOND.0),
            once: true,
            hold_dma_latency: false,
            tell_stalls: false,
            tell_visits: None,
            stamps: Some(StampWish { software: true, ..StampWish::NOTHING }),
        };
        let stop = AtomicBool::new(false);
        let serving = || {
            let mut said = Said::default();
            (run(&request, &stop, &mut said), said.0)
        };
        let (served, said) = thread::scope(|scope| {
            let server = scope.spawn(serving);
            let setup = || {
                let counter = HardwareCounter::open().unwrap();
                Setup { counter, rate: Hertz(1e9), wait: Wait::Block }
            };
            let client = || Client {
                transport: Transport::Unix,
                target: Target::Path(path.clone()),
                from: None,
                options: Options::default(),
            };
            let mut port = loop {
                match client().open(setup(), Raw::new(Cookie::fresh()).framing()) {
                    Ok(port) => break port,
                    Err(error) => assert!(!server.is_finished(), "{error}"),
                }
                thread::sleep(std::time::Duration::from_millis(5));
            };
            let asked = ClosedLoop {
                requests: 20,
                warmup_requests: 5,
                timeout: Nanos(20 * Nanos::SECOND.0),
                duration: Nanos(60 * Nanos::SECOND.0),
                ..ClosedLoop::new(Hertz(1e9))
            };
            let outcome = asked.run(&mut *port, &AtomicBool::new(false), &mut |_| ()).unwrap();
            assert_eq!(outcome.accounting.received, 20);
            stop.store(true, Ordering::Relaxed);
            server.join().unwrap()
        });
        let served = served.unwrap();
        assert!(served.answered >= 20, "{served:?}");
        let without = |warning: &&Warning| matches!(warning, Warning::PartLeftOut { .. });
        let warning = served.warnings.iter().find(without).expect("it is in the account");
        let words = warning.to_string();
        assert!(words.contains("no stamps of the kernel"), "{words}");
        assert!(said.contains(&words), "{said:?}");
    }

    #[test]
    fn what_refuses_stamps_is_done_without_and_what_breaks_a_port_is_not() {
        assert!(unstamped(Ok(())).unwrap().is_none());
        let refused = PortError::StampsRefused { backend: "udp over ipv4", errno: Errno::INVAL };
        let words = unstamped(Err(refused)).unwrap().expect("it goes on").to_string();
        assert!(words.contains("refuses the stamps") && words.contains("without them"), "{words}");
        let broken = PortError::Receive { backend: "udp over ipv4", errno: Errno::BADF };
        assert!(unstamped(Err(broken)).is_err());
    }
}
