//! Directories that somebody else made: refused with a reason, never trusted, never a panic.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use whylate_model::directory::parse_run;
use whylate_model::segments::{
    Writer, decode_brief_gaps, decode_events, decode_gaps, decode_journeys, decode_packets,
    decode_truths, is_segment_name, read_gaps,
};
use whylate_model::{ModelError, RunDir, Ticks};

use crate::samples::{run, segment};
use crate::segments::{event_of, gap_at, gaps_both_ways, segment_files};

fn parse(json: &[u8]) -> Result<whylate_model::run::Run, ModelError> {
    parse_run(Path::new("run.json"), json)
}

#[test]
fn every_truncation_of_a_run_is_refused_as_truncated() {
    let json = serde_json::to_vec(&run()).unwrap();
    for length in 0..json.len() {
        let error = parse(&json[..length]).unwrap_err();
        assert!(matches!(error, ModelError::Truncated { .. }), "{length} bytes: {error}");
    }
    parse(&json).unwrap();
}

#[test]
fn hostile_json_is_refused_with_a_reason() {
    let good = serde_json::to_string(&run()).unwrap();
    let deep = |open: &str| format!("{{\"format_version\":1,\"x\":{}", open.repeat(1_000_000));
    let cases = [
        deep("["),
        deep("{\"a\":"),
        good.replace("\"settings\":{", &format!("\"settings\":{}", "[".repeat(10_000))),
        good.replace("\"seed\":18446744073709551615", "\"seed\":-1"),
        good.replace("\"seed\":18446744073709551615", "\"seed\":18446744073709551616"),
        good.replace("\"seed\":18446744073709551615", "\"seed\":1e999"),
        good.replace("\"hz_bound_ppm\":0.01", "\"hz_bound_ppm\":NaN"),
        good.replace("\"hz_bound_ppm\":0.01", "\"hz_bound_ppm\":null"),
        good.replace("\"hz_bound_ppm\":0.01", "\"hz_bound_ppm\":\"\\u001b[2J\""),
        good.replace("\"series\":[", "\"series\":[[],"),
        good.replace("\"state\":\"complete\"", "\"state\":\"\u{1b}]0;owned\u{7}\""),
        good.replace("\"format_version\":2", "\"format_version\":0"),
        good.replace("\"format_version\":2", "\"format_version\":\"2\""),
        good.replace("\"format_version\":2", "\"format_version\":-1"),
        good.replace("\"format_version\":2,", ""),
        good.replace("\"format_version\":2", "\"format_version\":2,\"format_version\":3"),
        format!("{good} {good}"),
        "null".to_owned(),
        "[]".to_owned(),
        "\"run\"".to_owned(),
        "{}".to_owned(),
        "\u{0}".repeat(64),
    ];
    for json in &cases {
        let error = parse(json.as_bytes()).unwrap_err();
        let text = error.to_string();
        let shown = json.get(..80.min(json.len())).unwrap_or_default();
        assert!(text.len() < 400, "{shown}: a message of {} bytes", text.len());
        assert!(text.chars().all(|c| !c.is_control()), "{shown}: {text:?}");
    }
}

#[test]
fn a_segment_name_never_leads_out_of_the_directory() {
    for name in [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "",
        "gaps-0001.parquet/../../x",
        "a/gaps-0001.parquet",
        "gaps-0001.parquet\0",
        "gaps-.parquet",
        "gaps-00x1.parquet",
        "-0001.parquet",
        "gaps-99999999999999999999999.parquet",
        "\u{1b}[31m",
    ] {
        assert!(!is_segment_name(name), "{name:?} was taken for a segment");
        let mut bad = run();
        bad.segments.push(segment(name));
        let error = parse(&serde_json::to_vec(&bad).unwrap()).unwrap_err();
        assert!(matches!(error, ModelError::UnsafeFileName { .. }), "{name:?}: {error}");
        assert!(error.to_string().chars().all(|c| !c.is_control()));
    }
    for name in ["gaps-0001.parquet", "events-12345.parquet", "packets-0001.parquet"] {
        assert!(is_segment_name(name), "{name} was refused");
    }
}

#[test]
fn a_run_file_that_is_too_large_is_not_read() {
    let place = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(place.path().join("run.json")).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = RunDir::open(place.path()).unwrap().read_run().unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { .. }), "{error}");
}

