//! Proofs on real sockets of this process and on the in-memory port.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use whylate_clock::HardwareCounter;
use whylate_port::{Client, Options, Server, Setup, Target, Transport, Wait};
use whylate_suite::missing;

use super::*;
use crate::message::{Cookie, FAREWELL_BYTES, Header, Kind};
use crate::{ClosedLoop, Ended, Raw, Sockperf, Speaks};

const SETTINGS: Serve = Serve { idle: Nanos(60_000_000_000), once: false, rate: Hertz(1e9) };

fn setup(wait: Wait) -> Option<Setup<HardwareCounter>> {
    let counter = HardwareCounter::open().inspect_err(missing);
    Some(Setup { counter: counter.ok()?, rate: Hertz(1e9), wait })
}

fn listen(transport: Transport, protocol: &dyn Protocol) -> Option<(Box<dyn Port>, Target)> {
    let target = Target::Address("127.0.0.1:0".parse().unwrap());
    let server = Server { transport, target, options: Options::default() };
    let port = server.open(setup(Wait::Epoll)?, protocol.framing()).unwrap();
    let local = port.facts().socket.clone().unwrap().local;
    Some((port, Target::Address(local.parse().unwrap())))
}

fn connect(transport: Transport, target: &Target, protocol: &dyn Protocol) -> Box<dyn Port> {
    let client =
        Client { transport, target: target.clone(), from: None, options: Options::default() };
    client.open(setup(Wait::Block).unwrap(), protocol.framing()).unwrap()
}

#[test]
fn clients_at_once_are_answered_and_none_of_them_ends_the_server() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let raw = Raw::new(Cookie(0));
        let Some((mut port, to)) = listen(transport, &raw) else { return };
        let stop = AtomicBool::new(false);
        let (served, told) = thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut go_on = || !stop.load(Ordering::Relaxed);
                serve(&mut port, &raw, SETTINGS, &mut go_on).unwrap()
            });
            let one = |requests: u64, bytes: usize| {
                let mut port = connect(transport, &to, &raw);
                let settings = ClosedLoop {
                    requests,
                    bytes,
                    warmup_requests: 10,
                    timeout: Nanos(20_000_000_000),
                    duration: Nanos(60_000_000_000),
                    ..ClosedLoop::new(Hertz(1e9))
                };
                let never = AtomicBool::new(false);
                let outcome = settings.run(&mut port, &never, &mut |_| ()).unwrap();
                assert!(matches!(outcome.why, Ended::Requests), "{:?}", outcome.why);
                assert_eq!(outcome.accounting.received, requests);
                // The account is this client's alone, whatever the others do; on a busy machine it
                // comes too late to be waited for.
                assert!(outcome.reflector.is_none_or(|report| report.echoed == requests));
                outcome.reflector.is_some()
            };
            let clients = [(300, 24), (200, 64), (100, 1_400)];
            let running =
                clients.map(|(requests, bytes)| scope.spawn(move || one(requests, bytes)));
            let told = running.map(|client| client.join().unwrap());
            stop.store(true, Ordering::Relaxed);
            (server.join().unwrap(), told.iter().all(|told| *told))
        });
        assert_eq!((served.answered, served.foreign), (600, 0), "{transport}");
        // A client that has gone gets no account any more.
        assert!(!told || served.unsent == 0, "{:?}", served.first_unsent);
        assert_eq!(served.residence.len(), 600);
        let warm_ups = served.warm_ups;
        assert!(warm_ups >= 3 * 11, "a greeting, which may be repeated, and ten requests each");
        let mut accounts: Vec<u64> =
            served.accounts.clients().iter().map(|client| client.answered).collect();
        accounts.sort_unstable();
        assert_eq!(accounts, [100, 200, 300]);
        assert!(!told || served.accounts.clients().iter().all(|client| client.finished));
        assert_eq!(served.why, ReflectEnd::Stopped);
        let accepted = if transport == Transport::Tcp { 3 } else { 0 };
        assert_eq!(served.connections.accepted, accepted);
    }
}

/// Serves until the work is done.
fn meanwhile(port: &mut dyn Port, protocol: &dyn Protocol, work: impl FnOnce() + Send) -> Served {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Set whether the work succeeds or not.
            let _set = SetWhenDropped(&done);
            work();
        });
        serve(port, protocol, SETTINGS, &mut || !done.load(Ordering::Relaxed)).unwrap()
    })
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A message of this length, well-formed but for some kinds.
fn message_of(protocol: &dyn Protocol, kind: u8, length: usize) -> Vec<u8> {
    let mut message = vec![kind; length];
    if kind < 9 && length >= 24 && protocol.name() == "raw" {
        Header { kind: Kind::Hello, cookie: Cookie(3), sequence: 1 }.write(&mut message);
        message[5] = kind;
    } else if kind < 8 && length >= 14 && protocol.name() == "sockperf" {
        message[8..10].copy_from_slice(&u16::from(kind).to_be_bytes());
        message[10..14].copy_from_slice(&(length as u32).to_be_bytes());
    }
    message
}

