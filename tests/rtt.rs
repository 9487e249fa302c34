//! Requests and replies, from schedule to report.

use std::path::Path;
use std::time::Duration;

use whylate_model::Pid;
use whylate_model::directory::RunDir;
use whylate_model::flow::{Flow, ProcessVerdict};
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::warning::Warning;
use whylate_stats::Histogram;
use whylate_sys::signal::send_to_process;

use crate::needs;
use crate::program::{self, Recorded, record_ending, said, whylate};

/// Longer than any quiet round trip, shorter than the stalls that are planted.
const LONG_NS: u64 = 8_000_000;
const SIGKILL: i32 = 9;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

fn flow(run: &Run) -> &Flow {
    run.flows.first().expect("a flow")
}

fn series<'a>(run: &'a Run, name: &str) -> &'a Series {
    run.series.iter().find(|series| series.name == name).expect("the series is there")
}

/// What the histogram log of a run adds up to.
fn logged(directory: &Path, name: &str) -> Histogram {
    let mut sum = Histogram::new();
    for (tag, _, _, histogram) in RunDir::open(directory).unwrap().read_histograms().unwrap() {
        if tag == name {
            sum.add(&histogram);
        }
    }
    sum
}

/// What holds for every run, however disturbed.
fn check_counts(recorded: &Recorded, intended: u64) {
    let (run, flow) = (&recorded.run, flow(&recorded.run));
    let packets = flow.packets;
    assert!(packets.add_up(), "{packets:?}");
    assert_eq!(flow.departures.intended, intended, "{flow:?}");
    assert_eq!(packets.sent + packets.never_sent, intended, "{packets:?}");
    assert_eq!(series(run, "rtt-service").n, packets.sent);
    for name in ["rtt-response", "rtt-lateness"] {
        assert_eq!(series(run, name).n, intended, "{name}");
    }
    for series in &run.series {
        assert_eq!(logged(&recorded.directory, &series.name).len(), series.n, "{}", series.name);
    }
    assert!(!run.warnings.iter().any(|warning| matches!(warning, Warning::AccountBroken { .. })));
}

#[test]
fn every_intended_request_is_in_the_account_the_histograms_and_the_log_whatever_the_pattern() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    for (arrivals, intended) in
        [("constant", 1_000), ("burst(10)", 1_000), ("train(4,100us)", 1_000)]
    {
        let words =
            format!("rtt --rate 2kpps --arrivals {arrivals} --duration 500ms --warmup 100ms");
        let recorded = record_ending(&words, &[0, 4]);
        check_counts(&recorded, intended);
        let parts: u64 = flow(&recorded.run)
            .parts
            .iter()
            .map(|part| series(&recorded.run, &part.response).n)
            .sum();
        assert_eq!(parts, if arrivals == "constant" { 0 } else { intended }, "{arrivals}");
        let text = said(&recorded.output);
        assert!(text.contains("What became of requests and messages"), "{text}");
        let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
        assert!(page.contains("Requests and replies"));
    }
}

#[test]
fn a_client_waits_in_each_of_the_ways_there_are() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    for wait in ["block", "poll", "epoll", "busy-poll", "spin", "io-uring"] {
        let words = format!("rtt --wait {wait} --rate 1kpps --duration 300ms --warmup 50ms");
        let recorded = record_ending(&words, &[0, 4]);
        check_counts(&recorded, 300);
        assert_eq!(flow(&recorded.run).way.wait, wait);
        assert!(flow(&recorded.run).packets.received > 250, "{wait}");
    }
}

#[test]
fn a_rate_that_cannot_be_held_is_called_saturated_and_not_trusted() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let recorded =
        record_ending("rtt --rate 20Mpps --duration 100ms --warmup 50ms --timeout 100ms", &[4]);
    let (run, flow) = (&recorded.run, flow(&recorded.run));
    assert_eq!(flow.departures.process.verdict, ProcessVerdict::Saturated);
    assert!(flow.packets.never_sent > 0 && flow.packets.add_up(), "{:?}", flow.packets);
    assert_eq!(series(run, "rtt-response").n, 2_000_000);
    for name in ["rtt-response", "rtt-lateness"] {
        let of = series(run, name);
        assert!(of.censored.is_some() && of.max.is_none(), "{name}: {of:?}");
    }
    assert!(run.warnings.iter().any(|warning| matches!(warning, Warning::Saturated { .. })));
}

