//! How frames are held back: for how long, and which of them are lost, doubled or let past others.
//!
//! Words make a delay: `10us`, `uniform:5us..15us`, `normal:10us,1us`, `exponential:10us,5us` (a base and
//! the mean of what comes on top), `schedule:FILE` with a line `SINCE DELAY` for each step.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use whylate_model::{Nanos, Printable};

use crate::schedule::Rate;

/// The longest delay: what takes longer is not looked at in nanoseconds.
pub const LONGEST_DELAY: Nanos = Nanos(10 * Nanos::SECOND.0);
/// How long a frame waits for a limited rate at most, where nothing else is said: what keeps more
/// waiting hides the limit.
pub const BACKLOG: Nanos = Nanos(10_000_000);
/// Standard deviations above the mean at which a normal delay is cut: one draw in 10^9.
const MOST_DEVIATIONS: f64 = 6.0;
/// Means above the base at which an exponential delay is cut: one draw in 10^9.
const MOST_MEANS: f64 = 20.8;
/// Steps of a schedule, and bytes of its file.
const MOST_STEPS: usize = 1 << 16;
const MOST_BYTES: u64 = 4 << 20;

/// For how long.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// Each for the same time.
    Constant(Nanos),
    /// Every time from `low` to `high` is as likely.
    Uniform {
        /// The shortest.
        low: Nanos,
        /// The longest.
        high: Nanos,
    },
    /// Normal, cut at 0 and 6 standard deviations above the mean.
    Normal {
        /// The mean.
        mean: Nanos,
        /// The standard deviation.
        sd: Nanos,
    },
    /// A base and an exponential time on top, cut at 20.8 means.
    Exponential {
        /// The shortest.
        base: Nanos,
        /// The mean of what comes on top.
        mean: Nanos,
    },
    /// From so long after the setting on so long, in rising order. Before the first step as that step.
    Schedule(Vec<(Nanos, Nanos)>),
}

/// A rate that is not exceeded: each frame occupies the way out for as long as it takes at that rate,
/// and the delay begins behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Packets a second, or bits a second at L1 or L2.
    pub rate: Rate,
    /// A frame that would have to wait longer for those before it is dropped and counted.
    pub backlog: Nanos,
}

impl From<Rate> for Limit {
    fn from(rate: Rate) -> Self {
        Self { rate, backlog: BACKLOG }
    }
}

/// How frames of one direction are held back.
#[derive(Debug, Clone, PartialEq)]
pub struct Law {
    /// For how long.
    pub delay: Amount,
    /// Share of them that is lost, 0 to 1.
    pub loss: f64,
    /// Share of the others that is sent twice.
    pub duplicate: f64,
    /// Share of the others that is let past those that wait when it comes; where none waits, it is held
    /// back as any other.
    pub reorder: f64,
    /// A rate that is not exceeded.
    pub rate: Option<Limit>,
    /// For what is random. The same seed, in the same direction, makes the same frames suffer.
    pub seed: u64,
}

impl Default for Law {
    /// No delay, and nothing happens to frames.
    fn default() -> Self {
        Self::constant(Nanos(0))
    }
}

/// Why a law cannot be kept.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LawError {
    /// Words that are no delay.
    #[error(
        "`{0}` is not a delay: write it as 10us, uniform:5us..15us, normal:10us,1us, \
         exponential:10us,5us or schedule:FILE"
    )]
    NotADelay(String),
    /// The longest is shorter than the shortest.
    #[error("a delay from {low} to {high}: the first must be the shorter one")]
    Backwards {
        /// The shortest.
        low: Nanos,
        /// The longest.
        high: Nanos,
    },
    /// Too long for this.
    #[error("a delay of up to {0} is longer than the {LONGEST_DELAY} that a delay line may take")]
    TooLong(Nanos),
    /// No share.
    #[error("a share of {what} of {value} is outside 0 to 1 (0 % to 100 %): choose one inside")]
    Share {
        /// Of what.
        what: &'static str,
        /// What was asked for.
        value: f64,
    },
    /// A rate that lets nothing through.
    #[error("a limit of {rate}, with {backlog} to wait for it, is none: both must be above 0")]
    Limit {
        /// The rate.
        rate: String,
        /// How long to wait.
        backlog: Nanos,
    },
    /// A schedule that cannot be read.
    #[error("cannot read the schedule `{file}`: {why}")]
    File {
        /// Its name.
        file: String,
        /// Why.
        why: String,
    },
    /// A line of a schedule that is none.
    #[error(
        "line {line} of the schedule: {why}; a line is SINCE DELAY, as `1.5s 20us`, in rising order"
    )]
    Step {
        /// Which, from 1.
        line: usize,
        /// Why.
        why: String,
    },
}

