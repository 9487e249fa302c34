//! Disks that are full or read-only: found before measuring, survived while measuring.

use std::io::ErrorKind;

use whylate_model::segments::{Limits, Writer, read_gaps};
use whylate_model::{ModelError, RunDir, Ticks};
use whylate_stats::histogram::Histogram;

use crate::needs::SmallDisk;
use crate::samples::run;
use crate::segments::gap_at;

fn kind_of(error: &ModelError) -> Option<ErrorKind> {
    match error {
        ModelError::Write { why, .. } => Some(why.kind()),
        _ => None,
    }
}

#[test]
fn a_disk_without_room_is_found_before_measuring() {
    let name = "a_disk_without_room_is_found_before_measuring";
    let Some(disk) = SmallDisk::mount(name, 1 << 20) else { return };
    let path = disk.path().join("run");
    let error = RunDir::create(&path).unwrap_err();
    assert_eq!(kind_of(&error), Some(ErrorKind::StorageFull), "{error}");
    let text = error.to_string();
    assert!(text.contains("full") && text.contains("-o") && text.contains("4 MiB"), "{text}");
    assert!(!path.exists(), "something was left behind");
    RunDir::create_with_room(&path, 1 << 16).unwrap();
}

#[test]
fn a_read_only_disk_is_found_before_measuring() {
    let name = "a_read_only_disk_is_found_before_measuring";
    let Some(disk) = SmallDisk::mount(name, 1 << 20) else { return };
    let empty = disk.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    disk.make_read_only();
    for path in [disk.path().join("run"), empty] {
        let error = RunDir::create_with_room(&path, 1 << 16).unwrap_err();
        assert_eq!(kind_of(&error), Some(ErrorKind::ReadOnlyFilesystem), "{error}");
        assert!(error.to_string().contains("read-only"), "{error}");
    }
}

#[test]
fn a_file_system_that_takes_no_files_is_found_before_measuring() {
    for path in ["/proc/whylate-run", "/proc/self/fd/whylate/run"] {
        let error = RunDir::create(path).unwrap_err();
        assert!(matches!(error, ModelError::Write { .. }), "{error}");
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[test]
fn a_disk_that_fills_up_loses_nothing_once_there_is_room_again() {
    let name = "a_disk_that_fills_up_loses_nothing_once_there_is_room_again";
    let Some(disk) = SmallDisk::mount(name, 2 << 20) else { return };
    let directory = RunDir::create_with_room(disk.path().join("run"), 1 << 16).unwrap();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    let mut log = directory.histogram_log().unwrap();
    let mut histogram = Histogram::new();
    histogram.record(1_234);

    for number in 0..1_000 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    directory.write_run(&run()).unwrap();
    log.append("gap", &histogram, 0.0, 1.0).unwrap();

    let filler = disk.fill();
    for number in 1_000..60_000 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    let error = writer.checkpoint().unwrap_err();
    assert_eq!(kind_of(&error), Some(ErrorKind::StorageFull), "{error}");
    assert!(directory.write_run(&run()).is_err());
    let mut refused = 0;
    while log.append("gap", &histogram, 1.0, 1.0).is_ok() {
        refused += 1;
        assert!(refused < 1_000_000, "the full disk took everything");
    }
    assert_eq!(read_gaps(&directory).unwrap().count(), 1_000, "the checkpoint before is gone");
    assert_eq!(directory.read_run().unwrap(), run());

    std::fs::remove_file(filler).unwrap();
    writer.checkpoint().unwrap();
    log.append("gap", &histogram, 2.0, 1.0).unwrap();
    assert_eq!(writer.lost_rows(), 0);
    assert_eq!(read_gaps(&directory).unwrap().count(), 60_000);
    assert!(directory.histograms().unwrap().all(|interval| interval.is_ok()));
    let temporary = std::fs::read_dir(directory.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "tmp"));
    assert_eq!(temporary.count(), 0, "half-written files were left on a full disk");
}

#[test]
fn what_a_full_disk_cannot_take_is_counted() {
    let name = "what_a_full_disk_cannot_take_is_counted";
    let Some(disk) = SmallDisk::mount(name, 1 << 20) else { return };
    let directory = RunDir::create_with_room(disk.path().join("run"), 0).unwrap();
    let limits = Limits { gap_rows: 100, ..Limits::default() };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    let filler = disk.fill();
    let mut errors = 0;
    for number in 0..350 {
        errors += u32::from(writer.push_gap(&gap_at(number)).is_err());
    }
    assert_eq!(errors, 1, "a failure is told once, then counted");
    assert_eq!(writer.lost_rows(), 250);
    std::fs::remove_file(filler).unwrap();
    writer.checkpoint().unwrap();
    writer.push_gap(&gap_at(350)).unwrap();
    writer.checkpoint().unwrap();
    let starts: Vec<u64> = read_gaps(&directory).unwrap().map(|g| g.unwrap().gap.start.0).collect();
    let expected: Vec<u64> = (0..100).chain([350]).map(|n| gap_at(n).gap.start.0).collect();
    assert_eq!(starts, expected);
}