#[test]
fn links_pipes_and_directories_are_not_files_of_a_run() {
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), serde_json::to_vec(&run()).unwrap()).unwrap();
    let directory = RunDir::open(place.path()).unwrap();

    let run_file = place.path().join("run.json");
    symlink(outside.path(), &run_file).unwrap();
    assert!(matches!(directory.read_run(), Err(ModelError::NotAPlainFile { .. })));
    std::fs::remove_file(&run_file).unwrap();
    std::fs::create_dir(&run_file).unwrap();
    assert!(matches!(directory.read_run(), Err(ModelError::NotAPlainFile { .. })));
    std::fs::remove_dir(&run_file).unwrap();

    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &run_file, mode).unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(directory.read_run().map(drop)));
    let result = wait.recv_timeout(Duration::from_secs(60)).expect("reading a pipe never ended");
    assert!(matches!(result, Err(ModelError::NotAPlainFile { .. })));

    symlink(outside.path(), place.path().join("gaps-0001.parquet")).unwrap();
    symlink(outside.path(), place.path().join("histograms.hlog")).unwrap();
    let directory = RunDir::open(place.path()).unwrap();
    let gaps: Vec<_> = read_gaps(&directory).unwrap().collect();
    assert!(matches!(gaps[..], [Err(ModelError::NotAPlainFile { .. })]), "{gaps:?}");
    assert!(matches!(directory.histograms(), Err(ModelError::NotAPlainFile { .. })));
}

#[test]
fn a_link_in_the_way_of_a_new_file_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    symlink(outside.path(), directory.path().join("run.json.tmp")).unwrap();
    symlink(outside.path(), directory.path().join("run.json")).unwrap();
    directory.write_run(&run()).unwrap();
    assert_eq!(directory.read_run().unwrap(), run());
    assert_eq!(std::fs::metadata(outside.path()).unwrap().len(), 0);
}

/// Segments with a few rows of every kind: gaps, then events.
fn whole_segments() -> (Vec<u8>, Vec<u8>) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    let mut writer = Writer::new(&directory, Ticks(5), whylate_model::segments::Limits::default());
    for number in 0..40 {
        writer.push_gap(&gap_at(number)).unwrap();
        writer.push_event(&event_of(number)).unwrap();
    }
    writer.checkpoint().unwrap();
    let files = segment_files(&directory);
    (std::fs::read(&files[1]).unwrap(), std::fs::read(&files[0]).unwrap())
}

#[test]
fn every_truncation_of_a_segment_is_refused() {
    let (gaps, events) = whole_segments();
    let path = Path::new("segment");
    for length in 0..gaps.len() {
        assert!(decode_gaps(path, gaps[..length].to_vec()).is_err(), "{length} bytes of gaps");
    }
    for length in 0..events.len() {
        assert!(
            decode_events(path, events[..length].to_vec()).is_err(),
            "{length} bytes of events"
        );
    }
    assert_eq!(decode_gaps(path, gaps.clone()).unwrap().len(), 40);
    assert_eq!(decode_events(path, events.clone()).unwrap().len(), 40);
    assert!(decode_events(path, gaps).is_err(), "gaps were taken for events");
    assert!(decode_gaps(path, events).is_err(), "events were taken for gaps");
}

#[test]
fn every_changed_byte_of_a_segment_gives_rows_or_an_error() {
    let (gaps, events) = whole_segments();
    let path = Path::new("segment");
    for place in 0..gaps.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = gaps.clone();
            changed[place] ^= change;
            let _ = gaps_both_ways(path, changed);
        }
    }
    for place in 0..events.len() {
        let mut changed = events.clone();
        changed[place] ^= 0xff;
        let _ = decode_events(path, changed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn many_changed_bytes_of_a_segment_give_rows_or_an_error(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let (mut gaps, mut events) = whole_segments();
        for (place, value) in &changes {
            let (in_gaps, in_events) = (place.index(gaps.len()), place.index(events.len()));
            gaps[in_gaps] = *value;
            events[in_events] = *value;
        }
        let _ = gaps_both_ways(Path::new("gaps"), gaps);
        let _ = decode_events(Path::new("events"), events);
    }

    #[test]
    fn any_bytes_give_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let path = Path::new("bytes");
        prop_assert!(parse(&bytes).is_err());
        prop_assert!(decode_gaps(path, bytes.clone()).is_err());
        prop_assert!(decode_brief_gaps(path, bytes.clone()).is_err());
        prop_assert!(decode_events(path, bytes.clone()).is_err());
        prop_assert!(decode_packets(path, bytes.clone()).is_err());
        prop_assert!(decode_journeys(path, bytes.clone()).is_err());
        prop_assert!(decode_truths(path, bytes.clone()).is_err());
        prop_assert!(whylate_model::hlog::parse_line(path, &bytes).is_err());
    }
}
