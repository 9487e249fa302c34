//! Wake-ups that have a name, and parts that are their lateness.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needed;
use crate::needs;
use crate::program::recorded;

pub(crate) const FIGURE: Figure = Figure {
    name: "wake_named",
    method: "wake-ups of three timers on one CPU, each 2 ms for 1 s, traced",
    rows: &[
        Row { claim: "wake-ups with a name", unit: "share", bound: Bound::AtLeast(0.98) },
        Row {
            claim: "sum of all parts over the lateness",
            unit: "ratio",
            bound: Bound::Within(0.98, 1.02),
        },
    ],
    rounds: 7,
    seconds: 2.5,
    most_taken: Some(0.05),
    needs: || needed::traced(&[]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let (cpu, seed) = (needs::last_cpu(), round.number);
    let words = format!(
        "wake --cpus {cpu} --timers HR,timerfd,epoll --period 2ms --duration 1s --seed {seed}"
    );
    let run = recorded(&words).run;
    assert_eq!(run.wakes.len(), 3);
    // But for those whose instant had passed before the thread began to wait.
    let named = run.wakes.iter().flat_map(|of| &of.causes).map(|cause| cause.wakes).sum();
    let woken = run.wakes.iter().map(|of| of.woken).sum();
    // The timer that is farthest from it.
    let apart = |of: &f64| (of - 1.0).abs();
    let parts = run.wakes.iter().map(|of| {
        let parts: f64 = of.split.iter().map(|part| part.total_ns).sum();
        parts / of.late_ns
    });
    let farthest = parts.max_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap();
    Ok(vec![Reading::Share { hits: named, of: woken }, Reading::Value(farthest)])
}
