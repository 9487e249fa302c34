//! How much CPU time a job asks for: always the same, drawn from a distribution, or from a table.
//!
//! `3ms`, `uniform(2ms,4ms)`, `normal(3ms,0.2ms)`, `lognormal(3ms,0.25)`, `bimodal(2ms,9ms,5%)`,
//! `table(frames.txt)`, `table(frames.txt,12ns)`. Distributions are for the models that the paper
//! wished for (Hourglass, 3.2); a table replays a video decoder frame by frame.
//!
//! No job asks for nothing, and none for more than [`Demand::ceiling`]: the normal and the
//! log-normal distribution are cut at [`WIDEST`] standard deviations (of the logarithm for the
//! log-normal) on both sides, 1 in 15 787 of what they would have drawn, and [`Demand::mean`] and
//! [`Demand::quantile`] are those of what is left. Does not read files: a table's text comes from
//! whoever calls.

use std::fmt;
use std::sync::Arc;

use whylate_model::{Nanos, Printable};
use whylate_stats::rng::Rng;

use crate::call::{Call, CallError};
use crate::normal;
use crate::words::Exact;

/// Standard deviations after which normal and log-normal demands are cut.
pub const WIDEST: f64 = 4.0;
/// The widest log-normal: the largest demand is 3 000 medians.
const WIDEST_SIGMA: f64 = 2.0;
/// An hour: no job is longer, and a distribution that reaches further was mistyped.
const LONGEST: Nanos = Nanos(3_600_000_000_000);
/// A day of frames at 60 Hz needs five times as many; they take 8 MB.
const MOST_ROWS: usize = 1_000_000;

/// Where the text of a table comes from: its name as written, or why it cannot be had.
pub type Tables<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// No tables: for where none can be meant.
pub fn no_tables(_: &str) -> Result<String, String> {
    Err("tables cannot be read here: write a time or a distribution".to_owned())
}

/// The execution time of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// The same for each job.
    Fixed(Nanos),
    /// Each between two times, both included.
    Uniform {
        /// Least.
        low: Nanos,
        /// Most.
        high: Nanos,
    },
    /// Normal, cut at [`WIDEST`] standard deviations.
    Normal {
        /// Mean.
        mean: Nanos,
        /// Standard deviation, at most a quarter of the mean.
        sd: Nanos,
    },
    /// Log-normal, cut at [`WIDEST`] standard deviations of the logarithm.
    LogNormal {
        /// Half of the jobs ask for less.
        median: Nanos,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// One of two.
    Bimodal {
        /// Of most jobs.
        short: Nanos,
        /// Of the others.
        long: Nanos,
        /// How many jobs are long, percent.
        long_percent: f64,
    },
    /// The rows of a table, one after the other, and from the beginning again.
    Table(Table),
}

/// Execution times that were written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name, as written.
    pub name: String,
    /// What a plain number of the table is multiplied by, ns; none where the rows are times.
    pub factor_ns: Option<f64>,
    /// The times, in the table's order.
    pub values: Arc<[Nanos]>,
}

