//! Shares of a fan-in are those of what is planted: weights at its one port, and what each port sends.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::device::{Device, FanIn};

use crate::between::Bed;
use crate::narrow;
use crate::needed;
use crate::program::{read, record_ending, said};

const WORDS: &str = "device --sizes 128 --rate 1kpps --rounds 2 --duration 500ms --warmup 50ms --no-throughput \
                     --fan-in-takes 10Mbit/s@L2";

pub(crate) const FIGURE: Figure = Figure {
    name: "device_fan_in",
    method: "shares at the one port of a bridge, of Open vSwitch and of what joins named ports, which serves \
             by weights 3 to 1 (to 1) or takes less than twice of one and once of two others",
    rows: &[
        Row { claim: "shares within 0.05 of weights", unit: "share", bound: Bound::Always },
        Row {
            claim: "fairness of 3 to 1 within 0.05 of 0.8",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row { claim: "half to who sends half, within 0.1", unit: "share", bound: Bound::Always },
        Row { claim: "less came than was sent", unit: "share", bound: Bound::Always },
        Row {
            claim: "a port that took all is told, no other",
            unit: "share",
            bound: Bound::Always,
        },
    ],
    rounds: 1,
    seconds: 58.0,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip", "tc", "ovs-vswitchd", "ovs-ofctl"]),
    round,
};

/// So many of so many.
#[derive(Default)]
struct Count(u64, u64);

impl Count {
    fn take(&mut self, held: bool) {
        self.0 += u64::from(held);
        self.1 += 1;
    }

    fn reading(&self) -> Reading {
        Reading::Share { hits: self.0, of: self.1 }
    }
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let [mut weights, mut halves, mut fewer, mut told] = [(); 4].map(|()| Count::default());
    let bridge = measured("--box bridge --fan-in 2 --fan-in-weights 3,1");
    let [pair] = &bridge.fan_in[..] else { panic!("{:?}", bridge.fan_in) };
    by_weights(pair, &[3, 1], &mut weights);
    fewer.take(is_fewer(pair));
    let fairness = pair.fairness().expect("shares");
    let sends = measured("--box bridge --fan-in 3 --fan-in-sends 2,1,1");
    halves.take(is_half(&sends));
    sends.fan_in.iter().for_each(|one| fewer.take(is_fewer(one)));
    let ovs = measured("--box ovs --fan-in 3 --fan-in-weights 3,1,1");
    let bed = Bed::asking().ok_or("no links in network namespaces here")?;
    if !narrow::bridge(&bed) {
        return Err("no bridges here".to_owned());
    }
    let narrow = named(&bed, "--fan-in-takes 10Mbit/s@L2");
    for of in [&ovs, &narrow] {
        let [a, b, c] = narrow::WEIGHTS;
        let planted: [&[u32]; 4] = [&[a, b], &[a, c], &[b, c], &[a, b, c]];
        assert_eq!(of.fan_in.len(), planted.len(), "{:?}", of.fan_in);
        for (one, of) in of.fan_in.iter().zip(planted) {
            by_weights(one, of, &mut weights);
            fewer.take(is_fewer(one));
        }
    }
    // Less than it takes: all of it comes, and shares are of what was sent.
    let wide = named(&bed, "--fan-in-takes 2Mbit/s@L2 --fan-in-sends 2,1,1");
    halves.take(is_half(&wide));
    told.take(!narrow.notes.iter().any(|note| note.contains("took all")));
    told.take(wide.notes.iter().any(|note| note.contains("d0 took all")));
    Ok(vec![
        weights.reading(),
        Reading::held((fairness - 0.8).abs() < 0.05),
        halves.reading(),
        fewer.reading(),
        told.reading(),
    ])
}

fn measured(words: &str) -> Device {
    *record_ending(&format!("{WORDS} {words}"), &[0, 4]).run.device.expect("a device")
}

fn named(bed: &Bed, words: &str) -> Device {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let output = narrow::measured(
        bed,
        (&format!("--rounds 2 {} {words}", narrow::PORTS), "500ms"),
        &directory,
    );
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    *read(&directory).device.expect("a device")
}

/// Each share within 0.05 of its weight's; those of all are one.
fn by_weights(one: &FanIn, weights: &[u32], within: &mut Count) {
    assert_eq!(one.sources.len(), weights.len(), "{one:?}");
    let all: u32 = weights.iter().sum();
    for (source, weight) in one.sources.iter().zip(weights) {
        let planted = f64::from(*weight) / f64::from(all);
        within.take((source.share - planted).abs() < 0.05);
    }
}

/// Does who sends twice as much as each of two others get half of it?
fn is_half(of: &Device) -> bool {
    let all = of.fan_in.last().expect("all of them");
    (all.sources[0].share - 0.5).abs() < 0.1
}

/// More was sent than the port takes, and less of all together came, but more than a few.
fn is_fewer(one: &FanIn) -> bool {
    let received: u64 = one.sources.iter().map(|source| source.received).sum();
    let sent: u64 = one.sources.iter().map(|source| source.sent).sum();
    assert_eq!(received, one.received, "{one:?}");
    received > 100 && received < sent
}
