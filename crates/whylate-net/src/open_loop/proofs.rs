//! Proofs on an in-memory port: what is planted is recovered exactly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use whylate_clock::Counter;
use whylate_model::Nanos;
use whylate_port::memory::{Network, RATE};
use whylate_port::{MemoryPort, Port};
use whylate_stats::rng::Rng;

use super::settled::{self, Settled};
use super::{Ended, Latencies, OpenLoop, OpenOutcome, Tell};
use crate::message::{Cookie, FAREWELL_BYTES, Header, Kind};
use crate::protocol::Raw;
use crate::reflect::answer_in_place;
use crate::schedule::{Arrivals, Plan};

pub(super) const ROUND_TRIP: Nanos = Nanos(2_000);
pub(super) const COOKIE: Cookie = Cookie(5);

/// What happens to a measured request: its replies, each so long after it.
pub(super) type Fate = Vec<(Nanos, What)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Reply,
    Garbage,
    /// A reply of another client.
    Stranger,
}

/// A reflector behind a network that deals with measured request k as `fate(k, now)` says.
pub(super) fn peer(
    mut fate: impl FnMut(u64, u64) -> Fate + Send,
) -> impl FnMut(&[u8], &mut Network) + Send {
    let mut cookie = Some(COOKIE);
    move |request: &[u8], network: &mut Network| {
        let mut answer = request.to_vec();
        let kind = answer_in_place(&mut answer, &mut cookie).unwrap();
        if kind == Kind::Farewell {
            answer.resize(FAREWELL_BYTES, 0);
        }
        if kind != Kind::Reply {
            return network.arrive(ROUND_TRIP, answer);
        }
        let sequence = Header::parse(request).unwrap().sequence;
        for (after, what) in fate(sequence, network.now()) {
            let message = match what {
                What::Reply => answer.clone(),
                What::Garbage => vec![0xa5; 64],
                What::Stranger => {
                    let mut forged = answer.clone();
                    let header = Header::parse(&answer).unwrap();
                    Header { cookie: Cookie(!COOKIE.0), ..header }.write(&mut forged);
                    forged
                }
            };
            network.arrive(after, message);
        }
    }
}

pub(super) fn settings(arrivals: &str, per_second: f64, duration: Nanos) -> OpenLoop {
    OpenLoop {
        plan: Plan { arrivals: arrivals.parse().unwrap(), per_second, seed: 3 },
        bytes: 64,
        timeout: Nanos(100_000),
        most_under_way: None,
        one_way: false,
        warmup: Nanos(0),
        duration,
        interval: Nanos::SECOND,
        rate: RATE,
    }
}

pub(super) fn measure(
    settings: &OpenLoop,
    fate: impl FnMut(u64, u64) -> Fate + Send,
) -> OpenOutcome {
    let mut port = MemoryPort::new(peer(fate));
    let counter = port.counter();
    run_over(settings, &mut port, counter).0
}

/// A run over this port: the outcome, and what was told of the first requests, each once.
pub(super) fn run_over<P: Port>(
    settings: &OpenLoop,
    port: &mut P,
    mut counter: impl Counter + Clone,
) -> (OpenOutcome, Vec<Settled>) {
    let (stop, protocol) = (AtomicBool::new(false), Raw::new(COOKIE));
    let mut forget = |_, of: &mut Latencies| of.clear();
    let (mut settling, mut settlements) = settled::between();
    let requests = Some(&mut settling);
    let tell = Tell { intervals: &mut forget, requests, stalls: None, stamps: None };
    let outcome = settings.run(port, &mut counter, &protocol, &stop, tell).unwrap();
    let mut told = Vec::new();
    settlements.drain(|of| told.push(of));
    (outcome, told)
}

pub(super) fn answered(after: Nanos) -> Fate {
    vec![(after, What::Reply)]
}

