//! Devices of DPDK in this process, passed frames on between.

use std::sync::atomic::AtomicBool;

use whylate_clock::{Counter, HardwareCounter};
use whylate_dpdk::io::{Course, Outcome, Stamps, pass};
use whylate_dpdk::{Dpdk, open};
use whylate_model::{CpuId, Hertz, TicksDelta};
use whylate_port::device::{Device, DeviceName, Pages};
use whylate_port::{LinkOptions, Setup, Wait};
use whylate_sys::affinity;
use whylate_sys::nanosleep::{Clock, clock_ns};

/// What we and testpmd take at once.
pub(crate) const BURST: usize = 32;

pub(crate) type Link = Dpdk<HardwareCounter>;

/// The device of these words, in ordinary pages and as much memory as it asks for by itself.
pub(crate) fn opened(words: &str) -> Link {
    let name = Some(DeviceName::Virtual(words.to_owned()));
    let device = Device { name, memory_mb: None, pages: Pages::Ordinary };
    let counter = HardwareCounter::open().unwrap();
    // Close enough for limits; rates are by the kernel's clock.
    let setup = Setup { counter, rate: Hertz(2e9), wait: Wait::Spin };
    open(&LinkOptions { device, ..LinkOptions::default() }, setup).unwrap()
}

/// Passes frames on for so many ticks: what that came to, and frames a second, both ways together.
pub(crate) fn passed(
    (near, far): (&mut Link, &mut Link),
    stamps: Stamps,
    ticks: u64,
) -> (Outcome, f64) {
    let mut counter = HardwareCounter::open().unwrap();
    let stop = AtomicBool::new(false);
    let end = counter.read_ordered().0 + TicksDelta(ticks);
    let begun = clock_ns(Clock::Monotonic);
    let course = Course { burst: BURST, end, stop: &stop };
    let outcome = pass((near, far), &course, stamps, &mut counter).unwrap();
    let lasted_ns = clock_ns(Clock::Monotonic) - begun;
    assert!(outcome.cached);
    let rate = outcome.frames() as f64 * 1e9 / lasted_ns as f64;
    (outcome, rate)
}

/// The same where what goes in must come out: nothing is counted that was not handed over.
pub(crate) fn rate(ends: (&mut Link, &mut Link), stamps: Stamps, ticks: u64) -> f64 {
    let (outcome, rate) = passed(ends, stamps, ticks);
    for way in outcome.passed {
        assert_eq!(way.received, way.sent, "{way:?}");
    }
    rate
}

/// CPUs that this thread is kept to, until this is gone.
pub(crate) struct Kept(Vec<CpuId>);

impl Kept {
    pub(crate) fn to(cpu: CpuId) -> Self {
        let before = affinity::get();
        affinity::set(&[cpu]).unwrap();
        Self(before)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = affinity::set(&self.0);
    }
}
