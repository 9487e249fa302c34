//! What is asked of a calibration.

use std::path::PathBuf;

use whylate_model::calibration_parts::PartOf;
use whylate_model::{CpuId, Nanos};
use whylate_port::Transport;

use super::foreign::ForeignRequest;
use super::planted::Plant;
use crate::rtt::backends::Backend;

/// A part other than that of the curve is a quarter as long, and no shorter than that.
const SHORTEST_PART: Nanos = Nanos(250_000_000);
/// How long a rate is tried.
pub(super) const RATE_TIME: Nanos = Nanos(500_000_000);

/// Why a backend cannot lie on both sides of a delay line here; none where it can.
#[must_use]
pub fn refusal(backend: Backend) -> Option<&'static str> {
    (backend.transport == Transport::Dpdk).then_some(
        "a device of DPDK belongs to the process that opened it, and its ports lie in two namespaces here: \
         measure it between two interfaces of this machine, with `whylate delay` between them and `whylate rtt \
         --across`",
    )
}

/// What is asked of a calibration.
#[derive(Debug, Clone)]
pub struct Request {
    /// This program: line and client are made by it.
    pub program: PathBuf,
    /// The backends, in the order of the report.
    pub backends: Vec<Backend>,
    /// What the line is set to: the curves are of the first.
    pub delays: Vec<Nanos>,
    /// Messages a second that are tried first.
    pub per_second: f64,
    /// Bytes of a message.
    pub bytes: usize,
    /// Independent runs of each.
    pub runs: u32,
    /// Length of a run at the first delay.
    pub duration: Nanos,
    /// Discarded before each.
    pub warmup: Nanos,
    /// The error that counts as none.
    pub tolerance: Nanos,
    /// What carries the line's frames; none takes AF_XDP where it works, and a packet socket else.
    pub line_port: Option<Transport>,
    /// The line's CPU; none takes another core than the client's.
    pub line_cpu: Option<CpuId>,
    /// The client's CPU.
    pub client_cpu: CpuId,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// An error to plant into the client's stamps, to see whether it is found.
    pub plant: Option<Plant>,
    /// A client of somebody else in place of the backends.
    pub foreign: Option<ForeignRequest>,
    /// The command line.
    pub command_line: Vec<String>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Request {
    /// What it asks, in one sentence.
    pub(super) fn question(&self) -> String {
        match &self.foreign {
            Some(of) => format!("Up to which percentile may `{}` be trusted?", of.client_words()),
            None => {
                "Up to which percentile may each backend of this machine be trusted?".to_owned()
            }
        }
    }

    /// About how long it takes: what is measured, and what processes take to start.
    #[must_use]
    pub fn about(&self) -> Nanos {
        /// A line measures itself and a client its clock before they begin.
        const START: u64 = 2_500_000_000;
        let rounds = u64::from(self.runs) * self.backends.len() as u64;
        let others = self.delays.len() as u64;
        let short = self.short().0;
        let each = self.duration.0 + others * short + (others + 1) * (self.warmup.0 + START);
        let first = self.backends.len() as u64 * (RATE_TIME.0 + START);
        Nanos(rounds.saturating_mul(each).saturating_add(first))
    }

    fn short(&self) -> Nanos {
        Nanos((self.duration.0 / 4).max(SHORTEST_PART.0).min(self.duration.0))
    }

    /// How long a part is measured.
    pub(super) fn length(&self, between: PartOf) -> Nanos {
        let first = self.delays.first().copied();
        match between {
            PartOf::Line { delay } if Some(delay) == first => self.duration,
            _ => self.short(),
        }
    }
}
