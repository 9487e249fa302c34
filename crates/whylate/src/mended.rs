//! A command line with the change that a refusal asks for.
//!
//! Reasons say what to change in three ways: `leave --name out`, `use --name VALUE` and `add --name`. What comes
//! of it is offered only where the program understands it; a value that is to be chosen (`FILE`) is no change.

use clap::{Arg, Command, CommandFactory, Parser};

use crate::cli::Cli;

/// The command line with the change that the reason asks for first; none where it asks for none, or where the
/// program would not understand what comes of it.
pub(crate) fn mended(words: &[String], reason: &str) -> Option<String> {
    let change = Change::of(reason)?;
    let mut program = Cli::command();
    program.build();
    let command = command_of(&program, words);
    understood(change.made(command, words)?)
}

/// The whole command line without that option, whether the program understands it or not.
pub(crate) fn without(words: &[String], name: &str) -> Option<Vec<String>> {
    let mut program = Cli::command();
    program.build();
    let command = command_of(&program, words);
    let rest = Change::Without(name).made(command, words)?;
    Some(["whylate".to_owned()].into_iter().chain(rest).collect())
}

/// The command line with another word in the place of one.
pub(crate) fn replaced(words: &[String], wrong: &str, meant: &str) -> Option<String> {
    let other = |word: &String| {
        if word == wrong {
            return meant.to_owned();
        }
        let behind = |sign: char| {
            let (name, value) = word.split_once(sign)?;
            (name == wrong)
                .then(|| format!("{meant}{sign}{value}"))
                .or_else(|| (value == wrong).then(|| format!("{name}{sign}{meant}")))
        };
        behind('=').unwrap_or_else(|| word.clone())
    };
    understood(words.iter().map(other).collect())
}

/// What a reason asks for.
#[derive(Debug, PartialEq, Eq)]
enum Change<'a> {
    Without(&'a str),
    With(&'a str, Option<&'a str>),
}

impl<'a> Change<'a> {
    fn of(reason: &'a str) -> Option<Self> {
        let begins = |(at, _): &(usize, &str)| reason[*at..].len();
        let without = reason.match_indices("leave --").max_by_key(begins);
        let with = ["use --", "add --"].into_iter().filter_map(|verb| {
            reason.match_indices(verb).map(|(at, _)| (at, verb)).max_by_key(begins)
        });
        let with = with.max_by_key(begins);
        if let Some((at, _)) = without {
            let (name, behind) = word(&reason[at + "leave ".len()..])?;
            return behind.starts_with(" out").then_some(Self::Without(name));
        }
        let (at, verb) = with?;
        let (name, behind) = word(&reason[at + verb.len() - "--".len()..])?;
        let value = behind.strip_prefix(' ').and_then(word).map(|(value, _)| value);
        let value = value.filter(|value| is_value(value));
        Some(Self::With(name, value))
    }

    /// The words with the change made.
    fn made(&self, command: &Command, words: &[String]) -> Option<Vec<String>> {
        let (Self::Without(name) | Self::With(name, _)) = self;
        let arg = option(command, name)?;
        let mut made: Vec<String> = Vec::new();
        let mut place = None;
        let mut at = 0;
        while at < words.len() {
            let taken = taken(command, arg, &words[at..]);
            if taken == 0 {
                made.push(new_spelling(command, &words[at]));
            } else if place.is_none() {
                place = Some(made.len());
            }
            at += taken.max(1);
        }
        match self {
            Self::Without(_) => place.is_some().then_some(made),
            Self::With(name, value) => {
                if value.is_none() && takes_one(arg) {
                    return None;
                }
                let at = place.unwrap_or(made.len());
                let words = std::iter::once(*name).chain(*value).map(str::to_owned);
                made.splice(at..at, words);
                Some(made)
            }
        }
    }
}

/// A word and what stands behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let ends = |c: char| c.is_whitespace() || ",;)".contains(c);
    let at = text.find(ends).unwrap_or(text.len());
    let word = text[..at].trim_end_matches([':', '`']);
    (!word.is_empty()).then_some((word, &text[at..]))
}

/// Is it a value, and not what stands for one (`FILE`, `A,B`) or the sentence that goes on?
fn is_value(word: &str) -> bool {
    !word.chars().any(|c| c.is_ascii_uppercase())
        && !matches!(word, "or" | "and" | "for" | "instead")
}

/// The command that a command line asks for.
fn command_of<'a>(program: &'a Command, words: &[String]) -> &'a Command {
    let mut command = program;
    for word in words {
        if let Some(below) = command.find_subcommand(word) {
            command = below;
        }
    }
    command
}

