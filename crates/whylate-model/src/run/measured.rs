//! How much of what was asked for a run has.

use crate::run::Run;
use crate::units::Nanos;

impl Run {
    /// How long its threads measured or its requests were sent, that of the longest; none where none of them says.
    #[must_use]
    pub fn measured(&self) -> Option<Nanos> {
        let gaps = self.gaps.iter().map(|of| of.end.since(of.start));
        let threads = self.threads.iter().map(|of| of.end.since(of.start));
        let flows = self.flows.iter().filter_map(|of| Some(of.ended?.since(of.began?)));
        gaps.chain(threads).chain(flows).max().map(|longest| longest.to_nanos(self.clock.hz))
    }
}
