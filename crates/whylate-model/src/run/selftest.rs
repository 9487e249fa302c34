//! What the self-test with injected interruptions found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Pid;

/// The result of `gaps --selftest`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfTest {
    /// One row per kind of interruption.
    pub kinds: Vec<SelfTestKind>,
    /// Kinds that could not be injected, and why.
    #[serde(default)]
    pub skipped: BTreeMap<String, String>,
    /// The thread that was interrupted, as the kernel's trace names it. What was done to it one by one is in
    /// the segments of injections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Pid>,
    /// The thread that sent interrupts to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Pid>,
}

/// One kind of injected interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfTestKind {
    /// `fifo preemption`, `ipi`, `page fault`, `signal`, `cpu hog`.
    pub kind: String,
    /// How many were injected: a prime.
    pub injected: u64,
    /// How many overlap a recorded gap.
    pub found: u64,
    /// Gaps attributed to the injector.
    pub ascribed: u64,
    /// Of those, made by it; none where evidence A is missing.
    pub ascribed_rightly: u64,
    /// Injected ones whose gap named the right cause.
    pub named_right: u64,
    /// Was there evidence A to name causes with?
    pub with_trace: bool,
    /// Median of measured minus injected length, where the length is known.
    pub length_error_ns: Option<f64>,
    /// p99 of the absolute error.
    pub length_error_p99_ns: Option<f64>,
}
