//! The experiments of a paper: its figures beside this host's, in one directory with its runs.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;
use whylate_model::paper::{Here, PAPER_FILE, Paper, Row, Scenario, Unit};
use whylate_model::warning::Warning;

use crate::chromium::Browser;
use crate::needs;
use crate::pairs::say;
use crate::program::{self, said, whylate};

/// What the tasks of 5.5, 3 ms in 8 ms and 17 ms in 33 ms, leave of a CPU in five runs of three seconds.
const LEFT_NS: f64 = (1.0 - 3.0 / 8.0 - 17.0 / 33.0) * 15e9;

/// All of it once, shortened, for every test that looks at a part.
struct Repeated {
    paper: Paper,
    directory: PathBuf,
    output: Output,
    _home: TempDir,
}

/// None where this machine cannot. Whoever asks is alone.
fn repeated() -> Option<&'static Repeated> {
    static REPEATED: OnceLock<Repeated> = OnceLock::new();
    if !needs::root() || needs::cpus(2).is_none() {
        return None;
    }
    Some(REPEATED.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("paper");
        let words = ["paper", "hourglass2002", "--quick", "--seed", "5", "-o"];
        let output = whylate(words).arg(&directory).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let paper = Paper::read(&directory).unwrap().unwrap();
        Repeated { paper, directory, output, _home: home }
    }))
}

impl Repeated {
    fn scenario(&self, place: &str) -> &Scenario {
        let mut scenarios = self.paper.scenarios.iter();
        scenarios.find(|of| of.place == place).unwrap_or_else(|| panic!("{place}"))
    }
}

fn row<'a>(scenario: &'a Scenario, words: &[&str]) -> &'a Row {
    let named = |what: &str| words.iter().all(|word| what.contains(word));
    scenario.rows.iter().find(|row| named(&row.what)).unwrap_or_else(|| panic!("{words:?}"))
}

/// This host's figure of a row.
fn here<'a>(scenario: &'a Scenario, words: &[&str]) -> &'a Here {
    let row = row(scenario, words);
    row.here.as_ref().unwrap_or_else(|| panic!("{row:?}: {:?}", scenario.notes))
}

/// The figure without what the host took, where that is another one.
fn without_host(scenario: &Scenario, words: &[&str]) -> f64 {
    let row = row(scenario, words);
    row.without_host.as_ref().or(row.here.as_ref()).unwrap().value
}

#[test]
#[ignore = "live figure: to accept"]
fn every_experiment_has_its_figures_with_intervals_and_the_reasons_of_this_run() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    let places: Vec<&str> = repeated.paper.scenarios.iter().map(|of| of.place.as_str()).collect();
    assert_eq!(places, ["Figure 3", "5.1", "5.2", "5.3", "5.4", "5.5", "5.6"]);
    let text = said(&repeated.output);
    for words in ["7 experiments: about", "1 of 7, Figure 3:", "7 of 7, 5.6:", "left)"] {
        assert!(text.contains(words), "its time is told before it begins: {words}: {text}");
    }
    for scenario in &repeated.paper.scenarios {
        let place = &scenario.place;
        let failed: Vec<_> = scenario.notes.iter().filter(|of| of.contains("not done")).collect();
        assert!(failed.is_empty(), "{place}: {failed:?}");
        assert!(scenario.rows.iter().any(|row| row.paper.is_some()), "{place}");
        for row in &scenario.rows {
            assert!(!row.why.is_empty(), "{place}: {row:?}");
            check(place, row);
        }
        assert_eq!(scenario.commands.len(), scenario.runs.len(), "each with what repeats it");
        for run in &scenario.runs {
            let run = repeated.directory.join(run);
            assert!(run.join("run.json").is_file(), "{}", run.display());
            assert!(run.join("report.html").is_file(), "{}", run.display());
        }
    }
}

