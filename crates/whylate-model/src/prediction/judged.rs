//! Jobs beside the bound of their task, one by one: within it, above it by what the machine took, or
//! above even that.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{OverJob, PredictedTask};
use crate::units::{Nanos, Ticks};

/// The jobs of a task, judged. They add up to all that were done, those that never were, and those
/// whose record is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgedJobs {
    /// Jobs that took no longer than was predicted.
    pub within: u64,
    /// Jobs that took longer, and no longer than is predicted when what the machine took is added to
    /// their blocking.
    pub machine: u64,
    /// Jobs that took longer even than that: the theory, the task set or the measurement is wrong.
    pub violated: u64,
    /// Jobs that cannot be judged: they were never done, their record is lost, or that of a job which
    /// may have kept them waiting.
    pub not_judged: u64,
    /// Of `machine`, jobs by what took most of their busy period, most frequent first; empty in a run before
    /// these were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_by: Vec<MachineJobs>,
    /// The bound less the longest response, where all jobs are within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pessimistic_by_ns: Option<Nanos>,
    /// Of the jobs above the bound by what the machine took, the one of which it took most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<AboveJob>,
    /// The first jobs that took longer even than that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated_first: Vec<AboveJob>,
}

/// Jobs above their bound that the machine accounts for, by what took most of their busy period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineJobs {
    /// What took most.
    pub cause: MachineCause,
    /// How many.
    pub jobs: u64,
}

/// A job that was done and took longer than was predicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AboveJob {
    /// Its number.
    pub job: u64,
    /// Its nominal release.
    pub release_ticks: Ticks,
    /// Its response.
    pub response_ns: Nanos,
    /// The bound with what the machine took; none where a bound cannot be exceeded any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<Nanos>,
    /// What the machine took.
    pub machine: MachineTime,
}

/// What the machine took of a busy period: from the arrival that begins it to the end of a job, the time
/// in which none of its tasks received any and none waited for what a less urgent one held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineTime {
    /// All of it.
    pub lost_ns: Nanos,
    /// What took most of it; none where nothing was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<MachineCause>,
    /// So much.
    pub cause_ns: Nanos,
}

/// What took time of a busy period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MachineCause {
    /// Late timers, and a CPU that had yet to leave idle.
    LateWakeUp,
    /// Interrupts, softirqs, NMIs, while a task of it had the CPU.
    Interrupts,
    /// No kernel event accounts for it, while a task of it had the CPU.
    NoEvent,
    /// The same, where steal time bears out that it was the hypervisor.
    Hypervisor,
    /// Interrupts, and what no kernel event accounts for, while none of its tasks had the CPU.
    OffCpu,
    /// Threads that are not of its tasks.
    OtherThreads,
    /// The same, while the job could run and was not let: the limit of real-time tasks was used up.
    Throttled,
    /// Nothing that is known.
    Unknown,
}

impl fmt::Display for MachineCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LateWakeUp => "late wake-up",
            Self::Interrupts => "interrupts",
            Self::NoEvent => "no kernel event",
            Self::Hypervisor => "hypervisor",
            Self::OffCpu => "interrupts and no kernel event off the CPU",
            Self::OtherThreads => "other threads",
            Self::Throttled => "throttled",
            Self::Unknown => "unknown",
        })
    }
}

/// What is to be said of one job above its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum JobVerdict {
    /// The machine accounts for it.
    Machine {
        /// What it took.
        machine: MachineTime,
    },
    /// It does not.
    Violated {
        /// What it took.
        machine: MachineTime,
    },
    /// Not known.
    NotJudged,
}

impl JobVerdict {
    /// What the machine took, where that is known.
    #[must_use]
    pub fn machine(&self) -> Option<&MachineTime> {
        match self {
            Self::Machine { machine } | Self::Violated { machine } => Some(machine),
            Self::NotJudged => None,
        }
    }
}

impl fmt::Display for JobVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine { .. } => "machine",
            Self::Violated { .. } => "violated",
            Self::NotJudged => "not judged",
        })
    }
}

impl PredictedTask {
    /// Every place that names what took most of a busy period.
    pub(crate) fn machine_causes(&mut self) -> impl Iterator<Item = &mut MachineCause> {
        let (judged, first) = match &mut self.measured {
            Some(of) => (of.judged.as_mut(), of.over_first.as_mut_slice()),
            None => (None, &mut [][..]),
        };
        let (mut counted, mut above) = (Vec::new(), Vec::new());
        if let Some(of) = judged {
            counted.extend(of.machine_by.iter_mut().map(|of| &mut of.cause));
            above.extend(of.most.iter_mut().chain(&mut of.violated_first));
        }
        let first = first.iter_mut().filter_map(|OverJob { judged, .. }| match judged {
            Some(JobVerdict::Machine { machine } | JobVerdict::Violated { machine }) => {
                Some(machine)
            }
            _ => None,
        });
        let above = above.into_iter().map(|of| &mut of.machine);
        counted.into_iter().chain(above.chain(first).filter_map(|of| of.cause.as_mut()))
    }
}
