//! The figures that the program promises about its own measurement.

use std::sync::OnceLock;

use whylate_model::directory::RunDir;
use whylate_model::injection::Injection;
use whylate_model::run::{Closure, GapSummary, Run};
use whylate_model::segments;
use whylate_model::warning::Warning;
use whylate_model::{Nanos, TicksDelta};

use crate::needs;
use crate::program::{self, Recorded};

/// Noise below the threshold, as a share of elapsed, beyond which a run must warn.
const NOISE: f64 = 0.01;

#[test]
fn the_closure_holds_for_the_chain_loop() {
    let _alone = program::alone();
    closes(&plain().run);
}

#[test]
fn the_closure_holds_for_the_pair_loop() {
    let _alone = program::alone();
    closes(&program::recorded("gaps --loop pair --duration 300ms --warmup 50ms").run);
}

#[test]
fn the_closure_holds_while_the_loop_moves_memory() {
    let _alone = program::alone();
    closes(&program::recorded("gaps --workload memmove:64KiB --duration 300ms --warmup 200ms").run);
}

#[test]
fn the_closure_holds_for_floating_threads() {
    let _alone = program::alone();
    let run = program::recorded("gaps --floating 2 --duration 300ms --warmup 50ms").run;
    assert_eq!(run.gaps.len(), 2, "one summary for each floating thread");
    closes(&run);
}

fn closes(run: &Run) {
    assert!(!run.gaps.is_empty(), "nothing was measured");
    for summary in &run.gaps {
        let cpu = summary.cpu;
        match &summary.closure {
            Closure::Holds => assert_eq!(summary.dropped, 0),
            Closure::SumsOnly => assert!(summary.dropped > 0, "CPU {cpu}: nothing was dropped"),
            Closure::Broken(why) => panic!("CPU {cpu}: {why}"),
        }
        assert!(summary.iterations > 0 && summary.blocks > 0, "CPU {cpu}: {summary:?}");
        let parts = summary.gap_ticks + summary.recording_ticks;
        assert!(parts <= summary.end.since(summary.start), "CPU {cpu}: more gaps than time");
    }
}

#[test]
fn noise_below_the_threshold_is_within_1_percent_or_warned_of() {
    let _alone = program::alone();
    let run = &plain().run;
    for summary in &run.gaps {
        let warned = run.warnings.iter().any(|warning| {
            matches!(warning, Warning::NoiseBelowThreshold { cpu, .. } if *cpu == summary.cpu)
        });
        let within = summary.noise_below_threshold.abs() <= NOISE;
        assert_eq!(within, !warned, "noise {}", summary.noise_below_threshold);
    }
}

#[test]
fn the_cost_of_recording_and_of_tracing_is_stated() {
    let _alone = program::alone();
    let run = &plain().run;
    assert!(run.clock.gap_recording_ns.is_some_and(|ns| ns > 0.0), "{:?}", run.clock);
    if needs::tracefs().is_none() {
        return;
    }
    let trace = run.evidence.trace.as_ref().unwrap();
    for share in [trace.lost_share_with, trace.lost_share_without] {
        assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{trace:?}");
    }
    let cost = trace.lost_share_difference.expect("pairs of slices");
    let (low, high) = cost.interval;
    assert!(cost.pairs >= 3 && low <= cost.mean && cost.mean <= high, "{cost:?}");
}

#[test]
fn trace_losses_are_zero_or_warned_of() {
    let _alone = program::alone();
    if needs::tracefs().is_none() {
        return;
    }
    for run in [&plain().run, &selftest().run] {
        let lost = run.evidence.trace.as_ref().unwrap().lost;
        let warned = run.warnings.iter().any(|w| matches!(w, Warning::TraceLost { .. }));
        assert_eq!(lost > 0, warned, "{lost} events lost");
    }
}

#[test]
fn the_parts_of_a_gap_sum_to_the_gap() {
    let _alone = program::alone();
    for run in [&plain().run, &selftest().run] {
        assert!(!run.worst.is_empty(), "no gap was kept");
        for worst in &run.worst {
            let sum = worst.parts.iter().fold(TicksDelta(0), |sum, part| sum + part.length);
            assert_eq!(sum.to_nanos(run.clock.hz), worst.length, "{:?}", worst.parts);
            for pair in worst.parts.windows(2) {
                assert_eq!(pair[0].start + pair[0].length, pair[1].start);
            }
        }
    }
}

/// What was injected is kept with the run, each with its stamps, and no count of the verdict is larger than
/// what it counts among.
#[test]
fn a_self_test_keeps_what_it_injected_and_its_counts_are_parts_of_it() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() || !needs::real_time() {
        return;
    }
    let Recorded { directory, run, .. } = selftest();
    let test = run.selftest.as_ref().unwrap();
    assert!(test.skipped.is_empty(), "{:?}", test.skipped);
    assert_eq!(test.kinds.len(), 5);
    let directory = RunDir::open(directory).unwrap();
    let made: Vec<Injection> =
        segments::read_injections(&directory).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(made.iter().all(|one| one.since <= one.start && one.start <= one.end));
    for of in &test.kinds {
        let made = made.iter().filter(|one| one.kind == of.kind).count() as u64;
        assert!(made > 500 && of.injected <= made, "{made} made: {of:?}");
        assert!(of.named_right <= of.found && of.found <= of.injected, "{of:?}");
        assert!(of.ascribed_rightly <= of.ascribed, "{of:?}");
    }
    let sum: usize =
        test.kinds.iter().map(|of| made.iter().filter(|one| one.kind == of.kind).count()).sum();
    assert_eq!(sum, made.len(), "of a kind that is not told");
    assert!(test.thread.is_some() && test.sender.is_some() && test.thread != test.sender);
    let Some(trace) = &run.evidence.trace else { return };
    assert!(trace.events_in_gaps <= trace.events_measured, "{trace:?}");
    let gaps: u64 = run.gaps.iter().map(|of| of.gaps - of.dropped).sum();
    let of = run.validation.as_ref().unwrap();
    let switches = of.switch_as_switch + of.switch_as_none;
    let others = of.none_as_switch + of.none_as_none;
    assert_eq!(switches + others + of.undecided, gaps, "each gap is judged once");
}

/// Long enough that the cost of tracing is compared.
const PLAIN: &str = "gaps --duration 3s --warmup 200ms";

/// One plain run.
fn plain() -> &'static Recorded {
    static RUN: OnceLock<Recorded> = OnceLock::new();
    RUN.get_or_init(|| program::recorded(PLAIN))
}

/// One self-test for all who judge it.
fn selftest() -> &'static Recorded {
    static RUN: OnceLock<Recorded> = OnceLock::new();
    // On a busy machine its own verdict may be that names were wrong, or that it came to nothing.
    let words = || format!("gaps --selftest --cpus {} --warmup 200ms", needs::last_cpu());
    RUN.get_or_init(|| program::recorded_but_for(&words(), &["self-test"]))
}

#[test]
fn a_run_states_the_time_it_was_asked_for() {
    let _alone = program::alone();
    let measures_it = |run: &Run| {
        let long_enough = |summary: &GapSummary| {
            let elapsed = summary.end.since(summary.start).to_nanos(run.clock.hz);
            elapsed >= Nanos(3 * Nanos::SECOND.0 * 99 / 100)
        };
        run.gaps.iter().all(long_enough)
    };
    // A thread that was off its CPU as all began measures from its own first reading on.
    let again = || measures_it(&program::recorded(PLAIN).run);
    assert!(measures_it(&plain().run) || (0..4).any(|_| again()));
}
