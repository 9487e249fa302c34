//! The execution trace as figures want it: a row for each thread (`render_trace` of Hourglass), and
//! the histogram of its context switches (`process_ctx`).

pub mod recorded;

use std::str::FromStr;

use whylate_cause::CauseError;
use whylate_cause::rules::{r1_cost, r1_gaps};
use whylate_model::execution::{Block, SwitchBin, SwitchTimes};
use whylate_model::{Hertz, Nanos, Printable, Ticks, TicksDelta};

/// About as many bins as a histogram has: more are thinner than their noise.
const BINS: u64 = 50;
/// Where no cost can be expected, the histogram ends at this quantile.
const MOST: f64 = 0.99;

/// One thread and when it had a CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRow {
    /// Its number and name.
    pub label: String,
    /// Continuous stretches of CPU time, in order.
    pub spans: Vec<Span>,
}

/// A stretch of time, ns since the beginning of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Begin.
    pub from_ns: f64,
    /// End.
    pub to_ns: f64,
}

/// The part of a run that is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its begin, from the beginning of the run.
    pub from: Nanos,
    /// Its length; at least 1 ns is drawn.
    pub length: Nanos,
}

/// What a thread did in a window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Received {
    /// Stretches of CPU time, whole or in part.
    pub(crate) blocks: u64,
    /// Their time, ns.
    pub(crate) time_ns: f64,
    /// The longest, ns.
    pub(crate) longest_ns: f64,
    /// The longest time between two of them, ns.
    pub(crate) longest_gap_ns: f64,
}

/// A row for each thread of `names`, whose order is that of the threads' numbers. Blocks of threads
/// beyond them are left out: they are of another set.
#[must_use]
pub fn rows(blocks: &[Block], names: &[String], begin: Ticks, hz: Hertz) -> Vec<ThreadRow> {
    let mut rows: Vec<ThreadRow> =
        names.iter().map(|name| ThreadRow { label: name.clone(), spans: Vec::new() }).collect();
    let ns = |at: Ticks| at.since(begin).0 as f64 * 1e9 / hz.0;
    for block in blocks {
        if let Some(row) = rows.get_mut(usize::from(block.thread)) {
            row.spans.push(Span { from_ns: ns(block.start), to_ns: ns(block.end) });
        }
    }
    for row in &mut rows {
        row.spans.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
    }
    rows
}

/// What the context switches of a trace took; none when there is no switch. Refused where two
/// threads had one CPU at the same time: then it was not one CPU, or not one clock.
pub fn switch_times(blocks: &[Block], hz: Hertz) -> Result<Option<SwitchTimes>, CauseError> {
    let mut gaps = r1_gaps(blocks)?;
    let Some(cost) = r1_cost(gaps.clone()) else { return Ok(None) };
    let begin = blocks.iter().map(|block| block.start).min().unwrap_or_default();
    let end = blocks.iter().map(|block| block.end).max().unwrap_or_default();
    gaps.sort_unstable();
    let lengths: Vec<Nanos> = gaps.iter().map(|gap| gap.to_nanos(hz)).collect();
    let longest = lengths.last().copied().unwrap_or_default();
    let expected = cost.expected.map(|ticks| ticks.to_nanos(hz));
    let drawn = match cost.expected {
        // All that are not contaminated.
        Some(TicksDelta(ticks)) => lengths
            .partition_point(|length| *length <= TicksDelta(ticks.saturating_mul(2)).to_nanos(hz)),
        None => (lengths.len() as f64 * MOST).ceil() as usize,
    };
    let end_of_bins = lengths[drawn.clamp(1, lengths.len()) - 1];
    let each: Vec<(Nanos, u64)> = lengths.iter().map(|length| (*length, 1)).collect();
    let bins = bins(&each, end_of_bins);
    let beyond = lengths.len() as u64 - bins.iter().map(|bin| bin.count).sum::<u64>();
    Ok(Some(SwitchTimes {
        n: cost.switches,
        over: end.since(begin).to_nanos(hz),
        shortest: cost.shortest.to_nanos(hz),
        expected,
        in_cluster: cost.in_cluster,
        contaminated: cost.expected.map(|_| cost.contaminated),
        mean_ns: lengths.iter().map(|length| length.0 as f64).sum::<f64>() / lengths.len() as f64,
        longest,
        bins,
        beyond,
    }))
}

