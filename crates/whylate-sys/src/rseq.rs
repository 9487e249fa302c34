//! The restartable-sequence word: has this thread been switched out since it was armed?
//!
//! [`linux/rseq.h`](https://github.com/torvalds/linux/blob/master/include/uapi/linux/rseq.h),
//! [`__rseq_offset` of the C library](https://sourceware.org/glibc/manual/latest/html_node/Restartable-Sequences.html).
//! Capability: none.
//!
//! Each thread shares a small area with the kernel. Its `rseq_cs` field names a critical section;
//! when the kernel preempts, migrates or signals the thread while it executes outside that section
//! it clears the field. Here the field names a section that is never executed: still set means
//! "not preempted, not migrated, not signalled"; cleared means that one of those *may* have
//! happened, for the kernel also clears the field on some returns from an interrupt.
//!
//! The area is the one that glibc 2.35 or newer registers for each thread; without it this is
//! refused, and nothing is registered in its place. Neither arming nor looking is a system call.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::SysError;

#[cfg(target_arch = "aarch64")]
#[path = "rseq/aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "rseq/x86_64.rs"]
mod arch;

/// Why the word cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RseqRefusal {
    /// The C library is older than glibc 2.35, or is another one.
    NoLibrarySupport,
    /// The C library did not register an area.
    NotRegistered,
    /// The C library's area is smaller than the first that the kernel defined.
    TooSmall {
        /// `__rseq_size`.
        bytes: u32,
    },
    /// The library tried, and the kernel refused this thread.
    KernelRefused,
}

impl fmt::Display for RseqRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrarySupport => f.write_str(
                "the C library does not offer __rseq_offset; use a build for glibc 2.35 or newer",
            ),
            Self::NotRegistered => f.write_str(
                "the C library has registered no area (__rseq_size is 0); run without \
                 GLIBC_TUNABLES=glibc.pthread.rseq=0, on Linux 4.18 or newer with CONFIG_RSEQ",
            ),
            Self::TooSmall { bytes } => write!(
                f,
                "the C library's area has {bytes} bytes, fewer than the {REGISTERED_BYTES} that \
                 the kernel defines"
            ),
            Self::KernelRefused => f.write_str(
                "the kernel did not accept this thread's area; a sandbox may forbid rseq(2)",
            ),
        }
    }
}

/// The calling thread's area. It is of no use to another thread and cannot be sent to one.
///
/// One value per thread: dropping it clears the word.
#[derive(Debug)]
pub struct RseqArea {
    word: NonNull<*const Descriptor>,
    cpu_id: NonNull<u32>,
    /// Pointers are not sent to other threads either; this says that it is meant.
    not_send: PhantomData<*mut ()>,
}

/// `struct rseq` as far as the kernel defined it first.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: u32,
    cpu_id: u32,
    rseq_cs: *const Descriptor,
    flags: u32,
}

/// `struct rseq_cs`.
#[repr(C, align(32))]
struct Descriptor {
    version: u32,
    flags: u32,
    start_ip: *const u8,
    post_commit_offset: u64,
    abort_ip: *const u8,
}

const _: () = {
    assert!(offset_of!(Area, cpu_id) == 4);
    assert!(offset_of!(Area, rseq_cs) == 8);
    assert!(offset_of!(Area, flags) == 16);
    assert!(size_of::<Area>() == 32);
    assert!(offset_of!(Descriptor, start_ip) == 8);
    assert!(offset_of!(Descriptor, post_commit_offset) == 16);
    assert!(offset_of!(Descriptor, abort_ip) == 24);
    assert!(size_of::<Descriptor>() == 32);
    assert!(align_of::<Descriptor>() == 32);
};

/// The bytes of [`Area`] that count: glibc says 20, later versions more.
const REGISTERED_BYTES: u32 = 20;
/// `RSEQ_CPU_ID_UNINITIALIZED` and `RSEQ_CPU_ID_REGISTRATION_FAILED` are -1 and -2.
const FIRST_INVALID_CPU: u32 = -2_i32 as u32;

// SAFETY: constant, and what its pointers point at is constant.
unsafe impl Sync for Descriptor {}

// SAFETY: labels of the assembly in `arch`, of which nothing but the address is taken.
unsafe extern "C" {
    static whylate_rseq_start: u8;
    static whylate_rseq_abort: u8;
}

/// The section that is never executed. The kernel reads this each time it switches an armed thread
/// out, and kills the thread if the four bytes before `abort_ip` are not the signature that the C
/// library registered.
static NEVER_EXECUTED: Descriptor = Descriptor {
    version: 0,
    flags: 0,
    start_ip: &raw const whylate_rseq_start,
    post_commit_offset: arch::SECTION_BYTES,
    abort_ip: &raw const whylate_rseq_abort,
};

