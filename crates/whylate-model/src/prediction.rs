//! What theory predicted for a set of threads, and what was simulated and measured beside it.
//!
//! Plain numbers, each from a nominal release unless it says otherwise. Nothing is computed here but
//! the comparison of a bound with a maximum.

use serde::{Deserialize, Serialize};

use crate::threads::TakenFrom;
use crate::units::{Nanos, Ticks};

mod judged;

pub use judged::{AboveJob, JobVerdict, JudgedJobs, MachineCause, MachineJobs, MachineTime};

/// A bound that lies further above what was seen than this share of itself is pessimistic.
const PESSIMISTIC: f64 = 0.1;

/// Version of [`PredictionDocument`]. What was printed before it had one lacked the units.
pub const PREDICTION_VERSION: u32 = 2;

/// What `whylate rta --format json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictionDocument {
    /// [`PREDICTION_VERSION`] when it was made.
    pub format_version: u32,
    /// Version of the tool that predicted.
    pub tool_version: String,
    /// The prediction.
    #[serde(flatten)]
    pub prediction: Prediction,
}

/// A prediction for the tasks of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// How the CPU is given away.
    pub policy: PredictedPolicy,
    /// How priorities were given out; none: as the set says.
    pub assignment: Option<String>,
    /// What the operating system takes, where it was counted.
    pub overheads: Option<PredictedOverheads>,
    /// Share of the CPU that the tasks ask for, overheads included.
    #[serde(rename = "utilisation_share")]
    pub utilisation: f64,
    /// Are all deadlines met? None where that is not known.
    pub feasible: Option<bool>,
    /// The tasks, in the order of the set.
    pub tasks: Vec<PredictedTask>,
    /// The change of one task alone with which all deadlines are met; none where they are, where there is no such
    /// change, and where priorities do not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<FittingTask>,
    /// The demand test, under earliest deadline first.
    pub demand: Option<DemandTest>,
    /// The admission test, with reservations.
    pub admission: Option<Admission>,
    /// What the simulation consisted of, where there was one.
    pub simulation: Option<Simulation>,
    /// What else is to be known: assumptions, and what was left out.
    pub notes: Vec<String>,
    /// The same again with the release jitter that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_measured_jitter: Option<Box<Self>>,
}

/// How the CPU is given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PredictedPolicy {
    /// To the most urgent by a fixed number.
    FixedPriority,
    /// To the one whose deadline is next.
    EarliestDeadline,
    /// To reservations.
    Reservations,
}

/// Where overheads come from that somebody gave in numbers; others come from a run.
pub const GIVEN: &str = "as given";

/// What the operating system takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictedOverheads {
    /// One context switch; each job has two.
    #[serde(rename = "switch_ns")]
    pub switch: Nanos,
    /// One tick.
    #[serde(rename = "tick_ns")]
    pub tick: Option<Nanos>,
    /// Time between two ticks.
    #[serde(rename = "tick_period_ns")]
    pub tick_period: Option<Nanos>,
    /// Where the costs come from.
    pub from: String,
    /// Why trust in the run that they come from is poor; none where it is not, and of costs that were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// A task with its prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictedTask {
    /// Its name.
    pub name: String,
    /// Number of its thread in the set.
    pub thread: u32,
    /// How urgent it is, larger is more urgent; none where priorities do not decide.
    pub priority: Option<u32>,
    /// What a job asks for at most, without overheads.
    #[serde(rename = "execution_ns")]
    pub execution: Nanos,
    /// Its period.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Its deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: Nanos,
    /// Release jitter.
    #[serde(rename = "jitter_ns")]
    pub jitter: Nanos,
    /// By how much all releases are late.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// How long a less urgent task may keep it waiting.
    #[serde(rename = "blocking_ns")]
    pub blocking: Nanos,
    /// Its response time, which every policy is asked for; none in a prediction that was stored
    /// before earliest deadline first gave one for each task.
    pub response: Option<PredictedResponse>,
    /// What is left before its deadline, ns; negative where it may be missed.
    pub slack_ns: Option<i64>,
    /// The longest response that was simulated.
    #[serde(rename = "simulated_ns")]
    pub simulated: Option<Nanos>,
    /// Simulated jobs that missed their deadline.
    pub simulated_misses: u64,
    /// What was measured.
    pub measured: Option<MeasuredTask>,
}

