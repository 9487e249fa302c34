//! Whose request a message is: passages, stamps and readings of one flow, put together by request.
//!
//! - The message of a request is the first that its client sent at or after the reading before the
//!   call, and before the next request's.
//! - Its reply is what answered that message, by [`turns`](crate::turns), if the client read it after
//!   the reading of the reply before and no later than this one's. Where nobody of this host answered,
//!   it is the only message that the client read between the two readings.
//! - A message of several pieces passes each point with the last of them; so does a reply that its server
//!   sends by several calls, where no other request is under way.
//! - Anything else is left out and counted: the request keeps the instants that others gave it.
//!
//! Of two sources of one point, the one that is closer to the counter is used, and the other one stands
//! beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use whylate_model::breakdown::{Leg, Point, Source, Station};
use whylate_model::event::Protocol;
use whylate_model::{Pid, Ticks, TicksDelta};

use crate::follow::Passage;
use crate::instants::Instants;
use crate::met::Met;
use crate::turns::{By, Numbered, TurnCounts, Turns, pieces_of_one};

/// Requests, and instants of requests that were not announced, that are kept at once.
const MOST_REQUESTS: usize = 1 << 16;
/// Messages that are kept at once.
const MOST_PASSAGES: usize = 1 << 17;
/// Instants of one request that are kept.
const MOST_INSTANTS: usize = 64;

/// What came of requests and messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MeetCounts {
    /// Requests that were given out.
    pub requests: u64,
    /// Of these: with their message.
    pub with_request: u64,
    /// With their reply's.
    pub with_reply: u64,
    /// Of these: what was sent next by the socket that the request was read from.
    pub by_socket: u64,
    /// Of these: nothing but its place in the order tells.
    pub by_order: u64,
    /// No message was seen to be sent for it.
    pub not_seen: u64,
    /// No message was seen to be read for it.
    pub reply_not_seen: u64,
    /// Several messages were read, and nobody can say which was its reply.
    pub ambiguous: u64,
    /// Its reply is another message than the one that the client read for it, or is older than it: the
    /// messages of both ways are left out.
    pub contradicted: u64,
    /// Messages and instants that came too late, or for which there was no room.
    pub crowded: u64,
    /// The same of requests: they are given out by nobody.
    pub requests_crowded: u64,
    /// Who answered what.
    pub turns: TurnCounts,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    number: u64,
    intended: Option<Ticks>,
    read: Ticks,
}

/// Puts the requests of one flow together.
#[derive(Debug)]
pub struct Meeting {
    client: BTreeSet<Pid>,
    server: Option<BTreeSet<Pid>>,
    patience: TicksDelta,
    /// Those that were not given out, by the reading before the call.
    requests: BTreeMap<(Ticks, u64), Request>,
    /// The readings after the call of the last requests.
    reads: BTreeSet<Ticks>,
    instants: BTreeMap<u64, Vec<(Point, Ticks, Source)>>,
    /// Messages of the client by their beginning, and those that it read by their reading.
    asked: BTreeMap<(Ticks, u64), Passage>,
    got: BTreeMap<(Ticks, u64), Passage>,
    turns: Turns,
    /// Of messages that were answered: the answer, and how it was found.
    answers: BTreeMap<u64, (u64, By)>,
    passages: u64,
    done: Ticks,
    counts: MeetCounts,
}

impl Meeting {
    /// Of requests by these threads, answered by those where they are known. Messages are kept for
    /// `patience` after everything before has come.
    #[must_use]
    pub fn new(client: Vec<Pid>, server: Option<Vec<Pid>>, patience: TicksDelta) -> Self {
        Self {
            client: client.into_iter().collect(),
            server: server.map(|server| server.into_iter().collect()),
            patience,
            requests: BTreeMap::new(),
            reads: BTreeSet::new(),
            instants: BTreeMap::new(),
            asked: BTreeMap::new(),
            got: BTreeMap::new(),
            turns: Turns::default(),
            answers: BTreeMap::new(),
            passages: 0,
            done: Ticks(0),
            counts: MeetCounts::default(),
        }
    }

