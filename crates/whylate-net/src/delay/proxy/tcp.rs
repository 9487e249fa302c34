//! Streams of a proxy: a connection to the server for each connection of a client.
//!
//! A stream loses nothing: where one end does not take what is due, what comes from the other one is not
//! read any more until it does, as an ordinary path would have it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use whylate_clock::Counter;
use whylate_sys::poll::PollSet;

use super::error::ProxyError;
use super::line::{Direction, Part, Room, Teller};
use super::words::ProxyWay;

/// Connections at a time; another is closed at once and counted.
pub const MOST_CONNECTIONS: usize = 64;
/// Bytes of one direction of a connection that are on their way through here before it is not read.
pub const MOST_UNDER_WAY: usize = 256 << 10;
/// Pieces of one direction of a connection that are on their way.
const MOST_PIECES: usize = 512;
/// Bytes taken at once.
const PIECE: usize = 64 << 10;
/// Pieces taken from one socket before the others are looked at.
const BURST: usize = 4;
/// Mark of the listener; each connection has two after it.
const LISTENER: u64 = 0;
/// Bits of a place that tell where; those above tell which of the connections that were there.
const WHERE: u32 = 16;

/// Where the bytes of a direction come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Source {
    #[default]
    Read,
    /// It is not read: too much is under way.
    Paused,
    /// It has nothing more to say.
    Ended,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Flow {
    /// Bytes and pieces that were taken and not given to the other end yet.
    under_way: usize,
    pieces: usize,
    /// What is due and was not taken yet, and whether the end comes after it.
    left: VecDeque<u8>,
    ends: bool,
    source: Source,
    /// Its sink takes nothing more.
    finished: bool,
}

/// A client's connection and ours to the server.
#[derive(Debug)]
struct Pair {
    /// Tells it from others that were in this place.
    number: u64,
    /// The client's end, then the server's.
    ends: [TcpStream; 2],
    /// From the client to the server, then back.
    flows: [Flow; 2],
}

/// The sockets.
#[derive(Debug)]
pub(super) struct Streams {
    listener: TcpListener,
    to: SocketAddr,
    places: Vec<Option<Pair>>,
    buffer: Box<[u8]>,
    pub(super) connections: u64,
    pub(super) turned_away: u64,
}

