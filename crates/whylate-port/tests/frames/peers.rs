//! Messages between ports over frames, and between those and ordinary sockets.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_model::Nanos;
use whylate_port::frame::Tags;
use whylate_port::link::Copying;
use whylate_port::{LinkOptions, Options, Port, Received, Transport, Wait};
use whylate_suite::absent;
use whylate_sys::ethtool;
use whylate_sys::nanosleep::{Clock, clock_ns};

use crate::place::Bed;
use crate::{by, connect, counts, listen, received, soon};

/// Addresses that the kernel has: near, far. And ones that it has not.
const KERNELS: [(&str, &str); 2] =
    [("198.18.0.1:7000", "198.18.0.2:11111"), ("[fd00::1]:7000", "[fd00::2]:11111")];
const FREE: [(&str, &str); 2] =
    [("198.18.0.11:7000", "198.18.0.12:11111"), ("[fd00::11]:7000", "[fd00::12]:11111")];
const MESSAGES: [&[u8]; 4] = [b"", b"x", b"request", &[7; 1_400]];

/// XDP asks for copies: virtual links have nothing else.
fn link(transport: Transport) -> LinkOptions {
    let copying = if transport == Transport::Xdp { Copying::Copy } else { Copying::Auto };
    LinkOptions { copying, ..LinkOptions::default() }
}

fn near(transport: Transport) -> Options {
    by("near", link(transport))
}

fn far(transport: Transport) -> Options {
    by("far", link(transport))
}

/// Sends each message there and back.
fn talk(client: &mut dyn Port, server: &mut dyn Port, what: &str) {
    for message in MESSAGES {
        client.send(message).unwrap();
        assert_eq!(received(server).as_deref(), Some(message), "{what}: there");
        server.send(message).unwrap();
        assert_eq!(received(client).as_deref(), Some(message), "{what}: back");
    }
}

#[test]
fn two_ports_over_packet_sockets_talk_by_every_wait_over_both_protocols() {
    let Some(bed) = Bed::new() else { return };
    for (at, to) in FREE.into_iter().filter(|(at, _)| bed.has(at)) {
        for wait in [Wait::Block, Wait::Poll, Wait::Epoll, Wait::Spin] {
            let server = || listen(Transport::Packet, to, far(Transport::Packet), wait).unwrap();
            let mut server = bed.far.inside(server);
            // The client's question is answered by the server, which has to look for that.
            let (mut client, mut server) = std::thread::scope(|scope| {
                let serving = scope.spawn(move || {
                    assert_eq!(received(server.as_mut()).as_deref(), Some(&b"hello"[..]));
                    server
                });
                let open = || connect(Transport::Packet, (at, to), near(Transport::Packet), wait);
                let mut client = bed.near.inside(open).unwrap();
                client.send(b"hello").unwrap();
                (client, serving.join().unwrap())
            });
            server.send(b"hello").unwrap();
            assert_eq!(received(client.as_mut()).as_deref(), Some(&b"hello"[..]));
            talk(client.as_mut(), server.as_mut(), &format!("{to} {wait}"));
            let seen = counts(server.as_mut());
            assert_eq!(seen.host.messages, 5, "{seen:?}");
            assert!(seen.host.answered >= 1, "{seen:?}");
            assert_eq!((seen.host.unverified, seen.host.left_to_card), (0, 0), "{seen:?}");
            assert!(seen.drops.iter().all(|drops| drops.count == 0), "{seen:?}");
            let facts = client.facts().frames.clone().unwrap();
            assert_eq!((facts.backend, facts.interface.as_str()), ("af_packet", "near"));
            assert!(facts.rings.receive >= 1_024 && facts.bypasses_qdisc, "{facts:?}");
        }
    }
}