/// The option of this name, whichever way it is spelled.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let name = name.split('=').next()?;
    let long = name.strip_prefix("--")?;
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|old| old.contains(&long))
    })
}

fn takes_one(arg: &Arg) -> bool {
    arg.get_action().takes_values() && arg.get_num_args().is_none_or(|of| of.min_values() > 0)
}

/// How many of the first words are this option with its values.
fn taken(command: &Command, arg: &Arg, words: &[String]) -> usize {
    let is_it = option(command, &words[0]).is_some_and(|found| found.get_id() == arg.get_id());
    if !is_it {
        return 0;
    }
    if words[0].contains('=') || !arg.get_action().takes_values() || arg.is_require_equals_set() {
        return 1;
    }
    let most = arg.get_num_args().map_or(1, |of| of.max_values());
    1 + words[1..].iter().take(most).take_while(|word| !word.starts_with("--")).count()
}

/// The word, or the name of today where it is an option in an old spelling.
fn new_spelling(command: &Command, word: &str) -> String {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let is_new = |arg: &&Arg| arg.get_long() != name.strip_prefix("--");
    match option(command, name).filter(is_new).and_then(Arg::get_long) {
        // A name alone would say another thing: `--fifo` is a policy.
        Some(_) if name == "--fifo" => word.to_owned(),
        Some(long) => {
            value.map_or_else(|| format!("--{long}"), |value| format!("--{long}={value}"))
        }
        None => word.to_owned(),
    }
}

/// As it is typed, where the program takes it, and no letter of it is one for a terminal.
/// The command line of these words, where the program understands it.
pub(crate) fn told(words: &[String]) -> Option<String> {
    understood(words.to_vec())
}

fn understood(words: Vec<String>) -> Option<String> {
    let line: Vec<String> = ["whylate".to_owned()].into_iter().chain(words).collect();
    let is_clean = line.iter().all(|word| !word.chars().any(char::is_control));
    let is_taken = is_clean && Cli::try_parse_from(&line).is_ok();
    is_taken.then(|| line.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,:/@%[]".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        shlex::split(line).unwrap()
    }

    fn of(line: &str, reason: &str) -> Option<String> {
        mended(&words(line), reason)
    }

    #[test]
    fn what_a_reason_says_to_leave_out_or_use_is_changed_in_the_line_that_was_typed() {
        for (line, reason, next) in [
            (
                "rtt --rate 1kpps --arrivals closed",
                "it has none: leave --rate out",
                "rtt --arrivals closed",
            ),
            ("rtt --vlan=7", "leave --vlan out", "rtt"),
            (
                "rtt --port xdp --qdisc --size 64",
                "xdp has none: leave --qdisc out",
                "rtt --transport xdp --size 64",
            ),
            (
                "forward a b --wait poll",
                "use --wait spin or --wait busy-poll",
                "forward a b --wait spin",
            ),
            (
                "delay a b",
                "packet only: use --transport xdp, or others",
                "delay a b --transport xdp",
            ),
            (
                "rta --task '3ms 8ms' --quick",
                "without effect: add --run",
                "rta --task '3ms 8ms' --quick --run",
            ),
            ("device --captures a b --box ovs", "leave --box out", "device --captures a b"),
        ] {
            assert_eq!(of(line, reason), Some(format!("whylate {next}")), "{line}: {reason}");
        }
    }

    #[test]
    fn nothing_is_offered_that_is_to_be_chosen_or_that_the_program_would_not_take() {
        for (line, reason) in [
            ("rtt --vlan 7", "nothing to do"),
            ("rtt --size 10", "leave --vlan out"),
            ("reflect --transport xdp", "use --listen ADDRESS:PORT"),
            ("delay a b", "use --transport pigeon"),
            ("forward a b --wait poll", "use --never spin"),
            ("rtt --bed \u{1b}[31m --vlan 7", "leave --vlan out"),
        ] {
            assert_eq!(of(line, reason), None, "{line}: {reason}");
        }
    }

    #[test]
    fn the_word_that_was_meant_takes_the_place_of_the_wrong_one() {
        let of = |line: &str, wrong, meant| replaced(&words(line), wrong, meant);
        assert_eq!(of("gap --cpus 1", "gap", "gaps").unwrap(), "whylate gaps --cpus 1");
        let next = of("gaps --durat=1s", "--durat", "--duration").unwrap();
        assert_eq!(next, "whylate gaps --duration=1s");
        assert_eq!(of("gaps --durat 1", "--durat", "--duration"), None);
    }
}
