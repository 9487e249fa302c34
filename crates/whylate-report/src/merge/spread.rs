//! How far the numbers of a sum may lie from the truth.
//!
//! Two sources of chance are kept apart, and the wider interval is the one to go by:
//!
//! - *within* the recordings, as if they were one. Each recording brings its own intervals, which
//!   are those of its block bootstrap; they are put together so that what is known of bursts in
//!   each stays known, and a recording alone keeps the intervals that it had;
//! - *between* the recordings, where there are several: Student's t interval with the spread of
//!   their own numbers around that of the sum. Recordings of unequal weight count by what they
//!   weigh in the sum.
//!
//! The numbers themselves are always those of the sum. The CPUs of one recording are no recordings:
//! they share its time, and their errors are taken to go together.

use whylate_model::Nanos;
use whylate_model::origin::{Measure, Share, Spread};
use whylate_model::run::Rate;
use whylate_model::series::{Quantile, Series, summary};
use whylate_stats::dependence::Exceedances;
use whylate_stats::{Histogram, quantile, rate, student};

use crate::trusted;

/// Standard errors from end to end of a 95 % interval.
const ENDS_APART: f64 = 2.0 * 1.959_964;

/// The number of one recording, and what it weighs in the sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) value: f64,
    pub(super) weight: f64,
}

/// Both intervals of a number.
pub(super) fn of(
    series: &str,
    of: Measure,
    value: f64,
    within: Option<(f64, f64)>,
    parts: &[Part],
) -> Spread {
    let variance = between(parts);
    let interval = variance.map(|spread| {
        let around = spread.around(value);
        (around.low.max(0.0), around.high)
    });
    let apart = within.map(|(low, high)| (high - low) / ENDS_APART);
    let ratio = variance.zip(apart).map(|(between, within)| between.variance / (within * within));
    Spread {
        series: series.to_owned(),
        of,
        value,
        within,
        between: interval.filter(|(_, high)| high.is_finite()),
        ratio: ratio.filter(|ratio| ratio.is_finite()),
    }
}

/// The variance of the sum's number from the spread of the parts: none for one recording.
///
/// What the recordings scatter is taken without weights, so that a short one counts: it is as good
/// a witness of what differs between recordings as a long one, and noisier at worst.
fn between(parts: &[Part]) -> Option<student::Spread> {
    let values: Vec<f64> = parts.iter().map(|part| part.value).collect();
    let equal = student::Spread::of_mean(&values)?;
    let all: f64 = parts.iter().map(|part| part.weight).sum();
    let squares: f64 = parts.iter().map(|part| (part.weight / all).powi(2)).sum();
    let of_one = equal.variance * values.len() as f64;
    Some(student::Spread { variance: of_one * squares, degrees: equal.degrees })
        .filter(|spread| spread.variance.is_finite())
}

/// Rates of the sum: of `lengths` in `elapsed`.
pub(super) fn rates(
    series: &str,
    pooled: Vec<Rate>,
    elapsed: Nanos,
    shares: &[&Share],
) -> Vec<(Rate, Spread)> {
    let one = |mut rate: Rate| {
        let recorded: Vec<(&Share, Rate)> = shares
            .iter()
            .filter_map(|share| {
                let own = share.rates.iter().find(|own| own.at_least == rate.at_least);
                own.map(|own| (*share, *own))
            })
            .collect();
        rate.interval = rate_within(rate.count, seconds(elapsed), &recorded);
        let parts: Vec<Part> = recorded
            .iter()
            .map(|(share, own)| Part { value: own.per_second, weight: weight(share) })
            .collect();
        let measure = Measure::Rate { at_least: rate.at_least };
        let spread = of(series, measure, rate.per_second, Some(rate.interval), &parts);
        rate.interval = spread.headline().unwrap_or(rate.interval);
        (rate, spread)
    };
    pooled.into_iter().map(one).collect()
}

