//! Tables and sentences of planted calibrations.

use whylate_model::calibration::{
    CalibrationLine, ForeignReading, NotCalibrated, SignedQuantile, USUAL_TOLERANCE,
};

use super::*;

fn answer(of: &Calibration) -> String {
    crate::answer(&whylate_model::run::Run {
        calibration: Some(Box::new(of.clone())),
        gaps: Vec::new(),
        ..crate::timeline::tests::recorded()
    })
}

fn quantiles(values: &[(f64, u64)]) -> Vec<Quantile> {
    let one = |(percent, ns): &(f64, u64)| Quantile {
        percent: *percent,
        value: Some(Nanos(*ns)),
        low: Some(Nanos(ns - 20)),
        high: Some(Nanos(ns + 20)),
        n_eff: 1e6,
    };
    values.iter().map(one).collect()
}

fn errors_of(shift: f64) -> Vec<ErrorAtPercent> {
    let one = |(percent, ns, half): (f64, f64, f64)| ErrorAtPercent {
        percent,
        error_ns: Some(ns - shift),
        low_ns: Some(ns - shift - half),
        high_ns: Some(ns - shift + half),
        n_eff: 1e6,
    };
    let mut all: Vec<ErrorAtPercent> = [
        (50.0, 3_250.0, 10.0),
        (90.0, 3_300.0, 20.0),
        (99.0, 3_900.0, 60.0),
        (99.9, 4_100.0, 300.0),
        (99.99, 54_000.0, 9_000.0),
    ]
    .map(one)
    .to_vec();
    let nothing =
        ErrorAtPercent { percent: 99.999, error_ns: None, low_ns: None, high_ns: None, n_eff: 1e6 };
    all.push(nothing);
    all
}

pub(crate) fn backend() -> CalibratedBackend {
    CalibratedBackend {
        backend: "packet spin".to_owned(),
        from: "before the send".to_owned(),
        to: "after the reception".to_owned(),
        definition: "one-way".to_owned(),
        frame_bytes: Some(64),
        runs: 5,
        n: 300_000,
        without_truth: 0,
        without_measurement: 12,
        asked_pps: Some(10_000.0),
        achieved_pps: 9_998.0,
        measured: quantiles(&[(50.0, 13_250), (90.0, 13_350), (99.0, 14_000)]),
        truth: quantiles(&[(50.0, 10_000), (90.0, 10_050), (99.0, 10_100)]),
        errors_raw: errors_of(0.0),
        errors_compensated: errors_of(3_200.0),
        base: Some(Nanos(3_200)),
        base_n: 50_000,
        limit_raw: Limit { percent: None, ended_by: LimitEnd::Error, fails_at: Some(50.0) },
        limit_compensated: Limit {
            percent: Some(99.0),
            ended_by: LimitEnd::Interval,
            fails_at: Some(99.9),
        },
        error_min_ns: 2_900,
        error_quantiles: vec![SignedQuantile {
            percent: 99.0,
            value_ns: Some(4_000.0),
            low_ns: None,
            high_ns: None,
            n_eff: 1e6,
        }],
        foreign: None,
        notes: Vec::new(),
    }
}

pub(crate) fn calibration() -> Calibration {
    Calibration {
        tolerance: USUAL_TOLERANCE,
        made_at_ns: 951_827_696_000_000_000,
        host_identity: "box".to_owned(),
        line: CalibrationLine {
            transport: "af_packet".to_owned(),
            delay: "10 µs".to_owned(),
            base: Nanos(1_800),
            error: Nanos(240),
            frames: 100_000,
            resolution_ns: 9.8,
        },
        backends: vec![backend()],
        missing: vec![NotCalibrated {
            backend: "dpdk".to_owned(),
            why: "no huge pages\u{1b}[31m".to_owned(),
        }],
        emulators: vec![emulator("the delay line", &[(50.0, 31.0), (99.0, 240.0)]), unmeasured()],
    }
}

