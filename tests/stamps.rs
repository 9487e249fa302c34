//! The kernel's stamps of a run, kind by kind: what is taken and never comes is told, all counts close,
//! and requests are taken apart by what is left. Beside it a program in another language that asks the
//! same kernel for the same stamps.

use std::collections::BTreeSet;
use std::process::Command;

use whylate_model::breakdown::{
    Breakdown, CountedStamps, PartShare, Point, Probed, Source, Station,
};

use crate::foreign::{Foreign, python, python_in};
use crate::one_end::whose_server_is_elsewhere;
use crate::program::{self, Recorded, recorded, said};
use crate::requests::{Bed, flow};
use crate::wall::Wall;

/// Every kind that there is, in the order in which they are told.
const KINDS: [&str; 7] = [
    "tx sched",
    "tx software",
    "tx hardware",
    "tx ack",
    "tx completion",
    "rx software",
    "rx hardware",
];
/// Those that parts are made of.
const USED: [&str; 3] = ["tx sched", "tx software", "rx software"];

/// A short run that is taken apart by stamps and what the other end tells.
fn stamped(words: &str) -> Recorded {
    recorded(&format!(
        "rtt --rate 1kpps --duration 300ms --warmup 100ms --wait block --no-trace \
         --breakdown=stamps,told {words}"
    ))
}

fn breakdown(recorded: &Recorded) -> &Breakdown {
    flow(&recorded.run).breakdown.as_deref().expect("requests were taken apart")
}

/// Every kind was probed: refused with a reason, or sent for, and then what is missing has its reason.
fn probes_close(of: &Breakdown) {
    let kinds: Vec<&str> = of.probes.iter().map(|probed| &*probed.stamp).collect();
    assert_eq!(kinds, KINDS);
    for probed in &of.probes {
        let Probed { accepted, sent, delivered, reason, .. } = probed;
        if *accepted {
            assert!(*sent > 0 && delivered <= sent, "{probed:?}");
            // Or why the measurement does not ask for it.
            assert!(reason.is_some() || delivered == sent, "{probed:?}");
        } else {
            assert!((*sent, *delivered) == (0, 0) && reason.is_some(), "{probed:?}");
        }
    }
}

/// Of the measurement: each that was asked for came or is missing, and some came.
fn counts_close(recorded: &Recorded) {
    let of = breakdown(recorded);
    let kinds: Vec<&str> = of.stamps.iter().map(|stamps| &*stamps.stamp).collect();
    assert_eq!(kinds, USED);
    let packets = &flow(&recorded.run).packets;
    for stamps in &of.stamps {
        assert!(stamps.adds_up(), "{stamps:?}");
        let CountedStamps { asked, came, merged, .. } = *stamps;
        // What came of a stream in one read has one stamp, and is counted by it.
        let (messages, told) = if stamps.stamp.starts_with("tx") {
            (packets.sent, came)
        } else {
            (packets.received, came + merged)
        };
        assert!(asked >= messages && told > 0, "{stamps:?} {packets:?}");
    }
    // The same at the other end, which tells of each request that it answered.
    let kinds: Vec<&str> = of.far_stamps.iter().map(|stamps| &*stamps.stamp).collect();
    assert_eq!(kinds, USED);
    for stamps in &of.far_stamps {
        assert!(stamps.adds_up() && stamps.asked > 0 && stamps.came > 0, "{stamps:?}");
    }
}

/// No card is there: its stamps are taken, never come, and no part is made of them.
fn cards_stamps_never_come(recorded: &Recorded) {
    let of = breakdown(recorded);
    for kind in ["tx hardware", "rx hardware"] {
        let probed = of.probes.iter().find(|probed| probed.stamp == kind).expect("probed");
        assert!(probed.accepted && probed.delivered == 0, "{probed:?}");
        assert!(
            probed.reason.as_ref().is_some_and(|why| why.starts_with("hardware: not present")),
            "{probed:?}"
        );
    }
    assert!(of.points.iter().all(|facts| facts.source != Source::Hardware), "{:#?}", of.points);
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "stamps that the kernel takes and never delivers: tx hardware",
        "hardware: not present",
        "Stamps of the measurement",
    ] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

/// The parts sum to the whole, by the stamps that came.
fn goes_on(recorded: &Recorded) {
    let of = breakdown(recorded);
    assert!(of.requests > 0, "{of:?}");
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum + of.all.residual_ns - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
    for point in [Point::there(Station::Driver), Point::back(Station::Arrived)] {
        let by_stamp = |facts: &&whylate_model::breakdown::PointFacts| {
            (facts.point, facts.source) == (point, Source::Software)
        };
        let facts = of.points.iter().find(by_stamp).expect("it was asked for");
        assert!(facts.came > 0, "{facts:?} of {}", of.requests);
    }
}

