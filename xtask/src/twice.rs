//! Runs tests; what failed once runs again by itself.
//!
//! Tests of the whole tool run on whatever machine there is. One of some thousand that fails by the mood of
//! the machine shall not hide what the others say; nor shall it pass in silence: who runs it is told its name
//! and its first failure. The second try comes when all others have run, since a mood lasts for a while. More
//! than [`MOST`] failures are no moods and get no second try, and neither does a test that took its whole
//! program along.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::processes::{self, children};
use crate::{left_out, suite};

/// So many failures at most have a second try, of one lane and of all lanes together.
pub(crate) const MOST: usize = 3;
/// So many failures are told of at the end, with so many lines of so many letters each.
const LISTED: usize = 8;
const LINES: usize = 8;
const LETTERS: usize = 300;
/// By what random cases of tests are drawn.
const SEED: &str = "PROPTEST_RNG_SEED";
/// Of a program that has ended nothing more comes after so long.
const QUIET: Duration = Duration::from_secs(5);
/// Tests that print nothing for so long hang. What takes more than a minute is named by the program of tests as
/// it does.
const HANGS: Duration = Duration::from_secs(30 * 60);

/// A test that failed, with what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) name: String,
    pub(crate) said: Vec<String>,
}

/// What programs of tests, one after the other, printed.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    begun: usize,
    ended: usize,
    pub(crate) passed: usize,
    failed: usize,
    pub(crate) failures: Vec<Failure>,
    reading: Reading,
}

/// Where in the output of a program of tests a line stands.
#[derive(Debug, Default)]
enum Reading {
    #[default]
    Tests,
    /// Within what this failure said.
    Said(Failure, Vec<Failure>),
    /// Within the list of names.
    Names(Vec<Failure>),
}

/// Runs a command that runs tests; those that failed and may be tried again. What they print goes to `out`; as
/// the first program of tests begins, `begun` is called.
pub(crate) fn once(
    command: Command,
    begun: impl FnOnce(),
    out: &mut dyn Write,
) -> Result<Vec<Failure>> {
    checked(read(command, |_| begun(), out)?)
}

/// The same beside others that have more weight: it may wait for a CPU as long as they want it. From where this
/// says so, it has their weight, and tests that hang are ended.
pub(crate) fn once_beside(
    command: Command,
    weighs: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Vec<Failure>> {
    let may_hang = || weighs.load(Ordering::Relaxed);
    checked(read_within((HANGS, &may_hang), command, |_| {}, out)?)
}

fn checked((passed, first): (bool, Transcript)) -> Result<Vec<Failure>> {
    if passed {
        return Ok(Vec::new());
    }
    if let Some(reason) = first.no_second_try() {
        bail!("no second try: {reason}{}", listing(&first.failures));
    }
    Ok(first.failures)
}

/// Runs tests that failed once more, by themselves; they, if all of them pass now.
pub(crate) fn again<S: AsRef<OsStr>>(
    root: &Path,
    options: &[S],
    failed: Vec<Failure>,
) -> Result<Vec<Failure>> {
    if failed.is_empty() {
        return Ok(failed);
    }
    let names: Vec<&str> = failed.iter().map(|failure| failure.name.as_str()).collect();
    println!("\nonce more, by themselves: {}", names.join(", "));
    let alone = [&["--exact", "--test-threads", "1"], names.as_slice()].concat();
    let mut command = of_suite(root, options);
    command.arg("--").args(alone);
    let (passed, again) = read(command, |_| {}, &mut io::stdout())?;
    if !passed || again.failed > 0 {
        bail!("failed at both tries{}", listing(&again.failures));
    }
    if again.passed < names.len() {
        bail!("{} of {} tests ran once more", again.passed, names.len());
    }
    Ok(failed)
}

/// What failed with the first that it said, for the end of all output: often only that is kept.
pub(crate) fn listing(failures: &[Failure]) -> String {
    let mut text = String::new();
    for failure in failures.iter().take(LISTED) {
        let _ = write!(text, "\n  {}", failure.name);
        let said = failure.said.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty());
        for line in said.take_while(|line| *line != "stack backtrace:").take(LINES) {
            let shown: String = line.chars().take(LETTERS).collect();
            let _ = write!(text, "\n    {shown}");
        }
    }
    if let more @ 1.. = failures.len().saturating_sub(LISTED) {
        let _ = write!(text, "\n  and {more} more");
    }
    text
}

