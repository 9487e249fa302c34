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
use whylate_sys::affinity;
use whylate_sys::capability::{self, Cap};

use crate::program::{self, Started, record_ending, said, until, whylate};
use crate::{needs, pairs};

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

/// The interval of the cost to expect, of what the trace says was asked for; without a trace, by R1.
fn interval(direct: &Direct) -> Option<(Nanos, Nanos)> {
    match direct.traced {
        Some(traced) => traced.times?.cluster_interval,
        None => direct.interval(),
    }
}

fn may_yield() -> bool {
    let may = capability::effective().has(Cap::SysNice);
    if !may {
        needs::missing("runners that yield need CAP_SYS_NICE");
    }
    may
}

/// A kind has five repetitions of a tenth of a second each, and needs two: the host took part in four
/// where it and others had no less than a tenth of these.
const SPOILS_NS: f64 = 0.1 * 4.0 * 100e6;

/// Each kind has repetitions whose times lie together, or which has too few.
fn is_repeated(run: &Run) -> Result<(), String> {
    for between in [Between::Threads, Between::Processes] {
        for how in [How::Involuntary, How::Yield, How::HandOff] {
            let of = row(run, between, how).repetitions.as_ref();
            let good = of.map_or(0, |of| of.medians.len());
            if good < 2 {
                return Err(format!("{between:?} {how:?} has {good} good repetitions: {of:?}"));
            }
        }
    }
    Ok(())
}

