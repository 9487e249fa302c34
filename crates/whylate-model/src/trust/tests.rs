//! Each reason by a run that has nothing else, and the order in which they are told.
//!
//! Guarantees nothing of recordings; how warnings are told is theirs.

use std::path::Path;

use super::*;
use crate::directory::parse_run;
use crate::switch_cost::{IndirectRow, Penalty};
use crate::units::CpuId;
use crate::warning::Warning;

mod few;
mod nothing;
mod unanswered;

/// A recorded run with nothing that limits trust.
fn clean(json: &str) -> Run {
    let mut run = parse_run(Path::new("run.json"), json.as_bytes()).unwrap();
    (run.state, run.verdict) = (RunState::Complete, Verdict::Trustworthy);
    run.warnings.clear();
    run.command_line.retain(|word| word != "--quick");
    (run.coverage, run.evidence.steal_ns) = (None, None);
    run
}

const MERGED: &str = include_str!("../../../../tests/runs/merge/run.json");

fn gaps() -> Run {
    clean(include_str!("../../../../tests/runs/gaps/run.json"))
}

/// Its requests have no series: what is judged of them are counts.
fn requests() -> Run {
    let mut run = clean(include_str!("../../../../tests/runs/rtt/run.json"));
    run.series.clear();
    run
}

fn said(run: &Run) -> Vec<(Level, String)> {
    Trust::of(run).reasons.into_iter().map(|reason| (reason.level, reason.what)).collect()
}

fn poor(run: &Run) -> Vec<String> {
    Trust::of(run).poor()
}

#[test]
fn a_run_without_a_reason_is_good_and_the_worst_of_several_decides() {
    let mut run = gaps();
    assert_eq!((Trust::of(&run).level(), said(&run)), (Level::Good, vec![]));
    run.warnings.push(Warning::Interrupted);
    assert_eq!(Trust::of(&run).level(), Level::Limited);
    let changed = Warning::HostChanged { what: "cpu 1 went offline".to_owned() };
    run.warnings.push(changed.clone());
    let worst_first =
        [(Level::Poor, changed.to_string()), (Level::Limited, Warning::Interrupted.to_string())];
    assert_eq!(said(&run), worst_first);
}

#[test]
fn what_a_machine_is_and_nobody_can_change_limits_nothing() {
    let mut run = gaps();
    run.warnings.push(Warning::FrequencyFromRegressionOnly);
    assert_eq!((Trust::of(&run).level(), said(&run)), (Level::Good, vec![]));
}

#[test]
fn a_client_that_doubts_itself_limits_trust_in_a_device() {
    let mut run = clean(include_str!("../../../../tests/runs/device/run.json"));
    // What is not known of the box is another reason.
    run.device.as_mut().unwrap().sizes.iter_mut().for_each(|of| of.bounds[0].low_ns = Some(1.0));
    assert_eq!(said(&run), []);
    let doubt = "through bridge, 64 bytes: it sent late".to_owned();
    run.device.as_mut().unwrap().doubts.push(doubt.clone());
    assert_eq!(said(&run), [(Level::Limited, doubt)]);
}

#[test]
fn another_measurement_on_the_same_cpu_is_poor_and_one_elsewhere_limits() {
    for (same_cpu, level) in [(true, Level::Poor), (false, Level::Limited)] {
        let mut run = gaps();
        run.warnings.push(Warning::AnotherRun { pid: 7, same_cpu });
        assert_eq!(Trust::of(&run).level(), level);
    }
}

#[test]
fn a_file_that_is_missing_or_short_is_poor() {
    let mut run = gaps();
    run.files.problems.push("gaps-0001.parquet is missing".to_owned());
    assert_eq!(poor(&run), ["gaps-0001.parquet is missing"]);
}

#[test]
fn of_requests_that_nobody_sent_none_was_lost() {
    let mut run = requests();
    run.flows[0].packets = Packets { lost: 3, ..Packets::default() };
    assert_eq!(said(&run), [(Level::Poor, "nothing was measured".to_owned())]);
}

#[test]
fn a_run_that_measured_nothing_is_poor_and_one_that_runs_is_not_yet() {
    let mut run = gaps();
    run.gaps.clear();
    run.series.clear();
    assert_eq!(poor(&run), ["nothing was measured"]);
    run.state = RunState::Running;
    assert_eq!(Trust::of(&run).level(), Level::Limited);
}