/// The command by which a suite runs what these select.
pub(crate) fn of_suite<S: AsRef<OsStr>>(root: &Path, options: &[S]) -> Command {
    let mut command = cargo_test(root, options);
    command.env(suite::HOLDER, suite::this_process()).env("TMPDIR", suite::folder());
    command.env(suite::LEFT_OUT, left_out::file(root));
    command
}

/// Runs a command that runs tests and passes on what they print; whether all passed. As the first program of
/// tests begins, `begun` is told the process of the command. Tests that hang are ended.
pub(crate) fn read(
    command: Command,
    begun: impl FnOnce(u32),
    out: &mut dyn Write,
) -> Result<(bool, Transcript)> {
    read_within((HANGS, &|| true), command, begun, out)
}

/// The same, with what is silent for so long ended, as long as that counts.
fn read_within(
    (hangs, counts): (Duration, &dyn Fn() -> bool),
    mut command: Command,
    begun: impl FnOnce(u32),
    out: &mut dyn Write,
) -> Result<(bool, Transcript)> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let mut begun = Some(begun);
    let printed = child.stdout.take().context("no pipe to the tests")?;
    let lines = lines_of(printed);
    let mut transcript = Transcript::default();
    let mut silent = Duration::ZERO;
    let mut last = String::new();
    loop {
        match lines.recv_timeout(QUIET.min(hangs)) {
            Ok(line) => {
                silent = Duration::ZERO;
                writeln!(out, "{line}")?;
                transcript.line(&line);
                if transcript.begun > 0
                    && let Some(begun) = begun.take()
                {
                    begun(child.id());
                }
                last = line;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // Somebody that a test left behind may hold the pipe for ever.
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {
                silent = if counts() { silent + QUIET.min(hangs) } else { Duration::ZERO };
                if transcript.begun > transcript.ended && silent >= hangs {
                    end_with_children(&mut child)?;
                    bail!("tests that hang were ended: nothing for {hangs:?} behind `{last}`");
                }
            }
        }
    }
    Ok((child.wait()?.success(), transcript))
}

/// Ends cargo and the program of tests that it runs.
fn end_with_children(cargo: &mut Child) -> Result<()> {
    let own = cargo.id();
    let all = processes::all();
    let all: Vec<String> = children(&all, own).chain([own]).map(|pid| pid.to_string()).collect();
    let mut kill = Command::new("kill");
    kill.args(["-s", "KILL"]).args(&all).output().with_context(|| format!("{kill:?}"))?;
    cargo.wait()?;
    Ok(())
}

/// `cargo test` of what these select, of all packages or of those that they name.
pub(crate) fn cargo_test<S: AsRef<OsStr>>(root: &Path, options: &[S]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["test", "--locked"]);
    if !options.iter().any(|option| option.as_ref() == "-p") {
        // What fuzzes has no tests, and needs a compiler that builds what fuzzing takes.
        command.args(["--workspace", "--exclude", "whylate-fuzz"]);
    }
    command.args(options);
    // Random cases are the same each time, however tests are run.
    if std::env::var_os(SEED).is_none() {
        command.env(SEED, "1");
    }
    command
}

