//! Axes: from values to coordinates, and ticks that a person would have chosen.

use std::ops::RangeInclusive;

use super::writer::Svg;
use crate::numbers;

/// Most decades of a logarithmic axis: a double cannot tell more apart, a reader neither.
const MOST_DECADES: i32 = 24;
/// Where one may end: all its decades are powers of ten that a double has.
const ENDS: RangeInclusive<i32> = f64::MIN_10_EXP + MOST_DECADES..=f64::MAX_10_EXP;

/// One axis: values `low..=high` on coordinates `from..=to` (which may run downwards).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Log,
    Linear,
}

/// A tick: its coordinate and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) value: f64,
}

impl Axis {
    /// A logarithmic axis of whole decades around `low..=high`, at least one.
    ///
    /// Values that are not positive have no place on it and lie at its beginning.
    pub(super) fn log((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        let high = if usable(high) { high } else { 1.0 };
        let low = if usable(low) { low.min(high) } else { high };
        let last = exponent(high, f64::ceil).clamp(*ENDS.start(), *ENDS.end());
        let first = exponent(low, f64::floor).clamp(last - MOST_DECADES, last);
        let first = if first == last { first - 1 } else { first };
        Self { kind: Kind::Log, low: decade(first), high: decade(last), from, to }
    }

    /// A linear axis over exactly `low..=high`.
    pub(super) fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let high = if high.is_finite() && high > low { high } else { low + 1.0 };
        Self { kind: Kind::Linear, low, high, from, to }
    }

    /// The coordinate of a value, which is kept on the axis.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.kind {
            Kind::Log if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Kind::Log => 0.0,
            Kind::Linear => (value - self.low) / (self.high - self.low),
        };
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// At most about `most` ticks with labels: decades, or steps of 1, 2 or 5.
    pub(super) fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(2);
        let values: Vec<f64> = match self.kind {
            Kind::Log => {
                let (first, last) =
                    (exponent(self.low, f64::round), exponent(self.high, f64::round));
                let decades = (last - first) as usize + 1;
                // Every decade, every second, every third: those that count from 1.
                let step = decades.div_ceil(most).max(1) as i32;
                (first..=last).filter(|e| e.rem_euclid(step) == 0).map(decade).collect()
            }
            Kind::Linear => {
                let step = step_of((self.high - self.low) / most as f64);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step * (1.0 + 1e-12)).floor() as i64;
                (first..=last.min(first.saturating_add(4 * most as i64)))
                    .map(|n| n as f64 * step)
                    .collect()
            }
        };
        values.into_iter().map(|value| Tick { at: self.at(value), value }).collect()
    }
}

