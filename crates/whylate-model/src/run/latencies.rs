//! The latencies that a check-up tells beside what busy threads lost.

use super::Run;
use crate::series::{Definition, Series, WAKE_UPS, shown_label};

/// Timer wake-ups as measured, and with each skipped one at its own latency.
const RAW: &str = "wake";
const CORRECTED: &str = "wake-corrected";

/// What measured wake-ups are called beside those with the skipped ones.
const UNCORRECTED: &str = "uncorrected";

/// The label of wake-ups by which a sentence calls them, whether or not it has the skipped ones.
pub(crate) fn of_either(label: &str) -> String {
    let label = shown_label(label);
    label.strip_prefix(UNCORRECTED).map_or_else(|| label.clone(), |of| format!("{WAKE_UPS}{of}"))
}

impl Run {
    /// The label of one of its series in the words of reports. Of timer wake-ups it tells the measured ones from those
    /// with the skipped ones, where it has both.
    #[must_use]
    pub fn label_of(&self, series: &Series) -> String {
        let label = shown_label(&series.label);
        let corrected = series.name.strip_prefix(RAW).map(|of| format!("{CORRECTED}{of}"));
        let has_both = corrected.is_some_and(|name| self.series.iter().any(|of| of.name == name));
        match label.strip_prefix(WAKE_UPS).filter(|_| has_both) {
            Some(rest) => format!("{UNCORRECTED}{rest}"),
            None => label,
        }
    }

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