#[test]
fn every_request_of_a_quiet_path_is_sent_when_intended_and_answered_once() {
    for arrivals in
        ["constant", "poisson", "burst(4)", "pair(3us)", "train(5,2us)", "sweep(5us,50us,3,7)"]
    {
        let settings = settings(arrivals, 50_000.0, Nanos(20_000_000));
        let outcome = measure(&settings, |_, _| answered(ROUND_TRIP));
        assert!(matches!(outcome.why, Ended::Duration), "{arrivals} {:?}", outcome.why);
        assert!(outcome.adds_up(), "{arrivals} {outcome:?}");
        let intended = settings.plan.begin();
        let intended = intended.take_while(|due| due.after.0 < 20_000_000_000).count() as u64;
        assert_eq!(outcome.departures.intended, intended, "{arrivals}");
        assert_eq!(outcome.accounting.received, intended, "{arrivals}");
        assert_eq!(outcome.departures.share_in_time(), Some(1.0), "{arrivals}");
        // A look and a reading of the clock are what a send can be late by, and a burst's own.
        let late = outcome.latencies.lateness.max().unwrap();
        assert!(late < if arrivals == "constant" { 50 } else { 4_000 }, "{arrivals} {late}");
        assert!(outcome.latencies.service.min().unwrap() >= ROUND_TRIP.0);
    }
}

#[test]
fn compact_requests_are_accounted_for_as_others_are() {
    let of = |bytes| {
        let settings = OpenLoop { bytes, ..settings("poisson", 50_000.0, Nanos(20_000_000)) };
        measure(&settings, |number, _| match number % 10 {
            0 => Vec::new(),
            1 => vec![(ROUND_TRIP, What::Reply), (Nanos(3_000), What::Reply)],
            2 => vec![(Nanos(1_000), What::Stranger), (ROUND_TRIP, What::Reply)],
            3 => vec![(Nanos(1_000), What::Garbage), (ROUND_TRIP, What::Reply)],
            4 => vec![(Nanos(150_000), What::Reply)],
            _ => answered(ROUND_TRIP),
        })
    };
    let [compact, long] = [18, 64].map(of);
    let found = compact.accounting;
    assert!(found.duplicates > 50 && found.foreign > 100 && found.lost > 50, "{found:?}");
    assert!(found.adds_up() && compact.adds_up(), "{found:?}");
    assert_eq!(found, long.accounting);
    let service = |outcome: &OpenOutcome| {
        let of = &outcome.latencies.service;
        (of.len(), of.min(), of.value_at(50.0), of.max())
    };
    assert_eq!(service(&compact), service(&long));
}

#[test]
fn parts_of_a_pattern_have_histograms_of_their_own_that_add_up() {
    let settings = settings("train(3,1us)", 30_000.0, Nanos(10_000_000));
    // The third of each train takes longer.
    let outcome = measure(&settings, |number, _| answered(Nanos(2_000 + 5_000 * (number % 3 / 2))));
    let [first, second, third] = &outcome.parts[..] else { panic!("three places") };
    let count: u64 = outcome.parts.iter().map(|part| part.response.len()).sum();
    assert_eq!(count, outcome.latencies.response.len());
    assert!(third.service.min().unwrap() > first.service.max().unwrap());
    assert!(third.service.min().unwrap() > second.service.max().unwrap());
}

/// The stall of METHOD 7: a server that stops for S once in a period P.
#[test]
fn a_stall_shows_in_the_response_as_a_ramp_whether_or_not_requests_wait_for_each_other() {
    const STALL: u64 = 10_000_000;
    const PERIOD: u64 = 100_000_000;
    let at_end = |now: u64| match now % PERIOD {
        into if into < STALL => Nanos(STALL - into + 500),
        _ => Nanos(500),
    };
    for most_under_way in [None, Some(1)] {
        let settings = OpenLoop {
            timeout: Nanos(1_000_000_000),
            most_under_way,
            ..settings("constant", 100_000.0, Nanos(10 * PERIOD))
        };
        let outcome = measure(&settings, |_, now| answered(at_end(now)));
        assert!(outcome.adds_up());
        let (service, response) = (&outcome.latencies.service, &outcome.latencies.response);
        for percent in [91.0, 93.0, 95.0, 97.0, 99.0, 99.9] {
            let ramp = STALL as f64 - PERIOD as f64 * (1.0 - percent / 100.0);
            let found = response.value_at(percent).unwrap() as f64;
            // Catching up takes a few per cent of the stall; one request in 10 us is the step.
            let off = (found - ramp).abs();
            assert!(off < 0.08 * STALL as f64, "{most_under_way:?} p{percent} {found} {ramp}");
        }
        let long = service.count_above(STALL / 20);
        match most_under_way {
            None => {
                assert!((8_500..=10_000).contains(&long), "the open loop shows the ramp: {long}");
            }
            Some(_) => assert!((9..=11).contains(&long), "one sample a stall: {long}"),
        }
    }
}

