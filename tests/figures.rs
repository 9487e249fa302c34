//! The figures that the program promises about its own measurement.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use whylate_clock::{Counter, HardwareCounter};
use whylate_gap::blocks::Blocks;
use whylate_gap::hot::{self, Limits, Live, Recorder};
use whylate_gap::ring;
use whylate_gap::table::LogLinear;
use whylate_gap::workload::{Nothing, Workload};
use whylate_model::run::{Closure, GapSummary, Run};
use whylate_model::warning::Warning;
use whylate_model::{Nanos, TicksDelta};

use crate::needs::{self, Busy};
use crate::program::{self, Recorded};

/// The share of right answers that is promised.
const RIGHT: f64 = 0.99;
/// Interruptions of each kind, and switches, below which a share says little.
const ENOUGH: u64 = 500;
/// Noise below the threshold, as a share of elapsed, beyond which a run must warn.
const NOISE: f64 = 0.01;
/// Events of measured CPUs inside recorded gaps.
const EVENTS_IN_GAPS: f64 = 0.999;
/// A self-test that others disturbed is made again, so many times in all.
const ATTEMPTS: usize = 3;

/// The loop's period against back-to-back readings.
const PERIOD_RATIO: f64 = 1.05;
/// Rounds without a neighbour in them, for that.
const FEWEST_ROUNDS: usize = 3;

#[test]
fn the_closure_holds_for_the_chain_loop() {
    let _alone = program::alone();
    closes(&plain().run);
}

#[test]
fn the_closure_holds_for_the_pair_loop() {
    let _alone = program::alone();
    closes(&program::recorded("gaps --loop pair --duration 2s --warmup 200ms").run);
}

#[test]
fn the_closure_holds_while_the_loop_moves_memory() {
    let _alone = program::alone();
    closes(&program::recorded("gaps --workload memmove:64KiB --duration 2s --warmup 200ms").run);
}

