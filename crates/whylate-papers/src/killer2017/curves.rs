//! Curves of figures, from what was measured.

use whylate_model::paper::{Distribution, DistributionPoint, Reached};
use whylate_report::svg::ccdf::{MOST_POINTS, thinned};
use whylate_stats::{quantile, weighted};

use super::measured::Measured;

/// A curve that ends where fewer samples than `fewest_above` lie at or above.
pub(super) fn curve(label: &str, measured: &Measured, fewest_above: u64) -> Distribution {
    let values = measured.histogram();
    let n = values.len();
    let least = fewest_above as f64 / n.max(1) as f64 * (1.0 - 1e-9);
    let steps = thinned(weighted::ccdf(values), MOST_POINTS).into_iter();
    let points = steps
        .map(|(value, share)| DistributionPoint { value_ns: value as f64, share })
        .filter(|point| point.share >= least);
    let reached = quantile::PERCENTS.into_iter().filter_map(|percent| {
        let found = quantile::estimate(values, percent, measured.n_eff(percent));
        let between = found.low.zip(found.high);
        Some(Reached {
            percent,
            value_ns: found.value? as f64,
            between_ns: between.map(|(low, high)| (low as f64, high as f64)),
        })
    });
    Distribution {
        label: label.to_owned(),
        n,
        granularity_ns: measured.resolution_ns,
        runs: measured.parts.clone(),
        imported: None,
        beyond_share: measured.beyond_share(),
        points: points.collect(),
        reached: reached.collect(),
    }
}

/// What of a tool's curve is faint, and why; none of one that was never calibrated here.
pub(super) fn faint(label: &str, measured: &Measured) -> Option<String> {
    let trust = measured.trust.as_ref()?;
    let what = match trust.limit_percent {
        Some(limit) => format!("beyond p{limit} its curve is faint, and its values are marked ~"),
        None => "all of its curve is faint, and its values are marked ~".to_owned(),
    };
    let mut said = format!(
        "{label}: {what}: farther than that its calibration on this machine ({} at {:.0} a second, within {}) did \
         not find it to follow the truth",
        trust.backend, trust.calibrated_pps, trust.tolerance
    );
    let changed = trust.stale.iter().map(|of| format!("that calibration is stale: {of}"));
    let conditions = trust.other.iter().map(|of| format!("conditions differ: {of}"));
    for more in conditions.chain(changed) {
        said.push_str("; ");
        said.push_str(&more);
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::super::measured::tests::planted;
    use super::*;

    #[test]
    fn a_curve_ends_where_fewer_samples_lie_above_than_was_stated() {
        let of = planted(1, 10, |n, _| if n < 990 { 500 } else { 1_000 + n });
        let least = |fewest| {
            let drawn = curve("x", &of, fewest);
            drawn.points.iter().map(|point| point.share).fold(1.0, f64::min) * drawn.n as f64
        };
        assert!((least(1) - 10.0).abs() < 1e-6, "the largest came ten times");
        assert!((least(15) - 20.0).abs() < 1e-6);
        assert!((least(5_000) - 10_000.0).abs() < 1e-6, "all of them are at or above the least");
    }

    #[test]
    fn percentiles_have_their_intervals_and_what_the_sample_cannot_show_is_left_out() {
        let of = planted(2, 10, |n, rng| 2_000 + n + rng.below(100));
        let drawn = curve("x", &of, 1);
        let percents: Vec<f64> = drawn.reached.iter().map(|of| of.percent).collect();
        assert_eq!(percents, [50.0, 90.0, 99.0, 99.9], "20 000 samples");
        for of in &drawn.reached {
            let (low, high) = of.between_ns.unwrap();
            assert!(low <= of.value_ns && of.value_ns <= high, "{of:?}");
        }
        assert_eq!(drawn.runs, ["part-0", "part-1"]);
    }
}
