//! Proofs with sockets of loopback: each datagram goes to whom it is for, as it came, and what is lost is
//! counted where it was.

use std::net::UdpSocket;
use std::time::Duration;

use whylate_clock::HardwareCounter;
use whylate_model::Hertz;
use whylate_sys::nanosleep::{Clock, clock_ns};

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn setup(wait: Wait) -> Setup<HardwareCounter> {
    Setup { counter: HardwareCounter::open().unwrap(), rate: Hertz(2e9), wait }
}

fn socket(at: &str) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Both ends by loopback, and where clients reach them.
fn opened(to: SocketAddr, threads: Threads, wait: Wait) -> ([End; 2], SocketAddr) {
    let listen = "127.0.0.1:0".parse().unwrap();
    let ends = open(listen, to, threads, &setup(wait)).unwrap();
    let at = ends[0].facts().interface.parse().unwrap();
    (ends, at)
}

/// A look by one end, and what it brought handed over to the other.
fn carried(ends: &mut [End; 2], from: usize, counts: &mut Counts) -> usize {
    let room = Room::between(ends[0].facts(), ends[1].facts());
    let [a, b] = ends;
    let (from, to) = if from == 0 { (a, b) } else { (b, a) };
    let burst = from.receiving.receive(Nanos(0)).unwrap();
    if burst.count > 0 {
        let leaving = from.receiving.carry(burst.count, to.out(), room, counts);
        assert_eq!(leaving.count_ones() as usize, burst.count);
        to.out().flush().unwrap();
    }
    burst.count
}

/// Looks until it is so.
fn until(what: &str, mut look: impl FnMut() -> bool) {
    let end = clock_ns(Clock::Monotonic) + PATIENCE.as_nanos() as u64;
    while !look() {
        assert!(clock_ns(Clock::Monotonic) < end, "waited a minute in vain until {what}");
    }
}

/// So many of them, looked for again and again.
fn all_carried(ends: &mut [End; 2], from: usize, count: usize, counts: &mut Counts) {
    let end = clock_ns(Clock::Monotonic) + PATIENCE.as_nanos() as u64;
    let mut came = 0;
    while came < count {
        came += carried(ends, from, counts);
        assert!(clock_ns(Clock::Monotonic) < end, "{came} of {count}");
    }
    assert_eq!(came, count);
}

fn told(end: &mut End, counter: &str) -> u64 {
    let halves = [end.receiving.drops().unwrap()]
        .into_iter()
        .chain(end.sending.as_mut().map(|half| half.drops().unwrap()));
    halves.flatten().filter(|of| of.counter == counter).map(|of| of.count).sum()
}

#[test]
fn datagrams_of_several_clients_go_to_the_server_and_each_answer_to_its_own() {
    for threads in [Threads::One, Threads::Two] {
        let (server, to) = socket("127.0.0.1:0");
        let (mut ends, at) = opened(to, threads, Wait::Spin);
        let (mut there, mut back) = (Counts::default(), Counts::default());
        let clients: Vec<UdpSocket> = (0..3).map(|_| socket("127.0.0.1:0").0).collect();
        let mut buffer = vec![0; 65_536];
        // Shorter than a frame's header, empty, and longer than any frame.
        for (number, length) in [5, 0, 1, 1_472, 20_000].into_iter().enumerate() {
            for (client, socket) in clients.iter().enumerate() {
                socket.send_to(&vec![(7 * client + number) as u8; length], at).unwrap();
            }
            all_carried(&mut ends, 0, clients.len(), &mut there);
            for _ in &clients {
                let (length, from) = server.recv_from(&mut buffer).unwrap();
                server.send_to(&buffer[..length], from).unwrap();
            }
            all_carried(&mut ends, 1, clients.len(), &mut back);
            for (client, socket) in clients.iter().enumerate() {
                let (got, from) = socket.recv_from(&mut buffer).unwrap();
                assert_eq!(from, at);
                assert!(buffer[..got] == vec![(7 * client + number) as u8; length], "{length}");
            }
        }
        for counts in [there, back] {
            let bytes = 3 * (5 + 1 + 1_472 + 20_000);
            assert_eq!((counts.received, counts.forwarded), (15, 15));
            assert_eq!((counts.received_bytes, counts.forwarded_bytes), (bytes, bytes));
            assert!(counts.closes() && counts.runts + counts.too_long == 0, "{counts:?}");
        }
        for end in &mut ends {
            assert_eq!(told(end, "sk_drops"), 0);
            assert_eq!(end.out().waiting(), Amount::default());
        }
        assert_eq!(ends[0].sending.is_some(), threads == Threads::Two);
    }
}

