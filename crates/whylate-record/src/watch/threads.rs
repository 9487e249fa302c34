//! The threads of a watched process, as its folder in `/proc` lists them now and then.
//!
//! Whoever began and ended between two looks was never seen, and what a thread read or answered before it
//! was found is not its own. Those that have ended stay for as long as what they read may still be on its
//! way here.
//!
//! Guarantees: memory does not grow with the run. What there was no room for is counted.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::{CpuId, Nanos, Pid};

/// The process' threads are read from `/proc` so often: each costs some microseconds.
pub(super) const LOOK_EVERY: Nanos = Nanos(200_000_000);
/// A thread that has ended is forgotten after this: longer than a message is waited for. Its number may
/// be another's by then.
const KEPT: Nanos = Nanos(3_000_000_000);
/// Threads that are watched at once.
const MOST_WATCHED: usize = 1 << 16;
/// Threads that are listed with the CPU that they had last: a list that is still read.
const MOST_LISTED: usize = 1 << 10;

/// What a look at the process changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Threads that were not watched before.
    pub(super) news: Vec<Pid>,
    /// Threads of which nothing can come any more.
    pub(super) forgotten: Vec<Pid>,
}

/// Threads that live, and those that ended not long ago.
#[derive(Debug)]
pub(super) struct Threads {
    live: BTreeSet<Pid>,
    /// When it was seen that they had ended.
    ended: BTreeMap<Pid, Nanos>,
    /// Those that read or answered, and where they ran last.
    listed: BTreeMap<Pid, CpuId>,
    /// All that were ever watched.
    seen: u64,
    /// Were taken off the list again: they had ended.
    unlisted: u64,
    /// Times that a thread read or answered for which the list had no room.
    crowded: u64,
    /// Most threads at a look that there was no room to watch.
    unwatched: u64,
}

impl Threads {
    /// These live now.
    pub(super) fn new(now: &[Pid]) -> Self {
        let mut threads = Self {
            live: BTreeSet::new(),
            ended: BTreeMap::new(),
            listed: BTreeMap::new(),
            seen: 0,
            unlisted: 0,
            crowded: 0,
            unwatched: 0,
        };
        threads.look(now, Nanos(0));
        threads
    }

    /// These live at that time since the beginning.
    pub(super) fn look(&mut self, now: &[Pid], at: Nanos) -> Changes {
        let current: BTreeSet<Pid> = now.iter().copied().take(MOST_WATCHED).collect();
        let left_out = now.len().saturating_sub(MOST_WATCHED);
        self.unwatched = self.unwatched.max(left_out as u64);
        let news: Vec<Pid> = current.difference(&self.live).copied().collect();
        self.seen += news.len() as u64;
        for thread in self.live.difference(&current) {
            self.ended.insert(*thread, at);
        }
        for thread in &news {
            // Another one has its number.
            self.ended.remove(thread);
        }
        self.live = current;
        let over = |(thread, since): (&Pid, &Nanos)| {
            (at.0.saturating_sub(since.0) >= KEPT.0).then_some(*thread)
        };
        let forgotten: Vec<Pid> = self.ended.iter().filter_map(over).collect();
        for thread in &forgotten {
            self.ended.remove(thread);
        }
        Changes { news, forgotten }
    }

    /// One of them read or answered, and ran there.
    pub(super) fn ran(&mut self, thread: Pid, cpu: CpuId) {
        if !self.live.contains(&thread) && !self.ended.contains_key(&thread) {
            return;
        }
        if self.listed.len() >= MOST_LISTED && !self.listed.contains_key(&thread) {
            let gone = self.listed.keys().find(|listed| !self.live.contains(listed)).copied();
            let Some(gone) = gone else {
                self.crowded += 1;
                return;
            };
            self.listed.remove(&gone);
            self.unlisted += 1;
        }
        self.listed.insert(thread, cpu);
    }

    /// Those that live, in the order of their numbers.
    pub(super) fn live(&self) -> Vec<Pid> {
        self.live.iter().copied().collect()
    }

    /// Those that read or answered, and where they ran last.
    pub(super) fn listed(&self) -> Vec<(Pid, CpuId)> {
        self.listed.iter().map(|(thread, cpu)| (*thread, *cpu)).collect()
    }

