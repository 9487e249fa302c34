//! Deadlines of the second task of 5.5 of the paper that repeats Hourglass: by a coarse timer and by a fine one.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::hourglass2002::{Repeated, TIMERS, every_row_is_told, without_host};
use crate::needed;

pub(crate) const FIGURE: Figure = Figure {
    name: "hourglass2002_timers",
    method: "shares of missed deadlines of the second task of 5.5, shortened, without time that has no kernel event",
    rows: &[
        Row {
            claim: "deadlines missed by the coarse timer",
            unit: "share",
            bound: Bound::AtLeast(0.2),
        },
        Row {
            claim: "those by the fine timer over those by the coarse one",
            unit: "ratio",
            bound: Bound::AtMost(0.5),
        },
    ],
    rounds: 7,
    seconds: 15.1,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&[]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let repeated = Repeated::new(&["--only", TIMERS]);
    every_row_is_told(&repeated, &[TIMERS]);
    let missed =
        |timer| without_host(repeated.scenario(TIMERS), &["missed deadlines of task 1", timer]);
    let (coarse, fine) = (missed("that the paper's usleep had"), missed("high-resolution"));
    Ok(vec![Reading::Value(coarse), Reading::Value(fine / coarse)])
}
