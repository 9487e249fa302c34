//! Requests and replies, from schedule to report.

use std::path::Path;
use std::time::Duration;

use whylate_model::Pid;
use whylate_model::flow::ProcessVerdict;
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::warning::Warning;
use whylate_stats::Histogram;
use whylate_sys::signal::send_to_process;

use crate::needs;
use crate::program::{self, Recorded, record_ending, said, whylate};
use crate::requests::{self, SIGCONT, SIGKILL, SIGSTOP, flow, logged};

/// Longer than any quiet round trip, shorter than the stalls that are planted.
const LONG_NS: u64 = 8_000_000;
fn series<'a>(run: &'a Run, name: &str) -> &'a Series {
    requests::series(run, name).expect("the series is there")
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
#[ignore = "live figure: to accept"]
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
#[ignore = "live figure: to accept"]
fn departures_of_a_poisson_process_are_held_against_it() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    for arrivals in ["poisson", "constant"] {
        let words = format!(
            "rtt --rate 5kpps --arrivals {arrivals} --duration 2s --warmup 100ms --no-trace --seed 4"
        );
        let recorded = record_ending(&words, &[0, 4]);
        let departures = &flow(&recorded.run).departures;
        let gaps = logged(&recorded.directory, "rtt-departures");
        let n = gaps.len() as f64;
        assert!(n > 9_000.0, "{departures:?}");
        // A machine that takes the client's CPU away makes trains of what was to be apart: by as many
        // distances as departures were late for it, and one more at the end of each.
        let pacing = departures.pacing.as_ref().expect("something was intended");
        let spoilt = 2.0 * (pacing.excluded + pacing.long_turns) as f64 / n;
        let found = from_exponential(&gaps, MEAN_NS);
        let near = gaps.count_above(MEAN_NS * 4 / 5) - gaps.count_above(MEAN_NS * 6 / 5);
        eprintln!("{arrivals}: {found:.4} from a Poisson process, {spoilt:.4} spoilt");
        if arrivals == "constant" {
            assert!(found > 0.36 - spoilt, "{found}");
            assert!(near as f64 / n > 0.98 - spoilt, "{near} of {n}: {pacing:?}");
            assert_eq!(departures.process.distribution, None);
            continue;
        }
        // The largest distance that chance makes in 1 of 1 000 runs. None is closer to the next than
        // a send takes.
        let chance = 1.95 / n.sqrt();
        let send = 1.0 - (-(pacing.sending.0 as f64) / MEAN_NS as f64).exp();
        assert!(found < chance + send + spoilt, "{found} {send} {spoilt}: {pacing:?}");
        let of = departures.process.distribution.expect("it was tested");
        // By the run itself, in 4 096 bins of the transform, and here, from its log.
        assert!((of.largest - found).abs() < 0.005, "{of:?} {found}");
        let held = departures.process.verdict == ProcessVerdict::Held;
        assert!(!held || of.largest <= 0.02 || of.a_squared <= 3.857, "{departures:?}");
    }
}

/// Mean distance of departures at 5 000 a second.
const MEAN_NS: u64 = 200_000;

/// The largest distance of values' distribution function from the exponential one of that mean.
fn from_exponential(values: &Histogram, mean_ns: u64) -> f64 {
    let n = values.len() as f64;
    let at = |step: u64| {
        // From a 250th of the mean to eight times as much as it.
        let ns = mean_ns * step / 250;
        let below = 1.0 - values.count_above(ns) as f64 / n;
        (below - (1.0 - (-(ns as f64) / mean_ns as f64).exp())).abs()
    };
    (1..=2_000).map(at).fold(0.0, f64::max)
}

#[test]
fn distances_are_told_from_exponential_ones() {
    let of = |value: &dyn Fn(f64) -> f64| {
        let mut values = Histogram::new();
        for i in 0..20_000 {
            values.record(value((f64::from(i) + 0.5) / 20_000.0) as u64);
        }
        from_exponential(&values, MEAN_NS)
    };
    let exponential = of(&|unit| -(1.0 - unit).ln() * MEAN_NS as f64);
    assert!(exponential < 0.005, "{exponential}");
    let constant = of(&|_| MEAN_NS as f64);
    assert!(constant > 0.6, "{constant}");
}

/// A run whose reflector is dealt with by `meddle` from its start on, which may wait for the directory.
fn meddled(words: &str, meddle: impl FnOnce(Pid, &Path)) -> (Run, tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(&directory).stdout(std::process::Stdio::piped());
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let reflector = program::reflector_of(child.id());
    meddle(reflector, &directory);
    let output = child.wait_with_output().unwrap();
    let text = said(&output);
    (program::read(&directory), home, text)
}

