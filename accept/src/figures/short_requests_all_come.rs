//! Requests of the shortest messages: of a thousand a second each comes once and is answered, by every kind
//! of port.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needed;
use crate::program::recorded;
use crate::requests::{Bed, flow};

/// The shortest, and the longest compact one.
const SIZES: [u64; 2] = [18, 23];
const SHORT: &str = "--rate 1kpps --duration 300ms --warmup 50ms --no-trace";

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "short_requests_all_come",
    method: "300 requests of 18 and of 23 bytes by every kind of port, a thousand a second",
    rows: &[
        row("received of those sent, by packet through a bed"),
        row("received of those sent, by xdp through a bed"),
        row("received of those sent, by udp through a bed"),
        row("received of those sent, by udp"),
        row("received of those sent, by tcp"),
        row("received of those sent, by unix"),
    ],
    rounds: 1,
    seconds: 10.0,
    most_taken: None,
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let bed = Bed::up_as("short", "bridge").expect("a bed");
    let across = |port: &str| format!("--bed {} --across --port {port} --wait spin", bed.0);
    let ways = ["packet", "xdp", "udp"].map(across).into_iter();
    let ways = ways.chain(["udp", "tcp", "unix"].map(|port| format!("--port {port}")));
    Ok(ways.map(|way| came(&way)).collect())
}

fn came(way: &str) -> Reading {
    let (mut hits, mut of) = (0, 0);
    for size in SIZES {
        let recorded = recorded(&format!("rtt {way} --size {size} {SHORT}"));
        let packets = flow(&recorded.run).packets;
        assert!(packets.add_up() && packets.sent > 0, "{way}: {packets:?}");
        assert_eq!((packets.duplicates, packets.foreign), (0, 0), "{way}: {packets:?}");
        hits += packets.received;
        of += packets.sent;
    }
    Reading::Share { hits, of }
}
