//! Looking again and again: how long a spinning wait has gone on.

use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

/// The end of a wait that looks again and again.
#[derive(Debug)]
pub struct Patience {
    length: TicksDelta,
    end: Option<Ticks>,
}

impl Patience {
    /// A wait for `limit`, by a counter of this frequency.
    #[must_use]
    pub fn new(limit: Nanos, rate: Hertz) -> Self {
        Self { length: TicksDelta((limit.0 as f64 * rate.0 / 1e9) as u64), end: None }
    }

    /// Is it over at `at`? The limit counts from the first look that found nothing.
    #[inline]
    pub fn is_over(&mut self, at: Ticks) -> bool {
        let length = self.length;
        at >= *self.end.get_or_insert_with(|| at + length)
    }

    /// What is left of it at `at`.
    #[must_use]
    pub fn left(&self, at: Ticks, rate: Hertz) -> Nanos {
        let ticks = self.end.map_or(self.length, |end| end.since(at));
        Nanos((ticks.0 as f64 * 1e9 / rate.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_lasts_the_limit_from_the_first_look_and_none_is_over_at_once() {
        let mut patience = Patience::new(Nanos(1_000), Hertz(2e9));
        assert!(!patience.is_over(Ticks(500)));
        assert!(!patience.is_over(Ticks(2_499)));
        assert_eq!(patience.left(Ticks(1_500), Hertz(2e9)), Nanos(500));
        assert!(patience.is_over(Ticks(2_500)));
        assert!(Patience::new(Nanos(0), Hertz(2e9)).is_over(Ticks(9)));
    }
}
