//! `whylate switch-cost`: kinds of switches told apart by evidence, working sets, and what can fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use whylate_host::guard::RtThrottling;
use whylate_model::Nanos;
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::switch_cost::{Between, Direct, How, Outcome, SwitchCost};
use whylate_stats::Histogram;
use whylate_sys::capability::{self, Cap};

use crate::needs;
use crate::program::{self, Started, record_ending, said, until, whylate};

/// A measuring run: 0, or 4 where the machine changed under it.
const MEASURED: [i32; 2] = [0, 4];

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

/// The cost to expect of what the trace says was asked for; without a trace, by R1.
fn cost(direct: &Direct) -> Option<Nanos> {
    match direct.traced {
        Some(traced) => traced.times?.cluster_median,
        None => direct.times.cluster_median,
    }
}

fn may_yield() -> bool {
    let may = capability::effective().has(Cap::SysNice);
    if !may {
        needs::missing("runners that yield need CAP_SYS_NICE");
    }
    may
}

#[test]
fn switches_are_told_apart_by_evidence_and_a_voluntary_one_costs_less() {
    let _alone = program::alone();
    if !needs::root() || !may_yield() {
        return;
    }
    let recorded = record_ending("switch-cost --direct --duration 1s --no-dma-latency", &MEASURED);
    let run = &recorded.run;
    for between in [Between::Threads, Between::Processes] {
        let (expired, yielded) =
            (row(run, between, How::Involuntary), row(run, between, How::Yield));
        let handed = row(run, between, How::HandOff);
        // The kernel counts a sleep as voluntary, and sched_yield with the expired quanta.
        assert!(expired.kernel.involuntary > 10 * expired.kernel.voluntary.max(1), "{expired:?}");
        assert!(yielded.kernel.involuntary > 10 * yielded.kernel.voluntary.max(1), "{yielded:?}");
        assert!(handed.kernel.voluntary > 10 * handed.kernel.involuntary.max(1), "{handed:?}");
        if let (Some(expired), Some(yielded), Some(handed)) =
            (expired.traced, yielded.traced, handed.traced)
        {
            let most = |part: u64, of: u64| part * 2 > of;
            // Other ordinary threads of this machine have their turns on the CPU, too.
            let alone = expired.switches - expired.with_others;
            assert!(most(expired.runnable, alone), "{expired:?}");
            assert!(
                most(expired.with_tick, expired.switches),
                "a quantum ends in a tick: {expired:?}"
            );
            assert!(most(yielded.runnable, yielded.switches), "{yielded:?}");
            assert!(!most(yielded.with_tick, yielded.switches), "{yielded:?}");
            assert!(most(handed.sleeping, handed.switches), "{handed:?}");
        }
        let (Some(voluntary), Some(involuntary)) = (cost(handed), cost(expired)) else {
            // Times that do not lie together have no cost to expect: the host took part in each.
            return needs::missing("the times of switches did not lie together on this host");
        };
        assert!(voluntary < involuntary, "{between:?}: {voluntary} by hand-off, {involuntary}");
        let quantum = expired.quantum.unwrap();
        assert!(quantum.turns > 10 && quantum.median > Nanos(200_000), "{quantum:?}");
    }
    for series in &run.series {
        assert!(series.min <= series.max && series.n > 0, "{series:?}");
    }
    agrees_with_its_log(&recorded.directory, run);
    let printed =
        said(&whylate(["report".as_ref(), recorded.directory.as_os_str()]).output().unwrap());
    for words in ["threads, hand-off", "kernel's count", "Context switches", "SCHED_RR"] {
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
    let Some(switch) = row(run, Between::Threads, How::HandOff).times.cluster_median else {
        return;
    };
    let words = ["rta", "--task", "3ms 8ms", "--format", "json", "--overhead"];
    let output = whylate(words).arg(directory).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let prediction: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = prediction.to_string();
    assert!(text.contains(&format!("measured in {}", directory.display())), "{text}");
    let charged = format!("\"switch\":{}", switch.0);
    assert!(text.contains(&charged), "{charged}: {text}");
}

#[test]
fn working_sets_have_penalties_with_intervals_or_the_reason_why_not() {
    let _alone = program::alone();
    if !may_yield() {
        return;
    }
    // The largest trial that fits into a test: 2 sizes, 2 x 6 trials at most each.
    let words = "switch-cost --indirect --sizes 16KiB,1MiB --trials 4 --trial 30ms --no-trace \
                 --no-dma-latency --seed 7";
    let recorded = record_ending(words, &MEASURED);
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
                assert!(penalty.switches > 20.0 && penalty.passes_alone > 1.0, "{row:?}");
                assert_eq!(row.reason.is_some(), !penalty.is_shown(), "{row:?}");
            }
            None => assert!(good < 4 && row.reason.is_some(), "{row:?}"),
        }
        let refill = row.refill.expect("passes were timed");
        assert!(refill.warm_ns > 0.0 && refill.cold_ns > 0.0, "{refill:?}");
    }
    // A larger set takes longer to read, by far.
    let warm = |index: usize| cost.indirect[index].refill.unwrap().warm_ns;
    assert!(warm(1) > 5.0 * warm(0), "{} {}", warm(0), warm(1));
    let page = std::fs::read_to_string(recorded.directory.join("report.html")).unwrap();
    assert!(page.contains("working set of each runner") || page.contains("no working set"));
}

