//! Completion scripts and manual pages: from the same text as `--help`, of every command.

use std::collections::HashSet;
use std::process::Command;

use crate::program::{said, whylate};

/// Names of all commands, from the list that `--help` prints.
fn commands() -> Vec<String> {
    let output = whylate(["--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    // "  forward, delay  what they are for"
    let rows = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = rows.filter_map(|row| row.split("  ").next()).flat_map(|names| names.split(", "));
    names.map(str::to_owned).collect()
}

fn script(shell: &str) -> String {
    let output = whylate(["completions", shell]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_of_five_shells_has_a_script_that_completes_every_command() {
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = script(shell);
        // `rta` is no part of another word, as of `start`.
        let is_apart = |letter: char| !letter.is_alphanumeric() && letter != '-';
        let words: HashSet<&str> = script.split(is_apart).collect();
        for command in &commands {
            assert!(words.contains(command.as_str()), "{shell}: no {command}");
        }
        assert!(!script.contains("reflect-stdin"), "{shell} completes what is hidden");
    }
}

#[test]
fn bash_completes_commands_and_their_options() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("whylate");
    std::fs::write(&file, script("bash")).unwrap();
    let complete = |words: &str, at: usize, word: &str| {
        let program = format!(
            ". {}; COMP_WORDS=({words}); COMP_CWORD={at}; _whylate whylate '{word}' x; \
             echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &program]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("whylate ga", 1, "ga"), "gaps");
    assert_eq!(complete("whylate gaps --stop", 2, "--stop"), "--stop-above");
    assert_eq!(complete("whylate lab u", 2, "u"), "up");
}

#[test]
fn every_command_has_a_manual_page_with_its_options() {
    let home = tempfile::tempdir().unwrap();
    let pages = home.path().join("man1");
    let output = whylate(["man"]).arg(&pages).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("whylate.1").contains(".TH whylate 1"));
    for command in commands() {
        let page = page(&format!("whylate-{command}.1"));
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
            assert!(page.contains(&format!(".SH {section}")), "{command}: no {section}");
        }
    }
    assert!(page("whylate-gaps.1").contains(r"\-\-stop\-above"));
    assert!(!pages.join("whylate-reflect-stdin.1").exists());
    let above = home.path().join("nowhere/man1");
    let refused = whylate(["man"]).arg(&above).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("nowhere/man1"), "{}", said(&refused));
}
