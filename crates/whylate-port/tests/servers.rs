//! Clients and servers over every transport, in one process, on 127.0.0.1 and ::1 and private paths
//! only.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use whylate_clock::HardwareCounter;
use whylate_model::{Hertz, Nanos};
use whylate_port::open::several;
use whylate_port::serving::MOST_CONNECTIONS;
use whylate_port::{
    Client, Frame, Options, Port, PortError, Received, Server, Setup, Target, Transport, Wait,
};
use whylate_suite::{absent, missing};
use whylate_sys::nanosleep::{Clock, clock_ns};

const MS: u64 = 1_000_000;
const LIMIT: Nanos = Nanos(60_000 * MS);

fn counter() -> Option<HardwareCounter> {
    HardwareCounter::open().inspect_err(missing).ok()
}

fn setup(counter: HardwareCounter, wait: Wait) -> Setup<HardwareCounter> {
    Setup { counter, rate: Hertz(1e9), wait }
}

/// The first two bytes tell the length; no message begins with 255.
fn framing(bytes: &[u8]) -> Frame {
    match bytes {
        [255, ..] => Frame::Broken,
        [high, low, ..] => Frame::Length(usize::from(*high) << 8 | usize::from(*low)),
        _ => Frame::Unknown,
    }
}

fn message(length: usize, fill: u8) -> Vec<u8> {
    let mut message = vec![fill; length];
    (message[0], message[1]) = ((length >> 8) as u8, length as u8);
    message
}

fn internet(text: &str) -> Target {
    Target::Address(text.parse().unwrap())
}

fn server(transport: Transport, target: Target) -> Server {
    Server { transport, target, options: Options::default() }
}

fn client(transport: Transport, target: Target) -> Client {
    Client { transport, target, from: None, options: Options::default() }
}

/// Where a server is to be reached.
fn reached(transport: Transport, port: &dyn Port) -> Target {
    let local = port.facts().socket.as_ref().unwrap().local.clone();
    match transport {
        Transport::Unix => Target::Path(local.into()),
        _ => internet(&local),
    }
}

/// Every transport with a place to listen at, of those that this machine has.
fn places(directory: &Path) -> Vec<(Transport, Target)> {
    let mut places = vec![
        (Transport::Udp, internet("127.0.0.1:0")),
        (Transport::Tcp, internet("127.0.0.1:0")),
        (Transport::Unix, Target::Path(directory.join("server"))),
    ];
    if UdpSocket::bind("[::1]:0").is_ok() {
        places.push((Transport::Udp, internet("[::1]:0")));
        places.push((Transport::Tcp, internet("[::1]:0")));
    } else {
        absent("no IPv6");
    }
    places
}

/// Sends the message and gets it back.
fn echoed(client: &mut dyn Port, server: &mut dyn Port, message: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; 70_000];
    client.send(message).unwrap();
    let Received::Message { length, .. } = server.receive(&mut buffer, LIMIT).unwrap() else {
        panic!("nothing came to {}", server.facts().path)
    };
    assert_eq!(&buffer[..length], message);
    server.send(&buffer[..length]).unwrap();
    let Received::Message { length, .. } = client.receive(&mut buffer, LIMIT).unwrap() else {
        panic!("nothing came back by {}", client.facts().path)
    };
    buffer[..length].to_vec()
}

/// Looks until it is so, for minutes.
fn until(what: &str, mut look: impl FnMut() -> bool) {
    let end = clock_ns(Clock::Monotonic) + 3 * LIMIT.0;
    while !look() {
        assert!(clock_ns(Clock::Monotonic) < end, "waited for minutes in vain until {what}");
    }
}

fn unavailable(error: &PortError) -> bool {
    let known = matches!(
        error,
        PortError::Wait { .. } | PortError::BusyPollDenied { .. } | PortError::NotOurAddress { .. }
    );
    if known {
        absent(error);
    }
    known
}

