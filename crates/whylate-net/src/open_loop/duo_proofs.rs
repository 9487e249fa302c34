//! Proofs of one-way times: a box between two ports in memory, with a clock of its own, whose delays,
//! losses, duplicates and reorderings are planted and recovered exactly; one way, and both ways on one
//! thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use whylate_clock::Counter;
use whylate_model::{CpuId, Nanos, Ticks};
use whylate_port::memory::RATE;
use whylate_port::{Across, MemoryPort, Port, PortError, PortFacts, Received};

use super::duo::{Way, run_both};
use super::settled::{self, Settled};
use super::{Ended, Latencies, OpenLoop, OpenOutcome, Tell};
use crate::error::NetError;
use crate::message::{Cookie, Header, Kind};
use crate::protocol::{Protocol, Raw, Through};
use crate::schedule::Plan;

const COOKIES: [Cookie; 2] = [Cookie(5), Cookie(6)];
/// What a reading of the counter, a look and a send take.
const READ: u64 = 10;
const LOOK: u64 = 40;
const SEND: u64 = 100;
/// From an arrival to the look that finds it: a pass of the loop at most, with a send on either side.
const NOTICED: u64 = 2 * (SEND + LOOK + 4 * READ);

/// What the box does to the measured message of this way with this number: what comes out of it, each so
/// long after the message went in.
type Fate = dyn FnMut(usize, u64) -> Vec<(Nanos, Out)> + Send;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Out {
    /// The message as it went in.
    Whole,
    /// Without its end.
    Cut,
    /// What somebody else sends.
    Stranger,
}

/// What is under way to one end: when, in which order, what.
type UnderWay = BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>;

/// The box, and the time of everybody.
struct Between {
    now: Arc<AtomicU64>,
    fate: Box<Fate>,
    /// To either end.
    under_way: [UnderWay; 2],
    planned: u64,
    dead: bool,
}

#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Counter for Clock {
    const KIND: &'static str = "simulated";

    fn read(&mut self) -> Ticks {
        Ticks(self.0.fetch_add(READ, Ordering::Relaxed))
    }

    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        (self.read(), CpuId(0))
    }

    fn cpu(&mut self) -> CpuId {
        CpuId(0)
    }
}

/// One of the two ports.
struct Outer {
    /// 0 for the near one.
    end: usize,
    between: Arc<Mutex<Between>>,
    facts: PortFacts,
}

impl Between {
    fn take(&mut self, end: usize, message: &[u8]) {
        let entered = self.now.load(Ordering::Relaxed);
        let header = Header::parse(message).unwrap();
        let outs = match header.kind {
            Kind::Probe => (self.fate)(end, header.sequence),
            _ => vec![(Nanos(500), Out::Whole)],
        };
        for (after, out) in outs {
            let bytes = match out {
                Out::Whole => message.to_vec(),
                Out::Cut => message[..message.len() - 1].to_vec(),
                Out::Stranger => {
                    let mut other = message.to_vec();
                    Header { cookie: Cookie(99), ..header }.write(&mut other);
                    other
                }
            };
            self.planned += 1;
            self.under_way[1 - end].push(Reverse((entered + after.0, self.planned, bytes)));
        }
    }
}

impl Port for Outer {
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let mut between = self.between.lock().unwrap();
        if between.dead {
            return Err(PortError::PeerGone { backend: "box" });
        }
        let at = between.now.load(Ordering::Relaxed);
        between.take(self.end, message);
        between.now.fetch_add(SEND, Ordering::Relaxed);
        Ok(Ticks(at))
    }

    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        let mut between = self.between.lock().unwrap();
        let looked = between.now.load(Ordering::Relaxed) + LOOK;
        let until = looked.max(looked - LOOK + limit.0);
        let came = &mut between.under_way[self.end];
        let first = came.peek().map(|first| first.0.0).filter(|first| *first <= until);
        let now = first.map_or(until, |first| first.max(looked));
        between.now.store(now, Ordering::Relaxed);
        if first.is_none() {
            return Ok(Received::Nothing { at: Ticks(now) });
        }
        let came = &mut between.under_way[self.end];
        let Some(Reverse((_, _, message))) = came.pop() else { unreachable!("one was seen") };
        buffer[..message.len()].copy_from_slice(&message);
        Ok(Received::Message { length: message.len(), at: Ticks(now) })
    }

    fn facts(&self) -> &PortFacts {
        &self.facts
    }
}

