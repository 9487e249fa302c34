//! Accounts of clients, by their cookie or else by their address.
//!
//! There is room for [`MOST_CLIENTS`]. When a new one comes and all places are taken, it takes that of
//! one who has finished, or else of the one silent for longest; where all were heard a moment ago, as
//! in a flood of cookies, the newcomer is served without an account, and counted.

use std::collections::HashMap;

use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::Peer;
use whylate_stats::histogram::Histogram;

use super::sink::Sink;
use crate::message::{Cookie, ReflectorReport};

/// Clients with an account at a time: each has a histogram of 270 KiB, and a second one
/// where it sends what asks for no reply.
pub const MOST_CLIENTS: usize = 256;
/// A client that was not heard for so long is silent.
const SILENT: Nanos = Nanos(10_000_000_000);

/// What is known of one client.
#[derive(Debug)]
pub struct Client {
    /// Its cookie, where the protocol has one.
    pub cookie: Option<Cookie>,
    /// Where it was heard from first, where the port tells.
    pub peer: Option<Peer>,
    /// Measured requests answered.
    pub answered: u64,
    /// Requests of its warm-up, and greetings, answered.
    pub warm_ups: u64,
    /// Residence of its measured requests, in ticks.
    pub residence: Histogram,
    /// Its messages that ask for no reply, where there were any.
    pub sink: Option<Box<Sink>>,
    /// It has said that it has finished.
    pub finished: bool,
    heard: Ticks,
}

/// The accounts of all clients.
#[derive(Debug)]
pub struct Accounts {
    /// [`SILENT`] in ticks.
    silent: TicksDelta,
    /// Frequency of the counter, in thousandths of a hertz.
    rate_mhz: u64,
    clients: Vec<Client>,
    by_cookie: HashMap<u64, usize>,
    by_peer: HashMap<Peer, usize>,
    /// Clients whose place was given to another.
    pub replaced: u64,
    /// Requests answered without an account, for want of a place.
    pub without: u64,
}

impl Accounts {
    /// No accounts yet, in ticks of a counter of this frequency.
    pub(super) fn new(rate: Hertz) -> Self {
        let silent = SILENT.to_ticks(rate);
        let rate_mhz = (rate.0 * 1e3) as u64;
        let (by_cookie, by_peer) = (HashMap::default(), HashMap::default());
        let clients = Vec::with_capacity(MOST_CLIENTS);
        Self { silent, rate_mhz, clients, by_cookie, by_peer, replaced: 0, without: 0 }
    }

    /// Those who have one, in the order in which places were first taken.
    #[must_use]
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// A request was answered; `residence` is none when it is not measured.
    #[inline]
    pub(super) fn answered(
        &mut self,
        flow: Option<u64>,
        peer: Option<&Peer>,
        at: Ticks,
        residence: Option<u64>,
    ) {
        let Some(client) = self.client(flow, peer, at) else { return };
        match residence {
            Some(ticks) => {
                client.answered += 1;
                client.residence.record(ticks);
            }
            None => client.warm_ups += 1,
        }
    }

    /// A message that asks for no reply came; `number` is none when it is not measured. When the
    /// client's measured one before it came, where there was one.
    #[inline]
    pub(super) fn counted(
        &mut self,
        flow: Option<u64>,
        peer: Option<&Peer>,
        at: Ticks,
        number: Option<u64>,
    ) -> Option<Ticks> {
        let client = self.client(flow, peer, at)?;
        let Some(number) = number else {
            client.warm_ups += 1;
            return None;
        };
        client.sink.get_or_insert_default().take(number, at)
    }

    /// The account of whoever was heard at `at`; without a place for it, that is counted.
    #[inline]
    fn client(&mut self, flow: Option<u64>, peer: Option<&Peer>, at: Ticks) -> Option<&mut Client> {
        let Some(place) = self.known(flow, peer).or_else(|| self.place(flow, peer, at)) else {
            self.without += 1;
            return None;
        };
        let client = self.clients.get_mut(place)?;
        client.heard = at;
        Some(client)
    }