#[test]
fn every_transport_echoes_by_every_wait_and_waits_for_one_are_refused_where_there_are_several() {
    let Some(counter) = counter() else { return };
    let directory = tempfile::tempdir().unwrap();
    for wait in Wait::ALL {
        for (transport, place) in places(directory.path()) {
            let opened = server(transport, place.clone()).open(setup(counter, wait), framing);
            let mut server = match opened {
                Ok(server) => server,
                Err(PortError::WaitsForOne { wait: refused }) => {
                    assert!(transport == Transport::Tcp && refused == wait);
                    assert!(!wait.takes_many_sockets());
                    continue;
                }
                Err(error) if unavailable(&error) => continue,
                Err(error) => panic!("{transport} {place} {wait}: {error}"),
            };
            let to = reached(transport, &*server);
            let mut client = client(transport, to).open(setup(counter, wait), framing).unwrap();
            for length in [2, 64, 1_400, 9_000, 60_000] {
                let sent = message(length, length as u8);
                // A connection is taken, and a long message read in pieces, while both wait.
                let back = if transport == Transport::Tcp {
                    echoed_by_thread(&mut *client, &mut *server, &sent)
                } else {
                    echoed(&mut *client, &mut *server, &sent)
                };
                assert_eq!(back, sent, "{transport} {place} {wait} {length}");
            }
            assert!(server.peer().is_some());
            let none = client.receive(&mut [0; 64], Nanos(MS)).unwrap();
            assert!(matches!(none, Received::Nothing { .. }), "{transport} {wait}: {none:?}");
        }
    }
}

fn echoed_by_thread(client: &mut dyn Port, server: &mut dyn Port, sent: &[u8]) -> Vec<u8> {
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            let mut buffer = vec![0; 70_000];
            let got = server.receive(&mut buffer, LIMIT).unwrap();
            let Received::Message { length, .. } = got else { panic!("nothing came") };
            server.send(&buffer[..length]).unwrap();
        });
        client.send(sent).unwrap();
        let mut buffer = vec![0; 70_000];
        let got = client.receive(&mut buffer, LIMIT).unwrap();
        echo.join().unwrap();
        let Received::Message { length, .. } = got else { panic!("nothing came back") };
        buffer[..length].to_vec()
    })
}

#[test]
fn a_server_answers_whoever_asked_last_and_tells_clients_apart() {
    let Some(counter) = counter() else { return };
    let directory = tempfile::tempdir().unwrap();
    for (transport, place) in places(directory.path()) {
        let opened = server(transport, place).open(setup(counter, Wait::Epoll), framing);
        let mut server = match opened {
            Ok(server) => server,
            Err(error) if unavailable(&error) => continue,
            Err(error) => panic!("{error}"),
        };
        let to = reached(transport, &*server);
        let open = || client(transport, to.clone()).open(setup(counter, Wait::Block), framing);
        let (mut first, mut second) = (open().unwrap(), open().unwrap());
        let mut peers = Vec::new();
        for turn in 0..6 {
            let asking = if turn % 2 == 0 { &mut first } else { &mut second };
            let sent = message(100, turn);
            assert_eq!(echoed(&mut **asking, &mut *server, &sent), sent, "{transport}");
            peers.push(server.peer().unwrap().clone());
        }
        assert!(peers[0] == peers[2] && peers[1] == peers[5] && peers[0] != peers[1]);
        let local = first.facts().socket.clone().unwrap().local;
        assert_eq!(peers[0].to_string(), local, "{transport}");
        let divided = server.duplicate().err().unwrap();
        assert!(matches!(divided, PortError::NotDivisible { .. }), "{divided}");
    }
}

