//! R1 and R2: what the intervals of two threads on one CPU say about switching between them.
//!
//! From Hourglass, section 4: if one thread runs, a gap occurs, and then the other runs, a context
//! switch occurred in the gap. That needs no statistics. Of many such gaps, statistically:
//! - R1a: the shortest is the fastest path through the switching code;
//! - R1b: if many are of about the same length, not much longer than the shortest, the median of
//!   these is the cost to expect;
//! - R1c: those far longer are contaminated by something else, or the path is unpredictable.

use whylate_model::cause::Rule;
use whylate_model::execution::Block;
use whylate_model::run::{Confidence, Finding};
use whylate_model::{Hertz, Ticks, TicksDelta};

use crate::error::CauseError;

/// Gaps "of about the same length" lie within this factor of each other.
const CLUSTER_WIDTH: f64 = 1.25;

/// A cluster "not much longer than the shortest" begins within this factor of it.
const CLUSTER_START_MAX: f64 = 3.0;

/// "Many": at least this share of all gaps, and at least this number.
const CLUSTER_SHARE_MIN: f64 = 0.1;
const CLUSTER_COUNT_MIN: usize = 10;

/// "Far longer": more than this factor above the expected cost.
const CONTAMINATED: f64 = 2.0;

/// A stretch without a gap in which a thread ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// First reading.
    pub start: Ticks,
    /// Last reading.
    pub end: Ticks,
}

/// Does a thread ever give up the CPU by itself?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// It never blocks and never yields.
    NeverBlocks,
    /// It may.
    MayBlock,
}

/// What R1 makes of the gaps between two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchCost {
    /// Gaps between one thread and the other: context switches, certainly.
    pub switches: u64,
    /// R1a: the shortest.
    pub shortest: TicksDelta,
    /// R1b: median of the dense cluster near the shortest, where there is one.
    pub expected: Option<TicksDelta>,
    /// 95 % interval of that median by order statistics; none where the cluster is too small.
    pub interval: Option<(TicksDelta, TicksDelta)>,
    /// Gaps in that cluster.
    pub in_cluster: u64,
    /// R1c: gaps more than twice the expected cost; none are told without a cluster.
    pub contaminated: u64,
}

/// R1: the context switches between two threads of one CPU, from the intervals in which each ran,
/// in time order. `None` without a switch.
pub fn r1_switches(a: &[Interval], b: &[Interval]) -> Result<Option<SwitchCost>, CauseError> {
    let gaps = gaps_between(a, b)?;
    Ok(r1_cost(gaps))
}

/// The lengths of all context switches in an execution trace of any number of threads and CPUs:
/// the gaps where one thread stopped and another went on, CPU by CPU, in time order.
pub fn r1_gaps(blocks: &[Block]) -> Result<Vec<TicksDelta>, CauseError> {
    let mut blocks: Vec<&Block> = blocks.iter().collect();
    blocks.sort_by_key(|block| (block.cpu, block.start, block.end));
    let mut gaps = Vec::new();
    for pair in blocks.windows(2).filter(|pair| pair[0].cpu == pair[1].cpu) {
        let (first, second) = (pair[0], pair[1]);
        if second.start < first.end {
            return Err(CauseError::Overlap { at: second.start });
        }
        if first.thread != second.thread {
            gaps.push((second.start, second.start.since(first.end)));
        }
    }
    gaps.sort_by_key(|(at, _)| *at);
    Ok(gaps.into_iter().map(|(_, gap)| gap).collect())
}

