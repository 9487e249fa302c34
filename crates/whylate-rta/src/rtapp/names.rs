//! Names of what the tasks of a workload share.
//!
//! rt-app keeps the names of mutexes, conditions, barriers and so on apart, and a file may call two
//! of them alike; in a task set each has a name of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::task_set::{Protocol, Resource};

/// Which names are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    Mutex,
    /// Also what threads are suspended on: rt-app keeps one table of both.
    Condition,
    Barrier,
    Semaphore,
    Fork,
}

/// Everything that has been named so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: BTreeMap<(Space, String), String>,
    taken: BTreeSet<String>,
    /// Threads that use each barrier.
    barriers: BTreeMap<String, u32>,
    order: Vec<(Space, String)>,
}

impl Names {
    /// The name in the task set of what the file calls so.
    pub(super) fn of(&mut self, space: Space, name: &str) -> String {
        if let Some(given) = self.given.get(&(space, name.to_owned())) {
            return given.clone();
        }
        let plain = space != Space::Fork && !self.taken.contains(name);
        let mut given = if plain { name.to_owned() } else { format!("{name}.{}", space.word()) };
        while self.taken.contains(&given) {
            given.push('.');
        }
        self.taken.insert(given.clone());
        self.given.insert((space, name.to_owned()), given.clone());
        self.order.push((space, given.clone()));
        given
    }

    /// One more thread uses the barrier.
    pub(super) fn uses(&mut self, barrier: &str, threads: u32) {
        let known = self.barriers.entry(barrier.to_owned()).or_default();
        *known = known.saturating_add(threads);
    }

    /// Everything that was named, as resources.
    pub(super) fn resources(self, protocol: Protocol) -> Vec<Resource> {
        let barriers = self.barriers;
        let resource = |(space, name): (Space, String)| match space {
            Space::Mutex => Resource::Mutex { name, protocol },
            Space::Condition => Resource::Condition { name },
            Space::Barrier => {
                let threads = barriers.get(&name).copied().unwrap_or_default();
                Resource::Barrier { name, threads }
            }
            Space::Semaphore | Space::Fork => Resource::Semaphore { name, value: 0 },
        };
        self.order.into_iter().map(resource).collect()
    }
}

impl Space {
    fn word(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Condition => "condition",
            Self::Barrier => "barrier",
            Self::Semaphore => "semaphore",
            Self::Fork => "fork",
        }
    }
}