#[test]
fn several_servers_are_one_port_and_each_answers_by_its_own_socket() {
    let Some(counter) = counter() else { return };
    let directory = tempfile::tempdir().unwrap();
    let servers: Vec<Server> = places(directory.path())
        .into_iter()
        .filter(|(_, place)| !place.to_string().contains("::1"))
        .map(|(transport, place)| server(transport, place))
        .collect();
    for wait in [Wait::Poll, Wait::Epoll, Wait::Spin] {
        let mut port = several(&servers, setup(counter, wait), framing).unwrap();
        let local = port.facts().socket.clone().unwrap().local;
        let places: Vec<&str> = local.split(", ").collect();
        assert_eq!(places.len(), 3, "{local}");
        for (one, at) in servers.iter().zip(places) {
            let to = match one.transport {
                Transport::Unix => Target::Path(at.into()),
                _ => internet(at),
            };
            let mut client =
                client(one.transport, to).open(setup(counter, Wait::Block), framing).unwrap();
            let sent = message(64, 9);
            assert_eq!(echoed(&mut *client, &mut *port, &sent), sent);
        }
    }
}

#[test]
fn a_stream_is_cut_into_messages_however_it_comes_and_garbage_closes_only_its_own_connection() {
    let Some(counter) = counter() else { return };
    let server = server(Transport::Tcp, internet("127.0.0.1:0"));
    let mut port = server.open(setup(counter, Wait::Epoll), framing).unwrap();
    let at = port.facts().socket.clone().unwrap().local;
    let mut slow = TcpStream::connect(&at).unwrap();
    let mut rude = TcpStream::connect(&at).unwrap();
    let mut torn = TcpStream::connect(&at).unwrap();
    let mut buffer = [0; 1_000];
    let nothing = |port: &mut dyn Port| {
        let got = port.receive(&mut [0; 1_000], Nanos(20 * MS)).unwrap();
        assert!(matches!(got, Received::Nothing { .. }), "{got:?}");
    };
    // Half a message, then its rest, two more and half of another in one piece.
    let sent = message(100, 1);
    slow.write_all(&sent[..40]).unwrap();
    nothing(&mut *port);
    let mut rest = sent[40..].to_vec();
    rest.extend(message(50, 2));
    rest.extend(message(60, 3));
    rest.extend(&message(70, 4)[..69]);
    slow.write_all(&rest).unwrap();
    for length in [100, 50, 60] {
        let got = port.receive(&mut buffer, LIMIT).unwrap();
        assert!(matches!(got, Received::Message { length: l, .. } if l == length), "{got:?}");
    }
    nothing(&mut *port);
    rude.write_all(&[255; 300]).unwrap();
    torn.write_all(&message(100, 5)[..30]).unwrap();
    drop(torn);
    until("one connection is broken, one is cut, and the third is open", || {
        nothing(&mut *port);
        let counts = port.connections();
        (counts.accepted, counts.broken, counts.cut, counts.open) == (3, 1, 1, 1)
    });
    let closed = rude.read(&mut buffer);
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    slow.write_all(&[4]).unwrap();
    let got = port.receive(&mut buffer, LIMIT).unwrap();
    assert!(matches!(got, Received::Message { length: 70, .. }), "{got:?}");
    port.send(&message(70, 4)).unwrap();
    slow.read_exact(&mut buffer[..70]).unwrap();
}

#[test]
fn a_client_that_never_reads_is_not_waited_for() {
    let Some(counter) = counter() else { return };
    let server = server(Transport::Tcp, internet("127.0.0.1:0"));
    let mut port = server.open(setup(counter, Wait::Epoll), framing).unwrap();
    let at = port.facts().socket.clone().unwrap().local;
    let mut deaf = TcpStream::connect(&at).unwrap();
    deaf.write_all(&message(60_000, 1)).unwrap();
    let mut buffer = vec![0; 70_000];
    let got = port.receive(&mut buffer, LIMIT).unwrap();
    assert!(matches!(got, Received::Message { .. }), "{got:?}");
    let refused = (0..10_000).find_map(|_| port.send(&buffer[..60_000]).err()).unwrap();
    assert!(matches!(refused, PortError::SendTimedOut { .. } | PortError::PeerGone { .. }));
    // Others are served as before.
    let mut client =
        client(Transport::Tcp, internet(&at)).open(setup(counter, Wait::Block), framing).unwrap();
    assert_eq!(echoed(&mut *client, &mut *port, &message(64, 2)), message(64, 2));
}