#[test]
fn switch_costs_wake_ups_and_flows_without_one_figure_are_poor() {
    const NOTHING: [&str; 1] = ["nothing was measured"];
    let mut run = clean(include_str!("../../../../tests/runs/switch-cost/run.json"));
    assert_eq!(poor(&run), [""; 0]);
    let costs = run.switch_cost.as_mut().unwrap();
    costs.direct.clear();
    let row = IndirectRow {
        bytes: 4_096,
        tried: 1,
        discarded: 0,
        discarded_by_host: 0,
        empty: 0,
        penalty: Some(Penalty {
            pairs: 20,
            mean_ns: 1_000.0,
            interval_ns: (900.0, 1_100.0),
            of_pairs_ns: Vec::new(),
            passes_alone: 100.0,
            passes_together: 99.0,
            switches: 100.0,
        }),
        reason: None,
        refill: None,
        passes: None,
    };
    costs.indirect = vec![row];
    assert_eq!(poor(&run), [""; 0]);
    let row = &mut run.switch_cost.as_mut().unwrap().indirect[0];
    row.penalty = None;
    row.reason = Some("stopped after 0 good pairs of 20".to_owned());
    assert_eq!(poor(&run), NOTHING, "rows without a penalty are no figure");

    let mut run = clean(include_str!("../../../../tests/runs/wake/run.json"));
    assert_eq!(poor(&run), [""; 0]);
    run.wakes.iter_mut().for_each(|wake| wake.woken = 0);
    assert_eq!(poor(&run), NOTHING);

    let mut run = requests();
    assert_eq!(poor(&run), [""; 0]);
    run.flows[0].packets = Packets::default();
    assert_eq!(poor(&run), NOTHING);
}

#[test]
fn what_was_asked_for_and_refused_limits_trust_and_comes_first() {
    let fifo = Warning::PolicyRefused { reason: "no CAP_SYS_NICE".to_owned() };
    let tasks = Warning::Guard { what: "no task was moved off: 3 refused".to_owned() };
    for refused in [&fifo, &tasks] {
        let mut run = gaps();
        run.warnings.push(refused.clone());
        assert_eq!(said(&run), [(Level::Limited, refused.to_string())]);
    }
    let mut run = gaps();
    run.coverage = Some(Coverage { by_events: 0.24, by_residuals: 0.3, by_nothing: 0.46 });
    let in_a_part = Warning::Within { part: "second".to_owned(), of: Box::new(fifo.clone()) };
    let changed = Warning::HostChanged { what: "cpu 1 went offline".to_owned() };
    run.warnings =
        vec![Warning::Interrupted, tasks, Warning::NoHousekeepingCpu, in_a_part, changed];
    let expected = [4, 1, 3, 0, 2].map(|at: usize| run.warnings[at].to_string());
    let told: Vec<String> = said(&run).into_iter().map(|(_, what)| what).collect();
    assert_eq!(told[..5], expected, "the poor one, both that were refused, the others");
    assert_eq!(told.len(), 7);
}

#[test]
fn a_verdict_of_an_older_version_keeps_its_reasons_once() {
    let mut run = gaps();
    let reasons = vec!["the closure of CPU 1 is broken: overlap".to_owned()];
    run.verdict = Verdict::Untrustworthy { reasons: reasons.clone() };
    run.gaps[0].cpu = CpuId(1);
    run.gaps[0].closure = Closure::Broken("overlap".to_owned());
    assert_eq!(poor(&run), reasons);
}