impl Amount {
    /// The longest delay that it gives.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        let times = |of: Nanos, times: f64| Nanos((of.0 as f64 * times).round() as u64);
        let sum = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform { high, .. } => *high,
            Self::Normal { mean, sd } => sum(*mean, times(*sd, MOST_DEVIATIONS)),
            Self::Exponential { base, mean } => sum(*base, times(*mean, MOST_MEANS)),
            Self::Schedule(steps) => {
                steps.iter().map(|(_, delay)| *delay).max().unwrap_or_default()
            }
        }
    }

    /// Is it the same for every frame?
    #[must_use]
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// A schedule from its text: a line `SINCE DELAY` for each step, in rising order; blank lines and what
    /// follows a `#` say nothing.
    ///
    /// # Errors
    /// A line that is none, or no step at all.
    pub fn schedule(text: &str) -> Result<Self, LawError> {
        let mut steps: Vec<(Nanos, Nanos)> = Vec::new();
        for (line, written) in (1..).zip(text.lines()) {
            let refused = |why: String| LawError::Step { line, why };
            let words = written.split('#').next().unwrap_or_default();
            let mut words = words.split_ascii_whitespace();
            let Some(since) = words.next() else { continue };
            let (Some(delay), None) = (words.next(), words.next()) else {
                return Err(refused("it has not two words".to_owned()));
            };
            let read = |word: &str| match word {
                "0" => Ok(Nanos(0)),
                word => word.parse::<Nanos>().map_err(|why| refused(why.to_string())),
            };
            let (since, delay) = (read(since)?, read(delay)?);
            if steps.last().is_some_and(|(last, _)| *last >= since) {
                return Err(refused(format!("{since} is not after the step before it")));
            }
            if steps.len() == MOST_STEPS {
                return Err(refused(format!("more than {MOST_STEPS} steps")));
            }
            steps.push((since, delay));
        }
        if steps.is_empty() {
            let (line, why) = (1, "there is no step".to_owned());
            return Err(LawError::Step { line, why });
        }
        Ok(Self::Schedule(steps))
    }

    fn check(&self) -> Result<(), LawError> {
        if let Self::Uniform { low, high } = *self
            && low > high
        {
            return Err(LawError::Backwards { low, high });
        }
        let longest = self.longest();
        if longest > LONGEST_DELAY {
            return Err(LawError::TooLong(longest));
        }
        Ok(())
    }
}

impl FromStr for Amount {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let none =
            || LawError::NotADelay(text.chars().take(60).flat_map(char::escape_default).collect());
        let time = |word: &str| word.parse::<Nanos>().map_err(|_| none());
        let two = |words: &str, between: &str| {
            let (first, second) = words.split_once(between).ok_or_else(none)?;
            Ok((time(first)?, time(second)?))
        };
        let amount = match text.split_once(':') {
            None => Self::Constant(time(text)?),
            Some(("uniform", words)) => {
                let (low, high) = two(words, "..")?;
                Self::Uniform { low, high }
            }
            Some(("normal", words)) => {
                let (mean, sd) = two(words, ",")?;
                Self::Normal { mean, sd }
            }
            Some(("exponential", words)) => {
                let (base, mean) = two(words, ",")?;
                Self::Exponential { base, mean }
            }
            Some(("schedule", file)) => Self::schedule(&read(Path::new(file))?)?,
            Some(_) => return Err(none()),
        };
        amount.check()?;
        Ok(amount)
    }
}

