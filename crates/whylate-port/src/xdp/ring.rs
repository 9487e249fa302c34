//! Rings of one producer and one consumer, of which one is the kernel.
//!
//! [AF_XDP](https://docs.kernel.org/networking/af_xdp.html), `linux/if_xdp.h`: two counters that only
//! ever grow, modulo 2^32, and a power of two of entries. Who produces writes entries, then its counter
//! with release; who consumes reads that counter with acquire, then the entries, then writes its own
//! counter with release; and that one the producer reads with acquire before it writes an entry anew.
//! So no side ever sees an entry that the other has not finished with. Each side keeps its own counter
//! and the last value of the other's, and reads the shared line only when it has to.

#![expect(unsafe_code, reason = "rings are memory that the kernel writes to as well")]

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::net::xdp::XdpRingOffset;

/// The kernel has to be called before it does anything.
const NEED_WAKEUP: u32 = 1;

/// Memory mapped from a socket, or the kernel's part in a test.
#[derive(Debug)]
struct Map {
    start: NonNull<u8>,
    bytes: usize,
    /// Unmapped on drop.
    mapped: bool,
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.mapped {
            // SAFETY: the range was mapped by `Shared::map`, whose owner ends with it.
            let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}

/// A ring in memory that two sides share.
#[derive(Debug)]
struct Shared<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    count: u32,
    _map: Map,
}

// SAFETY: the mapping belongs to the value, not to a thread, and entries are plain.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// Maps a ring of `count` entries from a socket, at the page that stands for it.
    fn map(
        socket: &OwnedFd,
        page: u64,
        offsets: &XdpRingOffset,
        count: u32,
    ) -> Result<Self, Errno> {
        let bytes = offsets.desc as usize + count as usize * size_of::<T>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: without a hint the kernel chooses addresses that nothing else uses.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, flags, socket, page)
        };
        let start = NonNull::new(start?.cast()).ok_or(Errno::FAULT)?;
        Self::within(Map { start, bytes, mapped: true }, offsets, count)
    }

    /// A ring in memory that is there; refused where it does not lie within, aligned.
    fn within(map: Map, offsets: &XdpRingOffset, count: u32) -> Result<Self, Errno> {
        let end = |offset: u64, bytes: usize| (offset as usize).checked_add(bytes);
        let fits = |offset: u64, bytes: usize, align: usize| {
            end(offset, bytes).is_some_and(|end| end <= map.bytes)
                && (map.start.as_ptr() as usize + offset as usize).is_multiple_of(align)
        };
        let words = [Some(offsets.producer), Some(offsets.consumer), offsets.flags];
        let sound = count.is_power_of_two()
            && words.into_iter().flatten().all(|word| fits(word, 4, 4))
            && fits(offsets.desc, count as usize * size_of::<T>(), align_of::<T>());
        if !sound {
            return Err(Errno::INVAL);
        }
        // SAFETY: all these offsets were found to lie within the memory.
        let at = |offset: u64| unsafe { map.start.add(offset as usize) };
        Ok(Self {
            producer: at(offsets.producer).cast(),
            consumer: at(offsets.consumer).cast(),
            flags: offsets.flags.map(|flags| at(flags).cast()),
            entries: at(offsets.desc).cast(),
            count,
            _map: map,
        })
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: an aligned word within the memory, which lives as long as this.
        unsafe { self.producer.as_ref() }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: an aligned word within the memory, which lives as long as this.
        unsafe { self.consumer.as_ref() }
    }

    #[inline]
    fn needs_wakeup(&self) -> bool {
        // SAFETY: an aligned word within the memory, which lives as long as this.
        let flags = self.flags.map(|flags| unsafe { flags.as_ref() });
        // Kernels before 5.4 have no such word: they are woken each time.
        flags.is_none_or(|flags| flags.load(Ordering::Relaxed) & NEED_WAKEUP != 0)
    }

    #[inline]
    fn entry(&self, number: u32) -> NonNull<T> {
        // SAFETY: the number is taken modulo the ring, all of which lies within the memory.
        unsafe { self.entries.add((number & (self.count - 1)) as usize) }
    }
}

/// Our end of a ring that we fill: empty buffers, frames to be sent.
#[derive(Debug)]
pub(super) struct Producer<T> {
    shared: Shared<T>,
    /// The next entry that we write.
    next: u32,
    /// The consumer's counter when it was last read.
    consumed: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn map(
        socket: &OwnedFd,
        page: u64,
        offsets: &XdpRingOffset,
        count: u32,
    ) -> Result<Self, Errno> {
        Ok(Self::of(Shared::map(socket, page, offsets, count)?))
    }

