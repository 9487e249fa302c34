//! A host of its own past the kernel: a port for messages of UDP, made of whole frames.
//!
//! It answers who asks for its address (ARP, neighbour discovery), so that ordinary hosts can be its
//! other end; it resolves its server's address when it is opened, with a bounded number of questions;
//! what is not for it is dropped and counted ([`HostCounts`]). Where the kernel has the same address,
//! it is kept from answering in between. No routing: where the other end is on another link, the
//! next hop has to be named. Groups are not joined.

mod counts;
mod identity;
mod open;
mod over;
mod place;
mod side;
mod stamps;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use whylate_model::{Hertz, Nanos, Ticks};

use crate::error::PortError;
use crate::facts::{PortFacts, SocketFacts, StampFacts};
use crate::frame::{Flow, Mac, Template, header_bytes};
use crate::frames::{Burst, Frames};
use crate::options::Options;
use crate::peer::Peer;
use crate::port::{Port, Received, SEND_LIMIT};
use crate::stamps::{Stamp, StampCounts, StampWish};
use crate::waiting::BusyPolling;
use crate::waiting::spin::Patience;

pub use counts::{FrameCounts, HostCounts};
pub(crate) use open::{client, server};
pub use over::{client_over, server_over};
pub(crate) use side::{Meets, side, side_over};
pub use stamps::{MessageStage, MessageStamp};

use counts::NotOurs;
use identity::{Identity, Judged, Resolution};
use place::Place;
use stamps::MessageStamps;

/// Questions for an address at most.
const QUESTIONS: u32 = 5;
/// How long an answer is waited for: ten times what a busy host of a local network takes.
const ANSWER: Nanos = Nanos(200_000_000);
/// 65 535 less the headers of IPv4 and UDP.
const MOST_MESSAGE: usize = 65_507;
/// What systems give packets (RFC 1700).
const USUAL_HOPS: u8 = 64;

/// Whom a host talks to.
#[derive(Debug)]
enum Role {
    /// A server, and nobody else.
    Client(SocketAddr),
    /// Whoever sent the last message.
    Server(Option<Sender>),
}

/// Who sent the last message.
#[derive(Debug)]
struct Sender {
    mac: Mac,
    address: SocketAddr,
    peer: Peer,
}

/// A port for messages, made of whole frames.
#[derive(Debug)]
pub struct Host<F> {
    frames: F,
    identity: Identity,
    role: Role,
    /// Headers of what is sent; none of a server that has not heard anybody.
    template: Option<Template>,
    how: How,
    burst: Burst,
    /// The next frame of the burst.
    next: usize,
    counts: HostCounts,
    stamps: MessageStamps,
    rate: Hertz,
    facts: PortFacts,
    _place: Option<Place>,
}

/// What packets carry beside addresses.
#[derive(Debug, Clone, Copy)]
struct How {
    class: u8,
    hops: u8,
}

/// What a host needs beside its frames.
struct Made<F> {
    frames: F,
    identity: Identity,
    stamps: StampFacts,
    rate: Hertz,
    place: Option<Place>,
}

impl<F: Frames> Host<F> {
    /// A client of `server`, by way of `next_hop`.
    fn client(
        made: Made<F>,
        server: SocketAddr,
        next_hop: IpAddr,
        options: &Options,
    ) -> Result<Self, PortError> {
        let mut host = Self::new(made, Role::Client(server), options);
        let mac = host.resolve(next_hop)?;
        host.lead_to(mac, server);
        Ok(host)
    }

    /// A client of `server`, by way of whoever has `mac`.
    fn client_by(made: Made<F>, server: SocketAddr, mac: Mac, options: &Options) -> Self {
        let mut host = Self::new(made, Role::Client(server), options);
        host.lead_to(mac, server);
        host
    }

    /// A server, which answers whom it hears.
    fn server(made: Made<F>, options: &Options) -> Self {
        Self::new(made, Role::Server(None), options)
    }

