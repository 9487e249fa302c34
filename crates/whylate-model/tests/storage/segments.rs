//! Gaps and events one by one: written in segments, read back in order.

use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use whylate_model::event::{Event, EventKind, Softirq, Task};
use whylate_model::gap::{Gap, GapKind};
use whylate_model::segments::{
    Limits, StoredGap, Writer, decode_brief_gaps, decode_gaps, gap_files, read_events, read_gaps,
    survey,
};
use whylate_model::{CpuId, ModelError, Pid, RunDir, Ticks};

use crate::happened::{any_event, any_stored_gap};
use crate::samples::run;

/// A gap that tells by its ticks which one it is.
pub(crate) fn gap_at(number: u64) -> StoredGap {
    let gap = Gap {
        start: Ticks(1_000 + number * 100),
        end: Ticks(1_050 + number * 100),
        resumed: Ticks(1_060 + number * 100),
        cpu_before: CpuId(1),
        cpu_after: CpuId((number % 2) as u32),
        kind: GapKind::Interruption,
        evidence: whylate_model::gap::Evidence::default(),
    };
    let cause = (!number.is_multiple_of(3)).then(|| format!("interrupt {}", number % 3).into());
    StoredGap { thread: (number % 4) as u16, gap, cause }
}

/// An event that tells by its ticks which one it is, of a kind that changes with the number.
pub(crate) fn event_of(number: u64) -> Event {
    let task = |pid| Task { pid: Pid(pid), comm: format!("task{pid}"), prio: 120 };
    let cpus = (0..number as u32 % 5).map(CpuId).collect();
    let kind = match number % 5 {
        0 => EventKind::VectorEntry { name: "local_timer".to_owned(), vector: 236 },
        1 => EventKind::Switch { from: task(1), from_runnable: true, to: task(number as i32) },
        2 => EventKind::SoftirqExit { vector: Softirq::Rcu },
        3 => EventKind::PageFault { user: true, address: u64::MAX, ip: number },
        _ => EventKind::IpiSend { targets: cpus, callsite: 1 << 63, callback: 0 },
    };
    Event { ticks: Ticks(1_000 + number), cpu: CpuId(0), pid: Pid(7), kind }
}

/// The Parquet files of a run by name.
pub(crate) fn segment_files(directory: &RunDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.path()).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
        .collect();
    files.sort();
    files
}

/// The gaps of a segment, which are the same without their evidence as with it.
pub(crate) fn gaps_both_ways(path: &Path, content: Vec<u8>) -> Result<Vec<StoredGap>, ModelError> {
    let (gaps, brief) = (decode_gaps(path, content.clone()), decode_brief_gaps(path, content));
    if let Ok(gaps) = &gaps {
        let brief = brief.unwrap_or_else(|why| panic!("{} in brief: {why}", path.display()));
        let of = |gap: &StoredGap| {
            let StoredGap { thread, gap, cause } = gap.clone();
            (thread, gap.start, gap.end, gap.cpu_before, cause)
        };
        let named = |cause: u32| brief.causes[cause as usize].clone();
        let told = brief.gaps.iter();
        let told = told.map(|of| (of.thread, of.start, of.end, of.cpu, of.cause.map(named)));
        assert!(told.eq(gaps.iter().map(of)), "{gaps:?} in brief: {brief:?}");
    }
    gaps
}

fn new_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    (place, directory)
}