/// Ticks below a picture with their labels at this height, every second of which is left out where there is no
/// room; each has a line where these lie between a top and a bottom.
pub(super) fn below(
    svg: &mut Svg,
    ticks: &[Tick],
    lines: Option<(f64, f64)>,
    labels: f64,
    label: impl Fn(f64) -> String,
) {
    for (index, tick) in ticks.iter().enumerate() {
        if let Some((top, bottom)) = lines {
            svg.line("grid", (tick.at, top), (tick.at, bottom));
        }
        let class = if index % 2 == 1 { "tick mid minor" } else { "tick mid" };
        svg.words((tick.at, labels), class, &label(tick.value));
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `step`.
fn step_of(step: f64) -> f64 {
    let step = if step.is_finite() && step > 0.0 { step } else { 1.0 };
    let power = decade(exponent(step, f64::floor));
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= step * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

/// The exponent of a power of ten beside `value`; one that is all but exact is exact.
fn exponent(value: f64, round: fn(f64) -> f64) -> i32 {
    let exponent = value.log10();
    let whole = exponent.round();
    if (exponent - whole).abs() < 1e-9 { whole as i32 } else { round(exponent) as i32 }
}

fn decade(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// A time as a label of a tick: `10 ns`, `1 µs`, `2.5 ms`.
pub(super) fn time_label(ns: f64) -> String {
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        1e3..1e6 => (ns / 1e3, "µs"),
        1e6..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let rounded = (value * 1e3).round() / 1e3;
    if ns == 0.0 { "0".to_owned() } else { format!("{rounded} {unit}") }
}

/// A share as a label of a tick: `100%`, `0.1%`, `1e-5%`.
pub(super) fn share_label(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 0.000_099 || percent == 0.0 {
        format!("{}%", (percent * 1e6).round() / 1e6)
    } else {
        format!("1e{}%", exponent(percent, f64::round))
    }
}

/// The percentile that a share of samples above stands for: `p99.9`.
pub(super) fn percentile_label(share: f64) -> String {
    let nines = (-exponent(share, f64::round)).max(0) as usize;
    match nines {
        0 => String::new(),
        1 => "p90".to_owned(),
        2 => "p99".to_owned(),
        more => format!("p99.{}", "9".repeat(more - 2)),
    }
}

/// The smallest step of a clock: `9.8 ns`, `40 ns`.
pub(crate) fn resolution_label(ns: f64) -> String {
    numbers::time(ns)
}

/// A time with three digits, for words.
pub(super) fn time(ns: f64) -> String {
    numbers::time(if ns.is_finite() { ns.max(0.0) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, most: usize, label: fn(f64) -> String) -> Vec<String> {
        axis.ticks(most).iter().map(|tick| label(tick.value)).collect()
    }

    #[test]
    fn log_ticks_are_decades_and_thin_out_when_there_are_many() {
        let axis = Axis::log((170.0, 12_059_829.0), (0.0, 600.0));
        let wanted = ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"];
        assert_eq!(labels(&axis, 9, time_label), wanted);
        assert_eq!(labels(&axis, 4, time_label), ["100 ns", "10 µs", "1 ms", "100 ms"]);
        let shares = Axis::log((1e-6, 1.0), (300.0, 0.0));
        assert_eq!(
            labels(&shares, 9, share_label),
            ["0.0001%", "0.001%", "0.01%", "0.1%", "1%", "10%", "100%"]
        );
        assert_eq!(labels(&shares, 9, percentile_label)[2..4], ["p99.99", "p99.9"]);
    }

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::linear((0.0, 1.6e10), (0.0, 600.0));
        assert_eq!(labels(&axis, 5, time_label), ["0", "5 s", "10 s", "15 s"]);
        let axis = Axis::linear((0.0, 0.13), (0.0, 100.0));
        assert_eq!(labels(&axis, 3, share_label), ["0%", "5%", "10%"]);
    }

    #[test]
    fn an_axis_up_to_the_largest_double_and_one_of_the_smallest_have_decades_that_are_numbers() {
        for ends in [(1.0, f64::MAX), (f64::MAX, f64::MAX), (5e-324, 5e-324), (5e-324, f64::MAX)] {
            let axis = Axis::log(ends, (0.0, 10.0));
            assert!(axis.low > 0.0 && axis.high.is_finite() && axis.low < axis.high, "{axis:?}");
            let ticks = axis.ticks(30);
            assert!((2..=30).contains(&ticks.len()), "{ends:?}");
            assert!(
                ticks.iter().all(|tick| tick.value.is_finite() && tick.value > 0.0),
                "{ends:?}"
            );
            assert!(Axis::linear(ends, (0.0, 10.0)).ticks(30).len() <= 121, "{ends:?}");
        }
    }

    #[test]
    fn ends_of_an_axis_lie_at_its_ends_and_nothing_lies_outside() {
        let axis = Axis::log((10.0, 10.0), (100.0, 0.0));
        assert!((axis.at(1.0) - 100.0).abs() < 1e-9 && axis.at(10.0).abs() < 1e-9);
        for value in [f64::NAN, -1.0, 0.0, f64::INFINITY, 1e300] {
            assert!((0.0..=100.0).contains(&axis.at(value)), "{value}");
        }
        for nonsense in [(f64::NAN, f64::NAN), (0.0, 0.0), (1e-300, 1e300), (5.0, 1.0)] {
            let axis = Axis::log(nonsense, (0.0, 10.0));
            assert!((2..=30).contains(&axis.ticks(30).len()), "{nonsense:?}");
            let axis = Axis::linear(nonsense, (0.0, 10.0));
            assert!(axis.ticks(30).len() <= 121, "{nonsense:?}");
        }
    }
}
