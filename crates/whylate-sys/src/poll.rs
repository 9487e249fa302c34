//! Waiting for descriptors that can be read, by `poll`.
//!
//! [`ppoll(2)`](https://man7.org/linux/man-pages/man2/poll.2.html), which takes nanoseconds.
//! Capability: none. The kernel looks at every descriptor of the set at each call.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::error::{SysError, last_errno};
use crate::timespec;

/// Descriptors to wait for, each with a mark. Once filled it is waited for without allocating.
#[derive(Debug, Default)]
pub struct PollSet {
    descriptors: Vec<libc::pollfd>,
    marks: Vec<u64>,
}

impl PollSet {
    /// A set with room for `most` descriptors.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Self { descriptors: Vec::with_capacity(most), marks: Vec::with_capacity(most) }
    }

    /// From now on tells by `mark` when this descriptor can be read.
    pub fn watch(&mut self, descriptor: impl AsFd, mark: u64) {
        let fd = descriptor.as_fd().as_raw_fd();
        self.descriptors.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        self.marks.push(mark);
    }

    /// Does not watch what has this mark any more.
    pub fn forget(&mut self, mark: u64) {
        if let Some(at) = self.marks.iter().position(|&known| known == mark) {
            self.marks.swap_remove(at);
            self.descriptors.swap_remove(at);
        }
    }

    /// Waits until something watched can be read, for `ns` at most, or until a signal comes. Writes
    /// the marks of what can be read, as many as there is room for, and tells how many.
    #[inline]
    pub fn wait_ready(&mut self, ns: u64, marks: &mut [u64]) -> Result<usize, SysError> {
        let limit = timespec::raw(ns);
        let count = self.descriptors.len() as libc::nfds_t;
        // SAFETY: the kernel reads and writes so many entries, and reads the time-out; a descriptor
        // that is open no more is told as such.
        let answer = unsafe {
            libc::ppoll(
                self.descriptors.as_mut_ptr(),
                count,
                &raw const limit,
                std::ptr::null::<libc::sigset_t>(),
            )
        };
        if answer < 0 {
            return match last_errno() {
                Errno::INTR => Ok(0),
                errno => Err(SysError::call("ppoll", "wait for descriptors", errno)),
            };
        }
        let ready = self.descriptors.iter().zip(&self.marks).filter(|(one, _)| one.revents != 0);
        let mut told = 0;
        for (place, (_, mark)) in marks.iter_mut().zip(ready) {
            *place = *mark;
            told += 1;
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_is_told_by_its_mark_until_it_is_watched_no_more() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (silent, _kept) = rustix::pipe::pipe().unwrap();
        let mut set = PollSet::with_room(2);
        set.watch(&silent, 1);
        set.watch(&reader, 2);
        let mut marks = [0; 4];
        assert_eq!(set.wait_ready(300_000, &mut marks).unwrap(), 0);
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(set.wait_ready(2_000_000_000, &mut marks).unwrap(), 1);
        assert_eq!(marks[0], 2);
        set.forget(2);
        assert_eq!(set.wait_ready(0, &mut marks).unwrap(), 0);
    }
}
