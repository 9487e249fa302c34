//! LAT T: how late a timer wakes the thread. The next wake-up is T after the last one, as in the
//! paper: a late wake-up moves all that follow, so nothing is skipped and the phase drifts.

use std::convert::Infallible;

use whylate_clock::Counter;
use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use crate::ledger::{Ledger, WakeLedger};
use crate::mark::Mark;
use crate::model::{Model, Setting, ended};
use crate::stage::{End, Stage};

const USAGE: &str = "LAT <period>";

/// A wake-up each time the period has passed since the last.
pub(super) struct Lat {
    period: Nanos,
}

impl<C: Counter> Model<C> for Lat {
    fn name() -> &'static str {
        "LAT"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "dispatch latency; the next wake-up is a period after the last one"
    }

    fn read(call: &Call, _: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(1, USAGE)?;
        Ok(Self { period: super::period(call, 0, USAGE)? })
    }

    fn traced(&self) -> bool {
        false
    }

    fn ledger(&self) -> Ledger {
        Ledger::Wakes(WakeLedger::phased(self.period))
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        ended(self.wakes(stage))
    }
}

impl Lat {
    fn wakes<C: Counter>(&self, stage: &mut Stage<'_, C>) -> Result<Infallible, End> {
        let mut intended = stage.term().start + self.period;
        for index in 0.. {
            let woke = stage.sleep_until(intended)?;
            stage.mark(Mark::Woke { index, intended, at: woke.at });
            intended = stage.now() + self.period;
        }
        Err(End::Over)
    }
}