/// The interval of a rate from those of the recordings.
///
/// By how much bursts widen each recording's interval over that of independent events is what
/// widens the sum's: to each side, the variance of the counts over that of independent ones,
/// averaged by count.
fn rate_within(count: u64, seconds: f64, recorded: &[(&Share, Rate)]) -> (f64, f64) {
    let (low, high) = rate::poisson_interval(count, seconds);
    if count == 0 || !high.is_finite() {
        return (low, high);
    }
    let (mut below, mut above, mut all) = (0.0, 0.0, 0.0);
    for (share, own) in recorded.iter().filter(|(_, own)| own.count > 0) {
        let time = seconds_of(share);
        let alone = rate::poisson_interval(own.count, time);
        let per_second = own.count as f64 / time;
        let factor = |own: f64, alone: f64| (own / alone).max(1.0).powi(2);
        let weight = own.count as f64;
        below += weight * factor(per_second - own.interval.0, per_second - alone.0);
        above += weight * factor(own.interval.1 - per_second, alone.1 - per_second);
        all += weight;
    }
    let per_second = count as f64 / seconds;
    let widened =
        |off: f64, factors: f64| if all > 0.0 { off * (factors / all).sqrt() } else { off };
    let low = per_second - widened(per_second - low, below);
    (low.max(0.0), per_second + widened(high - per_second, above))
}

/// The lost share of the sum.
pub(super) fn lost_share(series: &str, value: f64, shares: &[&Share]) -> Spread {
    let known = || shares.iter().filter_map(|share| share.lost_share.map(|lost| (*share, lost)));
    let all: f64 = known().map(|(share, _)| weight(share)).sum();
    let mut off = Some((0.0, 0.0));
    for (share, lost) in known() {
        let part = weight(share) / all;
        let square = |distance: f64| (part * distance).powi(2);
        off = off
            .zip(share.lost_share_interval)
            .map(|(off, (low, high))| (off.0 + square(lost - low), off.1 + square(high - lost)));
    }
    let within = off.filter(|_| all > 0.0);
    let within = within
        .map(|(below, above)| ((value - below.sqrt()).max(0.0), (value + above.sqrt()).min(1.0)));
    let parts: Vec<Part> =
        known().map(|(share, value)| Part { value, weight: weight(share) }).collect();
    let mut spread = of(series, Measure::LostShare, value, within, &parts);
    spread.between = spread.between.map(|(low, high)| (low, high.min(1.0)));
    spread
}

/// What the intervals of a series' quantiles are made from.
pub(super) struct Quantiles<'a> {
    pub(super) values: &'a Histogram,
    /// Recordings against each other.
    pub(super) recordings: &'a Exceedances,
    pub(super) shares: &'a [&'a Share],
}

