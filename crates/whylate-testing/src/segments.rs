//! Requests and replies that share a segment of TCP, and such as need several: runs in which they do.

use std::time::Duration;

use whylate_model::breakdown::{Breakdown, CountedStamps};

use crate::foreign::{Foreign, at, python};
use crate::needs;
use crate::program::{Recorded, recorded, recorded_but_for};
use crate::requests::Bed;

/// A server of streams: answers all that came at once in one segment, or each in two, or leaves after so
/// many.
const SERVER: &str = r#"
import os, socket, sys, threading, time
how, most, cpu = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, {cpu})
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listening.bind(("127.0.0.1", 0))
listening.listen(8)
print(listening.getsockname()[1], flush=True)
def serve(s):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    held, answered = b"", 0
    while answered < most:
        if how == "merge":
            time.sleep(0.002)
        more = s.recv(65536)
        if not more:
            return
        held += more
        replies = []
        while len(held) >= 24 and len(held) >= int.from_bytes(held[6:8], "big"):
            length = int.from_bytes(held[6:8], "big")
            m, held = held[:length], held[length:]
            if m[5] in (1, 3, 5):
                replies.append(m[:5] + bytes([m[5] + 1]) + m[6:])
        replies = replies[:most - answered]
        if how == "split":
            for reply in replies:
                s.sendall(reply[:30])
                time.sleep(0.0003)
                s.sendall(reply[30:])
        elif replies:
            s.sendall(b"".join(replies))
        answered += len(replies)
    os._exit(0)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"#;

/// Requests of a recording that is not cut short are answered so often.
pub const NEVER: u32 = u32::MAX;

/// A run against such a server, where this machine can look.
pub fn against(how: &str, most: u32, words: &str) -> Option<Recorded> {
    let cpus = needs::cpus(2)?;
    if !needs::root() || needs::tracefs().is_none() {
        return None;
    }
    let words_of_server = [how.to_owned(), most.to_string(), cpus[0].to_string()];
    let mut server = Foreign::start(python()?, SERVER, &words_of_server);
    let port = server.line();
    let words = format!(
        "rtt 127.0.0.1:{port} --port tcp --wait block --breakdown=stamps,trace --cpus {} --warmup 100ms \
         --timeout 300ms {words}",
        cpus[1]
    );
    // A server that leaves ends the client, too.
    let planted: &[&str] = if most == NEVER { &[] } else { &[" ended before its time: "] };
    let recorded = recorded_but_for(&words, planted);
    // A moment for its own end, where it has one.
    std::thread::sleep(Duration::from_millis(20));
    Some(recorded)
}

/// Requests that are written at once: more than a new connection may have under way.
pub const AT_ONCE: u32 = 32;

/// A run through a slow link: what is written while it is busy with what was written before is put into
/// one segment.
pub fn over_a_slow_link() -> Option<Recorded> {
    needs::program("tc")?;
    let bed = Bed::up("merged")?;
    let slow = "tc qdisc replace dev client0 root tbf rate 4mbit burst 1600b limit 100kb";
    at(&bed, "client", &slow.split(' ').collect::<Vec<_>>());
    Some(recorded(&format!(
        "rtt --bed {} --port tcp --wait block --no-trace --breakdown=stamps,told --size 400 \
         --arrivals burst({AT_ONCE}) --rate 64pps --duration 1s --warmup 500ms",
        bed.0
    )))
}

/// Longer than two segments of Ethernet, and no longer than three.
pub const LONG: u32 = 4_000;

/// A bed of this kind in which no segment is left to be cut by a card that does not exist.
pub fn bed_that_cuts(what: &str, kind: &str) -> Option<Bed> {
    let bed = Bed::up_as(what, kind)?;
    for (end, device) in [("client", "client0"), ("server", "server0")] {
        at(&bed, end, &["ip", "link", "set", "dev", device, "gso_max_segs", "1"]);
    }
    Some(bed)
}

/// A run of such requests through a bed with a tap.
pub fn of_several_segments() -> Option<Recorded> {
    let bed = bed_that_cuts("cut", "bridge --tap")?;
    Some(recorded(&format!(
        "rtt --bed {} --port tcp --wait block --no-trace --breakdown=stamps,told,tap --size {LONG} \
         --rate 500pps --duration 300ms --warmup 100ms",
        bed.0
    )))
}

/// The same by stamps and the trace.
pub fn of_several_segments_by_both() -> Option<Recorded> {
    let bed = bed_that_cuts("pieces", "direct")?;
    Some(recorded(&format!(
        "rtt --bed {} --port tcp --wait block --breakdown --size {LONG} --rate 500pps \
         --duration 300ms --warmup 100ms",
        bed.0
    )))
}

/// Stamps of what the client sends, by the kinds that parts are made of.
pub fn stamps_of_sendings(of: &Breakdown) -> Vec<&CountedStamps> {
    let wanted = |stamps: &&CountedStamps| ["tx sched", "tx software"].contains(&&*stamps.stamp);
    let stamps: Vec<_> = of.stamps.iter().filter(wanted).collect();
    assert_eq!(stamps.len(), 2, "{:#?}", of.stamps);
    for stamps in &stamps {
        assert!(stamps.adds_up(), "{stamps:?}");
    }
    stamps
}
