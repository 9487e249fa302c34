//! What time without a kernel event is called in a timeline: as in the table of causes, CPU by CPU.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::CpuId;
use whylate_model::run::Run;

/// What time without a kernel event is called, on each CPU that the causes of a run are told apart by.
pub(super) struct NoEvent {
    whole: String,
    by_cpu: BTreeMap<CpuId, String>,
}

impl NoEvent {
    pub(super) fn of(run: &Run) -> Self {
        let cpus: BTreeSet<CpuId> = run.causes.iter().filter_map(|total| total.cpu).collect();
        let by_cpu = cpus.into_iter().map(|cpu| (cpu, run.no_event_on(cpu).to_string()));
        Self { whole: run.no_event().to_string(), by_cpu: by_cpu.collect() }
    }

    pub(super) fn on(&self, cpu: CpuId) -> &str {
        self.by_cpu.get(&cpu).unwrap_or(&self.whole)
    }
}