    /// All that were ever watched.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// What there was no room for, in words: what, and why.
    pub(super) fn dropped(&self) -> Vec<(String, &'static str)> {
        let told = [
            (
                self.unlisted,
                "threads that had ended and are not among those listed",
                "the list of those that read or answered had no more room",
            ),
            (
                self.crowded,
                "readings and answers of threads that are not among those listed",
                "the list of those that read or answered had no more room",
            ),
            (
                self.unwatched,
                "threads at once, what they read and answered",
                "so many threads more than there is room for lived at one time",
            ),
        ];
        let told = told.into_iter().filter(|(count, ..)| *count > 0);
        told.map(|(count, what, why)| (format!("{count} {what}"), why)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pids(of: impl IntoIterator<Item = i32>) -> Vec<Pid> {
        of.into_iter().map(Pid).collect()
    }

    #[test]
    fn a_thread_that_ended_is_forgotten_when_nothing_of_it_can_come_any_more() {
        let mut threads = Threads::new(&pids([7, 9]));
        assert_eq!((threads.live(), threads.seen()), (pids([7, 9]), 2));
        let second = Nanos(1_000_000_000);
        let changes = threads.look(&pids([7, 11]), second);
        assert_eq!(changes, Changes { news: pids([11]), forgotten: Vec::new() });
        // What it read is still told of.
        threads.ran(Pid(9), CpuId(1));
        threads.ran(Pid(99), CpuId(1));
        assert_eq!(threads.listed(), [(Pid(9), CpuId(1))]);
        let late = Nanos(second.0 + KEPT.0 - 1);
        assert_eq!(threads.look(&pids([7, 11]), late), Changes::default());
        let over = Nanos(second.0 + KEPT.0);
        assert_eq!(threads.look(&pids([7, 11]), over).forgotten, pids([9]));
        // Its number comes again, and is that of a new thread.
        assert_eq!(threads.look(&pids([7, 9, 11]), over).news, pids([9]));
        assert_eq!((threads.seen(), threads.dropped().len()), (4, 0));
    }

    #[test]
    fn threads_that_come_and_go_for_ever_take_no_more_memory_and_what_was_dropped_is_told() {
        let mut threads = Threads::new(&pids([1]));
        let mut forgotten = 0;
        let looks = 5_000_i32;
        for look in 1..=looks {
            // Each look finds one other thread beside the first, which reads.
            let other = look + 1;
            let at = Nanos(LOOK_EVERY.0 * u64::from(look.unsigned_abs()));
            forgotten += threads.look(&pids([1, other]), at).forgotten.len();
            threads.ran(Pid(1), CpuId(0));
            threads.ran(Pid(other), CpuId(1));
            let kept = (KEPT.0 / LOOK_EVERY.0) as usize;
            assert!(threads.ended.len() <= kept + 1, "{}", threads.ended.len());
            assert!(threads.listed.len() <= MOST_LISTED);
        }
        assert_eq!(threads.seen(), 1 + u64::from(looks.unsigned_abs()));
        assert_eq!((forgotten + threads.ended.len() + 2) as u64, threads.seen());
        // The one that lives was never taken off.
        assert!(threads.listed().contains(&(Pid(1), CpuId(0))));
        let gone = threads.seen() - MOST_LISTED as u64;
        let [(told, _)] = &threads.dropped()[..] else { panic!("{:?}", threads.dropped()) };
        assert!(told.starts_with(&format!("{gone} threads that had ended")), "{told}");
    }

    #[test]
    fn of_more_threads_than_there_is_room_for_the_others_are_counted() {
        let most = MOST_LISTED as i32;
        let mut threads = Threads::new(&pids(0..most + 5));
        for thread in 0..most + 5 {
            threads.ran(Pid(thread), CpuId(0));
        }
        assert_eq!(threads.listed().len(), MOST_LISTED);
        let [(told, _)] = &threads.dropped()[..] else { panic!("{:?}", threads.dropped()) };
        assert!(told.starts_with("5 readings and answers"), "{told}");
        let mut threads = Threads::new(&pids(0..MOST_WATCHED as i32 + 3));
        assert_eq!(threads.live().len(), MOST_WATCHED);
        threads.look(&pids([1]), Nanos(1));
        let [(told, _)] = &threads.dropped()[..] else { panic!("{:?}", threads.dropped()) };
        assert!(told.starts_with("3 threads at once"), "{told}");
    }
}