#[test]
fn departures_of_a_poisson_process_are_held_against_it() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let words = "rtt --rate 5kpps --arrivals poisson --duration 2s --warmup 100ms --seed 4";
    let recorded = record_ending(words, &[0, 4]);
    let process = &flow(&recorded.run).departures.process;
    let of = process.distribution.expect("it was tested");
    assert!(of.n > 9_000, "{of:?}");
    // A machine that takes the client's CPU away makes trains of what was to be apart: then the
    // verdict must say so. A constant rate is 0.36 away at least.
    let held = process.verdict == ProcessVerdict::Held;
    assert!(if held { of.largest <= 0.02 } else { of.largest < 0.9 }, "{process:?}");
    eprintln!("{:?}, {:.4} apart", process.verdict, of.largest);
}

/// A run whose reflector is dealt with by `meddle` once it is under way.
fn meddled(words: &str, meddle: impl FnOnce(Pid)) -> (Run, tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(&directory).stdout(std::process::Stdio::piped());
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let reflector = program::reflector_of(child.id());
    std::thread::sleep(Duration::from_millis(400));
    meddle(reflector);
    let output = child.wait_with_output().unwrap();
    let text = said(&output);
    (program::read(&directory), home, text)
}

#[test]
fn a_stalled_server_is_one_long_service_time_and_a_ramp_of_response_times() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let stall = |reflector| {
        for _ in 0..8 {
            send_to_process(reflector, SIGSTOP).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            send_to_process(reflector, SIGCONT).unwrap();
            std::thread::sleep(Duration::from_millis(120));
        }
    };
    let words = "rtt --rate 2kpps --duration 2s --warmup 100ms";
    let long = |words: &str| {
        let (_, home, _) = meddled(words, stall);
        let directory = home.path().join("run");
        let above = |name| logged(&directory, name).count_above(LONG_NS);
        (above("rtt-service"), above("rtt-response"))
    };
    let (service, response) = long(&format!("{words} --outstanding 1"));
    eprintln!("waiting for each reply: {service} long services, {response} long responses");
    assert!(service >= 8 && response > 10 * service, "{service} {response}");
    let (service, response) = long(words);
    eprintln!("open: {service} long services, {response} long responses");
    assert!(response > 150 && 2 * service > response, "{service} {response}");
}

#[test]
fn a_reflector_that_dies_ends_the_run_and_what_was_measured_is_kept() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let words = "rtt --rate 1kpps --duration 20s --warmup 50ms";
    let (run, _home, text) =
        meddled(words, |reflector| send_to_process(reflector, SIGKILL).unwrap());
    let early = |warning: &Warning| matches!(warning, Warning::PartEndedEarly { reason, .. } if reason.contains("signal"));
    assert!(run.warnings.iter().any(early), "{text}");
    let packets = flow(&run).packets;
    assert!(packets.received > 50 && packets.add_up(), "{packets:?}");
    assert!(series(&run, "rtt-service").n > 50);
}

#[test]
fn a_target_where_nobody_listens_is_named_and_nothing_is_left_behind() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    // Port 9 discards, where anything listens on it at all.
    let mut command = whylate(["rtt", "127.0.0.1:9", "--duration", "1s", "-o"]);
    let output = command.arg(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("127.0.0.1:9") || told.contains("gone"), "{told}");
    assert!(!directory.exists());
}

#[test]
fn independent_runs_add_up_and_their_sum_says_how_far_they_differ() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let runs = home.path().join("runs");
    let words = "rtt --runs 3 --rate 2kpps --duration 300ms --warmup 50ms --outstanding 64 -o";
    let output = whylate(words.split(' ')).arg(&runs).output().unwrap();
    assert!([Some(0), Some(4)].contains(&output.status.code()), "{}", said(&output));
    let sum = program::read(&runs.join("sum"));
    let single: Vec<Run> =
        (1..=3).map(|number| program::read(&runs.join(format!("run-{number}")))).collect();
    let sent: u64 = single.iter().map(|run| flow(run).packets.sent).sum();
    assert_eq!(flow(&sum).packets.sent, sent);
    assert!(flow(&sum).packets.add_up());
    assert_eq!(series(&sum, "rtt-response").n, 1_800);
    assert_eq!(logged(&runs.join("sum"), "rtt-response").len(), 1_800);
    assert_eq!(sum.origins.len(), 3);
    assert!(!sum.spreads.is_empty(), "between and within");
    let seeds: std::collections::BTreeSet<u64> = single.iter().map(|run| run.seed).collect();
    assert_eq!(seeds.len(), 3, "each run draws its own");
}
