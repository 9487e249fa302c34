//! Live tests of the gate again and again under planted noise: proof that noise cannot fail them.
//!
//! Those that were added or changed since a commit run [`RUNS`] times under noise, then the whole of the live
//! tests [`WHOLE`] times under noise and [`IDLE`] times without. The record at the end is what the commit
//! quotes. With names, tests whose names hold one of them run, and nothing else. `BASE=REV` is the commit
//! (otherwise where this branch left `origin/main`), `RUNS=N` makes it shorter, for trying.
//!
//! Finds no test that a changed helper serves: the whole is run for them. A soak takes hours: one that was ended
//! goes on where it was, as long as files, tests and machine are the same. With `--killed` suites are killed.

mod changed;
mod killed;
mod noise;
mod rounds;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

pub(crate) use self::killed::alone;
pub(crate) use self::noise::make as make_noise;

use self::noise::Noise;
use self::rounds::{Made, Rounds};
use crate::all_tests;
use crate::twice;

const RUNS: usize = 20;
const WHOLE: usize = 5;
const IDLE: usize = 2;

/// Some runs of the same tests.
#[derive(Debug, Default)]
struct Course {
    what: String,
    runs: usize,
    passed: usize,
    bad: usize,
    took: Duration,
    /// How often each failed, and what it said at first.
    failures: BTreeMap<String, (usize, Vec<String>)>,
    /// What was planted meanwhile, and how often it stopped a child of the tests.
    noise: String,
    stops: u64,
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    match words {
        ["--killed", names @ ..] => killed::run(root, names),
        names => under_noise(root, names),
    }
}

fn under_noise(root: &Path, names: &[&str]) -> Result<()> {
    let held = all_tests::begin(root, all_tests::LIVE)?;
    let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let most: usize = of("RUNS").map_or(Ok(RUNS), |n| n.parse().context("RUNS is no number"))?;
    let all = all_tests(root)?;
    let (tests, why) = if names.is_empty() {
        let base = of("BASE").map_or_else(|| changed::usual_base(root), Ok)?;
        (changed::since(root, &base, &all)?, format!("changed since {base}"))
    } else {
        (chosen(&all, names)?, format!("named {}", names.join(", ")))
    };
    let words: Vec<&str> =
        std::iter::once("--exact").chain(tests.iter().map(String::as_str)).collect();
    let mut rounds = Rounds::open(root)?;
    match rounds.count() {
        _ if !rounds.is_resumable() => println!("files differ from the commit: begins afresh"),
        0 => {}
        known => println!("goes on behind {known} runs that were made of these files"),
    }
    let mut courses = Vec::new();
    let mut take = |what: String, times: usize, words: &[&str], noisy: bool| -> Result<()> {
        courses.push(course(root, &mut rounds, what, times.min(most), words, noisy)?);
        // Each stands by itself, should the next be ended.
        println!("\n{}", record(&courses, &machine(), &tests));
        Ok(())
    };
    if !tests.is_empty() {
        take(format!("{} tests {why}, under noise", tests.len()), RUNS.max(most), &words, true)?;
    }
    if names.is_empty() {
        take("all live tests, under noise".to_owned(), WHOLE, &[], true)?;
        take("all live tests, idle".to_owned(), IDLE, &[], false)?;
    } else {
        take(format!("{} tests {why}, idle", tests.len()), IDLE, &words, false)?;
    }
    let _ = std::fs::remove_dir(crate::suite::folder());
    drop(held);
    if courses.iter().any(|course| course.bad > 0) {
        bail!("tests failed");
    }
    Ok(())
}

