//! How late threads that do nothing else were woken, and what each late wake-up waited for.

use serde::{Deserialize, Serialize};

use crate::cause::{Cause, Part};
use crate::units::{CpuId, Nanos, Ticks};

/// Lateness that wake-ups are counted beyond: the columns of Table 1 of the Hourglass paper.
pub const LATER_THAN: [Nanos; 4] =
    [Nanos(1_000_000), Nanos(5_000_000), Nanos(10_000_000), Nanos(50_000_000)];

/// The wake-ups of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeSummary {
    /// Name of the thread.
    pub thread: String,
    /// Its timer, such as `clock_nanosleep absolute`.
    pub timer: String,
    /// CPUs it was allowed on.
    pub cpus: Vec<CpuId>,
    /// Time between two activations.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Wake-ups.
    pub woken: u64,
    /// Activations that had passed when the thread woke; none for a schedule that starts anew with
    /// each wake-up, which skips nothing.
    pub skipped: Option<u64>,
    /// Wake-ups later than the lengths of [`LATER_THAN`].
    pub later: Vec<LaterThan>,
    /// Where their lateness went, longest first.
    pub split: Vec<WakePart>,
    /// Their causes, most frequent first. A wake-up whose instant had passed before the
    /// thread began to wait has no name.
    pub causes: Vec<WakeCause>,
    /// Lateness of all wake-ups.
    pub late_ns: f64,
    /// The latest ones, latest first.
    pub latest: Vec<LateWake>,
}

/// A smaller share of the latency is not told as unknown: parts are exact, and all of it is from a histogram.
const LEAST_UNKNOWN: f64 = 0.005;

impl WakeSummary {
    /// The share of all latency that each stage took, the largest first, with the longest time that it took of one
    /// wake-up. What no part tells is unknown, and of no longest. Empty where nothing is known.
    #[must_use]
    pub fn shares(&self) -> Vec<(WakeStage, f64, Option<Nanos>)> {
        let known: f64 = self.split.iter().map(|part| part.total_ns).sum();
        let all = self.late_ns.max(known).max(1.0);
        let parts = self.split.iter().filter(|part| part.total_ns > 0.0);
        let mut shares: Vec<_> =
            parts.map(|part| (part.stage, part.total_ns / all, Some(part.most))).collect();
        let rest = (all - known) / all;
        if !shares.is_empty() && rest >= LEAST_UNKNOWN {
            match shares.iter_mut().find(|of| of.0 == WakeStage::Unknown) {
                Some(unknown) => unknown.1 += rest,
                None => shares.push((WakeStage::Unknown, rest, None)),
            }
        }
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

/// How many wake-ups were later than a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaterThan {
    /// The length.
    #[serde(rename = "than_ns")]
    pub than: Nanos,
    /// As they were measured: a thread that woke late once counts once.
    pub raw: u64,
    /// With each skipped activation at its own lateness; none where nothing is skipped.
    pub corrected: Option<u64>,
    /// Of those as measured, how many would have been as late without what the hypervisor took of them;
    /// none where the kernel's trace does not tell.
    #[serde(default)]
    pub without_host: Option<u64>,
    /// Of these again, how many would not without what came before the kernel woke the thread: a timer
    /// that fired late and the exit from idle, of which on a virtual machine nobody knows how much the
    /// host took. 0 on hardware; none where the trace does not tell.
    #[serde(default)]
    pub perhaps_host: Option<u64>,
}

/// Where the time of late wake-ups went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WakeStage {
    /// The timer had not fired while another thread had the CPU.
    TimerLate,
    /// The CPU left idle.
    IdleExit,
    /// Interrupts and NMIs.
    Interrupt,
    /// Softirqs.
    Softirq,
    /// Another thread, after the wake-up.
    OtherThread,
    /// The hypervisor or the firmware.
    Host,
    /// The kernel's own way to the thread and into it.
    Kernel,
    /// Not known.
    Unknown,
}

