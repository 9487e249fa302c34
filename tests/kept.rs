//! Runs that are kept as they were recorded: ten kinds of format version 1, and each other one of version 2. They
//! are read for ever, and a change of what they say is seen. So are a paper's experiments with their runs.
//!
//! Their host has another name and no kernel command line; nothing else is changed, but that the runs of a paper were
//! written without their tables and logs, which are too large to keep.

use std::path::{Path, PathBuf};

use serde_json::Value;
use whylate_model::directory::{RunDir, in_words, version_one};
use whylate_model::host::Fingerprint;
use whylate_model::injection::Injection;
use whylate_model::paper::Paper;
use whylate_model::run::{FORMAT_VERSION, Run, SelfTest, SelfTestKind};
use whylate_model::segments;
use whylate_model::series::Series;
use whylate_model::settings::{self, Settings};
use whylate_model::{Nanos, Ticks};
use whylate_report::compare::{Request, compare};

use crate::{directories, holds, program, requests, two_cpus};

/// The directories, by name.
pub(crate) const KINDS: [&str; 26] = [
    "after",
    "backends",
    "before",
    "breakdown",
    "calibrate",
    "checkup",
    "delay",
    "device",
    "flows",
    "forward",
    "gaps",
    "gaps-2",
    "hourglass",
    "matrix",
    "merge",
    "reflect",
    "rta",
    "rtt",
    "selftest",
    "selftest-2",
    "slow",
    "steps",
    "switch-cost",
    "threads",
    "wake",
    "watch",
];

/// Those of format version 1.
const OF_VERSION_ONE: [&str; 10] = [
    "checkup",
    "gaps",
    "hourglass",
    "merge",
    "rta",
    "rtt",
    "selftest",
    "switch-cost",
    "threads",
    "wake",
];

/// Those of version 2 whose settings stood in words.
const IN_WORDS: [&str; 2] = ["gaps-2", "selftest-2"];

/// Reasons as kept runs have them, and in the words of today.
const TOLD_ANEW: [(&str, &str); 24] = [
    ("requests of ", "the send delay of "),
    (" left later (p", " (p"),
    (") than they were in flight (p", ") exceeds its service time (p"),
    (
        "26 of 28 gaps ascribed to the injector were made by it",
        "2 of 28 stalls attributed to the injector had another cause",
    ),
    (
        "78 of 79 gaps ascribed to the injector were made by it",
        "1 of 79 stalls attributed to the injector had another cause",
    ),
    (
        ": response times are the client's own",
        ": the response times measure the client, not the server",
    ),
    (" interruptions were found", " interruptions were found, and all must be"),
    ("the first differs from itself by +-61.9%", "udp spin differs from itself by up to +-62%"),
    (
        "the first differs from itself by +-31368089.9%",
        "udp spin differs from itself by up to +-31368090%",
    ),
    ("a client of bare link (64 bytes) doubts itself", "through bare link, 64 bytes"),
    ("a client of bridge (64 bytes) doubts itself", "through bridge, 64 bytes"),
    ("a client of delay line (512 bytes) doubts itself", "through delay line, 512 bytes"),
    (", 64 bytes, there", ", 64 B outbound"),
    (", 64 bytes, back", ", 64 B inbound"),
    (", 512 bytes, there", ", 512 B outbound"),
    (", 512 bytes, back", ", 512 B inbound"),
    ("the send delay of there (", "the send delay of outbound frames ("),
    ("the send delay of back (", "the send delay of inbound frames ("),
    ("%, and it takes 3% or less", "% (at most 3% is allowed)"),
    ("calibrated at 2000 a second, not 1000", "calibrated at 2,000/s, not 1,000/s"),
    (
        "it was found one way over an open lab bed with a delay line at 10.0us in it, and these numbers are there \
         and back over loopback",
        "calibrated for one-way latency over an open test network (delay line at 10.0us), not for round trips over \
         loopback",
    ),
    (
        "latency grows by -2.629 ns a byte",
        "latency does not grow with the frame size (-2.63ns per byte)",
    ),
    (
        "latency grows by -3.509 ns a byte",
        "latency does not grow with the frame size (-3.51ns per byte)",
    ),
    (
        "; links of memory take no time for a byte, and whole frames are handed over: what grows is copying",
        ": a virtual link takes no time for a byte",
    ),
];

/// Experiments of papers that are kept, by the name of the paper.
const PAPERS: [&str; 1] = ["hourglass2002"];

