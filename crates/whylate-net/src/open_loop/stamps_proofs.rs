//! Proofs over real sockets on 127.0.0.1: each request has its stamps, in the order of its way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use whylate_clock::HardwareCounter;
use whylate_model::{Hertz, Nanos};
use whylate_port::{
    Client, Options, Port, Server, Setup, StampKind, StampWish, Target, Transport, Wait,
};

use super::stamps::{self, Stamped};
use super::{Ended, Latencies, OpenLoop, OpenOutcome, Tell};
use crate::message::Cookie;
use crate::protocol::{Protocol, Raw};
use crate::schedule::Plan;
use crate::serve::visits::{ToldVisit, Visiting, Visits};
use crate::serve::{self, Serve, Served, serve_telling};

const RATE: Hertz = Hertz(1e9);
const WISH: StampWish =
    StampWish { sched: true, software: true, receive: true, ..StampWish::NOTHING };

struct Run {
    outcome: OpenOutcome,
    served: Served,
    stamped: Vec<Stamped>,
    told: Vec<ToldVisit>,
}

/// A run against a stamped server in this process.
fn run(transport: Transport, wait: Wait, arrivals: &str, wish: &StampWish) -> Option<Run> {
    let counter = HardwareCounter::open().inspect_err(|why| eprintln!("skipped: {why}")).ok()?;
    let raw = Raw::new(Cookie(4));
    let setup = |wait| Setup { counter, rate: RATE, wait };
    let (target, options) = (Target::Address("127.0.0.1:0".parse().unwrap()), Options::default());
    let other = Server { transport, target, options: options.clone() };
    let mut answering = other.open(setup(Wait::Epoll), raw.framing()).unwrap();
    if let Err(refusal) = answering.stamp(&WISH) {
        eprintln!("skipped: {refusal}");
        return None;
    }
    let local = answering.facts().socket.clone().unwrap().local;
    let target = Target::Address(local.parse().unwrap());
    let client = Client { transport, target, from: None, options };
    let settings = OpenLoop {
        plan: Plan { arrivals: arrivals.parse().unwrap(), per_second: 2_000.0, seed: 3 },
        bytes: 64,
        timeout: Nanos(2_000_000_000),
        most_under_way: None,
        one_way: false,
        warmup: Nanos(20_000_000),
        duration: Nanos(200_000_000),
        interval: Nanos::SECOND,
        rate: RATE,
    };
    let mut visits = Visits::new().unwrap();
    let visiting = Visiting::inherited(&visits.leave().unwrap().word()).unwrap();
    let done = AtomicBool::new(false);
    let (mut stamped, mut told) = (Vec::new(), Vec::new());
    let (outcome, served) = thread::scope(|scope| {
        let served = scope.spawn(|| {
            let settings = Serve { idle: Nanos(20_000_000_000), once: false, rate: RATE };
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
        let outcome = settings.run(&mut port, &mut own, &raw, &never, tell).unwrap();
        done.store(true, Ordering::Relaxed);
        stampings.drain(|one| stamped.push(one));
        assert_eq!(stamping.missed, 0);
        (outcome, served.join().unwrap())
    });
    visits.drain(|one| told.push(one));
    assert_eq!((visits.missed(), visits.garbled), (0, 0));
    assert!(matches!(outcome.why, Ended::Duration), "{:?}", outcome.why);
    Some(Run { outcome, served, stamped, told })
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

/// Runs until one is as wished for, some minutes long: a machine that has other things to do may lose a
/// stamp, though not in each run. What holds of every run is asserted of each.
fn until(
    mut run: impl FnMut() -> Option<Run>,
    mut as_wished: impl FnMut(&Run) -> bool,
) -> Option<Run> {
    for _ in 0..300 {
        let run = run()?;
        if as_wished(&run) {
            return Some(run);
        }
    }
    panic!("none of three hundred runs was as wished for");
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
                for request in 0..sent as usize {
                    let way = [scheduled[request], given[request], received[request]];
                    assert!(way.iter().flatten().is_sorted(), "{what}: {request} {way:?}");
                }
                // One that has none is counted, as missing where it was sent.
                let counts = run.outcome.stamps.unwrap();
                let missing = |kind| counts.of(kind).missing();
                assert!(without(&scheduled) <= missing(StampKind::Sched), "{what}: {counts:?}");
                assert!(without(&given) <= missing(StampKind::Software), "{what}: {counts:?}");
                let sched = counts.of(StampKind::Sched);
                assert_eq!(
                    (sched.twice, sched.unknown, sched.zero),
                    (0, 0, 0),
                    "{what}: {counts:?}"
                );
                // Every reply that came has its own, but those of a stream that were read with a later one.
                let (came, all) = (sent - without(&received), run.outcome.accounting.received);
                let of_replies = counts.of(StampKind::ReceivedSoftware);
                assert!(
                    came <= all && all <= came + of_replies.missing(),
                    "{what}: {all} {counts:?}"
                );
                let merged = of_replies.merged;
                assert!(merged == 0 || transport == Transport::Tcp, "{what}: {counts:?}");
                sent > 0
                    && without(&scheduled) + without(&given) == 0
                    && came > 0
                    && all <= came + merged
            },
        );
        if found.is_none() {
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
                let mut complete = 0;
                for (request, at) in stamps.iter().enumerate() {
                    let of = |kind: StampKind| at[kind.index()];
                    let kinds =
                        [StampKind::ReceivedSoftware, StampKind::Sched, StampKind::Software];
                    let [came, first, second] = kinds.map(of);
                    let way = [left[request], came, first, second];
                    assert!(way.iter().flatten().is_sorted(), "{transport} {request}: {way:?}");
                    assert!(came.is_none() || came < first.or(second).or(Some(Nanos(u64::MAX))));
                    complete += u64::from(way.iter().all(Option::is_some));
                }
                // Requests of a stream that were read with a later one have no stamp of their coming.
                let merged = counts.of(StampKind::ReceivedSoftware).merged;
                assert!(complete <= run.served.answered, "{transport}: {counts:?}");
                assert!(merged == 0 || transport == Transport::Tcp, "{counts:?}");
                complete > 0 && run.served.answered <= complete + merged
            },
        );
        if found.is_none() {
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
            places.len() as u64 + 1 >= sent / EVERY && sent >= 2 * EVERY
        },
    );
}
