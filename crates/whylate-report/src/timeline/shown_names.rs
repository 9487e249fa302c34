//! What a timeline calls what tables of gaps name: as the table of causes does, time without a kernel event CPU by
//! CPU and foreign threads with their processes.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::CpuId;
use whylate_model::cause::STORED_NO_EVENT;
use whylate_model::run::Run;

/// The names that stand in tables of gaps as reports show them.
#[derive(Debug)]
pub(super) struct ShownNames {
    /// Time without a kernel event, and on each CPU that the causes are told apart by.
    whole: String,
    by_cpu: BTreeMap<CpuId, String>,
    threads: BTreeMap<String, String>,
}

impl ShownNames {
    pub(super) fn of(run: &Run) -> Self {
        let cpus: BTreeSet<CpuId> = run.causes.iter().filter_map(|total| total.cpu).collect();
        let by_cpu = cpus.into_iter().map(|cpu| (cpu, run.no_event_on(cpu).to_string()));
        Self {
            whole: run.no_event().to_string(),
            by_cpu: by_cpu.collect(),
            threads: run.shown_threads(),
        }
    }

    pub(super) fn of_stored<'a>(&'a self, stored: &'a str, cpu: CpuId) -> &'a str {
        if stored == STORED_NO_EVENT {
            return self.by_cpu.get(&cpu).unwrap_or(&self.whole);
        }
        self.threads.get(stored).map_or(stored, String::as_str)
    }
}