impl Quantiles<'_> {
    /// How many independent samples the sum is worth at a percentile.
    ///
    /// Where single recordings are too short for the percentile, its interval is one over
    /// recordings: from the spread of what lies above the percentile in each, and with Student's t
    /// for so few. With too few of them for that the percentile is not supported.
    pub(super) fn effective_n(&self, percent: f64) -> f64 {
        let within = self.within(percent).unwrap_or(self.values.len() as f64);
        let parts = self.parts(percent);
        if parts.is_some() { within } else { within.min(self.between(percent).1) }
    }

    /// Gives each quantile the wider of its two intervals, and returns both.
    pub(super) fn widen(&self, series: &mut Series) -> Vec<Spread> {
        let mut spreads = Vec::new();
        for quantile in &mut series.quantiles {
            let (percent, worth) = (quantile.percent, self.within(quantile.percent));
            let found = worth.map(|worth| quantile::estimate(self.values, percent, worth));
            let within = found.and_then(|found| ends(found.low.map(Nanos), found.high.map(Nanos)));
            if worth.is_none() {
                // How its samples depend on each other is not known.
                (quantile.low, quantile.high, quantile.n_eff) = (None, None, 0.0);
            }
            let Some(value) = quantile.value else {
                quantile.low = quantile.low.max(self.reached(percent));
                continue;
            };
            let measure = Measure::Quantile { percent };
            let spread = match self.parts(percent) {
                Some(parts) => of(&series.name, measure, value.0 as f64, within, &parts),
                None => Spread {
                    series: series.name.clone(),
                    of: measure,
                    value: value.0 as f64,
                    within,
                    between: ends(quantile.low, quantile.high),
                    ratio: worth.map(|worth| worth / self.between(percent).0),
                },
            };
            if let Some((low, high)) = spread.headline() {
                let lowest = series.min.unwrap_or_default();
                quantile.low = Some(Nanos(low.round() as u64).max(lowest));
                quantile.high = Some(Nanos(high.round() as u64));
            }
            spreads.push(spread);
        }
        summary::order_ends(&mut series.quantiles, series.min);
        spreads
    }

    /// What a percentile is at least in each of the recordings; none where one of them does not know. That of the
    /// sum lies between those of its recordings, so that the least of their bounds holds for it as well.
    fn reached(&self, percent: f64) -> Option<Nanos> {
        let with_samples = self.shares.iter().filter(|share| share.n > 0);
        let bounds: Option<Vec<Nanos>> =
            with_samples.map(|share| at(share, percent)?.low).collect();
        bounds?.into_iter().min()
    }

    /// From what the recordings are worth; none where one of them does not know.
    fn within(&self, percent: f64) -> Option<f64> {
        let (mut weighted, mut all) = (0.0, 0.0);
        for share in self.shares.iter().filter(|share| share.n > 0) {
            let worth = at(share, percent)?.n_eff;
            if worth <= 0.0 {
                return None;
            }
            let own = share.n as f64;
            weighted += own * (own / worth).max(1.0);
            all += own;
        }
        let n = self.values.len() as f64;
        Some(if all > 0.0 { n / (weighted / all) } else { n })
    }

    /// What the sum is worth if recordings are the unit, and what of it is left for an interval.
    fn between(&self, percent: f64) -> (f64, f64) {
        let n = self.values.len() as f64;
        let at = self.values.value_at(percent);
        let dispersion = at.map_or(1.0, |value| self.recordings.dispersion_at(self.values, value));
        let recordings = self.shares.iter().filter(|share| share.n > 0).count();
        let t = student::critical(recordings as f64 - 1.0) / (ENDS_APART / 2.0);
        (n / dispersion, n / (dispersion * t * t))
    }

    /// The quantiles of the recordings; none when one of several is too short for it.
    fn parts(&self, percent: f64) -> Option<Vec<Part>> {
        let with_samples: Vec<_> = self.shares.iter().filter(|share| share.n > 0).collect();
        if with_samples.len() < 2 {
            return Some(Vec::new());
        }
        let part = |share: &&&Share| {
            let value = at(share, percent)?.value?;
            Some(Part { value: value.0 as f64, weight: share.n as f64 })
        };
        with_samples.iter().map(part).collect()
    }
}

fn ends(low: Option<Nanos>, high: Option<Nanos>) -> Option<(f64, f64)> {
    low.zip(high).map(|(low, high)| (low.0 as f64, high.0 as f64))
}

fn at(share: &Share, percent: f64) -> Option<&Quantile> {
    share.quantiles.iter().find(|q| (q.percent - percent).abs() < 1e-9)
}

