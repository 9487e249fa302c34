//! Answers of recorded runs with planted numbers, word by word.

use whylate_model::threads::{Deadlines, MissCause};

use super::*;
use crate::numbers::count;
use crate::timeline::tests::recorded;
use whylate_model::cause::CauseTotal;

fn of_threads(threads: &[ThreadSummary]) -> String {
    super::of_threads(threads).to_string()
}

fn of_wakes(run: &Run) -> String {
    super::of_wakes(run).to_string()
}

fn taken_by(run: &Run, gaps: &GapSummary) -> String {
    Sentence::from(super::taken_by(run, gaps)).to_string()
}

/// The recorded run with these numbers in it.
fn planted() -> Run {
    let mut run = recorded();
    run.verdict = Verdict::Trustworthy;
    run.gaps[0].lost_share = 0.477;
    run.gaps[0].lost_share_interval = Some((0.397, 0.535));
    let clock = run.clock.hz;
    run.gaps[0].end = run.gaps[0].start + Nanos::SECOND.to_ticks(clock);
    run.series[0].max = Some(Nanos(12_100_000));
    run.causes.truncate(1);
    run.causes[0].cpu = Some(run.gaps[0].cpu);
    run.causes[0].cause = Cause::Host;
    (run.causes[0].lost_ns, run.causes[0].share_of_lost) = (63.1e6, 0.631);
    run.causes.push(CauseTotal {
        cause: Cause::PageFault,
        lost_ns: 36.9e6,
        share_of_lost: 0.369,
        ..run.causes[0].clone()
    });
    run
}

#[test]
fn a_run_is_answered_with_its_numbers() {
    let mut run = planted();
    assert_eq!(
        answer(&run),
        "CPU 1 lost 48% of 1 s (95% interval 40–54%), most of it (63%) \
         with no kernel event; \
         the longest gap was 12.1 ms."
    );
    // Steal that bears it out names the hypervisor, and less of it does not.
    for (steal, said) in [(26e6, "(63%) with no kernel event"), (32e6, "(63%) to the hypervisor")] {
        run.evidence.steal_ns = Some(steal);
        assert!(answer(&run).contains(said), "{}", answer(&run));
    }
    run.gaps.push(GapSummary { lost_share: 0.01, ..run.gaps[0].clone() });
    assert!(answer(&run).starts_with("Of 2 threads that of CPU 1 fared worst: it lost 48% of"));
}

#[test]
fn the_answer_of_wake_ups_counts_those_skipped_at_their_own_latency() {
    let mut run = kept_wakes();
    let with_median = |run: &mut Run, name: &str, median: u64| {
        let series = run.series.iter_mut().find(|series| series.name == name).unwrap();
        series.quantiles[0].value = Some(Nanos(median));
    };
    with_median(&mut run, "wake-HR", 45_600);
    with_median(&mut run, "wake-corrected-HR", 194_000);
    run.wakes[0].skipped = Some(2_395);
    assert!(answer(&run).starts_with("Wake-up latency: p50 194 µs, worst "), "{}", answer(&run));
    assert!(
        answer(&run).ends_with("2,395 wake-ups were skipped, and count at their own latency."),
        "{}",
        answer(&run)
    );
    // A timer that skips nothing has nothing to correct.
    run.series.retain(|series| series.name != "wake-corrected-HR");
    run.wakes[0].skipped = None;
    assert!(answer(&run).starts_with("Wake-up latency: p50 45.6 µs"));
}

#[test]
fn counts_of_threads_that_no_sum_holds_end_at_the_largest() {
    let mut run = kept("threads");
    let judged = run.threads.iter().position(|of| of.deadlines.is_some()).unwrap();
    let mut thread = run.threads.swap_remove(judged);
    if let Some(deadlines) = &mut thread.deadlines {
        (deadlines.hits, deadlines.misses) = (u64::MAX, u64::MAX);
    }
    (thread.received, thread.blocks) = (Nanos(u64::MAX), u64::MAX);
    let largest = count(u64::MAX);
    let said = of_threads(&[thread.clone(), thread.clone()]);
    assert!(said.starts_with(&format!("{largest} of {largest} deadlines were missed")), "{said}");
    thread.deadlines = None;
    let said = of_threads(&[thread.clone(), thread]);
    assert!(said.ends_with(&format!("in {largest} blocks.")), "{said}");
}

fn kept_wakes() -> Run {
    kept("wake")
}

