//! The check-up.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use whylate_model::run::{Run, Verdict};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Pid};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, signal};

use whylate_model::series::{Definition, Quantile};

use crate::needs;
use crate::program::{self, Recorded, Started, until, whylate};
use crate::requests::is_shown;
use crate::tasks::Task;

const SIGKILL: i32 = 9;
const SIGSTOP: i32 = 19;
/// Holds idle states off while it is open.
const HELD: &str = "/dev/cpu_dma_latency";

pub(crate) fn checkup() -> &'static Recorded {
    &looked_at().0
}

/// What was seen of a check-up within two of its parts: the CPUs that its main thread may use, and how often it
/// holds idle states off; none of a part that was over by then.
type Seen = [Option<(Vec<CpuId>, usize)>; 2];

/// The check-up of all who look at one.
fn looked_at() -> &'static (Recorded, Seen) {
    static RUN: OnceLock<(Recorded, Seen)> = OnceLock::new();
    RUN.get_or_init(look_at_one)
}

fn look_at_one() -> (Recorded, Seen) {
    let parts = if needs::cpus(2).is_some() { &["model/0", "client/0"][..] } else { &[] };
    let look = |pid: u32| {
        let mut seen = [None, None];
        for (part, seen) in parts.iter().zip(&mut seen) {
            let thread = Task::named(pid, part);
            let here = affinity::get_of(Pid(pid as i32)).ok();
            let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let holds =
                fds.filter(|fd| fs::read_link(fd.path()).is_ok_and(|path| path == Path::new(HELD)));
            let holds = holds.count();
            // What was seen after the part had ended says nothing of it.
            *seen = here.filter(|_| thread.is_there()).map(|here| (here, holds));
        }
        seen
    };
    program::recorded_beside(&["--quick", "--format", "json"], look)
}

#[test]
fn the_checkup_fills_every_row_of_the_table() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let run = &checkup().run;
    for wanted in
        [Definition::ReadDelta, Definition::Gap, Definition::DispatchLatency, Definition::RoundTrip]
    {
        let rows = run.series.iter().filter(|series| series.definition == wanted).count();
        let least = if wanted == Definition::RoundTrip { 3 } else { 1 };
        assert!(rows >= least, "{rows} rows of {wanted}");
    }
    for series in &run.series {
        assert!(series.n > 0, "{} is empty", series.name);
        // The class is by p99.9, which too few independent samples do not have, unless all that
        // they leave possible is one class.
        let p999 = series.quantiles.iter().find(|quantile| is(quantile, 99.9)).unwrap();
        let enough = is_shown(&series.quantiles, 99.9);
        let certain = p999.low.is_some_and(|low| low > Nanos(100_000));
        let class = series.class;
        assert!(class.is_some() || !(enough || certain), "{} has no class: {p999:?}", series.name);
        assert!(!series.from.is_empty() && !series.to.is_empty(), "{}: points", series.name);
    }
}

#[test]
fn the_quantiles_of_the_checkup_are_in_order() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    for series in &checkup().run.series {
        let at =
            |percent: f64| series.quantiles.iter().find(|quantile| is(quantile, percent))?.value;
        let row = [series.min, at(50.0), at(99.0), at(99.9), series.max];
        let known: Vec<_> = row.iter().flatten().collect();
        assert!(known.is_sorted(), "{}: {row:?}", series.name);
        // Only a request that was given up leaves the longest unknown; too few independent samples leave
        // a quantile so.
        assert!(series.min.is_some(), "{}: {row:?}", series.name);
        assert_eq!(series.max.is_none(), series.censored.is_some(), "{}: {row:?}", series.name);
        for quantile in series.quantiles.iter().filter(|_| series.censored.is_none()) {
            let shown = is_shown(&series.quantiles, quantile.percent);
            assert_eq!(quantile.value.is_some(), shown, "{}: {quantile:?}", series.name);
        }
    }
}

