//! `run.json`: written whole, read back equal.

use proptest::prelude::*;
use whylate_model::run::{FORMAT_VERSION, Run};
use whylate_model::segments::{Limits, Writer};
use whylate_model::warning::Warning;
use whylate_model::{ModelError, RunDir, Ticks};

use crate::samples::{any_run, run, warnings};
use crate::segments::gap_at;

fn new_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 1 << 16).unwrap();
    (place, directory)
}

#[test]
fn a_run_comes_back_as_it_was_written() {
    let (_place, directory) = new_run();
    directory.write_run(&run()).unwrap();
    assert_eq!(RunDir::open(directory.path()).unwrap().read_run().unwrap(), run());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_run_comes_back_as_it_was_written(run in any_run()) {
        let (_place, directory) = new_run();
        directory.write_run(&run).unwrap();
        prop_assert_eq!(directory.read_run().unwrap(), run);
    }
}

#[test]
fn a_new_run_needs_an_empty_directory() {
    let (place, directory) = new_run();
    directory.write_run(&run()).unwrap();
    let error = RunDir::create(directory.path()).unwrap_err();
    assert!(matches!(error, ModelError::NotEmpty { .. }), "{error}");
    assert!(error.to_string().contains("-o"), "no remedy: {error}");

    let empty = place.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    RunDir::create(&empty).unwrap();
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "the probe was left behind");

    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(RunDir::create(&file), Err(ModelError::NotADirectory { .. })));
    assert!(matches!(RunDir::open(&file), Err(ModelError::NotADirectory { .. })));
}

#[test]
fn two_recordings_cannot_share_a_directory() {
    let (_place, directory) = new_run();
    let second = RunDir::create_with_room(directory.path(), 0);
    assert!(matches!(second, Err(ModelError::InUse { .. })), "{second:?}");
    let path = directory.path().to_owned();
    drop(directory);
    RunDir::create_with_room(path, 0).unwrap();
}

#[test]
fn a_checkpoint_replaces_the_one_before() {
    let (_place, directory) = new_run();
    let mut run = run();
    directory.write_run(&run).unwrap();
    run.seed = 2;
    run.worst.clear();
    directory.write_run(&run).unwrap();
    assert_eq!(directory.read_run().unwrap(), run);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_number_that_json_cannot_hold_is_refused_and_named() {
    let (_place, directory) = new_run();
    directory.write_run(&run()).unwrap();
    for value in [f64::NAN, f64::INFINITY] {
        let mut bad = run();
        bad.clock.hz_bound_ppm = value;
        let error = directory.write_run(&bad).unwrap_err();
        assert!(error.to_string().contains("hz_bound_ppm"), "{error}");
    }
    assert_eq!(directory.read_run().unwrap(), run(), "the checkpoint before is gone");
}

#[test]
fn a_directory_without_a_run_says_so() {
    let place = tempfile::tempdir().unwrap();
    let error = RunDir::open(place.path()).unwrap().read_run().unwrap_err();
    assert!(matches!(error, ModelError::NoRun { .. }), "{error}");
    assert!(RunDir::open(place.path().join("nowhere")).is_err());
}

#[test]
fn a_newer_format_is_refused_with_both_versions() {
    let (_place, directory) = new_run();
    let newer = format!("{{\"format_version\": {}, \"new\": [1, {{}}]}}", FORMAT_VERSION + 41);
    std::fs::write(directory.path().join("run.json"), newer).unwrap();
    let error = directory.read_run().unwrap_err();
    assert!(matches!(error, ModelError::NewerFormat { .. }), "{error}");
    let text = error.to_string();
    let (found, newest) = (format!("version {}", FORMAT_VERSION + 41), FORMAT_VERSION.to_string());
    assert!(text.contains(&found) && text.contains(&newest) && text.contains("update"), "{text}");
}

#[test]
fn fields_that_a_later_version_adds_are_ignored() {
    let (_place, directory) = new_run();
    let mut json: serde_json::Value = serde_json::to_value(run()).unwrap();
    json["added_later"] = serde_json::json!({ "deep": [1, 2, 3] });
    std::fs::write(directory.path().join("run.json"), json.to_string()).unwrap();
    assert_eq!(directory.read_run().unwrap(), run());
}

#[test]
fn every_warning_says_what_it_means_and_what_to_do() {
    for warning in warnings() {
        let (fact, advice) = (warning.to_string(), warning.advice());
        assert!(!fact.is_empty() && !fact.ends_with('.') && !fact.contains('\n'), "{fact}");
        assert!(advice.ends_with('.') && advice.len() > 30, "{fact}: {advice}");
        assert!(
            advice.chars().next().unwrap().is_ascii_uppercase() || advice.starts_with("whylate")
        );
    }
    let hostile = Warning::HostChanged { what: "\u{1b}[2J".to_owned() };
    assert!(!hostile.to_string().contains('\u{1b}'));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let (_place, directory) = new_run();
    let file = directory.path().join("run.json");
    directory.write_run(&run()).unwrap();
    let first = std::fs::read(&file).unwrap();
    let back: Run = directory.read_run().unwrap();
    directory.write_run(&back).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), first);
}

/// With a log and a table, as a recording or a sum leaves it that fails before its end.
fn begun(place: &std::path::Path) -> RunDir {
    let directory = RunDir::create_with_room(place.join("run"), 0).unwrap();
    directory.histogram_log().unwrap();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    writer.push_gap(&gap_at(1)).unwrap();
    writer.checkpoint().unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    directory
}

#[test]
fn what_was_begun_and_holds_no_run_is_taken_away_and_nothing_of_others() {
    let place = tempfile::tempdir().unwrap();
    let of = |place: &std::path::Path| std::fs::read_dir(place).unwrap().count();
    begun(place.path()).undo().remove();
    assert_eq!(of(place.path()), 0);
    // A directory that was there before stays, and so does what somebody else put into it.
    std::fs::create_dir(place.path().join("run")).unwrap();
    let directory = begun(place.path());
    directory.undo().remove();
    assert_eq!(of(directory.path()), 0);
    let theirs = directory.path().join("thesis.parquet");
    std::fs::write(&theirs, "theirs").unwrap();
    directory.undo().remove();
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    std::fs::remove_dir_all(directory.path()).unwrap();
    let directory = begun(place.path());
    directory.write_run(&run()).unwrap();
    directory.undo().remove();
    assert_eq!(of(directory.path()), 3, "it is a run");
}
