//! Passes through the phases of a program, and the jobs that end with its timers.

use whylate_model::{Nanos, Ticks, TicksDelta};

use super::{Account, Calendar, Entry, Job, Last, Pass, PhaseAccount, Verdict};
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
    slack_ns: i64,
    late: Nanos,
    account: Account,
}

/// A job whose deadline is known.
#[derive(Debug, Clone, Copy)]
struct Open {
    index: u64,
    release: TimerNanos,
    due: TimerNanos,
}

impl PassLedger {
    /// A ledger of phases, of which each pass asks for so much execution time and has so long a
    /// period, zero without a timer.
    #[must_use]
    pub fn new(phases: &[(Nanos, Nanos)]) -> Self {
        let phase = |&(asked, period): &(Nanos, Nanos)| PhaseAccount {
            asked,
            period,
            ..PhaseAccount::default()
        };
        let account = Account { phases: phases.iter().map(phase).collect(), ..Account::default() };
        Self {
            term: None,
            begun: Ticks(0),
            woke: None,
            open: None,
            slack_ns: 0,
            late: Nanos(0),
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
                self.slack_ns = open.due.0.cast_signed().wrapping_sub(done.0.cast_signed());
                let job = open.job(self.woke.take(), Some(at), verdict, around);
                enter(Entry::Job(Job { received, ..job }));
            }
            Mark::Woke { intended, at, .. } => {
                let late = around.at(at).since(intended);
                self.account.lateness.record(calendar.interval_of(intended), late, 1);
                self.late = Nanos(self.late.0 + late.0);
                self.woke = Some(at);
            }
            Mark::Passed { phase, run, at } => {
                let start = std::mem::replace(&mut self.begun, at);
                let Some(of) = self.account.phases.get_mut(phase as usize) else { return };
                of.passes += 1;
                of.run = of.run + run;
                of.elapsed = of.elapsed + at.since(start);
                let slack_ns = std::mem::take(&mut self.slack_ns);
                let late = std::mem::take(&mut self.late);
                enter(Entry::Pass(Pass {
                    phase: phase as u32,
                    start,
                    end: at,
                    run,
                    slack_ns,
                    late,
                }));
            }
            Mark::Skipped { .. } => {}
        }
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
