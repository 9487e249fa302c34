//! The driver as it is run, with planted figures, in a repository and with a lock of its own.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use accept::state;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A setting of the planted machine.
const THROTTLING: &str = "proc/sys/kernel/sched_rt_runtime_us";

/// A repository with one commit.
fn repository() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["tmp", "run", "proc/sys/kernel", "tests", "acceptance", ".cargo"] {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    for (file, text) in [
        (".gitignore", "/target\n/tmp\n/run\n/proc\n"),
        (THROTTLING, "950000\n"),
        ("Cargo.lock", "one\n"),
        ("tests/a.rs", "one\n"),
        (".cargo/config.toml", "one\n"),
        ("acceptance/2000-01-01.md", "one\n"),
    ] {
        std::fs::write(root.path().join(file), text).unwrap();
    }
    git(root.path(), &["init", "-q"]);
    git(root.path(), &["add", "-A"]);
    let name = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(root.path(), &[&name[..], &["commit", "-q", "-m", "one"]].concat());
    root
}

fn git(root: &Path, words: &[&str]) {
    let status = Command::new("git").args(words).current_dir(root).status();
    assert!(status.unwrap().success(), "git {words:?}");
}

/// The planted figures, as no part of the suite that runs these tests.
fn planted(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planted-figures"));
    command.args(words).env("PLANTED_ROOT", root).env_remove("WHYLATE_TESTS_HOLDER");
    command.env("TMPDIR", root.join("tmp"));
    command.stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn taken(root: &Path, words: &[&str]) -> Output {
    let output = planted(root, words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    output
}

/// What is said of a figure on the standard output.
fn verdict(output: &Output, name: &str) -> String {
    let text = text(&output.stdout);
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    let line = line.unwrap_or_else(|| panic!("nothing of {name}: {text}"));
    line.split_once("numbers").unwrap().1.trim().to_owned()
}

/// Rounds that were set down.
fn rounds(root: &Path) -> usize {
    let journal = std::fs::read_to_string(root.join("target/accept/rounds.jsonl"));
    journal.unwrap_or_default().lines().count()
}

/// Processes that sleep and have the planted repository in their environment.
fn sleepers(root: &Path) -> usize {
    let wanted = format!("PLANTED_ROOT={}", root.display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let of = |entry: &std::fs::DirEntry| {
        let read = |name| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let mut all = [read("cmdline"), read("environ")].into_iter();
        all.next().is_some_and(|words| words.starts_with(b"sleep"))
            && all
                .next()
                .is_some_and(|all| all.split(|of| *of == 0).any(|of| of == wanted.as_bytes()))
    };
    entries.filter(of).count()
}

#[test]
fn rounds_that_hang_crash_or_say_nothing_have_failed_and_the_run_goes_on_without_what_they_started()
{
    let repository = repository();
    let root = repository.path();
    let output = taken(root, &[]);
    assert_eq!(sleepers(root), 0, "somebody is left");
    let settings =
        "left by what was killed: /proc/sys/kernel/sched_rt_runtime_us was -1, is 950000 again";
    assert!(text(&output.stderr).contains(settings), "{}", text(&output.stderr));
    let of = |name: &str| verdict(&output, name);
    assert_eq!(of("counts"), "met");
    let hung = of("hangs");
    assert!(
        hung.starts_with("not met: 1 of 3 rounds failed: no end within 3 s; ended with "),
        "{hung}"
    );
    assert!(hung.contains("sleep"), "{hung}");
    let aborted = of("aborts");
    assert!(
        aborted.starts_with("not met: 1 of 6 rounds failed: its process ended: signal: 6"),
        "{aborted}"
    );
    assert!(of("faults").contains("its process ended: signal: 11"), "{}", of("faults"));
    assert!(of("is_silent").contains("its process ended: exit status: 0"), "{}", of("is_silent"));
    assert_eq!(of("divides"), "not met: 1 of 1 rounds failed: numbers: NaN is no number");
    assert_eq!(of("leaves"), "not shown: 1 rounds give no 95 % interval");
    assert!(text(&output.stderr).contains("leaves 0: left and ended: "));
    assert_eq!(of("asks"), "not shown: what it needs is not known: asking does not end");
    assert!(of("crashes_asking").starts_with("not shown: what it needs is not known: signal: 6"));
    assert_eq!(of("last"), "met");
    assert_eq!(rounds(root), 6 + 3 + 6 + 4 + 6);
    let table = accept::table::newest(&root.join("acceptance")).unwrap().unwrap();
    let table = std::fs::read_to_string(table).unwrap();
    assert!(table.contains("| `hangs` | numbers | at most 9 (rounds) | 0.5, n 2 |"), "{table}");
    assert!(table.contains("| `takes_long` | "), "{table}");

    // None of them is tried again, of the same state; the last one of another.
    taken(root, &["hangs", "aborts", "last"]);
    assert_eq!(rounds(root), 25);
    std::fs::write(root.join("tests/b.rs"), "two\n").unwrap();
    taken(root, &["last"]);
    assert_eq!(rounds(root), 25 + 6);
    taken(root, &["--fresh", "last"]);
    assert_eq!(rounds(root), 6);
}

#[test]
fn a_round_that_was_interrupted_is_not_set_down_and_ends_the_run() {
    let repository = repository();
    let output = planted(repository.path(), &["is_interrupted"]).output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stderr).contains("interrupted: signal: 15"), "{}", text(&output.stderr));
    assert_eq!(rounds(repository.path()), 0);
}

#[test]
fn one_that_is_interrupted_ends_its_round_keeps_those_that_are_whole_and_goes_on_where_it_was() {
    let repository = repository();
    let root = repository.path();
    // As a shell starts what it sends behind: with SIGINT ignored.
    let mut command = planted(root, &[]);
    let words = r#"trap "" INT; exec "$0" counts goes_on"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", words]).arg(command.get_program());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let quiet = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut driver = quiet.spawn().unwrap();
    until("two rounds are there and a third goes on", || rounds(root) == 8 && sleepers(root) == 1);
    let pid = Pid::from_child(&driver);
    kill_process(pid, Signal::INT).unwrap();
    until("it ends", || driver.try_wait().unwrap().is_some());
    assert_eq!(driver.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    driver.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("accept: interrupted"), "{said}");
    assert_eq!((sleepers(root), rounds(root)), (0, 8), "{said}");
    // The table has what is whole, and nothing of what is not.
    let table = || {
        let newest = accept::table::newest(&root.join("acceptance")).unwrap().unwrap();
        std::fs::read_to_string(newest).unwrap()
    };
    let row = |table: &str, name: &str| {
        let begins = format!("| `{name}` | ");
        table.lines().find(|line| line.starts_with(&begins)).map(str::to_owned)
    };
    let half = table();
    assert!(row(&half, "counts").unwrap().contains("n 6"), "{half}");
    assert!(!row(&half, "goes_on").unwrap().contains("n 2"), "{half}");
    std::fs::write(root.join("tmp/may-end"), "").unwrap();
    command.args(["counts", "goes_on"]);
    assert!(command.output().unwrap().status.success());
    assert_eq!(rounds(root), 12);
    assert!(row(&table(), "goes_on").unwrap().contains("n 6"), "{}", table());
}

/// Waits for something to come true.
fn until(what: &str, mut look: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if look() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited a minute in vain until {what}")
}

#[test]
fn figures_that_take_long_are_taken_by_their_whole_names_alone() {
    let repository = repository();
    let root = repository.path();
    let listed = text(&taken(root, &["--list"]).stdout);
    let (usual, by_name) =
        listed.split_once("\nbeside these, by their whole names alone:\n").unwrap();
    assert!(usual.contains("counts ") && !usual.contains("takes_long"), "{listed}");
    assert!(by_name.starts_with("takes_long "), "{listed}");
    let listed = text(&taken(root, &["--list", "takes_long", "as"]).stdout);
    let (listed, together) = listed.split_once("\n\n").unwrap();
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["asks", "crashes_asking", "last", "takes_long"]);
    assert!(together.starts_with("4 figures, planned to take "), "{together}");
    for unknown in ["takes", "never"] {
        let output = planted(root, &["--list", "counts", unknown]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(&format!("no figure is named {unknown}")));
    }
    assert!(
        verdict(&taken(root, &["takes_long"]), "takes_long").starts_with("not shown: 1 rounds")
    );
}

