//! The experiments of a paper: its figures beside this host's, in one directory with its runs.

use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use whylate_model::paper::{Paper, Scenario, Unit};
use whylate_model::warning::Warning;

use crate::chromium::Browser;
use crate::hourglass2002::{Repeated, every_row_is_told, here, row};
use crate::needs;
use crate::program::{self, said, whylate};

/// The two that take least, for every test that looks at a part.
const PLACES: [&str; 2] = ["Figure 3", "5.5"];

/// None where this machine cannot. Whoever asks is alone.
fn repeated() -> Option<&'static Repeated> {
    static REPEATED: OnceLock<Repeated> = OnceLock::new();
    if !needs::root() || needs::cpus(2).is_none() {
        return None;
    }
    Some(REPEATED.get_or_init(|| Repeated::new(&["--only", &PLACES.join(",")])))
}

#[test]
fn experiments_have_their_figures_with_intervals_and_the_reasons_of_this_run() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    every_row_is_told(repeated, &PLACES);
}

#[test]
fn the_papers_two_tasks_have_their_exact_response_times_and_their_misses_a_reason() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    let scenario = repeated.scenario("5.5");
    // Theory is exact.
    for (words, ms) in [("of task 0, by", 3.0), ("of task 1, by", 29.0), ("8ms of jitter", 39.0)] {
        let here = here(scenario, &[words]);
        assert_eq!(here.unit, Unit::Nanoseconds);
        assert!((here.value / 1e6 - ms).abs() < 1e-6, "{words}: {here:?}");
    }
    for (words, actual) in [("8ms of jitter", "37.0ms"), ("needs 12ms, with jitter", "21.0ms")] {
        let why = &row(scenario, &[words]).why;
        assert!(why.contains(&format!("from the actual arrival it is {actual}")), "{why}");
    }
    let of = |timer| ["missed deadlines of task 1", timer];
    let coarse = row(scenario, &of("that the paper's usleep had"));
    assert!(coarse.paper.is_some() && coarse.why.contains("released late by"), "{coarse:?}");
    assert!(coarse.why.contains("misses are possible"), "{coarse:?}");
    let coarse_busy = coarse.why.clone();
    if needs::real_time() {
        let native = &row(scenario, &of("usleep as it is today")).why;
        assert!(native.contains("slack does not count for a real-time thread"), "{native}");
    }
    // The first task waits by its own timer, and keeps the CPU for none of its sleeps.
    let first = &row(scenario, &["missed deadlines of task 0, HR", "that the paper's usleep"]).why;
    assert!(coarse_busy.contains("2.00ms of busy waiting"), "{coarse_busy}");
    assert!(!first.contains("busy waiting"), "{first}");
}

#[test]
fn the_directory_gives_both_reports_again_and_the_page_opens_in_a_browser() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    // The directory alone gives both reports again, figures included.
    let again = whylate(["report"]).arg(&repeated.directory).output().unwrap();
    assert_eq!(again.stdout, repeated.output.stdout);
    let file = repeated.directory.join("report.html");
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(
        page.contains("<svg") && page.contains("142 of 285"),
        "figures and the paper's numbers"
    );
    opens(&file, &repeated.paper);
}

fn opens(page: &Path, paper: &Paper) {
    let Some(chromium) = needs::program("chromium") else { return };
    let mut browser = Browser::start(&chromium);
    browser.open(page);
    let heard = browser.heard();
    assert!(heard.complaints.is_empty(), "{:?}", heard.complaints);
    let text = browser.value("document.body.textContent");
    let text = text.as_str().unwrap();
    for scenario in &paper.scenarios {
        assert!(text.contains(&scenario.title), "{}", scenario.title);
        for row in &scenario.rows {
            // A page has the times of a row's name as it has all others.
            let name = |text: &str| text.replace([' ', '\u{a0}'], "");
            assert!(name(text).contains(&name(&row.what)), "{row:?}");
        }
    }
}