#[test]
fn lost_time_without_a_cause_and_steal_limit_trust() {
    let mut run = gaps();
    run.coverage = Some(Coverage { by_events: 0.24, by_residuals: 0.3, by_nothing: 0.46 });
    run.evidence.steal_ns = Some(1e6);
    let expected = [
        "46% of the lost time has no kernel event",
        "30% of the lost time is IRQ entry/exit, which no event covers",
        "the CPU was shared: the hypervisor reported 1.00ms of steal",
    ];
    assert_eq!(said(&run), expected.map(|what| (Level::Limited, what.to_owned())));
    // Where no event was recorded, none can be missed.
    let mut blind = run.clone();
    blind.evidence.trace = None;
    assert_eq!(said(&blind), [(Level::Limited, expected[2].to_owned())]);
    // Nor in a sum of recordings none of which was traced; older ones do not say.
    let part = |traced| {
        let sum = parse_run(Path::new("run.json"), MERGED.as_bytes()).unwrap();
        Origin { traced, ..sum.origins[0].clone() }
    };
    blind.origins = vec![part(Some(false)), part(Some(false))];
    let has = |run: &Run| said(run).iter().any(|(_, what)| what.contains("no kernel event"));
    assert!(!has(&blind));
    for traced in [Some(true), None] {
        blind.origins[1] = part(traced);
        assert!(has(&blind), "{traced:?}");
    }
    // Steal that bears it out is the cause of what has no event.
    run.evidence.steal_ns = Some(480e6);
    let expected = [expected[1], "the CPU was shared: the hypervisor reported 480ms of steal"];
    assert_eq!(said(&run), expected.map(|what| (Level::Limited, what.to_owned())));
    run.coverage = Some(Coverage { by_events: 0.9, by_residuals: 0.05, by_nothing: 0.05 });
    run.evidence.steal_ns = Some(0.0);
    assert_eq!(said(&run), []);
}

fn tested(kind: SelfTestKind) -> Vec<String> {
    let mut run = gaps();
    run.selftest = Some(SelfTest { kinds: vec![kind], ..SelfTest::default() });
    poor(&run)
}

fn perfect() -> SelfTestKind {
    SelfTestKind {
        kind: "ipi".to_owned(),
        injected: 500,
        found: 500,
        ascribed: 600,
        ascribed_rightly: 600,
        named_right: 500,
        with_trace: true,
        length_error_ns: None,
        length_error_p99_ns: None,
    }
}

#[test]
fn a_self_test_that_misses_one_interruption_names_its_kind() {
    assert_eq!(tested(perfect()), [""; 0]);
    let why = tested(SelfTestKind { found: 499, ..perfect() });
    assert_eq!(why, ["self-test, ipi: 499 of 500 interruptions were found, and all must be"]);
}

#[test]
fn a_self_test_with_less_than_99_percent_right_is_not_trusted() {
    let just = SelfTestKind { named_right: 495, ascribed_rightly: 594, ..perfect() };
    assert_eq!(tested(just.clone()), [""; 0]);
    let why = tested(SelfTestKind { named_right: 494, ..just.clone() });
    assert_eq!(why, ["self-test, ipi: 494 of 500 found were attributed to the right cause"]);
    let why = tested(SelfTestKind { ascribed_rightly: 593, ..just });
    assert!(
        why[0].contains("7 of 600 stalls attributed to the injector had another cause"),
        "{why:?}"
    );
}

#[test]
fn of_several_kinds_one_that_was_injected_lets_the_others_be_none() {
    let mut run = gaps();
    let none = SelfTestKind { injected: 0, found: 0, ..perfect() };
    let kinds = vec![none, SelfTestKind { found: 498, named_right: 498, ..perfect() }];
    run.selftest = Some(SelfTest { kinds, ..SelfTest::default() });
    assert_eq!(
        poor(&run),
        ["self-test, ipi: 498 of 500 interruptions were found, and all must be"]
    );
}

#[test]
fn without_a_trace_only_the_recall_is_judged() {
    let blind = SelfTestKind {
        with_trace: false,
        named_right: 0,
        ascribed: 0,
        ascribed_rightly: 0,
        ..perfect()
    };
    assert_eq!(tested(blind), [""; 0]);
}

#[test]
fn a_self_test_that_judged_nothing_is_not_trusted() {
    let nothing = SelfTestKind {
        injected: 0,
        found: 0,
        ascribed: 0,
        ascribed_rightly: 0,
        named_right: 0,
        ..perfect()
    };
    assert!(tested(nothing)[0].contains("injected no interruption"));
}

