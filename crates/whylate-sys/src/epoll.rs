//! Waiting for a time-out, or for descriptors that can be read, as an event loop does.
//!
//! [`epoll_wait(2)`](https://man7.org/linux/man-pages/man2/epoll_wait.2.html): `epoll_pwait2` takes
//! nanoseconds (Linux 5.11), `epoll_wait` milliseconds, which are rounded up here. Capability: none.
//!
//! For a thread without real-time policy the kernel lets the time-out be late by a thousandth of its
//! length (a two-hundredth where the niceness is positive), or by the thread's timer slack where
//! that is more.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use crate::error::{SysError, last_errno};
use crate::timespec;

/// Set once the kernel, or a sandbox, has said that it has no `epoll_pwait2`.
static MILLISECONDS_ONLY: AtomicBool = AtomicBool::new(false);

const NANOS_PER_MILLISECOND: u64 = 1_000_000;
const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };

/// Descriptors told as readable by one call at most; the next call tells the others.
pub const READY: usize = 64;

/// An epoll instance; a new one watches nothing.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// What a time-out is rounded up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// `epoll_pwait2`.
    Nanosecond,
    /// `epoll_wait`.
    Millisecond,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By its time-out, which this call knows to that resolution.
    TimedOut(Resolution),
    /// By a signal, before.
    Interrupted,
}

impl Epoll {
    /// Makes one.
    pub fn new() -> Result<Self, SysError> {
        epoll::create(CreateFlags::CLOEXEC)
            .map(Self)
            .map_err(|errno| refusal("epoll_create1", "make an epoll instance", errno))
    }

    /// From now on tells by `mark` when this descriptor can be read.
    pub fn watch(&self, descriptor: impl AsFd, mark: u64) -> Result<(), SysError> {
        epoll::add(&self.0, descriptor, EventData::new_u64(mark), EventFlags::IN)
            .map_err(|errno| refusal("epoll_ctl", "watch a descriptor", errno))
    }

    /// Does not watch this descriptor any more.
    pub fn forget(&self, descriptor: impl AsFd) -> Result<(), SysError> {
        epoll::delete(&self.0, descriptor)
            .map_err(|errno| refusal("epoll_ctl", "watch a descriptor no more", errno))
    }

    /// Waits until something watched can be read, for `ns` at most, or until a signal comes. Writes
    /// the marks of what can be read, and tells how many there are.
    #[inline]
    pub fn wait_ready(&self, ns: u64, marks: &mut [u64; READY]) -> Result<usize, SysError> {
        let mut events = [NO_EVENT; READY];
        let mut told = Err(Errno::NOSYS);
        if !MILLISECONDS_ONLY.load(Ordering::Relaxed) {
            told = self.wait_nanoseconds(ns, &mut events);
        }
        if let Err(Errno::NOSYS | Errno::PERM) = told {
            MILLISECONDS_ONLY.store(true, Ordering::Relaxed);
            told = self.wait_milliseconds(ns, &mut events);
        }
        match told {
            Ok(count) => {
                for (mark, event) in marks.iter_mut().zip(&events[..count.min(READY)]) {
                    *mark = event.u64;
                }
                Ok(count.min(READY))
            }
            Err(Errno::INTR) => Ok(0),
            Err(errno) => Err(refusal("epoll_pwait2", "wait for descriptors", errno)),
        }
    }

    /// Waits for `ns`, or until a signal comes.
    #[inline]
    pub fn wait_for(&self, ns: u64) -> Result<Ended, SysError> {
        if !MILLISECONDS_ONLY.load(Ordering::Relaxed) {
            match self.wait_nanoseconds(ns, &mut [NO_EVENT]) {
                Ok(_) => return Ok(Ended::TimedOut(Resolution::Nanosecond)),
                Err(Errno::INTR) => return Ok(Ended::Interrupted),
                Err(Errno::NOSYS | Errno::PERM) => MILLISECONDS_ONLY.store(true, Ordering::Relaxed),
                Err(errno) => return Err(refusal("epoll_pwait2", "wait for a time-out", errno)),
            }
        }
        match self.wait_milliseconds(ns, &mut [NO_EVENT]) {
            Ok(_) => Ok(Ended::TimedOut(Resolution::Millisecond)),
            Err(Errno::INTR) => Ok(Ended::Interrupted),
            Err(errno) => Err(refusal("epoll_wait", "wait for a time-out", errno)),
        }
    }

    fn wait_nanoseconds(&self, ns: u64, events: &mut [libc::epoll_event]) -> Result<usize, Errno> {
        let limit = timespec::raw(ns);
        // SAFETY: room for so many events, one time-out, and no mask of signals.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len(),
                &raw const limit,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        if answer < 0 { Err(last_errno()) } else { Ok(answer as usize) }
    }

    fn wait_milliseconds(&self, ns: u64, events: &mut [libc::epoll_event]) -> Result<usize, Errno> {
        let milliseconds = ns.div_ceil(NANOS_PER_MILLISECOND).min(i32::MAX as u64) as i32;
        let (at, room) = (events.as_mut_ptr(), events.len() as i32);
        // SAFETY: room for so many events.
        let answer = unsafe { libc::epoll_wait(self.0.as_raw_fd(), at, room, milliseconds) };
        if answer < 0 { Err(last_errno()) } else { Ok(answer as usize) }
    }
}

/// Can be read, and so be watched itself, while anything that it watches can.
impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cold]
fn refusal(call: &'static str, what: &str, errno: Errno) -> SysError {
    let advice = match errno {
        Errno::MFILE => "this process has too many files open: raise `ulimit -n`",
        Errno::NFILE => "this system has too many files open: see /proc/sys/fs/file-max",
        Errno::NOSYS => "this kernel was built without CONFIG_EPOLL",
        _ => "",
    };
    SysError::advised(call, what, errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    #[test]
    fn both_calls_wait_at_least_as_long_as_asked() {
        let epoll = Epoll::new().unwrap();
        for ns in [1, 250_000, 1_700_000] {
            let before = clock_ns(Clock::Monotonic);
            assert!(matches!(epoll.wait_for(ns).unwrap(), Ended::TimedOut(_)));
            assert!(clock_ns(Clock::Monotonic) - before >= ns, "{ns}");
            let before = clock_ns(Clock::Monotonic);
            epoll.wait_milliseconds(ns, &mut [NO_EVENT]).unwrap();
            assert!(clock_ns(Clock::Monotonic) - before >= ns, "{ns} ns by milliseconds");
        }
    }

    #[test]
    fn what_can_be_read_is_told_by_its_mark_until_it_is_watched_no_more() {
        let epoll = Epoll::new().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut marks = [0; READY];
        epoll.watch(&reader, 77).unwrap();
        assert_eq!(epoll.wait_ready(300_000, &mut marks).unwrap(), 0);
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(epoll.wait_ready(2_000_000_000, &mut marks).unwrap(), 1);
        assert_eq!(marks[0], 77);
        epoll.forget(&reader).unwrap();
        assert_eq!(epoll.wait_ready(0, &mut marks).unwrap(), 0);
    }
}
