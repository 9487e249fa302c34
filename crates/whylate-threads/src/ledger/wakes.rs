//! Wake-ups of a thread that does nothing else.

use whylate_model::Nanos;

use super::{Account, Calendar, Entry};
use crate::mark::Mark;
use crate::omission::ramp;
use crate::relation::Segment;
use crate::timer::TimerNanos;

/// The ledger of wake-ups.
#[derive(Debug)]
pub struct WakeLedger {
    period: Nanos,
    schedule: Schedule,
    calendar: Option<Calendar>,
    first: Option<(u64, TimerNanos)>,
    late: Nanos,
    account: Account,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    /// The next wake-up is a period after the last.
    Phased,
    /// Wake-ups at multiples of the period, whatever happens.
    Absolute,
}

impl WakeLedger {
    /// For a schedule that starts anew with each wake-up.
    #[must_use]
    pub fn phased(period: Nanos) -> Self {
        Self::of(period, Schedule::Phased)
    }

    /// For an absolute schedule.
    #[must_use]
    pub fn absolute(period: Nanos) -> Self {
        Self::of(period, Schedule::Absolute)
    }

    fn of(period: Nanos, schedule: Schedule) -> Self {
        let account = Account::default();
        Self { period, schedule, calendar: None, first: None, late: Nanos(0), account }
    }

    pub(super) fn period(&self) -> Nanos {
        self.period
    }

    pub(super) fn begin(&mut self, calendar: Calendar) {
        self.calendar = Some(calendar);
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn take(&mut self, mark: &Mark, around: &Segment, enter: &mut dyn FnMut(Entry)) {
        let Some(calendar) = self.calendar else { return };
        match *mark {
            Mark::Woke { index, intended, at } => {
                let interval = calendar.interval_of(intended);
                self.late = around.at(at).since(intended);
                self.account.lateness.record(interval, self.late, 1);
                enter(Entry::Wake { at, late: self.late });
                match self.schedule {
                    Schedule::Absolute => self.account.corrected.record(interval, self.late, 1),
                    Schedule::Phased => {
                        let (zero, first) = *self.first.get_or_insert((index, intended));
                        let absolute = first + Nanos(self.period.0 * (index - zero));
                        self.account.drift = Some(intended.since(absolute));
                    }
                }
            }
            Mark::Skipped { count, at, .. } => {
                self.account.skipped += count;
                let interval = calendar.interval_of(around.at(at));
                let first = Nanos(self.late.0.saturating_sub(self.period.0));
                ramp(first, self.period, count, |value, times| {
                    self.account.corrected.record(interval, value, times);
                });
            }
            _ => {}
        }
    }
}
