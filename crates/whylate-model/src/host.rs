//! The host a run was made on, as read back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::difference::Difference;
use crate::units::CpuId;

/// What identifies a host for the purpose of comparing numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fingerprint {
    /// Host name.
    pub hostname: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`.
    pub kernel_build: String,
    /// `uname -m`.
    pub architecture: String,
    /// Kernel command line.
    pub command_line: String,
    /// Processor model name.
    pub cpu_model: String,
    /// Microcode revision, where shown.
    pub microcode: Knob,
    /// Hypervisor, where there is one.
    pub hypervisor: Option<String>,
    /// Online CPUs.
    pub cpus_online: Vec<CpuId>,
    /// CPUs of the kernel's isolated set.
    pub cpus_isolated: Vec<CpuId>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Knobs by name, as read back. An absent file is `unknown`, never `off`.
    pub knobs: BTreeMap<String, Knob>,
}

/// The value of a knob as read back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    /// What the file says.
    Value(String),
    /// There is no such file, or it could not be read: nothing is known.
    #[default]
    Unknown,
}
