//! HAND_OFF amount: receives the amount, hands the CPU to the next thread of this model, and waits
//! until it is handed back: the true voluntary switch.

use std::convert::Infallible;
use std::sync::Arc;

use whylate_clock::Counter;
use whylate_gap::workload::Nothing;
use whylate_model::Nanos;
use whylate_model::gap::GapKind;
use whylate_rta::call::{Call, CallError};

use crate::error::ThreadsError;
use crate::ledger::Ledger;
use crate::model::{Model, Setting, ended};
use crate::resources::{Baton, HAND_OFF};
use crate::stage::{End, Stage};

const USAGE: &str = "HAND_OFF <amount>";

/// Hands the CPU on after each amount.
pub(super) struct HandOff {
    amount: Nanos,
    baton: Arc<Baton>,
}

impl<C: Counter> Model<C> for HandOff {
    fn name() -> &'static str {
        HAND_OFF
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "receives the amount, then hands the CPU to the next thread of this model"
    }

    fn read(call: &Call, setting: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(1, USAGE)?;
        Ok(Self { amount: call.time(0, "amount", USAGE)?, baton: setting.resources.baton() })
    }

    fn ledger(&self) -> Ledger {
        Ledger::None
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        let place = self.baton.join();
        let end = ended(self.rounds(stage, place));
        match self.baton.leave(place) {
            Ok(()) => end,
            Err(source) => End::Failed(ThreadsError::Resource(source)),
        }
    }
}

impl HandOff {
    fn rounds<C: Counter>(&self, stage: &mut Stage<'_, C>, place: u32) -> Result<Infallible, End> {
        let baton = &self.baton;
        stage.wait_in(GapKind::HandOff, |over| baton.wait(place, over))?;
        loop {
            stage.receive(self.amount, &mut Nothing)?;
            stage.wait_in(GapKind::HandOff, |over| {
                baton.pass(place)?;
                baton.wait(place, over)
            })?;
        }
    }
}
