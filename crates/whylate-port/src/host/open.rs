//! Opening a host: whose address, by which interface, past which part of the kernel.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use whylate_clock::Counter;
use whylate_model::Hertz;

use crate::bpf::{Messages, Take};
use crate::error::PortError;
use crate::facts::StampFacts;
use crate::frame::Mac;
use crate::frames::Frames;
use crate::host::place::Place;
use crate::host::{Host, Identity, Made};
use crate::interface;
use crate::link::{Link, LinkOptions};
use crate::open::{Target, Transport, wrong};
use crate::options::Options;
use crate::packet::Packet;
use crate::port::{Port, Setup, Wait};
use crate::xdp::Xdp;

/// Frames in the ring of a port that only asks for an address.
const FEW: u32 = 64;

/// A client's port to the server at `to`; `from` is its own address, which the kernel need not have.
pub(crate) fn client<C: Counter + Clone + 'static>(
    transport: Transport,
    to: SocketAddr,
    from: Option<SocketAddr>,
    options: &Options,
    setup: Setup<C>,
) -> Result<Box<dyn Port>, PortError> {
    let to = without_scope(to);
    let host = Opening::new(transport, (from, Some(to)), options)?;
    let next_hop = options.link.next_hop.unwrap_or(to.ip());
    if next_hop.is_ipv4() != to.is_ipv4() {
        return Err(wrong(transport, &Target::Address(SocketAddr::new(next_hop, 0))));
    }
    match transport {
        Transport::Packet => {
            let sleeps = setup.wait.sleeps();
            let mut made = host.packet(setup)?;
            // Who sleeps for replies sends on another thread.
            if sleeps {
                made.frames = made.frames.divisible()?;
            }
            Ok(Box::new(Host::client(made, to, next_hop, options)?))
        }
        _ if host.is_kernels() => {
            // Answers to the kernel's own address pass to the kernel, and a packet socket sees them.
            let mac = host.resolve(setup.clone(), next_hop)?;
            Ok(Box::new(Host::client_by(host.xdp(setup)?, to, mac, options)))
        }
        _ => {
            let made = host.xdp(setup)?;
            Ok(Box::new(Host::client(made, to, next_hop, options)?))
        }
    }
}

/// A server's port at `at`.
pub(crate) fn server<C: Counter + Clone + 'static>(
    transport: Transport,
    at: SocketAddr,
    options: &Options,
    setup: Setup<C>,
) -> Result<Box<dyn Port>, PortError> {
    let host = Opening::new(transport, (Some(at), None), options)?;
    match transport {
        Transport::Packet => Ok(Box::new(Host::server(host.packet(setup)?, options))),
        _ => Ok(Box::new(Host::server(host.xdp(setup)?, options))),
    }
}

/// A host before its frames are there.
pub(super) struct Opening<'a> {
    link: Link,
    identity: Identity,
    place: Place,
    options: &'a Options,
}

impl<'a> Opening<'a> {
    pub(super) fn new(
        transport: Transport,
        (own, to): (Option<SocketAddr>, Option<SocketAddr>),
        options: &'a Options,
    ) -> Result<Self, PortError> {
        let backend = backend(transport);
        let like = own.or(to).map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |address| address.ip());
        for address in own.into_iter().chain(to) {
            if address.ip().is_multicast() || address.is_ipv4() != like.is_ipv4() {
                return Err(wrong(transport, &Target::Address(address)));
            }
        }
        let link = match (&options.interface, own) {
            (Some(name), _) => Link::named(name)?,
            (None, Some(own)) => match interface::having(own.ip()) {
                Some(interface) => Link::named(&interface.name)?,
                None => return Err(PortError::FramesWithoutInterface { backend }),
            },
            (None, None) => return Err(PortError::FramesWithoutInterface { backend }),
        };
        let own = match own {
            Some(own) if !own.ip().is_unspecified() => own,
            other => {
                let port = other.map_or(0, |own| own.port());
                SocketAddr::new(usual(&link, to.map_or(like, |to| to.ip()))?, port)
            }
        };
        let mac = options.link.mac.unwrap_or(link.mac);
        let (place, address) = Place::take(&link, mac, without_scope(own), backend)?;
        let identity = Identity { mac, address, tags: options.link.tags };
        Ok(Self { link, identity, place, options })
    }

    /// Has the kernel the same address?
    pub(super) fn is_kernels(&self) -> bool {
        self.link.addresses.contains(&self.identity.address.ip())
    }

    /// Asks who has `address`, by a packet socket that lives as long as that takes.
    pub(super) fn resolve<C: Counter + Clone + 'static>(
        &self,
        mut setup: Setup<C>,
        address: IpAddr,
    ) -> Result<Mac, PortError> {
        let (stamps, rate) = (stamps(&mut setup), setup.rate);
        let link = LinkOptions { ring: Some(FEW), ..LinkOptions::default() };
        let setup = Setup { wait: Wait::Poll, ..setup };
        let frames = Packet::open(self.link.clone(), &link, setup)?;
        let made = Made { frames, identity: self.identity, stamps, rate, place: None };
        Host::server(made, self.options).resolve(address)
    }

    pub(super) fn packet<C: Counter + Clone + 'static>(
        self,
        mut setup: Setup<C>,
    ) -> Result<Made<Packet<C>>, PortError> {
        let (stamps, rate) = (stamps(&mut setup), setup.rate);
        let frames = Packet::open(self.link.clone(), &self.options.link, setup)?;
        Ok(self.made(frames, stamps, rate))
    }

    pub(super) fn xdp<C: Counter + Clone + 'static>(
        self,
        mut setup: Setup<C>,
    ) -> Result<Made<Xdp<C>>, PortError> {
        let (stamps, rate) = (stamps(&mut setup), setup.rate);
        let own = self.identity.address;
        // Questions for the kernel's own address are the kernel's.
        let neighbours = if self.is_kernels() { Vec::new() } else { vec![own.ip()] };
        let (ports, addresses) = (vec![own.port()], vec![own.ip()]);
        let take = Take::Messages(Messages { ports, addresses, neighbours });
        let frames = Xdp::open(self.link.clone(), &self.options.link, &take, setup)?;
        Ok(self.made(frames, stamps, rate))
    }

    fn made<F: Frames>(self, frames: F, stamps: StampFacts, rate: Hertz) -> Made<F> {
        Made { frames, identity: self.identity, stamps, rate, place: Some(self.place) }
    }
}

/// The name of a transport's backend.
fn backend(transport: Transport) -> &'static str {
    match transport {
        Transport::Xdp => crate::xdp::BACKEND,
        _ => crate::packet::BACKEND,
    }
}

fn stamps<C: Counter>(setup: &mut Setup<C>) -> StampFacts {
    StampFacts::of_counter(&mut setup.counter, setup.rate).at_ring(C::KIND)
}

/// The interface's own address of the family of `like`; of several of IPv6 one that reaches as far.
fn usual(link: &Link, like: IpAddr) -> Result<IpAddr, PortError> {
    let local = |address: &IpAddr| match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let mut same = link.addresses.iter().filter(|address| address.is_ipv4() == like.is_ipv4());
    let fitting = same.clone().find(|address| local(address) == local(&like));
    fitting.or(same.next()).copied().ok_or_else(|| PortError::InterfaceWithoutAddress {
        name: link.name.clone(),
        family: if like.is_ipv4() { "ipv4" } else { "ipv6" },
    })
}

/// Frames carry no scope.
fn without_scope(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}