fn starts(directory: &RunDir) -> Vec<u64> {
    read_gaps(directory).unwrap().map(|gap| gap.unwrap().gap.start.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_gaps_and_events_come_back_as_they_were_pushed(
        gaps in vec(any_stored_gap(), 0..40),
        events in vec(any_event(), 0..40),
        rows in 1_usize..20,
    ) {
        let (_place, directory) = new_run();
        let limits = Limits { gap_rows: rows, event_rows: rows, ..Limits::default() };
        let mut writer = Writer::new(&directory, Ticks(7), limits);
        for gap in &gaps {
            writer.push_gap(gap).unwrap();
        }
        for event in &events {
            writer.push_event(event).unwrap();
        }
        writer.checkpoint().unwrap();
        let back: Vec<_> = read_gaps(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(back, gaps);
        for file in gap_files(&directory).unwrap() {
            let content = std::fs::read(&file).unwrap();
            prop_assert!(gaps_both_ways(&file, content).is_ok());
        }
        let back: Vec<_> = read_events(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(back, events);
    }
}

#[test]
fn checkpoints_fill_one_segment_until_it_is_full() {
    let (_place, directory) = new_run();
    let limits = Limits { gap_rows: 10, ..Limits::default() };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    for number in 0..25 {
        writer.push_gap(&gap_at(number)).unwrap();
        if number % 4 == 3 {
            writer.checkpoint().unwrap();
        }
    }
    let news = writer.checkpoint().unwrap();
    assert_eq!(news.len(), 1, "only the last segment grew: {news:?}");
    assert_eq!(writer.checkpoint().unwrap(), [], "nothing was pushed since");
    let segments = writer.segments();
    let rows: Vec<_> = segments.iter().map(|s| (s.file.as_str(), s.rows)).collect();
    let expected = [("gaps-0001.parquet", 10), ("gaps-0002.parquet", 10), ("gaps-0003.parquet", 5)];
    assert_eq!(rows, expected);
    assert_eq!((segments[1].from, segments[1].to), (gap_at(10).gap.start, gap_at(19).gap.resumed));
    for (segment, file) in segments.iter().zip(segment_files(&directory)) {
        assert_eq!(segment.bytes, std::fs::metadata(file).unwrap().len());
    }
    assert_eq!(starts(&directory), (0..25).map(|n| gap_at(n).gap.start.0).collect::<Vec<_>>());
}

#[test]
fn the_oldest_segments_are_deleted_and_counted_at_the_disk_bound() {
    let (_place, directory) = new_run();
    let limits = Limits { max_bytes: 40_000, gap_rows: 100, event_rows: 100 };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    for number in 0..5_000 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    let files = segment_files(&directory);
    let bytes: u64 = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert!(bytes <= 40_000, "{bytes} bytes");
    assert!(bytes > 30_000, "much more was deleted than needed: {bytes} bytes");
    assert_eq!(writer.deleted() + files.len() as u64, 50);
    assert_eq!(writer.segments().len(), files.len());
    assert_eq!(writer.lost_rows(), 0);
    let first = writer.deleted() * 100;
    assert_eq!(
        starts(&directory),
        (first..5_000).map(|n| gap_at(n).gap.start.0).collect::<Vec<_>>()
    );
}

#[test]
fn a_flood_of_events_does_not_drive_out_the_gaps() {
    let (_place, directory) = new_run();
    let limits = Limits { max_bytes: 100_000, gap_rows: 100, event_rows: 100 };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    for number in 0..300 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    for number in 0..10_000 {
        writer.push_event(&event_of(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    assert!(writer.deleted() > 0);
    assert_eq!(starts(&directory).len(), 300);
}

#[test]
fn limits_keep_the_segments_being_filled_small_beside_the_bound() {
    let small = Limits::within(1 << 20);
    assert!(small.gap_rows < Limits::default().gap_rows && small.gap_rows >= 1_000, "{small:?}");
    assert_eq!(Limits::within(1 << 30), Limits::default());
    assert!(Limits::within(0).event_rows > 0);
}

#[test]
fn events_with_many_targets_end_a_segment_early() {
    let (_place, directory) = new_run();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    let targets: Vec<CpuId> = (0..8192).map(CpuId).collect();
    let kind = EventKind::IpiSend { targets, callsite: 1, callback: 2 };
    let event = Event { ticks: Ticks(1), cpu: CpuId(0), pid: Pid(1), kind };
    for _ in 0..200 {
        writer.push_event(&event).unwrap();
    }
    writer.checkpoint().unwrap();
    assert_eq!(writer.segments().len(), 2);
    let back: Vec<_> = read_events(&directory).unwrap().map(Result::unwrap).collect();
    assert!(back.len() == 200 && back.iter().all(|read| *read == event));
}

#[test]
fn a_damaged_segment_is_one_error_and_the_others_are_read() {
    let (_place, directory) = new_run();
    let limits = Limits { gap_rows: 10, ..Limits::default() };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    for number in 0..30 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    let second = &segment_files(&directory)[1];
    let content = std::fs::read(second).unwrap();
    std::fs::write(second, &content[..content.len() / 2]).unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = read_gaps(&directory).unwrap().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (20, 1));
    let message = bad[0].as_ref().unwrap_err().to_string();
    assert!(message.contains("gaps-0002.parquet") && message.contains("truncated"), "{message}");
}

#[test]
fn a_survey_tells_what_is_missing_unlisted_and_unfinished() {
    let (_place, directory) = new_run();
    let limits = Limits { gap_rows: 10, ..Limits::default() };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    let mut run = run();
    for number in 0..30 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    run.segments = writer.segments();
    assert!(survey(&directory, &run).unwrap().is_complete());

    run.segments.pop();
    std::fs::remove_file(directory.path().join("gaps-0001.parquet")).unwrap();
    std::fs::write(directory.path().join("gaps-0004.parquet.tmp"), "half").unwrap();
    let survey = survey(&directory, &run).unwrap();
    assert_eq!(survey.missing, ["gaps-0001.parquet"]);
    assert_eq!(survey.unlisted, ["gaps-0003.parquet"]);
    assert_eq!(survey.unfinished, ["gaps-0004.parquet.tmp"]);
    let text = survey.to_string();
    assert!(text.contains("missing") && text.contains("killed"), "{text}");
    assert_eq!(starts(&directory).len(), 20);
}

#[test]
fn segments_are_read_by_number_not_by_name() {
    let (_place, directory) = new_run();
    let limits = Limits { gap_rows: 1, ..Limits::default() };
    let mut writer = Writer::new(&directory, Ticks(0), limits);
    for number in 0..3 {
        writer.push_gap(&gap_at(number)).unwrap();
    }
    let name = |number: &str| directory.path().join(format!("gaps-{number}.parquet"));
    std::fs::rename(name("0001"), name("9999")).unwrap();
    std::fs::rename(name("0002"), name("10000")).unwrap();
    assert_eq!(starts(&directory), [2, 0, 1].map(|n| gap_at(n).gap.start.0));
}