/// Why a text is no execution time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DemandError {
    /// Not of the grammar, or an argument is missing or wrong.
    #[error(transparent)]
    Call(#[from] CallError),
    /// No such distribution.
    #[error(
        "`{0}` is no execution time: write a time such as 3ms, or uniform(2ms,4ms), \
         normal(3ms,0.2ms), lognormal(3ms,0.25), bimodal(2ms,9ms,5%) or table(FILE)"
    )]
    Unknown(String),
    /// The least is above the most.
    #[error("`{0}` ends below its beginning: write the smaller time first")]
    Reversed(String),
    /// Longer than any job.
    #[error("`{call}` reaches {largest}, and a job takes at most an hour: write less")]
    TooLong {
        /// As written.
        call: String,
        /// The largest it would draw.
        largest: Nanos,
    },
    /// The table's text cannot be had.
    #[error("cannot read the table `{name}`: {reason}")]
    NoTable {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Nothing is in the table.
    #[error("the table `{0}` has no rows: write one execution time a line")]
    EmptyTable(String),
    /// More than is taken.
    #[error("the table `{0}` has more than {MOST_ROWS} rows: shorten it, it is repeated anyway")]
    TooManyRows(String),
    /// A row is no time.
    #[error("line {line} of the table `{name}`: {}", Printable(reason))]
    Row {
        /// Its name.
        name: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

const UNIFORM: &str = "uniform(<low>,<high>)";
const NORMAL: &str = "normal(<mean>,<standard deviation>)";
const LOGNORMAL: &str = "lognormal(<median>,<sigma>)";
const BIMODAL: &str = "bimodal(<short>,<long>,<share of long>%)";
const TABLE: &str = "table(<file>[,<time of one unit>])";

impl Demand {
    /// Reads an execution time; the text of a table comes from `tables`.
    pub fn parse(text: &str, tables: Tables<'_>) -> Result<Self, DemandError> {
        let call = Call::parse(text)?;
        let demand = match call.name.to_ascii_lowercase().as_str() {
            "uniform" => Self::uniform(&call)?,
            "normal" => Self::normal(&call)?,
            "lognormal" => Self::log_normal(&call)?,
            "bimodal" => Self::bimodal(&call)?,
            "table" => Self::Table(Table::parse(&call, tables)?),
            name if name.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-') => {
                call.takes(0, "3ms")?;
                let amount = Call { name: "time".to_owned(), arguments: vec![call.name.clone()] };
                Self::Fixed(amount.time(0, "execution time", "3ms").map_err(
                    |error| match error {
                        CallError::Argument { what, reason, .. } => {
                            CallError::Argument { call: text.trim().to_owned(), what, reason }
                        }
                        other => other,
                    },
                )?)
            }
            _ => return Err(DemandError::Unknown(text.trim().to_owned())),
        };
        match demand.ceiling() {
            largest if largest > LONGEST => {
                Err(DemandError::TooLong { call: call.to_string(), largest })
            }
            _ => Ok(demand),
        }
    }

    fn uniform(call: &Call) -> Result<Self, DemandError> {
        call.takes(2, UNIFORM)?;
        let low = call.time(0, "low", UNIFORM)?;
        let high = call.time(1, "high", UNIFORM)?;
        if low > high {
            return Err(DemandError::Reversed(call.to_string()));
        }
        Ok(Self::Uniform { low, high })
    }

    fn normal(call: &Call) -> Result<Self, DemandError> {
        call.takes(2, NORMAL)?;
        let mean = call.time(0, "mean", NORMAL)?;
        let sd = call.time(1, "standard deviation", NORMAL)?;
        if sd.0 as f64 * WIDEST > mean.0 as f64 {
            let reason = format!(
                "{} is more than a quarter of the mean, and jobs would ask for less than nothing: \
                 write lognormal(<median>,<sigma>)",
                Exact(sd)
            );
            return Err(call.refused("standard deviation", reason).into());
        }
        Ok(Self::Normal { mean, sd })
    }

    fn log_normal(call: &Call) -> Result<Self, DemandError> {
        call.takes(2, LOGNORMAL)?;
        let median = call.time(0, "median", LOGNORMAL)?;
        let text = call.argument(1, "sigma", LOGNORMAL)?;
        match text.parse::<f64>() {
            Ok(sigma) if sigma > 0.0 && sigma <= WIDEST_SIGMA => {
                Ok(Self::LogNormal { median, sigma })
            }
            _ => {
                let reason = format!(
                    "`{text}` is not a number above 0 and up to {WIDEST_SIGMA}: 0.25 spreads the \
                     jobs by about a quarter"
                );
                Err(call.refused("sigma", reason).into())
            }
        }
    }

    fn bimodal(call: &Call) -> Result<Self, DemandError> {
        call.takes(3, BIMODAL)?;
        let short = call.time(0, "short time", BIMODAL)?;
        let long = call.time(1, "long time", BIMODAL)?;
        let text = call.argument(2, "share", BIMODAL)?;
        let Some(Ok(long_percent)) = text.strip_suffix('%').map(str::parse::<f64>) else {
            let reason = format!("`{text}` is no share: write it in percent, such as 5%");
            return Err(call.refused("share", reason).into());
        };
        if !(0.0..=100.0).contains(&long_percent) {
            let reason = format!("{text} is outside 0% to 100%");
            return Err(call.refused("share", reason).into());
        }
        if short > long {
            return Err(DemandError::Reversed(call.to_string()));
        }
        Ok(Self::Bimodal { short, long, long_percent })
    }

    /// The worst case, where the distribution has one; none for the normal and the log-normal.
    ///
    /// An analysis that needs a number takes [`Self::ceiling`] for those and says so: what the
    /// thread model draws never exceeds it, what it stands for might.
    #[must_use]
    pub fn worst(&self) -> Option<Nanos> {
        let unbounded = matches!(self, Self::Normal { .. } | Self::LogNormal { .. });
        (!unbounded).then(|| self.ceiling())
    }

    /// The longest that is ever drawn.
    #[must_use]
    pub fn ceiling(&self) -> Nanos {
        match self {
            Self::Bimodal { short, long_percent: 0.0, .. } => *short,
            _ => self.quantile(1.0),
        }
    }

    /// Mean of what is drawn, ns.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(time) => time.0 as f64,
            Self::Uniform { low, high } => f64::midpoint(low.0 as f64, high.0 as f64),
            Self::Normal { mean, .. } => mean.0 as f64,
            Self::LogNormal { median, sigma } => {
                let inside = normal::below(WIDEST - sigma) - normal::below(-WIDEST - sigma);
                let whole = 1.0 - 2.0 * normal::below(-WIDEST);
                median.0 as f64 * (sigma * sigma / 2.0).exp() * inside / whole
            }
            Self::Bimodal { short, long, long_percent } => {
                let share = long_percent / 100.0;
                (1.0 - share) * short.0 as f64 + share * long.0 as f64
            }
            Self::Table(table) => {
                let sum: f64 = table.values.iter().map(|value| value.0 as f64).sum();
                sum / table.values.len().max(1) as f64
            }
        }
    }

    /// What a share `p` of the jobs does not exceed; `p` is clamped to 0..=1.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Nanos {
        let p = p.clamp(0.0, 1.0);
        match self {
            Self::Fixed(time) => *time,
            Self::Uniform { low, high } => {
                Nanos(low.0 + ((high.0 - low.0) as f64 * p).round() as u64)
            }
            Self::Normal { mean, sd } => time(mean.0 as f64 + cut_normal(p) * sd.0 as f64),
            Self::LogNormal { median, sigma } => {
                time(median.0 as f64 * (cut_normal(p) * sigma).exp())
            }
            Self::Bimodal { short, long, long_percent } => {
                if p <= 1.0 - long_percent / 100.0 {
                    *short
                } else {
                    *long
                }
            }
            Self::Table(table) => {
                let mut values = table.values.to_vec();
                values.sort_unstable();
                let rank = (p * values.len() as f64).ceil() as usize;
                values.get(rank.saturating_sub(1)).copied().unwrap_or_default()
            }
        }
    }

    /// What the jobs of a run ask for, one after the other; one seed, one sequence.
    #[must_use]
    pub fn sampler(&self, seed: u64) -> Sampler {
        Sampler { demand: self.clone(), rng: Rng::new(seed), row: 0 }
    }
}

