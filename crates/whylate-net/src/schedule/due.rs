//! The intended instants themselves, and their place on the counter's line.

use std::sync::Arc;

use whylate_model::{Hertz, Nanos, Ticks};
use whylate_stats::rng::Rng;

use super::{Arrivals, MOST_PARTS, Plan};

/// A distance in picoseconds: 213 days fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Picos(pub u64);

/// One intended request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Since the schedule's beginning.
    pub after: Picos,
    /// Which part of the pattern it is, from 0: the step of a sweep, the place in a group.
    pub part: u8,
}

/// Yields the intended instants of a [`Plan`], in their order: without end, but for a closed loop,
/// which has none but its beginning.
#[derive(Debug, Clone)]
pub struct Schedule {
    pattern: Pattern,
    /// Requests yielded.
    yielded: u64,
}

#[derive(Debug, Clone)]
enum Pattern {
    /// Groups of `count`, `apart_ps` between neighbours.
    Groups {
        count: u32,
        apart_ps: u64,
        group: Period,
    },
    Poisson {
        rng: Rng,
        mean_ps: f64,
        now_ps: f64,
        whole_ps: u64,
    },
    Sweep {
        gaps: Vec<Picos>,
        each: u32,
        now: Picos,
    },
    Capture {
        instants: Arc<[Picos]>,
        /// From its first instant to the first of its repetition.
        cycle: Picos,
    },
    /// The beginning, and nothing after it.
    Begin,
}

/// A period in attoseconds: over 10^12 periods its rounding adds up to less than a microsecond.
#[derive(Debug, Clone, Copy)]
struct Period {
    attos: u128,
}

impl Period {
    fn of_rate(per_second: f64) -> Self {
        Self { attos: (1e18 / per_second).round() as u128 }
    }

    fn times(self, count: u64) -> u64 {
        u64::try_from(self.attos * u128::from(count) / 1_000_000).unwrap_or(u64::MAX)
    }
}

/// Distance number `step` of a sweep: in equal ratios from the first to the last.
pub(super) fn sweep_gap(from: Nanos, to: Nanos, steps: u32, step: u32) -> Picos {
    let whole = f64::from(steps.max(2) - 1);
    let ratio = (to.0 as f64 / from.0 as f64).powf(f64::from(step) / whole);
    Picos((from.0 as f64 * 1e3 * ratio).round() as u64)
}

/// From a capture's first packet to that of its repetition: its length, and its mean distance after the
/// last packet.
pub(super) fn capture_cycle(instants: &[Picos]) -> Picos {
    let (last, gaps) = (instants.last().map_or(0, |last| last.0), instants.len().saturating_sub(1));
    Picos(last.saturating_add(last / (gaps as u64).max(1)))
}

impl Schedule {
    pub(super) fn new(plan: &Plan) -> Self {
        let pattern = match &plan.arrivals {
            Arrivals::Poisson => Pattern::Poisson {
                rng: Rng::new(plan.seed),
                mean_ps: 1e12 / plan.per_second,
                now_ps: 0.0,
                whole_ps: 0,
            },
            Arrivals::Sweep { from, to, steps, each } => {
                let gaps = (0..*steps).map(|step| sweep_gap(*from, *to, *steps, step)).collect();
                Pattern::Sweep { gaps, each: *each, now: Picos(0) }
            }
            Arrivals::Capture { instants } => {
                let (instants, cycle) = (Arc::clone(instants), capture_cycle(instants));
                Pattern::Capture { instants, cycle }
            }
            Arrivals::Closed => Pattern::Begin,
            grouped => {
                let (count, apart) = grouped.group();
                let group = Period::of_rate(plan.per_second / f64::from(count));
                Pattern::Groups { count, apart_ps: apart.0 * 1_000, group }
            }
        };
        Self { pattern, yielded: 0 }
    }
}

impl Pattern {
    /// Requests whose numbers are so far apart are of one part, where each follows from its number alone.
    fn stride(&self) -> Option<u64> {
        match self {
            Self::Groups { count, .. } => Some(u64::from(*count)),
            Self::Capture { .. } => Some(1),
            Self::Poisson { .. } | Self::Sweep { .. } | Self::Begin => None,
        }
    }

