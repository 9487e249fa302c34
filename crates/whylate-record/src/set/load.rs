//! Load that is made on the CPUs of a set while it runs.

use std::time::Duration;

use whylate_load::Wanted;
use whylate_model::load::LoadFacts;

use super::{Recording, members};
use crate::RecordError;
use crate::progress::Progress;

/// Generators end by themselves so long after the set is to end.
const LONGER: Duration = Duration::from_secs(30);

impl Recording<'_> {
    /// Starts what is asked for: when everything is calibrated, and before anything is measured.
    pub(super) fn make_load(&mut self, progress: &mut dyn Progress) -> Result<(), RecordError> {
        if self.request.load.is_empty() {
            return Ok(());
        }
        let disturbed = members::cpus(self.request);
        let other = |cpu: &&whylate_model::CpuId| !disturbed.contains(cpu);
        let elsewhere = self.workbench.allowed().iter().filter(other).copied().collect();
        let kinds: Vec<String> = self.request.load.iter().map(ToString::to_string).collect();
        progress.say(&format!(
            "load on CPU {}: {}",
            whylate_model::CpuList(&disturbed),
            kinds.join(", ")
        ));
        let wanted = Wanted {
            kinds: self.request.load.clone(),
            disturbed,
            elsewhere,
            bed: self.request.bed.clone(),
            at_most: Duration::from_nanos(self.request.duration.0) + LONGER,
            journal: Some(self.workbench.journal.clone()),
            files_in: None,
        };
        self.load = Some(whylate_load::start(&wanted)?);
        Ok(())
    }

    /// The set begins: what the load did before is none of its throughput.
    pub(super) fn load_counts_from_here(&mut self) {
        if let Some(load) = &mut self.load {
            load.begins();
        }
    }

    /// A load that ended before it was told to is a warning.
    pub(super) fn look_at_load(&mut self, progress: &mut dyn Progress) {
        for warning in self.load.iter_mut().flat_map(whylate_load::Load::poll) {
            progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
    }

    /// Ends the load and keeps what it did.
    pub(super) fn end_load(&mut self) {
        if let Some(mut load) = self.load.take() {
            load.ends();
            self.warnings.extend(load.poll());
            self.loads = load.stop();
        }
    }

    /// What the load has done so far, or did.
    pub(super) fn loads_so_far(&mut self) -> Vec<LoadFacts> {
        match &mut self.load {
            Some(load) => load.so_far(),
            None => self.loads.clone(),
        }
    }
}
