//! What a measuring thread does between two readings of the clock.

/// Work between two readings. The loops are compiled once for each.
pub trait Workload {
    /// Iterations of a block: fewer where an iteration is long, so that stop and end are seen.
    const BLOCK: u64;

    /// Does the work once.
    fn work(&mut self);
}

/// Nothing: the loop only reads the clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Workload for Nothing {
    const BLOCK: u64 = 4096;

    #[inline(always)]
    fn work(&mut self) {}
}

/// Reads an array from end to end and over again, a cache line in each iteration: a task with a
/// working set in the data caches.
#[derive(Debug)]
pub struct Scan {
    lines: Box<[Line]>,
    next: usize,
}

/// Bytes that one iteration of a scan moves on: a cache line.
pub const LINE: usize = 64;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([u64; LINE / size_of::<u64>()]);

impl Scan {
    /// An array of `bytes`, rounded up to whole lines, touched by the calling thread.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { lines: vec![Line([1; 8]); bytes.div_ceil(LINE).max(1)].into(), next: 0 }
    }
}

impl Workload for Scan {
    const BLOCK: u64 = 4096;

    #[inline(always)]
    fn work(&mut self) {
        if let Some(line) = self.lines.get(self.next) {
            std::hint::black_box(line.0[0]);
        }
        self.next = if self.next + 1 < self.lines.len() { self.next + 1 } else { 0 };
    }
}

/// Copies a buffer onto another, so that what evicts the cache shows as a longer iteration.
///
/// A block is a few of these: 64 copies of 64 KiB were never free of gaps on a busy machine.
#[derive(Debug)]
pub struct Memmove<const COPIES_IN_A_BLOCK: u64> {
    from: Box<[u8]>,
    to: Box<[u8]>,
}

impl<const COPIES_IN_A_BLOCK: u64> Memmove<COPIES_IN_A_BLOCK> {
    /// Two buffers of `bytes` each, touched by the calling thread.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            from: vec![0xa5; bytes].into_boxed_slice(),
            to: vec![0x5a; bytes].into_boxed_slice(),
        }
    }
}

impl<const COPIES_IN_A_BLOCK: u64> Workload for Memmove<COPIES_IN_A_BLOCK> {
    const BLOCK: u64 = COPIES_IN_A_BLOCK;

    #[inline(always)]
    fn work(&mut self) {
        self.to.copy_from_slice(std::hint::black_box(&self.from));
        std::hint::black_box(&mut self.to);
    }
}
