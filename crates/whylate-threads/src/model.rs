//! What a synthetic thread does: the trait that every thread model implements.
//!
//! A new model is one file in `models/` that implements [`Model`], and its line in
//! [`crate::models::known`].

use whylate_clock::Counter;
use whylate_gap::plan::Work;
use whylate_model::{CpuId, Nanos};
use whylate_rta::call::{Call, CallError};
use whylate_rta::demand::Tables;
use whylate_rta::task_set::{Program, Step};

use crate::ledger::Ledger;
use crate::resources::Resources;
use crate::stage::{End, Stage};

/// A thread model.
///
/// Its body runs on a thread of its own between a timer and a counter, and marks what happens; what
/// has to be converted, added up or judged is the ledger's, on the collecting side.
pub trait Model<C: Counter>: Send {
    /// Its name, as task sets write it.
    fn name() -> &'static str
    where
        Self: Sized;

    /// How it is written, with its arguments.
    fn usage() -> &'static str
    where
        Self: Sized;

    /// What it does, in one line.
    fn about() -> &'static str
    where
        Self: Sized;

    /// A model with the arguments of `call`, which names it.
    fn read(call: &Call, setting: &Setting<'_>) -> Result<Self, CallError>
    where
        Self: Sized;

    /// What it does between two readings of the counter.
    fn work(&self) -> Work {
        Work::Nothing
    }

    /// Never waits of its own accord: a thread of this model has the CPU unless it is taken.
    fn always_runs(&self) -> bool {
        false
    }

    /// Its blocks belong into the execution trace. Those of a thread that only measures its wake-ups
    /// do not, as in the paper.
    fn traced(&self) -> bool {
        true
    }

    /// Who makes sense of its marks.
    fn ledger(&self) -> Ledger;

    /// Runs until the stage says that it is over.
    fn body(&mut self, stage: &mut Stage<'_, C>) -> End;
}

/// What a model may need beside its arguments.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Seed of everything random in the thread.
    pub seed: u64,
    /// Relative deadline of each job, where it is not the period.
    pub deadline: Option<Nanos>,
    /// What each job does, where that is more than receiving an amount.
    pub steps: &'a [Step],
    /// What it does in phases, where it does.
    pub program: Option<&'a Program>,
    /// Where it may run, where it says so.
    pub cpus: Option<&'a [CpuId]>,
    /// What it shares with the other threads of its set.
    pub resources: &'a Resources,
    /// Reads the tables that execution times come from.
    pub tables: Tables<'a>,
}

/// Turns the end of a body written with `?` into an [`End`].
pub(crate) fn ended(result: Result<std::convert::Infallible, End>) -> End {
    match result {
        Err(end) => end,
        Ok(never) => match never {},
    }
}
