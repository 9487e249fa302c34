//! What one read of a counter costs, and the smallest step it shows.

use std::collections::BTreeMap;
use std::hint;

use whylate_model::{Nanos, TicksDelta};

use crate::kernel::RawClock;
use crate::{ClockError, Counter};

/// A read dearer than this leaves the machine: native ones cost 5 to 50 ns, trapped ones a
/// microsecond and more.
const TRAPPED_ABOVE: Nanos = Nanos(500);

/// Reads in a block. One delta says little: processors were seen to show 1, 25 and 26 ticks in
/// turn, and a counter slower than the processor shows 0 most of the time.
const BLOCK: u32 = 64;

/// Blocks behind a median.
const BLOCKS: usize = 1_001;

/// Blocks behind the check for trapping: few, because each read may cost microseconds.
const TRAP_BLOCKS: usize = 31;

/// Readings behind the resolution: thousands of distances, in a few milliseconds.
const STEP_READS: u32 = 20_000;

/// The pauses between them take up to so many turns, so that distances are of many lengths.
const LONGEST_PAUSE: u32 = 64;

/// What shows in fewer than this share of the distances is a change of CPU or an odd step.
const ODD: f64 = 0.01;

/// A clock steps by T when this share of its distances are multiples of T.
const MULTIPLES: f64 = 0.95;

/// They are multiples within so many ticks: two readings rounded to whole ticks, and one more for
/// processors that add a tick so that no two readings are equal.
const ROUNDING: f64 = 2.0;

/// A multiple of a step below this is hardly told from any other number.
const SHORTEST_STEP: u64 = 16;

/// Steps are made of the shortest distances; so many of them are tried.
const SHORTEST_TRIED: usize = 24;

/// What may be a step is held against so many distances first: where a read takes long, there are a
/// thousand of the one and ten thousand of the other.
const COMMONEST: usize = 128;

/// And is dropped where fewer than this share of these are its multiples.
const LIKELY: f64 = 0.8;

/// Cost of one plain read, in ticks, over blocks of reads back to back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadCost {
    /// The cheapest block.
    pub min_ticks: f64,
    /// The median block.
    pub median_ticks: f64,
}

