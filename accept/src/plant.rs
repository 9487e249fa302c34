//! What is planted for a figure, and where: loads and disturbances, and what they take of the machine.

use whylate_model::CpuId;
use whylate_sys::affinity;

use crate::{between, requests};

pub(crate) mod datagrams;
pub(crate) mod flood;
pub(crate) mod interrupts;
pub(crate) mod late_server;
pub(crate) mod stalls;

/// Where the client is measured, and where the other end runs; shown, the words that say so.
pub(crate) struct Seat {
    pub(crate) client: CpuId,
    pub(crate) other: CpuId,
}

impl std::fmt::Display for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--cpus {} --other-cpu {}", self.client, self.other)
    }
}

/// Figures ask for two CPUs before.
pub(crate) fn seat() -> Seat {
    let cpus = affinity::get();
    Seat { client: cpus[1], other: cpus[0] }
}

/// A bed of whylate's.
pub(crate) fn bed(what: &str) -> Result<requests::Bed, String> {
    requests::Bed::up(what).ok_or_else(|| "there is no bed".to_owned())
}

/// Links with a place between them.
pub(crate) fn links() -> Result<between::Bed, String> {
    between::Bed::new().ok_or_else(|| "no links in network namespaces here".to_owned())
}
