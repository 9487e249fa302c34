//! `run.json`: what was asked, on which host, by which clock, and what came out.

use serde::{Deserialize, Serialize};

use crate::backends::Backends;
use crate::breakdown::Watched;
use crate::calibration::Calibration;
use crate::calibration_parts::CalibrationParts;
use crate::cause::{CauseTotal, Coverage, Rule, SenderTotal, Validation, WorstGap};
use crate::delay::DelayLine;
use crate::device::Device;
use crate::digest::Digest;
use crate::flow::Flow;
use crate::foreign::ForeignThread;
use crate::forward::Forward;
use crate::host::Fingerprint;
use crate::load::LoadFacts;
use crate::origin::{Origin, Spread};
use crate::prediction::Prediction;
use crate::reflect::Reflected;
use crate::series::{Series, shown_label};
use crate::settings::Settings;
use crate::switch_cost::SwitchCost;
use crate::threads::ThreadSummary;
use crate::trust::Files;
use crate::units::{CpuId, Nanos, Ticks, TicksDelta};
use crate::wake::WakeSummary;
use crate::warning::Warning;

mod beginning;
mod clock;
mod latencies;
mod measured;
mod moved;
mod no_event;
mod selftest;
mod stays;
mod wall;
pub use beginning::Beginning;
pub use clock::{Anchor, ClockFacts, CpuOffset, Drift, FrequencySource};
pub(crate) use latencies::of_either;
pub use moved::{Moved, MovedOff};
pub use no_event::BORNE_OUT;
pub use selftest::{SelfTest, SelfTestKind};

/// The format of `run.json` that this version writes and the newest it reads. Version 2 may still change,
/// until a run of every kind is a head and parts; version 1 is read for ever.
pub const FORMAT_VERSION: u32 = 2;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Version of this format.
    pub format_version: u32,
    /// Version of the tool that wrote it.
    pub tool_version: String,
    /// The command line.
    pub command_line: Vec<String>,
    /// What was asked, in one sentence.
    pub question: String,
    /// Random seed.
    pub seed: u64,
    /// How far the run came.
    pub state: RunState,
    /// The machine.
    pub host: Fingerprint,
    /// The clock.
    pub clock: ClockFacts,
    /// Settings by name, as used (not as asked).
    pub settings: Settings,
    /// What was measured.
    pub series: Vec<Series>,
    /// Gap measurement, one entry per measuring thread.
    pub gaps: Vec<GapSummary>,
    /// A set of threads, in the order of the set; empty for other runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadSummary>,
    /// How late the threads of a set that do nothing else were woken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<WakeSummary>,
    /// Lost time by cause.
    #[serde(with = "crate::cause::stored")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::cause::stored::Stored>"))]
    pub causes: Vec<CauseTotal>,
    /// How much of it is explained.
    pub coverage: Option<Coverage>,
    /// The longest gaps.
    pub worst: Vec<WorstGap>,
    /// Who sent interrupts and wake-ups to the measured CPUs.
    #[serde(default)]
    pub senders: Vec<SenderTotal>,
    /// Threads of other processes among the causes, and their processes; empty in runs of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_threads: Vec<ForeignThread>,
    /// What was moved off the measured CPUs, where that was asked for and possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved_off: Vec<MovedOff>,
    /// What the evidence was.
    pub evidence: Evidence,
    /// Conclusions of the inference rules.
    pub findings: Vec<Finding>,
    /// Evidence B against evidence A, where `--verify-causes` asked for it.
    pub validation: Option<Validation>,
    /// Self-test with injected interruptions, where asked for.
    pub selftest: Option<SelfTest>,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// The verdict.
    pub verdict: Verdict,
    /// Closed segments, oldest first.
    pub segments: Vec<Segment>,
    /// Bytes of the histogram log that this file counts; what a run that was killed wrote after its
    /// last checkpoint lies beyond. None: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Digest of these bytes of the histogram log; none in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_digest: Option<Digest>,
    /// Captures of packets and lines of a paper beside it, as they were when the run ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Capture>,
    /// The recordings that this run is the sum of; empty for a recording. Ticks of this file are
    /// then nanoseconds, but for those inside the origins and in the segments.
    #[serde(default)]
    pub origins: Vec<Origin>,
    /// How far the numbers of a sum may lie from the truth, within its recordings and between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
    /// What theory predicted for a set of threads, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    /// Load made on purpose beside what was measured, in the order in which it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadFacts>,
    /// Requests and replies, flow by flow; empty for other runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// What a context switch costs, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_cost: Option<SwitchCost>,
    /// What a reflector did, where this is its recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflected: Option<Box<Reflected>>,
    /// The same requests over several backends, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backends: Option<Box<Backends>>,
    /// What a forwarder did, where this is its recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Box<Forward>>,
    /// What a delay line did, where this is its recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Box<DelayLine>>,
    /// A process that knows nothing of it, and where its requests spent their time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Box<Watched>>,
    /// How close the backends of this machine come to the truth, where this is a calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Box<Calibration>>,
    /// What stands behind that, part by part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_parts: Option<Box<CalibrationParts>>,
    /// What a box between two ports does to latency, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Box<Device>>,
    /// The state of its files as whoever read it found them; no part of the file.
    #[serde(skip)]
    pub files: Files,
}

