//! Which delta is a gap.

use whylate_model::{Hertz, Nanos, TicksDelta};

use crate::table::{Direct, LogLinear};

/// The automatic threshold is never below this.
pub const FLOOR: Nanos = Nanos(100);
/// The automatic threshold is this many times the p99.9 of the warm-up's deltas.
pub const FACTOR: u64 = 8;

/// How the threshold is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// `max(100 ns, 8 x p99.9 of the warm-up)`.
    Automatic,
    /// Twice the median of the warm-up, as Hourglass did.
    TwiceMedian,
    /// As the user says.
    Fixed(Nanos),
}

impl Threshold {
    /// The threshold in ticks, given every delta of the warm-up.
    #[must_use]
    pub fn ticks(self, small: &Direct, large: &LogLinear, rate: Hertz) -> TicksDelta {
        match self {
            Self::Automatic => {
                let eight = quantile(small, large, 0.999).0.saturating_mul(FACTOR);
                FLOOR.to_ticks(rate).max(TicksDelta(eight))
            }
            Self::TwiceMedian => TicksDelta(quantile(small, large, 0.5).0.saturating_mul(2)),
            Self::Fixed(threshold) => threshold.to_ticks(rate),
        }
    }

    /// The rule in words, for the record.
    #[must_use]
    pub fn rule(self) -> String {
        match self {
            Self::Automatic => format!("max({FLOOR}, {FACTOR} x p99.9 of the warm-up)"),
            Self::TwiceMedian => "2 x median of the warm-up".to_owned(),
            Self::Fixed(threshold) => format!("given as {threshold}"),
        }
    }
}

/// The order statistic of rank `ceil(share * n)` over both tables; zero when nothing was counted.
#[must_use]
pub fn quantile(small: &Direct, large: &LogLinear, share: f64) -> TicksDelta {
    let n: u64 = small.bins().chain(large.bins()).map(|(_, count)| count).sum();
    let rank = ((n as f64 * share).ceil() as u64).max(1);
    let mut below = 0;
    small
        .bins()
        .chain(large.bins())
        .find(|(_, count)| {
            below += count;
            below >= rank
        })
        .map_or(TicksDelta(0), |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Hertz = Hertz(2.5e9);

    fn counted(values: &[(u64, u64)]) -> (Direct, LogLinear) {
        let (small, large) = (Direct::default(), LogLinear::default());
        for (value, times) in values {
            for _ in 0..*times {
                if !small.count(*value) {
                    large.count(TicksDelta(*value));
                }
            }
        }
        (small, large)
    }

    #[test]
    fn a_fast_loop_gets_the_floor() {
        let (small, large) = counted(&[(25, 10_000)]);
        assert_eq!(Threshold::Automatic.ticks(&small, &large, RATE), TicksDelta(250));
    }

    #[test]
    fn a_slow_loop_gets_eight_times_its_tail() {
        let (small, large) = counted(&[(5_000, 9_995), (100_000, 5)]);
        let threshold = Threshold::Automatic.ticks(&small, &large, RATE).0 as f64;
        assert!((threshold / 40_000.0 - 1.0).abs() < 0.001, "{threshold}");
    }

    #[test]
    fn the_papers_rule_is_twice_the_loop() {
        let (small, large) = counted(&[(225, 1_000)]);
        assert_eq!(Threshold::TwiceMedian.ticks(&small, &large, RATE), TicksDelta(450));
    }
}
