//! Kills the suite in the middle of each live test, and looks whether the next one finds the machine as it was.
//!
//! The suite, its cargo and the program of tests are killed at once and without a word; what a test had started
//! by then lives on, as it does when memory runs out. The next suite mends what is left before it begins. So
//! does this, and compares settings, interfaces, namespaces, cgroups, mounts, files and processes with those
//! before the first. A test that had ended before it was killed is begun again and killed sooner. Then it is
//! started once more and must pass, for a machine may look as it was and not be; one that takes long is killed
//! in its middle, too.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::noise::{Random, seed};
use super::{all_tests, chosen, machine, now};
use crate::all_tests::{LIVE, begin};
use crate::processes::{self, children};
use crate::{mend, suite, twice};

/// How long after the beginning of a test its suite is killed, in milliseconds.
const AFTER_MS: (u64, u64) = (50, 1_500);
/// One that takes longer than this, in milliseconds, is killed in its middle as well: at such a time, and in this
/// share of its length at most, in percent.
const LONG_MS: u64 = 3_000;
const MIDDLE_FROM_MS: u64 = 1_500;
const MIDDLE_TO_PERCENT: u64 = 80;
/// So many of the last lines that a test printed which did not pass are told.
const LAST_LINES: usize = 20;
/// One that was killed is looked for so often.
const LOOKS: u32 = 500;
const BETWEEN: Duration = Duration::from_millis(20);
/// One that had ended by then is tried so often, each time after half as long.
const TRIES: u32 = 5;
/// Settings that tests change, each as a path or all that match one `*`.
const SETTINGS: [&str; 6] = [
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/irq/default_smp_affinity",
    "/proc/irq/*/smp_affinity_list",
    "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
    "/sys/kernel/mm/hugepages/*/nr_hugepages",
    "/sys/devices/system/clocksource/*/current_clocksource",
];
/// The same of the kernel's tracing.
const OF_TRACING: [&str; 3] = ["tracing_on", "current_tracer", "trace_clock"];
/// Folders in which nothing of a test may stay, beside those of the kernel's tracing.
const FOLDERS: [&str; 6] =
    ["/run/netns", "/run/whylate", "/run/whylate/lab", "/run/dpdk", "/dev/shm", "/dev/hugepages"];
const MOUNTS: &str = "/proc/self/mounts";

/// What became of a test whose suite was killed.
#[derive(Debug)]
struct Killed {
    name: String,
    /// How long after its beginning, once or twice; none where it had ended before each time.
    after: Vec<Duration>,
    mended: Vec<String>,
    /// What is otherwise than before the first.
    differs: Vec<String>,
    /// What it printed when it was started again, where it did not pass then.
    failed: Option<String>,
}

/// Kills one suite after the other, each within a test that is named so, or within every one.
pub(super) fn run(root: &Path, names: &[&str]) -> Result<()> {
    let held = begin(root, LIVE)?;
    let all = chosen(&all_tests(root)?, names)?;
    drop(held);
    let _ = std::fs::remove_dir(suite::folder());
    let before = looked_at(root);
    let mut random = Random::new(seed());
    let mut killed = Vec::new();
    for (number, name) in all.iter().enumerate() {
        let one = one(root, name, &before, &mut random).with_context(|| name.clone())?;
        println!("{} of {}: {}", number + 1, all.len(), told(&one));
        killed.push(one);
    }
    println!("\n{}", record(&killed, &machine()));
    verdict(&killed)
}

/// Kills the suite of one test, lets it run to its end, and kills it in its middle where that takes long.
fn one(root: &Path, name: &str, before: &BTreeSet<String>, random: &mut Random) -> Result<Killed> {
    let suite = || {
        let mut suite = Command::new(std::env::current_exe()?);
        suite.args(["alone", name]).current_dir(root);
        Ok(suite)
    };
    let mut one = Killed {
        name: name.to_owned(),
        after: Vec::new(),
        mended: Vec::new(),
        differs: Vec::new(),
        failed: None,
    };
    let mut kill = |one: &mut Killed, when: (u64, u64)| -> Result<()> {
        one.after.extend(within(suite, random, when)?);
        one.mended.extend({
            let _held = suite::hold();
            mend::mend(root)
        });
        one.differs.extend(differing(before, &looked_at(root)));
        Ok(())
    };
    kill(&mut one, AFTER_MS)?;
    let whole = whole(suite()?, &root.join("target/killed.log"))?;
    one.failed = whole.failed;
    if let Some(when) = middle(whole.took) {
        kill(&mut one, when)?;
    }
    Ok(one)
}

