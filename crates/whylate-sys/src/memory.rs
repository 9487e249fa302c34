//! Memory that is there before it is needed.
//!
//! [`mlockall(2)`](https://man7.org/linux/man-pages/man2/mlockall.2.html),
//! [`mmap(2)`](https://man7.org/linux/man-pages/man2/mmap.2.html),
//! [`madvise(2)`](https://man7.org/linux/man-pages/man2/madvise.2.html). Capability: `CAP_IPC_LOCK`
//! to lock more than `RLIMIT_MEMLOCK`.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MlockAllFlags, ProtFlags};

use crate::capability::{self, Cap};
use crate::{SysError, limits};

/// What [`prefault_stack`] touches: more than the measuring loops and their calls ever use.
pub const STACK_BYTES: usize = 128 * 1024;
/// A stride that meets each page, whatever the page size.
const SMALLEST_PAGE: usize = 4096;

/// Why memory could not be locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRefusal {
    /// What the kernel answered.
    pub errno: Errno,
    /// The size of the process, where it could be read.
    pub bytes: Option<u64>,
    /// `RLIMIT_MEMLOCK`; `None` is unlimited.
    pub limit: Option<u64>,
    /// Whether `CAP_IPC_LOCK` is effective, so that the limit does not count.
    pub privileged: bool,
}

impl fmt::Display for LockRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bytes) = self.bytes {
            write!(f, "its address space has {}: ", Size(bytes))?;
        }
        match (self.privileged, self.limit) {
            (false, Some(limit)) => write!(
                f,
                "RLIMIT_MEMLOCK is {}; give CAP_IPC_LOCK, or raise `memlock` in limits.conf as root",
                Size(limit)
            ),
            _ => write!(f, "{}; the machine or the cgroup has too little free memory", self.errno),
        }
    }
}

/// Locks all pages that the process has and will have into memory.
pub fn lock_all() -> Result<(), SysError> {
    rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|errno| {
        SysError::MemoryLock(LockRefusal {
            errno,
            bytes: process_bytes(),
            limit: limits::memory_lock(),
            privileged: capability::effective().has(Cap::IpcLock),
        })
    })
}

/// Undoes [`lock_all`].
pub fn unlock_all() -> Result<(), SysError> {
    rustix::mm::munlockall()
        .map_err(|errno| SysError::call("munlockall", "unlock the memory of this process", errno))
}

/// Touches [`STACK_BYTES`] of the calling thread's stack below its present depth.
#[inline(never)]
pub fn prefault_stack() {
    #[expect(clippy::large_stack_arrays, reason = "using the stack is what it is for")]
    let mut stack = [0_u8; STACK_BYTES];
    for byte in stack.iter_mut().step_by(SMALLEST_PAGE) {
        *byte = 1;
    }
    std::hint::black_box(&mut stack);
}

/// Gives the pages of `buffer` back: its next touch of each is a page fault that finds a zero.
pub fn advise_dontneed(buffer: &mut PageBuffer) -> Result<(), SysError> {
    buffer.drop_pages()
}

