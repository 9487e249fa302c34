//! Counts between edges, and what may be said of them: nothing finer than a bucket.

use whylate_model::paper::{Distribution, DistributionPoint, Reached};
use whylate_stats::quantile::{PERCENTS, smallest_n};

use super::Imported;
use crate::svg::ccdf::{MOST_POINTS, thinned};

/// One bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Values in it are at least this, in nanoseconds.
    pub low_ns: f64,
    /// And below this, or equal to it where both ends are one; none of an open one.
    pub high_ns: Option<f64>,
    /// How many.
    pub count: u64,
}

/// Buckets in ascending order that do not overlap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Buckets {
    cells: Vec<Cell>,
    samples: u64,
}

impl Buckets {
    /// Puts them in order; why not where an edge is no number, they overlap, or count too much.
    pub(super) fn new(cells: impl IntoIterator<Item = Cell>) -> Result<Self, &'static str> {
        let mut cells: Vec<Cell> = cells.into_iter().filter(|cell| cell.count > 0).collect();
        let end = |cell: &Cell| cell.high_ns.unwrap_or(f64::MAX);
        let sound = |cell: &Cell| {
            let low = cell.low_ns;
            low.is_finite() && low >= 0.0 && end(cell).is_finite() && end(cell) >= low
        };
        if !cells.iter().all(sound) {
            return Err("an edge is below 0, behind the next, or no number");
        }
        cells.sort_by(|a, b| a.low_ns.total_cmp(&b.low_ns));
        if cells.windows(2).any(|pair| end(&pair[0]) > pair[1].low_ns) {
            return Err("buckets overlap");
        }
        let samples = cells.iter().try_fold(0_u64, |sum, cell| sum.checked_add(cell.count));
        let samples = samples.ok_or("it counts more than there can be")?;
        Ok(Self { cells, samples })
    }

    /// Samples in all.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Those that hold any, in ascending order.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The bucket that holds the percentile: the sample of rank `ceil(percent/100 * n)`. None where
    /// there are too few samples for one.
    #[must_use]
    pub fn at(&self, percent: f64) -> Option<Cell> {
        if !(percent > 0.0 && percent < 100.0) || self.samples < smallest_n(percent / 100.0) {
            return None;
        }
        let rank = (percent / 100.0 * self.samples as f64 * (1.0 - 1e-12)).ceil();
        let mut seen = 0;
        self.cells.iter().copied().find(|cell| {
            seen += cell.count;
            seen as f64 >= rank
        })
    }

    /// Share of the samples at or above the lower edge of each bucket: exact, whatever its width.
    fn steps(&self) -> Vec<(f64, f64)> {
        let mut above = self.samples;
        let step = |cell: &Cell| {
            let share = above as f64 / self.samples as f64;
            above -= cell.count;
            (cell.low_ns, share)
        };
        self.cells.iter().map(step).collect()
    }
}

impl Imported {
    /// Samples that it rests on; none where its file does not say.
    #[must_use]
    pub fn n(&self) -> Option<u64> {
        if self.buckets.samples() > 0 { Some(self.buckets.samples()) } else { self.samples }
    }

    /// As a curve of a figure, which ends where fewer samples than `fewest_above` lie above.
    #[must_use]
    pub fn distribution(&self, file: &str, fewest_above: u64) -> Distribution {
        let n = self.n().unwrap_or(0);
        let (points, reached) = if self.buckets.samples() > 0 {
            (self.counted(), self.within_buckets())
        } else {
            (self.as_stated(), self.stated_alone(n))
        };
        let least = fewest_above as f64 / (n.max(1) as f64) * (1.0 - 1e-9);
        let drawn = points.into_iter().filter(|point| point.share >= least);
        Distribution {
            label: self.label.clone(),
            n,
            granularity_ns: self.granularity_ns,
            runs: Vec::new(),
            imported: Some(file.to_owned()),
            beyond_share: None,
            points: drawn.collect(),
            reached,
        }
    }

    fn counted(&self) -> Vec<DistributionPoint> {
        // Thinned as measured curves are; values of a tenth of a nanosecond keep their places.
        let steps = self.buckets.steps().into_iter();
        let whole: Vec<(u64, f64)> =
            steps.map(|(value, share)| ((value * 10.0).round() as u64, share)).collect();
        let kept = thinned(whole, MOST_POINTS).into_iter();
        kept.map(|(tenths, share)| DistributionPoint { value_ns: tenths as f64 / 10.0, share })
            .collect()
    }

