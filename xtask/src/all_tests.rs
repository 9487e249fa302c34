//! Runs all tests, in the order that takes least time; what passes only at the second try is named last.
//!
//! Live tests wait more than they compute. So they are compiled first, and run first; meanwhile the others are
//! compiled beside them with the least weight, those that only compute are run, and what else was asked for,
//! such as the lints, is done there; once the live ones have ended it has the weight of others. Tests of the
//! crates measure, too, and run by themselves behind the live ones; what failed runs once more at the end. A
//! lane that fails ends no other: all that is wrong is told at once, in the last lines, behind what took longest.
//!
//! One suite runs at a time on a machine, in a folder for temporary files of its own. It begins with what an
//! earlier one left that was killed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::clocked::{Clocked, Stages};
use crate::processes::{self, below};
use crate::twice::{Failure, MOST, again, cargo_test, listing, of_suite, once, once_beside};
use crate::{left_out, mend, room, suite};

/// Live tests, which run one by one.
pub(crate) const LIVE: &[&str] = &["--test", "live"];
/// Programs of tests that compute and measure nothing.
const PURE: &[&str] = &["--test", "pure", "--test", "proofs", "--no-fail-fast"];
/// All but the live ones. Documentation holds no code that runs: `cargo xtask check` sees to it.
const ALL: &[&str] = &["--lib", "--bins", "--tests"];
/// Those of the packages that have ports over DPDK, with them.
const OVER_DPDK: &[&str] = &[
    "-p",
    "whylate-dpdk",
    "-p",
    "whylate",
    "--features",
    "whylate/dpdk",
    "--lib",
    "--bins",
    "--tests",
    "--no-fail-fast",
];
/// How long each live test took, the slowest first.
const TIMES: &str = "target/live-tests.txt";
/// What is done beside tests has the least weight that an ordinary process can have.
const LEAST_WEIGHT: [&str; 2] = ["-n", "19"];
/// What is to have the weight of others again is looked for so often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Runs all tests, and beside the live ones the command that these words are.
pub(crate) fn run(root: &Path, beside: &[&str]) -> Result<()> {
    let mut stages = Stages::begin();
    let _held = begin(root, LIVE)?;
    stages.end("compiling live tests");
    let all = in_their_order(root, beside, stages);
    // It stays where a test left something in it.
    let _ = std::fs::remove_dir(suite::folder());
    all
}

/// Runs the tests over DPDK one by one, which not every machine can compile.
pub(crate) fn over_dpdk(root: &Path) -> Result<()> {
    let _held = begin(root, OVER_DPDK)?;
    let mut tests = of_suite(root, OVER_DPDK);
    tests.args(["--", "--test-threads", "1"]);
    let flaky =
        once(tests, || {}, &mut io::stdout()).and_then(|failed| again(root, OVER_DPDK, failed));
    let _ = std::fs::remove_dir(suite::folder());
    tell_left_out(root);
    passed(&flaky?);
    Ok(())
}

/// Tells how many tests of this suite were left out or claimed nothing, where there are any.
fn tell_left_out(root: &Path) {
    let told = left_out::told(root);
    if !told.is_empty() {
        println!("{told}");
    }
}

/// Waits until no other suite runs, compiles what `options` select, and mends what an earlier one left.
pub(crate) fn begin(root: &Path, options: &[&str]) -> Result<suite::Held> {
    if suite::is_held() {
        bail!("a suite is no part of another: {} is set", suite::HOLDER);
    }
    let held = suite::hold();
    // What killed tests left goes on beside the compiler and takes its room; the rest is mended by the program, which
    // must be there first.
    for line in mend::at_once(root) {
        println!("{line}");
    }
    room::check_before_compiling(root)?;
    compiled(compile(root, options))?;
    for line in mend::mend(root) {
        println!("{line}");
    }
    left_out::begin(root);
    let folder = suite::folder();
    suite::make_folder(&folder).with_context(|| folder.display().to_string())?;
    room::check(&folder, room::TEMPORARY)?;
    Ok(held)
}

