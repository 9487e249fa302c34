//! `whylate rtt`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use whylate_model::{CpuId, Nanos};
use whylate_port::open::{Target as Place, Transport};
use whylate_record::rtt::{Request, Target, record};
use whylate_sys::affinity;

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
    let mut progress = Shown::new(HEARTBEAT);
    let request = request(options)?;
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let request = Request { seed, ..request };
    let recorded = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}

fn request(options: &Rtt) -> Result<Request> {
    let cpu = client_cpu(options)?;
    let target = target(options, cpu)?;
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

fn target(options: &Rtt, client: CpuId) -> Result<Target> {
    if let Some(words) = &options.target {
        return Ok(Target::At(place(options.port, words)?));
    }
    let another = || affinity::get().into_iter().find(|cpu| *cpu != client);
    let cpu = options.other_cpu.map(CpuId).or_else(another).unwrap_or(client);
    Ok(Target::Own { cpu, bed: bed(options.bed.as_deref())? })
}

fn place(transport: Transport, words: &str) -> Result<Place> {
    if transport == Transport::Unix {
        return Ok(Place::Path(PathBuf::from(words)));
    }
    let address: SocketAddr = words.parse().with_context(|| {
        format!("`{words}` is no address with a port: write 127.0.0.1:4021 or [::1]:4021")
    })?;
    Ok(Place::Address(address))
}