/// Two CPUs of one recording as one: their errors are taken to go together.
pub(super) fn across_cpus(mut one: Share, other: &Share) -> Share {
    let (first, second) = (weight(&one), weight(other));
    let both = (first + second).max(1.0);
    let mean = |a: f64, b: f64| (a * first + b * second) / both;
    let sum =
        |a: Option<Nanos>, b: Option<Nanos>| a.zip(b).map(|(a, b)| Nanos(a.0.saturating_add(b.0)));
    one.lost_share_interval = one
        .lost_share_interval
        .zip(other.lost_share_interval)
        .map(|(a, b)| (mean(a.0, b.0), mean(a.1, b.1)));
    one.lost_share = one.lost_share.zip(other.lost_share).map(|(a, b)| mean(a, b));
    for rate in &mut one.rates {
        let Some(more) = other.rates.iter().find(|more| more.at_least == rate.at_least) else {
            continue;
        };
        rate.interval =
            (mean(rate.interval.0, more.interval.0), mean(rate.interval.1, more.interval.1));
        rate.count = rate.count.saturating_add(more.count);
        rate.per_second = mean(rate.per_second, more.per_second);
    }
    let gaps = |share: &Share| share.n as f64;
    let all = (gaps(&one) + gaps(other)).max(1.0);
    one.period_ns =
        one.period_ns.zip(other.period_ns).map(|(a, b)| (a * gaps(&one) + b * gaps(other)) / all);
    one.elapsed = sum(one.elapsed, other.elapsed);
    one.threshold = one.threshold.max(other.threshold);
    one.recorded_as = format!("{} {}", one.recorded_as, other.recorded_as);
    one.n = one.n.saturating_add(other.n);
    one.left_out = one.left_out.saturating_add(other.left_out);
    one.max = one.max.max(other.max);
    one.trust = trusted::less(one.trust.take(), other.trust.clone());
    // Those of both together are not known before their histograms are read.
    (one.p50, one.p99, one.p999) = (None, None, None);
    one.quantiles.clear();
    one
}

/// Samples of a histogram that lie below a threshold are left out: the rest, how many they were,
/// and their sum.
pub(super) fn cut(values: &Histogram, floor: Nanos) -> (Histogram, u64, u128) {
    let mut kept = Histogram::new();
    let (mut count, mut time) = (0, 0u128);
    for (value, n) in values.bins() {
        if value < floor.0 {
            count += n;
            time += u128::from(value) * u128::from(n);
        } else {
            kept.record_n(value, n);
        }
    }
    // Bins are named by their highest values: the exact sum is that of all less what is left out.
    if let (Some(all), Some(mut exact)) = (values.exact(), kept.exact()) {
        exact.sum_ns = all.sum_ns.saturating_sub(time);
        exact.saturated = all.saturated;
        // Where it does not fit, the sum by bins stands.
        let _ = kept.set_exact(exact);
    }
    (kept, count, time)
}

fn weight(share: &Share) -> f64 {
    share.elapsed.map_or(0.0, |elapsed| elapsed.0 as f64)
}

fn seconds_of(share: &Share) -> f64 {
    seconds(share.elapsed.unwrap_or_default())
}

fn seconds(elapsed: Nanos) -> f64 {
    (elapsed.0 as f64 / 1e9).max(1e-9)
}

#[cfg(test)]
mod tests {
    use whylate_model::series::summary::rates as independent;
    use whylate_stats::rng::Rng;

    use super::*;

    /// Roughly normal: the sum of twelve.
    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    /// A minute with so many gaps of 5 us.
    fn minute(gaps: u64) -> Share {
        let mut lengths = Histogram::new();
        lengths.record_n(5_000, gaps);
        let elapsed = Nanos(60_000_000_000);
        let lost = gaps as f64 * 5e3 / 60e9;
        let off = 2.0 * (gaps as f64).sqrt() * 5e3 / 60e9;
        Share {
            series: "gap".to_owned(),
            recorded_as: "gap".to_owned(),
            n: gaps,
            left_out: 0,
            p50: None,
            p99: None,
            p999: None,
            max: None,
            elapsed: Some(elapsed),
            lost_share: Some(lost),
            lost_share_interval: Some((lost - off, lost + off)),
            threshold: None,
            period_ns: None,
            rates: independent(&lengths, elapsed),
            quantiles: Vec::new(),
            trust: None,
        }
    }

