//! The loop of a thread that receives CPU time until it has received enough.
//!
//! It is the gap loop of Hourglass (its Figure 2) with a goal: what a gap takes is added to the
//! goal, so that the loop ends when the intervals without a gap sum to the amount. No loop count is
//! calibrated, and a slower processor takes no longer to receive the same time. Never allocates,
//! locks, logs or formats, and makes no system call but those of a recording.
//!
//! The inner loop on x86-64, as `cargo xtask asm receive` prints it, is that of the gap loop with
//! its count of iterations replaced by a comparison of the reading with the goal.

use whylate_clock::Counter;
use whylate_gap::hot::{Recorder, exceeds};
use whylate_gap::workload::Workload;
use whylate_model::{Ticks, TicksDelta};

/// How far a thread came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The last reading.
    pub(crate) at: Ticks,
    /// What is left of the amount; zero when it has been received.
    pub(crate) left: TicksDelta,
    /// The thread's time is up, or it was told to stop.
    pub(crate) over: bool,
}

/// Works until `amount` of CPU time has been received since the reading `previous`.
///
/// Recording a gap is time that the thread does receive. End and stop are looked at every `look`
/// ticks and after each gap.
#[inline(never)]
pub(crate) fn receive<C: Counter, W: Workload>(
    counter: &mut C,
    workload: &mut W,
    recorder: &mut Recorder,
    previous: Ticks,
    amount: TicksDelta,
    look: TicksDelta,
) -> Received {
    let threshold = recorder.limits.threshold;
    let (mut previous, mut goal) = (previous, previous + amount);
    loop {
        let edge = goal.min(previous + look);
        let mut iterations = 0;
        while previous < edge {
            workload.work();
            let now = counter.read();
            iterations += 1;
            if exceeds(now, previous, threshold) {
                let before = recorder.not_had();
                previous = recorder.record(counter, previous, now);
                goal = goal + TicksDelta(recorder.not_had().0 - before.0);
                break;
            }
            previous = now;
        }
        let over = recorder.block_done(iterations, previous);
        if over || previous >= goal {
            let left = goal.since(previous);
            return Received { at: previous, left, over };
        }
    }
}
