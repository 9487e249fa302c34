//! Figure 3: three threads of three priorities map the CPU.

use crate::spelled::in_unit;
use whylate_model::cause::CauseTotal;
use whylate_model::execution::Block;
use whylate_model::paper::{Here, Scenario, Unit};
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_record::set::SetRecorded;
use whylate_stats::student::Spread;

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::beside::{Other, sentence};
use crate::rows::{Filled, PARTS, gaps_per_second, row, share_of_time};

const THREE: &str = "-n 3 -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH";
/// 700 interrupts a second of a sound card, each with a little work.
const BESIDE: &str = "-n 4 -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH \
                      -t 3 -p RTHIGH -w PERIODIC 100us 1430us";
const TIMES: Times = Times { usual: 5, quick: 2 };
const NAMES: [&str; 3] = ["LOW", "NORMAL", "HIGH"];

/// Causes of gaps that are told.
const MOST_CAUSES: usize = 3;

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let alone = bench.hourglass("figure-3a", THREE, TIMES, &[], scenario)?;
    let run = &alone.recorded.run;
    let hz = run.clock.hz;
    let all: Vec<Vec<TicksDelta>> =
        (0..NAMES.len()).map(|index| turns(&alone.blocks, index as u16)).collect();
    let nices: Vec<Option<i32>> = run.threads.iter().map(|of| nice(&of.policy)).collect();
    // While all of them ran.
    let start = run.threads.iter().map(|of| of.start).max().unwrap_or_default();
    let end = run.threads.iter().map(|of| of.end).min().unwrap_or_default();
    let shares: Vec<Option<Here>> = (0..NAMES.len())
        .map(|index| share_of_time(&alone.blocks, index as u16, (start, end), bench.seed()))
        .collect();
    let together: f64 = shares.iter().flatten().map(|here| here.value).sum();
    for (index, (name, here)) in NAMES.iter().zip(shares).enumerate() {
        let why =
            here.as_ref().map_or_else(String::new, |here| weighed(here, &nices, index, together));
        scenario.rows.push(row(format!("share of the CPU, {name}"), why).here(here));
    }
    let lengths: Vec<Vec<f64>> =
        all.iter().map(|of| of.iter().map(|turn| turn.0 as f64).collect()).collect();
    for (index, name) in NAMES.iter().enumerate() {
        let why = longer_or_oftener(&lengths, index);
        let here = median(all[index].clone(), hz);
        scenario.rows.push(row(format!("length of a turn, {name}"), why).here(here));
    }
    let beside = bench.hourglass("figure-3d", BESIDE, TIMES, &[], scenario)?;
    for (set, words, paper) in [
        (&alone, "alone", ("clock interrupts, 100 a second", 100.0, "gaps, three threads alone")),
        (
            &beside,
            "beside the audio-like load",
            (
                "some 700 interrupts a second of the sound card, 20 of the disk, 100 of the clock",
                820.0,
                "gaps, beside audio-like load",
            ),
        ),
    ] {
        let what = format!("gaps a second in the three threads, {words}");
        let here = gaps(set, bench.seed());
        let other = Other::stated(&format!("{:.0} a second in all", paper.1), paper.1);
        let told = here.as_ref().map(|here| other.told(here));
        let agreement = here.as_ref().and_then(|here| other.agreement(here));
        let why = sentence([told, causes(set), periodic(set)]);
        scenario.rows.push(
            row(what, why)
                .paper(paper.0)
                .here(here)
                .agrees(agreement)
                .brief(paper.2, format!("about {:.0}/s", paper.1)),
        );
    }
    Ok(())
}

/// The niceness in the name of a policy, as read back.
fn nice(policy: &str) -> Option<i32> {
    policy.split("nice ").nth(1)?.trim().parse().ok()
}

/// A share beside the one that the weight of its nice value asks for: each step is a factor of 1.25.
fn weighed(here: &Here, nices: &[Option<i32>], index: usize, together: f64) -> String {
    let weight = |nice: &Option<i32>| nice.map(|nice| 1.25_f64.powi(-nice));
    let weights: Option<Vec<f64>> = nices.iter().map(weight).collect();
    let shown = |value: f64| in_unit(value, Unit::Share);
    let Some((weights, nice)) = weights.zip(nices.get(index).copied().flatten()) else {
        return "its nice value is not known".to_owned();
    };
    let expected = together * weights[index] / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let stands =
        Other::own(&format!("what the weight of nice {nice} asks for"), (expected, expected));
    format!(
        "{}, of the {} that the three had together; its interval is over {PARTS} equal parts of the \
         time",
        stands.told(here),
        shown(together)
    )
}

