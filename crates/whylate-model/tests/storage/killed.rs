//! A recording that is killed: what was measured up to the last checkpoint is readable.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use whylate_model::segments::{Limits, Writer, read_events, read_gaps, survey};
use whylate_model::{RunDir, Ticks};

use crate::samples::run;
use crate::segments::{event_of, gap_at, segment_files};

const PLACE: &str = "WHYLATE_TEST_RECORDING";

#[test]
fn what_was_pushed_before_a_checkpoint_survives_a_writer_that_never_closes() {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    for number in 0..100 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    for number in 100..150 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    drop(writer);
    let back: Vec<_> = read_gaps(&directory).unwrap().map(Result::unwrap).collect();
    assert_eq!(back.len(), 100);
    assert_eq!(back[99], gap_at(99));
}

#[test]
fn every_file_of_a_killed_recording_is_whole() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    for attempt in 0..3 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "killed::endless_recording"])
            .env(PLACE, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Recording)
            .unwrap();
        // Killed at another point each time, but not before there is anything to look at.
        let enough = || segment_files_of(&path).len() > 4 + attempt * 3;
        // Two minutes.
        for _ in 0..12_000 {
            if enough() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10 + attempt as u64));
        }
        drop(child);
        assert!(enough(), "the recording did not come far enough to be killed");

        let directory = RunDir::open(&path).unwrap();
        let run = directory.read_run().unwrap();
        let survey = survey(&directory, &run).unwrap();
        assert_eq!(survey.missing, [""; 0], "run.json lists what is not there");
        let gaps: Vec<_> = read_gaps(&directory).unwrap().map(Result::unwrap).collect();
        for (number, gap) in gaps.iter().enumerate() {
            assert_eq!(*gap, gap_at(number as u64));
        }
        let listed: u64 =
            run.segments.iter().filter(|s| s.file.starts_with('g')).map(|s| s.rows).sum();
        assert!(gaps.len() as u64 >= listed && listed > 0);
        assert!(read_events(&directory).unwrap().all(|event| event.is_ok()));
        for interval in directory.histograms().unwrap() {
            assert_eq!(interval.unwrap().histogram.len(), 1);
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
}

/// A recording that is killed when dropped, whatever becomes of the test.
struct Recording(Child);

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn segment_files_of(path: &std::path::Path) -> Vec<std::path::PathBuf> {
    RunDir::open(path).map(|directory| segment_files(&directory)).unwrap_or_default()
}

/// The other side of the test above, which starts it as a process of its own.
#[test]
#[ignore = "runs until it is killed"]
fn endless_recording() {
    let path = std::env::var_os(PLACE).expect("started by hand: it needs a place to record to");
    let directory = RunDir::create_with_room(path, 0).unwrap();
    let mut writer = Writer::new(
        &directory,
        Ticks(0),
        Limits { gap_rows: 64, event_rows: 64, ..Limits::default() },
    );
    let mut log = directory.histogram_log().unwrap();
    let mut run = run();
    for number in 0.. {
        writer.push_gap(&gap_at(number)).unwrap();
        writer.push_event(&event_of(number)).unwrap();
        if number % 10 == 0 {
            let mut histogram = whylate_stats::histogram::Histogram::new();
            histogram.record(number);
            log.append("gap-cpu1", &histogram, number as f64, 1.0).unwrap();
            writer.checkpoint().unwrap();
            run.segments = writer.segments();
            directory.write_run(&run).unwrap();
        }
    }
}
