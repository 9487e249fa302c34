//! Proofs on an in-memory port: the closed loop, departures that the kernel refuses, odd messages.

use std::sync::atomic::AtomicBool;

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};
use whylate_port::memory::{MemoryPort, Network, Peer};
use whylate_port::{Port, PortError, PortFacts, Received};

use super::anomalies::{Anomaly, KEPT_OF_EACH, Odd};
use super::proofs::{COOKIE, Fate, ROUND_TRIP, What, answered, measure, peer, run_over, settings};
use super::settled::Settled;
use super::{Ended, Latencies, OpenLoop, OpenOutcome, Tell};
use crate::error::NetError;
use crate::message::{Header, Kind};
use crate::protocol::{Protocol, Raw, Sockperf};

/// Why a kernel does not take the message with this number; none where it does.
type Refuses = fn(u64) -> Option<PortError>;

/// A port whose kernel takes some messages not at all.
struct Full<P> {
    port: MemoryPort<P>,
    refuses: Refuses,
}

impl<P: Peer> Port for Full<P> {
    fn send(&mut self, message: &[u8]) -> Result<Ticks, PortError> {
        let header = Header::parse(message).unwrap();
        let measured = matches!(header.kind, Kind::Probe | Kind::OneWay);
        if let Some(error) = (self.refuses)(header.sequence).filter(|_| measured) {
            return Err(error);
        }
        match header.kind {
            // It asks for no reply: whatever becomes of it is seen nowhere.
            Kind::OneWay | Kind::WarmOneWay => Ok(self.port.counter().read()),
            _ => self.port.send(message),
        }
    }

    fn receive(&mut self, buffer: &mut [u8], limit: Nanos) -> Result<Received, PortError> {
        self.port.receive(buffer, limit)
    }

    fn facts(&self) -> &PortFacts {
        self.port.facts()
    }
}

/// Of a run over a full port: the outcome, and what was told of each request.
fn refused(settings: &OpenLoop, refuses: Refuses) -> (OpenOutcome, Vec<Settled>) {
    let port = MemoryPort::new(peer(|_, _| answered(ROUND_TRIP)));
    let counter = port.counter();
    run_over(settings, &mut Full { port, refuses }, counter)
}

/// One in ten finds the queue full for as long as the kernel was asked to wait.
fn full(number: u64) -> Option<PortError> {
    let error = PortError::SendTimedOut { backend: "memory", limit: Nanos(1) };
    (number % 10 == 3).then_some(error)
}

/// One in ten is too long for the path.
fn too_long(number: u64) -> Option<PortError> {
    (number % 10 == 3).then_some(PortError::MtuTooSmall { bytes: 1_400, mtu: Some(1_000) })
}

/// What a client says of a server that answers its requests so.
fn refusal(protocol: &dyn Protocol, answer: fn(&mut Vec<u8>)) -> NetError {
    let mut port = MemoryPort::new(move |request: &[u8], network: &mut Network| {
        let mut message = request.to_vec();
        answer(&mut message);
        if !message.is_empty() {
            network.arrive(ROUND_TRIP, message);
        }
    });
    let (mut counter, stop) = (port.counter(), AtomicBool::new(false));
    let mut forget = |_, of: &mut Latencies| of.clear();
    let settings = settings("constant", 1e3, Nanos(10_000_000));
    let tell = Tell::intervals(&mut forget);
    settings.run(&mut port, &mut counter, protocol, &stop, tell).expect_err("nobody answers")
}

#[test]
fn a_server_that_returns_what_it_gets_is_none_of_another_version() {
    /// It returns what comes of version 1 alone: the other messages came before it started.
    fn older_alone(message: &mut Vec<u8>) {
        if message[4] != 1 {
            message.clear();
        }
    }
    /// As whylate of version 1 answered.
    fn first_version(message: &mut Vec<u8>) {
        older_alone(message);
        if let Some(kind) = message.get_mut(5) {
            *kind += 1;
        }
    }
    let raw = Raw::new(COOKIE);
    for echo in [(|_| ()) as fn(&mut Vec<u8>), older_alone] {
        let refused = refusal(&raw, echo);
        assert!(matches!(refused, NetError::Returned { .. }), "{refused}");
    }
    let refused = refusal(&Sockperf, |_| ());
    assert!(matches!(refused, NetError::Returned { wanted: "sockperf server", .. }), "{refused}");
    let refused = refusal(&raw, first_version);
    assert!(matches!(refused, NetError::OtherVersion { version: 1, .. }), "{refused}");
    let silent = refusal(&raw, Vec::clear);
    assert!(matches!(silent, NetError::NoReflector { .. }), "{silent}");
}