#[test]
fn a_rate_that_cannot_be_held_is_told_and_what_was_never_sent_stays_in_the_response() {
    let settings = settings("constant", 20e6, Nanos(2_000_000));
    let outcome = measure(&settings, |_, _| answered(ROUND_TRIP));
    assert!(outcome.adds_up(), "{outcome:?}");
    let share = outcome.departures.share_in_time().unwrap();
    assert!(share < 0.6, "{share}");
    assert_eq!(outcome.departures.intended, 40_000);
    assert!(outcome.given_up.never_sent > 10_000, "{:?}", outcome.given_up);
    let above = outcome.given_up.response_above.unwrap();
    assert!(above > Nanos(0) && above.0 < 2_200_000, "{above}");
    // How late they would have left is not known either.
    assert_eq!(outcome.given_up.lateness_above, Some(above));
}

#[test]
fn what_is_not_answered_in_time_stays_in_the_sample_as_a_lower_bound() {
    let settings = settings("constant", 100_000.0, Nanos(10_000_000));
    let outcome = measure(&settings, |number, _| match number % 10 {
        3 => Vec::new(),
        // But the last one's, which nobody would wait for.
        7 if number < 990 => answered(Nanos(150_000)),
        _ => answered(ROUND_TRIP),
    });
    assert!(outcome.adds_up(), "{outcome:?}");
    assert_eq!((outcome.given_up.unanswered, outcome.accounting.lost), (199, 100));
    assert_eq!(outcome.accounting.received, 900, "an answer after the timeout is one");
    assert_eq!(outcome.given_up.service_above, Some(settings.timeout));
    assert_eq!(outcome.latencies.service.count_at_least(settings.timeout.0), 199);
}

#[test]
fn a_port_that_fails_leaves_what_was_measured_and_counts_what_was_under_way() {
    let settings = settings("constant", 1e6, Nanos(10_000_000));
    let mut inner = peer(|_, _| answered(ROUND_TRIP));
    let dying = move |request: &[u8], network: &mut Network| {
        let header = Header::parse(request).unwrap();
        if header.kind == Kind::Probe && header.sequence == 5_000 {
            return network.die();
        }
        inner(request, network);
    };
    let mut port = MemoryPort::new(dying);
    let counter = port.counter();
    let (outcome, _) = run_over(&settings, &mut port, counter);
    assert!(matches!(&outcome.why, Ended::Failed(error) if error.is_peer_gone()));
    let (sent, settled) = (outcome.departures.sent, outcome.latencies.service.len());
    assert!(sent >= 5_001 && outcome.abandoned > 0, "{sent} {}", outcome.abandoned);
    assert_eq!(settled + outcome.abandoned, sent);
}

#[test]
fn every_intended_request_is_told_once_answered_or_not() {
    let settings = settings("constant", 100_000.0, Nanos(300_000_000));
    let mut port = MemoryPort::new(peer(|number, _| match number % 7 {
        0 => Vec::new(),
        _ => answered(ROUND_TRIP),
    }));
    let counter = port.counter();
    let (outcome, mut told) = run_over(&settings, &mut port, counter);
    assert_eq!(told.len() as u64, outcome.departures.intended);
    told.sort_by_key(|of| of.number);
    for (number, of) in (0..).zip(&told) {
        assert_eq!((of.number, of.answered), (Some(number), number % 7 != 0));
        assert!(of.intended <= of.sent.unwrap() && of.sent.unwrap() < of.at);
    }
}

