//! A proxy that runs: a look at all sockets, what is due, orders now and then.

use std::net::SocketAddr;

use whylate_clock::Counter;
use whylate_model::delay::{DelayBase, DelayChange};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::{BusyPolling, Wait};
use whylate_sys::poll::PollSet;

use super::base;
use super::error::ProxyError;
use super::line::{Direction, MOST_MESSAGES, MOST_WAITING_BYTES, Teller, for_streams};
use super::tcp::{MOST_CONNECTIONS, Streams};
use super::udp::{Datagrams, MOST_CLIENTS};
use super::words::{ProxyKind, ProxyWay};
use crate::conversation::Scale;
use crate::delay::capacity::Capacity;
use crate::delay::error::DelayError;
use crate::delay::law::{LONGEST_DELAY, Law};
use crate::delay::truth::{TruthReader, truths};
use crate::delay::{Account, Delayed, LaneAccount, Order, Orders, Tells};
use crate::error::NetError;
use crate::forward::{Halt, Why};
use crate::schedule::Rate;

/// Length of an interval.
const INTERVAL: Nanos = Nanos::SECOND;
/// Orders are looked for so often.
const LOOK: Nanos = Nanos(1_000_000);
/// A wait is cut into pieces of this length, so that a stop and orders are noticed.
const PIECE: Nanos = Nanos(10_000_000);
/// An end of a connection that takes nothing is tried again after so long.
const AGAIN: Nanos = Nanos(1_000_000);
/// A client that was not heard for so long makes place for another: what waits for it has left by then.
const IDLE: Nanos = Nanos(3 * LONGEST_DELAY.0);
/// Sockets that can be told as ready at once.
const MOST_READY: usize =
    1 + if MOST_CLIENTS > 2 * MOST_CONNECTIONS { MOST_CLIENTS } else { 2 * MOST_CONNECTIONS };

/// What is to be carried, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyPlan {
    /// From where to where.
    pub way: ProxyWay,
    /// How messages to the server are held back, and those to clients.
    pub laws: [Law; 2],
    /// How fast datagrams may come: with the longest delay it says how many wait. Of streams nothing: what
    /// finds no room stays where it is.
    pub fastest: Rate,
    /// How to wait: spin, or poll, which sleeps.
    pub wait: Wait,
    /// Truths that find room in the ring to whoever writes them down; none without a side log.
    pub truths: Option<usize>,
    /// Ends after so long; none when it is told to.
    pub duration: Option<Nanos>,
}

/// A proxy that has not begun. Clients reach it already, and wait.
pub struct OpenedProxy<C> {
    /// Its work.
    pub proxy: Proxy<C>,
    /// The side log; none where none was asked for.
    pub truths: Option<TruthReader>,
    /// What it adds by itself.
    pub base: DelayBase,
    /// Where clients reach it.
    pub listen: SocketAddr,
}

/// What is told as an interval closes.
pub struct ProxyTold<'a> {
    /// The interval, from 0.
    pub index: u64,
    /// Times of each direction. Whoever takes them leaves empty ones behind.
    pub times: [&'a mut Delayed; 2],
    /// What was done until now.
    pub account: Account,
    /// Settings that were changed in this interval.
    pub changes: Vec<DelayChange>,
    /// Clients or connections until now.
    pub clients: u64,
    /// Datagrams or connections for which there was no place.
    pub turned_away: u64,
}

/// The sockets.
enum Sockets {
    Udp(Box<Datagrams>),
    Tcp(Box<Streams>),
}

/// A proxy.
pub struct Proxy<C> {
    sockets: Sockets,
    set: PollSet,
    ways: [Direction; 2],
    teller: Teller,
    counter: C,
    scale: Scale,
    wait: Wait,
    fastest: Rate,
    duration: Option<Nanos>,
    begin: Ticks,
    last: Ticks,
    looks: u64,
    in_vain: u64,
    changes: Vec<DelayChange>,
    marks: Box<[u64]>,
    /// Something waits for an end that does not take it.
    stuck: bool,
}

