//! How the end of a command that failed is told: `error: ` with what is wrong, and where some command goes on
//! from there, `  try: ` with it on a line of its own. Lines that a terminal would wrap are not broken: they are
//! copied.
//!
//! Words that cannot be understood always have a command to go on with: where the reason says which option to
//! leave out or to use, the same command line with that change ([`crate::mended`]), otherwise the help.

use std::error::Error;
use std::fmt::Display;
use std::io::ErrorKind as IoKind;
use std::net::SocketAddr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use whylate_model::duration::DurationError;
use whylate_model::{ModelError, Nanos};
use whylate_net::NetError;
use whylate_port::PortError;
use whylate_record::RecordError;

use crate::cli::Cli;
use crate::commands::Refused;
use crate::out::say;

/// Lists the runs below the current directory, however they are named.
const RUNS: &str = "ls -d */run.json";

/// Tells an error of a command.
pub(crate) fn tell(error: &anyhow::Error) {
    let reason = told(error);
    let of_words = || error.is::<Refused>().then(|| after(&reason));
    let next = next(error).or_else(|| mended(&reason)).or_else(of_words);
    say!("error: {reason}");
    if let Some(next) = next {
        say!("  try: {next}");
    }
}

/// Tells why a command line cannot be followed.
pub(crate) fn refuse(reason: impl Display) {
    let reason = reason.to_string();
    say!("error: {reason}\n  try: {}", after(&reason));
}

/// Tells why words are not understood.
pub(crate) fn tell_of_words(error: &clap::Error) {
    let needed = words().and_then(|words| Needed::of(error, &words));
    let wrong = match (below_zero(error), &needed) {
        (Some(number), _) => format!(
            "`{number}` is not a value of an option: times, rates and counts are above zero, as in \
             --duration 60s, --rate 10kpps"
        ),
        (None, Some(needed)) => needed.reason.clone(),
        (None, None) => in_words(error),
    };
    if let (Some(wrong), Some(words)) = (elsewhere(error), words()) {
        say!("error: {wrong}\n  try: {}", to_a_page(&words));
        return;
    }
    let needed = needed.and_then(|needed| needed.next);
    let next = needed.or_else(|| suggested(error)).unwrap_or_else(|| after(&wrong));
    say!("error: {wrong}\n  try: {next}");
}

/// The command line to go on with when this one cannot be followed.
fn after(reason: &str) -> String {
    mended(reason).unwrap_or_else(|| format!("whylate {}-h", of_command()))
}

/// This command line; none where it is not of letters.
fn words() -> Option<Vec<String>> {
    std::env::args_os().skip(1).map(|word| word.into_string().ok()).collect()
}

/// This command line with the change that the reason asks for.
fn mended(reason: &str) -> Option<String> {
    crate::mended::mended(&words()?, reason)
}

/// This command line with the word that clap takes for the one that was meant, or that a duration without a
/// unit most often means.
fn suggested(error: &clap::Error) -> Option<String> {
    let of = |kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        ContextValue::Strings(words) => words.first().cloned(),
        _ => None,
    };
    let (wrong, meant) = of(ContextKind::InvalidArg)
        .zip(of(ContextKind::SuggestedArg))
        .or_else(|| of(ContextKind::InvalidSubcommand).zip(of(ContextKind::SuggestedSubcommand)))
        .or_else(|| of(ContextKind::InvalidValue).zip(of(ContextKind::SuggestedValue)))
        .or_else(|| of(ContextKind::InvalidValue).zip(with_a_unit(error)))?;
    crate::mended::replaced(&words()?, &wrong, &meant)
}

/// The option of other commands that says where a run is written, which `report` writes none of.
const OUT: [&str; 3] = ["-o", "--out", "--output"];

/// Why it is not understood where `report` is told to write its run.
fn elsewhere(error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(given)), ErrorKind::UnknownArgument) =
        (error.get(ContextKind::InvalidArg), error.kind())
    else {
        return None;
    };
    (of_command() == "report " && OUT.contains(&given.as_str())).then(|| {
        format!("report has no {given}: it writes no run; --html FILE writes its page to a file")
    })
}

/// The same words with the option of a page in the place of that of a run.
fn to_a_page(words: &[String]) -> String {
    let is_out = |word: &str| OUT.contains(&word.split('=').next().unwrap_or(word));
    let page = |word: &String| match word.split_once('=') {
        Some((_, file)) if is_out(word) => format!("--html={file}"),
        _ if is_out(word) => "--html".to_owned(),
        _ => word.clone(),
    };
    let other: Vec<String> = words.iter().map(page).collect();
    crate::mended::told(&other).unwrap_or_else(|| "whylate report RUN --html FILE".to_owned())
}

