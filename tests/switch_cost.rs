//! `whylate switch-cost`: kinds of switches and working sets, what is stored and told of them, and what can
//! fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use whylate_host::guard::RtThrottling;
use whylate_model::Nanos;
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::switch_cost::{Between, Direct, DirectRow, How, Outcome, SwitchCost};
use whylate_stats::Histogram;
use whylate_sys::affinity;

use crate::needs;
use crate::program::{self, Started, recorded, said, until, whylate};

fn found(run: &Run) -> &SwitchCost {
    run.switch_cost.as_ref().expect("a run of switch-cost holds what it found")
}

fn row(run: &Run, between: Between, how: How) -> &Direct {
    found(run).measured(between, how).unwrap_or_else(|| {
        let rows: Vec<_> = found(run)
            .direct
            .iter()
            .filter(|row| matches!(row.outcome, Outcome::Refused { .. }))
            .collect();
        panic!("{between:?} {how:?} was not measured: {rows:?}")
    })
}

/// The same; none where a busy host left the runners too little of their CPU for one switch, which is said.
fn row_unless_starved(run: &Run, between: Between, how: How) -> Option<&Direct> {
    let is_starved = |row: &DirectRow| match &row.outcome {
        Outcome::Refused { reason } => reason.starts_with("there was no switch in "),
        Outcome::Measured(_) => false,
    };
    let of = found(run).direct.iter().find(|row| row.between == between && row.how == how)?;
    (!is_starved(of)).then(|| row(run, between, how))
}

