//! What doctor found on a host: one [`Symptom`] per check.
//!
//! A diagnosis is made of what was read back and says where. It knows no check by itself: names,
//! thresholds and remedies are those of the crate that looks at the host.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::difference::Difference;
use crate::host::Fingerprint;
use crate::units::CpuId;

/// Version of the format of a diagnosis.
pub const DIAGNOSIS_VERSION: u32 = 1;

/// What about a host would spoil a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// [`DIAGNOSIS_VERSION`] when it was made.
    pub format_version: u32,
    /// Version of whylate that made it.
    pub tool_version: String,
    /// `/`, or the directory of a collected tree.
    pub root: String,
    /// The CPUs that are to be measured; empty where they could not be found out.
    pub cpus: Vec<CpuId>,
    /// The machine as read back.
    pub host: Fingerprint,
    /// What each check found, in the order of the checks.
    pub symptoms: Vec<Symptom>,
    /// What differs from another run, where one was named.
    pub compared: Option<Compared>,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Symptom {
    /// The check: a stable name such as `smt-siblings`.
    pub check: String,
    /// What it is about.
    pub subject: Subject,
    /// How bad it is.
    pub level: Level,
    /// What was found, in one sentence with the values read back.
    pub finding: String,
    /// Why it matters to a measurement.
    pub why: String,
    /// What to do about it. Empty when there is nothing to do.
    pub remedy: Vec<Remedy>,
    /// What was read, and where.
    pub evidence: Vec<Evidence>,
}

/// A way to mend something. Doctor itself changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// A line for a root shell, as it is; it lasts until the next boot.
    Command(String),
    /// What no command does, such as a parameter of the kernel's command line.
    Advice(String),
}

/// How bad a symptom is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Read back, and as it should be.
    Fine,
    /// It could not be read back: nothing is known, and nothing concluded.
    Unknown,
    /// Read back; it belongs beside the numbers and spoils only some of them.
    Note,
    /// Read back; it makes numbers say something about itself.
    Spoils,
}

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Who else may use the CPUs.
    Isolation,
    /// Where interrupts go.
    Interrupts,
    /// How fast the CPUs run.
    Frequency,
    /// What CPUs do when idle.
    Idle,
    /// Memory management behind the program's back.
    Memory,
    /// Limits of the scheduler, and other jobs.
    Scheduling,
    /// Clocks, watchdogs and services of the kernel.
    Kernel,
    /// Ports, their place and their settings.
    Network,
    /// Which host this is, and whether it is the one of yesterday.
    Identity,
    /// What the tool itself can do here.
    Tool,
}

/// What a file, a call or a command said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The file, the call or the command.
    pub source: String,
    /// What it said, or why it said nothing.
    pub said: String,
}

/// What differs from another run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// The other run.
    pub with: String,
    /// The version of whylate that made it.
    pub tool_version: String,
    /// What is wrong with the file that the other run's host was read from: it was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What differs: left is that run, right is this machine.
    pub differences: Vec<Difference>,
}

impl Diagnosis {
    /// The symptoms of one level.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &Symptom> {
        self.symptoms.iter().filter(move |symptom| symptom.level == level)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fine => "fine",
            Self::Unknown => "unknown",
            Self::Note => "note",
            Self::Spoils => "spoils",
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Isolation => "isolation",
            Self::Interrupts => "interrupts",
            Self::Frequency => "frequency",
            Self::Idle => "idle states",
            Self::Memory => "memory",
            Self::Scheduling => "scheduling",
            Self::Kernel => "kernel",
            Self::Network => "network",
            Self::Identity => "identity",
            Self::Tool => "tool",
        })
    }
}
