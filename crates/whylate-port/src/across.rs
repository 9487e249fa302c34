//! Both outer ports of a box in one process: what leaves by the one comes back by the other, whatever
//! lies between them, and both are stamped by one clock.
//!
//! A [`Side`] is one of the two before it knows the other; each may be opened in a network namespace of
//! its own. Led to each other they are ordinary ports. [`Across`] joins two of them to one that sends by
//! the first and receives by the second; [`Crossed`] does the same for a moment, without owning them, for
//! whoever sends both ways on one thread.
//!
//! Nobody is asked where the other end is: both are ours, so that two of whole frames need no third to
//! answer while one thread opens both. Where a router lies between, it has to be named
//! ([`LinkOptions::next_hop`](crate::LinkOptions)), and is asked.
//!
//! Not for connections (TCP) nor for Unix sockets: they have no two ports that a box could lie between.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::address;
use crate::device;
use crate::end::Threads;
use crate::error::PortError;
use crate::facts::{PortFacts, SocketFacts};
use crate::frame::Mac;
use crate::frames::{FramesFacts, Ring};
use crate::host::{self, FrameCounts, Meets};
use crate::open::{Target, Transport, wrong};
use crate::options::Options;
use crate::port::{Port, Received, Setup};
use crate::queues::IncomingFacts;
use crate::udp::{self, Udp};
use crate::waiting::BusyPolling;

/// Looks in vain between two at what came to the port that sends, where that makes its frames itself.
const LOOKS: u32 = 64;

/// One of two ports, open, that does not know the other one yet.
pub struct Side(Kind);

enum Kind {
    Socket { socket: OwnedFd, address: SocketAddr },
    Frames(Box<dyn Meets>),
}

/// Where a side is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideAddress {
    /// Its address, with the port that it got.
    pub address: SocketAddr,
    /// Its hardware address, where it makes its frames itself.
    pub mac: Option<Mac>,
}

impl Side {
    /// Opens the side at `at`, whose port may be 0 for any, in the calling thread's network namespace.
    /// With two threads it can be divided once it is led to the other one. Where whole frames are
    /// carried, `at` may be an address that the kernel does not have, and the options name the interface.
    ///
    /// # Errors
    /// The transport has no two ports, `at` is no address of one host, or the port cannot be opened.
    pub fn open<C: Counter + Clone + 'static>(
        transport: Transport,
        at: SocketAddr,
        options: &Options,
        threads: Threads,
        setup: Setup<C>,
    ) -> Result<Self, PortError> {
        if at.ip().is_multicast() || at.ip().is_unspecified() {
            return Err(wrong(transport, &Target::Address(at)));
        }
        Ok(Self(match transport {
            Transport::Udp => {
                let socket = udp::bound(at, options)?;
                let address = address::local(&socket)?;
                Kind::Socket { socket, address }
            }
            Transport::Packet | Transport::Xdp => {
                Kind::Frames(host::side(transport, at, options, threads, setup)?)
            }
            Transport::Dpdk => {
                let frames = device::open(&options.link, Threads::One, setup.clone())?;
                Kind::Frames(host::side_over(frames, at, options, setup)?)
            }
            Transport::Tcp | Transport::Unix => {
                return Err(PortError::WrongTarget {
                    transport: transport.name(),
                    target: "a second port of the same client".to_owned(),
                    why: "its two ends are joined by the kernel; datagrams and whole frames have two \
                          ports (udp, packet, xdp, dpdk)",
                });
            }
        }))
    }

    /// Where it is.
    #[must_use]
    pub fn at(&self) -> SideAddress {
        match &self.0 {
            Kind::Socket { address, .. } => SideAddress { address: *address, mac: None },
            Kind::Frames(host) => {
                let (mac, address) = host.own();
                SideAddress { address, mac: Some(mac) }
            }
        }
    }

    /// A port whose messages go to `other`, and which hears that one alone. To be called in the network
    /// namespace that the side was opened in.
    ///
    /// # Errors
    /// `other` is of another kind, cannot be reached from here, or the way there cannot be announced.
    pub fn facing<C: Counter + Clone + 'static>(
        self,
        other: SideAddress,
        setup: Setup<C>,
    ) -> Result<Box<dyn Port>, PortError> {
        match (self.0, other.mac) {
            (Kind::Socket { socket, .. }, _) => {
                udp::connect_to(&socket, other.address)?;
                Ok(Box::new(Udp::open(socket, setup)?))
            }
            (Kind::Frames(host), Some(mac)) => host.meet((mac, other.address)),
            (Kind::Frames(_), None) => Err(PortError::WrongDescriptor {
                wanted: "a side that makes its frames itself",
                found: "one that is a socket".to_owned(),
            }),
        }
    }
}