fn kept(kind: &str) -> Run {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs");
    let path = path.join(kind);
    whylate_model::RunDir::open(path).unwrap().read_run().unwrap()
}

#[test]
fn untrustworthy_killed_and_stopped_runs_say_so() {
    let mut run = planted();
    run.verdict = Verdict::Untrustworthy { reasons: vec!["the closure is broken".to_owned()] };
    assert!(
        answer(&run).ends_with("12.1 ms; do not rely on this: the closure is broken."),
        "{}",
        answer(&run)
    );
    run.verdict = Verdict::Pending;
    run.state = RunState::Running;
    assert!(answer(&run).starts_with("Up to the last checkpoint of a run that did not end: CPU 1"));
    run.state = RunState::Stopped;
    assert!(answer(&run).starts_with("Until it was stopped: CPU 1 lost"));
    run.verdict = Verdict::LimitExceeded { what: "a gap of 3 ms".to_owned() };
    assert!(answer(&run).ends_with("; a limit was exceeded: a gap of 3 ms."));
}

#[test]
fn the_longest_stall_of_a_check_up_is_that_of_any_of_its_parts() {
    let mut run = planted();
    let readings = Series {
        name: run.series[0].name.replace("gap-", "delta-"),
        definition: Definition::ReadDelta,
        max: Some(Nanos(12_000_000)),
        ..run.series[0].clone()
    };
    let of_another_cpu =
        Series { name: "delta-cpu7".to_owned(), max: Some(Nanos(1 << 40)), ..readings.clone() };
    run.series.extend([readings, of_another_cpu]);
    assert!(answer(&run).contains("; the longest gap was 12.1 ms"), "{}", answer(&run));
    run.series[1].max = Some(Nanos(303_000_000));
    let told = "; the longest stall was 303 ms, between two readings of the counter.";
    assert!(answer(&run).contains(told), "{}", answer(&run));
}

#[test]
fn nothing_is_claimed_of_what_is_not_there() {
    let mut run = planted();
    for total in &mut run.causes {
        total.lost_ns = 0.0;
    }
    assert!(answer(&run).contains(", to what is not known; the longest"), "{}", answer(&run));
    run.causes.clear();
    assert!(answer(&run).contains("–54%); the longest gap"), "{}", answer(&run));
    run.gaps[0].gaps = 0;
    run.gaps[0].threshold = Nanos(160).to_ticks(run.clock.hz);
    assert_eq!(
        answer(&run),
        "CPU 1 lost nothing in 1 s that the loop could see: no gap above 160 ns."
    );
    run.gaps.clear();
    run.series[0].n = 827;
    run.series[0].quantiles.clear();
    assert_eq!(
        answer(&run),
        "gaps, CPU 1: half of 827 within an unknown time, too few for a p99.9, the longest \
         12.1 ms."
    );
    run.series.clear();
    assert_eq!(answer(&run), "Nothing was measured.");
}

fn missed(hits: u64, misses: u64, causes: &[(Cause, u64)]) -> Deadlines {
    let causes = causes.iter().cloned().map(|(cause, misses)| MissCause { cause, misses });
    let causes = causes.collect();
    Deadlines {
        hits,
        misses,
        skipped: 0,
        unfinished: 0,
        unrecorded: 0,
        miss_share_interval: None,
        causes,
        unexplained: None,
        first: Vec::new(),
        ordinary: None,
    }
}

#[test]
fn deadlines_are_added_up_and_the_thread_that_missed_most_is_named_with_its_largest_cause() {
    let mut threads = kept("threads").threads;
    let mut said = |of: [Option<Deadlines>; 3]| {
        threads.iter_mut().zip(of).for_each(|(thread, of)| thread.deadlines = of);
        of_threads(&threads)
    };
    let few = missed(5, 2, &[(Cause::Host, 2)]);
    let many = missed(10, 7, &[(Cause::Host, 3), (Cause::PageFault, 4)]);
    assert_eq!(
        said([Some(few.clone()), Some(many), None]),
        "9 of 24 deadlines were missed; most of them by thread video, because of page fault (4)."
    );
    let unknown = missed(10, 7, &[(Cause::Unknown, 5), (Cause::Host, 2)]);
    assert_eq!(
        said([Some(few), Some(unknown), None]),
        "9 of 24 deadlines were missed; most of them by thread video."
    );
    let met = |hits| Some(missed(hits, 0, &[]));
    assert_eq!(said([met(1_000), met(5), None]), "All 1,005 deadlines were met.");
    assert!(said([None, None, None]).starts_with("3 threads received "));
    for thread in &mut threads {
        (thread.received, thread.blocks) = (Nanos(2_000_000), 1_000);
    }
    let received = "3 threads received 6 ms of CPU time in 3,000 blocks.";
    assert_eq!(of_threads(&threads), received);
}

