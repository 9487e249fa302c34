//! The timers, a file each, and the table by which they are asked for.
//!
//! All count by `CLOCK_MONOTONIC` and none ever ends a wait early. The names of Hourglass keep their
//! meaning as far as a system of today has it: `NATIVE` is what `usleep` does, `HR` is the best
//! sleep the kernel offers, `RTC` the real-time clock's interrupt, `MM` a thing of Windows.

pub mod clock_nanosleep;
pub mod epoll;
pub mod futex;
pub mod grid;
pub mod io_uring;
pub mod posix;
pub mod rtc;
mod slack;
pub mod spin;
pub mod timerfd;

use whylate_model::Nanos;
use whylate_rta::Call;
use whylate_sys::nanosleep::{Clock, clock_ns};

pub use self::clock_nanosleep::{ClockNanosleep, RelativeSleep};
use self::epoll::EpollTimeout;
use self::futex::FutexTimeout;
use self::grid::Grid;
use self::io_uring::RingWait;
use self::posix::PosixTimerWait;
use self::rtc::Rtc;
use self::spin::Spin;
use self::timerfd::TimerFdRead;
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerNanos};

/// The clock of every timer here.
const MONOTONIC: &str = "CLOCK_MONOTONIC";

/// A timer of the table.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its name; the case of the letters does not count.
    pub name: &'static str,
    /// How it is written, arguments included.
    pub usage: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    make: fn(&Call) -> Result<Box<dyn Timer>, ThreadsError>,
}

const KNOWN: [Known; 12] = [
    Known {
        name: "NATIVE",
        usage: "NATIVE",
        about: "what usleep is: clock_nanosleep for a length, the thread's timer slack left alone",
        make: |call| plain(call, "NATIVE", RelativeSleep::native()),
    },
    Known {
        name: "HR",
        usage: "HR",
        about: "high resolution: clock_nanosleep until an instant, timer slack 1 ns",
        make: |call| plain(call, "HR", ClockNanosleep::default()),
    },
    Known {
        name: "RTC",
        usage: "RTC [hz]",
        about: "periodic interrupt of /dev/rtc, 1024 a second unless another power of two is given",
        make: rtc,
    },
    Known {
        name: "MM",
        usage: "MM",
        about: "multimedia timers of Windows: refused here",
        make: |_| Err(ThreadsError::TimerNotHere { timer: "MM", why: MM }),
    },
    Known {
        name: "clock_nanosleep",
        usage: "clock_nanosleep",
        about: "the call behind HR",
        make: |call| plain(call, "clock_nanosleep", ClockNanosleep::default()),
    },
    Known {
        name: "clock_nanosleep_relative",
        usage: "clock_nanosleep_relative",
        about: "the call behind NATIVE, with timer slack 1 ns",
        make: |call| plain(call, "clock_nanosleep_relative", RelativeSleep::precise()),
    },
    Known {
        name: "timerfd",
        usage: "timerfd",
        about: "a timer descriptor, armed for an instant and read",
        make: |call| plain(call, "timerfd", TimerFdRead::default()),
    },
    Known {
        name: "posix",
        usage: "posix",
        about: "timer_create with a signal to the thread, waited for by sigtimedwait",
        make: |call| plain(call, "posix", PosixTimerWait::default()),
    },
    Known {
        name: "epoll",
        usage: "epoll",
        about: "the time-out of an event loop in which nothing happens",
        make: |call| plain(call, "epoll", EpollTimeout::default()),
    },
    Known {
        name: "futex",
        usage: "futex",
        about: "the time-out of a futex that nobody wakes",
        make: |call| plain(call, "futex", FutexTimeout::default()),
    },
    Known {
        name: "io_uring",
        usage: "io_uring",
        about: "a time-out of io_uring, submitted and waited for",
        make: |call| plain(call, "io_uring", RingWait::default()),
    },
    Known {
        name: "spin",
        usage: "spin",
        about: "reads the clock until it is time and never gives the CPU up",
        make: |call| plain(call, "spin", Spin),
    },
];

const GRID: Known = Known {
    name: "grid",
    usage: "grid(step)",
    about: "a coarse clock: wakes at the next multiple of step (10ms), busy-waits for 2 ms or less",
    make: grid,
};

const MM: &str = "multimedia timers exist on Windows only; use HR, the best sleep of this kernel";

/// All timers, in the order in which help shows them.
pub fn known() -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().chain(std::iter::once(&GRID))
}

/// The timer that `call` asks for, not yet prepared.
pub fn named(call: &Call) -> Result<Box<dyn Timer>, ThreadsError> {
    let wanted = known().find(|known| call.is(known.name));
    let unknown = || ThreadsError::UnknownTimer { name: call.name.clone() };
    (wanted.ok_or_else(unknown)?.make)(call)
}

/// The longest sleep for which the timer that `call` asks for keeps the CPU, where it leaves it for
/// longer ones: so much more a job may take of it. None for timers that have no such length.
#[must_use]
pub fn keeps_cpu_up_to(call: &Call) -> Option<Nanos> {
    call.is(GRID.name).then_some(grid::BUSY_UP_TO)
}