/// Opens a proxy, and measures what it adds by itself.
///
/// # Errors
/// A law cannot be kept, or not for streams, or needs more room than there is; it cannot listen; or it
/// waits in another way.
pub fn open_proxy<C: Counter + Clone>(
    plan: &ProxyPlan,
    counter: C,
    rate: Hertz,
    tells: [Tells; 2],
) -> Result<OpenedProxy<C>, NetError> {
    for law in &plan.laws {
        check(plan.way.kind, law, plan.fastest)?;
    }
    if !matches!(plan.wait, Wait::Spin | Wait::Poll) {
        return Err(ProxyError::Wait(plan.wait).into());
    }
    let base = base::measured(plan, counter.clone(), rate)?;
    let (writer, truths) = plan.truths.map(truths).unzip();
    let proxy = Proxy::open(plan, counter, rate, tells, Teller::new(writer))?;
    let listen = proxy.local().unwrap_or(plan.way.listen);
    Ok(OpenedProxy { proxy, truths, base, listen })
}

/// What a direction of a proxy can hold back.
pub const PROXY_CAPACITY: Capacity =
    Capacity { frames: MOST_MESSAGES as u64, bytes: MOST_WAITING_BYTES as u64 };

/// Can a proxy of this kind keep the law, where datagrams come at this rate at most?
fn check(kind: ProxyKind, law: &Law, fastest: Rate) -> Result<(), DelayError> {
    law.check()?;
    let shares =
        [(law.loss, "loss"), (law.duplicate, "a duplicate"), (law.reorder, "another order")];
    match shares.into_iter().find(|(share, _)| *share > 0.0) {
        Some((_, what)) if kind == ProxyKind::Tcp => Err(DelayError::NotForStreams(what)),
        _ if kind == ProxyKind::Tcp => Ok(()),
        _ => holds(law, fastest),
    }
}

/// Is there room for what comes at this rate within the longest delay?
fn holds(law: &Law, fastest: Rate) -> Result<(), DelayError> {
    PROXY_CAPACITY.holds(law, fastest).map_err(|error| match error {
        DelayError::BeyondCapacity {
            longest,
            rate,
            needed_frames,
            needed_bytes,
            frames,
            bytes,
        } => DelayError::BeyondProxy {
            longest,
            rate,
            needed_messages: needed_frames,
            needed_bytes,
            messages: frames,
            bytes,
        },
        other => other,
    })
}

impl<C: Counter> Proxy<C> {
    pub(super) fn open(
        plan: &ProxyPlan,
        mut counter: C,
        rate: Hertz,
        tells: [Tells; 2],
        teller: Teller,
    ) -> Result<Self, ProxyError> {
        let mut set = PollSet::with_room(MOST_READY);
        let scale = Scale::new(rate);
        let sockets = match plan.way.kind {
            ProxyKind::Udp => {
                let sockets = Datagrams::open(&plan.way, scale.ticks(IDLE), &mut set)?;
                Sockets::Udp(Box::new(sockets))
            }
            ProxyKind::Tcp => Sockets::Tcp(Box::new(Streams::open(&plan.way, &mut set)?)),
        };
        let begin = counter.read();
        let kept = |law: &Law| match plan.way.kind {
            ProxyKind::Udp => law.clone(),
            ProxyKind::Tcp => for_streams(law.clone()),
        };
        let [there, back] = tells;
        let way = |number: u8, tells| {
            Direction::new(number, kept(&plan.laws[usize::from(number)]), rate, begin, tells)
        };
        Ok(Self {
            sockets,
            set,
            ways: [way(0, there), way(1, back)],
            teller,
            counter,
            scale,
            wait: plan.wait,
            fastest: plan.fastest,
            duration: plan.duration,
            begin,
            last: begin,
            looks: 0,
            in_vain: 0,
            changes: Vec::new(),
            marks: vec![0; MOST_READY].into(),
            stuck: false,
        })
    }

