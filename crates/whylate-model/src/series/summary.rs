//! From a histogram to the numbers that are printed: one way for recordings and for sums of them.
//!
//! Every number of a series comes from one histogram; how many independent samples that is worth
//! is for the caller to say, who has the intervals of time. What is not known is absent.

use whylate_stats::histogram::Histogram;
use whylate_stats::{class, quantile, rate, snr, stationarity, weighted};

use super::{Censored, Class, Definition, Denominator, Quantile, Series, Snr, Stationarity, Tail};
use crate::run::{Rate, TimeShare, TimeWeighted};
use crate::units::Nanos;

/// Above this an event belongs to the tail that the PAM paper calls the Ugly.
pub const UGLY: Nanos = Nanos(class::UGLY_ABOVE_NS);

/// Gap lengths that rates are given for.
pub const RATES_AT_LEAST: [Nanos; 6] =
    [Nanos(1_000), Nanos(2_000), Nanos(10_000), Nanos(50_000), Nanos(100_000), Nanos(1_000_000)];

/// Gap lengths that shares of time are given for.
const TIME_AT_LEAST: [Nanos; 4] = [Nanos(1_000), Nanos(10_000), Nanos(100_000), Nanos(1_000_000)];

/// Shares of the elapsed time for the time-weighted view, in percent.
const TIME_WEIGHTED: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The percentile that decides the class.
const DECIDES: f64 = 99.9;

/// What a series is, apart from its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// Identifier and tag.
    pub name: String,
    /// For people.
    pub label: String,
    /// Row of the paper's table.
    pub paper_row: Option<String>,
    /// Where the clock starts.
    pub from: String,
    /// Where it stops.
    pub to: String,
    /// The clock.
    pub clock: String,
    /// What the number is.
    pub definition: Definition,
    /// Smallest step of the clock.
    pub resolution_ns: f64,
    /// What was to be measured and was lost.
    pub lost: u64,
}

impl Series {
    /// The series of these values. `n_eff` says, for each percentage, how many independent samples
    /// they are worth. Shares of time are over the sum of the values.
    #[must_use]
    pub fn summarise(
        identity: Identity,
        values: &Histogram,
        n_eff: impl Fn(f64) -> f64,
        stationarity: Option<Stationarity>,
    ) -> Self {
        let mut quantiles = quantile::PERCENTS.map(|percent| one(values, percent, n_eff(percent)));
        withhold(&mut quantiles);
        order_ends(&mut quantiles, values.min().map(Nanos));
        let has_class = identity.definition.has_class();
        let decides = deciding(&quantiles).filter(|_| has_class);
        let snr = || Snr { by_count: snr::by_count(values), by_time: snr::by_time(values) };
        Self {
            name: identity.name,
            label: identity.label,
            paper_row: identity.paper_row,
            from: identity.from,
            to: identity.to,
            clock: identity.clock,
            definition: identity.definition,
            resolution_ns: identity.resolution_ns,
            n: values.len(),
            lost: identity.lost,
            censored: None,
            min: values.min().map(Nanos),
            max: values.max().map(Nanos),
            mean_ns: values.mean(),
            class: decides.map(classify),
            class_by: decides,
            quantiles: quantiles.to_vec(),
            tail: has_class.then(|| tail(values, values.sum() as f64, Denominator::Measured)),
            snr: has_class.then(snr),
            stationarity,
            trust: None,
        }
    }

    /// Of the `values` that this series was made of, the largest `censored.count` are only known to
    /// be larger than `censored.above`. What rests on them is taken back: it is not known, and neither
    /// is a percentile whose interval ends among them. What bounds it from below is kept.
    pub fn censor(&mut self, values: &Histogram, censored: Censored) {
        let Some(first) = (values.len() + 1).checked_sub(censored.count) else { return };
        let Some(reached) = values.rank_value(first) else { return };
        self.censored = Some(censored);
        (self.max, self.mean_ns) = (None, None);
        if let Some(snr) = &mut self.snr {
            snr.by_time = None;
        }
        let among = |value: Option<Nanos>| value.is_some_and(|value| value.0 >= reached);
        for quantile in &mut self.quantiles {
            quantile.low = quantile.low.map(|low| low.min(censored.above));
            if among(quantile.high) {
                (quantile.value, quantile.high) = (None, None);
            }
            quantile.value = quantile.value.filter(|value| !among(Some(*value)));
        }
        withhold(&mut self.quantiles);
        if among(self.min) {
            self.min = None;
        }
        self.class_by = self.class_by.and_then(|_| deciding(&self.quantiles));
        self.class = self.class_by.map(classify);
    }