    /// A request that was answered: when it was to leave, and the client's readings before the call
    /// that sent it and after the one that read its reply.
    pub fn request(&mut self, number: u64, intended: Option<Ticks>, sent: Ticks, read: Ticks) {
        if read < self.done || self.requests.len() >= MOST_REQUESTS {
            self.counts.requests_crowded += 1;
            return;
        }
        self.reads.insert(read);
        self.requests.insert((sent, number), Request { number, intended, read });
    }

    /// What somebody else says of a request: a stamp, the server's reading, the tap.
    pub fn instant(&mut self, number: u64, point: Point, at: Ticks, source: Source) {
        if self.instants.len() >= MOST_REQUESTS && !self.instants.contains_key(&number) {
            // The lowest number is the oldest: a request that was never answered.
            self.instants.pop_first();
            self.counts.crowded += 1;
        }
        let all = self.instants.entry(number).or_default();
        if all.len() < MOST_INSTANTS {
            all.push((point, at, source));
        } else {
            self.counts.crowded += 1;
        }
    }

    /// Whether a message is one of this flow's client.
    #[must_use]
    pub fn concerns(&self, passage: &Passage) -> bool {
        let ours = |pid: Option<Pid>| pid.is_some_and(|pid| self.client.contains(&pid));
        ours(passage.sender) || ours(passage.reader)
    }

    /// Takes a message; those of others are left.
    pub fn passage(&mut self, passage: Passage) {
        let theirs = |pid: Option<Pid>| match (&self.server, pid) {
            (Some(server), Some(pid)) => server.contains(&pid),
            _ => true,
        };
        let ours = |pid: Option<Pid>| pid.is_some_and(|pid| self.client.contains(&pid));
        let message = Numbered { number: self.passages, passage };
        let asks = ours(passage.sender) && theirs(passage.reader);
        let answers = ours(passage.reader) && theirs(passage.sender);
        self.passages += 1;
        if asks && let Some(begins) = passage.begins() {
            self.turns.read(message);
            self.asked.insert((begins, message.number), passage);
        }
        if answers && let Some(read) = passage.read {
            self.turns.sent(message);
            self.got.insert((read, message.number), passage);
        }
        if self.asked.len() + self.got.len() > MOST_PASSAGES {
            self.counts.crowded += 1;
            self.asked.pop_first();
            self.got.pop_first();
        }
    }

    /// The requests whose replies were read before `to`, in the order in which they were sent.
    /// Everything that began before `to` has come: messages up to
    /// [`Follower::settled`](crate::Follower::settled), instants and requests.
    pub fn complete(&mut self, to: Ticks) -> Vec<Met> {
        let idle = Ticks(to.0.saturating_sub(self.patience.0));
        self.turns.complete(to, idle);
        for pair in self.turns.pairs.drain(..) {
            self.answers.insert(pair.asked.first.number, (pair.answer.number, pair.by));
        }
        let due = |(key, request): (&(Ticks, u64), &Request)| (request.read < to).then_some(*key);
        let due: Vec<(Ticks, u64)> = self.requests.iter().filter_map(due).collect();
        let met = due.iter().filter_map(|key| self.meet(*key)).collect();
        for key in due {
            self.requests.remove(&key);
        }
        self.done = self.done.max(to);
        self.forget_before(idle);
        met
    }

    /// No more will come.
    pub fn finish(&mut self) -> Vec<Met> {
        self.turns.complete(Ticks(u64::MAX), Ticks(u64::MAX));
        self.complete(Ticks(u64::MAX))
    }

    /// What came, and what was left out.
    #[must_use]
    pub fn counts(&self) -> MeetCounts {
        MeetCounts { turns: self.turns.counts, ..self.counts.clone() }
    }

