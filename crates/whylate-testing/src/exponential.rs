//! How far distances are from those of a Poisson process.

use whylate_stats::Histogram;

/// Mean distance of departures at 5 000 a second.
pub const MEAN_NS: u64 = 200_000;

/// The largest distance of values' distribution function from the exponential one of that mean.
pub fn from_exponential(values: &Histogram, mean_ns: u64) -> f64 {
    let n = values.len() as f64;
    let at = |step: u64| {
        // From a 250th of the mean to eight times as much as it.
        let ns = mean_ns * step / 250;
        let below = 1.0 - values.count_above(ns) as f64 / n;
        (below - (1.0 - (-(ns as f64) / mean_ns as f64).exp())).abs()
    };
    (1..=2_000).map(at).fold(0.0, f64::max)
}

#[test]
fn distances_are_told_from_exponential_ones() {
    let of = |value: &dyn Fn(f64) -> f64| {
        let mut values = Histogram::new();
        for i in 0..20_000 {
            values.record(value((f64::from(i) + 0.5) / 20_000.0) as u64);
        }
        from_exponential(&values, MEAN_NS)
    };
    let exponential = of(&|unit| -(1.0 - unit).ln() * MEAN_NS as f64);
    assert!(exponential < 0.005, "{exponential}");
    let constant = of(&|_| MEAN_NS as f64);
    assert!(constant > 0.6, "{constant}");
}