impl WakeStage {
    /// Where a part of a late wake-up belongs.
    #[must_use]
    pub fn of(cause: &Cause) -> Self {
        match cause {
            Cause::TimerLate => Self::TimerLate,
            Cause::IdleExit => Self::IdleExit,
            Cause::Interrupt { .. } | Cause::Tick | Cause::Nmi => Self::Interrupt,
            Cause::Softirq { .. } => Self::Softirq,
            Cause::Thread { .. }
            | Cause::Member { .. }
            | Cause::Whylate
            | Cause::Throttled
            | Cause::Blocked
            | Cause::Stopped => Self::OtherThread,
            Cause::Host | Cause::Hypervisor | Cause::Firmware => Self::Host,
            Cause::EntryResidual
            | Cause::InnerResidual
            | Cause::ExitResidual
            | Cause::PageFault
            | Cause::Signal { .. } => Self::Kernel,
            Cause::TraceLost
            | Cause::ContextSwitch
            | Cause::NotSwitched
            | Cause::Migration
            | Cause::OwnDemand
            | Cause::LeftOver
            | Cause::Unknown => Self::Unknown,
        }
    }
}

/// A word for the head of a column.
impl std::fmt::Display for WakeStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::TimerLate => "timer",
            Self::IdleExit => "idle",
            Self::Interrupt => "irq",
            Self::Softirq => "softirq",
            Self::OtherThread => "threads",
            Self::Host => "no event",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
        })
    }
}

/// The time of one stage, over all wake-ups of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakePart {
    /// Which stage.
    pub stage: WakeStage,
    /// Its time in all wake-ups.
    pub total_ns: f64,
    /// Wake-ups that had some of it.
    pub wakes: u64,
    /// Most of it in one wake-up.
    #[serde(rename = "most_ns")]
    pub most: Nanos,
}

/// How many wake-ups have one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeCause {
    /// The part with the largest share of them.
    pub cause: Cause,
    /// How many.
    pub wakes: u64,
    /// Their lateness in all.
    pub late_ns: f64,
    /// The latest.
    #[serde(rename = "latest_ns")]
    pub latest: Nanos,
    /// How many of them were later than each length of [`LATER_THAN`]; empty where that was not
    /// counted.
    #[serde(default)]
    pub later: Vec<u64>,
}

/// One late wake-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LateWake {
    /// The instant that it was for.
    #[serde(rename = "intended_ticks")]
    pub intended: Ticks,
    /// How late the thread ran.
    #[serde(rename = "late_ns")]
    pub late: Nanos,
    /// Its cause.
    pub cause: Cause,
    /// Where the time went; the parts sum to the lateness.
    pub parts: Vec<Part>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::directory::parse_run;

    /// A wake-up summary in which so much of the latency is known.
    fn of(late_ns: f64, parts: &[(WakeStage, f64)]) -> WakeSummary {
        let json = include_str!("../../../tests/runs/wake/run.json");
        let mut wake = parse_run(Path::new("run.json"), json.as_bytes()).unwrap().wakes.remove(0);
        wake.late_ns = late_ns;
        let part = |(stage, total_ns): &(WakeStage, f64)| WakePart {
            stage: *stage,
            total_ns: *total_ns,
            wakes: 1,
            most: Nanos(7),
        };
        wake.split = parts.iter().map(part).collect();
        wake
    }

    #[test]
    fn shares_are_of_all_latency_and_what_no_part_tells_is_unknown() {
        use WakeStage::{IdleExit, Interrupt, Unknown};
        let told = |of: &WakeSummary| -> Vec<(WakeStage, u32, bool)> {
            let shares = of.shares().into_iter();
            shares
                .map(|(of, share, most)| (of, (share * 1e3).round() as u32, most.is_some()))
                .collect()
        };
        let parts = [(Interrupt, 1e6), (IdleExit, 3e6)];
        assert_eq!(told(&of(4e6, &parts)), [(IdleExit, 750, true), (Interrupt, 250, true)]);
        let half = [(Unknown, 500, false), (IdleExit, 375, true), (Interrupt, 125, true)];
        assert_eq!(told(&of(8e6, &parts)), half);
        let with = [(Interrupt, 1e6), (IdleExit, 3e6), (Unknown, 1e6)];
        let added = [(Unknown, 500, true), (IdleExit, 375, true), (Interrupt, 125, true)];
        assert_eq!(told(&of(8e6, &with)), added);
        // A histogram may have a little less than the parts: they are all of it then, and no more.
        let sum = |of: &WakeSummary| of.shares().iter().map(|of| of.1).sum::<f64>();
        for late_ns in [0.0, 3.99e6, 4e6, 4.01e6, 4.1e6, 40e6] {
            let sum = sum(&of(late_ns, &parts));
            assert!((0.995..=1.0 + 1e-9).contains(&sum), "{late_ns}: {sum}");
        }
        assert_eq!(told(&of(4.01e6, &parts)).len(), 2, "what reading a histogram adds is no cause");
        assert_eq!(told(&of(4e6, &[])), []);
    }
}
