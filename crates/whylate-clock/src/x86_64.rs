//! The time-stamp counter.
//!
//! Opened only when it is invariant, of constant rate, not trapped, and when the CPU number beside
//! it is the kernel's. A read is one plain `rdtsc`: about 10 ns, out of order by some tens of
//! ticks. It does not serialise; [`Counter::read_ordered`] does, towards what came before.
#![expect(clippy::inline_always, reason = "a call would cost as much as the read itself")]

use core::arch::asm;

use raw_cpuid::cpuid;
use whylate_model::{CpuId, Hertz, Ticks};
use whylate_sys::affinity;

use crate::kernel::{self, KernelRaw};
use crate::sources::Nominal;
use crate::{ClockError, Counter, cost};

/// Bits of TSC_AUX that hold the CPU; the NUMA node lies above (kernel: `VDSO_CPUNODE_BITS`).
const AUX_CPU_MASK: u32 = 0xfff;

/// The thread may move between asking the register and asking the kernel: ask again this often.
const CPU_NUMBER_TRIES: u32 = 100;

/// The time-stamp counter of the CPU that reads it.
#[derive(Debug, Clone, Copy)]
pub struct HardwareCounter {
    /// The processor has `rdpid`. Found once; as it never changes the branch on it is predicted,
    /// and `rdpid` is the side that falls through where there is no prediction yet.
    rdpid: bool,
}

impl HardwareCounter {
    /// Opens the counter, or says why it cannot be used.
    ///
    /// # Errors
    /// [`ClockError::NotInvariant`], [`ClockError::NotConstant`], [`ClockError::NoRdtscp`],
    /// [`ClockError::WrongCpuNumber`], [`ClockError::Trapped`].
    pub fn open() -> Result<Self, ClockError> {
        let features = Features::of_this_processor();
        features.check(kernel::cpu_flags().as_deref())?;
        let mut counter = Self { rdpid: features.rdpid };
        counter.check_cpu_number()?;
        cost::refuse_trapped(&mut counter, &mut KernelRaw)?;
        Ok(counter)
    }

    fn check_cpu_number(&mut self) -> Result<(), ClockError> {
        let instruction = if self.rdpid { "rdpid" } else { "rdtscp" };
        let mut seen = Ok(());
        for _ in 0..CPU_NUMBER_TRIES {
            let (read, kernel) = (self.cpu(), affinity::current());
            if read == kernel && self.read_ordered().1 == kernel {
                return Ok(());
            }
            seen = Err(ClockError::WrongCpuNumber { instruction, read, kernel });
        }
        seen
    }
}

impl Counter for HardwareCounter {
    const KIND: &'static str = "tsc";

    #[inline(always)]
    fn read(&mut self) -> Ticks {
        // SAFETY: every x86-64 processor has the instruction; it touches no memory.
        Ticks(unsafe { core::arch::x86_64::_rdtsc() })
    }

    #[inline(always)]
    fn read_ordered(&mut self) -> (Ticks, CpuId) {
        let (low, high, aux): (u32, u32, u32);
        // SAFETY: `open` found the instruction; it writes these three registers and nothing else.
        // Memory is not declared untouched, so that the compiler moves no access across it.
        unsafe {
            asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") aux,
                 options(nostack, preserves_flags));
        }
        (Ticks(u64::from(high) << 32 | u64::from(low)), CpuId(aux & AUX_CPU_MASK))
    }

    #[inline(always)]
    fn cpu(&mut self) -> CpuId {
        if self.rdpid { CpuId(rdpid() & AUX_CPU_MASK) } else { self.cpu_by_rdtscp() }
    }
}

impl HardwareCounter {
    #[cold]
    fn cpu_by_rdtscp(&mut self) -> CpuId {
        self.read_ordered().1
    }
}

#[inline(always)]
fn rdpid() -> u32 {
    let aux: u64;
    // SAFETY: called only where `open` found the instruction; it writes one register.
    unsafe { asm!("rdpid {}", out(reg) aux, options(nomem, nostack, preserves_flags)) };
    aux as u32
}

/// What CPUID says of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Features {
    /// Leaf 80000007h, EDX bit 8.
    invariant: bool,
    /// Leaf 80000001h, EDX bit 27.
    rdtscp: bool,
    /// Leaf 7, ECX bit 22.
    rdpid: bool,
}

impl Features {
    fn of_this_processor() -> Self {
        let extended = cpuid!(0x8000_0000).eax;
        let bit = |present: bool, register: u32, bit: u32| present && register >> bit & 1 == 1;
        Self {
            invariant: bit(extended >= 0x8000_0007, cpuid!(0x8000_0007).edx, 8),
            rdtscp: bit(extended >= 0x8000_0001, cpuid!(0x8000_0001).edx, 27),
            rdpid: bit(cpuid!(0).eax >= 7, cpuid!(7, 0).ecx, 22),
        }
    }

