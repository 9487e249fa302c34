//! `whylate forward --port udp`: datagrams go through ordinary sockets, each is counted and stamped, what is
//! lost is located, and what cannot be forwarded between is refused.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use whylate_model::forward::{Forward, ForwardEnd};

use crate::between::{Bed, Forwarding, PATIENCE, asked, checkpoint, reflecting, settled};
use crate::forward::{closes_with_times, cpus};
use crate::program::{self, said, until, whylate};
use crate::requests::{flow, series};

fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let at = socket.local_addr().unwrap();
    (socket, at)
}

/// What the kernel dropped at a port.
fn dropped(of: &Forward, port: usize) -> u64 {
    of.ports[port].drops.iter().filter(|drops| drops.frames).map(|drops| drops.count).sum()
}

/// Datagrams for which the socket at this address had no room, as the kernel counts them.
fn dropped_at(at: SocketAddr) -> u64 {
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
    let port = format!(":{:04X}", at.port());
    let is_its =
        |line: &&str| line.split_whitespace().nth(1).is_some_and(|own| own.ends_with(&port));
    let its = sockets.lines().find(is_its).unwrap_or_else(|| panic!("no {port}: {sockets}"));
    its.split_whitespace().last().unwrap().parse().unwrap()
}

/// What hosts answered of servers that are not there.
fn answers(of: &Forward) -> u64 {
    let occasions = of.ports[1].drops.iter().filter(|drops| !drops.frames);
    occasions.map(|drops| drops.count).sum()
}

#[test]
fn datagrams_of_several_clients_are_counted_and_stamped_however_it_waits_and_on_one_cpu_or_two() {
    const MESSAGES: u64 = 60;
    const CLIENTS: u64 = 3;
    let _alone = program::alone();
    for wait in ["spin", "poll", "epoll"] {
        for cpus in cpus() {
            let (server, to) = socket();
            let (forwarding, at) = Forwarding::of_datagrams(to, &format!("--wait {wait} {cpus}"));
            let echo = thread::spawn(move || {
                let (mut buffer, mut peers) = ([0; 2_048], BTreeSet::new());
                for _ in 0..CLIENTS * MESSAGES {
                    let (length, from) = server.recv_from(&mut buffer).unwrap();
                    peers.insert(from);
                    server.send_to(&buffer[..length], from).unwrap();
                }
                peers.len() as u64
            });
            let client = |client: u64| {
                let (socket, _) = socket();
                socket.connect(at).unwrap();
                for number in 0..MESSAGES {
                    let message = vec![(client * 7 + number) as u8; number as usize * 24];
                    socket.send(&message).unwrap();
                    let mut back = [0; 2_048];
                    let length = socket.recv(&mut back).unwrap();
                    assert!(back[..length] == message, "client {client}, message {number}");
                }
            };
            thread::scope(|scope| {
                for number in 0..CLIENTS {
                    scope.spawn(move || client(number));
                }
            });
            assert_eq!(echo.join().unwrap(), CLIENTS, "a socket towards the server for each");
            let told = forwarding.stop();
            closes_with_times(&told);
            assert_eq!((told.backend.as_str(), told.wait.as_str()), ("udp", wait));
            assert_eq!(told.ended, ForwardEnd::Stopped);
            assert_eq!(told.threads.len(), cpus.split(',').count(), "{told:?}");
            for direction in &told.directions {
                let counts = (direction.received, direction.forwarded, direction.waiting);
                assert_eq!(counts, (CLIENTS * MESSAGES, CLIENTS * MESSAGES, 0), "{told:?}");
                let bytes = CLIENTS * 24 * (0..MESSAGES).sum::<u64>();
                assert_eq!((direction.received_bytes, direction.forwarded_bytes), (bytes, bytes));
                assert_eq!(direction.residence.as_ref().unwrap().samples, CLIENTS * MESSAGES);
                assert_eq!(direction.ticks.as_ref().unwrap().all.frames, CLIENTS * MESSAGES);
                assert!(direction.kernel_residence.is_none() && direction.runts == 0);
            }
            // What is of links and rings is not made up.
            for (port, of) in told.ports.iter().enumerate() {
                assert!(of.is_socket() && of.interface_counts.is_none(), "{of:?}");
                assert_eq!((of.mtu, of.index, dropped(&told, port)), (0, 0, 0), "{of:?}");
            }
            assert!(told.stamping.unwrap().per_burst_ns > 0.0);
            let looked = told.threads.iter().map(|thread| thread.looks).sum::<u64>();
            let vain = told.threads.iter().map(|thread| thread.in_vain).sum::<u64>();
            let bursts = told.directions.iter().map(|of| of.bursts).sum::<u64>();
            assert_eq!(looked - vain, bursts, "{told:?}");
        }
    }
}

