//! Taps of live beds, which are made and taken down here: everything is seen once, in its place, and
//! others read what was written.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use whylate_host::journal::Journal;
use whylate_model::breakdown::Leg;
use whylate_model::lab::BedKind;
use whylate_model::tap::TapCounts;
use whylate_net::lab::{self, Tap};
use whylate_net::protocol::{Answer, Phase};
use whylate_suite::{WallClock, absent, missing};

use super::*;

const REQUESTS: u64 = 200;
const BYTES: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

/// A bed, gone with this.
struct Named(String);

impl Named {
    fn up(what: &str, kind: BedKind) -> Option<Self> {
        let name = format!("r{}-{what}", std::process::id());
        let journal = Journal::open().unwrap();
        match lab::up(&journal, &name, kind, NonZeroU32::MIN, Tap::Between) {
            Ok(_) => Some(Self(name)),
            Err(refusal @ NetError::NoPrivilege(_)) => {
                missing(&refusal);
                None
            }
            Err(
                refusal
                @ (NetError::NoProgram { .. } | NetError::Program { .. } | NetError::Sys(_)),
            ) => {
                absent(&refusal);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn bed(&self) -> Bed {
        Bed::open(&self.0).unwrap()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = lab::down(&self.0);
    }
}

fn now() -> u64 {
    clock_ns(Clock::Realtime)
}

/// When each end had a request in its hands: before the client sent it, after the server received it,
/// before the server sent, after the client received.
type Hands = BTreeMap<u64, [u64; 4]>;

fn socket(bed: &Bed, role: Role) -> UdpSocket {
    bed.enter(role).unwrap();
    let socket = UdpSocket::bind((Bed::address(role), 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Answers so many messages.
fn serve(socket: &UdpSocket, messages: u64) -> Vec<[u64; 2]> {
    let mut buffer = [0; 2 * BYTES];
    let protocol = Speaks::Raw.with(Cookie(9));
    let times = (0..messages).map(|_| {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        let received = now();
        assert_eq!(protocol.answer(&mut buffer[..length]), Answer::Reply(Phase::Measured));
        let sent = now();
        socket.send_to(&buffer[..length], from).unwrap();
        [received, sent]
    });
    times.collect()
}

/// Sends requests one by one; the last one twice.
fn ask(socket: &UdpSocket, server: SocketAddr) -> Vec<[u64; 2]> {
    let protocol = Speaks::Raw.with(Cookie(9));
    let mut buffer = [0; BYTES];
    protocol.prepare(&mut buffer);
    let numbers = (0..REQUESTS).chain([REQUESTS - 1]);
    let times = numbers.map(|number| {
        protocol.number(Phase::Measured, number, &mut buffer);
        let mut reply = [0; BYTES];
        let sent = now();
        socket.send_to(&buffer, server).unwrap();
        socket.recv(&mut reply).unwrap();
        [sent, now()]
    });
    times.collect()
}

fn exchange(bed: &Bed) -> (SocketAddr, impl FnOnce() -> Hands) {
    let socket_in =
        |role| thread::scope(|scope| scope.spawn(move || socket(bed, role)).join().unwrap());
    let (client, server) = (socket_in(Role::Client), socket_in(Role::Server));
    let address = server.local_addr().unwrap();
    let run = move || {
        let serving = thread::spawn(move || serve(&server, REQUESTS + 1));
        let asked = ask(&client, address);
        let times = serving.join().unwrap();
        let both = asked.into_iter().zip(times).take(REQUESTS as usize);
        let hands = both.zip(0..).map(|(([sent, read], [received, answered]), number)| {
            (number, [sent, received, answered, read])
        });
        hands.collect()
    };
    (address, run)
}

fn instants(passed: &[Passed]) -> BTreeMap<(u64, Leg), u64> {
    passed.iter().map(|&(_, number, point, at)| ((number, point.leg), at.0)).collect()
}

/// What the crate pcap-parser reads of the file: times and lengths of its packets, and drops it tells.
fn read_by_another(file: &[u8]) -> (Vec<u64>, u64) {
    let mut reader = create_reader(1 << 17, file).unwrap();
    let (mut times, mut statistics) = (Vec::new(), 0);
    loop {
        match reader.next() {
            Ok((offset, found)) => {
                match found {
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        assert_eq!(interface.ts_resolution(), Some(1_000_000_000));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        times.push(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
                    }
                    PcapBlockOwned::NG(Block::InterfaceStatistics(_)) => statistics += 1,
                    _ => (),
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return (times, statistics),
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn the_tap_sees_all(kind: BedKind) {
    let Some(named) = Named::up(kind.name(), kind) else { return };
    let (bed, directory) = (named.bed(), tempfile::tempdir().unwrap());
    let (server, run) = exchange(&bed);
    let followed = Followed {
        settings: Settings::numbered(Some(server)),
        protocol: Speaks::Raw,
        cookie: Some(Cookie(9)),
    };
    let stranger = Followed { cookie: Some(Cookie(8)), ..followed };
    let flows = [followed, stranger];
    let mut tap = LiveTap::start(&bed, directory.path(), &flows).unwrap();
    let wall = WallClock::watched();
    let hands = run();
    let mut passed = Vec::new();
    tap.drain(&mut |one| passed.push(one));
    let finished = tap.finish(&mut |one| passed.push(one)).unwrap();
    assert_eq!((finished.untold, &finished.no_file), (0, &None));
    let [of, strangers] = &finished.flows[..] else { panic!("{finished:?}") };
    let expected = TapCounts {
        requests: REQUESTS,
        replies: REQUESTS,
        paired: REQUESTS,
        requests_twice: 1,
        replies_twice: 1,
        unread: of.facts.counts.unread,
        ..TapCounts::default()
    };
    assert_eq!(of.facts.counts, expected);
    assert_eq!((of.facts.lost, of.facts.clock), (0, TapClock::System));
    assert_eq!(strangers.facts.counts.foreign, 2 * (REQUESTS + 1));
    assert_eq!(strangers.facts.counts.requests + strangers.facts.counts.replies, 0);
    assert_eq!(passed.len() as u64, 2 * REQUESTS, "each of them once");
    let instants_live = instants(&passed);
    assert_eq!(of.distances.len(), REQUESTS);
    if wall.was_set() {
        absent("the system's clock, which all times are by, was set meanwhile");
    } else {
        for (number, [sent, received, answered, read]) in &hands {
            let request = instants_live[&(*number, Leg::Request)];
            let reply = instants_live[&(*number, Leg::Reply)];
            let way = [sent, &request, received, answered, &reply, read];
            assert!(way.is_sorted(), "request {number} of {kind:?}: {way:?}");
        }
        let longest = hands.values().map(|[sent, _, _, read]| read - sent).max();
        assert!(of.distances.max() <= longest, "{:?} {longest:?}", of.distances.max());
    }
    others_read(&directory.path().join(TAP_FILE), &flows, (&passed, &of.facts));
}

/// The file holds what was seen: by us, by an independent reader, and by tcpdump where it is.
fn others_read(path: &Path, flows: &[Followed], (passed, facts): (&[Passed], &TapFacts)) {
    let mut again = Vec::new();
    let (of_file, capture) =
        from_file(path, TapClock::System, flows, &mut |one| again.push(one)).unwrap();
    assert_eq!(again, passed);
    assert_eq!(of_file[0].facts.counts, facts.counts);
    assert_eq!((capture.packets, capture.was_cut, capture.lost), (facts.packets, false, 0));
    let (own, _) =
        from_file(path, TapClock::Own, flows, &mut |_| panic!("no clock of ours")).unwrap();
    assert_eq!(own[0].distances.len(), REQUESTS);
    let (times, statistics) = read_by_another(&std::fs::read(path).unwrap());
    assert_eq!((times.len() as u64, statistics), (facts.packets, 1));
    assert!(passed.iter().all(|(_, _, _, at)| times.contains(&at.0)));
    match Command::new("tcpdump").args(["-n", "-r"]).arg(path).output() {
        Ok(output) => {
            let lines = String::from_utf8_lossy(&output.stdout).lines().count();
            assert!(lines as u64 >= 2 * REQUESTS, "{lines}");
        }
        Err(_) => missing("tcpdump is not installed"),
    }
}

#[test]
fn the_tap_of_a_direct_bed_sees_every_message_once_between_its_ends() {
    the_tap_sees_all(BedKind::Direct);
}

#[test]
fn the_tap_of_a_bed_with_a_bridge_sees_every_message_once_between_its_ends() {
    the_tap_sees_all(BedKind::Bridge);
}

#[test]
fn the_tap_of_a_bed_with_a_switch_sees_every_message_once_between_its_ends() {
    the_tap_sees_all(BedKind::Ovs);
}

#[test]
fn a_file_whose_directory_is_not_there_is_refused_before_the_run() {
    assert!(checked(Path::new("tap.pcap")).is_ok());
    let error = checked(Path::new("/nowhere/at/all/tap.pcap")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}
