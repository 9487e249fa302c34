//! The stored form: what others can read, what we read back, and what we refuse.

use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use proptest::collection::vec;
use proptest::prelude::*;
use whylate_stats::histogram::{Exact, HIGHEST_NS};
use whylate_stats::{Histogram, StatsError};

fn example() -> Histogram {
    [0, 1, 7, 7, 2_047, 2_048, 2_049, 1_000_001, 64_000_000, HIGHEST_NS].into_iter().collect()
}

fn counts(histogram: &Histogram) -> Vec<(u64, u64)> {
    histogram.bins().map(|(value, count)| (histogram.bin_of(value), count)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stored_and_read_again_is_the_same_with_its_exact_values(
        entries in vec((0u64..2 * HIGHEST_NS, 1u64..1_000_000_000), 0..60),
        small in vec((0u64..5_000, 1u64..4), 0..60),
    ) {
        let mut histogram = Histogram::new();
        for (value, count) in entries.into_iter().chain(small) {
            histogram.record_n(value, count);
        }
        let mut read = Histogram::from_v2(&histogram.to_v2()).unwrap();
        prop_assert_eq!(counts(&read), counts(&histogram));
        prop_assert_eq!(read.len(), histogram.len());
        if let Some(exact) = histogram.exact() {
            prop_assert!(read.min() <= histogram.min());
            prop_assert!(read.max() >= histogram.max() || histogram.saturated() > 0);
            read.set_exact(exact).unwrap();
        }
        prop_assert_eq!(&read, &histogram);
        let text = Histogram::from_v2_base64(&histogram.to_v2_base64()).unwrap();
        prop_assert_eq!(counts(&text), counts(&histogram));
    }

    #[test]
    fn others_read_what_we_write(values in vec(0..=HIGHEST_NS, 0..100)) {
        let histogram: Histogram = values.into_iter().collect();
        let bytes = histogram.to_v2();
        let theirs: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        prop_assert_eq!(&theirs, histogram.as_hdr());
    }

    #[test]
    fn arbitrary_bytes_are_an_error_or_a_histogram(
        tail in vec(any::<u8>(), 0..200), keep in 0usize..44, flip in 0usize..44, bit in 0u8..8,
    ) {
        let _ = Histogram::from_v2(&tail);
        let mut bytes = example().to_v2();
        let place = flip.min(bytes.len() - 1);
        bytes[place] ^= 1 << bit;
        let _ = Histogram::from_v2(&bytes);
        bytes.truncate(keep);
        bytes.extend_from_slice(&tail);
        let _ = Histogram::from_v2(&bytes);
    }

    #[test]
    fn arbitrary_payload_under_a_good_header_is_read_or_refused(tail in vec(any::<u8>(), 0..300)) {
        if let Ok(histogram) = Histogram::from_v2(&with_payload(&tail)) {
            prop_assert!(histogram.is_empty() || histogram.min() <= histogram.max());
            prop_assert_eq!(histogram.len(), histogram.bins().map(|bin| bin.1).sum::<u64>());
        }
    }
}

/// A well-formed header with this payload.
fn with_payload(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Histogram::new().to_v2()[..40].to_vec();
    bytes[4..8].copy_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn file_cut_short_is_told() {
    let bytes = example().to_v2();
    for keep in 0..bytes.len() {
        let error = Histogram::from_v2(&bytes[..keep]).unwrap_err();
        assert!(matches!(error, StatsError::Truncated { .. }), "{keep}: {error}");
    }
    // A number that says "more follows" at the very end.
    let error = Histogram::from_v2(&with_payload(&[0x80])).unwrap_err();
    assert!(matches!(error, StatsError::Truncated { .. }), "{error}");
}

#[test]
fn claims_of_a_hostile_header_cost_nothing() {
    let mut bytes = example().to_v2();
    bytes[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    let error = Histogram::from_v2(&bytes).unwrap_err();
    assert!(matches!(error, StatsError::Truncated { need: 4_294_967_335, .. }), "{error}");
}

#[test]
fn hostile_counts_are_refused() {
    // -2^63: skip that many bins; zig-zag of it is all ones.
    let skip = Histogram::from_v2(&with_payload(&[0xff; 9])).unwrap_err();
    assert!(matches!(skip, StatsError::TooManyBins { .. }), "{skip}");
    // 2^63-1, twice.
    let mut most = [0xff; 18];
    most[0] = 0xfe;
    most[9] = 0xfe;
    assert_eq!(Histogram::from_v2(&with_payload(&most[..9])).unwrap().len(), i64::MAX as u64);
    let sum = Histogram::from_v2(&with_payload(&most)).unwrap_err();
    assert_eq!(sum, StatsError::CountOverflow { bin: 1 });
    // More bins than there are.
    let many = Histogram::from_v2(&with_payload(&vec![2; 33_500])).unwrap_err();
    assert!(matches!(many, StatsError::TooManyBins { .. }), "{many}");
}

#[test]
fn bins_end_with_that_of_one_hour() {
    let bins = Histogram::from_v2(&with_payload(&vec![2; 33_421])).unwrap();
    assert_eq!(bins.len(), 33_421);
    assert_eq!(bins.saturated(), 0);
    assert_eq!(bins.max(), Some(bins.bin_of(HIGHEST_NS)));
    assert!(Histogram::from_v2(&with_payload(&vec![2; 33_422])).is_err());
}

#[test]
fn bins_of_another_meaning_are_refused() {
    let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1_000_000, 2).unwrap();
    other.record(5).unwrap();
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&other, &mut bytes).unwrap();
    let error = Histogram::from_v2(&bytes).unwrap_err();
    assert_eq!(error, StatsError::OtherLayout { low: 1, high: 1_000_000, digits: 2 });
    assert!(matches!(Histogram::from_v2(&[0; 40]), Err(StatsError::NotV2 { cookie: 0, .. })));
    assert!(matches!(Histogram::from_v2_base64("%"), Err(StatsError::NotBase64 { .. })));
}

#[test]
fn exact_values_of_another_histogram_are_refused() {
    let exact = example().exact().unwrap();
    let mut read = Histogram::from_v2(&example().to_v2()).unwrap();
    let before = read.clone();
    let wrong = [
        Exact { min_ns: 1, ..exact },
        Exact { max_ns: HIGHEST_NS / 2, ..exact },
        Exact { max_ns: u64::MAX, ..exact },
        Exact { sum_ns: exact.sum_ns * 2, ..exact },
        Exact { sum_ns: 0, ..exact },
        Exact { saturated: 2, ..exact },
    ];
    for exact in wrong {
        assert!(read.set_exact(exact).is_err(), "{exact:?}");
        assert_eq!(read, before);
    }
    read.set_exact(exact).unwrap();
    assert_eq!(read, example());
}