/// Sends by one port and receives by another.
///
/// A port that makes its frames itself is looked after also where it only sends: now and then what came to
/// it is taken in, so that who asks for its address is answered, and what the kernel did not take at once
/// leaves. Messages that come to it are nobody's.
///
/// Divided, the half that sends is the one port, and the other one keeps receiving: each thread has a
/// port to itself. From then on this one sends no more.
pub struct Across {
    /// None once another thread has it.
    out: Mutex<Option<Box<dyn Port>>>,
    back: Box<dyn Port>,
    facts: PortFacts,
    /// Looks in vain since the port that sends was looked after.
    looks: u32,
}

impl Across {
    /// Of two ports that were led to each other.
    #[must_use]
    pub fn new(out: Box<dyn Port>, back: Box<dyn Port>) -> Self {
        let facts = facts(out.facts(), back.facts());
        Self { out: Mutex::new(Some(out)), back, facts, looks: 0 }
    }

    fn out(&mut self) -> Option<&mut dyn Port> {
        let out = self.out.get_mut().unwrap_or_else(PoisonError::into_inner);
        out.as_mut().map(|out| &mut **out as &mut dyn Port)
    }

    #[cold]
    fn look_after_out(&mut self) -> Result<(), PortError> {
        self.looks = 0;
        match self.out() {
            Some(out) => out.receive(&mut [], Nanos(0)).map(|_| ()),
            None => Ok(()),
        }
    }
}

impl Port for Across {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let backend = self.facts.backend;
        match self.out() {
            Some(out) => out.send(message),
            None => Err(PortError::SentElsewhere { backend }),
        }
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let got = self.back.receive(buffer, limit)?;
        if matches!(got, Received::Nothing { .. }) && self.facts.frames.is_some() {
            self.looks += 1;
            if self.looks == LOOKS {
                self.look_after_out()?;
            }
        }
        Ok(got)
    }

    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        let out = self.out.lock().unwrap_or_else(PoisonError::into_inner).take();
        out.ok_or(PortError::NotDivisible { backend: self.facts.backend })
    }

    fn busy_polling(&self) -> BusyPolling {
        self.back.busy_polling()
    }

    fn incoming(&self) -> IncomingFacts {
        self.back.incoming()
    }

    fn frame_counts(&mut self) -> Result<Option<FrameCounts>, PortError> {
        let sent = match self.out() {
            Some(out) => out.frame_counts()?,
            None => None,
        };
        Ok(counts(sent, self.back.frame_counts()?))
    }
}

/// One way between two ports that somebody else has: sends by the one, receives by the other. Costs
/// nothing to make, so that whoever uses both ways on one thread makes one for each message.
pub struct Crossed<'a, O: ?Sized, B: ?Sized> {
    /// Sends.
    pub out: &'a mut O,
    /// Receives.
    pub back: &'a mut B,
    /// What [`facts`] says of the two.
    pub facts: &'a PortFacts,
}

impl<O: Port + ?Sized, B: Port + ?Sized> Port for Crossed<'_, O, B> {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        self.out.send(message)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        self.back.receive(buffer, limit)
    }

    fn facts(&self) -> &PortFacts {
        self.facts
    }

    fn busy_polling(&self) -> BusyPolling {
        self.back.busy_polling()
    }

    fn incoming(&self) -> IncomingFacts {
        self.back.incoming()
    }

    fn frame_counts(&mut self) -> Result<Option<FrameCounts>, PortError> {
        Ok(counts(self.out.frame_counts()?, self.back.frame_counts()?))
    }
}

