//! The one store of values: a log-linear histogram with exact ends.
//!
//! Guarantees: a value between 0 and [`HIGHEST_NS`] is kept with a relative error below 1/1000
//! (HdrHistogram, three significant digits; exact below 2048 ns); count, minimum, maximum and sum
//! are exact whatever the bins say; a value above [`HIGHEST_NS`] is counted in the top bin *and* in
//! [`Histogram::saturated`]. Adding two histograms gives the histogram of the pooled samples. The
//! memory is fixed (about 270 KiB).
//!
//! A bin is named by its highest value, as HdrHistogram's other readers do: "99 % took at most
//! this". Does not interpolate inside a bin and does not correct for anything.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};

use crate::error::StatsError;
use crate::quantile::rank;
use crate::v2;

/// Highest value with a bin of its own: one hour.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Decimal digits kept of each value.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Bins of the layout up to that of [`HIGHEST_NS`]: 2048 of width 1, then 1024 for each doubling,
/// each time twice as wide. `HIGHEST_NS` lies in the 31st.
pub(crate) const BINS: usize = 1 + 31 * 1024 + (HIGHEST_NS >> 31) as usize;

/// At one sample a nanosecond this takes 292 years; the V2 format cannot say more.
const MOST_SAMPLES: u64 = i64::MAX as u64;

/// Counts of values in nanoseconds.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    hdr: hdrhistogram::Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
    saturated: u64,
}

