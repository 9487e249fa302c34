//! `whylate completions SHELL` and `whylate man DIR`, from the same text as `--help`.

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use super::Exit;
use crate::cli::{Cli, Completions, Man, help};
use crate::out;

const PROGRAM: &str = "whylate";

pub(super) fn completions(options: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut shown(&Cli::command()), PROGRAM, &mut script);
    out::with(|out| out.write_all(&script))?;
    Ok(Exit::Done)
}

pub(super) fn man(options: &Man) -> Result<Exit> {
    let directory = &options.directory;
    if !directory.is_dir() {
        std::fs::create_dir(directory).with_context(|| directory.display().to_string())?;
    }
    clap_mangen::generate_to(help::whole(), directory)
        .with_context(|| format!("{}: cannot write the pages", directory.display()))?;
    Ok(Exit::Done)
}

/// Without the commands that whylate alone starts: a script would complete them.
fn shown(all: &Command) -> Command {
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new(PROGRAM).args(all.get_arguments()).subcommands(commands)
}
