//! One way between two ports of a client beside there and back through the same bed.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::run::Run;

use crate::needed;
use crate::plant;
use crate::program::recorded;
use crate::requests::series;

const SHORT: &str = "--rate 1kpps --duration 300ms --warmup 50ms --no-trace";
/// Shorter, whatever by.
const BELOW: Bound = Bound::AtMost(1.0);

pub(crate) const FIGURE: Figure = Figure {
    name: "one_way_below_there_and_back",
    method: "medians of 300 messages one way and of 300 round trips through one bed, in turns",
    rows: &[
        Row { claim: "one way by udp over there and back", unit: "ratio", bound: BELOW },
        Row { claim: "one way by packet over there and back", unit: "ratio", bound: BELOW },
    ],
    // Of nine, one on each side may lie outside of the interval.
    rounds: 6,
    seconds: 2.7,
    most_taken: None,
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(round: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::bed("half")?;
    let of = |port: &str| {
        let one_way = || {
            let words = format!("rtt --bed {} --across --port {port} {SHORT}", bed.0);
            median(&recorded(&words).run, "there-service")
        };
        let there_and_back = || {
            let words = format!("rtt --bed {} --port {port} {SHORT}", bed.0);
            median(&recorded(&words).run, "rtt-service")
        };
        if round.number.is_multiple_of(2) {
            let both = there_and_back();
            return Reading::Value(one_way() / both);
        }
        Reading::Value(one_way() / there_and_back())
    };
    Ok(vec![of("udp"), of("packet")])
}

fn median(run: &Run, name: &str) -> f64 {
    let of = series(run, name).unwrap();
    let half = of.quantiles.iter().find(|of| (of.percent - 50.0).abs() < 1e-9);
    half.and_then(|of| of.value).expect("a median").0 as f64
}
