//! `whylate compare`, on run directories whose content is known.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use whylate_model::Nanos;
use whylate_model::cause::{Cause, Coverage};
use whylate_model::run::Verdict;
use whylate_model::schema::names;
use whylate_model::warning::Warning;
use whylate_stats::Histogram;

use crate::directories::{Planted, latencies};
use crate::program;

const READ: &str = "a reading of the counter";

/// The TSC tables of the measurement lecture, as committed with the statistics.
const USER: &str = include_str!("../crates/whylate-stats/tests/vectors/tsc_user.csv");
const KERNEL: &str = include_str!("../crates/whylate-stats/tests/vectors/tsc_kernel.csv");

fn lecture(table: &str) -> Histogram {
    let mut histogram = Histogram::new();
    for line in table.lines().skip(2) {
        let (value, count) = line.split_once(',').unwrap();
        histogram.record_n(value.parse().unwrap(), count.parse().unwrap());
    }
    histogram
}

fn compare(words: &[&str], directories: &[&Path]) -> Output {
    let directories: Vec<&str> = directories.iter().map(|path| path.to_str().unwrap()).collect();
    program::whylate([&["compare"], &directories[..], words].concat()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(words: &[&str], directories: &[&Path]) -> Value {
    let output = compare(&[words, &["--format", "json"]].concat(), directories);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", program::said(&output)))
}

/// The row of a table that begins with this word.
fn row<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("no row {name} in\n{text}")).split_whitespace().collect()
}

#[test]
fn the_lecture_s_tables_stand_beside_each_other_with_its_percentiles() {
    let home = tempfile::tempdir().unwrap();
    let user = Planted::new("user", 0).series("tsc", "a reading in user space", &[lecture(USER)]);
    let kernel =
        Planted::new("kernel", 9).series("tsc", "a reading in the kernel", &[lecture(KERNEL)]);
    let (user, kernel) = (user.write(home.path(), "user"), kernel.write(home.path(), "kernel"));

    let page = home.path().join("page.html");
    let words = ["--side-by-side", "--html", page.to_str().unwrap()];
    let output = compare(&words, &[&user, &kernel]);
    assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
    let said = text(&output);
    assert_eq!(row(&said, "p50"), ["p50", "10", "ns", "9", "ns"]);
    assert_eq!(row(&said, "p99.9"), ["p99.9", "10", "ns", "10", "ns"]);
    assert!(said.contains("from a reading in user space to"), "{said}");
    assert!(said.contains("without a verdict"), "{said}");
    assert!(!said.contains("B higher") && !said.contains("no difference shown"), "{said}");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 1, "both curves are in one figure");

    // Without the option nothing is computed, and the field is named.
    let output = compare(&[], &[&user, &kernel]);
    assert_eq!(output.status.code(), Some(1), "{}", program::said(&output));
    let said = text(&output);
    assert!(said.contains("NOT ALIKE in `from`"), "{said}");
    assert!(!said.contains("10 ns"), "{said}");
}

#[test]
fn each_unlike_field_is_named_and_nothing_is_computed() {
    type Change = fn(&mut whylate_model::run::Run);
    let home = tempfile::tempdir().unwrap();
    let quiet = || latencies(1, 30, 1_000.0);
    let base = Planted::new("a", 0).gaps(1, Nanos(100), &quiet()).write(home.path(), "base");
    let changes: [(&str, Change); 5] = [
        ("from", |run| run.series[0].from = "elsewhere".to_owned()),
        ("to", |run| run.series[0].to = "elsewhere".to_owned()),
        ("definition", |run| {
            run.series[0].definition = whylate_model::series::Definition::RoundTrip;
        }),
        ("clock", |run| run.series[0].clock = "cntvct_el0".to_owned()),
        ("loop", |run| run.gaps[0].loop_kind = whylate_model::run::LoopKind::Pair),
    ];
    for (field, change) in changes {
        let mut other = Planted::new("b", 100).gaps(1, Nanos(100), &quiet());
        change(&mut other.run);
        let other = other.write(home.path(), field);
        let found = json(&["--limit", "p50=+10%"], &[&base, &other]);
        let result = &found["pairs"][0]["result"];
        assert_eq!(result["outcome"], "unlike", "{field}: {result}");
        assert_eq!(result["fields"][0]["name"], field);
        assert_eq!(found["limits"][0]["outcome"], "cannot_be_judged", "{field}");
        let output = compare(&["--limit", "p50=+10%"], &[&base, &other]);
        assert_eq!(output.status.code(), Some(4), "{field}");
    }
}

