//! Figures with their intervals, as a paper's rows have them.

use whylate_model::execution::Block;
use whylate_model::load::{LoadFacts, LoadPoint};
use whylate_model::paper::{Agreement, Brief, Here, Row, Unit};
use whylate_model::threads::ThreadSummary;
use whylate_model::{Nanos, Ticks};
use whylate_stats::outcomes::Outcomes;
use whylate_stats::{bootstrap, rate};

/// Parts of a stretch of time that a share is taken of one by one.
pub(crate) const PARTS: usize = 40;
/// Of fewer parts an interval would be too narrow.
const FEWEST: usize = 10;

/// A row without a figure of the paper or of this host yet.
pub(crate) fn row(what: impl Into<String>, why: impl Into<String>) -> Row {
    Row {
        what: what.into(),
        paper: None,
        here: None,
        without_host: None,
        why: why.into(),
        agreement: None,
        brief: None,
    }
}

/// What a row can be given.
pub(crate) trait Filled {
    /// The paper's figure.
    fn paper(self, figure: impl Into<String>) -> Self;
    /// This host's.
    fn here(self, here: impl Into<Option<Here>>) -> Self;

    /// How the one stands to the other, where that is shown.
    fn agrees(self, agreement: impl Into<Option<Agreement>>) -> Self;

    /// The row and the paper's figure in few words.
    fn brief(self, what: impl Into<String>, paper: impl Into<String>) -> Self;
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

    fn agrees(mut self, agreement: impl Into<Option<Agreement>>) -> Self {
        self.agreement = agreement.into();
        self
    }

    fn brief(mut self, what: impl Into<String>, paper: impl Into<String>) -> Self {
        self.brief = Some(Brief { what: what.into(), paper: paper.into() });
        self
    }
}

/// A time that is computed, not measured.
pub(crate) fn time(time: Nanos) -> Here {
    Here { value: time.0 as f64, unit: Unit::Nanoseconds, interval: None, n: None }
}

/// So many gaps of some threads in a time. They come in bursts and in step with ticks: the interval is
/// that of a rate over equal parts of the time. A block ends where a gap begins.
pub(crate) fn gaps_per_second(
    blocks: &[Block],
    threads: std::ops::Range<u16>,
    (gaps, elapsed): (u64, Nanos),
    seed: u64,
) -> Option<Here> {
    let seconds = elapsed.0 as f64 / 1e9;
    if seconds <= 0.0 {
        return None;
    }
    let mut in_parts = [0_u64; PARTS];
    if let Some(parts) = Parts::of(blocks) {
        for block in blocks.iter().filter(|block| threads.contains(&block.thread)) {
            in_parts[parts.at(block.end)] += 1;
        }
    }
    Some(Here {
        value: gaps as f64 / seconds,
        unit: Unit::PerSecond,
        interval: Some(rate::clustered_interval(gaps, seconds, &in_parts, seed)),
        n: Some(gaps),
    })
}

/// The time of some blocks in equal parts.
struct Parts {
    first: u64,
    width: u64,
}

impl Parts {
    fn of(blocks: &[Block]) -> Option<Self> {
        let first = blocks.iter().map(|block| block.start.0).min()?;
        let last = blocks.iter().map(|block| block.end.0).max()?;
        Some(Self { first, width: (last.saturating_sub(first) / PARTS as u64).max(1) })
    }

