//! The histogram log: standard lines that come back, here and in the HdrHistogram library.

use std::io::Write;

use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use whylate_model::{ModelError, Nanos, RunDir};
use whylate_stats::histogram::Histogram;

use base64::Engine;

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

/// A log of two series over three seconds.
fn logged() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    let mut log = directory.histogram_log().unwrap();
    log.set_base_time(Nanos(1_700_000_000_250_000_000)).unwrap();
    for second in 0..3_u32 {
        let start = f64::from(second) + 0.125;
        log.append("gap-cpu1", &of(&[100, 2_345, u64::from(second) * 1_000_003]), start, 1.0)
            .unwrap();
        log.append("gap-cpu2", &of(&[]), start, 1.0).unwrap();
    }
    log.sync().unwrap();
    (place, directory)
}

#[test]
fn histograms_come_back_with_their_tag_and_interval() {
    let (_place, directory) = logged();
    let back = directory.read_histograms().unwrap();
    assert_eq!(back.len(), 6);
    let (tag, start, length, histogram) = &back[4];
    assert_eq!((tag.as_str(), *start, *length), ("gap-cpu1", 2.125, 1.0));
    assert!(*histogram == of(&[100, 2_345, 2_000_006]), "exact minimum, maximum and sum included");
    assert!(back[5].3.is_empty());
}

#[test]
fn the_hdrhistogram_library_reads_the_log() {
    let (_place, directory) = logged();
    let text = std::fs::read(directory.path().join("histograms.hlog")).unwrap();
    let entries: Vec<_> = IntervalLogIterator::new(&text).map(Result::unwrap).collect();
    let bases = entries.iter().filter(|entry| matches!(entry, LogEntry::BaseTime(_)));
    assert_eq!(bases.count(), 1);
    let intervals: Vec<_> = entries
        .iter()
        .filter_map(|entry| match entry {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        })
        .collect();
    assert_eq!(intervals.len(), 6);
    let last = intervals[4];
    assert_eq!(last.tag().unwrap().as_str(), "gap-cpu1");
    assert!((last.max() - 2_000_006.0).abs() < f64::EPSILON, "the maximum is exact");
    let bytes = base64::engine::general_purpose::STANDARD.decode(last.encoded_histogram()).unwrap();
    let histogram: hdrhistogram::Histogram<u64> =
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    assert_eq!(histogram.len(), 3);
    assert_eq!(histogram.count_at(2_345), 1);
}

#[test]
fn a_log_that_ends_in_the_middle_of_a_line_says_so_after_what_is_whole() {
    let (_place, directory) = logged();
    let file = directory.path().join("histograms.hlog");
    let text = std::fs::read(&file).unwrap();
    for length in 0..text.len() {
        std::fs::write(&file, &text[..length]).unwrap();
        let (good, bad): (Vec<_>, Vec<_>) =
            directory.histograms().unwrap().partition(Result::is_ok);
        let lines = text[..length].split_inclusive(|byte| *byte == b'\n');
        let whole = lines.filter(|line| line.starts_with(b"Tag=") && line.ends_with(b"\n")).count();
        assert_eq!(good.len(), whole, "{length} bytes");
        let in_line = length > 0 && text[length - 1] != b'\n';
        assert_eq!(bad.len(), usize::from(in_line), "{length} bytes");
        if let Some(Err(error)) = bad.first() {
            assert!(matches!(error, ModelError::Truncated { .. }), "{error}");
        }
    }
}

#[test]
fn a_line_that_is_damaged_is_one_error_and_the_others_are_read() {
    let (_place, directory) = logged();
    let file = directory.path().join("histograms.hlog");
    let text = std::fs::read_to_string(&file).unwrap();
    let good_line = text.lines().last().unwrap();
    let (before, encoded) = good_line.rsplit_once(',').unwrap();
    // A stream that inflates without end, and one that is no histogram.
    let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; 64 << 20]).unwrap();
    let bomb = wrapped(&bomb.finish().unwrap());
    for bad in [
        format!("Tag=a,x,1.000,1.000,{encoded}"),
        format!("Tag=a,-1.000,1.000,1.000,{encoded}"),
        format!("Tag=a,NaN,1.000,1.000,{encoded}"),
        format!("Tag=a,inf,1.000,1.000,{encoded}"),
        format!("Tag=,1.000,1.000,1.000,{encoded}"),
        "Tag=a".to_owned(),
        "Tag=a,1.0,1.0".to_owned(),
        format!("{before},!!!!"),
        format!("{before},"),
        format!("{before},{}", &encoded[..encoded.len() / 2]),
        format!("{before},{bomb}"),
        format!("{before},{}", wrapped(b"nonsense")),
        "\u{1b}[2J".to_owned(),
    ] {
        std::fs::write(&file, format!("{bad}\n{good_line}\n")).unwrap();
        let read: Vec<_> = directory.histograms().unwrap().collect();
        assert!(matches!(&read[..], [Err(_), Ok(_)]), "{bad:.60}: {read:?}");
        let message = read[0].as_ref().unwrap_err().to_string();
        assert!(message.contains("line 1") && !message.contains('\u{1b}'), "{message}");
    }
    let lie = format!("#[Exact: min=0 max=5 sum=1 saturated=0]\n{good_line}\n");
    let not_empty = text.lines().rfind(|line| line.starts_with("Tag=gap-cpu1")).unwrap();
    let lie = lie.replace(good_line, not_empty);
    std::fs::write(&file, lie).unwrap();
    assert!(directory.read_histograms().is_err(), "exact values of another histogram were taken");
    std::fs::write(&file, "x".repeat(3 << 20)).unwrap();
    assert_eq!(directory.histograms().unwrap().count(), 1);
}

fn wrapped(body: &[u8]) -> String {
    let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn what_no_line_can_hold_is_refused() {
    let (_place, directory) = logged();
    assert!(directory.histogram_log().is_err(), "a log was begun twice");
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path(), 0).unwrap();
    let mut log = directory.histogram_log().unwrap();
    let endless = "x".repeat(129);
    for tag in ["", "a,b", "a b", "a\nb", "\u{1b}[2J", &endless] {
        let error = log.append(tag, &of(&[1]), 0.0, 1.0).unwrap_err();
        assert!(matches!(error, ModelError::BadTag { .. }), "{error}");
    }
    for (start, length) in [(f64::NAN, 1.0), (-1.0, 1.0), (0.0, f64::INFINITY)] {
        let error = log.append("a", &of(&[1]), start, length).unwrap_err();
        assert!(matches!(error, ModelError::BadInterval { .. }), "{error}");
    }
    assert_eq!(directory.read_histograms().unwrap().len(), 0);
}
