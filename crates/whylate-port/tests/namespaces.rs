//! Interfaces, groups and paths inside a network namespace of the test's own: nothing outside it is
//! touched. Needs root and `ip` of iproute2.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::fmt::Display;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::mount::{UnmountFlags, unmount};
use whylate_clock::HardwareCounter;
use whylate_model::{Hertz, Nanos};
use whylate_port::packet::tap::{TapRing, Tapped};
use whylate_port::{
    Client, Frame, Options, Port, PortError, Received, Server, Setup, Target, Transport, Wait,
};
use whylate_suite::{absent, missing};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{interface, namespace};

const LIMIT: Nanos = Nanos(60_000_000_000);
/// A message that is not there by then is lost, unless the machine is very busy: it is sent again.
const AGAIN: Nanos = Nanos(2_000_000_000);

/// Says that a test is left out; with `WHYLATE_TESTS_REQUIRE=everything` that is a failure.
fn skip<T>(reason: &impl Display) -> Option<T> {
    missing(reason);
    None
}

/// A namespace of its own with a pair of virtual links, gone with this.
struct Private {
    directory: tempfile::TempDir,
    place: PathBuf,
}

impl Private {
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("net");
        std::fs::write(&place, "").unwrap();
        if let Err(refusal) = namespace::make_network(&place) {
            return skip(&refusal);
        }
        let private = Self { directory, place };
        let links = [
            "link set lo up",
            "link add near type veth peer name far",
            "addr add 198.18.0.1/24 dev near",
            // The far end first: the near one can send from when it is up.
            "link set far up",
            "link set near up",
            "link add off type veth peer name off-peer",
            "addr add 198.18.7.1/24 dev off",
        ];
        if links.iter().all(|words| private.ip(words)) {
            return Some(private);
        }
        skip(&"no `ip`, or it makes no virtual links here")
    }

    /// Runs `ip` inside.
    fn ip(&self, words: &str) -> bool {
        self.inside(|| {
            let output = Command::new("ip").args(words.split_whitespace()).output();
            output.is_ok_and(|output| output.status.success())
        })
    }

    /// Does something on a thread of its own inside.
    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = || {
                namespace::enter_network(&self.place).expect("it was made a moment ago");
                work()
            };
            scope.spawn(there).join().unwrap()
        })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = unmount(&self.place, UnmountFlags::DETACH);
        let _ = std::fs::remove_file(&self.place);
        let _ = self.directory.path();
    }
}

fn setup(wait: Wait) -> Setup<HardwareCounter> {
    let counter = HardwareCounter::open().expect("looked at before");
    Setup { counter, rate: Hertz(1e9), wait }
}

fn framing(_: &[u8]) -> Frame {
    Frame::Unknown
}

fn by(interface: &str) -> Options {
    Options { interface: Some(interface.to_owned()), ..Options::default() }
}

fn listen(at: &str, options: Options) -> Result<Box<dyn Port>, PortError> {
    let target = Target::Address(at.parse().unwrap());
    let server = Server { transport: Transport::Udp, target, options };
    server.open(setup(Wait::Block), framing)
}

fn connect(to: &str, options: Options) -> Result<Box<dyn Port>, PortError> {
    let target = Target::Address(to.parse().unwrap());
    let client = Client { transport: Transport::Udp, target, from: None, options };
    client.open(setup(Wait::Block), framing)
}

fn ready() -> Option<Private> {
    HardwareCounter::open().inspect_err(missing).ok()?;
    Private::new()
}

#[test]
fn an_interface_that_cannot_be_used_is_named_with_what_to_do() {
    let Some(private) = ready() else { return };
    private.inside(|| {
        let told = |at, interface| listen(at, by(interface)).err().unwrap();
        let error = told("198.18.0.1:0", "nosuchport");
        assert!(matches!(error, PortError::InterfaceMissing { .. }), "{error}");
        let error = told("198.18.7.1:0", "off");
        assert!(error.to_string().contains("ip link set off up"), "{error}");
        let error = told("198.18.0.1:0", "far");
        assert!(matches!(error, PortError::InterfaceWithoutAddress { .. }), "{error}");
        assert!(error.to_string().contains("no ipv4 address"), "{error}");
        let port = listen("198.18.0.1:0", by("near")).unwrap();
        let facts = port.facts().socket.clone().unwrap();
        assert_eq!((facts.interface.as_deref(), facts.mtu), (Some("near"), Some(1_500)));
    });
}

#[test]
fn a_message_longer_than_the_mtu_is_refused_with_it_where_packets_are_to_be_whole() {
    let Some(private) = ready() else { return };
    assert!(private.ip("link set near mtu 1280"));
    private.inside(|| {
        let whole = Options { whole_packets: true, ..Options::default() };
        let mut port = connect("198.18.0.9:7000", whole).unwrap();
        port.send(&[0; 1_252]).unwrap();
        let error = port.send(&[0; 1_253]).unwrap_err();
        assert!(matches!(error, PortError::MtuTooSmall { bytes: 1_253, mtu: Some(1_280) }));
        assert!(error.to_string().contains("MTU 1280"), "{error}");
        let mut port = connect("198.18.0.9:7000", Options::default()).unwrap();
        port.send(&[0; 9_000]).unwrap();
    });
}

#[test]
fn where_there_is_no_route_there_is_no_port() {
    let Some(private) = ready() else { return };
    private.inside(|| {
        let error = connect("203.0.113.7:7000", Options::default()).err().unwrap();
        assert!(matches!(error, PortError::NoRoute { .. }), "{error}");
        assert!(error.to_string().contains("203.0.113.7:7000"), "{error}");
    });
}