    /// The same of values of several recordings, of which together `censored` were given up. A value of another
    /// recording may be known and lie above the bound: what was given up is larger or not, so that neither is known.
    pub fn censor_sum(&mut self, values: &Histogram, censored: Censored) {
        let count = censored.count.max(values.count_at_least(censored.above.0));
        // A log that is not whole may hold fewer than were given up.
        self.censor(values, Censored { count: count.min(values.len()), ..censored });
        self.censored = Some(censored);
    }

    /// Takes back what another series of the same values does not tell: a percentile without a value there, and an
    /// end that is not known there. What bounds it from below is kept.
    pub fn withhold_as(&mut self, other: &Self) {
        for quantile in &mut self.quantiles {
            let same = |of: &&Quantile| (of.percent - quantile.percent).abs() < 1e-9;
            if other.quantiles.iter().find(same).is_some_and(|of| of.value.is_none()) {
                (quantile.value, quantile.high) = (None, None);
            }
        }
        withhold(&mut self.quantiles);
        self.min = self.min.filter(|_| other.min.is_some());
        self.max = self.max.filter(|_| other.max.is_some());
        self.class_by = self.class_by.and_then(|_| deciding(&self.quantiles));
        self.class = self.class_by.map(classify);
    }

    /// Gaps: the class is by the time-weighted p99.9, and shares are of the elapsed time.
    pub fn weigh_by_time(&mut self, values: &Histogram, elapsed: Nanos, weighted: &[TimeWeighted]) {
        let decides = at(weighted.iter().map(|point| (point.percent, Some(point.value))));
        self.class = decides.map(classify);
        self.class_by = decides;
        self.tail = Some(tail(values, elapsed.0 as f64, Denominator::Elapsed));
    }
}

/// How often per second gaps of the usual lengths came.
#[must_use]
pub fn rates(lengths: &Histogram, elapsed: Nanos) -> Vec<Rate> {
    let seconds = (elapsed.0 as f64 / 1e9).max(1e-9);
    let rate = |at_least: &Nanos| {
        let count = lengths.count_at_least(at_least.0);
        let interval = rate::poisson_interval(count, seconds);
        Rate { at_least: *at_least, count, per_second: count as f64 / seconds, interval }
    };
    RATES_AT_LEAST.iter().map(rate).collect()
}

/// The time-weighted view: empty when no time passed.
#[must_use]
pub fn time_weighted(lengths: &Histogram, elapsed: Nanos) -> Vec<TimeWeighted> {
    let point = |percent: &f64| {
        let value = weighted::time_weighted_percentile(lengths.bins(), elapsed.0 as f64, *percent);
        value.map(|value| TimeWeighted { percent: *percent, value: Nanos(value) })
    };
    TIME_WEIGHTED.iter().filter_map(point).collect()
}

/// The share of time spent in gaps of at least the usual lengths, over both denominators: the
/// elapsed time, and the time inside the readings. Empty when there is neither.
#[must_use]
pub fn time_shares(lengths: &Histogram, elapsed: Nanos, inside: Nanos) -> Vec<TimeShare> {
    if elapsed.0 == 0 || inside.0 == 0 {
        return Vec::new();
    }
    let share = |at_least: &Nanos| {
        let time = lengths.sum_above(at_least.0 - 1) as f64;
        TimeShare {
            at_least: *at_least,
            of_elapsed: time / elapsed.0 as f64,
            of_inside: time / inside.0 as f64,
        }
    };
    TIME_AT_LEAST.iter().map(share).collect()
}