/// Two ports and the box between them.
fn ports(
    fate: impl FnMut(usize, u64) -> Vec<(Nanos, Out)> + Send + 'static,
) -> (Outer, Outer, Clock) {
    let now = Arc::new(AtomicU64::new(1_000));
    let (under_way, fate) = ([BinaryHeap::new(), BinaryHeap::new()], Box::new(fate));
    let between = Between { now: Arc::clone(&now), fate, under_way, planned: 0, dead: false };
    let between = Arc::new(Mutex::new(between));
    let facts = MemoryPort::new(|_: &[u8], _: &mut whylate_port::memory::Network| ());
    let outer = |end| {
        let (between, facts) = (Arc::clone(&between), facts.facts().clone());
        Outer { end, between, facts }
    };
    (outer(0), outer(1), Clock(now))
}

fn settings(arrivals: &str, per_second: f64) -> OpenLoop {
    OpenLoop {
        plan: Plan { arrivals: arrivals.parse().unwrap(), per_second, seed: 3 },
        bytes: 64,
        timeout: Nanos(100_000),
        most_under_way: None,
        one_way: false,
        warmup: Nanos(1_000_000),
        duration: Nanos(20_000_000),
        interval: Nanos::SECOND,
        rate: RATE,
    }
}

/// One way over both ports.
fn one_way(
    settings: &OpenLoop,
    fate: impl FnMut(usize, u64) -> Vec<(Nanos, Out)> + Send + 'static,
) -> (OpenOutcome, Vec<Settled>) {
    let (near, far, mut clock) = ports(fate);
    let mut port = Across::new(Box::new(near), Box::new(far));
    let (stop, protocol) = (AtomicBool::new(false), Through(Raw::new(COOKIES[0])));
    let mut forget = |_, of: &mut Latencies| of.clear();
    let (mut settling, mut settlements) = settled::between();
    let tell = Tell { requests: Some(&mut settling), ..Tell::intervals(&mut forget) };
    let outcome = settings.run(&mut port, &mut clock, &protocol, &stop, tell).unwrap();
    let mut told = Vec::new();
    settlements.drain(|of| told.push(of));
    (outcome, told)
}

fn way<'a>(settings: &'a OpenLoop, protocol: &'a dyn Protocol, tell: Tell<'a>) -> Way<'a> {
    Way { settings, protocol, tell }
}

/// Both ways on one thread.
fn both_ways(
    [there, back]: [&OpenLoop; 2],
    fate: impl FnMut(usize, u64) -> Vec<(Nanos, Out)> + Send + 'static,
) -> Result<[(OpenOutcome, Vec<Settled>); 2], NetError> {
    let (mut near, mut far, mut clock) = ports(fate);
    let protocols = COOKIES.map(|cookie| Through(Raw::new(cookie)));
    let mut forget = |_, of: &mut Latencies| of.clear();
    let mut forget_others = |_, of: &mut Latencies| of.clear();
    let ((mut first, mut first_told), (mut second, mut second_told)) =
        (settled::between(), settled::between());
    let to_first = Tell { requests: Some(&mut first), ..Tell::intervals(&mut forget) };
    let to_second = Tell { requests: Some(&mut second), ..Tell::intervals(&mut forget_others) };
    let ways = [way(there, &protocols[0], to_first), way(back, &protocols[1], to_second)];
    let stop = AtomicBool::new(false);
    let [one, other] = run_both(ways, (&mut near, &mut far), &mut clock, &stop)?;
    let (mut of_first, mut of_second) = (Vec::new(), Vec::new());
    first_told.drain(|of| of_first.push(of));
    second_told.drain(|of| of_second.push(of));
    Ok([(one, of_first), (other, of_second)])
}

fn whole(after: u64) -> Vec<(Nanos, Out)> {
    vec![(Nanos(after), Out::Whole)]
}

#[test]
fn the_time_between_the_two_ports_is_the_delay_of_the_box_message_by_message() {
    for arrivals in ["constant", "poisson", "burst(4)", "pair(3us)", "train(5,2us)"] {
        let delay = |number: u64| 5_000 + 37 * (number % 100);
        let (outcome, told) =
            one_way(&settings(arrivals, 50_000.0), move |_, number| whole(delay(number)));
        assert!(matches!(outcome.why, Ended::Duration) && outcome.adds_up(), "{arrivals}");
        assert_eq!(outcome.accounting.received, outcome.departures.intended, "{arrivals}");
        assert!(outcome.account.is_none(), "{arrivals}: nobody else counts");
        assert_eq!(told.len() as u64, outcome.departures.intended, "{arrivals}");
        for of in told {
            let (number, sent) = (of.number.unwrap(), of.sent.unwrap());
            let took = of.at.since(sent).0;
            // A group of five may wait for the looks of the four before.
            let (planted, most) = (delay(number), 6 * NOTICED);
            assert!((planted..planted + most).contains(&took), "{arrivals} {number} {took}");
        }
    }
}

