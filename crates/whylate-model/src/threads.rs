//! What a set of threads received, what it did not, and whether it met its deadlines.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::gap::GapKind;
use crate::run::Closure;
use crate::units::{CpuId, Nanos, Pid, Ticks, TicksDelta};

/// One thread of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadSummary {
    /// Its name.
    pub name: String,
    /// What it did, such as `PERIODIC 3ms 8ms`.
    pub workload: String,
    /// How it waited, such as `clock_nanosleep absolute`.
    pub timer: String,
    /// How much later than asked the kernel may let the timer fire: what was read back, and 0 under
    /// a real-time policy, which has no slack whatever is set.
    #[serde(rename = "timer_slack_ns")]
    pub timer_slack: Option<Nanos>,
    /// Scheduling policy, as read back.
    pub policy: String,
    /// Reservation, as asked for and granted.
    pub reservation: Option<String>,
    /// CPUs it was allowed on.
    pub cpus: Vec<CpuId>,
    /// Its thread id.
    pub tid: Pid,
    /// First reading.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// Last reading.
    #[serde(rename = "end_ticks")]
    pub end: Ticks,
    /// A delta above this is a gap to it.
    #[serde(rename = "threshold_ticks")]
    pub threshold: TicksDelta,
    /// Time that it had the CPU: the sum of the intervals without a gap.
    #[serde(rename = "received_ns")]
    pub received: Nanos,
    /// Time that it was asleep or blocked.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
    /// Time that it wanted the CPU and did not have it.
    #[serde(rename = "lost_ns")]
    pub lost: Nanos,
    /// Intervals without a gap.
    pub blocks: u64,
    /// Gaps of all kinds, waits included.
    pub gaps: u64,
    /// Of these, gaps that were counted and not kept one by one.
    pub dropped: u64,
    /// Passes over the working set, where it has one.
    pub passes: Option<f64>,
    /// Did the closure of its intervals hold?
    pub closure: Closure,
    /// The kernel's count of its context switches beside ours.
    pub switches: SwitchCounts,
    /// The kernel's count of its CPU time beside ours; none where the kernel's is not known, and for
    /// a thread that only wakes: what it is charged is the kernel's work around its wake-ups.
    pub cpu_time: Option<CpuTime>,
    /// Deadlines, for threads that have some.
    pub deadlines: Option<Deadlines>,
    /// SIGXCPU counted: how often the thread overran its reservation.
    pub overruns: Option<u64>,
    /// Periods in which a quota held the thread.
    #[serde(default)]
    pub held_periods: Option<u64>,
    /// How far a schedule that starts anew with each wake-up has drifted from an absolute one.
    #[serde(rename = "drift_ns")]
    pub drift: Option<Nanos>,
    /// Wake-ups skipped because the thread was late.
    pub skipped_wakeups: u64,
    /// What came of its phases, for threads with a program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSummary>,
    /// What it received, by kind of step, for threads with a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepTime>,
}

/// What came of the passes through one phase of a program, beside what the file asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseSummary {
    /// Its name.
    pub name: String,
    /// Passes that ended.
    pub passes: u64,
    /// CPU time that the `run` steps of a pass ask for.
    #[serde(rename = "run_asked_ns")]
    pub run_asked: Nanos,
    /// Mean of what a pass received for them, by gap accounting; none without a pass.
    pub run_ns: Option<f64>,
    /// Its steps that keep busy by the clock; none without one.
    #[serde(default)]
    pub runtime: Option<RuntimeSummary>,
    /// Periods of its timers; none without one.
    #[serde(rename = "period_asked_ns")]
    pub period_asked: Option<Nanos>,
    /// What came of its timers; none without one, and where other threads share it, because each
    /// thread moves the instants of all.
    #[serde(default)]
    pub activations: Option<ActivationSummary>,
    /// How long a pass lasts with nothing in its way, where its `run`, `runtime` and `sleep` steps
    /// alone decide that.
    #[serde(rename = "length_asked_ns", default)]
    pub length_asked: Option<Nanos>,
    /// Mean length of a pass, from begin to begin; none without a pass.
    pub period_ns: Option<f64>,
    /// Mean of what the thread wanted and did not have in a pass; none without a pass.
    #[serde(default)]
    pub lost_ns: Option<f64>,
}