#[test]
fn a_kept_run_of_each_kind_says_what_it_said() {
    for kind in KINDS {
        let (status, text) = report(kind, &[]);
        let page = sections(kind).join(", ");
        let said = format!("{text}\nPage: {page}\nStatus: {status}\n");
        insta::assert_snapshot!(kind, said);
    }
}

#[test]
fn a_kept_paper_says_what_it_said_on_one_screen_and_in_whole() {
    for name in PAPERS {
        let place = program::file("papers").join(name);
        let mut report = program::as_used(["report", name]);
        let output = report.current_dir(program::file("papers")).env("LC_ALL", "C.UTF-8").output();
        let first = String::from_utf8(output.unwrap().stdout).unwrap();
        let (status, whole) = report_of(&place, &[]);
        assert!(first.lines().count() < 24 && first.starts_with("Recorded 2026-11-"), "{first}");
        insta::assert_snapshot!(name, format!("{first}\n{whole}\nStatus: {status}\n"));
    }
}

#[test]
fn a_comparison_of_two_kept_runs_says_what_it_said_on_one_screen_and_in_whole() {
    let said = |words: &[&str]| {
        let mut compare = program::as_used(["compare", "before", "after"]);
        compare.args(words).current_dir(program::file("runs")).env("LC_ALL", "C.UTF-8");
        let output = compare.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let ((status, first), (of_whole, whole)) = (said(&[]), said(&["--full"]));
    assert_eq!(status, of_whole);
    assert!(first.lines().count() < 24, "{first}");
    insta::assert_snapshot!("compare", format!("{first}\n{whole}\nStatus: {status}\n"));
}

#[test]
fn what_a_report_of_a_kept_run_withholds_is_no_number_in_its_comparison_with_itself() {
    let mut compared = 0;
    for kind in KINDS {
        let run = program::read(&directory(kind));
        for side_by_side in [false, true] {
            let request = Request {
                before: vec![directory(kind)],
                after: vec![directory(kind)],
                side_by_side,
                limits: holds::LIMITS.iter().map(|(limit, _)| limit.parse().unwrap()).collect(),
                ..Request::default()
            };
            let Ok(found) = compare(&request) else { continue };
            let found = found.comparison;
            holds::compared(kind, [&run, &run], &found);
            compared += usize::from(found.says_anything());
        }
    }
    assert!(compared > KINDS.len(), "{compared} said something");
}

#[test]
fn a_kept_run_is_shown_as_its_first_screen_unless_all_of_it_is_asked_for() {
    let mut with_letters = 0;
    for kind in KINDS {
        let said = |words: &[&str], locale: &str| {
            let mut report = program::as_used(["report"]);
            report.arg(directory(kind)).args(words).env("LC_ALL", locale);
            String::from_utf8(report.output().unwrap().stdout).unwrap()
        };
        let (first, whole) = (said(&[], "C.UTF-8"), said(&["--full"], "C.UTF-8"));
        assert_eq!(whole, reported(kind, &[]), "{kind}");
        // A path has a line of its own where it does not fit, and what the user typed is a line.
        let lines = first.lines().count();
        let begin = if kind == "merge" { "Merged by: " } else { "Recorded 2026-11-" };
        assert!(first.starts_with(begin) && lines < 24, "{lines}: {first}");
        assert!(first.contains("\nTrust: ") && first.contains(" --full"), "{first}");
        assert!(said(&[], "C").is_ascii(), "{first}");
        with_letters += usize::from(!first.is_ascii());
    }
    // Where nothing can be judged there is no number either, and threads without deadlines have only such as ASCII can
    // write.
    assert_eq!(with_letters, KINDS.len() - 2);
}

#[test]
fn each_value_of_a_kept_run_is_read_whatever_its_version_calls_it() {
    for kind in KINDS {
        let text = std::fs::read_to_string(directory(kind).join("run.json")).unwrap();
        let mut kept: Value = serde_json::from_str(&text).unwrap();
        // Of the file, not of the run.
        for of_file in ["digest_kind", "digest"] {
            kept.as_object_mut().unwrap().remove(of_file);
        }
        let version = if OF_VERSION_ONE.contains(&kind) { 1 } else { 2 };
        assert_eq!(kept["format_version"], version, "{kind}");
        let read: Value = serde_json::from_str(&reported(kind, &["--format", "json"])).unwrap();
        let kept = match version {
            1 => version_one::upgraded(kept),
            _ if IN_WORDS.contains(&kind) => settled(kept),
            _ => kept,
        };
        let kept = with_ends_in_order(kept);
        assert_within(&kept, &read, kind);
        let level = read["trust"]["level"].as_str().unwrap();
        let text = reported(kind, &[]);
        assert!(text.contains(&format!("Trust: {level}")), "{kind}: {level}: {text}");
    }
    assert_eq!(
        FORMAT_VERSION, 2,
        "a new version leaves these runs as they are, and keeps some of its own"
    );
}

/// Fields that hold percentiles in rising order.
const PERCENTILES: [&str; 3] = ["quantiles", "measured", "bounds"];

/// With the bounds of rising percentiles in the order that they are read in: what bounds one from below bounds each
/// higher one, too, as the least value bounds all of them, and what bounds one from above each lower one.
fn with_ends_in_order(of: Value) -> Value {
    match of {
        Value::Object(fields) => {
            let least = fields.get("min_ns").and_then(Value::as_f64);
            let within = |(name, value): (String, Value)| {
                let value = match value {
                    Value::Array(rows) if PERCENTILES.contains(&name.as_str()) => {
                        // The least value is that of the whole way, of which a box has a part.
                        Value::Array(rising(rows, least.filter(|_| name != "bounds")))
                    }
                    other => with_ends_in_order(other),
                };
                (name, value)
            };
            Value::Object(fields.into_iter().map(within).collect())
        }
        Value::Array(rows) => rows.into_iter().map(with_ends_in_order).collect(),
        other => other,
    }
}

fn rising(mut rows: Vec<Value>, least: Option<f64>) -> Vec<Value> {
    let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_f64);
    let mut low: Option<f64> = None;
    for row in &mut rows {
        let own = number(row, "low_ns").map(|own| own.max(least.unwrap_or(own)));
        let bound = [own, low].into_iter().flatten().reduce(f64::max);
        low = bound.map(|low| low.min(number(row, "value_ns").unwrap_or(low)));
        if let Some(low) = low {
            row["low_ns"] = low.into();
        }
    }
    let mut high: Option<f64> = None;
    for row in rows.iter_mut().rev() {
        let own = number(row, "high_ns");
        high = [own, high].into_iter().flatten().reduce(f64::min);
        if let (true, Some(high)) = (own.is_some(), high) {
            row["high_ns"] = high.into();
        }
    }
    rows
}

