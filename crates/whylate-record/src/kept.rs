//! Times of what passes a box, or of what a server answers, interval by interval and in all.

use whylate_model::reflect::{Residence, ResidencePercentile};
use whylate_model::series::Series;
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_stats::{Histogram, quantile};

use crate::intervals::{Interval, Tables};
use crate::storage::Storage;
use crate::summary::{self, Description};

/// Length of an interval, where none is asked for.
pub(crate) const INTERVAL: Nanos = Nanos::SECOND;

/// One kind of times: of each interval and in all.
pub(crate) struct Kept {
    pub(crate) name: &'static str,
    length: Nanos,
    width: TicksDelta,
    by_time: Tables,
    all: Histogram,
}

impl Kept {
    pub(crate) fn new(name: &'static str, rate: Hertz) -> Self {
        Self::every(INTERVAL, name, rate)
    }

    /// The same in intervals of this length.
    pub(crate) fn every(length: Nanos, name: &'static str, rate: Hertz) -> Self {
        let width = length.to_ticks(rate);
        Self { name, length, width, by_time: Tables::new(width), all: Histogram::new() }
    }

    /// Takes those of the interval with this number, and writes them down where there is a log.
    pub(crate) fn take(&mut self, index: u64, values: &Histogram, storage: Option<&mut Storage>) {
        if values.is_empty() {
            return;
        }
        if let Some(storage) = storage {
            let start = Nanos(index.saturating_mul(self.length.0));
            storage.interval(self.name, values, start, self.length);
        }
        let offset = TicksDelta(index.saturating_mul(self.width.0));
        self.by_time.add(offset, Interval::of(values));
        self.all.add(values);
    }

    /// The series over so many intervals; none where there are no values.
    pub(crate) fn series(&self, intervals: u64, description: &Description) -> Option<Series> {
        if self.all.is_empty() {
            return None;
        }
        let end = TicksDelta(intervals.saturating_mul(self.width.0));
        Some(summary::of_histogram(&self.all, self.by_time.whole(end), description))
    }

    /// Without intervals; none where there are no values.
    pub(crate) fn residence(&self, resolution_ns: f64, bound_ppm: f64) -> Option<Residence> {
        let (min, max) = (Nanos(self.all.min()?), Nanos(self.all.max()?));
        let percentile = |percent: f64| {
            let estimate = quantile::estimate(&self.all, percent, self.all.len() as f64);
            let (value, low) = (estimate.value.map(Nanos), estimate.low.map(Nanos));
            ResidencePercentile { percent, value, low }
        };
        Some(Residence {
            samples: self.all.len(),
            resolution_ns,
            frequency_bound_ppm: bound_ppm,
            min,
            percentiles: quantile::PERCENTS.map(percentile).to_vec(),
            max,
        })
    }

    /// The value at this percentile; none of too few values for it.
    pub(crate) fn value_at(&self, percent: f64) -> Option<Nanos> {
        let estimate = quantile::estimate(&self.all, percent, self.all.len() as f64);
        estimate.value.map(Nanos)
    }
}