#[test]
fn two_flows_in_turns_each_recover_their_own_delays_to_a_pass_of_the_loop() {
    for (arrivals, others) in
        [("constant", "constant"), ("poisson", "constant"), ("constant", "poisson")]
    {
        let delay = |way: usize, number: u64| 4_000 + 3_000 * way as u64 + 29 * (number % 64);
        let (there, back) = (settings(arrivals, 50_000.0), settings(others, 30_000.0));
        let both = both_ways([&there, &back], move |way, number| whole(delay(way, number)));
        for (way, (outcome, told)) in both.unwrap().into_iter().enumerate() {
            assert!(matches!(outcome.why, Ended::Duration), "{arrivals} {way} {:?}", outcome.why);
            assert!(outcome.adds_up(), "{arrivals} {way} {outcome:?}");
            assert_eq!(
                outcome.accounting.received, outcome.departures.intended,
                "{arrivals} {way}"
            );
            assert_eq!(outcome.accounting.foreign, 0, "{arrivals} {way}");
            assert_eq!(told.len() as u64, outcome.departures.intended);
            for of in told {
                let (number, sent) = (of.number.unwrap(), of.sent.unwrap());
                let (took, planted) = (of.at.since(sent).0, delay(way, number));
                let within = planted..planted + 4 * NOTICED;
                assert!(within.contains(&took), "{arrivals} {way} {number} {took} {planted}");
            }
        }
    }
}

#[test]
fn losses_duplicates_reorderings_and_foreign_messages_of_either_way_are_its_own() {
    let fate = |way: usize, number: u64| match (way, number % 10) {
        (0, 3) => Vec::new(),
        (0, 5) => vec![(Nanos(2_000), Out::Whole), (Nanos(9_000), Out::Whole)],
        // Behind the next one or the next two: 20 us lie between two of them.
        (1, 7) => whole(45_000),
        (1, 2) => vec![(Nanos(2_000), Out::Whole), (Nanos(2_500), Out::Cut)],
        (1, 4) => vec![(Nanos(2_000), Out::Whole), (Nanos(2_500), Out::Stranger)],
        _ => whole(2_000),
    };
    let asked = settings("constant", 50_000.0);
    let [(there, _), (back, _)] = both_ways([&asked, &asked], fate).unwrap();
    for of in [&there, &back] {
        assert!(of.adds_up(), "{of:?}");
        assert_eq!(of.departures.intended, 1_000);
    }
    let (near, far) = (there.accounting, back.accounting);
    assert_eq!((near.lost, near.duplicates, near.reordered, near.foreign), (100, 100, 0, 0));
    assert_eq!((far.lost, far.duplicates, far.reordered, far.foreign), (0, 0, 100, 200));
    assert_eq!((near.received, far.received), (900, 1_000));
    assert_eq!(there.given_up.unanswered, 100);
    assert_eq!(there.latencies.service.count_at_least(asked.timeout.0), 100);
    // One way the same, over a port that is one.
    let (alone, _) = one_way(&asked, fate);
    assert!(alone.adds_up());
    let of = alone.accounting;
    assert_eq!((of.lost, of.duplicates, of.reordered, of.received), (100, 100, 0, 900));
}

#[test]
fn the_second_flow_begins_between_two_sends_of_the_first_and_neither_is_late_for_the_other() {
    let asked = settings("constant", 50_000.0);
    let both = both_ways([&asked, &asked], |_, _| whole(3_000)).unwrap();
    let began = both.each_ref().map(|(of, _)| of.began.unwrap());
    assert_eq!(began[1].since(began[0]).0, 10_000, "half of 20 us");
    for (of, _) in &both {
        // What a send can be late by is a pass of the loop.
        let late = of.latencies.lateness.max().unwrap();
        assert!(late <= 2 * NOTICED, "{late}");
        assert_eq!(of.departures.share_in_time(), Some(1.0));
    }
}

