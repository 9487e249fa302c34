//! Clients of a relay: a socket towards the server for each, so that answers find their way back.
//!
//! Who receives from clients makes and gives up sockets ([`Known`]); who receives from the server or sends
//! looks at a copy of the table ([`View`]), which is made anew when the table has changed and at no other
//! time.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_sys::datagrams::{self, Name};
use whylate_sys::epoll::Epoll;

use super::BACKEND;
use crate::address;
use crate::error::PortError;
use crate::options::Options;
use crate::udp;
use crate::waiting::{Wait, busy_poll};

/// Clients at a time: each has a socket.
pub const MOST_CLIENTS: usize = 256;
/// A client that was silent for so long makes place for another where there is none else.
const IDLE: Nanos = Nanos(60 * Nanos::SECOND.0);

/// One client.
pub(super) struct Client {
    /// Where its answers go.
    pub(super) name: Name,
    /// Towards the server.
    pub(super) socket: OwnedFd,
}

/// What all ends of a relay share.
pub(super) struct Clients {
    /// Where clients reach it.
    pub(super) listener: OwnedFd,
    /// Can be read while an answer has come.
    pub(super) answers: Epoll,
    to: SocketAddr,
    wait: Wait,
    table: Mutex<Vec<Option<Arc<Client>>>>,
    /// How often the table has changed.
    version: AtomicU64,
    /// What the sockets had dropped that were given up.
    dropped_before: AtomicU64,
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("to", &self.to).finish_non_exhaustive()
    }
}

impl Clients {
    /// Opens the socket that clients reach, and tries whether there is a way to the server.
    pub(super) fn open(listen: SocketAddr, to: SocketAddr, wait: Wait) -> Result<Self, PortError> {
        let listener = udp::bound(listen, &Options::default())?;
        if wait == Wait::BusyPoll {
            busy_poll::ask(&listener, BACKEND)?;
        }
        let answers = Epoll::new().map_err(|source| PortError::Wait { wait, source })?;
        drop(udp::connected(address::any_of(to), to)?);
        Ok(Self {
            listener,
            answers,
            to,
            wait,
            table: Mutex::new(Vec::new()),
            version: AtomicU64::new(0),
            dropped_before: AtomicU64::new(0),
        })
    }

    fn table(&self) -> MutexGuard<'_, Vec<Option<Arc<Client>>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives this place to a client, and up the one that had it.
    fn give(&self, place: usize, from: SocketAddr) -> Result<(), PortError> {
        let socket = udp::connected(address::any_of(self.to), self.to)?;
        if self.wait == Wait::BusyPoll {
            busy_poll::ask(&socket, BACKEND)?;
        }
        let failed = |source| PortError::Wait { wait: self.wait, source };
        self.answers.watch(&socket, place as u64).map_err(failed)?;
        let client = Arc::new(Client { name: Name::of(from), socket });
        let mut table = self.table();
        if table.len() <= place {
            table.resize_with(place + 1, || None);
        }
        if let Some(former) = table[place].replace(client) {
            // Others may have it open for a while.
            let _ = self.answers.forget(&former.socket);
            let dropped = datagrams::dropped(&former.socket).unwrap_or(0);
            self.dropped_before.fetch_add(dropped.into(), Ordering::Relaxed);
        }
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Datagrams that found no room at the sockets towards the server.
    pub(super) fn dropped(&self) -> u64 {
        let of = |client: &Arc<Client>| datagrams::dropped(&client.socket).unwrap_or(0);
        let now: u64 = self.table().iter().flatten().map(|client| u64::from(of(client))).sum();
        now + self.dropped_before.load(Ordering::Relaxed)
    }
}

/// The table as it was when it had changed last.
#[derive(Default)]
pub(super) struct View {
    version: u64,
    places: Vec<Option<Arc<Client>>>,
    /// The place of the only client, where there is one alone.
    pub(super) only: Option<usize>,
}

impl View {
    /// Copies the table where it has changed.
    #[inline]
    pub(super) fn look(&mut self, clients: &Clients) {
        if clients.version.load(Ordering::Acquire) != self.version {
            self.copy(clients);
        }
    }

