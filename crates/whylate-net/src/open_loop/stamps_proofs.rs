//! Proofs over real sockets on 127.0.0.1: each request has its stamps, in the order of its way.
//!
//! What is asserted of a run holds on a machine that is busy with other things: a stamp that does not come is
//! counted, and so is a reply. TCP promises less than datagrams: a segment that is sent again is stamped
//! again, and where a stamp finds no room in the socket that of a later byte is taken for it. So its stamps
//! have to be in order in one of [`RUNS`] runs, and those of datagrams in each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use whylate_clock::{Calibrator, HardwareCounter};
use whylate_model::Nanos;
use whylate_port::{
    Client, Options, Port, Server, Setup, StampKind, StampWish, Target, Transport, Wait,
};
use whylate_suite::{WallClock, absent, missing};

use super::stamps::{self, Stamped};
use super::{Ended, Latencies, OpenLoop, OpenOutcome, Tell};
use crate::error::NetError;
use crate::message::Cookie;
use crate::protocol::{Protocol, Raw};
use crate::schedule::Plan;
use crate::serve::visits::{ToldVisit, Visiting, Visits};
use crate::serve::{self, Serve, Served, serve_telling};

const WISH: StampWish =
    StampWish { sched: true, software: true, receive: true, ..StampWish::NOTHING };

/// Runs that are made for one in which each of a few things has happened: a busy machine may stop one or the
/// other before it has begun.
const RUNS: u32 = 30;

struct Run {
    outcome: OpenOutcome,
    served: Served,
    stamped: Vec<Stamped>,
    told: Vec<ToldVisit>,
    /// Somebody set the clock that stamps are by.
    clock_was_set: bool,
}

/// How a run ended.
enum Tried {
    Done(Box<Run>),
    /// The server had no CPU for seconds.
    Starved,
    /// This machine has no such stamps, and that was said.
    Skipped,
}

/// A run against a stamped server in this process.
fn run(transport: Transport, wait: Wait, arrivals: &str, wish: &StampWish) -> Tried {
    let counter = match HardwareCounter::open() {
        Ok(counter) => counter,
        Err(why) => {
            missing(&why);
            return Tried::Skipped;
        }
    };
    let rate = Calibrator::of_this_host(counter).quick().unwrap().hz;
    let raw = Raw::new(Cookie(4));
    let setup = |wait| Setup { counter, rate, wait };
    let (target, options) = (Target::Address("127.0.0.1:0".parse().unwrap()), Options::default());
    let other = Server { transport, target, options: options.clone() };
    let mut answering = other.open(setup(Wait::Epoll), raw.framing()).unwrap();
    if let Err(refusal) = answering.stamp(&WISH) {
        absent(&refusal);
        return Tried::Skipped;
    }
    let local = answering.facts().socket.clone().unwrap().local;
    let target = Target::Address(local.parse().unwrap());
    let client = Client { transport, target, from: None, options };
    let settings = OpenLoop {
        plan: Plan { arrivals: arrivals.parse().unwrap(), per_second: 5_000.0, seed: 3 },
        bytes: 64,
        timeout: Nanos(2_000_000_000),
        most_under_way: None,
        one_way: false,
        warmup: Nanos(8_000_000),
        // So short that all that is told finds room, also of a closed loop, before it is looked at.
        duration: Nanos(40_000_000),
        interval: Nanos::SECOND,
        rate,
    };
    let mut visits = Visits::new().unwrap();
    let visiting = Visiting::inherited(&visits.leave().unwrap().word()).unwrap();
    let done = AtomicBool::new(false);
    let (mut stamped, mut told) = (Vec::new(), Vec::new());
    let clock = WallClock::watched();
    let (outcome, served) = thread::scope(|scope| {
        let served = scope.spawn(|| {
            let settings = Serve { idle: Nanos(60_000_000_000), once: false, rate };
            let tell = serve::Tell { visits: Some(visiting), ..serve::Tell::default() };
            let mut go_on = || !done.load(Ordering::Relaxed);
            serve_telling(&mut answering, &Raw::new(Cookie(0)), settings, &mut go_on, tell).unwrap()
        });
        let mut port = client.open(setup(wait), raw.framing()).unwrap();
        port.stamp(wish).unwrap();
        let (mut stamping, mut stampings) = stamps::between();
        let mut forget = |_, of: &mut Latencies| of.clear();
        let tell = Tell { stamps: Some(&mut stamping), ..Tell::intervals(&mut forget) };
        let never = AtomicBool::new(false);
        let mut own = counter;
        let outcome = settings.run(&mut port, &mut own, &raw, &never, tell);
        done.store(true, Ordering::Relaxed);
        stampings.drain(|one| stamped.push(one));
        (outcome, served.join().unwrap())
    });
    let clock_was_set = clock.was_set();
    visits.drain(|one| told.push(one));
    assert_eq!((visits.missed(), visits.garbled), (0, 0));
    match outcome {
        Ok(outcome) => {
            assert!(matches!(outcome.why, Ended::Duration), "{:?}", outcome.why);
            assert_eq!(outcome.stamps_untold.no_room + outcome.stamps_untold.forgotten, 0);
            Tried::Done(Box::new(Run { outcome, served, stamped, told, clock_was_set }))
        }
        Err(NetError::NoReflector { .. }) => Tried::Starved,
        Err(error) => panic!("{error}"),
    }
}

