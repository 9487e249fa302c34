//! Requests and replies, from schedule to report.

use whylate_model::directory::RunDir;
use whylate_model::flow::ProcessVerdict;
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::warning::Warning;
use whylate_port::Wait;
use whylate_sys::signal::send_to_process;

use crate::program::{self, Recorded, record_ending, recorded, said, until, whylate};
use crate::requests::{self, SIGKILL, flow, logged};
use crate::{needs, reflect};

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
        let recorded = recorded(&words);
        check_counts(&recorded, intended);
        let parts: u64 = flow(&recorded.run)
            .parts
            .iter()
            .map(|part| series(&recorded.run, &part.response).n)
            .sum();
        assert_eq!(parts, if arrivals == "constant" { 0 } else { intended }, "{arrivals}");
        let text = said(&recorded.output);
        assert!(text.contains("Requests sent, answered and lost"), "{text}");
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
    for wait in Wait::ALL {
        if let Some(reason) = reflect::lacking("127.0.0.1:0", wait) {
            needs::absent(&reason);
            continue;
        }
        // All of them find room in a socket, and each is waited for however long it takes.
        let words =
            format!("rtt --wait {wait} --rate 1kpps --duration 100ms --warmup 10ms --timeout 60s");
        let recorded = recorded(&words);
        check_counts(&recorded, 100);
        assert_eq!(flow(&recorded.run).way.wait, wait.to_string());
        let packets = flow(&recorded.run).packets;
        assert_eq!((packets.received, packets.lost), (packets.sent, 0), "{wait}: {packets:?}");
        assert!(packets.received > 0, "{wait}: {packets:?}");
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
fn departures_of_a_poisson_process_are_held_against_it_and_those_of_no_other() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    for arrivals in ["poisson", "constant"] {
        let words = format!(
            "rtt --rate 5kpps --arrivals {arrivals} --duration 200ms --warmup 10ms --no-trace"
        );
        let recorded = recorded(&words);
        let departures = &flow(&recorded.run).departures;
        // How many a process of chance has in that time, it decides itself.
        check_counts(&recorded, departures.intended);
        assert!(arrivals == "poisson" || departures.intended == 1_000, "{departures:?}");
        let process = &departures.process;
        let gaps = logged(&recorded.directory, "rtt-departures");
        assert_eq!(gaps.len() + 1, departures.sent, "{departures:?}");
        if arrivals == "constant" {
            assert_eq!(process.distribution, None);
            continue;
        }
        let of = process.distribution.expect("it was tested");
        assert_eq!(of.n, gaps.len(), "{departures:?}");
        let held = process.verdict == ProcessVerdict::Held;
        assert!(!held || of.largest <= 0.02 || of.a_squared <= 3.857, "{departures:?}");
    }
}

#[test]
fn a_reflector_that_dies_ends_the_run_and_what_was_measured_is_kept() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "rtt --rate 1kpps --duration 4m --warmup 50ms --checkpoint 300ms";
    let mut command = whylate(words.split(' '));
    command.arg("-o").arg(&directory).stdout(std::process::Stdio::piped());
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let reflector = program::reflector_of(child.id());
    let stored = || RunDir::open(&directory).ok()?.read_run().ok();
    until("more than 50 are stored", || {
        requests::series(&stored()?, "rtt-service").is_some_and(|of| of.n > 50).then_some(())
    });
    send_to_process(reflector, SIGKILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let (run, text) = (program::read(&directory), said(&output));
    assert_eq!(output.status.code(), Some(4), "{text}");
    // The test killed it.
    program::ended_but_for(output.status.code(), &run, &[" ended before its time: "]);
    let early = |warning: &Warning| matches!(warning, Warning::PartEndedEarly { reason, .. } if reason.contains("signal"));
    assert!(run.warnings.iter().any(early), "{text}");
    let packets = flow(&run).packets;
    assert!(packets.received > 0 && packets.add_up(), "{packets:?}");
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
    single.iter().chain([&sum]).for_each(program::closes);
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