/// Whole pages of private memory, mapped for this alone.
///
/// Shared access goes through atomics, so that a signal handler may touch what another thread
/// drops; [`as_mut_slice`](Self::as_mut_slice) is for a single owner.
#[derive(Debug)]
pub struct PageBuffer {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value, not to a thread.
unsafe impl Send for PageBuffer {}
// SAFETY: through a shared reference bytes are reached as atomics only.
unsafe impl Sync for PageBuffer {}

impl PageBuffer {
    /// Maps `pages` pages, none of which is present yet unless [`lock_all`] is in force.
    pub fn new(pages: usize) -> Result<Self, SysError> {
        let what = || format!("map {pages} pages");
        let bytes = pages
            .checked_mul(rustix::param::page_size())
            .filter(|bytes| *bytes > 0)
            .ok_or_else(|| SysError::invalid(what(), "the size is zero or does not fit"))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without a hint the kernel chooses addresses that nothing else uses.
        let start = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)
        };
        let start = start.map_err(|errno| {
            SysError::advised("mmap", what(), errno, "ask for less, or see RLIMIT_MEMLOCK")
        })?;
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { start, bytes }),
            None => Err(SysError::invalid(what(), "the kernel mapped them at address 0")),
        }
    }

    /// How many pages it has.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.bytes / rustix::param::page_size()
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes one byte in each page; absent pages fault in. May be called in a signal handler.
    pub fn touch_all(&self) {
        for byte in self.as_atomics().iter().step_by(SMALLEST_PAGE) {
            byte.store(1, Ordering::Relaxed);
        }
    }

    /// Gives all pages back: the next touch of each is a page fault that finds a zero. Pages that
    /// were locked are unlocked for it and stay so.
    pub fn drop_pages(&self) -> Result<(), SysError> {
        // Locked pages cannot be given back.
        let outcome = match self.advise_dontneed() {
            Err(Errno::INVAL) => self.unlock().and_then(|()| self.advise_dontneed()),
            outcome => outcome,
        };
        outcome.map_err(|errno| {
            SysError::call("madvise", format!("give back {} pages", self.pages()), errno)
        })
    }

    /// The whole buffer, for its only owner.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has `bytes` initialised bytes, and `&mut self` excludes all others.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    fn as_atomics(&self) -> &[AtomicU8] {
        // SAFETY: the mapping has `bytes` bytes; without `&mut self` they are reached here only.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes) }
    }

    fn advise_dontneed(&self) -> Result<(), Errno> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the range is this mapping; dropped pages read as zeros, a valid value.
        unsafe { rustix::mm::madvise(start, self.bytes, Advice::LinuxDontNeed) }
    }

    fn unlock(&self) -> Result<(), Errno> {
        // SAFETY: the range is this mapping.
        unsafe { rustix::mm::munlock(self.start.as_ptr().cast(), self.bytes) }
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no reference into it outlives the value.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A size in the largest binary unit that leaves it a whole number or above ten.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 30 && (bytes % (1 << 30) == 0 || bytes >= 10 << 30) => {
                write!(f, "{} GiB", bytes >> 30)
            }
            bytes if bytes >= 1 << 20 => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes >= 1 << 10 => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

fn process_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// Locking is of the whole process: tests that depend on it go one after another.
    static LOCKING: Mutex<()> = Mutex::new(());

    fn resident(start: *const u8, bytes: usize) -> usize {
        let page = rustix::param::page_size();
        let start = start.map_addr(|address| address / page * page);
        let mut present = vec![0_u8; bytes / page];
        // SAFETY: the kernel writes one byte for each page of the range, which is mapped.
        let answer = unsafe { libc::mincore(start.cast_mut().cast(), bytes, present.as_mut_ptr()) };
        assert_eq!(answer, 0, "{}", crate::error::last_errno());
        present.iter().filter(|page| **page & 1 == 1).count()
    }

    fn resident_pages(buffer: &PageBuffer) -> usize {
        resident(buffer.start.as_ptr(), buffer.bytes)
    }

    #[test]
    fn pages_are_absent_until_touched_and_again_after_they_were_given_back() {
        let _alone = LOCKING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = PageBuffer::new(16).unwrap();
        assert_eq!((buffer.pages(), resident_pages(&buffer)), (16, 0));
        buffer.touch_all();
        assert_eq!(resident_pages(&buffer), 16);
        buffer.as_mut_slice().fill(7);
        advise_dontneed(&mut buffer).unwrap();
        assert_eq!(resident_pages(&buffer), 0);
        assert!(buffer.as_mut_slice().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn locked_pages_are_present_at_once_and_can_be_given_back_all_the_same() {
        let _alone = LOCKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(refusal) = lock_all() {
            return crate::tests::skip(&refusal);
        }
        let buffer = PageBuffer::new(16).unwrap();
        let present = resident_pages(&buffer);
        let given_back = buffer.drop_pages();
        let left = resident_pages(&buffer);
        unlock_all().unwrap();
        given_back.unwrap();
        assert_eq!((present, left), (16, 0));
    }

    #[test]
    fn a_refused_lock_names_the_limit_and_the_way_out() {
        let _alone = LOCKING.lock().unwrap_or_else(PoisonError::into_inner);
        crate::tests::without(Cap::IpcLock, || match lock_all() {
            Ok(()) => {
                unlock_all().unwrap();
                crate::tests::skip(&"RLIMIT_MEMLOCK is large enough for this process");
            }
            Err(refusal) => {
                let limit = limits::memory_lock().map(|limit| Size(limit).to_string()).unwrap();
                let text = refusal.to_string();
                assert!(text.contains(&format!("RLIMIT_MEMLOCK is {limit}")), "{text}");
                assert!(text.contains("raise `memlock`"), "{text}");
            }
        });
    }

    #[test]
    fn a_buffer_without_pages_or_beyond_memory_is_refused() {
        assert!(matches!(PageBuffer::new(0), Err(SysError::Invalid { .. })));
        assert!(matches!(PageBuffer::new(usize::MAX), Err(SysError::Invalid { .. })));
        let beyond = usize::MAX / rustix::param::page_size();
        assert_eq!(PageBuffer::new(beyond).unwrap_err().errno(), Some(Errno::NOMEM));
    }

    #[test]
    fn the_stack_below_is_present_once_it_was_prefaulted() {
        std::thread::spawn(|| {
            prefault_stack();
            let here = 0_u8;
            let page = rustix::param::page_size();
            let bytes = STACK_BYTES / page * page - 4 * page;
            let lowest = (&raw const here).wrapping_sub(bytes + page);
            assert_eq!(resident(lowest, bytes), bytes / page);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn sizes_are_printed_in_units_that_people_use() {
        let sizes =
            [(100, "100 bytes"), (65_536, "64 KiB"), (8 << 20, "8 MiB"), (3 << 30, "3 GiB")];
        for (bytes, text) in sizes {
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!(Size((5 << 30) + (1 << 29)).to_string(), "5632 MiB");
    }
}
