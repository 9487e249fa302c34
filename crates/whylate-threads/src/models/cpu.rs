//! CPU: runs whenever it can.

use whylate_clock::Counter;
use whylate_gap::workload::Nothing;
use whylate_rta::call::{Call, CallError};

use crate::ledger::Ledger;
use crate::model::{Model, Setting};
use crate::stage::{End, Stage};

const USAGE: &str = "CPU";

/// Runs whenever it can.
pub(super) struct Cpu;

impl<C: Counter> Model<C> for Cpu {
    fn name() -> &'static str {
        "CPU"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "runs whenever it can"
    }

    fn read(call: &Call, _: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(0, USAGE)?;
        Ok(Self)
    }

    fn always_runs(&self) -> bool {
        true
    }

    fn ledger(&self) -> Ledger {
        Ledger::None
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        stage.receive_all(&mut Nothing)
    }
}
