//! Priorities: the eight names of Hourglass, and policies named outright.
//!
//! The names keep their order and their class; what they stand for on Linux is in the table of
//! [`Priority::policy`]. The highest stays below 99, where the kernel's own migration and watchdog
//! threads run, and leaves 96 to 98 to whatever must be able to stop a runaway thread.

use std::fmt;
use std::str::FromStr;

use whylate_rta::Call;
use whylate_rta::call::CallError;
use whylate_sys::sched::Policy;

/// How urgent a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Priority {
    /// Runs when nobody else wants to: `SCHED_IDLE`.
    Idle,
    /// Niceness 10.
    Low,
    /// Niceness 0.
    #[default]
    Normal,
    /// Niceness -10.
    High,
    /// Niceness -20.
    Highest,
    /// `SCHED_FIFO` 1.
    RtLow,
    /// `SCHED_FIFO` 50.
    RtMed,
    /// `SCHED_FIFO` 95.
    RtHigh,
    /// `SCHED_FIFO` with this priority.
    Fifo(u8),
    /// `SCHED_RR` with this priority.
    RoundRobin(u8),
    /// `SCHED_OTHER` with this niceness.
    Nice(i8),
    /// `SCHED_BATCH` with this niceness.
    Batch(i8),
}

/// The names, in rising order.
pub const NAMES: [(&str, Priority); 8] = [
    ("IDLE", Priority::Idle),
    ("LOW", Priority::Low),
    ("NORMAL", Priority::Normal),
    ("HIGH", Priority::High),
    ("HIGHEST", Priority::Highest),
    ("RTLOW", Priority::RtLow),
    ("RTMED", Priority::RtMed),
    ("RTHIGH", Priority::RtHigh),
];

/// How a priority is written.
pub const USAGE: &str = "other, fifo:1-99, rr:1-99, nice(-20..19), batch(-20..19), or IDLE, LOW, NORMAL, \
                         HIGH, HIGHEST, RTLOW, RTMED, RTHIGH";

const REAL_TIME: std::ops::RangeInclusive<u8> = 1..=99;
const NICENESS: std::ops::RangeInclusive<i8> = -20..=19;

impl Priority {
    /// Reads a priority.
    pub fn of(call: &Call) -> Result<Self, CallError> {
        if let Some((name, number)) =
            call.name.split_once(':').filter(|_| call.arguments.is_empty())
        {
            return Self::of(&Call { name: name.to_owned(), arguments: vec![number.to_owned()] });
        }
        if call.is("other") {
            call.takes(0, USAGE)?;
            return Ok(Self::Normal);
        }
        if let Some((_, priority)) = NAMES.iter().find(|(name, _)| call.is(name)) {
            call.takes(0, USAGE)?;
            return Ok(*priority);
        }
        let number = |range: std::ops::RangeInclusive<i64>| -> Result<i64, CallError> {
            call.takes(1, USAGE)?;
            let text = call.argument(0, "number", USAGE)?;
            let number = text.parse::<i64>().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                let (first, last) = (range.start(), range.end());
                call.refused("number", format!("write a whole number from {first} to {last}"))
            })
        };
        let real_time = || {
            let range = i64::from(*REAL_TIME.start())..=i64::from(*REAL_TIME.end());
            number(range).map(|number| number as u8)
        };
        let niceness = || {
            let range = i64::from(*NICENESS.start())..=i64::from(*NICENESS.end());
            number(range).map(|number| number as i8)
        };
        if call.is("fifo") {
            real_time().map(Self::Fifo)
        } else if call.is("rr") {
            real_time().map(Self::RoundRobin)
        } else if call.is("nice") {
            niceness().map(Self::Nice)
        } else if call.is("batch") {
            niceness().map(Self::Batch)
        } else {
            Err(call.refused("priority", format!("no priority is called so: write {USAGE}")))
        }
    }

    /// What it is on Linux.
    #[must_use]
    pub fn policy(self) -> Policy {
        match self {
            Self::Idle => Policy::Idle,
            Self::Low => Policy::Other { nice: 10 },
            Self::Normal => Policy::Other { nice: 0 },
            Self::High => Policy::Other { nice: -10 },
            Self::Highest => Policy::Other { nice: -20 },
            Self::RtLow => Policy::Fifo(1),
            Self::RtMed => Policy::Fifo(50),
            Self::RtHigh => Policy::Fifo(95),
            Self::Fifo(priority) => Policy::Fifo(priority),
            Self::RoundRobin(priority) => Policy::RoundRobin(priority),
            Self::Nice(nice) => Policy::Other { nice },
            Self::Batch(nice) => Policy::Batch { nice },
        }
    }

    /// Does it come before every thread without real-time policy?
    #[must_use]
    pub fn is_real_time(self) -> bool {
        self.real_time().is_some()
    }

    /// The real-time priority, 1 to 99; `None` for a thread that shares its time.
    #[must_use]
    pub fn real_time(self) -> Option<u8> {
        match self.policy() {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
            _ => None,
        }
    }
}

