//! A POSIX timer that signals one thread, waited for without a handler.
//!
//! [`timer_create(2)`](https://man7.org/linux/man-pages/man2/timer_create.2.html) with
//! `SIGEV_THREAD_ID`, [`sigtimedwait(2)`](https://man7.org/linux/man-pages/man2/sigtimedwait.2.html).
//! Capability: none; each timer takes one of `RLIMIT_SIGPENDING`. The kernel gives such a timer no
//! slack.
//!
//! The signal is blocked in the thread and stays blocked: unblocked, one left over would end the
//! process.

use std::mem::MaybeUninit;

use rustix::io::Errno;
use whylate_model::Pid;

use crate::error::{SysError, last_errno};
use crate::nanosleep::{Clock, clock_ns};
use crate::{process, signal, timespec};

/// Which real-time signal carries the expirations; a thread has one such timer at a time.
const SIGNAL: u8 = 10;
/// A signal that has not come this long after its instant will not come.
const PATIENCE_NS: u64 = 5 * timespec::NANOS_PER_SECOND;

/// A timer on `CLOCK_MONOTONIC` of the thread that made it. Only that thread can wait for it.
#[derive(Debug)]
pub struct PosixTimer {
    /// The kernel's number of it.
    id: i32,
    signal: i32,
    thread: Pid,
}

impl PosixTimer {
    /// Makes one for the calling thread, not armed, and blocks its signal there.
    pub fn for_this_thread() -> Result<Self, SysError> {
        let number = signal::real_time(SIGNAL);
        block(number)?;
        let thread = process::tid();
        // SAFETY: integers and padding: zeros are valid.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_signo = number;
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = thread.0;
        let mut id = 0_i32;
        // SAFETY: the kernel reads one event and writes one number at the pointers.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_timer_create,
                libc::CLOCK_MONOTONIC,
                &raw mut event,
                &raw mut id,
            )
        };
        if answer < 0 {
            return Err(refusal("timer_create", "make a timer for this thread"));
        }
        Ok(Self { id, signal: number, thread })
    }

    /// Arms it for `abs_ns` of `CLOCK_MONOTONIC` and sleeps until its signal has come; other
    /// signals do not end the sleep. Refused on any other thread than the timer's own.
    pub fn wait_until(&self, abs_ns: u64) -> Result<(), SysError> {
        // An instant of zero would disarm it.
        let once = libc::itimerspec {
            it_interval: timespec::raw(0),
            it_value: timespec::raw(abs_ns.max(1)),
        };
        // SAFETY: the kernel reads one specification; where the old one goes may be null.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                self.id,
                libc::TIMER_ABSTIME,
                &raw const once,
                std::ptr::null_mut::<libc::itimerspec>(),
            )
        };
        if answer < 0 {
            return Err(refusal("timer_settime", "arm a timer of this thread"));
        }
        let set = set_of(self.signal);
        loop {
            let now = clock_ns(Clock::Monotonic);
            let patience = timespec::raw(abs_ns.saturating_sub(now).saturating_add(PATIENCE_NS));
            // SAFETY: set and time-out are whole; where the details go may be null.
            let got = unsafe {
                libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const patience)
            };
            // A signal that somebody else sent, or one left over, comes before the instant.
            if got == self.signal && clock_ns(Clock::Monotonic) >= abs_ns {
                return Ok(());
            }
            if got < 0 {
                match last_errno() {
                    Errno::INTR => {}
                    Errno::AGAIN => return Err(self.missing()),
                    errno => {
                        return Err(SysError::call("sigtimedwait", "wait for a timer", errno));
                    }
                }
            }
        }
    }

    #[cold]
    fn missing(&self) -> SysError {
        SysError::advised(
            "sigtimedwait",
            format!("wait on task {} for a timer of task {}", process::tid(), self.thread),
            Errno::AGAIN,
            "its signal did not come; a timer is waited for by the thread that made it, and nobody \
             else may take its signal",
        )
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: the call takes a number only, and it is deleted once.
        let _ = unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
    }
}

fn set_of(number: i32) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the library writes one set at the pointer.
    let _ = unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was emptied above; the number is that of a real-time signal.
    let _ = unsafe { libc::sigaddset(set.as_mut_ptr(), number) };
    // SAFETY: written by sigemptyset.
    unsafe { set.assume_init() }
}

fn block(number: i32) -> Result<(), SysError> {
    let set = set_of(number);
    // SAFETY: the set is whole, and where the old one goes may be null.
    let answer =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    match answer {
        0 => Ok(()),
        errno => Err(SysError::call(
            "pthread_sigmask",
            format!("block signal {number} in this thread"),
            Errno::from_raw_os_error(errno),
        )),
    }
}

#[cold]
fn refusal(call: &'static str, what: &str) -> SysError {
    let errno = last_errno();
    let advice = match errno {
        Errno::AGAIN => "it would be one queued signal too many: raise `ulimit -i`",
        Errno::NOSYS => "this kernel was built without CONFIG_POSIX_TIMERS",
        _ => "",
    };
    SysError::advised(call, what, errno, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_ends_early_and_the_past_is_no_wait() {
        std::thread::spawn(|| {
            let timer = PosixTimer::for_this_thread().unwrap();
            for _ in 0..5 {
                let until = clock_ns(Clock::Monotonic) + 300_000;
                timer.wait_until(until).unwrap();
                assert!(clock_ns(Clock::Monotonic) >= until);
            }
            timer.wait_until(0).unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_signal_of_the_same_number_from_elsewhere_does_not_end_a_wait() {
        std::thread::spawn(|| {
            let timer = PosixTimer::for_this_thread().unwrap();
            signal::send_to_thread(process::pid(), process::tid(), timer.signal).unwrap();
            let until = clock_ns(Clock::Monotonic) + 2_000_000;
            timer.wait_until(until).unwrap();
            assert!(clock_ns(Clock::Monotonic) >= until);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn threads_have_timers_of_their_own() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let timer = PosixTimer::for_this_thread().unwrap();
                    for _ in 0..10 {
                        let until = clock_ns(Clock::Monotonic) + 200_000;
                        timer.wait_until(until).unwrap();
                        assert!(clock_ns(Clock::Monotonic) >= until);
                    }
                });
            }
        });
    }
}
