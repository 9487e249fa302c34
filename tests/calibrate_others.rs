//! Clients of others through the delay line: whether their numbers follow what was added, and by how much.

use std::process::Output;

use whylate_model::calibration::{CalibratedBackend, Slope};
use whylate_model::run::Run;

use crate::needs;
use crate::pairs::say;
use crate::program::{self, said, whylate};

/// A slope over some runs may be spoilt where the host took so much of the CPUs.
const EXCUSED_NS: f64 = 50e6;
/// Of sockperf's percentiles.
const SOCKPERF: &str = r"percentile (?P<percent>[0-9.]+) += +(?P<value>[0-9.]+)";
/// Of qperf's mean, in the unit that it chooses by the value.
const QPERF: &str = r"latency += +(?P<value>[0-9.]+) (?P<unit>[a-z]+)";
/// Of ping's mean.
const PING: &str = r"= [0-9.]+/(?P<value>[0-9.]+)/";

/// May this machine put these programs through a line?
fn ready(programs: &[&str]) -> bool {
    let installed = programs.iter().all(|name| needs::program(name).is_some());
    installed && needs::root() && needs::cpus(2).is_some()
}

fn judge(words: &[&str]) -> (Output, Option<Run>) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(["calibrate"]);
    command.args(words).arg("-o").arg(&directory).env("XDG_STATE_HOME", home.path());
    let output = command.output().unwrap();
    assert!(!home.path().join("whylate/calibrations.json").exists(), "it is none of our backends");
    let run = output.status.code().is_some_and(|code| matches!(code, 0 | 4));
    (output, run.then(|| program::read(&directory)))
}

/// The tool, and ours beside it.
fn judged(words: &[&str]) -> ([CalibratedBackend; 2], String) {
    let (output, run) = judge(words);
    let text = said(&output);
    let run = run.unwrap_or_else(|| panic!("{text}"));
    let backends = &run.calibration.as_ref().unwrap().backends;
    let [of, ours] = &backends[..] else { panic!("a tool and ours: {text}") };
    assert_eq!(ours.backend, "whylate rtt, udp block");
    ([of.clone(), ours.clone()], text)
}

/// The same, once more where it is not as it should be and the host took the CPUs meanwhile; none where it
/// did every time.
fn judged_unless_taken(
    words: &[&str],
    mut holds: impl FnMut(&[CalibratedBackend; 2]) -> bool,
) -> Option<([CalibratedBackend; 2], String)> {
    needs::unless_taken(&whylate_sys::affinity::get(), EXCUSED_NS, || {
        let (both, text) = judged(words);
        for of in &both {
            let slope = slope(of);
            say(&format!(
                "{} over the truth: slope {:.3}, {:?} .. {:?}",
                of.backend, slope.value, slope.low, slope.high
            ));
        }
        if holds(&both) { Ok((both, text)) } else { Err(text) }
    })
}

/// How its number follows the truth.
fn slope(of: &CalibratedBackend) -> &Slope {
    of.foreign.as_ref().and_then(|tool| tool.slope.as_ref()).expect("several delays")
}

fn halves(of: &CalibratedBackend) -> bool {
    of.foreign.as_ref().unwrap().halves()
}

/// Ours counts there and back: over several delays it follows the truth.
fn ours_follows(ours: &CalibratedBackend) -> bool {
    assert_eq!(ours.foreign.as_ref().unwrap().passes, 2);
    !halves(ours) && (0.8..1.2).contains(&slope(ours).value)
}

/// Of a mean no percentile is known: it has no error and no limit in percentiles, and says what it is off by.
fn is_a_mean(of: &CalibratedBackend) {
    assert!(of.errors_raw.is_empty() && of.measured.is_empty(), "{of:?}");
    assert_eq!((of.limit_raw.percent, of.limit_compensated.percent), (None, None), "{of:?}");
    assert!(of.notes.iter().any(|note| note.contains("is a mean")), "{:?}", of.notes);
}

/// By how much of ours the tool's number is its own, at this place of the delays.
fn share_of_ours([of, ours]: &[CalibratedBackend; 2], at: usize) -> f64 {
    let reported = |of: &CalibratedBackend| of.foreign.as_ref().unwrap().readings[at].reported_ns;
    reported(of) / reported(ours)
}