#[test]
fn stamps_that_are_taken_and_never_come_are_told_by_kind_and_requests_are_taken_apart_by_the_rest()
{
    let _alone = program::alone();
    for port in ["udp", "tcp"] {
        let recorded = stamped(&format!("--port {port}"));
        probes_close(breakdown(&recorded));
        counts_close(&recorded);
        cards_stamps_never_come(&recorded);
        goes_on(&recorded);
        // That the other end has it is told of streams alone.
        let all = &breakdown(&recorded).probes;
        let ack = all.iter().find(|probed| probed.stamp == "tx ack").expect("probed");
        assert_eq!(ack.delivered > 0, port == "tcp", "{ack:?}");
    }
}

#[test]
fn over_a_bed_the_same_kinds_never_come_and_are_told() {
    let _alone = program::alone();
    let Some(bed) = Bed::up("stamps") else { return };
    let recorded = stamped(&format!("--bed {}", bed.0));
    probes_close(breakdown(&recorded));
    counts_close(&recorded);
    cards_stamps_never_come(&recorded);
    goes_on(&recorded);
}

#[test]
fn of_a_server_on_another_host_nothing_is_told_and_the_way_there_and_back_is_one_part() {
    let _alone = program::alone();
    let Some(run) = whose_server_is_elsewhere() else { return };
    let of = flow(&run).breakdown.as_deref().expect("requests were taken apart");
    assert!(of.requests > 0 && of.far_stamps.is_empty(), "{of:#?}");
    let (left, came) = (Point::there(Station::Driver), Point::back(Station::Arrived));
    for facts in &of.points {
        assert!(facts.point <= left || facts.point >= came, "of the other end: {facts:?}");
    }
    let crossing = |part: &&PartShare| (part.part.from, part.part.to) == (left, came);
    let way = of.all.parts.iter().find(crossing).unwrap_or_else(|| panic!("{:#?}", of.all));
    assert!(way.requests > 0 && way.requests <= of.requests, "{way:?} of {}", of.requests);
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum + of.all.residual_ns - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
}

/// Asks for each kind of stamp alone and for two together, sends datagrams to nobody or as much by a stream to
/// itself, which comes back, and tells what came by the error queue, in its order: number, kind and time of each.
const ASKS_THE_KERNEL: &str = r#"
import socket, struct, sys, threading, time
to, messages, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
listening = socket.socket()
listening.bind(("", 0))
listening.listen(8)
def echo(c):
    while m := c.recv(4096):
        c.sendall(m)
