//! What one job of a periodic thread does: receives its execution time, or goes through steps.

use whylate_clock::Counter;
use whylate_gap::workload::Nothing;
use whylate_model::{Nanos, Ticks};
use whylate_rta::call::{Call, CallError};
use whylate_rta::demand::{Demand, Sampler};

use super::action::{Action, Held};
use crate::model::Setting;
use crate::stage::{End, Stage};

/// The word that stands in place of an amount where a thread has steps.
const STEPS: &str = "steps";

/// What one job does.
pub(super) enum Job {
    Amount(Sampler),
    Steps(Vec<Action>),
}

impl Job {
    /// The first argument of a call: an execution time, or the word for the thread's steps.
    pub(super) fn read(
        call: &Call,
        setting: &Setting<'_>,
        usage: &'static str,
    ) -> Result<Self, CallError> {
        let what = "amount";
        let amount = call.argument(0, what, usage)?;
        if amount.eq_ignore_ascii_case(STEPS) {
            let actions = setting.steps.iter().zip(0..).map(|(step, number)| {
                let seed = setting.seed.wrapping_add(number);
                Action::of(step, setting, seed).ok_or_else(|| {
                    call.refused(
                        what,
                        format!("`{step}` is no step of a job, or names nothing known"),
                    )
                })
            });
            return actions.collect::<Result<_, _>>().map(Self::Steps);
        }
        let demand = Demand::parse(amount, setting.tables)
            .map_err(|error| call.refused(what, error.to_string()))?;
        Ok(Self::Amount(demand.sampler(setting.seed)))
    }

    /// Has it steps that do anything but run?
    pub(super) fn may_wait(&self) -> bool {
        match self {
            Self::Amount(_) => false,
            Self::Steps(steps) => steps.iter().any(|step| !matches!(step, Action::Run(_))),
        }
    }

    /// Does one job; gives the execution time that it asked for and the reading at its end.
    pub(super) fn run<C: Counter>(
        &mut self,
        stage: &mut Stage<'_, C>,
    ) -> Result<(Nanos, Ticks), End> {
        match self {
            Self::Amount(demand) => {
                let amount = demand.draw();
                stage.receive(amount, &mut Nothing).map(|at| (amount, at))
            }
            Self::Steps(actions) => {
                let mut held = Held::default();
                let mut asked = Nanos(0);
                for action in actions {
                    asked = Nanos(asked.0 + action.run(stage, &mut held)?.asked.0);
                }
                Ok((asked, stage.last()))
            }
        }
    }
}
