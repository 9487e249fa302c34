//! What the recording's own thread does while a set runs.

use std::cell::RefCell;

use whylate_clock::Counter;
use whylate_gap::{Source, State};
use whylate_threads::ledger::{Entry, Last};

use super::{Recording, timers_now};

impl Recording<'_> {
    /// Drains everything once.
    pub(super) fn turn(&mut self) -> State {
        let now = self.workbench.counter.read();
        let rate = self.workbench.rate;
        let storage = RefCell::new(&mut self.storage);
        let (tallies, execution) = (&mut self.tallies, &mut self.execution);
        let (switches, host) = (&mut self.switches, &mut self.host);
        for (index, facts) in self.set.members().enumerate() {
            execution.begin(index, self.set.totals(index).start, facts.cpu);
        }
        let mut recording = Recorded { set: &mut self.set, execution };
        let state = self.collector.turn(
            &mut recording,
            self.trace.as_mut(),
            now,
            |attributed| {
                tallies.gap(attributed, rate);
                switches.gap(attributed);
                host.gap(attributed);
                if !attributed.gap.kind.is_wait() {
                    storage.borrow_mut().gap(attributed);
                }
            },
            |event| storage.borrow_mut().event(event),
        );
        if let Some(books) = &mut self.books {
            self.set.drain_marks(|index, mark| books.push(index, mark));
            let (tallies, execution) = (&mut self.tallies, &mut self.execution);
            let passes = &mut self.passes;
            books.tie(&mut self.workbench.counter, timers_now, &mut |index, entry| match entry {
                Entry::Job(job) => tallies.job(index, job),
                Entry::Wake { at, late } => execution.latency(index, at, late),
                Entry::Pass(pass) => passes.take(index, pass),
            });
        }
        self.tallies.settle(false, rate);
        self.store_closed();
        state
    }

    /// Enters and attributes what is left when all threads have ended.
    pub(super) fn finish_books(&mut self) {
        let rate = self.workbench.rate;
        let (tallies, execution) = (&mut self.tallies, &mut self.execution);
        for index in 0..self.request.set.threads.len() {
            let end = self.set.totals(index).end;
            execution.end(index, end);
            if let Some(books) = &mut self.books {
                let lossy = self.ended.get(index).is_some_and(|ended| ended.marks_dropped > 0);
                let passes = &mut self.passes;
                books.finish(index, Last { at: end, lossy }, &mut |index, entry| match entry {
                    Entry::Job(job) => tallies.job(index, job),
                    Entry::Wake { at, late } => execution.latency(index, at, late),
                    Entry::Pass(pass) => passes.take(index, pass),
                });
            }
        }
        let (storage, switches, host) = (&mut self.storage, &mut self.switches, &mut self.host);
        self.collector.finish(&self.set, |attributed| {
            tallies.gap(attributed, rate);
            switches.gap(attributed);
            host.gap(attributed);
            if !attributed.gap.kind.is_wait() {
                storage.gap(attributed);
            }
        });
        self.tallies.settle(true, rate);
        self.store_closed();
    }

    pub(super) fn store_closed(&mut self) {
        for block in self.execution.take_fresh() {
            self.storage.block(&block);
        }
        for job in self.tallies.take_fresh() {
            self.storage.job(&job);
        }
        for closed in self.collector.take_closed() {
            self.storage.interval(&closed.series, &closed.lengths, closed.start, closed.length);
        }
    }
}

/// The set, with its blocks noted as its gaps are drained.
struct Recorded<'a> {
    set: &'a mut whylate_threads::set::Set,
    execution: &'a mut super::Execution,
}

impl Source for Recorded<'_> {
    fn totals(&self, index: usize) -> whylate_gap::Totals {
        self.set.totals(index)
    }

    fn drain(&mut self, take: &mut dyn FnMut(usize, &[whylate_model::gap::Gap])) -> State {
        let execution = &mut *self.execution;
        self.set.drain(&mut |index, gaps| {
            for gap in gaps {
                execution.gap(index, gap);
            }
            take(index, gaps);
        })
    }

    fn dropped(&self, index: usize) -> whylate_gap::session::Bins<'_> {
        self.set.dropped(index)
    }

    fn deltas(&self, index: usize) -> whylate_gap::session::Bins<'_> {
        self.set.deltas(index)
    }
}
