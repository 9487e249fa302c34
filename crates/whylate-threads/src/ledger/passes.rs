//! Passes through the phases of a program, and the jobs that end with its timers.

use std::collections::BTreeMap;

use whylate_model::{Nanos, Ticks, TicksDelta};

use super::{Account, Activations, Busy, Calendar, Entry, Job, Last, Pass, PhaseAccount, Verdict};
use crate::mark::Mark;
use crate::relation::Segment;
use crate::stage::Term;
use crate::timer::TimerNanos;

/// The ledger of a program.
#[derive(Debug)]
pub struct PassLedger {
    term: Option<(Term, Calendar)>,
    /// Begin of the pass.
    begun: Ticks,
    /// First reading of the thread at work on the job that is open.
    woke: Option<Ticks>,
    open: Option<Open>,
    /// The instant that the period of the last job began with.
    released: TimerNanos,
    /// When each timer activated the thread last.
    activated: BTreeMap<u64, TimerNanos>,
    pass: Begun,
    account: Account,
}

/// What is known of the pass whose end is not.
#[derive(Debug, Clone, Copy, Default)]
struct Begun {
    slack_ns: i64,
    late: Nanos,
    busy: Busy,
    timers: Activations,
}

/// A job whose deadline is known.
#[derive(Debug, Clone, Copy)]
struct Open {
    index: u64,
    release: TimerNanos,
    due: TimerNanos,
}

impl PassLedger {
    /// A ledger of so many phases.
    #[must_use]
    pub fn new(phases: usize) -> Self {
        let account =
            Account { phases: vec![PhaseAccount::default(); phases], ..Account::default() };
        Self {
            term: None,
            begun: Ticks(0),
            woke: None,
            open: None,
            released: TimerNanos(0),
            activated: BTreeMap::new(),
            pass: Begun::default(),
            account,
        }
    }

    pub(super) fn begin(&mut self, term: Term, calendar: Calendar) {
        self.term = Some((term, calendar));
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn take(&mut self, mark: &Mark, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        let Some((_, calendar)) = self.term else { return };
        match *mark {
            Mark::Began { at } => {
                self.begun = at;
                self.woke = Some(at);
            }
            Mark::Due { index, release, due, at } => {
                self.open = Some(Open { index, release, due });
                self.woke.get_or_insert(at);
            }
            Mark::Done { index, received, at } => {
                let Some(open) = self.open.take().filter(|open| open.index == index) else {
                    return;
                };
                let done = around.at(at);
                let interval = calendar.interval_of(open.release);
                self.account.response.record(interval, done.since(open.release), 1);
                let verdict = if done <= open.due {
                    self.account.hits += 1;
                    self.account.slack.record(interval, open.due.since(done), 1);
                    Verdict::Hit
                } else {
                    self.account.misses += 1;
                    self.account.tardiness.record(interval, done.since(open.due), 1);
                    Verdict::Late
                };
                self.pass.slack_ns = open.due.0.cast_signed().wrapping_sub(done.0.cast_signed());
                self.released = open.release;
                let job = open.job(self.woke.take(), Some(at), verdict, around);
                enter(Entry::Job(Job { received, ..job }));
            }
            Mark::Fired { timer, intended, put_off, at } => {
                self.fired(timer, (intended, put_off), (at, around.at(at)));
            }
            Mark::Busy { over, elapsed, received, .. } => {
                self.pass.busy = Busy { elapsed, received, over };
            }
            Mark::Passed { phase, run, lost, at } => {
                let start = std::mem::replace(&mut self.begun, at);
                let Begun { slack_ns, late, busy, timers } = std::mem::take(&mut self.pass);
                let Some(of) = self.account.phases.get_mut(phase as usize) else { return };
                of.passes += 1;
                of.run = of.run + run;
                of.elapsed = of.elapsed + at.since(start);
                of.lost = of.lost + lost;
                of.busy.add(busy);
                of.timers.add(timers);
                let (phase, end) = (phase as u32, at);
                enter(Entry::Pass(Pass { phase, start, end, run, busy, slack_ns, late }));
            }
            Mark::Woke { .. } | Mark::Skipped { .. } => {}
        }
    }

    /// A timer activated the thread, or would have if its instant had not been over.
    fn fired(
        &mut self,
        timer: u64,
        (intended, put_off): (TimerNanos, Nanos),
        (at, now): (Ticks, TimerNanos),
    ) {
        let Some((_, calendar)) = self.term else { return };
        if put_off == Nanos(0) {
            let late = now.since(intended);
            self.account.lateness.record(calendar.interval_of(intended), late, 1);
            self.pass.late = Nanos(self.pass.late.0 + late.0);
            self.woke = Some(at);
        }
        let before = self.activated.insert(timer, now).unwrap_or(self.released);
        self.pass.timers.add(Activations {
            count: 1,
            between: now.since(before),
            put_off: u64::from(put_off > Nanos(0)),
            put_off_by: put_off,
            last_late: now.since(intended),
        });
    }

    /// A job that was begun and not done by its deadline is a miss.
    pub(super) fn finish(&mut self, last: Last, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        let Some((term, _)) = self.term else { return };
        let end = around.at(last.at).min(term.end);
        if last.lossy {
            self.account.unrecorded += u64::from(self.open.take().is_some());
            return;
        }
        if let Some(open) = self.open.take().filter(|open| open.due <= end) {
            self.account.misses += 1;
            self.account.unfinished += 1;
            enter(Entry::Job(open.job(self.woke, None, Verdict::Unfinished, around)));
        }
    }
}

impl Open {
    fn job(
        self,
        woke: Option<Ticks>,
        done: Option<Ticks>,
        verdict: Verdict,
        around: &Segment,
    ) -> Job {
        Job {
            index: self.index,
            release: around.ticks_at(self.release),
            deadline: around.ticks_at(self.due),
            woke,
            done,
            received: TicksDelta(0),
            verdict,
        }
    }
}

impl Busy {
    fn add(&mut self, more: Self) {
        self.elapsed = self.elapsed + more.elapsed;
        self.received = self.received + more.received;
        self.over = self.over.max(more.over);
    }
}

impl Activations {
    fn add(&mut self, more: Self) {
        self.count += more.count;
        self.between = Nanos(self.between.0 + more.between.0);
        self.put_off += more.put_off;
        self.put_off_by = Nanos(self.put_off_by.0 + more.put_off_by.0);
        if more.count > 0 {
            self.last_late = more.last_late;
        }
    }
}
