//! Figure 3: three threads of three priorities map the CPU.

use whylate_model::execution::Block;
use whylate_model::paper::{Here, Scenario, Unit};
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_record::set::SetRecorded;

use crate::PaperError;
use crate::bench::{Bench, Times};
use crate::rows::{Filled, per_second, row, share_of_time};

const THREE: &str = "-n 3 -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH";
/// 700 interrupts a second of a sound card, each with a little work.
const BESIDE: &str = "-n 4 -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH \
                      -t 3 -p RTHIGH -w PERIODIC 100us 1430us";
const TIMES: Times = Times { usual: 5, quick: 2 };
const NAMES: [&str; 3] = ["LOW", "NORMAL", "HIGH"];

pub(super) fn run(bench: &mut Bench<'_>, scenario: &mut Scenario) -> Result<(), PaperError> {
    let alone = bench.hourglass("figure-3a", THREE, TIMES, &[], scenario)?;
    let hz = alone.recorded.run.clock.hz;
    for (index, name) in NAMES.iter().enumerate() {
        let Some(thread) = alone.recorded.run.threads.get(index) else { continue };
        let elapsed = thread.end.since(thread.start).to_nanos(hz);
        let why = match index {
            0 => "shares follow the weights of the nice values, and every thread has its turns",
            _ => "by its nice value, as above",
        };
        let here =
            share_of_time(&alone.blocks, index as u16, (thread.received, elapsed), bench.seed());
        scenario.rows.push(row(format!("share of the CPU, {name}"), why).here(here));
    }
    for (index, name) in NAMES.iter().enumerate() {
        let turns = turns(&alone.blocks, index as u16);
        let why = match index {
            2 => "the paper: threads of higher priority run longer, not more often; a fair \
                  scheduler of today gives equal slices, and the weights more of them"
                .to_owned(),
            _ => {
                "median of its turns, from its first block to the last before another's".to_owned()
            }
        };
        scenario.rows.push(row(format!("length of a turn, {name}"), why).here(median(turns, hz)));
    }
    let beside = bench.hourglass("figure-3d", BESIDE, TIMES, &[], scenario)?;
    for (set, words, paper, why) in [
        (
            &alone,
            "alone",
            "clock interrupts, 100 a second",
            "every interrupt is a gap: ticks, those of the host, and other threads of this machine",
        ),
        (
            &beside,
            "beside the audio-like load",
            "720 interrupts a second more",
            "the periodic thread asks for the CPU 699 times a second, as the sound card did",
        ),
    ] {
        let what = format!("gaps a second in the three threads, {words}");
        scenario.rows.push(row(what, why).paper(paper).here(gaps(set)));
    }
    Ok(())
}

/// Lengths of the turns of a thread: from its first block to the end of the last before another's.
fn turns(blocks: &[Block], thread: u16) -> Vec<TicksDelta> {
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

fn median(mut turns: Vec<TicksDelta>, hz: Hertz) -> Option<Here> {
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
fn gaps(set: &SetRecorded) -> Option<Here> {
    let run = &set.recorded.run;
    let gaps = run.threads.iter().take(3).map(|thread| thread.gaps).sum();
    let elapsed = run.threads.first().map(|of| of.end.since(of.start).to_nanos(run.clock.hz));
    per_second(gaps, elapsed.unwrap_or(Nanos(0)))
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
}
