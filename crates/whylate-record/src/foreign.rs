//! Which processes the foreign threads belong to that had a measured CPU.
//!
//! Each is looked up once under each of its names, soon after it had the CPU; what has ended by then may be
//! among those that ran when the recording began. Memory is bounded.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use whylate_model::Pid;
use whylate_model::cause::{Cause, CauseTotal};
use whylate_model::foreign::{ForeignProcess, ForeignThread};

/// Threads that are looked up: some hundred bytes and some ten microseconds each.
const MOST_LOOKED: usize = 4_096;
/// Threads that are stored.
const MOST_STORED: usize = 256;

/// Foreign threads and their processes.
pub(crate) struct Foreign {
    /// Those that ran at the beginning, by id and name.
    beginning: HashMap<(Pid, String), ForeignProcess>,
    found: BTreeMap<(String, Pid), Option<ForeignProcess>>,
}

impl Foreign {
    /// Nobody yet; with the processes of the host as they are now.
    pub(crate) fn new() -> Self {
        let all = whylate_host::names::processes().into_iter();
        let beginning = all.map(|(tid, comm, process)| ((tid, comm), process)).collect();
        Self { beginning, found: BTreeMap::new() }
    }

    /// Looks for the processes of threads.
    pub(crate) fn look(
        &mut self,
        threads: Vec<(Pid, String)>,
        process_of: impl Fn(Pid, &str) -> Option<ForeignProcess>,
    ) {
        for (tid, comm) in threads {
            if self.found.len() == MOST_LOOKED {
                return;
            }
            let known = process_of(tid, &comm);
            let known = known.or_else(|| self.beginning.get(&(tid, comm.clone())).cloned());
            self.found.insert((comm, tid), known);
        }
    }

    /// Those that are named among these causes.
    pub(crate) fn among(&self, causes: &[CauseTotal]) -> Vec<ForeignThread> {
        let named: BTreeSet<&str> = causes
            .iter()
            .filter_map(|total| match &total.cause {
                Cause::Thread { comm, .. } => Some(comm.as_str()),
                _ => None,
            })
            .collect();
        let found = self.found.iter().filter(|((comm, _), _)| named.contains(comm.as_str()));
        let stored = found.map(|((comm, tid), process)| ForeignThread {
            comm: comm.clone(),
            tid: *tid,
            process: process.clone(),
        });
        stored.take(MOST_STORED).collect()
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;
    use whylate_model::cause::PriorityClass;

    use super::*;

    fn total(comm: &str) -> CauseTotal {
        CauseTotal {
            cause: Cause::Thread { comm: comm.to_owned(), class: PriorityClass::Ordinary },
            cpu: None,
            gaps: 1,
            parts: 1,
            lost_ns: 1.0,
            share_of_lost: 1.0,
            share_of_elapsed: 0.5,
            longest: Nanos(1),
        }
    }

    #[test]
    fn a_thread_that_ended_is_known_from_the_beginning_or_keeps_its_own_name() {
        let process = |pid, name: &str| ForeignProcess { pid: Pid(pid), name: name.to_owned() };
        let named = |tid, comm: &str| (Pid(tid), comm.to_owned());
        let beginning = HashMap::from([(named(11, "before"), process(10, "shell"))]);
        let mut foreign = Foreign { beginning, found: BTreeMap::new() };
        let alive = |tid: Pid, _: &str| (tid == Pid(21)).then(|| process(20, "whylate"));
        let threads =
            [named(11, "before"), named(11, "after"), named(21, "gap/0"), named(31, "no cause")];
        foreign.look(threads.to_vec(), alive);
        let found = foreign.among(&[total("before"), total("after"), total("gap/0")]);
        let thread = |comm: &str, tid, process| ForeignThread {
            comm: comm.to_owned(),
            tid: Pid(tid),
            process,
        };
        // Under another name it is another program.
        let expected = [
            thread("after", 11, None),
            thread("before", 11, Some(process(10, "shell"))),
            thread("gap/0", 21, Some(process(20, "whylate"))),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn no_more_threads_are_looked_up_or_stored_than_there_is_room_for() {
        let mut foreign = Foreign { beginning: HashMap::new(), found: BTreeMap::new() };
        let many = (0..2 * MOST_LOOKED as i32).map(|tid| (Pid(tid), "hog".to_owned()));
        foreign.look(many.collect(), |_, _| None);
        assert_eq!(foreign.found.len(), MOST_LOOKED);
        assert_eq!(foreign.among(&[total("hog")]).len(), MOST_STORED);
    }
}
