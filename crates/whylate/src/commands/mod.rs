//! One file per command.

mod again;
mod calibrate;
mod checkup;
mod compare;
mod delay;
mod device;
mod doctor;
mod forward;
mod gaps;
mod hourglass;
mod lab;
mod load;
mod merge;
mod paper;
mod reflect;
mod report;
mod rta;
mod rtt;
mod rtt_backends;
mod service;
mod switch_cost;
mod switch_runner;
mod threads;
mod wake;
mod watch;

use std::path::PathBuf;

use anyhow::{Context, Result};
use whylate_host::last_run;
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, Verdict};
use whylate_model::trust;
use whylate_net::lab::Bed;
use whylate_record::{Recorded, progress::Progress};
use whylate_report::execution::recorded::Recorded as OnDisk;
use whylate_report::{Percentiles, Style, Traced};

use crate::cli::{Cli, Command, Common, Format};
use crate::stopping::Stopping;

/// Exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Could not measure.
    CouldNotMeasure = 1,
    /// The command line says nothing that can be done.
    Usage = 2,
    /// A stated limit was exceeded.
    LimitExceeded = 3,
    /// The result is not trustworthy.
    NotTrustworthy = 4,
    /// Second Ctrl-C.
    Abandoned = 130,
}

/// Runs what the command line asks for.
pub(crate) fn run(cli: Cli) -> Result<Exit> {
    match cli.command {
        None => checkup::run(&cli.checkup),
        Some(Command::Gaps(options)) => gaps::run(&options),
        Some(Command::Wake(options)) => wake::run(&options),
        Some(Command::Threads(options)) => threads::run(&options),
        Some(Command::Hourglass(options)) => hourglass::run(&options),
        Some(Command::Rta(options)) => rta::run(&options),
        Some(Command::Paper(options)) => paper::run(&options),
        Some(Command::SwitchCost(options)) => switch_cost::run(&options),
        Some(Command::Rtt(options)) => rtt::run(&options),
        Some(Command::Watch(options)) => watch::run(&options),
        Some(Command::Device(options)) => device::run(&options),
        Some(Command::Doctor(options)) => doctor::run(&options),
        Some(Command::Lab(options)) => lab::run(&options),
        Some(Command::Reflect(options)) => reflect::run(&options),
        Some(Command::Forward(options)) => forward::run(&options),
        Some(Command::Delay(options)) => delay::run(&options),
        Some(Command::Calibrate(options)) => calibrate::run(&options),
        Some(Command::Report(options)) => report::run(&options),
        Some(Command::Compare(options)) => compare::run(&options),
        Some(Command::Merge(options)) => merge::run(&options),
        Some(Command::ReflectStdin(options)) => reflect::run_stdin(&options),
        Some(Command::LoadStdin) => load::run(),
        Some(Command::SwitchRunner(options)) => switch_runner::run(&options),
    }
}

/// What every recording needs before it begins: a seed, a directory, a host left in order.
struct Beginning {
    seed: u64,
    directory: RunDir,
    path: PathBuf,
}

fn begin(common: &Common, progress: &mut dyn Progress) -> Result<Beginning> {
    for line in whylate_record::mend_what_dead_runs_left() {
        progress.say(&line);
    }
    let seed = common.seed.unwrap_or_else(whylate_record::draw_seed);
    let directory = whylate_record::new_directory(common.output.as_deref())?;
    let path = directory.path().to_owned();
    Ok(Beginning { seed, directory, path })
}

/// Remembers the host, prints what was recorded and judges it.
fn conclude(
    recorded: &Recorded,
    path: &std::path::Path,
    common: &Common,
    stopping: &Stopping,
) -> Result<Exit> {
    // The run is stored: that doctor will not tell what changed since takes nothing from it.
    if let Err(error) = last_run::remember(&recorded.run.host, path) {
        anstream::eprintln!("{error}");
    }
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    let directory = RunDir::open(path);
    let traced = directory.as_ref().ok().and_then(|of| OnDisk::read(of, &recorded.run, None));
    let traced = traced.as_ref().map(|recorded| Traced { recorded, trace: false });
    print(&recorded.run, traced, common.format, common.percentiles)?;
    if common.format == Format::Text {
        anstream::println!("\nRun directory: {}", path.display());
    }
    // The run is stored and printed: without its page it is as good as before.
    let page = directory.map_err(Into::into);
    if let Err(error) = page.and_then(|run| whylate_report::html::write(&run, &recorded.run)) {
        anstream::eprintln!("{error}");
    }
    Ok(exit(&recorded.run))
}

fn print(
    run: &Run,
    traced: Option<Traced>,
    format: Format,
    percentiles: Option<Percentiles>,
) -> Result<()> {
    match format {
        Format::Text => {
            let percentiles = percentiles.unwrap_or_default();
            let style = Style { colour: colour(), percentiles, ..Style::default() };
            anstream::print!("{}", whylate_report::render_with(run, traced, style));
        }
        Format::Json => {
            let text = serde_json::to_string_pretty(run).context("cannot write the run as JSON")?;
            anstream::println!("{text}");
        }
    }
    Ok(())
}

/// How text is printed here.
fn style() -> Style {
    Style { colour: colour(), ..Style::default() }
}

/// Colour only where a terminal shows it and the user has not said no.
fn colour() -> bool {
    use std::io::IsTerminal;
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

fn exit(run: &Run) -> Exit {
    match trust::verdict(run) {
        Verdict::LimitExceeded { .. } => Exit::LimitExceeded,
        Verdict::Untrustworthy { .. } => Exit::NotTrustworthy,
        Verdict::Trustworthy | Verdict::Pending => Exit::Done,
    }
}

/// The bed of that name, where one is named.
fn bed(name: Option<&str>) -> Result<Option<Bed>> {
    Ok(name.map(Bed::open).transpose()?)
}

/// A tenth of the time, for `--quick`.
fn quick(time: whylate_model::Nanos, quick: bool) -> whylate_model::Nanos {
    if quick { whylate_model::Nanos(time.0 / 10) } else { time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_a_tenth() {
        let minute = whylate_model::Nanos(60_000_000_000);
        assert_eq!(quick(minute, true).0, 6_000_000_000);
        assert_eq!(quick(minute, false), minute);
    }
}
