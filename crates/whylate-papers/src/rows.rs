//! Figures with their intervals, as a paper's rows have them.

use whylate_model::Nanos;
use whylate_model::execution::Block;
use whylate_model::load::LoadFacts;
use whylate_model::paper::{Here, Row, Unit};
use whylate_model::threads::ThreadSummary;
use whylate_stats::bootstrap;
use whylate_stats::outcomes::Outcomes;

/// Parts of a stretch of time that a share is taken of one by one.
const PARTS: usize = 40;

/// A row without a figure of the paper or of this host yet.
pub(crate) fn row(what: impl Into<String>, why: impl Into<String>) -> Row {
    Row { what: what.into(), paper: None, here: None, why: why.into() }
}

/// What a row can be given.
pub(crate) trait Filled {
    /// The paper's figure.
    fn paper(self, figure: impl Into<String>) -> Self;
    /// This host's.
    fn here(self, here: impl Into<Option<Here>>) -> Self;
}

impl Filled for Row {
    fn paper(mut self, figure: impl Into<String>) -> Self {
        self.paper = Some(figure.into());
        self
    }

    fn here(mut self, here: impl Into<Option<Here>>) -> Self {
        self.here = here.into();
        self
    }
}

/// A time that is computed, not measured.
pub(crate) fn time(time: Nanos) -> Here {
    Here { value: time.0 as f64, unit: Unit::Nanoseconds, interval: None, n: None }
}

/// A share that was measured as such.
fn of_time(part: Nanos, whole: Nanos) -> Option<Here> {
    (whole.0 > 0).then(|| Here {
        value: part.0 as f64 / whole.0 as f64,
        unit: Unit::Share,
        interval: None,
        n: None,
    })
}

/// So many things in a time. Without an interval: they come in bursts and in step with ticks.
pub(crate) fn per_second(count: u64, over: Nanos) -> Option<Here> {
    let seconds = over.0 as f64 / 1e9;
    (seconds > 0.0).then(|| Here {
        value: count as f64 / seconds,
        unit: Unit::PerSecond,
        interval: None,
        n: Some(count),
    })
}

/// The share of missed deadlines of a thread. Misses come in bursts and in step with beats: the
/// interval is that of the run, for as many independent jobs as the judged ones are worth.
pub(crate) fn misses(thread: &ThreadSummary) -> Option<Here> {
    let of = thread.deadlines.as_ref()?;
    let judged = of.hits + of.misses;
    (judged > 0).then(|| Here {
        value: of.misses as f64 / judged as f64,
        unit: Unit::Share,
        interval: of.miss_share_interval,
        n: Some(judged),
    })
}

/// What a thread's misses are named after; that there was none, too, is said.
pub(crate) fn missed_for(thread: &ThreadSummary, most: usize) -> String {
    let causes = thread.deadlines.iter().flat_map(|of| &of.causes);
    let causes: Vec<String> =
        causes.take(most).map(|of| format!("{} ({})", of.cause, of.misses)).collect();
    match causes.as_slice() {
        [] => "no deadline was missed".to_owned(),
        causes => format!("missed for {}", causes.join(", ")),
    }
}

/// How many of some latencies, in the order of time, were later than a length. The interval is that
/// of the share, for as many independent ones as they are worth, times their number.
pub(crate) fn later(latencies: &[Nanos], than: Nanos, counted: u64, of: u64) -> Here {
    let mut outcomes = Outcomes::default();
    for latency in latencies {
        outcomes.add(*latency > than);
    }
    let (low, high) = outcomes.interval();
    let times = |share: f64| share * of as f64;
    let interval = (!latencies.is_empty()).then_some((times(low), times(high)));
    Here { value: counted as f64, unit: Unit::Count, interval, n: Some(of) }
}

