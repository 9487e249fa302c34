//! One direction of a proxy: what came waits here until its delay is over.

use std::collections::VecDeque;

use whylate_model::delay::{DelayCounts, Fate, Truth};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

use crate::conversation::Scale;
use crate::delay::Delayed;
use crate::delay::dice::Dice;
use crate::delay::law::{Law, Limit};
use crate::delay::limiter::Limiter;
use crate::delay::mark::Tells;
use crate::delay::truth::TruthWriter;

/// Messages of a direction that wait at most, and their bytes.
pub const MOST_MESSAGES: usize = 1 << 16;
/// Bytes of messages of a direction that wait at most.
pub const MOST_WAITING_BYTES: usize = 1 << 26;
/// Bytes around a datagram in a frame without check sequence: Ethernet, IPv4, UDP. A rate counts frames.
const AROUND: u32 = 42;
/// A stream waits for a limited rate as long as it takes: it is not read meanwhile, and loses nothing.
const FOR_EVER: Nanos = Nanos(1 << 60);
/// Buffers that are kept for the next message.
const SPARE: usize = 256;

/// What came of handing a message on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Room {
    /// The kernel, or what waits for it, has it.
    Taken,
    /// The socket has no room.
    Full,
    /// The kernel refused it.
    Refused(String),
    /// Whom it is for is gone.
    Gone,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// One that may be lost, doubled or let past others.
    Message,
    /// Of a stream: nothing but time happens to it.
    Stream,
    /// The end of a stream, which is no message.
    End,
}

/// A message that waits.
#[derive(Debug)]
struct Held {
    truth: Truth,
    part: Part,
    place: u64,
    again: bool,
    bytes: Vec<u8>,
}

/// One direction.
pub(super) struct Direction {
    number: u8,
    law: Law,
    dice: Dice,
    limiter: Limiter,
    rate: Hertz,
    scale: Scale,
    waiting: VecDeque<Held>,
    waiting_bytes: usize,
    /// Nothing that keeps its place leaves before.
    last_due: Ticks,
    /// One more than the largest ordinal that left.
    next_out: u64,
    spare: Vec<Vec<u8>>,
    tells: Tells,
    pub(super) counts: DelayCounts,
    pub(super) received_bytes: u64,
    pub(super) passed_bytes: u64,
    pub(super) refusals: u64,
    pub(super) first_refusal: Option<String>,
    pub(super) times: Delayed,
}

impl Direction {
    pub(super) fn new(number: u8, law: Law, rate: Hertz, begin: Ticks, tells: Tells) -> Self {
        let dice = Dice::new(&law, number, begin, rate);
        let limiter = Limiter::new(law.rate, rate);
        Self {
            number,
            law,
            dice,
            limiter,
            rate,
            scale: Scale::new(rate),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            last_due: Ticks(0),
            next_out: 0,
            spare: Vec::new(),
            tells,
            counts: DelayCounts::default(),
            received_bytes: 0,
            passed_bytes: 0,
            refusals: 0,
            first_refusal: None,
            times: Delayed::touched(),
        }
    }

    pub(super) fn law(&self) -> &Law {
        &self.law
    }

    /// Holds what comes from now on back by this law.
    pub(super) fn set(&mut self, law: Law, now: Ticks) {
        self.dice = Dice::new(&law, self.number, now, self.rate);
        if law.rate != self.law.rate {
            self.limiter = Limiter::new(law.rate, self.rate);
        }
        self.law = law;
    }

    /// When the next one is to leave.
    pub(super) fn next_due(&self) -> Option<Ticks> {
        self.waiting.front().map(|held| held.truth.due)
    }

