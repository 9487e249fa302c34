//! Proofs on an in-memory port: what is planted is recovered exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use whylate_model::Nanos;
use whylate_port::MemoryPort;
use whylate_port::memory::{Network, RATE, SEND_NS};

use crate::closed_loop::{ClosedLoop, Ended, Interval, Outcome};
use crate::error::NetError;
use crate::message::{Cookie, FAREWELL_BYTES, Header, Kind};
use crate::reflect::answer_in_place;

const ROUND_TRIP: Nanos = Nanos(1_000);
const TIMEOUT: Nanos = Nanos(20_000);

/// What happens to one measured request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Dropped,
    Twice,
    /// Answered this much after the timeout.
    AfterTimeout(u64),
    /// Answered, and a message from elsewhere comes before the answer.
    BesideForeign(Forgery),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forgery {
    Garbage,
    Empty,
    OtherCookie,
    OwnRequest,
    Shorter,
    Longer,
}

const FORGERIES: [Forgery; 6] = [
    Forgery::Garbage,
    Forgery::Empty,
    Forgery::OtherCookie,
    Forgery::OwnRequest,
    Forgery::Shorter,
    Forgery::Longer,
];

fn forge(forgery: Forgery, request: &[u8], answer: &[u8]) -> Vec<u8> {
    match forgery {
        Forgery::Garbage => vec![0xa5; answer.len()],
        Forgery::Empty => Vec::new(),
        Forgery::OwnRequest => request.to_vec(),
        Forgery::Shorter => answer[..answer.len() - 1].to_vec(),
        Forgery::Longer => [answer, &[0; 100]].concat(),
        Forgery::OtherCookie => {
            let mut forged = answer.to_vec();
            let header = Header::parse(answer).unwrap();
            Header { cookie: Cookie(!header.cookie.0), ..header }.write(&mut forged);
            forged
        }
    }
}

/// A reflector behind a network that deals with measured request k as `fate(k)` says.
fn peer(
    mut fate: impl FnMut(u64, &mut Network) -> Fate + Send,
) -> impl FnMut(&[u8], &mut Network) + Send {
    let mut cookie = None;
    move |request: &[u8], network: &mut Network| {
        let mut answer = request.to_vec();
        let kind = answer_in_place(&mut answer, &mut cookie).unwrap();
        if kind == Kind::Farewell {
            let header = Header::parse(&answer).unwrap();
            answer.resize(FAREWELL_BYTES, 0);
            header.write(&mut answer);
        }
        if kind != Kind::Reply {
            return network.arrive(ROUND_TRIP, answer);
        }
        let sequence = Header::parse(request).unwrap().sequence;
        match fate(sequence, network) {
            Fate::Dropped => (),
            Fate::Answered => network.arrive(ROUND_TRIP, answer),
            Fate::AfterTimeout(by) => network.arrive(Nanos(TIMEOUT.0 + by), answer),
            Fate::Twice => {
                network.arrive(ROUND_TRIP, answer.clone());
                network.arrive(ROUND_TRIP, answer);
            }
            Fate::BesideForeign(forgery) => {
                network.arrive(Nanos(500), forge(forgery, request, &answer));
                network.arrive(ROUND_TRIP, answer);
            }
        }
    }
}

fn settings(requests: u64) -> ClosedLoop {
    ClosedLoop { requests, timeout: TIMEOUT, warmup_requests: 7, ..ClosedLoop::new(RATE) }
}

fn measure(
    settings: ClosedLoop,
    fate: impl FnMut(u64, &mut Network) -> Fate + Send,
) -> (Outcome, Vec<Interval>) {
    let mut intervals = Vec::new();
    let mut port = MemoryPort::new(peer(fate));
    let mut keep = |interval| intervals.push(interval);
    let outcome = settings.run(&mut port, &AtomicBool::new(false), &mut keep).unwrap();
    assert!(outcome.adds_up(), "{:?}", outcome.accounting);
    (outcome, intervals)
}

/// Every k-th request, from the k-th on.
fn every(k: u64, fate: Fate) -> impl FnMut(u64, &mut Network) -> Fate + Send {
    move |sequence, _| if (sequence + 1).is_multiple_of(k) { fate } else { Fate::Answered }
}

