//! One packet socket with its rings.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::error::PortError;
use crate::frames::Amount;
use crate::link::{Link, LinkOptions, Queueing};
use crate::packet::BACKEND;
use crate::packet::ring::{Map, SEND_OFFSET, Slots};
use crate::raw;

/// What the kernel puts before a frame that it received: header, address, alignment.
const RECEIVE_OFFSET: u32 = 80;
/// Frames in a ring where nothing else was asked for.
const USUAL_FRAMES: u32 = 2_048;
const FEWEST_FRAMES: u32 = 16;
const MOST_FRAMES: u32 = 1 << 16;
/// A ring that nobody asked to be larger: the longest frames get fewer buffers.
const USUAL_BYTES: u32 = 16 << 20;
/// What the kernel allocates in one piece; small enough that it finds such pieces.
const BLOCK: u32 = 1 << 16;
const MOST_BUFFER: u32 = 1 << 17;
const ADVICE: &str = "ask for larger ones, or let it be chosen";

/// How large a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Bytes of a slot.
    pub(super) buffer: u32,
    /// Slots.
    pub(super) frames: u32,
    /// What frames that are sent pass.
    pub(super) queueing: Queueing,
}

impl Size {
    /// As asked for, or fit for the interface.
    pub(super) fn new(link: &Link, options: &LinkOptions) -> Result<Self, PortError> {
        let needed = RECEIVE_OFFSET + link.longest_arrival() as u32;
        let buffer = match options.buffer {
            Some(asked) if !asked.is_power_of_two() || asked > MOST_BUFFER => {
                let why = "it has to be a power of two, 131072 at most";
                return Err(PortError::RingUnfit { what: "a buffer", asked, why });
            }
            Some(bytes) if bytes < needed => {
                let (interface, mtu, advice) = (link.name.clone(), link.mtu, ADVICE);
                return Err(PortError::BufferTooSmall { interface, mtu, bytes, needed, advice });
            }
            Some(bytes) => bytes,
            None => needed.next_power_of_two(),
        };
        let frames = match options.ring {
            Some(asked) if !(FEWEST_FRAMES..=MOST_FRAMES).contains(&asked) => {
                let why = "it holds from 16 to 65536 frames";
                return Err(PortError::RingUnfit { what: "a ring", asked, why });
            }
            Some(frames) => frames,
            None => USUAL_FRAMES.min(USUAL_BYTES / buffer).max(FEWEST_FRAMES),
        };
        let in_block = (BLOCK / buffer).max(1);
        let (frames, queueing) = (frames.next_multiple_of(in_block), options.queueing);
        Ok(Self { buffer, frames, queueing })
    }

    /// The longest frame that can be sent.
    pub(super) fn room(self) -> usize {
        self.buffer as usize - SEND_OFFSET
    }

    fn bytes(self) -> usize {
        self.buffer as usize * self.frames as usize
    }

    fn request(self) -> libc::tpacket_req {
        let block = BLOCK.max(self.buffer);
        libc::tpacket_req {
            tp_block_size: block,
            tp_block_nr: self.frames / (block / self.buffer),
            tp_frame_size: self.buffer,
            tp_frame_nr: self.frames,
        }
    }
}

/// What a packet socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hears {
    Everything,
    Nothing,
}

/// A packet socket with a ring for either direction.
#[derive(Debug)]
pub(super) struct Lane {
    socket: OwnedFd,
    received: Slots,
    sending: Slots,
    queue: u32,
    /// The next slot that the kernel fills, and how many before it were not given back.
    next: usize,
    held: usize,
    /// The next slot that we fill, and how many before it were not handed over.
    head: usize,
    put: usize,
    /// Something was handed over that the kernel could not send at once.
    unsent: bool,
    dropped: u64,
    refused: Amount,
    bypasses_qdisc: bool,
    _map: Map,
}