#[test]
fn requests_that_left_later_than_they_were_under_way_are_the_clients_own_time() {
    let mut run = clean(include_str!("../../../../tests/runs/rtt/run.json"));
    let (late, service) = (run.flows[0].lateness.clone(), run.flows[0].service.clone());
    let mut set = |name: &Option<String>, to: u64, from: f64| {
        let series = run.series.iter_mut().find(|of| Some(&of.name) == name.as_ref()).unwrap();
        for of in series.quantiles.iter_mut().filter(|of| of.percent >= from) {
            (of.value, of.high) = (Some(Nanos(to)), Some(Nanos(to)));
        }
        poor(&run)
    };
    set(&service, 20_000, 0.0);
    assert_eq!(set(&late, 20_000, 0.0), [""; 0]);
    let told = &set(&late, 20_001, 99.0)[0];
    assert!(told.contains("(p99 20.0us) exceeds its service time"), "{told}");
}

#[test]
fn requests_that_left_late_hold_their_response_times_or_make_them_the_clients_own() {
    let mut run = clean(include_str!("../../../../tests/runs/rtt/run.json"));
    let of =
        |flow: &str| Warning::DeparturesDisturbed { flow: flow.to_owned(), how: "p99".to_owned() };
    let name = run.flows[0].name.clone();
    let within = Warning::Within { part: "first".to_owned(), of: Box::new(of(&name)) };
    let (holds, own) =
        ("The response times hold", "Most of each response time is the client's own delay");
    let (late, service) = (run.flows[0].lateness.clone(), run.flows[0].service.clone());
    let set = |run: &mut Run, name: &Option<String>, to: u64| {
        let series = run.series.iter_mut().find(|of| Some(&of.name) == name.as_ref()).unwrap();
        series.quantiles.iter_mut().for_each(|of| of.value = Some(Nanos(to)));
    };
    set(&mut run, &service, 20_000);
    set(&mut run, &late, 20_000);
    for warning in [&of(&name), &within] {
        assert!(warning.advice_in(&run).starts_with(holds), "{}", warning.advice_in(&run));
    }
    set(&mut run, &late, 20_001);
    assert!(
        poor(&run)[0].contains("the response times measure the client, not the server"),
        "{:?}",
        poor(&run)
    );
    let (out, back) = ("client0".to_owned(), "server0".to_owned());
    let across = crate::flow::Across { out, back, one_thread: true };
    let before = run.flows[0].way.across.replace(across);
    assert!(!poor(&run)[0].contains("response time"), "{:?}", poor(&run));
    let advice = within.advice_in(&run);
    assert!(
        advice.starts_with("Most of each latency from due is the client's own delay"),
        "{advice}"
    );
    run.flows[0].way.across = before;
    for warning in [&of(&name), &within] {
        let advice = warning.advice_in(&run);
        assert!(advice.starts_with(own) && !advice.contains("hold"), "{advice}");
        assert!(advice.ends_with(&of(&name).advice()), "{advice}");
    }
    assert!(of("another").advice_in(&run).starts_with(holds));
}

#[test]
fn lateness_is_compared_at_every_percentile_of_both_up_to_that_of_headlines() {
    let mut run = clean(include_str!("../../../../tests/runs/rtt/run.json"));
    let (late, service) = (run.flows[0].lateness.clone(), run.flows[0].service.clone());
    let show = |run: &mut Run, name: &Option<String>, shown: [Option<u64>; 4]| {
        let series = run.series.iter_mut().find(|of| Some(&of.name) == name.as_ref()).unwrap();
        let of = series.quantiles[0];
        let quantile = |(percent, value): (f64, Option<u64>)| {
            let value = value.map(Nanos);
            Quantile { percent, value, low: value, high: value, ..of }
        };
        series.quantiles = [50.0, 90.0, 99.0, 99.9].into_iter().zip(shown).map(quantile).collect();
    };
    show(&mut run, &service, [Some(17_700), Some(20_000), Some(30_000), Some(40_000)]);
    let mut said = |lateness: [Option<u64>; 4]| {
        show(&mut run, &late, lateness);
        poor(&run).first().cloned().unwrap_or_default()
    };
    // Percentiles that are withheld are not compared.
    let told = "the send delay of rtt (p50 3.01ms) exceeds its service time (p50 17.7us)";
    assert!(said([Some(3_010_000), None, None, None]).starts_with(told));
    // Most left late, while the slowest answers took longer still: half of the response times is not the server's.
    let told = "the send delay of rtt (p90 22.0us) exceeds its service time (p90 20.0us)";
    assert!(said([Some(19_000), Some(22_000), Some(23_000), Some(24_000)]).starts_with(told));
    assert_eq!(said([Some(17_700), Some(20_000), Some(30_000), Some(90_000)]), "");
}