#[test]
fn an_injected_delay_is_recovered_with_slope_one() {
    for delay in [100, 1_000, 7_777, 19_999] {
        let mut cookie = None;
        let mut port = MemoryPort::new(move |request: &[u8], network: &mut Network| {
            let mut answer = request.to_vec();
            if answer_in_place(&mut answer, &mut cookie) == Some(Kind::Farewell) {
                answer.resize(FAREWELL_BYTES, 0);
            }
            network.arrive(Nanos(delay), answer);
        });
        let outcome = settings(500).run(&mut port, &AtomicBool::new(false), &mut |_| ()).unwrap();
        assert_eq!(outcome.service.len(), 500);
        assert_eq!((outcome.service.min(), outcome.service.max()), (Some(delay), Some(delay)));
        assert_eq!(outcome.turnaround.max(), Some(0), "nothing lies between reply and next send");
        assert!(outcome.reflector.is_some());
    }
}

#[test]
fn injected_loss_is_recovered_and_stays_in_the_sample_as_censored() {
    let (outcome, _) = measure(settings(10_000), every(23, Fate::Dropped));
    let lost = 10_000 / 23;
    assert_eq!((outcome.accounting.lost, outcome.censored), (lost, lost));
    assert_eq!(outcome.accounting.received, 10_000 - lost);
    assert_eq!(outcome.service.len(), 10_000);
    assert_eq!(outcome.service.max(), Some(TIMEOUT.0));
    assert_eq!(outcome.censored_from_rank(), Some(10_000 - lost + 1));
}

#[test]
fn injected_duplicates_are_recovered_even_behind_the_last_request() {
    for k in [1, 2, 17, 100] {
        let (outcome, _) = measure(settings(1_000), every(k, Fate::Twice));
        assert_eq!(outcome.accounting.duplicates, 1_000 / k);
        assert_eq!((outcome.accounting.received, outcome.accounting.lost), (1_000, 0));
    }
}

#[test]
fn an_answer_that_overtakes_nothing_is_not_reordered_and_one_that_is_overtaken_is() {
    // 500 ns after the timeout is before the answer to the next request, 5 us is after it.
    for (by, reordered) in [(500, 0), (5_000, 99)] {
        let (outcome, _) = measure(settings(1_000), every(10, Fate::AfterTimeout(by)));
        assert_eq!(outcome.accounting.received, 1_000);
        assert_eq!(outcome.accounting.reordered, reordered, "by {by}");
        assert_eq!(outcome.censored, 100, "an answer after its timeout is still censored");
    }
}

#[test]
fn an_answer_after_the_drain_is_late_and_not_received() {
    let drain = Nanos(30_000);
    for (by, received, late) in [(20_000, 11, 0), (30_500, 10, 1), (10_000_000, 10, 0)] {
        let settings = ClosedLoop { drain, ..settings(11) };
        let (outcome, _) = measure(settings, every(11, Fate::AfterTimeout(by)));
        let found = (outcome.accounting.received, outcome.accounting.late);
        assert_eq!(found, (received, late), "by {by}");
        assert_eq!(outcome.accounting.lost, 11 - received - late);
    }
}

#[test]
fn foreign_messages_of_every_kind_are_counted_and_never_taken_for_an_answer() {
    for forgery in FORGERIES {
        let (outcome, _) = measure(settings(1_000), every(3, Fate::BesideForeign(forgery)));
        assert_eq!(outcome.accounting.foreign, 333, "{forgery:?}");
        assert_eq!(outcome.accounting.received, 1_000);
        assert_eq!(outcome.service.max(), Some(ROUND_TRIP.0), "{forgery:?}");
    }
}

#[test]
fn a_server_that_stalls_shows_one_slow_sample_per_stall_in_a_closed_loop() {
    // METHOD 7: stopped for S = 10 us once per P = 100 us; one request at a time meets it once.
    let mut clock = 0;
    let (outcome, _) = measure(settings(9_000), move |sequence, _| {
        clock = if sequence == 0 { 0 } else { clock + 1 };
        if clock % 90 == 45 { Fate::AfterTimeout(0) } else { Fate::Answered }
    });
    assert_eq!(outcome.service.count_above(2 * ROUND_TRIP.0), 100);
    assert!(outcome.service.value_at(98.0).unwrap() <= ROUND_TRIP.0, "the quantile hides it");
}

