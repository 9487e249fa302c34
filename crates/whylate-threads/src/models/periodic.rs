//! PERIODIC C T: released at each multiple of T from its start, runs until it has received C, then
//! waits for the next release.
//!
//! A job that has not received C by its deadline is a miss and runs on. Releases that are over by
//! the time it is done are skipped, and counted; one that is due already begins at once.

use std::convert::Infallible;

use whylate_clock::Counter;
use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use super::job::Job;
use crate::ledger::{JobLedger, Ledger};
use crate::mark::Mark;
use crate::model::{Model, Setting, ended};
use crate::stage::{End, Stage};

const USAGE: &str = "PERIODIC <amount> <period>";

/// A job in each period.
pub(super) struct Periodic {
    job: Job,
    period: Nanos,
    deadline: Nanos,
}

impl<C: Counter> Model<C> for Periodic {
    fn name() -> &'static str {
        "PERIODIC"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "receives the amount in each period, then waits for the next"
    }

    fn read(call: &Call, setting: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(2, USAGE)?;
        let job = Job::read(call, setting, USAGE)?;
        let period = super::period(call, 1, USAGE)?;
        Ok(Self { job, period, deadline: setting.deadline.unwrap_or(period) })
    }

    fn ledger(&self) -> Ledger {
        Ledger::Jobs(JobLedger::new(self.period, self.deadline))
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        ended(self.jobs(stage))
    }
}

impl Periodic {
    fn jobs<C: Counter>(&mut self, stage: &mut Stage<'_, C>) -> Result<Infallible, End> {
        let start = stage.term().start;
        let mut index = 0;
        loop {
            let intended = start + Nanos(self.period.0.saturating_mul(index));
            let at =
                if stage.now() < intended { stage.sleep_until(intended)?.at } else { stage.last() };
            stage.mark(Mark::Woke { index, intended, at });
            let (amount, at) = self.job.run(stage)?;
            stage.mark(Mark::Done { index, received: stage.ticks(amount), at });
            // The first release whose deadline is still to come.
            let passed = stage.now().since(start + self.deadline);
            let next = match passed {
                Nanos(0) => index + 1,
                passed => (passed.0 / self.period.0 + 1).max(index + 1),
            };
            if next > index + 1 {
                let count = next - index - 1;
                stage.mark(Mark::Skipped { index: index + 1, count, at });
            }
            index = next;
        }
    }
}