#[test]
fn the_printed_json_is_the_stored_run() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let checkup = checkup();
    let mut printed: serde_json::Value = serde_json::from_slice(&checkup.output.stdout).unwrap();
    // Trust is found out when a run is read, and the digest is the file's.
    assert!(printed.as_object_mut().unwrap().remove("trust").is_some());
    let stored = std::fs::read(checkup.directory.join("run.json")).unwrap();
    let mut stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
    for field in ["digest_kind", "digest"] {
        assert!(stored.as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    assert_eq!(printed, stored);
}

fn is(quantile: &Quantile, percent: f64) -> bool {
    (quantile.percent - percent).abs() < 1e-9
}

/// A check-up to be disturbed.
fn start(directory: &Path, words: &[&str]) -> Started {
    let mut command = whylate(["--no-trace", "-o"]);
    command.arg(directory).args(words);
    Started::new(command)
}

fn reasons(run: &Run) -> &[String] {
    match &run.verdict {
        Verdict::Untrustworthy { reasons } => reasons,
        other => panic!("{other:?} with {:#?}", run.warnings),
    }
}

/// Check-ups made at most where what is to disturb one comes too late.
const TRIES: usize = 5;

/// What became of the first check-up that was disturbed as it was to be; none where each was too far on.
fn disturbed(disturb: impl Fn(&Started) -> bool) -> Option<Run> {
    let disturbed = || {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let mut started = start(&directory, &["--quick"]);
        let in_time = disturb(&started);
        assert_eq!(started.status().filter(|_| in_time), in_time.then_some(4));
        in_time.then(|| program::read(&directory))
    };
    let run = (0..TRIES).find_map(|_| disturbed());
    if run.is_none() {
        needs::spoilt("each check-up was too far on to be disturbed");
    }
    run
}

#[test]
fn a_checkup_whose_woken_thread_is_moved_is_not_trusted() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let Some(run) = disturbed(|started| {
        let thread = Task::named(started.0.id(), "model/0");
        // It pins itself before it sleeps for the first time, and wakes up elsewhere after it was moved.
        let wakes = |times: u64| {
            let before = thread.sleeps()?;
            until("it has been woken", || match thread.sleeps() {
                Some(now) if now < before + times => None,
                seen => Some(seen),
            })
        };
        wakes(20).is_some()
            && affinity::set_of(thread.id, &cpus[..1]).is_ok()
            && wakes(20).is_some()
    }) else {
        return;
    };
    let why = reasons(&run);
    assert!(why.iter().any(|why| why.contains("wake-ups of the thread pinned")), "{why:?}");
}

/// What the client does before it measures: each at least one sleep, as it waits blocked.
const WARM_UPS: u64 = 1_000;
/// Messages are measured for 400 ms, and one that is not answered for a second is given up.
const WITHIN_THE_ROW: Duration = Duration::from_millis(300);
const BEFORE_IT_IS_GIVEN_UP: Duration = Duration::from_millis(700);

#[test]
fn a_reflector_that_is_killed_is_noticed_and_its_row_has_no_maximum() {
    let _alone = program::alone();
    let Some(run) = disturbed(|started| {
        let client = Task::named(started.0.id(), "client/0");
        let reflector = Task::first(program::reflector_of(started.0.id()));
        let now = || Duration::from_nanos(clock_ns(Clock::Monotonic));
        // The last look at which it did not measure yet, until one at which it does.
        let mut warming = now();
        let measures = until("messages are measured", || match (now(), client.sleeps()) {
            (at, Some(sleeps)) if sleeps < WARM_UPS => {
                warming = at;
                None
            }
            (_, Some(sleeps)) if sleeps < 2 * WARM_UPS => None,
            (_, seen) => Some(seen),
        });
        // Stopped first, so that a request waits for it when it dies: one that dies between two requests
        // refuses the next, and none was under way.
        let stopped = now();
        let within = measures.is_some() && stopped.saturating_sub(warming) < WITHIN_THE_ROW;
        let stops = within && signal::send_to_process(reflector.id, SIGSTOP).is_ok();
        let stays = stops
            && until("it has stopped", || match reflector.state() {
                Some('T') => Some(true),
                None | Some('Z') => Some(false),
                _ => None,
            });
        let waits = stays
            && until("a request waits for it", || {
                let before = client.asleep();
                std::thread::sleep(Duration::from_millis(20));
                match (before, client.asleep()) {
                    (Some(before), Some(after)) if before == after => Some(true),
                    _ => (!client.is_there()).then_some(false),
                }
            });
        let killed = waits && signal::send_to_process(reflector.id, SIGKILL).is_ok();
        killed && now().saturating_sub(stopped) < BEFORE_IT_IS_GIVEN_UP
    }) else {
        return;
    };
    let why = reasons(&run).join("; ");
    assert!(why.contains("signal: 9") && why.contains("message, same core*"), "{why}");
    let cut = run.series.iter().find(|series| series.name == "unix-same-core").unwrap();
    assert_eq!(cut.label, "message, same core*");
    let censored = cut.censored.expect("the request under way was given up");
    assert_eq!((cut.max, censored.above), (None, Nanos::SECOND));
    assert!(cut.quantiles.iter().all(|q| q.value.is_none_or(|value| value < censored.above)));
    // The other rows are as whole as ever.
    let whole = run.series.iter().find(|series| series.name == "udp-same-core").unwrap();
    assert!(whole.n > 0 && !whole.label.contains('*'), "{whole:?}");
    assert_eq!(whole.max.is_none(), whole.censored.is_some(), "{whole:?}");
}

