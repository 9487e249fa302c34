//! Clients of others through the delay line, and ours beside them: what is claimed of them, and what is not.

use std::process::Output;

use whylate_model::run::Run;

use crate::needs;
use crate::program::{self, said, whylate};

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
    let status = output.status.code();
    let run = matches!(status, Some(0 | 4)).then(|| program::read(&directory));
    if let Some(run) = &run {
        program::ended(status, run);
    }
    (output, run)
}

#[test]
fn ours_goes_through_the_same_line_beside_a_tool_whose_mean_claims_no_percentile() {
    let _alone = program::alone();
    if !ready(&["ip", "ping"]) {
        return;
    }
    let client = "ping -q -c 20 -i 0.002 {address}";
    let words = ["--client", client, "--metric", PING, "--unit", "ms", "--statistic", "mean"];
    let (output, run) = judge(&[&words[..], &["--delays", "100us,1ms", "--runs", "1"]].concat());
    let text = said(&output);
    let run = run.unwrap_or_else(|| panic!("{text}"));
    let backends = &run.calibration.as_ref().unwrap().backends;
    let [of, ours] = &backends[..] else { panic!("a tool and ours: {text}") };
    assert_eq!(ours.backend, "whylate rtt, udp block");
    for of in [of, ours] {
        let tool = of.foreign.as_ref().unwrap();
        // There and back, and each frame leaves no sooner than it is due.
        assert_eq!((tool.passes, tool.readings.len()), (2, 2), "{of:?}");
        assert!(tool.slope.is_some(), "several delays: {of:?}");
        for reading in &tool.readings {
            assert!(reading.truth.0 >= 2 * reading.delay.0, "{reading:?}");
        }
    }
    // Of a mean no percentile is known: it has no error and no limit in percentiles, and says what it is off by.
    assert!(of.n > 0 && of.errors_raw.is_empty() && of.measured.is_empty(), "{of:?}");
    assert_eq!((of.limit_raw.percent, of.limit_compensated.percent), (None, None), "{of:?}");
    assert!(of.notes.iter().any(|note| note.contains("is a mean")), "{:?}", of.notes);
    assert!(of.notes.iter().any(|note| note.starts_with("beside it")), "{:?}", of.notes);
}

#[test]
fn a_tool_that_fails_or_says_nothing_of_the_kind_is_the_reason_and_nothing_is_claimed() {
    let _alone = program::alone();
    if !ready(&["ip", "ping"]) {
        return;
    }
    // By this seed the tool has its turn before ours.
    let quick = ["--runs", "1", "--delays", "100us", "--seed", "5"];
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