/// What a reader must know of a way that leaves by `out` and comes back by `back`: the waiting, the
/// stamps and the room for what came are of the one that receives, the room for what leaves and the
/// queues it leaves by of the one that sends, and the longest message and packet are what both carry.
#[must_use]
pub fn facts(out: &PortFacts, back: &PortFacts) -> PortFacts {
    let socket = match (&out.socket, &back.socket) {
        (Some(out), Some(back)) => Some(of_sockets(out, back)),
        (out, back) => back.clone().or_else(|| out.clone()),
    };
    PortFacts {
        path: format!("{} -> {}", place(out), place(back)),
        max_message: out.max_message.min(back.max_message),
        socket,
        frames: match (&out.frames, &back.frames) {
            (Some(out), Some(back)) => Some(of_frames(out, back)),
            (out, back) => back.clone().or_else(|| out.clone()),
        },
        ..back.clone()
    }
}

/// The interface, or the device, that a port uses; none where it may be any.
#[must_use]
pub fn interface_of(facts: &PortFacts) -> Option<&str> {
    let of_frames = facts.frames.as_ref().map(|frames| &frames.interface);
    let of_socket = facts.socket.as_ref().and_then(|socket| socket.interface.as_ref());
    of_frames.or(of_socket).map(String::as_str)
}

fn place(facts: &PortFacts) -> String {
    let local = facts.socket.as_ref().map(|socket| socket.local.as_str());
    let local = local.filter(|local| !local.is_empty()).unwrap_or(&facts.path);
    match interface_of(facts) {
        Some(interface) => format!("{local} by {interface}"),
        None => local.to_owned(),
    }
}

fn of_sockets(out: &SocketFacts, back: &SocketFacts) -> SocketFacts {
    SocketFacts {
        remote: Some(back.local.clone()),
        mtu: [out.mtu, back.mtu].into_iter().flatten().min(),
        receive_buffer: back.receive_buffer,
        busy_poll_us: back.busy_poll_us,
        incoming: back.incoming,
        ..out.clone()
    }
}

/// Those of the one that receives, of which frames may be lost before anybody sees them.
fn of_frames(out: &FramesFacts, back: &FramesFacts) -> FramesFacts {
    let mut instead = back.instead.clone();
    instead.extend(out.instead.iter().filter(|said| !back.instead.contains(said)).cloned());
    let (mtu, room) = (out.mtu.min(back.mtu), out.room.min(back.room));
    FramesFacts { mtu, room, instead, ..back.clone() }
}

