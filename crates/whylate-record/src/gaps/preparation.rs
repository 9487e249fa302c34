//! What a gap recording is set up with before it measures: the trace, the moved tasks and
//! interrupts, the context of the attribution, and the settings for the record.

use std::path::Path;

use whylate_cause::{Context, Measured, Placement as CausePlacement};
use whylate_gap::{Placement, Session, Work};
use whylate_host::cpus;
use whylate_host::guard::{Guard, InsideCgroup, MovedInterrupts, MovedTasks, Scope};
use whylate_host::topology::Topology;
use whylate_model::identity::INJECTED;
use whylate_model::run::{Moved, MovedOff};
use whylate_model::settings::{self, Policy, Setting, Settings};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, TicksDelta};
use whylate_sys::affinity;

use super::Request;
use crate::RecordError;
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

/// Settings as used, for the record: of threads with these policies, while these CPUs keep house.
pub(super) fn settings(
    request: &Request,
    policies: Vec<Policy>,
    housekeeping: &[CpuId],
    moved_off: &[MovedOff],
) -> Settings {
    let plan = &request.plan;
    let placement = match &plan.placement {
        Placement::Pinned(cpus) => settings::Placement::Pinned { cpus: cpus.clone() },
        Placement::Floating { threads, allowed } => {
            settings::Placement::Floating { threads: (*threads).into(), cpus: allowed.clone() }
        }
    };
    let (work, size) = match plan.work {
        Work::Nothing => ("nothing", None),
        Work::Memmove { bytes } => ("memmove", Some(bytes)),
        Work::Scan { bytes } => ("scan", Some(bytes)),
    };
    let is_moved = |kind| moved_off.iter().any(|of| of.what == kind);
    let entries: [(_, Setting); 13] = [
        ("duration", request.duration.into()),
        ("warmup", plan.warmup.into()),
        ("placement", placement.into()),
        ("loop", plan.loop_kind.to_string().into()),
        ("work", work.into()),
        ("policy", policies.into()),
        ("counting", plan.counting.into()),
        ("competitors", plan.competitors.into()),
        ("lock memory", request.lock_memory.into()),
        ("hold idle states", request.hold_idle_states.into()),
        ("move tasks", is_moved(Moved::Tasks).into()),
        ("move interrupts", is_moved(Moved::Interrupts).into()),
        ("housekeeping", housekeeping.to_vec().into()),
    ];
    let size = size.map(|bytes| ("work size", Setting::SizeBytes(bytes as u64)));
    let injected = request.selftest.map(|count| (INJECTED, Setting::Count(u64::from(count.get()))));
    entries
        .into_iter()
        .chain(size)
        .chain(injected)
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What a guard moved off the measured CPUs.
pub(super) fn moved_off(
    tasks: Option<&MovedTasks>,
    interrupts: Option<&MovedInterrupts>,
) -> Vec<MovedOff> {
    let tasks = tasks.map(|guard| MovedOff {
        what: Moved::Tasks,
        moved: guard.moved() as u64,
        refused: guard.refused() as u64,
        told: guard.describe(),
    });
    let interrupts = interrupts.map(|guard| MovedOff {
        what: Moved::Interrupts,
        moved: guard.moved().len() as u64,
        refused: guard.refused() as u64,
        told: guard.describe(),
    });
    tasks.into_iter().chain(interrupts).collect()
}

#[cfg(test)]
mod tests {
    use whylate_gap::threshold::Threshold;
    use whylate_gap::{self as gap, Plan};
    use whylate_model::Nanos;
    use whylate_model::run::LoopKind;

    use super::*;
    use crate::storage::Limits;

    fn request(placement: Placement, work: Work) -> Request {
        let plan = Plan {
            placement,
            loop_kind: LoopKind::Chain,
            counting: false,
            work,
            threshold: Threshold::Automatic,
            warmup: Nanos(200_000_000),
            policy: gap::Policy::Ordinary,
            competitors: 0,
            stop_at: None,
        };
        Request {
            plan,
            duration: Nanos(1_600_123_456),
            cgroup: None,
            housekeeping: None,
            lock_memory: true,
            hold_idle_states: true,
            trace: false,
            validate: false,
            selftest: None,
            worst: 5,
            move_tasks: true,
            move_interrupts: true,
            on_threshold: Vec::new(),
            storage: Limits::default(),
            seed: 1,
            command_line: Vec::new(),
            question: String::new(),
        }
    }

    #[test]
    fn settings_of_gaps_are_values_and_what_was_moved_is_none_of_them() {
        let cpus = vec![CpuId(1), CpuId(2)];
        let moved = MovedOff { what: Moved::Tasks, moved: 0, refused: 3, told: Vec::new() };
        let both = vec![Policy::Ordinary, Policy::Fifo { priority: 50 }];
        let pinned = request(Placement::Pinned(cpus.clone()), Work::Scan { bytes: 4_096 });
        let told = settings(&pinned, both.clone(), &[CpuId(0)], &[moved]);
        assert_eq!(settings::unfit(&told), [""; 0]);
        assert_eq!(told["duration"], Nanos(1_600_123_456).into());
        assert_eq!(told["placement"], settings::Placement::Pinned { cpus: cpus.clone() }.into());
        assert_eq!(
            (&told["work"], &told["work size"]),
            (&"scan".into(), &Setting::SizeBytes(4_096))
        );
        assert_eq!(told["policy"], both.into());
        assert_eq!((&told["move tasks"], &told["move interrupts"]), (&true.into(), &false.into()));
        let floating = Placement::Floating { threads: 2, allowed: cpus.clone() };
        let told = settings(&request(floating, Work::Nothing), Vec::new(), &[], &[]);
        assert_eq!(settings::unfit(&told), [""; 0]);
        let placement = settings::Placement::Floating { threads: 2, cpus };
        assert_eq!(told["placement"], placement.into());
        assert!(!told.contains_key("work size"));
    }
}
