//! An axis of percentiles that gives each nine of the tail the same room.

use super::axis::{Axis, percentile_label};
use super::writer::Svg;

/// Percentiles along x: the median near the left end, the tail to the right.
pub(super) struct TailAxis {
    shares: Axis,
    ends: (f64, f64),
}

impl TailAxis {
    /// An axis from below the median to the last of these percentiles.
    pub(super) fn around(percents: impl Iterator<Item = f64>, ends: (f64, f64)) -> Self {
        let smallest = percents.map(share).fold(0.1, f64::min);
        Self { shares: Axis::log((smallest.max(1e-9), 1.0), (ends.1, ends.0)), ends }
    }

    /// The coordinate of a percentile.
    pub(super) fn at(&self, percent: f64) -> f64 {
        self.shares.at(share(percent))
    }

    /// Lines and names of percentiles between two heights.
    pub(super) fn draw(&self, svg: &mut Svg, (top, bottom): (f64, f64)) {
        let nines =
            self.shares.ticks(9).into_iter().map(|tick| (tick.at, percentile_label(tick.value)));
        let median = (self.at(50.0), "p50".to_owned());
        for (x, label) in nines.chain([median]).filter(|(_, label)| !label.is_empty()) {
            svg.line("grid", (x, top), (x, bottom));
            svg.words((x, bottom + 18.0), "tick mid", &label);
        }
        svg.line("axis", (self.ends.0, bottom), (self.ends.1, bottom));
        let middle = f64::midpoint(self.ends.0, self.ends.1);
        svg.words((middle, bottom + 38.0), "label mid", "percentile");
    }
}

/// What lies above a percentile, as a share; decimal digits stay decimal.
fn share(percent: f64) -> f64 {
    ((100.0 - percent) * 1e8).round() / 1e10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nine_takes_the_same_room_and_nothing_lies_outside() {
        let axis = TailAxis::around([50.0, 99.9999].into_iter(), (100.0, 700.0));
        let at = [90.0, 99.0, 99.9, 99.99, 99.999, 99.9999].map(|percent| axis.at(percent));
        assert!(at.windows(2).all(|pair| (pair[1] - pair[0] - 100.0).abs() < 1e-6), "{at:?}");
        assert!((at[5] - 700.0).abs() < 1e-6 && axis.at(50.0) > 100.0);
        for percent in [f64::NAN, -1.0, 100.0, 1e9] {
            assert!((100.0..=700.0).contains(&axis.at(percent)), "{percent}");
        }
    }
}
