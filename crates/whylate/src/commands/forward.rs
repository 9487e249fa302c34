//! `whylate forward`.

use anyhow::Result;
use whylate_model::Printable;
use whylate_model::forward::Forward as Account;
use whylate_model::warning::Warning;
use whylate_net::forward::{Plan, addresses};
use whylate_port::{LinkOptions, Threads, Transport};
use whylate_record::forward::{ForwardRequest, record, run as forward};
use whylate_record::progress::Progress;

use super::service::{self, Keeping};
use super::{Exit, bed};
use crate::cli::Forward;
use crate::failure;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// One thread for each direction at most.
const MOST_CPUS: usize = 2;

pub(super) fn run(options: &Forward) -> Result<Exit> {
    if let Some(why) = unfit(options) {
        failure::refuse(why);
        return Ok(Exit::Usage);
    }
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    for line in whylate_record::mend_what_dead_runs_left() {
        progress.say(&line);
    }
    let request = request(options)?;
    if let Some(directory) = &options.output {
        let keeping = Keeping {
            directory,
            question: "How long do frames stay here before they leave by the other port?",
            seed: 0,
            format: options.format,
            full: options.full,
            stopping: &stopping,
        };
        return keeping.keep(
            progress,
            |asked, directory, stop, progress| record(&request, asked, directory, stop, progress),
            |run| run.forward.iter().try_for_each(|account| print(options, account)),
        );
    }
    let account = forward(&request, &stopping.stop, &mut progress)?;
    drop(progress);
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    print(options, &account)?;
    let spoiled = account.warnings.iter().any(Warning::spoils_trust);
    Ok(if spoiled { Exit::PoorTrust } else { Exit::Done })
}

/// What the words say that cannot be done, and what to say instead.
fn unfit(options: &Forward) -> Option<String> {
    let transport = options.transport;
    if let Some(why) = options.memory.refused(&[transport]) {
        return Some(why);
    }
    let unfit = if transport == Transport::Udp {
        unfit_for_datagrams(options)
    } else {
        unfit_for_frames(options)
    };
    if unfit.is_some() {
        return unfit;
    }
    let cpus = &options.cpus;
    if cpus.len() > MOST_CPUS || (cpus.len() == MOST_CPUS && cpus[0] == cpus[1]) {
        return Some("--cpus names one CPU, or two different ones".to_owned());
    }
    None
}

/// The same of words for whole frames.
fn unfit_for_frames(options: &Forward) -> Option<String> {
    let transport = options.transport;
    if !transport.carries_frames() {
        return Some(format!(
            "{transport} is not forwarded: use --transport udp for datagrams, or packet, xdp or dpdk for frames; \
             whylate delay --proxy carries streams"
        ));
    }
    if options.first == options.second {
        let name = Printable(&options.first);
        return Some(format!("`{name}` is named twice: a forwarder has two interfaces"));
    }
    Some(options.wait).filter(|wait| wait.sleeps()).map(|_| {
        "a forwarder does not sleep while it waits: use --wait spin or --wait busy-poll".to_owned()
    })
}

/// The same of words for datagrams.
fn unfit_for_datagrams(options: &Forward) -> Option<String> {
    let given = [
        ("--bed", options.bed.is_some()),
        ("--queues", !options.queues.is_empty()),
        ("--ring", options.ring.is_some()),
    ];
    if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
        return Some(format!(
            "{name} is for whole frames, and --transport udp carries datagrams: leave {name} out"
        ));
    }
    if let Err(why) = addresses(&[options.first.clone(), options.second.clone()]) {
        return Some(why.to_string());
    }
    let wait = Some(options.wait).filter(|wait| !wait.takes_many_sockets())?;
    Some(format!(
        "{wait} waits for one socket, and a forwarder has several: use --wait spin, busy-poll, poll or epoll"
    ))
}

fn request(options: &Forward) -> Result<ForwardRequest> {
    let threads = if options.cpus.len() == MOST_CPUS { Threads::Two } else { Threads::One };
    let link = LinkOptions {
        queues: options.queues.clone(),
        ring: options.ring,
        device: options.memory.of_port(),
        ..LinkOptions::default()
    };
    Ok(ForwardRequest {
        plan: Plan {
            transport: options.transport,
            interfaces: [options.first.clone(), options.second.clone()],
            link,
            wait: options.wait,
            threads,
            stamps: options.stamps,
            work: options.work,
            interval: options.interval,
            duration: options.duration,
        },
        bed: bed(options.bed.as_deref())?,
        cpus: options.cpus.clone(),
        fifo: options.sched.fifo(),
        hold_dma_latency: !options.no_dma_latency,
    })
}

fn print(options: &Forward, account: &Account) -> Result<()> {
    service::print(account, options.format, options.full)
}
