//! Frames that follow each other at once, each due a period after the one before it.

use whylate_model::{Nanos, Ticks, TicksDelta};

use super::{Account, Calendar, Entry, Job, Last, Verdict};
use crate::mark::Mark;
use crate::relation::Segment;
use crate::stage::Term;
use crate::timer::TimerNanos;

/// The ledger of frames.
///
/// A deadline that passes without a completion is a miss and moves on by a period; a completion
/// hits the deadline that stands then, and sets the next one a period later.
#[derive(Debug)]
pub struct FrameLedger {
    period: Nanos,
    calendar: Option<Calendar>,
    end: TimerNanos,
    begun: TimerNanos,
    deadline: TimerNanos,
    index: u64,
    account: Account,
}

impl FrameLedger {
    /// A ledger of frames, one a `period` at least.
    #[must_use]
    pub fn new(period: Nanos) -> Self {
        Self {
            period,
            calendar: None,
            end: TimerNanos(0),
            begun: TimerNanos(0),
            deadline: TimerNanos(0),
            index: 0,
            account: Account::default(),
        }
    }

    pub(super) fn begin(&mut self, term: Term, calendar: Calendar) {
        self.calendar = Some(calendar);
        self.begun = term.start;
        self.deadline = term.start + self.period;
        self.end = term.end;
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn take(&mut self, mark: &Mark, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        let Some(calendar) = self.calendar else { return };
        match *mark {
            Mark::Woke { intended, at, .. } => {
                let late = around.at(at).since(intended);
                self.account.lateness.record(calendar.interval_of(intended), late, 1);
            }
            Mark::Done { index, at, received } => {
                let done = around.at(at);
                if index > self.index {
                    // When this frame began is not known either.
                    self.account.unrecorded += index - self.index + 1;
                    self.next_frame(index + 1, done);
                    return;
                }
                self.pass(done, around, enter);
                let interval = calendar.interval_of(done);
                self.account.hits += 1;
                self.account.response.record(interval, done.since(self.begun), 1);
                self.account.slack.record(interval, self.deadline.since(done), 1);
                enter(Entry::Job(Job { received, ..self.frame(Some(at), Verdict::Hit, around) }));
                self.next_frame(index + 1, done);
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self, last: Last, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        let end = around.at(last.at).min(self.end);
        if last.lossy {
            self.account.unrecorded += 1;
            return;
        }
        let missed = self.account.misses;
        self.pass(end, around, enter);
        self.account.unfinished += self.account.misses - missed;
    }

    fn next_frame(&mut self, index: u64, begun: TimerNanos) {
        self.begun = begun;
        self.deadline = begun + self.period;
        self.index = index;
    }

    /// Misses every deadline before `now`.
    fn pass(&mut self, now: TimerNanos, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        while self.deadline < now {
            self.account.misses += 1;
            enter(Entry::Job(self.frame(None, Verdict::Late, around)));
            self.deadline = self.deadline + self.period;
        }
    }

    fn frame(&self, done: Option<Ticks>, verdict: Verdict, around: &Segment) -> Job {
        let release = around.ticks_at(self.begun);
        let deadline = around.ticks_at(self.deadline);
        let (index, woke, received) = (self.index, Some(release), TicksDelta(0));
        Job { index, release, deadline, woke, done, received, verdict }
    }
}
