//! A thread that takes a CPU now and then, above everything ordinary, and tells when it did.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::{CpuId, Ticks};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, sched, thread};

use crate::program::Beside;

/// Its name.
pub const NAME: &str = "planted-hog";

/// When it had its CPU, by its own readings of the counter: from and to.
pub type Bursts = Vec<(Ticks, Ticks)>;

/// How long it has the CPU each time, and sleeps between.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub burst: Duration,
    pub between: Duration,
}

/// Takes a CPU now and then until it is told to stop.
pub fn begin(cpu: CpuId, pace: Pace) -> Beside<Bursts> {
    Beside::begin(move |stop| take(cpu, pace, stop))
}

fn take(cpu: CpuId, pace: Pace, stop: &AtomicBool) -> Bursts {
    let now = || clock_ns(Clock::Monotonic);
    let mut counter = HardwareCounter::open().unwrap();
    thread::set_name(NAME).unwrap();
    affinity::set(&[cpu]).unwrap();
    sched::set_fifo(50).unwrap();
    let mut bursts = Bursts::new();
    while !stop.load(Ordering::Relaxed) {
        let from = counter.read();
        let until = now() + pace.burst.as_nanos() as u64;
        while now() < until {
            std::hint::spin_loop();
        }
        bursts.push((from, counter.read()));
        std::thread::sleep(pace.between);
    }
    bursts
}

#[test]
fn a_hog_ends_with_a_test_that_panics() {
    use crate::{needs, program};

    let _alone = program::alone();
    let Some(cpus) = needs::cpus(1).filter(|_| needs::real_time()) else { return };
    let pace = Pace { burst: Duration::from_millis(4), between: Duration::from_millis(40) };
    // Threads of this process that have the hog's name.
    let hogs = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.filter(|name| name.as_ref().is_ok_and(|name| name.trim_end() == NAME)).count()
    };
    let failed = std::panic::catch_unwind(|| {
        let _hog = begin(cpus[0], pace);
        program::until("it is at work", || (hogs() > 0).then_some(()));
        panic!("as a test that fails while it is");
    });
    assert!(failed.is_err());
    // The kernel lists a thread for a moment after it was waited for.
    program::until("it has ended", || (hogs() == 0).then_some(()));
}
