//! Which breaks of the runners count, and whose they are.
//!
//! Pure: breaks and counts in, a length and a name out. Trials over working sets have no trace, so
//! nothing says of a single break what it was. What is known: what a tick takes here, and how much of
//! the CPU the kernel counts as stolen by its host.

use whylate_cause::rules::r9_period;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

/// No break below this counts: 4 KiB from the slowest memory take less.
const LEAST: Nanos = Nanos(25_000);
/// A break counts from this many ticks on: a tick's own length varies.
const TICKS: u64 = 2;
/// A break is a tick's where another lies a period away, to this share of the period.
const TOLERANCE: f64 = 0.02;

/// From which length on a break counts, by what a tick takes.
pub(super) fn longest(tick: Option<Nanos>) -> Nanos {
    tick.map_or(LEAST, |tick| LEAST.max(Nanos(tick.0.saturating_mul(TICKS))))
}

/// What a tick takes, by the breaks of a busy thread: the median of those that recur at the period of
/// a kernel's tick (rule R9). None where none is found.
pub(super) fn tick(breaks: &[(Ticks, TicksDelta)], rate: Hertz) -> Option<Nanos> {
    let starts: Vec<Ticks> = breaks.iter().map(|(at, _)| *at).collect();
    let found = r9_period(&starts, rate)?;
    let period = 1e9 / f64::from(found.tick_hz()?);
    let slack = Nanos((period * TOLERANCE) as u64).to_ticks(rate);
    let period = Nanos(period as u64).to_ticks(rate);
    // Starts are in order: is there one around this instant?
    let is_near = |at: Ticks| {
        let (low, high) = (Ticks(at.0.saturating_sub(slack.0)), at + slack);
        let next = starts.partition_point(|start| *start < low);
        starts.get(next).is_some_and(|start| *start <= high)
    };
    let recurs = |at: Ticks| is_near(at + period) || is_near(Ticks(at.0.saturating_sub(period.0)));
    let mut lengths: Vec<TicksDelta> =
        breaks.iter().filter(|(at, _)| recurs(*at)).map(|(_, length)| *length).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).map(|length| length.to_nanos(rate))
}

/// Does the kernel's count of stolen time bear out that the host took what one trial had less of?
///
/// `apart_ns` is what the trials' breaks differ by, `stolen_ns` what was counted in the trial with more
/// of them and in the other, each to one unit of that count up or down.
pub(super) fn is_the_hosts(
    apart_ns: f64,
    stolen_ns: (Option<f64>, Option<f64>),
    unit_ns: f64,
) -> bool {
    let (Some(more), Some(less)) = stolen_ns else { return false };
    let at_least = (more - unit_ns) - (less + unit_ns);
    at_least > 0.0 && at_least >= apart_ns / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_stats::rng::Rng;

    #[test]
    fn a_break_counts_from_twice_a_tick_on_and_never_below_what_memory_takes() {
        assert_eq!(longest(None), LEAST);
        assert_eq!(longest(Some(Nanos(4_000))), LEAST);
        assert_eq!(longest(Some(Nanos(37_100))), Nanos(74_200));
    }

    #[test]
    fn the_cost_of_planted_ticks_is_found_among_other_breaks() {
        let (rate, mut rng) = (Hertz(1e9), Rng::new(5));
        // 250 ticks of 37 us, and as many breaks of 3 us anywhere.
        let mut breaks: Vec<(Ticks, TicksDelta)> = (0..250)
            .map(|n| (Ticks(1_000_000 + n * 4_000_000), TicksDelta(36_900 + rng.below(200))))
            .collect();
        breaks.extend((0..250).map(|_| (Ticks(rng.below(1_000_000_000)), TicksDelta(3_000))));
        breaks.sort_unstable();
        let found = tick(&breaks, rate).unwrap();
        assert!(found.0.abs_diff(37_000) < 300, "{found}");
        let other: Vec<_> = breaks.into_iter().filter(|(_, length)| length.0 == 3_000).collect();
        assert_eq!(tick(&other, rate), None, "no order in them");
        assert_eq!(tick(&[], rate), None);
    }

    #[test]
    fn only_what_the_kernel_counts_as_stolen_is_the_hosts() {
        const UNIT: f64 = 1e7;
        let of = |apart: f64, more, less| is_the_hosts(apart, (more, less), UNIT);
        // 40 ms apart, 60 ms stolen of one: at least 40 of them.
        assert!(of(4e7, Some(6e7), Some(0.0)));
        assert!(of(4e7, Some(4e7), Some(0.0)), "at least 20 ms, half of it");
        assert!(!of(4e7, Some(3e7), Some(0.0)), "10 ms for certain");
        // A count of two units may be of an instant at each edge.
        assert!(!of(1e6, Some(2e7), Some(0.0)));
        assert!(!of(4e7, Some(6e7), Some(6e7)), "of both the same");
        assert!(!of(4e7, None, Some(0.0)) && !of(4e7, Some(6e7), None), "not counted");
    }
}