#[test]
fn kinds_of_switches_take_turns_and_numbers_log_report_and_prediction_are_one() {
    let _alone = program::alone();
    if !needs::root() || !needs::real_time() {
        return;
    }
    let recorded = recorded("switch-cost --direct --duration 600ms --no-dma-latency");
    let run = &recorded.run;
    for between in [Between::Threads, Between::Processes] {
        for how in [How::Involuntary, How::Yield, How::HandOff] {
            let Some(of) = row_unless_starved(run, between, how) else { continue };
            // In turns, so that what drifts is in all of them; the interval is no narrower than
            // that of the cluster.
            let over = of.repetitions.as_ref().expect("half of 600 ms is three repetitions");
            assert!(over.medians.len() <= 3, "{over:?}");
            let width = |(low, high): (Nanos, Nanos)| high.0 - low.0;
            if let (Some(whole), Some(of_those)) = (of.interval(), over.interval) {
                assert!(width(of_those) <= width(whole), "{of:?}");
            }
            if let (Some(whole), Some(cluster)) = (of.interval(), of.times.cluster_interval) {
                assert!(width(cluster) <= width(whole), "{of:?}");
            }
        }
    }
    for series in &run.series {
        assert!(series.min <= series.max && series.n > 0, "{series:?}");
    }
    agrees_with_its_log(&recorded.directory, run);
    let printed =
        said(&whylate(["report".as_ref(), recorded.directory.as_os_str()]).output().unwrap());
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = ["threads, hand-off", "kernel's count", "Context switches", "SCHED_RR", "contam."];
    for words in words.into_iter().chain(["kinds took turns"]) {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(page.contains("Times of context switches"));
    assert!(page.contains("Context switches by evidence"), "what the terminal says, the page says");
    predicts(&recorded.directory, run);
}

/// Numbers and histogram log are one store.
fn agrees_with_its_log(directory: &Path, run: &Run) {
    let log = RunDir::open(directory).unwrap().read_histograms().unwrap();
    let mut pooled: BTreeMap<String, Histogram> = BTreeMap::new();
    for (series, _, _, histogram) in log {
        pooled.entry(series).or_default().add(&histogram);
    }
    for row in &found(run).direct {
        let Outcome::Measured(direct) = &row.outcome else { continue };
        let logged = &pooled[&direct.series];
        assert_eq!(logged.len(), direct.times.n, "{row:?}");
        assert_eq!(logged.min().map(Nanos), Some(direct.times.shortest), "{row:?}");
        assert_eq!(logged.max().map(Nanos), Some(direct.times.max), "{row:?}");
    }
}

/// `rta` takes what was measured for its overheads.
fn predicts(directory: &Path, run: &Run) {
    let found = row_unless_starved(run, Between::Threads, How::HandOff);
    let Some(switch) = found.and_then(|of| of.times.cluster_median) else { return };
    let words = ["rta", "--task", "3ms 8ms", "--format", "json", "--overhead"];
    let output = whylate(words).arg(directory).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let prediction: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = prediction.to_string();
    assert!(text.contains(&format!("measured in {}", directory.display())), "{text}");
    let charged = format!("\"switch_ns\":{}", switch.0);
    assert!(text.contains(&charged), "{charged}: {text}");
}

#[test]
fn working_sets_have_penalties_with_intervals_or_the_reason_why_not() {
    let _alone = program::alone();
    if !needs::real_time() {
        return;
    }
    // The largest trial that fits into a test: 2 sizes, 2 x 6 trials at most each.
    let words = "switch-cost --indirect --sizes 16KiB,1MiB --trials 4 --trial 30ms --no-trace \
                 --no-dma-latency --seed 7";
    let recorded = recorded(words);
    let cost = found(&recorded.run);
    assert!(cost.direct.is_empty());
    assert_eq!(cost.indirect.iter().map(|row| row.bytes).collect::<Vec<_>>(), [16 << 10, 1 << 20]);
    for row in &cost.indirect {
        assert!(row.tried <= 12 && row.discarded + row.empty <= row.tried, "{row:?}");
        let good = row.tried - row.discarded - row.empty;
        match &row.penalty {
            Some(penalty) => {
                assert_eq!((penalty.pairs, good), (4, 4), "{row:?}");
                assert!(penalty.interval_ns.0 <= penalty.mean_ns, "{row:?}");
                assert_eq!(row.reason.is_some(), !penalty.is_shown(), "{row:?}");
            }
            None => assert!(good < 4 && row.reason.is_some(), "{row:?}"),
        }
        let passes = row.passes.expect("passes were timed");
        assert!(passes.warm_ns > 0.0 && passes.cold_ns > 0.0, "{passes:?}");
        assert!(row.discarded_by_host <= row.discarded, "{row:?}");
    }
    predicted_by_bandwidth(cost, &said(&recorded.output));
    let trials = cost.trials.unwrap();
    // A tick is no break of those that count; where none was found that is said.
    assert!(trials.tick.is_none_or(|tick| trials.longest_break > tick), "{trials:?}");
    let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(page.contains("working set of each runner") || page.contains("no working set"));
}

/// Each cache and memory has a bandwidth or a reason, and what refilling takes follows from them.
fn predicted_by_bandwidth(cost: &SwitchCost, told: &str) {
    if cost.caches.is_empty() {
        assert!(cost.bandwidths.is_empty() && cost.indirect.iter().all(|row| row.refill.is_none()));
        return;
    }
    assert_eq!(cost.bandwidths.len(), cost.caches.len() + 1, "{:?}", cost.bandwidths);
    for of in &cost.bandwidths {
        match of.gb_per_s {
            Some(rate) => assert!(rate > 0.0 && of.pieces > 0 && of.reason.is_none(), "{of:?}"),
            None => assert!(of.reason.is_some(), "{of:?}"),
        }
    }
    if let [Some(small), Some(large)] = [0, 1].map(|index: usize| cost.indirect[index].refill) {
        for of in [small, large] {
            assert!((0.0..=1.0).contains(&of.reached), "{cost:?}");
            assert!(of.cold_ns > 0.0 && of.warm_ns > 0.0, "{cost:?}");
        }
    }
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["What filling the caches again should take", "timed cold"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let some = cost.bandwidths.iter().any(|of| of.gb_per_s.is_some());
    assert_eq!(told.contains("GB/s (a set of"), some, "{told}");
}

#[test]
fn the_kernels_own_quanta_make_trials_without_any_privilege() {
    let _alone = program::alone();
    let words = "switch-cost --indirect --sizes 16KiB,256KiB --quantum kernel --trials 2 \
                 --trial 120ms --no-trace --no-dma-latency --seed 7";
    let recorded = recorded(words);
    let cost = found(&recorded.run);
    assert_eq!(recorded.run.settings["quantum"], "the kernel's".into());
    assert_eq!(cost.trials.unwrap().quantum, None);
    for row in &cost.indirect {
        assert!((2..=6).contains(&row.tried), "{row:?}");
        assert_eq!(row.penalty.is_none(), row.tried - row.discarded - row.empty < 2, "{row:?}");
    }
    // One of the two lies beyond the first-level cache of any host.
    let growth = cost.growth.as_ref().expect("two sizes stand beside each other");
    assert_eq!(growth.beyond.iter().map(|of| of.bytes).collect::<Vec<_>>(), [256 << 10]);
    let text = said(&recorded.output);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("quanta are the kernel's") && text.contains("Does it grow"), "{text}");
}

#[test]
fn without_real_time_priority_yielding_is_refused_by_name_and_the_rest_is_measured() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let Some(setpriv) = needs::program("setpriv") else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = Command::new(setpriv);
    // Root without the capability, and without the limit that would stand in for it.
    command.args(["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"]);
    command.arg(program::path());
    command.args(["switch-cost", "--duration", "200ms", "--no-trace", "--sizes", "16KiB"]);
    command.args(["--trials", "2", "--trial", "20ms", "--no-dma-latency", "-o"]).arg(&directory);
    let output = command.env("XDG_STATE_HOME", program::state()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    for row in &found(&run).direct {
        match (&row.outcome, row.how) {
            (Outcome::Refused { reason }, How::Yield) => {
                assert!(reason.contains("CAP_SYS_NICE"), "{reason}");
            }
            (Outcome::Measured(direct), How::Involuntary | How::HandOff) => {
                assert!(direct.times.n > 0, "{row:?}");
            }
            _ => panic!("{row:?}"),
        }
    }
    let reason = found(&run).indirect[0].reason.as_deref().unwrap();
    assert!(reason.contains("CAP_SYS_NICE"), "{reason}");
}

/// Processes whose parent this is.
fn children(of: whylate_model::Pid) -> Vec<i32> {
    let is_child = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.is_some_and(|parent| parent.trim().parse() == Ok(of.0))
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

/// CPU time that a thread has had.
fn had(process: whylate_model::Pid, thread: i32) -> Duration {
    let path = format!("/proc/{process}/task/{thread}/schedstat");
    let told = std::fs::read_to_string(path).unwrap_or_default();
    let ns = told.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// A runner that has had so much has sat down, and its row has begun.
const AT_WORK: Duration = Duration::from_millis(50);

/// Runners of a process that are threads: their ids.
fn runners(of: whylate_model::Pid) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let runner = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        name.starts_with("runner/").then(|| task.file_name().to_str()?.parse().ok())?
    };
    tasks.filter_map(runner).collect()
}

#[test]
fn a_runner_that_is_killed_costs_its_row_and_leaves_no_child() {
    let _alone = program::alone();
    if !needs::times_of_threads() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    // A repetition of a kind takes a tenth of it: far longer than the host keeps a test from its CPU.
    let mut command = whylate(["switch-cost", "--direct", "--duration", "12s", "--no-trace"]);
    command.args(["--no-dma-latency", "-o"]).arg(&directory);
    let mut started = Started::new(command);
    let victim = until("two runners are processes and at work", || {
        let children = children(started.pid());
        let victim = *children.get(1)?;
        (had(whylate_model::Pid(victim), victim) > AT_WORK).then_some(victim)
    });
    let killed = Command::new("kill").args(["-KILL", &victim.to_string()]).status().unwrap();
    assert!(killed.success());
    let others = children(started.pid());
    until("the others went on", || {
        let run = RunDir::open(&directory).ok()?.read_run().ok()?;
        found(&run).measured(Between::Processes, How::HandOff).map(|_| ())
    });
    let pid = started.pid().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = started.status();
    assert!(matches!(status, Some(0 | 4)), "{status:?}");
    for pid in others {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
    }
    let run = program::read(&directory);
    program::ended(status, &run);
    let lost: Vec<&str> = found(&run)
        .direct
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Refused { reason } if reason.contains("was lost") => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(lost.len(), 1, "{:?}", found(&run).direct);
    assert!(lost[0].contains("signal"), "{lost:?}");
}

#[test]
fn ctrl_c_ends_a_row_at_once_and_keeps_what_it_has() {
    let _alone = program::alone();
    if !needs::times_of_threads() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(["switch-cost", "--duration", "60s", "--no-trace"]);
    command.args(["--no-dma-latency", "-o"]).arg(&directory);
    let mut started = Started::new(command);
    let pid = started.pid();
    until("two runners are threads and at work", || {
        let runners = runners(pid);
        let at_work = runners.iter().filter(|runner| had(pid, **runner) > AT_WORK).count();
        (at_work == 2).then_some(())
    });
    let pid = started.pid().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = started.status();
    let run = program::read(&directory);
    program::ended(status, &run);
    assert_eq!(run.state, RunState::Stopped);
    let cost = found(&run);
    assert_eq!((cost.direct.len(), cost.indirect.len()), (1, 0), "{cost:?}");
    let first = row(&run, Between::Threads, How::Involuntary);
    assert!(first.times.n > 0 && first.over < Nanos(30_000_000_000), "{first:?}");
}

#[test]
fn an_affinity_that_is_changed_from_outside_spoils_trust() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2).filter(|_| needs::times_of_threads()) else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let last = cpus[cpus.len() - 1].to_string();
    let mut command = whylate(["switch-cost", "--direct", "--duration", "300ms", "--no-trace"]);
    command.args(["--cpus", &last, "--no-dma-latency", "-o"]).arg(&directory);
    let mut started = Started::new(command);
    let pid = started.pid();
    // Every runner that is at work is moved, until all is over: some repetition is hit in its midst.
    let status = until("the run is over", || {
        for runner in runners(pid).into_iter().filter(|runner| had(pid, *runner) > AT_WORK / 10) {
            let _ = affinity::set_of(whylate_model::Pid(runner), &cpus[..1]);
        }
        started.0.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(4));
    let run = program::read(&directory);
    program::ended(status.code(), &run);
    let Verdict::Untrustworthy { reasons } = &run.verdict else { panic!("{:?}", run.verdict) };
    assert!(reasons.iter().any(|reason| reason.contains("affinity")), "{reasons:?}");
}