/// What holds of every row, whatever the host did meanwhile.
fn check(place: &str, row: &Row) {
    let Some(here) = &row.here else {
        // A switch that costs nothing to be told, or a working set that was not tried.
        let told = ["did not lie together", "good pairs", "not tried", "not measured"];
        let told = told.iter().any(|words| row.why.contains(words));
        return assert!(told, "{place}: without a figure the row says why: {row:?}");
    };
    if let Some((low, high)) = here.interval {
        // Parts of a time and the whole of it are cut at instants that differ by a gap.
        let slack = 0.01 * here.value.abs();
        assert!(low <= here.value + slack && here.value <= high + slack, "{place}: {row:?}");
    } else {
        // The shortest of all has none, and what is computed; others are too few for one.
        let few = here.n.is_none_or(|n| n < 40);
        assert!(few || row.what.contains("the fastest"), "{place}: {row:?}");
    }
    let host = row.why.contains("mostly the host's doing");
    if let Some(without) = &row.without_host {
        assert!(without.value < here.value, "{place}: {row:?}");
        assert!(!host || without.value <= here.value / 2.0 + 1e-9, "{place}: {row:?}");
    } else {
        assert!(!host, "{place}: {row:?}");
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn switches_are_the_papers_command_lines_and_have_costs_shares_and_quanta() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    let scenario = repeated.scenario("5.1");
    for words in ["-n 10 -a -p NORMAL -w CPU --cpus", "-n 10 -a -p NORMAL -w CPU_YIELD 0.9ms"] {
        assert!(scenario.commands.iter().any(|of| of.contains(words)), "{:?}", scenario.commands);
    }
    for kind in ["involuntary, ten threads", "by yielding, ten threads"] {
        let fastest = here(scenario, &["the fastest", kind]);
        assert!(fastest.n.unwrap() > 20, "{fastest:?}");
        let expected = row(scenario, &["cost of a switch", kind]);
        assert!(here(scenario, &["cost of a switch", kind]).value >= fastest.value, "{expected:?}");
        assert!(expected.why.contains("cycles of its 850 MHz"), "{expected:?}");
        assert!(told_apart(&expected.why), "{expected:?}");
    }
    for kind in ["hand-off, threads", "yield, processes", "involuntary, threads"] {
        let why = &row(scenario, &["cost of a switch", kind]).why;
        assert!(told_apart(why) && why.contains("repetitions"), "{why}");
    }
    assert!(here(scenario, &["quantum"]).value > 200_000.0);
}

/// Switches with more in them are a share of all, or there is no cost that they could exceed.
fn told_apart(why: &str) -> bool {
    why.contains("contaminated by more than the switch") != why.contains("did not lie together")
}

#[test]
#[ignore = "live figure: to accept"]
fn working_sets_reach_beyond_the_last_cache_or_say_why_not() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    let scenario = repeated.scenario("5.2");
    let run = program::read(&repeated.directory.join("5.2"));
    let cost = run.switch_cost.unwrap();
    assert_eq!(cost.indirect.len(), scenario.rows.len());
    let largest = cost.indirect.iter().map(|of| of.bytes).max().unwrap();
    if let Some(last) = cost.caches.last() {
        assert_eq!(largest, 2 * last.bytes, "{:?}", cost.caches);
    }
    for (of, row) in cost.indirect.iter().zip(&scenario.rows) {
        assert_eq!(of.penalty.is_some(), row.here.is_some(), "{of:?}");
        let stands = ["all ten", "into no cache", "no caches"];
        assert!(stands.iter().any(|words| row.why.contains(words)), "{row:?}");
        // What reading it again takes is told of every set that was tried.
        assert_eq!(of.refill.is_some(), row.why.contains("GB/s"), "{row:?}");
        assert!(of.tried > 0 || row.why.contains("not tried"), "{row:?}");
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn late_wake_ups_are_fewer_beyond_longer_times_with_and_without_the_host() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    let scenario = repeated.scenario("5.3");
    for name in ["idle", "with files and network"] {
        let lengths = ["1.00ms,", "5.00ms,", "10.0ms,", "50.0ms,"];
        let of = |figure: &dyn Fn(&[&str]) -> f64| -> Vec<f64> {
            lengths.iter().map(|length| figure(&["later than", length, name])).collect()
        };
        let with = of(&|words| here(scenario, words).value);
        let without = of(&|words| without_host(scenario, words));
        for counts in [&with, &without] {
            assert!(counts.windows(2).all(|pair| pair[0] >= pair[1]), "{name}: {counts:?}");
        }
        for (length, count) in lengths.iter().zip(&with) {
            let row = row(scenario, &["later than", length, name]);
            let named = row.why.contains("named after") || row.why.contains("not known");
            let none = row.why.contains("was so late");
            assert_eq!(*count > 0.5, named && !none, "{row:?}");
            let other = name != "idle" && row.why.contains("the idle machine");
            assert_eq!(name != "idle", other, "beside its control: {row:?}");
            assert_eq!(name != "idle", row.paper.is_some(), "{row:?}");
        }
    }
    assert!(scenario.notes.iter().any(|note| note.starts_with("load: ")), "{:?}", scenario.notes);
}

#[test]
#[ignore = "live figure: to accept"]
fn deadlines_beside_the_network_stand_beside_their_controls() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    let scenario = repeated.scenario("5.4");
    let alone = here(scenario, &["control 2"]);
    assert_eq!(alone.unit, Unit::BitsPerSecond);
    for part in ["4 in 5ms beside the network", "8 in 10ms beside the network"] {
        let missed = row(scenario, &["missed deadlines", part]);
        assert!(missed.why.contains("control 1"), "{missed:?}");
        assert!(missed.why.contains("interrupts and the kernel's own time took"), "{missed:?}");
        let received = row(scenario, &["throughput", part]);
        assert!(received.why.contains("of control 2, where the thread leaves"), "{received:?}");
        assert!(here(scenario, &["throughput", part]).value > 1e6);
    }
    // A real-time clock, or the note that there is none.
    let rtc = scenario.commands.iter().any(|command| command.contains("RTC"));
    let noted = scenario.notes.iter().any(|note| note.contains("in place of the paper's timer"));
    assert!(rtc != noted, "{:?} {:?}", scenario.commands, scenario.notes);
}

