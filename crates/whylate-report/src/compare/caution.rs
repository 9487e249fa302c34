//! What the reader of a comparison must know, each with advice.

use std::fmt;

use serde::{Deserialize, Serialize};
use whylate_model::Printable;
use whylate_model::difference::HOST_NAME;
use whylate_model::trust::Level;

use super::Side;
use crate::numbers::time;

/// So many reasons of a side are named.
const MOST_REASONS: usize = 3;

/// A caution. One arm per fact; [`Caution::advice`] says what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "caution")]
pub enum Caution {
    /// The sides ran on different kinds of processors.
    OtherArchitecture {
        /// Of A.
        before: String,
        /// Of B.
        after: String,
    },
    /// A series of each side measures the same thing under another name, and nothing pairs them.
    OtherNames {
        /// In A.
        before: String,
        /// In B.
        after: String,
    },
    /// Different versions of the tool recorded the sides.
    OtherVersion {
        /// Of A.
        before: String,
        /// Of B.
        after: String,
    },
    /// Trust in a run is poor.
    NotTrustworthy {
        /// Its directory.
        directory: String,
        /// Why.
        reasons: Vec<String>,
    },
    /// Runs of a side are trusted only so far.
    Limited {
        /// Which side.
        side: Side,
        /// How many of its runs.
        runs: usize,
        /// Of how many.
        of: usize,
        /// Why, each kind of reason once, as the first of them says it.
        reasons: Vec<String>,
    },
    /// A run did not end by itself.
    Unfinished {
        /// Its directory.
        directory: String,
    },
    /// The runs of one side were made on hosts that differ.
    MixedSide {
        /// Which side.
        side: Side,
        /// In what.
        fields: Vec<String>,
    },
    /// A side has few intervals of time.
    FewIntervals {
        /// The series.
        series: String,
        /// How many the side with fewer has.
        intervals: usize,
    },
    /// The measuring times of the sides differ: the maximum grows with them.
    OtherDuration {
        /// The series.
        series: String,
        /// Of A, in seconds.
        before_s: f64,
        /// Of B, in seconds.
        after_s: f64,
    },
    /// The histogram log holds less than the run counted.
    Incomplete {
        /// The directory.
        directory: String,
        /// The series.
        series: String,
        /// Samples in the log.
        have: u64,
        /// Samples counted.
        counted: u64,
    },
    /// One run on each side: nothing tells how much runs of the same thing differ.
    OneRunEach,
    /// Few runs on a side: only large differences can be shown.
    FewRuns {
        /// Of A.
        before: usize,
        /// Of B.
        after: usize,
    },
    /// Both sides hold the same recording.
    SameRecording {
        /// Its directory in A.
        before: String,
        /// Its directory in B.
        after: String,
    },
    /// Percentiles beyond what the calibration of the backend lets be trusted were measured, and no
    /// verdict is claimed of them.
    BeyondTrust {
        /// The series.
        series: String,
        /// Beyond this one; none where none is trusted.
        percent: Option<f64>,
    },
    /// The calibration of the backend may not hold any more.
    StaleCalibration {
        /// The series.
        series: String,
        /// What changed since.
        what: String,
    },
    /// A file could not be read to its end.
    Damaged {
        /// What the reader says.
        what: String,
    },
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherArchitecture { before, after } => {
                write!(
                    f,
                    "the architecture differs: {} and {}",
                    Printable(before),
                    Printable(after)
                )
            }
            Self::OtherNames { before, after } => write!(
                f,
                "the names differ: {0} of A and {1} of B measure the same thing, and \
                 --series {0}={1} compares them",
                Printable(before),
                Printable(after)
            ),
            Self::OtherVersion { before, after } => write!(
                f,
                "whylate {} recorded A and {} recorded B",
                Printable(before),
                Printable(after)
            ),
            Self::NotTrustworthy { directory, reasons } => {
                write!(f, "trust in `{}` is poor", Printable(directory))?;
                listed(f, reasons)
            }
            Self::Limited { side, runs, of, reasons } => {
                match of {
                    1 => write!(f, "trust in the run of side {side:?} is limited")?,
                    _ => write!(f, "trust in {runs} of {of} runs of side {side:?} is limited")?,
                }
                let (shown, more) = reasons.split_at(reasons.len().min(MOST_REASONS));
                listed(f, shown)?;
                if more.is_empty() { Ok(()) } else { write!(f, "; and {} more", more.len()) }
            }
            Self::Unfinished { directory } => {
                write!(f, "`{}` ended early", Printable(directory))
            }
            Self::MixedSide { side, fields } if *fields == [HOST_NAME] => write!(
                f,
                "the machines of side {side:?} have several names, and differ in nothing else that is known"
            ),
            Self::MixedSide { side, fields } => {
                let fields: Vec<String> =
                    fields.iter().map(|field| Printable(field).to_string()).collect();
                write!(f, "the runs of side {side:?} differ in {}", fields.join(", "))
            }
            Self::FewIntervals { series, intervals } => {
                let many = if *intervals == 1 { "interval" } else { "intervals" };
                write!(f, "{}: one side has only {intervals} {many} of time", Printable(series))
            }
            Self::OtherDuration { series, before_s, after_s } => write!(
                f,
                "{}: A was measured for {} and B for {}",
                Printable(series),
                time(*before_s * 1e9),
                time(*after_s * 1e9)
            ),
            Self::Incomplete { directory, series, have, counted } => write!(
                f,
                "`{}`: the histograms of {} hold {have} of {counted} samples",
                Printable(directory),
                Printable(series)
            ),
            Self::OneRunEach => f.write_str(
                "one run on each side: the intervals tell these two recordings apart, not A from B",
            ),
            Self::FewRuns { before, after } => write!(
                f,
                "{before} runs of A and {after} of B: how much runs differ is known from so few \
                 that only a large difference can be shown"
            ),
            Self::SameRecording { before, after } => write!(
                f,
                "`{}` and `{}` are the same recording",
                Printable(before),
                Printable(after)
            ),
            Self::BeyondTrust { series, percent: Some(percent) } => write!(
                f,
                "{}: beyond p{percent} the client's own part is not known to be small, and no verdict is \
                 claimed",
                Printable(series)
            ),
            Self::BeyondTrust { series, percent: None } => write!(
                f,
                "{}: no percentile is trusted by the calibration of the client, and no verdict is claimed",
                Printable(series)
            ),
            Self::StaleCalibration { series, what } => write!(
                f,
                "{}: the calibration of the client is stale: {}",
                Printable(series),
                Printable(what)
            ),
            Self::Damaged { what } => f.write_str(what),
        }
    }
}