/// Does a thread have longer turns than the lowest, or more of them? The paper: longer, not more. Told
/// apart only where the 95 % intervals of the two ratios lie apart.
fn longer_or_oftener(turns: &[Vec<f64>], index: usize) -> String {
    let (Some(lowest), Some(own)) = (turns.first(), turns.get(index)) else {
        return String::new();
    };
    let count = own.len();
    if count == 0 {
        return "not measured: it had no turn that ended with another's".to_owned();
    }
    let ratios = length_ratio(own, lowest).zip(count_ratio(count, lowest.len()));
    let Some((longer, oftener)) = ratios.filter(|_| index > 0) else {
        return format!(
            "median of its {count} turns, from its first block to the last before another's"
        );
    };
    let like = if longer.low > oftener.high {
        "as in the paper, rather longer than more often"
    } else if oftener.low > longer.high {
        "other than in the paper, rather more often than longer"
    } else {
        "longer and more often are not told apart"
    };
    format!(
        "of its {count} turns: {longer} times as long as those of {} (mean) and {oftener} times as \
         many: {like}",
        NAMES[0]
    )
}

/// How many times as much, with a 95 % interval.
struct Ratio {
    value: f64,
    low: f64,
    high: f64,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} ({:.1} .. {:.1})", self.value, self.low, self.high)
    }
}

/// How many times as long the mean of some turns is as that of others. The interval joins the ends of
/// both means', so it is too wide rather than too narrow; none where a mean may be nothing at all.
fn length_ratio(own: &[f64], lowest: &[f64]) -> Option<Ratio> {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let around = |of: &[f64]| Some(Spread::of_mean(of)?.around(mean(of)));
    let (own_ends, ends) = (around(own)?, around(lowest)?);
    (ends.low > 0.0).then(|| Ratio {
        value: mean(own) / mean(lowest),
        low: own_ends.low.max(0.0) / ends.high,
        high: own_ends.high / ends.low,
    })
}

/// How many times as many turns there are, as if each came by chance; none of none.
fn count_ratio(own: usize, lowest: usize) -> Option<Ratio> {
    let (own, lowest) = (own as f64, lowest as f64);
    let (low, high) = whylate_stats::share::interval(own, own + lowest);
    let odds = |share: f64| share / (1.0 - share);
    (lowest > 0.0 && high < 1.0).then(|| Ratio {
        value: own / lowest,
        low: odds(low),
        high: odds(high),
    })
}

/// What the gaps of a part are named after, a second of each.
fn causes(set: &SetRecorded) -> Option<String> {
    let run = &set.recorded.run;
    let elapsed = run.threads.first()?;
    let seconds = elapsed.end.since(elapsed.start).to_nanos(run.clock.hz).0 as f64 / 1e9;
    let mut causes: Vec<&CauseTotal> = run.causes.iter().filter(|of| of.cpu.is_none()).collect();
    if causes.is_empty() {
        causes = run.causes.iter().collect();
    }
    causes.sort_by_key(|of| std::cmp::Reverse(of.gaps));
    let told = causes.iter().take(MOST_CAUSES).filter(|of| of.gaps > 0);
    let told: Vec<String> =
        told.map(|of| format!("{} ({:.0} a second)", of.cause, of.gaps as f64 / seconds)).collect();
    (!told.is_empty()).then(|| format!("gaps of all threads by cause: {}", told.join(", ")))
}

/// How often the periodic thread of a part had the CPU; none without one.
fn periodic(set: &SetRecorded) -> Option<String> {
    let run = &set.recorded.run;
    let thread = run.threads.get(NAMES.len())?;
    let of = thread.deadlines.as_ref()?;
    let seconds = thread.end.since(thread.start).to_nanos(run.clock.hz).0 as f64 / 1e9;
    let jobs = (of.hits + of.misses - of.skipped) as f64 / seconds;
    Some(format!("the periodic thread took the CPU {jobs:.0} times a second"))
}

/// Lengths of the turns of a thread: from its first block to the end of the last before another's.
pub(super) fn turns(blocks: &[Block], thread: u16) -> Vec<TicksDelta> {
    let mut turns = Vec::new();
    let mut begun: Option<(u16, &Block, &Block)> = None;
    for block in blocks {
        match &mut begun {
            Some((of, _, last)) if *of == block.thread => *last = block,
            _ => {
                if let Some((of, first, last)) = begun.replace((block.thread, block, block))
                    && of == thread
                {
                    turns.push(last.end.since(first.start));
                }
            }
        }
    }
    turns
}

