//! Datagrams of a proxy: one socket where clients reach it, and one towards the server for each client, so
//! that answers find their way back.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use whylate_clock::Counter;
use whylate_model::{Ticks, TicksDelta};
use whylate_sys::poll::PollSet;

use super::error::ProxyError;
use super::line::{Direction, Part, Room, Teller};
use super::words::ProxyWay;

/// Clients at a time; datagrams of others are dropped and counted.
pub const MOST_CLIENTS: usize = 256;
/// Datagrams taken from one socket before the others are looked at.
const BURST: usize = 32;
/// The longest datagram.
const MOST_BYTES: usize = 65_507;
/// Mark of the socket that clients reach; clients' own have their places after it.
const LISTENER: u64 = 0;

/// One client.
#[derive(Debug)]
struct Client {
    address: SocketAddr,
    socket: UdpSocket,
    /// When it, or the server for it, was heard last.
    heard: Ticks,
}

/// The sockets.
#[derive(Debug)]
pub(super) struct Datagrams {
    listener: UdpSocket,
    to: SocketAddr,
    places: Vec<Option<Client>>,
    known: HashMap<SocketAddr, usize>,
    buffer: Box<[u8]>,
    /// A client that was not heard for so long makes place for another.
    idle: TicksDelta,
    /// Datagrams of clients for which there was no place.
    pub(super) turned_away: u64,
    pub(super) clients: u64,
}

impl Datagrams {
    /// Opens the socket that clients reach.
    pub(super) fn open(
        way: &ProxyWay,
        idle: TicksDelta,
        set: &mut PollSet,
    ) -> Result<Self, ProxyError> {
        let listener = bound(way.listen)?;
        set.watch(&listener, LISTENER);
        let mut places = Vec::new();
        places.resize_with(MOST_CLIENTS, || None);
        Ok(Self {
            listener,
            to: way.to,
            places,
            known: HashMap::with_capacity(MOST_CLIENTS),
            buffer: vec![0; MOST_BYTES].into(),
            idle,
            turned_away: 0,
            clients: 0,
        })
    }

    /// Where clients reach it.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Takes what has come by the socket with this mark.
    pub(super) fn take<C: Counter>(
        &mut self,
        mark: u64,
        counter: &mut C,
        ways: &mut [Direction; 2],
        (set, tell): (&mut PollSet, &mut Teller),
    ) {
        for _ in 0..BURST {
            let more = if mark == LISTENER {
                self.take_of_clients(counter, &mut ways[0], (&mut *set, &mut *tell))
            } else {
                self.take_of_server(mark as usize - 1, counter, (&mut ways[1], &mut *tell))
            };
            if !more {
                break;
            }
        }
    }

    /// Was there a datagram?
    fn take_of_clients<C: Counter>(
        &mut self,
        counter: &mut C,
        there: &mut Direction,
        (set, tell): (&mut PollSet, &mut Teller),
    ) -> bool {
        match self.listener.recv_from(&mut self.buffer) {
            Ok((length, from)) => {
                let at = counter.read();
                match self.place(from, at, set) {
                    Some(place) => {
                        let bytes = &self.buffer[..length];
                        there.take((at, place as u64), Part::Message, bytes, tell);
                    }
                    None => self.turned_away += 1,
                }
                true
            }
            // An answer that could not be delivered earlier is told here: the next one may be.
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    fn take_of_server<C: Counter>(
        &mut self,
        place: usize,
        counter: &mut C,
        (back, tell): (&mut Direction, &mut Teller),
    ) -> bool {
        let Some(client) = self.places.get_mut(place).and_then(Option::as_mut) else {
            return false;
        };
        match client.socket.recv(&mut self.buffer) {
            Ok(length) => {
                let at = counter.read();
                client.heard = at;
                back.take((at, place as u64), Part::Message, &self.buffer[..length], tell);
                true
            }
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    /// The place of a client, a new one where it was not heard before; none where there is none.
    fn place(&mut self, from: SocketAddr, at: Ticks, set: &mut PollSet) -> Option<usize> {
        if let Some(place) = self.known.get(&from) {
            if let Some(client) = &mut self.places[*place] {
                client.heard = at;
            }
            return Some(*place);
        }
        let free = self.places.iter().position(Option::is_none);
        let place = free.or_else(|| self.give_up_an_idle_one(at, set))?;
        let socket = towards(self.to).ok()?;
        set.watch(&socket, place as u64 + 1);
        self.places[place] = Some(Client { address: from, socket, heard: at });
        self.known.insert(from, place);
        self.clients += 1;
        Some(place)
    }

    fn give_up_an_idle_one(&mut self, at: Ticks, set: &mut PollSet) -> Option<usize> {
        let idle = |client: &Client| at.0.saturating_sub(client.heard.0) > self.idle.0;
        let place = self.places.iter().position(|place| place.as_ref().is_some_and(idle))?;
        let client = self.places[place].take()?;
        self.known.remove(&client.address);
        set.forget(place as u64 + 1);
        Some(place)
    }

    /// Sends a datagram on.
    pub(super) fn send(&mut self, direction: usize, place: u64, bytes: &[u8]) -> Room {
        let Some(client) = self.places.get(place as usize).and_then(Option::as_ref) else {
            return Room::Gone;
        };
        let sent = match direction {
            0 => client.socket.send(bytes),
            _ => self.listener.send_to(bytes, client.address),
        };
        match sent {
            Ok(_) => Room::Taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Room::Full,
            Err(error) => Room::Refused(error.to_string()),
        }
    }
}

fn bound(at: SocketAddr) -> Result<UdpSocket, ProxyError> {
    let socket = UdpSocket::bind(at).and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    socket.map_err(|source| ProxyError::Socket { what: "listen at", at, source })
}

/// A socket of one client towards the server.
fn towards(to: SocketAddr) -> std::io::Result<UdpSocket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
