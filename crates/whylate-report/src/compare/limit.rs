//! Limits on differences: `p99.9=+10%`, `p50=+2us`, `gap-cpu1:max=+50%`, `lost=+10%`.
//!
//! A limit is exceeded when the interval of the difference lies wholly beyond it. When the interval
//! merely reaches beyond, that is not shown, and no alarm.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use whylate_model::{Nanos, Printable};
use whylate_stats::quantile::PERCENTS;

use crate::numbers::{Value, interval};

/// A limit on a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The series it is for; none for every series that is compared.
    pub series: Option<String>,
    /// What is limited.
    pub measure: Measure,
    /// How much larger B may be than A.
    pub bound: Bound,
}

/// What a limit is on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// A quantile, in percent.
    Quantile(f64),
    /// The largest value.
    Max,
    /// The lost share of the elapsed time.
    Lost,
}

/// How much larger than A something may be: negative when it must be smaller by that much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// As a share of A.
    Relative(f64),
    /// In nanoseconds.
    Absolute(f64),
}

/// A limit, judged for one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// The series; empty when the limit names none and none could be compared.
    pub series: String,
    /// The limit as it was written.
    pub limit: String,
    /// Recordings of A and of B that it was judged by: with one each, nothing tells how much runs of
    /// the same thing differ.
    pub runs: (usize, usize),
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The interval lies wholly within the limit.
    Held {
        /// By how much B exceeds what is allowed.
        excess: Excess,
    },
    /// The interval reaches beyond the limit and does not lie beyond it: an excess is not shown.
    NotShown {
        /// By how much B exceeds what is allowed.
        excess: Excess,
    },
    /// The interval lies wholly beyond the limit.
    Exceeded {
        /// By how much B exceeds what is allowed.
        excess: Excess,
    },
    /// Side B has no sample that could exceed it: of gaps, that is the best there can be.
    NothingToExceed {
        /// What it has none of.
        reason: String,
    },
    /// It cannot be judged.
    CannotBeJudged {
        /// Why.
        reason: String,
    },
}

/// By how much something is larger than what is allowed: 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// A time.
    Ns((f64, f64)),
    /// A share of the elapsed time.
    Share((f64, f64)),
}

impl Excess {
    fn of(measure: Measure, interval: (f64, f64)) -> Self {
        match measure {
            Measure::Quantile(_) | Measure::Max => Self::Ns(interval),
            Measure::Lost => Self::Share(interval),
        }
    }

    /// Its ends with their units.
    fn shown(self) -> String {
        let (ends, unit) = match self {
            Self::Ns((low, high)) => ((Value::Time(low), Value::Time(high)), ""),
            Self::Share((low, high)) => {
                ((Value::Ratio(low * 100.0), Value::Ratio(high * 100.0)), " points")
            }
        };
        format!("{}{unit}", interval(Some(ends)).signed())
    }
}

impl Outcome {
    /// From the interval of the excess and the smallest difference that can be seen.
    pub(crate) fn of(measure: Measure, interval: (f64, f64), resolution: f64) -> Self {
        let excess = Excess::of(measure, interval);
        match interval {
            (low, _) if low > resolution => Self::Exceeded { excess },
            (_, high) if high <= resolution => Self::Held { excess },
            _ => Self::NotShown { excess },
        }
    }

    /// In a word or two.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Held { .. } | Self::NothingToExceed { .. } => "held",
            Self::NotShown { .. } => "not shown to be exceeded",
            Self::Exceeded { .. } => "exceeded",
            Self::CannotBeJudged { .. } => "cannot be judged",
        }
    }
}

impl Judged {
    /// One sentence with its numbers, fit to print.
    #[must_use]
    pub fn sentence(&self) -> String {
        let place = match self.series.as_str() {
            "" => String::new(),
            series => format!("{}: ", Printable(series)),
        };
        let head = format!("{place}limit {} {}", Printable(&self.limit), self.outcome.word());
        match &self.outcome {
            Outcome::CannotBeJudged { reason } | Outcome::NothingToExceed { reason } => {
                format!("{head}: {}", Printable(reason))
            }
            Outcome::Held { excess }
            | Outcome::NotShown { excess }
            | Outcome::Exceeded { excess } => {
                format!(
                    "{head}: B less what is allowed is {} (95%; {} of A, {} of B)",
                    excess.shown(),
                    runs(self.runs.0),
                    self.runs.1,
                )
            }
        }
    }
}

