//! The signal-to-noise ratio of the PAM paper, in both readings of its text.
//!
//! "Events below p99.9 over events above" is 999 by construction when counted, ties apart (values
//! equal to the p99.9 count as below: with 9 ns at every percentile nothing would be below it). So
//! the time of those events is given beside it, which says something about the machine.

use crate::histogram::Histogram;

const PERCENT: f64 = 99.9;

/// Samples at or below the p99.9 over samples above it. None when there are none above.
#[must_use]
pub fn by_count(histogram: &Histogram) -> Option<f64> {
    let above = histogram.count_above(histogram.value_at(PERCENT)?);
    (above > 0).then(|| (histogram.len() - above) as f64 / above as f64)
}

/// Time of the samples at or below the p99.9 over time of those above it. None when none are above.
#[must_use]
pub fn by_time(histogram: &Histogram) -> Option<f64> {
    let above = histogram.sum_above(histogram.value_at(PERCENT)?);
    (above > 0).then(|| histogram.sum().saturating_sub(above) as f64 / above as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_999_by_construction_and_time_is_not() {
        let histogram: Histogram = (1..=2_000).collect();
        assert_eq!(by_count(&histogram), Some(999.0));
        // 1..=1998 over 1999 + 2000.
        assert_eq!(by_time(&histogram), Some(1_997_001.0 / 3_999.0));
    }

    #[test]
    fn ties_count_as_below() {
        let mut histogram = Histogram::new();
        histogram.record_n(9, 99_999);
        histogram.record(50_000);
        assert_eq!(by_count(&histogram), Some(99_999.0));
        let time = by_time(&histogram).unwrap();
        assert!((time - 99_999.0 * 9.0 / 50_000.0).abs() < 0.02, "{time}");
    }

    #[test]
    fn nothing_above_is_no_ratio() {
        assert_eq!(by_count(&Histogram::new()), None);
        let small: Histogram = (1..=900).collect();
        assert_eq!(by_count(&small), None);
        assert_eq!(by_time(&small), None);
    }
}
