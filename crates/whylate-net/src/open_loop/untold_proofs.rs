//! Proofs on an in-memory port whose kernel stamps every message: whatever replies do, each stamp is given
//! to its request or counted.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_port::memory::Peer;
use whylate_port::{
    MemoryPort, Port, PortError, PortFacts, Received, Stamp, StampCounts, StampKind,
};

use super::proofs::{COOKIE, Fate, ROUND_TRIP, answered, peer, settings};
use super::settled;
use super::stamps::{self, Untold};
use super::{Ended, Latencies, OpenLoop, OpenOutcome, Tell};
use crate::protocol::Raw;

const SENT: StampKind = StampKind::Software;
const CAME: StampKind = StampKind::ReceivedSoftware;

/// Stamps each message with the port's own time.
struct Stamped<P> {
    port: MemoryPort<P>,
    sent: u64,
    received: u64,
    waiting: Vec<Stamp>,
    /// The longest that a stamp waited until it was taken.
    longest: u64,
}

impl<P: Peer> Stamped<P> {
    fn new(peer: P) -> Self {
        let port = MemoryPort::new(peer);
        Self { port, sent: 0, received: 0, waiting: Vec::new(), longest: 0 }
    }
}

impl<P: Peer> Port for Stamped<P> {
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let at = self.port.send(message)?;
        self.waiting.push(Stamp { message: self.sent, kind: SENT, at: Nanos(at.0) });
        self.sent += 1;
        Ok(at)
    }

    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let received = self.port.receive(buffer, limit)?;
        if let Received::Message { at, .. } = received {
            self.waiting.push(Stamp { message: self.received, kind: CAME, at: Nanos(at.0) });
            self.received += 1;
        }
        Ok(received)
    }

    fn facts(&self) -> &PortFacts {
        self.port.facts()
    }

    fn take_stamps(&mut self, each: &mut dyn FnMut(Stamp)) -> Result<(), PortError> {
        let now = self.port.counter().read().0;
        for stamp in self.waiting.drain(..) {
            self.longest = self.longest.max(now - stamp.at.0);
            each(stamp);
        }
        Ok(())
    }

    /// All that were made, whether somebody took them or not.
    fn stamp_counts(&self) -> Option<StampCounts> {
        let mut counts = StampCounts::default();
        for (kind, made) in [(SENT, self.sent), (CAME, self.received)] {
            counts.wished[kind.index()] = true;
            let of = &mut counts.kinds[kind.index()];
            (of.expected, of.delivered) = (made, made);
        }
        Some(counts)
    }

    fn numbers(&self) -> Option<(u64, u64)> {
        Some((self.sent, self.received))
    }
}

struct Run {
    outcome: OpenOutcome,
    /// By the numbers of their requests.
    sent: BTreeMap<u64, Nanos>,
    came: BTreeMap<u64, Nanos>,
    /// When each request was sent, and when it was answered in time.
    truth: BTreeMap<u64, (Ticks, Option<Ticks>)>,
    longest: u64,
}

fn run(settings: &OpenLoop, fate: impl FnMut(u64, u64) -> Fate + Send) -> Run {
    let mut port = Stamped::new(peer(fate));
    let mut counter = port.port.counter();
    let (stop, protocol) = (AtomicBool::new(false), Raw::new(COOKIE));
    let mut forget = |_, of: &mut Latencies| of.clear();
    let (mut settling, mut settlements) = settled::between();
    let (mut stamping, mut stampings) = stamps::between();
    let tell = Tell {
        requests: Some(&mut settling),
        stamps: Some(&mut stamping),
        ..Tell::intervals(&mut forget)
    };
    let outcome = settings.run(&mut port, &mut counter, &protocol, &stop, tell).unwrap();
    assert!(matches!(outcome.why, Ended::Duration) && outcome.adds_up(), "{outcome:?}");
    let [mut sent, mut came] = [(); 2].map(|()| BTreeMap::new());
    stampings.drain(|stamped| {
        let of = if stamped.kind == SENT { &mut sent } else { &mut came };
        assert_eq!(of.insert(stamped.request, stamped.at), None, "one of a kind: {stamped:?}");
    });
    let mut truth = BTreeMap::new();
    settlements.drain(|of| {
        truth.insert(of.number.unwrap(), (of.sent.unwrap(), of.answered.then_some(of.at)));
    });
    Run { outcome, sent, came, truth, longest: port.longest }
}

