//! Storms of timer interrupts.

use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use whylate_model::CpuId;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, sched, thread};

/// Interrupts of a storm, and their distance in nanoseconds.
const TIMERS: u64 = 900;
const APART: u64 = 5_000;

/// Has the timer of a CPU interrupt it for 4.5 ms, again and again: the next interrupt is due when the
/// last is over, or before.
pub(crate) fn storm(cpu: CpuId, storms: usize) {
    let work = move || {
        thread::set_name("planted-timers").unwrap();
        affinity::set(&[cpu]).unwrap();
        sched::set_fifo(50).unwrap();
        let timer = || timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
        let timers: Vec<_> = (0..TIMERS).map(|_| timer()).collect();
        for _ in 0..storms {
            let first = clock_ns(Clock::Monotonic) + 2_000_000;
            for (at, timer) in (first..).step_by(APART as usize).zip(&timers) {
                let it_interval = Timespec::default();
                let it_value = Timespec {
                    tv_sec: (at / 1_000_000_000) as i64,
                    tv_nsec: (at % 1_000_000_000) as i64,
                };
                let once = Itimerspec { it_interval, it_value };
                timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).unwrap();
            }
            std::thread::sleep(Duration::from_millis(66));
        }
    };
    std::thread::spawn(work).join().unwrap();
}
