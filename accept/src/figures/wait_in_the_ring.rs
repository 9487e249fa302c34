//! What waited in the ring is a part of what the kernel's stamps say of a forwarder, and not of its own.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use super::residence_in_the_round_trip::median;
use crate::between::{closes, flood, settled};
use crate::needed;
use crate::plant;

const OFFERED: u64 = 600;

pub(crate) const FIGURE: Figure = Figure {
    name: "wait_in_the_ring",
    method: "600 frames at once to a forwarder that manages 1 000 a second: median since the kernel had a \
             frame over that since the forwarder saw it, of which it sees 64 at most at once",
    rows: &[Row {
        // Half of them wait for the work on 300 frames before, less what they take to be sent.
        claim: "by the kernel's stamps over its own",
        unit: "ratio",
        bound: Bound::AtLeast(2.0),
    }],
    rounds: 6,
    seconds: 2.0,
    most_taken: None,
    needs: || needed::as_root(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::links()?;
    // Room for all of them.
    let forwarding = bed.forward("--port packet --work 1ms --ring 1024");
    let (client, server) = bed.sockets();
    flood(&client, OFFERED);
    let (marks, _) = settled((&client, &server), "198.18.0.2:7000".parse().unwrap());
    let told = forwarding.stop();
    closes(&told);
    let there = &told.directions[0];
    if there.received != OFFERED + marks {
        return Err(format!("{} of {OFFERED} frames and {marks} came to it", there.received));
    }
    let own = median(there.residence.as_ref()).0 as f64;
    let kernels = median(there.kernel_residence.as_ref()).0 as f64;
    Ok(vec![Reading::Value(kernels / own)])
}