/// Between which times after its beginning a test is killed in its middle that takes so long, in milliseconds.
fn middle(took: Duration) -> Option<(u64, u64)> {
    let ms = took.as_millis() as u64;
    (ms > LONG_MS).then_some((MIDDLE_FROM_MS, ms * MIDDLE_TO_PERCENT / 100))
}

/// Fails where tests do not find the machine that they leave, or where nothing was killed that shows it.
fn verdict(all: &[Killed]) -> Result<()> {
    let mut wrong = Vec::new();
    if all.iter().any(|one| !one.differs.is_empty()) {
        wrong.push("the machine is not as it was");
    }
    if all.iter().any(|one| one.failed.is_some()) {
        wrong.push("a test did not pass when it was started again");
    }
    if all.iter().all(|one| one.after.is_empty()) {
        wrong.push("no suite was killed within its test");
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("; ")) }
}

/// A suite of one test, which this program starts to kill it, or to see it pass.
pub(crate) fn alone(root: &Path, name: &str) -> Result<()> {
    let _held = begin(root, LIVE)?;
    let mut test = twice::of_suite(root, LIVE);
    test.args(["--", "--test-threads", "1", "--exact", name]);
    ended_well(test)
}

fn ended_well(mut test: Command) -> Result<()> {
    let status = test.status().with_context(|| format!("{test:?}"))?;
    if status.success() { Ok(()) } else { bail!("the test ended with {status}") }
}

/// A suite of one test that ran to its end.
struct Whole {
    /// From the beginning of the test.
    took: Duration,
    failed: Option<String>,
}

/// Lets a suite of one test run to its end; what it prints is kept in this file.
fn whole(mut suite: Command, log: &Path) -> Result<Whole> {
    let mut kept = File::create(log).with_context(|| log.display().to_string())?;
    suite.stdin(Stdio::null()).stderr(kept.try_clone()?);
    let mut began = None;
    let (is_good, transcript) = twice::read(suite, |_| began = Some(now()), &mut kept)?;
    let took = began.map_or(Duration::ZERO, |began| began.elapsed());
    let passed = is_good && transcript.passed == 1;
    let failed = (!passed).then(|| {
        let printed = std::fs::read(log).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    });
    Ok(Whole { took, failed })
}

/// Kills a suite of one test within it; how long after its beginning.
fn within(
    suite: impl Fn() -> Result<Command>,
    random: &mut Random,
    when: (u64, u64),
) -> Result<Option<Duration>> {
    let mut after = Duration::from_millis(random.within(when));
    for _ in 0..TRIES {
        let mut suite = suite()?;
        suite.stdin(Stdio::null()).stderr(Stdio::null());
        let mut suite = suite.stdout(Stdio::piped()).spawn()?;
        let printed = suite.stdout.take().context("no pipe to the suite")?;
        let mut lines = BufReader::new(printed).lines().map_while(std::result::Result::ok);
        if !lines.any(|line| line.starts_with("running 1 test")) {
            bail!("the test did not begin: {}", suite.wait()?);
        }
        std::thread::sleep(after);
        let programs = programs(suite.id());
        // Nobody reads from it any more, as after a crash.
        drop(lines);
        let killed = !programs.is_empty() && suite.try_wait()?.is_none();
        let mut kill = Command::new("kill");
        kill.args(["-s", "KILL", &suite.id().to_string()]);
        kill.args(programs.iter().map(ToString::to_string)).output()?;
        suite.wait()?;
        until_ended(&programs)?;
        if killed {
            return Ok(Some(after));
        }
        after /= 2;
    }
    Ok(None)
}

