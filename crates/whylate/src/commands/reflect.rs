//! `whylate reflect`, and `whylate reflect-stdin`, the other end of the check-up's messages.

use anyhow::{Context, Result};
use whylate_model::{CpuId, Nanos};
use whylate_net::resolve::{LIMIT, Wanted, resolve};
use whylate_net::{Reflector, StdinReflector, reflect_stdin};
use whylate_port::{Options, Target, Transport};
use whylate_record::progress::Progress;
use whylate_record::reflect::{Listen, ReflectRequest, run as record};

use super::{Exit, bed};
use crate::cli::{Findings, Reflect, ReflectStdin};
use crate::progress::Shown;
use crate::stopping::Stopping;

/// No step is ever told: only lines.
const HEARTBEAT: Nanos = Nanos(10 * Nanos::SECOND.0);

pub(super) fn run(options: &Reflect) -> Result<Exit> {
    let stopping = Stopping::listen()?;
    let mut progress = Shown::new(HEARTBEAT);
    for line in whylate_record::mend_what_dead_runs_left() {
        progress.say(&line);
    }
    let request = ReflectRequest {
        listen: listen(options, &mut progress)?,
        bed: bed(options.bed.as_deref())?,
        options: Options {
            interface: options.interface.clone(),
            receive_buffer: options.receive_buffer.map(|bytes| bytes as usize),
            ..Options::default()
        },
        wait: options.wait,
        protocol: options.protocol,
        cpu: options.cpu.map(CpuId),
        fifo: options.fifo,
        idle: options.idle,
        once: options.once,
        hold_dma_latency: !options.no_dma_latency,
    };
    let reflected = record(&request, &stopping.stop, &mut progress)?;
    drop(progress);
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    match options.format {
        Findings::Text => {
            let style = super::style();
            anstream::print!("{}", whylate_report::terminal::reflect::render(&reflected, style));
        }
        Findings::Json => {
            let text = serde_json::to_string_pretty(&reflected)
                .context("cannot write what was done as JSON")?;
            anstream::println!("{text}");
        }
    }
    Ok(Exit::Done)
}

fn listen(options: &Reflect, progress: &mut Shown) -> Result<Listen> {
    let transport = options.port;
    Ok(match (&options.feed, &options.listen) {
        (Some(list), _) => Listen::List(list.clone()),
        (None, None) => Listen::Usual(transport),
        (None, Some(path)) if transport == Transport::Unix => {
            Listen::At(transport, Target::Path(path.into()))
        }
        (None, Some(words)) => {
            let resolved = resolve(words, Wanted::Any, LIMIT)?;
            if let Some(took) = resolved.took {
                progress.say(&format!("{words} is {}, resolved in {took}", resolved.address));
            }
            Listen::At(transport, Target::Address(resolved.address))
        }
    })
}

pub(super) fn run_stdin(options: &ReflectStdin) -> Result<Exit> {
    let settings = StdinReflector {
        cpu: Some(CpuId(options.cpu)),
        fifo: None,
        wait: options.wait,
        reflector: Reflector::default(),
    };
    reflect_stdin(settings)?;
    Ok(Exit::Done)
}
