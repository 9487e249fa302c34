//! The rings of a packet socket, shared with the kernel: version 2, one status word a frame.
//!
//! [Packet MMAP](https://docs.kernel.org/networking/packet_mmap.html), `linux/if_packet.h`. Version 3
//! hands over whole blocks, when they are full or when a timer of at least a millisecond ends: right
//! for capturing, wrong for round trips of microseconds. Version 2 shows each frame when it is there.
//!
//! Whose a frame is, its status word says. Each side reads it with acquire before it touches the
//! frame, and writes it with release after it has done so.

#![expect(unsafe_code, reason = "rings are memory that the kernel writes to as well")]

use std::mem::offset_of;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// Where a frame's bytes begin in a slot of the sending ring: behind the header, aligned.
pub(super) const SEND_OFFSET: usize = 32;
const _: () = assert!(size_of::<libc::tpacket2_hdr>() == SEND_OFFSET);

/// Memory mapped from a packet socket: its receiving ring, then its sending ring.
#[derive(Debug)]
pub(super) struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value, not to a thread.
unsafe impl Send for Map {}

impl Map {
    /// Maps all of a socket's rings, `bytes` in all.
    pub(super) fn new(socket: &OwnedFd, bytes: usize) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: without a hint the kernel chooses addresses that nothing else uses.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, flags, socket, 0) };
        let start = NonNull::new(start?.cast()).ok_or(Errno::FAULT)?;
        Ok(Self { start, bytes })
    }

    /// The slots from byte `from` on; none where they do not all lie within.
    pub(super) fn slots(&self, from: usize, count: usize, slot: usize) -> Option<Slots> {
        let fits = count.checked_mul(slot)?.checked_add(from)? <= self.bytes;
        let aligned = from.is_multiple_of(16) && slot.is_multiple_of(16) && slot > SEND_OFFSET;
        if !(fits && aligned) {
            return None;
        }
        // SAFETY: `from` lies within the mapping.
        let start = unsafe { self.start.add(from) };
        Some(Slots { start, count, slot })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`; its owner drops the slots with it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The frames of one ring. Whoever has it keeps its [`Map`] as long.
#[derive(Debug)]
pub(super) struct Slots {
    start: NonNull<u8>,
    count: usize,
    slot: usize,
}

// SAFETY: as the mapping.
unsafe impl Send for Slots {}

impl Slots {
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn at(&self, at: usize) -> NonNull<u8> {
        assert!(at < self.count, "invariant: slots are counted modulo the ring");
        // SAFETY: all slots lie within the mapping.
        unsafe { self.start.add(at * self.slot) }
    }

    /// Whose a slot is.
    #[inline]
    pub(super) fn status(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Acquire)
    }

    /// Hands a slot over.
    #[inline]
    pub(super) fn hand_over(&self, at: usize, status: u32) {
        self.word(at).store(status, Ordering::Release);
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: each slot begins with this word, aligned; both sides reach it as a whole.
        unsafe { self.at(at).cast().as_ref() }
    }

    /// What the kernel says of a frame that is ours.
    #[inline]
    pub(super) fn header(&self, at: usize) -> libc::tpacket2_hdr {
        // SAFETY: each slot begins with this header, aligned; the frame is ours, so nobody writes.
        unsafe { self.at(at).cast().read_volatile() }
    }

    /// Says how long a frame is that is to be sent.
    #[inline]
    pub(super) fn set_length(&mut self, at: usize, length: u32) {
        // SAFETY: each slot begins with this header.
        let place = unsafe { self.at(at).add(offset_of!(libc::tpacket2_hdr, tp_len)) };
        // SAFETY: a word of the header, aligned as it is; the slot is ours.
        unsafe { place.cast::<u32>().write(length) }
    }

    /// The bytes of a frame that is ours, as far as they lie in its slot.
    #[inline]
    pub(super) fn bytes(&self, at: usize, from: usize, length: usize) -> &[u8] {
        let from = from.min(self.slot);
        let length = length.min(self.slot - from);
        // SAFETY: the range lies within the slot.
        let start = unsafe { self.at(at).add(from) };
        // SAFETY: the bytes are there, and the kernel does not write while the slot is ours.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), length) }
    }

    /// Room for a frame of `length` bytes in a slot that is ours; none where it is too long.
    #[inline]
    pub(super) fn room(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        if length > self.slot - SEND_OFFSET {
            return None;
        }
        // SAFETY: the range lies within the slot.
        let start = unsafe { self.at(at).add(SEND_OFFSET) };
        // SAFETY: the bytes are there, nobody else has them while the slot is ours, and `&mut self`
        // keeps others of this side away.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) })
    }
}