#[test]
fn what_asks_for_no_reply_is_measured_by_its_departures_alone() {
    let settings =
        OpenLoop { one_way: true, ..settings("constant", 100_000.0, Nanos(200_000_000)) };
    let mut came = 0;
    let mut greeted = peer(|_, _| unreachable!("no measured request asks for a reply"));
    let mut port = MemoryPort::new(|message: &[u8], network: &mut Network| {
        match Header::parse(message).unwrap().kind {
            Kind::OneWay => came += 1,
            Kind::WarmOneWay => (),
            _ => greeted(message, network),
        }
    });
    let counter = port.counter();
    let (outcome, _) = run_over(&settings, &mut port, counter);
    drop(port);
    assert!(outcome.adds_up(), "{outcome:?}");
    assert_eq!((came, outcome.departures.sent), (20_000, 20_000));
    assert!(outcome.latencies.service.is_empty() && outcome.latencies.response.is_empty());
    assert_eq!(outcome.latencies.lateness.len(), 20_000);
}

#[test]
fn poisson_departures_are_told_from_constant_ones() {
    let settings = settings("poisson", 100_000.0, Nanos(500_000_000));
    let outcome = measure(&settings, |_, _| answered(ROUND_TRIP));
    let distance = outcome.departures.uniformity.as_ref().unwrap().distance().unwrap();
    assert!(distance.n > 45_000 && distance.largest < 0.02, "{distance:?}");
    // The same requests, each waiting for the one before: distances below a round trip vanish.
    let waiting = OpenLoop { most_under_way: Some(1), ..settings };
    let outcome = measure(&waiting, |_, _| answered(ROUND_TRIP));
    let distance = outcome.departures.uniformity.as_ref().unwrap().distance().unwrap();
    assert!(distance.largest > 0.1, "{distance:?}");
}

/// Loss, duplicates, reordering, garbage and strangers planted by number; what they must come to.
#[derive(Debug, Clone, Copy)]
struct Planted {
    rng_seed: u64,
    loss: f64,
    twice: f64,
    delayed: f64,
    foreign: f64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    lost: u64,
    duplicates: u64,
    foreign: u64,
    reordered: u64,
}

/// Counts reordering by the instants at which replies arrive, in the memory of those under way.
#[derive(Default)]
struct Arriving {
    /// Instant, place among those of one instant, number of the request.
    under_way: BinaryHeap<Reverse<(u64, u64, u64)>>,
    planned: u64,
    largest: Option<u64>,
    reordered: u64,
}

impl Arriving {
    /// The first reply to a request arrives at `at`; what arrived before `now` is settled.
    fn plan(&mut self, now: u64, at: u64, sequence: u64) {
        self.until(now);
        self.planned += 1;
        self.under_way.push(Reverse((at, self.planned, sequence)));
    }

    /// Replies that arrive up to `now`, each of which is reordered when a later request's came
    /// before it (RFC 4737).
    fn until(&mut self, now: u64) {
        while let Some(Reverse((at, _, sequence))) = self.under_way.peek().copied() {
            if at > now {
                return;
            }
            self.under_way.pop();
            self.reordered += u64::from(Some(sequence) < self.largest);
            self.largest = self.largest.max(Some(sequence));
        }
    }
}

fn planted_run(planted: Planted, requests: u64) -> (OpenOutcome, Expected) {
    let period = 400;
    let mut rng = Rng::new(planted.rng_seed);
    let (mut expected, mut arriving) = (Expected::default(), Arriving::default());
    let settings = settings("constant", 1e9 / period as f64, Nanos(period * requests));
    let outcome = measure(&settings, |sequence, now| {
        let mut fate = Fate::new();
        if rng.unit() < planted.foreign {
            expected.foreign += 1;
            fate.push((Nanos(50), if rng.unit() < 0.5 { What::Garbage } else { What::Stranger }));
        }
        if rng.unit() < planted.loss {
            expected.lost += 1;
            return fate;
        }
        let after = if rng.unit() < planted.delayed { 5_000 } else { 1_000 };
        fate.push((Nanos(after), What::Reply));
        arriving.plan(now, now + after, sequence);
        if rng.unit() < planted.twice {
            expected.duplicates += 1;
            fate.push((Nanos(after + 700), What::Reply));
        }
        fate
    });
    arriving.until(u64::MAX);
    expected.reordered = arriving.reordered;
    (outcome, expected)
}

