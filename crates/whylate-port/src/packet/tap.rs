//! A passive tap: copies of everything that passes an interface, both ways, with the kernel's stamps.
//!
//! A packet socket with a receiving ring and nothing to send by. The kernel copies a frame into the ring
//! where it comes by and stamps it by the system's clock, in nanoseconds; the frame itself goes on as if
//! nobody looked. Frames longer than a slot are copied in part. When the ring is full frames are not
//! copied, and the kernel counts them. A VLAN tag that the kernel took out is not put back.
//!
//! [packet(7)](https://man7.org/linux/man-pages/man7/packet.7.html). Capability: `CAP_NET_RAW`.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use whylate_model::Nanos;

use crate::error::PortError;
use crate::interface::named;
use crate::packet::ring::{Map, Slots};
use crate::raw;
use crate::waiting::Wait;
use crate::waiting::frames::RingWait;

const BACKEND: &str = "tap";
/// Holds a frame of 1500 bytes with what the kernel puts before it.
const SLOT: u32 = 2_048;
/// 40 ms of 200 000 frames a second: longer than a thread that may run is kept from running.
const SLOTS: u32 = 8_192;
/// What the kernel allocates in one piece.
const BLOCK: u32 = 1 << 16;
/// Before a frame in its slot: header, address, alignment.
const BEFORE: u32 = 96;
/// Where the address of a frame lies in its slot, and its type of packet in the address.
const ADDRESS: usize = 32;
const PACKET_TYPE: usize = 10;

/// Bytes of a frame that are certainly kept.
pub const KEPT: u32 = SLOT - BEFORE;

/// A frame that came by.
#[derive(Debug, Clone, Copy)]
pub struct Tapped<'a> {
    /// When the kernel saw it, since 1970 by the system's clock.
    pub at: Nanos,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// How many it had.
    pub length: u32,
    /// The interface sends it; otherwise it came by it.
    pub outgoing: bool,
}

/// A tap on an interface.
#[derive(Debug)]
pub struct TapRing {
    socket: OwnedFd,
    slots: Slots,
    next: usize,
    waiting: RingWait,
    dropped: u64,
    _map: Map,
}

impl TapRing {
    /// Opens it on an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// No such interface, or one that is down; a missing capability; no memory for the ring.
    pub fn open(interface: &str) -> Result<Self, PortError> {
        let found = named(interface)?;
        if !found.up {
            return Err(PortError::InterfaceDown { name: found.name });
        }
        let socket = raw::packet_socket(BACKEND)?;
        let option = |what| move |errno| PortError::Option { backend: BACKEND, what, errno };
        let failed = |errno| {
            let advice = "the kernel has no memory in such pieces: end what needs it";
            PortError::Ring { backend: BACKEND, what: "receiving ring", errno, advice }
        };
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        raw::set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)
            .map_err(option("ring version"))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK,
            tp_block_nr: SLOTS / (BLOCK / SLOT),
            tp_frame_size: SLOT,
            tp_frame_nr: SLOTS,
        };
        raw::set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request).map_err(failed)?;
        let map = Map::new(&socket, (SLOT * SLOTS) as usize).map_err(failed)?;
        let Some(slots) = map.slots(0, SLOTS as usize, SLOT as usize) else {
            unreachable!("invariant: the mapping was made for them");
        };
        let waiting = RingWait::ready(Wait::Poll, std::iter::once(&socket), (BACKEND, "poll"))?;
        // Last: from here on frames come.
        raw::bind_packet(&socket, found.index, libc::ETH_P_ALL as u16)
            .map_err(|errno| PortError::Receive { backend: BACKEND, errno })?;
        Ok(Self { socket, slots, next: 0, waiting, dropped: 0, _map: map })
    }

    /// Gives what has come by to `each`, in its order; waits for the first for `limit` at most. How many
    /// there were: never more than the ring holds.
    ///
    /// # Errors
    /// The interface went away.
    pub fn take(
        &mut self,
        limit: Nanos,
        each: &mut dyn FnMut(&Tapped<'_>),
    ) -> Result<usize, PortError> {
        let failed = |errno: Errno| PortError::Receive { backend: BACKEND, errno };
        if !self.is_ours() && limit.0 > 0 {
            self.waiting.sleep(limit).map_err(failed)?;
        }
        let mut taken = 0;
        while taken < self.slots.count() && self.is_ours() {
            each(&self.tapped());
            self.slots.hand_over(self.next, libc::TP_STATUS_KERNEL);
            self.next = (self.next + 1) % self.slots.count();
            taken += 1;
        }
        if taken == 0 {
            match rustix::net::sockopt::socket_error(&self.socket) {
                Ok(Ok(())) => (),
                Ok(Err(errno)) | Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(taken)
    }

    /// Frames that came by and were not copied: the ring was full.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn dropped(&mut self) -> Result<u64, PortError> {
        let none = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let now = raw::get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, none);
        let now = now.map_err(|errno| {
            let what = "statistics";
            PortError::Option { backend: BACKEND, what, errno }
        })?;
        // The kernel forgets at each reading.
        self.dropped += u64::from(now.tp_drops);
        Ok(self.dropped)
    }

    fn is_ours(&self) -> bool {
        self.slots.status(self.next) & libc::TP_STATUS_USER != 0
    }

    fn tapped(&self) -> Tapped<'_> {
        let header = self.slots.header(self.next);
        let (from, kept) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let address = self.slots.bytes(self.next, ADDRESS, PACKET_TYPE + 1);
        Tapped {
            at: Nanos(u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec)),
            bytes: self.slots.bytes(self.next, from, kept),
            length: header.tp_len,
            outgoing: address.get(PACKET_TYPE) == Some(&libc::PACKET_OUTGOING),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_address_of_a_frame_lies_where_the_kernel_puts_it() {
        assert_eq!(offset_of!(libc::sockaddr_ll, sll_pkttype), PACKET_TYPE);
        assert_eq!(size_of::<libc::tpacket2_hdr>().next_multiple_of(16), ADDRESS);
        assert!(ADDRESS + size_of::<libc::sockaddr_ll>() <= BEFORE as usize);
    }

    #[test]
    fn an_interface_that_is_not_there_is_refused_by_name() {
        let error = TapRing::open("never-was").unwrap_err().to_string();
        assert!(error.contains("never-was"), "{error}");
    }
}