#[test]
fn a_planted_difference_is_found_and_equals_are_not_told_apart() {
    let home = tempfile::tempdir().unwrap();
    let plant = |seed, level, name: &str| {
        let run = Planted::new("host", seed).series("rtt", READ, &latencies(seed, 120, level));
        run.write(home.path(), name)
    };
    let (a, same) = (plant(1, 10_000.0, "a"), plant(2, 10_000.0, "same"));
    let slower = plant(3, 14_000.0, "slower");

    let said = text(&compare(&[], &[&a, &same]));
    assert!(row(&said, "p50").join(" ").ends_with("no difference shown"), "{said}");
    let said = text(&compare(&[], &[&a, &slower]));
    assert!(row(&said, "p50").join(" ").contains("B higher"), "{said}");
    assert!(row(&said, "p99").join(" ").contains("B higher"), "{said}");
    let said = text(&compare(&[], &[&slower, &a]));
    assert!(row(&said, "p50").join(" ").contains("B lower"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
}

#[test]
fn limits_end_with_the_stated_status_and_a_report_that_others_read() {
    let home = tempfile::tempdir().unwrap();
    let plant = |seed, level, name: &str| {
        let run = Planted::new("host", seed).series("rtt", READ, &latencies(seed, 120, level));
        run.write(home.path(), name)
    };
    let (a, slower) = (plant(1, 10_000.0, "a"), plant(3, 14_000.0, "slower"));
    let junit = home.path().join("limits.xml");
    // 40 % more was planted; 38 % lies inside the interval, and p99.9999 in no interval at all.
    for (limits, status, outcomes) in [
        (&["p50=+10%"][..], 3, &["exceeded"][..]),
        (&["p50=+1us"], 3, &["exceeded"]),
        (&["p50=+90%", "rtt:p99=+90%"], 0, &["held", "held"]),
        (&["p50=+40%"], 0, &["not_shown"]),
        (&["p99.9999=+10%"], 4, &["cannot_be_judged"]),
        (&["max=+10%"], 4, &["cannot_be_judged"]),
        (&["elsewhere:p50=+10%"], 4, &["cannot_be_judged"]),
        (&["p50=+10%", "p99.9999=+10%"], 3, &["exceeded", "cannot_be_judged"]),
    ] {
        let mut words: Vec<&str> = limits.iter().flat_map(|limit| ["--limit", limit]).collect();
        let baseline = a.to_str().unwrap();
        words.extend(["--junit", junit.to_str().unwrap(), "--baseline", baseline]);
        let output = compare(&words, &[&slower]);
        let said = program::said(&output);
        assert_eq!(output.status.code(), Some(status), "{limits:?}: {said}");
        let found = json(&words, &[&slower]);
        let found: Vec<&str> = found["limits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|limit| limit["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(found, outcomes, "{limits:?}");
        let xml = std::fs::read_to_string(&junit).unwrap();
        let document = roxmltree::Document::parse(&xml).unwrap();
        let count = |name: &str| document.descendants().filter(|n| n.has_tag_name(name)).count();
        let of = |word: &str| outcomes.iter().filter(|outcome| **outcome == word).count();
        assert_eq!(count("testcase"), limits.len(), "{xml}");
        assert_eq!(count("failure"), of("exceeded"), "{xml}");
        assert_eq!(count("error"), of("cannot_be_judged"), "{xml}");
        let suite = document.root_element().first_element_child().unwrap();
        assert_eq!(suite.attribute("failures"), Some(of("exceeded").to_string().as_str()));
    }
}

#[test]
fn a_comparison_is_shown_as_its_first_screen_unless_all_of_it_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let plant = |seed, level| {
        let run = Planted::new("host", seed).series("rtt", READ, &latencies(seed, 120, level));
        run.write(home.path(), &format!("run-{seed}"))
    };
    let (a, b) = (plant(1, 10_000.0), plant(2, 14_000.0));
    let printed = |words: &[&str]| {
        let mut command = program::as_used(["compare", "--limit", "p50=+10%"]);
        let output = command.args(words).args([&a, &b]).env("LC_ALL", "C").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", program::said(&output));
        text(&output)
    };
    let first = printed(&[]);
    assert!(first.lines().count() < 24 && first.is_ascii(), "{first}");
    assert!(first.contains("\nLimit exceeded: p50=+10% of "), "{first}");
    assert!(!first.contains("A against B"), "{first}");
    assert!(printed(&["--full"]).starts_with("A against B"));
    assert!(printed(&["--format", "json"]).starts_with('{'));
}

#[test]
fn with_one_run_a_side_the_difference_is_one_of_these_runs() {
    let home = tempfile::tempdir().unwrap();
    let plant = |seed, level| {
        let run = Planted::new("host", seed).series("rtt", READ, &latencies(seed, 120, level));
        run.write(home.path(), &format!("run-{seed}"))
    };
    let (a, b) = (plant(1, 10_000.0), plant(2, 14_000.0));
    let output = compare(&["--limit", "p50=+10%"], &[&a, &b]);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("B higher (these two runs)"), "{said}");
    assert!(said.contains("one run on each side"), "{said}");
    assert!(said.contains("(95%; 1 run of A, 1 of B)"), "{said}");
    // Two a side have a spread, and a caution that it is known badly.
    let (c, d) = (plant(3, 10_100.0), plant(4, 14_100.0));
    let words = ["--baseline", a.to_str().unwrap(), c.to_str().unwrap()];
    let found = json(&words, &[&b, &d]);
    assert_eq!(found["cautions"][0]["caution"], "few_runs", "{}", found["cautions"]);
    let said = text(&compare(&words, &[&b, &d]));
    assert!(row(&said, "p50").join(" ").ends_with("B higher"), "{said}");
    assert!(!said.contains("(these two runs)"), "{said}");
}

#[test]
fn a_copy_of_a_recording_is_no_second_run() {
    let home = tempfile::tempdir().unwrap();
    let plant = |second, name: &str| {
        let run = Planted::new("host", second).series("rtt", READ, &latencies(1, 30, 1_000.0));
        run.write(home.path(), name)
    };
    let (a, copy, b) = (plant(1, "a"), plant(1, "copy"), plant(2, "b"));
    let words = ["--baseline", a.to_str().unwrap(), copy.to_str().unwrap()];
    let output = compare(&words, &[&b]);
    assert_eq!(output.status.code(), Some(1));
    assert!(program::said(&output).contains("is the same recording as"), "{output:?}");
    // On both sides it is told.
    let found = json(&[], &[&a, &copy]);
    let cautions = found["cautions"].as_array().unwrap();
    assert!(cautions.iter().any(|one| one["caution"] == "same_recording"), "{cautions:?}");
}

#[test]
fn time_without_an_event_is_one_cause_on_both_sides_whatever_their_steal_time_bears_out() {
    let home = tempfile::tempdir().unwrap();
    let plant = |second: u64, length: u64, steal_ns: f64| {
        let mut run = Planted::new("host", second).named_gaps(
            1,
            Nanos(1_000),
            &[(length, 10_000, Cause::Host)],
        );
        run.run.evidence.steal_ns = Some(steal_ns);
        run.write(home.path(), &format!("run-{second}"))
    };
    let (stolen, not, longer) =
        (plant(1, 40_000, 2e9), plant(2, 40_000, 0.0), plant(3, 60_000, 3e9));
    let causes = |a, b| json(&[], &[a, b])["pairs"][0]["result"]["causes"].clone();
    assert_eq!(causes(&stolen, &not), serde_json::json!({ "is": "not_shown" }));
    let both = causes(&stolen, &longer);
    assert_eq!((&both["is"], &both["cause"]), (&"shown".into(), &"hypervisor".into()), "{both}");
    let one = causes(&not, &longer);
    assert_eq!(one["cause"], "no kernel event", "{one}");
}

#[test]
fn a_side_without_a_gap_has_lost_nothing_and_holds_its_limits() {
    let home = tempfile::tempdir().unwrap();
    let noisy: Vec<Histogram> = (0..40).map(|_| [5_000; 20].into_iter().collect()).collect();
    let quiet = vec![Histogram::new(); 40];
    let plant = |second, name: &str, gaps: &[Histogram]| {
        Planted::new("host", second).gaps(1, Nanos(100), gaps).write(home.path(), name)
    };
    let (noisy, quiet) = (plant(1, "noisy", &noisy), plant(2, "quiet", &quiet));
    let limits = ["--limit", "p50=+10%", "--limit", "lost=+10%"];
    let output = compare(&limits, &[&noisy, &quiet]);
    let said = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("none (below 0.1/s)"), "{said}");
    let found = json(&limits, &[&noisy, &quiet]);
    assert_eq!(found["limits"][0]["outcome"], "nothing_to_exceed", "{}", found["limits"]);
    assert_eq!(found["limits"][1]["outcome"], "held", "{}", found["limits"]);
    let lost = &found["pairs"][0]["result"]["lost_share"];
    assert_eq!((&lost["after"], &lost["verdict"]), (&Value::from(0.0), &Value::from("a_higher")));
    // The other way round every gap is one too many.
    let output = compare(&["--limit", "lost=+10%"], &[&quiet, &noisy]);
    assert_eq!(output.status.code(), Some(3), "{}", program::said(&output));
    // Gaps below the larger threshold are not there, and that is why.
    let coarse = Planted::new("host", 9).gaps(1, Nanos(9_000), &[Histogram::new()]);
    let coarse = coarse.write(home.path(), "coarse");
    let found = json(&[], &[&noisy, &coarse]);
    assert_eq!(found["pairs"][0]["before"]["n"], 0, "{}", found["pairs"][0]);
}