/// Draws execution times; allocates nothing after it was made.
#[derive(Debug, Clone)]
pub struct Sampler {
    demand: Demand,
    rng: Rng,
    row: usize,
}

impl Sampler {
    /// What the next job asks for: never 0, never above [`Demand::ceiling`].
    pub fn draw(&mut self) -> Nanos {
        match &self.demand {
            Demand::Fixed(time) => *time,
            Demand::Uniform { low, high } => Nanos(low.0 + self.rng.below(high.0 - low.0 + 1)),
            Demand::Table(table) => {
                let value = table.values.get(self.row).copied().unwrap_or_default();
                self.row = (self.row + 1) % table.values.len().max(1);
                value
            }
            // The unit interval is half open: 1 - u reaches 1 and not 0.
            drawn => drawn.quantile(1.0 - self.rng.unit()),
        }
    }
}

/// The `p`-quantile of a standard normal distribution that is cut at [`WIDEST`] on both sides.
fn cut_normal(p: f64) -> f64 {
    /// What the cut takes away on each side: the standard normal distribution below -4.
    const TAIL: f64 = 3.167_124_183_311_992e-5;
    normal::quantile(TAIL + p * (1.0 - 2.0 * TAIL)).clamp(-WIDEST, WIDEST)
}

/// A computed time, at least 1 ns.
fn time(ns: f64) -> Nanos {
    Nanos((ns.round() as u64).max(1))
}

