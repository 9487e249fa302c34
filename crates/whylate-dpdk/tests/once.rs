//! Starting DPDK: once in a process, so all of it is one test.

use std::path::Path;

use whylate_clock::HardwareCounter;
use whylate_dpdk::{DpdkError, hugepages, open, prepare, running};
use whylate_model::Hertz;
use whylate_port::device::{Device, DeviceName, Pages};
use whylate_port::{LinkOptions, Setup, Wait};
use whylate_sys::affinity;

const MEMORY_MB: u32 = 40;

fn null(memory_mb: u32, pages: Pages) -> Device {
    let name = Some(DeviceName::Virtual("net_null0".to_owned()));
    Device { name, memory_mb: Some(memory_mb), pages }
}

#[test]
fn dpdk_starts_once_without_huge_pages_moves_nobody_and_refuses_what_it_has_not() {
    let cpus = affinity::get();
    let free = hugepages::free_mb(Path::new(hugepages::PLACE));
    // More than any test machine has.
    let error = prepare(&[&null(65_536, Pages::Huge)]).unwrap_err();
    let wanted = DpdkError::NoHugepages { wanted_mb: 65_536, free_mb: free };
    assert_eq!(error, wanted);
    assert_eq!(running(), None, "nothing was started for that");
    let pages = if free < u64::from(MEMORY_MB) { Pages::Auto } else { Pages::Ordinary };
    let started = prepare(&[&null(MEMORY_MB, pages)]).unwrap();
    assert!(!started.start.huge);
    if pages == Pages::Auto {
        let instead = started.instead.clone().unwrap_or_default();
        assert!(instead.contains("ordinary pages"), "{instead}");
    }
    assert_eq!(running(), Some(started.clone()));
    assert_eq!(affinity::get(), cpus, "the caller stays where it was");
    let left = Path::new("/run/dpdk").join(format!("whylate-{}", std::process::id()));
    assert!(!left.exists(), "{}", left.display());
    // Again with no more than there is: the same one. With more, or other pages: refused.
    assert_eq!(prepare(&[&null(MEMORY_MB - 8, Pages::Auto)]), Ok(started));
    for device in [null(MEMORY_MB + 1, Pages::Auto), null(MEMORY_MB, Pages::Huge)] {
        let error = prepare(&[&device]).unwrap_err();
        assert!(matches!(error, DpdkError::OtherEal { .. }), "{error}");
        assert!(error.to_string().contains("40 MB of ordinary pages"), "{error}");
    }
    // A pool that does not fit says how much it takes.
    let counter = HardwareCounter::open().unwrap();
    let setup = Setup { counter, rate: Hertz(2e9), wait: Wait::Spin };
    let device = null(MEMORY_MB, Pages::Auto);
    let large =
        LinkOptions { ring: Some(16_384), device: device.clone(), ..LinkOptions::default() };
    let error = open(&large, setup).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("was given 40 MB") && error.contains("131071 buffers"), "{error}");
    // And what fits still does.
    let small = LinkOptions { ring: Some(64), device, ..LinkOptions::default() };
    assert!(open(&small, setup).is_ok());
}
