//! A tap between two ends whose kernels stamp: what it sees lies between their stamps.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::breakdown::{Breakdown, Station};
use whylate_model::tap::{TapBetween, TapFacts};

use super::fewest;
use crate::elsewhere::{Elsewhere, Format};
use crate::needed;
use crate::needs;
use crate::program::{Recorded, record_ending, recorded};
use crate::requests::{Bed, flow};

const AGREES: Bound = Bound::AtLeast(0.99);
const MOST: Bound = Bound::AtLeast(0.9);

const fn row(claim: &'static str, bound: Bound) -> Row {
    Row { claim, unit: "share", bound }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "tap_between_stamps",
    method: "requests that a bed's tap sees between the stamps of both ends; of several kinds of bed, ports \
             and sides the one that has fewest",
    rows: &[
        row("direct or by a bridge: agree, of those compared", AGREES),
        row("direct or by a bridge: compared", MOST),
        row("by Open vSwitch: agree, of those compared", AGREES),
        row("by Open vSwitch: compared", MOST),
        row("of a file that is written meanwhile: agree", AGREES),
        row("of a file that is written meanwhile: compared", MOST),
        row("of a file, also cut or by its own clock: paired", MOST),
        row("one in ten stamped: compared with arrivals", MOST),
        row("one in ten stamped: compared with the driver", Bound::AtMost(0.2)),
        row("one in ten stamped: agree", AGREES),
    ],
    rounds: 2,
    seconds: 20.0,
    most_taken: Some(0.05),
    needs: || needed::as_root(&["ip", "tc"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let mut usual = Between::default();
    for kind in ["direct", "bridge"] {
        let bed = bed(kind)?;
        usual.add(&tapped(&bed, "--port udp"));
        usual.add(&tapped(&bed, "--port tcp"));
    }
    let mut readings = usual.readings().to_vec();
    if let Err(why) = needs::can_run("ovs-vswitchd") {
        readings.extend([Reading::Absent(why.clone()), Reading::Absent(why)]);
    } else {
        let (bed, mut switched) = (bed("ovs")?, Between::default());
        switched.add(&tapped(&bed, "--port udp"));
        switched.add(&tapped(&bed, "--port tcp"));
        readings.extend(switched.readings());
    }
    let bed = bed("bridge")?;
    readings.extend(by_files(&bed));
    readings.extend(one_in_ten(&tapped(&bed, "--stamp-every 10")));
    Ok(readings)
}

fn bed(kind: &str) -> Result<Bed, String> {
    let bed = Bed::up_as(&format!("between-{kind}"), &format!("{kind} --tap"));
    bed.ok_or_else(|| "there is no bed".to_owned())
}

const RUN: &str = "--rate 1kpps --duration 400ms --warmup 100ms --wait block --no-trace";

fn tapped(bed: &Bed, words: &str) -> Recorded {
    recorded(&format!("rtt --bed {} {RUN} --breakdown=stamps,told,tap {words}", bed.0))
}

fn breakdown(recorded: &Recorded) -> &Breakdown {
    flow(&recorded.run).breakdown.as_deref().expect("requests were taken apart")
}

fn facts(recorded: &Recorded) -> &TapFacts {
    breakdown(recorded).tap.as_deref().expect("a tap was read")
}

fn between(recorded: &Recorded) -> &TapBetween {
    facts(recorded).between.as_ref().expect("a tap and stamps")
}

/// What agrees of what was compared.
fn agree(between: &TapBetween) -> (u64, u64) {
    (between.agree, between.agree + between.disagree)
}

/// Runs, with their sides.
#[derive(Default)]
struct Between {
    agree: Vec<(u64, u64)>,
    compared: Vec<(u64, u64)>,
}

impl Between {
    fn add(&mut self, recorded: &Recorded) {
        let between = between(recorded);
        self.agree.push(agree(between));
        let requests = breakdown(recorded).requests;
        self.compared.extend(between.sides.iter().map(|side| (side.compared, requests)));
    }

    fn readings(self) -> [Reading; 2] {
        [fewest(self.agree), fewest(self.compared)]
    }
}

/// Somebody else's tap, in its formats: whole, by a clock of its own, and cut.
fn by_files(bed: &Bed) -> Vec<Reading> {
    let (mut whole, mut paired) = (Between::default(), Vec::new());
    for (format, held_back, port, clock) in [
        (Format::Pcap, 0, "udp", "system"),
        (Format::Erf, 0, "udp", "system"),
        (Format::Pcap, 0, "tcp", "system"),
        (Format::Erf, 0, "udp", "own"),
        (Format::Pcap, 10, "udp", "system"),
        (Format::Erf, 10, "udp", "system"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let path = format.file(home.path());
        let tap = Elsewhere::start(bed, format, &path, held_back);
        let words = format!(
            "rtt --bed {} {RUN} --breakdown=stamps,told --tap {} --port {port} --tap-clock {clock}",
            bed.0,
            path.display()
        );
        // What is cut is no part of the noise.
        let recorded = if held_back == 0 { recorded(&words) } else { record_ending(&words, &[4]) };
        drop(tap);
        paired.push((facts(&recorded).counts.paired, breakdown(&recorded).requests));
        if held_back == 0 && clock == "system" {
            whole.add(&recorded);
        }
    }
    let mut readings = whole.readings().to_vec();
    readings.push(fewest(paired));
    readings
}

/// What was received is stamped whoever asks; of what was sent, a tenth.
fn one_in_ten(recorded: &Recorded) -> [Reading; 3] {
    let (of, between) = (breakdown(recorded), between(recorded));
    let [driver, arrived, ..] = &between.sides[..] else { panic!("{between:#?}") };
    assert_eq!((driver.stamp, arrived.stamp), (Station::Driver, Station::Arrived));
    [
        fewest([(arrived.compared, of.requests)]),
        fewest([(driver.compared, arrived.compared)]),
        fewest([agree(between)]),
    ]
}
