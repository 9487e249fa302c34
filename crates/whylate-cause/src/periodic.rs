//! R9: gaps that come at a fixed period: the tick, or a hypervisor's tick.
//!
//! A histogram of the differences between starts of gaps shows a period as a peak over what gaps
//! without any order would give. Differences alone mistake pairs of gaps (a tick and its echo) for
//! a period, so a gap counts as a member only if it is one of three in a row, each a period from
//! the next; of the candidates with about the most members the shortest is the period, for its
//! multiples have as many. Each candidate's own divisors and multiples are looked at, too: a thread
//! that is switched out at every third tick has gaps three ticks apart, and they are the tick's.
//!
//! The share told is corrected for the members that chance would give. A period that is no tick's
//! is told only when it holds half of the gaps: beats of two trains, and bursts, hold some. Limit:
//! the first 20 000 gaps are looked at, and the sentence says so when there are more.

use whylate_model::cause::Rule;
use whylate_model::run::{Confidence, Finding};
use whylate_model::{CpuId, Hertz, Ticks};

/// Gaps looked at; at a few thousand a second, a tick shows after one second.
pub const STARTS_MAX: usize = 20_000;

/// Shortest and longest period looked for, ns: 10 kHz to 50 Hz.
const PERIOD_MIN_NS: f64 = 100_000.0;
const PERIOD_MAX_NS: f64 = 20_000_000.0;

/// Relative width of a bin of the difference histogram.
const BIN: f64 = 1.02;

/// A member lies within this share of the period from its place.
const TOLERANCE: f64 = 0.02;

/// Later gaps that each gap is compared with: bounds the work where gaps are dense.
const NEIGHBOURS_MAX: usize = 400;

/// Standard deviations a peak must stand above the background.
const PEAK_MIN: f64 = 6.0;

/// Candidates that are looked at closely, highest peaks first.
const CANDIDATES_MAX: usize = 12;

/// Candidates with this share of the most members are as good.
const AS_GOOD: f64 = 0.8;

/// The same for a tick's: work after every third tick has more members at three ticks.
const AS_GOOD_FOR_TICK: f64 = 0.4;

/// A smaller share of the gaps is not told as a period: beats, bursts and slices of time were seen
/// to hold up to a fifth at periods that mean nothing.
const SHARE_MIN: f64 = 0.5;

/// The same for the tick of a kernel, of which there are five and which is known to be there.
const SHARE_MIN_OF_TICK: f64 = 0.2;

/// Fewer members are no cluster: bursts of gaps make some dozens by themselves.
const MEMBERS_MIN: f64 = 50.0;

/// A period is held against its parts and multiples up to so many.
const MULTIPLES_MAX: u32 = 5;

/// Gaps this many ticks apart are still looked at as the tick's.
const TICKS_APART_MAX: f64 = 16.0;

/// Tick rates that kernels are built with.
const TICK_RATES: [u32; 5] = [100, 200, 250, 300, 1000];

/// A period this close to a tick's is one. Medians over hundreds of gaps are closer.
const SAME_PERIOD: f64 = 0.003;

/// Which gaps were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Gaps with a timer interrupt in them.
    Timer,
    /// Gaps with kernel events but no timer interrupt.
    OtherEvents,
    /// Gaps without any kernel event, on a virtual machine.
    NoEventVirtual,
    /// Gaps without any kernel event, on bare metal.
    NoEventMetal,
    /// Gaps of a run without the kernel's trace.
    Untraced,
}

/// A periodic cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Periodic {
    /// The period.
    pub period_ns: f64,
    /// Share of the gaps that belong to it, beyond what chance would give.
    pub share: f64,
    /// Gaps looked at.
    pub gaps: usize,
    /// Gaps come whole numbers of periods apart, rather than one.
    pub skips: bool,
}

impl Periodic {
    /// The kernel's tick rate with this period, if it is one.
    #[must_use]
    pub fn tick_hz(&self) -> Option<u32> {
        TICK_RATES
            .into_iter()
            .find(|hz| (self.period_ns * f64::from(*hz) / 1e9 - 1.0).abs() <= SAME_PERIOD)
    }
}

