//! How far each warning limits trust.

use super::{Level, Trust};
use crate::run::Run;
use crate::warning::Warning;

pub(super) fn judge(run: &Run, trust: &mut Trust) {
    // What was asked for and refused comes first: whoever asked can do something about it.
    let (refused, others): (Vec<_>, Vec<_>) =
        run.warnings.iter().partition(|warning| warning.is_of_what_was_asked());
    for warning in refused.into_iter().chain(others) {
        let level = warning.level();
        if level > Level::Good {
            trust.add(level, warning.to_string());
        }
    }
}

impl Warning {
    /// Was something that was asked for by name refused?
    fn is_of_what_was_asked(&self) -> bool {
        match self {
            Self::Within { of, .. } => of.is_of_what_was_asked(),
            Self::PolicyRefused { .. } | Self::Guard { .. } | Self::ActionFailed { .. } => true,
            _ => false,
        }
    }

    /// How far it limits trust in a run that has it. What is a property of a machine and asks for nothing
    /// leaves it as it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::Within { of, .. } => of.level(),
            Self::RecordsDropped { .. }
            | Self::JobsUnrecorded { .. }
            | Self::TraceLost { .. }
            | Self::FrequencyDisagreement { .. }
            | Self::HostChanged { .. }
            | Self::PartEndedEarly { .. }
            | Self::SetStarved { .. }
            | Self::WritingFailed { .. }
            | Self::LoadEnded { .. }
            | Self::AnotherRun { same_cpu: true, .. }
            | Self::Saturated { .. }
            | Self::AccountBroken { .. }
            | Self::FramesUncounted { .. }
            | Self::Planted { .. } => Level::Poor,
            Self::NoiseBelowThreshold { .. }
            | Self::CausesIncomplete { .. }
            | Self::NoKernelTrace { .. }
            | Self::NoHousekeepingCpu
            | Self::MemoryNotLocked { .. }
            | Self::PolicyRefused { .. }
            | Self::RtThrottling { .. }
            | Self::ThresholdNearPeriod { .. }
            | Self::SegmentsRotated { .. }
            | Self::ExecutionCut { .. }
            | Self::Interrupted
            | Self::NotStationary { .. }
            | Self::AnotherRun { same_cpu: false, .. }
            | Self::IdleStatesNotHeld { .. }
            | Self::ActionFailed { .. }
            | Self::PartLeftOut { .. }
            | Self::TapDisagrees { .. }
            | Self::WokeEarly { .. }
            | Self::Guard { .. }
            | Self::DeparturesDisturbed { .. }
            | Self::MessagesRefused { .. }
            | Self::PacketsUnlogged { .. }
            | Self::NoAccount { .. }
            | Self::OwnThreadsInTheWay { .. }
            | Self::NotToBeHad { .. }
            | Self::OtherVersion { .. }
            | Self::LinkDown { .. }
            | Self::DelayOverflow { .. }
            | Self::DelayLate { .. }
            | Self::TruthsMissed { .. }
            | Self::ClientsTurnedAway { .. }
            // Whoever wrote it knew more; what it means for the headline is in the stored verdict.
            | Self::Unknown(_) => Level::Limited,
            Self::NoSenders { .. }
            | Self::TraceLeftOff
            | Self::RseqUnusable { .. }
            | Self::FrequencyFromRegressionOnly
            | Self::Overcommitted { .. }
            | Self::WallClockStepped { .. }
            | Self::UnequalMtus { .. } => Level::Good,
        }
    }
}
