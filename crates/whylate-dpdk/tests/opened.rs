//! A virtual device of DPDK in this process, as its users in several test programs open it.

use whylate_clock::HardwareCounter;
use whylate_dpdk::{Dpdk, open};
use whylate_model::Hertz;
use whylate_port::device::{Device, DeviceName, Pages};
use whylate_port::{LinkOptions, Setup, Wait};

/// The device of these words, in ordinary pages and as much memory as it asks for by itself.
pub(crate) fn opened(words: &str) -> Dpdk<HardwareCounter> {
    let name = Some(DeviceName::Virtual(words.to_owned()));
    let device = Device { name, memory_mb: None, pages: Pages::Ordinary };
    let counter = HardwareCounter::open().unwrap();
    // Close enough for limits; rates are by the kernel's clock.
    let setup = Setup { counter, rate: Hertz(2e9), wait: Wait::Spin };
    open(&LinkOptions { device, ..LinkOptions::default() }, setup).unwrap()
}
