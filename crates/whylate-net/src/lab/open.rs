//! A bed that is left open: its device has two links, and nothing joins them until a box does.
//!
//! The box may be anything that carries whole frames between two interfaces: `whylate delay`, `whylate
//! forward`, a switch of others. Each end knows the other's hardware address, so that no frame passes the
//! box but those that are sent on purpose: a box that loses or holds frames back loses no question for an
//! address, and what it counts is what was sent. Whoever asks all the same is answered through the box.

use whylate_host::bed::Role;
use whylate_sys::ethtool;

use super::bed::{Bed, inside};
use super::ip::ip;
use crate::error::NetError;

/// The device's links, in the order in which frames from the client meet them.
pub const OPEN_PORTS: [&str; 2] = ["to-client", "to-server"];

/// Ends with their links and the hardware addresses that these are given: of those that are given out
/// locally, and the same in each bed, which has its links for itself.
const ENDS: [(Role, &str, &str); 2] = [
    (Role::Client, "client0", "02:00:00:00:00:01"),
    (Role::Server, "server0", "02:00:00:00:00:02"),
];

/// Prepares both ends for whatever comes between; says what a box has to join.
pub(super) fn leave(name: &str) -> Result<String, NetError> {
    let others = ENDS.iter().rev();
    for ((role, link, own), (other, _, theirs)) in ENDS.iter().zip(others) {
        ip(name, *role, &format!("link set {link} address {own}"))?;
        let address = Bed::address(*other);
        ip(name, *role, &format!("neigh add {address} lladdr {theirs} dev {link} nud permanent"))?;
        // A link that leaves checksums to a card has none to leave them to: a box copies what it gets.
        inside(name, *role, || Ok(ethtool::make_checksums_early(link)?))?;
    }
    let [first, second] = OPEN_PORTS;
    Ok(format!(
        "nothing yet: a box joins {first} and {second} (whylate delay {first} {second} --bed {name}, or \
         whylate forward)"
    ))
}
