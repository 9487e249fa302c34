//! What tracing itself costs: lost share with and without, interleaved.
//!
//! A short measurement of its own before the main one, in which the private trace is switched on
//! and off in turn, the one first and the other first by turns. Neighbouring slices share the
//! host's state, so the mean of their differences is the trace's; whether it is more than what
//! neighbouring slices differ by anyway, its interval says.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::Counter;
use whylate_gap::{Session, State};
use whylate_model::gap::Gap;
use whylate_model::run::PairedDifference;
use whylate_model::{Nanos, Ticks};
use whylate_stats::student::Spread;

use crate::RecordError;
use crate::gaps::Request;
use crate::kernel_trace::KernelTrace;
use crate::progress::{Progress, Step};
use crate::workbench::Workbench;

/// One slice: long enough for 10 ticks of a 100 Hz kernel.
const SLICE: Nanos = Nanos(100_000_000);
/// Pairs of slices at most: 4 seconds.
const MOST_PAIRS: u64 = 20;
/// Pairs of slices at least: fewer cannot tell a cost from what slices differ by anyway.
const FEWEST_PAIRS: u64 = 3;
/// The comparison takes at most this part of the measurement it stands before.
const SHARE_OF_DURATION: u64 = 5;

/// Lost share of all measured CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// With the trace recording.
    pub with: f64,
    /// With it switched off.
    pub without: f64,
    /// The difference; none from a single pair.
    pub difference: Option<PairedDifference>,
}

