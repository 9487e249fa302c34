//! What tracing itself costs: lost share with and without, interleaved.
//!
//! A short measurement of its own before the main one, in which the private trace is switched off
//! and on in turn. Adjacent slices share the host's state, so their difference is the trace's.

use whylate_clock::Counter;
use whylate_gap::{Session, State};
use whylate_model::{Nanos, Ticks};

use crate::RecordError;
use crate::gaps::Request;
use crate::kernel_trace::KernelTrace;
use crate::workbench::Workbench;

/// One slice: long enough for 25 ticks of a 100 Hz kernel.
const SLICE: Nanos = Nanos(250_000_000);
/// Pairs of slices at most.
const MOST_PAIRS: u64 = 8;
/// The comparison takes at most this part of the measurement it stands before.
const SHARE_OF_DURATION: u64 = 5;

/// Lost share of all measured CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// With the trace recording.
    pub with: f64,
    /// With it switched off.
    pub without: f64,
}

/// Compares; none when the measurement is too short to be worth it.
pub fn compare(
    request: &Request,
    workbench: &Workbench,
    trace: &mut KernelTrace,
) -> Result<Option<Compared>, RecordError> {
    let pairs = (request.duration.0 / SHARE_OF_DURATION / (2 * SLICE.0)).min(MOST_PAIRS);
    if pairs == 0 {
        return Ok(None);
    }
    let (mut counter, rate) = (workbench.counter, workbench.rate);
    let mut plan = request.plan.clone();
    plan.stop_at = None;
    plan.counting = false;
    let mut session = Session::prepare(&plan, &counter, rate)?;
    let mut tally = Tally { edges: Vec::new(), lost: [0.0; 2], period: 0.0 };
    tally.period = session.threads().map(|facts| facts.warmup_period).fold(0.0, f64::max);
    let start = session.start(&mut counter, rate, Nanos(SLICE.0 * 2 * (pairs + 1)));
    tally.edges.push((start, true));
    for slice in 0..2 * pairs {
        let on = slice % 2 == 0;
        trace.switch(on);
        tally.edges.push((counter.read(), on));
        std::thread::sleep(std::time::Duration::from_nanos(SLICE.0));
    }
    let end = counter.read();
    session.stop();
    while session.drain(|_, gaps| tally.take(gaps, end)) == State::Running {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    session.finish()?;
    session.drain(|_, gaps| tally.take(gaps, end));
    trace.switch(true);
    trace.discard();
    let threads = session.threads().count() as f64;
    let [without, with] = [false, true].map(|on| tally.lost_share(on, end, threads));
    Ok(Some(Compared { with, without }))
}

struct Tally {
    /// When the trace was switched, and to what.
    edges: Vec<(Ticks, bool)>,
    /// Lost ticks without and with.
    lost: [f64; 2],
    period: f64,
}

impl Tally {
    fn take(&mut self, gaps: &[whylate_model::gap::Gap], end: Ticks) {
        for gap in gaps.iter().filter(|gap| gap.start < end) {
            let after = self.edges.partition_point(|(edge, _)| *edge <= gap.start);
            // What began before the first switch belongs to neither.
            if let Some((_, on)) = self.edges[1..].get(after.wrapping_sub(2)) {
                self.lost[usize::from(*on)] += (gap.length().0 as f64 - self.period).max(0.0);
            }
        }
    }

    fn lost_share(&self, on: bool, end: Ticks, threads: f64) -> f64 {
        let slices = &self.edges[1..];
        let ends = slices.iter().skip(1).map(|(edge, _)| *edge).chain([end]);
        let elapsed: u64 = slices
            .iter()
            .zip(ends)
            .filter(|((_, is_on), _)| *is_on == on)
            .map(|((from, _), to)| to.since(*from).0)
            .sum();
        self.lost[usize::from(on)] / (elapsed as f64 * threads).max(1.0)
    }
}
