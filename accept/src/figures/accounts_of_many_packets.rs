//! Tests of accounts that the gate runs over some thousands of packets, over as many as nobody waits for.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::cargo::succeeds;
use crate::needed;

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "tests", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "accounts_of_many_packets",
    method: "three tests of the gate, compiled with optimization and run over millions of packets",
    rows: &[
        row("losses as planted over 100 million packets, in constant memory"),
        row("10 million requests through a bed add up"),
        row("10 million datagrams through a line, as a receiver counts them"),
    ],
    rounds: 1,
    seconds: 1_800.0,
    most_taken: None,
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let net = "test --release --locked -p whylate-net --lib -- adds_up_over_many --nocapture";
    let live = |name: &str| {
        format!("test --release --locked -p whylate --test live -- {name} --nocapture")
    };
    let of = |words: &str, packets: &str| {
        Reading::held(succeeds(words, &[("WHYLATE_TESTS_PACKETS", packets)]))
    };
    Ok(vec![
        of(net, "100000000"),
        of(&live("the_account_of_many_packets_through_a_bed_adds_up"), "10000000"),
        of(&live("exactly_those_that_come_out"), "10000000"),
    ])
}
