//! Up to which percentile an instrument may be trusted.
//!
//! A percentile *holds* when the instrument's error lies within the tolerance of zero, and its whole
//! interval does. The limit is the largest percentile up to which all hold: one that holds by luck
//! beyond one that does not counts for nothing.

use crate::error_curve::ErrorAt;

/// The limit, and what ended it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrustLimit {
    /// The largest percentile up to which all hold; none where not even the first one does.
    pub percent: Option<f64>,
    /// What the first that does not hold lacks.
    pub ended_by: EndedBy,
    /// Which one that is; none where all hold.
    pub fails_at: Option<f64>,
}

/// What ends trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Nothing: all percentiles of the curve hold.
    Nothing,
    /// The error is beyond the tolerance.
    Error,
    /// The error is within, and its interval reaches beyond: a larger sample may tell.
    Interval,
    /// The sample is too small for an interval.
    Sample,
}

/// The limit of a curve whose percentiles rise. A curve of none is one of too small a sample.
///
/// # Panics
/// When the percentiles do not rise, or the tolerance is below zero or no number.
#[must_use]
pub fn trust_limit(curve: &[ErrorAt], tolerance_ns: f64) -> TrustLimit {
    assert!(tolerance_ns >= 0.0, "a tolerance is not {tolerance_ns} ns");
    assert!(
        curve.windows(2).all(|pair| pair[0].percent < pair[1].percent),
        "the percentiles of a curve must rise"
    );
    let mut percent = None;
    for at in curve {
        if let Some(ended_by) = failure(at, tolerance_ns) {
            return TrustLimit { percent, ended_by, fails_at: Some(at.percent) };
        }
        percent = Some(at.percent);
    }
    let ended_by = if curve.is_empty() { EndedBy::Sample } else { EndedBy::Nothing };
    TrustLimit { percent, ended_by, fails_at: None }
}

/// What this percentile lacks; none when it holds.
fn failure(at: &ErrorAt, tolerance_ns: f64) -> Option<EndedBy> {
    let surely_beyond = at.low_ns.is_some_and(|low| low > tolerance_ns)
        || at.high_ns.is_some_and(|high| high < -tolerance_ns);
    if surely_beyond {
        return Some(EndedBy::Error);
    }
    let (Some(error), Some(low), Some(high)) = (at.error_ns, at.low_ns, at.high_ns) else {
        return Some(EndedBy::Sample);
    };
    let within = |value: f64| value.abs() <= tolerance_ns;
    match (within(error), within(low) && within(high)) {
        (_, true) => None,
        (true, false) => Some(EndedBy::Interval),
        (false, false) => Some(EndedBy::Error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(percent: f64, error: f64, half: f64) -> ErrorAt {
        ErrorAt {
            percent,
            error_ns: Some(error),
            low_ns: Some(error - half),
            high_ns: Some(error + half),
            n_eff: 1e6,
        }
    }

    #[test]
    fn what_ends_trust_is_named_and_luck_beyond_it_counts_for_nothing() {
        let first = at(50.0, 100.0, 10.0);
        let all = [first, at(99.0, -900.0, 50.0)];
        let told = |curve: &[ErrorAt]| {
            let limit = trust_limit(curve, 1_000.0);
            (limit.percent, limit.ended_by, limit.fails_at)
        };
        assert_eq!(told(&all), (Some(99.0), EndedBy::Nothing, None));
        let lucky = at(99.9, 0.0, 1.0);
        assert_eq!(
            told(&[first, at(99.0, 2_000.0, 1.0), lucky]),
            (Some(50.0), EndedBy::Error, Some(99.0))
        );
        assert_eq!(
            told(&[first, at(99.0, 900.0, 200.0), lucky]),
            (Some(50.0), EndedBy::Interval, Some(99.0))
        );
        // Beyond the tolerance, and perhaps within.
        assert_eq!(told(&[at(50.0, -1_100.0, 200.0)]), (None, EndedBy::Error, Some(50.0)));
        assert_eq!(told(&[]), (None, EndedBy::Sample, None));
    }

    #[test]
    fn an_error_without_an_upper_end_is_one_where_its_lower_end_says_so() {
        let open = |low: f64| ErrorAt { error_ns: None, high_ns: None, ..at(99.0, low, 0.0) };
        assert_eq!(trust_limit(&[open(0.0)], 1_000.0).ended_by, EndedBy::Sample);
        assert_eq!(trust_limit(&[open(5_000.0)], 1_000.0).ended_by, EndedBy::Error);
    }
}
