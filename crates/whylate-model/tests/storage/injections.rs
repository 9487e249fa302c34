//! Interruptions of a self-test: written in segments, read back in order, never trusted.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use whylate_model::injection::Injection;
use whylate_model::segments::{
    Limits, Writer, decode_gaps, decode_injections, import, kind_of, read_injections,
};
use whylate_model::{RunDir, Ticks, TicksDelta};

use crate::segments::segment_files;

fn new_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    (place, directory)
}

fn any_injection() -> impl Strategy<Value = Injection> {
    ("[a-z ]{0,12}", any::<[u64; 4]>()).prop_map(|(kind, [since, start, end, asked])| Injection {
        kind,
        since: Ticks(since),
        start: Ticks(start),
        end: Ticks(end),
        asked: TicksDelta(asked),
    })
}

/// A segment with a few rows.
fn whole_segment() -> Vec<u8> {
    let (_place, directory) = new_run();
    let mut writer = Writer::new(&directory, Ticks(5), Limits::default());
    for number in 0..40 {
        let injection = Injection {
            kind: "signal".to_owned(),
            since: Ticks(number * 10),
            start: Ticks(number * 10 + 2),
            end: Ticks(number * 10 + 6),
            asked: TicksDelta(4),
        };
        writer.push_injection(&injection).unwrap();
    }
    let news = writer.checkpoint().unwrap();
    assert_eq!(news.iter().map(kind_of).collect::<Vec<_>>(), [Some("injections")]);
    assert_eq!((news[0].rows, news[0].from, news[0].to), (40, Ticks(0), Ticks(396)));
    std::fs::read(&segment_files(&directory)[0]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_injections_come_back_as_they_were_pushed_and_are_taken_over_by_a_sum(
        injections in vec(any_injection(), 1..60),
        rows in 1_usize..20,
    ) {
        let (_place, directory) = new_run();
        let limits = Limits { gap_rows: rows, ..Limits::default() };
        let mut writer = Writer::new(&directory, Ticks(7), limits);
        for injection in &injections {
            writer.push_injection(injection).unwrap();
        }
        writer.checkpoint().unwrap();
        let back: Vec<_> = read_injections(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&back, &injections);
        let (_other, sum) = new_run();
        for (number, segment) in (1..).zip(writer.segments()) {
            let taken = import(&directory, &segment, &sum, number).unwrap();
            prop_assert_eq!(taken.rows, segment.rows);
        }
        prop_assert_eq!(read_injections(&sum).unwrap().count(), injections.len());
    }

    #[test]
    fn changed_bytes_of_injections_give_rows_or_an_error(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut content = whole_segment();
        for (place, value) in &changes {
            let at = place.index(content.len());
            content[at] = *value;
        }
        let _ = decode_injections(Path::new("injections"), content);
    }
}

#[test]
fn a_segment_of_injections_is_told_from_others_and_one_that_is_cut_is_refused() {
    let content = whole_segment();
    let path = Path::new("injections-0001.parquet");
    assert_eq!(decode_injections(path, content.clone()).unwrap().len(), 40);
    assert!(decode_gaps(path, content.clone()).is_err());
    for length in (0..content.len()).step_by(7) {
        assert!(decode_injections(path, content[..length].to_vec()).is_err(), "{length} bytes");
    }
}