/// Every request has the stamp of its sending, and every one that was answered that of its own reply.
fn assert_complete(run: &Run) {
    assert_eq!(run.truth.len() as u64, run.outcome.departures.sent);
    let numbers = || run.truth.keys().copied();
    assert!(run.sent.keys().copied().eq(numbers()), "{} of {}", run.sent.len(), run.truth.len());
    let answered: BTreeMap<u64, Nanos> =
        run.truth.iter().filter_map(|(number, (_, at))| Some((*number, Nanos((*at)?.0)))).collect();
    let came = || run.came.iter().filter(|(number, _)| answered.contains_key(number));
    assert!(came().eq(answered.iter()), "{} of {}", came().count(), answered.len());
    // The reading before the call, and the port's own within it.
    let distance = |(number, at): (&u64, &Nanos)| at.0 - run.truth[number].0.0;
    assert!(run.sent.iter().map(distance).all(|ns| ns < 100), "each is its own");
}

#[test]
fn stamps_of_any_number_of_replies_that_come_at_once_are_given_to_their_requests() {
    for (requests, what) in [(200, "fewer than are remembered"), (3_000, "many times as many")] {
        let length = Nanos(requests * 1_000);
        let settings = OpenLoop { timeout: Nanos(50_000_000), ..settings("constant", 1e6, length) };
        // Held back until all have left, or until some of them have.
        for held in [2 * length.0, length.0 / 2] {
            let mut until = None;
            let run = run(&settings, |_, now| {
                let until: u64 = *until.get_or_insert(now + held);
                answered(Nanos(until.saturating_sub(now).max(ROUND_TRIP.0)))
            });
            assert_eq!(run.outcome.accounting.received, requests, "{what}");
            assert_eq!(run.came.len() as u64, requests, "{what}, {held} ns");
            assert_complete(&run);
            assert_eq!(run.outcome.stamps_untold, Untold::default(), "{what}");
            // The greeting's reply, and the account.
            let counts = run.outcome.stamps.unwrap();
            assert_eq!(counts.of(CAME).delivered, requests + 2, "{what}");
        }
    }
}

#[test]
fn stamps_do_not_wait_as_long_as_a_lost_reply_is_waited_for() {
    let timeout = Nanos(1_000_000);
    let settings = OpenLoop { timeout, ..settings("constant", 1e6, Nanos(300_000)) };
    let run = run(&settings, |number, _| match number {
        297 => Fate::new(),
        // Behind the end of the schedule.
        298 => answered(Nanos(timeout.0 / 2)),
        _ => answered(ROUND_TRIP),
    });
    assert_eq!((run.outcome.accounting.lost, run.came.len()), (1, 299));
    assert_complete(&run);
    assert!(run.longest < 10 * ROUND_TRIP.0, "{} ns", run.longest);
}

#[test]
fn late_replies_during_the_farewell_are_counted_and_no_stamp_is_given_to_what_is_no_request() {
    let timeout = Nanos(100_000);
    let settings = OpenLoop { timeout, ..settings("constant", 1e5, Nanos(1_000_000)) };
    let run = run(&settings, |number, _| match number {
        // One while others are waited for still, one when all have been given up.
        50 | 99 => answered(Nanos(timeout.0 + ROUND_TRIP.0)),
        _ => answered(ROUND_TRIP),
    });
    let counts = run.outcome.accounting;
    assert_eq!((counts.sent, counts.received, counts.late, counts.lost), (100, 99, 1, 0));
    assert!(run.came.contains_key(&50) && !run.came.contains_key(&99));
    assert_complete(&run);
    let untold = Untold { late_replies: 1, ..Untold::default() };
    assert_eq!(run.outcome.stamps_untold, untold);
}