    fn new(made: Made<F>, role: Role, options: &Options) -> Self {
        let Made { frames, identity, stamps, rate, place } = made;
        let own = identity.address;
        let how = How {
            class: options.traffic_class.unwrap_or(0),
            hops: options.hops.unwrap_or(USUAL_HOPS),
        };
        let link = frames.facts();
        let remote = match role {
            Role::Client(server) => Some(server.to_string()),
            Role::Server(_) => None,
        };
        let path = match &remote {
            Some(to) => format!("{own} -> {to} by {}", link.interface),
            None => format!("any -> {own} by {}", link.interface),
        };
        let socket = SocketFacts {
            local: own.to_string(),
            remote,
            interface: Some(link.interface.clone()),
            mtu: Some(link.mtu),
            whole_packets: Some(true),
            traffic_class: Some(how.class),
            hops: Some(how.hops),
            ..SocketFacts::default()
        };
        let headers = header_bytes(own, identity.tags.count());
        let facts = PortFacts {
            backend: link.backend,
            path,
            wait: link.wait,
            stamps,
            max_message: link.room.saturating_sub(headers).min(MOST_MESSAGE),
            socket: Some(socket),
            frames: Some(link.clone()),
        };
        let burst = Burst { count: 0, at: Ticks(0) };
        let counts = HostCounts::default();
        let of_frames = frames.stamps();
        let stamped = of_frames.received || of_frames.sent.is_some();
        Self {
            frames,
            identity,
            role,
            template: None,
            how,
            burst,
            next: 0,
            counts,
            stamps: MessageStamps::new(stamped),
            rate,
            facts,
            _place: place,
        }
    }

    /// From now on messages go to `address` at `mac`.
    fn lead_to(&mut self, mac: Mac, address: SocketAddr) {
        let Identity { mac: own, address: from, tags } = self.identity;
        let How { class, hops } = self.how;
        let link = (own, mac);
        self.template = Template::new(&Flow { link, tags, from, to: address, class, hops });
    }

    /// Asks who has `address`, a bounded number of times, and answers others meanwhile.
    fn resolve(&mut self, address: IpAddr) -> Result<Mac, PortError> {
        let question = self.identity.question(address);
        for _ in 0..QUESTIONS {
            if !self.post(&question)? {
                self.frames.urge()?;
            }
            let mut patience = Patience::new(ANSWER, self.rate);
            let mut left = ANSWER;
            loop {
                let burst = self.frames.receive(left)?;
                for at in 0..burst.count {
                    match self.identity.judge(&self.frames.frame(at)) {
                        Judged::Told(told, mac) if told == address => {
                            self.counts.resolution += 1;
                            // The rest of the burst is somebody's, too.
                            (self.burst, self.next) = (burst, at + 1);
                            return Ok(mac);
                        }
                        Judged::Asked(answer) => self.answer(&answer)?,
                        Judged::Told(..) => self.counts.resolution += 1,
                        Judged::Message(..) => self.counts.stranger += 1,
                        Judged::Not(why) => self.counts.not_ours(why),
                    }
                }
                if patience.is_over(burst.at) {
                    break;
                }
                left = patience.left(burst.at, self.rate);
            }
        }
        let interface = self.frames.facts().interface.clone();
        let tries = QUESTIONS;
        Err(PortError::NoNeighbour { address, interface, tries, limit: ANSWER })
    }

    /// Sends a frame that is ready; false where the ring is full.
    fn post(&mut self, frame: &Resolution) -> Result<bool, PortError> {
        let bytes = frame.bytes();
        let Some(place) = self.frames.put(bytes.len()) else { return Ok(false) };
        place.copy_from_slice(bytes);
        self.frames.flush().map(|_| true)
    }

    #[cold]
    fn answer(&mut self, answer: &Resolution) -> Result<(), PortError> {
        if self.post(answer)? {
            self.counts.answered += 1;
        } else {
            self.counts.not_answered += 1;
        }
        Ok(())
    }

    /// Looks at a frame of the burst; the length of the message where it is one.
    #[inline]
    fn take(&mut self, at: usize, buffer: &mut [u8]) -> Result<Option<usize>, PortError> {
        let (kernel, card) = if self.stamps.is_on() {
            (self.frames.frame(at).kernel, self.frames.card_stamp(at))
        } else {
            (None, None)
        };
        match self.identity.judge(&self.frames.frame(at)) {
            Judged::Message(mac, datagram) => {
                if let Role::Client(server) = &self.role
                    && datagram.from != *server
                {
                    self.counts.not_ours(NotOurs::Stranger);
                    return Ok(None);
                }
                let kept = datagram.message.len().min(buffer.len());
                buffer[..kept].copy_from_slice(&datagram.message[..kept]);
                let (length, from) = (datagram.message.len(), datagram.from);
                self.counts.message(datagram.verified);
                self.stamps.came(kernel, card);
                self.heard(mac, from);
                return Ok(Some(length));
            }
            Judged::Asked(answer) => self.answer(&answer)?,
            Judged::Told(..) => self.counts.not_ours(NotOurs::Resolution),
            Judged::Not(why) => self.counts.not_ours(why),
        }
        Ok(None)
    }

    /// Tells when messages came and left, as far as their frames were stamped: what has become known since
    /// the last time. Never waits.
    pub fn take_message_stamps(&mut self, each: &mut dyn FnMut(MessageStamp)) {
        let stamps = &mut self.stamps;
        self.frames.take_sent(&mut |stamp| stamps.left(stamp));
        stamps.take(each);
    }