/// The kernel takes its time to take back what a process had.
fn until_ended(all: &[u32]) -> Result<()> {
    for _ in 0..LOOKS {
        if !all.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            return Ok(());
        }
        std::thread::sleep(BETWEEN);
    }
    bail!("processes {all:?} live on after they were killed")
}

/// The cargo and the program of tests of a suite.
fn programs(suite: u32) -> Vec<u32> {
    let all = processes::all();
    let programs = children(&all, suite)
        .flat_map(|cargo| children(&all, cargo).map(move |tests| [cargo, tests]));
    programs.flatten().collect()
}

/// What there is on this machine that tests change, a line each.
fn looked_at(root: &Path) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let tracing = suite::tracefs(Path::new("/"));
    let of_tracing = tracing.iter().flat_map(|at| OF_TRACING.map(|file| at.join(file)));
    for path in SETTINGS.iter().flat_map(|path| matching(path)).chain(of_tracing) {
        if let Ok(value) = std::fs::read_to_string(&path) {
            seen.insert(format!("{} is {}", path.display(), value.trim()));
        }
    }
    let instances = tracing.iter().map(|at| at.join("instances"));
    for folder in FOLDERS.iter().map(PathBuf::from).chain(instances) {
        seen.extend(entries(&folder).map(|path| format!("{}", path.display())));
    }
    let [mut links, mut queues] = [Command::new("ip"), Command::new("tc")];
    for command in [links.args(["-o", "link"]), queues.args(["qdisc", "show"])] {
        let output = command.output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        seen.extend(text.unwrap_or_default().lines().map(without_counts));
    }
    let mounts = std::fs::read_to_string(MOUNTS).unwrap_or_default();
    seen.extend(mounts.lines().map(|line| format!("mounted: {line}")));
    seen.extend(mend::cgroups(Path::new("/")).iter().map(|path| format!("{}", path.display())));
    seen.extend(programs_of(&root.join("target")));
    seen
}

/// An interface with its flags, and not how long its queue is at the moment.
fn without_counts(line: &str) -> String {
    let words = line.split_whitespace().skip_while(|word| word.ends_with(':') && number(word));
    words.take_while(|word| *word != "qlen").collect::<Vec<_>>().join(" ")
}

fn number(word: &str) -> bool {
    word.trim_end_matches(':').parse::<u64>().is_ok()
}