#[test]
fn a_run_that_did_not_end_is_judged_by_what_it_knows_and_not_by_closures_of_a_checkpoint() {
    let mut run = gaps();
    run.gaps[0].closure = Closure::Broken("the thread counted more".to_owned());
    (run.state, run.verdict) = (RunState::Running, Verdict::Pending);
    assert_eq!((poor(&run), verdict(&run)), (Vec::new(), Verdict::Pending));
    run.warnings.push(Warning::RecordsDropped { cpu: CpuId(1), dropped: 3 });
    assert_eq!(verdict(&run), Verdict::Untrustworthy { reasons: poor(&run) });
    assert_eq!(poor(&run).len(), 1);
    run.state = RunState::Complete;
    assert_eq!(poor(&run).len(), 2, "the closure, too");
}

#[test]
fn shares_are_told_to_a_tenth_of_a_percent_and_from_ten_on_whole() {
    for (share, told) in [
        (0.000_4, "<0.1%"),
        (0.000_5, "0.1%"),
        (0.099_4, "9.9%"),
        (0.099_5, "10%"),
        (0.456, "46%"),
        (0.997, "99.7%"),
        (0.999_7, ">99.9%"),
        (1.0, "100%"),
    ] {
        assert_eq!(percent(share), told);
    }
}

#[test]
fn each_limit_of_lost_time_and_of_steal_is_where_it_is_said_to_be() {
    for (by_residuals, steal, reasons) in
        [(0.2, 0.9, 0), (0.201, 0.9, 1), (0.2, 1.0, 1), (0.201, 1.0, 2)]
    {
        let mut run = gaps();
        run.coverage = Some(Coverage { by_events: 0.7, by_residuals, by_nothing: 0.0 });
        run.evidence.steal_ns = Some(steal);
        assert_eq!(said(&run).len(), reasons, "{by_residuals} {steal}");
    }
}

#[test]
fn a_thread_whose_sums_do_not_close_or_differ_from_the_kernels_is_poor() {
    let mut clean = clean(include_str!("../../../../tests/runs/threads/run.json"));
    // Its few jobs are another reason.
    clean.threads.iter_mut().for_each(|thread| thread.deadlines = None);
    assert_eq!(said(&clean), []);
    let mut run = clean.clone();
    run.threads[1].closure = Closure::Broken("overlap".to_owned());
    let name = run.threads[1].name.clone();
    assert_eq!(poor(&run), [format!("the closure of thread {name} is broken: overlap")]);

    let whole = 100_000_000;
    for (kernel, host, residual, differs) in [
        (whole, 0, 0.25, None),
        (whole, 0, 0.26, Some(26)),
        (whole - 1, 0, 0.26, None),
        (whole, 0, -0.25, None),
        (whole, 0, -0.26, Some(-26)),
        // What the host took is counted or not.
        (whole, whole / 10, -0.35, None),
        (whole, whole / 10, -0.36, Some(-36)),
    ] {
        let mut run = clean.clone();
        let time = run.threads[0].cpu_time.as_mut().unwrap();
        (time.kernel, time.host, time.residual) = (Nanos(kernel), Nanos(host), residual);
        let name = &run.threads[0].name;
        let expected: Vec<String> = differs
            .map(|percent| {
                format!(
                    "the kernel's CPU time of thread {name} and that of its gaps differ by {percent}%"
                )
            })
            .into_iter()
            .collect();
        assert_eq!(poor(&run), expected, "{kernel} {host} {residual}");
    }
}