fn check_planted(planted: Planted, requests: u64) -> OpenOutcome {
    let (outcome, expected) = planted_run(planted, requests);
    let counts = outcome.accounting;
    assert!(outcome.adds_up(), "{outcome:?}");
    assert_eq!(counts.sent, requests);
    let found = Expected {
        lost: counts.lost,
        duplicates: counts.duplicates,
        foreign: counts.foreign,
        reordered: counts.reordered,
    };
    assert_eq!(found, expected);
    assert!(expected.reordered > 0 || planted.delayed == 0.0, "{counts:?}");
    outcome
}

/// A line of this process's memory, in KiB.
fn kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// More than a run of a schedule takes, whatever its length.
const MEMORY_KIB: u64 = 64 << 10;
/// Is set for a process that has one test: others would need memory beside it.
const BY_ITSELF: &str = "WHYLATE_TEST_BY_ITSELF";

#[test]
fn accounting_adds_up_over_many_packets_in_constant_memory() {
    // An emulator starts no other process, and knows nothing of memory.
    let emulated = std::env::var_os("WHYLATE_EMULATED").is_some();
    if std::env::var_os(BY_ITSELF).is_none() && !emulated {
        let (_, module) = module_path!().split_once("::").unwrap();
        let test = format!("{module}::accounting_adds_up_over_many_packets_in_constant_memory");
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", &test, "--nocapture"]).env(BY_ITSELF, "yes");
        let output = alone.output().unwrap();
        let [said, also] = [&output.stdout, &output.stderr].map(|of| String::from_utf8_lossy(of));
        assert!(output.status.success() && said.contains("1 passed"), "{said}{also}");
        return eprint!("{also}");
    }
    let requests = match std::env::var("WHYLATE_TESTS_PACKETS") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => 2_000_000,
    };
    let planted = Planted { rng_seed: 1, loss: 0.01, twice: 0.005, delayed: 0.02, foreign: 0.003 };
    let before = kib("VmRSS:");
    let outcome = check_planted(planted, requests);
    let (after, peak) = (kib("VmRSS:"), kib("VmHWM:"));
    eprintln!(
        "{requests} requests: {before} KiB before, {after} KiB after, {peak} KiB at most; {:?}",
        outcome.accounting
    );
    assert!(emulated || peak < before + MEMORY_KIB, "{before} KiB before, {peak} KiB at most");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_happens_to_packets_is_accounted_for(
        rng_seed: u64,
        loss in 0.0..0.5,
        twice in 0.0..0.5,
        delayed in 0.1..0.5,
        foreign in 0.0..0.5,
    ) {
        check_planted(Planted { rng_seed, loss, twice, delayed, foreign }, 3_000);
    }
}

#[test]
fn a_size_that_the_protocol_has_not_and_times_that_are_none_are_refused() {
    let good = settings("constant", 1e3, Nanos(1_000));
    let protocol = Raw::new(COOKIE);
    let refused = |settings: OpenLoop| settings.check(&protocol).unwrap_err().to_string();
    assert!(good.check(&protocol).is_ok());
    assert!(
        refused(OpenLoop { bytes: 10, ..good.clone() })
            .contains("a raw request cannot have 10 bytes")
    );
    assert!(refused(OpenLoop { duration: Nanos(0), ..good.clone() }).contains("must be above 0"));
    assert!(refused(OpenLoop { timeout: Nanos(1), ..good.clone() }).contains("timeout"));
    let least = refused(OpenLoop { bytes: 17, ..good.clone() });
    assert!(least.contains("use --size 18 to 65507"), "{least}");
    for frame in ["64 bytes with IPv4", "68 with a VLAN tag", "84 with IPv6", "88 with both"] {
        assert!(least.contains(frame), "{frame}: {least}");
    }
    assert!(OpenLoop { bytes: 18, ..good }.check(&protocol).is_ok());
    assert_eq!(Arrivals::Constant.to_string(), "constant");
}