impl Lane {
    /// Opens it for what comes by the interface, or for sending only.
    pub(super) fn open(
        link: &Link,
        size: Size,
        queue: u32,
        hears: Hears,
    ) -> Result<Self, PortError> {
        let socket = raw::packet_socket(BACKEND)?;
        let option = |what| move |errno| PortError::Option { backend: BACKEND, what, errno };
        let set = |option, value: libc::c_int| raw::set(&socket, libc::SOL_PACKET, option, &value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as libc::c_int)
            .map_err(option("ring version"))?;
        // Linux 4.20. Without it each frame that we send would be received as well.
        set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(option("wish not to hear itself"))?;
        // Linux 3.14. Not every sandbox has it; without it frames queue like anybody's.
        let bypasses_qdisc =
            size.queueing == Queueing::Bypassed && set(libc::PACKET_QDISC_BYPASS, 1).is_ok();
        let request = size.request();
        for (ring, what) in
            [(libc::PACKET_RX_RING, "receiving ring"), (libc::PACKET_TX_RING, "sending ring")]
        {
            raw::set(&socket, libc::SOL_PACKET, ring, &request).map_err(ring_failed(what))?;
        }
        let map = Map::new(&socket, 2 * size.bytes()).map_err(ring_failed("rings"))?;
        let (count, slot) = (size.frames as usize, size.buffer as usize);
        let (received, sending) = (map.slots(0, count, slot), map.slots(size.bytes(), count, slot));
        let (Some(received), Some(sending)) = (received, sending) else {
            unreachable!("invariant: the mapping was made of both");
        };
        // Last: from here on frames come.
        let kind = match hears {
            Hears::Everything => libc::ETH_P_ALL as u16,
            Hears::Nothing => 0,
        };
        raw::bind_packet(&socket, link.index, kind).map_err(|errno| link.lost(errno))?;
        Ok(Self {
            socket,
            received,
            sending,
            queue,
            next: 0,
            held: 0,
            head: 0,
            put: 0,
            unsent: false,
            dropped: 0,
            refused: Amount::default(),
            bypasses_qdisc,
            _map: map,
        })
    }

    /// Shares the interface's frames out with `first` and those that share with it.
    pub(super) fn share(&self, first: Option<&Self>) -> Result<(), PortError> {
        let option = |errno| PortError::Option { backend: BACKEND, what: "fanout", errno };
        let by_queue = libc::PACKET_FANOUT_QM as libc::c_int;
        let argument = match first {
            // The kernel finds a number for the group that nobody has.
            None => (by_queue | libc::PACKET_FANOUT_FLAG_UNIQUEID as libc::c_int) << 16,
            Some(first) => {
                let group = raw::get(&first.socket, libc::SOL_PACKET, libc::PACKET_FANOUT, 0);
                by_queue << 16 | group.map_err(option)? & 0xffff
            }
        };
        raw::set(&self.socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &argument).map_err(option)
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    #[inline]
    pub(super) fn queue(&self) -> u32 {
        self.queue
    }

    #[inline]
    pub(super) fn received(&self) -> &Slots {
        &self.received
    }

    pub(super) fn bypasses_qdisc(&self) -> bool {
        self.bypasses_qdisc
    }

    /// The slot of the next frame received, where there is one. It is ours until it is given back.
    #[inline]
    pub(super) fn take(&mut self) -> Option<usize> {
        let slot = self.next;
        // A ring may hold less than a burst: what was not given back is not taken twice.
        if self.held == self.received.count()
            || self.received.status(slot) & libc::TP_STATUS_USER == 0
        {
            return None;
        }
        self.held += 1;
        self.next = if slot + 1 == self.received.count() { 0 } else { slot + 1 };
        Some(slot)
    }

    /// Gives a slot back to be filled.
    #[inline]
    pub(super) fn give_back(&mut self, slot: usize) {
        self.received.hand_over(slot, libc::TP_STATUS_KERNEL);
        self.held -= 1;
    }

    /// Gives back all that was received.
    pub(super) fn empty(&mut self) {
        for _ in 0..self.received.count() {
            let Some(slot) = self.take() else { break };
            self.give_back(slot);
        }
    }

    /// Room for a frame that is to be sent.
    #[inline]
    pub(super) fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        let count = self.sending.count();
        if self.put == count {
            return None;
        }
        let slot = self.head + self.put;
        let slot = if slot < count { slot } else { slot - count };
        if self.sending.status(slot) != libc::TP_STATUS_AVAILABLE {
            return None;
        }
        self.sending.set_length(slot, length as u32);
        let room = self.sending.room(slot, length)?;
        self.put += 1;
        Some(room)
    }

    /// Hands over what was put.
    #[inline]
    pub(super) fn hand_over(&mut self) {
        for _ in 0..self.put {
            self.sending.hand_over(self.head, libc::TP_STATUS_SEND_REQUEST);
            self.head = if self.head + 1 == self.sending.count() { 0 } else { self.head + 1 };
        }
        self.put = 0;
    }

