//! What a context switch costs: directly, and through the caches (Hourglass, sections 5.1 and 5.2).

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Nanos};

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchCost {
    /// The CPU that all runners shared.
    pub cpu: CpuId,
    /// The caches of that CPU, smallest first; none where the kernel does not tell.
    pub caches: Vec<Cache>,
    /// What the kernel says of its quanta.
    pub kernel: KernelQuanta,
    /// Times of context switches, by kind and by what was switched between.
    pub direct: Vec<DirectRow>,
    /// The timer tick, where it was seen without a switch.
    pub tick: Option<Tick>,
    /// How fast each level of memory is read, where working sets were asked for.
    #[serde(default)]
    pub bandwidths: Vec<ReadBandwidth>,
    /// What switches cost through the caches, by working set; empty where it was not asked for.
    pub indirect: Vec<IndirectRow>,
    /// How switches were made for `indirect`; none where that was not asked for.
    pub trials: Option<Trials>,
    /// Does the cost through the caches grow with the working set? None with fewer than two of them.
    #[serde(default)]
    pub growth: Option<Growth>,
}

impl SwitchCost {
    /// The row of a kind, where it was measured.
    #[must_use]
    pub fn measured(&self, between: Between, how: How) -> Option<&Direct> {
        let row = self.direct.iter().find(|row| row.between == between && row.how == how)?;
        match &row.outcome {
            Outcome::Measured(direct) => Some(direct),
            Outcome::Refused { .. } => None,
        }
    }
}

/// A data cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// Level.
    pub level: u8,
    /// Size.
    pub bytes: u64,
    /// CPUs that share it.
    pub shared_by: u32,
}

/// Quanta as the kernel states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelQuanta {
    /// Slice of ordinary threads; none where it cannot be read (it lies in debugfs).
    #[serde(rename = "base_slice_ns")]
    pub base_slice: Option<Nanos>,
    /// Slice of SCHED_RR.
    #[serde(rename = "round_robin_ns")]
    pub round_robin: Option<Nanos>,
}

/// What is switched between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// Threads of one process.
    Threads,
    /// Processes, each with an address space of its own.
    Processes,
}

/// How a runner loses the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SwitchWay"))]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Its quantum expires: it never gives the CPU up. Includes a timer interrupt.
    Involuntary,
    /// It calls `sched_yield` among others of its real-time priority.
    Yield,
    /// It wakes the next and waits until it is woken: the true voluntary switch.
    HandOff,
}

impl Between {
    /// For tables and series.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

impl How {
    /// For tables and series.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Involuntary => "involuntary",
            Self::Yield => "yield",
            Self::HandOff => "hand-off",
        }
    }
}

/// One kind of switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectRow {
    /// Between what.
    pub between: Between,
    /// How.
    pub how: How,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Numbers.
    Measured(Box<Direct>),
    /// None, and why.
    Refused {
        /// Why, and what to try.
        reason: String,
    },
}

/// Times of one kind of switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Direct {
    /// Name of its series: all switches of the part without tracing.
    pub series: String,
    /// Runners.
    pub runners: u32,
    /// Their policy.
    pub policy: String,
    /// CPU time after which a runner gives the CPU up; none where the kernel takes it.
    #[serde(rename = "after_ns")]
    pub after: Option<Nanos>,
    /// Length of the part without tracing.
    #[serde(rename = "over_ns")]
    pub over: Nanos,
    /// Times in the part without tracing, told apart by rule R1 alone.
    pub times: SwitchTimes,
    /// The kernel's own count of its runners' switches in the same part.
    pub kernel: KernelCount,
    /// The part with the kernel's trace on, told apart by its events; none without a trace.
    pub traced: Option<Traced>,
    /// How long a runner kept the CPU, where the kernel decided; none without a switch.
    pub quantum: Option<Quantum>,
    /// The cost in repetitions in turns with those of the other kinds; none where there was one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<Repetitions>,
}

impl Direct {
    /// The 95 % interval of the cost to expect: within the dense cluster of all switches or over
    /// repetitions, whichever is wider; none where neither is known.
    #[must_use]
    pub fn interval(&self) -> Option<(Nanos, Nanos)> {
        let over = self.repetitions.as_ref().and_then(|of| of.interval);
        let both = [self.times.cluster_interval, over].into_iter().flatten();
        both.max_by_key(|(low, high)| high.0.saturating_sub(low.0))
    }
}

/// The cost to expect in each of several repetitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repetitions {
    /// Median of the dense cluster of each, in the order of time; of those that have one.
    #[serde(rename = "medians_ns")]
    pub medians: Vec<Nanos>,
    /// 95 % interval of the cost to expect by Student's t over them; none of fewer than two.
    #[serde(rename = "interval_ns")]
    pub interval: Option<(Nanos, Nanos)>,
}