#[test]
fn a_departure_that_the_kernel_refused_counts_once_and_has_no_service_time() {
    let cases: [(&str, bool, Refuses); 5] = [
        ("constant", false, full),
        ("closed", false, full),
        ("constant", true, full),
        ("constant", false, too_long),
        ("constant", true, too_long),
    ];
    for (arrivals, one_way, refuses) in cases {
        let settings = OpenLoop { one_way, ..settings(arrivals, 1e5, Nanos(10_000_000)) };
        let (outcome, told) = refused(&settings, refuses);
        assert!(matches!(outcome.why, Ended::Duration), "{arrivals} {one_way} {outcome:?}");
        assert!(outcome.adds_up(), "{arrivals} {one_way} {outcome:?}");
        let (counts, left) = (outcome.accounting, &outcome.departures);
        assert_eq!(left.refused, told.iter().filter(|of| of.sent.is_none()).count() as u64);
        assert_eq!(left.sent + left.refused, counts.sent);
        assert!(left.refused.abs_diff(counts.sent / 10) <= 1, "{left:?}");
        let first = left.why_refused.as_ref().map(ToString::to_string);
        assert_eq!(first, refuses(3).map(|error| error.to_string()));
        let service = &outcome.latencies.service;
        assert_eq!(outcome.given_up.unanswered, 0);
        if !one_way {
            assert_eq!(counts.lost, left.refused, "nothing else was lost");
            assert_eq!(service.len(), left.sent);
            assert!(service.max().unwrap() < 10 * ROUND_TRIP.0, "{:?}", service.max());
        }
        if arrivals == "constant" {
            // All that is known of them is that they are later than whatever is waited for.
            let above = outcome.given_up.lateness_above.unwrap();
            assert!(above >= settings.timeout, "{above}");
            assert_eq!(outcome.latencies.lateness.count_at_least(above.0), left.refused);
        }
    }
}

#[test]
fn a_closed_loop_ends_where_its_requests_are_too_long_for_the_path() {
    let (outcome, _) = refused(&settings("closed", 0.0, Nanos(10_000_000)), too_long);
    let Ended::Failed(PortError::MtuTooSmall { .. }) = outcome.why else {
        panic!("{outcome:?}");
    };
    assert_eq!((outcome.departures.refused, outcome.accounting.received), (0, 3));
}

#[test]
fn a_closed_loop_has_one_long_service_time_a_stall_and_nothing_else_to_show_it() {
    const STALL: u64 = 10_000_000;
    const PERIOD: u64 = 100_000_000;
    let at_end = |now: u64| match now % PERIOD {
        into if into < STALL => Nanos(STALL - into + 500),
        _ => Nanos(500),
    };
    let settings =
        OpenLoop { timeout: Nanos(1_000_000_000), ..settings("closed", 0.0, Nanos(10 * PERIOD)) };
    let outcome = measure(&settings, |_, now| answered(at_end(now)));
    assert!(outcome.closed && outcome.adds_up(), "{outcome:?}");
    assert!(matches!(outcome.why, Ended::Duration));
    let service = &outcome.latencies.service;
    assert!((9..=11).contains(&service.count_above(STALL / 20)), "one sample a stall");
    assert!(service.value_at(99.9).unwrap() < 1_000, "and so its p99.9 knows nothing of it");
    assert!(outcome.latencies.response.is_empty() && outcome.latencies.lateness.is_empty());
    assert_eq!((outcome.departures.intended, outcome.given_up.never_sent), (0, 0));
    assert_eq!(outcome.departures.share_in_time(), None);
    // The next one leaves as soon as the reply is there.
    let gap = outcome.departures.gaps.value_at(50.0).unwrap();
    assert!((500..1_500).contains(&gap), "{gap}");
}