/// Reasons behind what they are reasons for.
fn listed(f: &mut fmt::Formatter<'_>, reasons: &[String]) -> fmt::Result {
    let mut before = ": ";
    for reason in reasons {
        write!(f, "{before}{}", Printable(reason))?;
        before = "; ";
    }
    Ok(())
}

impl Caution {
    /// The series that it is about, where it is about one.
    pub(super) fn series(&mut self) -> Option<&mut String> {
        match self {
            Self::FewIntervals { series, .. }
            | Self::OtherDuration { series, .. }
            | Self::Incomplete { series, .. }
            | Self::BeyondTrust { series, .. }
            | Self::StaleCalibration { series, .. } => Some(series),
            _ => None,
        }
    }

    /// How far it lets the differences be used.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::NotTrustworthy { .. }
            | Self::Incomplete { .. }
            | Self::Damaged { .. }
            | Self::SameRecording { .. } => Level::Poor,
            Self::OtherArchitecture { .. }
            | Self::OtherNames { .. }
            | Self::OtherVersion { .. }
            | Self::Limited { .. }
            | Self::Unfinished { .. }
            | Self::MixedSide { .. }
            | Self::FewIntervals { .. }
            | Self::OtherDuration { .. }
            | Self::OneRunEach
            | Self::FewRuns { .. }
            | Self::BeyondTrust { .. }
            | Self::StaleCalibration { .. } => Level::Limited,
        }
    }

    /// What it means for the comparison, and what to do.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::OtherArchitecture { .. } => {
                "The difference is one of two machines, not of one change on a machine."
            }
            Self::OtherNames { .. } => {
                "Series are paired by their names: what only one side has is compared with nothing."
            }
            Self::OtherVersion { .. } => {
                "A change of the tool may be a part of the difference. Record both sides with one \
                 version."
            }
            Self::NotTrustworthy { .. } => {
                "What spoiled the run may be the difference. Record it again."
            }
            Self::Limited { .. } => {
                "What limits a run limits what its side says of the change. `whylate report` has the \
                 advice of each."
            }
            Self::Unfinished { .. } => {
                "What it holds is compared; rare events had less time to show."
            }
            Self::MixedSide { .. } => {
                "The spread between runs holds what these differences do. Record all runs of a \
                 side on one machine in one state, alternating with the other side: A B A B."
            }
            Self::FewIntervals { .. } => {
                "Samples are taken as independent where blocks of time are too few, and intervals \
                 may be too narrow. Record for longer, or several runs per side."
            }
            Self::OtherDuration { .. } => {
                "Quantiles, shares and rates can be compared; the maximum grows with the time."
            }
            Self::Incomplete { .. } => {
                "Only what the log holds is compared. Copy the directory again from where it was \
                 recorded."
            }
            Self::OneRunEach => {
                "Runs of the same thing differ, too, and nothing here says by how much. Record \
                 five runs per side or more, alternating A B A B, and name them all: \
                 `whylate compare B... --baseline A...`."
            }
            Self::FewRuns { .. } => {
                "That no difference is shown, or that a limit held, says little. Record five \
                 runs per side or more, alternating A B A B."
            }
            Self::SameRecording { .. } => "Nothing can differ between them. Name another run.",
            Self::BeyondTrust { .. } => {
                "What differs there may be the client's own. Measure with a backend that `whylate \
                 calibrate` trusts further."
            }
            Self::StaleCalibration { .. } => {
                "How far the client can be trusted on the machine as it was is not known: `whylate \
                 calibrate` again."
            }
            Self::Damaged { .. } => "What stands before the damage is compared.",
        }
    }
}
