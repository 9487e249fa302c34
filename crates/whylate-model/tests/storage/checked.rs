//! Files that a run counts on: each that is missing or short is told by name, and no other.

use whylate_model::segments::{Limits, Writer};
use whylate_model::{RunDir, Ticks};
use whylate_stats::histogram::Histogram;

use crate::samples::run;
use crate::segments::gap_at;

#[test]
fn a_segment_or_a_log_that_is_missing_or_short_is_told_by_name() {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    let mut writer = Writer::new(&directory, Ticks(0), Limits::default());
    writer.push_gap(&gap_at(1)).unwrap();
    writer.checkpoint().unwrap();
    let mut log = directory.histogram_log().unwrap();
    log.append("gap-cpu0", &[1_000].into_iter().collect::<Histogram>(), 0.0, 1.0).unwrap();
    log.sync().unwrap();
    let mut run = run();
    run.segments = writer.segments();
    run.log_bytes = Some(log.bytes());
    directory.write_run(&run).unwrap();
    let problems = || directory.read_checked().unwrap().files.problems;
    assert_eq!(problems(), [""; 0]);
    let [segment] = &run.segments[..] else { panic!("{:?}", run.segments) };
    let shorten = |name: &str| {
        let path = directory.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        bytes.len()
    };
    let (of_segment, of_log) = (shorten(&segment.file), shorten("histograms.hlog"));
    assert_eq!(
        problems(),
        [
            format!("{} has {} bytes of {of_segment}", segment.file, of_segment / 2),
            format!("histograms.hlog has {} bytes of {of_log}", of_log / 2),
        ]
    );
    for name in [segment.file.as_str(), "histograms.hlog"] {
        std::fs::remove_file(directory.path().join(name)).unwrap();
    }
    let missing = [format!("{} is missing", segment.file), "histograms.hlog is missing".to_owned()];
    assert_eq!(problems(), missing);
}