#[test]
#[ignore = "live figure: to accept"]
fn a_stalled_server_is_one_long_service_time_and_a_ramp_of_response_times() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    // Until it has gone: a short run tells of itself only at its end. What is stopped once it has ended
    // is woken all the same.
    let stall = |reflector, _: &Path| {
        while send_to_process(reflector, SIGSTOP).is_ok() {
            std::thread::sleep(Duration::from_millis(30));
            let _ = send_to_process(reflector, SIGCONT);
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
#[ignore = "live figure: to accept"]
fn a_reflector_that_dies_ends_the_run_and_what_was_measured_is_kept() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let words = "rtt --rate 1kpps --duration 20s --warmup 50ms";
    let (run, _home, text) = meddled(words, |reflector, directory| {
        program::until("something is measured", || {
            directory.join("run.json").exists().then_some(())
        });
        send_to_process(reflector, SIGKILL).unwrap();
    });
    let early = |warning: &Warning| matches!(warning, Warning::PartEndedEarly { reason, .. } if reason.contains("signal"));
    assert!(run.warnings.iter().any(early), "{text}");
    let packets = flow(&run).packets;
    assert!(packets.received > 50 && packets.add_up(), "{packets:?}");
    // Those under way when it died are among the lost ones, and counted once.
    assert!(packets.abandoned <= packets.lost, "{packets:?}");
    assert_eq!(packets.sent - packets.received - packets.late, packets.lost, "{packets:?}");
    let service = series(&run, "rtt-service");
    assert!(service.n > 50);
    assert_eq!(service.lost, packets.lost);
    let said = match packets.lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost"),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(packets.lost > 999 || text.contains(&said), "{text}");
}

#[test]
#[ignore = "live figure: to accept"]
fn memory_does_not_grow_with_the_run() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let peak = |seconds: u64| {
        let directory = home.path().join(format!("run-{seconds}"));
        let words = format!("rtt --rate 10kpps --duration {seconds}s --warmup 100ms --no-mlock");
        let mut command = whylate(words.split_whitespace());
        command.arg("-o").arg(&directory).stderr(std::process::Stdio::null());
        // A host that stops this machine may keep it from its rate.
        let kib = program::peak_kib_ending(command, &[0, 4]);
        let sent = flow(&program::read(&directory)).packets.sent;
        assert!(sent > 9_000 * seconds, "{sent}");
        kib
    };
    let (short, long) = (peak(1), peak(5));
    eprintln!("{short} KiB for a second, {long} KiB for five");
    assert!(long * 10 <= short * 12, "{short} KiB for a second, {long} KiB for five");
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
fn what_says_nothing_together_is_refused_before_the_first_of_several_runs() {
    let home = tempfile::tempdir().unwrap();
    let runs = home.path().join("runs");
    for (words, why) in [
        ("rtt --runs 3 --arrivals closed --outstanding 2 -o", "leave --outstanding out"),
        ("rtt --runs 3 --arrivals sweep(2us,1ms,10) --rate 1kpps -o", "leave --rate out"),
        ("rtt --runs 3 --port unix --rate 1Mbit/s -o", "sends no frames"),
        ("rtt --runs 3 --size 10 -o", "are no size of a raw request"),
    ] {
        let output = whylate(words.split(' ')).arg(&runs).output().unwrap();
        let text = said(&output);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert!(text.contains(why) && !text.contains("run 1"), "{words}: {text}");
        assert!(!runs.exists(), "{words} leaves a directory behind");
    }
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
    // What no sum has stands for each.
    let each = &flow(&sum).recordings;
    assert_eq!(each.len(), 3);
    for (number, (of, run)) in each.iter().zip(&single).enumerate() {
        assert!(of.directory.ends_with(&format!("run-{}", number + 1)), "{}", of.directory);
        assert_eq!((of.other_end, &of.anomalies), (flow(run).other_end, &flow(run).anomalies));
        let claims = flow(run).tail.as_ref().map_or(0, |tail| tail.claimed().count());
        assert_eq!(of.tail.as_ref().map_or(0, |tail| tail.causes.len()), claims);
    }
    assert_eq!(series(&sum, "rtt-response").n, 1_800);
    assert_eq!(logged(&runs.join("sum"), "rtt-response").len(), 1_800);
    assert_eq!(sum.origins.len(), 3);
    assert!(!sum.spreads.is_empty(), "between and within");
    let seeds: std::collections::BTreeSet<u64> = single.iter().map(|run| run.seed).collect();
    assert_eq!(seeds.len(), 3, "each run draws its own");
}