#[test]
fn what_a_socket_has_no_room_for_is_told_by_its_end_and_adds_up() {
    let (server, to) = socket("127.0.0.1:0");
    let (mut ends, at) = opened(to, Threads::One, Wait::Spin);
    let (client, _) = socket("127.0.0.1:0");
    server.set_nonblocking(true).unwrap();
    let mut sent = 0;
    until("the socket has no room", || {
        for _ in 0..500 {
            client.send_to(&[7; 1_000], at).unwrap();
        }
        sent += 500;
        told(&mut ends[0], "sk_drops") > 0
    });
    let mut counts = Counts::default();
    until("what was received and what was lost are all", || {
        carried(&mut ends, 0, &mut counts);
        // So that the server's own socket has room for all of them.
        while server.recv(&mut [0; 2_000]).is_ok() {}
        counts.received + told(&mut ends[0], "sk_drops") == sent
    });
    assert!(counts.received > 0 && counts.closes(), "{counts:?}");
    assert_eq!(told(&mut ends[1], "sk_drops"), 0);
}

#[test]
fn a_server_that_is_gone_is_told_and_costs_none_of_what_is_sent_on() {
    let (server, to) = socket("127.0.0.1:0");
    let (mut ends, at) = opened(to, Threads::One, Wait::Spin);
    let (client, _) = socket("127.0.0.1:0");
    let mut counts = Counts::default();
    drop(server);
    for _ in 0..20 {
        client.send_to(b"anybody", at).unwrap();
        all_carried(&mut ends, 0, 1, &mut counts);
    }
    assert_eq!((counts.forwarded, counts.refused), (20, 0));
    assert_eq!(ends[1].out().taken_back(), Amount::default());
    // Loopback answers each, and the last one's answer nobody has looked for.
    let answers = told(&mut ends[1], "answers that nobody is there (ICMP)");
    assert!((1..20).contains(&answers), "{answers}");
    // And another one there is served.
    let Ok(server) = UdpSocket::bind(to) else { return };
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send_to(b"again", at).unwrap();
    all_carried(&mut ends, 0, 1, &mut counts);
    let mut buffer = [0; 64];
    let length = server.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"again");
}

#[test]
fn one_that_sleeps_is_woken_by_what_comes_by_either_end_and_by_nothing_else() {
    for wait in [Wait::Poll, Wait::Epoll] {
        let (server, to) = socket("127.0.0.1:0");
        let (mut ends, at) = opened(to, Threads::One, wait);
        let (client, _) = socket("127.0.0.1:0");
        let mut counts = Counts::default();
        // Milliseconds that a sleep of a second took, or of 5 where nothing is to come.
        let slept = |ends: &mut [End; 2], limit: u64| {
            let begin = clock_ns(Clock::Monotonic);
            ends[0].receiving.sleep(Nanos(limit * 1_000_000)).unwrap();
            (clock_ns(Clock::Monotonic) - begin) / 1_000_000
        };
        assert!(slept(&mut ends, 5) >= 5, "{wait}");
        client.send_to(b"there", at).unwrap();
        assert!(slept(&mut ends, 60_000) < 30_000, "{wait}");
        all_carried(&mut ends, 0, 1, &mut counts);
        let mut buffer = [0; 64];
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        assert!(slept(&mut ends, 5) >= 5, "{wait}");
        server.send_to(b"back", from).unwrap();
        assert!(slept(&mut ends, 60_000) < 30_000, "{wait}");
        all_carried(&mut ends, 1, 1, &mut counts);
        assert_eq!(client.recv(&mut buffer).unwrap(), 4);
    }
}

#[test]
fn an_address_that_is_taken_and_waits_for_one_socket_are_refused_by_name() {
    let (_server, to) = socket("127.0.0.1:0");
    let refused = |listen: SocketAddr, wait| {
        open(listen, to, Threads::One, &setup(wait)).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(to, Wait::Spin).contains("in use"));
    let any = "127.0.0.1:0".parse().unwrap();
    for wait in [Wait::Block, Wait::IoUring] {
        assert!(refused(any, wait).contains(CHOOSE), "{wait}");
    }
}
