//! The ledgers of a set, and the one relation between counter and timers' clock that they share.
//!
//! The collecting thread ties the two clocks together at each of its turns; a mark waits until the
//! tie after it is there, so that every instant is converted between two ties.

use std::collections::VecDeque;

use whylate_clock::Counter;
use whylate_model::{Nanos, Ticks};

use crate::ledger::{Calendar, Entry, Last, Ledger};
use crate::mark::Mark;
use crate::relation::{Relation, RelationFacts, Segment, tie};
use crate::stage::Term;
use crate::timer::TimerNanos;

/// The ledgers of all threads.
pub struct Books {
    threads: Vec<Page>,
    relation: Relation,
    segment: Option<Segment>,
    tied_to: Ticks,
}

struct Page {
    ledger: Ledger,
    waiting: VecDeque<Mark>,
}

impl Books {
    /// Books of threads with these ledgers and terms, in intervals of that length.
    #[must_use]
    pub fn open(threads: Vec<(Ledger, Term)>, epoch: TimerNanos, interval: Nanos) -> Self {
        let calendar = Calendar { start: epoch, interval };
        let page = |(mut ledger, term): (Ledger, Term)| {
            ledger.begin(term, calendar);
            Page { ledger, waiting: VecDeque::new() }
        };
        let threads = threads.into_iter().map(page).collect();
        Self { threads, relation: Relation::default(), segment: None, tied_to: Ticks(0) }
    }

    /// Takes the next mark of a thread.
    pub fn push(&mut self, thread: usize, mark: Mark) {
        self.threads[thread].waiting.push_back(mark);
    }

    /// Ties the clocks together, and enters every mark before the tie; hands over what is
    /// entered.
    pub fn tie<C: Counter>(
        &mut self,
        counter: &mut C,
        clock: impl FnMut() -> TimerNanos,
        enter: &mut dyn FnMut(usize, Entry),
    ) {
        let tie = tie(counter, clock);
        let Some(segment) = self.relation.add(tie) else { return };
        self.segment = Some(segment);
        self.tied_to = tie.ticks;
        for (index, page) in self.threads.iter_mut().enumerate() {
            while let Some(mark) = page.waiting.front().filter(|mark| mark.at() <= tie.ticks) {
                page.ledger.take(mark, &segment, &mut |entry| enter(index, entry));
                page.waiting.pop_front();
            }
        }
    }

    /// Enters what is left when thread `thread` has ended.
    pub fn finish(&mut self, thread: usize, last: Last, enter: &mut dyn FnMut(usize, Entry)) {
        let (Some(segment), page) = (self.segment, &mut self.threads[thread]) else { return };
        for mark in page.waiting.drain(..) {
            page.ledger.take(&mark, &segment, &mut |entry| enter(thread, entry));
        }
        page.ledger.finish(last, &segment, &mut |entry| enter(thread, entry));
    }

    /// The ledger of a thread.
    #[must_use]
    pub fn ledger(&self, thread: usize) -> &Ledger {
        &self.threads[thread].ledger
    }

    /// How well the relation is known.
    #[must_use]
    pub fn relation(&self) -> RelationFacts {
        self.relation.facts()
    }
}