/// R1 in sentences.
#[must_use]
pub fn r1_findings(cost: &SwitchCost, hz: Hertz) -> Vec<Finding> {
    let finding = |text, confidence| Finding { rule: Rule::R1, cpu: None, text, confidence };
    let n = cost.switches;
    let shortest = cost.shortest.to_nanos(hz);
    let mut findings = vec![
        finding(format!("{n} gaps between two threads are context switches"), Confidence::Certain),
        finding(format!("the fastest context switch of {n} took {shortest}"), Confidence::Likely),
    ];
    if let Some(expected) = cost.expected {
        let share = cost.in_cluster as f64 / n as f64;
        let confidence = if share >= 0.5 { Confidence::Likely } else { Confidence::Possible };
        findings.push(finding(
            format!(
                "a context switch is to be expected to take {}: median of the {} of {n} that lie \
                 together near the shortest",
                expected.to_nanos(hz),
                cost.in_cluster
            ),
            confidence,
        ));
        if cost.contaminated > 0 {
            findings.push(finding(
                format!(
                    "{} of {n} took more than twice that: something else happened in them too",
                    cost.contaminated
                ),
                Confidence::Possible,
            ));
        }
    }
    findings
}

/// R2: a switch between two threads that never block was involuntary, and includes the timer
/// interrupt that ended the first one's slice. Nothing follows when either may block.
#[must_use]
pub fn r2_involuntary(switches: u64, a: Habit, b: Habit) -> Option<Finding> {
    let both_run_on = a == Habit::NeverBlocks && b == Habit::NeverBlocks;
    (both_run_on && switches > 0).then(|| Finding {
        rule: Rule::R2,
        cpu: None,
        text: format!(
            "{switches} context switches were involuntary and include a timer interrupt each: \
             neither thread ever blocks"
        ),
        confidence: Confidence::Certain,
    })
}

/// Lengths of the gaps where one thread stopped and the other went on.
fn gaps_between(a: &[Interval], b: &[Interval]) -> Result<Vec<TicksDelta>, CauseError> {
    let mut all: Vec<(Interval, bool)> = a
        .iter()
        .map(|interval| (*interval, true))
        .chain(b.iter().map(|interval| (*interval, false)))
        .collect();
    all.sort_by_key(|(interval, _)| (interval.start, interval.end));
    let mut gaps = Vec::new();
    for pair in all.windows(2) {
        let ((first, first_is_a), (second, second_is_a)) = (pair[0], pair[1]);
        if second.start < first.end {
            return Err(CauseError::Overlap { at: second.start });
        }
        if first_is_a != second_is_a {
            gaps.push(second.start.since(first.end));
        }
    }
    Ok(gaps)
}

/// R1 from the lengths of context switches alone; none without any.
#[must_use]
pub fn r1_cost(mut gaps: Vec<TicksDelta>) -> Option<SwitchCost> {
    gaps.sort_unstable();
    let shortest = *gaps.first()?;
    let cluster = dense_cluster(&gaps);
    let expected = cluster.map(|cluster| cluster[(cluster.len() - 1) / 2]);
    let far = |expected: TicksDelta| {
        gaps.iter().filter(|gap| gap.0 as f64 > expected.0 as f64 * CONTAMINATED).count() as u64
    };
    Some(SwitchCost {
        switches: gaps.len() as u64,
        shortest,
        expected,
        interval: cluster.and_then(median_interval),
        in_cluster: cluster.map_or(0, |cluster| cluster.len() as u64),
        contaminated: expected.map_or(0, far),
    })
}

/// The values between which the median lies, of sorted ones.
fn median_interval(sorted: &[TicksDelta]) -> Option<(TicksDelta, TicksDelta)> {
    let ranks = whylate_stats::quantile::ranks(sorted.len() as u64, 0.5);
    let at = |rank: u64| sorted.get(rank as usize - 1).copied();
    at(ranks.low?).zip(at(ranks.high?))
}