    /// The request of this number, where it follows from its number alone.
    #[inline]
    fn numbered(&self, number: u64) -> Option<Due> {
        match self {
            Self::Groups { count, apart_ps, group } => {
                let place = number % u64::from(*count);
                let begin = group.times(number / u64::from(*count));
                let after = Picos(begin.saturating_add(place * *apart_ps));
                Some(Due { after, part: place.min(u64::from(MOST_PARTS) - 1) as u8 })
            }
            Self::Capture { instants, cycle } => {
                let count = instants.len() as u64;
                let (round, place) = (number.checked_div(count)?, number.checked_rem(count)?);
                let after = instants.get(place as usize)?.0;
                let after = Picos(cycle.0.saturating_mul(round).saturating_add(after));
                Some(Due { after, part: 0 })
            }
            Self::Begin => Some(Due { after: Picos(0), part: 0 }),
            Self::Poisson { .. } | Self::Sweep { .. } => None,
        }
    }
}

impl Iterator for Schedule {
    type Item = Due;

    #[inline]
    fn next(&mut self) -> Option<Due> {
        let number = self.yielded;
        self.yielded += 1;
        Some(match &mut self.pattern {
            Pattern::Poisson { rng, mean_ps, now_ps, whole_ps } => {
                let due = Due { after: Picos(*whole_ps + *now_ps as u64), part: 0 };
                *now_ps += rng.exponential(*mean_ps);
                // The fraction stays; what is summed up must not eat its digits.
                let whole = now_ps.floor();
                *whole_ps += whole as u64;
                *now_ps -= whole;
                due
            }
            Pattern::Sweep { gaps, each, now } => {
                let step = (number / u64::from(*each)) as usize % gaps.len();
                // The gap lies before the request whose part it is.
                now.0 += gaps[step].0;
                Due { after: *now, part: step as u8 }
            }
            of_numbers => of_numbers.numbered(number)?,
        })
    }
}

/// The next of these numbers in steps of `stride`, as long as something holds that once it does not will not
/// again: how many there are. Looked for in leaps, so that a thousand million take some sixty looks.
fn leap(from: u64, stride: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let at = |steps: u64| holds(from.saturating_add(stride.saturating_mul(steps)));
    let mut beyond = 1;
    while beyond < 1 << 62 && at(beyond - 1) {
        beyond *= 2;
    }
    let (mut holding, mut beyond) = (beyond / 2, beyond);
    // The first `holding` do, and of the first `beyond` the last one does not.
    while beyond - holding > 1 {
        let middle = holding + (beyond - holding) / 2;
        if at(middle - 1) {
            holding = middle;
        } else {
            beyond = middle;
        }
    }
    holding
}

/// Neighbours of one part that are alike: the first, the last, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Alike {
    pub(crate) first: Due,
    pub(crate) last: Due,
    pub(crate) count: u64,
}

/// Gathers requests into runs of one part and one `kind`.
pub(crate) fn gather<K: PartialEq>(
    requests: impl Iterator<Item = Due>,
    kind: impl Fn(Due) -> K,
    mut told: impl FnMut(Alike),
) {
    let mut open: Option<(K, Alike)> = None;
    for due in requests {
        let its = kind(due);
        match &mut open {
            Some((kind, run)) if *kind == its && run.first.part == due.part => {
                run.last = due;
                run.count += 1;
            }
            _ => {
                let run = Alike { first: due, last: due, count: 1 };
                if let Some((_, over)) = open.replace((its, run)) {
                    told(over);
                }
            }
        }
    }
    if let Some((_, over)) = open {
        told(over);
    }
}

impl Schedule {
    /// The same from the request of this number on, where each follows from its number alone.
    pub(crate) fn beginning_at(mut self, number: u64) -> Option<Self> {
        self.pattern.stride()?;
        self.yielded = number;
        Some(self)
    }

    /// As [`gather`], of all that is due before `end`, without a look at each: `kind` changes as time goes
    /// on and never back. Of what does not follow from its number there is nothing to tell.
    pub(crate) fn leap_over<K: PartialEq>(
        &self,
        end: Picos,
        kind: impl Fn(Due) -> K,
        mut told: impl FnMut(Alike),
    ) {
        let stride = self.pattern.stride().unwrap_or(0);
        let numbered = |number| self.pattern.numbered(number).filter(|due| due.after < end);
        for place in self.yielded..self.yielded.saturating_add(stride) {
            let mut number = place;
            while let Some(first) = numbered(number) {
                let of = kind(first);
                let alike = |due: Due| kind(due) == of;
                let count = leap(number, stride, |number| numbered(number).is_some_and(alike));
                let last = numbered(number + (count - 1) * stride).unwrap_or(first);
                told(Alike { first, last, count });
                number += count * stride;
            }
        }
    }
}