/// Compares; none when the measurement is too short to be worth it, or ended by `stop`.
///
/// # Errors
/// The threads that measure could not be prepared, or failed.
pub fn compare(
    request: &Request,
    workbench: &Workbench,
    trace: &mut KernelTrace,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Option<Compared>, RecordError> {
    let pairs = (request.duration.0 / SHARE_OF_DURATION / (2 * SLICE.0)).min(MOST_PAIRS);
    if pairs < FEWEST_PAIRS {
        return Ok(None);
    }
    let slices = Nanos(SLICE.0 * 2 * pairs);
    progress.step(&Step::of("cost of tracing", Nanos(request.plan.warmup.0 + slices.0)));
    let (mut counter, rate) = (workbench.counter, workbench.rate);
    let mut plan = request.plan.clone();
    plan.stop_at = None;
    plan.counting = false;
    let mut session = Session::prepare_unless(&plan, &counter, rate, stop)?;
    let period = session.threads().map(|facts| facts.warmup_period).fold(0.0, f64::max);
    let mut tally = Tally::new(session.threads().count(), period);
    session.start(&mut counter, rate, Nanos(slices.0 + 2 * SLICE.0));
    for slice in 0..2 * pairs {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let on = is_on(slice);
        trace.switch(on);
        tally.begin(counter.read(), on);
        std::thread::sleep(std::time::Duration::from_nanos(SLICE.0));
    }
    tally.end = counter.read();
    session.stop();
    while session.drain(|_, gaps| tally.take(gaps)) == State::Running {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    session.finish()?;
    session.drain(|_, gaps| tally.take(gaps));
    trace.switch(true);
    trace.discard();
    let stopped = stop.load(Ordering::Relaxed);
    Ok((!stopped).then(|| tally.compared()))
}

/// On, off, off, on: what changes steadily then adds to both alike.
fn is_on(slice: u64) -> bool {
    matches!(slice % 4, 0 | 3)
}

/// Lost time by slice.
struct Tally {
    threads: usize,
    period: f64,
    slices: Vec<Slice>,
    end: Ticks,
}

struct Slice {
    from: Ticks,
    on: bool,
    lost_ticks: f64,
}

impl Tally {
    fn new(threads: usize, period: f64) -> Self {
        Self { threads, period, slices: Vec::new(), end: Ticks(u64::MAX) }
    }

    fn begin(&mut self, from: Ticks, on: bool) {
        self.slices.push(Slice { from, on, lost_ticks: 0.0 });
    }

    /// Adds what was lost in each gap to the slices that it lies in, to each as much as lies there.
    fn take(&mut self, gaps: &[Gap]) {
        for gap in gaps {
            let length = gap.length().0 as f64;
            let lost_of_each_tick = (length - self.period).max(0.0) / length.max(1.0);
            let first = self.slices.partition_point(|slice| slice.from <= gap.start);
            // What lies before the first switch belongs to none.
            for at in first.saturating_sub(1)..self.slices.len() {
                let next = self.slices.get(at + 1).map_or(self.end, |slice| slice.from);
                let slice = &mut self.slices[at];
                let (from, to) = (slice.from.max(gap.start), next.min(gap.end));
                if from >= gap.end {
                    break;
                }
                if from < to {
                    slice.lost_ticks += to.since(from).0 as f64 * lost_of_each_tick;
                }
            }
        }
    }

    fn compared(&self) -> Compared {
        let ends = self.slices.iter().skip(1).map(|slice| slice.from).chain([self.end]);
        let times =
            self.slices.iter().zip(ends).map(|(slice, end)| {
                (end.since(slice.from).0 as f64 * self.threads as f64).max(1.0)
            });
        let slices: Vec<(&Slice, f64)> = self.slices.iter().zip(times).collect();
        let share = |on: bool| {
            let of = slices.iter().filter(|(slice, _)| slice.on == on);
            let (lost, time) = of.fold((0.0, 0.0), |(lost, all), (slice, time)| {
                (lost + slice.lost_ticks, all + time)
            });
            lost / f64::max(time, 1.0)
        };
        let differences: Vec<f64> = slices
            .chunks_exact(2)
            .map(|pair| {
                let [first, second] = [0, 1].map(|at| pair[at].0.lost_ticks / pair[at].1);
                if pair[0].0.on { first - second } else { second - first }
            })
            .collect();
        let difference = Spread::of_mean(&differences).map(|spread| {
            let mean = differences.iter().sum::<f64>() / differences.len() as f64;
            let interval = spread.around(mean);
            PairedDifference {
                pairs: differences.len() as u64,
                mean,
                interval: (interval.low, interval.high),
            }
        });
        Compared { with: share(true), without: share(false), difference }
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::gap::{Evidence, GapKind};
    use whylate_stats::rng::Rng;

    use super::*;

    const SLICE_TICKS: u64 = 1_000_000;
    const PERIOD: f64 = 25.0;

    fn gap(start: u64, length: u64) -> Gap {
        let [start, end] = [start, start + length].map(Ticks);
        let (cpu_before, cpu_after) = (CpuId(1), CpuId(1));
        Gap {
            start,
            end,
            resumed: end,
            cpu_before,
            cpu_after,
            kind: GapKind::Interruption,
            evidence: Evidence::default(),
        }
    }

    /// Slices with gaps of about `noise` ticks each, and of `cost` ticks more while the trace is on.
    fn compared(pairs: u64, noise: u64, cost: u64, seed: u64) -> Compared {
        let mut dice = Rng::new(seed);
        let mut tally = Tally::new(1, PERIOD);
        let mut gaps = vec![gap(5, 90)];
        for slice in 0..2 * pairs {
            tally.begin(Ticks((slice + 1) * SLICE_TICKS), is_on(slice));
            for place in 0..10 {
                let start = (slice + 1) * SLICE_TICKS + place * 50_000;
                let extra = if is_on(slice) { cost } else { 0 };
                gaps.push(gap(start, PERIOD as u64 + dice.below(2 * noise) + extra));
            }
        }
        tally.end = Ticks((2 * pairs + 1) * SLICE_TICKS);
        gaps.push(gap(tally.end.0 + 7, 5_000));
        tally.take(&gaps);
        tally.compared()
    }

    #[test]
    fn a_planted_cost_of_tracing_lies_in_its_interval() {
        let covered = (0..200).filter(|seed| {
            let difference = compared(20, 2_000, 500, *seed).difference.expect("20 pairs");
            assert_eq!(difference.pairs, 20);
            // 10 gaps a slice.
            let planted = 10.0 * 500.0 / SLICE_TICKS as f64;
            difference.interval.0 <= planted && planted <= difference.interval.1
        });
        assert!(covered.count() >= 180, "of 200 at 95 %");
        let large = compared(20, 100, 5_000, 3);
        assert!(large.difference.is_some_and(|difference| difference.is_shown()), "{large:?}");
        assert!((large.with - large.without - 0.05).abs() < 0.002, "{large:?}");
    }

    #[test]
    fn a_gap_over_several_slices_counts_in_each_as_far_as_it_lies_there() {
        let mut tally = Tally::new(1, 0.0);
        for slice in 0..4 {
            tally.begin(Ticks((slice + 1) * 1_000), is_on(slice));
        }
        tally.end = Ticks(5_000);
        // From before the first slice into it; from the middle of the second beyond the end.
        tally.take(&[gap(900, 300), gap(2_500, 4_000)]);
        let lost: Vec<f64> = tally.slices.iter().map(|slice| slice.lost_ticks).collect();
        assert_eq!(lost, [200.0, 500.0, 1_000.0, 1_000.0]);
        let Compared { with, without, .. } = tally.compared();
        assert_eq!((with, without), (0.6, 0.75));
    }

    #[test]
    fn no_difference_is_shown_where_there_is_none() {
        let shown = (0..200).filter(|seed| {
            let found = compared(20, 2_000, 0, *seed);
            found.difference.is_some_and(|difference| difference.is_shown())
        });
        assert!(shown.count() <= 20, "of 200 at 5 %");
    }

    #[test]
    fn one_pair_tells_no_interval_and_both_shares() {
        let single = compared(1, 2_000, 0, 1);
        assert!(single.difference.is_none() && single.with > 0.0 && single.without > 0.0);
    }
}
