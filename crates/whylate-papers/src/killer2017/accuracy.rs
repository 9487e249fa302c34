//! How far a tool lies from the truth, and the order that this gives.

use crate::spelled::in_unit;
use whylate_model::paper::{Distribution, TextTable, Unit};
use whylate_stats::difference::{Differences, Intervals, RESAMPLES};
use whylate_stats::quantile::PERCENTS;

use super::measured::Measured;
use super::protocol::RATES_APART;

/// A tool and the truth of the same frames.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) label: String,
    pub(super) measured: Measured,
    pub(super) truth: Measured,
    /// Its own numbers are half of a round trip.
    pub(super) halved: bool,
}

impl Judged {
    /// Its quantiles less the truth's, with intervals, in the order of [`PERCENTS`]; none where either
    /// sample does not show one.
    pub(super) fn errors(&self, seed: u64) -> Vec<(f64, Option<Intervals>)> {
        let (truth, own) = (&self.truth.sample, &self.measured.sample);
        let all = Differences::new(truth, own, &PERCENTS, seed, RESAMPLES);
        PERCENTS.map(|percent| (percent, all.quantile(percent, 1.0).intervals)).to_vec()
    }

    /// The mean distance of its quantiles from the truth's at these percentiles, in nanoseconds; none
    /// where a sample does not have one of them.
    fn distance(&self, percents: &[f64]) -> Option<f64> {
        let at = |of: &Measured, percent| of.histogram().value_at(percent).map(|ns| ns as f64);
        let mut sum = 0.0;
        for percent in percents {
            sum += (at(&self.measured, *percent)? - at(&self.truth, *percent)?).abs();
        }
        (!percents.is_empty()).then(|| sum / percents.len() as f64)
    }
}

/// Percentiles that all of them and their truths show.
fn common(judged: &[Judged]) -> Vec<f64> {
    let shows = |of: &Measured, percent: f64| {
        of.histogram().len() >= whylate_stats::quantile::smallest_n(percent / 100.0)
    };
    let by_all = |percent: &f64| {
        judged.iter().all(|of| shows(&of.measured, *percent) && shows(&of.truth, *percent))
    };
    PERCENTS.into_iter().filter(by_all).collect()
}

/// Puts the least accurate first, as the paper's labels have it; says by what.
pub(super) fn order(judged: &mut [Judged]) -> Option<String> {
    let percents = common(judged);
    let last = percents.last().filter(|_| !judged.is_empty())?;
    let distance = |of: &Judged| of.distance(&percents).unwrap_or(f64::INFINITY);
    judged.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let told: Vec<String> = judged
        .iter()
        .map(|of| format!("{} {}", of.label, in_unit(distance(of), Unit::Nanoseconds)))
        .collect();
    Some(format!(
        "labels are in the order of accuracy, the least accurate first, as in the paper: mean distance from the \
         truth of the same frames at p50 to p{last}: {}",
        told.join(", ")
    ))
}

/// The error of each tool at each percentile.
pub(super) fn table(judged: &[Judged], seed: u64) -> TextTable {
    let mut head =
        vec!["tool".to_owned(), "n".to_owned(), "frames/s".to_owned(), "lost".to_owned()];
    head.extend(PERCENTS[..6].iter().map(|percent| format!("error at p{percent}")));
    let count = |n: u64| in_unit(n as f64, Unit::Count);
    let rows = judged.iter().map(|of| {
        let rate = of.measured.rate().map_or("-".to_owned(), |rate| count(rate.round() as u64));
        let lost = if of.measured.sent > 0 { count(of.measured.lost) } else { "-".to_owned() };
        let mut row = vec![of.label.clone(), count(of.measured.histogram().len()), rate, lost];
        let errors = of.errors(seed);
        row.extend(errors.iter().take(6).map(|(_, error)| {
            error.as_ref().map_or("-".to_owned(), |error| {
                let between = error.headline();
                let ns = |value| in_unit(value, Unit::Nanoseconds);
                format!("{} ({} .. {})", ns(error.difference), ns(between.low), ns(between.high))
            })
        }));
        row
    });
    let mut caption =
        "What each tool reports less what the delay line's log says of the same time, with \
                       95 % intervals; nothing is taken off"
            .to_owned();
    let whole: Vec<&str> =
        judged.iter().filter(|of| of.halved).map(|of| of.label.as_str()).collect();
    if !whole.is_empty() {
        caption.push_str("; not of the same time, but of all that its line saw: ");
        caption.push_str(&whole.join(", "));
    }
    TextTable { caption, rows: rows.collect(), head, left: Vec::new() }
}

