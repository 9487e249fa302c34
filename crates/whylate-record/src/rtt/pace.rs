//! When the recording's thread does what while something is measured.
//!
//! Where it has a CPU of its own, it takes everything in as it comes. Where it shares one with an end,
//! what it does there is what requests wait for: an interval's histograms alone take it a millisecond or
//! two, which of some thousand requests a second is one in a hundred. What can wait then waits, as far as
//! rings and memory reach: a run of some seconds is taken in when it is over.

use std::time::Duration;

use whylate_model::{CpuId, Nanos};
use whylate_net::open_loop::settled;

use super::request::{FlowRequest, Request};
use crate::attend::LOOK_EVERY;

/// The trace's rings are small, so its events are read in small portions: what came in half a second
/// takes longer than a slice of the scheduler, and every request in between would wait for it.
const IN_PORTIONS: Duration = Duration::from_millis(20);
/// Between two looks at the host.
const HOST_EVERY: Duration = Duration::from_secs(1);
/// Records of requests and of stalls wait this long at most: a reflector tells its own through a pipe.
const RECORDS_WAIT: Duration = Duration::from_secs(5);
/// The part of a ring that is filled until then; a look may be late.
const RING_FILLED: f64 = 0.5;
/// Histograms wait this long at most: as long as a checkpoint does.
const HISTOGRAMS_WAIT: Duration = Duration::from_secs(10);
/// Sets of histograms that wait, of all flows: a set takes about a megabyte.
const SETS_WAIT: u32 = 64;

/// Times between two of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Wake-ups of the recording's thread.
    pub(super) wake: Duration,
    /// Looks at the host.
    pub(super) host: Duration,
    /// Records are taken from their rings, and events from the trace.
    pub(super) records: Duration,
    /// Histograms are written, and checkpoints with them.
    histograms: Duration,
}

/// Has the recording's thread a CPU of its own?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shared {
    /// It shares one with an end.
    pub(super) beside: bool,
    /// An end may be anywhere, and so on the only CPU that is left for this thread.
    pub(super) perhaps: bool,
}

impl Shared {
    /// By the CPUs that are left for it.
    pub(super) fn of(request: &Request, house: &[CpuId]) -> Self {
        let ends = |flow: &FlowRequest| [Some(flow.cpu), flow.target.cpu()];
        let all = || request.flows.iter().flat_map(ends);
        let beside = house.is_empty() || all().flatten().any(|cpu| house.contains(&cpu));
        let perhaps = house.len() < 2 && all().any(|cpu| cpu.is_none());
        Self { beside, perhaps }
    }
}

impl Pace {
    /// On a CPU of its own.
    pub(super) fn apart() -> Self {
        Self { wake: LOOK_EVERY, host: LOOK_EVERY, records: LOOK_EVERY, histograms: LOOK_EVERY }
    }

    /// On a CPU that an end has too; the busiest flow with records has so many of them a second.
    pub(super) fn beside_an_end(traced: bool, busiest: f64) -> Self {
        let fills = settled::ROOM as f64 * RING_FILLED / busiest.max(1.0);
        let fills = Duration::from_secs_f64(fills.min(RECORDS_WAIT.as_secs_f64()));
        let (wake, records) =
            if traced { (IN_PORTIONS, IN_PORTIONS) } else { (LOOK_EVERY.min(fills), fills) };
        Self { wake, host: HOST_EVERY, records, histograms: HISTOGRAMS_WAIT }
    }

    /// How long histograms of intervals of this width wait, of so many flows.
    pub(super) fn histograms(&self, width: Nanos, flows: usize) -> Duration {
        let sets = SETS_WAIT / (flows as u32).clamp(1, SETS_WAIT);
        self.histograms.min(Duration::from_nanos(width.0) * sets).max(self.wake)
    }
}

/// Is it time for something again?
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    every: Nanos,
    last: Nanos,
}

impl Due {
    /// For the first time when that long has passed.
    pub(super) fn every(every: Duration) -> Self {
        Self { every: Nanos(every.as_nanos() as u64), last: Nanos(0) }
    }

    /// Is it, so long after the beginning? Then the next time counts from here.
    pub(super) fn is_now(&mut self, elapsed: Nanos) -> bool {
        let due = elapsed.0.saturating_sub(self.last.0) >= self.every.0;
        if due {
            self.last = elapsed;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::SECOND;

    #[test]
    fn what_shares_a_cpu_with_an_end_takes_in_what_its_rings_cannot_hold_and_no_more() {
        let short = Nanos(66_000_000);
        assert_eq!(Pace::apart().histograms(SECOND, 1), LOOK_EVERY);
        // Room for 65 536 records: half of it is filled after 6.6 s at 5 000 a second.
        let slow = Pace::beside_an_end(false, 5_000.0);
        assert_eq!((slow.wake, slow.records), (LOOK_EVERY, RECORDS_WAIT));
        let fast = Pace::beside_an_end(false, 20_000.0);
        assert!(fast.records < Duration::from_secs(2) && fast.records > Duration::from_secs(1));
        let faster = Pace::beside_an_end(false, 1e6);
        assert!(faster.wake == faster.records && faster.records < LOOK_EVERY, "{faster:?}");
        assert_eq!(Pace::beside_an_end(false, 0.0).records, RECORDS_WAIT);
        // The trace's do not wait.
        assert_eq!(Pace::beside_an_end(true, 5_000.0).records, IN_PORTIONS);
        // Histograms wait for a checkpoint, but no more of them than there is memory for.
        assert_eq!(slow.histograms(SECOND, 1), HISTOGRAMS_WAIT);
        assert_eq!(slow.histograms(short, 1), Duration::from_nanos(short.0) * 64);
        assert_eq!(slow.histograms(SECOND, 16), Duration::from_secs(4));
        assert_eq!(slow.histograms(Nanos(1), 1_000), slow.wake);
    }

    #[test]
    fn what_is_due_is_due_once_and_again_as_long_after() {
        let mut due = Due::every(Duration::from_secs(1));
        let at = [0, 999, 1_000, 1_001, 1_999, 2_500, 3_400, 3_500].map(|ms| Nanos(ms * 1_000_000));
        let was = at.map(|elapsed| due.is_now(elapsed));
        assert_eq!(was, [false, false, true, false, false, true, false, true]);
    }
}