impl Run {
    /// Is it the sum of several recordings? Raw ticks are then read with the clocks of its origins.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Did the threads of the set do nothing but wake?
    #[must_use]
    pub fn only_wakes(&self) -> bool {
        !self.wakes.is_empty() && self.wakes.len() == self.threads.len()
    }

    /// How a report calls a measuring thread: by its CPU, or by what else tells it from the others.
    #[must_use]
    pub fn thread_name(&self, gaps: &GapSummary) -> String {
        let series = self.series.iter().find(|series| series.name == gaps.series);
        match series.map(|series| series.label.as_str()) {
            Some(label) => {
                let label = shown_label(label);
                label.strip_prefix("stalls, ").unwrap_or(&label).to_owned()
            }
            None => format!("CPU {}", gaps.cpu),
        }
    }
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Being measured, or killed while it was: good up to the last checkpoint.
    Running,
    /// Ended by itself.
    Complete,
    /// Ended early by the user or by a stated limit; everything collected.
    Stopped,
}

/// The gap measurement of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapSummary {
    /// CPU the thread was pinned to, or the CPU it began on when floating.
    pub cpu: CpuId,
    /// Name of its series.
    pub series: String,
    /// Which loop.
    pub loop_kind: LoopKind,
    /// Start of the measurement, after the warm-up.
    #[serde(rename = "start_ticks")]
    pub start: Ticks,
    /// End.
    #[serde(rename = "end_ticks")]
    pub end: Ticks,
    /// Iterations of the loop.
    pub iterations: u64,
    /// Threshold in ticks.
    #[serde(rename = "threshold_ticks")]
    pub threshold: TicksDelta,
    /// Where the threshold came from.
    pub threshold_rule: String,
    /// Median of the means of gap-free blocks, in ticks.
    pub period_ticks: f64,
    /// Spread of those means: p10 and p90, in ticks.
    pub period_spread_ticks: (f64, f64),
    /// Gap-free blocks behind the period.
    pub blocks: u64,
    /// Gaps seen.
    pub gaps: u64,
    /// Gaps seen but not kept one by one.
    pub dropped: u64,
    /// Gaps that came with a change of CPU.
    pub migrations: u64,
    /// Time in gaps, in ticks.
    pub gap_ticks: TicksDelta,
    /// Time recording them, in ticks.
    pub recording_ticks: TicksDelta,
    /// Time between pairs, which `pair` does not see; zero for `chain`.
    pub unseen_ticks: TicksDelta,
    /// Did the closure hold?
    pub closure: Closure,
    /// Gap-free time below the threshold against the period, as a share of elapsed.
    #[serde(rename = "noise_below_threshold_share")]
    pub noise_below_threshold: f64,
    /// Lost time: sum of gap minus period.
    #[serde(rename = "lost_ns")]
    pub lost: Nanos,
    /// Lost share of elapsed.
    pub lost_share: f64,
    /// 95 % interval of the lost share by block bootstrap over the intervals.
    #[serde(rename = "lost_interval_share")]
    pub lost_share_interval: Option<(f64, f64)>,
    /// What counting every delta adds to the loop, where every delta is counted.
    #[serde(default)]
    pub counting: Option<CountingCost>,
    /// Gaps per second of at least the usual lengths, with 95 % intervals.
    pub rates: Vec<Rate>,
    /// Time-weighted quantiles: the gap length above which the given share of elapsed was lost.
    pub time_weighted: Vec<TimeWeighted>,
    /// Share of time in gaps of at least 1, 10, 100 and 1000 us.
    #[serde(default)]
    pub time_shares: Vec<TimeShare>,
    /// Lost time per interval of one second, in nanoseconds.
    pub interval_lost_ns: Vec<f64>,
}