    /// `flags` is the kernel's line of CPU flags, where it could be read.
    fn check(self, flags: Option<&str>) -> Result<(), ClockError> {
        if !self.invariant {
            return Err(ClockError::NotInvariant);
        }
        for missing in ["constant_tsc", "nonstop_tsc"] {
            if flags.is_some_and(|flags| !kernel::has_flag(flags, missing)) {
                return Err(ClockError::NotConstant { missing });
            }
        }
        if self.rdtscp { Ok(()) } else { Err(ClockError::NoRdtscp) }
    }
}

/// The frequencies that the processor and its hypervisor state.
pub(crate) fn nominal() -> Vec<Nominal> {
    let mut sources = Vec::new();
    if cpuid!(0).eax >= 0x15 {
        let leaf = cpuid!(0x15);
        if let Some(hz) = crystal_hz(leaf.eax, leaf.ebx, leaf.ecx) {
            sources.push(Nominal { name: "cpuid 15h", hz });
        }
    }
    let on_hypervisor = cpuid!(1).ecx >> 31 == 1;
    if on_hypervisor && cpuid!(0x4000_0000).eax >= 0x4000_0010 {
        let khz = cpuid!(0x4000_0010).eax;
        if khz != 0 {
            sources.push(Nominal { name: "cpuid 40000010h", hz: Hertz(f64::from(khz) * 1e3) });
        }
    }
    sources
}

/// CPUID 15h: crystal (ECX) times numerator (EBX) over denominator (EAX), in full width. Any of
/// them may be 0, which means that the processor does not say.
fn crystal_hz(denominator: u32, numerator: u32, crystal: u32) -> Option<Hertz> {
    if denominator == 0 || numerator == 0 || crystal == 0 {
        return None;
    }
    let product = u128::from(crystal) * u128::from(numerator);
    let denominator = u128::from(denominator);
    let fraction = (product % denominator) as f64 / denominator as f64;
    Some(Hertz((product / denominator) as f64 + fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Features = Features { invariant: true, rdtscp: true, rdpid: true };
    const FLAGS: &str = "flags\t\t: fpu tsc rdtscp constant_tsc nonstop_tsc";

    #[test]
    fn a_counter_that_cpuid_does_not_call_invariant_is_refused() {
        let refused = Features { invariant: false, ..ALL }.check(Some(FLAGS));
        assert!(matches!(refused, Err(ClockError::NotInvariant)));
    }

    #[test]
    fn a_counter_whose_rate_the_kernel_does_not_call_constant_is_refused() {
        for (flags, name) in
            [("flags : nonstop_tsc", "constant_tsc"), ("flags : constant_tsc", "nonstop_tsc")]
        {
            match ALL.check(Some(flags)) {
                Err(ClockError::NotConstant { missing }) => assert_eq!(missing, name),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_unreadable_cpuinfo_is_no_reason_to_refuse() {
        assert!(ALL.check(None).is_ok());
    }

    #[test]
    fn a_processor_without_rdtscp_is_refused_and_one_without_rdpid_is_not() {
        let refused = Features { rdtscp: false, ..ALL }.check(Some(FLAGS));
        assert!(matches!(refused, Err(ClockError::NoRdtscp)));
        assert!(Features { rdpid: false, ..ALL }.check(Some(FLAGS)).is_ok());
    }

    #[test]
    fn crystal_arithmetic_neither_overflows_nor_divides_first() {
        // 24 MHz x 216 / 2, a common pair.
        assert_eq!(crystal_hz(2, 216, 24_000_000), Some(Hertz(2_592_000_000.0)));
        // Dividing first would give 19 200 000 x 97 = 1 862 400 000.
        assert_eq!(crystal_hz(2, 195, 19_200_000), Some(Hertz(1_872_000_000.0)));
        assert_eq!(crystal_hz(3, 4, 25), Some(Hertz(100.0 / 3.0)));
        let largest = crystal_hz(1, u32::MAX, u32::MAX).unwrap();
        assert!((largest.0 / f64::from(u32::MAX).powi(2) - 1.0).abs() < 1e-15);
        for (a, b, c) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
            assert_eq!(crystal_hz(a, b, c), None);
        }
    }

    #[test]
    fn rdpid_and_rdtscp_agree_on_the_cpu() {
        if !Features::of_this_processor().rdpid {
            return whylate_suite::absent("this processor has no rdpid");
        }
        let mut counter = HardwareCounter { rdpid: true };
        // The thread may move between the two.
        assert!((0..100).any(|_| counter.cpu() == counter.read_ordered().1));
    }
}