#[test]
fn an_interface_and_an_address_of_another_namespace_are_told_with_where_they_are() {
    const NETNS: &str = "/run/netns";
    let Some(private) = ready() else { return };
    // Only what is mounted there can be found, as `ip netns add` does.
    let name = format!("whylate-test-{}", std::process::id());
    let command = Command::new("ip")
        .args(["netns", "attach", &name, &std::process::id().to_string()])
        .output();
    if !command.is_ok_and(|output| output.status.success()) {
        return absent("no `ip netns attach`");
    }
    // Some files there are no interfaces, and some interfaces are in every namespace.
    let outside = std::fs::read_dir("/sys/class/net").unwrap().flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_only_outside = entry.path().join("ifindex").exists()
            && private.inside(|| matches!(interface::named(&name), Ok(None)));
        is_only_outside.then_some(name)
    });
    let told = outside.map(|outside| {
        private.inside(|| listen("198.18.0.1:0", by(&outside)).err().unwrap().to_string())
    });
    let _ = Command::new("ip").args(["netns", "del", &name]).output();
    let Some(told) = told else { return absent("no interface of its own here") };
    assert!(told.contains(&format!("{NETNS}/")) && told.contains("nsenter"), "{told}");
    assert!(!Path::new(NETNS).join(&name).exists());
}

#[test]
fn what_is_sent_to_a_group_is_heard_and_answered_by_its_servers() {
    let Some(private) = ready() else { return };
    let mut groups = vec![("239.77.7.1", Wait::Block)];
    if private.ip("addr add fd00:77::1/64 dev near nodad") {
        groups.push(("[ff02::77]", Wait::Epoll));
    } else {
        absent("this machine has no IPv6");
    }
    private.inside(|| {
        for (group, wait) in groups {
            let hops = Options { hops: Some(1), ..by("near") };
            let mut first = match listen(&format!("{group}:7777"), by("near")) {
                Ok(port) => port,
                Err(error) => panic!("{group}: {error}"),
            };
            let mut second = listen(&format!("{group}:7777"), by("near")).unwrap();
            let target = Target::Address(format!("{group}:7777").parse().unwrap());
            let client = Client { transport: Transport::Udp, target, from: None, options: hops };
            let mut client = client.open(setup(wait), framing).unwrap();
            for server in [&mut first, &mut second] {
                let heard = (0..LIMIT.0 / AGAIN.0).any(|_| asked(&mut *client, &mut **server));
                assert!(heard, "{group}: nobody heard, or nobody answered");
            }
            assert!(connect(&format!("{group}:7777"), Options::default()).is_err());
        }
    });
}

/// Asks a group once. Has this server heard it, and the client its answer? A link that has just come up may
/// lose either.
fn asked(client: &mut dyn Port, server: &mut dyn Port) -> bool {
    client.send(b"anyone?").unwrap();
    let got = server.receive(&mut [0; 64], AGAIN).unwrap();
    if matches!(got, Received::Nothing { .. }) {
        return false;
    }
    assert!(matches!(got, Received::Message { length: 7, .. }), "{got:?}");
    server.send(b"here").unwrap();
    let back = client.receive(&mut [0; 64], AGAIN).unwrap();
    let answered = matches!(back, Received::Message { length: 4, .. });
    assert!(answered || matches!(back, Received::Nothing { .. }), "{back:?}");
    answered
}

/// Frames that are more than a tap's ring holds.
const FLOOD: u64 = 9_000;

#[test]
fn a_tap_sees_frames_both_ways_and_counts_those_that_its_ring_had_no_room_for() {
    let Some(private) = Private::new() else { return };
    private.inside(|| {
        let [mut near, mut far] = ["near", "far"].map(|name| TapRing::open(name).unwrap());
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        socket.set_broadcast(true).unwrap();
        let planted = [0x5a; 100];
        // Until so many were seen or dropped.
        let of_near = |tap: &mut TapRing, sent, wanted: u64| {
            let (mut seen, mut all, mut dropped) = (0, 0, 0);
            let until = clock_ns(Clock::Monotonic) + 60_000_000_000;
            while seen + dropped < wanted {
                assert!(clock_ns(Clock::Monotonic) < until, "{seen} {all} {dropped}");
                let each = &mut |frame: &Tapped<'_>| {
                    all += 1;
                    if frame.bytes.ends_with(&planted) {
                        seen += 1;
                        assert_eq!((frame.outgoing, frame.length), (sent, 142));
                        assert!(frame.at.0 > 1_600_000_000_000_000_000, "since 1970");
                    }
                };
                tap.take(Nanos(100_000_000), each).unwrap();
                dropped = tap.dropped().unwrap();
            }
            (seen, all, dropped)
        };
        for _ in 0..3 {
            socket.send_to(&planted, "198.18.0.255:9").unwrap();
        }
        let told = |(seen, _, dropped)| (seen, dropped);
        assert_eq!(told(of_near(&mut near, true, 3)), (3, 0));
        assert_eq!(told(of_near(&mut far, false, 3)), (3, 0));
        for _ in 0..FLOOD {
            socket.send_to(&planted, "198.18.0.255:9").unwrap();
        }
        let (seen, all, dropped) = of_near(&mut near, true, FLOOD);
        assert!(dropped > 0 && seen < FLOOD, "{dropped} {seen}");
        // What the kernel says by itself may be among them.
        assert!((FLOOD..FLOOD + 100).contains(&(all + dropped)), "{all} {dropped}");
    });
}