/// What is off by so much at these percentiles.
pub(crate) fn emulator(name: &str, errors: &[(f64, f64)]) -> Emulator {
    let at = |(percent, ns): &(f64, f64)| SignedQuantile {
        percent: *percent,
        value_ns: Some(*ns),
        low_ns: None,
        high_ns: None,
        n_eff: 1e5,
    };
    Emulator {
        name: name.to_owned(),
        delay: Nanos(10_000),
        errors: errors.iter().map(at).collect(),
        n: 100_000,
        missing: None,
    }
}

/// A kernel without netem.
pub(crate) fn unmeasured() -> Emulator {
    let missing = Some("this kernel has no netem".to_owned());
    Emulator { n: 0, missing, ..emulator("netem", &[]) }
}

/// A tool that halves what it measures.
pub(crate) fn halving() -> ForeignTool {
    let reading = |delay: u64| ForeignReading {
        delay: Nanos(delay),
        truth: Nanos(2 * delay),
        reported_ns: delay as f64 + 4_000.0,
        readings: 5,
    };
    ForeignTool {
        command: "sockperf ping-pong -i 10.0.0.2".to_owned(),
        metric: "avg-latency=([0-9.]+)".to_owned(),
        passes: 2,
        readings: [10_000, 100_000, 1_000_000].map(reading).to_vec(),
        slope: Some(Slope {
            of: "ns reported over ns in the line".to_owned(),
            method: "least squares".to_owned(),
            value: 0.5,
            low: Some(0.498),
            high: Some(0.502),
            intercept: 4_000.0,
            points: 3,
        }),
    }
}

#[test]
fn limits_errors_and_what_ended_them_are_told() {
    let of = calibration();
    assert_eq!(
        answer(&of),
        "packet spin is accurate to 1 µs up to p99, once its path delay is subtracted."
    );
    assert_eq!(
        limits(&of).rows[0],
        ["packet spin", "5", "300,000", "10,000/s", "none", "3.2 µs", "p99"]
    );
    let rows = errors(&of.backends[0], of.tolerance).rows;
    assert_eq!(
        rows[0],
        ["p50", "13.2 µs", "10 µs", "+3.25 µs", "+3.24 to +3.26 µs", "+50 ns", "holds"]
    );
    let verdicts: Vec<String> = rows.iter().map(|row| row[6].to_string()).collect();
    assert_eq!(verdicts, ["holds", "holds", "holds", "interval", "error", "n too small"]);
    let said = remarks(&of.backends[0]).join("\n");
    for words in [
        "as it is: nothing is trusted; the error of p50 is beyond the tolerance",
        "less the path of 3.2 µs (median of 50,000 messages back to back): trusted up to p99; the error \
         of p99.9 is within the tolerance and its interval reaches beyond",
        "it adds +2.9 µs at least, +4 µs at p99",
        "12 that left it and were never had",
    ] {
        assert!(said.contains(words), "no `{words}` in\n{said}");
    }
    let missing = missing(&of).into_iter().map(crate::doc::Block::Note);
    assert!(!crate::render::terminal::told(missing).contains('\u{1b}'));
}

#[test]
fn where_runs_are_too_few_it_is_the_runs_that_are_named_and_not_their_messages() {
    let sample =
        |percent| Limit { percent: None, ended_by: LimitEnd::Sample, fails_at: Some(percent) };
    let told = |runs, limit| {
        let mut of = CalibratedBackend { runs, limit_raw: limit, ..backend() };
        // A value is known, and no interval around it.
        of.errors_compensated[0] =
            ErrorAtPercent { low_ns: None, high_ns: None, n_eff: 4.0, ..of.errors_compensated[0] };
        of.errors_raw[0].n_eff = 4.0;
        let verdict = errors(&of, USUAL_TOLERANCE).rows[0][6].clone();
        (remarks(&of).join("\n"), verdict)
    };
    let (said, verdict) = told(2, sample(50.0));
    assert!(said.contains("for p50 there are too few runs: 2, and 3 are needed"), "{said}");
    assert!(!said.contains("too few messages"), "{said}");
    assert_eq!(verdict, "few runs");
    // An interval that two runs leave wide, too.
    let reaching = backend().limit_compensated;
    let (said, _) = told(2, reaching);
    assert!(said.contains("reaches beyond: too few runs: 2, and 3 are needed"), "{said}");
    // With runs enough, or of a percentile that so many messages do not have, it is the messages.
    let (said, verdict) = told(3, sample(50.0));
    let expected =
        "for p50 there are too few messages: those of 3 runs are worth 4 independent ones";
    assert!(said.contains(expected), "{said}");
    assert_eq!(verdict, "n too small");
    let (said, _) = told(2, sample(99.999));
    assert!(said.contains("for p99.999 there are too few messages"), "{said}");
}

