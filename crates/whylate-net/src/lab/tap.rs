//! A tap between client and server: an interface of the device that everything passes, both ways.
//!
//! A bed without anything between client and server gets a device that hands each frame on as it is:
//! the kernel redirects what comes by one link to the other before its own stack sees it (tc-mirred(8)).
//! Whoever captures on [`INTERFACE`] gets copies; frames are neither held up nor changed. What the way
//! by the device costs all of them, captured or not, belongs to the bed.
//!
//! A bridge and a switch are joined to [`INTERFACE`] as a port. The kernel shows a frame to whoever
//! captures there before it gives it to the bridge, or to a switch that forwards in the kernel, and one
//! that a switch's own process sends as it leaves. That this is so is not assumed: a bed with a tap comes
//! up only if datagrams that came through were seen there, both ways.

use std::process::Command;

use whylate_host::bed::{self, Role};
use whylate_model::Nanos;
use whylate_model::lab::BedKind;
use whylate_port::packet::tap::{TapRing, Tapped};

use super::bed::inside;
use super::ip;
use super::probe::ENOUGH;
use crate::error::NetError;

/// Where everything between client and server can be seen: requests as they come from the client's
/// link, replies as they go to it.
pub(super) const INTERFACE: &str = "to-client";
const OTHER: &str = "to-server";

/// Looks into the ring at most: each takes all that has come.
const LOOKS: usize = 4;
/// Where a frame's type lies, and that of IPv4: what is not of the probe is of others mostly.
const TYPE: std::ops::Range<usize> = 12..14;
const IPV4: [u8; 2] = [8, 0];

/// Whether a bed has a place for a tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tap {
    /// Only where its kind has a device anyhow, and not told.
    #[default]
    None,
    /// It has.
    Between,
}

/// Refuses where `tc` is not installed.
pub(super) fn needed() -> Result<(), NetError> {
    if ip::is_installed("tc") {
        return Ok(());
    }
    Err(NetError::NoProgram { what: "a direct bed with a tap", program: "tc", package: "iproute2" })
}

/// Hands everything that comes by one link on to the other; says who does.
pub(super) fn join(name: &str) -> Result<String, NetError> {
    for (from, to) in [(INTERFACE, OTHER), (OTHER, INTERFACE)] {
        tc(name, &format!("qdisc add dev {from} ingress"))?;
        // Matches 32 bits of nothing: everything.
        tc(
            name,
            &format!(
                "filter add dev {from} parent ffff: protocol all prio 1 u32 match u32 0 0 \
                 action mirred egress redirect dev {to}"
            ),
        )?;
    }
    Ok("the kernel's redirection (mirred) from link to link, for the tap".to_owned())
}

/// What a tap sees of packets, each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    requests: u64,
    replies: u64,
}

impl Seen {
    fn count(&mut self, frame: &Tapped<'_>) {
        if frame.bytes.get(TYPE) == Some(&IPV4[..]) {
            let way = if frame.outgoing { &mut self.replies } else { &mut self.requests };
            *way += 1;
        }
    }

    /// As many each way as came through.
    fn is_enough(self) -> bool {
        self.requests.min(self.replies) >= u64::from(ENOUGH)
    }
}

/// Lets packets go through by `through`, and refuses the bed where a tap does not see them, both ways.
pub(super) fn sees(
    name: &str,
    kind: BedKind,
    through: impl FnOnce() -> Result<(), NetError> + Send,
) -> Result<(), NetError> {
    let seen = inside(name, Role::Device, || {
        let mut ring = TapRing::open(INTERFACE)?;
        through()?;
        let mut seen = Seen::default();
        for _ in 0..LOOKS {
            if ring.take(Nanos(0), &mut |frame: &Tapped<'_>| seen.count(frame))? == 0 {
                break;
            }
        }
        Ok(seen)
    })?;
    if seen.is_enough() {
        return Ok(());
    }
    let Seen { requests, replies } = seen;
    Err(NetError::TapBlind { name: name.to_owned(), kind: kind.name(), requests, replies })
}

fn tc(name: &str, words: &str) -> Result<String, NetError> {
    let mut command = Command::new("tc");
    command.args(["-n", &bed::namespace(name, Role::Device)]).args(words.split_whitespace());
    ip::run(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: [u8; 2], outgoing: bool) -> ([u8; 20], bool) {
        let mut bytes = [0; 20];
        bytes[TYPE].copy_from_slice(&kind);
        (bytes, outgoing)
    }

    fn seen(frames: &[([u8; 20], bool)]) -> Seen {
        let mut seen = Seen::default();
        for (bytes, outgoing) in frames {
            seen.count(&Tapped { at: Nanos(1), bytes, length: 60, outgoing: *outgoing });
        }
        seen
    }

    #[test]
    fn a_tap_that_sees_one_way_alone_or_what_is_no_datagram_sees_too_little() {
        let enough = ENOUGH as usize;
        let both = [vec![frame(IPV4, false); enough], vec![frame(IPV4, true); enough]].concat();
        assert!(seen(&both).is_enough());
        assert!(!seen(&both[..2 * enough - 1]).is_enough(), "one reply less");
        assert!(!seen(&vec![frame(IPV4, false); 9 * enough]).is_enough(), "requests alone");
        // Address resolution goes both ways, too.
        let others = [vec![frame([8, 6], false); 9], vec![frame([8, 6], true); 9]].concat();
        assert_eq!(seen(&others), Seen::default());
        assert_eq!(seen(&[frame(IPV4, true)]), Seen { requests: 0, replies: 1 });
    }

    #[test]
    fn a_blind_tap_is_refused_with_what_it_saw_and_what_to_do() {
        let kind = BedKind::Ovs.name();
        let blind = NetError::TapBlind { name: "lab".to_owned(), kind, requests: 3, replies: 0 };
        let said = blind.to_string();
        assert!(said.contains("(ovs), it saw 3 go to the server and 0 come back"), "{said}");
        assert!(said.contains("leave --tap out"), "{said}");
    }
}
