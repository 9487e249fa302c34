//! Who states the frequency of the counter, and which statements are independent.
//!
//! A statement of the kernel, the firmware or the hypervisor comes without a bound of its error. It
//! is never the frequency used: it is set beside the regression, which was measured in the run.

use std::fs;

use whylate_model::Hertz;
use whylate_model::run::FrequencySource;
use whylate_sys::perf_page;

use crate::kernel::KernelView;

/// Name of the regression among the sources.
pub const REGRESSION: &str = "regression";

/// Name of the kernel's constant in a perf mmap page.
pub const PERF_PAGE: &str = "perf mmap page";

/// Name of the kernel's constant in sysfs, which few kernels show.
pub const SYSFS: &str = "tsc_freq_khz";

/// Sources may differ by this much before one of them must be wrong: it is as far as the kernel
/// lets NTP bend a clock, and more than crystals are off.
pub const DISAGREEMENT_PPM: f64 = 500.0;

/// A frequency that somebody states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nominal {
    /// The name under which a run records it.
    pub name: &'static str,
    /// What is stated.
    pub hz: Hertz,
}

/// What is known of the counter's frequency before anything is measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct References {
    /// The statements.
    pub nominal: Vec<Nominal>,
    /// What the kernel counts time by.
    pub kernel: KernelView,
}

impl References {
    /// Everything that this host states.
    #[must_use]
    pub fn of_this_host() -> Self {
        let mut nominal: Vec<Nominal> = kernel_constant().into_iter().chain(sysfs()).collect();
        #[cfg(target_arch = "x86_64")]
        nominal.extend(crate::x86_64::nominal());
        #[cfg(target_arch = "aarch64")]
        nominal.extend(crate::aarch64::nominal());
        Self { nominal, kernel: KernelView::read() }
    }

    /// All sources beside a regression that found `hz` within `bound_ppm`.
    pub(crate) fn beside(&self, hz: Hertz, bound_ppm: f64) -> Vec<FrequencySource> {
        let stated = self.nominal.iter().map(|source| FrequencySource {
            name: source.name.to_owned(),
            hz: source.hz,
            bound_ppm: None,
            independent: self.is_independent(source),
            difference_ppm: (source.hz.0 / hz.0 - 1.0) * 1e6,
        });
        let regression = FrequencySource {
            name: REGRESSION.to_owned(),
            hz,
            bound_ppm: Some(bound_ppm),
            independent: self.kernel.raw_clock_is_independent(),
            difference_ppm: 0.0,
        };
        stated.chain([regression]).collect()
    }

    /// Does a statement rest on something else than the regression does?
    ///
    /// Where the raw clock is the counter times the kernel's constant, the regression finds that
    /// constant again. The kernel's constant is then the same statement twice; so is CPUID's, if
    /// the kernel took its constant from there.
    fn is_independent(&self, source: &Nominal) -> bool {
        if self.kernel.raw_clock_is_independent() {
            return true;
        }
        let kernel_measured =
            self.kernel.clocksource.as_deref() == Some("tsc") && !self.kernel.frequency_was_told;
        source.name.starts_with("cpuid") && kernel_measured
    }
}

/// The kernel's own constant, where the kernel offers it to perf.
fn kernel_constant() -> Option<Nominal> {
    let conversion = perf_page::time_conversion()?;
    let hz = conversion_hz(conversion.mult, conversion.shift)?;
    Some(Nominal { name: PERF_PAGE, hz })
}

/// The kernel's own constant, in whole kilohertz.
fn sysfs() -> Option<Nominal> {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/tsc_freq_khz").ok()?;
    let khz: u32 = text.trim().parse().ok()?;
    (khz != 0).then(|| Nominal { name: SYSFS, hz: Hertz(f64::from(khz) * 1e3) })
}

/// Nanoseconds are `(ticks * mult) >> shift`.
fn conversion_hz(mult: u32, shift: u16) -> Option<Hertz> {
    (mult != 0).then(|| Hertz(1e9 * 2f64.powi(i32::from(shift)) / f64::from(mult)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: Hertz = Hertz(2_000_000_000.0);

    fn references(clocksource: &str, frequency_was_told: bool) -> References {
        let stated = |name, ppm: f64| Nominal { name, hz: Hertz(HZ.0 * (1.0 + ppm / 1e6)) };
        References {
            nominal: vec![stated(PERF_PAGE, 0.0), stated("cpuid 15h", 40.0)],
            kernel: KernelView {
                clocksource: Some(clocksource.to_owned()),
                frequency_was_told,
                ..KernelView::default()
            },
        }
    }

    fn independent(references: &References) -> Vec<(String, bool)> {
        references.beside(HZ, 0.1).into_iter().map(|s| (s.name, s.independent)).collect()
    }

    #[test]
    fn with_clocksource_tsc_the_regression_finds_the_kernels_own_constant() {
        let expected =
            [(PERF_PAGE, false), ("cpuid 15h", false), (REGRESSION, false)].map(owned).to_vec();
        assert_eq!(independent(&references("tsc", true)), expected);
        assert_eq!(independent(&references("kvm-clock", false)), expected);
    }

    #[test]
    fn a_constant_that_the_kernel_measured_does_not_rest_on_cpuid() {
        let expected =
            [(PERF_PAGE, false), ("cpuid 15h", true), (REGRESSION, false)].map(owned).to_vec();
        assert_eq!(independent(&references("tsc", false)), expected);
    }

    #[test]
    fn with_another_clocksource_the_regression_is_independent_of_all_statements() {
        let expected =
            [(PERF_PAGE, true), ("cpuid 15h", true), (REGRESSION, true)].map(owned).to_vec();
        assert_eq!(independent(&references("hpet", true)), expected);
    }

    #[test]
    fn differences_are_relative_to_the_frequency_used() {
        let sources = references("tsc", true).beside(HZ, 0.1);
        assert!((sources[1].difference_ppm - 40.0).abs() < 1e-6);
        assert_eq!(sources[1].bound_ppm, None);
        assert_eq!((sources[2].difference_ppm, sources[2].bound_ppm), (0.0, Some(0.1)));
    }

    #[test]
    fn the_perf_page_conversion_is_inverted_exactly() {
        // One tick in two nanoseconds, and 1 GHz.
        assert_eq!(conversion_hz(1 << 31, 30), Some(Hertz(5e8)));
        assert_eq!(conversion_hz(1 << 31, 31), Some(Hertz(1e9)));
        assert_eq!(conversion_hz(0, 31), None);
    }

    fn owned((name, independent): (&str, bool)) -> (String, bool) {
        (name.to_owned(), independent)
    }
}