#[test]
fn a_headline_whose_sample_does_not_bound_p99_limits_trust() {
    let rtt = clean(include_str!("../../../../tests/runs/rtt/run.json"));
    let (low, some) = (Some(Nanos(10)), Some(Nanos(20)));
    let bounded = |value, high, n| {
        let mut run = rtt.clone();
        for series in &mut run.series {
            series.n = n;
            // They left in time: how late they were is another reason.
            for of in series.quantiles.iter_mut().filter(|_| series.name.contains("lateness")) {
                of.value = Some(Nanos(1));
            }
            for of in series.quantiles.iter_mut().filter(|of| (of.percent - 99.0).abs() < 1e-9) {
                (of.low, of.value, of.high) = (low, value, high);
            }
        }
        run
    };
    assert_eq!(said(&bounded(some, some, 300)), []);
    for (value, high) in [(some, None), (None, some), (None, None)] {
        let expected = (Level::Limited, "300 samples of response time do not bound p99".to_owned());
        assert_eq!(said(&bounded(value, high, 300)), [expected], "{value:?} {high:?}");
        assert_eq!(said(&bounded(value, high, 0)), [], "nothing is told of nothing");
    }
    // Of samples in bursts few stand for themselves, and that is said where it is less than half.
    let mut run = bounded(None, None, 300_000);
    for of in run.series.iter_mut().flat_map(|series| &mut series.quantiles) {
        of.n_eff = 90.2;
    }
    let burst = "300000 samples of response time, as many as 90 independent ones, do not bound p99";
    assert_eq!(said(&run)[0].1, burst);
    // Of a closed loop the headline is the service; of messages without a reply it has none.
    let mut run = bounded(None, None, 300);
    run.flows[0].response = None;
    assert_eq!(said(&run)[0].1, "300 samples of service time do not bound p99");
    run.flows[0].asked.one_way = true;
    assert_eq!(said(&run), []);
    // Of wake-ups it counts the skipped ones, by the name of those that were measured.
    let mut wake = clean(include_str!("../../../../tests/runs/wake/run.json"));
    let few = (Level::Limited, "299 samples of wake-up latency, HR do not bound p99".to_owned());
    assert_eq!(said(&wake), std::slice::from_ref(&few));
    wake.series.retain(|series| series.name != "wake-corrected-HR");
    assert_eq!(said(&wake), [few]);
    wake.series.clear();
    assert_eq!(said(&wake), []);
    // p99.9 is another percentile.
    let mut run = bounded(some, some, 300);
    run.series.iter_mut().for_each(|series| {
        series.quantiles.retain(|of| of.percent > 99.5);
        series.quantiles.iter_mut().for_each(|of| (of.value, of.high) = (some, some));
    });
    assert_eq!(said(&run).len(), 1);
}

#[test]
fn a_quick_run_is_limited_and_a_limit_that_was_exceeded_comes_before_doubts() {
    let mut run = gaps();
    run.command_line.push("--quick".to_owned());
    let (level, what) = said(&run).remove(0);
    assert!(level == Level::Limited && what.starts_with("a quick run: a tenth"), "{what}");
    assert_eq!(verdict(&run), Verdict::Trustworthy);
    let what = "p99 above 10us".to_owned();
    run.verdict = Verdict::LimitExceeded { what: what.clone(), reasons: Vec::new() };
    assert_eq!(verdict(&run), run.verdict);
    let missing = "gaps-0001.parquet is missing".to_owned();
    run.files.problems.push(missing.clone());
    let both = Verdict::LimitExceeded { what, reasons: vec![missing.clone()] };
    assert_eq!(verdict(&run), both);
    // Of a sum nobody knows the files: its verdict has what was wrong with them.
    run.files.problems.clear();
    run.verdict = both;
    assert_eq!(poor(&run), std::slice::from_ref(&missing));
    run.files.problems.push(missing);
    (run.state, run.verdict) = (RunState::Stopped, Verdict::Pending);
    assert_eq!(verdict(&run), Verdict::Untrustworthy { reasons: poor(&run) });
    run.files.problems.clear();
    assert_eq!(verdict(&run), Verdict::Trustworthy);
}

#[test]
fn a_reason_that_a_recording_of_a_sum_has_is_not_told_again() {
    let mut trust = Trust::default();
    for what in ["a: b is missing", "b is missing", "c", "c", "is missing"] {
        trust.add(Level::Poor, what.to_owned());
    }
    assert_eq!(trust.poor(), ["a: b is missing", "c", "is missing"]);
}

#[test]
fn a_level_is_named_as_it_is_written() {
    for level in [Level::Good, Level::Limited, Level::Poor] {
        assert_eq!(serde_json::to_value(level).unwrap(), level.name());
    }
}