#[test]
fn requests_come_back_through_a_forwarder_of_datagrams_and_its_log_has_each_of_them() {
    let _alone = program::alone();
    let (reflector, to) = reflecting("127.0.0.1:0".parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = format!("--interval 100ms -o {}", directory.display());
    let (forwarding, at) = Forwarding::of_datagrams(to, &words);
    let recorded = asked(at, "--rate 500pps --duration 200ms");
    drop(reflector);
    let told = forwarding.stop();
    closes_with_times(&told);
    let flow = flow(&recorded.run);
    let (sent, received) = (flow.packets.sent, flow.packets.received + flow.packets.late);
    assert!(sent > 0 && received > 0 && flow.packets.add_up(), "{:?}", flow.packets);
    // Those of the warm-up and of greeting the reflector as well.
    let [there, back] = &told.directions[..] else { panic!("{told:?}") };
    assert!(there.forwarded >= sent && back.forwarded >= received, "{told:?}");
    let lost = dropped(&told, 0) + dropped(&told, 1);
    assert!(received + lost >= sent, "{:?}: {told:?}", flow.packets);
    let run = program::read(&directory);
    for (direction, name) in [(there, "forward-residence-0"), (back, "forward-residence-1")] {
        assert_eq!(direction.residence.as_ref().unwrap().samples, direction.forwarded);
        assert_eq!(series(&run, name).expect(name).n, direction.forwarded);
    }
    let report = whylate(["report", &directory.display().to_string()]).output().unwrap();
    let text = said(&report).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["What was forwarded", "by ordinary sockets of the kernel"] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    assert!(text.contains("A datagram stayed from when"), "{text}");
}

#[test]
fn what_a_saturated_forwarder_of_datagrams_loses_is_located_and_adds_up_to_what_was_offered() {
    // More than any socket has room for.
    const MOST: u64 = 1_000_000;
    let _alone = program::alone();
    let (server, to) = socket();
    let (forwarding, at) = Forwarding::of_datagrams(to, "--work 1ms");
    let (client, _) = socket();
    // However slowly they are sent here: it takes none of them meanwhile, until its socket has room for none.
    let mut offered = 0;
    forwarding.standing_still(|| {
        while dropped_at(at) == 0 && offered < MOST {
            for _ in 0..100 {
                client.send_to(&[7; 1_000], at).unwrap();
            }
            offered += 100;
            // The kernel hands on what is queued.
            thread::sleep(Duration::from_millis(1));
        }
    });
    let (marks, came) = settled((&client, &server), at);
    let told = forwarding.stop();
    closes_with_times(&told);
    let (there, lost) = (&told.directions[0], dropped(&told, 0));
    assert_eq!(there.received + lost, offered + marks, "{told:?}");
    assert_eq!((there.forwarded, there.refused), (came, 0), "{told:?}");
    assert!(lost > 0 && came > marks, "{told:?}");
    let places: Vec<&str> = told.ports[0]
        .drops
        .iter()
        .filter(|of| of.count > 0)
        .map(|of| of.counter.as_str())
        .collect();
    assert_eq!(places, ["sk_drops"]);
}

#[test]
fn a_server_that_is_gone_is_told_by_its_host_s_answers_and_one_that_comes_back_is_served() {
    let _alone = program::alone();
    let (server, to) = socket();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = format!("-o {}", directory.display());
    let (forwarding, at) = Forwarding::of_datagrams(to, &words);
    let (client, _) = socket();
    client.connect(at).unwrap();
    client.send(b"first").unwrap();
    let mut buffer = [0; 64];
    let (_, from) = server.recv_from(&mut buffer).unwrap();
    drop(server);
    for _ in 0..20 {
        client.send(b"anybody").unwrap();
        thread::sleep(Duration::from_millis(2));
    }
    let all = |of: &Forward| of.directions[0].received == 21 && answers(of) > 0;
    until("a checkpoint has all of them and an answer", || checkpoint(&directory).filter(all));
    // Somebody may have been given the port meanwhile.
    let server = until("the server's address is free", || UdpSocket::bind(to).ok());
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send(b"again").unwrap();
    let (length, again) = server.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], again), (&b"again"[..], from));
    let told = forwarding.stop();
    closes_with_times(&told);
    let there = &told.directions[0];
    // All of them left: that nobody was there is known only afterwards, and costs none that follow.
    assert_eq!((there.received, there.forwarded, there.refused), (22, 22, 0), "{told:?}");
    assert!((1..=20).contains(&answers(&told)), "{told:?}");
    let report = whylate(["report", &directory.display().to_string()]).output().unwrap();
    let text = said(&report).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("answers that nobody is there (ICMP), "), "{text}");
}