#[test]
fn a_limit_on_a_run_that_cannot_be_trusted_is_not_held() {
    let home = tempfile::tempdir().unwrap();
    let plant = |seed, level, verdict| {
        let mut run = Planted::new("host", seed).series("rtt", READ, &latencies(seed, 120, level));
        run.run.verdict = verdict;
        run.write(home.path(), &format!("run-{seed}"))
    };
    let lost = Verdict::Untrustworthy { reasons: vec!["records were lost".to_owned()] };
    let sound = plant(1, 10_000.0, Verdict::Trustworthy);
    let (same, slower) = (plant(2, 10_000.0, lost.clone()), plant(3, 14_000.0, lost));
    let status =
        |other: &Path| compare(&["--limit", "p50=+20%"], &[&sound, other]).status.code().unwrap();
    assert_eq!((status(&same), status(&slower)), (4, 3));
}

#[test]
fn a_limit_that_was_exceeded_hides_no_poor_trust() {
    let home = tempfile::tempdir().unwrap();
    let plant = |seed, warnings: Vec<Warning>| {
        let mut run =
            Planted::new("host", seed).series("rtt", READ, &latencies(seed, 120, 10_000.0));
        let what = "a stall of 70us on CPU 1, limit 50us".to_owned();
        run.run.verdict = Verdict::LimitExceeded { what, reasons: Vec::new() };
        run.run.warnings = warnings;
        run.write(home.path(), &format!("run-{seed}"))
    };
    let (one, sound) = (plant(1, Vec::new()), plant(2, Vec::new()));
    let changed = plant(3, vec![Warning::HostChanged { what: "clock".to_owned() }]);
    let output = |other: &Path| compare(&[], &[&one, other]);
    assert_eq!(output(&sound).status.code(), Some(0), "{}", program::said(&output(&sound)));
    let said = output(&changed);
    assert_eq!(said.status.code(), Some(4), "{}", program::said(&said));
    assert!(text(&said).contains("clock"), "{}", text(&said));
    // A sum of the two has both, and the limit comes first.
    let sum = home.path().join("sum");
    let merged = program::whylate(["merge"]).args([&one, &changed]).arg("-o").arg(&sum).output();
    let merged = merged.unwrap();
    assert_eq!(merged.status.code(), Some(3), "{}", program::said(&merged));
    let Verdict::LimitExceeded { what, reasons } = program::read(&sum).verdict else {
        panic!("{}", program::said(&merged))
    };
    assert!(what.contains("limit 50us"), "{what}");
    assert!(reasons.iter().any(|of| of.contains("clock")), "{reasons:?}");
}