#[test]
fn of_several_threads_that_were_woken_the_best_median_and_the_worst_latency_are_named() {
    let mut run = kept_wakes();
    let (wake, thread) = (run.wakes[0].clone(), run.threads[0].clone());
    let template = run.series[0].clone();
    run.series.clear();
    (run.wakes, run.threads) = (Vec::new(), Vec::new());
    for (name, median, max, skipped) in [
        ("a", Some(30_000), 50_000, Some(1)),
        ("b", Some(10_000), 90_000, Some(2)),
        ("c", Some(20_000), 20_000, None),
        ("d", None, 70_000, None),
    ] {
        let mut series = Series { name: format!("wake-{name}"), ..template.clone() };
        series.quantiles[0].value = median.map(Nanos);
        series.max = Some(Nanos(max));
        run.series.push(series);
        run.wakes.push(WakeSummary { thread: name.to_owned(), skipped, ..wake.clone() });
        run.threads.push(ThreadSummary { name: name.to_owned(), ..thread.clone() });
    }
    assert_eq!(
        of_wakes(&run),
        "Wake-up latency: p50 10 µs (best of 4: b), worst 90 µs (worst of 4: b); 3 wake-ups were \
         skipped, and count at their own latency."
    );
    let corrected = Series {
        name: "wake-corrected-a".to_owned(),
        max: Some(Nanos(95_000)),
        ..run.series[0].clone()
    };
    run.series.push(corrected);
    run.wakes.iter_mut().for_each(|wake| wake.skipped = None);
    assert_eq!(
        of_wakes(&run),
        "Wake-up latency: p50 10 µs (best of 4: b), worst 95 µs (worst of 4: a); 0 wake-ups were \
         skipped."
    );
    run.series.iter_mut().for_each(|series| series.quantiles[0].value = None);
    assert_eq!(of_wakes(&run), "No thread was woken often enough for a median.");
}

#[test]
fn the_larger_of_two_causes_is_most_of_what_was_lost_only_where_it_is_more_than_half() {
    let mut run = planted();
    let gaps = run.gaps[0].clone();
    (run.causes[0].lost_ns, run.causes[1].lost_ns) = (50.0, 50.0);
    (run.causes[0].share_of_lost, run.causes[1].share_of_lost) = (0.5, 0.5);
    assert_eq!(taken_by(&run, &gaps), ", the largest part of it (50%) to page fault");
    (run.causes[0].lost_ns, run.causes[0].share_of_lost) = (50.5, 50.5 / 100.5);
    assert_eq!(taken_by(&run, &gaps), ", most of it (50%) with no kernel event");
    run.causes[0].cause = Cause::Hypervisor;
    assert_eq!(taken_by(&run, &gaps), ", most of it (50%) to the hypervisor");
    // What its own CPU lost counts, and that of all only where no CPU is told apart.
    let of_all = CauseTotal { cpu: None, cause: Cause::Nmi, ..run.causes[0].clone() };
    run.causes.push(CauseTotal { lost_ns: 900.0, share_of_lost: 1.0, ..of_all });
    assert_eq!(taken_by(&run, &gaps), ", most of it (50%) to the hypervisor");
    run.causes.retain(|total| total.cpu.is_none());
    assert_eq!(taken_by(&run, &gaps), ", most of it (100%) to NMI");
}

#[test]
fn of_several_series_the_slowest_that_has_samples_is_told_and_of_several_threads_the_worst() {
    let mut run = planted();
    let second = Series { label: "other".to_owned(), max: Some(Nanos(9)), ..run.series[0].clone() };
    let empty = Series { n: 0, max: Some(Nanos(u64::MAX)), ..second.clone() };
    run.series.extend([second, empty]);
    let gaps = std::mem::take(&mut run.gaps);
    assert!(answer(&run).starts_with("Of 3 quantities the slowest: gaps, CPU 1: half of "));
    run.series[1].max = Some(Nanos(13_000_000));
    assert!(answer(&run).starts_with("Of 3 quantities the slowest: other: half of "));
    run.gaps = gaps;
    let mut worse = run.gaps[0].clone();
    (worse.lost_share, worse.series) = (0.9, run.gaps[0].series.replace("cpu1", "cpu2"));
    worse.cpu = whylate_model::CpuId(2);
    run.gaps.push(worse);
    assert!(answer(&run).starts_with("Of 2 threads that of CPU 2 fared worst: it lost 90% of"));
}