#[test]
fn a_flood_of_connections_is_turned_away_and_those_before_are_served() {
    let Some(counter) = counter() else { return };
    let server = server(Transport::Tcp, internet("127.0.0.1:0"));
    let mut port = server.open(setup(counter, Wait::Epoll), framing).unwrap();
    let at = port.facts().socket.clone().unwrap().local;
    let mut first =
        client(Transport::Tcp, internet(&at)).open(setup(counter, Wait::Block), framing).unwrap();
    assert_eq!(echoed(&mut *first, &mut *port, &message(64, 2)), message(64, 2));
    let mut flood = Vec::new();
    for _ in 0..MOST_CONNECTIONS + 20 {
        flood.push(TcpStream::connect(&at).unwrap());
        port.receive(&mut [0; 64], Nanos(0)).unwrap();
    }
    until("all but as many as are served are turned away", || {
        port.receive(&mut [0; 64], Nanos(20 * MS)).unwrap();
        let counts = port.connections();
        (counts.open, counts.turned_away) == (MOST_CONNECTIONS as u64, 21)
    });
    assert_eq!(echoed(&mut *first, &mut *port, &message(64, 3)), message(64, 3));
}

#[test]
fn a_server_that_closes_in_the_middle_of_a_message_is_gone_and_one_that_talks_nonsense_is_named() {
    let Some(counter) = counter() else { return };
    for (bytes, gone) in [(&[0, 50, 1, 2][..], true), (&[255, 0, 0][..], false)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = internet(&listener.local_addr().unwrap().to_string());
        let opened = client(Transport::Tcp, to).open(setup(counter, Wait::Block), framing);
        let mut client = opened.unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(bytes).unwrap();
        if gone {
            drop(other);
        }
        let error = client.receive(&mut [0; 100], LIMIT).unwrap_err();
        assert_eq!(error.is_peer_gone(), gone, "{error}");
        assert_eq!(matches!(error, PortError::BrokenStream { .. }), !gone, "{error}");
    }
}

#[test]
fn half_of_a_stream_receives_while_the_other_sends() {
    let Some(counter) = counter() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = internet(&listener.local_addr().unwrap().to_string());
    let opened = client(Transport::Tcp, to).open(setup(counter, Wait::Epoll), framing);
    let mut receiver = opened.unwrap();
    let mut sender = receiver.duplicate().unwrap();
    let (mut other, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || receiver.receive(&mut [0; 64], LIMIT).unwrap());
        thread::sleep(Duration::from_millis(5));
        sender.send(&message(9, 9)).unwrap();
        let mut buffer = [0; 9];
        other.read_exact(&mut buffer).unwrap();
        other.write_all(&buffer).unwrap();
        let back = waiting.join().unwrap();
        assert!(matches!(back, Received::Message { length: 9, .. }), "{back:?}");
    });
}

#[test]
fn paths_go_with_their_ports_and_what_is_in_the_way_is_told() {
    let Some(counter) = counter() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server");
    let listen = || {
        server(Transport::Unix, Target::Path(path.clone()))
            .open(setup(counter, Wait::Block), framing)
    };
    let first = listen().unwrap();
    let told = listen().err().unwrap().to_string();
    assert!(told.contains("a server listens there"), "{told}");
    let client = client(Transport::Unix, Target::Path(path.clone()))
        .open(setup(counter, Wait::Block), framing);
    let client = client.unwrap();
    let own = client.facts().socket.clone().unwrap().local;
    assert!(Path::new(&own).exists(), "{own}");
    let second = client.duplicate().unwrap();
    drop(client);
    assert!(Path::new(&own).exists(), "the other port still has it");
    drop(second);
    assert!(!Path::new(&own).parent().unwrap().exists());
    drop(first);
    assert!(!path.exists());
    // A server that was killed leaves its path.
    drop(std::os::unix::net::UnixDatagram::bind(&path).unwrap());
    let told = listen().err().unwrap().to_string();
    assert!(told.contains("has ended") && told.contains("remove it"), "{told}");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "mine").unwrap();
    let told = listen().err().unwrap().to_string();
    assert!(told.contains("no socket"), "{told}");
    assert!(path.exists(), "what is not ours stays");
    let far = Target::Path("/nowhere/at/all".into());
    let error = server(Transport::Unix, far).open(setup(counter, Wait::Block), framing).err();
    assert!(matches!(error, Some(PortError::PathUnfit(_))), "{error:?}");
}