    fn of(shared: Shared<T>) -> Self {
        let next = shared.producer().load(Ordering::Relaxed);
        let consumed = shared.consumer().load(Ordering::Acquire);
        Self { shared, next, consumed }
    }

    /// Writes an entry, which the other side does not see yet; false where the ring is full.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.next.wrapping_sub(self.consumed) == self.shared.count {
            // Acquire: the other side has read the entry before it counted it as read.
            self.consumed = self.shared.consumer().load(Ordering::Acquire);
            if self.next.wrapping_sub(self.consumed) == self.shared.count {
                return false;
            }
        }
        // SAFETY: an entry within the ring that the other side has finished with.
        unsafe { self.shared.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the other side what was written.
    #[inline]
    pub(super) fn submit(&mut self) {
        // Release: the entries, and the frames that they name, are written before.
        self.shared.producer().store(self.next, Ordering::Release);
    }

    /// Entries that the other side has not taken yet.
    #[inline]
    pub(super) fn under_way(&mut self) -> u32 {
        self.consumed = self.shared.consumer().load(Ordering::Acquire);
        self.shared.producer().load(Ordering::Relaxed).wrapping_sub(self.consumed)
    }

    /// The entries themselves that it has not taken yet, in their order.
    pub(super) fn not_taken(&mut self) -> impl Iterator<Item = T> + '_ {
        let count = self.under_way().min(self.shared.count);
        let (shared, first) = (&self.shared, self.consumed);
        (0..count).map(move |behind| {
            let entry = shared.entry(first.wrapping_add(behind));
            // SAFETY: an entry within the ring, which was written before it was shown, and which the other
            // side only reads.
            unsafe { entry.read() }
        })
    }

    /// Does the kernel wait for a call? It may say so just after this looked: who waits for progress
    /// looks again.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.shared.needs_wakeup()
    }
}

