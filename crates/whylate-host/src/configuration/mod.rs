//! Configurations of the host under which a box (a switch, a bridge, a network function) is measured.
//!
//! A configuration is made of whatever knobs this host offers. Each is journaled before it is
//! changed, read back, and taken back when [`Applied`] goes, also while a panic unwinds, and by the
//! next start after a kill. Three promises, each kept by a test:
//! - a knob that does not read back is an error that names it, and then nothing of the
//!   configuration stays;
//! - a knob that this host does not offer is listed with the reason, never left out in silence;
//! - `remote` on one memory node, and a configuration that would take the last CPU that does the
//!   housekeeping, are refused by name before anything is changed.

mod isolset;
mod memory;
mod place;
mod plan;
mod power;
mod quiet;
#[cfg(test)]
mod tests;
mod work;

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};

pub use self::plan::Plan;
use self::work::{Ground, Stack, Watched, Work};
use crate::error::HostError;
use crate::files::trimmed;
use crate::guard::Guard;
use crate::journal::{Journal, choice, same_text};

pub use whylate_model::configuration::{
    AppliedConfiguration, Configuration, Configurations, Element, KnobReading, NoConfiguration,
    NotHere, interleaved,
};

/// The box whose host is configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    /// Its processes, all threads of each; empty where it has none, such as a bridge of the kernel.
    pub pids: Vec<Pid>,
    /// The CPUs that it runs on: as many are taken of another node where the configuration says so.
    pub cpus: Vec<CpuId>,
    /// Its interfaces, as they are called in this network namespace; the memory node of the first
    /// that has one is `local`.
    pub interfaces: Vec<String>,
    /// CPUs of those who measure it: never taken for the box.
    pub clients: Vec<CpuId>,
}

/// A configuration in force, until this goes.
#[derive(Debug)]
pub struct Applied {
    guards: Stack,
    facts: AppliedConfiguration,
    watched: Vec<Watched>,
}

/// Puts a configuration in force for a box that runs. Nothing of it stays where this fails.
pub fn apply(
    configuration: &Configuration,
    subject: &Subject,
    journal: &Journal,
) -> Result<Applied, HostError> {
    apply_on(&Ground::here(), configuration, subject, journal)
}

fn apply_on(
    ground: &Ground,
    configuration: &Configuration,
    subject: &Subject,
    journal: &Journal,
) -> Result<Applied, HostError> {
    let plan = Plan::below(&ground.root, configuration, subject)?;
    let mut work = Work {
        plan: &plan,
        subject,
        ground,
        journal,
        guards: Stack::default(),
        knobs: Vec::new(),
        missing: plan.notes.clone(),
        watched: Vec::new(),
    };
    let alone = configuration.has(Element::Isolset);
    if alone || configuration.has(Element::Local) || configuration.has(Element::Remote) {
        place::place(&mut work, alone)?;
    }
    for element in configuration.elements() {
        match element {
            // Where the box runs was settled first: the others are about those CPUs.
            Element::Unchanged | Element::Local | Element::Remote => {}
            Element::Isolset => isolset::isolate(&mut work)?,
            Element::Power => power::power(&mut work)?,
            Element::Quiet => quiet::quiet(&mut work)?,
        }
    }
    let Work { guards, knobs, missing, watched, .. } = work;
    let (name, cpus) = (configuration.name().to_owned(), plan.cpus.clone());
    let facts = AppliedConfiguration { name, cpus, knobs, missing };
    Ok(Applied { guards, facts, watched })
}

impl Applied {
    /// Knobs in the order in which they were set, as they read back.
    #[must_use]
    pub fn read_back(&self) -> &[KnobReading] {
        &self.facts.knobs
    }

    /// Knobs that this host does not offer.
    #[must_use]
    pub fn missing(&self) -> &[NotHere] {
        &self.facts.missing
    }

    /// All of it, for a run.
    #[must_use]
    pub fn facts(&self) -> &AppliedConfiguration {
        &self.facts
    }

    /// The CPUs of the box.
    #[must_use]
    pub fn cpus(&self) -> &[CpuId] {
        &self.facts.cpus
    }

    /// Knobs that are files and say something else by now: somebody changed them meanwhile. What
    /// was measured since is not of this configuration.
    #[must_use]
    pub fn changed_since(&self) -> Vec<KnobReading> {
        let changed = |watched: &Watched| {
            let text = trimmed(&watched.path)?;
            let now = choice(&text);
            (!same_text(now, &watched.got)).then(|| KnobReading {
                name: watched.name.clone(),
                before: watched.got.clone(),
                asked: None,
                got: now.to_owned(),
            })
        };
        self.watched.iter().filter_map(changed).collect()
    }
}

impl Guard for Applied {
    fn describe(&self) -> Vec<String> {
        let mut lines = vec![format!("configuration {}:", self.facts.name)];
        lines.extend(self.guards.describe());
        let missing = self.facts.missing.iter();
        lines.extend(missing.map(|one| format!("{} not here: {}", one.knob, one.why)));
        lines
    }

    fn restore(&mut self) -> Vec<Warning> {
        self.watched.clear();
        self.guards.restore()
    }
}