fn in_their_order(root: &Path, words: &[&str], mut stages: Stages) -> Result<()> {
    let mut lane = vec![Work::Compile(compile(root, ALL)), Work::Tests(of_suite(root, PURE))];
    if let [program, words @ ..] = words {
        let mut command = Command::new(program);
        command.current_dir(root).args(words);
        lane.push(Work::Command(command));
    }
    let log = root.join("target/beside.log");
    let mut beside = None;
    let mut live = of_suite(root, LIVE);
    live.args(["--", "--test-threads", "1"]);
    // Cargo compiles one thing at a time in a folder: not before the live tests have begun.
    let begun = || beside = Some(Beside::begin(lane, log));
    let mut clocked = Clocked::new(io::stdout());
    let live = once(live, begun, &mut clocked);
    stages.end("live tests");
    let beside = beside.map_or_else(|| Err(anyhow::anyhow!("not begun")), Beside::end);
    stages.end("what was beside them");
    let others = others(root)?;
    let rest = once(of_suite(root, &others), || {}, &mut io::stdout());
    stages.end("other tests");
    println!("\n{}", clocked.slowest());
    let times = root.join(TIMES);
    if let Err(error) = std::fs::write(&times, clocked.all()) {
        println!("the times of all are not kept: {}: {error}", times.display());
    }
    tell_left_out(root);
    println!("{stages}");
    let [live, beside, rest] = few([live, beside, rest]);
    let live = live.and_then(|failed| again(root, LIVE, failed));
    let beside = beside.and_then(|failed| again(root, PURE, failed));
    let rest = rest.and_then(|failed| again(root, &others, failed));
    let flaky = told([("live tests", live), ("beside them", beside), ("other tests", rest)])?;
    passed(&flaky);
    Ok(())
}

/// Tells the end of a suite in which these failed first.
fn passed(flaky: &[Failure]) {
    for failure in flaky {
        println!("FLAKY {}: failed once and passed when it ran again; at first:", failure.name);
        for line in &failure.said {
            println!("    {line}");
        }
    }
    println!("all tests passed, {} of them at the second try", flaky.len());
}

