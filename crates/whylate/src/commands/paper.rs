//! `whylate paper`.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use whylate_model::paper::Paper as Repeated;
use whylate_model::trust::Level;
use whylate_papers::{PaperError, Request, hourglass2002, killer2017, pam2017};
use whylate_record::progress::Progress;
use whylate_report::paper::Parts;
use whylate_report::{Place, first_screen_of_paper, full_of_paper, paper};

use super::gaps::one_cpu;
use super::{Exit, style, switch_runner};
use crate::cli::{Format, Paper, Which};
use crate::failure;
use crate::out::{self, say};
use crate::progress::Shown;
use crate::stopping::Stopping;

/// Refuses places that a paper has not.
type Check = fn(&[String]) -> Result<(), PaperError>;
/// Repeats a paper.
type Repeat = fn(&Request, &AtomicBool, &mut dyn Progress) -> Result<Repeated, PaperError>;

pub(super) fn run(options: &Paper) -> Result<Exit> {
    let (check, repeat) = match options.which {
        Which::Hourglass2002 => (hourglass2002::check as Check, hourglass2002::repeat as Repeat),
        Which::Pam2017 => (pam2017::check as Check, pam2017::repeat as Repeat),
        Which::Killer2017 => (killer2017::check as Check, killer2017::repeat as Repeat),
    };
    let of_killer =
        options.tools.is_some() || options.config.is_some() || !options.import.is_empty();
    if options.which != Which::Killer2017 && of_killer {
        failure::refuse("--tools, --config and --import are for killer2017 only");
        return Ok(Exit::Usage);
    }
    if let Some(error) = options.tools.as_deref().and_then(|of| killer2017::check_tools(of).err()) {
        failure::refuse(error);
        return Ok(Exit::Usage);
    }
    if let Some(error) = options.only.as_deref().and_then(|only| check(only).err()) {
        failure::refuse(error);
        return Ok(Exit::Usage);
    }
    let cpu = one_cpu(options.cpus.as_deref(), "the experiments of a paper run on one")?;
    let stopping = Stopping::listen()?;
    let mut progress = Shown::usual();
    for line in whylate_record::mend_what_dead_runs_left() {
        progress.say(&line);
    }
    let directory = whylate_record::new_directory(options.output.as_deref())?;
    let path = directory.path().to_owned();
    let request = Request {
        directory: path.clone(),
        cpu,
        quick: options.quick,
        only: options.only.clone(),
        seed: options.seed.unwrap_or_else(whylate_record::draw_seed),
        runner_words: switch_runner::WORDS.map(Into::into).to_vec(),
        program: std::env::current_exe().context("cannot tell which program this is")?,
        tools: options.tools.clone(),
        configurations: options.config.clone(),
        imports: options.import.clone(),
    };
    let repeated = repeat(&request, &stopping.stop, &mut progress)?;
    drop(progress);
    if stopping.twice() {
        return Ok(Exit::Abandoned);
    }
    let parts = Parts::read(&path, &repeated);
    let place = Place { directory: Some(&path), again: false };
    let printed = print(&repeated, &parts, place, options.format, options.full);
    match paper::write(&path, &repeated) {
        Ok(page) => say!("Page: {}", page.display()),
        Err(error) => say!("{error}"),
    }
    say!("Directory: {}", path.display());
    printed.map(|()| exit(&parts))
}

/// How a repetition ends: as any run, by how far it may be trusted.
pub(super) fn exit(parts: &Parts) -> Exit {
    if parts.trust.level() == Level::Poor { Exit::PoorTrust } else { Exit::Done }
}

/// Prints a repetition: its first screen, or the whole report where that is asked for.
pub(super) fn print(
    repeated: &Repeated,
    parts: &Parts,
    place: Place,
    format: Format,
    full: bool,
) -> Result<()> {
    match format {
        Format::Text if full => out::print(full_of_paper(repeated, &parts.trust, style())),
        Format::Text => out::print(first_screen_of_paper(repeated, parts, place, style())),
        Format::Json => {
            let text = serde_json::to_string_pretty(repeated);
            out::print(text.context("cannot write it as JSON")? + "\n")
        }
    }
}
