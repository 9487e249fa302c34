//! Ports for messages over devices of DPDK, with ordinary sockets of the kernel at the other end.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use whylate_model::Nanos;
use whylate_port::frame::Mac;
use whylate_port::{
    Client, Frame, LinkOptions, Options, Port, PortError, Received, Server, Target, Transport,
};

use crate::place::Bed;
use crate::{LIMIT, device, setup};

const MESSAGES: [&[u8]; 4] = [b"", b"request", &[7; 600], &[9; 1_400]];
const OWN: Mac = Mac([2, 0, 0, 0, 0, 0x17]);

fn framing(_: &[u8]) -> Frame {
    Frame::Unknown
}

fn options(words: &str, mac: Option<Mac>) -> Options {
    whylate_dpdk::register();
    let link = LinkOptions { mac, ..device(words) };
    Options { link, ..Options::default() }
}

fn connect(options: Options, (own, to): (&str, &str)) -> Result<Box<dyn Port>, PortError> {
    let (target, from) = (Target::Address(to.parse().unwrap()), own.parse().ok());
    Client { transport: Transport::Dpdk, target, from, options }.open(setup(), framing)
}

fn listen(options: Options, at: &str) -> Result<Box<dyn Port>, PortError> {
    let target = Target::Address(at.parse().unwrap());
    Server { transport: Transport::Dpdk, target, options }.open(setup(), framing)
}

fn received(port: &mut dyn Port, limit: Nanos) -> Option<Vec<u8>> {
    let mut buffer = [0; 2_000];
    match port.receive(&mut buffer, limit).unwrap() {
        Received::Message { length, .. } => Some(buffer[..length].to_vec()),
        Received::Nothing { .. } => None,
    }
}

/// Answers with what it received until it is told to end.
fn echo(socket: &UdpSocket, end: &AtomicBool) {
    let mut buffer = [0; 2_000];
    while !end.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..length], from).unwrap();
        }
    }
}

/// Devices that are opened before one has its address in time.
const TRIES: usize = 20;
/// A message is sent again after so long.
const AGAIN: Nanos = Nanos(2_000_000_000);
/// More round trips than any device has buffers: each is used again.
const ROUNDS: u64 = 3_000;

/// Sends a message until it comes back. A kernel that looks for its neighbour in vain, as where nobody gets
/// the CPU to answer, may throw it away.
fn ask(client: &mut dyn Port, message: &[u8]) -> Result<(), String> {
    for _ in 0..45 {
        client.send(message).unwrap();
        while let Some(back) = received(client, AGAIN) {
            if back == message {
                return Ok(());
            }
            // Of one that was sent more than once, more than one may come.
            if !MESSAGES.contains(&back.as_slice()) {
                return Err(format!("{} bytes came back as {back:?}", message.len()));
            }
        }
    }
    Err(format!("{} bytes were sent in vain for a minute and a half", message.len()))
}

/// All messages go to an ordinary server and back.
fn talk(client: &mut dyn Port, server: &UdpSocket) {
    let end = AtomicBool::new(false);
    server.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| echo(server, &end));
        let came = (0..ROUNDS).flat_map(|_| MESSAGES).try_for_each(|message| ask(client, message));
        end.store(true, Ordering::Relaxed);
        came.unwrap();
    });
    let seen = client.frame_counts().unwrap().unwrap();
    assert!(seen.host.messages >= 4 * ROUNDS && seen.host.damaged == 0, "{seen:?}");
}

#[test]
fn a_client_over_af_packet_is_answered_by_an_ordinary_server() {
    let Some(bed) = Bed::new() else { return };
    let pairs = [("198.18.0.11:7000", "198.18.0.2:9000"), ("[fd00::11]:7000", "[fd00::2]:9000")];
    for (own, to) in pairs.into_iter().filter(|(own, _)| bed.has(own)) {
        let server = bed.far.socket(to);
        let options = options("net_af_packet30,iface=near,qdisc_bypass=1", None);
        let mut client = bed.near.inside(|| connect(options, (own, to))).unwrap();
        talk(client.as_mut(), &server);
    }
}

#[test]
fn a_client_over_a_tap_is_answered_by_the_kernel_behind_it() {
    let Some(bed) = Bed::new() else { return };
    let options = options("net_tap30,iface=dtap30", Some(OWN));
    let mut client = None;
    // The interface is made when the device is opened, and asked for its address at once: the
    // server's own is resolved only when it has it. On a busy machine that may be too late.
    for _ in 0..TRIES {
        let open = || connect(options.clone(), ("198.18.7.1:7000", "198.18.7.2:9000"));
        let opened = thread::scope(|scope| {
            let opening = scope.spawn(|| bed.near.inside(open));
            while !bed.near.ip("addr add 198.18.7.2/24 dev dtap30") && !opening.is_finished() {
                thread::sleep(std::time::Duration::from_millis(5));
            }
            bed.near.ip("link set dtap30 up");
            opening.join().unwrap()
        });
        match opened {
            Ok(port) => {
                client = Some(port);
                break;
            }
            Err(error) => eprintln!("{error}"),
        }
    }
    let Some(mut client) = client else { panic!("no tap") };
    let server = bed.near.socket("198.18.7.2:9000");
    talk(client.as_mut(), &server);
    drop(client);
    assert!(!bed.near.ip("link show dtap30"), "the interface is gone with the device");
}

#[test]
fn a_client_over_af_xdp_is_answered_by_an_ordinary_server() {
    let Some(bed) = Bed::new() else { return };
    let (own, to) = ("198.18.0.11:7000", "198.18.0.2:9000");
    let server = bed.far.socket(to);
    let options = options("net_af_xdp30,iface=near", None);
    let mut client = match bed.near.inside(|| connect(options, (own, to))) {
        Ok(client) => client,
        Err(error) => panic!("{error}"),
    };
    talk(client.as_mut(), &server);
    drop(client);
    assert_eq!(whylate_dpdk::pools("-net_af_xdp30").unwrap(), 0, "its memory is given back");
}

#[test]
fn two_ports_for_messages_talk_through_shared_memory() {
    let socket = format!("whylate-hosts-{}", std::process::id());
    let at = "198.18.9.2:9000";
    let words = format!("net_memif30,role=server,id=3,socket={socket}");
    let mut server = listen(options(&words, None), at).unwrap();
    thread::scope(|scope| {
        let serving = scope.spawn(move || {
            let mut buffer = [0; 2_000];
            for _ in 0..1_000 {
                for message in MESSAGES {
                    match server.receive(&mut buffer, LIMIT).unwrap() {
                        Received::Message { length, .. } => assert_eq!(&buffer[..length], message),
                        Received::Nothing { .. } => panic!("no message"),
                    }
                    server.send(message).unwrap();
                }
            }
            server.frame_counts().unwrap().unwrap()
        });
        let words = format!("net_memif31,role=client,id=3,socket={socket}");
        let mut client = connect(options(&words, None), ("198.18.9.1:0", at)).unwrap();
        for _ in 0..1_000 {
            for message in MESSAGES {
                client.send(message).unwrap();
                assert_eq!(received(client.as_mut(), LIMIT).as_deref(), Some(message));
            }
        }
        let seen = serving.join().unwrap();
        assert_eq!((seen.host.messages, seen.host.damaged), (4_000, 0), "{seen:?}");
        assert!(seen.drops.iter().all(|drops| drops.count == 0), "{seen:?}");
    });
    let error = connect(options("net_null30", None), ("198.18.9.1:0", "[fd00::1]:9")).err();
    assert!(matches!(error, Some(PortError::WrongTarget { .. })), "{error:?}");
}