/// What the bins do not hold, to be stored beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    /// Smallest value.
    pub min_ns: u64,
    /// Largest value.
    pub max_ns: u64,
    /// Sum of all values.
    pub sum_ns: u128,
    /// Values above [`HIGHEST_NS`].
    pub saturated: u64,
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self { hdr: empty_bins(), min: u64::MAX, max: 0, sum: 0, saturated: 0 }
    }

    /// Counts one value. A few nanoseconds; allocates nothing.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts a value `count` times.
    ///
    /// # Panics
    /// When there would be 2^63 samples or more.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        assert!(count <= MOST_SAMPLES - self.hdr.len(), "2^63 samples or more in one histogram");
        if value_ns > HIGHEST_NS {
            self.saturated += count;
        }
        self.min = self.min.min(value_ns);
        self.max = self.max.max(value_ns);
        self.sum += u128::from(value_ns) * u128::from(count);
        self.hdr
            .record_n(value_ns.min(HIGHEST_NS), count)
            .expect("invariant: a value up to HIGHEST_NS has a bin");
    }

    /// Adds the samples of another histogram: afterwards this one is that of the pooled samples.
    ///
    /// # Panics
    /// When there would be 2^63 samples or more.
    pub fn add(&mut self, other: &Self) {
        assert!(other.len() <= MOST_SAMPLES - self.len(), "2^63 samples or more in one histogram");
        self.hdr.add(&other.hdr).expect("invariant: all histograms have one layout");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.saturated += other.saturated;
    }

    /// Forgets all samples, keeps the memory.
    pub fn clear(&mut self) {
        self.hdr.reset();
        (self.min, self.max, self.sum, self.saturated) = (u64::MAX, 0, 0, 0);
    }

    /// Samples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.hdr.len()
    }

    /// No samples?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hdr.is_empty()
    }

    /// Exact smallest value.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    /// Exact largest value.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// Exact sum of the values, ns.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Mean, from the exact sum.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        // The division can round past the ends; the mean cannot.
        let mean = self.sum as f64 / self.len() as f64;
        Some(mean.clamp(self.min as f64, self.max as f64))
    }

    /// Values above [`HIGHEST_NS`]: in the top bin, known only to be between that and the maximum.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The order statistic of rank `ceil(percent/100 * n)`, at least 1: the smallest bin value
    /// that at least `percent` of the samples do not exceed. Within 1/1000, inside min..=max.
    ///
    /// This is the plain number. Whether the sample is large enough to show it is for
    /// [`crate::quantile::estimate`] to say. None without samples or outside 0..=100.
    #[must_use]
    pub fn value_at(&self, percent: f64) -> Option<u64> {
        self.rank_value(rank(self.len(), percent)?)
    }

    /// The order statistic of a rank counted from 1; rank 1 is the exact minimum and rank n the
    /// exact maximum. None outside 1..=n.
    #[must_use]
    pub fn rank_value(&self, rank_1_based: u64) -> Option<u64> {
        if rank_1_based == 0 || rank_1_based > self.len() {
            return None;
        }
        if rank_1_based == 1 {
            return Some(self.min);
        }
        if rank_1_based == self.len() {
            return Some(self.max);
        }
        let mut seen = 0;
        self.bins().find_map(|(value, count)| {
            seen += count;
            (seen >= rank_1_based).then_some(value)
        })
    }

    /// Both ends of where the order statistic of a rank lies, counted from 1: those of its bin, inside
    /// min..=max. None outside 1..=n.
    #[must_use]
    pub fn rank_span(&self, rank_1_based: u64) -> Option<(u64, u64)> {
        let high = self.rank_value(rank_1_based)?;
        if rank_1_based == 1 || rank_1_based == self.len() {
            return Some((high, high));
        }
        // Values above the range sit in the top bin and can be anything up to the maximum.
        let above = self.saturated > 0 && high >= HIGHEST_NS;
        let low = self.hdr.lowest_equivalent(high.min(HIGHEST_NS)).max(self.min);
        Some((low, if above { self.max } else { high }))
    }

    /// Samples in the bin of `value_ns` or above: exact at the ends, else the bin counts whole.
    #[must_use]
    pub fn count_at_least(&self, value_ns: u64) -> u64 {
        if value_ns > self.max {
            return 0;
        }
        if value_ns <= self.min {
            return self.len();
        }
        let value = value_ns.min(HIGHEST_NS);
        self.raw_bins().filter(|bin| bin.high >= value).map(|bin| bin.count).sum()
    }

    /// Samples in bins above that of `value_ns`: certainly larger. 0 from the maximum on.
    #[must_use]
    pub fn count_above(&self, value_ns: u64) -> u64 {
        if value_ns >= self.max {
            return 0;
        }
        if value_ns < self.min {
            return self.len();
        }
        self.raw_bins().filter(|bin| bin.low > value_ns).map(|bin| bin.count).sum()
    }

    /// [`Histogram::count_above`] of each of these values, which ascend, in one walk over the bins.
    ///
    /// # Panics
    ///
    /// If a value is smaller than the one before it.
    #[must_use]
    pub fn counts_above(&self, values_ns: &[u64]) -> Vec<u64> {
        assert!(values_ns.is_sorted(), "they do not ascend");
        let (mut bins, mut left) = (self.raw_bins().peekable(), self.len());
        let above = values_ns.iter().map(|&value_ns| {
            while let Some(bin) = bins.next_if(|bin| bin.low <= value_ns) {
                left -= bin.count;
            }
            match value_ns {
                _ if value_ns >= self.max => 0,
                _ if value_ns < self.min => self.len(),
                _ => left,
            }
        });
        above.collect()
    }

    /// Sum of the samples in bins above that of `value_ns`. Bins count by their middles, scaled so
    /// that all bins together give the exact sum; within 1/1000.
    #[must_use]
    pub fn sum_above(&self, value_ns: u64) -> u128 {
        if value_ns >= self.max {
            return 0;
        }
        if value_ns < self.min {
            return self.sum;
        }
        let (mut all, mut above) = (0.0, 0.0);
        for bin in self.raw_bins() {
            let time = self.middle_time(bin);
            all += time;
            above += if bin.low > value_ns { time } else { 0.0 };
        }
        // A double can round past the whole.
        ((above * (self.sum as f64 / all)).round() as u128).min(self.sum)
    }

    /// Occupied bins in ascending order: (highest value, count). The value lies inside min..=max.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.raw_bins().map(|bin| (bin.high.clamp(self.min, self.max), bin.count))
    }

    /// The highest value that shares a bin with `value_ns`.
    #[must_use]
    pub fn bin_of(&self, value_ns: u64) -> u64 {
        self.hdr.highest_equivalent(value_ns.min(HIGHEST_NS))
    }

    /// The library's histogram, for writers of interval logs.
    #[must_use]
    pub fn as_hdr(&self) -> &hdrhistogram::Histogram<u64> {
        &self.hdr
    }

    /// What the bins do not hold. None without samples.
    #[must_use]
    pub fn exact(&self) -> Option<Exact> {
        (!self.is_empty()).then_some(Exact {
            min_ns: self.min,
            max_ns: self.max,
            sum_ns: self.sum,
            saturated: self.saturated,
        })
    }

    /// Gives a histogram read from V2 its exact values back, where they can belong to its bins.
    pub fn set_exact(&mut self, exact: Exact) -> Result<(), StatsError> {
        let (mut first, mut last) = (None, Bin { low: 0, high: 0, count: 0 });
        let (mut low, mut high) = (0, u128::from(exact.saturated) * u128::from(exact.max_ns));
        for bin in self.raw_bins() {
            first.get_or_insert(bin);
            last = bin;
            low += u128::from(bin.low) * u128::from(bin.count);
            high += u128::from(bin.high) * u128::from(bin.count);
        }
        let first = first.unwrap_or(last);
        let in_top_bin = if last.high >= HIGHEST_NS { last.count } else { 0 };
        // Values above the range sit in the top bin and can be anything above it.
        let last_end = if exact.saturated > 0 { u64::MAX } else { last.high };
        let first_end = if first == last { last_end } else { first.high };
        check("number of saturated values", exact.saturated, 0, in_top_bin)?;
        check("min", exact.min_ns, first.low, first_end)?;
        check("max", exact.max_ns, last.low.max(exact.min_ns), last_end)?;
        check("sum", exact.sum_ns, low, high)?;
        if !self.is_empty() {
            (self.min, self.max) = (exact.min_ns, exact.max_ns);
            (self.sum, self.saturated) = (exact.sum_ns, exact.saturated);
        }
        Ok(())
    }

    /// HdrHistogram V2, uncompressed: the bins, without what [`Histogram::exact`] adds.
    #[must_use]
    pub fn to_v2(&self) -> Vec<u8> {
        encode(&self.hdr)
    }

    /// [`Histogram::to_v2`] as base64, as in an interval log.
    #[must_use]
    pub fn to_v2_base64(&self) -> String {
        STANDARD.encode(self.to_v2())
    }

    /// Reads what [`Histogram::to_v2`] wrote. Minimum and maximum are then the ends of the outer
    /// bins and the sum comes from the bins' middles, until [`Histogram::set_exact`].
    pub fn from_v2(bytes: &[u8]) -> Result<Self, StatsError> {
        let mut read = Self::new();
        v2::decode(bytes, |index, count| read.record_n(lowest_of_bin(index), count))?;
        if let Some(max) = read.max() {
            read.max = read.hdr.highest_equivalent(max);
            let doubled = |bin: Bin| u128::from(bin.low + bin.high) * u128::from(bin.count);
            read.sum = read.raw_bins().map(doubled).sum::<u128>() / 2;
        }
        Ok(read)
    }

    /// Reads what [`Histogram::to_v2_base64`] wrote.
    pub fn from_v2_base64(text: &str) -> Result<Self, StatsError> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| StatsError::NotBase64 { reason: error.to_string() })?;
        Self::from_v2(&bytes)
    }

    /// Occupied bins with both ends.
    fn raw_bins(&self) -> impl Iterator<Item = Bin> + '_ {
        // On an empty histogram the library's iterator would walk all bins.
        let hdr = (!self.is_empty()).then_some(&self.hdr);
        hdr.into_iter().flat_map(hdrhistogram::Histogram::iter_recorded).map(|bin| {
            let high = bin.value_iterated_to();
            Bin { low: self.hdr.lowest_equivalent(high), high, count: bin.count_at_value() }
        })
    }

    /// Time in a bin: its middle, kept inside min..=max, times its count.
    fn middle_time(&self, bin: Bin) -> f64 {
        let inside = |value: u64| value.clamp(self.min, self.max) as f64;
        f64::midpoint(inside(bin.low), inside(bin.high)) * bin.count as f64
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, exact) = (self.len(), self.exact());
        f.debug_struct("Histogram").field("n", &n).field("exact", &exact).finish_non_exhaustive()
    }
}

impl Extend<u64> for Histogram {
    fn extend<T: IntoIterator<Item = u64>>(&mut self, values: T) {
        for value in values {
            self.record(value);
        }
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<T: IntoIterator<Item = u64>>(values: T) -> Self {
        let mut histogram = Self::new();
        histogram.extend(values);
        histogram
    }
}

/// One occupied bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bin {
    low: u64,
    high: u64,
    count: u64,
}

fn empty_bins() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
        .expect("invariant: 1..=HIGHEST_NS with three digits is a valid layout")
}

fn encode(hdr: &hdrhistogram::Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(hdr, &mut bytes)
        .expect("invariant: fewer than 2^63 samples, and a Vec takes all bytes");
    bytes
}

/// Lowest value of a bin of the layout.
fn lowest_of_bin(index: usize) -> u64 {
    let index = index as u64;
    match index >> 10 {
        0 | 1 => index,
        half => ((index & 1023) + 1024) << (half - 1),
    }
}

fn check<T: Into<u128>>(what: &'static str, value: T, low: T, high: T) -> Result<(), StatsError> {
    let (value, low, high) = (value.into(), low.into(), high.into());
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(StatsError::ExactValueDisagrees { what, value, low, high })
}
