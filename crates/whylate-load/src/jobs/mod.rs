//! The work of one child, a file for each kind.

mod cpu;
mod disk;
mod ipi;
mod mem;
mod pace;
mod tcp;
mod udp;

use crate::child::Meter;
use crate::error::LoadError;
use crate::order::Job;

/// Works until the meter says stop.
pub(crate) fn work(job: &Job, meter: &Meter) -> Result<(), LoadError> {
    match job {
        Job::TcpReceive { at } => tcp::receive(*at, meter),
        Job::TcpSend { to } => tcp::send(*to, meter),
        Job::UdpReceive { at } => udp::receive(*at, meter),
        Job::UdpSend { to, pps, bytes } => udp::send(*to, *pps, *bytes, meter),
        Job::Walk { tree } => disk::walk(tree, meter),
        Job::Interrupt { targets, per_second } => ipi::interrupt(targets, *per_second, meter),
        Job::Hog { share } => cpu::hog(*share, meter),
        Job::Stream { bytes } => mem::stream(*bytes, meter),
    }
}

/// Names what failed.
fn failed(what: &'static str) -> impl Fn(std::io::Error) -> LoadError {
    move |source| LoadError::Work { what, source }
}

/// Is this only a wait that has ended, after which one looks whether to go on?
fn only_waited(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock
            | std::io::ErrorKind::TimedOut
            | std::io::ErrorKind::Interrupted
    )
}