#[test]
fn what_cannot_be_opened_is_refused_by_name() {
    let Some(counter) = counter() else { return };
    let held = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = held.local_addr().unwrap();
    let listen = |transport, target, options| {
        let server = Server { transport, target, options };
        server.open(setup(counter, Wait::Block), framing).err().unwrap().to_string()
    };
    let told = listen(Transport::Udp, Target::Address(at), Options::default());
    assert!(told.contains("in use by process"), "{told}");
    let told = listen(Transport::Udp, internet("192.0.2.1:7000"), Options::default());
    assert!(told.contains("no interface here has it"), "{told}");
    let told = listen(Transport::Udp, internet("239.1.2.3:7000"), Options::default());
    assert!(told.contains("--interface"), "{told}");
    let told = listen(Transport::Udp, Target::Path("/tmp/x".into()), Options::default());
    assert!(told.contains("needs an address"), "{told}");
    let options = Options { interface: Some("nosuchport".into()), ..Options::default() };
    let told = listen(Transport::Udp, internet("127.0.0.1:0"), options);
    assert!(told.contains("`nosuchport`"), "{told}");
    let connect = |transport, at: SocketAddr| {
        client(transport, Target::Address(at)).open(setup(counter, Wait::Block), framing)
    };
    // Nobody listens there, and nobody else can meanwhile.
    let held = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent = SocketAddr::try_from(rustix::net::getsockname(&held).unwrap()).unwrap();
    let error = connect(Transport::Tcp, silent).err().unwrap();
    assert!(matches!(error, PortError::Refused { .. }) && error.is_peer_gone(), "{error}");
    // Holds its number, so that nobody else has it, and takes nothing from strangers: the kernel
    // answers.
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    deaf.connect("127.0.0.1:9").unwrap();
    // UDP learns of it from the host's answer to the first message.
    let mut port = connect(Transport::Udp, deaf.local_addr().unwrap()).unwrap();
    // The kernel says it to so many in a second, of all hosts together.
    let refused = (0..60_000).find_map(|_| {
        let sent = port.send(b"anyone?").map(drop);
        sent.and_then(|()| port.receive(&mut [0; 64], Nanos(MS)).map(drop)).err()
    });
    assert!(matches!(refused, Some(PortError::Refused { .. })), "{refused:?}");
}

#[test]
fn buffers_asked_for_are_read_back_as_the_kernel_gave_them() {
    let Some(counter) = counter() else { return };
    let options = Options {
        receive_buffer: Some(16 << 10),
        send_buffer: Some(16 << 10),
        traffic_class: Some(0xb8),
        hops: Some(3),
        whole_packets: true,
        ..Options::default()
    };
    for (transport, target) in
        [(Transport::Udp, internet("127.0.0.1:0")), (Transport::Tcp, internet("127.0.0.1:0"))]
    {
        let server = Server { transport, target, options: options.clone() };
        let port = server.open(setup(counter, Wait::Epoll), framing).unwrap();
        let facts = port.facts().socket.clone().unwrap();
        // The kernel doubles what it is asked for, as far as it allows that.
        let given = |most: &str| {
            let most = std::fs::read_to_string(format!("/proc/sys/net/core/{most}")).ok();
            let most = most.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
            Some(2 * most.min(16 << 10))
        };
        assert_eq!(facts.receive_buffer, given("rmem_max"), "{transport}");
        assert_eq!(facts.send_buffer, given("wmem_max"), "{transport}");
    }
}