    /// Takes what came at `at` for `place`. What does not wait is told to `tell` at once.
    pub(super) fn take(
        &mut self,
        (at, place): (Ticks, u64),
        part: Part,
        bytes: &[u8],
        tell: &mut Teller,
    ) {
        let (number, flow) = match (part, (self.tells)(bytes)) {
            (Part::Message, Some(told)) => (told.number, told.cookie),
            _ => (None, None),
        };
        let mut truth = Truth {
            direction: self.number,
            ordinal: self.counts.received,
            arrival: at,
            due: at,
            departure: None,
            bytes: bytes.len() as u32,
            number,
            flow,
            fate: Fate::Released,
        };
        if part != Part::End {
            self.counts.received += 1;
            self.received_bytes += bytes.len() as u64;
        }
        let message = part == Part::Message;
        if message && self.dice.loses() {
            self.counts.lost_on_purpose += 1;
            tell.tell(Truth { fate: Fate::Lost, ..truth });
            return;
        }
        if !self.has_room(bytes.len()) {
            self.counts.overflow += 1;
            tell.tell(Truth { fate: Fate::Overflow, ..truth });
            return;
        }
        let Some(passage) = self.limiter.passage(at, truth.bytes.saturating_add(AROUND)) else {
            self.counts.rate_dropped += 1;
            tell.tell(Truth { fate: Fate::RateDropped, ..truth });
            return;
        };
        // The end of a stream is no message, and takes no time on the way out.
        if part != Part::End {
            self.limiter.take(passage);
        }
        let twice = message && self.dice.doubles();
        let wanted = message && self.dice.lets_past();
        let passes =
            wanted && self.waiting.back().is_some_and(|last| last.truth.due > passage.passed);
        let own = passage.passed + TicksDelta(self.dice.delay(at));
        let due = if passes { passage.passed } else { own.max(self.last_due) };
        truth.due = due;
        self.counts.let_past += u64::from(passes);
        self.keep(Held { truth, part, place, again: false, bytes: Vec::new() }, bytes, passes);
        if twice {
            if self.has_room(bytes.len()) {
                let truth = Truth { fate: Fate::Duplicate, ..truth };
                let held = Held { truth, part, place, again: true, bytes: Vec::new() };
                self.keep(held, bytes, passes);
            } else {
                self.counts.duplicates_lost += 1;
            }
        }
        if !passes {
            self.last_due = due;
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.waiting.len() < MOST_MESSAGES && self.waiting_bytes + bytes <= MOST_WAITING_BYTES
    }

    fn keep(&mut self, mut held: Held, bytes: &[u8], first: bool) {
        let mut room = self.spare.pop().unwrap_or_default();
        room.clear();
        room.extend_from_slice(bytes);
        held.bytes = room;
        self.waiting_bytes += bytes.len();
        if !held.again && held.part != Part::End {
            self.counts.waiting_at_the_end += 1;
        }
        if !first {
            self.waiting.push_back(held);
            return;
        }
        // Behind those that were let past before it and are still here.
        let at = self.waiting.partition_point(|other| other.truth.due <= held.truth.due);
        self.waiting.insert(at, held);
    }

    /// Hands on what is due, in its order: `send` gets a place, the bytes and what they are.
    pub(super) fn release(
        &mut self,
        mut now: impl FnMut() -> Ticks,
        mut send: impl FnMut(u64, &[u8], Part) -> Room,
        tell: &mut Teller,
    ) {
        while let Some(held) = self.waiting.front() {
            let at = now();
            if held.truth.due > at {
                return;
            }
            let Some(held) = self.waiting.pop_front() else { return };
            let room = send(held.place, &held.bytes, held.part);
            self.left(&held, at, &room, tell);
            self.waiting_bytes -= held.bytes.len();
            if self.spare.len() < SPARE {
                self.spare.push(held.bytes);
            }
        }
    }

    fn left(&mut self, held: &Held, at: Ticks, room: &Room, tell: &mut Teller) {
        if let Room::Refused(why) = room {
            self.refusals += 1;
            self.first_refusal.get_or_insert_with(|| why.clone());
        }
        if held.part == Part::End {
            return;
        }
        if !held.again {
            self.counts.waiting_at_the_end -= 1;
        }
        let truth = held.truth;
        if *room != Room::Taken {
            if held.again {
                self.counts.duplicates_lost += 1;
            } else {
                self.counts.ring_full += 1;
                tell.tell(Truth { fate: Fate::RingFull, ..truth });
            }
            return;
        }
        self.passed_bytes += u64::from(truth.bytes);
        if held.again {
            self.counts.duplicated += 1;
        } else {
            self.counts.passed_on += 1;
            self.counts.reordered += u64::from(truth.ordinal < self.next_out);
            self.next_out = self.next_out.max(truth.ordinal + 1);
            self.times.residence.record(self.scale.nanos(truth.arrival, at).0);
            self.times.lateness.record(self.scale.nanos(truth.due, at).0);
        }
        tell.tell(Truth { departure: Some(at), ..truth });
    }

    /// Tells of what still waits.
    pub(super) fn tell_waiting(&self, tell: &mut Teller) {
        let waiting = self.waiting.iter().filter(|held| !held.again && held.part != Part::End);
        waiting.for_each(|held| tell.tell(Truth { fate: Fate::Waiting, ..held.truth }));
    }
}

/// The law as it is kept for streams.
pub(super) fn for_streams(law: Law) -> Law {
    let rate = law.rate.map(|limit| Limit { backlog: FOR_EVER, ..limit });
    Law { rate, ..law }
}

/// Where truths go, if anywhere.
#[derive(Debug)]
pub(super) struct Teller(Option<TruthWriter>);

impl Teller {
    pub(super) fn new(writer: Option<TruthWriter>) -> Self {
        Self(writer)
    }

