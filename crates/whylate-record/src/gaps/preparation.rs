//! What a gap recording is set up with before it measures: the trace, the moved tasks and
//! interrupts, the context of the attribution, and the settings for the record.

use std::collections::BTreeMap;

use whylate_cause::{Context, Measured, Placement as CausePlacement};
use whylate_gap::{Placement, Session};
use whylate_host::guard::{Guard, MovedInterrupts, MovedTasks, Scope};
use whylate_model::warning::Warning;

use super::Request;
use crate::kernel_trace::KernelTrace;
use crate::progress::Progress;
use crate::workbench::Workbench;

pub(super) fn open_trace(
    request: &Request,
    workbench: &Workbench,
    warnings: &mut Vec<Warning>,
) -> Option<KernelTrace> {
    if !request.trace {
        return None;
    }
    let (measured, online) = (request.plan.placement.cpus(), workbench.topology.online());
    KernelTrace::start(&workbench.journal, measured, online)
        .inspect_err(|no| {
            warnings.push(Warning::NoKernelTrace {
                reason: no.reason.clone(),
                remedy: no.remedy.clone(),
            });
        })
        .ok()
}

pub(super) fn move_tasks(
    request: &Request,
    workbench: &Workbench,
    warnings: &mut Vec<Warning>,
    progress: &mut dyn Progress,
) -> Option<MovedTasks> {
    let cpus = request.plan.placement.cpus();
    let moved = request
        .move_tasks
        .then(|| MovedTasks::away_from(&workbench.journal, cpus, &Scope::Everything))?;
    told(moved, warnings, progress)
}

pub(super) fn move_interrupts(
    request: &Request,
    workbench: &Workbench,
    warnings: &mut Vec<Warning>,
    progress: &mut dyn Progress,
) -> Option<MovedInterrupts> {
    let cpus = request.plan.placement.cpus();
    let moved = request
        .move_interrupts
        .then(|| MovedInterrupts::away_from(&workbench.journal, cpus, None))?;
    told(moved, warnings, progress)
}

/// A guard that was taken says what it changed; one that was not becomes a warning.
fn told<G: Guard>(
    guard: Result<G, whylate_host::HostError>,
    warnings: &mut Vec<Warning>,
    progress: &mut dyn Progress,
) -> Option<G> {
    match guard {
        Ok(guard) => {
            guard.describe().iter().for_each(|line| progress.say(line));
            Some(guard)
        }
        Err(error) => {
            warnings.push(Warning::Guard { what: error.to_string() });
            None
        }
    }
}

pub(super) fn context(session: &Session, workbench: &Workbench, request: &Request) -> Context {
    let mut context = Context::new(workbench.virtualised(), workbench.rate);
    let placement = match request.plan.placement {
        Placement::Pinned(_) => CausePlacement::Pinned,
        Placement::Floating { .. } => CausePlacement::Floating,
    };
    context.threads = session
        .threads()
        .enumerate()
        .map(|(index, facts)| Measured {
            index: index as u16,
            pid: facts.tid,
            cpu: facts.cpu,
            placement,
            period_ticks: facts.warmup_period,
        })
        .collect();
    for (pid, name) in whylate_host::names::threads() {
        context.learn_name(pid, &name);
    }
    context
}

/// Settings as used, for the record.
pub(super) fn settings(request: &Request, workbench: &Workbench) -> BTreeMap<String, String> {
    let plan = &request.plan;
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let entries = [
        ("duration", request.duration.to_string()),
        ("warmup", plan.warmup.to_string()),
        ("placement", format!("{:?}", plan.placement)),
        ("loop", format!("{:?}", plan.loop_kind)),
        ("work", format!("{:?}", plan.work)),
        ("policy", format!("{:?}", plan.policy)),
        ("counting", yes_no(plan.counting)),
        ("competitors", plan.competitors.to_string()),
        ("lock memory", yes_no(request.lock_memory)),
        ("hold idle states", yes_no(request.hold_idle_states)),
        ("move tasks", yes_no(request.move_tasks)),
        ("move interrupts", yes_no(request.move_interrupts)),
        ("housekeeping", workbench.housekeeping.map_or("none left".to_owned(), |c| c.to_string())),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
