//! `whylate` without a command: the one-minute check-up.

use anyhow::Result;
use whylate_model::Nanos;
use whylate_record::RecordError;
use whylate_record::checkup::{Request, Times, record};

use super::{Beginning, Exit, begin, conclude, gaps};
use crate::cli::Checkup;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// A line off a terminal for each part, which takes seconds.
const HEARTBEAT: Nanos = Nanos(10_000_000_000);

pub(super) fn run(options: &Checkup) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    let mut progress = Shown::new(HEARTBEAT);
    let measured = gaps::measured(options.cpu.as_deref())?;
    let housekeeping = gaps::housekeeping(options.common.housekeeping.as_deref())?;
    let Some(cpu) = measured.last().copied() else {
        anyhow::bail!("no CPU to check up: name one with --cpu")
    };
    let program = std::env::current_exe().map_err(RecordError::NoProgram)?;
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request {
        cpu,
        times: if options.common.quick { Times::quick() } else { Times::minute() },
        housekeeping,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        seed,
        command_line: std::env::args().collect(),
        program,
    };
    let recorded = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, options.common.format, &stopping)
}
