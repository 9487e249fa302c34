//! The kernel's side: its raw and wall clocks, and what it says about the counter.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use whylate_model::Nanos;
use whylate_sys::nanosleep::{Clock, clock_ns};

/// Where the kernel says which clock it counts time by.
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// Clock sources that are the counter times a constant: of the kernel on bare metal, of the
/// hypervisor on its guests.
const COUNTER_TIMES_CONSTANT: [&str; 6] =
    ["tsc", "tsc-early", "kvm-clock", "xen", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// A clock that runs at a steady rate: `CLOCK_MONOTONIC_RAW`, or a mock of it.
pub trait RawClock {
    /// Nanoseconds since some fixed instant.
    fn now_ns(&mut self) -> u64;

    /// Lets at least `duration` pass.
    fn wait(&mut self, duration: Nanos);
}

/// `CLOCK_MONOTONIC_RAW`: not slewed by NTP, which may run a clock up to 500 ppm fast or slow.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelRaw;

impl RawClock for KernelRaw {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        clock_ns(Clock::MonotonicRaw)
    }

    fn wait(&mut self, duration: Nanos) {
        thread::sleep(Duration::from_nanos(duration.0));
    }
}

/// `CLOCK_REALTIME`, which is slewed and set: for what is related to it, never for a duration.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelRealtime;

impl RawClock for KernelRealtime {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        realtime_ns()
    }

    fn wait(&mut self, duration: Nanos) {
        thread::sleep(Duration::from_nanos(duration.0));
    }
}

/// `CLOCK_REALTIME`, nanoseconds since 1970.
#[inline]
pub(crate) fn realtime_ns() -> u64 {
    clock_ns(Clock::Realtime)
}

/// What the kernel says about the counter: facts for the report, never a reason to refuse it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelView {
    /// The clock source in use: `tsc`, `kvm-clock`, `hpet`, `arch_sys_counter`; none where the file
    /// cannot be read.
    pub clocksource: Option<String>,
    /// The clock sources the kernel would take. A `tsc` that is missing here was found unstable
    /// (or the machine has none): the kernel itself does not count by it.
    pub available: Vec<String>,
    /// The kernel took the frequency of the counter from CPUID or the hypervisor and did not
    /// measure it (`tsc_known_freq` in /proc/cpuinfo).
    pub frequency_was_told: bool,
}

impl KernelView {
    /// Reads it; what cannot be read is missing.
    #[must_use]
    pub fn read() -> Self {
        let file = |name| fs::read_to_string(Path::new(CLOCKSOURCE).join(name)).ok();
        Self {
            clocksource: file("current_clocksource").map(|text| text.trim().to_owned()),
            available: file("available_clocksource")
                .map(|text| text.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            frequency_was_told: cpu_flags().is_some_and(|flags| has_flag(&flags, "tsc_known_freq")),
        }
    }

    /// Does `CLOCK_MONOTONIC_RAW` rest on something else than the counter? Not claimed where the
    /// clock source is not known.
    #[must_use]
    pub fn raw_clock_is_independent(&self) -> bool {
        self.clocksource.as_deref().is_some_and(|name| !COUNTER_TIMES_CONSTANT.contains(&name))
    }
}

/// The line of CPU flags in /proc/cpuinfo, where it can be read.
pub(crate) fn cpu_flags() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    text.lines().find(|line| line.starts_with("flags")).map(str::to_owned)
}

/// Is `flag` among the words of a line of CPU flags?
pub(crate) fn has_flag(flags: &str, flag: &str) -> bool {
    flags.split_whitespace().any(|word| word == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(clocksource: Option<&str>) -> KernelView {
        KernelView { clocksource: clocksource.map(str::to_owned), ..KernelView::default() }
    }

    #[test]
    fn a_raw_clock_that_is_the_counter_times_a_constant_is_not_independent() {
        for name in COUNTER_TIMES_CONSTANT {
            assert!(!view(Some(name)).raw_clock_is_independent(), "{name}");
        }
        assert!(view(Some("hpet")).raw_clock_is_independent());
        assert!(view(Some("acpi_pm")).raw_clock_is_independent());
    }

    #[test]
    fn independence_is_not_claimed_of_an_unknown_clock_source() {
        assert!(!view(None).raw_clock_is_independent());
    }

    #[test]
    fn a_flag_is_a_whole_word() {
        let flags = "flags\t\t: fpu constant_tsc nonstop_tsc_s3";
        assert!(has_flag(flags, "constant_tsc"));
        assert!(!has_flag(flags, "nonstop_tsc"));
    }
}
