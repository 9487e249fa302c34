//! Interruptions that were injected, found and named; switches by what a thread knows alone; and where the
//! kernel's events lie.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::run::{Run, SelfTestKind};

use crate::needed;
use crate::needs;
use crate::program::record_ending;

/// Kinds of interruptions, and of each, and of switches, so many: fewer say little.
const KINDS: usize = 5;
const ENOUGH: u64 = 500;
/// The share of right answers that is promised.
const RIGHT: Bound = Bound::AtLeast(0.99);

pub(crate) const FIGURE: Figure = Figure {
    name: "selftest",
    method: "more than 500 interruptions of each of 5 kinds, injected into one thread that is traced",
    rows: &[
        Row { claim: "injected interruptions that are found", unit: "share", bound: Bound::Always },
        Row { claim: "named right, of the kind that is worst", unit: "share", bound: RIGHT },
        Row { claim: "ascribed rightly, of the kind that is worst", unit: "share", bound: RIGHT },
        Row { claim: "switches that evidence B calls switches", unit: "share", bound: RIGHT },
        Row { claim: "what it calls switches that were", unit: "share", bound: RIGHT },
        Row { claim: "others that evidence B calls none", unit: "share", bound: RIGHT },
        Row { claim: "what it calls no switch that was none", unit: "share", bound: RIGHT },
        Row { claim: "kernel events inside gaps", unit: "share", bound: Bound::AtLeast(0.999) },
    ],
    rounds: 7,
    seconds: 9.0,
    most_taken: Some(0.1),
    needs: || needed::traced(&[]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let (cpu, seed) = (needs::last_cpu(), round.number);
    let words = format!("gaps --selftest --cpus {cpu} --warmup 500ms --seed {seed}");
    // It may say itself that names were wrong.
    let run = record_ending(&words, &[0, 4]).run;
    let mut readings = of_injections(&run);
    let of = run.validation.as_ref().unwrap();
    let switches = of.switch_as_switch + of.switch_as_none;
    assert!(switches >= ENOUGH, "{of:?}");
    let share = |hits: u64, misses: u64| Reading::Share { hits, of: hits + misses };
    readings.extend([
        share(of.switch_as_switch, of.switch_as_none),
        share(of.switch_as_switch, of.none_as_switch),
        share(of.none_as_none, of.none_as_switch),
        share(of.none_as_none, of.switch_as_none),
    ]);
    let trace = run.evidence.trace.as_ref().unwrap();
    assert!(trace.events_measured > 0, "no event was read");
    readings.push(Reading::Share { hits: trace.events_in_gaps, of: trace.events_measured });
    Ok(readings)
}

/// Found of all, and the worst shares over the kinds.
fn of_injections(run: &Run) -> Vec<Reading> {
    let test = run.selftest.as_ref().unwrap();
    assert!(test.skipped.is_empty(), "{:?}", test.skipped);
    assert_eq!(test.kinds.len(), KINDS);
    for kind in &test.kinds {
        assert!(kind.injected >= ENOUGH && kind.with_trace, "{kind:?}");
    }
    let sum = |of: fn(&SelfTestKind) -> u64| -> u64 { test.kinds.iter().map(of).sum() };
    let worst = |hits: fn(&SelfTestKind) -> u64, of: fn(&SelfTestKind) -> u64| {
        let shares = test.kinds.iter().map(|kind| hits(kind) as f64 / of(kind).max(1) as f64);
        Reading::Value(shares.fold(f64::INFINITY, f64::min))
    };
    vec![
        Reading::Share { hits: sum(|kind| kind.found), of: sum(|kind| kind.injected) },
        worst(|kind| kind.named_right, |kind| kind.injected),
        worst(|kind| kind.ascribed_rightly, |kind| kind.ascribed),
    ]
}
