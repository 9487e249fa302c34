//! `whylate rtt`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use whylate_model::{CpuId, Nanos};
use whylate_net::resolve::{LIMIT, Wanted, resolve};
use whylate_port::open::{Target as Place, Transport};
use whylate_record::rtt::{Request, Target, record};
use whylate_sys::affinity;

use super::again::several;
use super::gaps::{housekeeping, measured};
use super::{Beginning, Exit, bed, begin, conclude, quick};
use crate::cli::Rtt;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// Time between two lines of progress where no terminal shows a bar.
const HEARTBEAT: Nanos = Nanos(10 * Nanos::SECOND.0);
/// Bytes of the check sequence and headers that a rate in bits counts, for a message over UDP and
/// IPv4.
const AROUND: usize = 46;

pub(super) fn run(options: &Rtt) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    if options.runs > 1 {
        return several(options.runs, &options.common, &stopping);
    }
    let mut progress = Shown::new(HEARTBEAT);
    let request = request(options)?;
    if let Err(error) = request.check() {
        anstream::eprintln!("whylate rtt: {error}");
        return Ok(Exit::Usage);
    }
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request { seed, ..request };
    let recorded = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}

fn request(options: &Rtt) -> Result<Request> {
    let cpu = client_cpu(options)?;
    let (target, resolved_in) = target(options, cpu)?;
    let per_second = options.rate.per_second((options.size + AROUND) as u32);
    let duration = quick(options.duration, options.common.quick);
    let question = format!(
        "How long does a request by {} take to {target} and back, {} {}?",
        options.port, options.rate, options.arrivals
    );
    Ok(Request {
        cpu,
        fifo: options.fifo,
        target,
        transport: options.port,
        protocol: options.protocol,
        resolved_in,
        wait: options.wait,
        bytes: options.size,
        arrivals: options.arrivals.clone(),
        per_second,
        timeout: options.timeout,
        most_under_way: options.outstanding,
        warmup: quick(options.warmup, options.common.quick),
        duration,
        tolerance: options.tolerance,
        housekeeping: housekeeping(options.common.housekeeping.as_deref())?,
        lock_memory: !options.no_mlock,
        hold_idle_states: !options.common.no_dma_latency,
        seed: options.common.seed.unwrap_or_default(),
        command_line: std::env::args().collect(),
        question,
        program: std::env::current_exe().context("cannot tell which program this is")?,
    })
}

fn client_cpu(options: &Rtt) -> Result<CpuId> {
    let cpus: Vec<CpuId> = match options.cpus.as_deref() {
        Some(words) => measured(Some(words))?,
        None => affinity::get().into_iter().rev().take(1).collect(),
    };
    match cpus.as_slice() {
        [cpu] => Ok(*cpu),
        _ => bail!("--cpus names {} CPUs, and a client runs on one: name one", cpus.len()),
    }
}

fn target(options: &Rtt, client: CpuId) -> Result<(Target, Option<Nanos>)> {
    if let Some(words) = &options.target {
        let (place, took) = place(options.port, words)?;
        return Ok((Target::At(place), took));
    }
    let another = || affinity::get().into_iter().find(|cpu| *cpu != client);
    let cpu = options.other_cpu.map(CpuId).or_else(another).unwrap_or(client);
    Ok((Target::Own { cpu, bed: bed(options.bed.as_deref())? }, None))
}

fn place(transport: Transport, words: &str) -> Result<(Place, Option<Nanos>)> {
    if transport == Transport::Unix {
        return Ok((Place::Path(PathBuf::from(words)), None));
    }
    let resolved = resolve(words, Wanted::Any, LIMIT)?;
    Ok((Place::Address(resolved.address), resolved.took))
}