/// An ordinary host at the far end serves; its kernel resolves us, and we resolve it.
fn a_client_of_an_ordinary_server(transport: Transport, wait: Wait) {
    let Some(bed) = Bed::new() else { return };
    let pairs = [FREE, KERNELS].concat().into_iter().zip([KERNELS, KERNELS].concat());
    for ((from, _), (_, to)) in pairs.filter(|((from, _), _)| bed.has(from)) {
        let server = bed.far.socket(to);
        let open = || connect(transport, (from, to), near(transport), wait);
        let mut client = match bed.near.inside(|| soon(open)) {
            Ok(client) => client,
            Err(error) => panic!("{transport} {from} -> {to}: {error}"),
        };
        for message in MESSAGES {
            client.send(message).unwrap();
            let mut buffer = [0; 2_000];
            let (length, asked) = server.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], asked), (message, from.parse().unwrap()));
            // Its kernel does not know us yet: it asks, and we answer while we wait.
            server.send_to(message, asked).unwrap();
            assert_eq!(received(client.as_mut()).as_deref(), Some(message), "{transport} {from}");
        }
        let seen = counts(client.as_mut());
        assert_eq!(seen.host.messages, 4, "{seen:?}");
        assert_eq!(seen.host.damaged, 0, "{seen:?}");
    }
}

#[test]
fn a_packet_client_is_answered_by_an_ordinary_server() {
    a_client_of_an_ordinary_server(Transport::Packet, Wait::Poll);
}

#[test]
fn an_xdp_client_is_answered_by_an_ordinary_server() {
    a_client_of_an_ordinary_server(Transport::Xdp, Wait::Poll);
    a_client_of_an_ordinary_server(Transport::Xdp, Wait::BusyPoll);
}

/// An ordinary client at the far end asks; it resolves us, and is never told that nobody listens.
fn an_ordinary_client_of_a_server(transport: Transport, wait: Wait) {
    let Some(bed) = Bed::new() else { return };
    for (at, _) in [FREE, KERNELS].concat().into_iter().filter(|(at, _)| bed.has(at)) {
        let open = || listen(transport, at, near(transport), wait);
        let mut server = match bed.near.inside(|| soon(open)) {
            Ok(server) => server,
            Err(error) => panic!("{transport} at {at}: {error}"),
        };
        let any = if at.starts_with('[') { "[fd00::2]:0" } else { "198.18.0.2:0" };
        let client = bed.far.socket(any);
        client.connect(at).unwrap();
        for message in MESSAGES {
            client.send(message).unwrap();
            assert_eq!(received(server.as_mut()).as_deref(), Some(message), "{transport} at {at}");
            let from = server.peer().and_then(whylate_port::Peer::internet);
            assert_eq!(from, client.local_addr().ok());
            server.send(message).unwrap();
            let mut buffer = [0; 2_000];
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], message);
        }
        // What nobody listens to is told by the kernel for a port of its own.
        let seen = counts(server.as_mut());
        assert_eq!((seen.host.messages, seen.host.damaged), (4, 0), "{seen:?}");
        let told = server.facts().socket.clone().unwrap();
        assert_eq!((told.local.as_str(), told.interface.as_deref()), (at, Some("near")));
    }
}

#[test]
fn a_packet_client_that_sleeps_sends_on_another_thread_and_a_server_does_not() {
    let Some(bed) = Bed::new() else { return };
    let (from, to) = (FREE[0].0, KERNELS[0].1);
    let server = bed.far.socket(to);
    let open = || connect(Transport::Packet, (from, to), near(Transport::Packet), Wait::Poll);
    let mut client = bed.near.inside(open).unwrap();
    // Divided elsewhere than where it was opened.
    let mut sending = client.duplicate().unwrap();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || received(client.as_mut()));
        sending.send(b"asked").unwrap();
        let mut buffer = [0; 64];
        let (length, asked) = server.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], asked), (&b"asked"[..], from.parse().unwrap()));
        server.send_to(b"answer", asked).unwrap();
        assert_eq!(receiving.join().unwrap().as_deref(), Some(&b"answer"[..]));
    });
    assert!(sending.duplicate().is_err(), "it was divided already");
    let open = || listen(Transport::Packet, FREE[0].0, near(Transport::Packet), Wait::Poll);
    assert!(bed.near.inside(open).unwrap().duplicate().is_err());
}

