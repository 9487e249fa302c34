//! The `whylate` command.
//!
//! Parses the command line, calls one recording or one view, prints its result, and turns it into
//! an exit status: 0 done, 1 could not measure, 2 usage, 3 a stated limit was exceeded, 4 the
//! result is not trustworthy, 130 second Ctrl-C.

mod arrivals;
mod cli;
mod commands;
mod parse;
mod progress;
mod stopping;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    #[cfg(feature = "dpdk")]
    whylate_dpdk::register();
    let cli = cli::Cli::parse();
    match commands::run(cli) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            anstream::eprintln!("whylate: {}", told(&error));
            ExitCode::from(commands::Exit::CouldNotMeasure as u8)
        }
    }
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
