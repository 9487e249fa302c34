//! A run as it begins: what is asked, where, and by which clock; nothing is measured yet.

use std::collections::BTreeMap;

use super::{ClockFacts, Evidence, FORMAT_VERSION, Run, RunState, Verdict};
use crate::host::Fingerprint;
use crate::trust::Files;

/// What is known of a run from its beginning.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// The command line.
    pub command_line: Vec<String>,
    /// What was asked, in one sentence.
    pub question: String,
    /// Random seed.
    pub seed: u64,
    /// How far the run came.
    pub state: RunState,
    /// The machine.
    pub host: Fingerprint,
    /// The clock.
    pub clock: ClockFacts,
}

impl Run {
    /// A run of this version that has measured nothing yet and has no verdict: what was measured
    /// goes over it.
    #[must_use]
    pub fn begun(of: Beginning) -> Self {
        let Beginning { command_line, question, seed, state, host, clock } = of;
        Self {
            format_version: FORMAT_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            command_line,
            question,
            seed,
            state,
            host,
            clock,
            settings: BTreeMap::new(),
            series: Vec::new(),
            gaps: Vec::new(),
            threads: Vec::new(),
            wakes: Vec::new(),
            causes: Vec::new(),
            coverage: None,
            worst: Vec::new(),
            senders: Vec::new(),
            foreign_threads: Vec::new(),
            moved_off: Vec::new(),
            evidence: Evidence::default(),
            findings: Vec::new(),
            validation: None,
            selftest: None,
            warnings: Vec::new(),
            verdict: Verdict::Pending,
            segments: Vec::new(),
            log_bytes: None,
            log_digest: None,
            captures: Vec::new(),
            origins: Vec::new(),
            spreads: Vec::new(),
            prediction: None,
            loads: Vec::new(),
            flows: Vec::new(),
            switch_cost: None,
            reflected: None,
            backends: None,
            forward: None,
            delay: None,
            watched: None,
            calibration: None,
            calibration_parts: None,
            device: None,
            files: Files::default(),
        }
    }
}