/// Times of context switches: from the last reading of one runner to the first of the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchTimes {
    /// Switches.
    pub n: u64,
    /// The shortest: the fastest path through the switching code.
    #[serde(rename = "shortest_ns")]
    pub shortest: Nanos,
    /// Median of the dense cluster near the shortest: the cost to expect; none without one.
    #[serde(rename = "cluster_median_ns")]
    pub cluster_median: Option<Nanos>,
    /// Its 95 % interval, by order statistics; none where the cluster is too small for one.
    #[serde(rename = "cluster_interval_ns")]
    pub cluster_interval: Option<(Nanos, Nanos)>,
    /// Switches in the cluster.
    pub in_cluster: u64,
    /// Switches with something else in them: by R1 those over twice the cost to expect, by the trace
    /// those with another thread or interrupt in them. None where neither can tell.
    pub contaminated: Option<u64>,
    /// Median of all; none where the sample is too small for it.
    #[serde(rename = "p50_ns")]
    pub p50: Option<Nanos>,
    /// 99th percentile of all; none where the sample is too small for it.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Nanos>,
    /// The longest of all.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

/// How often the kernel says that the runners were switched out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelCount {
    /// `nvcsw`: it slept.
    pub voluntary: u64,
    /// `nivcsw`: it was still runnable. The kernel counts `sched_yield` here.
    pub involuntary: u64,
}

/// Switches told apart by the kernel's events.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traced {
    /// Times of those that were what was asked for, with nothing else in them; `contaminated` of
    /// all. None where there was none.
    pub times: Option<SwitchTimes>,
    /// All switches of this part.
    pub switches: u64,
    /// One switch from runner to runner, which was still runnable.
    pub runnable: u64,
    /// One switch from runner to runner, which slept.
    pub sleeping: u64,
    /// Of all, with a timer interrupt before the switch.
    pub with_tick: u64,
    /// With another interrupt in them.
    pub with_interrupt: u64,
    /// With another thread in between.
    pub with_others: u64,
    /// In which the trace shows no switch.
    pub unseen: u64,
}

/// How long the kernel lets a runner run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantum {
    /// Turns that began and ended with a switch.
    pub turns: u64,
    /// Switches per second.
    #[serde(rename = "per_s")]
    pub per_second: f64,
    /// Median turn.
    #[serde(rename = "median_ns")]
    pub median: Nanos,
    /// Its 95 % interval; none with too few turns.
    #[serde(rename = "interval_ns")]
    pub interval: Option<(Nanos, Nanos)>,
}

/// The timer tick of a busy CPU, seen where it switched to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tick {
    /// Gaps with a timer interrupt and no switch.
    pub n: u64,
    /// Their median: what a tick takes from whoever runs, tracing included.
    #[serde(rename = "cost_ns")]
    pub cost: Nanos,
    /// Median distance between two interrupts of the timer, those that switched included.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
}

/// How trials were made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trials {
    /// CPU time after which a runner yields; none where the kernel's own quanta were left alone.
    #[serde(rename = "quantum_ns")]
    pub quantum: Option<Nanos>,
    /// Length of a trial.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// Runners of the larger trial of a pair.
    pub runners: u32,
    /// Good pairs wanted.
    pub wanted: u32,
    /// Pairs tried at most.
    pub most: u32,
    /// A break in which none of the runners had the CPU counts where it is longer than this.
    #[serde(rename = "longest_break_ns", default)]
    pub longest_break: Nanos,
    /// What a tick takes, which that lies above: traced, or of breaks that recur at its period; none
    /// where it was not found.
    #[serde(rename = "tick_ns", default)]
    pub tick: Option<Nanos>,
    /// A pair is discarded where the shares of time of its trials that such breaks took differ by more
    /// than this.
    #[serde(rename = "breaks_apart_share", alias = "host_share_apart")]
    pub breaks_apart: f64,
}

/// One working set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndirectRow {
    /// Size of each runner's working set, in bytes.
    pub bytes: u64,
    /// Pairs tried.
    pub tried: u32,
    /// Of them, discarded because longer breaks, in which none of the runners had the CPU, took more of
    /// one trial than of the other.
    pub discarded: u32,
    /// Of the discarded, those of which the kernel's count of stolen time says that it was the hypervisor.
    #[serde(default)]
    pub discarded_by_host: u32,
    /// Of them, discarded because nobody switched, or nothing was read.
    pub empty: u32,
    /// What came out; none where it was refused.
    pub penalty: Option<Penalty>,
    /// Why there is no number, or why it is not told from zero, or what cut its trials short.
    pub reason: Option<String>,
    /// What filling the caches again should take, by its size and the bandwidths that were measured;
    /// none where one of these is not known.
    pub refill: Option<Refill>,
    /// Passes over such a set, timed before the trials.
    #[serde(default)]
    pub passes: Option<TimedPasses>,
}