    /// Messages sent and received so far; none where nothing is stamped.
    #[must_use]
    pub fn message_numbers(&self) -> Option<(u64, u64)> {
        self.stamps.numbers()
    }

    /// Stamps of messages that were lost because nobody took them.
    #[must_use]
    pub fn message_stamps_lost(&self) -> u64 {
        self.stamps.lost()
    }

    /// Of a server: answers go to whoever sent the last message. Headers are made anew only when it
    /// is another one.
    #[inline]
    fn heard(&mut self, mac: Mac, address: SocketAddr) {
        let Role::Server(last) = &mut self.role else { return };
        if last.as_ref().is_none_or(|last| last.mac != mac || last.address != address) {
            *last = Some(Sender { mac, address, peer: Peer(address.into()) });
            self.lead_to(mac, address);
        }
    }
}

impl<F: Frames> Port for Host<F> {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let backend = self.facts.backend;
        let Some(template) = &self.template else {
            return Err(PortError::NobodyToAnswer { backend });
        };
        if message.len() > self.facts.max_message {
            let mtu = Some(self.frames.facts().mtu);
            return Err(PortError::MtuTooSmall { bytes: message.len(), mtu });
        }
        let length = template.bytes() + message.len();
        let limit = match self.role {
            Role::Client(_) => SEND_LIMIT,
            Role::Server(_) => Nanos(0),
        };
        let mut patience = Patience::new(limit, self.rate);
        loop {
            if let Some(frame) = self.frames.put(length) {
                template.write(frame, message);
                self.stamps.put(self.frames.put_so_far());
                return self.frames.flush();
            }
            if patience.is_over(self.frames.urge()?) {
                return Err(PortError::SendTimedOut { backend, limit });
            }
        }
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let mut patience = Patience::new(limit, self.rate);
        let (mut left, mut over) = (limit, false);
        loop {
            while self.next < self.burst.count {
                let at = self.next;
                self.next += 1;
                if let Some(length) = self.take(at, buffer)? {
                    return Ok(Received::Message { length, at: self.burst.at });
                }
            }
            if over {
                return Ok(Received::Nothing { at: self.burst.at });
            }
            self.next = 0;
            self.burst = self.frames.receive(left)?;
            let at = self.burst.at;
            if self.burst.count == 0 {
                return Ok(Received::Nothing { at });
            }
            // Frames for others do not prolong the wait, however many come.
            over = patience.is_over(at);
            left = patience.left(at, self.rate);
        }
    }

    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    /// The half that sends; questions for the address are answered by this one.
    fn duplicate(&self) -> Result<Box<dyn Port>, PortError> {
        let Role::Client(server) = self.role else {
            return Err(PortError::NotDivisible { backend: self.facts.backend });
        };
        let frames = self.frames.divide()?;
        Ok(Box::new(Host {
            stamps: MessageStamps::new(frames.stamps().sent.is_some()),
            frames,
            identity: self.identity,
            role: Role::Client(server),
            template: self.template.clone(),
            how: self.how,
            burst: Burst { count: 0, at: Ticks(0) },
            next: 0,
            counts: HostCounts::default(),
            rate: self.rate,
            facts: self.facts.clone(),
            _place: None,
        }))
    }

    #[inline]
    fn peer(&self) -> Option<&Peer> {
        match &self.role {
            Role::Server(last) => last.as_ref().map(|last| &last.peer),
            Role::Client(_) => None,
        }
    }

    fn busy_polling(&self) -> BusyPolling {
        self.frames.busy_polling()
    }

    /// Whether frames are stamped at all is decided when the port is opened
    /// ([`LinkOptions::stamping`](crate::LinkOptions::stamping)).
    fn stamp(&mut self, wish: &StampWish) -> Result<(), PortError> {
        let (backend, of) = (self.facts.backend, self.frames.stamps());
        let asked = self.stamps.ask(wish, &of);
        asked.map_err(|why| PortError::FramesNotStamped { backend, why })
    }

    fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        let stamps = &mut self.stamps;
        self.frames.take_sent(&mut |stamp| stamps.left(stamp));
        stamps.take_wished(each);
        Ok(())
    }

    fn stamp_counts(&self) -> Option<StampCounts> {
        self.stamps.counts()
    }

    fn numbers(&self) -> Option<(u64, u64)> {
        self.stamps.numbers()
    }

    fn frame_counts(&mut self) -> Result<Option<FrameCounts>, PortError> {
        Ok(Some(FrameCounts { host: self.counts, drops: self.frames.drops()? }))
    }
}
