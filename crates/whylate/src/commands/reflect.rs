//! `whylate reflect`, and `whylate reflect-stdin`, the other end of the check-up's messages.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use whylate_model::directory::RunDir;
use whylate_model::reflect::{Reflected, ReflectedEnd};
use whylate_model::run::Run;
use whylate_model::{CpuId, Hertz};
use whylate_net::lab::Bed;
use whylate_net::resolve::{LIMIT, Wanted, resolve};
use whylate_net::{Reflector, Speaks, StdinReflector, reflect_stdin};
use whylate_port::{Options, StampWish, Target, Transport};
use whylate_record::progress::Progress;
use whylate_record::reflect::{
    KernelRequest, Listen, ReflectRequest, USUAL_PORT, record, record_in_kernel, run as serve,
    run_in_kernel,
};
use whylate_record::{Asked, RecordError, Recorded};

use super::gaps::{CPUS, must_be_here};
use super::service::{self, Keeping};
use super::{Exit, bed};
use crate::cli::{Reflect, ReflectPort, ReflectStdin, refused_of_socket};
use crate::failure;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// The stamps of the kernel that are told of each request and its answer.
const STAMPS: StampWish =
    StampWish { sched: true, software: true, receive: true, ..StampWish::NOTHING };
/// Why frames are not answered at the usual place.
const NOT_HERE: &str = "needs an interface other than loopback: use --bed lab (whylate lab up), or --listen \
     ADDRESS:PORT with an address of one";
/// Why not at an address of loopback.
const NOT_THERE: &str =
    "needs an interface other than loopback: name an address of one, or use --transport udp";

pub(super) fn run(options: &Reflect) -> Result<Exit> {
    if let Some(refusal) = refused(options) {
        failure::refuse(refusal);
        return Ok(Exit::Usage);
    }
    must_be_here(options.cpus, CPUS)?;
    let stopping = Stopping::listen()?;
    if options.until_eof {
        end_with_input(Arc::clone(&stopping.stop))?;
    }
    let mut progress = Shown::usual();
    for line in whylate_record::mend_what_dead_runs_left() {
        progress.say(&line);
    }
    let transport = match options.transport {
        ReflectPort::Of(transport) => transport,
        ReflectPort::XdpTx => return in_kernel(options, &stopping, progress),
    };
    let request = ReflectRequest {
        listen: listen(options, transport, &mut progress)?,
        bed: bed(options.bed.as_deref())?.map(|bed| (bed, options.bed_end)),
        options: Options { link: options.link.of_port(), ..options.socket.of_port() },
        wait: options.wait,
        protocol: options.protocol,
        cpu: options.cpus,
        fifo: options.sched.fifo(),
        rate: options.counter_hz.map(Hertz),
        idle: options.idle,
        once: options.once,
        hold_dma_latency: !options.no_dma_latency,
        tell_stalls: options.tell_stalls,
        tell_visits: options.tell_visits.clone(),
        stamps: options.tell_stamps.then_some(STAMPS),
    };
    if let Some(directory) = &options.output {
        return kept(
            options,
            directory,
            &stopping,
            progress,
            |asked, directory, stop, progress| record(&request, asked, directory, stop, progress),
        );
    }
    let reflected = serve(&request, &stopping.stop, &mut progress)?;
    drop(progress);
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    print(options, &reflected)?;
    Ok(exit(&reflected))
}

/// What says nothing together.
fn refused(options: &Reflect) -> Option<String> {
    let transport = match options.transport {
        ReflectPort::Of(transport) => transport,
        ReflectPort::XdpTx => return refused_by_program(options),
    };
    if transport == Transport::Unix
        && let Some(name) = options.socket.of_ip()
    {
        return Some(format!("a Unix socket has no {name}: leave {name} out"));
    }
    let nowhere = options.listen.is_none() && options.bed.is_none() && options.feed.is_none();
    if transport.carries_frames() && nowhere {
        return Some(format!("{transport} {NOT_HERE}"));
    }
    let of_socket = || refused_of_socket(&options.socket, &[transport]);
    options.link.refused(&[transport]).or_else(of_socket)
}

