//! What is checked of each thread and each resource alone; [`super::deadlock`] has what is between
//! them.

use std::collections::HashSet;

use whylate_model::{Nanos, Printable};

use super::error::{Field, Owner, TaskSetError};
use super::{
    Kind, LARGEST_QUEUE, LONGEST_NAME, MOST_CPUS, MOST_RESOURCES, MOST_STEPS, MOST_THREADS,
    Protocol, Resource, Step, TaskSet, Thread, deadlock, program,
};

pub(super) fn check(set: &TaskSet) -> Result<(), TaskSetError> {
    match set.threads.len() {
        0 => return Err(TaskSetError::NoThreads),
        count if count > MOST_THREADS => return Err(TaskSetError::TooManyThreads(count)),
        _ => {}
    }
    if set.resources.len() > MOST_RESOURCES {
        return Err(TaskSetError::TooManyResources(set.resources.len()));
    }
    names(set.threads.iter().map(|t| Owner::Thread(t.name.clone())))?;
    names(set.resources.iter().map(|r| Owner::Resource(r.kind(), r.name().to_owned())))?;
    set.resources.iter().try_for_each(resource)?;
    set.threads.iter().try_for_each(thread)?;
    set.threads.iter().try_for_each(|thread| steps(set, thread))?;
    deadlock::check(set)
}

fn names(owners: impl Iterator<Item = Owner>) -> Result<(), TaskSetError> {
    let mut seen = HashSet::new();
    for owner in owners {
        let (Owner::Thread(name) | Owner::Resource(_, name)) = &owner;
        let prints = Printable(name).to_string() == *name
            && !name.contains(|c: char| c.is_whitespace() || "(),".contains(c));
        if name.is_empty() || name.len() > LONGEST_NAME || !prints {
            return Err(TaskSetError::BadName(owner));
        }
        if !seen.insert(name.clone()) {
            return Err(TaskSetError::Duplicate(owner));
        }
    }
    Ok(())
}

fn resource(resource: &Resource) -> Result<(), TaskSetError> {
    match resource {
        Resource::Mutex { name, protocol: Protocol::Protect { ceiling } }
            if !(1..=98).contains(ceiling) =>
        {
            Err(TaskSetError::Ceiling { name: name.clone(), ceiling: *ceiling })
        }
        Resource::Queue { name, capacity } if !(1..=LARGEST_QUEUE).contains(capacity) => {
            Err(TaskSetError::Capacity { name: name.clone(), capacity: *capacity })
        }
        _ => Ok(()),
    }
}

fn thread(thread: &Thread) -> Result<(), TaskSetError> {
    let name = || thread.name.clone();
    let zero = |field| TaskSetError::Zero { thread: name(), field };
    let phases = thread.program.iter().flat_map(|program| &program.phases);
    for cpus in phases.filter_map(|phase| phase.cpus.as_ref()).chain(&thread.cpus) {
        if cpus.is_empty() {
            return Err(TaskSetError::NoCpus(name()));
        }
        if let Some(&cpu) = cpus.iter().find(|cpu| cpu.0 >= MOST_CPUS) {
            return Err(TaskSetError::NoSuchCpu { thread: name(), cpu });
        }
    }
    if let Some(reservation) = thread.reservation {
        let (amount, period) = (reservation.amount, reservation.period);
        if amount == Nanos(0) {
            return Err(zero(Field::Amount));
        }
        if period == Nanos(0) {
            return Err(zero(Field::Period));
        }
        if amount > period {
            return Err(TaskSetError::AmountAbovePeriod { thread: name(), amount, period });
        }
    }
    if thread.deadline == Some(Nanos(0)) {
        return Err(zero(Field::Deadline));
    }
    match thread.finish {
        Some(finish) if finish <= thread.start => {
            Err(TaskSetError::FinishBeforeStart { thread: name(), start: thread.start, finish })
        }
        _ => Ok(()),
    }
}

/// Each step leads somewhere, and each lock is unlocked.
fn steps(set: &TaskSet, thread: &Thread) -> Result<(), TaskSetError> {
    let name = || thread.name.clone();
    let takes_steps = thread.workload.arguments.iter().any(|a| a.eq_ignore_ascii_case("steps"));
    match (thread.steps.len(), takes_steps) {
        (0, true) => return Err(TaskSetError::NoSteps(name())),
        (1.., false) => {
            let workload = thread.workload.to_string();
            return Err(TaskSetError::StepsUnused { thread: name(), workload });
        }
        (count, true) if count > MOST_STEPS => {
            return Err(TaskSetError::TooManySteps { thread: name(), count });
        }
        _ => {}
    }
    for step in thread.written_steps() {
        if *step == Step::Sleep(Nanos(0)) {
            return Err(TaskSetError::Zero { thread: name(), field: Field::Sleep });
        }
        step.resources().try_for_each(|(name, kind)| known(set, thread, name, kind))?;
    }
    if !thread.steps.is_empty() && !thread.steps.iter().any(Step::takes_time) {
        return Err(TaskSetError::EmptyJob(name()));
    }
    let mut held = Vec::new();
    locks(thread, &thread.steps, &mut held)?;
    if let Some(written) = &thread.program {
        program::check(thread, written)?;
        for phase in &written.phases {
            locks(thread, &phase.steps, &mut held)?;
            if phase.repeat != Some(1) {
                // What the first pass left locked, the second finds so.
                locks(thread, &phase.steps, &mut held)?;
            }
        }
    }
    match held.first() {
        Some(mutex) => {
            Err(TaskSetError::LockWithoutUnlock { thread: name(), mutex: (*mutex).clone() })
        }
        None => Ok(()),
    }
}

/// There is a resource of that name, and it is of that kind.
fn known(set: &TaskSet, thread: &Thread, name: &str, kind: Kind) -> Result<(), TaskSetError> {
    let (thread, name) = (thread.name.clone(), name.to_owned());
    match set.resource(&name).map(Resource::kind) {
        Some(is) if is == kind => Ok(()),
        Some(is) => Err(TaskSetError::WrongKind { thread, name, wanted: kind, is }),
        None => Err(TaskSetError::UnknownResource { thread, kind, name }),
    }
}

/// Follows the mutexes that are held from step to step.
fn locks<'a>(
    thread: &Thread,
    steps: &'a [Step],
    held: &mut Vec<&'a String>,
) -> Result<(), TaskSetError> {
    let at = |mutex: &String| (thread.name.clone(), mutex.clone());
    for step in steps {
        match step {
            Step::Lock(mutex) if held.contains(&mutex) => {
                let (thread, mutex) = at(mutex);
                return Err(TaskSetError::LockedTwice { thread, mutex });
            }
            Step::Lock(mutex) => held.push(mutex),
            Step::Unlock(mutex) => {
                let Some(index) = held.iter().position(|one| *one == mutex) else {
                    let (thread, mutex) = at(mutex);
                    return Err(TaskSetError::UnlockWithoutLock { thread, mutex });
                };
                held.remove(index);
            }
            Step::Wait { mutex, condition } if !held.contains(&mutex) => {
                let (thread, mutex) = at(mutex);
                let condition = condition.clone();
                return Err(TaskSetError::WaitWithoutLock { thread, mutex, condition });
            }
            _ => {}
        }
    }
    Ok(())
}