#[test]
fn the_warm_up_is_discarded_and_its_stragglers_have_no_place() {
    let mut cookie = None;
    let mut port = MemoryPort::new(move |request: &[u8], network: &mut Network| {
        let mut answer = request.to_vec();
        let kind = answer_in_place(&mut answer, &mut cookie);
        if kind == Some(Kind::Farewell) {
            answer.resize(FAREWELL_BYTES, 0);
        }
        // The first requests are slow, as they are; the last of the warm-up is a straggler.
        let warm_last = Header::parse(request).unwrap().sequence == 6;
        let after = match kind {
            Some(Kind::WarmReply) if warm_last => TIMEOUT.0 + 5_000,
            Some(Kind::WarmReply) => 15_000,
            _ => ROUND_TRIP.0,
        };
        network.arrive(Nanos(after), answer);
    });
    let outcome = settings(100).run(&mut port, &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!((outcome.service.len(), outcome.service.max()), (100, Some(ROUND_TRIP.0)));
    assert_eq!((outcome.accounting.sent, outcome.accounting.unplaced), (100, 1));
    assert!(outcome.adds_up());
}

#[test]
fn time_ends_a_run_as_requests_do_and_its_intervals_add_up() {
    // 1 us a request on this port: 50 ms are 50 000 requests, in 5 intervals of 10 ms.
    let settings = ClosedLoop {
        duration: Nanos(50_000_000),
        interval: Nanos(10_000_000),
        ..settings(1_000_000)
    };
    let (outcome, intervals) = measure(settings, every(1_000, Fate::Dropped));
    assert!(matches!(outcome.why, Ended::Duration));
    let elapsed = outcome.ended.unwrap().since(outcome.started.unwrap());
    assert!((50_000_000..50_000_000 + TIMEOUT.0).contains(&elapsed.0), "{elapsed:?}");
    assert_eq!(intervals.iter().map(|i| i.index).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(intervals.iter().map(|i| i.service.len()).sum::<u64>(), outcome.service.len());
    assert_eq!(intervals.iter().map(|i| i.censored).sum::<u64>(), outcome.censored);
}

#[test]
fn a_request_belongs_to_the_interval_it_was_sent_in() {
    // 1 us a request, so exactly 1 000 in each interval of 1 ms.
    let settings = ClosedLoop { interval: Nanos(1_000_000), ..settings(5_000) };
    let (_, intervals) = measure(settings, |_, _| Fate::Answered);
    let counts: Vec<_> = intervals.iter().map(|i| (i.index, i.service.len())).collect();
    assert_eq!(counts, [(0, 1_000), (1, 1_000), (2, 1_000), (3, 1_000), (4, 1_000)]);
}

#[test]
fn a_stop_in_the_middle_keeps_what_was_measured() {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    let mut port = MemoryPort::new(peer(move |sequence, _| {
        set.store(sequence == 41, Ordering::Relaxed);
        Fate::Answered
    }));
    let outcome = settings(1_000).run(&mut port, &stop, &mut |_| ()).unwrap();
    assert!(matches!(outcome.why, Ended::Stopped));
    assert_eq!((outcome.accounting.sent, outcome.service.len(), outcome.abandoned), (42, 42, 0));
    assert!(outcome.adds_up());
}

#[test]
fn a_stop_while_an_answer_is_waited_for_abandons_that_request() {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    let mut port = MemoryPort::new(peer(move |sequence, _| {
        set.store(sequence == 10, Ordering::Relaxed);
        if sequence == 10 { Fate::Dropped } else { Fate::Answered }
    }));
    let settings = ClosedLoop { timeout: Nanos(10_000_000_000), ..settings(1_000) };
    let outcome = settings.run(&mut port, &stop, &mut |_| ()).unwrap();
    assert_eq!((outcome.service.len(), outcome.abandoned), (10, 1));
    assert_eq!(outcome.accounting.lost, 1);
    assert!(outcome.adds_up());
}

#[test]
fn a_peer_that_dies_ends_the_run_with_what_was_measured_before() {
    let (outcome, _) = measure(settings(1_000), |sequence, network| {
        if sequence == 500 {
            network.die();
        }
        Fate::Answered
    });
    let Ended::Failed(error) = outcome.why else { panic!("{:?}", outcome.why) };
    assert!(error.is_peer_gone());
    assert_eq!((outcome.service.len(), outcome.abandoned), (500, 1));
    assert!(outcome.reflector.is_none());
}

#[test]
fn a_silent_peer_is_reported_with_the_path_and_the_time_tried() {
    let mut port = MemoryPort::new(|_: &[u8], _: &mut Network| ());
    let error = settings(10).run(&mut port, &AtomicBool::new(false), &mut |_| ()).unwrap_err();
    assert!(matches!(error, NetError::NoReflector { .. }));
    assert!(error.to_string().contains("5.0"), "{error}");
}

#[test]
fn a_flood_of_foreign_messages_neither_hangs_nor_hides_the_timeout() {
    let mut cookie = None;
    let mut port = MemoryPort::new(move |request: &[u8], network: &mut Network| {
        let mut answer = request.to_vec();
        match answer_in_place(&mut answer, &mut cookie) {
            Some(Kind::Reply) => {
                for at in (0..2 * TIMEOUT.0).step_by(10) {
                    network.arrive(Nanos(at), vec![0; 64]);
                }
            }
            _ => network.arrive(ROUND_TRIP, answer),
        }
    });
    let outcome = settings(20).run(&mut port, &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!((outcome.censored, outcome.accounting.lost), (20, 20));
    assert!(outcome.accounting.foreign > 20 * TIMEOUT.0 / 20);
    assert!(outcome.adds_up());
}

#[test]
fn settings_that_cannot_be_measured_are_refused_with_their_names() {
    let good = settings(10);
    good.check().unwrap();
    for (bad, word) in [
        (ClosedLoop { bytes: 23, ..good }, "23 bytes"),
        (ClosedLoop { bytes: 65_508, ..good }, "65508 bytes"),
        (ClosedLoop { timeout: Nanos(0), ..good }, "timeout"),
        (ClosedLoop { timeout: Nanos(61_000_000_000), ..good }, "timeout"),
        (ClosedLoop { drain: Nanos(u64::MAX), ..good }, "timeout"),
        (ClosedLoop { requests: 0, ..good }, "0 requests"),
        (ClosedLoop { requests: u64::MAX, ..good }, "requests"),
        (ClosedLoop { warmup_requests: u64::MAX, ..good }, "requests"),
        (ClosedLoop { duration: Nanos(0), ..good }, "requests in 0ns"),
        (ClosedLoop { duration: Nanos(10 * 365 * 86_400_000_000_000), ..good }, "at most"),
    ] {
        let text = bad.check().unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    }
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Answered),
        2 => Just(Fate::Dropped),
        2 => Just(Fate::Twice),
        // Not 20 us after the timeout: the next but one request's own timeout.
        2 => (0_u64..150_000).prop_map(Fate::AfterTimeout),
        2 => proptest::sample::select(&FORGERIES[..]).prop_map(Fate::BesideForeign),
    ];
    proptest::collection::vec(fate, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_planted_is_counted_and_the_counts_add_up(fates in fates(), bytes in 24_usize..200) {
        let count = |wanted: fn(&Fate) -> bool| fates.iter().filter(|fate| wanted(fate)).count() as u64;
        let dropped = count(|fate| *fate == Fate::Dropped);
        let after_timeout = count(|fate| matches!(fate, Fate::AfterTimeout(_)));
        let twice = count(|fate| *fate == Fate::Twice);
        let foreign = count(|fate| matches!(fate, Fate::BesideForeign(_)));
        let sent = fates.len() as u64;
        let planned = fates.clone();
        let (outcome, intervals) = measure(
            ClosedLoop { bytes, ..settings(sent) },
            move |sequence, _| planned[sequence as usize],
        );
        let counts = outcome.accounting;
        prop_assert_eq!(counts.sent, sent);
        prop_assert_eq!(counts.received + counts.late, sent - dropped);
        prop_assert_eq!(counts.lost, dropped);
        prop_assert_eq!(counts.late, 0, "the drain is longer than any delay");
        prop_assert_eq!(counts.duplicates, twice);
        prop_assert_eq!(counts.foreign, foreign);
        // An answer exactly at the timeout is in time; one tick later it is not.
        let at_timeout = count(|fate| *fate == Fate::AfterTimeout(0));
        prop_assert_eq!(outcome.censored, dropped + after_timeout - at_timeout);
        prop_assert!(counts.reordered <= after_timeout);
        prop_assert_eq!(outcome.service.len(), sent);
        prop_assert_eq!(intervals.iter().map(|i| i.service.len()).sum::<u64>(), sent);
        prop_assert!(outcome.service.min().unwrap() >= SEND_NS);
    }
}