/// R9: the period of these starts of gaps, in time order, if a cluster of them has one.
#[must_use]
pub fn r9_period(starts: &[Ticks], hz: Hertz) -> Option<Periodic> {
    let starts = &starts[..starts.len().min(STARTS_MAX)];
    let first = *starts.first()?;
    let at: Vec<f64> =
        starts.iter().map(|start| start.since(first).0 as f64 * 1e9 / hz.0).collect();
    let span = *at.last()?;
    if span <= 0.0 {
        return None;
    }
    let rate = (at.len() - 1) as f64 / span;
    let judged: Vec<Periodic> = with_parts_and_multiples(&candidates(&at, rate))
        .into_iter()
        .filter_map(|period| judge(&at, rate, period))
        .collect();
    let most = judged.iter().map(|periodic| periodic.share).fold(0.0, f64::max);
    let is_as_good = |periodic: &Periodic| {
        let least = if periodic.tick_hz().is_some() { AS_GOOD_FOR_TICK } else { AS_GOOD };
        periodic.share >= most * least
    };
    let shortest =
        judged.into_iter().filter(is_as_good).min_by(|a, b| a.period_ns.total_cmp(&b.period_ns))?;
    let found = ticks_apart(&at, &shortest).unwrap_or(shortest);
    let least = if found.tick_hz().is_some() { SHARE_MIN_OF_TICK } else { SHARE_MIN };
    (found.share >= least).then_some(found)
}

/// The candidates themselves, and what they may be parts or multiples of.
fn with_parts_and_multiples(candidates: &[f64]) -> Vec<f64> {
    let others = |period: &f64| {
        let period = *period;
        let factors = (2..=MULTIPLES_MAX).flat_map(|n| [f64::from(n), 1.0 / f64::from(n)]);
        factors.map(move |factor| period * factor)
    };
    let within = |period: &f64| (PERIOD_MIN_NS..PERIOD_MAX_NS).contains(period);
    let all = candidates.iter().copied().chain(candidates.iter().flat_map(others));
    all.filter(within).collect()
}

/// The slowest tick of which nearly all gaps come whole numbers apart, where `period` is such a
/// number of ticks: what happens at ticks and skips some comes at a multiple, but is the tick's.
fn ticks_apart(at: &[f64], period: &Periodic) -> Option<Periodic> {
    if period.tick_hz().is_some() {
        return None;
    }
    TICK_RATES.into_iter().map(|hz| 1e9 / f64::from(hz)).find_map(|tick| {
        let ticks = period.period_ns / tick;
        let whole = ticks.round();
        let is_multiple =
            (2.0..=TICKS_APART_MAX).contains(&whole) && (ticks / whole - 1.0).abs() <= SAME_PERIOD;
        // The tick as it ticks here, not as it is built.
        let tick = period.period_ns / whole;
        let is_whole = |pair: &[f64]| {
            let apart = (pair[1] - pair[0]) / tick;
            apart.round() >= 1.0 && (apart - apart.round()).abs() <= TOLERANCE
        };
        let whole = at.windows(2).filter(|pair| is_multiple && is_whole(pair)).count() as f64;
        let chance = 2.0 * TOLERANCE;
        let share = (whole / (at.len() - 1) as f64 - chance) / (1.0 - chance);
        (share >= SHARE_MIN.max(period.share * AS_GOOD)).then_some(Periodic {
            period_ns: tick,
            share,
            gaps: at.len(),
            skips: true,
        })
    })
}

/// R9 in a sentence. `all` is the number of such gaps there were: of more than were looked at, the
/// first ones are spoken of.
#[must_use]
pub fn r9_finding(periodic: &Periodic, among: Among, cpu: CpuId, all: u64) -> Finding {
    let period_ms = periodic.period_ns / 1e6;
    let tick = periodic.tick_hz();
    let (what, of) = match (among, tick) {
        (Among::Timer, Some(_)) => ("the kernel's tick", "gaps with a timer interrupt"),
        (Among::Timer, None) => ("a timer of the kernel", "gaps with a timer interrupt"),
        (Among::OtherEvents, _) => ("periodic work of the kernel", "gaps with other events"),
        (Among::NoEventVirtual, Some(_)) => {
            ("the hypervisor's tick", "gaps without a kernel event")
        }
        (Among::NoEventVirtual, None) => {
            ("periodic work of the hypervisor", "gaps without a kernel event")
        }
        (Among::NoEventMetal, _) => {
            ("periodic work of the firmware", "gaps without a kernel event")
        }
        (Among::Untraced, Some(_)) => ("the kernel's tick or a hypervisor's", "gaps"),
        (Among::Untraced, None) => ("periodic work", "gaps"),
    };
    // What a tick lasts is known; what it was measured as says no more.
    let period = tick.map_or_else(
        || format!("{period_ms:.3} ms"),
        |hz| {
            let exact = format!("{:.3}", 1e3 / f64::from(hz));
            format!("{} ms ({hz} Hz)", exact.trim_end_matches('0').trim_end_matches('.'))
        },
    );
    let sure = tick.is_some() && (among == Among::Timer || periodic.share >= 0.5);
    let looked_at = match periodic.gaps {
        gaps if all > gaps as u64 => format!("the first {gaps} of {all}"),
        gaps => gaps.to_string(),
    };
    let every = if periodic.skips { "at multiples of" } else { "every" };
    Finding {
        rule: Rule::R9,
        cpu: Some(cpu),
        text: format!(
            "{:.0} % of {looked_at} {of} come {every} {period}: {what}",
            periodic.share * 100.0,
        ),
        confidence: if sure { Confidence::Likely } else { Confidence::Possible },
    }
}

