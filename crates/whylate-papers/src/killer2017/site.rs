//! Where it is measured: beds for the time of an experiment, a CPU for the client and one for the box.

use std::num::NonZeroU32;

use whylate_host::journal::Journal;
use whylate_model::CpuId;
use whylate_model::lab::BedKind;
use whylate_model::paper::Scenario;
use whylate_net::lab::{self, Bed, Borrowed};

use super::protocol::Protocol;
use super::tools::Tool;
use crate::PaperError;
use crate::bench::Bench;

/// A bed, and who runs where; the bed goes with it.
pub(super) struct Site {
    bed: Borrowed,
    pub(super) client: CpuId,
    pub(super) other: CpuId,
}

impl Site {
    /// Sets one up, named after the paper and its kind.
    pub(super) fn set_up(
        bench: &mut Bench<'_>,
        kind: BedKind,
        scenario: &mut Scenario,
    ) -> Result<Self, PaperError> {
        bench.go_on()?;
        let client = bench.cpu();
        let other = bench.another_cpu().ok_or(PaperError::OneCpu)?;
        let name = format!("{}-{}", super::NAME, kind.name());
        let bed = lab::borrow(&Journal::open()?, &name, kind, NonZeroU32::MIN)?;
        scenario.notes.push(format!(
            "a bed of namespaces of this machine, joined by virtual links: no wire, no card. It is made by \
             `whylate lab up --kind {} --name {name}`, and was taken down afterwards",
            kind.name()
        ));
        Ok(Self { bed, client, other })
    }

    pub(super) fn bed(&self) -> &Bed {
        self.bed.bed()
    }

    /// The words by which a tool measures through what lies between the ends: both flows by one client.
    pub(super) fn across(&self, bench: &Bench<'_>, tool: Tool, protocol: Protocol) -> String {
        format!(
            "rtt --bed {} --across --both-ways {} {} --cpus {} --seed {}",
            self.bed().name(),
            tool.words,
            protocol.words(),
            self.client,
            bench.seed()
        )
    }
}
