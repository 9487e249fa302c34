//! CPU_SCAN_YIELD: reads an array over and over, and yields each time it has received an amount.

use whylate_clock::Counter;
use whylate_gap::plan::Work;
use whylate_gap::workload::Scan;
use whylate_model::Nanos;
use whylate_rta::call::{Call, CallError};

use super::cpu_scan::size;
use crate::ledger::Ledger;
use crate::model::{Model, Setting};
use crate::stage::{End, Stage};

const USAGE: &str = "CPU_SCAN_YIELD <size in KB> <amount>";

/// Yields after each amount, with a working set.
pub(super) struct CpuScanYield {
    bytes: usize,
    amount: Nanos,
}

impl<C: Counter> Model<C> for CpuScanYield {
    fn name() -> &'static str {
        "CPU_SCAN_YIELD"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "as CPU_SCAN, and yields each time it has received that much CPU time"
    }

    fn read(call: &Call, _: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(2, USAGE)?;
        Ok(Self { bytes: size(call, 0, USAGE)?, amount: call.time(1, "amount", USAGE)? })
    }

    fn work(&self) -> Work {
        Work::Scan { bytes: self.bytes }
    }

    fn ledger(&self) -> Ledger {
        Ledger::None
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        let mut scan = Scan::new(self.bytes);
        loop {
            let turn = stage.receive(self.amount, &mut scan);
            if let Err(end) = turn.and_then(|_| stage.yield_now()) {
                return end;
            }
        }
    }
}