#[test]
fn an_address_that_somebody_has_and_datagrams_for_itself_are_refused_by_name() {
    let _alone = program::alone();
    let (_server, to) = socket();
    let (first, at) = Forwarding::of_datagrams(to, "");
    let refused = |words: &str, status: i32, expected: &str| {
        let mut command = whylate(["forward", "--port", "udp", "--no-dma-latency"]);
        let output = command.args(words.split_whitespace()).output().unwrap();
        let told = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words}: {told}");
        assert!(told.contains(expected), "{words}: {told}");
    };
    refused(&format!("{at} {to} --duration 1s"), 1, "in use");
    refused(&format!("192.0.2.77:0 {to} --duration 1s"), 1, "no interface here has it");
    refused(&format!("{to} {to}"), 2, "sends to itself");
    refused(&format!("0.0.0.0:{} {to}", to.port()), 2, "sends to itself");
    let told = first.stop();
    assert!(told.directions.iter().all(|of| of.received == 0), "{told:?}");
}

#[test]
fn an_address_that_is_removed_in_the_run_has_what_cannot_be_sent_counted_and_the_reason_said() {
    let _alone = program::alone();
    let Some(bed) = Bed::asking() else { return };
    // Two networks, of which the forwarder has an address each.
    bed.between.ip("addr add 198.18.0.9/24 dev a");
    bed.between.ip("addr add 198.19.0.9/24 dev b");
    bed.server.ip("addr add 198.19.0.2/24 dev server0");
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = format!("198.18.0.9:7000 198.19.0.2:7000 --port udp -o {}", directory.display());
    let (forwarding, _) = bed.between.inside(|| Forwarding::started(&words));
    let client = bed.client.inside(|| UdpSocket::bind("198.18.0.1:7000").unwrap());
    let server = bed.server.inside(|| UdpSocket::bind("198.19.0.2:7000").unwrap());
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 64];
    for _ in 0..10 {
        client.send_to(b"there", "198.18.0.9:7000").unwrap();
        server.recv(&mut buffer).unwrap();
    }
    bed.between.ip("addr del 198.19.0.9/24 dev b");
    for _ in 0..5 {
        client.send_to(b"nowhere", "198.18.0.9:7000").unwrap();
    }
    let all = |of: &Forward| of.directions[0].received == 15;
    until("a checkpoint has all of them", || checkpoint(&directory).filter(all));
    let told = forwarding.stop();
    let there = &told.directions[0];
    assert!(there.closes(), "{told:?}");
    assert_eq!((there.received, there.forwarded, there.refused), (15, 10, 5), "{told:?}");
    assert!(there.refusals > 0 && there.first_refusal.is_some(), "{told:?}");
}