#[test]
fn trials_that_the_kernel_would_cut_are_refused_by_the_name_of_its_limit() {
    let _alone = program::alone();
    let limits = RtThrottling::detect(Path::new("/"));
    if !limits.is_some_and(whylate_host::guard::RtLimits::throttles) {
        return needs::absent("this kernel does not throttle real-time threads");
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(["switch-cost", "--indirect", "--trial", "5s", "-o"]);
    let output = command.arg(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("sched_rt_runtime_us"), "{}", said(&output));
    assert!(!directory.join("run.json").exists());
}

#[test]
fn working_sets_that_are_nothing_or_do_not_fit_are_refused_before_measuring() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    for (words, status, what) in [
        ("--sizes 0", 2, "too small"),
        ("--sizes 16KiB,", 2, "size"),
        ("--sizes 1023T", 1, "do not fit"),
        ("--quantum 1ns", 2, "no quantum"),
        ("--direct --indirect", 2, "cannot be used"),
        ("--duration 1h", 2, "too long"),
        ("--cpus 4095", 2, "4095"),
    ] {
        let mut command = whylate(["switch-cost"]);
        let output =
            command.args(words.split_whitespace()).arg("-o").arg(&directory).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words}: {}", said(&output));
        assert!(said(&output).contains(what), "{words}: {}", said(&output));
        assert!(!directory.join("run.json").exists(), "{words}");
    }
}