    #[cold]
    fn copy(&mut self, clients: &Clients) {
        let table = clients.table();
        self.version = clients.version.load(Ordering::Acquire);
        self.places.clone_from(&table);
        drop(table);
        let mut there = (0..self.places.len()).filter(|place| self.places[*place].is_some());
        self.only = there.next();
        if there.next().is_some() {
            self.only = None;
        }
    }

    #[inline]
    pub(super) fn of(&self, place: usize) -> Option<&Client> {
        self.places.get(place)?.as_deref()
    }

    /// Has any client been heard?
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The first socket towards the server.
    pub(super) fn first(&self) -> Option<&Client> {
        self.places.iter().flatten().next().map(|client| &**client)
    }
}

/// Who the clients are, for the end that receives from them.
#[derive(Debug)]
pub(super) struct Known {
    by: HashMap<SocketAddr, usize>,
    /// Address of each, and when it was heard last.
    places: Vec<(SocketAddr, Ticks)>,
    /// The last one that was heard.
    last: Option<(SocketAddr, usize)>,
    idle: TicksDelta,
    /// Datagrams of clients for which there was no place.
    pub(super) turned_away: u64,
}

impl Known {
    pub(super) fn new(rate: Hertz) -> Self {
        Self {
            by: HashMap::with_capacity(MOST_CLIENTS),
            places: Vec::with_capacity(MOST_CLIENTS),
            last: None,
            idle: IDLE.to_ticks(rate),
            turned_away: 0,
        }
    }

    /// The place of who sent something, a new one where it was not heard before. None, and counted, where
    /// there is none or a socket cannot be had.
    #[inline]
    pub(super) fn place(
        &mut self,
        from: SocketAddr,
        at: Ticks,
        clients: &Clients,
    ) -> Option<usize> {
        if let Some((last, place)) = self.last
            && last == from
        {
            self.places[place].1 = at;
            return Some(place);
        }
        let place = match self.by.get(&from) {
            Some(place) => *place,
            None => self.new_place(from, at, clients)?,
        };
        self.places[place].1 = at;
        self.last = Some((from, place));
        Some(place)
    }

    #[cold]
    fn new_place(&mut self, from: SocketAddr, at: Ticks, clients: &Clients) -> Option<usize> {
        let place = if self.places.len() < MOST_CLIENTS {
            Some(self.places.len())
        } else {
            self.places.iter().position(|(_, heard)| at.since(*heard) > self.idle)
        };
        let Some(place) = place.filter(|place| clients.give(*place, from).is_ok()) else {
            self.turned_away += 1;
            return None;
        };
        if place == self.places.len() {
            self.places.push((from, at));
        } else {
            let (former, _) = std::mem::replace(&mut self.places[place], (from, at));
            self.by.remove(&former);
            self.last = None;
        }
        self.by.insert(from, place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u16) -> SocketAddr {
        SocketAddr::new([127, 0, 0, 9].into(), 1_000 + number)
    }

    #[test]
    fn each_client_has_a_place_of_its_own_and_a_silent_one_makes_room_for_another() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let server: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let clients = Clients::open(any, server, Wait::Spin).unwrap();
        let (mut known, mut view) = (Known::new(Hertz(1e9)), View::default());
        let second = Nanos::SECOND.0;
        for number in 0..MOST_CLIENTS as u16 {
            let place = known.place(client(number), Ticks(second), &clients);
            assert_eq!(place, Some(usize::from(number)));
            view.look(&clients);
            assert_eq!(view.only, (number == 0).then_some(0));
        }
        // All but the eighth are heard again.
        for number in (0..MOST_CLIENTS as u16).filter(|number| *number != 7) {
            let place = known.place(client(number), Ticks(40 * second), &clients);
            assert_eq!(place, Some(usize::from(number)));
        }
        assert_eq!(known.place(client(999), Ticks(50 * second), &clients), None);
        assert_eq!(known.turned_away, 1);
        assert_eq!(known.place(client(999), Ticks(62 * second), &clients), Some(7));
        view.look(&clients);
        let name = |place: usize| view.of(place).and_then(|client| client.name.address());
        assert_eq!((name(6), name(7)), (Some(client(6)), Some(client(999))));
        assert_eq!(known.place(client(7), Ticks(63 * second), &clients), None);
        assert_eq!((known.turned_away, clients.dropped()), (2, 0));
    }
}
