//! The frames that carry a message on a link with Ethernet: one, or as many as its packet is cut into.

use super::Flow;

/// Headers of a frame with its check sequence, and the least that one has.
const ETHERNET: u32 = 18;
const SHORTEST: u32 = 64;
/// The longest packet where nobody says otherwise.
const USUAL_MTU: u32 = 1_500;
/// Preamble, delimiter and gap before a frame, which no memory holds.
const BEFORE: u32 = 20;
const IPV4: u32 = 20;
/// A packet of IPv6 that is a fragment says so in a header of its own.
const IPV6: u32 = 40;
const FRAGMENT_OF_IPV6: u32 = 8;
/// Fragments but the last are so many bytes, or several times as many.
const STEP: u32 = 8;
const UDP: u32 = 8;
/// With its usual option: a time.
const TCP: u32 = 32;

/// What carries one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnWire {
    /// Frames.
    pub frames: u32,
    /// Their bytes together, check sequences included.
    pub bytes: u32,
    /// The longest packet of IP on that link.
    pub mtu: Option<u32>,
}

impl OnWire {
    /// The same with what is before each frame on a wire.
    #[must_use]
    pub fn bytes_at_l1(&self) -> u32 {
        self.bytes + self.frames * BEFORE
    }
}

impl Flow {
    /// The frames that carry a message; none where it takes no network, and where nobody knows whether
    /// one holds it.
    #[must_use]
    pub fn on_wire(&self) -> Option<OnWire> {
        let whole = self.asked.frame_bytes?;
        let socket = self.way.socket.as_ref().and_then(|of| of.mtu);
        let mtu = socket.or(self.way.frames.as_ref().map(|of| of.mtu));
        let fits = whole.saturating_sub(ETHERNET) <= mtu.unwrap_or(USUAL_MTU);
        if fits {
            return Some(OnWire { frames: 1, bytes: whole, mtu });
        }
        let ip = if self.way.backend.contains("ipv6") { IPV6 } else { IPV4 };
        let (headers, content, room) = if self.way.backend.starts_with("tcp") {
            let headers = ip + TCP;
            (headers, self.asked.bytes, mtu?.checked_sub(headers)?)
        } else {
            let headers = ip + if ip == IPV6 { FRAGMENT_OF_IPV6 } else { 0 };
            (headers, self.asked.bytes.checked_add(UDP)?, mtu?.checked_sub(headers)? / STEP * STEP)
        };
        if room == 0 {
            return None;
        }
        let frames = content.div_ceil(room);
        let last = content - (frames - 1) * room;
        let bytes = (frames - 1) * (room + headers + ETHERNET);
        let last = (last + headers + ETHERNET).max(SHORTEST);
        Some(OnWire { frames, bytes: bytes + last, mtu })
    }
}