#[test]
fn a_flow_that_has_ended_takes_in_what_comes_while_the_other_goes_on() {
    let short = OpenLoop { duration: Nanos(2_000_000), ..settings("constant", 50_000.0) };
    let long = settings("constant", 50_000.0);
    for asked in [[&short, &long], [&long, &short]] {
        let both = both_ways(asked, |_, _| whole(60_000)).unwrap();
        for ((of, _), asked) in both.iter().zip(asked) {
            assert!(of.adds_up() && matches!(of.why, Ended::Duration), "{of:?}");
            assert_eq!(of.accounting.received, asked.duration.0 / 20_000);
            let longest = of.latencies.service.max().unwrap();
            assert!(longest < 60_000 + 4 * NOTICED, "{longest}: nothing waited for the other");
        }
    }
}

#[test]
fn a_flow_that_cannot_hold_its_rate_does_not_keep_the_other_from_its_own() {
    let fast = OpenLoop { duration: Nanos(2_000_000), ..settings("constant", 20e6) };
    let slow = OpenLoop { duration: Nanos(2_000_000), ..settings("constant", 50_000.0) };
    for (asked, steady) in [([&fast, &slow], 1), ([&slow, &fast], 0)] {
        let both = both_ways(asked, |_, _| whole(3_000)).unwrap();
        for (of, _) in &both {
            assert!(of.adds_up(), "{of:?}");
        }
        let (of, _) = &both[steady];
        assert_eq!((of.departures.sent, of.accounting.received), (100, 100), "{steady}");
        let share = both[1 - steady].0.departures.share_in_time().unwrap();
        assert!(share < 0.7, "{share}");
    }
}

#[test]
fn a_port_that_fails_ends_both_and_what_was_under_way_is_counted() {
    let (mut near, mut far, mut clock) = ports(|_, _| whole(3_000));
    let asked = settings("constant", 50_000.0);
    let protocols = COOKIES.map(|cookie| Through(Raw::new(cookie)));
    let failing = Arc::clone(&near.between);
    let mut settled = 0;
    // Counted by the intervals' watch, which is called on the measuring thread.
    let mut watch = |_, of: &mut Latencies| {
        settled += of.service.len();
        failing.lock().unwrap().dead = true;
        of.clear();
    };
    let mut forget = |_, of: &mut Latencies| of.clear();
    let short = OpenLoop { interval: Nanos(1_000_000), ..asked.clone() };
    let ways = [
        way(&short, &protocols[0], Tell::intervals(&mut watch)),
        way(&asked, &protocols[1], Tell::intervals(&mut forget)),
    ];
    let stop = AtomicBool::new(false);
    let both = run_both(ways, (&mut near, &mut far), &mut clock, &stop).unwrap();
    let failed = both.iter().filter(|of| matches!(of.why, Ended::Failed(_))).count();
    let stopped = both.iter().filter(|of| matches!(of.why, Ended::Stopped)).count();
    assert_eq!((failed, stopped), (1, 1));
    for of in &both {
        let sent = of.departures.sent;
        assert_eq!(of.latencies.service.len() + of.abandoned, sent, "{of:?}");
    }
    assert!(settled > 0);
}

#[test]
fn a_box_that_lets_nothing_through_is_named_and_a_closed_loop_is_refused() {
    // Each of the two is a port of another box.
    let (_, mut far, mut clock) = ports(|_, _| whole(1));
    let (mut apart, _, _) = ports(|_, _| whole(1));
    let protocols = COOKIES.map(|cookie| Through(Raw::new(cookie)));
    let asked = settings("constant", 50_000.0);
    let closed = settings("closed", 0.0);
    let mut run = |asked: &OpenLoop| {
        let mut forget = |_, of: &mut Latencies| of.clear();
        let mut forget_others = |_, of: &mut Latencies| of.clear();
        let ways = [
            way(asked, &protocols[0], Tell::intervals(&mut forget)),
            way(asked, &protocols[1], Tell::intervals(&mut forget_others)),
        ];
        let stop = AtomicBool::new(false);
        run_both(ways, (&mut apart, &mut far), &mut clock, &stop).err().unwrap()
    };
    assert!(matches!(run(&closed), NetError::NothingToWaitFor));
    assert!(matches!(run(&asked), NetError::NoReflector { .. }));
}

#[test]
fn what_is_told_of_a_way_names_both_of_its_ports() {
    let asked = settings("constant", 50_000.0);
    let (outcome, _) = one_way(&asked, |_, _| whole(3_000));
    assert!(outcome.port.path.contains(" -> "), "{}", outcome.port.path);
    assert_eq!(outcome.protocol, Through(Raw::new(COOKIES[0])).name());
}