/// Periods whose difference stands out, with refined values.
fn candidates(at: &[f64], rate: f64) -> Vec<f64> {
    let bins = ((PERIOD_MAX_NS / PERIOD_MIN_NS).ln() / BIN.ln()).ceil() as usize;
    let edge = |bin: usize| PERIOD_MIN_NS * BIN.powi(bin as i32);
    let mut counts = vec![0_u32; bins + 1];
    let mut sums = vec![0.0_f64; bins + 1];
    for (i, start) in at.iter().enumerate() {
        for later in at[i + 1..].iter().take(NEIGHBOURS_MAX) {
            let difference = later - start;
            if difference >= PERIOD_MAX_NS {
                break;
            }
            if difference >= PERIOD_MIN_NS {
                let bin = ((difference / PERIOD_MIN_NS).ln() / BIN.ln()) as usize;
                counts[bin.min(bins)] += 1;
                sums[bin.min(bins)] += difference;
            }
        }
    }
    // A peak may fall on the edge between two bins: look at neighbours together.
    let mut peaks: Vec<(f64, f64)> = (0..bins)
        .filter_map(|bin| {
            let count = f64::from(counts[bin] + counts[bin + 1]);
            let expected = at.len() as f64 * rate * (edge(bin + 2) - edge(bin));
            let above = (count - expected) / (expected + 1.0).sqrt();
            let centre = (sums[bin] + sums[bin + 1]) / count.max(1.0);
            (above >= PEAK_MIN).then_some((above, centre))
        })
        .collect();
    peaks.sort_by(|a, b| b.0.total_cmp(&a.0));
    peaks.truncate(CANDIDATES_MAX);
    peaks.into_iter().map(|(_, centre)| centre).collect()
}

/// The share of gaps that have their two neighbours in a period, with the period refined.
fn judge(at: &[f64], rate: f64, period: f64) -> Option<Periodic> {
    let period = median_difference(at, period)?;
    let tolerance = period * TOLERANCE;
    let near = |place: f64| {
        let from = at.partition_point(|start| *start < place - tolerance);
        at.get(from).is_some_and(|start| *start <= place + tolerance)
    };
    let is_member = |start: &&f64| {
        let offset = |periods: f64| near(**start + periods * period);
        match (offset(-1.0), offset(1.0)) {
            (true, true) => true,
            (true, false) => offset(-2.0),
            (false, true) => offset(2.0),
            (false, false) => false,
        }
    };
    let members = at.iter().filter(is_member).count() as f64;
    let n = at.len() as f64;
    // Gaps without order have a neighbour in a window of twice the tolerance with this chance;
    // three patterns of two neighbours each make a member.
    let neighbour = 1.0 - (-2.0 * tolerance * rate).exp();
    let chance = 1.0 - (1.0 - neighbour * neighbour).powi(3);
    let share = (members / n - chance) / (1.0 - chance);
    let noise = (chance * (1.0 - chance) / n).sqrt();
    let stands_out = members / n > chance + PEAK_MIN * noise;
    (chance < 0.5 && stands_out && share * n >= MEMBERS_MIN).then_some(Periodic {
        period_ns: period,
        share,
        gaps: at.len(),
        skips: false,
    })
}

fn median_difference(at: &[f64], period: f64) -> Option<f64> {
    let width = period * (BIN - 1.0);
    let mut differences = Vec::new();
    for (i, start) in at.iter().enumerate() {
        for later in at[i + 1..].iter().take(NEIGHBOURS_MAX) {
            let difference = later - start;
            if difference > period + width {
                break;
            }
            if difference >= period - width {
                differences.push(difference);
            }
        }
    }
    let middle = differences.len().checked_sub(1)? / 2;
    let (_, median, _) = differences.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median)
}

#[cfg(test)]
mod tests;