#[test]
fn host_and_client_server_stand_beside_the_papers_table_with_parts_that_sum_to_the_whole() {
    let _alone = program::alone();
    let there = needs::root() && needs::program("ip").is_some() && needs::tracefs().is_some();
    if !there || needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("paper");
    let words = ["paper", "pam2017", "--quick", "--only", "4,6a", "--seed", "5", "-o"];
    let mut command = whylate(words);
    command.arg(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let parent = child.id() as i32;
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let paper = Paper::read(&directory).unwrap().unwrap();
    assert!(!Path::new("/run/netns/whylate-pam2017-client").exists(), "its bed is still up");
    let places: Vec<&str> = paper.scenarios.iter().map(|of| of.place.as_str()).collect();
    assert_eq!(places, ["4", "6a"]);
    let text = said(&output);
    paper
        .scenarios
        .iter()
        .flat_map(|of| &of.runs)
        .for_each(|run| program::closes(&program::read(&directory.join(run))));
    for scenario in &paper.scenarios {
        let failed = scenario.notes.iter().any(|note| note.contains("not done"));
        assert!(!failed && !scenario.rows.is_empty(), "{scenario:#?}");
        assert_eq!(scenario.commands.len(), scenario.runs.len(), "each with what repeats it");
        assert!(scenario.rows.iter().all(|row| !row.why.is_empty()), "{scenario:#?}");
        four_in_order(scenario);
        let shares = scenario.rows.iter().filter(|row| row.what.starts_with("Figure 4"));
        let parts =
            shares.filter(|row| !row.what.contains("in all") && !row.what.contains("all parts"));
        let sum: f64 = parts.map(|row| row.here.as_ref().unwrap().value).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}: {scenario:#?}");
    }
    let closure = here(&paper.scenarios[1], &["all parts together"]);
    assert!((closure.value - 1.0).abs() < 1e-6, "{closure:?}");
    let host = here(&paper.scenarios[0], &["minimum", "in the server's host"]);
    assert!(host.value > 0.0, "{host:?}");
    let whole = program::read(&directory.join("4"));
    let other =
        |warning: &Warning| matches!(warning, Warning::AnotherRun { pid, .. } if *pid == parent);
    assert!(!whole.warnings.iter().any(other), "who started it is no other run");
    let few = |note: &String| note.contains("a million packets");
    assert!(paper.scenarios[0].notes.iter().any(few), "{:?}", paper.scenarios[0].notes);
    // What is not repeated is named with what would be, and has no figures.
    assert!(text.contains("Not repeated here yet"), "{text}");
    for place in ["1a", "2b", "6b", "8"] {
        let missing = paper.not_here.iter().find(|of| of.place == place).unwrap();
        assert!(!missing.would_be.is_empty(), "{missing:?}");
        let words = ["paper", "pam2017", "--only", place];
        let output = whylate(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{place}: {}", said(&output));
        assert!(said(&output).contains("not repeated here yet"), "{}", said(&output));
    }
}

/// The four columns of the paper's table, each beside the paper's own figure.
fn four_in_order(scenario: &Scenario) {
    let what = if scenario.place == "4" { "in the server's host" } else { ", closed loop" };
    let row = |name: &str| {
        let found = scenario.rows.iter().find(|row| {
            row.what.starts_with(name) && row.what.ends_with(what) && row.paper.is_some()
        });
        found.unwrap_or_else(|| panic!("{name}: {scenario:#?}"))
    };
    let value = |name| row(name).here.as_ref().map(|here| here.value);
    let (least, median) = (value("minimum").unwrap(), value("median"));
    assert!(least > 0.0 && median.is_none_or(|median| least <= median), "{scenario:#?}");
    // A host that others use may leave too few requests for the last one.
    if let (Some(p999), Some(most)) = (value("p99.9"), value("tail")) {
        assert!(median.is_none_or(|median| median <= p999), "{scenario:#?}");
        assert!(p999 <= most * 1.001, "{scenario:#?}");
        assert!(row("p99.9").why.contains("by the paper's rule"), "{scenario:#?}");
    }
}