/// The lines that come out of a pipe, read by a thread of their own.
fn lines_of(pipe: ChildStdout) -> Receiver<String> {
    let (tell, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            if tell.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

impl Transcript {
    /// Takes the next line.
    fn line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.ended += 1;
            self.passed += counted(counts, " passed");
            self.failed += counted(counts, " failed");
            if let Reading::Names(failures) = std::mem::take(&mut self.reading) {
                self.failures.extend(failures);
            }
            return;
        }
        self.reading = match std::mem::take(&mut self.reading) {
            Reading::Tests => {
                self.begun += usize::from(is_beginning(line));
                if line == "failures:" { Reading::Names(Vec::new()) } else { Reading::Tests }
            }
            // The list of names comes twice: what they said first, the bare names behind it.
            Reading::Names(failures) => match heading(line) {
                Some(name) => Reading::Said(Failure { name, said: Vec::new() }, failures),
                None => Reading::Names(listed(failures, line)),
            },
            Reading::Said(mut failure, mut failures) => {
                if line == "failures:" {
                    failures.push(failure);
                    Reading::Names(failures)
                } else if let Some(name) = heading(line) {
                    failures.push(failure);
                    Reading::Said(Failure { name, said: Vec::new() }, failures)
                } else {
                    failure.said.push(line.to_owned());
                    Reading::Said(failure, failures)
                }
            }
        };
    }

    /// Why what failed is not tried again.
    fn no_second_try(&self) -> Option<String> {
        if self.begun != self.ended {
            return Some(format!("{} programs began and {} ended", self.begun, self.ended));
        }
        if self.failures.is_empty() {
            return Some("no test is named".to_owned());
        }
        if self.failures.len() != self.failed {
            return Some(format!("{} failed, {} are named", self.failed, self.failures.len()));
        }
        (self.failed > MOST).then(|| format!("{} failed, more than {MOST}", self.failed))
    }
}

/// Is it `running N tests`?
fn is_beginning(line: &str) -> bool {
    let number = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
    number.is_some_and(|(number, _)| number.parse::<usize>().is_ok())
}