/// Bins of one round width from the shortest up to `end`, which is in the last, of lengths and how
/// often each occurred.
pub(crate) fn bins(sorted: &[(Nanos, u64)], end: Nanos) -> Vec<SwitchBin> {
    let Some(&(Nanos(shortest), _)) = sorted.first() else { return Vec::new() };
    let width = round_up(end.0.saturating_sub(shortest).div_ceil(BINS).max(1));
    let first = shortest / width;
    let last = end.0.max(shortest) / width;
    let mut bins: Vec<SwitchBin> = (first..=last)
        .map(|bin| SwitchBin { from: Nanos(bin * width), to: Nanos((bin + 1) * width), count: 0 })
        .collect();
    for (length, count) in sorted {
        if let Some(bin) = bins.get_mut((length.0 / width - first) as usize) {
            bin.count += count;
        }
    }
    bins
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `width`.
fn round_up(width: u64) -> u64 {
    let mut power = 1;
    loop {
        if let Some(times) = [1, 2, 5].into_iter().find(|times| times * power >= width) {
            return times * power;
        }
        power *= 10;
    }
}

impl FromStr for Window {
    type Err = String;

    /// Reads `FROM..TO`, both from the beginning of the run: `1s..1.5s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            format!(
                "`{}` is not a window: write it as FROM..TO, both from the beginning of the run, \
                 such as 1s..1.5s",
                Printable(text)
            )
        };
        let (from, to) = text.split_once("..").ok_or_else(shape)?;
        let time = |text: &str| match text.trim() {
            "0" => Ok(Nanos(0)),
            text => text.parse::<Nanos>().map_err(|error| error.to_string()),
        };
        let (from, to) = (time(from)?, time(to)?);
        match to.0.checked_sub(from.0) {
            None | Some(0) => Err(format!("`{text}` is empty: TO must be later than FROM")),
            Some(length) => Ok(Self { from, length: Nanos(length) }),
        }
    }
}

impl Window {
    /// The whole of some rows.
    #[must_use]
    pub fn of(rows: &[ThreadRow]) -> Self {
        let ends = rows.iter().flat_map(|row| &row.spans).map(|span| span.to_ns);
        let end = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        Self { from: Nanos(0), length: Nanos((end.ceil() as u64).max(1)) }
    }

    pub(crate) fn begin_ns(self) -> f64 {
        self.from.0 as f64
    }

    pub(crate) fn length_ns(self) -> f64 {
        self.length.0.max(1) as f64
    }

    pub(crate) fn end_ns(self) -> f64 {
        self.begin_ns() + self.length_ns()
    }
}

