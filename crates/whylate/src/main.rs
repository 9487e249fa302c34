//! The `whylate` command.
//!
//! Parses the command line, calls one recording or one view, prints its result, and turns it into
//! an exit status: 0 done, 1 could not measure, 2 usage, 3 a stated limit was exceeded, 4 the
//! result is not trustworthy, 130 second Ctrl-C.

mod cli;
mod commands;
mod parse;
mod progress;
mod stopping;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::run(cli) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            anstream::eprintln!("whylate: {error:#}");
            ExitCode::from(commands::Exit::CouldNotMeasure as u8)
        }
    }
}