/// The text of a schedule's file, which is not trusted to be small, nor to be one: a pipe would never end
/// to be opened, and a device never ends to be read.
fn read(path: &Path) -> Result<String, LawError> {
    let refused = |why: String| {
        let file = Printable(&path.display().to_string()).to_string();
        LawError::File { file, why }
    };
    let facts = std::fs::metadata(path).map_err(|why| refused(why.to_string()))?;
    if !facts.is_file() {
        return Err(refused("it is no plain file".to_owned()));
    }
    let file = File::open(path).map_err(|why| refused(why.to_string()))?;
    let mut text = String::new();
    let took = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    took.map_err(|why| refused(why.to_string()))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(refused(format!("it has more than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(text)
}

/// A duration as it is read back, in the largest unit without a fraction.
struct Exact(Nanos);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.0;
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        match units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit)) {
            Some((unit, word)) => write!(f, "{}{word}", ns / unit),
            None => write!(f, "{ns}ns"),
        }
    }
}

impl fmt::Display for Amount {
    /// As it is read back, but for a schedule, which says its size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(delay) => Exact(*delay).fmt(f),
            Self::Uniform { low, high } => write!(f, "uniform:{}..{}", Exact(*low), Exact(*high)),
            Self::Normal { mean, sd } => write!(f, "normal:{},{}", Exact(*mean), Exact(*sd)),
            Self::Exponential { base, mean } => {
                write!(f, "exponential:{},{}", Exact(*base), Exact(*mean))
            }
            Self::Schedule(steps) => {
                let shortest = steps.iter().map(|(_, delay)| *delay).min().unwrap_or_default();
                let (count, longest) = (steps.len(), self.longest());
                write!(f, "a schedule of {count}, {} to {}", Exact(shortest), Exact(longest))
            }
        }
    }
}

impl Law {
    /// A constant delay, and nothing else happens to frames.
    #[must_use]
    pub fn constant(delay: Nanos) -> Self {
        Self {
            delay: Amount::Constant(delay),
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            rate: None,
            seed: 0,
        }
    }

    /// How long a frame may be held back at most: the delay, and the wait for a limited rate.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        let backlog = self.rate.map_or(0, |limit| limit.backlog.0);
        Nanos(self.delay.longest().0.saturating_add(backlog))
    }

    /// Can it be kept?
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), LawError> {
        self.delay.check()?;
        for (what, value) in
            [("losses", self.loss), ("duplicates", self.duplicate), ("reordered", self.reorder)]
        {
            if !(0.0..=1.0).contains(&value) {
                return Err(LawError::Share { what, value });
            }
        }
        if let Some(Limit { rate, backlog }) = self.rate {
            // A frame a day is not looked at here.
            let slowest = 1e9 / LONGEST_DELAY.0 as f64;
            let fast = rate.per_second(MOST_FRAME);
            if fast.is_nan() || fast < slowest || backlog.0 == 0 {
                return Err(LawError::Limit { rate: rate.to_string(), backlog });
            }
        }
        let longest = self.longest();
        if longest > LONGEST_DELAY { Err(LawError::TooLong(longest)) } else { Ok(()) }
    }
}

