//! The kernel's own constants for turning the raw counter into nanoseconds.
//!
//! [`perf_event_open(2)`](https://man7.org/linux/man-pages/man2/perf_event_open.2.html),
//! `struct perf_event_mmap_page` of
//! [`linux/perf_event.h`](https://github.com/torvalds/linux/blob/master/include/uapi/linux/perf_event.h).
//! Capability: none where `kernel.perf_event_paranoid` is 2 or less, else `CAP_PERFMON`.
//!
//! The page belongs to an event that never counts anything and is closed again at once.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags};

/// `ns = zero + (ticks * mult >> shift)`, with the product in full width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeConversion {
    /// `time_mult`.
    pub mult: u32,
    /// `time_shift`.
    pub shift: u16,
    /// `time_zero`: what the kernel's clock showed at tick 0, modulo 2^64.
    pub zero: u64,
}

/// The kernel's conversion; `None` where it offers none: no stable counter, a virtual machine
/// whose kernel keeps time by its hypervisor, or no access to performance events.
#[must_use]
pub fn time_conversion() -> Option<TimeConversion> {
    let event = open_event()?;
    let page = Mapping::of(&event)?;
    read(page.start)
}

impl TimeConversion {
    /// The counter's frequency in hertz that these constants stand for.
    #[must_use]
    pub fn hz(&self) -> f64 {
        2_f64.powi(i32::from(self.shift)) * 1e9 / f64::from(self.mult)
    }
}

/// `struct perf_event_attr` as first published; the kernel takes what follows for zeros.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_DUMMY: u64 = 9;
/// `exclude_kernel` and `exclude_hv`: an event that any user may open.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// The head of `struct perf_event_mmap_page`.
#[repr(C)]
#[derive(Default)]
struct Page {
    version: u32,
    compat_version: u32,
    lock: u32,
    index: u32,
    offset: i64,
    time_enabled: u64,
    time_running: u64,
    capabilities: u64,
    pmc_width: u16,
    time_shift: u16,
    time_mult: u32,
    time_offset: u64,
    time_zero: u64,
}

const _: () = {
    assert!(offset_of!(Page, lock) == 8);
    assert!(offset_of!(Page, capabilities) == 40);
    assert!(offset_of!(Page, time_shift) == 50);
    assert!(offset_of!(Page, time_mult) == 52);
    assert!(offset_of!(Page, time_zero) == 64);
    assert!(size_of::<Page>() == 72);
};

const CAP_USER_TIME: u64 = 1 << 3;
const CAP_USER_TIME_ZERO: u64 = 1 << 4;
/// The kernel holds the page for less than a microsecond; this many looks at a page that never
/// comes free mean that it is no such page.
const LOOKS: usize = 10_000;

fn open_event() -> Option<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: PERF_COUNT_SW_DUMMY,
        flags: USER_ONLY,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the kernel reads `attributes.size` bytes at the pointer, the size of the struct.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    // SAFETY: a number that is not negative is a new file that nothing else owns.
    (event >= 0).then(|| unsafe { OwnedFd::from_raw_fd(event as i32) })
}

struct Mapping {
    start: NonNull<Page>,
    bytes: usize,
}

impl Mapping {
    fn of(event: impl AsFd) -> Option<Self> {
        let bytes = rustix::param::page_size();
        // SAFETY: without a hint the kernel chooses addresses that nothing else uses.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                event,
                0,
            )
        };
        Some(Self { start: NonNull::new(start.ok()?.cast())?, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `of` mapped this range, and nothing points into it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Reads between two equal even readings of `lock`, as the header prescribes.
fn read(page: NonNull<Page>) -> Option<TimeConversion> {
    (0..LOOKS)
        .find_map(|_| {
            let before = copy(page).lock;
            fence(Ordering::Acquire);
            let copied = copy(page);
            fence(Ordering::Acquire);
            let after = copy(page).lock;
            (before == after && before & 1 == 0).then_some(copied)
        })
        .and_then(|page| {
            let offered = page.capabilities & (CAP_USER_TIME | CAP_USER_TIME_ZERO)
                == CAP_USER_TIME | CAP_USER_TIME_ZERO;
            (offered && page.time_mult != 0).then_some(TimeConversion {
                mult: page.time_mult,
                shift: page.time_shift,
                zero: page.time_zero,
            })
        })
}

fn copy(page: NonNull<Page>) -> Page {
    // SAFETY: the page is mapped and longer than the struct, of which any bytes are a value;
    // volatile, for the kernel may write at the same time.
    unsafe { page.read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(mut page: Page) -> Option<TimeConversion> {
        read(NonNull::from(&mut page))
    }

    fn offered() -> Page {
        Page {
            lock: 2,
            capabilities: CAP_USER_TIME | CAP_USER_TIME_ZERO,
            time_shift: 10,
            time_mult: 512,
            time_zero: u64::MAX - 5,
            ..Page::default()
        }
    }

    #[test]
    fn constants_are_taken_from_a_page_that_offers_them() {
        let conversion = read_from(offered()).unwrap();
        let expected = TimeConversion { mult: 512, shift: 10, zero: u64::MAX - 5 };
        assert_eq!(conversion, expected);
        assert_eq!(conversion.hz().to_bits(), 2e9_f64.to_bits());
    }

    #[test]
    fn a_page_without_both_capabilities_offers_nothing() {
        for capabilities in [0, CAP_USER_TIME, CAP_USER_TIME_ZERO, 1 << 2] {
            assert_eq!(read_from(Page { capabilities, ..offered() }), None);
        }
        assert_eq!(read_from(Page { time_mult: 0, ..offered() }), None);
    }

    #[test]
    fn a_page_that_stays_locked_is_given_up() {
        assert_eq!(read_from(Page { lock: 3, ..offered() }), None);
    }

    #[test]
    fn the_kernels_answer_does_not_change_from_call_to_call() {
        let Some(first) = time_conversion() else {
            return crate::tests::skip(&"this kernel offers no conversion (or no access to it)");
        };
        let again = time_conversion().unwrap();
        assert_eq!((first.mult, first.shift), (again.mult, again.shift));
        assert!(first.hz() > 1e6 && first.hz() < 1e11, "{}", first.hz());
    }
}
