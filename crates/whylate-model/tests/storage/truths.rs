//! Truths of frames one by one: written in segments, read back in order, never trusted.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whylate_model::delay::{Fate, Truth};
use whylate_model::segments::{
    Limits, Writer, decode_packets, decode_truths, import, kind_of, read_truths,
};
use whylate_model::{RunDir, Ticks};

use crate::segments::segment_files;

fn new_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    (place, directory)
}

fn any_truth() -> impl Strategy<Value = Truth> {
    let who = (any::<u8>(), any::<u64>(), any::<u32>(), 0..Fate::ALL.len());
    let when = (any::<u64>(), any::<u64>(), option::of(any::<u64>()));
    let what = (option::of(any::<u64>()), option::of(any::<u64>()));
    (who, when, what).prop_map(|(who, (arrival, due, departure), (number, flow))| {
        let (direction, ordinal, bytes, fate) = who;
        Truth {
            direction,
            ordinal,
            arrival: Ticks(arrival),
            due: Ticks(due),
            departure: departure.map(Ticks),
            bytes,
            number,
            flow,
            fate: Fate::ALL[fate],
        }
    })
}

/// A segment with a few rows.
fn whole_segment() -> Vec<u8> {
    let (_place, directory) = new_run();
    let mut writer = Writer::new(&directory, Ticks(5), Limits::default());
    for ordinal in 0..40 {
        let truth = Truth {
            direction: 1,
            ordinal,
            arrival: Ticks(ordinal * 10),
            due: Ticks(ordinal * 10 + 5),
            departure: Some(Ticks(ordinal * 10 + 6)),
            bytes: 60,
            number: Some(ordinal),
            flow: Some(u64::MAX),
            fate: Fate::Released,
        };
        writer.push_truth(&truth).unwrap();
    }
    let news = writer.checkpoint().unwrap();
    assert_eq!(news.iter().map(kind_of).collect::<Vec<_>>(), [Some("truths")]);
    std::fs::read(&segment_files(&directory)[0]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_truths_come_back_as_they_were_pushed_and_are_taken_over_by_a_sum(
        truths in vec(any_truth(), 1..60),
        rows in 1_usize..20,
    ) {
        let (_place, directory) = new_run();
        let limits = Limits { gap_rows: rows, ..Limits::default() };
        let mut writer = Writer::new(&directory, Ticks(7), limits);
        for truth in &truths {
            writer.push_truth(truth).unwrap();
        }
        writer.checkpoint().unwrap();
        let back: Vec<_> = read_truths(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&back, &truths);
        let (_other, sum) = new_run();
        for (number, segment) in (1..).zip(writer.segments()) {
            let taken = import(&directory, &segment, &sum, number).unwrap();
            prop_assert_eq!(taken.rows, segment.rows);
        }
        prop_assert_eq!(read_truths(&sum).unwrap().count(), truths.len());
    }

    #[test]
    fn changed_bytes_of_truths_give_rows_or_an_error(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut content = whole_segment();
        for (place, value) in &changes {
            let at = place.index(content.len());
            content[at] = *value;
        }
        let _ = decode_truths(Path::new("truths"), content);
    }
}

#[test]
fn a_segment_of_truths_is_told_from_others_and_one_that_is_cut_is_refused() {
    let content = whole_segment();
    let path = Path::new("truths-0001.parquet");
    assert_eq!(decode_truths(path, content.clone()).unwrap().len(), 40);
    assert!(decode_packets(path, content.clone()).is_err());
    for length in (0..content.len()).step_by(7) {
        assert!(decode_truths(path, content[..length].to_vec()).is_err(), "{length} bytes");
    }
}
