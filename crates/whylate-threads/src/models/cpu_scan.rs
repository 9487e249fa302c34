//! CPU_SCAN: runs whenever it can, and reads an array from end to end over and over.

use whylate_clock::Counter;
use whylate_gap::plan::Work;
use whylate_gap::workload::Scan;
use whylate_rta::call::{Call, CallError};

use crate::ledger::Ledger;
use crate::model::{Model, Setting};
use crate::stage::{End, Stage};

const USAGE: &str = "CPU_SCAN <size in KB>";
/// A working set beyond any cache; more would only fill memory, which is locked.
const LARGEST: u64 = 1 << 30;

/// Runs whenever it can, with a working set.
pub(super) struct CpuScan {
    bytes: usize,
}

impl<C: Counter> Model<C> for CpuScan {
    fn name() -> &'static str {
        "CPU_SCAN"
    }

    fn usage() -> &'static str {
        USAGE
    }

    fn about() -> &'static str {
        "runs whenever it can and reads an array of that size over and over"
    }

    fn read(call: &Call, _: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(1, USAGE)?;
        Ok(Self { bytes: size(call, 0, USAGE)? })
    }

    fn work(&self) -> Work {
        Work::Scan { bytes: self.bytes }
    }

    fn always_runs(&self) -> bool {
        true
    }

    fn ledger(&self) -> Ledger {
        Ledger::None
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        stage.receive_all(&mut Scan::new(self.bytes))
    }
}

/// Argument `index` as a size: a plain number counts KB, as in the paper; `KiB` and `MiB` are
/// understood.
pub(super) fn size(call: &Call, index: usize, usage: &'static str) -> Result<usize, CallError> {
    let what = "size";
    let text = call.argument(index, what, usage)?;
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "K" | "KB" | "KiB" => 1 << 10,
        "M" | "MB" | "MiB" => 1 << 20,
        "B" => 1,
        _ => return Err(call.refused(what, format!("`{unit}` is not a unit: use KiB or MiB"))),
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale)) {
        Some(bytes @ 1..=LARGEST) => Ok(bytes as usize),
        _ => Err(call.refused(what, format!("`{text}` is not a size from 1B to 1024MiB"))),
    }
}
