//! `whylate device`.

use std::net::Ipv4Addr;
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
/// Where nobody says otherwise; the same with --quick.
const USUAL: Counts = Counts { rounds: 5, trials: 8 };
const QUICK: Counts = Counts { rounds: 3, trials: 3 };
/// Before each measurement.
const WARMUP: Nanos = Nanos(100_000_000);
/// Addresses of both outer interfaces.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];

/// Rounds, and trials of each search.
struct Counts {
    rounds: u32,
    trials: u32,
}

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
    let addresses = [(options.from, "--from"), (options.to, "--to")];
    let given = addresses.into_iter().find(|(address, _)| address.is_some());
    if let (Some((_, name)), Some(the_box)) = (given, &options.the_box)
        && *the_box != TheBox::Between
    {
        return Some(format!(
            "{the_box} has a test network of its own, whose ends have addresses: leave {name} out"
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
    let usual = if options.common.quick { QUICK } else { USUAL };
    let rounds = options.rounds.unwrap_or(usual.rounds);
    let duration = shorter(options.duration);
    let warmup = options.warmup.unwrap_or_else(|| shorter(WARMUP));
    let throughput = (!options.no_throughput).then(|| Searching {
        trials: options.trials.unwrap_or(usual.trials),
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
        ends: [options.from.unwrap_or(ENDS[0]), options.to.unwrap_or(ENDS[1])]
            .map(|of| of.to_string()),
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

#[cfg(test)]
mod tests {
    use super::super::tests::asked;
    use super::*;
    use crate::cli::Command;

    #[test]
    fn rounds_trials_and_a_warm_up_that_are_asked_for_are_made_with_quick_too() {
        let of = |words: &str| match asked(&format!("device --box bridge {words}")) {
            Command::Device(options) => {
                let question = question(&options, &TheBox::Bridge).unwrap();
                let trials = question.throughput.map(|of| of.trials);
                Some((question.rounds, trials, question.warmup.0 / 1_000_000))
            }
            _ => None,
        };
        assert_eq!(of(""), Some((5, Some(8), 100)));
        assert_eq!(of("--quick"), Some((3, Some(3), 10)));
        for words in ["", "--quick"] {
            let words = format!("{words} --rounds 9 --trials 12 --warmup 70ms");
            assert_eq!(of(&words), Some((9, Some(12), 70)), "{words}");
        }
        assert_eq!(of("--quick --no-throughput"), Some((3, None, 10)));
    }
}
