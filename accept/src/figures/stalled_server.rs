//! A server that stands still for 30 ms again and again: what an open loop, one that waits for each reply,
//! and a closed one have of it.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_stats::Histogram;

use crate::needs;
use crate::plant::stalls::{Stalled, stalled};
use crate::requests::logged;

/// Longer than any quiet round trip, shorter than the stalls that are planted; and for a closed loop, where
/// each stall is one service time.
const LONG_NS: u64 = 8_000_000;
const LONG_ALONE_NS: u64 = 25_000_000;
const OPEN: &str = "rtt --rate 2kpps --duration 2s --warmup 100ms";
const CLOSED: &str = "rtt --arrivals closed --duration 2s --warmup 100ms";

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "stalled_server",
    method: "2 s of requests to a server that is stopped for 30 ms in 150 ms, in three ways",
    rows: &[
        row("waiting for each reply, 8 service times and more are long"),
        row("waiting for each reply, more than 10 long responses a long service time"),
        row("an open loop has more than 150 long responses"),
        row("an open loop has a long service time for half of them and more"),
        row("a closed loop has 8 long service times and more, and fewer than 60"),
        row("of a closed loop's service times fewer than one in 20 is long"),
    ],
    rounds: 2,
    seconds: 8.0,
    most_taken: Some(0.05),
    needs: || needs::can_use(2),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let of = |run: &Stalled, name: &str| -> Histogram { logged(&run.directory, name) };
    let open = |words: &str| {
        let run = stalled(words);
        ["rtt-service", "rtt-response"].map(|name| of(&run, name).count_above(LONG_NS))
    };
    let [service, response] = open(&format!("{OPEN} --outstanding 1"));
    let waiting = [service >= 8, response > 10 * service];
    let [service, response] = open(OPEN);
    let asking_on = [response > 150, 2 * service > response];
    let closed = of(&stalled(CLOSED), "rtt-service");
    let long = closed.count_above(LONG_ALONE_NS);
    let alone = [(8..60).contains(&long), closed.len() > 20 * long];
    Ok([waiting, asking_on, alone].into_iter().flatten().map(Reading::held).collect())
}
