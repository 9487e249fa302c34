//! The experiments of a paper repeated on a host: the paper's figures, this host's, and why they
//! differ.
//!
//! A directory holds `paper.json` and, beside it, the run directories of the parts.

mod distributions;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::digest::{self, Sealed};
use crate::directory::checked::not_as_recorded;
use crate::error::ModelError;
use crate::files;
use crate::host::Fingerprint;

pub use distributions::{
    Distribution, DistributionPoint, Distributions, Effect, EffectSize, EffectVerdict, Reached,
    TextTable,
};

/// Version of this format.
pub const PAPER_VERSION: u32 = 1;
/// The file in the directory.
pub const PAPER_FILE: &str = "paper.json";
/// A repetition is some hundred rows; one of this size is something else.
const PAPER_FILE_LIMIT: u64 = 16 << 20;

/// A paper, repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paper {
    /// [`PAPER_VERSION`] when it was made.
    pub format_version: u32,
    /// Version of the tool that wrote it.
    pub tool_version: String,
    /// The command line; empty in files of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_line: Vec<String>,
    /// Its name on the command line: `hourglass2002`.
    pub name: String,
    /// Who wrote it, its title, where and when.
    pub reference: String,
    /// Shortened parts.
    pub quick: bool,
    /// Random seed.
    pub seed: u64,
    /// The machine.
    pub host: Fingerprint,
    /// Its scenarios, in the paper's order.
    pub scenarios: Vec<Scenario>,
    /// Experiments of the paper that are not repeated here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_here: Vec<NotHere>,
}

/// An experiment of the paper that is not repeated here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotHere {
    /// Where it stands in the paper.
    pub place: String,
    /// What it is about.
    pub title: String,
    /// What would repeat it.
    pub would_be: String,
}

/// One section or figure of the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scenario {
    /// Where it stands in the paper: `5.3`, `Figure 3`.
    pub place: String,
    /// What it is about.
    pub title: String,
    /// What was run, as command lines of this tool that repeat it.
    pub commands: Vec<String>,
    /// The run directories of its parts, beside this file.
    pub runs: Vec<String>,
    /// Figures of the paper beside this machine's.
    pub rows: Vec<Row>,
    /// What times consist of, as stacked bars: the paper's first, where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<StackedBar>,
    /// Tables of the paper, as they are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TextTable>,
    /// Distributions, figure by figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distributions: Vec<Distributions>,
    /// What tools say of the differences between configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// What else there is to know, a sentence each: what was not done and why, what spoils it.
    pub notes: Vec<String>,
}

/// What a time consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackedBar {
    /// Whose time.
    pub label: String,
    /// Its pieces in their order, which sum to the whole.
    pub pieces: Vec<StackedPiece>,
}

/// A piece of a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackedPiece {
    /// What took it.
    pub label: String,
    /// How long, in nanoseconds.
    pub ns: f64,
}

/// One figure of the paper beside this machine's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// What it is.
    pub what: String,
    /// As the paper has it, with its unit; none where the paper gives no figure.
    pub paper: Option<String>,
    /// As it is here; none where it could not be measured, which a note says.
    pub here: Option<Here>,
    /// As it would be without what the hypervisor took; none where that is not known, or took nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_host: Option<Here>,
    /// Why they differ by what this run shows, or what to make of it.
    pub why: String,
    /// Does this machine's figure agree with the paper's? None where neither is shown, and in files of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// The row in few words; none where it has few, and in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Brief>,
}

/// How a figure of this machine stands to the paper's, or what was measured to a claim of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The 95 % intervals overlap, or the claim holds.
    Agrees,
    /// The intervals lie apart, or the claim does not hold.
    Differs,
}

/// A row in few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Brief {
    /// What it is, in 30 letters.
    pub what: String,
    /// The paper's figure, in 18 letters.
    pub paper: String,
}

/// A figure of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Here {
    /// The value, in its unit.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// 95 % interval; none where the figure has none, as a bound or a count of everything.
    pub interval: Option<(f64, f64)>,
    /// Samples behind it; none for what is computed.
    pub n: Option<u64>,
}

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// A share between 0 and 1.
    Share,
    /// A number of things.
    Count,
    /// A number of things in a second.
    PerSecond,
    /// Bits in a second.
    BitsPerSecond,
    /// A ratio of two like things.
    Ratio,
}

impl Agreement {
    /// That of a claim that holds, or does not.
    #[must_use]
    pub fn of(holds: bool) -> Self {
        if holds { Self::Agrees } else { Self::Differs }
    }
}

impl Scenario {
    /// Has it tables beside its rows?
    #[must_use]
    pub fn has_tables(&self) -> bool {
        !(self.tables.is_empty() && self.effects.is_empty() && self.distributions.is_empty())
    }
}

impl Paper {
    /// Writes it into the directory, whole or not at all.
    pub fn write(&self, directory: &Path) -> Result<(), ModelError> {
        let path = directory.join(PAPER_FILE);
        let unreadable = |why: serde_json::Error| ModelError::Unreadable {
            path: path.clone(),
            what: why.to_string(),
        };
        let json = digest::seal(&serde_json::to_vec_pretty(self).map_err(unreadable)?);
        // A number that is not finite has no form in JSON, and could not be read again.
        serde_json::from_slice::<Self>(&json).map_err(unreadable)?;
        files::replace(&path, &json)
    }

    /// Reads the one of a directory; none where there is none. Nothing in it is trusted.
    pub fn read(directory: &Path) -> Result<Option<Self>, ModelError> {
        let path = directory.join(PAPER_FILE);
        let json = match files::read_plain(&path, PAPER_FILE_LIMIT) {
            Ok(json) => json,
            Err(ModelError::Read { why, .. }) if why.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Self::parse(&path, &json).map(Some)
    }

    /// What is wrong with the file of a directory: it has the digest of another content. One of an older version has
    /// no digest.
    #[must_use]
    pub fn problem(directory: &Path) -> Option<String> {
        let json = files::read_plain(&directory.join(PAPER_FILE), PAPER_FILE_LIMIT).ok()?;
        (digest::sealed(&json) == Sealed::Changed).then(|| not_as_recorded(PAPER_FILE))
    }

    /// Reads the content of a `paper.json`, which `path` names in errors.
    ///
    /// # Errors
    /// It is cut, no paper, or of a newer format, which may look otherwise in every other place.
    pub fn parse(path: &Path, json: &[u8]) -> Result<Self, ModelError> {
        #[derive(Deserialize)]
        struct Header {
            format_version: u32,
        }
        let malformed = |why: serde_json::Error| ModelError::malformed(path, why.to_string());
        let header: Header = serde_json::from_slice(json).map_err(malformed)?;
        match header.format_version {
            1..=PAPER_VERSION => serde_json::from_slice(json).map_err(malformed),
            0 => Err(ModelError::malformed(path, "there is no format version 0")),
            found => {
                Err(ModelError::NewerFormat { path: path.to_owned(), found, newest: PAPER_VERSION })
            }
        }
    }
}
