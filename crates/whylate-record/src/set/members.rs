//! From a task set to running threads: words looked up, gaps calibrated, seats taken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use whylate_cause::{Context, Measured, Placement as CausePlacement};
use whylate_clock::HardwareCounter;
use whylate_gap::{
    Placement as GapPlacement, Plan, Policy as GapPolicy, Session, ThreadFacts, plan::Work,
};
use whylate_model::run::LoopKind;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos};
use whylate_rta::file;
use whylate_rta::task_set::{self, Thread};
use whylate_sys::{affinity, sched};
use whylate_threads::ledger::Ledger;
use whylate_threads::model::Setting;
use whylate_threads::priority::Priority;
use whylate_threads::reservations::{self, Deadline, Quota, ReservationScheduler, Reservations};
use whylate_threads::resources::Resources;
use whylate_threads::set::{GapLimits, Member, MemberFacts, Orders, Seated, Set};
use whylate_threads::{Model, ThreadsError, Timer, models, timers};

use super::Request;
use crate::RecordError;
use crate::progress::{Progress, Step};
use crate::workbench::Workbench;

/// Time that finding the threshold takes, for each CPU and kind of work: enough turns for a p99.9, also where
/// others have the CPU for half of it. A turn with work takes longer.
const WARMUP: Nanos = Nanos(400_000_000);
const WARMUP_WITHOUT_WORK: Nanos = Nanos(200_000_000);
/// Records that all threads together can hold until they are drained, 20 ms apart: 80 MiB.
const RINGS: usize = 1 << 20;

/// The priority of a thread that names none.
const ORDINARY: &str = "NORMAL";

/// Distance of the seeds of two threads.
const SEEDS_APART: u64 = 1 << 20;

/// Everything that runs, and what is known of it.
pub(super) struct Prepared {
    pub(super) set: Set,
    pub(super) orders: Orders,
    pub(super) ledgers: Vec<Ledger>,
    pub(super) facts: Vec<ThreadFacts>,
    pub(super) reserved: BTreeMap<Scheduler, Held>,
}

/// What a scheduler holds for the set.
pub(super) type Held = Arc<dyn Reservations>;

/// Which scheduler; the names of a task set have no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scheduler {
    Deadline,
    Quota,
}

/// What the words of a thread mean.
struct Understood {
    model: Box<dyn Model<HardwareCounter>>,
    timer: Box<dyn Timer>,
    priority: Priority,
}

/// What is to be known of a thread's model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nature {
    /// What it does between two readings.
    pub(super) work: Work,
    /// Never waits of its own accord.
    pub(super) always_runs: bool,
    /// Its blocks belong into the execution trace.
    pub(super) traced: bool,
}

/// A word of a task set that nothing here goes by.
#[derive(Debug, thiserror::Error)]
#[error("thread {thread}: {reason}")]
pub struct UnknownWord {
    /// Which thread.
    pub thread: String,
    /// What is wrong.
    pub reason: String,
}

