//! Sleeping for a length of time, as `usleep` does.
//!
//! [`clock_nanosleep(2)`](https://man7.org/linux/man-pages/man2/clock_nanosleep.2.html) without
//! `TIMER_ABSTIME`: the C library's `usleep`, `nanosleep` and `sleep` are this call. Capability:
//! none. What a thread does between reading a clock and calling this delays its wake-up; an
//! absolute sleep ([`crate::nanosleep`]) is not delayed by it.

use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_relative};
use rustix::time::ClockId;

use crate::SysError;
use crate::timespec;

/// Sleeps for at least `ns` by `CLOCK_MONOTONIC`. After a signal the rest is slept.
#[inline]
pub fn sleep_for(ns: u64) -> Result<(), SysError> {
    let mut left = timespec::of(ns);
    loop {
        match clock_nanosleep_relative(ClockId::Monotonic, &left) {
            NanosleepRelativeResult::Ok => return Ok(()),
            NanosleepRelativeResult::Interrupted(rest) => left = rest,
            NanosleepRelativeResult::Err(errno) => return Err(refusal(errno)),
        }
    }
}

#[cold]
fn refusal(errno: Errno) -> SysError {
    SysError::call("clock_nanosleep", "sleep for a length of time", errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nanosleep::{Clock, clock_ns};
    use crate::process;
    use crate::signal::{Handler, real_time, send_to_thread};

    #[test]
    fn a_sleep_is_at_least_as_long_as_asked() {
        for ns in [0, 1, 200_000, 1_500_000] {
            let before = clock_ns(Clock::Monotonic);
            sleep_for(ns).unwrap();
            assert!(clock_ns(Clock::Monotonic) - before >= ns, "{ns}");
        }
    }

    #[test]
    fn a_signal_does_not_shorten_a_sleep() {
        extern "C" fn nothing(_: i32) {}
        let number = real_time(11);
        let _installed = Handler::install(number, nothing).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            tell.send(process::tid()).unwrap();
            let before = clock_ns(Clock::Monotonic);
            sleep_for(30_000_000).unwrap();
            clock_ns(Clock::Monotonic) - before
        });
        let tid = told.recv().unwrap();
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(3));
            let _ = send_to_thread(process::pid(), tid, number);
        }
        assert!(sleeper.join().unwrap() >= 30_000_000);
    }
}