    /// A client has said that it has finished; its account, none where it has none.
    pub(super) fn finish(
        &mut self,
        flow: Option<u64>,
        peer: Option<&Peer>,
        foreign: u64,
    ) -> Option<ReflectorReport> {
        let client = self.known(flow, peer).and_then(|place| self.clients.get_mut(place))?;
        client.finished = true;
        let ticks = |value: Option<u64>| TicksDelta(value.unwrap_or(0));
        let residence = &client.residence;
        Some(ReflectorReport {
            echoed: client.answered,
            foreign,
            residence_min: ticks(residence.min()),
            residence_median: ticks(residence.value_at(50.0)),
            residence_max: ticks(residence.max()),
            rate_mhz: self.rate_mhz,
            one_way: client.sink.as_deref().map(Sink::counted).unwrap_or_default(),
        })
    }

    #[inline]
    fn known(&self, flow: Option<u64>, peer: Option<&Peer>) -> Option<usize> {
        match (flow, peer) {
            (Some(cookie), _) => self.by_cookie.get(&cookie).copied(),
            (None, Some(peer)) => self.by_peer.get(peer).copied(),
            (None, None) => None,
        }
    }

    /// A place for a newcomer.
    fn place(&mut self, flow: Option<u64>, peer: Option<&Peer>, at: Ticks) -> Option<usize> {
        if flow.is_none() && peer.is_none() {
            return None;
        }
        let place = if self.clients.len() < MOST_CLIENTS {
            self.clients.len()
        } else {
            let all = self.clients.iter().enumerate();
            let (oldest, client) = all.min_by_key(|(_, one)| (!one.finished, one.heard))?;
            if !client.finished && at.since(client.heard) < self.silent {
                return None;
            }
            oldest
        };
        let newcomer = Client {
            cookie: flow.map(Cookie),
            peer: peer.cloned(),
            answered: 0,
            warm_ups: 0,
            residence: Histogram::new(),
            sink: None,
            finished: false,
            heard: at,
        };
        match self.clients.get_mut(place) {
            None => self.clients.push(newcomer),
            Some(held) => {
                let former = std::mem::replace(held, newcomer);
                self.replaced += 1;
                if let Some(Cookie(cookie)) = former.cookie {
                    self.by_cookie.remove(&cookie);
                } else if let Some(peer) = former.peer {
                    self.by_peer.remove(&peer);
                }
            }
        }
        match (flow, peer) {
            (Some(cookie), _) => drop(self.by_cookie.insert(cookie, place)),
            (None, Some(peer)) => drop(self.by_peer.insert(peer.clone(), place)),
            (None, None) => {}
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_cookies_has_an_end_and_those_before_keep_their_accounts() {
        let mut accounts = Accounts::new(Hertz(500.0));
        for cookie in 0..MOST_CLIENTS as u64 + 500 {
            accounts.answered(Some(cookie), None, Ticks(1_000 + cookie), Some(7));
        }
        assert_eq!((accounts.clients().len(), accounts.without), (MOST_CLIENTS, 500));
        accounts.answered(Some(3), None, Ticks(5_000), Some(9));
        let report = accounts.finish(Some(3), None, 2).unwrap();
        assert_eq!((report.echoed, report.foreign), (2, 2));
        assert_eq!((report.residence_min.0, report.residence_max.0), (7, 9));
        assert_eq!(accounts.finish(Some(9_999), None, 0), None, "nobody knows it");
    }

    #[test]
    fn who_has_finished_or_is_silent_for_long_makes_room() {
        let mut accounts = Accounts::new(Hertz(500.0));
        for cookie in 0..MOST_CLIENTS as u64 {
            accounts.answered(Some(cookie), None, Ticks(1_000), None);
        }
        accounts.finish(Some(17), None, 0).unwrap();
        accounts.answered(Some(900), None, Ticks(1_001), Some(1));
        assert_eq!((accounts.without, accounts.replaced), (0, 1));
        assert_eq!(accounts.finish(Some(17), None, 0), None);
        accounts.answered(Some(901), None, Ticks(1_002), Some(1));
        assert_eq!((accounts.without, accounts.replaced), (1, 1), "all were heard a moment ago");
        accounts.answered(Some(901), None, Ticks(1_002 + 5_000), Some(1));
        assert_eq!((accounts.without, accounts.replaced), (1, 2));
        assert_eq!(accounts.finish(Some(901), None, 0).unwrap().echoed, 1);
    }
}
