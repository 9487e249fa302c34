//! Passing frames between two devices: what is left of a forwarder when nothing is looked at.
//!
//! The counterpart of testpmd's `io`: what it takes is the cost of drivers and rings, and stamps are
//! the only thing that can be added. The residence that is recorded is that of stamps themselves, from
//! behind the reception to before the sending; a forwarder that works on frames has its work there.

use whylate_clock::Counter;
use whylate_model::TicksDelta;
use whylate_port::PortError;
use whylate_stats::histogram::Histogram;

use crate::device::BACKEND;
use crate::frames::Dpdk;
use crate::hot::{self, Way};

pub use crate::hot::{Course, Passed, Stamps};

/// What became of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// From the first device to the second, and back.
    pub passed: [Passed; 2],
    /// From the first reading of the counter to the last.
    pub lasted: TicksDelta,
    /// From the stamp at reception to the one before sending, in ticks, of each packet; empty with
    /// stamps off.
    pub residence: Histogram,
    /// Had the thread caches of buffers?
    pub cached: bool,
}

impl Outcome {
    /// Frames received, both ways.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.passed.iter().map(|way| way.received).sum()
    }
}

/// Passes frames both ways between two whole devices, on the calling thread, until `course` ends.
/// Frames that a device does not take are dropped and counted by the difference.
pub fn pass<C: Counter + Clone + 'static>(
    (near, far): (&mut Dpdk<C>, &mut Dpdk<C>),
    course: &Course<'_>,
    stamps: Stamps,
    counter: &mut C,
) -> Result<Outcome, PortError> {
    let cached = Dpdk::<C>::join_thread();
    near.end_burst();
    far.end_burst();
    let mut residence = Histogram::new();
    let mut passed = [Passed::default(); 2];
    let whole = PortError::NotDivisible { backend: BACKEND };
    let (Some((near_in, near_out)), Some((far_in, far_out))) = (near.rings(), far.rings()) else {
        return Err(whole);
    };
    let mut ways = [Way { from: near_in, to: far_out }, Way { from: far_in, to: near_out }];
    let (ways, residence_of) = (&mut ways, &mut residence);
    let (start, end) = match stamps {
        Stamps::Off => {
            hot::pass::<C, false, false>(ways, &mut passed, course, counter, residence_of)
        }
        Stamps::Burst => {
            hot::pass::<C, true, false>(ways, &mut passed, course, counter, residence_of)
        }
        Stamps::Packet => {
            hot::pass::<C, false, true>(ways, &mut passed, course, counter, residence_of)
        }
    };
    Ok(Outcome { passed, lasted: end.since(start), residence, cached })
}