    fn forget_before(&mut self, idle: Ticks) {
        let oldest = self.requests.first_key_value().map_or(idle, |(key, _)| key.0.min(idle));
        self.asked = self.asked.split_off(&(oldest, 0));
        self.got = self.got.split_off(&(oldest, 0));
        // The last reading before what is left begins the first window of it.
        let before = self.reads.range(..oldest).next_back().copied();
        self.reads = self.reads.split_off(&before.unwrap_or(oldest));
        let first = self.asked.keys().map(|key| key.1).min().unwrap_or(u64::MAX);
        self.answers = self.answers.split_off(&first);
    }

    fn meet(&mut self, key: (Ticks, u64)) -> Option<Met> {
        let request = *self.requests.get(&key)?;
        let sent = key.0;
        let mut told = vec![
            (Point::there(Station::Sent), sent, Source::Own),
            (Point::back(Station::Read), request.read, Source::Own),
        ];
        if let Some(intended) = request.intended {
            told.push((Point::there(Station::Intended), intended, Source::Own));
        }
        told.extend(self.instants.remove(&request.number).unwrap_or_default());
        let asked = self.asked_by(sent, request.read);
        match self.answered(sent, &request, asked.as_ref()) {
            Ok(answer) => {
                if let Some(asked) = asked {
                    self.counts.with_request += 1;
                    instants_of(&asked, Leg::Request, &mut told);
                } else {
                    self.counts.not_seen += 1;
                }
                if let Some(answer) = answer {
                    self.counts.with_reply += 1;
                    instants_of(&answer, Leg::Reply, &mut told);
                }
            }
            Err(Contradiction) => self.counts.contradicted += 1,
        }
        self.counts.requests += 1;
        Some(choose(request.number, told))
    }

    /// The first message that the client sent for it, with all its pieces.
    fn asked_by(&self, sent: Ticks, read: Ticks) -> Option<Whole> {
        let next = self.requests.range((sent, u64::MAX)..).find(|(key, _)| key.0 > sent);
        let end = next.map_or(read, |(key, _)| key.0.min(read));
        let mut window = self.asked.range((sent, 0)..(end, 0));
        let (key, first) = window.next()?;
        let pieces = window.filter(|(_, piece)| pieces_of_one(first, piece));
        Some(Whole::of((key.1, first), pieces.map(|(key, piece)| (key.1, piece))))
    }

    /// What the client read for it; none where that is not known.
    fn answered(
        &mut self,
        sent: Ticks,
        request: &Request,
        asked: Option<&Whole>,
    ) -> Result<Option<Whole>, Contradiction> {
        let before = self.reads.range(..request.read).next_back().copied();
        let from = before.map_or((Ticks(0), 0), |before| (before, u64::MAX));
        let window: Vec<(u64, Passage)> = self
            .got
            .range(from..=(request.read, u64::MAX))
            .map(|(key, passage)| (key.1, *passage))
            .collect();
        let known = asked.and_then(|asked| {
            asked.numbers.iter().find_map(|number| self.answers.get(number).copied())
        });
        let (first, by) = if let Some((known, by)) = known {
            let place = window.iter().position(|(number, _)| *number == known);
            (place.ok_or(Contradiction)?, by)
        } else {
            let Some((_, only)) = window.first() else {
                self.counts.reply_not_seen += 1;
                return Ok(None);
            };
            let one = window.len() == 1
                || window.iter().all(|(_, other)| pieces_of_one(only, other))
                || (self.is_alone(sent, request) && window.iter().all(|(_, it)| is_foreign(it)));
            let here = asked.is_some_and(|asked| asked.first.read.is_some());
            // Who read it is known, but not what was its answer: several were read before.
            if !one || (here && only.sender.is_some() && !self.is_alone(sent, request)) {
                self.counts.ambiguous += 1;
                return Ok(None);
            }
            (0, By::Order)
        };
        let (number, passage) = &window[first];
        let alone = self.is_alone(sent, request);
        let pieces = window.iter().filter(|(of, piece)| {
            let foreign = is_foreign(passage) && is_foreign(piece);
            let one = pieces_of_one(passage, piece) || alone && goes_on(passage, piece);
            of != number && (one || foreign)
        });
        let pieces = pieces.map(|(number, piece)| (*number, piece));
        let whole = Whole::of((*number, passage), pieces);
        let begins = passage.begins().unwrap_or_default();
        let earliest = asked.and_then(|asked| asked.first.begins()).unwrap_or(sent);
        let unread = asked.and_then(|asked| asked.first.read).is_some_and(|read| begins < read);
        if begins < earliest || (unread && passage.sender.is_some()) {
            return Err(Contradiction);
        }
        match by {
            By::Socket => self.counts.by_socket += 1,
            By::Order => self.counts.by_order += 1,
        }
        Ok(Some(whole))
    }