    /// Where clients reach it.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        match &self.sockets {
            Sockets::Udp(of) => of.local(),
            Sockets::Tcp(of) => of.local(),
        }
    }

    fn kind(&self) -> ProxyKind {
        match &self.sockets {
            Sockets::Udp(_) => ProxyKind::Udp,
            Sockets::Tcp(_) => ProxyKind::Tcp,
        }
    }

    /// Carries until it is told to end, or its time is over. `watch` is called as an interval closes, and
    /// at the end.
    pub fn run(
        &mut self,
        halt: &Halt<'_>,
        orders: &mut dyn Orders,
        watch: &mut dyn FnMut(ProxyTold<'_>),
    ) -> Why {
        self.begin = self.counter.read();
        // From here on its laws hold: a schedule begins now.
        for way in &mut self.ways {
            let law = way.law().clone();
            way.set(law, self.begin);
        }
        let over = self.duration.map(|duration| self.begin + self.scale.ticks(duration));
        let interval = self.scale.ticks(INTERVAL);
        let look = self.scale.ticks(LOOK);
        let (mut index, mut next_interval) = (0, self.begin + interval);
        let mut next_look = self.begin;
        let why = loop {
            if let Err(why) = self.turn(over) {
                break Why::Lost { port: 0, why };
            }
            let now = self.last;
            if now < next_look {
                continue;
            }
            next_look = now + look;
            self.teller.show();
            if self.follow(orders) == Goes::Ends || halt.is_set() {
                break Why::Stopped;
            }
            if over.is_some_and(|over| now >= over) {
                break Why::Duration;
            }
            while now >= next_interval {
                self.tell(index, watch);
                (index, next_interval) = (index + 1, next_interval + interval);
            }
        };
        self.ways.iter().for_each(|way| way.tell_waiting(&mut self.teller));
        self.teller.show();
        self.tell(index, watch);
        why
    }

    /// A look at all sockets, and what is due.
    pub(super) fn turn(&mut self, over: Option<Ticks>) -> Result<(), String> {
        let wait = match self.wait {
            Wait::Poll => self.until_due(over),
            _ => Nanos(0),
        };
        let ready = self.set.wait_ready(wait.0, &mut self.marks).map_err(|why| why.to_string())?;
        self.looks += 1;
        self.in_vain += u64::from(ready == 0);
        let Self { sockets, set, ways, teller, counter, marks, stuck, .. } = self;
        for mark in &marks[..ready] {
            match sockets {
                Sockets::Udp(of) => of.take(*mark, counter, ways, (&mut *set, &mut *teller)),
                Sockets::Tcp(of) => of.take(*mark, counter, ways, (&mut *set, &mut *teller)),
            }
        }
        for (number, way) in ways.iter_mut().enumerate() {
            let send = |place, bytes: &[u8], part| match sockets {
                Sockets::Udp(of) => of.send(number, place, bytes),
                Sockets::Tcp(of) => of.send(number, place, bytes, part),
            };
            way.release(|| counter.read(), send, teller);
            // What was handed on is written before the other way's.
            if let Sockets::Tcp(of) = sockets {
                *stuck = of.flush(set);
            }
        }
        self.last = self.counter.read();
        Ok(())
    }

    /// How long it may sleep.
    fn until_due(&self, over: Option<Ticks>) -> Nanos {
        let next = self.ways.iter().filter_map(Direction::next_due).chain(over).min();
        let left = next.map_or(PIECE, |due| self.scale.nanos(self.last, due.max(self.last)));
        let most = if self.stuck { AGAIN } else { PIECE };
        left.min(most)
    }

    /// Does what it was ordered to.
    fn follow(&mut self, orders: &mut dyn Orders) -> Goes {
        match orders.next() {
            None => Goes::On,
            Some(Order::Stop) => Goes::Ends,
            Some(Order::Set { direction, law }) => {
                let done = self.set_law(direction, &law);
                orders.answer(done);
                Goes::On
            }
        }
    }

    fn set_law(&mut self, direction: Option<usize>, law: &Law) -> Result<Nanos, DelayError> {
        check(self.kind(), law, self.fastest)?;
        let wanted = match direction {
            None => 0..2,
            Some(one @ 0..2) => one..one + 1,
            Some(other) => return Err(DelayError::NoDirection(other)),
        };
        let law = match self.kind() {
            ProxyKind::Udp => law.clone(),
            ProxyKind::Tcp => for_streams(law.clone()),
        };
        let now = self.counter.read();
        let at = self.scale.nanos(self.begin, now);
        for direction in wanted {
            self.ways[direction].set(law.clone(), now);
            let (direction, law) = (direction as u8, law.to_string());
            self.changes.push(DelayChange { at, direction, law });
        }
        Ok(at)
    }

    fn tell(&mut self, index: u64, watch: &mut dyn FnMut(ProxyTold<'_>)) {
        let account = self.account();
        let (clients, turned_away) = match &self.sockets {
            Sockets::Udp(of) => (of.clients, of.turned_away),
            Sockets::Tcp(of) => (of.connections, of.turned_away),
        };
        let changes = std::mem::take(&mut self.changes);
        let [there, back] = &mut self.ways;
        let times = [&mut there.times, &mut back.times];
        watch(ProxyTold { index, times, account, changes, clients, turned_away });
    }

    fn account(&self) -> Account {
        let of = |way: &Direction| LaneAccount {
            counts: way.counts,
            received_bytes: way.received_bytes,
            passed_bytes: way.passed_bytes,
            law: way.law().to_string(),
            refusals: way.refusals,
            first_refusal: way.first_refusal.clone(),
        };
        Account {
            directions: self.ways.each_ref().map(of),
            drops: [Vec::new(), Vec::new()],
            downs: [0; 2],
            looks: self.looks,
            in_vain: self.in_vain,
            elapsed: self.elapsed(),
            busy_polling: BusyPolling::NotAsked,
        }
    }

    fn elapsed(&self) -> TicksDelta {
        self.last.max(self.begin).since(self.begin)
    }

    /// Holds back by another law; for measurements of itself.
    pub(super) fn set_for_itself(&mut self, law: &Law) {
        let now = self.counter.read();
        self.ways.iter_mut().for_each(|way| way.set(law.clone(), now));
    }

    /// Takes the times until now out of the first direction.
    pub(super) fn taken_times(&mut self) -> Delayed {
        std::mem::replace(&mut self.ways[0].times, Delayed::touched())
    }
}

/// Whether it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Ends,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_beyond_a_proxys_room_is_refused_with_the_room_and_a_stream_waits_for_its_own() {
        let rate: Rate = "100kpps".parse().unwrap();
        let long = Law::constant(Nanos(2 * Nanos::SECOND.0));
        let refused = check(ProxyKind::Udp, &long, rate).unwrap_err().to_string();
        for words in ["2.00s", "250000 messages", "65536 messages", "67108864 bytes", "--fastest"] {
            assert!(refused.contains(words), "no `{words}` in {refused}");
        }
        assert_eq!(check(ProxyKind::Udp, &long, "10kpps".parse().unwrap()), Ok(()));
        assert_eq!(check(ProxyKind::Udp, &Law::constant(Nanos(100_000_000)), rate), Ok(()));
        assert_eq!(check(ProxyKind::Tcp, &long, rate), Ok(()));
        // A limit of its own keeps others from coming in.
        let limited = Law { rate: Some("1kpps".parse::<Rate>().unwrap().into()), ..long };
        assert_eq!(check(ProxyKind::Udp, &limited, rate), Ok(()));
    }
}
