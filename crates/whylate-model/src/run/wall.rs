//! Whether the wall clock was set while something was measured.

use super::{Anchor, ClockFacts};
use crate::warning::Warning;

/// A clock that is disciplined runs faster or slower than the raw one by less than this: the kernel's
/// own limit for that is half of it, and the other half is for the oscillator.
const SLEWED: f64 = 1e-3;
/// What is less is nobody's concern.
const LEAST_NS: f64 = 1e6;

impl ClockFacts {
    /// The wall clock was set between two of the anchors: by how much. Nothing that is measured reads
    /// that clock; only the times of day of the run's files follow it.
    #[must_use]
    pub fn wall_clock_stepped(&self) -> Option<Warning> {
        let stepped = self.anchors.windows(2).filter_map(|pair| {
            let [before, after] = pair else { return None };
            // Of two large numbers: as floats they would have lost their last digits.
            let passed = |of: fn(&Anchor) -> u64| of(after).wrapping_sub(of(before)).cast_signed();
            let raw = passed(|of| of.raw_ns) as f64;
            let by = passed(|of| of.realtime_ns) as f64 - raw;
            let bound = SLEWED * raw.abs() + before.bound_ns + after.bound_ns + LEAST_NS;
            (by.abs() > bound).then_some(by)
        });
        let by_ns = stepped.reduce(|sum, by| sum + by)? as i64;
        Some(Warning::WallClockStepped { by_ns })
    }
}

#[cfg(test)]
mod tests {
    use crate::run::{Anchor, ClockFacts};
    use crate::units::{Hertz, Ticks};
    use crate::warning::Warning;

    /// A clock of 1 GHz whose wall time is this much ahead of the raw one, second by second.
    fn clock(ahead_ns: &[i64]) -> ClockFacts {
        let anchor = |(second, ahead): (u64, &i64)| Anchor {
            ticks: Ticks(second * 1_000_000_000),
            realtime_ns: (1_000_000_000_000 + second * 1_000_000_000).wrapping_add_signed(*ahead),
            raw_ns: second * 1_000_000_000,
            bound_ns: 50.0,
        };
        ClockFacts {
            counter: "mock".to_owned(),
            hz: Hertz(1e9),
            hz_bound_ppm: 1.0,
            sources: Vec::new(),
            drift: None,
            jitter_ns: None,
            epoch: Ticks(0),
            anchors: (0..).zip(ahead_ns).map(anchor).collect(),
            read_cost_min_ns: 10.0,
            read_cost_median_ns: 10.0,
            resolution_ns: 1.0,
            cross_cpu: Vec::new(),
            gap_recording_ns: None,
            sample_recording_ns: None,
        }
    }

    #[test]
    fn a_wall_clock_that_was_set_is_told_with_its_step_and_one_that_is_disciplined_is_not() {
        let step = |ahead: &[i64]| clock(ahead).wall_clock_stepped();
        // 500 ppm, as fast as the kernel slews.
        assert_eq!(step(&[0, 500_000, 1_000_000]), None);
        assert_eq!((step(&[0]), step(&[])), (None, None));
        for by_ns in [-3_600_000_000_000, -5_000_000, 5_000_000, 86_400_000_000_000] {
            assert_eq!(step(&[7, 7 + by_ns]), Some(Warning::WallClockStepped { by_ns }));
            assert_eq!(step(&[0, 0, by_ns]), Some(Warning::WallClockStepped { by_ns }));
        }
    }
}
