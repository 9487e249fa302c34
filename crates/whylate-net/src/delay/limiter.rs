//! A rate that is not exceeded: a way out that each frame occupies for as long as it takes at that rate.

use whylate_model::{Hertz, Ticks, TicksDelta};

use super::capacity::CHECK;
use super::law::Limit;
use crate::conversation::Scale;
use crate::schedule::{Layer, Rate};

/// Fractions of a tick are kept, so that the rate is right over any number of frames.
const FRACTION: u32 = 20;
const ONE: f64 = (1_u64 << FRACTION) as f64;
/// The shortest frame on a link, with check sequence, and what is around each frame on the wire.
const SHORTEST: u32 = 64;
const WIRE: u32 = 20;

/// The way out of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limiter {
    /// Fractions of ticks for each frame, and for each byte of it.
    for_frame: u64,
    for_byte: u64,
    /// Bytes around each frame that count.
    around: u32,
    backlog: TicksDelta,
    limits: bool,
    /// When it is free again, and the fraction on top.
    free: Ticks,
    fraction: u64,
}

/// What a frame has to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passage {
    /// When it has passed.
    pub(super) passed: Ticks,
    fraction: u64,
}

impl Limiter {
    /// For a limit, or none.
    pub(super) fn new(limit: Option<Limit>, rate: Hertz) -> Self {
        let Some(Limit { rate: of, backlog }) = limit else { return Self::default() };
        let fractions = |seconds: f64| (seconds * rate.0 * ONE).round() as u64;
        let (for_frame, for_byte, around) = match of {
            Rate::Packets(_) | Rate::Every(_) => (fractions(1.0 / of.per_second(SHORTEST)), 0, 0),
            Rate::Bits(bits, Layer::L1) => (0, fractions(8.0 / bits), WIRE),
            Rate::Bits(bits, Layer::L2) => (0, fractions(8.0 / bits), 0),
        };
        let backlog = Scale::new(rate).ticks(backlog);
        Self { for_frame, for_byte, around, backlog, limits: true, ..Self::default() }
    }

    /// When a frame of so many bytes that came at `arrival` has passed; none where too many wait before
    /// it. It occupies nothing until it is [taken](Self::take).
    #[inline]
    pub(super) fn passage(&self, arrival: Ticks, length: u32) -> Option<Passage> {
        if !self.limits {
            return Some(Passage { passed: arrival, fraction: 0 });
        }
        let (begin, fraction) =
            if self.free > arrival { (self.free, self.fraction) } else { (arrival, 0) };
        if begin.since(arrival) > self.backlog {
            return None;
        }
        let bytes = u64::from((length + CHECK).max(SHORTEST) + self.around);
        let takes = self.for_frame.saturating_add(self.for_byte.saturating_mul(bytes));
        let fractions = takes.saturating_add(fraction);
        let passed = begin + TicksDelta(fractions >> FRACTION);
        Some(Passage { passed, fraction: fractions & ((1 << FRACTION) - 1) })
    }

    /// Lets a frame pass.
    #[inline]
    pub(super) fn take(&mut self, of: Passage) {
        (self.free, self.fraction) = (of.passed, of.fraction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Hertz = Hertz(2.6e9);

    fn limiter(text: &str) -> Limiter {
        let rate: Rate = text.parse().unwrap();
        Limiter::new(Some(Limit::from(rate)), RATE)
    }

    /// Ticks that so many frames take that come together, one behind the other.
    fn ticks(limiter: &mut Limiter, length: u32, count: u64) -> u64 {
        limiter.backlog = TicksDelta(u64::MAX);
        for _ in 0..count {
            let passage = limiter.passage(Ticks(1_000), length).unwrap();
            limiter.take(passage);
        }
        limiter.free.0 - 1_000
    }

    #[test]
    fn a_rate_is_kept_to_a_tick_over_a_million_frames_at_either_layer() {
        for (text, length, seconds) in [
            ("1Mpps", 60, 1.0),
            ("1Mpps", 1_514, 1.0),
            ("10Gbit/s", 60, 84.0 * 8.0 * 1e6 / 1e10),
            ("10Gbit/s@L2", 60, 64.0 * 8.0 * 1e6 / 1e10),
            ("10Gbit/s@L2", 20, 64.0 * 8.0 * 1e6 / 1e10),
            ("1Gbit/s", 1_514, 1_538.0 * 8.0 * 1e6 / 1e9),
        ] {
            let took = ticks(&mut limiter(text), length, 1_000_000) as f64;
            let expected = seconds * RATE.0;
            // A fraction is 1 in 10^6 of a tick, rounded once for each byte.
            assert!((took / expected - 1.0).abs() < 1e-6, "{text} {length}: {took} {expected}");
        }
    }

    #[test]
    fn beyond_its_backlog_nothing_passes_and_an_idle_way_is_free_at_once() {
        let mut limiter = limiter("1kpps");
        let second = RATE.0 as u64;
        let mut passed = 0;
        for _ in 0..1_000 {
            if let Some(passage) = limiter.passage(Ticks(second), 60) {
                limiter.take(passage);
                passed += 1;
            }
        }
        // The way is free after 11 of them, 11 ms hence: the last one found 10 ms.
        assert_eq!(passed, 11);
        let idle = limiter.passage(Ticks(10 * second), 60).unwrap();
        assert_eq!(idle.passed, Ticks(10 * second + second / 1_000));
        let none = Limiter::new(None, RATE).passage(Ticks(7), 1_514).unwrap();
        assert_eq!(none.passed, Ticks(7));
    }
}