    /// No other request was under way in its time.
    fn is_alone(&self, sent: Ticks, request: &Request) -> bool {
        // Those that were given out left their readings.
        let between = (Bound::Excluded(sent), Bound::Excluded(request.read));
        if self.reads.range(between).next().is_some() {
            return false;
        }
        let others = self.requests.range(..(request.read, 0));
        others
            .filter(|(_, other)| other.number != request.number)
            .all(|(key, other)| other.read <= sent || key.0 >= request.read)
    }
}

/// Two ways to say what was whose reply lead to different messages.
struct Contradiction;

/// A message with all its pieces.
struct Whole {
    /// Of its pieces.
    numbers: Vec<u64>,
    first: Passage,
    /// All of them together.
    all: Passage,
}

impl Whole {
    fn of<'a>(
        (number, first): (u64, &Passage),
        pieces: impl Iterator<Item = (u64, &'a Passage)>,
    ) -> Self {
        let mut whole = Self { numbers: vec![number], first: *first, all: *first };
        for (number, piece) in pieces {
            whole.numbers.push(number);
            whole.all = whole.all.with_piece(piece);
        }
        whole
    }
}

/// A stream's sender went on by another call, to the same socket: what the client read until its reply was
/// whole is that reply, where no other request was under way.
fn goes_on(first: &Passage, next: &Passage) -> bool {
    let stream = next.protocol == Some(Protocol::Tcp);
    let same = first.sender == next.sender && first.socket == next.socket;
    stream && first.sender.is_some() && same && next.begins() >= first.begins()
}

/// From outside of this host.
fn is_foreign(passage: &Passage) -> bool {
    passage.sender.is_none() && passage.queued.is_none()
}

fn instants_of(whole: &Whole, leg: Leg, told: &mut Vec<(Point, Ticks, Source)>) {
    let all = &whole.all;
    for (station, at) in [
        (Station::Sent, all.sent),
        (Station::Queued, all.queued),
        (Station::Driver, all.driver),
        (Station::Arrived, all.arrived),
        (Station::Delivered, all.delivered),
        (Station::Woken, all.woken),
        (Station::Running, all.running),
        (Station::Read, all.read),
    ] {
        told.extend(at.map(|at| (Point { leg, station }, at, Source::Trace)));
    }
}

/// How far a source is from the counter: its own readings first, then clocks that are related to it. Of
/// several sources of a point the lowest is used.
pub(crate) fn rank(source: Source) -> u8 {
    match source {
        Source::Own => 0,
        Source::Told => 1,
        Source::Trace => 2,
        Source::Hardware => 3,
        Source::Tap => 4,
        Source::Metadata => 5,
        Source::Software => 6,
    }
}

/// One source of every point, the others beside it.
pub(crate) fn choose(number: u64, mut told: Vec<(Point, Ticks, Source)>) -> Met {
    told.sort_by_key(|(point, _, source)| (*point, rank(*source)));
    let mut met =
        Met { number, instants: Instants::default(), beside: Vec::new(), twice: Vec::new() };
    let mut before = None;
    for (point, at, source) in told {
        if before == Some((point, source)) {
            if met.twice.last() != Some(&point) {
                met.twice.push(point);
            }
            continue;
        }
        before = Some((point, source));
        if !met.instants.set(point, at, source) {
            met.beside.push((point, at, source));
        }
    }
    met
}

#[cfg(test)]
mod tests;