/// Steps that keep busy by the clock, whatever they receive: means of the passes of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuntimeSummary {
    /// How long the steps of a pass are to be busy.
    #[serde(rename = "asked_ns")]
    pub asked: Nanos,
    /// How long they were, from their begin to their end; none without a pass.
    pub lasted_ns: Option<f64>,
    /// Of that, what the thread received, by gap accounting; none without a pass.
    pub received_ns: Option<f64>,
    /// How far one of them went beyond its end, at most: it did not have the CPU then.
    #[serde(rename = "longest_over_ns")]
    pub longest_over: Nanos,
}

/// Activations by the timers of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActivationSummary {
    /// How many.
    pub count: u64,
    /// Mean distance of an activation from the one before by the same timer, the first from the
    /// timer's beginning; none without one.
    pub distance_ns: Option<f64>,
    /// Periods that began late: the instant before was over when the thread came to wait for it, and
    /// a relative timer begins anew then.
    pub put_off: u64,
    /// By so much in all.
    #[serde(rename = "put_off_by_ns")]
    pub put_off_by: Nanos,
    /// How late the last one was: what the distances add up to beyond their periods and what was put
    /// off, for an activation that is late is as much nearer to the next.
    #[serde(rename = "last_late_ns", default)]
    pub last_late: Nanos,
}

/// What a thread with a program received, by what it received it for. The three add up to what the
/// thread received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepTime {
    /// For `run` steps of passes that ended.
    #[serde(rename = "run_ns")]
    pub run: Nanos,
    /// For `runtime` steps of passes that ended.
    #[serde(rename = "runtime_ns")]
    pub runtime: Nanos,
    /// For the rest: memory that is written, the way from step to step, recordings, and the pass that
    /// had not ended.
    #[serde(rename = "other_ns")]
    pub other: Nanos,
}

/// Context switches of a thread, from the begin of its schedule to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchCounts {
    /// By the kernel: it waited.
    pub voluntary: u64,
    /// By the kernel: it was preempted.
    pub involuntary: u64,
    /// By the kernel's trace, inside its gaps; none without a complete trace.
    pub traced: Option<u64>,
    /// By the gaps alone: those in which the thread waited, or after which the rseq word was found
    /// cleared and the kernel's own count had risen.
    pub inferred: u64,
}

/// A thread's CPU time by the kernel's clock of the thread, beside what its gaps leave.
///
/// The kernel's clock goes on in interrupts that run on the thread's time; gap accounting does not
/// count them as received. Where the kernel knows about time stolen by the hypervisor, its clock does
/// not count that either.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// By the kernel's clock.
    #[serde(rename = "kernel_ns")]
    pub kernel: Nanos,
    /// Lost time of the gaps without a context switch; by the trace where there is one, by the
    /// rseq word otherwise.
    #[serde(rename = "unswitched_ns")]
    pub unswitched: Nanos,
    /// Of that and of the time around switches, what the hypervisor took: a kernel whose hypervisor tells it what
    /// was stolen does not count it, another one does.
    #[serde(rename = "host_ns")]
    pub host: Nanos,
    /// Kernel time of the thread itself around its waits and preemptions: on the way out of the CPU
    /// and back. None without the trace.
    #[serde(rename = "around_switches_ns")]
    pub around_switches: Option<Nanos>,
    /// (kernel - received - unswitched - around switches) / kernel.
    #[serde(rename = "residual_ratio")]
    pub residual: f64,
}

impl CpuTime {
    /// Do the two accounts agree to such a share of the kernel's, whether the kernel counts what the
    /// host took or not?
    #[must_use]
    pub fn agrees(&self, within: f64) -> bool {
        (-within - self.host_share()..=within).contains(&self.residual)
    }

