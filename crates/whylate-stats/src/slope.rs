//! How one thing rises with another: a slope with its interval, by least squares and by Theil and Sen.
//!
//! Least squares uses all there is in the points and believes that their errors are alike and normal;
//! one odd point moves it. Theil and Sen's slope is the median of the slopes of all pairs (Sen 1968);
//! nearly a third of the points may be odd. Both intervals are 95 %.

use crate::{stationarity, student};

/// What may lie outside of an interval, on both sides together.
const OUTSIDE: f64 = 0.05;

/// So many standard deviations to each side hold all but that of a normal distribution.
const NORMAL: f64 = 1.959_963_985;

/// A slope, in units of y over units of x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// The slope.
    pub value: f64,
    /// Lower end of the interval; none with too few points for one.
    pub low: Option<f64>,
    /// Upper end; none with too few points for one.
    pub high: Option<f64>,
    /// y at x = 0.
    pub intercept: f64,
    /// Points.
    pub points: usize,
}

/// How frames get through a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    /// It waits for the whole frame.
    StoreAndForward,
    /// It does not.
    CutThrough,
    /// That cannot be told.
    NotTold(WhyNot),
}

/// Why it cannot be told how frames get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// The link has no known rate: a virtual one takes no time for a byte.
    NoRate,
    /// Too few sizes for an interval.
    TooFewSizes,
    /// The interval lies neither around the link's time for a byte nor around zero, or around both.
    Between,
}

/// The line through points (x, y) by least squares, with Student's interval of its slope.
///
/// None for fewer than two different x, or a number that is not finite. No interval below three points.
#[must_use]
pub fn least_squares(points: &[(f64, f64)]) -> Option<Slope> {
    let n = usable(points)? as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum()
    };
    let xx = sum(&|x, _| x * x);
    let value = sum(&|x, y| x * y) / xx;
    let rest = sum(&|x, y| (y - value * x).powi(2));
    let half =
        (points.len() > 2).then(|| student::critical(n - 2.0) * (rest / (n - 2.0) / xx).sqrt());
    Some(Slope {
        value,
        low: half.map(|half| value - half),
        high: half.map(|half| value + half),
        intercept: mean_y - value * mean_x,
        points: points.len(),
    })
}

