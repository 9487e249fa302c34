//! Bad input and faults: the error names the thing and the remedy, and nothing is lost.

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use whylate_model::directory::RunDir;
use whylate_model::run::{FORMAT_VERSION, Run, RunState, Verdict};
use whylate_model::segments;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Pid, TicksDelta};
use whylate_stats::rng::Rng;
use whylate_sys::tracefs::Tracefs;
use whylate_sys::{affinity, signal};

use crate::device::naming;
use crate::directories::{self, Planted, latencies};
use crate::needs;
use crate::program::{self, Started, until, whylate};
use crate::runaway::Wanting;
use crate::tasks::Task;

/// The user and group `nobody`.
const NOBODY: u32 = 65_534;
const SIGINT: i32 = 2;

/// An error that holds each of the words, on one line.
fn refused(words: &str, output: &Output, wanted: &[&str]) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    // One space for each line break: where lines break is not what is judged here.
    let flat = error.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(matches!(output.status.code(), Some(1 | 2)), "whylate {words}: {:?}", output.status);
    for word in wanted {
        assert!(flat.contains(word), "whylate {words}: no `{word}` in: {flat}");
    }
    flat
}

fn gaps_refused(words: &str, wanted: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(["gaps"]);
    command.args(words.split_whitespace()).arg("-o").arg(&directory);
    let said = refused(words, &command.output().unwrap(), wanted);
    assert!(!directory.exists(), "whylate {words}: measured nothing and left a directory behind");
    said
}

#[test]
fn a_cpu_that_is_not_there_is_named_with_those_that_are() {
    let _alone = program::alone();
    gaps_refused("--cpus 4095", &["4095", "does not exist", "try: whylate gaps --cpus"]);
}

#[test]
fn a_cpu_given_twice_is_named() {
    let _alone = program::alone();
    gaps_refused("--cpus 1,1", &["cpu 1", "twice", "once"]);
}

#[test]
fn words_that_are_no_cpus_are_answered_with_some_that_are() {
    let _alone = program::alone();
    gaps_refused("--cpus each", &["each", "`2-5,8`"]);
    gaps_refused("--cpus cgroup:/no/such/group", &["/no/such/group", "not found"]);
}

#[test]
fn isolated_cpus_are_asked_for_where_there_are_none() {
    let _alone = program::alone();
    let isolated = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    if !isolated.trim().is_empty() {
        return needs::absent("this machine has isolated CPUs");
    }
    gaps_refused("--cpus isolated", &["isolated", "isolcpus", "--cpus"]);
}

#[test]
fn durations_that_measure_nothing_or_for_ever_are_refused() {
    let _alone = program::alone();
    gaps_refused("--duration 0s", &["0s", "too short", "10"]);
    gaps_refused("--duration 1ns", &["1ns", "too short", "10"]);
    gaps_refused("--duration 3650d", &["3650d", "366 days"]);
    gaps_refused("--warmup 0s", &["--warmup", "too short"]);
}

#[test]
fn a_threshold_below_the_loops_own_period_is_refused() {
    let _alone = program::alone();
    let said = gaps_refused("--threshold 1ns --duration 1s --warmup 1s", &["period"]);
    // On a CPU that others leave no peace nobody knows the period, which is refused by name, too.
    if said.contains("was never quiet") {
        return needs::spoilt("the CPU was never quiet in the whole warm-up");
    }
    assert!(said.contains("larger --threshold"), "{said}");
}

#[test]
fn a_directory_in_use_is_left_as_it_is() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let theirs = home.path().join("thesis.txt");
    std::fs::write(&theirs, "theirs").unwrap();
    let output = whylate(["gaps", "--duration", "1s", "-o"]).arg(home.path()).output().unwrap();
    refused("-o FULL", &output, &["not empty", "-o"]);
    assert_eq!(std::fs::read_to_string(theirs).unwrap(), "theirs");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}

/// A file system of its own, unmounted with the guard.
pub(crate) struct Mounted(pub(crate) tempfile::TempDir);

impl Mounted {
    pub(crate) fn new(options: &str) -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(home.path());
        let mounted = mount.status().is_ok_and(|status| status.success());
        if !mounted {
            needs::missing("no tmpfs can be mounted");
        }
        mounted.then_some(Self(home))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_found_before_measuring() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let Some(disk) = Mounted::new("size=64k") else { return };
    std::fs::write(disk.0.path().join("filler"), vec![1; 64 << 10]).unwrap();
    let run = disk.0.path().join("run");
    let output = whylate(["gaps", "--duration", "60s", "-o"]).arg(&run).output().unwrap();
    refused("-o FULL DISK", &output, &["run", "cannot write"]);
}