#[test]
fn it_waits_for_a_suite_and_says_for_whom_and_is_no_part_of_one_that_waits_for_itself() {
    let repository = repository();
    let root = repository.path();
    let lock = std::fs::File::create(root.join("tmp/whylate-tests.lock")).unwrap();
    lock.lock().unwrap();
    let mut waiting = planted(root, &["last"]);
    let mut waiting = waiting.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let whom = format!("(process {}): waiting for its end", std::process::id());
    assert!(line.contains(&whom), "{line}");
    assert_eq!(rounds(root), 0);
    // A suite that takes figures has the lock already.
    let within = planted(root, &["counts"]).env("WHYLATE_TESTS_HOLDER", "7-7").output().unwrap();
    assert!(within.status.success(), "{}", text(&within.stderr));
    drop(lock);
    assert!(waiting.wait().unwrap().success());
    assert_eq!(rounds(root), 6 + 6);
}

#[test]
fn a_state_is_known_by_all_that_can_change_a_figure_and_by_nothing_else() {
    let repository = repository();
    let root = repository.path();
    let of = || state::commit(root).unwrap();
    let clean = of();
    assert!(!clean.is_empty() && !clean.contains('+'), "{clean}");
    let mut seen = vec![clean.clone()];
    for file in ["Cargo.lock", "tests/a.rs", ".cargo/config.toml", "new.rs"] {
        for text in ["two\n", "three\n"] {
            std::fs::write(root.join(file), text).unwrap();
            let now = of();
            assert!(now.starts_with(&format!("{clean}+")) && !seen.contains(&now), "{file}: {now}");
            seen.push(now);
        }
    }
    // What is staged is as good as what is not; tables and what is built are results.
    git(root, &["add", "tests/a.rs"]);
    std::fs::write(root.join("acceptance/2000-01-01.md"), "two\n").unwrap();
    std::fs::create_dir(root.join("target")).unwrap();
    std::fs::write(root.join("target/built"), "two\n").unwrap();
    assert_eq!(of(), seen[seen.len() - 1]);
    std::fs::remove_file(root.join("new.rs")).unwrap();
    git(root, &["checkout", "-q", "HEAD", "--", "Cargo.lock", "tests/a.rs", ".cargo"]);
    assert_eq!(of(), clean);
    assert!(state::commit(&root.join("target")).is_ok());
    let nowhere = tempfile::tempdir().unwrap();
    let error = state::commit(nowhere.path()).unwrap_err().to_string();
    assert!(error.starts_with("git rev-parse --short HEAD says not what is measured"), "{error}");
}
