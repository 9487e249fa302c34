//! Command lines in the README, in the manual, in the help and behind `try:`: each is one that the program takes, and
//! has no old spelling of an option.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};

use super::{Cli, help};

/// What the last lines of a first screen begin with.
const MORE: &str = "More:  ";

/// Refusals that name no command to go on with, and why.
const NOTHING_TO_TRY: [(&str, &str); 1] = [(
    "error: cannot read the capture nosuchfile.pcap: ",
    "where the capture is, only whoever made it knows",
)];

/// The README and the pages of the manual.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = std::fs::read_dir(root.join("docs/src")).unwrap();
    let mut found: Vec<PathBuf> = pages.map(|page| page.unwrap().path()).collect();
    found.push(root.join("README.md"));
    found
}

/// Commands for a shell in a text: after `$ ` in a block, on as many lines as end with a backslash, and
/// between backquotes.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    let mut unfinished: Option<String> = None;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if !in_block {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            continue;
        }
        let begun = unfinished.take().or_else(|| line.starts_with("$ ").then(String::new));
        let Some(begun) = begun else { continue };
        let whole = begun + line.strip_prefix("$ ").unwrap_or(line);
        match whole.strip_suffix('\\') {
            Some(part) => unfinished = Some(part.to_owned()),
            None => found.push(whole),
        }
    }
    found.retain(|command| command.starts_with("whylate ") || command == "whylate");
    found
}

/// Why the program does not take a command line. What it prints by itself (`--help`) it takes, and where
/// a sentence names a command, the rest may be missing.
fn refused(command: &str) -> Option<String> {
    let Some(mut words) = shlex::split(command) else {
        return Some(format!("{command}\n    a quote is not closed"));
    };
    let to_another = words.iter().position(|word| matches!(word.as_str(), ">" | "|"));
    words.truncate(to_another.unwrap_or(words.len()));
    let is_name = words.len() == 2;
    if let Some(old) = old_spelling(&words) {
        return Some(format!("{command}\n    {old} is an old spelling"));
    }
    let error = Cli::try_parse_from(words).err()?;
    let taken = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => is_name,
        _ => false,
    };
    (!taken).then(|| format!("{command}\n    {error}"))
}

/// The first option that has a newer spelling.
fn old_spelling(words: &[String]) -> Option<String> {
    let program = Cli::command();
    let named = |word: &String| program.find_subcommand(word);
    let command = words.iter().find_map(named).unwrap_or(&program);
    let is_old = |name: &str| {
        command
            .get_arguments()
            .any(|arg| arg.get_all_aliases().is_some_and(|old| old.contains(&name)))
    };
    let name = |word: &String| Some(word.strip_prefix("--")?.split('=').next()?.to_owned());
    words.iter().filter_map(name).find(|name| is_old(name)).map(|name| format!("--{name}"))
}

#[test]
fn every_example_of_the_help_is_a_command_line_without_an_old_spelling() {
    fn examples(command: &Command, found: &mut Vec<String>) {
        let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let said = long.split("\n\n").filter_map(|said| said.strip_prefix("Example: "));
        found.extend(said.map(|example| example.replace('\n', " ")));
        command.get_subcommands().for_each(|below| examples(below, found));
    }
    let mut found = Vec::new();
    examples(&help::program(false), &mut found);
    let refusals: Vec<String> = found.iter().filter_map(|example| refused(example)).collect();
    assert!(refusals.is_empty(), "{}", refusals.join("\n"));
    assert!(found.len() > 40, "{} examples are few", found.len());
}

