//! The `whylate` command.
//!
//! Parses the command line, calls one recording or one view, prints its result, and turns it into
//! an exit status: 0 done, 1 could not measure, 2 usage, 3 a stated limit was exceeded, 4 trust
//! in the result is poor, 130 second Ctrl-C.

mod arrivals;
mod cli;
mod commands;
mod failure;
mod mended;
mod out;
mod parse;
mod progress;
mod stopping;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches};

use out::say;

fn main() -> ExitCode {
    #[cfg(feature = "dpdk")]
    whylate_dpdk::register();
    let (cli, words) = match parsed() {
        Ok(parsed) => parsed,
        Err(told) => return help_or_refusal(&told),
    };
    match commands::run(cli, &words) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            failure::tell(&error);
            ExitCode::from(commands::exit_of(&error) as u8)
        }
    }
}

/// The command line; `-h` prints a screen, `--help` everything.
fn parsed() -> Result<(cli::Cli, ArgMatches), clap::Error> {
    let given = cli::help::asked(std::env::args_os().collect());
    let program = cli::help::program(given.iter().any(|word| word == "-h"));
    let words = program.try_get_matches_from(given)?;
    Ok((cli::Cli::from_arg_matches(&words)?, words))
}

/// Prints what was asked for, or why the words are not understood.
fn help_or_refusal(told: &clap::Error) -> ExitCode {
    match told.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            say!("{}", told.render().ansi().to_string().trim_end());
        }
        _ if told.use_stderr() => failure::tell_of_words(told),
        _ => {
            if let Err(error) = out::print(told.render().ansi()) {
                failure::tell(&error);
                return ExitCode::from(commands::Exit::CouldNotMeasure as u8);
            }
        }
    }
    ExitCode::from(told.exit_code() as u8)
}