#[expect(
    clippy::inline_always,
    reason = "one instruction each, used between two readings of the counter"
)]
impl RseqArea {
    /// The calling thread's area.
    pub fn of_thread() -> Result<Self, SysError> {
        let start = registered().map_err(SysError::Rseq)?;
        let area = Self {
            word: field(start, offset_of!(Area, rseq_cs)),
            cpu_id: field(start, offset_of!(Area, cpu_id)),
            not_send: PhantomData,
        };
        if area.cpu_id() >= FIRST_INVALID_CPU {
            // Nothing was armed, so that there is nothing to clear.
            std::mem::forget(area);
            return Err(SysError::Rseq(RseqRefusal::KernelRefused));
        }
        Ok(area)
    }

    /// Sets the word.
    #[inline(always)]
    pub fn arm(&self) {
        self.store(&raw const NEVER_EXECUTED);
    }

    /// Clears the word.
    #[inline(always)]
    pub fn disarm(&self) {
        self.store(std::ptr::null());
    }

    /// Whether the word is still set: if so, this thread was neither switched out nor migrated nor
    /// signalled since [`arm`](Self::arm).
    #[inline(always)]
    #[must_use]
    pub fn is_set(&self) -> bool {
        // SAFETY: the area lives as long as the thread, which this value never leaves.
        let word = unsafe { self.word.read_volatile() };
        !word.is_null()
    }

    /// The CPU this thread runs on, as the kernel noted when it last let the thread go on.
    #[inline(always)]
    #[must_use]
    pub fn cpu_id(&self) -> u32 {
        // SAFETY: the area lives as long as the thread, which this value never leaves.
        unsafe { self.cpu_id.read_volatile() }
    }

    #[inline(always)]
    fn store(&self, descriptor: *const Descriptor) {
        // SAFETY: the area lives as long as the thread, which this value never leaves; the kernel
        // takes a null pointer or one to a descriptor that is never freed.
        unsafe { self.word.write_volatile(descriptor) }
    }
}