impl Table {
    fn parse(call: &Call, tables: Tables<'_>) -> Result<Self, DemandError> {
        call.takes(2, TABLE)?;
        let name = call.argument(0, "file", TABLE)?.to_owned();
        let factor_ns = match call.arguments.get(1) {
            None => None,
            Some(text) => Some(factor(text).ok_or_else(|| {
                let reason = format!("`{text}` is no time above zero: write it as 12ns or 0.5ns");
                call.refused("time of one unit", reason)
            })?),
        };
        let no_table = |reason| DemandError::NoTable { name: name.clone(), reason };
        let text = tables(&name).map_err(no_table)?;
        let mut values = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let row = line.split('#').next().unwrap_or_default().trim();
            if row.is_empty() {
                continue;
            }
            if values.len() == MOST_ROWS {
                return Err(DemandError::TooManyRows(name));
            }
            values.push(value(row, factor_ns).map_err(|reason| DemandError::Row {
                name: name.clone(),
                line: index + 1,
                reason,
            })?);
        }
        if values.is_empty() {
            return Err(DemandError::EmptyTable(name));
        }
        Ok(Self { name, factor_ns, values: values.into() })
    }
}

/// One row: a time, or a number of something that takes `factor_ns` each.
fn value(row: &str, factor_ns: Option<f64>) -> Result<Nanos, String> {
    /// A row is a number and a unit: what is longer is another kind of file, and is not repeated.
    const LONGEST_ROW: usize = 40;
    if row.len() > LONGEST_ROW {
        return Err(format!("{} characters are no number: write one value a line", row.len()));
    }
    let time = match factor_ns {
        None => row.parse::<Nanos>().map_err(|error| error.to_string())?,
        Some(factor) => match row.parse::<f64>() {
            Ok(number) if number.is_finite() => Nanos((number * factor).round() as u64),
            _ => {
                return Err(format!(
                    "`{row}` is no plain number, as it must be where the table has a time of one \
                     unit"
                ));
            }
        },
    };
    if time == Nanos(0) {
        return Err(format!("`{row}` asks for no time at all"));
    }
    Ok(time)
}

/// The time that one unit of a table takes, ns, with fractions; none when it is no time.
fn factor(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = number.parse::<f64>().ok()? * scale;
    (ns.is_finite() && ns > 0.0).then_some(ns)
}

impl fmt::Display for Demand {
    /// As it is written, without rounding.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => Exact(*time).fmt(f),
            Self::Uniform { low, high } => write!(f, "uniform({},{})", Exact(*low), Exact(*high)),
            Self::Normal { mean, sd } => write!(f, "normal({},{})", Exact(*mean), Exact(*sd)),
            Self::LogNormal { median, sigma } => {
                write!(f, "lognormal({},{sigma})", Exact(*median))
            }
            Self::Bimodal { short, long, long_percent } => {
                write!(f, "bimodal({},{},{long_percent}%)", Exact(*short), Exact(*long))
            }
            Self::Table(Table { name, factor_ns: Some(ns), .. }) => {
                write!(f, "table({name},{ns}ns)")
            }
            Self::Table(table) => write!(f, "table({})", table.name),
        }
    }
}

#[cfg(test)]
mod tests;
