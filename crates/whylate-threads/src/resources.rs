//! What the threads of a set share: mutexes, barriers, queues, and the baton of those that hand the
//! CPU to each other.
//!
//! Every wait ends when the run does: a thread that waits looks each quarter of a second whether
//! there is still something to wait for.

mod barrier;
mod baton;
mod queue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use whylate_model::Nanos;
use whylate_rta::task_set::{Protocol, Resource, TaskSet};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::priority_mutex::{self, PriorityMutex};
use whylate_sys::{SysError, futex};

use crate::error::ThreadsError;

pub use barrier::Barrier;
pub use baton::Baton;
pub use queue::Queue;

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