def accept():
    while True:
        threading.Thread(target=echo, args=(listening.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
def opened():
    if how == "udp":
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s = socket.create_connection((to, listening.getsockname()[1]))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
kinds = [("tx sched", 1 << 8), ("tx software", 1 << 1), ("tx hardware", 1 << 0 | 1 << 6),
         ("tx ack", 1 << 9), ("tx completion", 1 << 18), ("both", 1 << 8 | 1 << 1)]
for name, flags in kinds:
    s = opened()
    try:
        s.setsockopt(socket.SOL_SOCKET, 37, flags | 1 << 4 | 1 << 7 | 1 << 11)
    except OSError:
        print(name + ":refused", flush=True)
        continue
    for _ in range(messages):
        if how == "udp":
            s.sendto(b"x" * 64, (to, 9))
        else:
            s.sendall(b"x" * 64)
        time.sleep(0.001)
    time.sleep(0.05)
    came, due, end = [], messages * (2 if name == "both" else 1), time.monotonic() + 60
    # A segment that is sent again is stamped again.
    while len({one.rsplit("/", 1)[0] for one in came}) < due:
        try:
            beside = s.recvmsg(64, 512, 0x2000 | socket.MSG_DONTWAIT)[1]
        except BlockingIOError:
            # Of a kind that never comes not even the first does.
            if not came or time.monotonic() > end:
                break
            time.sleep(0.01)
            continue
        at, of = 0, None
        for level, kind, data in beside:
            if (level, kind) == (socket.SOL_SOCKET, 37):
                at = max(second * 10**9 + ns for second, ns in struct.iter_unpack("qq", data[:48]))
            elif (level, kind) == (0, 11) and data[4] == 4:
                of = struct.unpack_from("=II", data, 8)
        if of:
            came.append(f"{of[1]}/{of[0]}/{at}")
    print(name + ":" + " ".join(came), flush=True)
"#;
/// Datagrams of each.
const ASKED: u64 = 20;
/// Kinds as the kernel counts them.
const GIVEN_TO_THE_DRIVER: u64 = 0;
const QUEUED: u64 = 1;

/// What the kernel tells of itself of one kind: number, kind and time; none where it is refused.
type Told = Option<Vec<[u64; 3]>>;

fn kernels_own(python: Command, to: &str, how: &str) -> Vec<(String, Told)> {
    let words = [to.to_owned(), ASKED.to_string(), how.to_owned()];
    let mut program = Foreign::start(python, ASKS_THE_KERNEL, &words);
    let read = |line: String| {
        let (name, came) = line.split_once(':').unwrap();
        let stamp = |word: &str| {
            let numbers: Vec<u64> = word.split('/').map(|number| number.parse().unwrap()).collect();
            <[u64; 3]>::try_from(numbers).unwrap()
        };
        let told: Told = (came != "refused").then(|| came.split_whitespace().map(stamp).collect());
        (name.to_owned(), told)
    };
    (0..6).map(|_| read(program.line())).collect()
}

/// Each number once, as it came first: of a stream a segment that is sent again is stamped again.
fn first_of_each(told: &[[u64; 3]]) -> Vec<[u64; 3]> {
    let mut seen = BTreeSet::new();
    told.iter().filter(|[number, kind, _]| seen.insert((*number, *kind))).copied().collect()
}

/// A message is queued before it is given to the driver, and all of it before the next one; its times
/// stand in that order unless the clock was set meanwhile. Each datagram has a number, and of a stream each
/// message that of its last byte.
fn order_is_the_kernels((told, wall): (&Told, &Wall), number_of: impl Fn(u64) -> u64) {
    let came = first_of_each(told.as_ref().expect("it is taken where each of the two is"));
    let order: Vec<[u64; 2]> = came.iter().map(|[number, kind, _]| [*number, *kind]).collect();
    let expected = (0..ASKED)
        .map(number_of)
        .flat_map(|number| [[number, QUEUED], [number, GIVEN_TO_THE_DRIVER]]);
    assert_eq!(order, expected.collect::<Vec<_>>());
    assert!(came.iter().all(|[_, _, at]| *at > 0), "{came:?}");
    assert!(came.is_sorted_by_key(|[_, _, at]| *at) || wall.was_set(), "{came:?}");
}

/// What the probe of a run says of each kind of sending is what the kernel told another program.
fn matrix_is_the_kernels(recorded: &Recorded, own: &[(String, Told)]) {
    let probes = &breakdown(recorded).probes;
    for probed in probes.iter().filter(|probed| probed.stamp.starts_with("tx ")) {
        let own = own.iter().find(|(name, _)| *name == probed.stamp);
        let (_, told) = own.expect("every kind was asked for");
        assert_eq!(probed.accepted, told.is_some(), "{probed:?} {told:?}");
        let told = told.as_deref().map(first_of_each);
        let came = told.as_ref().map_or(0, |came| came.len() as u64);
        assert_eq!(probed.delivered > 0, came > 0, "{probed:?} {told:?}");
        let whole = probed.sent > 0 && probed.delivered == probed.sent;
        assert_eq!(whole, came == ASKED, "{probed:?} {told:?}");
        let numbers: Vec<u64> = told.iter().flatten().map(|[number, ..]| *number).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    }
}

#[test]
fn the_probes_matrix_is_what_the_kernel_tells_another_program_on_loopback_and_over_virtual_links() {
    let _alone = program::alone();
    let Some(here) = python() else { return };
    let wall = Wall::now();
    let own = kernels_own(here, "127.0.0.1", "udp");
    order_is_the_kernels((&own[5].1, &wall), |number| number);
    matrix_is_the_kernels(&stamped("--port udp"), &own);
    let Some(bed) = Bed::up("stamp-order") else { return };
    let Some(there) = python_in(&bed, "client") else { return };
    let wall = Wall::now();
    let own = kernels_own(there, "198.18.0.2", "udp");
    order_is_the_kernels((&own[5].1, &wall), |number| number);
    matrix_is_the_kernels(&stamped(&format!("--bed {}", bed.0)), &own);
}

/// Bytes of each message of the other program.
const EACH: u64 = 64;

#[test]
fn the_probes_matrix_of_a_stream_is_what_the_kernel_tells_another_program_by_bytes_and_acknowledgements()
 {
    let _alone = program::alone();
    let Some(here) = python() else { return };
    let wall = Wall::now();
    let own = kernels_own(here, "127.0.0.1", "tcp");
    order_is_the_kernels((&own[5].1, &wall), |number| EACH * number + EACH - 1);
    let acknowledged =
        own.iter().find(|(name, _)| name == "tx ack").and_then(|(_, told)| told.as_ref());
    let bytes: Vec<u64> =
        acknowledged.expect("it is taken").iter().map(|[byte, ..]| *byte).collect();
    let last_bytes: Vec<u64> = (1..=ASKED).map(|number| EACH * number - 1).collect();
    assert_eq!(bytes, last_bytes);
    matrix_is_the_kernels(&stamped("--port tcp"), &own);
}
