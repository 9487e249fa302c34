//! Durations as people write them: `60s`, `1.5ms`, `72h`, `87.0us`, `800ns`, `3m`.

use std::str::FromStr;

use crate::Nanos;

/// A year and a day: nothing that is measured or scheduled here is longer.
const LONGEST: Nanos = Nanos(366 * 24 * 3600 * 1_000_000_000);

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a number.
    #[error("`{0}` is not a duration: write it as 60s, 1.5ms or 72h")]
    NotADuration(String),
    /// Zero without a unit.
    #[error("the time must be above zero: write it as 60s, 1.5ms or 72h")]
    BareZero,
    /// A number without a unit.
    #[error("`{0}` has no unit: write {0}s, {0}ms or {0}us")]
    NoUnit(String),
    /// A unit that is none.
    #[error("`{0}` is not a unit of time: use ns, us, ms, s, m, h or d")]
    UnknownUnit(String),
    /// Longer than anything measured.
    #[error("`{0}` is longer than the 366 days that a run may take")]
    TooLong(String),
}

impl FromStr for Nanos {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let value: f64 =
            number.parse().map_err(|_| DurationError::NotADuration(text.to_owned()))?;
        let scale = match unit {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            "" if value == 0.0 => return Err(DurationError::BareZero),
            "" => return Err(DurationError::NoUnit(text.to_owned())),
            _ => return Err(DurationError::UnknownUnit(unit.to_owned())),
        };
        let nanos = value * scale;
        if nanos > LONGEST.0 as f64 {
            return Err(DurationError::TooLong(text.to_owned()));
        }
        Ok(Self(nanos.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_examples_and_nanoseconds_are_durations() {
        for (text, nanos) in [
            ("3m", 180_000_000_000),
            ("1.5s", 1_500_000_000),
            ("1020ms", 1_020_000_000),
            ("87.0us", 87_000),
            ("800ns", 800),
            ("5.3ms", 5_300_000),
            ("17.1ms", 17_100_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_its_reason() {
        for (text, word) in [
            ("5", "no unit"),
            ("0", "zero"),
            ("5 ms", "not a unit"),
            ("5parsecs", "not a unit"),
            ("ms", "not a duration"),
            ("-5ms", "not a duration"),
            ("1.2.3ms", "not a duration"),
            ("", "not a duration"),
            ("367d", "366 days"),
        ] {
            let error = text.parse::<Nanos>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