/// What came is of the port that receives; of the one that sends, what was dropped on the way out.
fn counts(out: Option<FrameCounts>, back: Option<FrameCounts>) -> Option<FrameCounts> {
    let FrameCounts { host, mut drops } = back?;
    let leaves = |ring: Ring| matches!(ring, Ring::Send | Ring::Completion);
    drops.retain(|of| !leaves(of.ring));
    drops.extend(out.into_iter().flat_map(|of| of.drops).filter(|of| leaves(of.ring)));
    Some(FrameCounts { host, drops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{Counted, Drops};
    use crate::host::HostCounts;
    use crate::memory::{MemoryPort, Network};

    /// How long a message is waited for.
    const LIMIT: Nanos = Nanos(60_000_000_000);

    fn port() -> MemoryPort<impl FnMut(&[u8], &mut Network) + Send> {
        MemoryPort::new(|message: &[u8], network: &mut Network| {
            network.arrive(Nanos(5), message.to_vec());
        })
    }

    #[test]
    fn a_message_leaves_by_the_one_and_never_comes_back_by_it() {
        let mut across = Across::new(Box::new(port()), Box::new(port()));
        across.send(&[7; 20]).unwrap();
        let mut buffer = [0; 64];
        // The echo of the first port waits there: what is received comes by the second one alone.
        let got = across.receive(&mut buffer, Nanos(1_000)).unwrap();
        assert!(matches!(got, Received::Nothing { .. }), "{got:?}");
        let mut sending = across.duplicate().unwrap();
        let got = sending.receive(&mut buffer, Nanos(1_000)).unwrap();
        assert!(matches!(got, Received::Message { length: 20, .. }), "{got:?}");
    }

    #[test]
    fn divided_it_keeps_receiving_and_sends_no_more() {
        let mut across = Across::new(Box::new(port()), Box::new(port()));
        let mut sending = across.duplicate().unwrap();
        assert!(matches!(across.duplicate(), Err(PortError::NotDivisible { .. })));
        assert!(matches!(across.send(&[1; 20]), Err(PortError::SentElsewhere { .. })));
        sending.send(&[1; 20]).unwrap();
        assert!(matches!(
            across.receive(&mut [0; 64], Nanos(0)).unwrap(),
            Received::Nothing { .. }
        ));
    }

    fn dropped(ring: Ring, count: u64) -> Drops {
        Drops { queue: 0, ring, counter: "planted", count, of: Counted::Frames }
    }

    #[test]
    fn drops_are_told_of_the_ring_that_was_used_at_either_end() {
        let of = |receive, send| {
            let drops = vec![dropped(Ring::Receive, receive), dropped(Ring::Send, send)];
            Some(FrameCounts {
                host: HostCounts { messages: receive, ..HostCounts::default() },
                drops,
            })
        };
        let told = counts(of(1, 2), of(3, 4)).unwrap();
        assert_eq!(told.host.messages, 3);
        assert_eq!(told.drops, [dropped(Ring::Receive, 3), dropped(Ring::Send, 2)]);
        assert_eq!(counts(of(1, 2), None), None);
    }

    #[test]
    fn what_a_way_carries_is_what_both_of_its_ports_carry() {
        let mut out = port().facts().clone();
        let mut back = out.clone();
        out.max_message = 1_000;
        let socket = |local: &str, mtu, interface: &str| {
            let (local, interface) = (local.to_owned(), Some(interface.to_owned()));
            Some(SocketFacts { local, interface, mtu, ..SocketFacts::default() })
        };
        out.socket = socket("198.18.0.1:7", Some(9_000), "near");
        back.socket = socket("198.18.0.2:8", Some(1_500), "far");
        let told = facts(&out, &back);
        assert_eq!(told.path, "198.18.0.1:7 by near -> 198.18.0.2:8 by far");
        assert_eq!(told.max_message, 1_000);
        let socket = told.socket.unwrap();
        assert_eq!((socket.mtu, socket.interface.as_deref()), (Some(1_500), Some("near")));
        assert_eq!(socket.remote.as_deref(), Some("198.18.0.2:8"));
    }

    #[test]
    fn a_transport_without_two_ports_is_refused() {
        let Ok(counter) = whylate_clock::HardwareCounter::open() else { return };
        let setup =
            Setup { counter, rate: whylate_model::Hertz(1e9), wait: crate::waiting::Wait::Spin };
        let at = "127.0.0.1:0".parse().unwrap();
        for transport in [Transport::Tcp, Transport::Unix] {
            let told = Side::open(transport, at, &Options::default(), Threads::One, setup);
            let told = told.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains("second port"), "{told}");
        }
        let any = "0.0.0.0:0".parse().unwrap();
        let told = Side::open(Transport::Udp, any, &Options::default(), Threads::One, setup);
        assert!(told.is_err());
    }

    #[test]
    fn two_sockets_led_to_each_other_carry_messages_both_ways() {
        let Ok(counter) = whylate_clock::HardwareCounter::open() else { return };
        let setup =
            Setup { counter, rate: whylate_model::Hertz(1e9), wait: crate::waiting::Wait::Poll };
        let side = || {
            let at = "127.0.0.1:0".parse().unwrap();
            Side::open(Transport::Udp, at, &Options::default(), Threads::One, setup).unwrap()
        };
        let (near, far) = (side(), side());
        let (at_near, at_far) = (near.at(), far.at());
        let mut near = near.facing(at_far, setup).unwrap();
        let mut far = far.facing(at_near, setup).unwrap();
        let ways = [facts(near.facts(), far.facts()), facts(far.facts(), near.facts())];
        let mut buffer = [0; 64];
        for length in 20..30 {
            let mut there = Crossed { out: &mut *near, back: &mut *far, facts: &ways[0] };
            let sent = there.send(&vec![1; length]).unwrap();
            let got = there.receive(&mut buffer, LIMIT).unwrap();
            let Received::Message { length: came, at } = got else { panic!("{got:?}") };
            assert!(came == length && at > sent);
            let mut back = Crossed { out: &mut *far, back: &mut *near, facts: &ways[1] };
            back.send(&vec![1; length + 1]).unwrap();
            let got = back.receive(&mut buffer, LIMIT).unwrap();
            assert!(matches!(got, Received::Message { length: came, .. } if came == length + 1));
        }
    }
}