    fn within_buckets(&self) -> Vec<Reached> {
        let one = |percent: f64| {
            let cell = self.buckets.at(percent)?;
            // What lies in an open bucket has no value.
            let high = cell.high_ns?;
            let value_ns = f64::midpoint(cell.low_ns, high);
            let half = self.granularity_ns / 2.0;
            let between = if high > cell.low_ns {
                (cell.low_ns, high)
            } else {
                ((value_ns - half).max(0.0), value_ns + half)
            };
            Some(Reached { percent, value_ns, between_ns: Some(between) })
        };
        PERCENTS.into_iter().filter_map(one).collect()
    }

    /// Percentiles that the tool printed: a point each, and nothing between them.
    fn as_stated(&self) -> Vec<DistributionPoint> {
        let point = |(percent, value_ns): &(f64, f64)| DistributionPoint {
            value_ns: *value_ns,
            share: 1.0 - percent / 100.0,
        };
        self.stated.iter().map(point).filter(|point| point.share > 0.0).collect()
    }

    fn stated_alone(&self, n: u64) -> Vec<Reached> {
        let known = |percent: f64| {
            let stated = self.stated.iter().find(|(of, _)| (of - percent).abs() < 1e-9);
            // A tool prints the largest value for what its samples cannot show.
            let shown = n >= smallest_n(percent / 100.0);
            stated.filter(|_| shown).map(|(_, value_ns)| Reached {
                percent,
                value_ns: *value_ns,
                between_ns: None,
            })
        };
        PERCENTS.into_iter().filter_map(known).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Measures;
    use super::*;

    fn cell(low_ns: f64, high_ns: Option<f64>, count: u64) -> Cell {
        Cell { low_ns, high_ns, count }
    }

    fn imported(cells: &[Cell]) -> Imported {
        Imported {
            label: "x".to_owned(),
            measures: Measures::OneWay,
            granularity_ns: 10_000.0,
            buckets: Buckets::new(cells.iter().copied()).unwrap(),
            stated: Vec::new(),
            samples: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_quantile_is_a_whole_bucket_and_one_in_an_open_bucket_is_none() {
        let cells = [
            cell(0.0, Some(10_000.0), 9_000),
            cell(10_000.0, Some(20_000.0), 980),
            cell(20_000.0, None, 20),
        ];
        let of = imported(&cells).distribution("f", 1);
        let told: Vec<_> =
            of.reached.iter().map(|of| (of.percent, of.value_ns, of.between_ns)).collect();
        assert_eq!(
            told,
            [
                (50.0, 5_000.0, Some((0.0, 10_000.0))),
                (90.0, 5_000.0, Some((0.0, 10_000.0))),
                (99.0, 15_000.0, Some((10_000.0, 20_000.0))),
            ]
        );
        let shares: Vec<f64> = of.points.iter().map(|point| point.share).collect();
        assert_eq!(shares, [1.0, 0.1, 0.002]);
        assert_eq!((of.n, of.imported.as_deref()), (10_000, Some("f")));
    }

    #[test]
    fn a_curve_ends_where_too_few_samples_lie_above() {
        let cells = [cell(1.0, Some(1.0), 900), cell(2.0, Some(2.0), 95), cell(3.0, Some(3.0), 5)];
        let ends = |fewest| imported(&cells).distribution("f", fewest).points.len();
        assert_eq!([1, 5, 6, 100, 101].map(ends), [3, 3, 2, 2, 1]);
    }

    #[test]
    fn buckets_that_overlap_or_run_backwards_are_refused() {
        for wrong in [
            vec![cell(0.0, Some(10.0), 1), cell(9.0, Some(20.0), 1)],
            vec![cell(10.0, Some(5.0), 1)],
            vec![cell(f64::NAN, Some(5.0), 1)],
            vec![cell(-1.0, Some(5.0), 1)],
            vec![cell(5.0, None, 1), cell(6.0, Some(7.0), 1)],
            vec![cell(5.0, Some(5.0), u64::MAX), cell(6.0, Some(7.0), 1)],
        ] {
            assert!(Buckets::new(wrong.clone()).is_err(), "{wrong:?}");
        }
        assert_eq!(Buckets::new([]).unwrap().samples(), 0);
    }
}