/// The closure of one thread's intervals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Closure {
    /// Ordered, disjoint, inside [start, end], none dropped.
    Holds,
    /// It does not, and why.
    Broken(String),
    /// Records were dropped: only the sums close.
    SumsOnly,
}

/// Which loop measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// One read per iteration: Listing 1.2 of the PAM paper, Figure 2 of Hourglass.
    Chain,
    /// Two reads back to back: Listing 1.1 of the PAM paper.
    Pair,
}

/// A rate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// Gaps of at least this length.
    #[serde(rename = "at_least_ns")]
    pub at_least: Nanos,
    /// How many.
    pub count: u64,
    /// Per second.
    #[serde(rename = "per_s")]
    pub per_second: f64,
    /// 95 % interval per second, by block bootstrap over the intervals of time and never narrower
    /// than that of independent events; with no event the upper end is 3/T.
    #[serde(rename = "interval_per_s")]
    pub interval: (f64, f64),
}

/// One point of the time-weighted view.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeWeighted {
    /// Share of the elapsed time spent outside gaps longer than `value`, in percent.
    pub percent: f64,
    /// The gap length.
    #[serde(rename = "value_ns")]
    pub value: Nanos,
}

/// Share of time in gaps of at least a length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeShare {
    /// The length.
    #[serde(rename = "at_least_ns")]
    pub at_least: Nanos,
    /// Share of the elapsed time.
    #[serde(rename = "of_elapsed_share")]
    pub of_elapsed: f64,
    /// Share of the time inside the readings: the elapsed time without recording and without what
    /// falls between pairs.
    #[serde(rename = "of_inside_share")]
    pub of_inside: f64,
}

/// The cost of counting every delta, from the warm-up: its parts share the machine's state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountingCost {
    /// Period of the loop when it counts, in ticks.
    #[serde(rename = "period_with_ticks")]
    pub period_with: f64,
    /// Period of the same loop when it does not.
    #[serde(rename = "period_without_ticks")]
    pub period_without: f64,
}

/// What evidence a run had.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Kernel trace (evidence A), where there was one.
    pub trace: Option<TraceFacts>,
    /// The kernel trace by which messages were followed, where they were; it is `trace` too, where there was
    /// no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<TraceFacts>,
    /// The rseq word passed its self-test.
    pub rseq: bool,
    /// The time that the counters below cover: the measurement, without set-up and warm-up before
    /// it. None where it is not known.
    #[serde(rename = "counted_over_ns", default)]
    pub counted_over: Option<Nanos>,
    /// Counters of /proc over the run, by name and CPU.
    pub proc_deltas: Vec<ProcDelta>,
    /// Steal time of the measured CPUs over the run.
    pub steal_ns: Option<f64>,
    /// The same of each CPU that shows it; empty in runs of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steal_by_cpu: Vec<CpuSteal>,
    /// System management interrupts over the run, where readable.
    pub smi_count: Option<u64>,
}

/// Steal time of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuSteal {
    /// CPU.
    pub cpu: CpuId,
    /// Increase over the run, in steps of the kernel's tick.
    pub steal_ns: f64,
}

/// A counter of /proc/interrupts or /proc/softirqs over the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcDelta {
    /// File and row: `interrupts LOC`, `softirqs NET_RX`.
    pub name: String,
    /// CPU.
    pub cpu: CpuId,
    /// Increase over the run.
    pub count: u64,
}

