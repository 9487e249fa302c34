//! How many frames a second a forwarder carries, beside Debian's testpmd over `net_af_xdp` on the same
//! virtual links, CPU and frames.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::huge_pages;
use crate::needed;
use crate::peers::testpmd;
use crate::plant::{self, flood};

/// How whylate waits, and the budget that makes testpmd's driver wait the same way.
const WAYS: [(&str, &str); 2] = [("spin", "0"), ("busy-poll", "64")];

pub(crate) const FIGURE: Figure = Figure {
    name: "forward_beside_testpmd",
    method: "64-byte frames as fast as trafgen sends them, between two runs of testpmd",
    rows: &[
        Row {
            claim: "frames a second by xdp over testpmd's, both spinning",
            unit: "ratio",
            bound: Bound::AtLeast(1.0),
        },
        Row {
            claim: "frames a second by xdp over testpmd's, both having the driver polled",
            unit: "ratio",
            bound: Bound::AtLeast(1.0),
        },
    ],
    rounds: 6,
    seconds: 11.0,
    most_taken: Some(0.05),
    needs: || {
        needed::two_ends(&["ip", "timeout", "trafgen", "dpdk-testpmd"])?;
        huge_pages::can_be_had()
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let _pages = huge_pages::reserve()?;
    let bed = plant::links()?;
    let cpus = whylate_sys::affinity::get();
    let cpus = [cpus[0], cpus[cpus.len() - 1]];
    let beside = |(wait, budget): (&str, &str)| {
        let beside = || -> Result<Reading, String> {
            let peer = testpmd::forwarded(&bed, cpus, budget)?.rate;
            let ours = flood::ours(&bed, cpus[1], &format!("--port xdp --wait {wait}")).rate;
            let again = testpmd::forwarded(&bed, cpus, budget)?.rate;
            Ok(Reading::Beside { peer, ours, again })
        };
        beside().unwrap_or_else(Reading::Absent)
    };
    Ok(WAYS.map(beside).into())
}