#[test]
#[ignore = "live figure: to accept"]
fn switches_are_told_apart_by_evidence_and_a_voluntary_one_costs_less() {
    let _alone = program::alone();
    if !needs::root() || !may_yield() {
        return;
    }
    let words = "switch-cost --direct --duration 1s --no-dma-latency";
    let measured = || {
        let recorded = record_ending(words, &MEASURED);
        is_repeated(&recorded.run).map(|()| recorded)
    };
    let Some(recorded) = needs::unless_taken(&affinity::get(), SPOILS_NS, measured) else { return };
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
        if let (Some(voluntary), Some(involuntary)) = (interval(handed), interval(expired)) {
            let below = voluntary.1 < involuntary.0;
            let told = if below { "is below" } else { "is not told from" };
            pairs::say(&format!(
                "{between:?}: by hand-off {} .. {}, which {told} {} .. {} of expired quanta",
                voluntary.0, voluntary.1, involuntary.0, involuntary.1
            ));
            assert!(
                voluntary.0 < involuntary.1,
                "a hand-off is shown to cost more: {handed:?} {expired:?}"
            );
        } else {
            // Times that do not lie together have no cost to expect: the host took part in each.
            needs::spoilt("the times of switches did not lie together on this host");
        }
        for of in [expired, yielded, handed] {
            // In turns, so that what drifts is in all of them; the interval is no narrower than
            // that of the cluster.
            let over = of.repetitions.as_ref().expect("half of 1 s is five repetitions");
            assert!((2..=5).contains(&over.medians.len()), "{over:?}");
            let width = |(low, high): (Nanos, Nanos)| high.0 - low.0;
            let whole = of.interval().map(width);
            assert!(over.interval.map(width) <= whole, "{of:?}");
            assert!(of.times.cluster_interval.map(width) <= whole, "{of:?}");
        }
        let quantum = expired.quantum.unwrap();
        assert!(quantum.turns > 10 && quantum.median > Nanos(200_000), "{quantum:?}");
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
#[ignore = "live figure: to accept"]
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
        let passes = row.passes.expect("passes were timed");
        assert!(passes.warm_ns > 0.0 && passes.cold_ns > 0.0, "{passes:?}");
        assert!(row.discarded_by_host <= row.discarded, "{row:?}");
    }
    // A larger set takes longer to read, by far.
    let warm = |index: usize| cost.indirect[index].passes.unwrap().warm_ns;
    assert!(warm(1) > 5.0 * warm(0), "{} {}", warm(0), warm(1));
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
            Some(rate) => assert!(rate > 0.0 && of.pieces > 100 && of.reason.is_none(), "{of:?}"),
            None => assert!(of.reason.is_some(), "{of:?}"),
        }
    }
    if let [Some(small), Some(large)] = [0, 1].map(|index: usize| cost.indirect[index].refill) {
        assert!(small.cold_ns < large.cold_ns && small.warm_ns < large.warm_ns, "{cost:?}");
        assert!((0.0..=1.0).contains(&small.reached) && large.reached <= small.reached, "{cost:?}");
    }
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["What filling the caches again should take", "timed cold", "GB/s (a set of"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

/// Recordings that are tried until the difference stands out of the host's noise.
const TRIES: usize = 3;

#[test]
#[ignore = "live figure: to accept"]
fn the_cost_grows_beyond_the_first_level_cache_where_the_host_lets_it_be_seen() {
    let _alone = program::alone();
    if !may_yield() {
        return;
    }
    let words = "switch-cost --indirect --sizes 16KiB,8MiB --trials 6 --trial 60ms --no-trace \
                 --no-dma-latency --seed 7";
    let mut too_noisy = false;
    for _ in 0..TRIES {
        let recorded = record_ending(words, &MEASURED);
        let cost = found(&recorded.run);
        let growth = cost.growth.as_ref().expect("two sizes stand beside each other");
        let [beyond] = growth.beyond.as_slice() else { panic!("{growth:?}") };
        assert_eq!(beyond.bytes, 8 << 20);
        let Some(more) = beyond.more else {
            pairs::say(&format!("no claim: {:?}", beyond.reason));
            too_noisy = true;
            continue;
        };
        let (low, high) = more.interval_ns;
        pairs::say(&format!(
            "8 MiB cost {:.0} ns more than 16 KiB: {low:.0} .. {high:.0}",
            more.mean_ns
        ));
        if low > 0.0 {
            assert!(more.grows() && beyond.reason.is_none(), "{beyond:?}");
            return;
        }
        assert!(high > 0.0, "it is shown to cost less: {more:?}");
        // What filling the caches again takes must show where pairs scatter by half of that at most.
        let large = cost.indirect.iter().find(|row| row.bytes == beyond.bytes).unwrap();
        let expected = large.passes.expect("passes were timed").difference_ns;
        let width = (high - low) / 2.0;
        pairs::say(&format!("no claim: +-{width:.0} ns, and refilling takes {expected:.0} ns"));
        too_noisy |= width > expected / 2.0;
    }
    assert!(too_noisy, "pairs scatter by less than half of what refilling takes: it must be seen");
}

#[test]
#[ignore = "live figure: to accept"]
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
    assert_eq!(growth.beyond.iter().map(|of| of.bytes).collect::<Vec<_>>(), [256 << 10]);
    let text = said(&recorded.output);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("quanta are the kernel's") && text.contains("Does it grow"), "{text}");
}

#[test]
#[ignore = "live figure: to accept"]
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
#[ignore = "live figure: to accept"]
fn a_runner_that_is_killed_costs_its_row_and_leaves_no_child() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    // A repetition of a kind takes a tenth of it: far longer than the host keeps a test from its CPU.
    let mut command = whylate(["switch-cost", "--direct", "--duration", "12s", "--no-trace"]);
    command.args(["--no-dma-latency", "-o"]).arg(&directory);
    let mut started = Started::new(command);
    let victim = until("two runners are processes", || {
        let children = children(started.pid());
        (children.len() == 2).then(|| children[1])
    });
    // They have sat down, and the row has begun.
    std::thread::sleep(std::time::Duration::from_millis(100));
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
}

#[test]
#[ignore = "live figure: to accept"]
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
#[ignore = "live figure: to accept"]
fn an_affinity_that_is_changed_from_outside_spoils_trust() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let last = cpus[cpus.len() - 1].to_string();
    let mut command = whylate(["switch-cost", "--direct", "--duration", "6s", "--no-trace"]);
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
    std::thread::sleep(std::time::Duration::from_millis(100));
    let _ = affinity::set_of(whylate_model::Pid(runner), &cpus[..1]);
    // It is seen by the end of the repetition; the others say nothing more of it.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let pid = started.pid().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
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