/// Our end of a ring that the kernel fills: frames received, buffers of what has left.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    shared: Shared<T>,
    /// The next entry that we read.
    next: u32,
    /// The producer's counter when it was last read.
    produced: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn map(
        socket: &OwnedFd,
        page: u64,
        offsets: &XdpRingOffset,
        count: u32,
    ) -> Result<Self, Errno> {
        Ok(Self::of(Shared::map(socket, page, offsets, count)?))
    }

    fn of(shared: Shared<T>) -> Self {
        let next = shared.consumer().load(Ordering::Relaxed);
        let produced = shared.producer().load(Ordering::Acquire);
        Self { shared, next, produced }
    }

    /// Reads an entry, which stays where it is until it is released.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.next == self.produced {
            // Acquire: the entries, and the frames that they name, are read after.
            self.produced = self.shared.producer().load(Ordering::Acquire);
            if self.next == self.produced {
                return None;
            }
        }
        // SAFETY: an entry within the ring that the other side has finished with.
        let entry = unsafe { self.shared.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Lets the other side write anew where entries were read.
    #[inline]
    pub(super) fn release(&mut self) {
        // Release: the entries were read before.
        self.shared.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::Size;
    use super::*;

    const COUNT: u32 = 8;
    const OFFSETS: XdpRingOffset =
        XdpRingOffset { producer: 0, consumer: 64, desc: 192, flags: Some(128) };

    /// A ring in ordinary memory, seen from both of its sides; counters begin at `from`.
    fn both(memory: &mut Vec<u64>, from: u32) -> (Producer<u64>, Consumer<u64>) {
        memory.resize(192 / 8 + COUNT as usize, 0);
        let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
        let bytes = memory.len() * 8;
        let seen = || Shared::<u64>::within(Map { start, bytes, mapped: false }, &OFFSETS, COUNT);
        let (one, other) = (seen().unwrap(), seen().unwrap());
        one.producer().store(from, Ordering::Relaxed);
        one.consumer().store(from, Ordering::Relaxed);
        (Producer::of(one), Consumer::of(other))
    }

    #[test]
    fn what_is_pushed_is_popped_once_in_order_also_where_counters_wrap() {
        let mut memory = Vec::new();
        for from in [0, 5, u32::MAX - 3] {
            let (mut filling, mut emptying) = both(&mut memory, from);
            let (mut sent, mut got) = (0, 0);
            for round in 0..100 {
                for _ in 0..round % 9 {
                    sent += u64::from(filling.push(sent));
                }
                filling.submit();
                for _ in 0..round % 7 {
                    if let Some(entry) = emptying.pop() {
                        assert_eq!(entry, got);
                        got += 1;
                    }
                }
                emptying.release();
                assert_eq!(u64::from(filling.under_way()), sent - got);
            }
            assert!(got > 100, "{got}");
        }
    }

    #[test]
    fn what_the_other_side_has_not_taken_is_told_entry_by_entry_also_where_counters_wrap() {
        let mut memory = Vec::new();
        for from in [0, 6, u32::MAX - 2] {
            let (mut filling, mut emptying) = both(&mut memory, from);
            let told = |ring: &mut Producer<u64>| ring.not_taken().collect::<Vec<_>>();
            assert!((10..16).all(|entry| filling.push(entry)));
            assert!(told(&mut filling).is_empty(), "nothing was shown");
            filling.submit();
            assert_eq!(told(&mut filling), [10, 11, 12, 13, 14, 15]);
            assert_eq!([emptying.pop(), emptying.pop()], [Some(10), Some(11)]);
            emptying.release();
            assert_eq!(told(&mut filling), [12, 13, 14, 15]);
        }
    }

    #[test]
    fn a_full_ring_takes_nothing_and_nothing_is_seen_before_it_is_submitted() {
        let mut memory = Vec::new();
        let (mut filling, mut emptying) = both(&mut memory, 0);
        assert!((0..8).all(|entry| filling.push(entry)) && !filling.push(8));
        assert_eq!(emptying.pop(), None);
        filling.submit();
        assert_eq!(emptying.pop(), Some(0));
        // Read, but not released: the place may still be read.
        assert!(!filling.push(8));
        emptying.release();
        assert!(filling.push(8) && !filling.push(9));
    }

    #[test]
    fn a_buffer_that_is_given_back_before_its_entry_was_taken_finds_room() {
        // The kernel shows a frame before it says that it has taken the entry of the buffer.
        let size = Size { buffer: 2_048, frames: COUNT / 2, front: 0 };
        assert_eq!(size.fill(), COUNT, "the ring of these tests has room for so many");
        let mut memory = Vec::new();
        let (mut filling, mut kernel) = both(&mut memory, u32::MAX - 3);
        assert!((0..size.frames).all(|buffer| filling.push(u64::from(buffer))));
        filling.submit();
        for round in 0..10 {
            let shown: Vec<u64> = (0..size.frames).map_while(|_| kernel.pop()).collect();
            assert_eq!(shown, [0, 1, 2, 3], "round {round}: each buffer once");
            assert!(shown.into_iter().all(|buffer| filling.push(buffer)), "round {round}");
            filling.submit();
            kernel.release();
        }
    }

    #[test]
    fn two_threads_at_once_lose_nothing_and_see_nothing_unfinished() {
        const MANY: u64 = 200_000;
        let mut memory = Vec::new();
        let (mut filling, mut emptying) = both(&mut memory, u32::MAX - 1_000);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for entry in 0..MANY {
                    while !filling.push(entry) {
                        filling.submit();
                        std::thread::yield_now();
                    }
                }
                filling.submit();
            });
            for expected in 0..MANY {
                let entry = loop {
                    if let Some(entry) = emptying.pop() {
                        break entry;
                    }
                    emptying.release();
                    std::thread::yield_now();
                };
                assert_eq!(entry, expected);
            }
        });
    }

    #[test]
    fn a_ring_that_does_not_lie_within_its_memory_is_refused() {
        let mut memory = vec![0_u64; 24 + 8];
        let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
        let tried = |bytes, offsets: XdpRingOffset, count| {
            let map = Map { start, bytes, mapped: false };
            Shared::<u64>::within(map, &offsets, count).is_ok()
        };
        let bytes = memory.len() * 8;
        assert!(tried(bytes, OFFSETS, 8));
        assert!(!tried(bytes - 1, OFFSETS, 8) && !tried(bytes, OFFSETS, 6));
        assert!(!tried(bytes, XdpRingOffset { desc: 196, ..OFFSETS }, 4));
        assert!(!tried(bytes, XdpRingOffset { producer: u64::MAX - 2, ..OFFSETS }, 8));
        assert!(tried(bytes, XdpRingOffset { flags: None, ..OFFSETS }, 8));
    }

    #[test]
    fn the_kernel_is_woken_when_it_says_so_and_always_where_it_cannot_say() {
        let mut memory = Vec::new();
        let (filling, _emptying) = both(&mut memory, 0);
        assert!(!filling.needs_wakeup());
        let flags = filling.shared.flags.unwrap();
        // SAFETY: the word lies in `memory`, which is still there.
        unsafe { flags.as_ref() }.store(NEED_WAKEUP, Ordering::Relaxed);
        assert!(filling.needs_wakeup());
    }
}
