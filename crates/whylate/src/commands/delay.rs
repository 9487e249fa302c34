//! `whylate delay`.

use std::str::FromStr;

use anyhow::Result;
use whylate_model::delay::DelayLine;
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Printable};
use whylate_net::delay::{
    Amount, Capacity, Law, Limit, Plan, ProxyKind, ProxyPlan, ProxyWay, TRUTH_ROOM,
};
use whylate_net::schedule::Rate;
use whylate_port::{LinkOptions, Wait};
use whylate_record::delay::{DelayRequest, What, record, run as delay};
use whylate_record::progress::Progress;

use super::service::{self, Keeping};
use super::{Exit, bed};
use crate::cli::{Delay, Truths};
use crate::failure;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// How fast frames may come where nobody says, and datagrams, each of which takes two system calls.
const FASTEST: [Rate; 2] = [Rate::Packets(1e6), Rate::Packets(1e5)];
/// Memory of a frame of any usual length.
const FRAME_BYTES: u64 = 1_536;

pub(super) fn run(options: &Delay) -> Result<Exit> {
    let seed = options.seed.unwrap_or_else(whylate_record::draw_seed);
    let what = match unfit(options).map_or_else(|| what(options, seed), Err) {
        Ok(what) => what,
        Err(why) => {
            failure::refuse(why);
            return Ok(Exit::Usage);
        }
    };
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    for line in whylate_record::mend_what_dead_runs_left() {
        progress.say(&line);
    }
    let request = DelayRequest {
        what,
        bed: bed(options.bed.as_deref())?,
        speaks: options.protocol,
        cpu: options.cpus,
        fifo: options.sched.fifo(),
        hold_dma_latency: !options.no_dma_latency,
        control: options.control.clone(),
        netem: !options.no_netem,
    };
    if let Some(directory) = &options.output {
        let keeping = Keeping {
            directory,
            question: "When did each frame come, and when did it leave?",
            seed,
            format: options.format,
            full: options.full,
            stopping: &stopping,
        };
        return keeping.keep(
            progress,
            |asked, directory, stop, progress| record(&request, asked, directory, stop, progress),
            |run| run.delay.iter().try_for_each(|line| print(options, line)),
        );
    }
    let line = delay(&request, &stopping.stop, &mut progress)?;
    drop(progress);
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    print(options, &line)?;
    let spoiled = line.warnings.iter().any(Warning::spoils_trust);
    Ok(if spoiled { Exit::PoorTrust } else { Exit::Done })
}

/// What the words say that cannot be done, and what to say instead.
fn unfit(options: &Delay) -> Option<String> {
    if options.proxy.is_some() {
        return None;
    }
    let transport = options.transport;
    if !transport.carries_frames() {
        return Some(format!(
            "{transport} carries messages, not frames: use --transport packet, xdp or dpdk, or --proxy for messages"
        ));
    }
    if options.first == options.second {
        let name = options.first.as_deref().unwrap_or_default();
        let name = Printable(name);
        return Some(format!("`{name}` is named twice: a delay line has two interfaces"));
    }
    options.wait.filter(|wait| wait.sleeps()).map(|_| {
        "a delay line does not sleep while it waits: use --wait spin or --wait busy-poll".to_owned()
    })
}

/// What is held back, and how.
fn what(options: &Delay, seed: u64) -> Result<What, String> {
    let laws = laws(options, seed)?;
    let truths = (options.truth == Truths::On && options.output.is_some()).then_some(TRUTH_ROOM);
    let (wait, duration) = (options.wait.unwrap_or(Wait::Spin), options.duration);
    if let Some(way) = options.proxy {
        for law in &laws {
            fits(way, law)?;
        }
        let fastest = options.fastest.unwrap_or(FASTEST[1]);
        return Ok(What::Messages(ProxyPlan { way, laws, fastest, wait, truths, duration }));
    }
    let capacity = options.capacity.map(|frames| {
        let frames = u64::from(frames);
        Capacity { frames, bytes: frames * FRAME_BYTES }
    });
    let link = LinkOptions {
        queues: options.queues.clone(),
        ring: options.ring,
        ..LinkOptions::default()
    };
    let name = |of: &Option<String>| of.clone().unwrap_or_default();
    Ok(What::Frames(Plan {
        transport: options.transport,
        interfaces: [name(&options.first), name(&options.second)],
        link,
        wait,
        laws,
        fastest: options.fastest.unwrap_or(FASTEST[0]),
        capacity,
        truths,
        duration,
    }))
}

/// What would break a stream is refused before anything is opened.
fn fits(way: ProxyWay, law: &Law) -> Result<(), String> {
    let shares = [("--loss", law.loss), ("--duplicate", law.duplicate), ("--reorder", law.reorder)];
    match shares.into_iter().find(|(_, share)| *share > 0.0) {
        Some((name, _)) if way.kind == ProxyKind::Tcp => Err(format!(
            "{name} would break a TCP stream for both ends: leave {name} out, or use a udp proxy"
        )),
        _ => Ok(()),
    }
}

