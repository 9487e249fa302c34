//! Deadlines of the paper's rate-monotonic threads: each that is missed has what took its time.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::program::recorded;
use crate::{misses, needs};

pub(crate) const FIGURE: Figure = Figure {
    name: "rate_monotonic_misses",
    method: "the paper's two threads with good timers, 2 s",
    rows: &[
        Row {
            claim: "misses have 1 ms that nobody planned, or follow one",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "no miss of the upper thread is named after the lower",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row { claim: "deadlines that are met", unit: "share", bound: Bound::Told },
    ],
    rounds: 6,
    seconds: 2.8,
    most_taken: None,
    needs: needs::can_be_root,
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let words = format!(
        "hourglass -d 2s --seed {} -n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR \
         -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i HR",
        round.number
    );
    let run = recorded(&words).run;
    let of = |index: usize| run.threads[index].deadlines.as_ref().unwrap();
    assert_eq!((of(0).hits + of(0).misses, of(1).hits + of(1).misses), (250, 60));
    let hz = run.clock.hz;
    // The host may take a job's slack, deliver the timer's interrupt late, or stop the more urgent
    // thread while it runs; the jobs behind are late for that.
    let unexplained = misses::unexplained(&of(0).first, 0.0, hz)
        .or_else(|| misses::unexplained(&of(1).first, 3e6, hz));
    if let Some(miss) = unexplained {
        eprintln!("not explained: {miss:?}");
    }
    let upper = of(0).causes.iter().map(|of| of.cause.to_string());
    let lower_named = upper.into_iter().any(|cause| cause.contains("hourglass/1"));
    let hits = of(0).hits + of(1).hits;
    Ok(vec![
        Reading::held(unexplained.is_none()),
        Reading::held(!lower_named),
        Reading::Share { hits, of: 310 },
    ])
}