/// The number of this kind, of `FAILED. 3 passed; 1 failed; ..`.
fn counted(counts: &str, kind: &str) -> usize {
    let number = counts.split([';', '.']).find_map(|part| part.strip_suffix(kind));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// The name in `---- NAME stdout ----`.
fn heading(line: &str) -> Option<String> {
    Some(line.strip_prefix("---- ")?.strip_suffix(" stdout ----")?.to_owned())
}

/// With the name of a list's line, unless what it said is there already.
fn listed(mut failures: Vec<Failure>, line: &str) -> Vec<Failure> {
    let name = line.strip_prefix("    ").map_or("", str::trim_end);
    if !name.is_empty() && !failures.iter().any(|failure| failure.name == name) {
        failures.push(Failure { name: name.to_owned(), said: Vec::new() });
    }
    failures
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use crate::processes;

    use super::{
        Failure, LETTERS, LINES, LISTED, MOST, SEED, Transcript, cargo_test, listing, read_within,
    };

    /// Runs this in the shell, as cargo runs tests.
    fn shell(hangs: Duration, counts: bool, words: &str) -> (String, String) {
        let mut command = Command::new("sh");
        command.args(["-c", words]);
        let mut out = Vec::new();
        let read = read_within((hangs, &|| counts), command, |_| {}, &mut out);
        let ended = read.map_or_else(|error| error.to_string(), |(passed, _)| passed.to_string());
        (ended, String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn tests_that_hang_are_ended_with_the_last_line_that_they_printed() {
        // One write each, so that no pause lies between two lines.
        let hangs = "sh -c 'printf \"running 1 test\\n%s\\n\" $$; exec sleep 600'; :";
        let (ended, out) = shell(Duration::from_millis(300), true, hangs);
        let pid: u32 = out.lines().last().unwrap().parse().unwrap();
        let told = "tests that hang were ended: nothing for 300ms behind";
        assert_eq!(ended, format!("{told} `{pid}`"));
        let is_over = || {
            std::thread::sleep(Duration::from_millis(20));
            processes::all().get(&pid).is_none_or(|of| of.stopped)
        };
        assert!((0..3_000).any(|_| is_over()), "{pid} runs");
        // What compiles prints nothing, and no program of tests has begun or goes on.
        let slow = "sleep 1; printf 'running 1 test\ntest result: ok. 1 passed\n'; sleep 1";
        assert_eq!(shell(Duration::from_millis(300), true, slow).0, "true");
        // What has less weight than others waits.
        let waits = "printf 'running 1 test\n'; sleep 1; printf 'test result: ok. 1 passed\n'";
        assert_eq!(shell(Duration::from_millis(300), false, waits).0, "true");
    }

    #[test]
    fn random_cases_are_the_same_each_time_however_tests_are_run() {
        let command = cargo_test(Path::new("."), &["--lib"]);
        let given = command.get_envs().find(|(name, _)| *name == OsStr::new(SEED));
        assert!(given.is_some() || std::env::var_os(SEED).is_some());
    }

    fn read(text: &str) -> Transcript {
        let mut transcript = Transcript::default();
        text.lines().for_each(|line| transcript.line(line));
        transcript
    }

    const TWO_PROGRAMS: &str = "
running 2 tests
test a::one ... ok
test a::two ... a child says this
FAILED

failures:

---- a::two stdout ----

thread 'a::two' panicked at tests/a.rs:7:5:
4 of 5


failures:
    a::two

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 1 test
test b ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn a_failure_is_found_with_what_it_said_and_may_be_tried_again() {
        let transcript = read(TWO_PROGRAMS);
        let said = ["", "thread 'a::two' panicked at tests/a.rs:7:5:", "4 of 5", "", ""];
        let failure = Failure { name: "a::two".to_owned(), said: said.map(str::to_owned).to_vec() };
        assert_eq!(transcript.failures, [failure]);
        assert_eq!((transcript.begun, transcript.ended, transcript.failed), (2, 2, 1));
        assert_eq!(transcript.passed, 2);
        assert_eq!(transcript.no_second_try(), None);
    }

    #[test]
    fn what_failed_is_listed_with_the_first_that_it_said_and_no_more() {
        let transcript = read(TWO_PROGRAMS);
        let told = "\n  a::two\n    thread 'a::two' panicked at tests/a.rs:7:5:\n    4 of 5";
        assert_eq!(listing(&transcript.failures), told);
        let traced = TWO_PROGRAMS.replace("4 of 5\n", "4 of 5\nstack backtrace:\n   0: std\n");
        assert_eq!(listing(&read(&traced).failures), told);
        let long = Failure { name: "b".to_owned(), said: vec!["x".repeat(9 * LETTERS); 9 * LINES] };
        let many = listing(&vec![long; LISTED + 3]);
        assert_eq!(many.lines().count(), 1 + LISTED * (LINES + 1) + 1);
        assert!(many.lines().all(|line| line.len() <= LETTERS + 4));
        assert!(many.ends_with("\n  and 3 more"));
    }

    #[test]
    fn a_failure_that_said_nothing_is_found_too() {
        let silent = "running 2 tests\n\nfailures:\n\nfailures:\n    a\n    b\n\n\
                      test result: FAILED. 0 passed; 2 failed; 0 ignored\n";
        let names: Vec<String> = read(silent).failures.into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn a_program_that_does_not_end_and_a_count_without_its_names_have_no_second_try() {
        let crashed = TWO_PROGRAMS.to_owned() + "\nrunning 7 tests\n";
        assert_eq!(
            read(&crashed).no_second_try().unwrap_or_default(),
            "3 programs began and 2 ended"
        );
        let unnamed = TWO_PROGRAMS.replace("1 passed; 1 failed", "0 passed; 2 failed");
        assert_eq!(read(&unnamed).no_second_try().unwrap_or_default(), "2 failed, 1 are named");
        assert_eq!(read("").no_second_try().unwrap_or_default(), "no test is named");
    }

    #[test]
    fn many_failures_have_no_second_try() {
        let many = TWO_PROGRAMS.repeat(MOST + 1);
        assert_eq!(read(&many).no_second_try().unwrap_or_default(), "4 failed, more than 3");
        assert_eq!(read(&TWO_PROGRAMS.repeat(MOST)).no_second_try(), None);
    }
}