    /// Rate of gaps of at least 1 us, and the lost share, of these recordings together.
    fn pooled(shares: &[&Share]) -> (Rate, Spread, Spread) {
        let gaps: u64 = shares.iter().map(|share| share.n).sum();
        let mut lengths = Histogram::new();
        lengths.record_n(5_000, gaps);
        let elapsed = Nanos(60_000_000_000 * shares.len() as u64);
        let of_rates = rates("gap", independent(&lengths, elapsed), elapsed, shares);
        let (rate, spread) = of_rates.into_iter().next().unwrap();
        let lost = lost_share("gap", gaps as f64 * 5e3 / elapsed.0 as f64, shares);
        (rate, spread, lost)
    }

    #[test]
    fn interval_of_the_sum_holds_the_true_rate_where_that_within_the_recordings_does_not() {
        let mut rng = Rng::new(3);
        for recordings in [2usize, 3, 5, 10] {
            let (mut held, mut within_held, mut lost_held) = (0, 0, 0);
            for _ in 0..120 {
                // 100 gaps a second, a tenth more or less from one recording to the next.
                let shares: Vec<Share> = (0..recordings)
                    .map(|_| {
                        let own = 6_000.0 * (1.0 + 0.1 * normal(&mut rng));
                        minute((own + own.sqrt() * normal(&mut rng)).round() as u64)
                    })
                    .collect();
                let shares: Vec<&Share> = shares.iter().collect();
                let (rate, spread, lost) = pooled(&shares);
                let inside = |(low, high): (f64, f64), value: f64| low <= value && value <= high;
                held += usize::from(inside(rate.interval, 100.0));
                within_held += usize::from(inside(spread.within.unwrap(), 100.0));
                lost_held += usize::from(inside(lost.headline().unwrap(), 100.0 * 5e-6));
            }
            // 95 % are promised, 114 of 120, with a standard deviation of 2.4.
            assert!(held >= 105 && lost_held >= 105, "{recordings}: {held} {lost_held}");
            assert!(within_held < 60, "{recordings}: {within_held}");
        }
    }

    #[test]
    fn a_recording_alone_keeps_its_bursts() {
        let mut bursts = minute(600);
        bursts.rates[0].interval = (4.0, 25.0);
        let (rate, spread, lost) = pooled(&[&bursts]);
        assert!((rate.interval.0 - 4.0).abs() < 1e-9 && (rate.interval.1 - 25.0).abs() < 1e-9);
        assert_eq!((spread.between, spread.ratio), (None, None));
        let (low, high) = bursts.lost_share_interval.unwrap();
        let found = lost.headline().unwrap();
        assert!((found.0 - low).abs() < 1e-15 && (found.1 - high).abs() < 1e-15);
    }

    #[test]
    fn no_gap_in_three_minutes_bounds_the_rate_by_three_over_three_minutes() {
        let none = minute(0);
        let (rate, spread, _) = pooled(&[&none, &none, &none]);
        assert!(rate.interval.1 < 3.0 / 180.0 && rate.interval.1 > 2.99 / 180.0, "{rate:?}");
        assert_eq!(spread.between, Some((0.0, 0.0)));
    }

    #[test]
    fn two_cpus_of_a_recording_are_as_sure_as_one_of_them() {
        let both = across_cpus(minute(600), &minute(600));
        let one = minute(600);
        assert_eq!((both.n, both.elapsed.unwrap().0), (1_200, 120_000_000_000));
        assert!((both.rates[0].per_second - one.rates[0].per_second).abs() < 1e-9);
        assert!((both.rates[0].interval.1 - one.rates[0].interval.1).abs() < 1e-9);
        assert_eq!(both.lost_share, one.lost_share);
    }