#[test]
fn what_has_to_be_known_goes_on_behind_the_answer() {
    assert_eq!(with("It was so.", "and more"), "It was so; and more.");
}

#[test]
fn how_a_run_was_recorded_is_noted() {
    let mut run = planted();
    run.state = RunState::Complete;
    assert_eq!(notes(&run), [""; 0]);
    run.command_line.push("--quick".to_owned());
    run.state = RunState::Stopped;
    let quick = "a quick run: a tenth of the usual time, so less is known about the tail";
    assert_eq!(notes(&run), [quick, "stopped early: everything up to then is here"]);
    run.state = RunState::Running;
    assert!(notes(&run)[1].starts_with("this run did not end"));
    let mut costs = kept("switch-cost");
    costs.command_line.push("--quick".to_owned());
    assert!(notes(&costs)[0].starts_with("a quick run: shorter and fewer trials"));
    run.host.hypervisor = None;
    (run.host.hostname, run.host.cpu_model) = ("box".to_owned(), "Some Xeon".to_owned());
    (run.host.kernel, run.tool_version) = ("6.12".to_owned(), "0.1.0".to_owned());
    assert_eq!(machine(&run), "box, Some Xeon, 2 CPUs, bare metal, Linux 6.12; whylate 0.1.0");
    run.host.hypervisor = Some("KVM".to_owned());
    assert!(machine(&run).contains("2 CPUs, virtual machine (KVM), Linux"));
}

#[test]
fn each_kind_of_run_has_the_answer_of_its_kind() {
    let with = |set: &dyn Fn(&mut Run)| {
        let mut run = planted();
        set(&mut run);
        answer(&run)
    };
    let calibration = crate::calibration::tests::calibration();
    let said = with(&|run| run.calibration = Some(Box::new(calibration.clone())));
    assert_eq!(said, crate::calibration::answer(&calibration).to_string());
    let device = crate::device::tests::device();
    let said = with(&|run| run.device = Some(Box::new(device.clone())));
    assert_eq!(said, crate::device::answer(&device).to_string());
    let costs = crate::switch_cost::tests::planted();
    let run = Run { switch_cost: Some(costs), ..planted() };
    assert!(answer(&run).starts_with(&crate::switch_cost::answer(&run).without_stop().to_string()));
    let watching = crate::breakdown::tests::watching(crate::breakdown::tests::planted(1_000));
    let watched = watching.watched.as_deref().map(crate::breakdown::watched_answer);
    let said = with(&|run| run.watched.clone_from(&watching.watched));
    assert_eq!(Some(said), watched.map(|of| of.to_string()));
    let backends = crate::backends::tests::planted();
    let told = backends.backends.as_deref().map(crate::backends::answer);
    let said = with(&|run| run.backends.clone_from(&backends.backends));
    assert_eq!(Some(said), told.map(|of| of.to_string()));
    let requests = kept("rtt");
    let told = crate::flows::answer(&requests);
    assert!(answer(&requests).starts_with(&told.without_stop().to_string()));
    let threads = kept("threads");
    assert!(answer(&threads).starts_with(of_threads(&threads.threads).trim_end_matches('.')));
}

#[test]
fn a_stall_between_readings_is_told_only_where_it_is_the_longer_one() {
    let mut run = planted();
    let readings = Series {
        name: run.series[0].name.replace("gap-", "delta-"),
        definition: Definition::ReadDelta,
        ..run.series[0].clone()
    };
    run.series.push(readings);
    assert!(answer(&run).ends_with("; the longest gap was 12.1 ms."), "{}", answer(&run));
    // Where no series has it, the longest of the single gaps of its own CPU.
    run.series.clear();
    let (first, gaps) = (run.worst[0].clone(), run.gaps[0].clone());
    let on = |cpu: u32, length| {
        let cpu_before = whylate_model::CpuId(cpu);
        whylate_model::cause::WorstGap { cpu_before, length: Nanos(length), ..first.clone() }
    };
    run.worst = vec![on(1, 5_000), on(1, 7_000), on(2, 9_000)];
    assert_eq!(longest_stall(&run, &gaps).map(|of| of.length), Some(Nanos(7_000)));
}