fn of(stamped: &[Stamped], kind: StampKind, requests: u64) -> Vec<Option<Nanos>> {
    let mut of = vec![None; requests as usize];
    for one in stamped.iter().filter(|one| one.kind == kind) {
        let place = &mut of[one.request as usize];
        assert_eq!(*place, None, "one stamp of a kind for a request");
        *place = Some(one.at);
    }
    of
}

/// Runs until one is as wished for; what holds of every run is asserted of each. False where there are no
/// stamps here.
fn until(mut run: impl FnMut() -> Tried, mut as_wished: impl FnMut(&Run) -> bool) -> bool {
    for _ in 0..RUNS {
        match run() {
            Tried::Done(run) if as_wished(&run) => return true,
            Tried::Done(_) | Tried::Starved => {}
            Tried::Skipped => return false,
        }
    }
    panic!("none of {RUNS} runs was as wished for");
}

/// Is each of these ways in order?
fn are_sorted<const N: usize>(ways: &[[Option<Nanos>; N]]) -> bool {
    ways.iter().all(|way| way.iter().flatten().is_sorted())
}

/// Of so many requests, those without a stamp of this kind.
fn without(of: &[Option<Nanos>]) -> u64 {
    of.iter().filter(|at| at.is_none()).count() as u64
}

#[test]
fn each_request_of_a_spinning_sleeping_or_closed_client_has_its_stamps_in_the_order_of_its_way() {
    for (transport, wait, arrivals) in [
        (Transport::Udp, Wait::Spin, "constant"),
        (Transport::Udp, Wait::Block, "poisson"),
        (Transport::Udp, Wait::Epoll, "constant"),
        (Transport::Udp, Wait::Block, "closed"),
        (Transport::Tcp, Wait::Spin, "constant"),
        (Transport::Tcp, Wait::Poll, "constant"),
    ] {
        let what = format!("{transport} {wait} {arrivals}");
        let found = until(
            || run(transport, wait, arrivals, &WISH),
            |run| {
                let sent = run.outcome.departures.sent;
                let kinds = [StampKind::Sched, StampKind::Software, StampKind::ReceivedSoftware];
                let [scheduled, given, received] = kinds.map(|kind| of(&run.stamped, kind, sent));
                let way = |at: usize| [scheduled[at], given[at], received[at]];
                let ways: Vec<_> = (0..sent as usize).map(way).collect();
                let counts = run.outcome.stamps.unwrap();
                let [of_scheduled, of_given, of_replies] = kinds.map(|kind| counts.of(kind));
                let sorted = are_sorted(&ways);
                if transport == Transport::Udp && !run.clock_was_set {
                    assert!(sorted, "{what}: {ways:?}");
                }
                // One that has none is counted, as missing where it was sent.
                assert!(without(&scheduled) <= of_scheduled.missing(), "{what}: {counts:?}");
                assert!(without(&given) <= of_given.missing(), "{what}: {counts:?}");
                assert_eq!((of_scheduled.unknown, of_scheduled.zero), (0, 0), "{what}: {counts:?}");
                // Every reply that came has its own, but those of a stream that were read with a later one.
                let (came, all) = (sent - without(&received), run.outcome.accounting.received);
                let lack = of_replies.missing() + counts.crowded_out;
                assert!(came <= all && all <= came + lack, "{what}: {all} {counts:?}");
                if transport == Transport::Udp {
                    assert_eq!((of_scheduled.twice, of_given.twice), (0, 0), "{what}: {counts:?}");
                    assert_eq!(of_replies.merged, 0, "{what}: {counts:?}");
                }
                let whole = |way: &[Option<Nanos>; 3]| way.iter().all(Option::is_some);
                sorted && ways.iter().any(whole)
            },
        );
        if !found {
            return;
        }
    }
}

