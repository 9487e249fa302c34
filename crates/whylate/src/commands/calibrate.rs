//! `whylate calibrate`.

use std::time::Duration;

use anyhow::{Context, Result};
use whylate_host::{calibrations, last_run};
use whylate_model::Nanos;
use whylate_port::Transport;
use whylate_record::calibrate::foreign::{ForeignRequest, Metric, Passes, Statistic, Unit};
use whylate_record::calibrate::planted::Plant;
use whylate_record::calibrate::{Request, is_poor, kept, record, refusal};
use whylate_record::progress::Progress;
use whylate_record::rtt::backends::Backend;

use super::gaps::one_cpu;
use super::{Exit, Form, finish, print, stored};
use crate::cli::{Calibrate, MetricStatistic, MetricUnit};
use crate::failure;
use crate::out::say;
use crate::parse::SHORTEST;
use crate::progress::Shown;
use crate::stopping::Stopping;

/// More delays than these say nothing more.
const MOST_DELAYS: usize = 16;
/// Runs, and the part of the time of each; the same where time is short.
const USUAL: (u32, u64) = (3, 1);
const QUICK: (u32, u64) = (2, 4);
/// Bytes of Ethernet, IPv4 and UDP around a message, the check sequence among them.
const AROUND: usize = 46;

pub(super) fn run(options: &Calibrate) -> Result<Exit> {
    let foreign = match foreign(options) {
        Ok(foreign) => foreign,
        Err(refusal) => return Ok(usage(&refusal)),
    };
    if let Some(refusal) = unfit(options) {
        return Ok(usage(&refusal));
    }
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    for line in whylate_record::mend_what_dead_runs_left() {
        progress.say(&line);
    }
    let request = request(options, foreign)?;
    let directory = whylate_record::new_directory(options.output.as_deref())?;
    let path = directory.path().to_owned();
    if request.foreign.is_none() {
        progress.say(&format!("about {}", about(request.about())));
    }
    let recorded = record(&request, directory, &stopping.stop, &mut progress)?;
    drop(progress);
    let run = &recorded.run;
    let new = kept(run, &path, request.bytes);
    if is_poor(run) {
        say!("its limits are not kept for later measurements: trust in it is poor");
    }
    let calibrated = if new.is_empty() { Ok(()) } else { calibrations::remember(&run.host, new) };
    for told in [last_run::remember(&run.host, &path), calibrated] {
        // The run is stored: what will not be remembered takes nothing from it.
        if let Err(error) = told {
            say!("{error}");
        }
    }
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    let Calibrate { format, percentiles, full, .. } = *options;
    let place = stored::place(&path);
    let printed = print(run, None, place, Form { format, percentiles, full });
    finish(run, &path, printed, false)
}

fn usage(refusal: &str) -> Exit {
    failure::refuse(refusal);
    Exit::Usage
}

/// What the words say that cannot be done, and what to say instead.
fn unfit(options: &Calibrate) -> Option<String> {
    // One among others is told in the report as not calibrated.
    let mut backends = options.backends.iter().flat_map(|list| &list.0);
    if let Some(first) = backends.next()
        && let Some(why) = refusal(*first)
        && backends.all(|backend| refusal(*backend).is_some())
    {
        return Some(why.to_owned());
    }
    if options
        .line_transport
        .is_some_and(|port| !matches!(port, Transport::Packet | Transport::Xdp))
    {
        return Some("the delay line carries frames here by packet or xdp".to_owned());
    }
    let delays = &options.delays;
    if delays.len() > MOST_DELAYS {
        return Some(format!("{} delays are too many: the most is {MOST_DELAYS}", delays.len()));
    }
    if let Some(twice) = (1..delays.len()).find(|at| delays[..*at].contains(&delays[*at])) {
        return Some(format!("the delay {} is there twice", delays[twice]));
    }
    None
}

/// The client of somebody else, where one is to be judged.
fn foreign(options: &Calibrate) -> Result<Option<ForeignRequest>, String> {
    let (Some(client), Some(metric)) = (&options.client, &options.metric) else { return Ok(None) };
    let words = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let unit = match options.unit {
        MetricUnit::Ns => Unit::Ns,
        MetricUnit::Us => Unit::Us,
        MetricUnit::Ms => Unit::Ms,
        MetricUnit::S => Unit::S,
    };
    let request = ForeignRequest {
        client: words(client),
        server: options.server.as_ref().map(words),
        metric: Metric::new(metric, unit)?,
        statistic: match options.statistic {
            MetricStatistic::Median => Statistic::Median,
            MetricStatistic::Mean => Statistic::Mean,
        },
        passes: if options.one_way { Passes::One } else { Passes::Both },
        port: options.port,
        most: Duration::from_nanos(options.client_timeout.0),
    };
    request.check()?;
    Ok(Some(request))
}

fn request(options: &Calibrate, foreign: Option<ForeignRequest>) -> Result<Request> {
    let client_cpu = one_cpu(options.cpus.as_deref(), "a client runs on one")?;
    let backends = match (&foreign, &options.backends) {
        (Some(_), _) => Vec::new(),
        (None, Some(list)) => list.0.clone(),
        (None, None) => Backend::all(),
    };
    let (runs, part) = if options.quick { QUICK } else { USUAL };
    let frame = u32::try_from(options.size + AROUND).unwrap_or(u32::MAX);
    let bias = options.plant_bias.map(Plant::Bias);
    Ok(Request {
        program: std::env::current_exe().context("cannot tell which program this is")?,
        backends,
        delays: options.delays.clone(),
        per_second: options.rate.per_second(frame),
        bytes: options.size,
        runs: options.runs.unwrap_or(runs),
        duration: Nanos((options.duration.0 / part).max(SHORTEST.0)),
        warmup: options.warmup,
        tolerance: options.tolerance,
        line_port: options.line_transport,
        line_cpu: options.line_cpus,
        client_cpu,
        hold_idle_states: !options.no_dma_latency,
        plant: bias.or_else(|| options.plant_tail.map(Plant::Tail)),
        foreign,
        command_line: whylate_record::command_line(),
        seed: options.seed.unwrap_or_else(whylate_record::draw_seed),
    })
}

/// A time that nobody should set a clock by.
fn about(time: Nanos) -> String {
    match time.0 / Nanos::SECOND.0 {
        seconds @ ..90 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::asked;
    use super::*;
    use crate::cli::Command;

    #[test]
    fn runs_that_are_asked_for_are_made_with_quick_too() {
        let runs = |line: &str| match asked(line) {
            Command::Calibrate(options) => request(&options, None).map(|request| request.runs).ok(),
            _ => None,
        };
        assert_eq!(runs("calibrate"), Some(3));
        assert_eq!(runs("calibrate --quick"), Some(2));
        for line in ["calibrate --runs 5", "calibrate --quick --runs 5"] {
            assert_eq!(runs(line), Some(5), "{line}");
        }
    }
}
