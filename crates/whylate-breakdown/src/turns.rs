//! Who answered what: a thread reads from a socket, then sends; what it sends answers what it read.
//!
//! A turn is what a thread read from one socket, and what was sent thereafter, up to its next read
//! from that socket. One message that was read is answered by the first that is sent. Of several, each
//! is answered in its order where as many were sent; otherwise nobody can say which, and they are
//! counted. Pieces of one message, sent by one call or read at once from a stream, are one.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::event::Protocol;
use whylate_model::{Pid, Ticks};

use crate::follow::Passage;

/// Messages that are read in one turn before it is given up.
const MOST_IN_TURN: usize = 1024;
/// Turns that are open at once.
const MOST_TURNS: usize = 1 << 16;

/// A message with its number among those that were given in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) passage: Passage,
}

/// A message that was read, with its pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) first: Numbered,
    /// All of its pieces.
    pub(crate) whole: Passage,
    /// When its last piece was read.
    pub(crate) read: Ticks,
}

/// A message that was read, and what answered it: the number of its first piece, and all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) asked: Asked,
    pub(crate) answer: Numbered,
    pub(crate) by: By,
}

/// How an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// It was sent next by the socket that the message was read from.
    Socket,
    /// Nothing but its place in the order tells: the thread sent it by another socket, or nobody knows by
    /// which.
    Order,
}

/// What was left out of the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnCounts {
    /// Messages that were read.
    pub read: u64,
    /// Of these: answered.
    pub answered: u64,
    /// Answered by another thread than the one that read them.
    pub by_another_thread: u64,
    /// Answered by another socket than the one that they were read from, or by one that is not known.
    pub by_order: u64,
    /// Nothing was sent before the next was read, or for too long.
    pub unanswered: u64,
    /// Several were read, and not as many were sent.
    pub ambiguous: u64,
    /// Messages that were sent where nothing had been read, or after the answer.
    pub unasked: u64,
    /// Came too late to be put in their place, or there was no room.
    pub late: u64,
}

#[derive(Debug, Default)]
struct Turn {
    reads: Vec<Asked>,
    sends: Vec<Numbered>,
    last: Ticks,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Read(Numbered),
    Sent(Numbered),
}

/// Turns of some threads.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Not taken yet, in the order of time.
    steps: BTreeMap<(Ticks, u64), Step>,
    taken: Ticks,
    open: BTreeMap<(u64, Pid), Turn>,
    /// The same by reader.
    readers: BTreeSet<(Pid, u64)>,
    next: u64,
    pub(crate) pairs: Vec<Answered>,
    pub(crate) counts: TurnCounts,
}

impl Turns {
    /// One of the threads read it.
    pub(crate) fn read(&mut self, message: Numbered) {
        if let Some(at) = message.passage.read {
            self.put(at, Step::Read(message));
        }
    }

    /// One of the threads sent it.
    pub(crate) fn sent(&mut self, message: Numbered) {
        if let Some(at) = message.passage.begins() {
            self.put(at, Step::Sent(message));
        }
    }

    fn put(&mut self, at: Ticks, step: Step) {
        if at < self.taken {
            self.counts.late += 1;
            return;
        }
        self.steps.insert((at, self.next), step);
        self.next += 1;
    }

    /// All messages that were sent or read before `to` have come. Turns in which nothing happened
    /// since `idle` are over.
    pub(crate) fn complete(&mut self, to: Ticks, idle: Ticks) {
        while let Some(entry) = self.steps.first_entry()
            && entry.key().0 < to
        {
            let at = entry.key().0;
            match entry.remove() {
                Step::Read(message) => self.step_read(at, message),
                Step::Sent(message) => self.step_sent(at, message),
            }
        }
        self.taken = self.taken.max(to);
        let over = |(key, turn): (&(u64, Pid), &Turn)| (turn.last < idle).then_some(*key);
        for key in self.open.iter().filter_map(over).collect::<Vec<_>>() {
            self.close(key);
        }
    }

    fn step_read(&mut self, at: Ticks, message: Numbered) {
        let passage = message.passage;
        let (Some(socket), Some(reader)) = (passage.socket, passage.reader) else { return };
        let key = (socket, reader);
        if let Some(turn) = self.open.get_mut(&key)
            && let Some(last) = turn.reads.last_mut()
            && last.goes_on_with(&passage)
        {
            // A piece that is read after the answer began changes nothing.
            if turn.sends.is_empty() {
                last.whole = last.whole.with_piece(&passage);
                (last.read, turn.last) = (at, at);
            }
            return;
        }
        if self.open.get(&key).is_some_and(Turn::is_over) {
            self.close(key);
        }
        if self.open.len() >= MOST_TURNS && !self.open.contains_key(&key) {
            self.counts.late += 1;
            return;
        }
        self.counts.read += 1;
        self.readers.insert((reader, socket));
        let turn = self.open.entry(key).or_default();
        turn.reads.push(Asked { first: message, whole: passage, read: at });
        turn.last = at;
    }

