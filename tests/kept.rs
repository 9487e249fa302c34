//! Runs of format version 1, one of each kind, kept as they were recorded: they are read for ever, and a
//! change of what they say is seen.
//!
//! Their host has another name and no kernel command line; nothing else is changed.

use std::path::PathBuf;

use serde_json::Value;
use whylate_model::Nanos;
use whylate_model::directory::{RunDir, version_one};
use whylate_model::run::{FORMAT_VERSION, Run};
use whylate_model::series::Series;

use crate::{directories, program};

/// The directories, by name.
const KINDS: [&str; 10] = [
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
fn every_kept_run_is_of_version_one_and_each_value_in_it_is_read() {
    for kind in KINDS {
        let text = std::fs::read_to_string(directory(kind).join("run.json")).unwrap();
        let kept: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kept["format_version"], 1, "{kind}");
        let read: Value = serde_json::from_str(&reported(kind, &["--format", "json"])).unwrap();
        assert_within(&version_one::upgraded(kept), &read, kind);
        let level = read["trust"]["level"].as_str().unwrap();
        let text = reported(kind, &[]);
        assert!(text.contains(&format!("Trust: {level}")), "{kind}: {level}: {text}");
    }
    assert_eq!(
        FORMAT_VERSION, 2,
        "a new version leaves these runs as they are, and keeps some of its own"
    );
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
    let sum = program::read(&sum);
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
        let mut hosts = vec![program::read(&directory(kind)).host];
        hosts.extend(program::read(&directory(kind)).origins.into_iter().map(|origin| origin.host));
        for host in hosts {
            assert_eq!((host.hostname.as_str(), host.command_line.as_str()), ("example", "quiet"));
        }
    }
}

/// What holds of the numbers of every run, whatever was measured.
#[test]
fn shares_of_every_kept_run_lie_between_nothing_and_all_and_no_part_is_above_its_whole() {
    for kind in KINDS {
        let run = program::read(&directory(kind));
        for gaps in &run.gaps {
            assert!(is_share(gaps.lost_share), "{kind}: {gaps:?}");
            assert!(gaps.lost_share_interval.is_none_or(|(low, high)| {
                is_share(low) && low <= gaps.lost_share && gaps.lost_share <= high && is_share(high)
            }));
            // Of the kept self-test they add up to more than its begin and end are apart.
            let taken = gaps.gap_ticks + gaps.recording_ticks;
            let fits = taken <= gaps.end.since(gaps.start);
            assert!(fits || run.selftest.is_some(), "{kind}: {gaps:?}");
            assert!(gaps.rates.iter().all(|rate| rate.count <= gaps.gaps), "{kind}: {gaps:?}");
            for share in &gaps.time_shares {
                assert!(
                    is_share(share.of_elapsed) && is_share(share.of_inside),
                    "{kind}: {share:?}"
                );
                assert!(share.of_elapsed <= share.of_inside, "{kind}: {share:?}");
            }
        }
        run.series.iter().for_each(|series| assert_series(kind, series));
        if let Some(coverage) = run.coverage {
            let parts = [coverage.by_events, coverage.by_residuals, coverage.by_nothing];
            assert!(parts.iter().all(|part| is_share(*part)), "{kind}: {parts:?}");
            assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{kind}: {parts:?}");
        }
        for gap in &run.worst {
            let parts: u64 =
                gap.parts.iter().map(|part| part.length.to_nanos(run.clock.hz).0).sum();
            // Each part is rounded to a nanosecond.
            assert!(parts.abs_diff(gap.length.0) <= gap.parts.len() as u64 + 1, "{kind}: {gap:?}");
        }
        if let Some(trace) = &run.evidence.trace {
            assert!(trace.events_in_gaps <= trace.events_measured, "{kind}: {trace:?}");
        }
        assert!(run.flows.iter().all(|flow| flow.packets.add_up()), "{kind}");
    }
}

fn is_share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

/// Percentiles are in order between the smallest and the largest, and none is shown above one that is not.
fn assert_series(kind: &str, series: &Series) {
    let name = &series.name;
    assert!(
        series.tail.is_none_or(|of| of.count <= series.n && is_share(of.share)),
        "{kind} {name}"
    );
    let shown = series.quantiles.iter().take_while(|of| of.value.is_some()).count();
    assert!(series.quantiles[shown..].iter().all(|of| of.value.is_none()), "{kind} {name}");
    let values = series.quantiles[..shown].iter().map(|of| of.value);
    let all: Vec<_> =
        [series.min].into_iter().chain(values).chain([series.max]).flatten().collect();
    assert!(all.is_sorted(), "{kind} {name}: {all:?}");
    for of in &series.quantiles[..shown] {
        assert!(of.low.is_none_or(|low| Some(low) <= of.value), "{kind} {name}: {of:?}");
        assert!(of.high.is_none_or(|high| Some(high) >= of.value), "{kind} {name}: {of:?}");
    }
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
    let mut report = program::whylate(["report"]);
    report.arg(directory(kind)).args(words).env_remove("COLUMNS");
    let output =
        report.env("TZ", "Pacific/Kiritimati").env("LC_ALL", "de_DE.UTF-8").output().unwrap();
    let status = output.status.code().filter(|status| [0, 4].contains(status));
    let status = status.unwrap_or_else(|| panic!("{kind}: {}", program::said(&output)));
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
        (kept, read) => assert_eq!(kept, read, "{path}"),
    }
}