/// A run whose table has so many rows that hardly shrink.
fn with_a_large_table(home: &Path, number: u64, rows: u64) -> PathBuf {
    let planted = Planted::new("host", number * 60);
    let path = planted
        .gaps(1, Nanos(100), &latencies(number, 10, 1_000.0))
        .write(home, &format!("{number}"));
    let (directory, mut run) = (RunDir::open(&path).unwrap(), program::read(&path));
    let (epoch, mut rng) = (run.clock.epoch, Rng::new(number));
    let mut writer = segments::Writer::new(&directory, epoch, segments::Limits::default());
    let row = segments::read_gaps(&directory).unwrap().next().unwrap().unwrap();
    for number in 0..rows {
        let mut gap = row.clone();
        let at = epoch + TicksDelta(1_000_000 * (number + 1));
        (gap.gap.start, gap.gap.end, gap.gap.resumed) =
            (at, at + TicksDelta(500), at + TicksDelta(600));
        let cause: String = (0..400).map(|_| char::from(b' ' + rng.below(95) as u8)).collect();
        writer.push_gap(&segments::StoredGap { cause: Some(cause.into()), ..gap }).unwrap();
    }
    writer.checkpoint().unwrap();
    run.segments = writer.segments();
    directory.write_run(&run).unwrap();
    path
}

/// On disks that are a little larger each, until the sum fits.
#[test]
fn a_sum_for_which_the_disk_is_too_small_leaves_nothing_behind() {
    /// What a new run must find on its disk.
    const ROOM: u64 = 4 << 20;
    const STEP: u64 = 256 << 10;
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let runs = [1, 2].map(|number| with_a_large_table(home.path(), number, 14_000));
    let (mut refused, mut size) = (0, ROOM);
    loop {
        let Some(disk) = Mounted::new(&format!("size={size}")) else { return };
        let sum = disk.0.path().join("sum");
        let output = directories::merge(&[], &runs, &sum);
        if output.status.code() == Some(0) {
            assert_eq!(program::read(&sum).origins.len(), 2);
            break;
        }
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && told.contains("full"), "{size}: {told}");
        assert_eq!(std::fs::read_dir(disk.0.path()).unwrap().count(), 0, "{size}: {told}");
        // A directory that was there before stays, and can be used again.
        std::fs::create_dir(&sum).unwrap();
        let output = directories::merge(&[], &runs, &sum);
        assert_eq!(output.status.code(), Some(1), "{size}");
        assert_eq!(std::fs::read_dir(&sum).unwrap().count(), 0, "{size}: {told}");
        refused += usize::from(!told.contains("4 MiB"));
        size += STEP;
        assert!(size < 4 * ROOM, "{told}");
    }
    assert!(refused >= 3, "{refused} sums failed on their way");
}

#[test]
fn a_read_only_directory_is_found_before_measuring() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let Some(disk) = Mounted::new("ro") else { return };
    let run = disk.0.path().join("run");
    let output = whylate(["gaps", "--duration", "60s", "-o"]).arg(&run).output().unwrap();
    refused("-o READ-ONLY", &output, &["run", "cannot write", "ead-only"]);
}

#[test]
fn a_damaged_run_is_refused_with_what_is_wrong_with_it() {
    let _alone = program::alone();
    let example = program::file("runs/gaps/run.json");
    let whole = std::fs::read_to_string(example).unwrap();
    let mut newer: serde_json::Value = serde_json::from_str(&whole).unwrap();
    newer["format_version"] = (FORMAT_VERSION + 1).into();
    let deep = "[".repeat(200_000);
    let cases: [(&str, String, &[&str]); 5] = [
        ("truncated", whole[..whole.len() / 2].to_owned(), &["truncated", "copy it again"]),
        ("newer", newer.to_string(), &["format version", "update"]),
        ("deep", deep, &["run.json"]),
        ("words", "\u{1b}]0;owned\u{7}".to_owned(), &["run.json", "not written by whylate"]),
        ("empty", String::new(), &["run.json"]),
    ];
    for (name, json, wanted) in cases {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("run.json"), json).unwrap();
        let output = whylate(["report"]).arg(home.path()).output().unwrap();
        refused(name, &output, wanted);
        assert!(!program::said(&output).contains('\u{1b}'), "{name}: the file's escapes came out");
    }
}