    #[test]
    fn a_short_recording_beside_a_long_one_does_not_make_the_spread_vanish() {
        let long = Part { value: 100.0, weight: 3_600.0 };
        let short = Part { value: 140.0, weight: 3.0 };
        let spread = between(&[long, short]).unwrap();
        // The difference of two, and nearly all of the sum is one of them.
        assert!((spread.variance / 800.0 - 1.0).abs() < 0.01, "{spread:?}");
        assert!(between(&[long]).is_none());
    }

    #[test]
    fn the_spread_of_recordings_is_told_beside_that_within_them() {
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        let parts = |of: &[(f64, f64)]| {
            of.iter()
                .map(|(value, weight)| Part { value: *value, weight: *weight })
                .collect::<Vec<_>>()
        };
        let told = |of: &[(f64, f64)]| {
            super::of("gap", Measure::LostShare, 12.0, Some((8.0, 16.0)), &parts(of))
        };
        // Two that scatter by 8 squared: their mean by 4; within, 8 are two standard errors of both sides.
        let found = told(&[(10.0, 1.0), (14.0, 1.0)]);
        let apart = 8.0 / ENDS_APART;
        near(found.ratio.unwrap(), 4.0 / (apart * apart));
        let (low, high) = found.between.unwrap();
        assert_eq!(low.to_bits(), 0.0_f64.to_bits(), "no number of these is below nothing");
        near(high, 12.0 + 2.0 * student::critical(1.0));
        // One of three weighs as much as both others: its error does, too.
        let found = told(&[(10.0, 1.0), (14.0, 1.0), (12.0, 2.0)]);
        near(found.ratio.unwrap(), 4.0 * 0.375 / (apart * apart));
        assert_eq!(told(&[(10.0, 1.0)]).between, None);

        let lost = |share| Share { lost_share: Some(share), ..minute(60) };
        let (one, other) = (lost(0.9), lost(0.7));
        let (_, high) = lost_share("gap", 0.8, &[&one, &other]).between.unwrap();
        assert_eq!(high.to_bits(), 1.0_f64.to_bits(), "no share is above all");
    }

    #[test]
    fn two_cpus_of_a_recording_are_one_by_their_time_and_by_their_gaps() {
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        let one = Share {
            n: 30,
            left_out: 3,
            max: Some(Nanos(7)),
            threshold: Some(Nanos(100)),
            period_ns: Some(10.0),
            elapsed: Some(Nanos(1_000)),
            lost_share: Some(0.1),
            lost_share_interval: Some((0.05, 0.2)),
            ..minute(30)
        };
        let other = Share {
            n: 10,
            left_out: 4,
            max: Some(Nanos(9)),
            threshold: Some(Nanos(200)),
            period_ns: Some(20.0),
            elapsed: Some(Nanos(3_000)),
            lost_share: Some(0.3),
            lost_share_interval: Some((0.25, 0.4)),
            ..minute(10)
        };
        let (first, second) = (one.rates[0], other.rates[0]);
        let both = across_cpus(one.clone(), &other);
        assert_eq!((both.n, both.left_out, both.max), (40, 7, Some(Nanos(9))));
        assert_eq!((both.threshold, both.elapsed), (Some(Nanos(200)), Some(Nanos(4_000))));
        near(both.period_ns.unwrap(), 12.5);
        near(both.lost_share.unwrap(), 0.25);
        let (low, high) = both.lost_share_interval.unwrap();
        near(low, 0.2);
        near(high, 0.35);
        assert_eq!(both.rates[0].count, first.count + second.count);
        near(both.rates[0].per_second, (first.per_second + 3.0 * second.per_second) / 4.0);
        near(both.rates[0].interval.1, (first.interval.1 + 3.0 * second.interval.1) / 4.0);
        // A rate that the other one does not tell stays its own.
        let without = Share { rates: Vec::new(), ..other };
        assert_eq!(across_cpus(one.clone(), &without).rates, one.rates);
    }
}