    /// Has the kernel send what was handed over. What it cannot send at once stays.
    #[inline]
    pub(super) fn kick(&mut self) -> Result<(), Errno> {
        match send(&self.socket, &[], SendFlags::DONTWAIT) {
            Ok(_) => {
                self.unsent = false;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
                self.unsent = true;
                Ok(())
            }
            Err(errno) => {
                self.rewind();
                Err(errno)
            }
        }
    }

    pub(super) fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// Frames that the kernel has not taken out of the sending ring. It looks at each slot.
    pub(super) fn waiting(&self) -> Amount {
        let count = self.sending.count();
        let asked = |slot: &usize| self.sending.status(*slot) == libc::TP_STATUS_SEND_REQUEST;
        let put = (0..self.put).map(|behind| (self.head + behind) % count);
        put.chain((0..count).filter(asked)).map(|slot| self.length(slot)).collect()
    }

    /// Bytes of a frame in the sending ring. The kernel does not change what is said of it there.
    fn length(&self, slot: usize) -> usize {
        self.sending.header(slot).tp_len as usize
    }

    /// The kernel stops at a frame that it refuses, and goes on there: what was handed over from it
    /// on is taken back, and counted.
    #[cold]
    fn rewind(&mut self) {
        let ours = [libc::TP_STATUS_SEND_REQUEST, libc::TP_STATUS_WRONG_FORMAT];
        for _ in 0..self.sending.count() {
            let before = (self.head + self.sending.count() - 1) % self.sending.count();
            if !ours.contains(&self.sending.status(before)) {
                break;
            }
            self.sending.hand_over(before, libc::TP_STATUS_AVAILABLE);
            self.head = before;
            self.refused.add(self.length(before));
        }
    }

    /// Frames dropped because the receiving ring was full. The kernel forgets at each reading.
    pub(super) fn dropped(&mut self) -> Result<u64, Errno> {
        let none = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let now = raw::get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, none)?;
        self.dropped += u64::from(now.tp_drops);
        Ok(self.dropped)
    }

    /// Frames that the kernel refused to send.
    pub(super) fn refused(&self) -> Amount {
        self.refused
    }
}

fn ring_failed(what: &'static str) -> impl Fn(Errno) -> PortError {
    move |errno| {
        let advice = "ask for a smaller one; the kernel has no memory in such pieces";
        PortError::Ring { backend: BACKEND, what, errno, advice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Mac;

    fn link(mtu: u32) -> Link {
        let (name, mac, addresses) = ("near".into(), Mac([2; 6]), Vec::new());
        Link { name, index: 2, mac, mtu, addresses, probe: None }
    }

    #[test]
    fn rings_hold_the_longest_frame_and_fill_whole_blocks() {
        for (mtu, buffer) in [(1_500, 2_048), (9_000, 16_384), (65_536, 131_072), (68, 256)] {
            let size = Size::new(&link(mtu), &LinkOptions::default()).unwrap();
            assert_eq!(size.buffer, buffer, "{mtu}");
            let request = size.request();
            assert_eq!(request.tp_frame_nr % request.tp_block_nr, 0);
            let in_blocks = u64::from(request.tp_block_size) * u64::from(request.tp_block_nr);
            assert_eq!(in_blocks, size.bytes() as u64, "{mtu}");
            assert!(size.bytes() <= 16 << 20 && size.room() >= mtu as usize + 14);
        }
    }

    #[test]
    fn rings_that_cannot_be_are_refused_by_name() {
        let asked = |buffer, ring| {
            let options = LinkOptions { ring, buffer, ..LinkOptions::default() };
            Size::new(&link(1_500), &options).unwrap_err()
        };
        let error = asked(Some(1_024), None);
        assert!(matches!(error, PortError::BufferTooSmall { needed: 1_602, .. }), "{error}");
        assert!(error.to_string().contains("MTU of 1500"), "{error}");
        for error in [asked(Some(3_000), None), asked(None, Some(8)), asked(None, Some(1 << 20))] {
            assert!(matches!(error, PortError::RingUnfit { .. }), "{error}");
        }
        let options = LinkOptions { ring: Some(33), ..LinkOptions::default() };
        assert_eq!(Size::new(&link(1_500), &options).unwrap().frames, 64);
    }
}
