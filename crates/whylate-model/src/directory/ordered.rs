//! Bounds of percentiles that contradict each other in older runs.
//!
//! What bounds a percentile from below bounds each higher one, and what bounds it from above each lower one. Each
//! is found by itself; runs whose recorder did not put them in order are read as those whose recorder did.

use crate::device::BoundsAtPercent;
use crate::run::Run;
use crate::series::summary::order_ends;

/// Puts all of a run in order.
pub(super) fn settle(run: &mut Run) {
    for series in &mut run.series {
        order_ends(&mut series.quantiles, series.min);
    }
    for share in run.origins.iter_mut().flat_map(|origin| &mut origin.series) {
        order_ends(&mut share.quantiles, None);
    }
    for size in run.device.iter_mut().flat_map(|device| &mut device.sizes) {
        order_ends(&mut size.measured, size.min);
        if let Some(log) = &mut size.residence {
            order_ends(&mut log.quantiles, None);
        }
        in_order(&mut size.bounds);
    }
}

/// Bounds that hold all at once, of rising percentiles.
fn in_order(bounds: &mut [BoundsAtPercent]) {
    let larger = |one: f64, other: f64| if one > other { one } else { other };
    let smaller = |one: f64, other: f64| if one < other { one } else { other };
    let join = |one: Option<f64>, other: Option<f64>, of: fn(f64, f64) -> f64| match (one, other) {
        (Some(one), Some(other)) => Some(of(one, other)),
        (one, other) => one.or(other),
    };
    let mut least = None;
    for of in bounds.iter_mut() {
        least = join(of.low_ns, least, larger);
        of.low_ns = least;
    }
    let mut most = None;
    for of in bounds.iter_mut().rev() {
        most = join(of.high_ns, most, smaller);
        of.high_ns = most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_older_runs_are_read_in_order() {
        let at = |percent, low_ns, high_ns| BoundsAtPercent { percent, low_ns, high_ns };
        let mut bounds = [
            at(50.0, Some(3.0), None),
            at(90.0, Some(2.0), Some(26.0)),
            at(99.0, None, Some(12.0)),
            at(99.9, Some(4.0), None),
        ];
        in_order(&mut bounds);
        let expected = [
            at(50.0, Some(3.0), Some(12.0)),
            at(90.0, Some(3.0), Some(12.0)),
            at(99.0, Some(3.0), Some(12.0)),
            at(99.9, Some(4.0), None),
        ];
        assert_eq!(bounds, expected);
    }
}