/// So many runs, in words.
pub(crate) fn runs(number: usize) -> String {
    if number == 1 { "1 run".to_owned() } else { format!("{number} runs") }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(series) = &self.series {
            write!(f, "{series}:")?;
        }
        match self.measure {
            Measure::Quantile(percent) => write!(f, "p{percent}=")?,
            Measure::Max => f.write_str("max=")?,
            Measure::Lost => f.write_str("lost=")?,
        }
        match self.bound {
            Bound::Relative(share) => write!(f, "{:+}%", (share * 1e8).round() / 1e6),
            Bound::Absolute(ns) => {
                let sign = if ns < 0.0 { "-" } else { "+" };
                write!(f, "{sign}{}", Nanos(ns.abs().round() as u64))
            }
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    /// `[SERIES:]MEASURE=[+-]NUMBER(%|ns|us|ms|s)`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (subject, bound) = text.rsplit_once('=').ok_or_else(|| {
            format!("`{text}` is not a limit: write p99.9=+10%, max=+50us or SERIES:p99=+5%")
        })?;
        let (series, measure) = match subject.rsplit_once(':') {
            Some(("", _)) => return Err(format!("`{text}` names no series before the colon")),
            Some((series, measure)) => (Some(series.to_owned()), measure),
            None => (None, subject),
        };
        let measure = self::measure(measure)?;
        let bound = self::bound(bound)?;
        if measure == Measure::Lost && matches!(bound, Bound::Absolute(_)) {
            return Err("the lost share is limited in percent of itself: lost=+10%".to_owned());
        }
        Ok(Self { series, measure, bound })
    }
}

fn measure(text: &str) -> Result<Measure, String> {
    match text {
        "max" => return Ok(Measure::Max),
        "lost" => return Ok(Measure::Lost),
        _ => {}
    }
    let percent = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
    let known = percent.and_then(|p| PERCENTS.into_iter().find(|known| (known - p).abs() < 1e-9));
    known.map(Measure::Quantile).ok_or_else(|| {
        format!(
            "`{text}` cannot be limited: use p50, p90, p99, p99.9, p99.99, p99.999, p99.9999, max \
             or lost"
        )
    })
}

fn bound(text: &str) -> Result<Bound, String> {
    let wrong = || format!("`{text}` is not a bound: write +10%, +2us or -5%");
    let sign = match text.chars().next() {
        Some('+') => 1.0,
        Some('-') => -1.0,
        _ => return Err(format!("`{text}` has no sign: write +{text} for at most so much more")),
    };
    let rest = &text[1..];
    let split = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let (number, unit) = rest.split_at(split);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let scale = match unit {
        "%" => {
            // A limit of a million times as much is a mistake, and so is less than nothing.
            let share = sign * number / 100.0;
            return if (-1.0..=1e6).contains(&share) {
                Ok(Bound::Relative(share))
            } else {
                Err(wrong())
            };
        }
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let ns = sign * number * scale;
    if ns.abs() <= 3.6e12 { Ok(Bound::Absolute(ns)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_as_they_are_written() {
        for (text, measure, bound) in [
            ("p99.9=+10%", Measure::Quantile(99.9), Bound::Relative(0.1)),
            ("p50=+2.00us", Measure::Quantile(50.0), Bound::Absolute(2_000.0)),
            ("max=-50%", Measure::Max, Bound::Relative(-0.5)),
            ("lost=+0%", Measure::Lost, Bound::Relative(0.0)),
        ] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!((limit.measure, limit.series.as_deref()), (measure, None));
            assert_eq!((limit.bound, limit.to_string()), (bound, text.to_owned()));
        }
        let named: Limit = "gap-cpu1:p99=+5%".parse().unwrap();
        assert_eq!(named.series.as_deref(), Some("gap-cpu1"));
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in [
            "",
            "p99.9",
            "p99.9=10%",
            "p98=+10%",
            "p99=+10",
            "p99=+x%",
            "p99=+1e9%",
            "p99=-101%",
            ":p99=+1%",
            "p99=+1h",
            "lost=+5us",
            "mean=+1%",
            "p99=+nan%",
            "p99=+",
        ] {
            assert!(text.parse::<Limit>().is_err(), "{text} was taken for a limit");
        }
    }

    #[test]
    fn only_an_interval_wholly_beyond_exceeds() {
        let of = |low, high| Outcome::of(Measure::Max, (low, high), 1.0).word();
        assert_eq!(of(2.0, 9.0), "exceeded");
        assert_eq!(of(0.5, 9.0), "not shown to be exceeded");
        assert_eq!(of(-9.0, 0.5), "held");
    }
}
