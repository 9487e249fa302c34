//! Devices of DPDK that need no card: in memory, and over links between namespaces of the test's own.
//! All of them share the one DPDK of this process.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use whylate_testing::{peer, place};

mod faults;
mod halves;
mod hosts;
mod memory;
mod pools;

use whylate_clock::HardwareCounter;
use whylate_dpdk::{Dpdk, open};
use whylate_model::{Hertz, Nanos};
use whylate_port::device::{Device, DeviceName, Pages};
use whylate_port::{Frames, LinkOptions, PortError, Setup, Wait};

/// Room for all devices of all tests at once.
const MEMORY_MB: u32 = 512;
/// How long a frame is waited for, on a busy machine too.
pub(crate) const LIMIT: Nanos = Nanos(60_000_000_000);

pub(crate) fn setup() -> Setup<HardwareCounter> {
    let counter = HardwareCounter::open().unwrap();
    // Close enough for limits; nothing here is a time.
    Setup { counter, rate: Hertz(2e9), wait: Wait::Spin }
}

pub(crate) fn device(words: &str) -> LinkOptions {
    let device = Device {
        name: Some(DeviceName::Virtual(words.to_owned())),
        memory_mb: Some(MEMORY_MB),
        pages: Pages::Ordinary,
    };
    LinkOptions { device, ..LinkOptions::default() }
}

pub(crate) fn opened(words: &str) -> Result<Dpdk<HardwareCounter>, PortError> {
    open(&device(words), setup())
}

/// A frame with content of its own; 60 bytes at least.
pub(crate) fn frame(number: usize) -> Vec<u8> {
    let mut bytes = vec![0; 60 + number % 1_400];
    bytes[..6].fill(2);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes[14..22].copy_from_slice(&(number as u64).to_be_bytes());
    for (at, byte) in bytes.iter_mut().enumerate().skip(22) {
        *byte = (at * 7 + number) as u8;
    }
    bytes
}

/// Sends it now, or as soon as there is room.
pub(crate) fn send(frames: &mut dyn Frames, bytes: &[u8]) {
    for _ in 0..1_000_000 {
        if let Some(place) = frames.put(bytes.len()) {
            place.copy_from_slice(bytes);
            frames.flush().unwrap();
            return;
        }
        frames.urge().unwrap();
    }
    panic!("no room in the sending ring");
}

/// Frames of the next bursts until there are `count`, or none comes any more.
pub(crate) fn received(frames: &mut dyn Frames, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while all.len() < count {
        let burst = frames.receive(LIMIT).unwrap();
        if burst.count == 0 {
            break;
        }
        all.extend((0..burst.count).map(|at| frames.frame(at).bytes.to_vec()));
    }
    all
}
