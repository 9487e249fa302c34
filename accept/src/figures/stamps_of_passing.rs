//! What stamps of each burst and of each packet cost where frames are passed on between devices of DPDK.

use accept::figure::{Bound, Figure, Row};

use crate::over_dpdk;
#[cfg(not(feature = "dpdk"))]
use crate::over_dpdk::not_built as round;

pub(crate) const FIGURE: Figure = Figure {
    name: "stamps_of_passing",
    method: "frames passed on between net_null devices in bursts of 32, without stamps, with them and again",
    rows: &[
        // Two readings and a record a packet cannot be as cheap as two in 32 packets.
        Row {
            claim: "frames a second with stamps of packets over those with stamps of bursts",
            unit: "ratio",
            bound: Bound::AtMost(1.0),
        },
        Row {
            claim: "frames a second with stamps of bursts over those without",
            unit: "ratio",
            bound: Bound::Told,
        },
        Row {
            claim: "frames a second with stamps of packets over those without",
            unit: "ratio",
            bound: Bound::Told,
        },
    ],
    rounds: 6,
    seconds: 1.0,
    most_taken: Some(0.05),
    needs: over_dpdk::library,
    round,
};

#[cfg(feature = "dpdk")]
fn round(_: accept::figure::Round) -> Result<Vec<accept::figure::Reading>, String> {
    use accept::figure::Reading;
    use whylate_dpdk::io::Stamps;

    use crate::dpdk::{Kept, opened, rate};
    use crate::over_dpdk::cpus;

    let cpus = cpus();
    let elsewhere = Kept::to(cpus.0);
    let (mut near, mut far) = (opened("net_null2"), opened("net_null3"));
    drop(elsewhere);
    let _here = Kept::to(cpus.1);
    let turns = [Stamps::Off, Stamps::Burst, Stamps::Packet, Stamps::Burst, Stamps::Off];
    let [off, burst, packet, burst_again, off_again] =
        turns.map(|stamps| rate((&mut near, &mut far), stamps, 200_000_000));
    Ok(vec![
        Reading::Beside { peer: burst, ours: packet, again: burst_again },
        Reading::Beside { peer: off, ours: (burst * burst_again).sqrt(), again: off_again },
        Reading::Beside { peer: off, ours: packet, again: off_again },
    ])
}
