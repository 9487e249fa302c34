//! CPU_PERIODIC C T: never waits, unless a step of its own does; each C received completes a frame and begins the next at once.
//!
//! A frame is to be complete T after the one before it. Each T that passes without a completion is
//! a miss, and the deadline moves on by T.

use whylate_clock::Counter;
use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use super::job::Job;
use crate::ledger::{FrameLedger, Ledger};
use crate::mark::Mark;
use crate::model::{Model, Setting};
use crate::stage::{End, Stage};

const USAGE: &str = "CPU_PERIODIC <amount> <period>";

/// Frame after frame.
pub(super) struct CpuPeriodic {
    job: Job,
    period: Nanos,
}

impl<C: Counter> Model<C> for CpuPeriodic {
    fn name() -> &'static str {
        "CPU_PERIODIC"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "never waits: a frame whenever it has received the amount, at least one a period"
    }

    fn read(call: &Call, setting: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(2, USAGE)?;
        Ok(Self { job: Job::read(call, setting, USAGE)?, period: super::period(call, 1, USAGE)? })
    }

    fn always_runs(&self) -> bool {
        !self.job.may_wait()
    }

    fn ledger(&self) -> Ledger {
        Ledger::Frames(FrameLedger::new(self.period))
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        let start = stage.term().start;
        let at = stage.last();
        stage.mark(Mark::Woke { index: 0, intended: start, at });
        for index in 0.. {
            match self.job.run(stage) {
                Ok((amount, at)) => {
                    stage.mark(Mark::Done { index, received: stage.ticks(amount), at });
                }
                Err(end) => return end,
            }
        }
        End::Over
    }
}