impl ThreadRow {
    /// The spans in a window, cut to it.
    pub(crate) fn within(&self, window: Window) -> impl Iterator<Item = Span> + '_ {
        let (from, to) = (window.begin_ns(), window.end_ns());
        self.spans
            .iter()
            .map(move |span| Span { from_ns: span.from_ns.max(from), to_ns: span.to_ns.min(to) })
            .filter(|span| span.to_ns > span.from_ns)
    }

    pub(crate) fn received(&self, window: Window) -> Received {
        let mut received = Received::default();
        let mut before: Option<Span> = None;
        for span in self.within(window) {
            let length = span.to_ns - span.from_ns;
            received.blocks += 1;
            received.time_ns += length;
            received.longest_ns = received.longest_ns.max(length);
            if let Some(before) = before {
                let gap = span.from_ns - before.to_ns;
                received.longest_gap_ns = received.longest_gap_ns.max(gap);
            }
            before = Some(span);
        }
        received
    }

    /// Which share of each of `columns` equal parts of a window the thread had.
    pub(crate) fn shares(&self, window: Window, columns: usize) -> Vec<f64> {
        let width = window.length_ns() / columns.max(1) as f64;
        let mut shares = vec![0.0; columns];
        for span in self.within(window) {
            let (from, to) = (span.from_ns - window.begin_ns(), span.to_ns - window.begin_ns());
            for (column, share) in shares.iter_mut().enumerate().skip((from / width) as usize) {
                let (begin, end) = (column as f64 * width, (column + 1) as f64 * width);
                if begin >= to {
                    break;
                }
                *share += (to.min(end) - from.max(begin)).max(0.0) / width;
            }
        }
        shares
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::CpuId;

    use super::*;

    const HZ: Hertz = Hertz(2e9);

    /// Ten threads that take turns of 20 ms on one CPU; each switch takes 2.0 to 2.178 us, one in
    /// ten has an interrupt in it, and one was lucky.
    pub(crate) fn turns() -> Vec<Block> {
        let mut now = 1_000_000;
        (0..500u64)
            .map(|turn| {
                let start = now;
                let end = start + 40_000_000;
                let switch = match turn {
                    123 => 3_000,
                    turn if turn % 10 == 7 => 30_000 + turn,
                    turn => 4_000 + turn * 356 / 500,
                };
                now = end + switch;
                let (start, end) = (Ticks(start), Ticks(end));
                Block { thread: (turn % 10) as u16, cpu: CpuId(1), start, end }
            })
            .collect()
    }

    #[test]
    fn planted_switches_give_cost_cluster_and_contamination() {
        let times = switch_times(&turns(), HZ).unwrap().unwrap();
        assert_eq!((times.n, times.shortest), (499, Nanos(1_500)));
        assert_eq!((times.contaminated, times.beyond), (Some(50), 50));
        assert_eq!(times.in_cluster, 448);
        let expected = times.expected.unwrap();
        assert!((2_080..=2_095).contains(&expected.0), "{expected}");
        assert_eq!(times.longest, Nanos(15_249));
        assert_eq!(times.bins.iter().map(|bin| bin.count).sum::<u64>(), 449);
        assert_eq!(times.bins[0], SwitchBin { from: Nanos(1_500), to: Nanos(1_520), count: 1 });
        assert!(times.bins.last().is_some_and(|bin| bin.count > 0), "it ends with a switch");
        assert!(times.bins.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert!((10.0..10.01).contains(&(times.over.0 as f64 / 1e9)), "{}", times.over);
    }

    #[test]
    fn switches_without_a_cluster_have_a_histogram_and_no_cost() {
        let mut now = 0;
        let blocks: Vec<Block> = (0..20u32)
            .map(|turn| {
                let (start, end) = (Ticks(now), Ticks(now + 100));
                now += 100 + (1 << turn) * 2_000;
                Block { thread: (turn % 2) as u16, cpu: CpuId(0), start, end }
            })
            .collect();
        let times = switch_times(&blocks, HZ).unwrap().unwrap();
        assert_eq!((times.expected, times.contaminated), (None, None));
        assert!(times.bins.len() <= 60, "{}", times.bins.len());
        assert_eq!(times.bins.iter().map(|bin| bin.count).sum::<u64>() + times.beyond, 19);
        assert_eq!(switch_times(&blocks[..1], HZ), Ok(None));
        assert_eq!(switch_times(&[], HZ), Ok(None));
    }

    #[test]
    fn equal_switches_are_one_bin() {
        let block = |thread, start| Block {
            thread,
            cpu: CpuId(0),
            start: Ticks(start),
            end: Ticks(start + 10),
        };
        let times = switch_times(&[block(0, 0), block(1, 20)], HZ).unwrap().unwrap();
        assert_eq!(times.bins, [SwitchBin { from: Nanos(5), to: Nanos(6), count: 1 }]);
    }

    #[test]
    fn a_window_is_read_from_two_times() {
        let window = |text: &str| text.parse::<Window>();
        assert_eq!(
            window("1s..1.5s"),
            Ok(Window { from: Nanos(1_000_000_000), length: Nanos(500_000_000) })
        );
        assert_eq!(window("0..25ms"), Ok(Window { from: Nanos(0), length: Nanos(25_000_000) }));
        for bad in ["", "1s", "2s..1s", "1s..1s", "5..6", "a..b", "\u{1b}[2J"] {
            let error = window(bad).unwrap_err();
            assert!(!error.is_empty() && !error.contains('\u{1b}'), "{bad}: {error}");
        }
    }

    #[test]
    fn a_window_cuts_blocks_and_keeps_their_time() {
        let names = ["a".to_owned(), "b".to_owned()];
        let rows = rows(&turns(), &names, Ticks(0), HZ);
        assert_eq!(rows.len(), 2);
        // Thread 0 runs from 0.5 to 20.5 ms, thread 1 from about then to 40.5 ms.
        let window = Window { from: Nanos(10_000_000), length: Nanos(20_000_000) };
        let (a, b) = (rows[0].received(window), rows[1].received(window));
        assert_eq!((a.blocks, b.blocks), (1, 1));
        assert!((a.time_ns - 10_500_000.0).abs() < 1.0, "{a:?}");
        assert!((a.time_ns + b.time_ns + 2_000.0 - 20_000_000.0).abs() < 1.0, "{b:?}");
        for columns in [1, 7, 100] {
            let sum: f64 = rows[0].shares(window, columns).iter().sum();
            assert!((sum / columns as f64 - 0.525).abs() < 1e-9, "{columns}: {sum}");
        }
        let all = Window::of(&rows);
        assert_eq!(rows[0].received(all).blocks, 50);
        let gap = rows[0].received(all).longest_gap_ns;
        assert!((180e6..181e6).contains(&gap), "{gap}");
        let nowhere = Window { from: Nanos(u64::MAX / 2), length: Nanos(0) };
        assert_eq!(rows[0].received(nowhere), Received::default());
        assert_eq!(Window::of(&[]).length, Nanos(1));
    }
}
