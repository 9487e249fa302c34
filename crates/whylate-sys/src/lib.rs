//! Safe wrappers of the kernel interfaces that whylate uses.
//!
//! One file per interface; each names its manual page or kernel header and the capability it may
//! need. What a call refuses comes back as a [`SysError`] that says why and what to try. The crate
//! holds no policy: it decides neither what to measure nor what to change.

#![expect(
    unsafe_code,
    reason = "system calls, memory maps, signal handlers and the rseq area are reached by pointer"
)]

pub mod affinity;
pub mod bpf;
pub mod btf;
pub mod capability;
pub mod datagrams;
pub mod disk;
pub mod dma_latency;
pub mod epoll;
mod error;
pub mod ethtool;
pub mod futex;
pub mod hardware_stamps;
pub mod interface;
pub mod io_uring;
pub mod limits;
pub mod membarrier;
pub mod memory;
pub mod namespace;
pub mod nanosleep;
pub mod numa;
pub mod overrun;
pub mod perf_page;
pub mod poll;
pub mod posix_timer;
pub mod priority_mutex;
pub mod process;
pub mod protection;
pub mod ptp;
pub mod relative_sleep;
pub mod ring_receive;
pub mod rseq;
pub mod rtc;
pub mod sched;
pub mod shared_memory;
pub mod signal;
pub mod socket_options;
pub mod switches;
pub mod sysfs;
pub mod thread;
pub mod thread_clock;
pub mod timerfd;
pub mod timerslack;
mod timespec;
pub mod timestamping;
pub mod tracefs;
pub mod xdp;

pub use error::SysError;
pub use rustix::io::Errno;

#[cfg(test)]
mod tests {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use crate::capability::Cap;

    pub(crate) use whylate_suite::absent as skip;

    /// Runs `body` on a thread of its own that cannot use `cap`.
    pub(crate) fn without(cap: Cap, body: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut sets = capabilities(None).unwrap();
                sets.effective &= !CapabilitySet::from_bits_retain(cap.bit());
                set_capabilities(None, sets).unwrap();
                body();
            });
            thread.join().unwrap();
        });
    }
}