/// A task with which all deadlines are met by the same analysis, once one of its times is changed and all else
/// stays as it is. At least one of the two is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FittingTask {
    /// Which task, as in `tasks`.
    pub task: u32,
    /// The longest execution time with which they are; none where no shorter one is enough.
    #[serde(rename = "execution_ns")]
    pub execution: Option<Nanos>,
    /// The shortest period with which they are, and the deadline where that is the period; none where no longer
    /// one is enough.
    #[serde(rename = "period_ns")]
    pub period: Option<Nanos>,
}

/// The response time of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum PredictedResponse {
    /// It is never longer.
    Bounded {
        /// From the nominal release.
        #[serde(rename = "nominal_ns")]
        nominal: Nanos,
        /// From the actual arrival.
        #[serde(rename = "actual_ns")]
        actual: Nanos,
    },
    /// It grows without end.
    Unbounded,
    /// It was not found within the limits of the search.
    Undecided,
}

/// The demand test of earliest deadline first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum DemandTest {
    /// Demand never exceeds the time that there is.
    Feasible {
        /// Length of the longest busy period.
        #[serde(rename = "busy_ns")]
        busy: Nanos,
        /// Deadlines in it that were looked at.
        deadlines: u64,
    },
    /// It does.
    Infeasible {
        /// The shortest window in which it does.
        #[serde(rename = "window_ns")]
        window: Nanos,
        /// What is asked for inside it.
        #[serde(rename = "demand_ns")]
        demand: Nanos,
    },
    /// The tasks ask for more than the CPU.
    Overloaded,
    /// Not found within the limits of the search.
    Undecided,
}

impl DemandTest {
    /// None where it is not known.
    #[must_use]
    pub fn is_feasible(&self) -> Option<bool> {
        match self {
            Self::Feasible { .. } => Some(true),
            Self::Infeasible { .. } | Self::Overloaded => Some(false),
            Self::Undecided => None,
        }
    }
}

/// Reservations against what a scheduler gives away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Admission {
    /// The sum of the reserved shares.
    #[serde(rename = "reserved_share")]
    pub reserved: f64,
    /// The share that is given away.
    #[serde(rename = "limit_share")]
    pub limit: f64,
    /// Are they admitted together?
    pub admitted: bool,
}

/// What a simulation consisted of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Simulation {
    /// Patterns of releases: all at once, and random ones.
    pub patterns: u64,
    /// Events.
    pub events: u64,
    /// It was ended by a limit before its end.
    pub cut: bool,
    /// Seed of the random patterns.
    pub seed: u64,
    /// Who had the CPU when all tasks were released at once, from the beginning.
    pub schedule: Vec<ScheduleSlot>,
}

/// A stretch of simulated CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScheduleSlot {
    /// Which task, as in `tasks`; one behind the last is the tick.
    pub task: u32,
    /// From.
    #[serde(rename = "start_ns")]
    pub start: Nanos,
    /// To.
    #[serde(rename = "end_ns")]
    pub end: Nanos,
}

/// What was measured of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredTask {
    /// Jobs that were done.
    pub jobs: u64,
    /// Jobs that were not done though their deadline was over.
    pub never_done: u64,
    /// Of both, jobs that took longer than was predicted.
    pub over: u64,
    /// The longest response.
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
    /// The prediction beside the longest; none without both, where the jobs above the bound are not
    /// violations of it, and where some are not judged.
    pub comparison: Option<Comparison>,
    /// The jobs one by one beside the prediction; none without a bound, and in a run before they were
    /// judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<JudgedJobs>,
    /// The slowest job, where it took longer than was predicted.
    pub worst: Option<WorstJob>,
    /// The jobs of `over` by the cause of the longest gap of each, most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_by: Vec<OverBy>,
    /// The first jobs of `over`, one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_first: Vec<OverJob>,
    /// How late its releases were.
    pub releases: Option<ReleaseJitter>,
}