#[test]
fn a_trace_that_only_one_side_had_is_named() {
    let home = tempfile::tempdir().unwrap();
    let plant = |second, traced: bool| {
        let mut run = Planted::new("host", second).series("rtt", READ, &latencies(1, 30, 1_000.0));
        if !traced {
            run.run.evidence.trace = None;
        }
        run.write(home.path(), &format!("run-{second}"))
    };
    let (with, without) = (plant(1, true), plant(2, false));
    let said = text(&compare(&[], &[&with, &without]));
    assert!(
        said.lines().any(|line| line.starts_with("kernel trace") && line.ends_with("no")),
        "{said}"
    );
}

#[test]
fn the_maximum_is_judged_between_runs_only() {
    let home = tempfile::tempdir().unwrap();
    let plant = |seed: u64, longest: u64| {
        let mut intervals = latencies(seed, 30, 1_000.0);
        intervals[3].record(longest + seed * 1_000);
        let run = Planted::new("host", seed).series("rtt", READ, &intervals);
        run.write(home.path(), &format!("run-{seed}"))
    };
    let before: Vec<_> = (1..4).map(|seed| plant(seed, 100_000)).collect();
    let after: Vec<_> = (4..7).map(|seed| plant(seed, 500_000)).collect();
    let paths = |side: &[std::path::PathBuf]| -> Vec<String> {
        side.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
    };
    let baseline = paths(&before);
    let mut words = vec!["--limit", "max=+50%", "--baseline"];
    words.extend(baseline.iter().map(String::as_str));
    let directories: Vec<&Path> = after.iter().map(std::path::PathBuf::as_path).collect();
    // The baseline's list would take the others in: they stand before it.
    let output = compare(&words, &directories);
    assert_eq!(output.status.code(), Some(3), "{}", program::said(&output));
    let found = json(&words, &directories);
    assert_eq!(found["pairs"][0]["before"]["runs"], 3);
    assert!(found["pairs"][0]["result"]["quantiles"][0]["difference_ns"]["between"].is_array());
}