#[test]
fn a_report_on_nothing_says_that_there_is_no_run() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let output = whylate(["report"]).arg(home.path()).output().unwrap();
    refused("report EMPTY", &output, &["no run", "run.json", "name the directory"]);
    let output = whylate(["report"]).arg(home.path().join("absent")).output().unwrap();
    refused("report ABSENT", &output, &["absent"]);
}

/// Runs as a user without any privilege.
fn unprivileged(words: &str) -> Run {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program: PathBuf = home.path().join("whylate");
    std::fs::copy(program::path(), &program).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let theirs = home.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new(program);
    command.args(words.split_whitespace()).arg("-o").arg(theirs.join("run"));
    command.uid(NOBODY).gid(NOBODY).env_remove("XDG_RUNTIME_DIR").current_dir(&theirs);
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", program::said(&output));
    let run = program::read(&theirs.join("run"));
    program::ended(output.status.code(), &run);
    run
}

#[test]
fn without_privilege_gaps_are_measured_and_the_missing_capability_is_named() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    // A CPU that nobody else wants may have no gap.
    let wanting = Wanting::on(&affinity::get());
    let run = unprivileged("gaps --fifo --duration 1s --warmup 200ms");
    drop(wanting);
    assert!(run.gaps.iter().all(|summary| summary.gaps > 0), "no gap was found");
    assert!(run.evidence.trace.is_none() && run.evidence.rseq, "{:?}", run.evidence);
    assert!(!run.causes.is_empty(), "nothing was inferred");
    let texts: Vec<String> =
        run.warnings.iter().map(|warning| format!("{warning} {}", warning.advice())).collect();
    let told = |wanted: fn(&Warning) -> bool, word: &str| {
        let found = run.warnings.iter().position(wanted);
        assert!(found.is_some_and(|index| texts[index].contains(word)), "{word}: {texts:#?}");
    };
    told(|warning| matches!(warning, Warning::NoKernelTrace { .. }), "CAP_");
    told(|warning| matches!(warning, Warning::PolicyRefused { .. }), "CAP_SYS_NICE");
}

#[test]
fn two_runs_at_once_both_end_and_know_of_each_other() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let start = |name: &str| {
        // Each looks for others at its checkpoints.
        let words =
            "gaps --duration 60s --warmup 200ms --no-trace --checkpoint 200ms --format json -o";
        let mut command = whylate(words.split(' '));
        command.arg(home.path().join(name)).stdout(Stdio::null());
        command.stderr(Stdio::null());
        Started(command.spawn().unwrap())
    };
    let mut first = start("first");
    first.measuring_thread();
    let mut second = start("second");
    second.measuring_thread();
    let both = [("first", second.pid()), ("second", first.pid())];
    let knows = |run: &Run, other: Pid| {
        let warned = |w: &Warning| matches!(w, Warning::AnotherRun { pid, .. } if *pid == other.0);
        run.warnings.iter().any(warned)
    };
    for (name, other) in both {
        let directory = home.path().join(name);
        until("a checkpoint knows of the other", || {
            let run = RunDir::open(&directory).ok()?.read_run().ok()?;
            knows(&run, other).then_some(())
        });
    }
    for one in [&first, &second] {
        signal::send_to_process(one.pid(), SIGINT).unwrap();
    }
    let statuses = [first.status(), second.status()];
    for ((name, other), status) in both.into_iter().zip(statuses) {
        let run = program::read(&home.path().join(name));
        program::ended(status, &run);
        assert!(knows(&run, other), "the {name} does not know of the other");
    }
}

#[test]
fn a_run_of_another_kind_that_began_later_on_the_same_cpu_is_known_by_both() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let cpu = *affinity::get().last().unwrap();
    let start = |name: &str, words: &str| {
        let words = format!("{words} --cpus {cpu} --duration 60s --no-trace --format json -o");
        let directory = home.path().join(name);
        let mut command = whylate(words.split(' '));
        command.arg(&directory).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Started(command.spawn().unwrap());
        until("it measures", || directory.join("run.json").exists().then_some(()));
        started
    };
    let first = start("first", "wake");
    let second = start("second", "gaps");
    let pids = [first.pid(), second.pid()];
    for ((name, other), mut one) in
        ["first", "second"].into_iter().zip(pids.into_iter().rev()).zip([first, second])
    {
        signal::send_to_process(one.pid(), SIGINT).unwrap();
        let status = one.status();
        let run = program::read(&home.path().join(name));
        program::ended(status, &run);
        let told = Warning::AnotherRun { pid: other.0, same_cpu: true };
        assert!(
            run.warnings.contains(&told),
            "the {name} does not know of {other:?}: {:?}",
            run.warnings
        );
        assert!(matches!(run.verdict, Verdict::Untrustworthy { .. }), "{:?}", run.verdict);
    }
}

