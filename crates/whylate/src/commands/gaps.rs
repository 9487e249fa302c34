//! `whylate gaps`.

use std::path::Path;

use anyhow::Result;
use whylate_gap::{Placement, Plan, Policy, Threshold};
use whylate_host::cpus::{self, CpuSpec};
use whylate_host::topology::Topology;
use whylate_model::run::LoopKind;
use whylate_model::{CpuId, CpuList, Nanos};
use whylate_record::gaps::{Request, record};
use whylate_record::{matrix, storage};

use super::{Beginning, Exit, begin, conclude, quick};
use crate::cli::{Gaps, Loop};
use crate::progress::Shown;
use crate::stopping::Stopping;

pub(super) fn run(options: &Gaps) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    let mut progress = Shown::new(options.heartbeat);
    let measured = measured(options.cpus.as_deref())?;
    let housekeeping = housekeeping(options.common.housekeeping.as_deref())?;
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = request(options, measured, housekeeping, seed);
    let recorded = if options.matrix {
        matrix::record(&request, &directory, &stopping.stop, &mut progress)?
    } else {
        record(&request, directory, &stopping.stop, &mut progress)?
    };
    drop(progress);
    conclude(&recorded, &path, options.common.format, &stopping)
}

/// The CPUs that the words mean; by default all that this process may use but the first, which is
/// left for everything else.
pub(super) fn measured(words: Option<&str>) -> Result<Vec<CpuId>> {
    let topology = Topology::read(Path::new("/"))?;
    let allowed = cpus::allowed(&topology)?;
    match words {
        Some(words) => {
            let spec: CpuSpec = words.parse()?;
            Ok(cpus::resolve(&spec, &topology, &allowed)?)
        }
        None if allowed.len() > 1 => Ok(allowed[1..].to_vec()),
        None => Ok(allowed),
    }
}

pub(super) fn housekeeping(words: Option<&str>) -> Result<Option<Vec<CpuId>>> {
    words.map(|words| measured(Some(words))).transpose()
}

fn request(
    options: &Gaps,
    measured: Vec<CpuId>,
    housekeeping: Option<Vec<CpuId>>,
    seed: u64,
) -> Request {
    let duration = quick(options.duration, options.common.quick);
    let question = format!(
        "What did a busy thread on CPU {} not get in {duration}, and who took it?",
        CpuList(&measured)
    );
    let placement = match options.floating {
        Some(threads) => Placement::Floating { threads: threads.get(), allowed: measured },
        None => Placement::Pinned(measured),
    };
    Request {
        plan: Plan {
            placement,
            loop_kind: match options.loop_kind {
                Loop::Chain => LoopKind::Chain,
                Loop::Pair => LoopKind::Pair,
            },
            counting: options.distribution,
            work: options.workload,
            threshold: options.threshold.map_or(Threshold::Automatic, Threshold::Fixed),
            warmup: options.warmup,
            policy: options.fifo.map_or(Policy::Ordinary, Policy::Fifo),
            competitors: options.share.map_or(0, std::num::NonZero::get),
            stop_at: options.threshold_stop,
        },
        duration: if options.selftest { SELFTEST } else { duration },
        housekeeping,
        lock_memory: !options.no_mlock,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        validate: options.validate || options.selftest,
        selftest: options.selftest,
        worst: options.worst.get() as usize,
        move_tasks: options.move_tasks,
        move_interrupts: options.move_interrupts,
        on_threshold: options.on_threshold.clone(),
        storage: storage::Limits { max_bytes: options.max_disk, checkpoint: options.checkpoint },
        seed,
        command_line: std::env::args().collect(),
        question,
    }
}

/// A self-test ends when everything is injected; this is for the case that it never is.
const SELFTEST: Nanos = Nanos(120_000_000_000);
