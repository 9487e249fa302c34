//! Runs all tests, in the order that takes least time; what passes only at the second try is named last.
//!
//! Live tests wait more than they compute. So they are compiled first, and run first; meanwhile the others are
//! compiled beside them with the least weight, and what else was asked for, such as the lints, is done there.
//! Tests of the crates measure, too, and run by themselves behind the live ones; what failed runs once more at
//! the end. A lane that fails ends no other: all that is wrong is told at once, in the last lines.
//!
//! One suite runs at a time on a machine, in a folder for temporary files of its own. It begins with what an
//! earlier one left that was killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};

use crate::twice::{Failure, again, cargo_test, once};
use crate::{mend, room, suite};

/// Live tests, which run one by one.
pub(crate) const LIVE: &[&str] = &["--test", "live"];
/// All others. Documentation holds no code that runs: `cargo xtask check` sees to it.
const OTHERS: &[&str] = &["--lib", "--bins", "--tests", "--no-fail-fast"];
/// What is done beside tests has the least weight that an ordinary process can have.
const LEAST_WEIGHT: [&str; 3] = ["nice", "-n", "19"];

/// Runs all tests, and beside the live ones the command that these words are.
pub(crate) fn run(root: &Path, beside: &[&str]) -> Result<()> {
    let _held = begin(root, LIVE)?;
    let all = in_their_order(root, beside);
    // It stays where a test left something in it.
    let _ = std::fs::remove_dir(suite::folder());
    all
}

/// Waits until no other suite runs, compiles what `options` select, and mends what an earlier one left.
pub(crate) fn begin(root: &Path, options: &[&str]) -> Result<suite::Held> {
    if suite::is_held() {
        bail!("a suite is no part of another: {} is set", suite::HOLDER);
    }
    let held = suite::hold();
    // What killed tests left takes room, too; the program that takes it back must be there first.
    room::check_before_compiling(root)?;
    let mut build = compile(root, options);
    if !build.status().with_context(|| format!("{build:?}"))?.success() {
        bail!("the tests do not compile");
    }
    for line in mend::mend(root) {
        println!("{line}");
    }
    let folder = suite::folder();
    suite::make_folder(&folder).with_context(|| folder.display().to_string())?;
    room::check(&folder, room::TEMPORARY)?;
    Ok(held)
}

fn in_their_order(root: &Path, words: &[&str]) -> Result<()> {
    let mut commands = vec![compile(root, OTHERS)];
    if let [program, words @ ..] = words {
        let mut command = Command::new(program);
        command.current_dir(root).args(words);
        commands.push(command);
    }
    let log = root.join("target/beside.log");
    let mut beside = None;
    // Cargo compiles one thing at a time in a folder: not before the live tests have begun.
    let live = once(root, LIVE, &["--test-threads", "1"], || {
        beside = Some(Beside::begin(commands, log));
    });
    let beside = beside.map_or_else(|| Err(anyhow::anyhow!("not begun")), Beside::end);
    let others = once(root, OTHERS, &[], || {});
    let live = live.and_then(|failed| again(root, LIVE, failed));
    let others = others.and_then(|failed| again(root, OTHERS, failed));
    let flaky = told([("live tests", live), ("beside them", beside), ("other tests", others)])?;
    for failure in &flaky {
        println!("FLAKY {}: failed once and passed when it ran again; at first:", failure.name);
        for line in &failure.said {
            println!("    {line}");
        }
    }
    println!("all tests passed, {} of them at the second try", flaky.len());
    Ok(())
}

/// All tests that passed at the second try, or what is wrong with each lane.
fn told<const N: usize>(lanes: [(&str, Result<Vec<Failure>>); N]) -> Result<Vec<Failure>> {
    let mut flaky = Vec::new();
    let mut wrong = Vec::new();
    for (lane, result) in lanes {
        match result {
            Ok(failures) => flaky.extend(failures),
            Err(error) => wrong.push(format!("{lane}: {error:#}")),
        }
    }
    if wrong.is_empty() { Ok(flaky) } else { bail!("tests failed\n{}", wrong.join("\n")) }
}

fn compile(root: &Path, options: &[&str]) -> Command {
    let mut build = cargo_test(root, options);
    build.arg("--no-run");
    build
}

/// Commands that run beside tests, one after the other; what they print is kept until they have ended.
struct Beside {
    log: PathBuf,
    done: JoinHandle<Result<()>>,
}

impl Beside {
    fn begin(commands: Vec<Command>, log: PathBuf) -> Self {
        let lines = log.clone();
        Self { log, done: std::thread::spawn(move || one_by_one(&commands, &lines)) }
    }

    /// Waits until they have ended, and prints what they printed.
    fn end(self) -> Result<Vec<Failure>> {
        let done = self.done.join();
        println!("\nbeside the live tests:");
        println!("{}", String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()));
        done.map_err(|_| anyhow::anyhow!("the thread panicked"))?.map(|()| Vec::new())
    }
}

/// Runs them with the least weight, up to the first that fails.
fn one_by_one(commands: &[Command], log: &Path) -> Result<()> {
    let log = File::create(log).with_context(|| log.display().to_string())?;
    for command in commands {
        let mut light = light(command);
        light.stdout(log.try_clone()?).stderr(log.try_clone()?);
        let status = light.status().with_context(|| format!("{light:?}"))?;
        if !status.success() {
            bail!("{command:?} ended with {status}");
        }
    }
    Ok(())
}

/// The command with the least weight.
fn light(command: &Command) -> Command {
    let [nice, words @ ..] = LEAST_WEIGHT;
    let mut light = Command::new(nice);
    light.args(words).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        light.current_dir(folder);
    }
    light
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Beside, told};
    use crate::twice::Failure;

    fn shell(words: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", words]);
        shell
    }

    #[test]
    fn what_runs_beside_tests_has_the_least_weight_and_ends_at_the_first_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let commands =
            vec![shell("nice; echo wrong 1>&2"), shell("exit 3"), shell("echo not reached")];
        let failed = Beside::begin(commands, log.clone()).end().unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        assert_eq!(std::fs::read_to_string(log).unwrap(), "19\nwrong\n");
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let flaky = || vec![Failure { name: "a".to_owned(), said: Vec::new() }];
        let both = told([("one", Ok(flaky())), ("two", Ok(flaky()))]).unwrap();
        assert_eq!(both.len(), 2);
        let wrong = told([
            ("one", Err(anyhow::anyhow!("no"))),
            ("two", Ok(flaky())),
            ("three", Err(anyhow::anyhow!("neither"))),
        ]);
        assert_eq!(wrong.unwrap_err().to_string(), "tests failed\none: no\nthree: neither");
    }
}