/// An option that another one needs.
struct Needed {
    reason: String,
    /// The command line with both, where a value of the missing one is as good as any other.
    next: Option<String>,
}

/// A value to try of an option that another one needs.
const TO_TRY: [(&str, &str); 3] = [("--stop-above", "50us"), ("--load", "net"), ("--bed", "lab")];

impl Needed {
    /// The option that is missing, and the first of the given ones without which it would not be.
    fn of(error: &clap::Error, words: &[String]) -> Option<Self> {
        let missing = Self::missing(error)?;
        let (name, _) = missing.split_once(' ').unwrap_or((missing, ""));
        let is_missing_without = |given: &&str| {
            let line = crate::mended::without(words, given);
            let error = line.and_then(|line| Cli::try_parse_from(line).err());
            error.as_ref().and_then(Self::missing) == Some(missing)
        };
        let given = words.iter().filter_map(|word| word.split('=').next());
        let mut given = given.filter(|word| word.starts_with("--"));
        let needs = given.find(|given| !is_missing_without(given))?;
        let reason = format!("{needs} needs {name}");
        let value = TO_TRY.iter().find(|(option, _)| *option == name);
        let with = value.map(|(name, value)| format!("add {name} {value}"));
        Some(Self { reason, next: with.and_then(|with| crate::mended::mended(words, &with)) })
    }

    /// The one option, with what stands for its value, that a command line lacks.
    fn missing(error: &clap::Error) -> Option<&str> {
        match error.get(ContextKind::InvalidArg)? {
            ContextValue::Strings(all) if error.kind() == ErrorKind::MissingRequiredArgument => {
                let [one] = &all[..] else { return None };
                one.starts_with("--").then_some(one)
            }
            _ => None,
        }
    }
}

/// How long to measure, in seconds where it was written without a unit: other times are seldom seconds.
fn with_a_unit(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(option) if option.starts_with("--duration") => {}
        _ => return None,
    }
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    matches!(value.parse::<Nanos>(), Err(DurationError::NoUnit(_))).then(|| format!("{value}s"))
}

/// The command that this command line asks for, and a space behind it; none for the check-up.
pub(crate) fn of_command() -> String {
    let program = Cli::command();
    let known = |word: &String| program.find_subcommand(word).is_some_and(|of| !of.is_hide_set());
    let words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    words.into_iter().find(known).map_or_else(String::new, |name| name + " ")
}

/// What clap says, in one line: of a value what is wrong with it, and of which option it is.
fn in_words(error: &clap::Error) -> String {
    let rendered = in_one_line(&error.render().to_string());
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return rendered;
    };
    let name = option.split([' ', '=']).next().unwrap_or(option);
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::ValueValidation, _) => match Error::source(error) {
            Some(why) => format!("{name}: {why}"),
            None => rendered,
        },
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) if !value.is_empty() => {
            format!("{name}: `{value}` is not one of its values: use {}", or(values))
        }
        _ => rendered,
    }
}

/// Words as a choice: `a, b or c`.
fn or(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// What clap says, without its usage and its pointer to the help.
fn in_one_line(rendered: &str) -> String {
    let told = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let said = told.split("\n\n").filter(|said| {
        let said = said.trim_start();
        !said.starts_with("Usage:") && !said.starts_with("For more information")
    });
    let line = |said: &str| said.split_whitespace().collect::<Vec<_>>().join(" ");
    said.map(line).filter(|said| !said.is_empty()).collect::<Vec<_>>().join("; ")
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

/// The command that goes on from an error, where there is one.
fn next(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return refused.next.clone();
        }
        match cause.downcast_ref() {
            Some(NetError::NoBed(name)) => return Some(format!("whylate lab up --name {name}")),
            Some(NetError::NotABedName(_)) => return Some("whylate lab status".to_owned()),
            Some(NetError::NotAnAddress(_)) => return Some(format!("whylate {}-h", of_command())),
            _ => {}
        }
        if let Some(place) = without_answers(cause) {
            return Some(format!("whylate reflect --listen {place}  # there"));
        }
        match cause.downcast_ref::<ModelError>()? {
            ModelError::NoRun { .. } => Some(RUNS.to_owned()),
            ModelError::Read { why, .. } if why.kind() == IoKind::NotFound => Some(RUNS.to_owned()),
            _ => None,
        }
    })
}