/// Names of all timers, for an error.
pub(crate) fn names() -> String {
    known().map(|known| known.usage).collect::<Vec<_>>().join(", ")
}

/// A timer that takes no arguments.
fn plain(
    call: &Call,
    usage: &'static str,
    timer: impl Timer + 'static,
) -> Result<Box<dyn Timer>, ThreadsError> {
    call.takes(0, usage)?;
    Ok(Box::new(timer))
}

fn rtc(call: &Call) -> Result<Box<dyn Timer>, ThreadsError> {
    const USAGE: &str = "RTC [hz]";
    call.takes(1, USAGE)?;
    let rate_hz = match call.arguments.first() {
        None => rtc::RATE_HZ,
        Some(text) => text.parse().map_err(|_| {
            call.refused("rate", "write interrupts a second, a power of two: 1024".to_owned())
        })?,
    };
    if !rate_hz.is_power_of_two() || !whylate_sys::rtc::RATES_HZ.contains(&rate_hz) {
        let reason = "a power of two from 2 to 8192 interrupts a second".to_owned();
        return Err(call.refused("rate", reason).into());
    }
    Ok(Box::new(Rtc::open(rate_hz)?))
}

fn grid(call: &Call) -> Result<Box<dyn Timer>, ThreadsError> {
    call.takes(1, GRID.usage)?;
    let step = match call.arguments.first() {
        None => grid::STEP,
        Some(_) => call.time(0, "step", GRID.usage)?,
    };
    if step > grid::LONGEST_STEP {
        let reason = format!("{step} is longer than {}", grid::LONGEST_STEP);
        return Err(call.refused("step", reason).into());
    }
    Ok(Box::new(Grid::of(step)))
}

#[inline]
fn now() -> TimerNanos {
    TimerNanos(clock_ns(Clock::Monotonic))
}

#[cfg(test)]
mod tests {
    use whylate_suite::absent;

    use super::*;

    const WAITS: u64 = 50;
    /// What only some machines have.
    const HARDWARE: [&str; 2] = ["RTC", "io_uring"];

    #[test]
    fn every_timer_of_the_table_waits_and_none_is_ever_early() {
        let mut run = 0;
        for known in known().filter(|known| known.name != "MM") {
            std::thread::scope(|scope| {
                let waited = scope.spawn(|| wait_by(known));
                match waited.join().unwrap() {
                    Ok(()) => run += 1,
                    Err(refusal) if HARDWARE.contains(&known.name) => {
                        absent(&format!("{}: {refusal}", known.name));
                    }
                    Err(refusal) => panic!("{}: {refusal}", known.name),
                }
            });
        }
        assert!(run >= known().count() - 1 - HARDWARE.len(), "{run}");
    }

    fn wait_by(known: &Known) -> Result<(), ThreadsError> {
        let mut timer = named(&Call::bare(known.name))?;
        timer.prepare()?;
        for k in 0..WAITS {
            // 1 to 3 ms, and now and then an instant that is over.
            let at = timer.now() + Nanos(if k % 10 == 9 { 0 } else { 1_000_000 + k * 40_000 });
            timer.wait_until(at)?;
            assert!(timer.now() >= at, "{} ended wait {k} early", known.name);
        }
        timer.wait_until(TimerNanos(0))?;
        let facts = timer.facts();
        assert_eq!(facts.clock, MONOTONIC);
        assert!(!facts.name.is_empty());
        let slack = facts.slack.unwrap();
        match known.name {
            "NATIVE" => assert!(slack.0 > 1, "left alone, it is the default"),
            _ => assert!(slack.0 <= 1, "{}: {slack}", known.name),
        }
        Ok(())
    }

    #[test]
    fn names_are_taken_in_any_case_and_unknown_ones_are_answered_by_the_table() {
        for text in ["hr", "Native", "GRID(4ms)", "grid 4ms", "IO_URING", "Spin"] {
            if let Err(refusal) = named(&Call::parse(text).unwrap()) {
                assert!(text == "IO_URING", "{text}: {refusal}");
            }
        }
        let refusal = named(&Call::bare("usleep")).err().unwrap().to_string();
        assert!(refusal.contains("`usleep`") && refusal.contains("grid(step)"), "{refusal}");
    }

    #[test]
    fn what_this_system_lacks_is_refused_with_its_name_and_what_to_try() {
        let refusal = named(&Call::bare("MM")).err().unwrap().to_string();
        assert!(refusal.contains("Windows") && refusal.contains("HR"), "{refusal}");
        match named(&Call::bare("RTC")) {
            Ok(_) => absent("this machine has a real-time clock"),
            Err(refusal) => {
                let refusal = refusal.to_string();
                assert!(refusal.contains("/dev/rtc") && refusal.contains("; "), "{refusal}");
            }
        }
    }

    #[test]
    fn arguments_that_a_timer_does_not_take_are_refused() {
        for text in ["HR 1ms", "grid(0ms)", "grid(2s)", "grid(1ms,2ms)", "RTC 1000", "RTC x"] {
            let refusal = named(&Call::parse(text).unwrap()).err();
            assert!(matches!(refusal, Some(ThreadsError::Call(_))), "{text}");
        }
    }
}
