//! What a figure is: its rows, how often it is taken, and what one round of it yields.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A round that takes so many times as long as it says, and no less than [`LEAST_DEADLINE`], hangs.
const DEADLINE_TIMES: f64 = 5.0;
/// See [`Figure::deadline`].
pub const LEAST_DEADLINE: Duration = Duration::from_secs(180);

/// One experiment. A figure has a file of its own in `figures/`, and SPECIFICATION.md calls it
/// `figure:NAME`.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Name, in the words of a file name: `wake_beside_cyclictest`.
    pub name: &'static str,
    /// How it is taken, in one sentence.
    pub method: &'static str,
    /// What it is held against: one claim a row.
    pub rows: &'static [Row],
    /// Rounds, decided beforehand. Fewer than six give a [`Reading::Value`] no interval.
    pub rounds: usize,
    /// About how long a round takes.
    pub seconds: f64,
    /// A round of whose CPU time, over all CPUs, the hypervisor and other processes took more than this is
    /// left out. None: whatever they take belongs to the figure, or is judged by the round itself.
    pub most_taken: Option<f64>,
    /// What it takes to be measured here, asked for once at each start; the error is the reason why it is
    /// not.
    pub needs: fn() -> Result<(), String>,
    /// One round: a reading for each row, in their order, or why this round is left out. A round that
    /// panics has failed, and with it the figure. Each has a process of its own.
    pub round: fn(Round) -> Result<Vec<Reading>, String>,
}

impl Figure {
    /// When a round of it hangs.
    #[must_use]
    pub fn deadline(&self, least: Duration) -> Duration {
        least.max(Duration::from_secs_f64(DEADLINE_TIMES * self.seconds))
    }
}

/// One claim.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// What is claimed, as a short noun phrase: `p99 over cyclictest's`.
    pub claim: &'static str,
    /// Unit of its readings: `ratio`, `share`, `ns`, `rounds`.
    pub unit: &'static str,
    /// What is promised of it.
    pub bound: Bound,
}

/// What is promised of a row. Limits belong to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
    /// Between these.
    Within(f64, f64),
    /// Of [`Reading::Share`]: all of all, in every round.
    Always,
    /// Nothing: it is told, and nobody claims it.
    Told,
}

/// Which round is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// From 0. Odd rounds may take the two sides of a comparison in the other order.
    pub number: usize,
}

/// What one round yields for a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// A number; of those of all rounds the median counts.
    Value(f64),
    /// Ours between two readings of the peer: what counts is ours over the peer, and the peer over itself
    /// is the control.
    Beside {
        /// The peer before.
        peer: f64,
        /// Ours.
        ours: f64,
        /// The peer again.
        again: f64,
    },
    /// So many of so many; those of all rounds are added up.
    Share {
        /// As it should be.
        hits: u64,
        /// All.
        of: u64,
    },
    /// This row has none in this round, and why.
    Absent(String),
}

impl Reading {
    /// A round that is as it should be, or is not.
    #[must_use]
    pub fn held(held: bool) -> Self {
        Self::Share { hits: u64::from(held), of: 1 }
    }

    /// What is wrong with it: nothing can be said of what is no number, and leaving it out would say
    /// something.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let is_time = |value: &f64| value.is_finite() && *value >= 0.0;
        match self {
            Self::Value(value) if !value.is_finite() => Some(format!("{value} is no number")),
            Self::Beside { peer, ours, again } if ![peer, ours, again].into_iter().all(is_time) => {
                Some(format!("{ours} between {peer} and {again} are no numbers to compare"))
            }
            Self::Share { hits, of } if hits > of => Some(format!("{hits} of {of}")),
            _ => None,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(limit) => write!(f, "at least {limit}"),
            Self::AtMost(limit) => write!(f, "at most {limit}"),
            Self::Within(least, most) => write!(f, "{least} to {most}"),
            Self::Always => f.write_str("always"),
            Self::Told => f.write_str("no claim"),
        }
    }
}

/// For a figure that needs nothing in particular.
pub fn anywhere() -> Result<(), String> {
    Ok(())
}
