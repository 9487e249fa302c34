//! All tasks are moved and come back: tried where "all" is only what the test started.
//!
//! The test runs itself again in a process namespace of its own, in which it sees no other task,
//! and with `/sys` read-only, so that the kernel's own work stays where it is.

#![expect(clippy::unwrap_used, reason = "what a test calls is part of the test")]

use std::path::Path;
use std::process::Command;

use whylate_host::guard::{Guard, MovedTasks, Scope};
use whylate_host::journal::Journal;
use whylate_model::Pid;
use whylate_suite::{absent as skip, missing};
use whylate_sys::affinity;

/// Set in the child only.
const INSIDE: &str = "WHYLATE_HOST_TEST_INSIDE";

/// Can this test run itself again? Not where an emulator runs it and the kernel alone cannot.
fn runs_itself() -> bool {
    let listed = Command::new(std::env::current_exe().unwrap()).arg("--list").output();
    let runs = listed.is_ok_and(|output| output.status.success());
    if !runs {
        skip(&"this test cannot run itself again, as under an emulator");
    }
    runs
}

#[test]
fn every_task_but_this_process_leaves_and_comes_back() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    if affinity::get().len() < 2 {
        return skip(&"this process has a single CPU");
    }
    let enclosed = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount", "--mount-proc", "sh", "-c", script]);
        command
    };
    let readonly = "mount -o remount,bind,ro /sys";
    match enclosed(readonly).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => return missing(&String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => return missing(&format!("unshare: {error}")),
    }
    if !runs_itself() {
        return;
    }
    let this = "every_task_but_this_process_leaves_and_comes_back";
    let output = enclosed(&format!("{readonly} && exec \"$TEST\" --exact {this} --nocapture"))
        .env("TEST", std::env::current_exe().unwrap())
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("1 passed"), "{told}");
}

fn inside() {
    let before = affinity::get();
    let (&measured, rest) = before.split_last().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
    let mut sleepers: Vec<_> =
        (0..3).map(|_| Command::new("sleep").arg("600").spawn().unwrap()).collect();
    let everywhere = |expected: &[whylate_model::CpuId], sleepers: &[std::process::Child]| {
        for sleeper in sleepers {
            assert_eq!(affinity::get_of(Pid(sleeper.id() as i32)).unwrap(), expected);
        }
    };

    let guard = MovedTasks::away_from(&journal, &[measured], &Scope::Everything).unwrap();
    let told = guard.describe().join("\n");
    assert_eq!(guard.moved(), sleepers.len(), "{told}");
    everywhere(rest, &sleepers);
    assert_eq!(affinity::get(), before, "this process places itself");
    if Path::new("/sys/devices/virtual/workqueue/cpumask").exists() {
        assert!(told.contains("unbound kernel work stays"), "{told}");
    }

    // Started by this process, with the same CPUs that a moved one would have inherited.
    let own = Command::new("sleep").arg("600").spawn().unwrap();
    let own_pid = Pid(own.id() as i32);
    affinity::set_of(own_pid, rest).unwrap();
    sleepers.push(own);

    drop(guard);
    assert_eq!(affinity::get_of(own_pid).unwrap(), rest, "placed by this process");
    everywhere(&before, &sleepers[..3]);
    assert_eq!(journal.entries(), []);
    for mut sleeper in sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
