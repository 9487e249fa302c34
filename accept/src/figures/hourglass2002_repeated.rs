//! "Inferring Scheduling Behavior with Hourglass", repeated, but for its timers: `hourglass2002_timers` has
//! those.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::hourglass2002::{self, BESIDE_THE_NETWORK, PLACES, Repeated, TEN_THREADS, here};
use crate::needed;

const fn row(claim: &'static str, unit: &'static str) -> Row {
    Row { claim, unit, bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "hourglass2002_repeated",
    method: "six of the seven experiments of the paper, shortened; each row has a figure with its interval or says why \
             not, and a reason",
    rows: &[
        row("rows of 5.1 whose fastest switch is of more than 20", "rows"),
        row("quanta of 5.1 above 200 us", "rounds"),
        row("throughputs of 5.4 above 1 Mbit/s", "rows"),
    ],
    rounds: 1,
    seconds: 83.0,
    most_taken: None,
    needs: || needed::two_ends(&[]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let repeated = Repeated::new(&["--only", &PLACES.join(",")]);
    hourglass2002::every_row_is_told(&repeated, &PLACES);
    let (switches, network) = (repeated.scenario("5.1"), repeated.scenario("5.4"));
    hourglass2002::switches(switches);
    hourglass2002::working_sets(&repeated);
    hourglass2002::late_wake_ups(repeated.scenario("5.3"));
    hourglass2002::beside_the_network(network);
    hourglass2002::reservations(repeated.scenario("5.6"));
    let of_two = |is: &dyn Fn(&str) -> bool, of: [&str; 2]| Reading::Share {
        hits: of.iter().filter(|words| is(words)).count() as u64,
        of: 2,
    };
    Ok(vec![
        of_two(&|of| here(switches, &["the fastest", of]).n.is_some_and(|n| n > 20), TEN_THREADS),
        Reading::held(here(switches, &["quantum"]).value > 200_000.0),
        of_two(&|of| here(network, &["throughput", of]).value > 1e6, BESIDE_THE_NETWORK),
    ])
}
