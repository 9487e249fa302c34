//! The CPU time of a thread.
//!
//! [`clock_gettime(2)`](https://man7.org/linux/man-pages/man2/clock_gettime.2.html),
//! `CLOCK_THREAD_CPUTIME_ID`, and the clock of another thread of this process
//! ([`pthread_getcpuclockid(3)`](https://man7.org/linux/man-pages/man3/pthread_getcpuclockid.3.html)).
//! Capability: none. Interrupts that ran on the thread's CPU in its time are counted in, except on
//! kernels with `CONFIG_IRQ_TIME_ACCOUNTING`; another task that ran is not.

use rustix::io::Errno;
use whylate_model::{Nanos, Pid};

use crate::error::{SysError, last_errno};
use crate::timespec;

/// Low bits of a clock number that name the CPU time of one thread, to the nanosecond
/// (`linux/posix-timers_types.h`: `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`).
const THREAD_TIME: i32 = 4 | 2;

/// Ids that the kernel gives (`PID_MAX_LIMIT`); another number would name another kind of clock.
const THREAD_IDS: std::ops::RangeInclusive<i32> = 1..=1 << 22;

/// CPU time of the calling thread so far.
///
/// # Panics
///
/// Where a sandbox forbids a thread to read its own clock; [`cpu_time_of`] returns that as an error.
#[must_use]
#[inline]
pub fn cpu_time() -> Nanos {
    read(libc::CLOCK_THREAD_CPUTIME_ID).expect("invariant: a thread may read its own clock")
}

/// CPU time so far of thread `tid` of this process.
pub fn cpu_time_of(tid: Pid) -> Result<Nanos, SysError> {
    let what = || format!("read the CPU time of task {tid}");
    if !THREAD_IDS.contains(&tid.0) {
        return Err(SysError::invalid(what(), "thread ids go from 1 to 4194304"));
    }
    read((!tid.0 << 3) | THREAD_TIME).map_err(|errno| {
        let advice = match errno {
            Errno::INVAL => "it has ended, or belongs to another process",
            _ => "",
        };
        SysError::advised("clock_gettime", what(), errno, advice)
    })
}

#[inline]
fn read(clock: i32) -> Result<Nanos, Errno> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one time at the pointer.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut now) };
    if answer < 0 { Err(last_errno()) } else { Ok(Nanos(timespec::nanos(now))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nanosleep::{self, Clock, clock_ns};
    use crate::process;

    #[test]
    fn a_busy_thread_uses_time_and_a_sleeping_one_does_not() {
        let before = cpu_time();
        while cpu_time().0 - before.0 < 5_000_000 {}
        let asleep_for = 20_000_000;
        let sleeps = || {
            let (busy, wall) = (cpu_time(), clock_ns(Clock::Monotonic));
            nanosleep::sleep_until(Clock::Monotonic, wall + asleep_for).unwrap();
            cpu_time().0 - busy.0 < asleep_for / 2
        };
        // Interrupts that come just then may be counted in.
        assert!((0..50).any(|_| sleeps()));
    }

    #[test]
    fn another_thread_s_time_is_what_it_reads_itself() {
        let (tell, told) = std::sync::mpsc::channel();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            while cpu_time().0 < 3_000_000 {}
            tell.send((process::tid(), cpu_time())).unwrap();
            let _ = gone.recv();
            cpu_time()
        });
        let (tid, at_least) = told.recv().unwrap();
        let seen = cpu_time_of(tid).unwrap();
        drop(go);
        let at_most = worker.join().unwrap();
        assert!(at_least <= seen && seen <= at_most, "{at_least} {seen} {at_most}");
    }

    #[test]
    fn who_is_no_thread_of_this_process_has_no_clock_here() {
        for impossible in [0, -1, i32::MAX] {
            let refusal = cpu_time_of(Pid(impossible)).unwrap_err();
            assert!(matches!(refusal, SysError::Invalid { .. }), "{refusal}");
        }
        let (first, of_the_machine) = (1, process::pid().0);
        if first != of_the_machine {
            assert_eq!(cpu_time_of(Pid(first)).unwrap_err().errno(), Some(Errno::INVAL));
        }
    }
}