impl FromStr for Priority {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Self, CallError> {
        Self::of(&Call::parse(text)?)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMES.iter().find(|(_, priority)| priority == self) {
            return f.write_str(name);
        }
        match self.policy() {
            Policy::Fifo(priority) => write!(f, "fifo({priority})"),
            Policy::RoundRobin(priority) => write!(f, "rr({priority})"),
            Policy::Batch { nice } => write!(f, "batch({nice})"),
            Policy::Other { nice } => write!(f, "nice({nice})"),
            policy => write!(f, "{policy}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_names_of_the_paper_stand_for_rising_policies() {
        let policies = [
            Policy::Idle,
            Policy::Other { nice: 10 },
            Policy::Other { nice: 0 },
            Policy::Other { nice: -10 },
            Policy::Other { nice: -20 },
            Policy::Fifo(1),
            Policy::Fifo(50),
            Policy::Fifo(95),
        ];
        for ((name, priority), policy) in NAMES.into_iter().zip(policies) {
            assert_eq!((name.parse(), priority.policy()), (Ok(priority), policy), "{name}");
            assert_eq!(name.to_lowercase().parse(), Ok(priority));
            assert_eq!(priority.is_real_time(), name.starts_with("RT"), "{name}");
        }
        assert_eq!(Priority::default(), Priority::Normal);
    }

    #[test]
    fn policies_named_outright_are_read() {
        for (text, priority) in [
            ("fifo(50)", Priority::Fifo(50)),
            ("fifo:50", Priority::Fifo(50)),
            ("rr:20", Priority::RoundRobin(20)),
            ("other", Priority::Normal),
            ("FIFO 1", Priority::Fifo(1)),
            ("rr(20)", Priority::RoundRobin(20)),
            ("nice(-5)", Priority::Nice(-5)),
            ("batch(0)", Priority::Batch(0)),
        ] {
            assert_eq!(text.parse(), Ok(priority), "{text}");
        }
        assert_eq!(Priority::RoundRobin(20).real_time(), Some(20));
        assert_eq!(Priority::Batch(-20).real_time(), None);
    }

    #[test]
    fn what_is_no_priority_is_refused_with_what_is_one() {
        for text in [
            "",
            "RT",
            "fifo",
            "fifo:",
            "fifo:0",
            "fifo:1:2",
            "other:1",
            "fifo(0)",
            "fifo(100)",
            "rr(-1)",
            "nice(20)",
            "nice(x)",
            "LOW 1",
        ] {
            assert!(text.parse::<Priority>().is_err(), "{text}");
        }
        let refusal = "urgent".parse::<Priority>().unwrap_err().to_string();
        assert!(refusal.contains("RTHIGH"), "{refusal}");
        let refusal = "fifo(100)".parse::<Priority>().unwrap_err().to_string();
        assert!(refusal.contains("from 1 to 99"), "{refusal}");
    }

    fn any() -> impl Strategy<Value = Priority> {
        prop_oneof![
            proptest::sample::select(NAMES.to_vec()).prop_map(|(_, priority)| priority),
            REAL_TIME.prop_map(Priority::Fifo),
            REAL_TIME.prop_map(Priority::RoundRobin),
            NICENESS.prop_map(Priority::Nice),
            NICENESS.prop_map(Priority::Batch),
        ]
    }

    proptest! {
        #[test]
        fn a_priority_reads_back_as_it_prints(priority in any()) {
            prop_assert_eq!(priority.to_string().parse(), Ok(priority));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Priority>();
        }
    }
}