/// A bound beside the largest that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Comparison {
    /// No job took longer.
    Consistent,
    /// No job came near.
    Pessimistic {
        /// The bound less the largest.
        #[serde(rename = "by_ns")]
        by: Nanos,
    },
    /// Some job took longer, and the machine does not account for it; in a run before jobs were judged:
    /// some job took longer.
    Violated {
        /// The response of the longest such job less the bound.
        #[serde(rename = "by_ns")]
        by: Nanos,
    },
}

/// A job that took longer than was predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorstJob {
    /// Its number.
    pub job: u64,
    /// Its nominal release.
    #[serde(rename = "release_ticks")]
    pub release: Ticks,
    /// Its response.
    #[serde(rename = "response_ns")]
    pub response: Nanos,
    /// What it wanted and did not have.
    pub taken: TakenFrom,
    /// The gap that took most of its time.
    pub gap: Option<WorstJobGap>,
}

/// How many jobs that took longer than was predicted have one thing behind them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverBy {
    /// The cause of their longest gap.
    pub cause: OverCause,
    /// How many.
    pub jobs: u64,
}

/// The cause of the longest gap of a slow job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum OverCause {
    /// A cause, as it reads in reports.
    Named {
        /// Which.
        cause: String,
    },
    /// Nobody looked what the gap was.
    NotNamed,
    /// No gap of the job is stored.
    NoGap,
    /// Causes of fewer jobs than those that are counted apart.
    Others {
        /// How many causes.
        causes: u64,
    },
}

/// One of the jobs that took longer than was predicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverJob {
    /// Its number.
    pub job: u64,
    /// Its nominal release.
    #[serde(rename = "release_ticks")]
    pub release: Ticks,
    /// Its response; none for a job that was never done.
    #[serde(rename = "response_ns")]
    pub response: Option<Nanos>,
    /// By how much it took longer; of a job that was never done, at least.
    #[serde(rename = "by_ns")]
    pub by: Nanos,
    /// The gap that took most of its time; of a job that was never done, of that up to its deadline.
    pub gap: Option<WorstJobGap>,
    /// Whether the machine accounts for it; none in a run before jobs were judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<JobVerdict>,
}

/// The gap behind a slow job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorstJobGap {
    /// Where it begins.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// How long it is.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// Its cause; none where nobody looked.
    pub cause: Option<String>,
}

/// How late releases were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseJitter {
    /// Releases.
    pub n: u64,
    /// The least lateness.
    #[serde(rename = "least_ns")]
    pub least: Nanos,
    /// The largest beyond it.
    #[serde(rename = "jitter_ns")]
    pub jitter: Nanos,
    /// What 99.9 % of them did not exceed beyond the least; none where the sample does not show it.
    #[serde(rename = "p999_ns")]
    pub p999: Option<Nanos>,
}

impl Comparison {
    /// Compares a bound with the largest of a sample.
    #[must_use]
    pub fn of(bound: Nanos, max: Nanos) -> Self {
        if max > bound {
            return Self::Violated { by: Nanos(max.0 - bound.0) };
        }
        let by = Nanos(bound.0 - max.0);
        if by.0 as f64 > PESSIMISTIC * bound.0 as f64 {
            Self::Pessimistic { by }
        } else {
            Self::Consistent
        }
    }
}

impl PredictedTask {
    /// The bound from the nominal release, where there is one.
    #[must_use]
    pub fn nominal(&self) -> Option<Nanos> {
        match self.response {
            Some(PredictedResponse::Bounded { nominal, .. }) => Some(nominal),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_violated_near_or_far_above_what_was_seen() {
        let of = |bound, max| Comparison::of(Nanos(bound), Nanos(max));
        assert_eq!(of(100, 101), Comparison::Violated { by: Nanos(1) });
        assert_eq!(of(100, 100), Comparison::Consistent);
        assert_eq!(of(100, 90), Comparison::Consistent);
        assert_eq!(of(100, 89), Comparison::Pessimistic { by: Nanos(11) });
        assert_eq!(of(u64::MAX, 0), Comparison::Pessimistic { by: Nanos(u64::MAX) });
    }
}