/// The kernel trace of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceFacts {
    /// `x86-tsc`, `mono_raw`.
    pub clock: String,
    /// Event groups that were on.
    pub events: Vec<String>,
    /// Event groups that were asked for and do not exist here.
    pub missing: Vec<String>,
    /// Events read from measured CPUs.
    pub events_measured: u64,
    /// Of those, inside a recorded gap.
    pub events_in_gaps: u64,
    /// Beside those, inside the recording of a gap, where the loop knows it was not running.
    #[serde(default)]
    pub events_in_recording: u64,
    /// Events read from other CPUs.
    pub events_elsewhere: u64,
    /// Events the kernel lost on measured CPUs: at least so many.
    pub lost: u64,
    /// The same by CPU, for those that lost any.
    #[serde(default)]
    pub losses: Vec<TraceLoss>,
    /// Events lost where senders of interrupts and wake-ups are recorded: at least so many.
    #[serde(default)]
    pub lost_elsewhere: u64,
    /// What the bounds of the attribution's memory cost.
    #[serde(default)]
    pub shed: Shed,
    /// Lost share of the CPUs with tracing, interleaved with `lost_share_without`.
    #[serde(rename = "lost_with_share")]
    pub lost_share_with: Option<f64>,
    /// Lost share without tracing.
    #[serde(rename = "lost_without_share")]
    pub lost_share_without: Option<f64>,
    /// The difference between the two, from pairs of slices.
    #[serde(default)]
    pub lost_share_difference: Option<PairedDifference>,
}

/// A difference between neighbouring slices of time, with and without something.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedDifference {
    /// Pairs.
    pub pairs: u64,
    /// Mean of with minus without.
    #[serde(rename = "mean_share")]
    pub mean: f64,
    /// 95 % interval of the mean: Student's t over the pairs.
    #[serde(rename = "interval_share")]
    pub interval: (f64, f64),
}

impl PairedDifference {
    /// Is a difference shown, or may it be none?
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.interval.0 > 0.0 || self.interval.1 < 0.0
    }
}

/// Events that the kernel's trace lost on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceLoss {
    /// The CPU.
    pub cpu: CpuId,
    /// At least so many.
    pub events: u64,
    /// Exactly so many: the kernel gave a number each time.
    pub exactly: bool,
}

/// What the bounds of the attribution's memory cost. Gaps they touch are named `trace lost`, not
/// the hypervisor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shed {
    /// Sends of interrupts and wake-ups dropped before they could be matched.
    pub sends: u64,
    /// Gaps taken apart before their events were complete.
    pub gaps_forced: u64,
    /// Events left out of the worst gaps' lists; their parts are worked out from all of them.
    pub events_cut: u64,
    /// Gaps that came out of order.
    pub gaps_disordered: u64,
    /// Events of CPUs that were not traced; not used.
    pub foreign: u64,
}

/// What a rule concluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// CPU, where it is about one.
    pub cpu: Option<CpuId>,
    /// What it shows, in one sentence with its numbers.
    pub text: String,
    /// Stated confidence.
    pub confidence: Confidence,
}

/// How sure a rule is, from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// By construction.
    Certain,
    /// The evidence supports it and nothing speaks against it.
    Likely,
    /// It fits.
    Possible,
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Measured, and the numbers can be trusted as far as their intervals say.
    Trustworthy,
    /// A stated limit was exceeded.
    LimitExceeded {
        /// Which and by what.
        what: String,
        /// Of a sum: why its numbers cannot be trusted, beside that.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
    },
    /// The numbers cannot be trusted.
    Untrustworthy {
        /// Why.
        reasons: Vec<String>,
    },
    /// Not known yet: the run has not ended.
    Pending,
}

impl Verdict {
    /// Why its numbers cannot be trusted.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        match self {
            Self::Untrustworthy { reasons } | Self::LimitExceeded { reasons, .. } => reasons,
            Self::Trustworthy | Self::Pending => &[],
        }
    }
}

/// A closed segment file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// File name in the run directory.
    pub file: String,
    /// Rows.
    pub rows: u64,
    /// First tick covered.
    #[serde(rename = "from_ticks")]
    pub from: Ticks,
    /// Last tick covered.
    #[serde(rename = "to_ticks")]
    pub to: Ticks,
    /// Size in bytes.
    pub bytes: u64,
    /// Digest of these bytes; none in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// A capture of packets, or another file that is kept beside the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capture {
    /// File name in the run directory.
    pub file: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Digest of these bytes.
    pub digest: Digest,
}
