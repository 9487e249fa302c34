//! Command lines in the README and in the manual: each is one that the program takes.

use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

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
    let error = Cli::try_parse_from(words).err()?;
    let taken = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => is_name,
        _ => false,
    };
    (!taken).then(|| format!("{command}\n    {error}"))
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

#[test]
fn a_command_line_that_the_program_does_not_take_is_found() {
    let text = "Try `whylate gaps --cpu 1`.\n```console\n$ whylate rtt \\\n    --rat 1kpps\n```\n";
    let found = commands(text);
    assert_eq!(found, ["whylate gaps --cpu 1", "whylate rtt     --rat 1kpps"]);
    assert!(found.iter().all(|command| refused(command).is_some()));
    assert_eq!(refused("whylate gaps --help   # all of it"), None);
    assert_eq!(refused("whylate completions bash > file"), None);
    assert!(refused("whylate rta --task '3ms 8ms").is_some(), "a quote that is not closed");
}
