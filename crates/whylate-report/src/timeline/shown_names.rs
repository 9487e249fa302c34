//! What a timeline calls what tables of gaps name: as the table of causes does, time without a kernel event CPU by
//! CPU, foreign threads with their processes, and the rest in the words of reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use whylate_model::CpuId;
use whylate_model::cause::{STORED_NO_EVENT, shown_name};
use whylate_model::run::Run;

/// The names that stand in tables of gaps as reports show them.
#[derive(Debug)]
pub(super) struct ShownNames {
    /// Time without a kernel event, and on each CPU that the causes are told apart by.
    whole: String,
    by_cpu: BTreeMap<CpuId, String>,
    threads: BTreeMap<String, String>,
    /// Are the timer's interrupts the kernel's tick?
    ticks: bool,
}

impl ShownNames {
    pub(super) fn of(run: &Run) -> Self {
        let cpus: BTreeSet<CpuId> = run.causes.iter().filter_map(|total| total.cpu).collect();
        let by_cpu = cpus.into_iter().map(|cpu| (cpu, run.no_event_on(cpu).to_string()));
        Self {
            whole: run.no_event().to_string(),
            by_cpu: by_cpu.collect(),
            threads: run.shown_threads(),
            ticks: run.ticks(),
        }
    }

    /// The names of a table as reports show them, once for all of its gaps; time without a kernel event, whose name
    /// is that of a CPU, stays as it is.
    pub(super) fn of_table(&self, stored: &[Arc<str>]) -> Vec<Arc<str>> {
        let shown = |stored: &Arc<str>| match self.threads.get(&**stored) {
            _ if &**stored == STORED_NO_EVENT => Arc::clone(stored),
            Some(thread) => thread.as_str().into(),
            None => shown_name(stored, self.ticks).into(),
        };
        stored.iter().map(shown).collect()
    }

    /// One of them on a CPU.
    pub(super) fn on<'a>(&'a self, name: &'a str, cpu: CpuId) -> &'a str {
        if name == STORED_NO_EVENT { self.by_cpu.get(&cpu).unwrap_or(&self.whole) } else { name }
    }
}
