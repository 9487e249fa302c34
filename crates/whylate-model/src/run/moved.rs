//! What was moved off the measured CPUs for the time of a run.

use serde::{Deserialize, Serialize};

/// What of one kind was moved off, and what stayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MovedOff {
    /// Which kind.
    pub what: Moved,
    /// So many were moved, kernel threads among tasks.
    pub moved: u64,
    /// So many refused, kernel threads among tasks.
    pub refused: u64,
    /// What was changed and what was not, as it was told when it was done.
    pub told: Vec<String>,
}

/// What can be moved off a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Moved {
    /// Threads of others.
    Tasks,
    /// Interrupts.
    Interrupts,
}
