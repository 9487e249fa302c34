//! Files that a run counts on: each that is missing, short or changed is told by name, and no other.

use std::path::Path;

use whylate_model::run::{Run, RunState};
use whylate_model::segments::{Limits, Writer};
use whylate_model::{HistogramLog, RunDir, Ticks};
use whylate_stats::histogram::Histogram;

use crate::samples::run;
use crate::segments::gap_at;

/// A directory with a segment of gaps that begins with this one, a log and a capture.
struct Recorded {
    directory: RunDir,
    run: Run,
    writer: Writer,
    log: HistogramLog,
    _place: tempfile::TempDir,
}

impl Recorded {
    fn new(first: u64) -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
        let writer = Writer::new(&directory, Ticks(0), Limits::default());
        let log = directory.histogram_log().unwrap();
        std::fs::write(directory.path().join("tap-0001.pcapng"), "packets").unwrap();
        let run = Run { captures: directory.captures(), ..run() };
        let mut recorded = Self { directory, run, writer, log, _place: place };
        recorded.go_on(first);
        recorded.count();
        recorded
    }

    /// A gap and an interval more, without a checkpoint of the run.
    fn go_on(&mut self, number: u64) {
        self.writer.push_gap(&gap_at(number)).unwrap();
        self.writer.checkpoint().unwrap();
        let values: Histogram = [1_000].into_iter().collect();
        self.log.append("gap-cpu0", &values, number as f64, 1.0).unwrap();
        self.log.sync().unwrap();
    }

    /// Writes `run.json` with all that there is.
    fn count(&mut self) {
        self.run.segments = self.writer.segments();
        self.log.count_in(&mut self.run);
        self.write();
    }

    fn write(&self) {
        self.directory.write_run(&self.run).unwrap();
    }

    fn problems(&self) -> Vec<String> {
        self.directory.read_checked().unwrap().files.problems
    }

    fn undigested(&self) -> Vec<String> {
        self.directory.read_checked().unwrap().files.undigested
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }
}

const SEGMENT: &str = "gaps-0001.parquet";
const LOG: &str = "histograms.hlog";
const TAP: &str = "tap-0001.pcapng";
const FILES: [&str; 4] = [SEGMENT, LOG, TAP, "run.json"];

#[test]
fn a_file_that_is_missing_or_short_is_told_by_name() {
    let recorded = Recorded::new(1);
    assert_eq!((recorded.problems(), recorded.undigested()), (vec![], vec![]));
    let shorten = |name: &str| {
        let bytes = std::fs::read(recorded.path(name)).unwrap();
        std::fs::write(recorded.path(name), &bytes[..bytes.len() / 2]).unwrap();
        format!("{name} has {} bytes of {}", bytes.len() / 2, bytes.len())
    };
    let short = [SEGMENT, TAP, LOG].map(shorten);
    assert_eq!(recorded.problems(), short);
    let remove = |name: &str| {
        std::fs::remove_file(recorded.path(name)).unwrap();
        format!("{name} is missing")
    };
    let missing = [SEGMENT, TAP, LOG].map(remove);
    assert_eq!(recorded.problems(), missing);
}

#[test]
fn a_changed_byte_of_any_file_is_told_with_the_name_of_the_file() {
    let recorded = Recorded::new(1);
    for name in FILES {
        let whole = std::fs::read(recorded.path(name)).unwrap();
        // What is no run any more names the file.
        for place in (0..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            std::fs::write(recorded.path(name), &changed).unwrap();
            match recorded.directory.read_checked() {
                Ok(run) => {
                    let told = format!("{name} is not as it was recorded");
                    assert_eq!(run.files.problems.first(), Some(&told), "byte {place} of {name}");
                }
                Err(error) => {
                    assert_eq!(name, "run.json", "{error}");
                    assert!(error.to_string().contains("run.json"), "{error}");
                }
            }
        }
        std::fs::write(recorded.path(name), whole).unwrap();
    }
    assert_eq!(recorded.problems(), [""; 0]);
}

#[test]
fn a_segment_of_another_run_under_the_right_name_is_told() {
    let (recorded, other) = (Recorded::new(1), Recorded::new(2));
    let [own, others] = [&recorded, &other].map(|of| of.run.segments[0].bytes);
    assert_eq!(own, others, "one byte of difference tells them apart without a digest");
    std::fs::copy(other.path(SEGMENT), recorded.path(SEGMENT)).unwrap();
    assert_eq!(recorded.problems(), [format!("{SEGMENT} is not as it was recorded")]);
}

#[test]
fn what_a_killed_run_wrote_after_its_last_checkpoint_is_no_change_of_it() {
    let mut recorded = Recorded::new(1);
    recorded.run.state = RunState::Running;
    recorded.count();
    recorded.go_on(2);
    assert_eq!(recorded.problems(), [""; 0]);
    let others = Recorded::new(3);
    std::fs::copy(others.path(SEGMENT), recorded.path(SEGMENT)).unwrap();
    let problems = recorded.problems();
    assert!(matches!(&problems[..], [one] if one.starts_with(SEGMENT)), "{problems:?}");
}

#[test]
fn what_was_added_to_a_table_of_a_run_that_ended_is_a_change_of_it() {
    let mut recorded = Recorded::new(1);
    recorded.run.state = RunState::Complete;
    recorded.count();
    recorded.go_on(2);
    assert_eq!(recorded.problems(), [format!("{SEGMENT} is not as it was recorded")]);
}

#[test]
fn a_run_without_digests_is_read_and_its_files_are_named() {
    let mut recorded = Recorded::new(1);
    recorded.run.log_digest = None;
    recorded.run.captures.clear();
    recorded.run.segments[0].digest = None;
    let json = serde_json::to_vec_pretty(&recorded.run).unwrap();
    std::fs::write(recorded.path("run.json"), json).unwrap();
    assert_eq!(recorded.problems(), [""; 0]);
    assert_eq!(recorded.undigested(), ["run.json", SEGMENT, LOG]);
}

#[test]
fn a_link_in_the_place_of_a_file_is_told_and_not_followed() {
    let recorded = Recorded::new(1);
    let elsewhere = recorded.path("elsewhere");
    std::fs::rename(recorded.path(SEGMENT), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, recorded.path(SEGMENT)).unwrap();
    assert_eq!(recorded.problems(), [format!("{SEGMENT} is not a plain file")]);
}

#[test]
fn a_capture_never_lies_outside_of_its_directory() {
    for name in ["../../etc/passwd", "/etc/passwd", "..", "", "a/tap-0001.pcapng", "./tap"] {
        let mut bad = run();
        bad.captures[0].file = name.to_owned();
        let json = serde_json::to_vec(&bad).unwrap();
        let error = whylate_model::directory::parse_run(Path::new("run.json"), &json).unwrap_err();
        assert!(error.to_string().contains("captures"), "{name:?}: {error}");
    }
}
