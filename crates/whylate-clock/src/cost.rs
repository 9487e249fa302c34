//! What one read of a counter costs, and the smallest step it shows.

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

/// Blocks behind the resolution: few of them are hit by a change of CPU or an odd step.
const STEP_BLOCKS: usize = 301;

/// A counter that shows the same value twice in at least one of so many reads is slower than its
/// reads.
const STANDS_STILL: u32 = 100;

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

/// The smallest step of the counter, in ticks, and at least 1.
///
/// A counter that is slower than its reads is often seen to stand still, and its step is then the
/// smallest distance that is not 0. One that is faster shows its step as the largest number that
/// divides all distances, of which the median over blocks of reads is taken. This is not always
/// 1: a processor was seen whose counter moves by 26 every 10 ns, and by 1 for a second `rdtsc` in
/// the same 10 ns so that no two are equal.
pub fn resolution_ticks<C: Counter>(counter: &mut C) -> TicksDelta {
    let mut divisors = Vec::with_capacity(STEP_BLOCKS);
    let (mut still, mut smallest) = (0, u64::MAX);
    let mut previous = counter.read_ordered().0;
    for _ in 0..STEP_BLOCKS {
        let mut divisor = 0;
        for pause in 0..BLOCK {
            // Distances that were all alike would be taken for the step.
            for _ in 0..pause % 7 {
                hint::black_box(pause);
            }
            let now = counter.read_ordered().0;
            let step = now.since(previous).0;
            still += u32::from(now == previous);
            if step > 0 {
                smallest = smallest.min(step);
            }
            divisor = greatest_common_divisor(divisor, step);
            previous = now;
        }
        divisors.push(divisor);
    }
    divisors.sort_unstable();
    let slower_than_reads = still >= STEP_BLOCKS as u32 * BLOCK / STANDS_STILL;
    let step = if slower_than_reads { smallest } else { divisors[STEP_BLOCKS / 2] };
    TicksDelta(if step == u64::MAX { 1 } else { step.max(1) })
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

    #[test]
    fn resolution_of_a_fast_counter_is_the_common_divisor_of_its_steps() {
        let steps =
            |pattern: &[u64]| resolution_ticks(&mut MockCounter::new(RATE).with_period(pattern));
        assert_eq!(steps(&[36, 54, 72]), TicksDelta(18));
        assert_eq!(steps(&[25, 26]), TicksDelta(1));
    }

    #[test]
    fn resolution_of_a_slow_counter_is_the_step_it_shows() {
        let steps =
            |pattern: &[u64]| resolution_ticks(&mut MockCounter::new(RATE).with_period(pattern));
        assert_eq!(steps(&[0, 0, 40]), TicksDelta(40));
        assert_eq!(steps(&[0, 41, 0, 42]), TicksDelta(41), "a scaled counter steps unevenly");
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
