//! A real-time set that leaves its CPU to nobody: ended, or others are served all the same.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::warning::Warning;
use whylate_sys::affinity;

use crate::needed;
use crate::program::record_ending;
use crate::runaway::{Unthrottled, Wanting};

pub(crate) const FIGURE: Figure = Figure {
    name: "runaway_set",
    method: "a real-time thread that wants all of its CPU for 8 s, unthrottled, beside ordinary ones that do",
    rows: &[Row {
        claim: "it is ended within 7 s, or others have 2 % and more",
        unit: "rounds",
        bound: Bound::Always,
    }],
    rounds: 2,
    seconds: 9.0,
    most_taken: None,
    needs: || {
        needed::two_ends(&[])?;
        Unthrottled::lift().map(drop).ok_or_else(|| "throttling cannot be lifted".to_owned())
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let _unthrottled = Unthrottled::lift().ok_or("throttling cannot be lifted")?;
    // On every CPU an ordinary thread wants all of it: the canary asks for next to nothing.
    let wanting = Wanting::on(&affinity::get());
    let run = record_ending("hourglass -d 8s -n 1 -t 0 -p RTHIGH -w CPU", &[0, 4]).run;
    drop(wanting);
    let thread = &run.threads[0];
    let ran = thread.end.since(thread.start).to_nanos(run.clock.hz);
    let starved = |warning: &Warning| matches!(warning, Warning::SetStarved { .. });
    // The fair server of Linux 6.12 serves ordinary threads all the same.
    let held = if run.warnings.iter().any(starved) {
        ran.0 < 7_000_000_000
    } else {
        thread.lost.0 as f64 / ran.0 as f64 > 0.02
    };
    Ok(vec![Reading::held(held)])
}
