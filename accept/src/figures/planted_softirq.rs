//! A softirq that others keep busy at the server's end: which requests wait behind it, and how long.

use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::CpuId;
use whylate_model::breakdown::{Part, Point, Station};

use super::planted_server_delay::LOOKING;
use crate::foreign::at;
use crate::looked::{Looked, look, median};
use crate::needed;
use crate::plant::{
    self,
    datagrams::{Flood, heavy},
};
use crate::requests::Bed;
use crate::softirq::{Traced, Waits, waited};

/// Between datagrams, in the mean.
const APART: Duration = Duration::from_micros(3_100);
/// Fewer requests behind the softirq tell nothing.
const LEAST_BEHIND: u64 = 10;

const fn row(claim: &'static str, unit: &'static str, bound: Bound) -> Row {
    Row { claim, unit, bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "planted_softirq",
    method: "requests through a bed beside datagrams that keep the softirq of the server's CPU busy, against \
             that softirq's entries and exits by the kernel",
    rows: &[
        row("waited between the drivers, over those expected", "ratio", Bound::Within(0.4, 2.0)),
        row("waited there without datagrams, over those", "ratio", Bound::AtMost(0.2)),
        row("waited before the driver, over those", "ratio", Bound::AtMost(0.3)),
        row("few waited for longer than two datagrams", "rounds", Bound::Always),
        row("requests with both points", "share", Bound::AtLeast(0.5)),
        row("arrived when the softirq was over", "share", Bound::AtLeast(0.9)),
        row("few others waited for long", "rounds", Bound::Always),
        row("waited for long without, over those behind it", "ratio", Bound::AtMost(0.2)),
    ],
    rounds: 7,
    seconds: 7.5,
    most_taken: Some(0.05),
    needs: || needed::traced(&["ip", "python3"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let seat = plant::seat();
    let bed = plant::bed("softirq")?;
    let _heavy = heavy(&bed, seat.client);
    let traced = Traced::begin().ok_or("the kernel's tracing cannot be had")?;
    let words = format!(
        "--bed {} {LOOKING} {seat} --fifo 50 --rate 300pps \
         --duration 1s --warmup 100ms",
        bed.0
    );
    // First the sender's CPU takes datagrams in itself, which shows how long that takes; then the
    // server's CPU, behind whose back requests wait.
    steer(&bed, None);
    let mut flood = Flood::ready(&bed, seat.client, APART);
    steer(&bed, Some(seat.other));
    traced.taken(seat.other)?;
    let quiet = look(&words);
    let taken_quietly = traced.taken(seat.other)?;
    flood.begin();
    let busy = look(&words);
    let each = flood.each.as_nanos() as f64;
    let a_second = flood.end();
    let taken = traced.taken(seat.other)?;
    let way = there(Station::Driver, Station::Arrived);
    let mut readings = behind(&quiet, &busy, each, a_second);
    let waits = waited((&quiet, &taken_quietly), (&busy, &taken), way, each);
    if waits.planted < LEAST_BEHIND {
        return Err(format!("{} requests came while a datagram was taken in", waits.planted));
    }
    readings.extend(as_the_kernel_says(waits));
    Ok(readings)
}

fn there(from: Station, to: Station) -> Part {
    Part { from: Point::there(from), to: Point::there(to) }
}

/// What arrives at the server's end is taken in by this CPU; none: by that of the sender.
fn steer(bed: &Bed, cpu: Option<CpuId>) {
    let mask = cpu.map_or(0, |cpu| 1_u64 << cpu.0);
    let queue = "/sys/class/net/server0/queues/rx-0/rps_cpus";
    at(bed, "server", &["sh", "-c", &format!("echo {mask:x} > {queue}")]);
}

/// Of requests that are sent without regard to them, those wait that come while a datagram is taken in:
/// for more than a quarter of its time, three quarters of these.
fn behind(quiet: &Looked, busy: &Looked, each: f64, a_second: f64) -> Vec<Reading> {
    let expected = a_second * 0.75 * each / 1e9;
    let share = |of: &Looked, part: Part| {
        let times = of.times(part);
        let usual = median(quiet.times(part));
        let late = times.iter().filter(|ns| **ns - usual > each / 4.0).count();
        late as f64 / times.len().max(1) as f64
    };
    let way = there(Station::Driver, Station::Arrived);
    let sending = there(Station::Sent, Station::Driver);
    let (before, now, sent) = (share(quiet, way), share(busy, way), share(busy, sending));
    let times = busy.times(way);
    let longest = times.iter().filter(|ns| **ns > 2.0 * each).count() as f64;
    let all = busy.journeys.len();
    let [now_over, before_over, sent_over] =
        [now, before, sent].map(|share| Reading::Value(share / expected));
    let bounded = Reading::held(longest <= 0.1 * now * all as f64 + 2.0);
    let both = Reading::Share { hits: times.len() as u64, of: all as u64 };
    vec![now_over, before_over, sent_over, bounded, both]
}

fn as_the_kernel_says(waits: Waits) -> [Reading; 3] {
    [
        Reading::Share { hits: waits.right, of: waits.planted },
        Reading::held(waits.others <= 0.1 * waits.expected + 2.0),
        Reading::Value(waits.before / waits.expected),
    ]
}
