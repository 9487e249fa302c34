//! What is said of a client of somebody else: its percentiles as it reported them, those of the truth, and
//! sentences.

use whylate_model::Nanos;
use whylate_model::calibration::{ForeignTool, LimitEnd};
use whylate_model::series::Quantile;
use whylate_stats::Histogram;
use whylate_stats::error_curve::{ErrorAt, compensated};
use whylate_stats::quantile;

use super::super::judge::limit;
use super::Readings;

/// Of a client that waits for replies hardly one request is without one.
const ALONE: f64 = 0.01;

/// Its percentiles. What it reported in several runs is not averaged: there is the least of them and the most.
pub(super) fn reported(raw: &[ErrorAt], readings: &Readings, delay: Nanos) -> Vec<Quantile> {
    let of = |at: &ErrorAt| {
        let here = readings.parts.iter().filter(|(set, _)| *set == delay);
        let found = here.flat_map(|(_, reading)| &reading.found);
        let values: Vec<u64> = found
            .filter(|(p, _)| (p - at.percent).abs() < 1e-9)
            .map(|(_, value)| value.round() as u64)
            .collect();
        let ends = values.iter().min().zip(values.iter().max());
        let (value, low, high) = match (&values[..], ends) {
            ([value], _) => (Some(Nanos(*value)), None, None),
            (_, Some((least, most))) => (None, Some(Nanos(*least)), Some(Nanos(*most))),
            _ => (None, None, None),
        };
        Quantile { percent: at.percent, value, low, high, n_eff: at.n_eff }
    };
    raw.iter().map(of).collect()
}

pub(super) fn quantiles(truth: &Histogram) -> Vec<Quantile> {
    let n = truth.len() as f64;
    let of = |of: quantile::Estimate| Quantile {
        percent: of.percent,
        value: of.value.map(Nanos),
        low: of.low.map(Nanos),
        high: of.high.map(Nanos),
        n_eff: of.n_eff,
    };
    quantile::estimates(truth, |_| n).map(of).to_vec()
}

pub(super) fn notes(
    readings: &Readings,
    tool: &ForeignTool,
    (delay, base, tolerance): (Nanos, Option<f64>, f64),
) -> Vec<String> {
    let off = base.unwrap_or(0.0);
    let known = match readings.error_of_mean(delay, 1.0, 0.0) {
        Some(raw) => {
            let less = readings.error_of_mean(delay, 1.0, off).filter(|_| base.is_some());
            let less = less.map_or(String::new(), |less| {
                format!(", and with the base taken off by {}", in_words(&less))
            });
            format!(
                "its number is a mean, and is set beside the mean of the truth: it is off by {}{less}. Of \
                 percentiles nothing is known, and no limit is claimed",
                in_words(&raw)
            )
        }
        None => "message by message nothing is known of it: its errors are those of the percentiles that it \
                 prints"
            .to_owned(),
    };
    let mut notes = vec![known];
    let (alone, all) = readings
        .parts
        .iter()
        .fold((0, 0), |(alone, all), (_, of)| (alone + of.alone, all + of.alone + of.truth.len()));
    if alone as f64 > ALONE * all as f64 {
        notes.push(format!(
            "{alone} of {all} messages went there before anything had come back for the one before: it does \
             not wait for replies, and what the line wrote down cannot be paired for sure"
        ));
    }
    if tool.halves() {
        let twice = match readings.error_of_mean(delay, 2.0, off) {
            Some(doubled) => format!("is off by {}", in_words(&doubled)),
            None => format!("holds {}", until(&readings.curve(delay, 2.0), off, tolerance)),
        };
        notes.push(format!(
            "it halves: its number rises by one half of what the line adds there and back, because it divides \
             the round trip by two and calls that a latency. No message ever took that time. Twice its \
             number, with the base taken off, {twice}"
        ));
    }
    if base.is_none() {
        notes.push("nothing was measured back to back: no base is taken off".to_owned());
    }
    notes
}

/// Up to where twice its numbers hold.
fn until(doubled: &[ErrorAt], base: f64, tolerance: f64) -> String {
    let twice = limit(&compensated(doubled, 2.0 * base), tolerance);
    match (twice.percent, twice.ended_by) {
        (Some(percent), _) => format!("up to p{percent}"),
        (None, LimitEnd::Sample) => "nowhere, for want of runs or messages".to_owned(),
        (None, _) => "nowhere".to_owned(),
    }
}

/// An error over runs, with its interval where there is one.
fn in_words(of: &ErrorAt) -> String {
    let time = |ns: f64| format!("{:+.2} us", ns / 1e3);
    let error = of.error_ns.map_or_else(|| "nothing that is known".to_owned(), time);
    match of.low_ns.zip(of.high_ns) {
        Some((low, high)) => format!("{error} ({} .. {})", time(low), time(high)),
        None => format!("{error} (too few runs for an interval)"),
    }
}
