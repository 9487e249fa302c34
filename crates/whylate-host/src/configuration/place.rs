//! `local` and `remote`, and the part of `isolset` that is about the box itself: its CPUs, its
//! memory, and a cpuset of its own.

use super::memory;
use super::work::Work;
use crate::cpus::format_list;
use crate::error::HostError;
use crate::guard::{BoxCpuset, BoxCpusetShape, PlacedTasks};

/// The box's threads on its CPUs, and its memory from its node; nobody else's cpuset has these CPUs
/// where they are its alone.
pub(super) fn place(work: &mut Work<'_>, alone: bool) -> Result<(), HostError> {
    let (plan, subject) = (work.plan, work.subject);
    let cpus = format_list(&plan.cpus);
    if subject.pids.is_empty() {
        let why = "the box has no process: it works where its interrupts are served";
        work.lacks("affinity", why);
    } else {
        // Without it nothing else of the configuration would be true: no refusal passes.
        let placed = PlacedTasks::onto(work.journal, &subject.pids, &plan.cpus)?;
        work.read("affinity", placed.before(), Some(&cpus), cpus.clone());
        work.keep(placed);
    }
    if alone || plan.node.is_some() {
        cpuset(work, alone)?;
    }
    // Last: what the box takes from here on comes from there already.
    if let Some(node) = plan.node {
        memory::bring(work, node);
    }
    Ok(())
}

/// A cpuset of the box's own, for its CPUs or for new memory.
fn cpuset(work: &mut Work<'_>, alone: bool) -> Result<(), HostError> {
    let (plan, subject) = (work.plan, work.subject);
    let cpus = format_list(&plan.cpus);
    let shape = BoxCpusetShape { cpus: plan.cpus.clone(), node: plan.node, exclusive: alone };
    let made = BoxCpuset::make(work.journal, &work.ground.root, shape, &subject.pids);
    let knob = if alone { "cpuset" } else { "numa.memory" };
    let Some(made) = work.offered(knob, made)? else {
        if alone && plan.node.is_some() {
            let why = "it takes a cpuset; threads take new memory from the node that they run on";
            work.lacks("numa.memory", why);
        }
        return Ok(());
    };
    if alone {
        let homes = made.homes();
        let before = if homes.is_empty() { "none".to_owned() } else { homes.join(", ") };
        let asked = format!("cpus {cpus}, exclusive");
        work.read("cpuset", before, Some(&asked), format!("cpus {}, exclusive", made.cpus()));
    }
    if let Some(node) = plan.node {
        let before = "any".to_owned();
        work.read(
            "numa.memory",
            before,
            Some(&format!("node {node}")),
            format!("node {}", made.mems()),
        );
    }
    work.keep(made);
    Ok(())
}
