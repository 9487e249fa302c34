//! A wall clock that is set while requests are measured, and clocks that began elsewhere.
//!
//! The wall clock of the machine is left alone: a library between the program and its C library tells a
//! step to this one process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use whylate_model::run::Run;
use whylate_model::warning::Warning;

use crate::needs;
use crate::program::{self, said, whylate};
use crate::requests::{flow, logged, series};
use crate::tasks::Task;
use crate::wall::Wall;

/// The step: a day back.
const STEP_S: i64 = -86_400;
/// What no time of a quiet or a disturbed run comes near.
const AN_HOUR_NS: u64 = 3_600_000_000_000;

/// Runs made at most where the step comes too late for one.
const TRIES: usize = 5;

/// Tells `CLOCK_REALTIME` a step later from when on a file is there, both through the calls and through the
/// vDSO that the program would look up otherwise.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *t) {
    int done = syscall(SYS_clock_gettime, clock, t);
    if (done == 0 && clock == CLOCK_REALTIME && access(getenv("STEP_FILE"), F_OK) == 0)
        t->tv_sec += atoll(getenv("STEP_S"));
    return done;
}
"#;

/// The library; none where no compiler is there.
fn shim(folder: &TempDir) -> Option<PathBuf> {
    needs::program("cc")?;
    let (source, library) = (folder.path().join("step.c"), folder.path().join("step.so"));
    std::fs::write(&source, SHIM).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
    let output = cc.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    Some(library)
}

/// What is measured: half a second, a thousand requests in each.
const WORDS: &str = "rtt --rate 1kpps --duration 500ms --warmup 50ms -o";

/// What holds of a run whatever its wall clock did.
fn check(status: Option<i32>, directory: &Path) -> Run {
    let run = program::read(directory);
    program::ended(status, &run);
    let flow = flow(&run);
    assert_eq!(flow.departures.intended, 500, "{flow:?}");
    assert!(flow.packets.add_up() && flow.packets.received > 0, "{:?}", flow.packets);
    for name in ["rtt-service", "rtt-response", "rtt-lateness"] {
        let values = logged(directory, name);
        assert_eq!(values.len(), series(&run, name).unwrap().n, "{name}");
        assert!(values.max().unwrap() < AN_HOUR_NS, "{name}: {:?}", values.max());
    }
    // By the schedule that was asked for, whenever the host lets the client keep it.
    let measured = flow.ended.unwrap().since(flow.began.unwrap()).to_nanos(run.clock.hz);
    assert!((475_000_000..AN_HOUR_NS).contains(&measured.0), "{measured}");
    run
}

fn stepped(run: &Run) -> Option<i64> {
    run.warnings.iter().find_map(|warning| match warning {
        Warning::WallClockStepped { by_ns } => Some(*by_ns),
        _ => None,
    })
}

/// A run whose wall clock is set while it measures, with what it said, or one whose wall clock is left alone;
/// none where it had ended before that.
fn run(home: &Path, shim: &Path, step: bool) -> Option<(Run, String)> {
    let (directory, file) = (home.join("run"), home.join("step"));
    let mut command = whylate(WORDS.split(' '));
    command.arg(&directory).env("LD_PRELOAD", shim).env("STEP_FILE", &file);
    command.env("STEP_S", STEP_S.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut in_time = true;
    if step {
        // The clock was read before the measuring thread began, and is again after it has ended.
        let part = Task::named(child.id(), "whylate-part");
        std::fs::write(&file, "").unwrap();
        in_time = part.is_there();
    }
    let output = child.wait_with_output().unwrap();
    let run = check(output.status.code(), &directory);
    std::fs::remove_dir_all(&directory).unwrap();
    let _ = std::fs::remove_file(&file);
    in_time.then(|| (run, said(&output)))
}

#[test]
fn a_wall_clock_that_is_set_changes_nothing_that_is_measured_and_is_told() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (Some(_), Some(shim)) = (needs::cpus(2), shim(&home)) else { return };
    let wall = Wall::now();
    let (left_alone, text) = run(home.path(), &shim, false).unwrap();
    assert!(stepped(&left_alone).is_none() || wall.was_set(), "{text}");
    let Some((set, text)) = (0..TRIES).find_map(|_| run(home.path(), &shim, true)) else {
        return needs::spoilt("each run had ended before its clock was set");
    };
    // But for what readings of two clocks are apart.
    let seconds = stepped(&set).map(|by| (by as f64 / 1e9).round() as i64);
    assert_eq!(seconds, Some(STEP_S), "{text}");
    let told = ["-86400", "-86399.9"].map(|by| format!("the wall clock was set by {by}"));
    assert!(told.iter().any(|told| text.contains(told)), "{text}");
}

#[test]
fn a_run_among_clocks_that_began_elsewhere_is_like_any_other() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() || needs::program("unshare").is_none() {
        return;
    }
    let shift = ["-T", "--fork", "--monotonic", "8640000", "--boottime", "8640000"];
    let probe = Command::new("unshare").args(shift).arg("true").stderr(Stdio::null()).status();
    if !probe.unwrap().success() {
        return needs::absent("this kernel has no namespaces of time");
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = Command::new("unshare");
    command.args(shift).arg(program::path()).args(WORDS.split(' ')).arg(&directory);
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state());
    let wall = Wall::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let run = check(output.status.code(), &directory);
    assert!(stepped(&run).is_none() || wall.was_set(), "{}", said(&output));
}