/// Names of the live tests that run.
fn all_tests(root: &Path) -> Result<Vec<String>> {
    let mut list = twice::of_suite(root, all_tests::LIVE);
    let output = list.args(["--", "--list"]).output().with_context(|| format!("{list:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Those whose names hold one of these, or all.
fn chosen(all: &[String], names: &[&str]) -> Result<Vec<String>> {
    let is_chosen =
        |test: &&String| names.is_empty() || names.iter().any(|name| test.contains(name));
    let chosen: Vec<String> = all.iter().filter(is_chosen).cloned().collect();
    if chosen.is_empty() {
        bail!("no live test is named so");
    }
    Ok(chosen)
}

/// Runs them so often, without the runs that were made before.
fn course(
    root: &Path,
    rounds: &mut Rounds,
    what: String,
    times: usize,
    words: &[&str],
    planted: bool,
) -> Result<Course> {
    let mut course = Course { what, runs: times, ..Course::default() };
    let name = format!("{} {}", course.what, words.join(" "));
    for run in 1..=times {
        println!("\nsoak: {}, run {run} of {times}", course.what);
        let made = if let Some(made) = rounds.find(&name, run) {
            println!("soak: made before");
            made.clone()
        } else {
            let made = once(root, words, planted)?;
            rounds.set_down(&name, run, made.clone())?;
            made
        };
        course.add(made);
    }
    Ok(course)
}

fn once(root: &Path, words: &[&str], planted: bool) -> Result<Made> {
    let began = now();
    let noise = if planted { Some(Noise::begin()?) } else { None };
    let mut command = twice::of_suite(root, all_tests::LIVE);
    command.args(["--", "--test-threads", "1"]).args(words);
    let runs = |pid| {
        if let Some(noise) = &noise {
            noise.stops_children_of(pid);
        }
    };
    let (is_good, transcript) = twice::read(command, runs, &mut std::io::stdout())?;
    let planted = noise.map(Noise::end).transpose()?;
    // Tests that were chosen may start no child.
    if words.is_empty() && planted.as_ref().is_some_and(|planted| planted.stops == 0) {
        bail!("no child of the tests was stopped, so that this noise proves nothing");
    }
    Ok(Made {
        is_good,
        passed: transcript.passed,
        failures: transcript.failures,
        took: began.elapsed(),
        noise: planted.map(|planted| (planted.to_string(), planted.stops)),
    })
}

/// What a commit quotes.
fn record(courses: &[Course], machine: &str, chosen: &[String]) -> String {
    let mut text = format!("soak on {machine}\n");
    for course in courses {
        let minutes = course.took.as_secs_f64() / 60.0;
        let _ = writeln!(
            text,
            "  {}: {} runs, {} failed; {} tests passed in {minutes:.1} min",
            course.what, course.runs, course.bad, course.passed
        );
        if !course.noise.is_empty() {
            let _ = writeln!(text, "    noise: {}, {} times", course.noise, course.stops);
        }
        for (name, (times, said)) in &course.failures {
            let _ = writeln!(text, "    {name} failed in {times} runs; at first:");
            for line in said.iter().filter(|line| !line.is_empty()) {
                let _ = writeln!(text, "        {line}");
            }
        }
    }
    if !chosen.is_empty() {
        let _ = writeln!(text, "  tests: {}", chosen.join(", "));
    }
    text
}

/// Kernel and CPUs.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    let model = model.map_or("CPUs", |(_, model)| model.trim());
    format!("{count} x {model}, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

#[expect(
    clippy::disallowed_methods,
    reason = "bounds noise and counts minutes; no latency is taken"
)]
fn now() -> Instant {
    Instant::now()
}

/// What a command of git prints.
fn git(root: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(root).args(words).output().context("git")?;
    if !output.status.success() {
        bail!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twice::Failure;

    #[test]
    fn a_record_counts_runs_and_tells_of_each_test_what_it_said_at_first() {
        let mut course = Course { what: "2 tests".to_owned(), runs: 3, ..Course::default() };
        let failure = |said: &str| Failure { name: "a::b".to_owned(), said: vec![said.to_owned()] };
        let made = |failures: Vec<Failure>, passed, is_good| Made {
            is_good,
            passed,
            failures,
            took: Duration::from_secs(30),
            noise: Some(("a hog, children stopped".to_owned(), 2)),
        };
        course.add(made(Vec::new(), 2, true));
        course.add(made(vec![failure("first")], 1, false));
        course.add(made(vec![failure("second")], 1, false));
        let text = record(&[course], "2 x CPU, Linux 1", &["a::b".to_owned(), "c".to_owned()]);
        let expected = "soak on 2 x CPU, Linux 1\n  \
            2 tests: 3 runs, 2 failed; 4 tests passed in 1.5 min\n    \
            noise: a hog, children stopped, 6 times\n    \
            a::b failed in 2 runs; at first:\n        first\n  tests: a::b, c\n";
        assert_eq!(text, expected);
        let mut crashed = Course::default();
        crashed.add(made(Vec::new(), 0, false));
        assert!(record(&[crashed], "", &[]).contains("(no test is named) failed in 1 runs"));
    }
}
