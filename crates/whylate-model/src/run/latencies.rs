//! The latencies that a check-up tells beside what busy threads lost.

use super::Run;
use crate::series::{Definition, Series};

/// Timer wake-ups as measured, and with each skipped one at its own latency.
const RAW: &str = "wake";
const CORRECTED: &str = "wake-corrected";

impl Run {
    /// Does it hold latencies beside what busy threads lost, and no set, flow or cost of switches?
    #[must_use]
    pub fn holds_latencies(&self) -> bool {
        !self.gaps.is_empty()
            && self.threads.is_empty()
            && self.flows.is_empty()
            && self.switch_cost.is_none()
            && self.selftest.is_none()
            && self.series.iter().any(is_latency)
    }

    /// What such a run tells of latencies, each with what it is of: of timer wake-ups the series with the skipped
    /// ones, where there is one, in place of the one as measured.
    #[must_use]
    pub fn latencies(&self) -> Vec<(&Series, &str)> {
        let named = |name: &str| self.series.iter().find(|of| of.name == name);
        let (raw, corrected) = (named(RAW), named(CORRECTED));
        let is_told = |of: &&Series| {
            let of_latency = is_latency(of) || of.definition == Definition::ReadDelta;
            of_latency && !(of.name == RAW && corrected.is_some())
        };
        let told = self.series.iter().filter(is_told);
        // Those with the skipped ones are of the same as those that were measured.
        told.map(|of| match raw.filter(|_| of.name == CORRECTED) {
            Some(measured) => (of, measured.label.as_str()),
            None => (of, of.label.as_str()),
        })
        .collect()
    }
}

fn is_latency(series: &Series) -> bool {
    matches!(series.definition, Definition::DispatchLatency | Definition::RoundTrip)
}