/// Measures what one plain read costs.
pub fn read_cost<C: Counter>(counter: &mut C) -> ReadCost {
    let mut means: Vec<f64> = (0..BLOCKS)
        .map(|_| {
            let start = counter.read();
            let mut end = start;
            for _ in 0..BLOCK {
                end = counter.read();
            }
            end.since(start).0 as f64 / f64::from(BLOCK)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    ReadCost { min_ticks: means[0], median_ticks: means[BLOCKS / 2] }
}

/// The smallest step of the counter, in whole ticks, and at least 1.
///
/// Distances of ordered readings are held against multiples of a step, which need not be a whole
/// number of ticks: a processor was seen whose counter is one of 10 ns, times 24.45, and shows
/// distances of 24, 25, 49, 73, 74 and 98 ticks. Their common divisor is 1, and their step is 24.
/// On another it moves by 26 every 10 ns, and by 1 for a second reading in the same 10 ns.
///
/// Where the distances are multiples of nothing as large, the counter is as fine as its smallest
/// distance if it is slower than its reads, which is then 0 most of the time, and as fine as their
/// common divisor if it is faster.
pub fn resolution_ticks<C: Counter>(counter: &mut C) -> TicksDelta {
    let distances = Distances::of(counter);
    let step = distances.step().unwrap_or_else(|| distances.divisor());
    TicksDelta(step.max(1))
}

/// Distances of readings and how often each was seen, odd ones left out.
struct Distances {
    counts: BTreeMap<u64, u32>,
}

impl Distances {
    fn of<C: Counter>(counter: &mut C) -> Self {
        let mut counts = BTreeMap::new();
        let mut previous = counter.read_ordered().0;
        for turn in 0..STEP_READS {
            // Distances that were all alike would be taken for the step. The number is prime to
            // the longest pause, so that all pauses come, in no simple order.
            for pause in 0..turn.wrapping_mul(37) % LONGEST_PAUSE {
                hint::black_box(pause);
            }
            let now = counter.read_ordered().0;
            *counts.entry(now.since(previous).0).or_default() += 1;
            previous = now;
        }
        // Times that the thread was interrupted say nothing of the step, and weigh most in a fit.
        let odd = (f64::from(STEP_READS) * ODD) as u32;
        let mut longest = u64::MAX;
        let mut left = odd;
        for (distance, count) in counts.iter().rev() {
            if *count > left {
                break;
            }
            left -= count;
            longest = distance.saturating_sub(1);
        }
        counts.retain(|distance, _| *distance <= longest);
        Self { counts }
    }

    /// The largest step that the distances are multiples of.
    fn step(&self) -> Option<u64> {
        let shortest = || {
            let long_enough = self.counts.keys().filter(|distance| **distance >= SHORTEST_STEP);
            long_enough.take(SHORTEST_TRIED)
        };
        let mut candidates: Vec<f64> = shortest()
            .flat_map(|distance| {
                (1..=distance / SHORTEST_STEP).map(move |of| *distance as f64 / of as f64)
            })
            .collect();
        candidates.sort_by(|a, b| b.total_cmp(a));
        let commonest = self.commonest();
        let likely = |candidate: &f64| commonest.refined(*candidate, LIKELY).is_some();
        let refined = |candidate: f64| self.refined(candidate, MULTIPLES);
        let found = candidates.into_iter().filter(likely).find_map(refined)?;
        // As it shows, in whole ticks: the smallest distance of one step, or the step cut off.
        let one = self.counts.range((found - ROUNDING).ceil() as u64..=found as u64);
        let most = one.clone().map(|(_, count)| *count).max();
        let shown = one.filter(|(_, count)| Some(**count) == most).map(|(distance, _)| *distance);
        Some(shown.min().unwrap_or(found as u64))
    }

    /// Those that were seen most often, and of alike ones the shortest; all where there are few.
    fn commonest(&self) -> Self {
        let mut seen: Vec<(u64, u32)> = self.counts.iter().map(|(d, n)| (*d, *n)).collect();
        seen.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Self { counts: seen.into_iter().take(COMMONEST).collect() }
    }

    /// The step near `candidate` that fits best, if at least this share of the distances are its
    /// multiples.
    fn refined(&self, candidate: f64, share: f64) -> Option<f64> {
        let mut step = candidate;
        // A small error of the step is a large one of its multiples: the near ones first.
        for reach in [2.0, 8.0, 32.0, f64::INFINITY] {
            let (mut up, mut down) = (0.0, 0.0);
            for (distance, count) in &self.counts {
                let multiple = (*distance as f64 / step).round();
                if (1.0..=reach).contains(&multiple) && is_multiple(*distance, step) {
                    up += f64::from(*count) * multiple * *distance as f64;
                    down += f64::from(*count) * multiple * multiple;
                }
            }
            if down > 0.0 {
                step = up / down;
            }
        }
        let all: u32 = self.counts.values().sum();
        let fit = |distance: &u64| is_multiple(*distance, step);
        let fitting: u32 = self.counts.iter().filter(|(d, _)| fit(d)).map(|(_, n)| n).sum();
        let moves = self.counts.keys().any(|distance| *distance as f64 > ROUNDING);
        let fits = moves && f64::from(fitting) >= f64::from(all) * share;
        (fits && step >= SHORTEST_STEP as f64).then_some(step)
    }

    fn divisor(&self) -> u64 {
        let all: u32 = self.counts.values().sum();
        let common = |count: u32| f64::from(count) >= f64::from(all) * ODD;
        let mut moved =
            self.counts.iter().filter(|(distance, count)| **distance > 0 && common(**count));
        if self.counts.get(&0).is_some_and(|still| common(*still)) {
            return moved.next().map_or(1, |(smallest, _)| *smallest);
        }
        // Distances that spread over more ticks than there are readings for are of a fine counter.
        moved.map(|(distance, _)| *distance).reduce(greatest_common_divisor).unwrap_or(1)
    }
}

/// Refuses a counter whose reads are trapped.
pub(crate) fn refuse_trapped<C: Counter, R: RawClock>(
    counter: &mut C,
    raw: &mut R,
) -> Result<(), ClockError> {
    let mut costs: Vec<u64> = (0..TRAP_BLOCKS)
        .map(|_| {
            let start = raw.now_ns();
            for _ in 0..BLOCK {
                counter.read();
            }
            raw.now_ns().saturating_sub(start) / u64::from(BLOCK)
        })
        .collect();
    costs.sort_unstable();
    let median_ns = costs[TRAP_BLOCKS / 2];
    if median_ns > TRAPPED_ABOVE.0 { Err(ClockError::Trapped { median_ns }) } else { Ok(()) }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn is_multiple(distance: u64, step: f64) -> bool {
    let distance = distance as f64;
    (distance - (distance / step).round() * step).abs() <= ROUNDING
}

#[cfg(test)]
mod tests {
    use whylate_model::{Hertz, Ticks};

    use super::*;
    use crate::mock::{MockCounter, PlantedGap};

    const RATE: Hertz = Hertz(2_500_000_000.0);

    #[test]
    fn read_cost_is_the_mean_of_an_uneven_pattern_and_not_one_of_its_deltas() {
        let cost = read_cost(&mut MockCounter::new(RATE).with_period(&[1, 25, 26, 16]));
        assert!((cost.median_ticks - 17.0).abs() < 0.01, "{cost:?}");
        assert!(cost.min_ticks <= cost.median_ticks);
    }

    #[test]
    fn a_gap_does_not_move_the_median_read_cost() {
        let gap = PlantedGap { at: Ticks(1_000), length: TicksDelta(1 << 40), new_cpu: None };
        let cost = read_cost(&mut MockCounter::new(RATE).with_gaps(vec![gap]));
        assert_eq!(cost, ReadCost { min_ticks: 25.0, median_ticks: 25.0 });
    }

    fn resolution_of(pattern: &[u64]) -> TicksDelta {
        resolution_ticks(&mut MockCounter::new(RATE).with_period(pattern))
    }

    /// Distances of a counter that steps by `step` ticks, rounded to whole ones, when it is read
    /// every so many ticks.
    fn scaled(step: f64, reads: impl Iterator<Item = f64>) -> Vec<u64> {
        let (mut at, mut shown, mut distances) = (0.0, 0, Vec::new());
        for after in reads {
            at += after;
            let now = ((at / step).floor() * step).round() as u64;
            distances.push(now - shown);
            shown = now;
        }
        distances
    }

    #[test]
    fn resolution_of_a_ten_nanosecond_counter_in_finer_ticks_is_its_step() {
        assert_eq!(resolution_of(&[24, 25]), TicksDelta(24), "as plain reads show it");
        assert_eq!(resolution_of(&[24, 25, 49, 73, 74, 98]), TicksDelta(24));
        assert_eq!(
            resolution_of(&[49, 73, 74, 98, 122, 123, 147]),
            TicksDelta(24),
            "never one step"
        );
        assert_eq!(resolution_of(&[1, 25, 26, 1, 51]), TicksDelta(25), "one tick tells two apart");
        let mut dice = whylate_stats::rng::Rng::new(5);
        for step in [24.45, 26.0, 31.25, 100.0 / 3.0] {
            let reads = (0..5_000).map(|_| 30.0 + dice.unit() * 120.0);
            let found = resolution_of(&scaled(step, reads)).0;
            assert!(found == step as u64, "{step} ticks: found {found}");
        }
    }

    #[test]
    fn resolution_of_a_counter_finer_than_its_reads_is_a_tick_or_the_common_divisor() {
        assert_eq!(resolution_of(&[36, 54, 72]), TicksDelta(18));
        assert_eq!(resolution_of(&[25, 27, 30, 32, 35, 38, 41, 60, 66, 83]), TicksDelta(1));
        assert_eq!(resolution_of(&[24, 26, 30, 34, 44, 50, 62, 70]), TicksDelta(2));
        let mut dice = whylate_stats::rng::Rng::new(6);
        let reads: Vec<u64> = (0..5_000).map(|_| 30 + dice.below(120)).collect();
        assert_eq!(resolution_of(&reads), TicksDelta(1));
    }

    #[test]
    fn what_may_be_a_step_is_held_against_few_distances_first_and_none_that_is_one_is_dropped() {
        let mut dice = whylate_stats::rng::Rng::new(7);
        // Reads that take long: thousands of distances, nearly all of them different.
        let long = |dice: &mut whylate_stats::rng::Rng| 700.0 + dice.unit() * 12_000.0;
        let fine: Vec<u64> = (0..5_000).map(|_| long(&mut dice) as u64).collect();
        let distances = Distances::of(&mut MockCounter::new(RATE).with_period(&fine));
        assert!(distances.counts.len() > 20 * COMMONEST, "{}", distances.counts.len());
        assert_eq!(distances.commonest().counts.len(), COMMONEST);
        assert_eq!(distances.step(), None);
        for step in [40.0, 312.5] {
            let reads = (0..5_000).map(|_| long(&mut dice));
            let found = resolution_of(&scaled(step, reads)).0;
            assert!(found == step as u64, "{step} ticks: found {found}");
        }
        let few = Distances { counts: [(24, 9), (49, 2)].into() };
        assert_eq!(few.commonest().counts, few.counts);
    }

    #[test]
    fn resolution_of_a_slow_counter_is_the_step_it_shows() {
        assert_eq!(resolution_of(&[0, 0, 40]), TicksDelta(40));
        assert_eq!(resolution_of(&[0, 41, 0, 42]), TicksDelta(41), "a scaled counter is uneven");
        assert_eq!(resolution_of(&[0, 0, 1, 0, 1, 2]), TicksDelta(1));
    }

    #[test]
    fn an_odd_step_now_and_then_does_not_change_the_resolution() {
        let odd = |i: u64| PlantedGap {
            at: Ticks((i + 1) * 60_000),
            length: TicksDelta(12_345 + i),
            new_cpu: None,
        };
        let mut counter =
            MockCounter::new(RATE).with_period(&[26, 52]).with_gaps((0..10).map(odd).collect());
        assert_eq!(resolution_ticks(&mut counter), TicksDelta(26));
    }

    #[test]
    fn a_counter_that_never_moves_has_some_resolution() {
        let mut counter = MockCounter::new(RATE).with_period(&[0]);
        assert_eq!(resolution_ticks(&mut counter), TicksDelta(1));
    }

    #[test]
    fn a_counter_is_refused_when_half_of_its_reads_are_trapped_and_not_when_few_are() {
        let check = |counter: &mut MockCounter| {
            let mut raw = counter.raw_clock();
            refuse_trapped(counter, &mut raw)
        };
        // 4 000 ticks are 1 600 ns.
        let trapped = check(&mut MockCounter::new(RATE).with_period(&[4_000]));
        assert!(
            matches!(trapped, Err(ClockError::Trapped { median_ns: 1_590..=1_650 })),
            "{trapped:?}"
        );
        let held_up = (0..10)
            .map(|i| PlantedGap {
                at: Ticks(i * 2_000),
                length: TicksDelta(1 << 30),
                new_cpu: None,
            })
            .collect();
        assert!(check(&mut MockCounter::new(RATE).with_gaps(held_up)).is_ok());
        assert!(check(&mut MockCounter::new(RATE)).is_ok());
    }
}