impl Drop for RseqArea {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// Where the C library keeps this thread's area.
fn registered() -> Result<NonNull<u8>, RseqRefusal> {
    let size = symbol(c"__rseq_size").ok_or(RseqRefusal::NoLibrarySupport)?;
    let offset = symbol(c"__rseq_offset").ok_or(RseqRefusal::NoLibrarySupport)?;
    // SAFETY: the C library documents `const unsigned int __rseq_size`.
    let size = unsafe { size.cast::<u32>().read() };
    // SAFETY: the C library documents `const ptrdiff_t __rseq_offset`.
    let offset = unsafe { offset.cast::<isize>().read() };
    match size {
        0 => Err(RseqRefusal::NotRegistered),
        1..REGISTERED_BYTES => Err(RseqRefusal::TooSmall { bytes: size }),
        _ => {
            let start = arch::thread_pointer().wrapping_add_signed(offset);
            NonNull::new(std::ptr::with_exposed_provenance_mut(start))
                .ok_or(RseqRefusal::NotRegistered)
        }
    }
}

fn field<T>(area: NonNull<u8>, offset: usize) -> NonNull<T> {
    NonNull::new(area.as_ptr().wrapping_add(offset).cast())
        .expect("invariant: an area does not end at the end of the address space")
}

/// The address of a variable of the C library, where this one has it.
fn symbol(name: &CStr) -> Option<NonNull<u8>> {
    // SAFETY: the name ends in a zero byte; looking a symbol up has no effect.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    NonNull::new(address.cast())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::{affinity, nanosleep, sched, switches};

    /// The thread's area, or `None` with the reason printed.
    fn area() -> Option<RseqArea> {
        RseqArea::of_thread().inspect_err(crate::tests::skip).ok()
    }

    fn spin(duration: Duration) {
        let end = nanosleep::clock_ns(nanosleep::Clock::Monotonic) + duration.as_nanos() as u64;
        while nanosleep::clock_ns(nanosleep::Clock::Monotonic) < end {}
    }

    /// What it is asked of has this trait twice where it can be sent, and then no call says which is meant.
    trait CannotBeSent<Way> {
        fn holds() {}
    }
    struct WhereItCan;
    impl<T> CannotBeSent<()> for T {}
    impl<T: Send> CannotBeSent<WhereItCan> for T {}

    #[test]
    fn an_area_cannot_be_sent_to_another_thread() {
        // It compiles: that is the test.
        <RseqArea as CannotBeSent<_>>::holds();
    }

    #[test]
    fn the_section_is_as_long_as_the_descriptor_says() {
        let start = NEVER_EXECUTED.start_ip.addr() as u64;
        let abort = NEVER_EXECUTED.abort_ip.addr() as u64;
        assert!(abort >= start + NEVER_EXECUTED.post_commit_offset + arch::SIGNATURE_BYTES as u64);
        let signature = NEVER_EXECUTED.abort_ip.wrapping_sub(arch::SIGNATURE_BYTES);
        // SAFETY: the bytes before the abort address are part of the assembly above it.
        let signature = unsafe { signature.cast::<u32>().read_unaligned() };
        assert_eq!(signature, arch::SIGNATURE);
    }

    #[test]
    fn arming_sets_the_word_and_disarming_or_dropping_clears_it() {
        let Some(area) = area() else { return };
        // A switch may fall between the two; not ten times in a row.
        assert!((0..10).any(|_| {
            area.arm();
            area.is_set()
        }));
        area.disarm();
        assert!(!area.is_set());
        area.arm();
        drop(area);
        assert!(!RseqArea::of_thread().unwrap().is_set());
    }

    #[test]
    fn a_thread_that_sleeps_finds_the_word_cleared_each_time() {
        let Some(area) = area() else { return };
        let mut slept = 0;
        // A sleep may be over before it begins: that is none.
        for _ in 0..100_000 {
            area.arm();
            let before = switches::thread_switches().voluntary;
            std::thread::sleep(Duration::from_micros(100));
            let switched = switches::thread_switches().voluntary - before;
            assert!(switched == 0 || !area.is_set(), "slept, and the word is still set");
            slept += switched;
            if slept >= 50 {
                return;
            }
        }
        panic!("slept {slept} times: nothing was tested");
    }

    #[test]
    fn no_preemption_leaves_the_word_set() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let Some(area) = area() else { return };
                let here = affinity::get()[0];
                affinity::set(&[here]).unwrap();
                let stop = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| preempt(&stop));
                    // Also when an assertion fails, else the scope would wait for ever.
                    let _end = StopAtEnd(&stop);
                    let preempted = count_preemptions(&area);
                    assert!(preempted >= 10, "preempted {preempted} times: nothing was tested");
                });
            });
        });
    }

    struct StopAtEnd<'a>(&'a AtomicBool);

    impl Drop for StopAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Wakes often: as a real-time thread where that is allowed, so that each wake preempts.
    fn preempt(stop: &AtomicBool) {
        let priority = sched::set_fifo(10);
        while !stop.load(Ordering::Relaxed) {
            match &priority {
                Ok(()) => std::thread::sleep(Duration::from_micros(200)),
                Err(_) => spin(Duration::from_millis(1)),
            }
        }
    }

    /// Spins until a competitor took the CPU ten times; each time the word must be clear.
    fn count_preemptions(area: &RseqArea) -> u64 {
        let end = nanosleep::clock_ns(nanosleep::Clock::Monotonic) + 60_000_000_000;
        let mut preempted = 0;
        while preempted < 10 && nanosleep::clock_ns(nanosleep::Clock::Monotonic) < end {
            // In this order what is counted happened while the word was armed.
            area.arm();
            let before = switches::thread_switches().involuntary;
            spin(Duration::from_micros(300));
            let after = switches::thread_switches().involuntary;
            assert!(after == before || !area.is_set(), "preempted, and the word is still set");
            preempted += after - before;
        }
        preempted
    }

    #[test]
    fn a_signal_clears_the_word() {
        extern "C" fn nothing(_: i32) {}
        let Some(area) = area() else { return };
        let number = crate::signal::real_time(9);
        let _installed = crate::signal::Handler::install(number, nothing).unwrap();
        let (pid, tid) = (crate::process::pid(), crate::process::tid());
        for _ in 0..20 {
            area.arm();
            crate::signal::send_to_thread(pid, tid, number).unwrap();
            assert!(!area.is_set());
        }
    }

    #[test]
    fn the_cpu_is_the_one_the_thread_is_bound_to() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let Some(area) = area() else { return };
                for cpu in affinity::get() {
                    affinity::set(&[cpu]).unwrap();
                    assert_eq!(area.cpu_id(), cpu.0);
                }
            });
        });
    }

    #[test]
    fn a_library_told_not_to_register_is_refused_for_that_reason() {
        const TUNABLES: &str = "GLIBC_TUNABLES";
        const UNREGISTERED: &str = "glibc.pthread.rseq=0";
        if std::env::var(TUNABLES).is_ok_and(|tunables| tunables.contains(UNREGISTERED)) {
            let refusal = RseqArea::of_thread().unwrap_err();
            assert_eq!(refusal, SysError::Rseq(RseqRefusal::NotRegistered));
            return;
        }
        if area().is_none() {
            return;
        }
        // The library reads it once, at the start of a process: this test again, in another.
        let name = "rseq::tests::a_library_told_not_to_register_is_refused_for_that_reason";
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact"])
            .env(TUNABLES, UNREGISTERED)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn each_thread_has_its_own_area() {
        let Some(area) = area() else { return };
        let here = area.word.as_ptr().addr();
        let there = std::thread::spawn(|| RseqArea::of_thread().unwrap().word.as_ptr().addr());
        assert_ne!(there.join().unwrap(), here);
    }
}