/// Tools whose rates lie too far from what was asked, which are not set beside the others (the paper
/// calibrates all to one rate): two that each lie within half of what is allowed are no further apart.
pub(super) fn apart(label: &str, rate: Option<f64>, asked: f64) -> Option<String> {
    let rate = rate?;
    ((rate / asked - 1.0).abs() > RATES_APART / 2.0).then(|| {
        format!(
            "{label} sent {rate:.0} frames a second where {asked:.0} were asked for: more than {}% apart, so \
             that its curve is of another load and is not set beside the others",
            RATES_APART / 2.0 * 100.0
        )
    })
}

/// Imported curves have no truth here: they stand in front, those with the largest median first.
pub(super) fn order_imported(imported: &mut [Distribution]) {
    let median = |of: &Distribution| {
        of.reached.iter().find(|of| (of.percent - 50.0).abs() < 1e-9).map_or(0.0, |of| of.value_ns)
    };
    imported.sort_by(|a, b| median(b).total_cmp(&median(a)));
}

#[cfg(test)]
mod tests {
    use super::super::measured::tests::planted;
    use super::*;

    fn judged(label: &str, over: u64, tail: u64) -> Judged {
        Judged {
            label: label.to_owned(),
            measured: planted(2, 20, |n, rng| {
                2_260 + over + rng.below(50) + if n % 100 == 0 { tail } else { 0 }
            }),
            truth: planted(2, 20, |_, rng| 2_260 + rng.below(20)),
            halved: false,
        }
    }

    #[test]
    fn the_least_accurate_comes_first_and_a_tail_counts() {
        let mut all = [
            judged("near", 500, 0),
            judged("far", 17_000, 0),
            judged("near with a tail", 500, 400_000),
        ];
        let told = order(&mut all).unwrap();
        let labels: Vec<&str> = all.iter().map(|of| of.label.as_str()).collect();
        assert_eq!(labels, ["near with a tail", "far", "near"]);
        assert!(told.contains("p50 to p99.9"), "{told}");
        assert!(order(&mut []).is_none());
    }

    #[test]
    fn an_error_is_what_was_planted_within_its_interval() {
        let of = judged("x", 5_000, 0);
        let (percent, error) = of.errors(1)[0];
        let error = error.unwrap();
        assert!((percent - 50.0).abs() < 1e-9);
        assert!((error.difference - 5_015.0).abs() < 30.0, "{error:?}");
        let between = error.headline();
        assert!(between.low <= error.difference && error.difference <= between.high);
        let table = table(&[of], 1);
        assert_eq!(table.head.len(), table.rows[0].len());
        assert!(table.rows[0][4].starts_with("5.0"), "{table:?}");
        assert_eq!(table.rows[0][9], "-", "40 000 samples show no p99.999");
        assert!(table.caption.ends_with("nothing is taken off"), "{}", table.caption);
        let halved = Judged { halved: true, ..judged("sockperf", 5_000, 0) };
        let both = super::table(&[judged("x", 5_000, 0), halved], 1).caption;
        assert!(both.ends_with("but of all that its line saw: sockperf"), "{both}");
    }

    #[test]
    fn a_tool_at_another_rate_is_named() {
        assert!(apart("x", Some(20_100.0), 20_000.0).is_none());
        // Beyond half a percent, on either side.
        assert!(apart("x", Some(20_101.0), 20_000.0).is_some());
        assert!(apart("x", Some(19_901.0), 20_000.0).is_none());
        assert!(apart("x", Some(19_899.0), 20_000.0).is_some());
        assert!(apart("x", None, 20_000.0).is_none());
        let told = apart("x", Some(15_000.0), 20_000.0).unwrap();
        assert!(told.contains("x sent 15000") && told.contains("not set beside"), "{told}");
    }
}
