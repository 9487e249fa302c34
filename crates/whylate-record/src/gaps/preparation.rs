//! What a gap recording is set up with before it measures: the trace, the moved tasks and
//! interrupts, the context of the attribution, and the settings for the record.

use std::path::Path;

use whylate_cause::{Context, Measured, Placement as CausePlacement};
use whylate_gap::{Placement, Session};
use whylate_host::cpus;
use whylate_host::guard::{Guard, InsideCgroup, MovedInterrupts, MovedTasks, Scope};
use whylate_host::topology::Topology;
use whylate_model::TicksDelta;
use whylate_model::settings::{Setting, Settings};
use whylate_model::warning::Warning;
use whylate_sys::affinity;

use super::Request;
use crate::RecordError;
use crate::collector::Thread;
use crate::kernel_trace::{KernelTrace, NoTrace};
use crate::progress::Progress;
use crate::workbench::Workbench;

/// The trace, where there is to be one; what it lacks is a warning.
pub(super) fn opened(
    trace: Option<Result<KernelTrace, NoTrace>>,
    warnings: &mut Vec<Warning>,
) -> Option<KernelTrace> {
    match trace? {
        Ok(trace) => {
            let no_senders = trace.without_senders().cloned();
            warnings.extend(
                no_senders.map(|NoTrace { reason, remedy }| Warning::NoSenders { reason, remedy }),
            );
            Some(trace)
        }
        Err(NoTrace { reason, remedy }) => {
            warnings.push(Warning::NoKernelTrace { reason, remedy });
            None
        }
    }
}

/// Enters the cgroup that was named. One that this process may not enter is only a warning as long
/// as its CPUs can be measured from outside.
pub(super) fn enter_cgroup(
    request: &Request,
    warnings: &mut Vec<Warning>,
    progress: &mut dyn Progress,
) -> Result<Option<InsideCgroup>, RecordError> {
    let Some(path) = &request.cgroup else { return Ok(None) };
    match InsideCgroup::enter(Path::new("/"), path) {
        Ok(inside) => {
            inside.describe().iter().for_each(|line| progress.say(line));
            Ok(Some(inside))
        }
        Err(error) => {
            let topology = Topology::read(Path::new("/"))?;
            let allowed = cpus::allowed(&topology)?;
            if !request.plan.placement.cpus().iter().all(|cpu| allowed.contains(cpu)) {
                return Err(error.into());
            }
            let what = format!("measuring on the CPUs of the cgroup, but not inside it: {error}");
            progress.say(&what);
            warnings.push(Warning::Guard { what });
            Ok(None)
        }
    }
}

/// The measuring threads have begun inside; this thread goes back to its own work where it can.
pub(super) fn leave_cgroup(
    inside: &mut InsideCgroup,
    workbench: &Workbench,
    warnings: &mut Vec<Warning>,
) {
    warnings.extend(inside.threads_are_made());
    // A change of cpuset has changed the affinity, too.
    let home = &workbench.housekeeping;
    if !home.is_empty() && affinity::set(home).is_err() {
        warnings.push(Warning::NoHousekeepingCpu);
    }
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
    let guard = told(moved, warnings, progress)?;
    warnings.extend(guard.refusal().map(|what| Warning::Guard { what }));
    Some(guard)
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
    let guard = told(moved, warnings, progress)?;
    if guard.moved().is_empty() && guard.refused() > 0 {
        let what = format!("no interrupt was moved off: {} refused", guard.refused());
        warnings.push(Warning::Guard { what });
    }
    Some(guard)
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
    let placement = match request.plan.placement {
        Placement::Pinned(_) => CausePlacement::Pinned,
        Placement::Floating { .. } => CausePlacement::Floating,
    };
    let threads = session
        .threads()
        .enumerate()
        .map(|(index, facts)| Measured {
            index: index as u16,
            pid: facts.tid,
            cpu: facts.cpu,
            placement,
            period_ticks: facts.warmup_period,
            always_runs: true,
            slack: TicksDelta(0),
        })
        .collect();
    workbench.context(threads)
}

/// Settings as used, for the record.
pub(super) fn settings(request: &Request, workbench: &Workbench, threads: &[Thread]) -> Settings {
    let granted: Vec<String> = threads
        .iter()
        .map(|thread| match thread.facts.fifo {
            Some(priority) => format!("SCHED_FIFO {priority}"),
            None => "SCHED_OTHER".to_owned(),
        })
        .collect();
    let plan = &request.plan;
    let entries: [(_, Setting); 13] = [
        ("duration", request.duration.into()),
        ("warmup", plan.warmup.into()),
        ("placement", plan.placement.to_string().into()),
        ("loop", plan.loop_kind.to_string().into()),
        ("work", plan.work.to_string().into()),
        ("policy", granted.join(", ").into()),
        ("counting", plan.counting.into()),
        ("competitors", plan.competitors.into()),
        ("lock memory", request.lock_memory.into()),
        ("hold idle states", request.hold_idle_states.into()),
        ("move tasks", false.into()),
        ("move interrupts", false.into()),
        ("housekeeping", workbench.housekeeping.clone().into()),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
