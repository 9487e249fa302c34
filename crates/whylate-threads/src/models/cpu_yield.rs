//! CPU_YIELD: runs, and yields the processor each time it has received an amount of CPU time.
//!
//! Since Linux 6.6 a thread that yields under the fair class gives up the rest of its slice and may
//! be chosen again at once where nobody has more right to run. The true voluntary switch is the
//! hand-off.

use whylate_clock::Counter;
use whylate_gap::workload::Nothing;
use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use crate::ledger::Ledger;
use crate::model::{Model, Setting};
use crate::stage::{End, Stage};

const USAGE: &str = "CPU_YIELD <amount>";

/// Yields after each amount.
pub(super) struct CpuYield {
    amount: Nanos,
}

impl<C: Counter> Model<C> for CpuYield {
    fn name() -> &'static str {
        "CPU_YIELD"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "yields the processor each time it has received that much CPU time"
    }

    fn read(call: &Call, _: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(1, USAGE)?;
        Ok(Self { amount: call.time(0, "amount", USAGE)? })
    }

    fn ledger(&self) -> Ledger {
        Ledger::None
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        loop {
            let turn = stage.receive(self.amount, &mut Nothing);
            if let Err(end) = turn.and_then(|_| stage.yield_now()) {
                return end;
            }
        }
    }
}