#[test]
fn each_refusal_on_record_has_a_command_to_go_on_with_that_the_program_takes() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cli");
    let (mut wrong, mut refusals, mut untold) = (Vec::new(), 0, Vec::new());
    for page in std::fs::read_dir(pages).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("error: ")) {
            refusals += 1;
            let next = lines.get(at + 1).and_then(|next| next.strip_prefix("  try: "));
            match next {
                None => untold.push((*line).to_owned()),
                Some(next) if next.starts_with("whylate") => wrong.extend(refused(next)),
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    untold.retain(|line| !NOTHING_TO_TRY.iter().any(|(begin, _)| line.starts_with(begin)));
    assert!(untold.is_empty(), "nothing to try:\n{}", untold.join("\n"));
    assert!(refusals > 100, "{refusals} refusals are few");
}

#[test]
fn every_command_line_in_the_documents_is_one_that_the_program_takes() {
    let mut refusals = Vec::new();
    let mut count = 0;
    for path in documents() {
        // What its page shows needs the feature.
        if path.ends_with("dpdk.md") && !cfg!(feature = "dpdk") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for command in commands(&text) {
            count += 1;
            refusals.extend(refused(&command));
        }
    }
    assert!(refusals.is_empty(), "{}", refusals.join("\n"));
    assert!(count > 100, "{count} command lines are few");
}

/// Commands that a first screen ends with, behind `More:`: each up to the two spaces before what it does.
fn more(screen: &str) -> Vec<String> {
    let lines = screen.lines().skip_while(|line| !line.starts_with(MORE));
    let lines = lines.take_while(|line| line.starts_with(MORE) || line.starts_with("       "));
    let command = |line: &str| {
        let line = line.strip_prefix(MORE).unwrap_or(line).trim_start();
        let own = line.strip_prefix("sudo \"$(command -v whylate)\"");
        let line = own.map_or(line.to_owned(), |words| format!("whylate{words}"));
        let end = ["  ", ", or open "].iter().filter_map(|end| line.find(end)).min();
        line[..end.unwrap_or(line.len())].to_owned()
    };
    lines.map(command).filter(|line| line.starts_with("whylate ")).collect()
}

#[test]
fn each_command_that_a_first_screen_ends_with_is_one_that_the_program_takes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let first = "crates/whylate-report/src/first";
    let folders = [
        format!("{first}/snapshots"),
        format!("{first}/tests/snapshots"),
        "tests/snapshots".into(),
    ];
    let (mut refusals, mut count) = (Vec::new(), 0);
    for folder in folders {
        for screen in std::fs::read_dir(root.join(folder)).unwrap() {
            let text = std::fs::read_to_string(screen.unwrap().path()).unwrap();
            for command in more(&text) {
                count += 1;
                // What stands for the words of the run that is shown is a set of tasks, or two runs.
                let filled = match command.split_once(" ... ").or(command.split_once(" ...")) {
                    Some((begin, rest)) if begin.ends_with("rta") => {
                        format!("{begin} --task '3ms 8ms' {rest}")
                    }
                    Some((begin, rest)) if begin.ends_with("compare") => {
                        format!("{begin} A B {rest}")
                    }
                    Some((begin, rest)) => format!("{begin} {rest}"),
                    None => command,
                };
                refusals.extend(refused(&filled));
            }
        }
    }
    assert!(refusals.is_empty(), "{}", refusals.join("\n"));
    assert!(count > 80, "{count} commands are few");
}

#[test]
fn a_command_line_that_the_program_does_not_take_is_found() {
    let screen = "Trust: good.\nMore:  whylate report A --full, or open A/report.html\n       sudo \
                  \"$(command -v whylate)\" gaps --cpu 1  names more\n       --full has all\n\n       whylate none\n";
    let found = more(screen);
    assert_eq!(found, ["whylate report A --full", "whylate gaps --cpu 1"]);
    assert!(refused(&found[0]).is_none() && refused(&found[1]).is_some());

    let text = "Try `whylate gaps --cpu 1`.\n```console\n$ whylate rtt \\\n    --rat 1kpps\n```\n";
    let found = commands(text);
    assert_eq!(found, ["whylate gaps --cpu 1", "whylate rtt     --rat 1kpps"]);
    assert!(found.iter().all(|command| refused(command).is_some()));
    assert_eq!(refused("whylate gaps --help   # all of it"), None);
    assert_eq!(refused("whylate completions bash > file"), None);
    for old in
        ["rtt --port udp", "wake --timer HR", "paper pam2017 --experiments=4", "gaps --output run"]
    {
        let told = refused(&format!("whylate {old}")).unwrap_or_default();
        assert!(told.contains("old spelling"), "{old}: {told}");
    }
    assert!(refused("whylate rta --task '3ms 8ms").is_some(), "a quote that is not closed");
}