/// The laws of both directions.
fn laws(options: &Delay, seed: u64) -> Result<[Law; 2], String> {
    let delays = pair::<Amount>(&options.hold, "--delay")?;
    let shares = |text: &str, name: &str| {
        pair::<Share>(text, name).map(|pair| pair.map(|Share(share)| share))
    };
    let losses = shares(&options.loss, "--loss")?;
    let duplicates = shares(&options.duplicate, "--duplicate")?;
    let reorders = shares(&options.reorder, "--reorder")?;
    let rates = match &options.rate {
        None => [None, None],
        Some(text) => pair::<Rate>(text, "--rate")?.map(|rate| Some(Limit::from(rate))),
    };
    let law = |way: usize| -> Result<Law, String> {
        let law = Law {
            delay: jittered(delays[way].clone(), options.jitter)?,
            loss: losses[way],
            duplicate: duplicates[way],
            reorder: reorders[way],
            rate: rates[way],
            seed,
        };
        law.check().map_err(|error| error.to_string())?;
        Ok(law)
    };
    Ok([law(0)?, law(1)?])
}

/// A constant delay with so much around it.
fn jittered(delay: Amount, jitter: Option<Nanos>) -> Result<Amount, String> {
    match (delay, jitter) {
        (delay, None) => Ok(delay),
        (Amount::Constant(delay), Some(jitter)) if jitter <= delay => {
            Ok(Amount::Uniform { low: Nanos(delay.0 - jitter.0), high: Nanos(delay.0 + jitter.0) })
        }
        (Amount::Constant(delay), Some(jitter)) => {
            Err(format!("--jitter {jitter} is more than the delay of {delay}: choose one below"))
        }
        (delay, Some(_)) => {
            Err(format!("--jitter needs a constant delay, and {delay} varies: leave --jitter out"))
        }
    }
}

/// One value for both directions, or two with a comma between them. A value may have commas itself.
fn pair<T: FromStr<Err: ToString> + Clone>(text: &str, name: &str) -> Result<[T; 2], String> {
    let both = text.parse::<T>();
    let why = match both {
        Ok(both) => return Ok([both.clone(), both]),
        Err(why) => why.to_string(),
    };
    let commas = text.match_indices(',').map(|(at, _)| at);
    let mut two = commas.filter_map(|at| {
        let (there, back) = (&text[..at], &text[at + 1..]);
        Some([there.parse::<T>().ok()?, back.parse::<T>().ok()?])
    });
    two.next_back().ok_or_else(|| format!("{name}: {why}"))
}

/// A share from 0 to 1: `0.01`, or `1%`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Share(f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let share = number.parse::<f64>().ok().map(|number| number / scale);
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        let none =
            || format!("`{}` is no share: write one from 0 to 1, as 0.01 or 1%", Printable(text));
        share.map(Self).ok_or_else(none)
    }
}

fn print(options: &Delay, line: &DelayLine) -> Result<()> {
    service::print(line, options.format, options.full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_for_both_ways_and_two_are_for_one_each_also_where_a_value_has_commas() {
        let us = |us: u64| Nanos(1_000 * us);
        let constant = |us_: u64| Amount::Constant(us(us_));
        let normal = Amount::Normal { mean: us(10), sd: us(1) };
        for (text, expected) in [
            ("20us", [constant(20), constant(20)]),
            ("20us,5us", [constant(20), constant(5)]),
            ("normal:10us,1us", [normal.clone(), normal.clone()]),
            ("normal:10us,1us,5us", [normal.clone(), constant(5)]),
            ("5us,normal:10us,1us", [constant(5), normal]),
        ] {
            assert_eq!(pair::<Amount>(text, "--delay"), Ok(expected), "{text}");
        }
        let error = pair::<Amount>("20us,", "--delay").unwrap_err();
        assert!(error.starts_with("--delay: `20us,` is not a delay"), "{error}");
        assert_eq!(pair::<Share>("1%,0.5", "--loss"), Ok([Share(0.01), Share(0.5)]));
        assert!(pair::<Share>("2", "--loss").is_err());
    }

    #[test]
    fn jitter_lies_around_a_constant_delay_and_nothing_else() {
        let even = jittered(Amount::Constant(Nanos(10)), Some(Nanos(4))).unwrap();
        assert_eq!(even, Amount::Uniform { low: Nanos(6), high: Nanos(14) });
        assert!(jittered(Amount::Constant(Nanos(3)), Some(Nanos(4))).is_err());
        assert!(jittered(even, Some(Nanos(1))).is_err());
    }
}
