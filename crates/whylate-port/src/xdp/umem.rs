//! The memory that frames of one socket lie in, shared with the kernel and, without copies, the card.
//!
//! Whose a buffer is, the rings say: it is ours from when we take it out of one until we put it into
//! another. [`Umem`] checks that a range lies within its part of the memory, and that is all that it
//! knows. Parts do not overlap, so that one thread can have that of receiving and another that of sending.

#![expect(unsafe_code, reason = "buffers are memory that the kernel writes to as well")]

use std::ptr::NonNull;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// Memory that was mapped.
#[derive(Debug)]
struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value, not to a thread.
unsafe impl Send for Map {}
// SAFETY: a shared map only tells where it lies; who reaches into it has a part of its own.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `Umem::new`, and no frame outlives the last part. The kernel
        // keeps pages of its own until the socket is closed.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A part of the memory: buffers of one size, one after another.
#[derive(Debug)]
pub(super) struct Umem {
    map: Arc<Map>,
    from: usize,
    to: usize,
}

impl Umem {
    /// Maps `count` buffers of `buffer` bytes, present at once.
    pub(super) fn new(count: u32, buffer: u32) -> Result<Self, Errno> {
        let bytes = count as usize * buffer as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: without a hint the kernel chooses addresses that nothing else uses.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let start = NonNull::new(start?.cast()).ok_or(Errno::FAULT)?;
        Ok(Self { map: Arc::new(Map { start, bytes }), from: 0, to: bytes })
    }

    /// Where all of it begins, as the kernel is told.
    pub(super) fn address(&self) -> u64 {
        self.map.start.as_ptr() as u64
    }

    /// Bytes of all of it.
    pub(super) fn bytes(&self) -> usize {
        self.map.bytes
    }

    /// What lies before this offset, and what lies behind it.
    pub(super) fn split(self, at: usize) -> (Self, Self) {
        let at = at.clamp(self.from, self.to);
        let before = Self { map: Arc::clone(&self.map), from: self.from, to: at };
        (before, Self { from: at, ..self })
    }

    /// A frame in a buffer that is ours; none where it does not lie within.
    #[inline]
    pub(super) fn frame(&self, at: u64, length: u32) -> Option<&[u8]> {
        let start = self.within(at, length as usize)?;
        // SAFETY: the range lies within our part, and nobody writes there while it is ours.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), length as usize) })
    }

    /// Room for a frame in a buffer that is ours; none where it does not lie within.
    #[inline]
    pub(super) fn room(&mut self, at: u64, length: u32) -> Option<&mut [u8]> {
        let start = self.within(at, length as usize)?;
        // SAFETY: the range lies within our part, the kernel leaves it alone while it is ours, and
        // `&mut self` keeps others of this side away.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length as usize) })
    }

    #[inline]
    fn within(&self, at: u64, length: usize) -> Option<NonNull<u8>> {
        let at = usize::try_from(at).ok()?;
        if at < self.from || at.checked_add(length)? > self.to {
            return None;
        }
        // SAFETY: the offset was found to lie within this part of the mapping.
        Some(unsafe { self.map.start.add(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_within_the_memory_or_there_are_none() {
        let mut umem = Umem::new(4, 2_048).unwrap();
        assert_eq!((umem.bytes(), umem.address() % 4_096), (8_192, 0));
        umem.room(2_048, 60).unwrap().fill(7);
        assert_eq!(umem.frame(2_100, 10).unwrap(), [7, 7, 7, 7, 7, 7, 7, 7, 0, 0]);
        assert!(umem.frame(8_190, 2).is_some() && umem.frame(8_190, 3).is_none());
        assert!(umem.frame(u64::MAX, 1).is_none() && umem.room(9_000, 0).is_none());
    }

    #[test]
    fn parts_do_not_reach_into_each_other_and_the_memory_outlives_the_first_that_goes() {
        let (before, mut behind) = Umem::new(4, 2_048).unwrap().split(4_096);
        assert!(before.frame(4_095, 1).is_some() && before.frame(4_095, 2).is_none());
        assert!(behind.room(4_095, 1).is_none() && behind.room(8_192, 1).is_none());
        drop(before);
        behind.room(8_191, 1).unwrap().fill(7);
        assert_eq!(behind.frame(8_191, 1).unwrap(), [7]);
    }
}