/// Places a schedule's instants on the counter's line, without a division.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    begin: Ticks,
    /// Ticks per picosecond, as a fraction of 2^64.
    ticks_per_ps: u128,
}

impl Pace {
    /// The schedule begins at `begin`, on a counter of this frequency.
    #[must_use]
    pub fn new(begin: Ticks, rate: Hertz) -> Self {
        let ticks_per_ps = (rate.0 / 1e12 * 2f64.powi(64)).round() as u128;
        Self { begin, ticks_per_ps }
    }

    /// Where an instant lies.
    #[must_use]
    #[inline]
    pub fn ticks(&self, after: Picos) -> Ticks {
        let ticks = (u128::from(after.0) * self.ticks_per_ps) >> 64;
        Ticks(self.begin.0.saturating_add(ticks as u64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::PlanError;

    fn plan(text: &str, per_second: f64) -> Plan {
        Plan { arrivals: text.parse().unwrap(), per_second, seed: 7 }
    }

    fn first(text: &str, per_second: f64, count: usize) -> Vec<u64> {
        plan(text, per_second).begin().take(count).map(|due| due.after.0 / 1_000).collect()
    }

    #[test]
    fn patterns_lie_where_their_names_say() {
        assert_eq!(first("constant", 1e5, 4), [0, 10_000, 20_000, 30_000]);
        assert_eq!(first("burst(3)", 3e3, 5), [0, 0, 0, 1_000_000, 1_000_000]);
        assert_eq!(first("pair(10us)", 2e3, 4), [0, 10_000, 1_000_000, 1_010_000]);
        assert_eq!(first("train(3,5us)", 3e4, 4), [0, 5_000, 10_000, 100_000]);
        assert_eq!(
            first("sweep(1us,4us,3,2)", 1.0, 7),
            [1_000, 2_000, 4_000, 6_000, 10_000, 14_000, 15_000]
        );
        let parts: Vec<u8> =
            plan("train(3,5us)", 3e4).begin().take(4).map(|due| due.part).collect();
        assert_eq!(parts, [0, 1, 2, 0]);
    }

    #[test]
    fn a_third_of_a_rate_does_not_drift_over_a_thousand_million_requests() {
        let Pattern::Groups { group, .. } = plan("constant", 3e6).begin().pattern else { panic!() };
        let billion = 1_000_000_000;
        let off_ps = group.times(billion).abs_diff(billion * 1_000_000 / 3);
        assert!(off_ps < 1_000, "{off_ps} ps");
    }

    #[test]
    fn poisson_has_the_mean_and_the_spread_of_its_rate_and_repeats_with_its_seed() {
        let at: Vec<u64> =
            plan("poisson", 1e6).begin().take(200_001).map(|due| due.after.0).collect();
        let gaps: Vec<f64> = at.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e6).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
        // Five standard errors of 200 000 gaps.
        assert!((mean - 1.0).abs() < 5.0 / n.sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 5.0 * (8.0 / n).sqrt(), "{variance}");
        let again: Vec<u64> =
            plan("poisson", 1e6).begin().take(10).map(|due| due.after.0).collect();
        assert_eq!(again, at[..10]);
        let other = Plan { seed: 8, ..plan("poisson", 1e6) };
        assert_ne!(other.begin().nth(5), plan("poisson", 1e6).begin().nth(5));
    }

    #[test]
    fn a_capture_is_replayed_and_again_from_its_first_packet_a_mean_distance_after_its_last() {
        let of = |instants: &[u64]| {
            let instants = instants.iter().copied().map(Picos).collect();
            Plan { arrivals: Arrivals::Capture { instants }, per_second: 0.0, seed: 0 }
        };
        let plan = of(&[0, 7, 7, 90]);
        let at: Vec<u64> = plan.begin().take(9).map(|due| due.after.0).collect();
        assert_eq!(at, [0, 7, 7, 90, 120, 127, 127, 210, 240]);
        assert!(plan.check().is_ok());
        assert!((plan.mean_rate() - 3e12 / 90.0).abs() < 1.0);
        for none in [&[][..], &[0], &[0, 0]] {
            assert!(matches!(of(none).check(), Err(PlanError::NoDistance)), "{none:?}");
        }
        assert_eq!(of(&[]).begin().next(), None);
    }

    #[test]
    fn what_is_left_of_a_schedule_is_gathered_as_if_each_request_was_looked_at() {
        let (end, step) = (Picos(40_000_000), 7_000_000);
        let kind = |due: Due| due.after.0 / step;
        for text in [
            "constant",
            "poisson",
            "burst(7)",
            "train(70,1ns)",
            "sweep(100ns,5us,4,3)",
            "pair(1us)",
        ] {
            let mut schedule = plan(text, 3e5).begin();
            for _ in 0..5 {
                schedule.next();
            }
            let mut each: Vec<(u8, u64, u64, u64)> = Vec::new();
            for due in schedule.clone().take_while(|due| due.after < end) {
                let (part, of) = (due.part, kind(due));
                match each.iter_mut().find(|run| (run.0, run.1) == (part, of)) {
                    Some(run) => run.3 += 1,
                    None => each.push((part, of, due.after.0, 1)),
                }
            }
            let mut gathered: Vec<(u8, u64, u64, u64)> = Vec::new();
            let into = |run: Alike| {
                let (part, of) = (run.first.part, kind(run.first));
                assert_eq!((run.last.part, kind(run.last)), (part, of), "{text}");
                match gathered.iter_mut().find(|run| (run.0, run.1) == (part, of)) {
                    Some(had) => had.3 += run.count,
                    None => gathered.push((part, of, run.first.after.0, run.count)),
                }
            };
            match schedule.clone().beginning_at(5) {
                Some(schedule) => schedule.leap_over(end, kind, into),
                None => gather(schedule.take_while(|due| due.after < end), kind, into),
            }
            each.sort_unstable();
            gathered.sort_unstable();
            assert_eq!(gathered, each, "{text}");
        }
    }

    #[test]
    fn a_thousand_million_requests_are_gathered_by_a_few_looks() {
        let looks = std::cell::Cell::new(0_u64);
        let mut count = 0;
        let kind = |due: Due| {
            looks.set(looks.get() + 1);
            due.after.0 / 1_000_000_000_000
        };
        // 10 s at 100 million a second.
        plan("constant", 1e8).begin().leap_over(Picos(10_000_000_000_000), kind, |run| {
            count += run.count;
        });
        assert_eq!(count, 1_000_000_000);
        assert!(looks.get() < 2_000, "{}", looks.get());
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        for (text, per_second, expected) in [
            ("constant", 0.0, "outside"),
            ("constant", f64::NAN, "outside"),
            ("poisson", 1e9, "outside"),
            ("train(8,5us)", 3e5, "a group of train(8,5.00us) lasts 35.0 us"),
            ("pair(1ms)", 2e3, "lasts 1000.0 us"),
        ] {
            let error = plan(text, per_second).check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(plan("burst(100)", 1e6).check().is_ok());
    }

    #[test]
    fn the_mean_rate_is_what_is_yielded() {
        for (text, per_second) in [
            ("constant", 7e4),
            ("burst(5)", 7e4),
            ("train(4,2us)", 7e4),
            ("sweep(1us,9us,5,10)", 1.0),
        ] {
            let plan = plan(text, per_second);
            let cycles = 100_000;
            let last = plan.begin().nth(cycles).unwrap().after.0;
            let yielded = cycles as f64 * 1e12 / last as f64;
            assert!((yielded / plan.mean_rate() - 1.0).abs() < 1e-3, "{text} {yielded}");
        }
    }

    proptest! {
        #[test]
        fn instants_never_go_back_and_their_ticks_neither(
            text in prop_oneof![
                Just("constant"), Just("poisson"), Just("burst(7)"), Just("pair(1us)"),
                Just("train(5,300ns)"), Just("sweep(100ns,5us,4,3)"),
            ],
            per_second in 1.0..1e5,
            hz in 1e6..5e9,
            begin in 0..1_u64 << 60,
        ) {
            let plan = plan(text, per_second);
            prop_assume!(plan.check().is_ok());
            let pace = Pace::new(Ticks(begin), Hertz(hz));
            let mut before = (Picos(0), Ticks(begin));
            for due in plan.begin().take(500) {
                let now = (due.after, pace.ticks(due.after));
                prop_assert!(now.0 >= before.0 && now.1 >= before.1);
                let exact = due.after.0 as f64 * hz / 1e12;
                prop_assert!(((now.1.0 - begin) as f64 - exact).abs() <= 1.0 + exact * 1e-12);
                before = now;
            }
        }
    }
}