/// Of the windows of one relative width that begin near the shortest, the fullest.
fn dense_cluster(sorted: &[TicksDelta]) -> Option<&[TicksDelta]> {
    let shortest = sorted.first()?.0.max(1) as f64;
    let begins = sorted.partition_point(|gap| gap.0 as f64 <= shortest * CLUSTER_START_MAX);
    let mut best: &[TicksDelta] = &[];
    let mut to = 0;
    for from in 0..begins {
        let limit = sorted[from].0.max(1) as f64 * CLUSTER_WIDTH;
        while to < sorted.len() && sorted[to].0 as f64 <= limit {
            to += 1;
        }
        if to - from > best.len() {
            best = &sorted[from..to];
        }
    }
    let many = best.len() >= CLUSTER_COUNT_MIN
        && best.len() as f64 >= sorted.len() as f64 * CLUSTER_SHARE_MIN;
    many.then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Confidence::{Certain, Likely, Possible};
    use whylate_model::CpuId;

    const HZ: Hertz = Hertz(1e9);

    /// Two threads that take turns, with these gaps between them.
    fn turns(gaps: &[u64]) -> (Vec<Interval>, Vec<Interval>) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let mut now = 0;
        for (turn, gap) in gaps.iter().chain([&0]).enumerate() {
            let interval = Interval { start: Ticks(now), end: Ticks(now + 1_000_000) };
            if turn % 2 == 0 {
                a.push(interval);
            } else {
                b.push(interval);
            }
            now += 1_000_000 + gap;
        }
        (a, b)
    }

    #[test]
    fn every_change_of_thread_is_a_switch_and_no_gap_within_one_is() {
        let (a, b) = turns(&[2_000, 2_100, 1_900]);
        assert_eq!(r1_switches(&a, &b).unwrap().unwrap().switches, 3);
        let interrupted = [
            Interval { start: Ticks(0), end: Ticks(10) },
            Interval { start: Ticks(50), end: Ticks(90) },
        ];
        assert_eq!(r1_switches(&interrupted, &[]).unwrap(), None);
    }

    #[test]
    fn the_switches_of_many_threads_are_found_cpu_by_cpu() {
        let block = |thread, cpu, start, end| Block {
            thread,
            cpu: CpuId(cpu),
            start: Ticks(start),
            end: Ticks(end),
        };
        let blocks = [
            block(0, 0, 0, 100),
            block(0, 0, 120, 200),
            block(1, 1, 50, 150),
            block(2, 0, 203, 300),
            block(0, 1, 205, 400),
            block(1, 0, 304, 400),
        ];
        assert_eq!(r1_gaps(&blocks), Ok(vec![TicksDelta(3), TicksDelta(55), TicksDelta(4)]));
        let both = [block(0, 0, 0, 100), block(1, 0, 50, 150)];
        assert_eq!(r1_gaps(&both), Err(CauseError::Overlap { at: Ticks(50) }));
    }

    #[test]
    fn planted_costs_are_found_beside_contaminated_gaps() {
        // 90 switches of 2000 to 2178, one lucky one of 1500, nine with an interrupt inside.
        let mut gaps: Vec<u64> = (0..90).map(|i| 2_000 + 2 * i).collect();
        gaps.push(1_500);
        gaps.extend((0..9).map(|i| 15_000 + i));
        let (a, b) = turns(&gaps);
        let cost = r1_switches(&a, &b).unwrap().unwrap();
        assert_eq!(cost.shortest, TicksDelta(1_500));
        assert_eq!(cost.expected, Some(TicksDelta(2_088)));
        assert_eq!((cost.in_cluster, cost.contaminated), (90, 9));
        // Ranks 36 and 55 of 90.
        assert_eq!(cost.interval, Some((TicksDelta(2_070), TicksDelta(2_108))));
        let findings = r1_findings(&cost, HZ);
        let confidences: Vec<_> = findings.iter().map(|finding| finding.confidence).collect();
        assert_eq!(confidences, [Certain, Likely, Likely, Possible]);
        assert!(findings[2].text.contains("2.09us"), "{}", findings[2].text);
    }

    #[test]
    fn without_a_dense_cluster_no_cost_is_claimed() {
        let gaps: Vec<u64> = (0..20).map(|i| 1_000 * (1 << i)).collect();
        let (a, b) = turns(&gaps);
        let cost = r1_switches(&a, &b).unwrap().unwrap();
        assert_eq!((cost.expected, cost.contaminated), (None, 0));
        assert_eq!(r1_findings(&cost, HZ).len(), 2);
    }

    #[test]
    fn a_dense_cluster_far_above_the_shortest_is_not_the_cost_of_switching() {
        let mut gaps = vec![1_000, 1_500, 2_200];
        gaps.extend((0..90).map(|i| 15_000 + i));
        let (a, b) = turns(&gaps);
        assert_eq!(r1_switches(&a, &b).unwrap().unwrap().expected, None);
    }

    #[test]
    fn threads_that_ran_at_the_same_time_did_not_share_a_cpu() {
        let a = [Interval { start: Ticks(0), end: Ticks(100) }];
        let b = [Interval { start: Ticks(50), end: Ticks(150) }];
        assert_eq!(r1_switches(&a, &b), Err(CauseError::Overlap { at: Ticks(50) }));
    }

    #[test]
    fn a_thread_that_begins_where_the_other_ends_took_no_time_to_switch() {
        let a = [Interval { start: Ticks(0), end: Ticks(100) }];
        let b = [Interval { start: Ticks(100), end: Ticks(150) }];
        let cost = r1_switches(&a, &b).unwrap().unwrap();
        assert_eq!((cost.switches, cost.shortest), (1, TicksDelta(0)));
        let block = |thread, start, end| Block {
            thread,
            cpu: CpuId(0),
            start: Ticks(start),
            end: Ticks(end),
        };
        assert_eq!(r1_gaps(&[block(0, 0, 100), block(1, 100, 150)]), Ok(vec![TicksDelta(0)]));
    }

    /// The cost by so many switches of each length.
    fn cost(of: &[(u64, usize)]) -> SwitchCost {
        let all = of.iter().flat_map(|(gap, n)| std::iter::repeat_n(TicksDelta(*gap), *n));
        r1_cost(all.collect()).unwrap()
    }

    #[test]
    fn a_cluster_begins_within_three_times_the_shortest_and_is_a_quarter_wide_ends_included() {
        let found = |of: &[(u64, usize)]| (cost(of).expected.map(|of| of.0), cost(of).in_cluster);
        assert_eq!(found(&[(1_000, 1), (3_000, 9), (3_750, 1)]), (Some(3_000), 10));
        assert_eq!(found(&[(1_000, 1), (3_000, 9), (3_751, 1)]), (None, 0), "nine are too few");
        assert_eq!(found(&[(1_000, 1), (3_001, 20)]), (None, 0), "it begins too far off");
        // Of two as full the nearer one; a tenth of all is enough, and less is not.
        assert_eq!(found(&[(1_000, 10), (2_000, 10)]), (Some(1_000), 10));
        assert_eq!(found(&[(1_000, 10), (50_000, 90)]), (Some(1_000), 10));
        assert_eq!(found(&[(1_000, 10), (50_000, 91)]), (None, 0));
        // Twice the cost may be a switch by itself, more was not.
        assert_eq!(cost(&[(1_000, 10), (2_000, 4), (2_001, 3)]).contaminated, 3);
    }

    #[test]
    fn a_cost_is_likely_from_half_of_the_switches_on() {
        let says = |in_cluster, contaminated| {
            let cost = SwitchCost {
                switches: 10,
                shortest: TicksDelta(900),
                expected: Some(TicksDelta(1_000)),
                interval: None,
                in_cluster,
                contaminated,
            };
            let found = r1_findings(&cost, HZ);
            (found[2].confidence, found.len())
        };
        assert_eq!(says(5, 0), (Likely, 3));
        assert_eq!(says(4, 1), (Possible, 4));
    }

    #[test]
    fn a_switch_is_involuntary_only_if_neither_thread_may_block() {
        use Habit::{MayBlock, NeverBlocks};
        assert!(r2_involuntary(3, NeverBlocks, NeverBlocks).is_some());
        assert!(r2_involuntary(3, NeverBlocks, MayBlock).is_none());
        assert!(r2_involuntary(3, MayBlock, NeverBlocks).is_none());
        assert!(r2_involuntary(0, NeverBlocks, NeverBlocks).is_none());
    }
}
