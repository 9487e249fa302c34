//! A request's points as a segment holds them.

use super::{Point, Source};
use crate::units::Ticks;

/// When a request passed its points, as they were told: nothing is put in order, nothing left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredJourney {
    /// Number of its flow, as in `flows` of `run.json`; 0 where a process was watched.
    pub flow: u16,
    /// Its number in the order of sending.
    pub number: u64,
    /// Each point by its [`Point::index`]: when, and who says so; none that is not known.
    pub passed: [Option<(Ticks, Source)>; Point::COUNT],
}