/// Lanes whose failures may be tried again: all of them together have no more of them than one may have.
fn few<const N: usize>(lanes: [Result<Vec<Failure>>; N]) -> [Result<Vec<Failure>>; N] {
    let failed: usize = lanes.iter().flatten().map(Vec::len).sum();
    let may_be_tried = |failures: Vec<Failure>| {
        if failed > MOST && !failures.is_empty() {
            let told = listing(&failures);
            bail!("no second try: {failed} failed in all lanes together, more than {MOST}{told}");
        }
        Ok(failures)
    };
    lanes.map(|lane| lane.and_then(may_be_tried))
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

/// What selects the tests that are neither live nor pure.
fn others(root: &Path) -> Result<Vec<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut metadata = Command::new(cargo);
    metadata.current_dir(root).args(["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let output = metadata.output().with_context(|| format!("{metadata:?}"))?;
    let said: Value = serde_json::from_slice(&output.stdout).context("what cargo metadata says")?;
    Ok(options_but(&programs_of_tests(&said), PURE))
}

/// Names of the programs of tests that cargo runs unless it is told which: those of features that are not on
/// are left out.
fn programs_of_tests(metadata: &Value) -> BTreeSet<String> {
    let list = |value: &Value, name| value[name].as_array().cloned().unwrap_or_default();
    let targets = list(metadata, "packages").into_iter().flat_map(|of| list(&of, "targets"));
    targets
        .filter(|of| of["test"] == true && of.get("required-features").is_none())
        .filter(|of| list(of, "kind").contains(&Value::from("test")))
        .filter_map(|of| of["name"].as_str().map(str::to_owned))
        .collect()
}

/// What selects all libraries and programs, and these programs of tests but those that are left out.
fn options_but(programs: &BTreeSet<String>, left_out: &[&str]) -> Vec<String> {
    let own = programs.iter().filter(|name| !left_out.contains(&name.as_str()));
    let own = own.flat_map(|name| ["--test".to_owned(), name.clone()]);
    ["--lib", "--bins", "--no-fail-fast"].map(str::to_owned).into_iter().chain(own).collect()
}

fn compile(root: &Path, options: &[&str]) -> Command {
    let mut build = cargo_test(root, options);
    build.arg("--no-run");
    build
}

/// Compiles. What does not compile does not at the second try either; a linker that crashed, which was seen once in
/// thousands of links, has done no more than lose its time.
fn compiled(mut build: Command) -> Result<()> {
    for _ in 0..2 {
        if build.status().with_context(|| format!("{build:?}"))?.success() {
            return Ok(());
        }
    }
    bail!("the tests do not compile: {build:?}")
}

/// What is done beside tests.
enum Work {
    Command(Command),
    /// Compiles, and again where that fails.
    Compile(Command),
    /// Runs tests; those that fail may be tried again.
    Tests(Command),
}

/// What is done beside tests, one after the other; what is printed there is kept until it has ended.
struct Beside {
    log: PathBuf,
    /// Nothing else is done any more.
    waited_for: Arc<AtomicBool>,
    /// It has the weight of others.
    weighs: Arc<AtomicBool>,
    done: JoinHandle<Result<Vec<Failure>>>,
}

impl Beside {
    fn begin(lane: Vec<Work>, log: PathBuf) -> Self {
        let flags = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let ([waited_for, weighs], lines) = (flags.clone(), log.clone());
        let done = std::thread::spawn(move || {
            let [waited_for, weighs] = flags;
            one_by_one(lane, &lines, &waited_for, &weighs)
        });
        Self { log, waited_for, weighs, done }
    }

    /// Waits until all has ended, and prints what was printed. Nothing is beside it any more: with the least weight it
    /// would never end where others keep the machine busy.
    fn end(self) -> Result<Vec<Failure>> {
        self.waited_for.store(true, Ordering::Relaxed);
        while !self.done.is_finished() {
            // What was born meanwhile with the least weight is found at the next look.
            if weigh_as_others() {
                self.weighs.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        let done = self.done.join();
        println!("\nbeside the live tests:");
        println!("{}", String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()));
        done.map_err(|_| anyhow::anyhow!("the thread panicked"))?
    }
}

/// Does it up to the first that fails; tests that may be tried again do not end it. It has the least weight until it
/// is waited for.
fn one_by_one(
    lane: Vec<Work>,
    log: &Path,
    waited_for: &AtomicBool,
    weighs: &AtomicBool,
) -> Result<Vec<Failure>> {
    let mut log = File::create(log).with_context(|| log.display().to_string())?;
    let weighed = |command: Command| {
        if waited_for.load(Ordering::Relaxed) { command } else { light(&command) }
    };
    let mut failed = Vec::new();
    for work in lane {
        match work {
            Work::Command(command) => {
                let mut command = weighed(command);
                command.stdout(log.try_clone()?).stderr(log.try_clone()?);
                let status = command.status().with_context(|| format!("{command:?}"))?;
                if !status.success() {
                    bail!("{command:?} ended with {status}");
                }
            }
            Work::Compile(command) => {
                let mut command = weighed(command);
                command.stdout(log.try_clone()?).stderr(log.try_clone()?);
                compiled(command)?;
            }
            Work::Tests(command) => {
                let mut command = weighed(command);
                command.stderr(log.try_clone()?);
                failed.extend(once_beside(command, weighs, &mut log)?);
            }
        }
    }
    Ok(failed)
}

/// Takes the least weight off what this process has started, which only root may: whether that was done. For others
/// it ends later.
fn weigh_as_others() -> bool {
    let all = below(&processes::all(), std::process::id());
    let all: Vec<String> = all.into_iter().map(|pid| pid.to_string()).collect();
    let mut renice = Command::new("renice");
    renice.args([&own_weight(), "-p"]).args(&all);
    renice.output().is_ok_and(|output| output.status.success())
}

/// What `nice` says of this process.
fn own_weight() -> String {
    let said = Command::new("nice").output();
    said.map_or_else(|_| String::new(), |of| String::from_utf8_lossy(&of.stdout).trim().to_owned())
}

/// The command with the least weight.
fn light(command: &Command) -> Command {
    let mut light = Command::new("nice");
    light.args(LEAST_WEIGHT).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        light.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => light.env(name, value),
            None => light.env_remove(name),
        };
    }
    light
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use super::{
        Beside, PURE, Work, compiled, few, options_but, over_dpdk, own_weight, programs_of_tests,
        told,
    };
    use crate::twice::{Failure, MOST};

    fn shell(words: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", words]).env("WHYLATE_A_WORD", "given");
        shell
    }

    /// Begins it with nobody waiting until it has printed this.
    fn begun(lane: Vec<Work>, log: &Path, until: &str) -> Beside {
        let beside = Beside::begin(lane, log.to_owned());
        let printed = || std::fs::read_to_string(log).is_ok_and(|text| text.contains(until));
        assert!((0..3_000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            printed()
        }));
        beside
    }

    #[test]
    fn what_runs_beside_tests_has_the_least_weight_and_ends_at_the_first_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let lane = vec![
            Work::Command(shell("nice; echo $WHYLATE_A_WORD; echo wrong 1>&2")),
            Work::Command(shell("exit 3")),
            Work::Command(shell("echo not reached")),
        ];
        let failed = begun(lane, &log, "wrong").end().unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        assert_eq!(std::fs::read_to_string(log).unwrap(), "19\ngiven\nwrong\n");
    }

    #[test]
    fn what_is_waited_for_has_the_weight_of_others_as_far_as_this_user_may_give_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|of| of.uid() == 0);
        // The first goes on until its weight has changed, where it may.
        let looks = if is_root { 300 } else { 1 };
        let words = format!(
            "echo begun; i=0; while test $(nice) = 19 -a $i -lt {looks}; do sleep 0.2; i=$((i+1)); done; nice"
        );
        let lane = vec![Work::Command(shell(&words)), Work::Command(shell("nice"))];
        assert!(begun(lane, &log, "begun").end().unwrap().is_empty());
        let text = std::fs::read_to_string(&log).unwrap();
        let weights: Vec<&str> = text.lines().skip(1).collect();
        let own = own_weight();
        assert_eq!(weights, [if is_root { own.as_str() } else { "19" }, own.as_str()]);
    }

    /// Runs within a suite.
    #[test]
    #[ignore = "it runs in a process of its own, as the next test starts it"]
    fn tests_over_dpdk_begin() {
        let refused = over_dpdk(Path::new("/never/was")).unwrap_err().to_string();
        assert!(refused.starts_with("a suite is no part of another: "), "{refused}");
    }

    #[test]
    fn tests_over_dpdk_are_a_suite_like_the_others() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact", "all_tests::tests::tests_over_dpdk_begin"]);
        let output = child.env(crate::suite::HOLDER, "1-1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 passed"), "{said}");
    }

    #[test]
    fn what_does_not_compile_is_tried_twice_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let tries = folder.path().join("tries");
        let build = |succeeds_at: u32| {
            let words = "echo >> $0; test $(wc -l < $0) -ge $1";
            let mut build = Command::new("sh");
            build.args(["-c", words]).arg(&tries).arg(succeeds_at.to_string());
            std::fs::write(&tries, "").unwrap();
            let done = compiled(build).is_ok();
            (done, std::fs::read_to_string(&tries).unwrap().len())
        };
        assert_eq!([build(1), build(2), build(3)], [(true, 1), (true, 2), (false, 2)]);
    }

    #[test]
    fn a_test_that_fails_beside_the_live_ones_may_be_tried_again_and_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let tests = "printf 'running 1 test\\n\\nfailures:\\n\\nfailures:\\n    a\\n\\ntest result: FAILED. \
                     0 passed; 1 failed; 0 ignored\\n'; exit 101";
        let lane = vec![Work::Tests(shell(tests)), Work::Command(shell("echo reached"))];
        let log = folder.path().join("log");
        let failed = Beside::begin(lane, log.clone()).end().unwrap();
        assert_eq!(failed.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert!(std::fs::read_to_string(log).unwrap().ends_with("reached\n"));
    }

    #[test]
    fn each_program_of_tests_runs_in_one_lane() {
        let metadata = serde_json::json!({"packages": [
            {"targets": [
                {"name": "one", "kind": ["lib"], "test": true},
                {"name": "pure", "kind": ["test"], "test": true},
                {"name": "live", "kind": ["test"], "test": false},
            ]},
            {"targets": [{"name": "sockets", "kind": ["test"], "test": true}]},
            {"targets": [{"name": "of_a_feature", "kind": ["test"], "test": true, "required-features": ["a"]}]},
        ]});
        let programs = programs_of_tests(&metadata);
        assert_eq!(programs.iter().collect::<Vec<_>>(), ["pure", "sockets"]);
        let rest = options_but(&programs, PURE);
        assert_eq!(rest, ["--lib", "--bins", "--no-fail-fast", "--test", "sockets"]);
    }

    #[test]
    fn of_all_lanes_together_no_more_failures_have_a_second_try_than_of_one() {
        let failed = |names: &[&str]| {
            let failure = |name: &&str| Failure { name: (*name).to_owned(), said: Vec::new() };
            Ok(names.iter().map(failure).collect::<Vec<_>>())
        };
        let names = |lane: &anyhow::Result<Vec<Failure>>| match lane {
            Ok(failures) => failures.iter().map(|of| of.name.clone()).collect(),
            Err(error) => vec![error.to_string()],
        };
        let three = few([failed(&["a"]), failed(&[]), failed(&["b", "c"])]);
        assert_eq!(three.each_ref().map(names), [vec!["a"], vec![], vec!["b", "c"]]);
        assert_eq!(three.iter().flatten().map(Vec::len).sum::<usize>(), MOST);
        let four = few([failed(&["a", "b"]), failed(&[]), failed(&["c", "d"])]);
        let said = "no second try: 4 failed in all lanes together, more than 3";
        let told = |names: [&str; 2]| vec![format!("{said}\n  {}\n  {}", names[0], names[1])];
        assert_eq!(four.each_ref().map(names), [told(["a", "b"]), vec![], told(["c", "d"])]);
        // One that has no second try by itself takes none from the others.
        let of_one = few([Err(anyhow::anyhow!("4 failed, more than 3")), failed(&["e"])]);
        assert_eq!(of_one.each_ref().map(names), [["4 failed, more than 3"], ["e"]]);
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
