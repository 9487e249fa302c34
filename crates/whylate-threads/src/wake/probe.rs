//! What a synthetic thread does: the trait that every thread model implements.
//!
//! A model has two halves. Its *body* runs on the measuring thread, between a timer and a counter,
//! and records as little as it can. Its *digest* runs on the collecting thread, takes the records
//! in order, each with the line that relates counter and timer's clock around it, and builds the
//! outcome. What has to wait, convert, add up or allocate belongs into the digest.

use std::fmt;

use whylate_clock::Counter;
use whylate_model::Ticks;

use crate::error::ThreadsError;
use crate::relation::Segment;
use crate::timer::{Timer, TimerNanos};
use crate::wake::stage::Stage;

/// One activation of a thread: when it was meant to run, and when it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation {
    /// Number in the schedule, from 0.
    pub index: u64,
    /// Activations right after this one that the thread passed over because it ran too late.
    pub skipped: u64,
    /// The intended instant.
    pub intended: TimerNanos,
    /// The counter when the thread ran again.
    pub wake: Ticks,
}

/// A thread model.
pub trait Probe: fmt::Display + Sync {
    /// What it leaves behind.
    type Outcome: Send;
    /// What it reports for each closed interval of the run.
    type Interval;

    /// Refuses settings that cannot be measured.
    fn check(&self) -> Result<(), ThreadsError>;

    /// Activations that the body will have at most, the warm-up included.
    fn activations(&self) -> u64;

    /// The thread's own part: runs until its time is up or the stage says stop.
    fn body<C: Counter, T: Timer>(&self, stage: &mut Stage<'_, C, T>) -> Result<(), ThreadsError>;

    /// An outcome in which nothing has happened.
    fn begin(&self) -> Self::Outcome;

    /// Adds one record to the outcome; calls `emit` for each interval that it closes.
    ///
    /// Records come in the order of the body; `around` is the relation at the wake-up.
    fn digest(
        &self,
        outcome: &mut Self::Outcome,
        activation: &Activation,
        around: &Segment,
        emit: &mut dyn FnMut(Self::Interval),
    );

    /// Closes the outcome when the last record has been digested.
    fn finish(&self, outcome: &mut Self::Outcome, emit: &mut dyn FnMut(Self::Interval));
}
