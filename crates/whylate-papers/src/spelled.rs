//! Numbers in the words that `paper.json` keeps: spelled as the model spells a time, so that a program that reads
//! them finds what it found. A report respells them for its reader.

use whylate_model::paper::Unit;
use whylate_model::{Nanos, nearly_all, thousands_apart};

/// Significant digits of a share.
const DIGITS: f64 = 3.0;
/// Places behind the point that a share has at most.
const PLACES: f64 = 6.0;

/// A value of a row in its unit.
pub(crate) fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds if value < 0.0 => format!("-{}", in_unit(-value, unit)),
        Unit::Nanoseconds => Nanos(value.round() as u64).to_string(),
        Unit::Share => percent(value),
        Unit::Count => thousands_apart(value.round() as u64),
        Unit::PerSecond => format!("{value:.1}/s"),
        Unit::BitsPerSecond if value >= 1e9 => format!("{:.2} Gbit/s", value / 1e9),
        Unit::BitsPerSecond => format!("{:.1} Mbit/s", value / 1e6),
        Unit::Ratio => format!("{value:.3}"),
    }
}

/// The ends of an interval of shares: with the digits of its width, two of them.
pub(crate) fn shares(low: f64, high: f64) -> String {
    let width = (high - low).abs() * 100.0;
    let power = if width > 0.0 { width.log10().floor() } else { -PLACES };
    let places = (1.0 - power).clamp(0.0, PLACES) as usize;
    let [low, high] = [low, high].map(|end| match end * 100.0 {
        0.0 => "0%".to_owned(),
        end => format!("{end:.places$}%"),
    });
    format!("{low} .. {high}")
}

/// A share as a percentage with three significant digits: `0.0123%`, `4.50%`, `100%`.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        return "-".to_owned();
    }
    // Rounded first, so that what rounds up to the next power of ten has no digit more.
    let power = |of: f64| of.abs().log10().floor();
    let step = 10_f64.powf((power(value) - (DIGITS - 1.0)).max(-PLACES));
    let rounded = if value == 0.0 { 0.0 } else { (value / step).round() * step };
    if rounded == 0.0 {
        return if value > 0.0 { "<0.000001%".to_owned() } else { "0%".to_owned() };
    }
    let places = (DIGITS - 1.0 - power(rounded)).clamp(0.0, PLACES) as usize;
    match format!("{rounded:.places$}%") {
        all if all == "100%" => nearly_all(share).unwrap_or(all),
        told => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_shares_have_the_digits_of_their_distance() {
        for (low, high, text) in [
            (0.439, 0.558, "44% .. 56%"),
            (0.277, 0.487, "28% .. 49%"),
            (0.0, 0.003_68, "0% .. 0.37%"),
            (0.0, 0.012_1, "0% .. 1.2%"),
            (0.5, 0.75, "50% .. 75%"),
        ] {
            assert_eq!(shares(low, high), text);
        }
    }

    #[test]
    fn a_value_is_spelled_in_its_unit() {
        for (value, unit, text) in [
            (-200.0, Unit::Nanoseconds, "-200ns"),
            (2_345.0, Unit::Nanoseconds, "2.35us"),
            (0.33, Unit::Share, "33.0%"),
            (0.000_123, Unit::Share, "0.0123%"),
            (0.099_96, Unit::Share, "10.0%"),
            (1.0, Unit::Share, "100%"),
            (0.0, Unit::Share, "0%"),
            (12_000.0, Unit::Count, "12,000"),
            (9.4e7, Unit::BitsPerSecond, "94.0 Mbit/s"),
            (1.25e9, Unit::BitsPerSecond, "1.25 Gbit/s"),
            (18.0, Unit::PerSecond, "18.0/s"),
            (0.5, Unit::Ratio, "0.500"),
        ] {
            assert_eq!(in_unit(value, unit), text);
        }
    }
}