#[test]
fn a_tool_that_halves_is_explained_and_one_that_follows_is_not_accused() {
    let mut of = CalibratedBackend { foreign: Some(halving()), ..backend() };
    let said = remarks(&of).join("\n");
    assert!(said.contains("it HALVES what it measured"), "{said}");
    assert!(said.contains("at a delay of 1 ms it said +1.00 ms, twice that is +2.01 ms"), "{said}");
    assert_eq!(readings(&of).unwrap().rows[1][3], "0.52");
    if let Some(slope) = of.foreign.as_mut().and_then(|tool| tool.slope.as_mut()) {
        (slope.value, slope.low, slope.high) = (1.0, Some(0.999), Some(1.001));
    }
    let said = remarks(&of).join("\n");
    assert!(said.contains("it follows the delay") && !said.contains("HALVES"), "{said}");
    if let Some(tool) = of.foreign.as_mut() {
        tool.slope = None;
    }
    assert!(remarks(&of).join("\n").contains("too few settings"));
}

#[test]
fn netem_beside_a_line_is_told_with_its_sign_or_with_the_reason_why_not() {
    let of = emulator("netem", &[(50.0, -120.0), (99.0, 53_000.0)]);
    let said = netem(&of);
    assert!(said.contains("off by −120 ns in the median at 10 µs, and by +53 µs at p99"), "{said}");
    assert!(netem(&unmeasured()).ends_with("not beside it: this kernel has no netem."));
    let both = Calibration { emulators: vec![of, unmeasured()], ..calibration() };
    let rows = emulators(&both).unwrap().rows;
    assert_eq!(rows[0], ["netem", "10 µs", "100,000", "−120 ns", "+53 µs", "–"]);
    assert_eq!(rows[1][2..], ["–", "–", "–", "–"]);
    assert!(emulators(&Calibration { emulators: Vec::new(), ..both }).is_none());
}

#[test]
fn each_emulator_says_from_where_to_where_its_times_are() {
    let line = EMULATED.find("The line: from when a frame is due to when it is handed over");
    let beside = EMULATED.find("Netem: from before a datagram is sent to after it is received");
    assert!(line < beside && line.is_some(), "{EMULATED}");
    let said = netem(&emulator("netem", &[(50.0, -120.0), (99.0, 53_000.0)]));
    assert!(said.contains("from before the send to after the reception"), "{said}");
    assert!(said.contains("the line's own error is from when a frame is due"), "{said}");
}

#[test]
fn of_a_client_of_somebody_else_the_answer_is_its_own_and_not_that_of_ours_beside_it() {
    let tool = CalibratedBackend {
        backend: "sockperf".to_owned(),
        foreign: Some(halving()),
        limit_compensated: Limit { percent: None, ended_by: LimitEnd::Error, fails_at: Some(50.0) },
        ..backend()
    };
    let ours = CalibratedBackend { foreign: Some(halving()), ..backend() };
    let of = Calibration { backends: vec![tool, ours], ..calibration() };
    let said = answer(&of);
    assert!(said.starts_with("No percentile") && !said.contains("packet spin"), "{said}");
}

#[test]
fn nothing_calibrated_is_said() {
    let none = Calibration { backends: Vec::new(), ..calibration() };
    assert_eq!(answer(&none), "No backend could be calibrated.");
    let mut bad = calibration();
    bad.backends[0].limit_compensated =
        Limit { percent: None, ended_by: LimitEnd::Sample, fails_at: None };
    assert_eq!(answer(&bad), "No percentile of packet spin is accurate to 1 µs.");
}