    fn step_sent(&mut self, at: Ticks, message: Numbered) {
        let Some(key) = self.turn_of(&message.passage) else { return };
        let Some(turn) = self.open.get_mut(&key) else { return };
        turn.last = at;
        if let Some(sent) = turn.sends.last_mut()
            && pieces_of_one(&sent.passage, &message.passage)
        {
            sent.passage = sent.passage.with_piece(&message.passage);
            // It may be paired by its first piece already, and not be given out yet.
            let mut pairs = self.pairs.iter_mut().rev();
            if let Some(pair) = pairs.find(|pair| pair.answer.number == sent.number) {
                pair.answer.passage = sent.passage;
            }
            return;
        }
        turn.keep(message);
        if let ([asked], [answer]) = (turn.reads.as_slice(), turn.sends.as_slice()) {
            let by = By::of(key, answer);
            self.pairs.push(Answered { asked: *asked, answer: *answer, by });
            self.counts.answered += 1;
            self.counts.by_order += u64::from(by == By::Order);
            self.counts.by_another_thread += u64::from(message.passage.sender != Some(key.1));
        } else if turn.reads.len() == 1 {
            self.counts.unasked += 1;
        }
    }

    /// The turn in which a message is sent.
    fn turn_of(&mut self, passage: &Passage) -> Option<(u64, Pid)> {
        let sender = passage.sender?;
        if let Some(socket) = passage.sending_socket {
            if self.open.contains_key(&(socket, sender)) {
                return Some((socket, sender));
            }
            let all = (socket, Pid(i32::MIN))..=(socket, Pid(i32::MAX));
            let mut others = self.open.range(all).map(|(key, _)| *key);
            match (others.next(), others.next()) {
                (Some(only), None) => return Some(only),
                (Some(_), Some(_)) => {
                    self.counts.unasked += 1;
                    return None;
                }
                (None, _) => {}
            }
            // A connection answers by itself; datagrams are answered by any socket.
            if passage.protocol != Some(Protocol::Udp) {
                self.counts.unasked += 1;
                return None;
            }
        }
        let mut own = self.readers.range((sender, 0)..=(sender, u64::MAX));
        if let (Some(&(reader, socket)), None) = (own.next(), own.next()) {
            Some((socket, reader))
        } else {
            self.counts.unasked += 1;
            None
        }
    }

    fn close(&mut self, key: (u64, Pid)) {
        self.readers.remove(&(key.1, key.0));
        let Some(turn) = self.open.remove(&key) else { return };
        let reads = turn.reads.len() as u64;
        if turn.sends.is_empty() {
            self.counts.unanswered += reads;
        } else if reads > 1 && turn.reads.len() == turn.sends.len() {
            self.counts.answered += reads;
            let another = |sent: &&Numbered| sent.passage.sender != Some(key.1);
            self.counts.by_another_thread += turn.sends.iter().filter(another).count() as u64;
            let pairs = turn.reads.into_iter().zip(turn.sends);
            let pairs = pairs.map(|(asked, answer)| {
                let by = By::of(key, &answer);
                Answered { asked, answer, by }
            });
            let before = self.pairs.len();
            self.pairs.extend(pairs);
            let by_order = self.pairs[before..].iter().filter(|pair| pair.by == By::Order);
            self.counts.by_order += by_order.count() as u64;
        } else if reads > 1 {
            self.counts.ambiguous += reads;
        }
    }
}

impl By {
    /// Of an answer in the turn of a socket and a thread.
    fn of((socket, _): (u64, Pid), answer: &Numbered) -> Self {
        if answer.passage.sending_socket == Some(socket) { Self::Socket } else { Self::Order }
    }
}

impl Turn {
    /// Keeps a message that was sent. More than can have been asked for answer nothing: of them the last is
    /// kept, for its pieces. Who sends for ever after one request takes no more memory.
    fn keep(&mut self, sent: Numbered) {
        if self.sends.len() > MOST_IN_TURN {
            self.sends.pop();
        }
        self.sends.push(sent);
    }

    fn is_over(&self) -> bool {
        !self.sends.is_empty() || self.reads.len() >= MOST_IN_TURN
    }
}

impl Asked {
    /// Whether it is another piece of this message.
    fn goes_on_with(&self, next: &Passage) -> bool {
        let first = &self.first.passage;
        let at_once = next.protocol == Some(Protocol::Tcp) && next.read == Some(self.read);
        pieces_of_one(first, next) || at_once
    }
}

/// Two pieces that one call sent.
pub(crate) fn pieces_of_one(first: &Passage, next: &Passage) -> bool {
    let stream = next.protocol == Some(Protocol::Tcp);
    stream && first.sender.is_some() && first.sender == next.sender && first.call == next.call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_for_ever_after_one_request_takes_no_more_memory_and_all_of_it_is_counted() {
        let mut turns = Turns::default();
        let (socket, thread) = (Some(0xb0), Some(Pid(20)));
        let protocol = Some(Protocol::Udp);
        let (read, reader) = (Some(Ticks(10)), thread);
        let passage = Passage { socket, protocol, reader, read, ..Passage::default() };
        turns.read(Numbered { number: 0, passage });
        let sends = 5 * MOST_IN_TURN as u64;
        for number in 1..=sends {
            let sent = Some(Ticks(10 + number));
            let passage = Passage {
                sending_socket: socket,
                sender: thread,
                call: number,
                sent,
                protocol,
                ..Passage::default()
            };
            turns.sent(Numbered { number, passage });
            turns.complete(Ticks(11 + number), Ticks(0));
            let kept: usize = turns.open.values().map(|turn| turn.sends.len()).sum();
            assert!(kept <= MOST_IN_TURN + 1 && turns.steps.len() <= 1, "{kept}");
        }
        assert_eq!((turns.counts.answered, turns.counts.unasked), (1, sends - 1));
        let [pair] = &turns.pairs[..] else { panic!("{:?}", turns.pairs) };
        assert_eq!((pair.answer.number, pair.by), (1, By::Socket));
    }
}
