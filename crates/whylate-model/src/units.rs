//! Newtypes for the quantities that would otherwise all be a `u64`.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A reading of the raw counter: TSC on x86-64, `cntvct_el0` on aarch64.
///
/// A point in time, not a duration; it means something only beside the clock facts of its run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = "ticks")))]
#[serde(transparent)]
pub struct Ticks(pub u64);

/// A distance between two readings of the raw counter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = "ticks")))]
#[serde(transparent)]
pub struct TicksDelta(pub u64);

/// A duration in nanoseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = "ns")))]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// A frequency in hertz, as precise as the calibration that found it.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = "hz")))]
#[serde(transparent)]
pub struct Hertz(pub f64);

/// A logical CPU as the kernel numbers it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = "identifier")))]
#[serde(transparent)]
pub struct CpuId(pub u32);

/// A thread or process id as the kernel numbers it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = "identifier")))]
#[serde(transparent)]
pub struct Pid(pub i32);

impl Ticks {
    /// The distance from `earlier` to `self`; zero when `self` is not later.
    #[must_use]
    // Between every two readings of a measuring loop, in whatever crate that is compiled.
    #[inline]
    pub fn since(self, earlier: Self) -> TicksDelta {
        TicksDelta(self.0.saturating_sub(earlier.0))
    }
}

impl Add<TicksDelta> for Ticks {
    type Output = Self;

    #[inline]
    fn add(self, delta: TicksDelta) -> Self {
        Self(self.0.saturating_add(delta.0))
    }
}

impl Add for TicksDelta {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for TicksDelta {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl TicksDelta {
    /// This distance in nanoseconds at `rate`, rounded to the nearest.
    #[must_use]
    pub fn to_nanos(self, rate: Hertz) -> Nanos {
        Nanos((self.0 as f64 * 1e9 / rate.0).round() as u64)
    }
}

impl Nanos {
    /// This duration in ticks at `rate`, rounded to the nearest.
    #[must_use]
    pub fn to_ticks(self, rate: Hertz) -> TicksDelta {
        TicksDelta((self.0 as f64 * rate.0 / 1e9).round() as u64)
    }

    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);
}

impl fmt::Display for Nanos {
    /// Three significant digits with the unit that fits: `9ns`, `1.25us`, `64.0ms`, `3.10s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        if ns < 1_000 {
            return f.pad(&format!("{ns}ns"));
        }
        // What rounds to a thousand of a unit is one of the next.
        let (value, unit) = match ns {
            ..999_500 => (ns as f64 / 1e3, "us"),
            999_500..999_500_000 => (ns as f64 / 1e6, "ms"),
            _ => (ns as f64 / 1e9, "s"),
        };
        let decimals = match value {
            ..9.995 => 2,
            ..99.95 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.decimals$}{unit}"))
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanos_print_with_three_digits_and_a_unit() {
        for (ns, text) in [
            (0, "0ns"),
            (999_499, "999us"),
            (999_500, "1.00ms"),
            (999_499_999, "999ms"),
            (999_500_000, "1.00s"),
            (999, "999ns"),
            (1_250, "1.25us"),
            (12_500, "12.5us"),
            (64_000_000, "64.0ms"),
            (3_100_000_000, "3.10s"),
        ] {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn ticks_become_nanos_at_the_calibrated_rate() {
        let rate = Hertz(2_596_120_000.0);
        assert_eq!(TicksDelta(2_596_120_000).to_nanos(rate), Nanos::SECOND);
        assert_eq!(Nanos::SECOND.to_ticks(rate), TicksDelta(2_596_120_000));
    }
}
