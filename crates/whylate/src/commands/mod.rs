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
mod shell;
mod stored;
mod switch_cost;
mod switch_runner;
mod text_and_json;
mod threads;
mod wake;
mod watch;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::ArgMatches;
use serde::Serialize;
use whylate_host::last_run;
use whylate_load::Kind;
use whylate_model::Nanos;
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, Verdict};
use whylate_model::trust::{self, Told, Trust};
use whylate_net::lab::Bed;
use whylate_record::{Recorded, progress::Progress};
use whylate_report::execution::recorded::Recorded as OnDisk;
use whylate_report::{Letters, Percentiles, Place, Style, Traced};

use self::stored::Stored;
use crate::cli::{Cli, Command, Common, Format};
use crate::out::{self, say};
use crate::parse::SHORTEST;
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
    /// Trust in the result is poor.
    PoorTrust = 4,
    /// Second Ctrl-C.
    Abandoned = 130,
}

/// Words that say nothing that can be done here: status 2, and nothing was touched.
#[derive(Debug)]
pub(crate) struct Refused {
    reason: String,
    /// The command that goes on from here, where there is one.
    pub(crate) next: Option<String>,
}

impl Refused {
    /// For this reason.
    fn because(reason: impl fmt::Display) -> anyhow::Error {
        Self { reason: reason.to_string(), next: None }.into()
    }

    /// The same, with the command that goes on from here.
    fn with_next(reason: impl fmt::Display, next: String) -> anyhow::Error {
        Self { reason: reason.to_string(), next: Some(next) }.into()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refused {}

/// The status of a command that ended by an error.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    if error.is::<Refused>() { Exit::Usage } else { Exit::CouldNotMeasure }
}

/// Refuses a limit for gaps that none can reach: none is longer than the run.
fn within(limit: Option<Nanos>, name: &str, duration: Nanos) -> Result<()> {
    match limit {
        Some(limit) if limit >= duration => Err(Refused::because(format!(
            "{name} {limit} has no effect: no stall is longer than the {duration} of the run; give \
             less, or a longer --duration"
        ))),
        _ => Ok(()),
    }
}

/// Runs what the command line asks for.
pub(crate) fn run(cli: Cli, words: &ArgMatches) -> Result<Exit> {
    text_and_json::refuse(words)?;
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
        Some(Command::Completions(options)) => shell::completions(&options),
        Some(Command::Man(options)) => shell::man(&options),
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
    path: &Path,
    common: &Common,
    stopping: &Stopping,
) -> Result<Exit> {
    // The run is stored: that doctor will not tell what changed since takes nothing from it.
    if let Err(error) = last_run::remember(&recorded.run.host, path) {
        say!("{error}");
    }
    if recorded.run.switch_cost.is_some()
        && let Err(error) = last_run::remember_switch_cost(&recorded.run.host, path)
    {
        say!("{error}");
    }
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    let directory = RunDir::open(path);
    let traced = directory.as_ref().ok().and_then(|of| OnDisk::read(of, &recorded.run, None));
    let traced = traced.as_ref().map(|recorded| Traced { recorded, trace: false });
    let printed = print(&recorded.run, traced, stored::place(path), common.into());
    finish(&recorded.run, path, printed, false)
}

fn say_where(path: &Path) -> Result<()> {
    out::print(format_args!("\nRun directory: {}\n", path.display()))
}

/// Says where a run is stored that was printed, or could not be, makes its page, and judges it.
fn finish(run: &Run, path: &Path, printed: Result<()>, is_to_be_said: bool) -> Result<Exit> {
    let stored = Stored::of(run, path);
    let is_to_be_said = is_to_be_said && stored != Stored::Nothing;
    let printed = printed.and_then(|()| if is_to_be_said { say_where(path) } else { Ok(()) });
    // Where the run is stored it is as good without its page as before.
    let page = RunDir::open(path).map_err(Into::into);
    if let Err(error) = page.and_then(|of| whylate_report::html::write(&of, run)) {
        say!("{}", stored.without_page(error));
    }
    let whole = || format!("the run is complete in {0}: `whylate report {0}`", path.display());
    match (stored, stored.told(run)) {
        (Stored::Nothing, Some(told)) => return printed.and(Err(anyhow!(told))),
        (Stored::UpToCheckpoint, Some(told)) => {
            say!("{told}");
            printed?;
        }
        _ => printed.with_context(whole)?,
    }
    Ok(exit(run))
}

/// In which form a run is printed, and how much of it.
#[derive(Debug, Clone, Copy)]
struct Form {
    format: Format,
    percentiles: Option<Percentiles>,
    /// The whole report, not its first screen.
    full: bool,
}

impl From<&Common> for Form {
    fn from(of: &Common) -> Self {
        Self { format: of.format, percentiles: of.percentiles, full: of.full }
    }
}

/// Prints a run: its first screen, or the whole report where that is asked for or there is no such screen.
/// Either says where a new recording lies.
fn print(run: &Run, traced: Option<Traced>, place: Place, form: Form) -> Result<()> {
    match form.format {
        Format::Text => {
            let percentiles = form.percentiles.unwrap_or_default();
            let style = Style { percentiles, ..style() };
            let first = (!form.full).then(|| whylate_report::first_screen(run, place, style));
            if let Some(screen) = first.flatten() {
                return out::print(screen);
            }
            out::print(whylate_report::render_with(run, traced, style))?;
            place.directory.filter(|_| !place.again).map_or(Ok(()), say_where)
        }
        Format::Json => {
            let printed = Printed { run, trust: Trust::of(run).into() };
            let text = serde_json::to_string_pretty(&printed);
            let text = text.context("cannot write the run as JSON")?;
            out::print(text + "\n")
        }
    }
}

/// What is printed of a run: what its file holds, and how far it may be trusted, which the state of its files
/// decides, too.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    run: &'a Run,
    trust: Told,
}