#[test]
fn guards_and_housekeeping_hold_through_all_parts_and_counters_cover_them() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    if !needs::root() {
        return;
    }
    if !Path::new(HELD).exists() {
        return needs::absent("this kernel has no /dev/cpu_dma_latency");
    }
    let measured = *cpus.last().unwrap();
    let again: Option<(Recorded, Seen)>;
    let within = |of: &(Recorded, Seen)| of.1.iter().all(Option::is_some);
    let of = if within(looked_at()) {
        looked_at()
    } else {
        again = (1..TRIES).map(|_| look_at_one()).find(within);
        let Some(of) = &again else { return needs::spoilt("no look came within a part") };
        of
    };
    let (Recorded { run, .. }, seen) = of;
    for (here, holds) in seen.iter().flatten() {
        assert!(!here.contains(&measured), "the main thread may use {here:?}");
        assert_eq!(*holds, 1, "idle states are not held off");
    }
    // A tenth of: gaps 16 s, readings 5 s, wake-ups 10 s, two or more kinds of messages 4 s each.
    let over = run.evidence.counted_over.unwrap();
    assert!(over >= Nanos(3_900_000_000), "{over}");
}

#[test]
fn counters_of_proc_cover_what_was_measured_and_not_what_came_before() {
    let _alone = program::alone();
    let warmup = Nanos(2 * Nanos::SECOND.0);
    let begun = clock_ns(Clock::Monotonic);
    let Recorded { run, .. } = program::recorded("gaps --duration 100ms --warmup 2s --no-trace");
    let whole = Nanos(clock_ns(Clock::Monotonic) - begun);
    let gaps = &run.gaps[0];
    let elapsed = gaps.end.since(gaps.start).to_nanos(run.clock.hz);
    let over = run.evidence.counted_over.unwrap();
    // With the warm-up it would be nearly all the time that the program ran.
    assert!(over >= elapsed, "{over} for {elapsed}");
    assert!(over.0 + warmup.0 < whole.0, "{over} of {whole}, {warmup} of them before");
}

/// Runs with this affinity and gives what was said.
fn restricted(cpus: &[CpuId], words: &[&str]) -> (Option<i32>, String, Run) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command: Command = whylate(words.iter().copied());
    command.arg("-o").arg(&directory);
    // The child of this thread begins with this thread's affinity.
    let before = affinity::get();
    affinity::set(cpus).unwrap();
    let output = command.output();
    affinity::set(&before).unwrap();
    let output = output.unwrap();
    (output.status.code(), program::said(&output), program::read(&directory))
}

#[test]
fn a_callers_affinity_says_what_is_measured_and_house_is_kept_outside_of_it() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let words = ["gaps", "--duration", "100ms", "--warmup", "50ms", "--no-trace"];
    let (_, said, run) = restricted(&[cpus[0]], &words);
    assert_eq!(run.gaps[0].cpu, cpus[0], "{said}");
    let crowded = |w: &Warning| matches!(w, Warning::NoHousekeepingCpu);
    assert!(!run.warnings.iter().any(crowded), "CPU {} is free: {said}", cpus[1]);
    assert_eq!(run.settings["housekeeping"].to_string(), cpus[1].to_string());
    let house = cpus[0].to_string();
    let measured = cpus[1].to_string();
    let words = [&words[..], &["--cpus", &measured, "--housekeeping", &house]].concat();
    let (_, said, run) = restricted(&[cpus[1]], &words);
    assert_eq!(run.settings["housekeeping"].to_string(), house, "{said}");
}

#[test]
fn a_checkup_of_short_parts_announces_none_and_takes_one_cpu() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let said = String::from_utf8_lossy(&checkup().output.stderr).into_owned();
    let lines = ["gaps: ", "two readings of the counter: ", "timer wake-ups: ", "UDP, same core: "];
    for line in lines {
        assert!(!said.lines().any(|said| said.starts_with(line)), "`{line}` in {said}");
    }
    assert!(!said.contains("cpu_dma_latency"), "{said}");
    let list = format!("{},{}", cpus[0], cpus[1]);
    let output = whylate(["--cpus", &list]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(program::said(&output).contains("names 2 CPUs"), "{}", program::said(&output));
}