#[test]
#[ignore = "live figure: to accept"]
fn sockperf_reports_half_of_what_the_line_adds_and_is_told_to_halve() {
    let _alone = program::alone();
    if !ready(&["ip", "sockperf"]) {
        return;
    }
    let words = [
        "--client",
        "sockperf ping-pong -i {address} -p {port} -t 1",
        "--server",
        "sockperf server -i {address} -p {port}",
        "--metric",
        SOCKPERF,
        "--delays",
        "50us,200us,500us",
        "--runs",
        "3",
    ];
    let holds = |both: &[CalibratedBackend; 2]| {
        let [of, ours] = both;
        // At the longest delay what each path adds by itself is little beside it.
        halves(of) && ours_follows(ours) && (0.35..0.65).contains(&share_of_ours(both, 2))
    };
    let Some(([of, _], text)) = judged_unless_taken(&words, holds) else { return };
    let tool = of.foreign.as_ref().unwrap();
    assert_eq!((tool.passes, tool.readings.len()), (2, 3));
    for reading in &tool.readings {
        // There and back, and what the line adds by itself.
        let truth = reading.truth.0 as f64 / reading.delay.0 as f64;
        assert!((2.0..3.0).contains(&truth), "{reading:?}");
        assert!(reading.reported_ns < reading.truth.0 as f64, "{reading:?}");
    }
    assert!(of.errors_raw.len() > 3, "it prints several percentiles");
    assert_eq!(of.limit_raw.percent, None);
    assert!(of.notes.iter().any(|note| note.contains("it halves")), "{:?}", of.notes);
    assert!(text.contains("it halves"), "{text}");
    let beside = |note: &String| note.starts_with("beside it") && note.contains("the halving");
    assert!(of.notes.iter().any(beside), "{:?}", of.notes);
}

#[test]
#[ignore = "live figure: to accept"]
fn qperf_reports_half_of_what_the_line_adds_over_udp_and_tcp_in_microseconds_and_milliseconds() {
    let _alone = program::alone();
    if !ready(&["ip", "qperf"]) {
        return;
    }
    for test in ["udp_lat", "tcp_lat"] {
        let client = format!("qperf {{address}} --listen_port {{port}} -t 1 {test}");
        let words = [
            "--client",
            client.as_str(),
            "--server",
            "qperf --listen_port {port}",
            "--metric",
            QPERF,
            "--statistic",
            "mean",
            "--delays",
            "100us,500us,4ms",
            "--runs",
            "3",
        ];
        let holds = |both: &[CalibratedBackend; 2]| {
            let [of, ours] = both;
            let rises = (0.4..0.6).contains(&slope(of).value);
            let half_of_ours = (0.35..0.65).contains(&share_of_ours(both, 2));
            rises && halves(of) && ours_follows(ours) && half_of_ours
        };
        let Some(([of, _], text)) = judged_unless_taken(&words, holds) else { return };
        let tool = of.foreign.as_ref().unwrap();
        assert_eq!((tool.passes, tool.readings.len()), (2, 3), "{test}");
        // Half of 200us and more is printed in us, half of 8ms and more in ms: both are what they say.
        for (at, reading) in tool.readings.iter().enumerate() {
            let share = reading.reported_ns / reading.truth.0 as f64;
            assert!(share > 0.4 && (at < 2 || share < 0.65), "{test}: {reading:?}");
        }
        assert!(of.notes.iter().any(|note| note.contains("it halves")), "{test}: {:?}", of.notes);
        assert!(text.contains("it halves"), "{text}");
        is_a_mean(&of);
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn ping_follows_what_the_line_adds() {
    let _alone = program::alone();
    if !ready(&["ip", "ping"]) {
        return;
    }
    let words = [
        "--client",
        "ping -q -c 200 -i 0.002 {address}",
        "--metric",
        PING,
        "--unit",
        "ms",
        "--statistic",
        "mean",
        "--delays",
        "100us,1ms,3ms",
        "--runs",
        "3",
    ];
    let holds = |both: &[CalibratedBackend; 2]| {
        let [of, ours] = both;
        let follows = !halves(of) && (0.9..1.1).contains(&slope(of).value);
        follows && ours_follows(ours) && (0.8..1.2).contains(&share_of_ours(both, 2))
    };
    let Some(([of, _], _)) = judged_unless_taken(&words, holds) else { return };
    // Those of the first delay: each run sends 200, and its last reply may come behind the log.
    assert!(of.n > 500, "{of:?}");
    is_a_mean(&of);
    let beside = |note: &String| note.starts_with("beside it") && !note.contains("halving");
    assert!(of.notes.iter().any(beside), "{:?}", of.notes);
}

#[test]
fn a_tool_that_fails_or_says_nothing_of_the_kind_is_the_reason_and_nothing_is_claimed() {
    let _alone = program::alone();
    if !ready(&["ip", "ping"]) {
        return;
    }
    let quick = ["--runs", "1", "--delays", "100us"];
    for (client, metric, part) in [
        ("ping -q -c 3 -i 0.002 {address}", "nothing (?P<value>[0-9]+)", "finds nothing"),
        ("ping -q -c 1 -W 1 198.18.0.77", PING, "it ended with"),
        ("no-such-program {address}", PING, "did not start"),
    ] {
        let words =
            [&["--client", client, "--metric", metric, "--unit", "ms"][..], &quick].concat();
        let (output, run) = judge(&words);
        assert_eq!((output.status.code(), run.is_none()), (Some(1), true), "{}", said(&output));
        assert!(said(&output).contains(part), "{}", said(&output));
    }
}
