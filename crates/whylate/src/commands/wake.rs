//! `whylate wake`.

use anyhow::Result;
use whylate_gap::Threshold;
use whylate_record::set::{Request, record};
use whylate_record::{storage, wake};

use super::gaps::{housekeeping, measured};
use super::threads::not_understood;
use super::{Beginning, Exit, bed_of_load, begin, conclude, lasting, within};
use crate::cli::Wake;
use crate::failure;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// Wake-ups that rule R5 looks at one by one: 48 MB. All are in the histograms.
const MOST_LATENCIES: u64 = 2_000_000;

pub(super) fn run(options: &Wake) -> Result<Exit> {
    let wanted = wake::Wanted {
        timers: options.timers.clone(),
        cpus: measured(options.cpus.as_deref())?,
        period: options.period,
        priority: options.sched.clone(),
    };
    let probes = match wake::probes(&wanted) {
        Ok(probes) => probes,
        Err(error) => {
            failure::refuse(&error.reason);
            return Ok(Exit::Usage);
        }
    };
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual().of("wake-ups");
    let request = request(options, &wanted, &probes)?;
    if let Some(exit) = not_understood(&request) {
        return Ok(exit);
    }
    for note in &probes.notes {
        whylate_record::progress::Progress::say(&mut progress, note);
    }
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request { seed, ..request };
    let set = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&set.recorded, &path, &options.common, &stopping)
}

fn request(options: &Wake, wanted: &wake::Wanted, probes: &wake::Probes) -> Result<Request> {
    let duration = lasting(options.duration, &options.common)?;
    within(options.threshold, "--threshold", duration)?;
    let load = options.load.as_ref().map_or_else(Vec::new, |loads| loads.0.clone());
    let bed = bed_of_load(options.bed.as_deref(), &load)?;
    Ok(Request {
        set: probes.set.clone(),
        tables_in: None,
        cpus: wanted.cpus.clone(),
        duration,
        warmup: options.warmup,
        threshold: options.threshold.map_or(Threshold::Automatic, Threshold::Fixed),
        housekeeping: housekeeping(options.common.housekeeping.as_deref())?,
        lock_memory: !options.no_mlock,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        validate: false,
        worst: 3,
        records: wake::expected(wanted, probes, duration).clamp(1, MOST_LATENCIES),
        passes: 0,
        storage: storage::Limits { checkpoint: options.checkpoint, ..storage::Limits::default() },
        seed: options.common.seed.unwrap_or_default(),
        command_line: whylate_record::command_line(),
        question: wake::question(wanted, probes, duration),
        load,
        bed,
        notes: probes.notes.clone(),
    })
}