/// The median of the slopes of all pairs of points, with Sen's interval.
///
/// None for fewer than two different x, or a number that is not finite. No interval where so few points
/// allow none at 95 %: below five different x.
#[must_use]
pub fn theil_sen(points: &[(f64, f64)]) -> Option<Slope> {
    usable(points)?;
    let mut slopes = Vec::new();
    for (number, (x, y)) in points.iter().enumerate() {
        let later =
            points[number + 1..].iter().filter(|(other, _)| !stationarity::tied(*other, *x));
        slopes.extend(later.map(|(other_x, other_y)| (other_y - y) / (other_x - x)));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let value = median(&slopes);
    let mut rests: Vec<f64> = points.iter().map(|(x, y)| y - value * x).collect();
    rests.sort_unstable_by(f64::total_cmp);
    let outside = outside(points, slopes.len());
    Some(Slope {
        value,
        low: outside.map(|outside| slopes[outside]),
        high: outside.map(|outside| slopes[slopes.len() - 1 - outside]),
        intercept: median(&rests),
        points: points.len(),
    })
}

/// How a box forwards, by the slope of latency over the size of the frame.
///
/// `ns_per_byte` is that slope with what the client's own way adds taken off (the latency back to back
/// at the same sizes). A box that waits for the whole frame adds the link's time for each byte; one that
/// does not adds none. The interval must lie between half and one and a half of that time, or between
/// minus and plus half of it.
#[must_use]
pub fn forwarding(ns_per_byte: &Slope, link_bits_per_second: Option<f64>) -> Forwarding {
    let Some(rate) = link_bits_per_second.filter(|rate| rate.is_finite() && *rate > 0.0) else {
        return Forwarding::NotTold(WhyNot::NoRate);
    };
    let (Some(low), Some(high)) = (ns_per_byte.low, ns_per_byte.high) else {
        return Forwarding::NotTold(WhyNot::TooFewSizes);
    };
    let expected = 8e9 / rate;
    let inside = |from: f64, to: f64| low > from * expected && high < to * expected;
    if inside(0.5, 1.5) {
        Forwarding::StoreAndForward
    } else if inside(-0.5, 0.5) {
        Forwarding::CutThrough
    } else {
        Forwarding::NotTold(WhyNot::Between)
    }
}

/// The number of points, where a line can be laid through them.
fn usable(points: &[(f64, f64)]) -> Option<usize> {
    let (first, _) = points.first()?;
    let finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    (finite && points.iter().any(|(x, _)| !stationarity::tied(*x, *first))).then_some(points.len())
}

/// The median of values in order.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// How many of the slopes of all pairs, in order, lie outside of the 95 % interval on each side; none
/// where there are too few for one.
///
/// With the true slope taken off, pairs rise as often as they fall: Kendall's statistic. Exact without
/// equal x up to a hundred points, else normal with the variance for ties.
fn outside(points: &[(f64, f64)], pairs: usize) -> Option<usize> {
    let n = points.len();
    if pairs == n * (n - 1) / 2 && n <= stationarity::EXACT_UP_TO {
        let fits = |outside: &usize| stationarity::exact_p_value(n, *outside) <= OUTSIDE;
        return (0..pairs / 2).take_while(fits).last();
    }
    let xs: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    let reach = NORMAL * stationarity::variance_of_s(&xs).sqrt();
    let inside = ((pairs as f64 - reach) / 2.0).floor();
    (inside >= 1.0).then(|| inside as usize - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(ys: &[f64]) -> Vec<(f64, f64)> {
        (0u32..).zip(ys).map(|(x, y)| (f64::from(x), *y)).collect()
    }

    fn slope(low: f64, high: f64) -> Slope {
        Slope {
            value: f64::midpoint(low, high),
            low: Some(low),
            high: Some(high),
            intercept: 0.0,
            points: 6,
        }
    }

    #[test]
    fn one_odd_point_moves_least_squares_and_not_the_median_of_slopes() {
        let mut odd = points(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        odd[6].1 = 60.0;
        assert!((theil_sen(&odd).unwrap().value - 1.0).abs() < 1e-12);
        assert!(least_squares(&odd).unwrap().value > 3.0);
    }

    #[test]
    fn few_points_have_a_slope_without_an_interval_and_one_x_has_none() {
        for method in [least_squares, theil_sen] {
            let two = method(&points(&[1.0, 3.0])).unwrap();
            assert_eq!((two.value, two.low, two.high), (2.0, None, None));
            assert_eq!(method(&[(1.0, 2.0), (1.0, 3.0)]), None);
            assert_eq!(method(&[]), None);
            assert_eq!(method(&[(1.0, f64::NAN), (2.0, 3.0)]), None);
        }
        // All orders of four points are 24: the most extreme two are more than 5 %.
        assert_eq!(theil_sen(&points(&[1.0, 2.0, 4.0, 5.0])).unwrap().low, None);
        assert!(theil_sen(&points(&[1.0, 2.0, 4.0, 5.0, 7.0])).unwrap().low.is_some());
    }

    #[test]
    fn repeated_settings_count_as_pairs_of_different_ones_only() {
        let repeated: Vec<(f64, f64)> = (0..6)
            .flat_map(|x| {
                (0..5).map(move |run| (f64::from(x), f64::from(2 * x) + 0.01 * f64::from(run)))
            })
            .collect();
        let found = theil_sen(&repeated).unwrap();
        assert!((found.value - 2.0).abs() < 0.01, "{found:?}");
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!(low > 1.95 && low <= 2.0 && (2.0..2.05).contains(&high), "{found:?}");
    }

    #[test]
    fn a_byte_of_the_link_tells_store_and_forward_from_cut_through() {
        // A byte takes 8 ns at 1 Gbit/s.
        let told = |low, high| forwarding(&slope(low, high), Some(1e9));
        assert_eq!(told(7.5, 8.5), Forwarding::StoreAndForward);
        assert_eq!(told(-0.2, 0.3), Forwarding::CutThrough);
        assert_eq!(told(3.0, 5.0), Forwarding::NotTold(WhyNot::Between));
        assert_eq!(told(-9.0, 9.0), Forwarding::NotTold(WhyNot::Between));
        // Two links in a row.
        assert_eq!(told(15.5, 16.5), Forwarding::NotTold(WhyNot::Between));
        assert_eq!(forwarding(&slope(7.5, 8.5), None), Forwarding::NotTold(WhyNot::NoRate));
        let short = Slope { low: None, high: None, ..slope(7.5, 8.5) };
        assert_eq!(forwarding(&short, Some(1e9)), Forwarding::NotTold(WhyNot::TooFewSizes));
    }
}