/// The tests for a change over time, from equal blocks of time.
#[must_use]
pub fn stationarity(blocks: &[Histogram]) -> Stationarity {
    let at = |percent: f64| -> Vec<Option<Nanos>> {
        let supported = |block: &Histogram| {
            quantile::estimate(block, percent, block.len() as f64).value.map(Nanos)
        };
        blocks.iter().map(supported).collect()
    };
    let (p50, p99) = (at(50.0), at(99.0));
    let trend = |series: &[Option<Nanos>]| {
        let values: Option<Vec<f64>> = series.iter().map(|v| v.map(|v| v.0 as f64)).collect();
        values.map(|values| stationarity::mann_kendall(&values).p_value)
    };
    Stationarity {
        trend_p50: trend(&p50),
        trend_p99: trend(&p99),
        blocks_differ: Some(stationarity::kruskal_wallis_of_histograms(blocks).p_value),
        p50,
        p99,
    }
}

fn one(values: &Histogram, percent: f64, n_eff: f64) -> Quantile {
    let estimate = quantile::estimate(values, percent, n_eff);
    Quantile {
        percent,
        value: estimate.value.map(Nanos),
        low: estimate.low.map(Nanos),
        high: estimate.high.map(Nanos),
        n_eff,
    }
}

/// What a sample does not show of one percentile it does not show of a higher one either: how its values
/// depend on each other is found for each by itself, and may look better in the tail by chance.
fn withhold(quantiles: &mut [Quantile]) {
    let mut shown = true;
    for quantile in quantiles {
        shown &= quantile.value.is_some();
        if !shown {
            (quantile.value, quantile.high) = (None, None);
        }
    }
}

/// Puts the ends of the intervals of rising percentiles in order. How dependent the values are is found at
/// each percentile by itself, so that a higher one may come with a lower end; but what lies above a lower
/// end of one percentile bounds each higher one, too, and what lies below an upper end each lower one. No bound
/// lies below the smallest value. Of percentiles that have none by themselves, too: it is that of a lower one.
///
/// Each interval holds with 95 % by itself, so that an end which is the largest of several lower ones, or the smallest
/// of several upper ones, holds with a little less: it fails where any of them does.
pub fn order_ends(quantiles: &mut [Quantile], min: Option<Nanos>) {
    let mut least = None;
    for of in quantiles.iter_mut() {
        let own = of.low.map(|low| low.max(min.unwrap_or(low)));
        let bound = own.max(least);
        // What was written by others may contradict itself.
        of.low = bound.map(|low| low.min(of.value.unwrap_or(low)));
        least = of.low;
    }
    let mut most = None;
    for high in quantiles.iter_mut().rev().filter_map(|of| of.high.as_mut()) {
        *high = (*high).min(most.unwrap_or(*high));
        most = Some(*high);
    }
}

/// What decides the class: the p99.9, or, where the sample does not bound it from above, the lower
/// end of its interval when that is Ugly already: the whole interval then lies in one class.
fn deciding(quantiles: &[Quantile]) -> Option<Nanos> {
    let decides = quantiles.iter().find(|q| (q.percent - DECIDES).abs() < 1e-9)?;
    decides.value.or(decides.low.filter(|low| *low > UGLY))
}

fn at(mut points: impl Iterator<Item = (f64, Option<Nanos>)>) -> Option<Nanos> {
    points.find(|(percent, _)| (percent - DECIDES).abs() < 1e-9).and_then(|(_, value)| value)
}

fn classify(p999: Nanos) -> Class {
    match class::class(p999.0) {
        class::Class::Good => Class::Good,
        class::Class::Bad => Class::Bad,
        class::Class::Ugly => Class::Ugly,
    }
}