#[test]
fn a_server_tells_of_each_request_with_the_stamps_of_its_own_socket() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let found = until(
            || run(transport, Wait::Spin, "constant", &WISH),
            |run| {
                let sent = run.outcome.departures.sent as usize;
                let mut visits = vec![0; sent];
                let mut stamps = vec![[None; StampKind::COUNT]; sent];
                for told in &run.told {
                    match *told {
                        ToldVisit::Visit(visit) => {
                            assert!(visit.received < visit.sent);
                            visits[visit.sequence as usize] += 1;
                        }
                        ToldVisit::Stamp { sequence, kind, at } => {
                            stamps[sequence as usize][kind.index()] = Some(at);
                        }
                    }
                }
                assert!(visits.iter().all(|count| *count <= 1), "{transport}: told twice");
                assert_eq!(visits.iter().sum::<u64>(), run.served.answered, "{transport}");
                let counts = run.served.stamps.unwrap();
                let left = of(&run.stamped, StampKind::Software, sent as u64);
                let ways: Vec<_> = left
                    .iter()
                    .zip(&stamps)
                    .map(|(left, at)| {
                        let [came, first, second] =
                            [StampKind::ReceivedSoftware, StampKind::Sched, StampKind::Software]
                                .map(|kind| at[kind.index()]);
                        [*left, came, first, second]
                    })
                    .collect();
                let sorted = are_sorted(&ways);
                if transport == Transport::Udp && !run.clock_was_set {
                    assert!(sorted, "{transport}: {ways:?}");
                }
                // Requests of a stream that were read with a later one have no stamp of their coming.
                let merged = counts.of(StampKind::ReceivedSoftware).merged;
                let whole = |way: &&[Option<Nanos>; 4]| way.iter().all(Option::is_some);
                let complete = ways.iter().filter(whole).count() as u64;
                assert!(complete <= run.served.answered, "{transport}: {counts:?}");
                assert!(merged == 0 || transport == Transport::Tcp, "{counts:?}");
                sorted && complete > 0
            },
        );
        if !found {
            return;
        }
    }
}

#[test]
fn of_sampled_requests_one_in_so_many_has_stamps_of_its_sending() {
    const EVERY: u64 = 8;
    let wish = StampWish { every: EVERY as u32, ..WISH };
    until(
        || run(Transport::Udp, Wait::Spin, "constant", &wish),
        |run| {
            let sent = run.outcome.departures.sent;
            let stamped = of(&run.stamped, StampKind::Software, sent);
            let places: Vec<u64> =
                (0..sent).filter(|request| stamped[*request as usize].is_some()).collect();
            let first = places.first().copied().unwrap_or_default();
            assert!(places.iter().all(|place| (place - first) % EVERY == 0), "{places:?}");
            let most = sent.div_ceil(EVERY);
            assert!(places.len() as u64 <= most, "{} of {sent}", places.len());
            places.len() >= 2
        },
    );
}
