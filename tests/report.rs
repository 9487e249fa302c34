//! A recorded run, printed again.

use serde_json::json;

use crate::{directories, program};

#[test]
fn a_report_is_80_columns_wide_and_without_colour() {
    let text = rendered("runs/gaps");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    assert!(!text.contains('\u{1b}'), "an escape sequence is in the report");
}

#[test]
fn text_is_as_wide_as_columns_says() {
    let widest = |columns: Option<&str>| {
        let mut command = program::whylate(["report"]);
        command.arg(program::file("runs/gaps"));
        columns.map(|columns| command.env("COLUMNS", columns));
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        text.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert!((81..=132).contains(&widest(Some("132"))), "{}", widest(Some("132")));
    for columns in [None, Some(""), Some("0"), Some("wide")] {
        assert!(widest(columns) <= 80, "{columns:?}: {}", widest(columns));
    }
}

#[test]
fn a_set_of_another_machine_renders_as_recorded_with_its_trace() {
    let text = rendered_with("runs/threads", &["--timeline"]);
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let window = rendered_with("runs/threads", &["--timeline", "100ms..125ms"]);
    assert!(window.contains("From 100 ms to 125 ms, as asked."), "{window}");
    assert!(!rendered("runs/threads").contains("Execution trace"));
}

#[test]
fn a_report_of_a_run_without_one_of_its_files_names_it_and_ends_with_4() {
    let home = tempfile::tempdir().unwrap();
    directories::copy(&program::file("runs/gaps"), home.path());
    let report = || {
        let output = program::whylate(["report"]).arg(home.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, text) = report();
    assert!(status == Some(0) && !text.contains("is missing"), "{status:?}: {text}");
    std::fs::remove_file(home.path().join("gaps-0001.parquet")).unwrap();
    let (status, text) = report();
    assert_eq!(status, Some(4), "{text}");
    assert!(text.contains("Trust: poor"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("gaps-0001.parquet is missing"), "{text}");
}

#[test]
fn a_report_ends_as_the_run_is_judged() {
    let kept = program::file("runs/gaps");
    let json = std::fs::read_to_string(kept.join("run.json")).unwrap();
    let mut run: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (verdict, status, said) in [
        (json!({ "verdict": "trustworthy" }), 0, "Trust: limited:"),
        (json!({ "verdict": "untrustworthy", "reasons": ["lost"] }), 4, "Trust: poor"),
        (json!({ "verdict": "limit_exceeded", "what": "a gap" }), 3, "Limit exceeded: a gap"),
    ] {
        let home = tempfile::tempdir().unwrap();
        directories::copy(&kept, home.path());
        run["verdict"] = verdict;
        std::fs::write(home.path().join("run.json"), run.to_string()).unwrap();
        for words in [&[][..], &["--format", "json"], &["--html", "-"]] {
            let output =
                program::whylate([&["report"], words].concat()).arg(home.path()).output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{words:?}: {}", program::said(&output));
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains(said) || !words.is_empty(), "{text}");
            let bad = text.contains("<div class=\"verdict bad\">");
            assert_eq!(bad, status > 0 && words.contains(&"--html"), "{words:?}");
        }
    }
}

#[test]
fn a_window_that_is_none_and_a_run_without_a_trace_are_said() {
    let run = |name: &str| program::file("runs").join(name);
    let report = |name: &str, window: &str| {
        program::whylate(["report"]).arg(run(name)).args(["--trace", window]).output().unwrap()
    };
    for (window, reason) in
        [("5", "is not a window"), ("1s..5", "has no unit"), ("2s..1s", "TO must be later")]
    {
        let output = report("threads", window);
        assert_eq!(output.status.code(), Some(2), "{window}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(reason), "{window}");
    }
    let output = report("gaps", "1s..2s");
    assert!(output.status.success(), "{}", program::said(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not a run of a set of threads"), "{said}");
}

fn rendered(run: &str) -> String {
    rendered_with(run, &[])
}

fn rendered_with(run: &str, words: &[&str]) -> String {
    let path = program::file(run);
    let output = program::whylate(["report"]).arg(path).args(words).output().unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    String::from_utf8(output.stdout).unwrap()
}
