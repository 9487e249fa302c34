//! `whylate device`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use whylate_model::{CpuId, Nanos, Printable};
use whylate_net::capture::Cut;
use whylate_net::lab::Joining;
use whylate_port::Transport;
use whylate_record::device::{
    CaptureQuestion, Changed, FanInOver, FanInQuestion, LineBetween, Question, RealPorts,
    Searching, Stamped, TheBox, record, record_captures,
};
use whylate_sys::affinity;

use super::gaps::{housekeeping, measured};
use super::{Beginning, Exit, begin, conclude, quick};
use crate::cli::{Device, Ignored, StampedAt};
use crate::failure;
use crate::parse::SHORTEST;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// Bytes of the frames of a fan-in, check sequence included.
const FAN_IN_BYTES: u32 = 512;
/// Rounds with --quick, at most, and trials of a search.
const QUICK_ROUNDS: u32 = 3;
const QUICK_TRIALS: u32 = 3;

pub(super) fn run(options: &Device) -> Result<Exit> {
    if let Some(why) = unfit(options) {
        failure::refuse(why);
        return Ok(Exit::Usage);
    }
    match (&options.captures, &options.the_box) {
        (Some(captures), _) => of_captures(options, captures),
        (None, Some(the_box)) => of_box(options, the_box),
        // clap asks for one of both.
        (None, None) => Ok(Exit::Usage),
    }
}

/// What the words say that cannot be done, and what to say instead.
fn unfit(options: &Device) -> Option<String> {
    for (list, name) in [(&options.interfaces, "--interfaces"), (&options.loopback, "--loopback")] {
        if !list.is_empty() && pair(list).is_none() {
            let given: Vec<String> = list.iter().map(|one| Printable(one).to_string()).collect();
            return Some(format!(
                "{name} has two names with a comma between them, not `{}`",
                given.join(",")
            ));
        }
    }
    if options.stamped.len() > 2 {
        return Some(
            "--stamped is of both captures, or two with a comma for IN and OUT".to_owned(),
        );
    }
    if !options.line.is_empty() && line(&options.line).is_none() {
        let given: Vec<String> =
            options.line.iter().map(|one| Printable(one).to_string()).collect();
        return Some(format!(
            "--line has four names with commas between them, NEAR,A,B,FAR, not `{}`",
            given.join(",")
        ));
    }
    if !matches!(options.transport, Transport::Udp | Transport::Packet | Transport::Xdp) {
        return Some(format!(
            "a client by {} cannot receive at a second port: use --transport packet, xdp or udp",
            options.transport
        ));
    }
    None
}

fn pair(list: &[String]) -> Option<[String; 2]> {
    <[String; 2]>::try_from(list.to_vec()).ok()
}

/// As cables lead: the client's first, the line's two, the client's second.
fn line(list: &[String]) -> Option<LineBetween> {
    let [near, a, b, far] = <[String; 4]>::try_from(list.to_vec()).ok()?;
    Some(LineBetween { client: [near, far], ports: [a, b] })
}

fn of_box(options: &Device, the_box: &TheBox) -> Result<Exit> {
    let question = question(options, the_box)?;
    if let Err(error) = question.check() {
        failure::refuse(error);
        return Ok(Exit::Usage);
    }
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let fan_in = question.fan_in.clone().map(|of| FanInQuestion { seed, ..of });
    let question = Question { seed, fan_in, ..question };
    let recorded = record(&question, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}

fn question(options: &Device, the_box: &TheBox) -> Result<Question> {
    let shorter = |time: Nanos| Nanos(quick(time, options.common.quick).0.max(SHORTEST.0));
    let client_cpu = match options.cpus {
        Some(cpu) => cpu,
        None => measured(None)?.last().copied().unwrap_or(CpuId(0)),
    };
    let others = affinity::get().into_iter().find(|cpu| *cpu != client_cpu);
    let rounds =
        if options.common.quick { options.rounds.min(QUICK_ROUNDS) } else { options.rounds };
    let (duration, warmup) = (shorter(options.duration), shorter(options.warmup));
    let throughput = (!options.no_throughput).then(|| Searching {
        trials: if options.common.quick {
            options.trials.min(QUICK_TRIALS)
        } else {
            options.trials
        },
        duration: shorter(options.trial_time),
        tolerated: options.tolerated_loss.unwrap_or(0.0),
    });
    let fan_in = fan_in(options, the_box).map(|(over, ports)| FanInQuestion {
        over,
        ports,
        takes: options.fan_in_takes,
        frame_bytes: FAN_IN_BYTES,
        sends: options.fan_in_sends.clone(),
        weights: options.fan_in_weights.clone(),
        rounds,
        duration,
        seed: 0,
    });
    Ok(Question {
        program: std::env::current_exe().context("cannot tell which program this is")?,
        the_box: the_box.clone(),
        interfaces: pair(&options.interfaces),
        ends: [options.from.to_string(), options.to.to_string()],
        loopback: pair(&options.loopback),
        line: line(&options.line),
        port: options.transport,
        wait: options.wait,
        client_cpu,
        box_cpu: options.box_cpus.or(others),
        sizes: options.sizes.clone(),
        rate: options.rate,
        rounds,
        duration,
        warmup,
        throughput,
        fan_in,
        configurations: options.config.clone().map(|list| list.0).unwrap_or_default(),
        hold_idle_states: !options.common.no_dma_latency,
        housekeeping: housekeeping(options.common.housekeeping.as_deref())?,
        seed: 0,
        command_line: whylate_record::command_line(),
        quick: options.common.quick,
    })
}

/// What joins the ports of a fan-in, and how many send; none where it was not asked for.
fn fan_in(options: &Device, the_box: &TheBox) -> Option<(FanInOver, u32)> {
    if let Some(to) = &options.fan_in_to {
        let from = options.fan_in_from.clone();
        let ports = u32::try_from(from.len()).unwrap_or(u32::MAX);
        return Some((FanInOver::Between(RealPorts { from, to: to.clone() }), ports));
    }
    let joining = if *the_box == TheBox::Ovs { Joining::Ovs } else { Joining::Bridge };
    options.fan_in.map(|ports| (FanInOver::Bed(joining), ports))
}

/// Of each capture; none where it was not told.
fn stamped(at: &[StampedAt]) -> Option<[Stamped; 2]> {
    let of = |at: StampedAt| match at {
        StampedAt::Start => Stamped::Start,
        StampedAt::End => Stamped::End,
    };
    match *at {
        [both] => Some([of(both), of(both)]),
        [before, behind] => Some([of(before), of(behind)]),
        _ => None,
    }
}

fn of_captures(options: &Device, captures: &[PathBuf]) -> Result<Exit> {
    let [before, behind] = captures else { return Ok(Exit::Usage) };
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    let Beginning { seed, directory, path } = begin(&options.common, &mut progress)?;
    let ignored = |what| options.ignore.contains(&what);
    let question = CaptureQuestion {
        before: before.clone(),
        behind: behind.clone(),
        changed: Changed {
            mac: ignored(Ignored::Mac),
            ttl: ignored(Ignored::Ttl),
            checksum: ignored(Ignored::Checksum),
        },
        window: options.window,
        stamped: stamped(&options.stamped),
        cut: if options.cut { Cut::Taken } else { Cut::Refused },
        seed,
        command_line: whylate_record::command_line(),
    };
    let recorded = record_captures(&question, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    conclude(&recorded, &path, &options.common, &stopping)
}
