//! LAT_ABS T: how late a timer wakes the thread on a strict absolute schedule, with the activations
//! that a late thread passed over counted at their own lateness.

use std::convert::Infallible;

use whylate_clock::Counter;
use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use crate::ledger::{Ledger, WakeLedger};
use crate::mark::Mark;
use crate::model::{Model, Setting, ended};
use crate::stage::{End, Stage};

const USAGE: &str = "LAT_ABS <period>";

/// A wake-up at each multiple of the period from the start.
pub(super) struct LatAbs {
    period: Nanos,
}

impl<C: Counter> Model<C> for LatAbs {
    fn name() -> &'static str {
        "LAT_ABS"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "dispatch latency on an absolute schedule, corrected for skipped wake-ups"
    }

    fn read(call: &Call, _: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(1, USAGE)?;
        Ok(Self { period: super::period(call, 0, USAGE)? })
    }

    fn traced(&self) -> bool {
        false
    }

    fn ledger(&self) -> Ledger {
        Ledger::Wakes(WakeLedger::absolute(self.period))
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        ended(self.wakes(stage))
    }
}

impl LatAbs {
    fn wakes<C: Counter>(&self, stage: &mut Stage<'_, C>) -> Result<Infallible, End> {
        let (start, end) = (stage.term().start, stage.term().end);
        // The thread runs already at its start: the first instant to wait for is the next. What lies
        // behind the end is not owed, and cannot be skipped.
        let mut index = 1;
        let behind = end.since(start).0.div_ceil(self.period.0);
        loop {
            let intended = start + Nanos(self.period.0.saturating_mul(index));
            let woke = stage.sleep_until(intended)?;
            stage.mark(Mark::Woke { index, intended, at: woke.at });
            let next = (woke.now.since(start).0 / self.period.0 + 1).min(behind);
            if next > index + 1 {
                let count = next - index - 1;
                stage.mark(Mark::Skipped { index: index + 1, count, at: woke.at });
            }
            index = next.max(index + 1);
        }
    }
}
