//! What a delay line did is told, and of one that nothing came to.

use whylate_model::delay::{
    DELAY_VERSION, DelayBase, DelayChange, DelayCounts, DelayDirection, DelayEnd, TruthLog,
};
use whylate_model::reflect::{Residence, ResidencePercentile};
use whylate_model::{CpuId, Nanos};

use super::*;
use crate::calibration::tests::{emulator, unmeasured};
use crate::terminal::{Style, full_of_account};

fn full(of: &DelayLine) -> String {
    full_of_account(of, Style::default())
}

fn direction(from: &str, to: &str) -> DelayDirection {
    let value = |percent, ns| ResidencePercentile { percent, value: Some(Nanos(ns)), low: None };
    let times = |median| Residence {
        samples: 900,
        resolution_ns: 9.6,
        frequency_bound_ppm: 0.1,
        min: Nanos(1),
        percentiles: vec![value(50.0, median), value(99.0, 2 * median)],
        max: Nanos(400_000),
    };
    DelayDirection {
        from: from.to_owned(),
        to: to.to_owned(),
        law: "20 µs".to_owned(),
        counts: DelayCounts {
            received: 1_010,
            passed_on: 1_000,
            lost_on_purpose: 7,
            overflow: 3,
            duplicated: 12,
            reordered: 4,
            ..DelayCounts::default()
        },
        received_bytes: 64_640,
        passed_bytes: 64_000,
        residence: Some(times(20_050)),
        lateness: Some(times(50)),
        refusals: 2,
        first_refusal: Some("no\u{1b}[31m".to_owned()),
        series: Vec::new(),
    }
}

pub(crate) fn line() -> DelayLine {
    DelayLine {
        format_version: DELAY_VERSION,
        transport: "xdp".to_owned(),
        wait: "spin".to_owned(),
        ports: ["eth1".to_owned(), "eth2".to_owned()],
        ends: Vec::new(),
        directions: vec![direction("eth1", "eth2"), direction("eth2", "eth1")],
        base: DelayBase {
            base: Nanos(61),
            error: Nanos(90),
            error_median: Nanos(31),
            error_max: Nanos(5_000),
            at: Nanos(10_000),
            frames: 2_000,
            resolution: Nanos(10),
        },
        netem: Some(emulator("netem", &[(50.0, 53_000.0), (99.0, 60_000.0)])),
        capacity_frames: 65_536,
        capacity_bytes: 1 << 26,
        seed: 11,
        since_ns: 951_827_696_000_000_000,
        lasted: Nanos(2_000_000_000),
        ended: DelayEnd::Duration,
        changes: vec![DelayChange {
            at: Nanos(1_000_000_000),
            direction: 1,
            law: "30 µs".to_owned(),
        }],
        truths: Some(TruthLog { kept: 2_020, missed: 5 }),
        cpu: Some(CpuId(2)),
        looks: 10_000,
        in_vain: 9_500,
        warnings: Vec::new(),
    }
}

#[test]
fn what_a_delay_line_did_is_told_with_its_error_its_fates_and_its_changes() {
    let text = full(&line());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Delayed between eth1 and eth2 by xdp",
        "Passed on 2,000 of 2,020 frames between eth1 and eth2 in 2 s, 50 ns late (p50).",
        "Dropped 6 frames because the delay line was full.",
        "until --duration ended",
        "By itself it takes 61 ns",
        "no more than 90 ns late",
        "netem of this kernel is off by +53 µs in the median at 10 µs, and by +60 µs at p99",
        "Truths of 2,020 frames are kept, 5 missed.",
        "dropped as asked",
        "eth2 -> eth1",
        "out of order",
        "Settings changed meanwhile",
        "30 µs",
        "500/s",
    ] {
        assert!(flat.contains(words), "no `{words}` in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !flat.contains("too long"), "{text:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_line_that_nothing_came_to_claims_no_time() {
    let mut of = DelayLine { netem: Some(unmeasured()), ..line() };
    let text = full(&of);
    assert!(text.contains("Netem is not beside it: this kernel has no netem."), "{text}");
    of.netem = None;
    assert!(!full(&of).contains("etem"), "it was not asked for");
    for direction in &mut of.directions {
        direction.counts = DelayCounts::default();
        (direction.residence, direction.lateness) = (None, None);
    }
    let text = full(&of);
    assert!(text.contains("Nothing came between eth1 and eth2") && !text.contains(TIMES), "{text}");
}