#[test]
#[ignore = "live figure: to accept"]
fn the_papers_two_tasks_miss_with_a_coarse_timer_and_less_with_a_fine_one() {
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
    // What the host took is in both; without it the timer alone tells them apart. What kept a job waiting
    // is not all known to be the host's doing: where it took half of what the tasks leave, it is asked again.
    let apart = |scenario: &Scenario| {
        let coarse = without_host(scenario, &of("that the paper's usleep had"));
        let fine = without_host(scenario, &of("high-resolution"));
        say(&format!("missed by the coarse timer {coarse:.3}, by the fine one {fine:.3}"));
        let story = coarse > 0.2 && fine < coarse / 2.0;
        story.then_some(()).ok_or_else(|| {
            format!("the story of 5.5: a coarse timer misses ({coarse}), and a fine one mends it ({fine})")
        })
    };
    let again = || {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("paper");
        let output = whylate("paper hourglass2002 --quick --only 5.5 -o".split_whitespace())
            .arg(&directory)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        apart(&Paper::read(&directory).unwrap().unwrap().scenarios[0])
    };
    if apart(scenario).is_err() {
        needs::unless_taken(&whylate_sys::affinity::get(), LEFT_NS / 2.0, again);
    }
    let native = &row(scenario, &of("usleep as it is today")).why;
    assert!(native.contains("slack does not count for a real-time thread"), "{native}");
    // The first task waits by its own timer, and keeps the CPU for none of its sleeps.
    let first = &row(scenario, &["missed deadlines of task 0, HR", "that the paper's usleep"]).why;
    assert!(coarse_busy.contains("2.00ms of busy waiting"), "{coarse_busy}");
    assert!(!first.contains("busy waiting"), "{first}");
}