#[test]
fn gaps_are_compared_above_the_larger_threshold_with_lost_share_and_rates() {
    let home = tempfile::tempdir().unwrap();
    let second = |gaps: &[(u64, u64)]| {
        let mut histogram = Histogram::new();
        for (length, count) in gaps {
            histogram.record_n(*length, *count);
        }
        histogram
    };
    let a: Vec<_> = (0..40).map(|i| second(&[(150, 50), (5_000, 20 + i % 3)])).collect();
    let b: Vec<_> = (0..40).map(|i| second(&[(5_000, 40 + i % 3), (20_000, 2)])).collect();
    let a = Planted::new("host", 0).gaps(1, Nanos(100), &a).write(home.path(), "a");
    let b = Planted::new("host", 100).gaps(1, Nanos(200), &b).write(home.path(), "b");
    let found = json(&[], &[&a, &b]);
    let result = &found["pairs"][0]["result"];
    assert_eq!(result["above_ns"], 200, "{result}");
    // A's 150 ns gaps are not among what is compared.
    assert_eq!(found["pairs"][0]["before"]["min_ns"], 5_000);
    let lost = &result["lost_share"];
    assert_eq!(lost["verdict"], "a_lower", "{lost}");
    let difference = lost["difference"]["difference"].as_f64().unwrap();
    // 20 more gaps of 5 us and 2 of 20 us a second, less a period of 10 ns each.
    assert!((difference - 140e-6).abs() < 2e-6, "{difference}");
    let rate = &result["rates"][0];
    assert_eq!(
        (&rate["at_least_ns"], &rate["per_s"]["verdict"]),
        (&Value::from(1_000), &Value::from("a_lower"))
    );
    assert_eq!(result["rates"][1]["per_s"]["before"], 0.0);
    let output = compare(&["--limit", "lost=+50%"], &[&a, &b]);
    assert_eq!(output.status.code(), Some(3), "{}", program::said(&output));
}

