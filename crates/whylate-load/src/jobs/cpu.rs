//! A thread that is busy for a share of each period.

use std::hint::spin_loop;

use whylate_sys::nanosleep::{Clock, clock_ns, sleep_until};
use whylate_sys::thread_clock;

use crate::child::Meter;
use crate::error::LoadError;

/// The period: several of the kernel's ticks, and short against what a user notices.
const PERIOD_NS: u64 = 10_000_000;
/// The clock is read once in so many turns.
const TURNS: u32 = 1_000;

/// Asks for `share` of the CPU: busy from the start of each period, asleep for the rest of it. Time
/// in which others had the CPU is not made up for.
pub(super) fn hog(share: f64, meter: &Meter) -> Result<(), LoadError> {
    let busy_ns = (PERIOD_NS as f64 * share.clamp(0.0, 1.0)) as u64;
    let mut period = clock_ns(Clock::Monotonic);
    while !meter.stopped() {
        while clock_ns(Clock::Monotonic) < period + busy_ns {
            for _ in 0..TURNS {
                spin_loop();
            }
        }
        meter.set_amount(thread_clock::cpu_time().0);
        period += PERIOD_NS;
        let now = clock_ns(Clock::Monotonic);
        if now > period + PERIOD_NS {
            period = now;
        } else if busy_ns < PERIOD_NS {
            sleep_until(Clock::Monotonic, period)?;
        }
    }
    Ok(())
}
