//! Settings of a recording, as used: each a value of its own kind, and in words only where it is shown.
//!
//! What came out is no setting and has a field of its own. A setting that nothing but words can say stands in
//! the closed list [`IN_WORDS`]; what a recorder stores beside it is found by [`unfit`].

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::CpuList;
use crate::units::{CpuId, Nanos};

mod words;

pub use words::{IN_WORDS, InWords, May, unfit};

/// Settings by name.
pub type Settings = BTreeMap<String, Setting>;

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// A length of time.
    TimeNs(Nanos),
    /// Several lengths of time, in the order in which they were used.
    TimesNs(Vec<Nanos>),
    /// How many.
    Count(u64),
    /// How many a second.
    RatePerS(f64),
    /// How large.
    SizeBytes(u64),
    /// Is it in force?
    On(bool),
    /// CPUs; an empty list where none is left for it.
    Cpus(Vec<CpuId>),
    /// How the kernel was to schedule threads, in their order.
    Policies(Vec<Policy>),
    /// Where a thread ran, and how it was scheduled.
    Thread(Placed),
    /// Where measuring threads ran.
    Placement(Placement),
    /// A word or a sentence.
    Words(String),
}

/// How the kernel schedules a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// As it does without being asked: `SCHED_OTHER`.
    Ordinary,
    /// `SCHED_FIFO`.
    Fifo {
        /// From 1 to 99.
        priority: u8,
    },
}

/// Where and how a thread, or threads of one kind, ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ThreadPlaced"))]
pub struct Placed {
    /// Its CPUs; empty where it may run on any.
    pub cpus: Vec<CpuId>,
    /// How it is scheduled.
    pub policy: Policy,
}

/// Where measuring threads ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ThreadPlacement"))]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One on each of these CPUs.
    Pinned {
        /// The CPUs.
        cpus: Vec<CpuId>,
    },
    /// So many, wherever the scheduler put them.
    Floating {
        /// Threads.
        threads: u64,
        /// The CPUs that they might use.
        cpus: Vec<CpuId>,
    },
}

impl Policy {
    /// `SCHED_FIFO` at that priority; the ordinary policy without one.
    #[must_use]
    pub fn fifo(priority: Option<u8>) -> Self {
        priority.map_or(Self::Ordinary, |priority| Self::Fifo { priority })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordinary => f.pad("SCHED_OTHER"),
            Self::Fifo { priority } => f.pad(&format!("SCHED_FIFO {priority}")),
        }
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match joined(&self.cpus, " and ") {
            none if none.is_empty() => f.write_str("any CPU, ")?,
            cpus => write!(f, "CPU {cpus}, ")?,
        }
        match self.policy {
            Policy::Ordinary => f.write_str("ordinary"),
            fifo @ Policy::Fifo { .. } => fifo.fmt(f),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned { cpus } => write!(f, "pinned to {}", CpuList(cpus)),
            Self::Floating { threads, cpus } => {
                write!(f, "{threads} floating on {}", CpuList(cpus))
            }
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeNs(time) => time.fmt(f),
            Self::TimesNs(times) => f.pad(&joined(times, ", ")),
            Self::Count(count) => count.fmt(f),
            Self::RatePerS(rate) => f.pad(&format!("{}/s", shortest(*rate))),
            Self::SizeBytes(bytes) => f.pad(&format!("{bytes} bytes")),
            Self::On(on) => f.pad(if *on { "yes" } else { "no" }),
            Self::Cpus(cpus) if cpus.is_empty() => f.pad("none left"),
            Self::Cpus(cpus) => CpuList(cpus).fmt(f),
            Self::Policies(policies) => f.pad(&joined(policies, ", ")),
            Self::Thread(placed) => placed.fmt(f),
            Self::Placement(placement) => placement.fmt(f),
            Self::Words(words) => f.pad(words),
        }
    }
}

/// A rate with no more than three digits behind its point.
fn shortest(rate: f64) -> String {
    let told = format!("{rate:.3}");
    told.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn joined<T: ToString>(all: &[T], between: &str) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

macro_rules! from {
    ($($kind:ty => $arm:expr),+ $(,)?) => {
        $(impl From<$kind> for Setting {
            fn from(value: $kind) -> Self {
                $arm(value)
            }
        })+
    };
}

from! {
    Nanos => Self::TimeNs,
    Vec<Nanos> => Self::TimesNs,
    u64 => Self::Count,
    bool => Self::On,
    String => Self::Words,
    Vec<CpuId> => Self::Cpus,
    Vec<Policy> => Self::Policies,
    Placed => Self::Thread,
    Placement => Self::Placement,
}

impl From<&str> for Setting {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl From<usize> for Setting {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<u32> for Setting {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_stored_with_its_kind_and_its_unit() {
        let stored = |setting: Setting| serde_json::to_string(&setting).unwrap();
        assert_eq!(stored(Nanos(1_000).into()), "{\"time_ns\":1000}");
        assert_eq!(stored(vec![Nanos(1), Nanos(20)].into()), "{\"times_ns\":[1,20]}");
        assert_eq!(stored(true.into()), "{\"on\":true}");
        assert_eq!(stored(vec![CpuId(3)].into()), "{\"cpus\":[3]}");
        assert_eq!(stored(7_u64.into()), "{\"count\":7}");
        assert_eq!(stored(Setting::RatePerS(0.5)), "{\"rate_per_s\":0.5}");
        assert_eq!(stored(Setting::SizeBytes(64)), "{\"size_bytes\":64}");
        let policies = vec![Policy::Ordinary, Policy::fifo(Some(50))];
        assert_eq!(
            stored(policies.into()),
            "{\"policies\":[\"ordinary\",{\"fifo\":{\"priority\":50}}]}"
        );
        let placed = Placed { cpus: vec![CpuId(1)], policy: Policy::Ordinary };
        assert_eq!(stored(placed.into()), "{\"thread\":{\"cpus\":[1],\"policy\":\"ordinary\"}}");
        let pinned = Placement::Pinned { cpus: vec![CpuId(1)] };
        assert_eq!(stored(pinned.into()), "{\"placement\":{\"pinned\":{\"cpus\":[1]}}}");
    }

    #[test]
    fn a_setting_of_each_kind_is_shown_with_its_unit() {
        let cpus = vec![CpuId(2), CpuId(3)];
        let fifo = Policy::fifo(Some(80));
        let cases: [(Setting, &str); 15] = [
            (Nanos(1_600_000_000).into(), "1.60s"),
            (vec![Nanos(1_000), Nanos(20_000)].into(), "1.00us, 20.0us"),
            (7_u64.into(), "7"),
            (Setting::RatePerS(1_000.0), "1000/s"),
            (Setting::RatePerS(999.971), "999.971/s"),
            (Setting::RatePerS(0.5), "0.5/s"),
            (Setting::SizeBytes(64), "64 bytes"),
            (false.into(), "no"),
            (Vec::<CpuId>::new().into(), "none left"),
            (vec![Policy::Ordinary, fifo].into(), "SCHED_OTHER, SCHED_FIFO 80"),
            (Placed { cpus: Vec::new(), policy: Policy::Ordinary }.into(), "any CPU, ordinary"),
            (Placed { cpus: cpus.clone(), policy: fifo }.into(), "CPU 2 and 3, SCHED_FIFO 80"),
            (Placement::Pinned { cpus: cpus.clone() }.into(), "pinned to 2-3"),
            (Placement::Floating { threads: 2, cpus }.into(), "2 floating on 2-3"),
            ("chain".into(), "chain"),
        ];
        for (setting, shown) in cases {
            assert_eq!(setting.to_string(), shown);
        }
    }
}