/// A request that is answered as long as it is, which is as long as no other here.
fn known_to_be_answered(protocol: &dyn Protocol) -> Vec<u8> {
    let requests = (0..12).map(|kind| message_of(protocol, kind, 77));
    let replied =
        |request: &Vec<u8>| matches!(protocol.answer(&mut request.clone()), Answer::Reply(_));
    requests.into_iter().find(replied).unwrap()
}

#[test]
fn whatever_is_sent_no_answer_is_longer_and_what_is_foreign_gets_none() {
    for protocol in [Speaks::Raw, Speaks::Sockperf].map(|speaks| speaks.with(Cookie(0))) {
        let protocol = &*protocol;
        let Some((mut port, to)) = listen(Transport::Udp, protocol) else { return };
        let mut foreign = 0;
        let outcome = meanwhile(&mut *port, protocol, || {
            let mut client = connect(Transport::Udp, &to, protocol);
            let sync = known_to_be_answered(protocol);
            let receive = |client: &mut dyn Port| {
                let patience = Nanos(60_000_000_000);
                match client.receive(&mut vec![0; 70_000], patience).unwrap() {
                    Received::Message { length, .. } => length,
                    Received::Nothing { .. } => panic!("no answer came in a minute"),
                }
            };
            for length in [0_usize, 1, 13, 14, 23, 24, 63, 64, 135, 136, 1_400, 65_507] {
                for kind in 0..12 {
                    let message = message_of(protocol, kind, length);
                    let answer = protocol.answer(&mut message.clone());
                    foreign += u64::from(answer == Answer::Foreign);
                    let answered = match answer {
                        Answer::Reply(_) => true,
                        // One too short for an account gets none.
                        Answer::Farewell => length >= FAREWELL_BYTES,
                        Answer::OneWay(..) | Answer::Nothing | Answer::Foreign => false,
                    };
                    let name = protocol.name();
                    client.send(&message).unwrap();
                    if answered {
                        assert!(receive(&mut *client) <= length, "{name} {kind} {length}");
                    }
                    // What comes back next is the answer to the next request, and to nothing before it.
                    client.send(&sync).unwrap();
                    assert_eq!(receive(&mut *client), sync.len(), "{name} {kind} {length}");
                }
            }
        });
        assert_eq!((outcome.why, outcome.foreign), (ReflectEnd::Stopped, foreign));
    }
}

#[test]
fn a_server_that_nobody_asks_ends_after_its_idle_limit() {
    let Some((mut port, _)) = listen(Transport::Udp, &Sockperf) else { return };
    let settings = Serve { idle: Nanos(200_000_000), ..SETTINGS };
    let outcome = serve(&mut port, &Sockperf, settings, &mut || true).unwrap();
    assert_eq!((outcome.why, outcome.answered), (ReflectEnd::Idle, 0));
}

#[test]
fn once_is_over_when_the_first_client_has_finished() {
    let raw = Raw::new(Cookie(0));
    let Some((mut port, to)) = listen(Transport::Udp, &raw) else { return };
    thread::scope(|scope| {
        let settings = Serve { once: true, ..SETTINGS };
        let server = scope.spawn(move || serve(&mut port, &raw, settings, &mut || true));
        let mut client = connect(Transport::Udp, &to, &raw);
        let mut message = [0; 64];
        for kind in [Kind::End, Kind::Probe, Kind::End] {
            Header { kind, cookie: Cookie(5), sequence: 0 }.write(&mut message);
            client.send(&message).unwrap();
        }
        let outcome = server.join().unwrap().unwrap();
        assert_eq!((outcome.why, outcome.answered), (ReflectEnd::ToldTo, 1));
    });
}

#[test]
fn sockperfs_clients_are_told_apart_by_their_addresses() {
    let Some((mut port, to)) = listen(Transport::Udp, &Sockperf) else { return };
    let outcome = meanwhile(&mut *port, &Sockperf, || {
        let mut message = [0; 20];
        for requests in [3_u64, 5] {
            let mut client = connect(Transport::Udp, &to, &Sockperf);
            for number in 0..requests {
                Sockperf.number(Phase::Measured, number, &mut message);
                client.send(&message).unwrap();
                let got = client.receive(&mut message, Nanos(60_000_000_000)).unwrap();
                assert!(matches!(got, Received::Message { length: 20, .. }), "{got:?}");
            }
        }
    });
    let accounts: Vec<u64> =
        outcome.accounts.clients().iter().map(|client| client.answered).collect();
    assert_eq!(accounts, [3, 5]);
}