/// What a program that answers in the kernel cannot do.
fn refused_by_program(options: &Reflect) -> Option<String> {
    if options.protocol != Speaks::Raw {
        return Some("xdp-tx answers the protocol raw only: leave --protocol out".to_owned());
    }
    let socket = &options.socket;
    let given = [
        (options.wait.is_some(), "--wait", "with xdp-tx the kernel answers, and no thread waits"),
        (options.cpus.is_some(), "--cpus", "xdp-tx runs on the CPU of the interface's interrupt"),
        (
            options.sched.fifo().is_some(),
            "--sched",
            "xdp-tx runs on the CPU of the interface's interrupt",
        ),
        (options.once, "--once", "xdp-tx does not see that a client has finished"),
        (socket.receive_buffer.is_some(), "--receive-buffer", "xdp-tx has no socket"),
        (socket.send_buffer.is_some(), "--send-buffer", "xdp-tx has no socket"),
        (socket.dont_fragment, "--dont-fragment", "xdp-tx has no socket"),
        (socket.dscp.is_some(), "--dscp", "replies of xdp-tx keep the DSCP of their requests"),
        (socket.hops.is_some(), "--hops", "replies of xdp-tx have a hop limit of 64"),
    ];
    if let Some((_, name, why)) = given.into_iter().find(|(given, _, _)| *given) {
        return Some(format!("{why}: leave {name} out"));
    }
    if options.listen.is_none() && options.bed.is_none() {
        return Some(format!("xdp-tx {NOT_HERE}"));
    }
    options.link.refused_by_program()
}

/// Has the kernel answer.
fn in_kernel(options: &Reflect, stopping: &Stopping, mut progress: Shown) -> Result<Exit> {
    let at = match listen(options, Transport::Udp, &mut progress)? {
        Listen::At(_, Target::Address(at)) => at,
        _ => SocketAddr::new(Bed::address(options.bed_end).into(), USUAL_PORT),
    };
    let request = KernelRequest {
        at,
        interface: options.socket.interface.clone(),
        attaching: options.link.wanted(),
        bed: bed(options.bed.as_deref())?.map(|bed| (bed, options.bed_end)),
        idle: options.idle,
    };
    if let Some(directory) = &options.output {
        return kept(options, directory, stopping, progress, |asked, directory, stop, progress| {
            record_in_kernel(&request, asked, directory, stop, progress)
        });
    }
    let reflected = run_in_kernel(&request, &stopping.stop, &mut progress)?;
    drop(progress);
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    print(options, &reflected)?;
    Ok(exit(&reflected))
}

/// Of what has no run directory.
fn exit(reflected: &Reflected) -> Exit {
    match reflected.ended {
        ReflectedEnd::Lost => Exit::PoorTrust,
        _ => Exit::Done,
    }
}

/// Serves with a run directory.
fn kept(
    options: &Reflect,
    directory: &Path,
    stopping: &Stopping,
    progress: Shown,
    record: impl FnOnce(&Asked, RunDir, &AtomicBool, &mut Shown) -> Result<Recorded, RecordError>,
) -> Result<Exit> {
    let keeping = Keeping {
        directory,
        question: "How long do requests stay here before they are answered?",
        seed: 0,
        format: options.format,
        full: options.full || options.tell_stalls,
        stopping,
    };
    let print = |run: &Run| run.reflected.iter().try_for_each(|of| print(options, of));
    keeping.keep(progress, record, print)
}

fn print(options: &Reflect, reflected: &Reflected) -> Result<()> {
    // Standard output is a pipe that nobody reads any more.
    if options.tell_stalls {
        return Ok(());
    }
    service::print(reflected, options.format, options.full)
}

/// Stops when standard input ends: its other end may be a process that was killed.
fn end_with_input(stop: Arc<AtomicBool>) -> Result<()> {
    let watch = move || {
        // Whatever ends it, nobody holds it any more.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        stop.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new().name("input".to_owned()).spawn(watch)?;
    Ok(())
}

fn listen(options: &Reflect, transport: Transport, progress: &mut Shown) -> Result<Listen> {
    Ok(match (&options.feed, &options.listen) {
        (Some(list), _) => Listen::List(list.clone()),
        (None, None) => Listen::Usual(transport),
        (None, Some(path)) if transport == Transport::Unix => {
            Listen::At(transport, Target::Path(path.into()))
        }
        (None, Some(words)) => {
            let resolved = resolve(words, Wanted::Any, LIMIT)?;
            if transport.carries_frames() && resolved.address.ip().is_loopback() {
                bail!("{transport} {NOT_THERE}");
            }
            if let Some(took) = resolved.took {
                progress.say(&format!("{words} is {}, resolved in {took}", resolved.address));
            }
            Listen::At(transport, Target::Address(resolved.address))
        }
    })
}

pub(super) fn run_stdin(options: &ReflectStdin) -> Result<Exit> {
    let settings = StdinReflector {
        cpu: Some(CpuId(options.cpu)),
        fifo: None,
        wait: options.wait,
        reflector: Reflector::default(),
    };
    reflect_stdin(settings)?;
    Ok(Exit::Done)
}