    fn tell(&mut self, truth: Truth) {
        if let Some(writer) = &mut self.0 {
            writer.push(&truth);
        }
    }

    /// Lets the reader see them.
    pub(super) fn show(&mut self) {
        if let Some(writer) = &mut self.0 {
            writer.show();
        }
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::delay::TruthSums;

    use super::*;
    use crate::delay::truth::truths;

    const GIGAHERTZ: Hertz = Hertz(1e9);

    fn direction(law: Law) -> Direction {
        Direction::new(0, law, GIGAHERTZ, Ticks(0), Box::new(|_| None))
    }

    /// Sends so many messages with a distance between them through a direction; ordinals as they left.
    fn through(law: Law, count: u64, apart: u64) -> (Direction, Vec<u64>, TruthSums) {
        let mut direction = direction(law);
        let (writer, mut reader) = truths(1 << 16);
        let mut tell = Teller::new(Some(writer));
        let mut left = Vec::new();
        for number in 0..count {
            let at = Ticks((number + 1) * apart);
            direction.take((at, 0), Part::Message, &number.to_le_bytes(), &mut tell);
            let taken = |_: u64, bytes: &[u8], _: Part| {
                left.push(u64::from_le_bytes(bytes.try_into().unwrap()));
                Room::Taken
            };
            direction.release(|| at, taken, &mut tell);
        }
        let taken = |_: u64, bytes: &[u8], _: Part| {
            left.push(u64::from_le_bytes(bytes.try_into().unwrap()));
            Room::Taken
        };
        direction.release(|| Ticks(u64::MAX / 2), taken, &mut tell);
        tell.show();
        let mut sums = TruthSums::default();
        reader.drain(|truth| sums.take(&truth));
        (direction, left, sums)
    }

    #[test]
    fn what_came_leaves_in_its_order_when_its_delay_is_over_and_not_before() {
        let mut of = direction(Law::constant(Nanos(100)));
        let mut tell = Teller::new(None);
        of.take((Ticks(10), 3), Part::Message, b"one", &mut tell);
        of.take((Ticks(20), 4), Part::Message, b"two", &mut tell);
        assert_eq!(of.next_due(), Some(Ticks(110)));
        let mut sent = Vec::new();
        for now in [109, 110, 119, 200] {
            let hand_over = |place, bytes: &[u8], _| {
                sent.push((now, place, bytes.to_vec()));
                Room::Taken
            };
            of.release(|| Ticks(now), hand_over, &mut tell);
        }
        assert_eq!(sent, [(110, 3, b"one".to_vec()), (200, 4, b"two".to_vec())]);
        let (residence, lateness) = (&of.times.residence, &of.times.lateness);
        assert_eq!((residence.max(), lateness.max()), (Some(180), Some(80)));
        assert_eq!((of.counts.passed_on, of.passed_bytes), (2, 6));
        assert!(of.counts.closes());
    }

    #[test]
    fn losses_duplicates_and_order_are_counted_exactly_and_are_the_seeds() {
        let law = Law {
            loss: 0.1,
            duplicate: 0.2,
            reorder: 0.05,
            seed: 5,
            ..Law::constant(Nanos(1_000))
        };
        let (of, left, sums) = through(law.clone(), 20_000, 100);
        assert!(sums.agree(&of.counts), "{:?} {sums:?}", of.counts);
        let counts = of.counts;
        let unique: std::collections::BTreeSet<u64> = left.iter().copied().collect();
        assert_eq!(unique.len() as u64, counts.passed_on);
        assert_eq!(left.len() as u64, counts.passed_on + counts.duplicated);
        assert_eq!(counts.lost_on_purpose, 20_000 - counts.passed_on);
        let mut seen = std::collections::BTreeSet::new();
        let (mut next, mut late) = (0, 0);
        for number in &left {
            if seen.insert(*number) {
                late += u64::from(*number < next);
                next = next.max(number + 1);
            }
        }
        assert_eq!(late, counts.reordered, "as a receiver counts it");
        for (count, of, share) in [
            (counts.lost_on_purpose, 20_000, 0.1),
            (counts.duplicated, counts.passed_on, 0.2),
            (counts.let_past, counts.passed_on, 0.05),
        ] {
            let (n, mean) = (count as f64, of as f64 * share);
            assert!((n - mean).abs() < 6.0 * (mean * (1.0 - share)).sqrt(), "{n} and {mean}");
        }
        assert_eq!(through(law.clone(), 20_000, 100).1, left, "the same seed, the same fates");
        assert_ne!(through(Law { seed: 6, ..law }, 20_000, 100).1, left);
    }

    #[test]
    fn a_limited_rate_spaces_messages_and_drops_what_would_wait_too_long() {
        let rate: crate::schedule::Rate = "1Mpps".parse().unwrap();
        let law = Law { rate: Some(rate.into()), ..Law::constant(Nanos(0)) };
        // Twice as many as leave: a microsecond each, and 10 ms of them may wait.
        let (of, left, sums) = through(law, 40_000, 500);
        assert!(sums.agree(&of.counts) && of.counts.rate_dropped > 5_000, "{:?}", of.counts);
        assert_eq!(left.len() as u64, of.counts.passed_on);
    }

    #[test]
    fn a_law_that_is_changed_holds_for_what_comes_after_it_and_order_is_kept() {
        let mut of = direction(Law::constant(Nanos(1_000)));
        let mut tell = Teller::new(None);
        of.take((Ticks(10), 0), Part::Message, b"one", &mut tell);
        of.set(Law::constant(Nanos(5)), Ticks(11));
        of.take((Ticks(20), 1), Part::Message, b"two", &mut tell);
        let mut sent = Vec::new();
        let hand_over = |place, _: &[u8], _| {
            sent.push(place);
            Room::Taken
        };
        of.release(|| Ticks(1_010), hand_over, &mut tell);
        assert_eq!(sent, [0, 1], "the second waits for the first");
        assert_eq!(of.times.lateness.max(), Some(0));
        assert_eq!(of.law().to_string(), "5ns");
    }

    #[test]
    fn what_the_kernel_does_not_take_is_counted_and_a_stream_suffers_nothing_else() {
        let law = Law { loss: 1.0, duplicate: 1.0, ..Law::constant(Nanos(0)) };
        let mut of = direction(law);
        let mut tell = Teller::new(None);
        of.take((Ticks(1), 0), Part::Stream, b"bytes", &mut tell);
        of.take((Ticks(2), 0), Part::End, b"", &mut tell);
        let mut parts = Vec::new();
        let send = |_, _: &[u8], part| {
            parts.push(part);
            Room::Refused("no".to_owned())
        };
        of.release(|| Ticks(9), send, &mut tell);
        assert_eq!(parts, [Part::Stream, Part::End]);
        let counts = of.counts;
        assert_eq!((counts.received, counts.ring_full, of.refusals), (1, 1, 2));
        assert!(counts.closes() && of.first_refusal.as_deref() == Some("no"));
    }
}
