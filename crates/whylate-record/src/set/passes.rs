//! Passes of programs, kept one by one up to a number of them in all.

use whylate_threads::ledger::Pass;

/// Passes of each thread, in order.
#[derive(Debug, Clone, Default)]
pub struct Passes {
    room: u64,
    threads: Vec<Vec<Pass>>,
    left_out: u64,
}

impl Passes {
    /// Room for so many passes of so many threads.
    pub(super) fn of(threads: usize, room: u64) -> Self {
        Self { room, threads: vec![Vec::new(); threads], left_out: 0 }
    }

    pub(super) fn take(&mut self, thread: usize, pass: Pass) {
        match self.threads.get_mut(thread).filter(|_| self.room > 0) {
            Some(passes) => {
                self.room -= 1;
                passes.push(pass);
            }
            None => self.left_out += 1,
        }
    }

    /// The passes of a thread.
    #[must_use]
    pub fn thread(&self, index: usize) -> &[Pass] {
        self.threads.get(index).map_or(&[], Vec::as_slice)
    }

    /// Passes that found no room.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}