#[test]
fn a_packet_server_answers_an_ordinary_client() {
    an_ordinary_client_of_a_server(Transport::Packet, Wait::Epoll);
}

#[test]
fn an_xdp_server_answers_an_ordinary_client() {
    an_ordinary_client_of_a_server(Transport::Xdp, Wait::Epoll);
    an_ordinary_client_of_a_server(Transport::Xdp, Wait::Spin);
}

#[test]
fn two_xdp_ports_talk_and_say_what_they_got_instead_of_what_they_asked_for() {
    let Some(bed) = Bed::new() else { return };
    for (at, to) in FREE.into_iter().filter(|(at, _)| bed.has(at)) {
        let open = || listen(Transport::Xdp, to, by("far", LinkOptions::default()), Wait::Poll);
        let mut server = bed.far.inside(|| soon(open)).unwrap();
        let (mut client, mut server) = std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                assert_eq!(received(server.as_mut()).as_deref(), Some(&b"hello"[..]));
                server
            });
            let options = || by("near", LinkOptions::default());
            let open = || connect(Transport::Xdp, (at, to), options(), Wait::Poll);
            let mut client = bed.near.inside(|| soon(open)).unwrap();
            client.send(b"hello").unwrap();
            (client, serving.join().unwrap())
        });
        server.send(b"hello").unwrap();
        assert_eq!(received(client.as_mut()).as_deref(), Some(&b"hello"[..]));
        talk(client.as_mut(), server.as_mut(), to);
        let seen = counts(server.as_mut());
        assert_eq!(seen.host.messages, 5, "{seen:?}");
        assert!(seen.host.answered >= 1, "{seen:?}");
        assert!(seen.drops.iter().all(|drops| drops.count == 0), "{seen:?}");
        let facts = client.facts().frames.clone().unwrap();
        assert_eq!((facts.backend, facts.queues.as_slice()), ("af_xdp", &[0][..]));
        assert_eq!(facts.rings.fill, 2 * facts.rings.receive);
        assert!(facts.attachment.is_some());
        // A virtual link has no zero-copy: that it was not to be had is said.
        let copies = facts.copies.to_string();
        let said = facts.instead.iter().any(|said| said.contains("zero-copy"));
        assert_eq!(copies == "copy", said, "{facts:?}");
    }
}

#[test]
fn no_buffer_is_lost_between_the_kernels_two_words_for_a_frame() {
    // It shows a frame before it says that the buffer's entry was taken; who is quick gives the buffer
    // back in between, once in some hundred times.
    const TRIPS: u64 = 100_000;
    // As many of them as there is time for.
    let end = clock_ns(Clock::Monotonic) + 10_000_000_000;
    let mut trips = 0;
    let Some(bed) = Bed::new() else { return };
    let link = || LinkOptions { ring: Some(64), ..LinkOptions::default() };
    let server = || listen(Transport::Xdp, FREE[0].1, by("far", link()), Wait::Spin).unwrap();
    let mut server = bed.far.inside(server);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (server, over) = (server.as_mut(), &over);
        scope.spawn(move || {
            let mut buffer = [0; 64];
            while !over.load(Ordering::Relaxed) {
                let got = server.receive(&mut buffer, Nanos(10_000_000)).unwrap();
                if let Received::Message { length, .. } = got {
                    server.send(&buffer[..length]).unwrap();
                }
            }
        });
        let open = || connect(Transport::Xdp, FREE[0], by("near", link()), Wait::Spin).unwrap();
        let mut client = bed.near.inside(open);
        let mut answered = true;
        while answered && trips < TRIPS && clock_ns(Clock::Monotonic) < end {
            client.send(b"again").unwrap();
            answered = received(client.as_mut()).is_some();
            trips += 1;
        }
        over.store(true, Ordering::Relaxed);
        assert!(answered, "{:?}", counts(client.as_mut()));
    });
    let seen = counts(server.as_mut());
    assert_eq!(seen.host.messages, trips, "{seen:?}");
}