/// What stands in words in the settings of a run of version 2, as values.
fn settled(mut run: Value) -> Value {
    let mut settings: Settings = serde_json::from_value(run["settings"].take()).unwrap();
    let words = settings.clone();
    in_words::read(&mut settings);
    assert_ne!(settings, words, "the kept ones are older than the values");
    for (name, setting) in &settings {
        assert_eq!(setting.to_string(), words[name].to_string(), "{name} is shown as it was");
    }
    assert_eq!(settings::unfit(&settings), [""; 0]);
    run["settings"] = serde_json::to_value(settings).unwrap();
    run
}

#[test]
fn a_run_of_version_one_is_compared_and_added_up_with_one_of_version_two() {
    let home = tempfile::tempdir().unwrap();
    let [one, two, sum] = [directory("checkup"), home.path().join("two"), home.path().join("sum")];
    directories::copy(&one, &two);
    // The same again, from another host and as this version stores it.
    let mut run = program::read(&one);
    assert_eq!(run.settings["duration"].to_string(), "1.60s");
    run.settings.insert("duration".to_owned(), Nanos(1_600_000_000).into());
    run.host.hostname = "another".to_owned();
    RunDir::open(&two).unwrap().write_run(&run).unwrap();
    let stored = std::fs::read(two.join("run.json")).unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(
        (&stored["format_version"], &stored["settings"]["duration"]["time_ns"]),
        (&Value::from(2), &Value::from(1_600_000_000))
    );
    let causes = stored["causes"].as_array().unwrap();
    assert!(causes.iter().all(|of| of["per_cpu"].as_array().is_some_and(|all| all.len() == 1)));
    assert_eq!(2 * causes.len(), run.causes.len());

    let mut compare = program::whylate(["compare", "--format", "json"]);
    let output = compare.arg(&one).arg(&two).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &found["pairs"][0]["result"];
    assert_eq!(result["outcome"], "compared", "{found}");
    assert_eq!(result["quantiles"][0]["before_ns"], result["quantiles"][0]["after_ns"]);
    let differences = found["differences"].as_array().unwrap();
    let names: Vec<&str> = differences.iter().filter_map(|of| of["name"].as_str()).collect();
    assert!(!names.iter().any(|name| name.starts_with("setting")), "{names:?}");

    let output =
        program::whylate(["merge"]).args([&one, &two]).arg("-o").arg(&sum).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", program::said(&output));
    let traced = |run: &Run| run.evidence.trace.is_some();
    let against = Request { before: vec![one], after: vec![sum.clone()], ..Request::default() };
    let found = whylate_report::compare::compare(&against).unwrap().comparison.differences;
    assert!(found.iter().all(|of| of.name != "kernel trace"), "{found:?}");
    let sum = program::read(&sum);
    assert!(
        traced(&run) && sum.origins.iter().all(|of| of.traced == Some(true)),
        "both were traced"
    );
    let samples = |run: &Run| run.series.iter().map(|of| of.n).sum();
    let [of_one, of_sum]: [u64; 2] = [samples(&run), samples(&sum)];
    assert_eq!(of_sum, 2 * of_one);
    assert!(sum.settings.keys().eq(run.settings.keys()), "{:?}", sum.settings);
    let gaps = |run: &Run| run.causes.iter().filter(|of| of.cpu.is_none()).map(|of| of.gaps).sum();
    let [of_one, of_sum]: [u64; 2] = [gaps(&run), gaps(&sum)];
    assert_eq!(of_sum, 2 * of_one);
}

