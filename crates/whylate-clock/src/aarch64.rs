//! The virtual counter of the generic timer, `cntvct_el0`.
//!
//! Its rate is constant by architecture, also in low-power states. Its step is not one
//! nanosecond: the counter often moves at 24 to 100 MHz only, also where it is scaled to count
//! nanoseconds. [`crate::cost::resolution_ticks`] says what it does here; no gap shorter than that
//! can be seen.
#![expect(clippy::inline_always, reason = "a call would cost as much as the read itself")]

use core::arch::asm;

use whylate_model::{CpuId, Hertz, Ticks};

use crate::kernel::KernelRaw;
use crate::sources::Nominal;
use crate::{ClockError, Counter, cost};

/// The virtual counter.
#[derive(Debug, Clone, Copy)]
pub struct HardwareCounter {
    _opened: (),
}

impl HardwareCounter {
    /// Opens the counter, or says why it cannot be used.
    ///
    /// # Errors
    /// [`ClockError::Trapped`]: also a kernel that works round an erratum of the counter traps it.
    pub fn open() -> Result<Self, ClockError> {
        let mut counter = Self { _opened: () };
        cost::refuse_trapped(&mut counter, &mut KernelRaw)?;
        Ok(counter)
    }
}

impl Counter for HardwareCounter {
    const KIND: &'static str = "cntvct_el0";

    #[inline(always)]
    fn read(&mut self) -> Ticks {
        let ticks: u64;
        // SAFETY: Linux lets user space read the virtual counter; one register is written.
        unsafe {
            asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        Ticks(ticks)
    }

    #[inline(always)]
    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        let ticks: u64;
        // SAFETY: as in `read`; the barriers touch nothing. Memory is not declared untouched, so
        // that the compiler moves no access across it.
        unsafe {
            asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks,
                 options(nostack, preserves_flags));
        }
        (Ticks(ticks), self.cpu())
    }

    #[inline(always)]
    fn cpu(&mut self) -> CpuId {
        // The C library reads it from the thread's rseq area, where the thread has one.
        // SAFETY: takes nothing and changes nothing.
        CpuId(unsafe { libc::sched_getcpu() } as u32)
    }
}

/// The frequency that the firmware states in `cntfrq_el0`, where it states one.
pub(crate) fn nominal() -> Vec<Nominal> {
    let hz: u64;
    // SAFETY: Linux lets user space read the register; one register is written.
    unsafe {
        asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags));
    }
    // The upper half is reserved.
    let hz = hz as u32;
    if hz == 0 {
        Vec::new()
    } else {
        vec![Nominal { name: "cntfrq_el0", hz: Hertz(f64::from(hz)) }]
    }
}