/// Programs below this folder that run, but for this one.
fn programs_of(folder: &Path) -> Vec<String> {
    let own = std::process::id().to_string();
    let program = |process: PathBuf| {
        let program = std::fs::read_link(process.join("exe")).ok()?;
        let is_one = program.starts_with(folder) && !process.ends_with(&own);
        is_one.then(|| format!("process {} runs", program.display()))
    };
    entries(Path::new("/proc")).filter_map(program).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The path, or all those that its `*` stands for.
fn matching(path: &str) -> Vec<PathBuf> {
    match path.split_once("/*/") {
        Some((folder, rest)) => entries(Path::new(folder)).map(|path| path.join(rest)).collect(),
        None => vec![PathBuf::from(path)],
    }
}

fn differing(before: &BTreeSet<String>, now: &BTreeSet<String>) -> Vec<String> {
    let gone = before.difference(now).map(|line| format!("gone: {line}"));
    gone.chain(now.difference(before).map(|line| format!("new: {line}"))).collect()
}

fn told(one: &Killed) -> String {
    let after: Vec<String> =
        one.after.iter().map(|after| format!("{} ms", after.as_millis())).collect();
    let when = match after.as_slice() {
        [] => "had ended before".to_owned(),
        after => format!("killed after {}", after.join(" and ")),
    };
    let mut text = format!("{}: {when}; {} things mended", one.name, one.mended.len());
    for line in one.mended.iter().chain(&one.differs) {
        let _ = write!(text, "\n    {line}");
    }
    if let Some(printed) = &one.failed {
        let _ = write!(text, "\n    it did not pass when it was started again:");
        for line in printed.lines() {
            let _ = write!(text, "\n        {line}");
        }
    }
    text
}

/// What a commit quotes.
fn record(all: &[Killed], machine: &str) -> String {
    let killed = all.iter().filter(|one| !one.after.is_empty()).count();
    let twice = all.iter().filter(|one| one.after.len() > 1).count();
    let passed = all.iter().filter(|one| one.failed.is_none()).count();
    let left = all.iter().filter(|one| !one.mended.is_empty()).count();
    let things: usize = all.iter().map(|one| one.mended.len()).sum();
    let mut text = format!(
        "suites killed on {machine}\n  {killed} of {} killed within their test, {twice} of them twice; \
         {left} left {things} things, which the next mended\n  {passed} of {} passed when they were started \
         again\n",
        all.len(),
        all.len()
    );
    let ended: Vec<&str> =
        all.iter().filter(|one| one.after.is_empty()).map(|one| one.name.as_str()).collect();
    if !ended.is_empty() {
        let _ = writeln!(text, "  too short to be killed: {}", ended.join(", "));
    }
    let differs = all.iter().filter(|one| !one.differs.is_empty()).count();
    let _ = writeln!(text, "  the machine was not as before behind {differs} of them");
    for one in all.iter().filter(|one| !one.differs.is_empty() || one.failed.is_some()) {
        let _ = writeln!(text, "    {}", told(one).replace('\n', "\n    "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_and_what_is_gone_is_told() {
        let set = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let (before, now) = (set(&["a is 1", "b"]), set(&["a is 2", "b"]));
        assert_eq!(differing(&before, &now), ["gone: a is 1", "new: a is 2"]);
        assert!(differing(&before, &before).is_empty());
    }

    #[test]
    fn an_interface_is_the_same_whatever_its_number() {
        let lines = ["1: lo: <LOOPBACK,UP> mtu 65536 qlen 1000", "7: lo: <LOOPBACK,UP> mtu 65536"];
        assert_eq!(lines.map(without_counts), ["lo: <LOOPBACK,UP> mtu 65536"; 2]);
    }

    fn one(name: &str, after: &[u64], differs: &[&str], failed: Option<&str>) -> Killed {
        Killed {
            name: name.to_owned(),
            after: after.iter().copied().map(Duration::from_millis).collect(),
            mended: vec!["removed cgroup c".to_owned()],
            differs: differs.iter().map(|line| (*line).to_owned()).collect(),
            failed: failed.map(str::to_owned),
        }
    }

    #[test]
    fn a_record_names_each_test_behind_which_the_machine_is_otherwise_or_that_does_not_pass_again()
    {
        let all = [
            one("a", &[70, 2_300], &[], None),
            one("b", &[], &[], None),
            one("c", &[9], &["new: d"], None),
            one("e", &[8], &[], Some("panicked\nno memory")),
        ];
        let text = record(&all, "one");
        assert_eq!(
            text,
            "suites killed on one\n  3 of 4 killed within their test, 1 of them twice; 4 left 4 \
             things, which the next mended\n  3 of 4 passed when they were started again\n  too short to be killed: \
             b\n  the machine was not as before behind 1 of them\n    \
             c: killed after 9 ms; 1 things mended\n        removed cgroup c\n        new: d\n    \
             e: killed after 8 ms; 1 things mended\n        removed cgroup c\n        \
             it did not pass when it was started again:\n            panicked\n            no memory\n"
        );
        assert!(told(&all[0]).starts_with("a: killed after 70 ms and 2300 ms; 1 things"));
    }

    #[test]
    fn what_is_otherwise_does_not_pass_again_or_was_never_killed_fails_the_command() {
        let verdict = |all: &[Killed]| verdict(all).err().map(|error| error.to_string());
        let good = || one("a", &[70], &[], None);
        let short = || one("b", &[], &[], None);
        assert_eq!(verdict(&[good(), short()]), None);
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(verdict(&[short(), short()]), says("no suite was killed within its test"));
        let otherwise = one("c", &[9], &["new: d"], None);
        assert_eq!(verdict(&[good(), otherwise]), says("the machine is not as it was"));
        let failed = one("e", &[], &[], Some("no memory"));
        let said = "a test did not pass when it was started again";
        assert_eq!(verdict(&[good(), failed]), says(said));
    }

    #[test]
    fn a_test_passes_again_where_it_runs_and_does_not_fail_and_what_it_prints_is_kept() -> Result<()>
    {
        let home = tempfile::tempdir()?;
        let log = home.path().join("log");
        let run = |words: &str| {
            let mut suite = Command::new("sh");
            suite.args(["-c", words]);
            whole(suite, &log)
        };
        let ran = "echo running 1 test; sleep 0.3; echo test result: ok. 1 passed";
        let of = run(&format!("echo compiles 1>&2; {ran}"))?;
        assert_eq!(of.failed, None);
        assert!(of.took >= Duration::from_millis(300), "{:?}", of.took);
        let kept = std::fs::read_to_string(&log)?;
        assert_eq!(kept, "compiles\nrunning 1 test\ntest result: ok. 1 passed\n");
        let fails = run(&format!("{ran}; echo xtask: it ended with 101 1>&2; exit 1"))?;
        // What it prints comes by a pipe, and what it says directly: either may be first.
        assert!(fails.failed.is_some_and(|said| said.contains("xtask: it ended with 101")));
        // None of this name is none that passes.
        assert!(run("echo running 0 tests; echo test result: ok. 0 passed")?.failed.is_some());
        // What a suite of one test ends with is what the test does.
        let ends = |word: &str| ended_well(Command::new(word)).map_err(|error| error.to_string());
        assert_eq!(ends("true"), Ok(()));
        assert_eq!(ends("false"), Err("the test ended with exit status: 1".to_owned()));
        Ok(())
    }

    #[test]
    fn a_test_of_more_than_three_seconds_is_killed_in_its_middle_too() {
        let of = |ms| middle(Duration::from_millis(ms));
        assert_eq!(
            [of(0), of(3_000), of(3_001), of(60_000)],
            [None, None, Some((1_500, 2_400)), Some((1_500, 48_000))]
        );
    }

    /// A suite whose cargo runs tests that start this program and wait.
    fn planted(program: &Path) -> Command {
        let mut suite = Command::new("sh");
        let tests = "\"$0\" 600 & echo running 1 test; exec sleep 600";
        suite.args(["-c", "sh -c 'sh -c \"$0\" \"$1\"; :' \"$0\" \"$1\"; :", tests]).arg(program);
        suite
    }

    #[test]
    fn a_suite_that_is_killed_leaves_what_its_test_had_started_and_that_is_told() -> Result<()> {
        let target = tempfile::tempdir()?;
        let program = target.path().join("sleep");
        std::fs::copy("/bin/sleep", &program)?;
        let mut random = Random::new(seed());
        let after = within(|| Ok(planted(&program)), &mut random, AFTER_MS)?;
        let mut until = (0..3_000).map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            programs_of(target.path())
        });
        let left = until.find(|left| !left.is_empty()).unwrap_or_default();
        let told = format!("process {} runs", program.display());
        for process in entries(Path::new("/proc")) {
            if std::fs::read_link(process.join("exe")).is_ok_and(|exe| exe == program) {
                let pid = process.file_name().and_then(|name| name.to_str()).context("a number")?;
                Command::new("kill").arg(pid).status()?;
            }
        }
        assert!(after.is_some());
        assert_eq!(left, [told]);
        let stillborn = within(|| Ok(Command::new("true")), &mut random, AFTER_MS);
        assert!(
            stillborn.is_err_and(|error| error.to_string().starts_with("the test did not begin"))
        );
        Ok(())
    }

    #[test]
    fn what_changes_of_this_machine_is_seen() -> Result<()> {
        let target = tempfile::tempdir()?;
        let program = target.path().join("sleep");
        std::fs::copy("/bin/sleep", &program)?;
        let before = looked_at(target.path().parent().context("a folder above")?);
        assert!(programs_of(target.path()).is_empty());
        let mut child = Command::new(&program).arg("600").spawn()?;
        let until = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !programs_of(target.path()).is_empty()
        });
        child.kill()?;
        child.wait()?;
        assert!(until && before.iter().any(|line| line.starts_with("lo: ")));
        Ok(())
    }
}