/// Starts `gaps` for a minute into `directory`.
pub(crate) fn measuring(directory: &Path, words: &str) -> Started {
    let words = format!("gaps --duration 60s --warmup 200ms {words}");
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(directory);
    Started::new(command)
}

/// Waits until a checkpoint holds some gaps.
pub(crate) fn checkpointed(directory: &Path) -> Run {
    until("a checkpoint holds gaps", || {
        let run = RunDir::open(directory).ok()?.read_run().ok()?;
        let stored = run.segments.iter().any(|s| s.file.starts_with("gaps") && s.rows > 0);
        (stored && run.gaps.first().is_some_and(|summary| summary.gaps > 0)).then_some(run)
    })
}

#[test]
fn a_killed_run_is_readable_up_to_its_last_checkpoint_and_the_next_start_cleans_up() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut started = measuring(&directory, "--checkpoint 200ms");
    checkpointed(&directory);
    std::thread::sleep(Duration::from_millis(300));
    started.0.kill().unwrap();
    started.status();

    let run = program::read(&directory);
    assert_eq!((run.state, &run.verdict), (RunState::Running, &Verdict::Pending));
    program::reported(&directory, &[]);
    let stored = RunDir::open(&directory).unwrap();
    let survey = segments::survey(&stored, &run).unwrap();
    // What the next checkpoint had begun to write is not listed yet; nothing that is listed lacks.
    assert!(survey.missing.is_empty(), "{survey:?}");
    for file in std::fs::read_dir(&directory).unwrap().flatten() {
        let path = file.path();
        if path.extension() == Some(OsStr::new("parquet")) {
            let content = std::fs::read(&path).unwrap();
            let name = file.file_name().into_string().unwrap();
            let rows = if name.starts_with("gaps") {
                segments::decode_gaps(&path, content).unwrap().len()
            } else {
                segments::decode_events(&path, content).unwrap().len()
            };
            assert!(rows > 0, "{name} is empty");
        }
    }
    the_next_start_removes_the_instance(started.pid());
}

#[test]
fn a_sum_that_is_killed_takes_the_run_along_that_it_waits_for() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("runs");
    let words = "rtt --runs 3 --rate 1kpps --duration 60s --warmup 50ms -o";
    let mut command = whylate(words.split(' '));
    command.arg(&directory);
    let mut started = Started::new(command);
    let first = directory.join("run-1");
    until("a run has begun", || first.join("run.json").exists().then_some(()));
    started.0.kill().unwrap();
    started.status();
    // It is told to end as by Ctrl-C, so that its run is whole.
    until("the run has ended", || {
        let run = RunDir::open(&first).ok()?.read_run().ok()?;
        (run.state != RunState::Running).then_some(())
    });
    until("its process has gone", || naming(&directory).is_empty().then_some(()));
    program::reported(&first, &[]);
    assert!(!directory.join("run-2").exists(), "nobody was there to start it");
}

fn the_next_start_removes_the_instance(dead: Pid) {
    if !needs::root() {
        return;
    }
    let Some(tracefs) = needs::tracefs() else { return };
    let left = |tracefs: &Tracefs| {
        let of_the_dead = format!("whylate-{dead}-");
        tracefs.instances().unwrap().iter().filter(|name| name.starts_with(&of_the_dead)).count()
    };
    assert!(left(&tracefs) > 0, "the killed run had no trace instance to leave behind");
    program::recorded("gaps --duration 100ms --warmup 50ms");
    assert_eq!(left(&tracefs), 0, "trace instances of the dead run are left");
}

