//! What is known of the counter that a run was measured by: its frequency, its relation to wall time and
//! between CPUs, and what reading it costs.

use serde::{Deserialize, Serialize};

use crate::units::{CpuId, Hertz, Ticks, TicksDelta};

/// The clock of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFacts {
    /// Kind of counter: `tsc`, `cntvct_el0`, `mock`.
    pub counter: String,
    /// Frequency used for every conversion of this run.
    pub hz: Hertz,
    /// Bound of its error in parts per million.
    pub hz_bound_ppm: f64,
    /// Every source of the frequency there was.
    pub sources: Vec<FrequencySource>,
    /// How the frequency moved over the run, where that could be told.
    #[serde(default)]
    pub drift: Option<Drift>,
    /// No reading behind the frequency lies further from its course.
    #[serde(default)]
    pub jitter_ns: Option<f64>,
    /// The counter's reading that tables of this run count from.
    #[serde(rename = "epoch_ticks")]
    pub epoch: Ticks,
    /// Relation to wall time at start and end.
    pub anchors: Vec<Anchor>,
    /// Cost of one read: smallest.
    pub read_cost_min_ns: f64,
    /// Cost of one read: median.
    pub read_cost_median_ns: f64,
    /// Smallest step seen.
    pub resolution_ns: f64,
    /// Largest bound of the offset between measured CPUs; none with one CPU.
    pub cross_cpu: Vec<CpuOffset>,
    /// Cost of recording one gap: median.
    pub gap_recording_ns: Option<f64>,
    /// Cost of recording one sample: median.
    pub sample_recording_ns: Option<f64>,
}

impl ClockFacts {
    /// `CLOCK_REALTIME` at `at`, in nanoseconds since 1970, by the nearest anchor; none without one.
    #[must_use]
    pub fn realtime_ns(&self, at: Ticks) -> Option<u64> {
        let anchor = self.anchors.iter().min_by_key(|anchor| anchor.ticks.0.abs_diff(at.0))?;
        let distance = TicksDelta(at.0.abs_diff(anchor.ticks.0)).to_nanos(self.hz).0;
        if at < anchor.ticks {
            anchor.realtime_ns.checked_sub(distance)
        } else {
            anchor.realtime_ns.checked_add(distance)
        }
    }
}

/// One source of the counter's frequency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrequencySource {
    /// `perf mmap page`, `cpuid 15h`, `cpuid 40000010h`, `cntfrq_el0`, `regression`.
    pub name: String,
    /// What it says.
    pub hz: Hertz,
    /// Bound of its error, where it states one.
    pub bound_ppm: Option<f64>,
    /// Does it rest on something else than the source used?
    pub independent: bool,
    /// Difference from the frequency used.
    pub difference_ppm: f64,
}

/// A steady change of the frequency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// Parts per million per second.
    pub ppm_per_s: f64,
    /// Bound of its error.
    pub bound_ppm_per_s: f64,
}

/// A pair of readings, counter and wall clock, and how far apart they may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Anchor {
    /// Counter.
    pub ticks: Ticks,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub raw_ns: u64,
    /// Half the width of the sandwich.
    pub bound_ns: f64,
}

/// Offset of one CPU's counter against another's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuOffset {
    /// The reference.
    pub reference: CpuId,
    /// The other.
    pub cpu: CpuId,
    /// Other minus reference, in ticks, at the start of the run.
    pub offset_ticks: i64,
    /// Bound: two stamps closer than this cannot be ordered.
    #[serde(rename = "bound_ticks")]
    pub bound: TicksDelta,
    /// The offset again at the end of the run.
    #[serde(rename = "offset_at_end_ticks")]
    pub offset_ticks_at_end: Option<i64>,
}