#[test]
#[ignore = "live figure: to accept"]
fn reservations_are_told_with_what_jobs_were_charged() {
    let _alone = program::alone();
    let Some(repeated) = repeated() else { return };
    let scenario = repeated.scenario("5.6");
    for task in ["task 0", "task 1"] {
        let exact = row(scenario, &[task, "exactly what is needed"]);
        let spare = row(scenario, &[task, "0.1ms to spare"]);
        for row in [exact, spare] {
            assert!(row.why.contains("reserved") && row.why.contains("jobs ("), "{row:?}");
        }
        assert!(spare.why.contains("the run with exactly what is needed"), "{spare:?}");
    }
}

#[test]
#[ignore = "live figure: to accept"]
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
            assert!(text.contains(row.what.trim()), "{row:?}");
        }
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn host_and_client_server_stand_beside_the_papers_table_with_parts_that_sum_to_the_whole() {
    let _alone = program::alone();
    let there = needs::root() && needs::program("ip").is_some() && needs::tracefs().is_some();
    if !there || needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("paper");
    let words = ["paper", "pam2017", "--quick", "--experiments", "4,6a", "--seed", "5", "-o"];
    let mut command = whylate(words);
    command.arg(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let parent = child.id() as i32;
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let paper = Paper::read(&directory).unwrap().unwrap();
    assert!(!Path::new("/run/netns/whylate-pam2017-client").exists(), "its bed is still up");
    let places: Vec<&str> = paper.scenarios.iter().map(|of| of.place.as_str()).collect();
    assert_eq!(places, ["4", "6a"]);
    let text = said(&output);
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
    // The host's time is within the round trip of the same kind of requests.
    let host = here(&paper.scenarios[0], &["minimum", "in the server's host"]);
    let whole = program::read(&directory.join("4"));
    let other =
        |warning: &Warning| matches!(warning, Warning::AnotherRun { pid } if *pid == parent);
    assert!(!whole.warnings.iter().any(other), "who started it is no other run");
    let service = whole.flows[0].service.as_ref().unwrap();
    let service = whole.series.iter().find(|of| of.name == *service).unwrap();
    let least = service.min.unwrap().0 as f64;
    assert!(host.value > 0.0 && host.value <= least, "{host:?} of {least}");
    let host = here(&paper.scenarios[0], &["median", "in the server's host"]);
    let median = service.quantiles.iter().find(|of| (of.percent - 50.0).abs() < 1e-9).unwrap();
    assert!(host.value <= median.value.unwrap().0 as f64, "{host:?} of {median:?}");
    let few = |note: &String| note.contains("a million packets");
    assert!(paper.scenarios[0].notes.iter().any(few), "{:?}", paper.scenarios[0].notes);
    // What is not repeated is named with what would be, and has no figures.
    assert!(text.contains("Not repeated here yet"), "{text}");
    for place in ["1a", "2b", "6b", "8"] {
        let missing = paper.not_here.iter().find(|of| of.place == place).unwrap();
        assert!(!missing.would_be.is_empty(), "{missing:?}");
        let words = ["paper", "pam2017", "--experiments", place];
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
    let (least, median) = (value("minimum").unwrap(), value("median").unwrap());
    assert!(least > 0.0 && least <= median, "{scenario:#?}");
    // A host that others use may leave too few requests for the last one.
    if let (Some(p999), Some(most)) = (value("p99.9"), value("tail")) {
        assert!(median <= p999 && p999 <= most * 1.001, "{scenario:#?}");
        assert!(row("p99.9").why.contains("by the paper's rule"), "{scenario:#?}");
    }
}

#[test]
fn places_that_the_paper_has_not_and_damaged_files_are_refused_by_name() {
    let output = whylate(["paper", "hourglass2002", "--only", "7.1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("Figure 3, 5.1"), "{}", said(&output));
    let home = tempfile::tempdir().unwrap();
    for (content, told) in
        [("{", "paper.json"), ("{\"format_version\": 99}", "paper.json"), ("[]", "paper.json")]
    {
        std::fs::write(home.path().join(PAPER_FILE), content).unwrap();
        let output = whylate(["report"]).arg(home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{content}: {}", said(&output));
        assert!(said(&output).contains(told), "{content}: {}", said(&output));
    }
}
