//! Pages whose protection is taken away again and again, which interrupts other CPUs.
//!
//! [`mprotect(2)`](https://man7.org/linux/man-pages/man2/mprotect.2.html). Capability: none.
//!
//! Taking the right to write from a page that was written makes the kernel flush its translation on
//! each CPU that runs a thread of this process: by an interrupt (TLB shootdown) on most processors.

use std::ptr::NonNull;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

use crate::SysError;

/// One private page that its owner alone writes, so that no write meets a page that forbids it.
#[derive(Debug)]
pub struct RevokedPage {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value, not to a thread.
unsafe impl Send for RevokedPage {}

impl RevokedPage {
    /// Maps the page.
    pub fn new() -> Result<Self, SysError> {
        let bytes = rustix::param::page_size();
        // SAFETY: without a hint the kernel chooses addresses that nothing else uses.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let start = start.map_err(|errno| SysError::call("mmap", "map a page", errno))?;
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { start, bytes }),
            None => Err(SysError::invalid("map a page", "the kernel mapped it at address 0")),
        }
    }

    /// Allows writing, writes, and forbids it again: one shootdown on each CPU that runs another
    /// thread of this process.
    pub fn revoke(&mut self) -> Result<(), SysError> {
        self.protect(MprotectFlags::READ | MprotectFlags::WRITE, "allow writing to a page")?;
        // SAFETY: the page is mapped and may be written; `&mut self` excludes all others.
        unsafe { self.start.as_ptr().write_volatile(1) };
        self.protect(MprotectFlags::READ, "forbid writing to a page")
    }

    fn protect(&mut self, flags: MprotectFlags, what: &str) -> Result<(), SysError> {
        // SAFETY: the range is this mapping, into which no reference is given out.
        let answer = unsafe { rustix::mm::mprotect(self.start.as_ptr().cast(), self.bytes, flags) };
        answer.map_err(|errno| SysError::call("mprotect", what, errno))
    }
}

impl Drop for RevokedPage {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no reference into it exists.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_written_and_revoked_as_often_as_one_likes() {
        let mut page = RevokedPage::new().unwrap();
        for _ in 0..100 {
            page.revoke().unwrap();
        }
        let address = format!("{:x}-", page.start.as_ptr().addr());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.starts_with(&address)).unwrap();
        assert!(line.contains(" r--p "), "{line}");
    }
}
