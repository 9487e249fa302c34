//! A host over frames that somebody else has opened: there is no interface of the kernel, so its
//! addresses are the ones that it is given, and nobody else of this machine has its place.

use std::net::SocketAddr;

use whylate_clock::Counter;

use crate::error::PortError;
use crate::facts::StampFacts;
use crate::frames::Frames;
use crate::host::place::DYNAMIC;
use crate::host::{Host, Identity, Made};
use crate::open::{Target, Transport, wrong};
use crate::options::Options;
use crate::port::{Port, Setup};

/// A client's port from `own` to `to`; port 0 of its own is any. Waits by `frames`' own way.
pub fn client_over<F: Frames + 'static, C: Counter>(
    frames: F,
    (own, to): (SocketAddr, SocketAddr),
    options: &Options,
    setup: Setup<C>,
) -> Result<Box<dyn Port>, PortError> {
    fit(own, Some(to))?;
    let next_hop = options.link.next_hop.unwrap_or(to.ip());
    if next_hop.is_ipv4() != to.is_ipv4() {
        return Err(wrong(Transport::Dpdk, &Target::Address(SocketAddr::new(next_hop, 0))));
    }
    let to = SocketAddr::new(to.ip(), to.port());
    Ok(Box::new(Host::client(made(frames, own, options, setup), to, next_hop, options)?))
}

/// A server's port at `at`.
pub fn server_over<F: Frames + 'static, C: Counter>(
    frames: F,
    at: SocketAddr,
    options: &Options,
    setup: Setup<C>,
) -> Result<Box<dyn Port>, PortError> {
    fit(at, None)?;
    Ok(Box::new(Host::server(made(frames, at, options, setup), options)))
}

/// Addresses of one host each, of one family.
fn fit(own: SocketAddr, to: Option<SocketAddr>) -> Result<(), PortError> {
    for address in to.into_iter().chain([own]) {
        let ip = address.ip();
        if ip.is_multicast() || ip.is_unspecified() || address.is_ipv4() != own.is_ipv4() {
            return Err(wrong(Transport::Dpdk, &Target::Address(address)));
        }
    }
    Ok(())
}

pub(super) fn made<F: Frames, C: Counter>(
    frames: F,
    own: SocketAddr,
    options: &Options,
    mut setup: Setup<C>,
) -> Made<F> {
    let stamps = StampFacts::of_counter(&mut setup.counter, setup.rate).at_ring(C::KIND);
    let port = match own.port() {
        0 => DYNAMIC + (std::process::id() % 16_384) as u16,
        port => port,
    };
    let mac = options.link.mac.unwrap_or(frames.facts().mac);
    let address = SocketAddr::new(own.ip(), port);
    let identity = Identity { mac, address, tags: options.link.tags };
    Made { frames, identity, stamps, rate: setup.rate, place: None }
}