#[test]
fn no_sample_one_two_and_equal_ones_are_compared_without_inventing_anything() {
    let home = tempfile::tempdir().unwrap();
    let plant = |name: &str, values: &[u64]| {
        let values: Histogram = values.iter().copied().collect();
        Planted::new("host", 0).series("rtt", READ, &[values]).write(home.path(), name)
    };
    let few = [plant("none", &[]), plant("one", &[7]), plant("two", &[7, 9])];
    let equal = plant("equal", &vec![9; 5_000]);
    for side in &few {
        let found = json(&[], &[side, &equal]);
        let result = &found["pairs"][0]["result"];
        let supported = result["quantiles"].as_array().map_or(0, |quantiles| {
            quantiles.iter().filter(|q| !q["difference_ns"].is_null()).count()
        });
        assert_eq!(supported, 0, "{result}");
        let output = compare(&["--limit", "p50=+10%"], &[side, &equal]);
        assert_eq!(output.status.code(), Some(4), "{}", program::said(&output));
    }
    let said = text(&compare(&[], &[&equal, &equal]));
    assert_eq!(row(&said, "p99.9")[..7], ["p99.9", "9", "ns", "9", "ns", "0", "ns"]);
    assert!(row(&said, "p99.9").join(" ").ends_with("no difference shown"), "{said}");
}

#[test]
fn another_version_architecture_host_and_an_untrustworthy_run_are_told() {
    let home = tempfile::tempdir().unwrap();
    let values = latencies(1, 30, 1_000.0);
    let a = Planted::new("host", 0).series("rtt", READ, &values).write(home.path(), "a");
    let mut other = Planted::new("arm", 50).series("rtt", READ, &values);
    other.run.host.architecture = "aarch64".to_owned();
    other.run.host.kernel = "6.12.1".to_owned();
    other.run.tool_version = "0.0.9".to_owned();
    other.run.verdict = Verdict::Untrustworthy { reasons: vec!["CPU 2 went offline".to_owned()] };
    let other = other.write(home.path(), "other");
    // Names of directories are of any length, and lines are wrapped.
    let output = compare(&[], &[&a, &other]);
    // What is poor by its own verdict is no side to compare with.
    assert_eq!(output.status.code(), Some(4), "{}", program::said(&output));
    let said = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["the architecture differs", "0.0.9", "CPU 2 went offline", "kernel", "6.12.1"] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
}

