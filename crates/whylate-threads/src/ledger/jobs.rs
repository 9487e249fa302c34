//! Jobs that are released at each multiple of a period and have a deadline each.

use whylate_model::{Nanos, Ticks, TicksDelta};

use super::{Account, Calendar, Entry, Job, Last, Verdict};
use crate::mark::Mark;
use crate::relation::Segment;
use crate::stage::Term;
use crate::timer::TimerNanos;

/// The ledger of released jobs.
#[derive(Debug)]
pub struct JobLedger {
    period: Nanos,
    deadline: Nanos,
    term: Option<(Term, Calendar)>,
    open: Option<(u64, Ticks)>,
    next: u64,
    account: Account,
}

impl JobLedger {
    /// A ledger of jobs released each `period`, due `deadline` after their release.
    #[must_use]
    pub fn new(period: Nanos, deadline: Nanos) -> Self {
        Self { period, deadline, term: None, open: None, next: 0, account: Account::default() }
    }

    /// How long a job may take from its release.
    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    pub(super) fn begin(&mut self, term: Term, calendar: Calendar) {
        self.term = Some((term, calendar));
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    fn release(&self, term: Term, index: u64) -> TimerNanos {
        term.start + Nanos(self.period.0.saturating_mul(index))
    }

    pub(super) fn take(&mut self, mark: &Mark, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        let Some((term, calendar)) = self.term else { return };
        match *mark {
            Mark::Woke { index, intended, at } => {
                self.reach(index);
                self.account.unrecorded += u64::from(self.open.is_some());
                let late = around.at(at).since(intended);
                self.account.lateness.record(calendar.interval_of(intended), late, 1);
                self.open = Some((index, at));
                self.next = self.next.max(index + 1);
            }
            Mark::Done { index, at, received } => {
                let woke = self.open.take();
                let woke = woke.filter(|(open, _)| *open == index).map(|(_, at)| at);
                self.reach(index);
                let release = self.release(term, index);
                let deadline = release + self.deadline;
                let done = around.at(at);
                let interval = calendar.interval_of(release);
                self.account.response.record(interval, done.since(release), 1);
                let verdict = if done <= deadline {
                    self.account.hits += 1;
                    self.account.slack.record(interval, deadline.since(done), 1);
                    Verdict::Hit
                } else {
                    self.account.misses += 1;
                    self.account.tardiness.record(interval, done.since(deadline), 1);
                    Verdict::Late
                };
                enter(Entry::Job(Job {
                    received,
                    ..self.job(index, release, (woke, Some(at)), verdict, around)
                }));
                self.next = self.next.max(index + 1);
            }
            Mark::Skipped { index, count, .. } => {
                self.account.unrecorded += u64::from(self.open.take().is_some());
                self.reach(index);
                self.account.misses += count;
                self.account.skipped += count;
                for index in index..index.saturating_add(count) {
                    let release = self.release(term, index);
                    enter(Entry::Job(self.job(
                        index,
                        release,
                        (None, None),
                        Verdict::Skipped,
                        around,
                    )));
                }
                self.next = self.next.max(index.saturating_add(count));
            }
            // Of programs.
            Mark::Began { .. }
            | Mark::Due { .. }
            | Mark::Fired { .. }
            | Mark::Busy { .. }
            | Mark::Passed { .. } => {}
        }
    }

    /// Of the jobs before this one that nothing was heard of, nothing is known.
    fn reach(&mut self, index: u64) {
        self.account.unrecorded += index.saturating_sub(self.next);
        self.next = self.next.max(index);
    }

    /// What was begun and not done by its deadline is a miss, and so is each release behind it
    /// whose deadline has passed. A deadline after the end is not judged.
    pub(super) fn finish(&mut self, last: Last, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        let Some((term, _)) = self.term else { return };
        let end = around.at(last.at).min(term.end);
        if last.lossy {
            let begun = u64::from(self.open.take().is_some());
            let due = end.since(term.start + self.deadline).0 / self.period.0.max(1) + 1;
            self.account.unrecorded += begun + due.saturating_sub(self.next);
            return;
        }
        if let Some((index, woke)) = self.open.take() {
            let release = self.release(term, index);
            if release + self.deadline <= end {
                self.account.misses += 1;
                self.account.unfinished += 1;
                let times = (Some(woke), None);
                enter(Entry::Job(self.job(index, release, times, Verdict::Unfinished, around)));
            }
        }
        loop {
            let release = self.release(term, self.next);
            if release + self.deadline > end {
                return;
            }
            self.account.misses += 1;
            self.account.skipped += 1;
            enter(Entry::Job(self.job(self.next, release, (None, None), Verdict::Skipped, around)));
            self.next += 1;
        }
    }

    fn job(
        &self,
        index: u64,
        release: TimerNanos,
        (woke, done): (Option<Ticks>, Option<Ticks>),
        verdict: Verdict,
        around: &Segment,
    ) -> Job {
        let deadline = around.ticks_at(release + self.deadline);
        let (release, received) = (around.ticks_at(release), TicksDelta(0));
        Job { index, release, deadline, woke, done, received, verdict }
    }
}
