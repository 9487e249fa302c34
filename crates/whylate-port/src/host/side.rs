//! A host that is one of two which are both ours: it is told where the other one is, and asks nobody.

use std::net::{IpAddr, SocketAddr};

use whylate_clock::Counter;

use crate::end::Threads;
use crate::error::PortError;
use crate::frame::Mac;
use crate::frames::Frames;
use crate::host::open::Opening;
use crate::host::over::made;
use crate::host::{Host, Made, Role};
use crate::open::{Target, Transport, wrong};
use crate::options::Options;
use crate::port::{Port, Setup};

/// A host that does not know the other one yet.
pub(crate) trait Meets: Send {
    /// Its own addresses.
    fn own(&self) -> (Mac, SocketAddr);

    /// From now on it hears the host with these addresses and sends to it. Says once where it is itself:
    /// a switch learns that from whoever sends, and one that only receives would never be found.
    fn meet(self: Box<Self>, other: (Mac, SocketAddr)) -> Result<Box<dyn Port>, PortError>;
}

/// A host, and who takes its frames where that is not the other one.
pub(super) struct Unmet<F> {
    host: Host<F>,
    by: Option<Mac>,
}

impl<F: Frames + 'static> Unmet<F> {
    /// A router has to be asked where it is: nothing else has an address that is not ours.
    pub(super) fn new(
        made: Made<F>,
        by: Option<Mac>,
        options: &Options,
    ) -> Result<Self, PortError> {
        let mut host = Host::server(made, options);
        let by = match (by, options.link.next_hop) {
            (None, Some(next_hop)) => Some(host.resolve(next_hop)?),
            (by, _) => by,
        };
        Ok(Self { host, by })
    }
}

impl<F: Frames + 'static> Meets for Unmet<F> {
    fn own(&self) -> (Mac, SocketAddr) {
        (self.host.identity.mac, self.host.identity.address)
    }

    fn meet(self: Box<Self>, (mac, other): (Mac, SocketAddr)) -> Result<Box<dyn Port>, PortError> {
        let Self { mut host, by } = *self;
        let own = host.identity.address;
        if other.is_ipv4() != own.is_ipv4() {
            return Err(PortError::WrongTarget {
                transport: host.facts.backend,
                target: other.to_string(),
                why: "its two ports have addresses of different versions of IP",
            });
        }
        host.role = Role::Client(other);
        host.lead_to(by.unwrap_or(mac), other);
        host.facts.path = format!("{own} -> {other} by {}", host.frames.facts().interface);
        if let Some(socket) = &mut host.facts.socket {
            socket.remote = Some(other.to_string());
        }
        // The question for one's own address is what tells others of it (RFC 5227).
        let announcement = host.identity.question(own.ip());
        host.post(&announcement)?;
        Ok(Box::new(host))
    }
}

/// One of two hosts by an interface, at `at`, which the kernel need not have.
pub(crate) fn side<C: Counter + Clone + 'static>(
    transport: Transport,
    at: SocketAddr,
    options: &Options,
    threads: Threads,
    setup: Setup<C>,
) -> Result<Box<dyn Meets>, PortError> {
    fit(transport, at, options.link.next_hop)?;
    let host = Opening::new(transport, (Some(at), None), options)?;
    if transport == Transport::Packet {
        let mut made = host.packet(setup)?;
        if threads == Threads::Two {
            made.frames = made.frames.divisible()?;
        }
        return Ok(Box::new(Unmet::new(made, None, options)?));
    }
    if threads == Threads::Two {
        return Err(PortError::NotDivisible { backend: crate::xdp::BACKEND });
    }
    // Answers to the kernel's own address pass to the kernel, and a packet socket sees them.
    let by = match options.link.next_hop {
        Some(next_hop) if host.is_kernels() => Some(host.resolve(setup.clone(), next_hop)?),
        _ => None,
    };
    Ok(Box::new(Unmet::new(host.xdp(setup)?, by, options)?))
}

/// One of two hosts over frames that somebody else has opened, at `at`.
pub(crate) fn side_over<F: Frames + 'static, C: Counter>(
    frames: F,
    at: SocketAddr,
    options: &Options,
    setup: Setup<C>,
) -> Result<Box<dyn Meets>, PortError> {
    fit(Transport::Dpdk, at, options.link.next_hop)?;
    let made = made(frames, at, options, setup);
    Ok(Box::new(Unmet::new(made, None, options)?))
}

/// Only a router of the same version of IP can be asked where it is.
fn fit(transport: Transport, at: SocketAddr, next_hop: Option<IpAddr>) -> Result<(), PortError> {
    match next_hop.filter(|next_hop| next_hop.is_ipv4() != at.is_ipv4()) {
        Some(next_hop) => Err(wrong(transport, &Target::Address(SocketAddr::new(next_hop, 0)))),
        None => Ok(()),
    }
}
