//! The steps of jobs and programs at work: each with what it works on, found before the run.
//!
//! Every wait is a gap of its own kind and ends with the run. A mutex that is held when the body
//! ends is given up.

use std::sync::Arc;

use whylate_clock::Counter;
use whylate_gap::workload::Nothing;
use whylate_model::gap::GapKind;
use whylate_model::{Nanos, TicksDelta};
use whylate_rta::demand::Sampler;
use whylate_rta::task_set::Step;
use whylate_sys::SysError;
use whylate_sys::priority_mutex::{Acquired, PriorityMutex};

use crate::model::Setting;
use crate::resources::{Barrier, Condition, Place, Queue, Semaphore, next_look};
use crate::stage::{End, Stage};

/// A step with what it works on.
pub(super) enum Action {
    Run(Sampler),
    Lock(Arc<PriorityMutex>),
    Unlock(Arc<PriorityMutex>),
    Barrier(Arc<Barrier>),
    Push(Arc<Queue>),
    Pop(Arc<Queue>),
    Sleep(Nanos),
    Yield,
    Wait(Arc<Condition>, Arc<PriorityMutex>),
    Sync(Arc<Condition>, Arc<PriorityMutex>),
    Signal(Arc<Condition>),
    Broadcast(Arc<Condition>),
    Suspend(Arc<Condition>),
    Post(Arc<Semaphore>),
    Take(Arc<Semaphore>),
}

/// What a run step asked for, and what it received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ran {
    pub(super) asked: Nanos,
    pub(super) received: TicksDelta,
}

/// Mutexes that a job holds: they are given up when it ends, also before its last step.
#[derive(Default)]
pub(super) struct Held(Vec<Arc<PriorityMutex>>);

impl Held {
    /// No longer among those that are held; was it?
    fn forget(&mut self, mutex: &Arc<PriorityMutex>) -> bool {
        let before = self.0.len();
        self.0.retain(|held| !Arc::ptr_eq(held, mutex));
        self.0.len() < before
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for mutex in self.0.drain(..).rev() {
            // Only the holder is here, and the holder may unlock.
            let _ = mutex.unlock();
        }
    }
}

impl Action {
    /// The action of a step; none for a step of programs alone, or one that names nothing known.
    pub(super) fn of(step: &Step, setting: &Setting<'_>, seed: u64) -> Option<Self> {
        let shared = setting.resources;
        Some(match step {
            Step::Run(demand) => Self::Run(demand.sampler(seed)),
            Step::Lock(name) => Self::Lock(shared.mutex(name)?),
            Step::Unlock(name) => Self::Unlock(shared.mutex(name)?),
            Step::Barrier(name) => Self::Barrier(shared.barrier(name)?),
            Step::Push(name) => Self::Push(shared.queue(name)?),
            Step::Pop(name) => Self::Pop(shared.queue(name)?),
            Step::Sleep(time) => Self::Sleep(*time),
            Step::Yield => Self::Yield,
            Step::Wait { condition, mutex } => {
                Self::Wait(shared.condition(condition)?, shared.mutex(mutex)?)
            }
            Step::Sync { condition, mutex } => {
                Self::Sync(shared.condition(condition)?, shared.mutex(mutex)?)
            }
            Step::Signal(name) => Self::Signal(shared.condition(name)?),
            Step::Broadcast(name) | Step::Resume(name) => Self::Broadcast(shared.condition(name)?),
            Step::Suspend(name) => Self::Suspend(shared.condition(name)?),
            Step::SemPost(name) | Step::Fork(name) => Self::Post(shared.semaphore(name)?),
            Step::SemWait(name) => Self::Take(shared.semaphore(name)?),
            Step::Runtime(_) | Step::Timer { .. } | Step::Mem(_) | Step::IoRun(_) => return None,
        })
    }

    /// Does it.
    pub(super) fn run<C: Counter>(
        &mut self,
        stage: &mut Stage<'_, C>,
        held: &mut Held,
    ) -> Result<Ran, End> {
        match self {
            Self::Run(demand) => {
                let asked = demand.draw();
                let received = stage.receive_counted(asked, &mut Nothing)?;
                return Ok(Ran { asked, received });
            }
            Self::Lock(mutex) => lock(mutex, stage, held)?,
            Self::Unlock(mutex) => {
                held.forget(mutex);
                mutex.unlock()?;
            }
            Self::Barrier(barrier) => blocked(stage, |over| barrier.wait(over))?,
            Self::Push(queue) => {
                if !queue.try_push()? {
                    blocked(stage, |over| queue.push(over))?;
                }
            }
            Self::Pop(queue) => {
                if !queue.try_pop()? {
                    blocked(stage, |over| queue.pop(over))?;
                }
            }
            Self::Sleep(time) => {
                let until = stage.now() + *time;
                stage.sleep_until(until)?;
            }
            Self::Yield => stage.yield_now()?,
            Self::Wait(condition, mutex) => {
                wait(condition, mutex, stage, held, |condition| Ok(condition.draw()))?;
            }
            Self::Sync(condition, mutex) => {
                let its_own = !held.0.iter().any(|held| Arc::ptr_eq(held, mutex));
                if its_own {
                    lock(mutex, stage, held)?;
                }
                wait(condition, mutex, stage, held, Condition::signal_and_draw)?;
                if its_own {
                    held.forget(mutex);
                    mutex.unlock()?;
                }
            }
            Self::Signal(condition) => condition.signal()?,
            Self::Broadcast(condition) => condition.broadcast()?,
            Self::Suspend(condition) => {
                blocked(stage, |over| condition.wait(condition.draw(), over))?;
            }
            Self::Post(semaphore) => semaphore.post()?,
            Self::Take(semaphore) => {
                if !semaphore.try_wait() {
                    blocked(stage, |over| semaphore.wait(over))?;
                }
            }
        }
        Ok(Ran::default())
    }
}

fn blocked<C: Counter>(
    stage: &mut Stage<'_, C>,
    wait: impl FnOnce(&dyn Fn() -> bool) -> Result<(), SysError>,
) -> Result<(), End> {
    stage.wait_in(GapKind::Blocked, wait)
}

fn lock<C: Counter>(
    mutex: &Arc<PriorityMutex>,
    stage: &mut Stage<'_, C>,
    held: &mut Held,
) -> Result<(), End> {
    if mutex.try_lock()? == Acquired::TimedOut {
        return blocked(stage, |over| take(mutex, held, over));
    }
    held.0.push(Arc::clone(mutex));
    Ok(())
}

/// Waits for a mutex until it is held, or `over`.
fn take(
    mutex: &Arc<PriorityMutex>,
    held: &mut Held,
    over: &dyn Fn() -> bool,
) -> Result<(), SysError> {
    loop {
        if mutex.lock_until(next_look())? == Acquired::Yes {
            held.0.push(Arc::clone(mutex));
            return Ok(());
        }
        if over() {
            return Ok(());
        }
    }
}

/// Gives up a mutex, waits for a condition, and takes the mutex again: one wait.
fn wait<C: Counter>(
    condition: &Condition,
    mutex: &Arc<PriorityMutex>,
    stage: &mut Stage<'_, C>,
    held: &mut Held,
    draw: fn(&Condition) -> Result<Place, SysError>,
) -> Result<(), End> {
    blocked(stage, |over| {
        // Drawn under the mutex: a signal from whoever takes it next is not lost.
        let place = draw(condition)?;
        held.forget(mutex);
        mutex.unlock()?;
        condition.wait(place, over)?;
        take(mutex, held, over)
    })
}
