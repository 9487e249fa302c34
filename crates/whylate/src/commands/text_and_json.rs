//! What chooses from the text of a report is refused where JSON is printed, which has everything.

use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;

use super::Refused;

/// The option that says how to print a result, and what it takes for JSON.
const FORMAT: (&str, &str) = ("format", "json");
/// Options that choose from a text, by their names in the definition of a command line.
const OF_TEXT: [&str; 2] = ["percentiles", "full"];

/// Refuses them of whatever command has them.
pub(super) fn refuse(words: &ArgMatches) -> Result<()> {
    let mut words = words;
    while let Some((_, of_command)) = words.subcommand() {
        words = of_command;
    }
    let given = |name: &str| {
        matches!(words.try_contains_id(name), Ok(true))
            && words.value_source(name) == Some(ValueSource::CommandLine)
    };
    let is_json = given(FORMAT.0)
        && words.get_raw(FORMAT.0).is_some_and(|mut values| values.any(|value| value == FORMAT.1));
    match OF_TEXT.iter().find(|name| is_json && given(name)) {
        None => Ok(()),
        Some(name) => Err(Refused::because(format!(
            "--{name} chooses from the text of a report, and JSON has everything: leave --{name} out"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    /// Commands that have both, and what each of them that chooses from a text is refused with.
    fn refused(program: &Command) -> Vec<(String, Vec<String>)> {
        let with_both = |command: &Command| {
            let has = |name: &str| command.get_arguments().any(|arg| arg.get_id() == name);
            let of_text = OF_TEXT.iter().filter(|name| has(FORMAT.0) && has(name));
            let refusal = |name: &&str| {
                let option =
                    if *name == "full" { format!("--{name}") } else { format!("--{name}=50") };
                let own = Some(command.get_name()).filter(|own| *own != program.get_name());
                let words = std::iter::once("whylate").chain(own).map(str::to_owned);
                let words = words.chain(["--format=json".to_owned(), option]);
                // What else a command needs is no matter here.
                let mut program = program.clone().ignore_errors(true);
                let matches = program.try_get_matches_from_mut(words).unwrap();
                refuse(&matches).err().map_or_else(String::new, |error| error.to_string())
            };
            (command.get_name().to_owned(), of_text.map(refusal).collect::<Vec<_>>())
        };
        let all = std::iter::once(program).chain(program.get_subcommands());
        all.map(with_both).filter(|(_, refusals)| !refusals.is_empty()).collect()
    }

    #[test]
    fn each_command_that_prints_json_refuses_what_chooses_from_its_text() {
        // One that nobody has thought of is among them.
        let flag = Arg::new("full").long("full").action(ArgAction::SetTrue);
        let format = Arg::new("format").long("format");
        let planted = "planted";
        let program = Cli::command().subcommand(Command::new(planted).args([flag, format]));
        let found = refused(&program);
        for name in ["whylate", "gaps", "report", "compare", "reflect", planted] {
            assert!(found.iter().any(|(command, _)| command == name), "{name}: {found:?}");
        }
        for (command, refusals) in &found {
            for refusal in refusals {
                assert!(refusal.ends_with(" out"), "{command}: {refusals:?}");
            }
        }
    }

    #[test]
    fn text_without_json_and_json_without_a_choice_are_taken() {
        for line in
            ["whylate gaps --full", "whylate gaps --format json", "whylate --percentiles 50"]
        {
            let matches = Cli::command().try_get_matches_from(line.split(' ')).unwrap();
            assert!(refuse(&matches).is_ok(), "{line}");
        }
    }
}
