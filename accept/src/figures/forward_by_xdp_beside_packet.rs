//! How many frames a second a forwarder carries by `xdp`, beside what it does by `packet`.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needed;
use crate::needs;
use crate::plant::{self, flood};

pub(crate) const FIGURE: Figure = Figure {
    name: "forward_by_xdp_beside_packet",
    method: "64-byte frames as fast as trafgen sends them, by packet, by xdp and by packet",
    rows: &[Row {
        claim: "frames a second by xdp over those by packet",
        unit: "ratio",
        bound: Bound::Told,
    }],
    rounds: 3,
    seconds: 6.1,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip", "timeout", "trafgen"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let bed = plant::links()?;
    let by = |port: &str| flood::ours(&bed, needs::last_cpu(), &format!("--port {port}")).rate;
    let (peer, ours, again) = (by("packet"), by("xdp"), by("packet"));
    Ok(vec![Reading::Beside { peer, ours, again }])
}