/// Every CPU that a thread of the set may run on.
pub(super) fn cpus(request: &Request) -> Vec<CpuId> {
    let threads = request.set.threads.iter();
    let mut cpus: Vec<CpuId> = threads.flat_map(|thread| allowed(request, thread)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Does any thread run before all ordinary ones?
pub(super) fn real_time(request: &Request) -> bool {
    let threads = request.set.threads.iter();
    let by_priority = |thread: &Thread| {
        thread.reservation.is_none()
            && Priority::of(&thread.priority).is_ok_and(Priority::is_real_time)
    };
    threads.clone().any(by_priority)
}

/// Looks every word up, so that a wrong one is told before anything is touched; gives what is
/// to be known of each thread's model.
pub(super) fn understood(request: &Request) -> Result<Vec<Nature>, RecordError> {
    let resources = Resources::of(&request.set)?;
    let threads = request.set.threads.iter().enumerate();
    threads
        .map(|(index, thread)| {
            let model = understand(thread, index, request, &resources)?.model;
            let (work, always_runs) = (model.work(), model.always_runs());
            Ok(Nature { work, always_runs, traced: model.traced() })
        })
        .collect()
}

fn understand(
    thread: &Thread,
    index: usize,
    request: &Request,
    resources: &Resources,
) -> Result<Understood, RecordError> {
    let unknown = |error: &dyn std::fmt::Display| UnknownWord {
        thread: thread.name.clone(),
        reason: error.to_string(),
    };
    let setting = Setting {
        // Apart by more than the steps of a thread, which have seeds of their own.
        seed: request.seed.wrapping_add(index as u64 * SEEDS_APART),
        deadline: thread.deadline,
        steps: &thread.steps,
        program: thread.program.as_ref(),
        cpus: Some(thread.cpus.as_deref().unwrap_or(&request.cpus)),
        resources,
        // A task set opens nothing outside its folder; words name any table.
        tables: &|name| match &request.tables_in {
            Some(folder) => file::beside(folder, name),
            None => file::table(name),
        },
    };
    let model = models::named(&thread.workload, &setting).map_err(|error| unknown(&error))?;
    let timer = timers::named(&thread.timer).map_err(|error| match error {
        // The word is right, and this machine has no such thing.
        ThreadsError::Timer { .. } => RecordError::Threads(error),
        _ => unknown(&error).into(),
    })?;
    let priority = Priority::of(&thread.priority).map_err(|error| unknown(&error))?;
    Ok(Understood { model, timer, priority })
}

/// Starts the threads: calibrates their gap accounting, and seats them one after the other.
pub(super) fn prepare(
    request: &Request,
    workbench: &Workbench,
    stop: &AtomicBool,
    warnings: &mut Vec<Warning>,
    progress: &mut dyn Progress,
) -> Result<Prepared, RecordError> {
    let threads = &request.set.threads;
    let orders = Orders {
        rate: workbench.rate,
        duration: request.duration,
        ring: RINGS / threads.len().max(1),
    };
    let mut calibrated: BTreeMap<(CpuId, Work), ThreadFacts> = BTreeMap::new();
    let resources = Resources::of(&request.set)?;
    let (mut members, mut ledgers, mut facts) = (Vec::new(), Vec::new(), Vec::new());
    let mut priorities = Vec::new();
    for (index, thread) in threads.iter().enumerate() {
        let Understood { model, timer, priority } = understand(thread, index, request, &resources)?;
        let cpus = thread.cpus.clone().unwrap_or_else(|| request.cpus.clone());
        let cpu = cpus.first().copied().unwrap_or_default();
        let work = model.work();
        let known = if let Some(known) = calibrated.get(&(cpu, work)) {
            known.clone()
        } else {
            progress.step(&Step::of("warm-up", warmup(request, work)));
            let known = calibrate(request, workbench, cpu, work, stop)?;
            warnings.extend(known.warnings.iter().cloned());
            calibrated.insert((cpu, work), known.clone());
            known
        };
        ledgers.push(model.ledger());
        members.push(Member {
            name: thread.name.clone(),
            model,
            timer,
            cpus: Some(cpus),
            seat: Box::new(|| Err(ThreadsError::Died)),
            start: thread.start,
            finish: thread.finish,
            limits: GapLimits {
                threshold: known.threshold,
                recording: known.recording,
                recording_with_switches: known.recording_with_switches,
            },
        });
        facts.push(known);
        if thread.reservation.is_some() && !thread.priority.is(ORDINARY) {
            let (name, asked) = (&thread.name, &thread.priority);
            let reason = format!("thread {name}: a reservation takes the place of {asked}");
            warnings.push(Warning::PolicyRefused { reason });
        }
        priorities.push(priority);
    }
    // Made when the calibrating threads have ended: they are not to be in it.
    let reserved = reserve(request, workbench, progress)?;
    for ((member, thread), priority) in members.iter_mut().zip(threads).zip(priorities) {
        take_seat(member, thread, priority, &reserved);
    }
    let set = Set::prepare(members, &workbench.counter, &orders, stop)?;
    for (known, member) in facts.iter_mut().zip(set.members()) {
        known.tid = member.tid;
        known.cpu = member.cpu;
        known.rseq = member.rseq;
        known.warnings.clone_from(&member.seated.warnings);
        known.fifo = match member.seated.policy {
            sched::Policy::Fifo(priority) => Some(priority),
            _ => None,
        };
        warnings.extend(member.seated.warnings.iter().cloned());
    }
    Ok(Prepared { set, orders, ledgers, facts, reserved })
}

/// Makes the host ready for the reservations of the set, and says what that changes.
fn reserve(
    request: &Request,
    workbench: &Workbench,
    progress: &mut dyn Progress,
) -> Result<BTreeMap<Scheduler, Held>, RecordError> {
    let mut asked: BTreeMap<Scheduler, (Vec<reservations::Request>, Vec<CpuId>)> = BTreeMap::new();
    for thread in &request.set.threads {
        let Some(reservation) = &thread.reservation else { continue };
        let (requests, cpus) = asked.entry(Scheduler::of(reservation.scheduler)).or_default();
        requests.push(reservation.into());
        cpus.extend(thread.cpus.as_ref().unwrap_or(&request.cpus));
    }
    let mut held = BTreeMap::new();
    for (which, (requests, mut cpus)) in asked {
        cpus.sort_unstable();
        cpus.dedup();
        let scheduler: Box<dyn ReservationScheduler> = match which {
            Scheduler::Deadline => Box::new(Deadline::that_grants(&requests, &cpus)),
            Scheduler::Quota => Box::new(Quota),
        };
        scheduler.check(&requests, &cpus)?;
        let prepared = scheduler.prepare(&workbench.journal, &cpus)?;
        prepared.describe().iter().for_each(|line| progress.say(line));
        held.insert(which, Arc::from(prepared));
    }
    Ok(held)
}

impl Scheduler {
    fn of(named: task_set::ReservationScheduler) -> Self {
        match named {
            task_set::ReservationScheduler::Deadline => Self::Deadline,
            task_set::ReservationScheduler::Quota => Self::Quota,
        }
    }
}

/// Gives a member its seat: a reservation, or a priority beside those that have one.
fn take_seat<C>(
    member: &mut Member<C>,
    thread: &Thread,
    priority: Priority,
    reserved: &BTreeMap<Scheduler, Held>,
) {
    let Some(reservation) = thread.reservation else {
        if let Some(deadlines) = reserved.get(&Scheduler::Deadline).cloned() {
            // On the CPUs of an exclusive cpuset there is no other way in.
            member.cpus = None;
            let cpus = thread.cpus.clone();
            member.seat = Box::new(move || {
                deadlines.join()?;
                if let Some(cpus) = cpus {
                    affinity::set(&cpus).map_err(ThreadsError::Resource)?;
                }
                Ok(seat(priority))
            });
        } else {
            member.seat = Box::new(move || Ok(seat(priority)));
        }
        return;
    };
    let scheduler = Scheduler::of(reservation.scheduler);
    let Some(held) = reserved.get(&scheduler).cloned() else { return };
    let request = reservations::Request::from(&reservation);
    if scheduler == Scheduler::Deadline {
        // A thread with a deadline must be free to run on all CPUs of its domain.
        member.cpus = None;
    }
    member.seat = Box::new(move || {
        let applied = held.apply(request)?;
        Ok(Seated { policy: applied.policy, warnings: Vec::new() })
    });
}

/// Takes a priority. One that is refused is a warning, and the thread goes on with what it has.
fn seat(priority: Priority) -> Seated {
    let mut warnings = Vec::new();
    if let Err(refusal) = sched::set(priority.policy()) {
        let reason = format!(
            "{refusal}; the thread goes on with the policy it has, and others may take its CPU"
        );
        warnings.push(Warning::PolicyRefused { reason });
    }
    Seated { policy: sched::policy(), warnings }
}

/// How long a thread with this work warms up.
fn warmup(request: &Request, work: Work) -> Nanos {
    let usual = if work == Work::Nothing { WARMUP_WITHOUT_WORK } else { WARMUP };
    request.warmup.unwrap_or(usual)
}

/// Which delta is a gap to a thread on this CPU with this work, and what recording one costs: a
/// thread of its own finds out before the set runs.
fn calibrate(
    request: &Request,
    workbench: &Workbench,
    cpu: CpuId,
    work: Work,
    stop: &AtomicBool,
) -> Result<ThreadFacts, RecordError> {
    let plan = Plan {
        placement: GapPlacement::Pinned(vec![cpu]),
        loop_kind: LoopKind::Chain,
        counting: false,
        work,
        threshold: request.threshold,
        warmup: warmup(request, work),
        policy: GapPolicy::Ordinary,
        competitors: 0,
        stop_at: None,
    };
    let session = Session::prepare_unless(&plan, &workbench.counter, workbench.rate, stop)?;
    let facts = session.threads().next().cloned();
    Ok(facts.ok_or(whylate_gap::GapError::NoCpus)?)
}

/// The CPUs that a thread may ever run on.
pub(super) fn allowed(request: &Request, thread: &Thread) -> Vec<CpuId> {
    let unsaid = || {
        // Phases may still say so, and the rest of them is where the whole set runs.
        let own = Thread { cpus: Some(request.cpus.clone()), ..thread.clone() };
        own.all_cpus().unwrap_or_default()
    };
    thread.all_cpus().unwrap_or_else(unsaid)
}

/// How much later than asked the kernel may let the thread's timer fire under the policy that the
/// thread has: real-time threads have no slack, whatever was set. None where it is not known.
pub(super) fn slack_of(member: &MemberFacts) -> Option<Nanos> {
    let set = member.timer.slack?;
    Some(match member.seated.policy {
        sched::Policy::Fifo(_) | sched::Policy::RoundRobin(_) | sched::Policy::Deadline { .. } => {
            Nanos(0)
        }
        _ => set,
    })
}

/// What the attribution knows beside gaps and events.
pub(super) fn context(
    request: &Request,
    set: &Set,
    (natures, facts): (&[Nature], &[ThreadFacts]),
    workbench: &Workbench,
) -> Context {
    let threads = set.members().zip(facts).enumerate();
    let threads = threads
        .map(|(index, (member, facts))| Measured {
            index: index as u16,
            pid: member.tid,
            cpu: member.cpu,
            placement: if allowed(request, &request.set.threads[index]).len() == 1 {
                CausePlacement::Pinned
            } else {
                CausePlacement::Floating
            },
            period_ticks: facts.warmup_period,
            always_runs: natures[index].always_runs,
            slack: slack_of(member).unwrap_or_default().to_ticks(workbench.rate),
        })
        .collect();
    workbench.context(threads)
}