#[test]
fn the_kernels_own_quanta_make_trials_without_any_privilege() {
    let _alone = program::alone();
    let words = "switch-cost --indirect --sizes 16KiB,256KiB --quantum kernel --trials 2 \
                 --trial 120ms --no-trace --no-dma-latency --seed 7";
    let recorded = record_ending(words, &MEASURED);
    let cost = found(&recorded.run);
    assert_eq!(recorded.run.settings["quantum"], "the kernel's");
    assert_eq!(cost.trials.unwrap().quantum, None);
    for row in &cost.indirect {
        assert!((2..=6).contains(&row.tried), "{row:?}");
        // Ten runners have quanta of milliseconds each: a handful of switches, and not hundreds.
        let switches = row.penalty.as_ref().map(|penalty| penalty.switches);
        assert!(switches.is_none_or(|n| (5.0..=400.0).contains(&n)), "{row:?}");
        assert_eq!(row.penalty.is_none(), row.tried - row.discarded - row.empty < 2, "{row:?}");
    }
    // One of the two lies beyond the first-level cache of any host.
    let growth = cost.growth.as_ref().expect("two sizes stand beside each other");
    for beyond in &growth.beyond {
        let grows = beyond.more.is_some_and(|more| more.grows());
        assert_eq!(grows, beyond.reason.is_none(), "{beyond:?}");
    }
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
    command.args(["switch-cost", "--duration", "400ms", "--no-trace", "--sizes", "16KiB"]);
    command.args(["--trials", "2", "--trial", "20ms", "--no-dma-latency", "-o"]).arg(&directory);
    let output = command.env("XDG_STATE_HOME", program::state()).output().unwrap();
    assert!(MEASURED.contains(&output.status.code().unwrap_or(-1)), "{}", said(&output));
    let run = program::read(&directory);
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

#[test]
fn a_runner_that_is_killed_costs_its_row_and_leaves_no_child() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(["switch-cost", "--direct", "--duration", "600ms", "--no-trace"]);
    command.args(["--no-dma-latency", "-o"]).arg(&directory);
    let mut started = Started::new(command);
    let victim = until("two runners are processes", || {
        let children = children(started.pid());
        (children.len() == 2).then(|| children[1])
    });
    // They have sat down, and the row has begun.
    std::thread::sleep(std::time::Duration::from_millis(150));
    let killed = Command::new("kill").args(["-KILL", &victim.to_string()]).status().unwrap();
    assert!(killed.success());
    let others = children(started.pid());
    let status = started.status();
    assert!(status.is_some_and(|status| MEASURED.contains(&status)), "{status:?}");
    for pid in others {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
    }
    let run = program::read(&directory);
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
    assert!(found(&run).measured(Between::Processes, How::HandOff).is_some(), "the others went on");
}

#[test]
fn ctrl_c_ends_a_row_at_once_and_keeps_what_it_has() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(["switch-cost", "--duration", "60s", "--no-trace"]);
    command.args(["--no-dma-latency", "-o"]).arg(&directory);
    let mut started = Started::new(command);
    let tasks = format!("/proc/{}/task", started.pid());
    until("two runners are threads", || {
        let names = std::fs::read_dir(&tasks).ok()?.flatten();
        let runners = names.filter(|task| {
            std::fs::read_to_string(task.path().join("comm"))
                .is_ok_and(|name| name.starts_with("runner/"))
        });
        (runners.count() == 2).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    let pid = started.pid().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = started.status();
    assert!(status.is_some_and(|status| MEASURED.contains(&status)), "{status:?}");
    let run = program::read(&directory);
    assert_eq!(run.state, RunState::Stopped);
    let cost = found(&run);
    assert_eq!((cost.direct.len(), cost.indirect.len()), (1, 0), "{cost:?}");
    let first = row(&run, Between::Threads, How::Involuntary);
    assert!(first.times.n > 0 && first.over < Nanos(30_000_000_000), "{first:?}");
}

#[test]
fn an_affinity_that_is_changed_from_outside_spoils_trust() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let last = cpus[cpus.len() - 1].to_string();
    let mut command = whylate(["switch-cost", "--direct", "--duration", "800ms", "--no-trace"]);
    command.args(["--cpus", &last, "--no-dma-latency", "-o"]).arg(&directory);
    let mut started = Started::new(command);
    let tasks = format!("/proc/{}/task", started.pid());
    let runner: i32 = until("a runner is there", || {
        std::fs::read_dir(&tasks).ok()?.flatten().find_map(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let tid = task.file_name().to_str()?.parse().ok()?;
            name.starts_with("runner/1").then_some(tid)
        })
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    let _ = whylate_sys::affinity::set_of(whylate_model::Pid(runner), &cpus[..1]);
    assert_eq!(started.status(), Some(4));
    let run = program::read(&directory);
    let Verdict::Untrustworthy { reasons } = &run.verdict else { panic!("{:?}", run.verdict) };
    assert!(reasons.iter().any(|reason| reason.contains("affinity")), "{reasons:?}");
}

#[test]
fn trials_that_the_kernel_would_cut_are_refused_by_the_name_of_its_limit() {
    let _alone = program::alone();
    let limits = RtThrottling::detect(Path::new("/"));
    if !limits.is_some_and(whylate_host::guard::RtLimits::throttles) {
        return needs::missing("this kernel does not throttle real-time threads");
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
        ("--cpus 4095", 1, "4095"),
    ] {
        let mut command = whylate(["switch-cost"]);
        let output =
            command.args(words.split_whitespace()).arg("-o").arg(&directory).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words}: {}", said(&output));
        assert!(said(&output).contains(what), "{words}: {}", said(&output));
        assert!(!directory.join("run.json").exists(), "{words}");
    }
}