/// Bytes of a usual frame that is full, by which a slow rate is judged.
const MOST_FRAME: u32 = 1_518;

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.delay.fmt(f)?;
        for (word, share) in
            [("loss", self.loss), ("duplicates", self.duplicate), ("reordering", self.reorder)]
        {
            if share > 0.0 {
                // As it was written, not as a binary fraction of it.
                write!(f, ", {word} {} %", (share * 1e8).round() / 1e6)?;
            }
        }
        match self.rate {
            Some(limit) => write!(f, ", at most {}", limit.rate),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Nanos {
        text.parse().unwrap()
    }

    #[test]
    fn delays_are_read_as_they_are_shown() {
        let (a, b) = (nanos("5us"), nanos("15us"));
        for (text, amount, longest) in [
            ("10us", Amount::Constant(nanos("10us")), "10us"),
            ("0ns", Amount::Constant(Nanos(0)), "0ns"),
            ("1234567ns", Amount::Constant(Nanos(1_234_567)), "1234567ns"),
            ("uniform:5us..15us", Amount::Uniform { low: a, high: b }, "15us"),
            ("normal:15us,5us", Amount::Normal { mean: b, sd: a }, "45us"),
            ("exponential:5us,15us", Amount::Exponential { base: a, mean: b }, "317us"),
        ] {
            let read: Amount = text.parse().unwrap();
            assert_eq!(
                (&read, read.to_string(), read.longest()),
                (&amount, text.to_owned(), nanos(longest))
            );
        }
        for wrong in
            ["", "10", "10 us", "uniform:5us", "uniform:5us,6us", "normal:5us", "pareto:1us,2us"]
        {
            let error = wrong.parse::<Amount>().unwrap_err();
            assert!(matches!(error, LawError::NotADelay(_)), "{wrong}: {error}");
        }
        let backwards = "uniform:15us..5us".parse::<Amount>().unwrap_err().to_string();
        assert!(backwards.contains("15.0us to 5.00us"), "{backwards}");
        let long = "11s".parse::<Amount>().unwrap_err().to_string();
        assert!(long.contains("11.0s") && long.contains("10.0s"), "{long}");
        assert!(
            "schedule:/nowhere/at/all"
                .parse::<Amount>()
                .unwrap_err()
                .to_string()
                .contains("/nowhere")
        );
    }

    #[test]
    fn a_schedule_is_read_line_by_line_and_a_line_that_is_none_is_named() {
        let text = "# a step\n0 10us\n\n1.5s 20us # up\n2s 0\n";
        let read = Amount::schedule(text).unwrap();
        let steps = [("0ns", "10us"), ("1.5s", "20us"), ("2s", "0ns")];
        let steps = steps.map(|(since, delay)| (nanos(since), nanos(delay)));
        assert_eq!(read, Amount::Schedule(steps.to_vec()));
        assert_eq!(read.to_string(), "a schedule of 3, 0ns to 20us");
        for (text, line) in
            [("", 1), ("0 1us\n1s", 2), ("1s 1us\n1s 2us", 2), ("0 x", 1), ("0 1us 2us", 1)]
        {
            let error = Amount::schedule(text).unwrap_err();
            assert!(
                matches!(error, LawError::Step { line: at, .. } if at == line),
                "{text}: {error}"
            );
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("steps");
        std::fs::write(&file, text).unwrap();
        assert_eq!(format!("schedule:{}", file.display()).parse(), Ok(read));
    }

    #[test]
    fn a_law_that_cannot_be_kept_is_refused_with_its_reason() {
        let law = Law { loss: 0.01, reorder: 0.5, ..Law::constant(nanos("10us")) };
        let rate: Rate = "1Gbit/s".parse().unwrap();
        let law = Law { rate: Some(rate.into()), ..law };
        assert_eq!(law.check(), Ok(()));
        let told = "10us, loss 1 %, reordering 50 %, at most 1 Gbit/s at L1";
        assert_eq!((law.to_string(), law.longest()), (told.to_owned(), nanos("10010us")));
        for wrong in [
            Law { loss: 1.5, ..law.clone() },
            Law { duplicate: -0.1, ..law.clone() },
            Law { reorder: f64::NAN, ..law.clone() },
            Law { rate: Some(Limit { rate, backlog: Nanos(0) }), ..law.clone() },
            Law { rate: Some(Rate::Packets(0.01).into()), ..law.clone() },
            Law { rate: Some(Limit { rate, backlog: nanos("10s") }), ..law.clone() },
            Law::constant(nanos("10001ms")),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