/// `C = ((W1 - W10)/W1) * (T/N10)`, over pairs of trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Penalty {
    /// Good pairs.
    pub pairs: u32,
    /// Mean penalty of a switch, ns; below zero where the larger trial did more work.
    pub mean_ns: f64,
    /// 95 % interval of it, Student's t over the pairs.
    pub interval_ns: (f64, f64),
    /// Each pair's.
    pub of_pairs_ns: Vec<f64>,
    /// Mean passes over the working set in a trial of one runner.
    pub passes_alone: f64,
    /// Mean passes of all runners together.
    pub passes_together: f64,
    /// Mean switches of a trial of all runners.
    pub switches: f64,
}

impl Penalty {
    /// Is it told from zero?
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.interval_ns.0 > 0.0 || self.interval_ns.1 < 0.0
    }
}

/// The penalties of larger working sets beside those of sets inside the first-level cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// The working sets inside the first-level cache; where its size is not known, the smallest one.
    #[serde(rename = "inside_bytes")]
    pub inside: Vec<u64>,
    /// Is the size of the first-level cache known?
    pub first_level_known: bool,
    /// Mean penalty of all their pairs, ns; none where they have no two good pairs.
    pub inside_ns: Option<f64>,
    /// Their good pairs.
    pub pairs: u32,
    /// Each larger working set, smallest first.
    pub beyond: Vec<Beyond>,
    /// The trend over all working sets in their order; none where too few pairs tell.
    pub trend: Option<Trend>,
}

/// A working set beside those inside the first-level cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beyond {
    /// Size of each runner's working set, in bytes.
    pub bytes: u64,
    /// How much more a switch costs there: the difference of the means; none where one is missing.
    pub more: Option<More>,
    /// Why it is not shown to grow; none where it is.
    pub reason: Option<String>,
}

/// A difference of two means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MeanDifference"))]
pub struct More {
    /// The difference, ns.
    pub mean_ns: f64,
    /// Its 95 % interval, Welch's t over the pairs, ns.
    pub interval_ns: (f64, f64),
}

impl More {
    /// Does the whole interval lie above zero?
    #[must_use]
    pub fn grows(&self) -> bool {
        self.interval_ns.0 > 0.0
    }
}

/// The trend of penalties over working sets in their order (Jonckheere and Terpstra).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trend {
    /// Working sets.
    pub sizes: u32,
    /// Good pairs of all of them.
    pub pairs: u32,
    /// Pairs of trials that rise with the working set less those that fall, in standard deviations.
    pub z: f64,
    /// Probability of that or more on either side where the penalty does not depend on the size.
    pub p_value: f64,
}

impl Trend {
    /// Is a rise shown at 95 %?
    #[must_use]
    pub fn rises(&self) -> bool {
        self.z > 0.0 && self.p_value < 0.05
    }
}

/// What filling the caches again should take: bytes by the bandwidth of where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refill {
    /// The level of the smallest cache that holds one set; none for memory.
    pub warm_from: Option<u8>,
    /// That of the smallest that holds the sets of all runners; none for memory.
    pub cold_from: Option<u8>,
    /// A pass over a set that stays where one set fits, ns.
    pub warm_ns: f64,
    /// A pass over a set that is to be had from where all of them fit, ns.
    pub cold_ns: f64,
    /// The share of a cold pass that a runner comes through in its turn; 1 where it reads all of it.
    #[serde(rename = "reached_share")]
    pub reached: f64,
    /// `reached` times the difference of the two: the penalty to expect, ns.
    pub predicted_ns: f64,
}

/// Passes over a working set of this machine, timed. They say what a pass takes, and predict nothing: the
/// cold one is the very thing whose cost is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimedPasses {
    /// A pass over a working set that was just read, ns.
    pub warm_ns: f64,
    /// A pass after the other nine were read through, ns.
    pub cold_ns: f64,
    /// The difference of the two, as far as a runner comes in its turn, ns.
    pub difference_ns: f64,
}

/// How fast a level of memory is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadBandwidth {
    /// The level of the cache; none for memory.
    pub level: Option<u8>,
    /// Size of the set that is read over and over: it fits into this level, and not into those before.
    pub bytes: u64,
    /// Bytes in a nanosecond, by the median piece of the set; none where it was not measured.
    pub gb_per_s: Option<f64>,
    /// Pieces that were timed.
    pub pieces: u64,
    /// Why it was not measured.
    pub reason: Option<String>,
}