    fn at(&self, instant: Ticks) -> usize {
        (instant.0.saturating_sub(self.first) / self.width).min(PARTS as u64 - 1) as usize
    }
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

/// The share of a stretch of time that a thread had, with an interval over equal parts of it. Both are
/// of the same stretch: one in which all threads ran, as the last of them finds its end late.
pub(crate) fn share_of_time(
    blocks: &[Block],
    thread: u16,
    (start, end): (Ticks, Ticks),
    seed: u64,
) -> Option<Here> {
    let width = end.0.checked_sub(start.0)? as f64 / PARTS as f64;
    if width < 1.0 {
        return None;
    }
    let mut parts = vec![0.0; PARTS];
    for block in blocks.iter().filter(|block| block.thread == thread) {
        let within = |at: Ticks| at.clamp(start, end).since(start).0 as f64 / width;
        let (mut from, to) = (within(block.start), within(block.end));
        while from < to {
            let part = (from as usize).min(PARTS - 1);
            let until = if part == PARTS - 1 { to } else { to.min((part + 1) as f64) };
            parts[part] += until - from;
            from = until;
        }
    }
    let interval = bootstrap::of_mean(&parts, seed);
    // Equal parts of the time are no sample: there is no n.
    Some(Here {
        value: parts.iter().sum::<f64>() / PARTS as f64,
        unit: Unit::Share,
        interval: Some((interval.low, interval.high)),
        n: None,
    })
}

/// What a network load brought through, with an interval over equal parts of the time.
pub(crate) fn throughput(loads: &[LoadFacts], seed: u64) -> Option<Here> {
    let net = loads.iter().find(|load| load.unit == "bytes")?;
    let parts = even(&net.course, PARTS);
    let interval = (parts.len() >= FEWEST).then(|| bootstrap::of_mean(&parts, seed));
    let interval = interval.filter(bootstrap::Interval::is_bounded);
    let bits = |bytes_per_second: f64| bytes_per_second * 8.0;
    Some(Here {
        value: bits(net.per_second()?),
        unit: Unit::BitsPerSecond,
        interval: interval.map(|of| (bits(of.low).max(0.0), bits(of.high))),
        n: None,
    })
}

/// Amounts per second in equal parts of a course: at most `most` of them, and no more than it has
/// points.
fn even(course: &[LoadPoint], most: usize) -> Vec<f64> {
    let (count, Some(last)) = (course.len().min(most), course.last()) else { return Vec::new() };
    let mut points = std::iter::once(LoadPoint::default()).chain(course.iter().copied()).peekable();
    let mut before = LoadPoint::default();
    // What was done by an instant, between the points beside it.
    let mut done = |at: f64| {
        while let Some(next) = points.peek().copied() {
            if next.time.0 as f64 >= at {
                let (from, over) = (before.time.0 as f64, (next.time.0 - before.time.0) as f64);
                let part = if over > 0.0 { (at - from) / over } else { 1.0 };
                return before.amount as f64 + part * (next.amount as f64 - before.amount as f64);
            }
            before = next;
            points.next();
        }
        before.amount as f64
    };
    let width = last.time.0 as f64 / count as f64;
    let mut earlier = 0.0;
    (1..=count)
        .map(|part| {
            let by_now = done(width * part as f64);
            let more = by_now - std::mem::replace(&mut earlier, by_now);
            more * 1e9 / width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_gaps_is_over_its_time_and_bursts_widen_its_interval() {
        let block = |thread, end| Block {
            thread,
            cpu: whylate_model::CpuId(0),
            start: Ticks(end - 1),
            end: Ticks(end),
        };
        let even: Vec<Block> = (1..=4_000).map(|at| block(0, at * 10)).collect();
        // The same number of gaps in a tenth of the time, four times over, and another thread's.
        let bursts: Vec<Block> = (1..=4_000)
            .map(|at| block(0, at % 1_000 + (at / 1_000) * 10_000 + 1))
            .chain((1..=4_000).map(|at| block(7, at * 10)))
            .collect();
        let of = |blocks: &[Block]| {
            let here = gaps_per_second(blocks, 0..3, (4_000, Nanos(2 * Nanos::SECOND.0)), 1);
            let here = here.unwrap();
            assert!((here.value - 2_000.0).abs() < 1e-9 && here.n == Some(4_000), "{here:?}");
            here.interval.unwrap()
        };
        let ((low, high), (from, to)) = (of(&even), of(&bursts));
        assert!(low < 2_000.0 && 2_000.0 < high && from < 2_000.0 && 2_000.0 < to);
        assert!(to - from > 5.0 * (high - low), "{low} .. {high} and {from} .. {to}");
        assert!(gaps_per_second(&even, 0..3, (20, Nanos(0)), 1).is_none());
    }

    #[test]
    fn a_course_in_equal_parts_has_the_rates_that_it_was_made_of() {
        let point = |ms: u64, amount| LoadPoint { time: Nanos(ms * 1_000_000), amount };
        // 1000 a second, then nothing, then 3000 a second; the points lie as they come.
        let course =
            [point(250, 250), point(1_000, 1_000), point(2_000, 1_000), point(3_000, 4_000)];
        let rates = even(&course, 3);
        let expected = [1_000.0, 0.0, 3_000.0];
        let near = |(rate, wanted): (&f64, f64)| (rate - wanted).abs() < 1e-6;
        assert!(rates.iter().zip(expected).all(near), "{rates:?}");
        assert_eq!(even(&course, 40).len(), 4, "no finer than its points");
        assert_eq!(even(&[], 40), [] as [f64; 0]);
        assert!(even(&[LoadPoint::default()], 40).iter().all(|rate| !rate.is_infinite()));
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
        let of = |blocks: &[Block], end| {
            let here = share_of_time(blocks, 0, (Ticks(0), Ticks(end)), 1).unwrap();
            let (low, high) = here.interval.unwrap();
            assert!(low <= here.value && here.value <= high, "{here:?}");
            (here.value, low, high)
        };
        let (value, low, high) = of(&even, 40_000);
        assert!((value - 0.25).abs() < 1e-9, "{value}");
        assert!((low - 0.25).abs() < 0.01 && (high - 0.25).abs() < 0.01, "{low} .. {high}");
        let (value, low, high) = of(&half, 40_000);
        assert!((value - 0.5).abs() < 1e-9 && low < 0.35 && high > 0.65, "{low} .. {high}");
        // What lies behind the end is no part of it, and no time has no share.
        assert!((of(&half, 30_000).0 - 2.0 / 3.0).abs() < 1e-9);
        assert!(share_of_time(&even, 0, (Ticks(7), Ticks(7)), 1).is_none());
    }

    #[test]
    fn throughput_is_in_bits_with_an_interval_over_parts_of_its_course() {
        let net = LoadFacts {
            load: "net".to_owned(),
            what: "TCP bulk".to_owned(),
            amount: 1_000,
            unit: "bytes".to_owned(),
            time: Nanos::SECOND,
            offered: None,
            lost: None,
            course: Vec::new(),
            ended_early: false,
            notes: Vec::new(),
        };
        let here = throughput(std::slice::from_ref(&net), 1).unwrap();
        assert!((here.value - 8_000.0).abs() < 1e-9 && here.interval.is_none());
        assert!(throughput(&[], 1).is_none());
        // Half of the time twice as much, in turns of a twentieth.
        let mut amount = 0;
        let course = (1..=20_u64).map(|part| {
            amount += if part % 2 == 0 { 100 } else { 0 };
            LoadPoint { time: Nanos(part * 50_000_000), amount }
        });
        let steady = LoadFacts { course: course.collect(), ..net };
        let here = throughput(&[steady], 1).unwrap();
        let (low, high) = here.interval.unwrap();
        assert!(low < 8_000.0 && 8_000.0 < high && low > 2_000.0, "{here:?}");
        assert_eq!(here.n, None, "parts of the time are no sample");
    }
}
