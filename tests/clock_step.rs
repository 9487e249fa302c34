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

/// The step: a day back.
const STEP_S: i64 = -86_400;
/// What no time of a quiet or a disturbed run comes near.
const AN_HOUR_NS: u64 = 3_600_000_000_000;

/// Tells `CLOCK_REALTIME` a step later once `CLOCK_MONOTONIC` has gone on for so long, both through the
/// calls and through the vDSO that the program would look up otherwise.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long long first, after, step;
static long long monotonic(void) {
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
__attribute__((constructor)) static void begin(void) {
    first = monotonic();
    after = atoll(getenv("STEP_AFTER_NS"));
    step = atoll(getenv("STEP_S"));
}
int clock_gettime(clockid_t clock, struct timespec *t) {
    int done = syscall(SYS_clock_gettime, clock, t);
    if (done == 0 && clock == CLOCK_REALTIME && monotonic() - first > after) t->tv_sec += step;
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

/// What holds of a run whatever its wall clock did.
fn check(run: &Run, directory: &Path, text: &str) {
    let flow = flow(run);
    assert_eq!(flow.departures.intended, 2_000, "{text}");
    assert!(flow.packets.add_up() && flow.packets.received > 1_800, "{:?}", flow.packets);
    for name in ["rtt-service", "rtt-response", "rtt-lateness"] {
        let values = logged(directory, name);
        assert_eq!(values.len(), series(run, name).unwrap().n, "{name}");
        assert!(values.max().unwrap() < AN_HOUR_NS, "{name}: {:?}", values.max());
    }
    let measured = flow.ended.unwrap().since(flow.began.unwrap()).to_nanos(run.clock.hz);
    assert!((1_900_000_000..20_000_000_000).contains(&measured.0), "{measured}");
}

fn stepped(run: &Run) -> Option<i64> {
    run.warnings.iter().find_map(|warning| match warning {
        Warning::WallClockStepped { by_ns } => Some(*by_ns),
        _ => None,
    })
}

#[test]
#[ignore = "live figure: to accept"]
fn a_wall_clock_that_is_set_changes_nothing_that_is_measured_and_is_told() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (Some(_), Some(shim)) = (needs::cpus(2), shim(&home)) else { return };
    for (after, step) in [("1200000000", Some(STEP_S)), ("999000000000", None)] {
        let directory = home.path().join(after);
        let words = "rtt --rate 1kpps --duration 2s --warmup 100ms -o";
        let mut command = whylate(words.split(' '));
        command.arg(&directory).env("LD_PRELOAD", &shim);
        command.env("STEP_AFTER_NS", after).env("STEP_S", STEP_S.to_string());
        let output = command.output().unwrap();
        let text = said(&output);
        assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
        let run = program::read(&directory);
        check(&run, &directory, &text);
        let found = stepped(&run);
        // But for what readings of two clocks are apart.
        let seconds = found.map(|by| (by as f64 / 1e9).round() as i64);
        assert_eq!(seconds, step, "{text}");
        if step.is_some() {
            assert!(text.contains("the wall clock was set by -86400"), "{text}");
        }
    }
}

#[test]
#[ignore = "live figure: to accept"]
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
    command.args(shift).arg(program::path()).args("rtt --rate 1kpps --duration 2s".split(' '));
    command.args(["--warmup", "100ms", "-o"]).arg(&directory);
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = said(&output);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
    let run = program::read(&directory);
    check(&run, &directory, &text);
    assert_eq!(stepped(&run), None, "{text}");
}