#[test]
fn a_closed_loop_gives_up_what_is_not_answered_in_time_and_goes_on() {
    let settings = settings("closed", 0.0, Nanos(20_000_000));
    let outcome = measure(&settings, |number, _| match number % 10 {
        3 => Vec::new(),
        7 => answered(Nanos(150_000)),
        _ => answered(ROUND_TRIP),
    });
    assert!(outcome.adds_up(), "{outcome:?}");
    let (sent, given_up) = (outcome.departures.sent, outcome.given_up.unanswered);
    assert!(sent > 300 && given_up.abs_diff(sent / 5) <= 1, "{sent} {given_up}");
    assert_eq!(outcome.given_up.service_above, Some(settings.timeout));
    assert!(outcome.accounting.lost.abs_diff(sent / 10) <= 1, "a late reply is one");
}

fn of(outcome: &OpenOutcome, odd: Odd) -> Vec<Anomaly> {
    outcome.anomalies.in_order().into_iter().filter(|one| one.odd == odd).cloned().collect()
}

#[test]
fn the_first_odd_messages_of_each_kind_are_kept_as_they_came() {
    let settings = settings("constant", 1e5, Nanos(20_000_000));
    let outcome = measure(&settings, |number, _| match number {
        5 => vec![(ROUND_TRIP, What::Reply), (Nanos(14_000), What::Reply)],
        7 => vec![(Nanos(15_000), What::Reply)],
        11 => Fate::new(),
        13 => vec![(Nanos(150_000), What::Reply)],
        17 => vec![(Nanos(1_000), What::Garbage), (ROUND_TRIP, What::Reply)],
        100.. if number % 2 == 0 => vec![(ROUND_TRIP, What::Reply), (Nanos(3_000), What::Reply)],
        _ => answered(ROUND_TRIP),
    });
    assert!(outcome.adds_up(), "{outcome:?}");
    let twice = of(&outcome, Odd::Duplicate);
    assert_eq!(twice.len(), KEPT_OF_EACH, "of 951");
    let first = &twice[0];
    assert_eq!(first.number, Some(5));
    let after = first.at.since(first.first.unwrap()).0;
    assert!(after.abs_diff(12_000) < 300, "{after}");
    assert_eq!(Header::parse(first.message()).unwrap().sequence, 5);
    let [behind] = &of(&outcome, Odd::Reordered)[..] else { panic!("one") };
    assert_eq!((behind.number, behind.after), (Some(7), Some(8)));
    let [lost] = &of(&outcome, Odd::Lost)[..] else { panic!("one, and 13 was found") };
    assert_eq!((lost.number, lost.sent), (Some(11), Some(lost.at)));
    let request = Header::parse(lost.message()).unwrap();
    assert_eq!((request.sequence, request.cookie), (11, COOKIE), "as it left");
    let [late] = &of(&outcome, Odd::Late)[..] else { panic!("one") };
    assert_eq!(late.number, Some(13));
    let after = late.at.since(late.sent.unwrap()).0;
    assert!(after.abs_diff(150_000) < 500, "{after}");
    let [foreign] = &of(&outcome, Odd::Foreign)[..] else { panic!("one") };
    assert_eq!((foreign.number, foreign.message()), (None, &[0xa5; 64][..]));
}

#[test]
fn a_capture_is_replayed_at_its_distances_whatever_came_back() {
    let instants = [0, 30_000, 30_000, 100_000].map(|ns: u64| crate::schedule::Picos(ns * 1_000));
    let mut settings = settings("constant", 1.0, Nanos(1_000_000));
    settings.plan.arrivals = crate::schedule::Arrivals::Capture { instants: instants.into() };
    let outcome = measure(&settings, |_, _| answered(Nanos(50_000)));
    assert!(outcome.adds_up());
    // A round takes 100 us and the mean distance of 33.3 us.
    assert_eq!(outcome.departures.intended, 4 * 7 + 3);
    let gaps = &outcome.departures.gaps;
    assert!(gaps.value_at(99.0).unwrap().abs_diff(70_000) < 1_500, "{:?}", gaps.value_at(99.0));
    assert!(outcome.latencies.lateness.max().unwrap() < 1_000);
}