/// How text is printed here.
fn style() -> Style {
    let usual = Style::default();
    let asked = std::env::var("COLUMNS").ok();
    let width = asked.and_then(|columns| width(&columns)).unwrap_or(usual.width);
    Style { colour: colour(), width, letters: letters(), ..usual }
}

/// Letters that the locale has: the first that is set of those by which the C library chooses.
pub(crate) fn letters() -> Letters {
    let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    letters_of(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).as_deref())
}

fn letters_of(locale: Option<&str>) -> Letters {
    let named = locale.unwrap_or_default().to_ascii_lowercase();
    if named.contains("utf-8") || named.contains("utf8") {
        Letters::Unicode
    } else {
        Letters::Plain
    }
}

/// The columns that COLUMNS asks for; none where it says nothing that can be.
fn width(columns: &str) -> Option<usize> {
    /// Narrower than this no table can be read.
    const NARROWEST: usize = 40;
    /// Wider than this no line can.
    const WIDEST: usize = 400;
    columns.trim().parse().ok().filter(|columns| (NARROWEST..=WIDEST).contains(columns))
}

/// Colour only where a terminal shows it and the user has not said no.
fn colour() -> bool {
    use std::io::IsTerminal;
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

fn exit(run: &Run) -> Exit {
    match trust::verdict(run) {
        Verdict::LimitExceeded { .. } => Exit::LimitExceeded,
        Verdict::Untrustworthy { .. } => Exit::PoorTrust,
        Verdict::Trustworthy | Verdict::Pending => Exit::Done,
    }
}

/// The bed of that name, where one is named.
fn bed(name: Option<&str>) -> Result<Option<Bed>> {
    Ok(name.map(Bed::open).transpose()?)
}

/// The same for load, part of which must go through the network.
fn bed_of_load(name: Option<&str>, loads: &[Kind]) -> Result<Option<Bed>> {
    if name.is_some() && !loads.iter().any(|kind| matches!(kind, Kind::Net(_))) {
        return Err(Refused::because(
            "--bed is for network load, and --load has none: add net to it, or leave --bed out",
        ));
    }
    bed(name)
}

/// How long to measure where so long was asked for: a tenth of it with `--quick`, where that is long enough.
fn lasting(asked: Nanos, common: &Common) -> Result<Nanos> {
    match quick(asked, common.quick) {
        tenth if tenth < SHORTEST => Err(Refused::because(format!(
            "a tenth of {asked} is too short to measure anything: give --duration {} or leave --quick out",
            Nanos(10 * SHORTEST.0)
        ))),
        duration => Ok(duration),
    }
}

/// A tenth of the time, for `--quick`.
fn quick(time: Nanos, quick: bool) -> Nanos {
    if quick { Nanos(time.0 / 10) } else { time }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    /// What this command line asks for.
    pub(super) fn asked(line: &str) -> Command {
        let words = shlex::split(line).expect("words of a shell");
        let cli = Cli::try_parse_from(std::iter::once("whylate".to_owned()).chain(words));
        cli.expect("it is understood").command.expect("a command")
    }

    #[test]
    fn a_cpu_for_housekeeping_is_advised_for_the_commands_that_take_one() {
        let program = Cli::command();
        let takes =
            |of: &&clap::Command| of.get_arguments().any(|arg| arg.get_id() == "housekeeping");
        let mut taking: Vec<&str> =
            program.get_subcommands().filter(takes).map(clap::Command::get_name).collect();
        taking.sort_unstable();
        assert_eq!(taking, whylate_model::commands::WITH_HOUSEKEEPING);
        assert!(takes(&&program), "the check-up");
    }

    #[test]
    fn columns_that_can_be_are_the_width_and_all_else_is_none() {
        assert_eq!([width("40"), width("132\n"), width("400")], [Some(40), Some(132), Some(400)]);
        for text in ["", "0", "39", "401", "-80", "eighty", "99999999999999999999999"] {
            assert_eq!(width(text), None, "{text}");
        }
    }

    #[test]
    fn a_locale_of_utf_8_has_all_letters_and_any_other_those_of_ascii() {
        for locale in ["C.UTF-8", "de_DE.utf8", "en_GB.UTF-8@euro"] {
            assert_eq!(letters_of(Some(locale)), Letters::Unicode, "{locale}");
        }
        for locale in [None, Some("C"), Some("POSIX"), Some("de_DE.ISO-8859-1")] {
            assert_eq!(letters_of(locale), Letters::Plain, "{locale:?}");
        }
    }

    #[test]
    fn a_network_for_load_is_opened_for_network_load_alone() {
        for (loads, refused) in
            [("disk", true), ("ipi,cpu:50%,mem:64MiB", true), ("net", false), ("disk,net", false)]
        {
            let loads = whylate_load::parse(loads).unwrap();
            let error = bed_of_load(Some("no-such-bed"), &loads).unwrap_err();
            assert_eq!(error.is::<Refused>(), refused, "{loads:?}: {error}");
            assert!(bed_of_load(None, &loads).unwrap().is_none());
        }
    }

    #[test]
    fn quick_is_a_tenth() {
        let minute = Nanos(60_000_000_000);
        assert_eq!(quick(minute, true).0, 6_000_000_000);
        assert_eq!(quick(minute, false), minute);
    }
}