fn tail(values: &Histogram, denominator_ns: f64, denominator: Denominator) -> Tail {
    let share = values.sum_above(UGLY.0) as f64 / denominator_ns.max(1.0);
    Tail { count: values.count_above(UGLY.0), share, denominator }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            name: "wake-cpu1".to_owned(),
            label: "wake-up".to_owned(),
            paper_row: None,
            from: "scheduled instant".to_owned(),
            to: "running".to_owned(),
            clock: "tsc".to_owned(),
            definition: Definition::DispatchLatency,
            resolution_ns: 1.0,
            lost: 0,
        }
    }

    #[test]
    fn what_is_not_known_is_absent() {
        assert_eq!(time_weighted(&Histogram::new(), Nanos(0)), []);
        for n in 0..3u64 {
            let values: Histogram = (0..n).collect();
            let series = Series::summarise(identity(), &values, |_| n as f64, None);
            assert!(series.quantiles.iter().all(|q| q.value.is_none()), "{n}");
            assert_eq!((series.class, series.max.is_some()), (None, n > 0));
        }
    }

    #[test]
    fn a_percentile_that_is_withheld_withholds_all_higher_ones() {
        let values: Histogram = (0..100_000).collect();
        // At p99 its values hang together, at p99.9 they do not seem to.
        let n_eff = |percent: f64| if percent > 98.0 && percent < 99.5 { 50.0 } else { 1e5 };
        let series = Series::summarise(identity(), &values, n_eff, None);
        for quantile in &series.quantiles {
            let shown = quantile.percent < 99.0;
            let found = (quantile.value.is_some(), quantile.high.is_some());
            assert_eq!(found, (shown, shown), "{quantile:?}");
        }
        assert_eq!(series.class_by, None, "a class by a percentile that is not shown");
    }

    #[test]
    fn ends_of_intervals_rise_with_the_percentile_however_dependent_values_are_there() {
        let values: Histogram = (0..100_000).collect();
        // At p90 and p99 they are worth 4, elsewhere all: p50's lower end bounds those of both.
        let n_eff = |percent: f64| if (80.0..99.5).contains(&percent) { 4.0 } else { 1e5 };
        let series = Series::summarise(identity(), &values, n_eff, None);
        let alone: Vec<Quantile> =
            quantile::PERCENTS.map(|percent| one(&values, percent, n_eff(percent))).to_vec();
        assert!(alone[1].low < alone[0].low, "planted: {alone:?}");
        let lows: Vec<_> = series.quantiles.iter().filter_map(|of| of.low).collect();
        assert!(lows.is_sorted() && lows.len() > 2, "{lows:?}");
        assert_eq!(series.quantiles[1].low, alone[0].low);
        let quantile = |low, value, high| Quantile {
            percent: 0.0,
            value: Some(Nanos(value)),
            low: Some(Nanos(low)),
            high: Some(Nanos(high)),
            n_eff: 9.0,
        };
        let mut both = [quantile(3, 5, 90), quantile(2, 7, 20), quantile(6, 8, 30)];
        order_ends(&mut both, None);
        assert_eq!(both, [quantile(3, 5, 20), quantile(3, 7, 20), quantile(6, 8, 30)]);
    }

    #[test]
    fn a_percentile_without_a_bound_of_its_own_has_that_of_a_lower_one_and_none_lies_below_the_minimum()
     {
        let at = |percent, value: Option<u64>, low: Option<u64>| {
            let [value, low] = [value, low].map(|of| of.map(Nanos));
            Quantile { percent, value, low, high: None, n_eff: 9.0 }
        };
        let mut quantiles = [
            at(50.0, Some(4_020), Some(4_007)),
            at(90.0, None, None),
            at(99.0, None, Some(21)),
            at(99.9, None, Some(5_000)),
        ];
        order_ends(&mut quantiles, Some(Nanos(22)));
        let lows: Vec<_> = quantiles.iter().map(|of| of.low.map(|low| low.0)).collect();
        assert_eq!(lows, [Some(4_007), Some(4_007), Some(4_007), Some(5_000)]);
        let mut alone = [at(50.0, None, None), at(99.0, None, Some(21))];
        order_ends(&mut alone, Some(Nanos(22)));
        assert_eq!([alone[0].low, alone[1].low], [None, Some(Nanos(22))]);
    }

    #[test]
    fn a_tail_of_all_values_is_the_whole_of_them() {
        for n in 1..500_u64 {
            let values: Histogram = (0..n).map(|of| 6_326_080 + of * 7 % 17).collect();
            let series = Series::summarise(identity(), &values, |_| n as f64, None);
            let tail = series.tail.unwrap();
            assert_eq!((tail.count, tail.share), (n, 1.0));
        }
    }

    #[test]
    fn only_what_is_kept_waiting_has_a_class() {
        let values: Histogram = std::iter::repeat_n(1_000_000, 2_000).collect();
        let of = |definition| {
            let identity = Identity { definition, ..identity() };
            Series::summarise(identity, &values, |_| 2_000.0, None)
        };
        assert_eq!(of(Definition::Response).class, Some(Class::Ugly));
        for definition in [
            Definition::Departures,
            Definition::Receptions,
            Definition::SendLateness,
            Definition::Slack,
            Definition::ContextSwitch,
        ] {
            let series = of(definition);
            assert_eq!((series.class, series.class_by), (None, None), "{definition:?}");
            assert_eq!((series.tail, series.snr), (None, None), "{definition:?}");
        }
    }

    #[test]
    fn an_interval_without_an_upper_end_has_a_class_when_it_lies_in_one() {
        let ugly: Histogram = (0..2_000).map(|n| if n % 50 == 0 { 300_000 } else { 900 }).collect();
        let series = Series::summarise(identity(), &ugly, |_| 2_000.0, None);
        let p999 = series.quantiles.iter().find(|q| (q.percent - 99.9).abs() < 1e-9).unwrap();
        assert!(p999.value.is_none() && p999.high.is_none(), "{p999:?}");
        assert_eq!((series.class, series.class_by), (Some(Class::Ugly), p999.low));
        // The same lower end below the limit leaves two classes.
        let open: Histogram = (0..2_000).map(|n| if n % 50 == 0 { 90_000 } else { 900 }).collect();
        let series = Series::summarise(identity(), &open, |_| 2_000.0, None);
        assert_eq!((series.class, series.class_by), (None, None));
    }

    #[test]
    fn what_was_given_up_is_neither_maximum_nor_quantile() {
        let above = Nanos(1_000_000_000);
        let answered = 9_970u64;
        let values = || {
            let mut values: Histogram = (1..=answered).collect();
            values.record_n(above.0, 30);
            values
        };
        let mut series = Series::summarise(identity(), &values(), |_| 1e4, None);
        assert_eq!((series.max, series.class), (Some(above), Some(Class::Ugly)));
        series.censor(&values(), Censored { count: 30, above });
        assert_eq!((series.max, series.mean_ns), (None, None));
        assert_eq!((series.class, series.class_by), (Some(Class::Ugly), Some(above)));
        for quantile in &series.quantiles {
            let known = quantile.percent < 99.5;
            assert_eq!(quantile.value.is_some(), known, "{quantile:?}");
            assert_eq!(quantile.high.is_some(), known, "{quantile:?}");
            assert!(quantile.value.is_none_or(|value| value.0 <= answered), "{quantile:?}");
        }
    }

    #[test]
    fn a_percentile_whose_interval_reaches_into_what_was_given_up_is_withheld_like_those_above_it()
    {
        let above = Nanos(1_000_000_000);
        let planted = |given_up: u64, n_eff: f64| {
            let mut values: Histogram = (1..=10_000 - given_up).map(|rank| rank / 5).collect();
            values.record_n(above.0, given_up);
            let series = Series::summarise(identity(), &values, |_| n_eff, None);
            let mut censored = series.clone();
            censored.censor(&values, Censored { count: given_up, above });
            (series, censored)
        };
        // From rank 9 956 on they were given up: above p99, and below the upper end of its interval
        // where the values are worth a tenth.
        for (n_eff, known) in [(1e4, 3), (1e3, 2)] {
            let (series, censored) = planted(45, n_eff);
            let p99 = series.quantiles[2];
            assert_eq!(p99.value, Some(Nanos(1_980)), "planted");
            assert_eq!(p99.high == Some(above), known < 3, "planted: {p99:?}");
            for (at, quantile) in censored.quantiles.iter().enumerate() {
                let found = (quantile.value.is_some(), quantile.high.is_some());
                assert_eq!(found, (at < known, at < known), "{quantile:?}");
                assert!(quantile.low.is_some_and(|low| low <= above), "{quantile:?}");
            }
        }
        // The p99.9 was given up, but what bounds it from below was answered: it may lie in each class.
        let (series, censored) = planted(20, 4e3);
        let p999 = series.quantiles[3];
        assert!(p999.value == Some(above) && p999.low < Some(UGLY), "planted: {p999:?}");
        assert_eq!(series.class, Some(Class::Ugly), "planted");
        assert_eq!((censored.class, censored.class_by), (None, None));
    }

    #[test]
    fn shares_of_time_name_both_denominators() {
        let mut lengths = Histogram::new();
        lengths.record_n(999, 7);
        lengths.record_n(1_000, 100);
        lengths.record_n(2_000_000, 1);
        // A loop in pairs: half of 100 ms is between the readings.
        let shares = time_shares(&lengths, Nanos(100_000_000), Nanos(50_000_000));
        let found: Vec<(u64, f64, f64)> =
            shares.iter().map(|s| (s.at_least.0, s.of_elapsed, s.of_inside)).collect();
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
        assert_eq!(found.len(), 4);
        assert!(near(found[0].1, 0.021) && near(found[0].2, 0.042), "{found:?}");
        for (_, of_elapsed, of_inside) in &found[1..] {
            assert!(near(*of_elapsed, 0.02) && near(*of_inside, 0.04), "{found:?}");
        }
        assert_eq!(time_shares(&lengths, Nanos(0), Nanos(0)), []);
    }

    #[test]
    fn gaps_are_told_by_rate_by_time_and_by_class_of_the_time_weighted_percentile() {
        let mut lengths = Histogram::new();
        lengths.record_n(1_000, 30);
        lengths.record_n(2_000_000, 2);
        let elapsed = Nanos(4_000_000_000);
        let found = rates(&lengths, elapsed);
        let counts: Vec<u64> = found.iter().map(|of| of.count).collect();
        assert_eq!(counts, [32, 2, 2, 2, 2, 2]);
        assert_eq!(found.iter().map(|of| of.at_least).collect::<Vec<_>>(), RATES_AT_LEAST);
        assert!(
            (found[0].per_second - 8.0).abs() < 1e-9 && (found[1].per_second - 0.5).abs() < 1e-9
        );
        assert_eq!(found[1].interval, rate::poisson_interval(2, 4.0));
        assert!(rates(&lengths, Nanos(0))[0].per_second.is_finite());

        let weighted = time_weighted(&lengths, elapsed);
        let percents: Vec<f64> = weighted.iter().map(|point| point.percent).collect();
        assert_eq!(percents, TIME_WEIGHTED);
        let at = |value| TimeWeighted { percent: 99.9, value: Nanos(value) };
        let mut series = Series::summarise(identity(), &lengths, |_| 32.0, None);
        for (value, class) in [(900, Class::Good), (5_000, Class::Bad), (100_001, Class::Ugly)] {
            let other = TimeWeighted { percent: 99.0, value: Nanos(1) };
            series.weigh_by_time(&lengths, elapsed, &[other, at(value)]);
            assert_eq!((series.class, series.class_by), (Some(class), Some(Nanos(value))));
        }
        let tail = series.tail.unwrap();
        assert_eq!((tail.count, tail.denominator), (2, Denominator::Elapsed));
        let share = lengths.sum_above(UGLY.0) as f64 / 4e9;
        assert!((tail.share - share).abs() < 1e-12 && tail.share > 0.000_9, "{tail:?}");
        series.weigh_by_time(&lengths, elapsed, &[]);
        assert_eq!((series.class, series.class_by), (None, None));
        for (elapsed, inside) in [(0, 9), (9, 0)] {
            assert_eq!(time_shares(&lengths, Nanos(elapsed), Nanos(inside)), []);
        }
    }

    #[test]
    fn the_smallest_value_is_known_unless_all_were_given_up() {
        let above = Nanos(1_000_000_000);
        for (answered, given_up, min) in [(&[500][..], 1, Some(Nanos(500))), (&[], 3, None)] {
            let mut values: Histogram = answered.iter().copied().collect();
            values.record_n(above.0, given_up);
            let mut series = Series::summarise(identity(), &values, |_| 2.0, None);
            let censored = Censored { count: given_up, above };
            series.censor(&values, censored);
            assert_eq!((series.censored, series.min), (Some(censored), min));
        }
    }

    #[test]
    fn a_lower_end_decides_the_class_only_above_the_limit_of_the_ugly() {
        let with =
            |low| Quantile { percent: 99.9, value: None, low: Some(low), high: None, n_eff: 9.0 };
        assert_eq!(deciding(&[with(UGLY)]), None);
        assert_eq!(deciding(&[with(Nanos(UGLY.0 + 1))]), Some(Nanos(UGLY.0 + 1)));
    }

    #[test]
    fn equal_samples_have_equal_quantiles() {
        let mut values = Histogram::new();
        values.record_n(9, 100_000);
        let series = Series::summarise(identity(), &values, |_| 1e5, None);
        let supported: Vec<_> = series.quantiles.iter().filter_map(|q| q.value).collect();
        assert_eq!(supported, [Nanos(9); 5]);
        assert_eq!(series.class, Some(Class::Good));
    }
}