/// The share of a stretch of time that a thread had, with an interval over equal parts of it.
pub(crate) fn share_of_time(
    blocks: &[Block],
    thread: u16,
    (received, elapsed): (Nanos, Nanos),
    seed: u64,
) -> Option<Here> {
    let here = of_time(received, elapsed)?;
    let first = blocks.first()?.start.0;
    let last = blocks.iter().map(|block| block.end.0).max()?;
    let width = (last.saturating_sub(first) / PARTS as u64).max(1);
    let mut parts = vec![0.0; PARTS];
    for block in blocks.iter().filter(|block| block.thread == thread) {
        let (mut from, end) = (block.start.0 - first, block.end.0.saturating_sub(first));
        while from < end {
            let part = (from / width).min(PARTS as u64 - 1);
            let until = if part == PARTS as u64 - 1 { end } else { end.min((part + 1) * width) };
            parts[part as usize] += (until - from) as f64 / width as f64;
            from = until;
        }
    }
    let interval = bootstrap::of_mean(&parts, seed);
    Some(Here { interval: Some((interval.low, interval.high)), n: Some(PARTS as u64), ..here })
}

/// What a network load brought through.
pub(crate) fn throughput(loads: &[LoadFacts]) -> Option<Here> {
    let net = loads.iter().find(|load| load.unit == "bytes")?;
    Some(Here {
        value: net.per_second()? * 8.0,
        unit: Unit::BitsPerSecond,
        interval: None,
        n: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_time_that_it_was_counted_in() {
        let here = per_second(20, Nanos(2 * Nanos::SECOND.0)).unwrap();
        assert!((here.value - 10.0).abs() < 1e-9 && here.interval.is_none());
        assert!(per_second(20, Nanos(0)).is_none());
    }

    #[test]
    fn bursts_of_late_wake_ups_are_few_witnesses() {
        let late = |at: usize| Nanos(if at % 400 < 40 { 9_000 } else { 10 });
        let together: Vec<Nanos> = (0..4_000).map(late).collect();
        let apart: Vec<Nanos> =
            (0..4_000).map(|at| Nanos(if at % 10 == 0 { 9_000 } else { 10 })).collect();
        let width = |of: &[Nanos]| {
            let here = later(of, Nanos(1_000), 400, 4_000);
            let (low, high) = here.interval.unwrap();
            assert!(low < 400.0 && 400.0 < high, "{here:?}");
            high - low
        };
        assert!(width(&together) > 2.5 * width(&apart));
    }

    #[test]
    fn the_interval_of_a_share_is_over_parts_of_the_time() {
        let block = |thread, start, end| Block {
            thread,
            cpu: whylate_model::CpuId(0),
            start: whylate_model::Ticks(start),
            end: whylate_model::Ticks(end),
        };
        // A quarter of each millisecond; and all of one half.
        let even: Vec<Block> = (0..40_u64)
            .flat_map(|i| {
                [block(0, i * 1_000, i * 1_000 + 250), block(1, i * 1_000 + 250, i * 1_000 + 1_000)]
            })
            .collect();
        let half = [block(0, 0, 20_000), block(1, 20_000, 40_000)];
        let of = |blocks: &[Block], part| {
            let here = share_of_time(blocks, 0, (Nanos(part), Nanos(40_000)), 1).unwrap();
            here.interval.unwrap()
        };
        let (low, high) = of(&even, 10_000);
        assert!((low - 0.25).abs() < 0.01 && (high - 0.25).abs() < 0.01, "{low} .. {high}");
        let (low, high) = of(&half, 20_000);
        assert!(low < 0.35 && high > 0.65, "{low} .. {high}");
    }

    #[test]
    fn throughput_is_in_bits() {
        let net = LoadFacts {
            load: "net".to_owned(),
            what: "TCP bulk".to_owned(),
            amount: 1_000,
            unit: "bytes".to_owned(),
            time: Nanos::SECOND,
            offered: None,
            lost: None,
            ended_early: false,
            notes: Vec::new(),
        };
        assert!((throughput(&[net]).unwrap().value - 8_000.0).abs() < 1e-9);
        assert!(throughput(&[]).is_none());
    }
}