impl Streams {
    /// Opens the socket that clients reach.
    pub(super) fn open(way: &ProxyWay, set: &mut PollSet) -> Result<Self, ProxyError> {
        let listener = TcpListener::bind(way.listen).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let failed = |source| ProxyError::Socket { what: "listen at", at: way.listen, source };
        let listener = listener.map_err(failed)?;
        set.watch(&listener, LISTENER);
        let mut places = Vec::new();
        places.resize_with(MOST_CONNECTIONS, || None);
        Ok(Self {
            listener,
            to: way.to,
            places,
            buffer: vec![0; PIECE].into(),
            connections: 0,
            turned_away: 0,
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
        if mark == LISTENER {
            self.accept(set);
            return;
        }
        let (place, end) = ((mark as usize - 1) / 2, (mark as usize - 1) % 2);
        for _ in 0..BURST {
            let Some(pair) = self.places.get_mut(place).and_then(Option::as_mut) else { return };
            // What the client says goes there, what the server says goes back.
            let flow = &mut pair.flows[end];
            if flow.source != Source::Read {
                return;
            }
            let name = name(place, pair.number);
            match pair.ends[end].read(&mut self.buffer) {
                Ok(0) => {
                    let at = counter.read();
                    flow.source = Source::Ended;
                    set.forget(mark);
                    ways[end].take((at, name), Part::End, &[], tell);
                    return;
                }
                Ok(length) => {
                    let at = counter.read();
                    (flow.under_way, flow.pieces) = (flow.under_way + length, flow.pieces + 1);
                    if flow.under_way >= MOST_UNDER_WAY || flow.pieces >= MOST_PIECES {
                        flow.source = Source::Paused;
                        set.forget(mark);
                    }
                    ways[end].take((at, name), Part::Stream, &self.buffer[..length], tell);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Reset, refused, or gone: so is the other end's.
                Err(_) => {
                    self.close(place, set);
                    return;
                }
            }
        }
    }

    fn accept(&mut self, set: &mut PollSet) {
        let Ok((client, _)) = self.listener.accept() else { return };
        let Some(place) = self.places.iter().position(Option::is_none) else {
            self.turned_away += 1;
            return;
        };
        let server = towards(self.to);
        let ready = server.and_then(|server| {
            client.set_nonblocking(true)?;
            // What is due leaves at once.
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            Ok(server)
        });
        let Ok(server) = ready else {
            self.turned_away += 1;
            return;
        };
        self.connections += 1;
        for (end, stream) in [(0, &client), (1, &server)] {
            set.watch(stream, mark(place, end));
        }
        let (ends, flows) = ([client, server], [Flow::default(), Flow::default()]);
        self.places[place] = Some(Pair { number: self.connections, ends, flows });
    }

    fn close(&mut self, place: usize, set: &mut PollSet) {
        self.places[place] = None;
        for end in [0, 1] {
            set.forget(mark(place, end));
        }
    }

    fn pair(&mut self, name: u64) -> Option<(usize, &mut Pair)> {
        let place = (name & ((1 << WHERE) - 1)) as usize;
        let pair = self.places.get_mut(place)?.as_mut()?;
        (pair.number == name >> WHERE).then_some((place, pair))
    }

    /// Gives what is due to the other end, or keeps it for that.
    pub(super) fn send(&mut self, direction: usize, name: u64, bytes: &[u8], part: Part) -> Room {
        let Some((_, pair)) = self.pair(name) else { return Room::Gone };
        let flow = &mut pair.flows[direction];
        flow.left.extend(bytes);
        flow.ends |= part == Part::End;
        flow.pieces -= usize::from(part == Part::Stream);
        Room::Taken
    }

    /// Writes what waits for an end that takes it, and reads again what was not read for that. Is there
    /// something that no end takes now?
    pub(super) fn flush(&mut self, set: &mut PollSet) -> bool {
        let mut stuck = false;
        for place in 0..self.places.len() {
            let Some(pair) = &mut self.places[place] else { continue };
            let mut broken = false;
            for (direction, flow) in pair.flows.iter_mut().enumerate() {
                let sink = &mut pair.ends[1 - direction];
                broken |= flow.write(sink).is_err();
                stuck |= !flow.left.is_empty();
                let room = flow.under_way < MOST_UNDER_WAY && flow.pieces < MOST_PIECES;
                if flow.source == Source::Paused && room {
                    flow.source = Source::Read;
                    set.watch(&pair.ends[direction], mark(place, direction));
                }
            }
            if broken || pair.flows.iter().all(|flow| flow.finished) {
                self.close(place, set);
            }
        }
        stuck
    }
}

impl Flow {
    /// Gives the sink what it takes.
    fn write(&mut self, sink: &mut TcpStream) -> std::io::Result<()> {
        while !self.left.is_empty() {
            let (first, _) = self.left.as_slices();
            match sink.write(first) {
                Ok(taken) => {
                    self.left.drain(..taken);
                    self.under_way -= taken;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // Not connected yet.
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.ends && !self.finished {
            match sink.shutdown(Shutdown::Write) {
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                done => done?,
            }
            self.finished = true;
        }
        Ok(())
    }
}

fn mark(place: usize, end: usize) -> u64 {
    (2 * place + end + 1) as u64
}

fn name(place: usize, number: u64) -> u64 {
    place as u64 | number << WHERE
}

/// A connection to the server, which may not be there yet: what is written waits.
fn towards(to: SocketAddr) -> std::io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(errno) => Err(errno.into()),
    }
}
