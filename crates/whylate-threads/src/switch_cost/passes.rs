//! How long a pass over a working set takes, warm and cold.

use whylate_clock::Counter;
use whylate_gap::workload::{LINE, Scan, Workload};
use whylate_model::TicksDelta;

use super::runner::Seating;
use crate::error::ThreadsError;
use crate::placement::Placement;

/// Passes in a row, the last of which is warm.
const WARMING: usize = 3;

/// Median times of passes, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// After another pass over the same set.
    pub warm: TicksDelta,
    /// After a pass over each of the other sets.
    pub cold: TicksDelta,
    /// Rounds behind both.
    pub rounds: usize,
}

/// Times passes over one of `sets` working sets of `bytes` each, on a thread of its own on the CPU of
/// the seating: cold, after all the others were read through for a `turn` each, at least once, and
/// warm. A turn, because caches that are shared are filled by others as time goes by. Ends after
/// `rounds`, or where `go_on` says no; none where that was at once.
pub fn measure<C: Counter + Send + Clone>(
    counter: &C,
    seating: Seating,
    (sets, bytes): (usize, usize),
    (rounds, turn): (usize, TicksDelta),
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Passes>, ThreadsError> {
    let mut counter = counter.clone();
    std::thread::scope(|scope| {
        let body = || {
            Placement { cpu: Some(seating.cpu), fifo: None }.settle()?;
            let mut sets: Vec<Scan> = (0..sets.max(1)).map(|_| Scan::new(bytes)).collect();
            let lines = bytes.div_ceil(LINE).max(1);
            let (mut cold, mut warm) = (Vec::new(), Vec::new());
            while cold.len() < rounds && go_on() {
                for other in sets.iter_mut().skip(1) {
                    let begin = counter.read();
                    pass(other, lines);
                    while counter.read().since(begin) < turn {
                        pass(other, lines);
                    }
                }
                let Some(own) = sets.first_mut() else { break };
                cold.push(timed(&mut counter, own, lines));
                for _ in 0..WARMING - 1 {
                    pass(own, lines);
                }
                warm.push(timed(&mut counter, own, lines));
            }
            let rounds = cold.len();
            let passes = median(&mut cold).zip(median(&mut warm));
            Ok(passes.map(|(cold, warm)| Passes { warm, cold, rounds }))
        };
        let spawned = std::thread::Builder::new().spawn_scoped(scope, body);
        spawned.map_err(ThreadsError::Spawn)?.join().map_err(|_| ThreadsError::Died)?
    })
}

pub(super) fn timed<C: Counter>(counter: &mut C, set: &mut Scan, lines: usize) -> TicksDelta {
    let from = counter.read();
    pass(set, lines);
    counter.read().since(from)
}

#[inline(never)]
fn pass(set: &mut Scan, lines: usize) {
    for _ in 0..lines {
        set.work();
    }
}

pub(super) fn median(times: &mut [TicksDelta]) -> Option<TicksDelta> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}
