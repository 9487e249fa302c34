//! What one job of a periodic thread does: receives its execution time, or goes through steps.

use std::sync::Arc;

use whylate_clock::Counter;
use whylate_gap::workload::Nothing;
use whylate_model::gap::GapKind;
use whylate_model::{Nanos, Ticks};
use whylate_rta::call::{Call, CallError};
use whylate_rta::demand::{Demand, Sampler};
use whylate_rta::task_set::Step;
use whylate_sys::priority_mutex::{Acquired, PriorityMutex};

use crate::model::Setting;
use crate::resources::{Barrier, Queue, next_look};
use crate::stage::{End, Stage};

/// The word that stands in place of an amount where a thread has steps.
const STEPS: &str = "steps";

/// What one job does.
pub(super) enum Job {
    Amount(Sampler),
    Steps(Vec<Action>),
}

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
}

impl Job {
    /// The first argument of a call: an execution time, or the word for the thread's steps.
    pub(super) fn read(
        call: &Call,
        setting: &Setting<'_>,
        usage: &'static str,
    ) -> Result<Self, CallError> {
        let what = "amount";
        let amount = call.argument(0, what, usage)?;
        if amount.eq_ignore_ascii_case(STEPS) {
            let actions = setting.steps.iter().zip(0..).map(|(step, number)| {
                let seed = setting.seed.wrapping_add(number);
                action(step, setting, seed).ok_or_else(|| {
                    call.refused(what, format!("`{step}` names a resource that there is not"))
                })
            });
            return actions.collect::<Result<_, _>>().map(Self::Steps);
        }
        let demand = Demand::parse(amount, setting.tables)
            .map_err(|error| call.refused(what, error.to_string()))?;
        Ok(Self::Amount(demand.sampler(setting.seed)))
    }

    /// Has it steps that do anything but run?
    pub(super) fn may_wait(&self) -> bool {
        match self {
            Self::Amount(_) => false,
            Self::Steps(steps) => steps.iter().any(|step| !matches!(step, Action::Run(_))),
        }
    }

    /// Does one job; gives the execution time that it asked for and the reading at its end.
    pub(super) fn run<C: Counter>(
        &mut self,
        stage: &mut Stage<'_, C>,
    ) -> Result<(Nanos, Ticks), End> {
        match self {
            Self::Amount(demand) => {
                let amount = demand.draw();
                stage.receive(amount, &mut Nothing).map(|at| (amount, at))
            }
            Self::Steps(actions) => {
                let mut held = Held::default();
                let mut asked = Nanos(0);
                for action in actions {
                    asked = Nanos(asked.0 + action.run(stage, &mut held)?.0);
                }
                Ok((asked, stage.last()))
            }
        }
    }
}

fn action(step: &Step, setting: &Setting<'_>, seed: u64) -> Option<Action> {
    let shared = setting.resources;
    Some(match step {
        Step::Run(demand) => Action::Run(demand.sampler(seed)),
        Step::Lock(name) => Action::Lock(shared.mutex(name)?),
        Step::Unlock(name) => Action::Unlock(shared.mutex(name)?),
        Step::Barrier(name) => Action::Barrier(shared.barrier(name)?),
        Step::Push(name) => Action::Push(shared.queue(name)?),
        Step::Pop(name) => Action::Pop(shared.queue(name)?),
        Step::Sleep(time) => Action::Sleep(*time),
        Step::Yield => Action::Yield,
    })
}

/// Mutexes that a job holds: they are given up when it ends, also before its last step.
#[derive(Default)]
struct Held(Vec<Arc<PriorityMutex>>);

impl Drop for Held {
    fn drop(&mut self) {
        for mutex in self.0.drain(..).rev() {
            // Only the holder is here, and the holder may unlock.
            let _ = mutex.unlock();
        }
    }
}

impl Action {
    fn run<C: Counter>(&mut self, stage: &mut Stage<'_, C>, held: &mut Held) -> Result<Nanos, End> {
        match self {
            Self::Run(demand) => {
                let amount = demand.draw();
                stage.receive(amount, &mut Nothing)?;
                return Ok(amount);
            }
            Self::Lock(mutex) => {
                let got = mutex.try_lock().map_err(End::from)?;
                if got == Acquired::TimedOut {
                    stage.wait_in(GapKind::Blocked, |over| {
                        loop {
                            if mutex.lock_until(next_look())? == Acquired::Yes {
                                held.0.push(Arc::clone(mutex));
                                return Ok(());
                            }
                            if over() {
                                return Ok(());
                            }
                        }
                    })?;
                } else {
                    held.0.push(Arc::clone(mutex));
                }
            }
            Self::Unlock(mutex) => {
                held.0.retain(|held| !Arc::ptr_eq(held, mutex));
                mutex.unlock().map_err(End::from)?;
            }
            Self::Barrier(barrier) => stage.wait_in(GapKind::Blocked, |over| barrier.wait(over))?,
            Self::Push(queue) => {
                if !queue.try_push().map_err(End::from)? {
                    stage.wait_in(GapKind::Blocked, |over| queue.push(over))?;
                }
            }
            Self::Pop(queue) => {
                if !queue.try_pop().map_err(End::from)? {
                    stage.wait_in(GapKind::Blocked, |over| queue.pop(over))?;
                }
            }
            Self::Sleep(time) => {
                let until = stage.now() + *time;
                stage.sleep_until(until)?;
            }
            Self::Yield => stage.yield_now()?,
        }
        Ok(Nanos(0))
    }
}
