//! Memory that several processes have in common.
//!
//! [`memfd_create(2)`](https://man7.org/linux/man-pages/man2/memfd_create.2.html),
//! [`mmap(2)`](https://man7.org/linux/man-pages/man2/mmap.2.html). Capability: none.
//!
//! A memory of its own file, which no path leads to, mapped by whoever holds the descriptor: it goes
//! away with the last of them. Its size is sealed, so that no holder can take pages away under
//! another. Two ranges, which do not overlap, are reached as atomics alone: one page of words to
//! wait for, and behind it the data.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::SysError;

/// Bytes of the words to wait for, in front of the data.
const CONTROL_BYTES: usize = 4096;
/// Words to wait for.
pub const CONTROL_WORDS: usize = CONTROL_BYTES / size_of::<AtomicU32>();
/// Larger ones are refused: nothing that measures needs more, and a mistake must not take the
/// machine's memory.
pub const MOST_BYTES: usize = 1 << 30;
/// What is not to change from its making on.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Memory that several processes have in common.
#[derive(Debug)]
pub struct SharedMemory {
    file: OwnedFd,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value, not to a thread.
unsafe impl Send for SharedMemory {}
// SAFETY: all of it is reached as atomics only.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// A new memory with so many words of data, all zero.
    pub fn new(data_words: usize) -> Result<Self, SysError> {
        let what = || format!("make a shared memory of {data_words} words");
        let bytes = data_words
            .checked_mul(size_of::<u64>())
            .and_then(|bytes| bytes.checked_add(CONTROL_BYTES))
            .filter(|bytes| *bytes <= MOST_BYTES && data_words > 0)
            .ok_or_else(|| {
                SysError::invalid(what(), format!("it is empty or above {MOST_BYTES} bytes"))
            })?;
        let failed = |call| {
            move |errno| {
                let advice = "the machine or the cgroup may have too little free memory";
                SysError::advised(call, what(), errno, advice)
            }
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("whylate", flags).map_err(failed("memfd_create"))?;
        rustix::fs::ftruncate(&file, bytes as u64).map_err(failed("ftruncate"))?;
        rustix::fs::fcntl_add_seals(&file, SEALS).map_err(failed("fcntl"))?;
        Self::map(file, bytes)
    }

    /// The memory that another process made, by a descriptor that it left.
    pub fn inherited(file: OwnedFd) -> Result<Self, SysError> {
        let what = "take over a shared memory";
        let failed = |errno| SysError::call("fcntl", what, errno);
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(failed)?;
        if !seals.contains(SEALS) {
            return Err(SysError::invalid(what, "its size is not sealed"));
        }
        let bytes = rustix::fs::fstat(&file).map_err(failed)?.st_size as usize;
        if !(CONTROL_BYTES + size_of::<u64>()..=MOST_BYTES).contains(&bytes) {
            return Err(SysError::invalid(what, format!("it has {bytes} bytes")));
        }
        Self::map(file, bytes)
    }

    /// The descriptor, to be left to another process.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The words to wait for.
    #[must_use]
    pub fn control(&self) -> &[AtomicU32] {
        // SAFETY: the mapping begins on a page and has at least these bytes, all initialised; this
        // range is reached here only.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), CONTROL_WORDS) }
    }

    /// The data.
    #[must_use]
    pub fn data(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is longer than the words in front of the data.
        let start = unsafe { self.start.add(CONTROL_BYTES) };
        let words = (self.bytes - CONTROL_BYTES) / size_of::<AtomicU64>();
        // SAFETY: aligned, for a page is; so many words lie there, all initialised; this range is
        // reached here only.
        unsafe { std::slice::from_raw_parts(start.as_ptr().cast(), words) }
    }

    fn map(file: OwnedFd, bytes: usize) -> Result<Self, SysError> {
        let what = || format!("map a shared memory of {bytes} bytes");
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without a hint the kernel chooses addresses that nothing else uses, and the size
        // is sealed, so that each page of the mapping stays.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, &file, 0)
        };
        let start = start.map_err(|errno: Errno| SysError::call("mmap", what(), errno))?;
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { file, start, bytes }),
            None => Err(SysError::invalid(what(), "the kernel mapped it at address 0")),
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map`, and no reference into it outlives the value.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::{Acquire, Release};

    use super::*;
    use crate::futex;

    #[test]
    fn what_one_holder_writes_the_other_reads_and_a_waker_reaches_across_mappings() {
        let own = SharedMemory::new(1000).unwrap();
        assert_eq!((own.data().len(), own.control().len()), (1000, CONTROL_WORDS));
        let other = SharedMemory::inherited(own.descriptor().try_clone_to_owned().unwrap());
        let other = other.unwrap();
        assert_ne!(own.data().as_ptr(), other.data().as_ptr());
        own.data()[999].store(7, Release);
        assert_eq!(other.data()[999].load(Acquire), 7);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                while other.control()[3].load(Acquire) == 0 {
                    futex::wait_shared(&other.control()[3], 0).unwrap();
                }
            });
            own.control()[3].store(1, Release);
            while !sleeper.is_finished() {
                futex::wake_shared(&own.control()[3], u32::MAX).unwrap();
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn sizes_that_make_no_sense_and_files_of_others_are_refused() {
        assert!(SharedMemory::new(0).is_err());
        assert!(SharedMemory::new(usize::MAX / 4).is_err());
        assert!(SharedMemory::new(MOST_BYTES).is_err());
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert!(SharedMemory::inherited(file.into()).is_err());
    }

    #[test]
    fn no_holder_can_take_pages_away() {
        let memory = SharedMemory::new(10_000).unwrap();
        assert_eq!(rustix::fs::ftruncate(memory.descriptor(), 0), Err(Errno::PERM));
    }
}