#[test]
fn what_limits_runs_of_a_side_limits_the_comparison_and_is_told_once() {
    let home = tempfile::tempdir().unwrap();
    let plant = |number: u64, by_nothing: f64| {
        let mut planted = Planted::new("host", number * 60);
        planted.run.evidence.steal_ns = None;
        planted.run.evidence.steal_by_cpu.clear();
        let coverage = Coverage { by_events: 1.0 - by_nothing, by_residuals: 0.0, by_nothing };
        planted.run.coverage = Some(coverage);
        let planted = planted.gaps(1, Nanos(100), &latencies(number, 20, 1_000.0));
        planted.write(home.path(), &format!("run-{number}"))
    };
    let a: Vec<_> = (0..5).map(|number| plant(number, 0.1)).collect();
    let b: Vec<_> = (5..10).map(|number| plant(number, 0.42 + number as f64 / 100.0)).collect();
    let compared = |b: &[std::path::PathBuf], words: &[&str]| {
        let mut compare = program::as_used(["compare"]);
        compare.args(b).args(words).arg("--baseline").args(&a).env("LC_ALL", "C.UTF-8");
        let output = compare.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", program::said(&output));
        text(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = "Trust: limited. Trust in 5 of 5 runs of side B is limited: 47% of the lost time has \
                no kernel event";
    assert!(compared(&b, &[]).contains(told), "{}", compared(&b, &[]));
    let json: Value = serde_json::from_str(&compared(&b, &["--format", "json"])).unwrap();
    let cautions = json["cautions"].as_array().unwrap();
    let limited: Vec<&Value> = cautions.iter().filter(|of| of["caution"] == "limited").collect();
    let [one] = limited[..] else { panic!("{cautions:?}") };
    assert_eq!((&one["side"], &one["runs"]), (&Value::from("B"), &Value::from(5)));
    assert_eq!(one["reasons"], serde_json::json!(["47% of the lost time has no kernel event"]));
    // One of five.
    let mut mixed: Vec<_> = (10..14).map(|number| plant(number, 0.1)).collect();
    mixed.push(b[0].clone());
    let told = "trust in 1 of 5 runs of side B is limited: 47%";
    let full = compared(&mixed, &["--full"]);
    assert!(full.to_lowercase().contains(&told.to_lowercase()), "{full}");
    mixed.pop();
    mixed.push(plant(14, 0.1));
    assert!(!compared(&mixed, &["--full"]).contains("is limited"));
}

#[test]
fn hostile_texts_reach_neither_terminal_nor_page_nor_report() {
    const EVIL: &str = "</td><script>alert(1)</script>\u{1b}[31m\u{202e}]]>&\"'";
    let home = tempfile::tempdir().unwrap();
    let values = latencies(1, 30, 1_000.0);
    let plant = |name: &str| {
        let mut evil = Planted::new(EVIL, 0).series("rtt", EVIL, &values);
        evil.run.series[0].label = EVIL.to_owned();
        evil.run.settings.insert(EVIL.to_owned(), name.into());
        evil.run.verdict = Verdict::Untrustworthy { reasons: vec![EVIL.to_owned()] };
        evil.write(home.path(), name)
    };
    let (a, b) = (plant("a"), plant("b"));
    let (page, junit) = (home.path().join("p.html"), home.path().join("j.xml"));
    let limit = format!("{EVIL}:p50=+1%");
    let words = ["--html", page.to_str().unwrap(), "--junit", junit.to_str().unwrap()];
    let output =
        compare(&[&words[..], &["--limit", &limit, "--limit", "p50=+1%"]].concat(), &[&a, &b]);
    let said = program::said(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said}");
    let first = program::as_used(["compare"]).args([&a, &b]).output().unwrap();
    let first = program::said(&first);
    assert!(first.contains("\nTrust: poor. ") && first.lines().count() < 24, "{first}");
    assert!(!first.contains(['\u{1b}', '\u{202e}']), "{first}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(!page.contains("<script>") && !page.contains(['\u{1b}', '\u{202e}']));
    let xml = std::fs::read_to_string(junit).unwrap();
    roxmltree::Document::parse(&xml).unwrap();
    assert!(!xml.contains(['\u{1b}', '\u{202e}']), "{xml}");
}

#[test]
fn a_truncated_log_is_compared_as_far_as_it_goes_and_told() {
    let home = tempfile::tempdir().unwrap();
    let values = latencies(1, 30, 1_000.0);
    let a = Planted::new("host", 0).series("rtt", READ, &values).write(home.path(), "a");
    let cut = Planted::new("host", 9).series("rtt", READ, &values).write(home.path(), "cut");
    let log = cut.join("histograms.hlog");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
    let output = compare(&[], &[&a, &cut]);
    assert_eq!(output.status.code(), Some(4), "{}", program::said(&output));
    let said = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("is truncated") && said.contains("of 6,000 samples"), "{said}");

    std::fs::remove_file(cut.join("run.json")).unwrap();
    let output = compare(&[], &[&a, &cut]);
    assert_eq!(output.status.code(), Some(1));
    assert!(program::said(&output).contains("no run.json"), "{}", program::said(&output));
}

#[test]
fn the_committed_schema_of_a_comparison_is_up_to_date() {
    let path = program::file("../crates/whylate-report/schema/comparison.schema.json");
    let made = whylate_report::compare::schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "run `UPDATE_SCHEMA=1 cargo test -p whylate --test pure schema`");
    let made = serde_json::from_str(&made).unwrap();
    assert_eq!(names::without_unit(&made), [""; 0]);
    assert_eq!(names::undescribed(&made), [""; 0]);
}

#[test]
fn two_sets_of_threads_are_compared_by_their_series() {
    let home = tempfile::tempdir().unwrap();
    let sample = program::file("runs/threads");
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    for entry in std::fs::read_dir(&sample).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, other.join(path.file_name().unwrap())).unwrap();
    }
    // Another recording of the same set, to the same numbers.
    let mut run = program::read(&other);
    run.seed += 1;
    whylate_model::RunDir::open(&other).unwrap().write_run(&run).unwrap();
    let found = json(&[], &[&sample, &other]);
    let pairs = found["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), run.series.len());
    for pair in pairs {
        assert_eq!(pair["result"]["outcome"], "compared", "{pair}");
        assert_eq!(pair["result"]["lost_share"], Value::Null);
        assert_eq!(pair["before"]["n"], pair["after"]["n"]);
    }
    let said = text(&compare(&[], &[&sample, &other]));
    assert!(said.contains("response time, from nominal release of the job"), "{said}");
    assert!(said.contains("no difference shown") && !said.contains("lower"), "{said}");
}