#[test]
fn an_affinity_changed_from_outside_is_noticed() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut started =
        measuring(&directory, &format!("--no-trace --checkpoint 200ms --cpus {}", cpus[1]));
    checkpoint_exists(&directory);
    until("a checkpoint tells of it", || {
        let _ = affinity::set_of(started.measuring_thread(), &cpus[..1]);
        let run = RunDir::open(&directory).ok()?.read_run().ok()?;
        let told = |warning: &Warning| matches!(warning, Warning::HostChanged { .. });
        run.warnings.iter().any(told).then_some(())
    });
    signal::send_to_process(started.pid(), SIGINT).unwrap();
    assert_eq!(started.status(), Some(4));
    let run = program::read(&directory);
    program::ended(Some(4), &run);
    assert!(run.warnings.iter().any(|w| matches!(w, Warning::HostChanged { .. })));
    assert!(matches!(run.verdict, Verdict::Untrustworthy { .. }), "{:?}", run.verdict);
}

/// The first checkpoint is written when the measurement proper begins.
fn checkpoint_exists(directory: &Path) {
    until("the measurement begins", || directory.join("run.json").exists().then_some(()));
    std::thread::sleep(Duration::from_millis(100));
}

#[test]
fn a_gap_above_the_stop_limit_ends_the_run_and_runs_the_command() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (directory, touched) = (home.path().join("run"), home.path().join("touched"));
    let action = format!("command:touch {}", touched.display());
    let words = ["gaps", "--no-trace", "--duration", "60s", "--warmup", "50ms"];
    let mut command = whylate(words);
    command.args(["--threshold-stop", "1us"]);
    command.arg("--on-threshold").arg(action).arg("-o").arg(&directory);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", program::said(&output));
    let run = program::read(&directory);
    assert_eq!(run.state, RunState::Stopped);
    assert!(matches!(run.verdict, Verdict::LimitExceeded { .. }), "{:?}", run.verdict);
    assert!(touched.exists(), "the command was not run");
    let over = run.series.iter().filter_map(|series| series.max).any(|max| max.0 >= 1_000);
    assert!(over, "the gap that stopped the run is not in it");
}

#[test]
fn one_ctrl_c_ends_the_measurement_and_reports_it() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let started = measuring(&directory, "--no-trace --format json");
    checkpoint_exists(&directory);
    signal::send_to_process(started.pid(), SIGINT).unwrap();
    let output = finished(started);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["state"], "stopped");
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    assert_eq!(run.state, RunState::Stopped);
    assert!(run.warnings.contains(&Warning::Interrupted));
}

#[test]
fn a_second_ctrl_c_gives_up_the_report() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let [directory, held, go] = ["run", "held", "go"].map(|name| home.path().join(name));
    // What is done at the first gap holds the end of the run back until both have come.
    let (held_text, go_text) = (held.display(), go.display());
    let action = format!("command:touch {held_text}; until [ -e {go_text} ]; do sleep 0.05; done");
    let mut command =
        whylate("gaps --no-trace --duration 60s --warmup 50ms --format json".split(' '));
    command.args(["--threshold-stop", "1us", "--on-threshold", &action, "-o"]).arg(&directory);
    let started = Started::new(command);
    until("the end of the run is held back", || held.exists().then_some(()));
    let listens = Task::named(started.0.id(), "signals");
    for _ in 0..2 {
        let before = until("it waits for signals", || listens.asleep());
        signal::send_to_process(started.pid(), SIGINT).unwrap();
        until("the signal was taken", || (listens.asleep()? > before).then_some(()));
        // Closer than 10 ms the next would be one with it.
        std::thread::sleep(Duration::from_millis(15));
    }
    std::fs::write(&go, "").unwrap();
    let output = finished(started);
    assert_eq!(output.status.code(), Some(130));
    assert!(output.stdout.is_empty(), "the report was printed all the same");
}

/// Output and status, read to the end while the program ends.
pub(crate) fn finished(mut started: Started) -> Output {
    use std::io::Read;
    let mut stdout = Vec::new();
    started.0.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    Output { status: started.0.wait().unwrap(), stdout, stderr: Vec::new() }
}

#[test]
fn the_hosts_settings_are_put_back_after_a_run() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let Some(cpus) = needs::cpus(2) else { return };
    let defaults = || std::fs::read_to_string("/proc/irq/default_smp_affinity").unwrap();
    let (before, affinity) = (defaults(), affinity::get_of(Pid(1)).unwrap());
    let words = format!(
        "gaps --cpus {} --move-tasks --move-interrupts --duration 100ms --warmup 50ms",
        CpuId(cpus[1].0)
    );
    program::recorded(&words);
    assert_eq!((defaults(), affinity::get_of(Pid(1)).unwrap()), (before, affinity));
}