/// The median turn; none without one.
pub(super) fn median(mut turns: Vec<TicksDelta>, hz: Hertz) -> Option<Here> {
    turns.sort_unstable();
    let n = turns.len() as u64;
    let at =
        |rank: u64| turns.get(rank.saturating_sub(1) as usize).map(|of| of.to_nanos(hz).0 as f64);
    let ranks = whylate_stats::quantile::ranks(n, 0.5);
    let interval = ranks.low.zip(ranks.high);
    let interval = interval.and_then(|(low, high)| Some((at(low)?, at(high)?)));
    Some(Here { value: at(n.div_ceil(2))?, unit: Unit::Nanoseconds, interval, n: Some(n) })
}

/// Gaps of the first three threads in a second of the run.
fn gaps(set: &SetRecorded, seed: u64) -> Option<Here> {
    let run = &set.recorded.run;
    let gaps = run.threads.iter().take(3).map(|thread| thread.gaps).sum();
    let elapsed = run.threads.first().map(|of| of.end.since(of.start).to_nanos(run.clock.hz));
    gaps_per_second(&set.blocks, 0..3, (gaps, elapsed.unwrap_or(Nanos(0))), seed)
}

#[cfg(test)]
mod tests {
    use whylate_model::{CpuId, Ticks};

    use super::*;

    #[test]
    fn a_turn_lasts_from_the_first_block_to_the_last_before_another_threads() {
        let block = |thread, start, end| Block {
            thread,
            cpu: CpuId(0),
            start: Ticks(start),
            end: Ticks(end),
        };
        let blocks = [block(0, 0, 10), block(0, 11, 30), block(1, 40, 50), block(0, 60, 65)];
        assert_eq!(turns(&blocks, 0), [TicksDelta(30)], "the last one is not known to be over");
        assert_eq!(turns(&blocks, 1), [TicksDelta(10)]);
    }

    fn share(value: f64, half: f64) -> Here {
        let interval = Some((value - half, value + half));
        Here { value, unit: Unit::Share, interval, n: Some(40) }
    }

    #[test]
    fn a_share_stands_beside_what_the_weights_of_the_nice_values_ask_for() {
        assert_eq!(["SCHED_OTHER nice -10", "SCHED_FIFO 4"].map(nice), [Some(-10), None]);
        // Weights 1.25^-10, 1 and 1.25^10: 1.0 %, 9.6 % and 89.4 % of what they have together.
        let nices = [Some(10), Some(0), Some(-10)];
        let said = |value, index| weighed(&share(value, 0.004), &nices, index, 0.95);
        assert!(said(0.849, 2).starts_with("no difference from what the weight of nice -10"));
        assert!(said(0.80, 2).starts_with("less than what the weight"), "{}", said(0.80, 2));
        assert!(said(0.03, 0).starts_with("more than what the weight of nice 10"));
        assert!(said(0.091, 1).contains("95.0% that the three had together"));
        assert!(weighed(&share(0.3, 0.1), &[Some(0), None], 0, 0.9).contains("not known"));
    }

    #[test]
    fn longer_and_more_often_are_told_apart_by_the_turns() {
        // Turns between half and one and a half times a mean.
        let turns = |mean: f64, count: u32| -> Vec<f64> {
            (0..count).map(|turn| mean * (0.5 + f64::from(turn) / f64::from(count - 1))).collect()
        };
        let said =
            |of: [(f64, u32); 2]| longer_or_oftener(&of.map(|(mean, count)| turns(mean, count)), 1);
        let longer = said([(1e6, 100), (9e6, 110)]);
        assert!(
            longer.contains("110 turns: 9.0 (") && longer.contains("as in the paper"),
            "{longer}"
        );
        let oftener = said([(1e6, 10), (1.1e6, 900)]);
        assert!(oftener.contains("and 90.0 (") && oftener.contains("other than in"), "{oftener}");
        // A few turns: 1.5 times as long, and as many, may be either.
        let few = said([(1e6, 6), (1.5e6, 6)]);
        assert!(few.contains("1.5 (") && few.ends_with("are not told apart"), "{few}");
        assert!(longer_or_oftener(&[vec![], turns(1e6, 7)], 0).starts_with("not measured"));
        assert!(longer_or_oftener(&[turns(1e6, 7)], 0).starts_with("median of its 7 turns"));
    }
}
