//! Requests one by one, as a log on request keeps them.

use crate::units::{Nanos, Ticks};

/// What became of a measured request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its reply came in time.
    Answered,
    /// No reply came in time.
    Unanswered,
    /// The kernel did not take it.
    Refused,
    /// The run had no time left to send it.
    NeverSent,
    /// It left, and asked for no reply.
    OneWay,
}

/// A request as a segment holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPacket {
    /// Number of its flow, as in `flows` of `run.json`.
    pub flow: u16,
    /// Its number in the order of sending; none of one that was never sent.
    pub number: Option<u64>,
    /// When it was to leave; none in a closed loop.
    pub intended: Option<Ticks>,
    /// When it left.
    pub sent: Option<Ticks>,
    /// When it was answered or given up.
    pub at: Ticks,
    /// What became of it.
    pub outcome: Outcome,
    /// From the actual send to the reply.
    pub service: Option<Nanos>,
    /// From the intended send to the reply.
    pub response: Option<Nanos>,
    /// From the intended send to the actual one.
    pub lateness: Option<Nanos>,
}