#[test]
fn every_directory_of_kept_runs_is_looked_at_and_names_no_machine() {
    let entries = std::fs::read_dir(program::file("runs")).unwrap();
    let mut found: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, KINDS);
    for kind in KINDS {
        let run = program::read(&directory(kind));
        let hosts = run.origins.into_iter().map(|origin| origin.host).chain([run.host]);
        assert_eq!(hosts.filter(|host| !is_example(host)).count(), 0, "{kind}");
    }
    let entries = std::fs::read_dir(program::file("papers")).unwrap();
    let found = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.collect::<Vec<_>>(), PAPERS);
    for name in PAPERS {
        let place = program::file("papers").join(name);
        assert!(is_example(&Paper::read(&place).unwrap().unwrap().host), "{name}");
        let parts = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
        for part in parts.filter(|part| part.is_dir()) {
            assert!(is_example(&program::read(&part).host), "{part:?}");
        }
    }
}

fn is_example(host: &Fingerprint) -> bool {
    (host.hostname.as_str(), host.command_line.as_str()) == ("example", "quiet")
}

#[test]
fn shares_of_every_kept_run_lie_between_nothing_and_all_and_no_part_is_above_its_whole() {
    let mut of_gaps = 0;
    for kind in KINDS {
        let run = program::read(&directory(kind));
        holds::run(kind, &run);
        holds::causes(kind, &run);
        of_gaps += usize::from(!run.causes.is_empty() && !run.gaps.is_empty());
        let mut report = program::whylate(["report"]);
        report.arg(directory(kind)).env("COLUMNS", holds::WIDE.to_string());
        let output = report.env("LC_ALL", "C.UTF-8").output().unwrap();
        holds::withheld(kind, &run, &String::from_utf8(output.stdout).unwrap());
    }
    assert!(of_gaps >= 7, "{of_gaps} runs of gaps with causes");
}

/// Tables, log and sums of every run are of the same recording.
#[test]
fn sums_of_every_kept_run_are_those_of_its_tables_and_its_log() {
    // Those of version 1: stretches of the self-test were cut from a longer one, whose sums it has, and the log
    // of `gaps` ends early. Those of version 2 are whole; the tables of `matrix` are those of its parts.
    let others = ["gaps", "matrix", "selftest"];
    for kind in KINDS.into_iter().filter(|kind| !others.contains(kind)) {
        let place = directory(kind);
        assert_eq!(disagreement(&program::read(&place), &place), None, "{kind}");
    }
}

#[test]
fn a_run_whose_sums_are_not_those_of_its_tables_is_seen() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("run");
    two_cpus::run(&place, 2_000);
    let whole = program::read(&place);
    assert_eq!(disagreement(&whole, &place), None);
    let changed = |change: &dyn Fn(&mut Run)| {
        let mut run = whole.clone();
        change(&mut run);
        disagreement(&run, &place).unwrap_or_default()
    };
    let of_end = changed(&|run| {
        run.gaps[0].end = Ticks(run.gaps[0].start.0 + run.gaps[0].gap_ticks.0 - 1);
    });
    assert!(of_end.contains("longer than it took"), "the end was cut: {of_end}");
    let of_gaps = changed(&|run| run.gaps[1].gaps += 1);
    assert!(of_gaps.contains("2000 gaps in tables, 2001 told"), "one is missing: {of_gaps}");
    let of_series = changed(&|run| run.series[0].n -= 1);
    assert!(of_series.contains("in the log"), "a value too many: {of_series}");
    let of_plants = changed(&|run| {
        let one = SelfTestKind {
            kind: "signal".to_owned(),
            injected: 1,
            found: 0,
            ascribed: 0,
            ascribed_rightly: 0,
            named_right: 0,
            with_trace: true,
            length_error_ns: None,
            length_error_p99_ns: None,
        };
        run.selftest = Some(SelfTest { kinds: vec![one], ..SelfTest::default() });
    });
    assert!(of_plants.contains("signal"), "nothing was injected: {of_plants}");
}