#[test]
fn the_closure_holds_for_floating_threads() {
    let _alone = program::alone();
    let run = program::recorded("gaps --floating 2 --duration 2s --warmup 200ms").run;
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
    assert!(cost.pairs >= 3 && low <= cost.mean && cost.mean <= high && low < high, "{cost:?}");
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
#[ignore = "live figure: to accept"]
fn kernel_events_of_a_measured_cpu_lie_inside_recorded_gaps() {
    let _alone = program::alone();
    if needs::tracefs().is_none() {
        return;
    }
    for run in [&plain().run, &selftest().run] {
        let trace = run.evidence.trace.as_ref().unwrap();
        assert!(trace.events_measured > 0, "no event was read");
        let share = trace.events_in_gaps as f64 / trace.events_measured as f64;
        assert!(share >= EVENTS_IN_GAPS, "{share}: {trace:?}");
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

#[test]
#[ignore = "live figure: to accept"]
fn every_injected_interruption_is_found() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() {
        return;
    }
    let test = selftest().run.selftest.as_ref().unwrap();
    assert!(test.skipped.is_empty(), "{:?}", test.skipped);
    assert_eq!(test.kinds.len(), 5);
    for kind in &test.kinds {
        assert!(kind.injected >= ENOUGH, "{kind:?}");
        assert_eq!(kind.found, kind.injected, "{kind:?}");
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn injected_interruptions_are_named_right_with_the_kernels_trace() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() || needs::tracefs().is_none() {
        return;
    }
    let mut faults = named_wrongly(&selftest().run);
    for _ in 1..ATTEMPTS {
        if faults.is_empty() {
            return;
        }
        let before = Busy::now();
        faults = named_wrongly(&judged().run);
        if !before.disturbed() {
            return assert!(faults.is_empty(), "{faults:#?}");
        }
    }
    if !faults.is_empty() {
        needs::spoilt("other processes were busy during every self-test");
    }
}

fn named_wrongly(run: &Run) -> Vec<String> {
    let kinds = &run.selftest.as_ref().unwrap().kinds;
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let wrong = kinds.iter().filter(|kind| {
        let precision = share(kind.ascribed_rightly, kind.ascribed);
        !kind.with_trace || precision < RIGHT || share(kind.named_right, kind.injected) < RIGHT
    });
    wrong.map(|kind| format!("{kind:?}")).collect()
}

#[test]
#[ignore = "live figure: to accept"]
fn evidence_b_tells_context_switches_from_the_rest() {
    let _alone = program::alone();
    if !needs::root() || needs::cpus(2).is_none() || needs::tracefs().is_none() {
        return;
    }
    let validation = selftest().run.validation.as_ref().unwrap();
    let switches = validation.switch_as_switch + validation.switch_as_none;
    assert!(switches >= ENOUGH, "{validation:?}");
    let shares = [
        validation.switch_recall(),
        validation.switch_precision(),
        validation.none_recall(),
        validation.none_precision(),
    ];
    for share in shares {
        assert!(share.is_some_and(|share| share >= RIGHT), "{validation:?}");
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn the_chain_loop_costs_little_more_than_reading_the_counter() {
    /// Rounds of some milliseconds at a time, and how often more are made.
    const ROUNDS: usize = 400;
    const TIMES: usize = 12;
    let _alone = program::alone();
    let mut counter = HardwareCounter::open().unwrap();
    let mut rounds: Vec<[f64; 3]> = Vec::new();
    let mut told = String::new();
    for _ in 0..TIMES {
        rounds.extend((0..ROUNDS).filter_map(|_| {
            let before = back_to_back(&mut counter);
            let chain = chain_period(&mut counter)?;
            Some([before, chain, back_to_back(&mut counter)])
        }));
        let mut ratios = undisturbed(&rounds);
        ratios.sort_by(f64::total_cmp);
        let at = |quarter: usize| ratios.get(ratios.len() * quarter / 4).copied();
        let (Some(low), Some(ratio), Some(high)) = (at(1), at(2), at(3)) else { continue };
        told = format!("{ratio:.3} ({low:.3} .. {high:.3}) in {} undisturbed rounds", ratios.len());
        if ratios.len() >= FEWEST_ROUNDS && ratio <= PERIOD_RATIO {
            eprintln!("chain loop against back-to-back readings: {told}");
            return;
        }
    }
    let told = format!("chain loop against back-to-back readings: {told}, of {}", rounds.len());
    if undisturbed(&rounds).len() < FEWEST_ROUNDS {
        return needs::spoilt(&told);
    }
    panic!("{told}");
}

/// The loop over the readings, of rounds in which readings before and after took as long as the
/// shortest that agree: a neighbour on the same core slows what executes more, and nobody tells.
fn undisturbed(rounds: &[[f64; 3]]) -> Vec<f64> {
    const NEAR: f64 = 1.01;
    let agree = rounds.iter().filter(|of| of[0].max(of[2]) <= of[0].min(of[2]) * NEAR);
    let mean = |of: &[f64; 3]| f64::midpoint(of[0], of[2]);
    let least = agree.clone().map(mean).fold(f64::INFINITY, f64::min);
    agree.filter(|of| mean(of) <= least * NEAR).map(|of| of[1] / mean(of)).collect()
}

/// Ticks of one reading among sixteen written one after another: median over blocks.
fn back_to_back(counter: &mut HardwareCounter) -> f64 {
    const ROUNDS: u64 = 256;
    const UNROLLED: u64 = 16;
    let mut means: Vec<u64> = (0..51)
        .map(|_| {
            let begin = counter.read();
            for _ in 0..ROUNDS {
                std::hint::black_box([
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                    counter.read(),
                ]);
            }
            counter.read().since(begin).0
        })
        .collect();
    means.sort_unstable();
    means[means.len() / 2] as f64 / (ROUNDS * UNROLLED) as f64
}

/// The period of the chain loop by its own gap-free blocks, over as much time; none where the host
/// left no block whole.
fn chain_period(counter: &mut HardwareCounter) -> Option<f64> {
    /// Ticks of one measurement: a few milliseconds.
    const LENGTH: TicksDelta = TicksDelta(6_000_000);
    let (producer, _consumer) = ring::ring();
    let (live, stop, overflow) = (Live::default(), AtomicBool::new(false), LogLinear::default());
    let blocks = Blocks::new(Nothing::BLOCK, 1024.0);
    let far = TicksDelta(u64::MAX >> 1);
    let end = counter.read() + LENGTH;
    let limits = Limits {
        threshold: TicksDelta(400),
        recording: far,
        recording_with_switches: far,
        stop_at: TicksDelta(u64::MAX),
        end,
    };
    let mut recorder = Recorder::new(producer, &overflow, &live, &stop, None, limits);
    hot::chain(counter, &mut Nothing, &mut recorder, &blocks);
    blocks.period().map(|period| period.median)
}

const SELFTEST: &str = "gaps --selftest --cpus 1 --warmup 500ms --format json";

/// Long enough that the cost of tracing is compared.
const PLAIN: &str = "gaps --duration 4s --warmup 500ms";

/// One plain run.
fn plain() -> &'static Recorded {
    static RUN: OnceLock<Recorded> = OnceLock::new();
    RUN.get_or_init(|| program::recorded(PLAIN))
}

/// One self-test for all who judge it.
fn selftest() -> &'static Recorded {
    static RUN: OnceLock<Recorded> = OnceLock::new();
    RUN.get_or_init(judged)
}

/// A self-test; on a busy machine its own verdict may be that names were wrong.
fn judged() -> Recorded {
    program::record_ending(SELFTEST, &[0, 4])
}

#[test]
fn a_run_states_the_time_it_was_asked_for() {
    let _alone = program::alone();
    let measures_it = |run: &Run| {
        let long_enough = |summary: &GapSummary| {
            let elapsed = summary.end.since(summary.start).to_nanos(run.clock.hz);
            elapsed >= Nanos(4 * Nanos::SECOND.0 * 99 / 100)
        };
        run.gaps.iter().all(long_enough)
    };
    // A thread that was off its CPU as all began measures from its own first reading on.
    let again = || measures_it(&program::recorded(PLAIN).run);
    assert!(measures_it(&plain().run) || (0..4).any(|_| again()));
}
