//! `whylate gaps`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use whylate_gap::{Placement, Plan, Policy, Threshold};
use whylate_host::HostError;
use whylate_host::cpus::{self, CpuSpec};
use whylate_host::topology::Topology;
use whylate_model::run::LoopKind;
use whylate_model::{CpuId, CpuList, Nanos};
use whylate_record::gaps::{Request, record};
use whylate_record::{matrix, scoring, storage};
use whylate_sys::affinity;

use super::{Beginning, Exit, Refused, begin, conclude, lasting, quick, within};
use crate::cli::{Gaps, Loop};
use crate::failure;
use crate::progress::Shown;
use crate::stopping::Stopping;

pub(super) fn run(options: &Gaps) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    let mut progress = Shown::new(options.heartbeat);
    let measured = measured(options.cpus.as_deref())?;
    let cgroup = cgroup(options.cpus.as_deref())?;
    let housekeeping = housekeeping(options.common.housekeeping.as_deref())?;
    if options.selftest && measured.len() > 1 {
        let told =
            format!("the self-test interrupts one CPU: name it, such as --cpus {}", measured[0]);
        return Err(Refused::because(told));
    }
    if options.selftest && options.threshold.is_some_and(|given| given > scoring::SHORTEST_JUDGED) {
        return Err(Refused::because(format!(
            "the self-test plants interruptions from {} on, which a larger --threshold would not see",
            scoring::SHORTEST_JUDGED
        )));
    }
    let duration = lasting(options.duration, &options.common)?;
    within(options.threshold, "--threshold", duration)?;
    within(options.stop_above, "--stop-above", duration)?;
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request { cgroup, ..request(options, measured, housekeeping, seed) };
    let recorded = if options.matrix {
        matrix::record(&request, &directory, &stopping.stop, &mut progress)?
    } else {
        record(&request, directory, &stopping.stop, &mut progress)?
    };
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}

/// The CPUs that the words mean; by default those of the affinity that this process was started
/// with but the first, which is left for everything else.
pub(super) fn measured(words: Option<&str>) -> Result<Vec<CpuId>> {
    match words {
        Some(words) => here(&words.parse().map_err(Refused::because)?, CPUS),
        None => Ok(all_but_the_first(affinity::get())),
    }
}

/// The words of a command line that name a CPU, with `CPU` where its number stands.
pub(super) const CPUS: &str = "--cpus CPU";

/// The CPUs that this means on this host, by the words that named them; what is not here is refused before
/// anything is made.
pub(super) fn here(spec: &CpuSpec, named_by: &str) -> Result<Vec<CpuId>> {
    let topology = Topology::read(Path::new("/"))?;
    let allowed = cpus::allowed(&topology)?;
    let refused = |error| not_here(&error, named_by).unwrap_or_else(|| Refused::because(error));
    cpus::resolve(spec, &topology, &allowed).map_err(refused)
}

/// The same for one CPU, where it is named.
pub(super) fn must_be_here(cpu: Option<CpuId>, named_by: &str) -> Result<()> {
    cpu.map_or(Ok(()), |cpu| here(&CpuSpec::List(vec![cpu]), named_by).map(drop))
}

/// A CPU that there is not, with the same command for one that there is: some take no more.
pub(super) fn not_here(error: &HostError, named_by: &str) -> Option<anyhow::Error> {
    let (HostError::DoesNotExist { online, .. } | HostError::Offline { online, .. }) = error else {
        return None;
    };
    let last = online.rsplit([',', '-']).next().unwrap_or(online);
    let next = format!("whylate {}{}", failure::of_command(), named_by.replace("CPU", last));
    Some(Refused::with_next(error, next))
}

/// The one CPU that the words mean, for what runs on `one` alone; by default the last of those that this
/// process was started with.
pub(super) fn one_cpu(words: Option<&str>, one: &str) -> Result<CpuId> {
    let cpus = match words {
        Some(words) => measured(Some(words))?,
        None => affinity::get().into_iter().rev().take(1).collect(),
    };
    match *cpus.as_slice() {
        [cpu] => Ok(cpu),
        _ => {
            Err(Refused::because(format!("--cpus names {} CPUs, and {one}: name one", cpus.len())))
        }
    }
}

fn all_but_the_first(mut cpus: Vec<CpuId>) -> Vec<CpuId> {
    if cpus.len() > 1 {
        cpus.remove(0);
    }
    cpus
}

/// The cgroup that the words name, to measure inside of.
fn cgroup(words: Option<&str>) -> Result<Option<PathBuf>> {
    let spec = words.map(str::parse).transpose().map_err(Refused::because)?;
    Ok(spec.and_then(|spec| match spec {
        CpuSpec::Cgroup(path) => Some(path),
        CpuSpec::List(_) | CpuSpec::Isolated | CpuSpec::All => None,
    }))
}

pub(super) fn housekeeping(words: Option<&str>) -> Result<Option<Vec<CpuId>>> {
    let named = |words: &str| here(&words.parse().map_err(Refused::because)?, "--housekeeping CPU");
    words.map(named).transpose()
}

/// A duration as people ask for one: `3 s`.
fn asked(duration: Nanos) -> String {
    match duration.0 {
        ns if ns % 1_000_000_000 == 0 => format!("{} s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{} ms", ns / 1_000_000),
        _ => duration.to_string(),
    }
}

fn request(
    options: &Gaps,
    measured: Vec<CpuId>,
    housekeeping: Option<Vec<CpuId>>,
    seed: u64,
) -> Request {
    let duration = quick(options.duration, options.common.quick);
    let cpus = CpuList(&measured);
    let question = if options.selftest {
        format!("Is each interruption planted on CPU {cpus} found and named?")
    } else {
        format!("OS noise on CPU {cpus}: CPU time lost in {}, by cause", asked(duration))
    };
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
            policy: options.sched.fifo().map_or(Policy::Ordinary, Policy::Fifo),
            competitors: options.share.map_or(0, std::num::NonZero::get),
            stop_at: options.stop_above,
        },
        duration: if options.selftest { SELFTEST } else { duration },
        cgroup: None,
        housekeeping,
        lock_memory: !options.no_mlock,
        hold_idle_states: !options.common.no_dma_latency,
        trace: !options.common.no_trace,
        validate: options.verify_causes || options.selftest,
        selftest: options.selftest.then_some(options.selftest_part),
        worst: options.worst.get() as usize,
        move_tasks: options.move_tasks,
        move_interrupts: options.move_interrupts,
        on_threshold: options.on_threshold.clone(),
        storage: storage::Limits { max_bytes: options.max_disk, checkpoint: options.checkpoint },
        seed,
        command_line: whylate_record::command_line(),
        question,
    }
}

/// A self-test ends when everything is injected; this is for the case that it never is.
const SELFTEST: Nanos = Nanos(120_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_words_the_affinity_is_measured_but_its_first_cpu() {
        let ids = |list: &[u32]| list.iter().copied().map(CpuId).collect::<Vec<_>>();
        assert_eq!(all_but_the_first(ids(&[2, 3, 5])), ids(&[3, 5]));
        assert_eq!(all_but_the_first(ids(&[7])), ids(&[7]), "the only one there is");
        assert_eq!(measured(None).unwrap(), all_but_the_first(affinity::get()));
    }
}