/// Where sums of a run are not those of its tables and of its log.
fn disagreement(run: &Run, place: &Path) -> Option<String> {
    for gaps in &run.gaps {
        if gaps.gap_ticks + gaps.recording_ticks > gaps.end.since(gaps.start) {
            return Some(format!("{}: gaps are longer than it took: {gaps:?}", gaps.series));
        }
    }
    for Series { name, n, .. } in &run.series {
        let logged = requests::logged(place, name).len();
        if logged != *n {
            return Some(format!("{name}: {logged} of {n} in the log"));
        }
    }
    let directory = RunDir::open(place).unwrap();
    // The gaps of a set are those of its threads.
    if run.threads.is_empty() && run.origins.is_empty() {
        let rows = segments::read_gaps(&directory).unwrap().count() as u64;
        let told: u64 = run.gaps.iter().map(|of| of.gaps - of.dropped).sum();
        if rows != told {
            return Some(format!("{rows} gaps in tables, {told} told"));
        }
    }
    let injected = segments::read_injections(&directory).unwrap();
    let injected: Vec<Injection> = injected.collect::<Result<_, _>>().unwrap();
    let kinds = run.selftest.iter().flat_map(|test| &test.kinds);
    let made = |of: &SelfTestKind| injected.iter().filter(|one| one.kind == of.kind).count() as u64;
    let mut more = kinds.filter(|of| of.injected > made(of));
    more.next().map(|of| format!("{}: more than were injected: {of:?}", of.kind))
}

fn directory(kind: &str) -> PathBuf {
    program::file("runs").join(kind)
}

/// What `whylate report` prints.
fn reported(kind: &str, words: &[&str]) -> String {
    report(kind, words).1
}

/// How `whylate report` ends and what it prints, wherever and in whatever language it is asked: 4 of a run
/// that cannot be relied on, as of one that is kept without one of its files.
fn report(kind: &str, words: &[&str]) -> (i32, String) {
    report_of(&directory(kind), words)
}

fn report_of(place: &Path, words: &[&str]) -> (i32, String) {
    let mut report = program::whylate([&["report"], words].concat());
    report.arg(place).env_remove("COLUMNS");
    let output =
        report.env("TZ", "Pacific/Kiritimati").env("LC_ALL", "de_DE.UTF-8").output().unwrap();
    let status = output.status.code().filter(|status| [0, 4].contains(status));
    let status =
        status.unwrap_or_else(|| panic!("{}: {}", place.display(), program::said(&output)));
    (status, String::from_utf8(output.stdout).unwrap())
}

/// The sections of the page, in their order.
fn sections(kind: &str) -> Vec<String> {
    let page = reported(kind, &["--html", "-"]);
    let begun = page.split("<section id=\"").skip(1);
    begun.filter_map(|from| from.split('"').next()).map(str::to_owned).collect()
}

/// Everything that was kept stands in what was read; what later releases added stands beside it.
fn assert_within(kept: &Value, read: &Value, path: &str) {
    match (kept, read) {
        (Value::Object(kept), Value::Object(read)) => {
            for (name, kept) in kept {
                let path = format!("{path}.{name}");
                assert_within(
                    kept,
                    read.get(name).unwrap_or_else(|| panic!("{path} is gone")),
                    &path,
                );
            }
        }
        (Value::Array(kept), Value::Array(read)) => {
            assert_eq!(kept.len(), read.len(), "{path}");
            for (at, (kept, read)) in kept.iter().zip(read).enumerate() {
                assert_within(kept, read, &format!("{path}[{at}]"));
            }
        }
        (Value::Number(kept), Value::Number(read)) => {
            assert_eq!(kept.as_f64(), read.as_f64(), "{path}");
        }
        (Value::String(kept), Value::String(read)) if kept != read => {
            let today = TOLD_ANEW
                .iter()
                .fold(kept.clone(), |told, (once, today)| told.replace(once, today));
            assert_eq!(today, *read, "{path}");
        }
        (kept, read) => assert_eq!(kept, read, "{path}"),
    }
}