/// Where nobody answers the requests of `rtt`.
fn without_answers(cause: &(dyn Error + 'static)) -> Option<SocketAddr> {
    match cause.downcast_ref::<RecordError>()? {
        RecordError::Port(PortError::Refused { to })
        | RecordError::Net(NetError::Port(PortError::Refused { to })) => to.parse().ok(),
        _ => None,
    }
}

/// An error and its causes, without those that the error has told already, and without the path alone where a cause
/// names it.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(|cause| in_text(&cause.to_string())).fold(
        String::new(),
        |told, cause| match () {
            () if cause.contains(&told) => cause,
            () if told.contains(&cause) => told,
            () => format!("{told}: {cause}"),
        },
    )
}

/// Without the numbers of the system's errors, whose words stand before them.
fn in_text(error: &str) -> String {
    let mut parts = error.split(" (os error ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn each_cause_is_told_once() {
        let error = || std::io::Error::other("no such file");
        let wrapped = |what: &'static str| Err::<(), _>(error()).context(what).unwrap_err();
        let plain = wrapped("cannot read the run");
        assert_eq!(told(&plain), "cannot read the run: no such file");
        let twice = wrapped("cannot look at /x: no such file; name another");
        assert_eq!(told(&twice), "cannot look at /x: no such file; name another");
        let path = anyhow::Error::msg("cannot read `/x`: gone").context("/x");
        assert_eq!(told(&path), "cannot read `/x`: gone");
    }

    #[test]
    fn the_number_of_an_error_of_the_system_is_left_out_and_nothing_beside_it() {
        let system = std::io::Error::from_raw_os_error(2);
        let error = anyhow::Error::new(system).context("cannot read a");
        assert_eq!(told(&error), "cannot read a: No such file or directory");
        let inside = "`a`: No such file (os error 2); name `b` (or c): Busy (os error 16)";
        assert_eq!(in_text(inside), "`a`: No such file; name `b` (or c): Busy");
    }

    #[test]
    fn where_nobody_answers_requests_it_is_told_who_would() {
        let next_of = |to: &str| {
            let refused = || PortError::Refused { to: to.to_owned() };
            let both = [RecordError::Port(refused()), RecordError::Net(refused().into())];
            both.map(|error| next(&anyhow::Error::from(error)))
        };
        let [port, net] = next_of("192.0.2.7:4021");
        assert_eq!(port, net);
        // A server of another protocol would not refuse: there is none to be watched.
        assert_eq!(port.as_deref(), Some("whylate reflect --listen 192.0.2.7:4021  # there"));
        assert_eq!(next_of("/run/a.sock"), [None, None]);
    }

    #[test]
    fn an_option_that_needs_another_is_named_with_it() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let all = ["whylate".to_owned()].into_iter().chain(words.iter().cloned());
            let needed = Needed::of(&Cli::try_parse_from(all).unwrap_err(), &words);
            needed.map(|needed| (needed.reason, needed.next.unwrap_or_default()))
        };
        for (line, reason, next) in [
            (
                "gaps --cpus 1 --on-threshold trace-off",
                "--on-threshold needs --stop-above",
                "whylate gaps --cpus 1 --on-threshold trace-off --stop-above 50us",
            ),
            ("wake --bed=here", "--bed needs --load", "whylate wake --bed=here --load net"),
            (
                "reflect --bed-end client",
                "--bed-end needs --bed",
                "whylate reflect --bed-end client --bed lab",
            ),
        ] {
            assert_eq!(of(line), Some((reason.to_owned(), next.to_owned())), "{line}");
        }
        // What no option needs, the command does.
        for line in ["report", "calibrate --client", "gaps --durat 1s"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn a_report_that_is_to_be_written_somewhere_is_a_page() {
        let told = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            to_a_page(&words)
        };
        assert_eq!(told("report g1 -o x"), "whylate report g1 --html x");
        assert_eq!(told("report g1 --output=x"), "whylate report g1 --html=x");
        assert_eq!(told("report g1 -o"), "whylate report RUN --html FILE");
    }

    #[test]
    fn what_clap_says_becomes_one_line() {
        let of = |words: &str| {
            let words = ["whylate"].into_iter().chain(words.split(' '));
            in_words(&Cli::try_parse_from(words).unwrap_err())
        };
        for (words, line) in [
            (
                "gaps --durat 1s",
                "unexpected argument '--durat' found; tip: a similar argument exists: '--duration'",
            ),
            ("report", "the following required arguments were not provided: <RUN>"),
            ("gaps --format xml", "--format: `xml` is not one of its values: use text or json"),
            ("switch-cost --trials 1", "--trials: 1 is not in 2..=1000"),
        ] {
            assert_eq!(of(words), line, "{words}");
        }
    }
}
