//! The `whylate` command.
//!
//! Parses the command line, calls one recording or one view, prints its result, and turns it into
//! an exit status: 0 done, 1 could not measure, 2 usage, 3 a stated limit was exceeded, 4 trust
//! in the result is poor, 130 second Ctrl-C.

mod arrivals;
mod cli;
mod commands;
mod out;
mod parse;
mod progress;
mod stopping;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use out::say;

fn main() -> ExitCode {
    #[cfg(feature = "dpdk")]
    whylate_dpdk::register();
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return help_or_refusal(&told),
    };
    match commands::run(cli) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            say!("whylate: {}", told(&error));
            ExitCode::from(commands::exit_of(&error) as u8)
        }
    }
}

/// Prints what was asked for, or why the words are not understood.
fn help_or_refusal(told: &clap::Error) -> ExitCode {
    if let Some(number) = below_zero(told) {
        say!(
            "whylate: `{number}` is no value of any option: times, rates and counts are above zero, \
             as in --duration 60s, --rate 10kpps"
        );
    } else if told.use_stderr() {
        say!("{}", told.render().ansi().to_string().trim_end());
    } else if let Err(error) = out::print(told.render().ansi()) {
        say!("whylate: {error:#}");
        return ExitCode::from(commands::Exit::CouldNotMeasure as u8);
    }
    ExitCode::from(told.exit_code() as u8)
}

/// A number below zero where an option was looked for: that is what its dash says.
fn below_zero(told: &clap::Error) -> Option<String> {
    let given = match told.get(ContextKind::InvalidArg)? {
        ContextValue::String(given) if told.kind() == ErrorKind::UnknownArgument => given,
        _ => return None,
    };
    let digits = given.strip_prefix('-')?;
    digits.starts_with(|first: char| first.is_ascii_digit() || first == '.').then(|| given.clone())
}

/// An error and its causes, without those that the error has told already.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| {
        match (told.is_empty(), told.contains(&cause)) {
            (true, _) => cause,
            (_, true) => told,
            (_, false) => format!("{told}: {cause}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    #[test]
    fn each_cause_is_told_once() {
        let error = || std::io::Error::other("no such file");
        let wrapped = |what: &'static str| Err::<(), _>(error()).context(what).unwrap_err();
        let plain = wrapped("cannot read the run");
        assert_eq!(super::told(&plain), "cannot read the run: no such file");
        let twice = wrapped("cannot look at /x: no such file; name another");
        assert_eq!(super::told(&twice), "cannot look at /x: no such file; name another");
    }
}