    /// What the hypervisor took, as a share of the kernel's.
    #[must_use]
    pub fn host_share(&self) -> f64 {
        self.host.0 as f64 / (self.kernel.0 as f64).max(1.0)
    }
}

/// What came of a thread's deadlines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deadlines {
    /// Met.
    pub hits: u64,
    /// Missed, however.
    pub misses: u64,
    /// Of these, jobs that never began: their deadline was over before the job before was done.
    pub skipped: u64,
    /// Of these, jobs that were not done when the run ended.
    pub unfinished: u64,
    /// Jobs of which a record found no room: neither hits nor misses.
    #[serde(default)]
    pub unrecorded: u64,
    /// How long a job may take from its release; none where that is not one length for all jobs, and in a run
    /// before this was kept.
    #[serde(rename = "deadline_ns", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Nanos>,
    /// 95 % interval of the share of misses, exact for the number of independent jobs that the judged
    /// ones are worth by how misses cluster over the run; none without a job.
    #[serde(rename = "miss_interval_share")]
    pub miss_share_interval: Option<(f64, f64)>,
    /// The causes of the misses, most frequent first.
    pub causes: Vec<MissCause>,
    /// Misses whose parts do not reach their lateness; none in a run before these were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<u64>,
    /// The first misses, one by one.
    pub first: Vec<Miss>,
    /// Of jobs with their execution time on time, the time they did not have, by what took it:
    /// the ordinary job beside a missed one.
    pub ordinary: Option<TakenFrom>,
}

/// How many misses one cause made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissCause {
    /// The cause.
    pub cause: Cause,
    /// Misses by this cause.
    pub misses: u64,
}

/// One missed deadline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Miss {
    /// Number of the job.
    pub job: u64,
    /// Its nominal release.
    #[serde(rename = "release_ticks")]
    pub release: Ticks,
    /// Its deadline.
    #[serde(rename = "deadline_ticks")]
    pub deadline: Ticks,
    /// When it had its execution time; none if never.
    #[serde(rename = "done_ticks")]
    pub done: Option<Ticks>,
    /// It never began: its deadline was over before the job before it was done.
    #[serde(default)]
    pub skipped: bool,
    /// Its cause; none in a run before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What it asked for itself; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<JobDemand>,
    /// What took the CPU from it between its release and its end.
    pub taken: TakenFrom,
    /// The gap that holds most of its cause; none where no gap does.
    pub gap: Option<MissGap>,
}

/// What a job asked for, and when it could begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobDemand {
    /// Its execution time, and what it waits for, asleep or blocked.
    pub asked_ns: Nanos,
    /// How long after its release the job before it ended.
    pub left_over_ns: Nanos,
}

/// The gap that holds most of the cause of a miss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissGap {
    /// Where it begins.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// How long it is.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// Its cause.
    pub cause: Cause,
    /// The thread was interrupted, or woken late.
    pub kind: GapKind,
}

/// Time that a job wanted and did not have, by what took it, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TakenFrom {
    /// Other threads, after it had been woken; the idle thread and less urgent ones while it was
    /// throttled.
    pub threads_ns: f64,
    /// Waking it: the timer had not fired, or the CPU had yet to leave idle.
    #[serde(default)]
    pub waking_ns: f64,
    /// Interrupts, softirqs, NMIs, and the kernel's way in and out around them, while it had the CPU:
    /// they are charged to it.
    pub interrupts_ns: f64,
    /// The hypervisor or the firmware, no kernel event, while it had the CPU.
    pub host_ns: f64,
    /// Others that held, or had yet to provide, what it waited for.
    #[serde(default)]
    pub blocked_ns: f64,
    /// Interrupts and the hypervisor while it did not have the CPU: not charged to it.
    #[serde(default)]
    pub away_ns: f64,
    /// Nothing that is known.
    pub unknown_ns: f64,
}

impl TakenFrom {
    /// All of it.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.threads_ns
            + self.waking_ns
            + self.interrupts_ns
            + self.host_ns
            + self.blocked_ns
            + self.away_ns
            + self.unknown_ns
    }
}
