//! `whylate watch`.

use anyhow::Result;
use whylate_record::watch::{Request, find, record};

use super::gaps::housekeeping;
use super::{Beginning, Exit, begin, conclude};
use crate::cli::{Common, Watch};
use crate::out::say;
use crate::progress::Shown;
use crate::stopping::Stopping;

pub(super) fn run(options: &Watch) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    let whom = match find(options.whom) {
        Ok(whom) => whom,
        Err(refusal) => {
            say!("error: {refusal}");
            return Ok(Exit::CouldNotMeasure);
        }
    };
    let common = common(options);
    let mut progress = Shown::usual();
    let Beginning { seed, directory, path } = begin(&common, &mut progress)?;
    let request = Request {
        whom,
        duration: options.duration,
        log_requests: options.log_requests,
        slow_from: options.slow,
        housekeeping: housekeeping(options.housekeeping.as_deref())?,
        command_line: whylate_record::command_line(),
        seed,
    };
    let recorded = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &common, &stopping)
}

/// What it has of the options of every recording: nothing is drawn, and nothing of the host is held.
fn common(options: &Watch) -> Common {
    Common {
        output: options.output.clone(),
        format: options.format,
        percentiles: options.percentiles,
        full: options.full,
        seed: Some(0),
        housekeeping: options.housekeeping.clone(),
        quick: false,
        no_dma_latency: true,
        no_trace: false,
    }
}