#[test]
fn tagged_frames_reach_the_network_that_they_are_tagged_for_and_no_other() {
    let asked = |transport, tags| LinkOptions { tags, ..link(transport) };
    let ends = [("198.19.0.1:7000", "198.19.0.2:9000"), ("[fd07::1]:7000", "[fd07::2]:9000")];
    for (transport, (from, to)) in
        [Transport::Packet, Transport::Xdp].into_iter().flat_map(|by| ends.map(|ends| (by, ends)))
    {
        let Some(bed) = with_tagged(transport) else { return };
        let server = bed.far.socket(to);
        let options = || by("near", asked(transport, Tags::one(7)));
        let open = || connect(transport, (from, to), options(), Wait::Poll);
        let mut client = bed.near.inside(open).unwrap();
        for message in MESSAGES {
            client.send(message).unwrap();
            let mut buffer = [0; 2_000];
            let (length, asked) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], message);
            server.send_to(message, asked).unwrap();
            assert_eq!(received(client.as_mut()).as_deref(), Some(message));
        }
        // The kernel lets a tag go beyond the MTU: 1500 bytes of IP fit as ever.
        let headers = if to.starts_with('[') { 48 } else { 28 };
        assert_eq!(client.facts().max_message, 1_500 - headers);
        let longest = vec![3; client.facts().max_message];
        client.send(&longest).unwrap();
        let mut buffer = [0; 2_000];
        assert_eq!(server.recv(&mut buffer).unwrap(), longest.len());
    }
    // Of another network nobody answers.
    for transport in [Transport::Packet, Transport::Xdp] {
        let Some(bed) = with_tagged(transport) else { return };
        let options = by("near", asked(transport, Tags::one(8)));
        let told = bed
            .near
            .inside(|| connect(transport, ends[0], options, Wait::Poll).err().unwrap().to_string());
        assert!(told.contains("nobody at `near` has the address 198.19.0.2"), "{told}");
    }
}

/// With a network 7 at the far end. AF_XDP shows no tags but those in frames, where they are put there for it.
fn with_tagged(near: Transport) -> Option<Bed> {
    let bed = Bed::new()?;
    if near == Transport::Xdp {
        bed.far.inside(|| ethtool::put_tags_early("far")).unwrap();
    }
    let made = bed.far.ip("link add link far name tagged type vlan id 7")
        && bed.far.ip("addr add 198.19.0.2/24 dev tagged")
        && bed.far.ip("addr add fd07::2/64 dev tagged nodad")
        && bed.far.ip("link set tagged up");
    if !made {
        absent("no VLAN interfaces here");
        return None;
    }
    Some(bed)
}

#[test]
fn several_queues_of_a_packet_port_take_each_frame_once() {
    let link = "link add near numrxqueues 2 numtxqueues 2 type veth peer name far numrxqueues 2 \
                numtxqueues 2";
    let Some(bed) = Bed::with(link) else { return };
    let options = by("near", LinkOptions { queues: vec![0, 1], ..LinkOptions::default() });
    let open = || listen(Transport::Packet, FREE[0].0, options, Wait::Epoll).unwrap();
    let mut server = bed.near.inside(open);
    // Many flows, so that queues are chosen by chance.
    let mut got = 0;
    for _ in 0..32 {
        let client = bed.far.socket("198.18.0.2:0");
        client.send_to(b"one", FREE[0].0).unwrap();
        assert_eq!(received(server.as_mut()).as_deref(), Some(&b"one"[..]));
        got += 1;
    }
    let left = server.receive(&mut [0; 64], Nanos(50_000_000)).unwrap();
    assert!(matches!(left, Received::Nothing { .. }), "{left:?}");
    let seen = counts(server.as_mut());
    assert_eq!((seen.host.messages, got), (32, 32), "each once: {seen:?}");
    assert_eq!(seen.drops.iter().filter(|drops| drops.counter == "tp_drops").count(), 2);
}
