//! What the threads of a set share: mutexes, barriers, queues, conditions, semaphores, the instants
//! of timers, and the baton of those that hand the CPU to each other.
//!
//! Every wait ends when the run does: a thread that waits looks each quarter of a second whether
//! there is still something to wait for.

mod barrier;
mod baton;
mod condition;
mod queue;
mod semaphore;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use whylate_model::Nanos;
use whylate_rta::task_set::{Protocol, Resource, Step, TaskSet, Thread};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::priority_mutex::{self, PriorityMutex};
use whylate_sys::{SysError, futex};

use crate::error::ThreadsError;

pub use barrier::Barrier;
pub use baton::Baton;
pub use condition::{Condition, Place};
pub use queue::Queue;
pub use semaphore::Semaphore;

/// A waiting thread looks this often whether the run is over.
const LOOK_EVERY: Nanos = Nanos(250_000_000);
/// The name of the model that hands the CPU on: one baton goes round among its threads.
pub(crate) const HAND_OFF: &str = "HAND_OFF";

/// What the threads of one set share.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    mutexes: BTreeMap<String, Arc<PriorityMutex>>,
    barriers: BTreeMap<String, Arc<Barrier>>,
    queues: BTreeMap<String, Arc<Queue>>,
    conditions: BTreeMap<String, Arc<Condition>>,
    semaphores: BTreeMap<String, Arc<Semaphore>>,
    /// The last instant of each timer, by the timers' clock; zero before its first.
    instants: BTreeMap<String, Arc<AtomicU64>>,
    baton: Arc<Baton>,
}

impl Resources {
    /// The resources of a set, all free and empty.
    pub fn of(set: &TaskSet) -> Result<Self, ThreadsError> {
        let runners = set.threads.iter().filter(|thread| thread.workload.is(HAND_OFF)).count();
        let mut shared = Self { baton: Arc::new(Baton::among(runners)), ..Self::default() };
        for resource in &set.resources {
            match resource {
                Resource::Mutex { name, protocol } => {
                    let protocol = match protocol {
                        Protocol::None => priority_mutex::Protocol::None,
                        Protocol::Inherit => priority_mutex::Protocol::Inherit,
                        Protocol::Protect { ceiling } => {
                            priority_mutex::Protocol::Ceiling(*ceiling)
                        }
                    };
                    let mutex = PriorityMutex::new(protocol).map_err(ThreadsError::Resource)?;
                    shared.mutexes.insert(name.clone(), Arc::new(mutex));
                }
                Resource::Barrier { name, threads } => {
                    shared.barriers.insert(name.clone(), Arc::new(Barrier::of(*threads)));
                }
                Resource::Queue { name, capacity } => {
                    shared.queues.insert(name.clone(), Arc::new(Queue::of(*capacity)));
                }
                Resource::Condition { name } => {
                    shared.conditions.insert(name.clone(), Arc::default());
                }
                Resource::Semaphore { name, value } => {
                    shared.semaphores.insert(name.clone(), Arc::new(Semaphore::of(*value)));
                }
            }
        }
        for step in set.threads.iter().flat_map(Thread::written_steps) {
            if let Step::Timer { name, .. } = step {
                shared.instants.entry(name.clone()).or_default();
            }
        }
        Ok(shared)
    }

    /// The mutex of that name.
    #[must_use]
    pub fn mutex(&self, name: &str) -> Option<Arc<PriorityMutex>> {
        self.mutexes.get(name).cloned()
    }

    /// The barrier of that name.
    #[must_use]
    pub fn barrier(&self, name: &str) -> Option<Arc<Barrier>> {
        self.barriers.get(name).cloned()
    }

    /// The queue of that name.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.queues.get(name).cloned()
    }

    /// The condition of that name.
    #[must_use]
    pub fn condition(&self, name: &str) -> Option<Arc<Condition>> {
        self.conditions.get(name).cloned()
    }

    /// The semaphore of that name.
    #[must_use]
    pub fn semaphore(&self, name: &str) -> Option<Arc<Semaphore>> {
        self.semaphores.get(name).cloned()
    }

    /// The last instant of the timer of that name.
    #[must_use]
    pub fn instant(&self, name: &str) -> Option<Arc<AtomicU64>> {
        self.instants.get(name).cloned()
    }

    /// The baton of the set.
    #[must_use]
    pub fn baton(&self) -> Arc<Baton> {
        Arc::clone(&self.baton)
    }
}

/// When a waiting thread looks next.
pub(crate) fn next_look() -> u64 {
    clock_ns(Clock::Monotonic) + LOOK_EVERY.0
}

/// Waits while `word` holds `value`, one look long at most.
fn wait_while(word: &AtomicU32, value: u32) -> Result<(), SysError> {
    futex::wait_until(word, value, Some(next_look())).map(|_| ())
}

fn wake_all(word: &AtomicU32) -> Result<(), SysError> {
    futex::wake(word, u32::MAX >> 1).map(|_| ())
}

#[cfg(test)]
mod tests;
