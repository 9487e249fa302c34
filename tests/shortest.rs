//! The shortest frames of Ethernet: on the wire they are as long as is told, and requests as short as theirs
//! are accounted for by every kind of socket. A tap of the test's own looks on, inside a bed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use whylate_model::Nanos;
use whylate_model::breakdown::Leg;
use whylate_model::flow::Packets;
use whylate_net::Speaks;
use whylate_net::lab;
use whylate_net::protocol::tap::reader;
use whylate_port::packet::tap::{TapRing, Tapped};

use crate::needs;
use crate::program::{self, Recorded, recorded};
use crate::requests::{Bed, flow};

/// Enough to see that everything comes, in a fraction of a second.
const SHORT: &str = "--rate 1kpps --duration 100ms --warmup 20ms --no-trace";
/// Bytes before a message: Ethernet 14, IPv4 20, UDP 8. A tap does not see the check sequence, of 4.
const BEFORE: usize = 14 + 20 + 8;
const UDP: u8 = 17;

/// How many frames with measured messages passed, by their length without a check sequence.
type Lengths = BTreeMap<u32, u64>;

/// What a tap saw of requests and replies, and how many frames it had no room for.
struct Passed {
    requests: Lengths,
    replies: Lengths,
    unseen: u64,
}

impl Passed {
    /// These are of one length alone, and as many as were sent where all that was sent came and was seen.
    fn are(&self, lengths: &Lengths, bytes: u32, packets: &Packets, what: &str) {
        let lengths: Vec<(u32, u64)> = lengths.iter().map(|(bytes, n)| (*bytes, *n)).collect();
        let [(length, passed)] = lengths[..] else { panic!("{what}: {lengths:?}") };
        assert_eq!(length, bytes, "{what}");
        assert!(passed <= packets.sent, "{what}: {passed} passed, {packets:?}");
        assert!(passed + self.unseen >= packets.received, "{what}: {passed} passed, {packets:?}");
    }
}

/// Ends a tap, whatever happens before.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Counts a frame that holds a measured message of ours.
fn count(frame: &Tapped<'_>, (requests, replies): &mut (Lengths, Lengths)) {
    let is_udp = frame.bytes.get(12..14) == Some(&[8, 0][..]) && frame.bytes.get(23) == Some(&UDP);
    let message = frame.bytes.get(BEFORE..).filter(|_| is_udp);
    let Some(heading) = message.and_then(reader(Speaks::Raw, None)) else {
        return;
    };
    if heading.number.is_some() {
        let lengths = if heading.leg == Leg::Request { requests } else { replies };
        *lengths.entry(frame.length).or_default() += 1;
    }
}

/// Takes what has come by, and waits for the first for so long.
fn take(ring: &mut TapRing, limit: Nanos, passed: &mut (Lengths, Lengths)) {
    let mut each = |frame: &Tapped<'_>| count(frame, passed);
    ring.take(limit, &mut each).unwrap();
}

/// What passed the client's port of the bed's device meanwhile: requests and replies.
fn passing(bed: &Bed, measure: impl FnOnce() -> Recorded) -> (Recorded, Passed) {
    let stop = AtomicBool::new(false);
    let (ready, is_ready) = channel();
    thread::scope(|scope| {
        let stop = &stop;
        let tap = scope.spawn(move || {
            lab::Bed::open(&bed.0).unwrap().enter(lab::Role::Device).unwrap();
            let mut ring = TapRing::open("to-client").unwrap();
            ready.send(()).unwrap();
            let mut passed = (Lengths::new(), Lengths::new());
            while !stop.load(Ordering::Relaxed) {
                take(&mut ring, Nanos(10_000_000), &mut passed);
            }
            // What came since the last look.
            take(&mut ring, Nanos(0), &mut passed);
            Passed { requests: passed.0, replies: passed.1, unseen: ring.dropped().unwrap() }
        });
        is_ready.recv().unwrap();
        let stopping = Stopping(stop);
        let recorded = measure();
        drop(stopping);
        (recorded, tap.join().unwrap())
    })
}

/// Something came of what was sent, once each, and the account says so.
fn accounted(recorded: &Recorded, size: u32, what: &str) -> Packets {
    let of = flow(&recorded.run);
    assert!(of.packets.add_up() && of.packets.received > 0, "{what}: {:?}", of.packets);
    assert_eq!((of.packets.duplicates, of.packets.foreign), (0, 0), "{what}");
    assert_eq!(of.asked.bytes, size, "{what}");
    of.packets
}

#[test]
fn frames_of_64_bytes_are_as_long_on_the_wire_by_every_kind_of_port() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up_as("wire", "bridge") else { return };
    for port in needs::offered(["packet", "xdp", "udp"]) {
        // The shortest, one more, the longest compact one, and the shortest that is none.
        for size in [18, 19, 23, 24] {
            let what = format!("{port} {size}");
            let words = format!(
                "rtt --bed {} --across --port {port} --wait spin --size {size} {SHORT}",
                bed.0
            );
            let (recorded, passed) = passing(&bed, || recorded(&words));
            let packets = accounted(&recorded, size, &what);
            let bytes = size + BEFORE as u32;
            passed.are(&passed.requests, bytes, &packets, &what);
            assert_eq!(passed.replies, Lengths::new(), "{what}");
            let told = flow(&recorded.run).asked.frame_bytes;
            assert_eq!(told, Some(bytes + 4), "{what}: with its check sequence");
        }
    }
}

#[test]
fn replies_are_as_short_as_their_requests_on_the_wire() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up_as("back", "bridge") else { return };
    let words = format!("rtt --bed {} --port udp --size 18 {SHORT}", bed.0);
    let (recorded, passed) = passing(&bed, || recorded(&words));
    let packets = accounted(&recorded, 18, "udp");
    passed.are(&passed.requests, 60, &packets, "requests");
    passed.are(&passed.replies, 60, &packets, "replies");
}

#[test]
fn requests_of_18_bytes_are_accounted_for_by_every_kind_of_socket() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    for port in ["udp", "tcp", "unix"] {
        for size in [18, 23] {
            let what = format!("{port} {size}");
            let words = format!("rtt --port {port} --size {size} {SHORT}");
            let recorded = recorded(&words);
            let packets = accounted(&recorded, size, &what);
            // Its own account is a message as any other.
            if let Some(other) = flow(&recorded.run).other_end.as_ref() {
                let answered = packets.received..=packets.sent;
                assert!(answered.contains(&other.answered), "{what}: {other:?} {packets:?}");
                assert_eq!(other.foreign, 0, "{what}");
            }
        }
    }
}
