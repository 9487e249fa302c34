//! Steps and protocols as they are written: `run 2ms`, `lock bus`, `sleep 1ms`; `protect(50)`.

use std::fmt;
use std::str::FromStr;

use super::{Protocol, Step};
use crate::call::{Call, CallError};
use crate::demand::{Demand, DemandError, Tables};
use crate::words::Exact;

const RUN: &str = "run <time>";
const SLEEP: &str = "sleep <time>";
const NAMED: &str = "<step> <name>";
const GUARDED: &str = "<step> <condition> <mutex>";

/// Why a text is no step.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StepError {
    /// Not of the grammar, or an argument is missing or wrong.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What it runs is no execution time.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// No such step.
    #[error(
        "`{0}` is no step: write run, sleep, yield, lock, unlock, barrier, push, pop, wait, signal, \
         broadcast, sync, sem_post or sem_wait, such as `run 2ms` or `lock bus`"
    )]
    Unknown(String),
}

impl Step {
    /// Reads a step; the text of a table comes from `tables`.
    pub fn parse(text: &str, tables: Tables<'_>) -> Result<Self, StepError> {
        let call = Call::parse(text)?;
        let verb = call.name.to_ascii_lowercase();
        let named = |make: fn(String) -> Self| {
            call.takes(1, NAMED)?;
            Ok(make(call.argument(0, "name", NAMED)?.to_owned()))
        };
        let guarded = |make: fn(String, String) -> Self| {
            call.takes(2, GUARDED)?;
            let condition = call.argument(0, "condition", GUARDED)?.to_owned();
            Ok(make(condition, call.argument(1, "mutex", GUARDED)?.to_owned()))
        };
        match verb.as_str() {
            "run" => {
                call.takes(1, RUN)?;
                Ok(Self::Run(Demand::parse(call.argument(0, "time", RUN)?, tables)?))
            }
            "sleep" => {
                call.takes(1, SLEEP)?;
                Ok(Self::Sleep(call.time(0, "time", SLEEP)?))
            }
            "yield" => {
                call.takes(0, "yield")?;
                Ok(Self::Yield)
            }
            "lock" => named(Self::Lock),
            "unlock" => named(Self::Unlock),
            "barrier" => named(Self::Barrier),
            "push" => named(Self::Push),
            "pop" => named(Self::Pop),
            "wait" => guarded(|condition, mutex| Self::Wait { condition, mutex }),
            "sync" => guarded(|condition, mutex| Self::Sync { condition, mutex }),
            "signal" => named(Self::Signal),
            "broadcast" => named(Self::Broadcast),
            "sem_post" => named(Self::SemPost),
            "sem_wait" => named(Self::SemWait),
            _ => Err(StepError::Unknown(call.name)),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(demand) => write!(f, "run {demand}"),
            Self::Sleep(time) => write!(f, "sleep {}", Exact(*time)),
            Self::Yield => f.write_str("yield"),
            Self::Lock(name) => write!(f, "lock {name}"),
            Self::Unlock(name) => write!(f, "unlock {name}"),
            Self::Barrier(name) => write!(f, "barrier {name}"),
            Self::Push(name) => write!(f, "push {name}"),
            Self::Pop(name) => write!(f, "pop {name}"),
            Self::Wait { condition, mutex } => write!(f, "wait {condition} {mutex}"),
            Self::Sync { condition, mutex } => write!(f, "sync {condition} {mutex}"),
            Self::Signal(name) => write!(f, "signal {name}"),
            Self::Broadcast(name) => write!(f, "broadcast {name}"),
            Self::SemPost(name) => write!(f, "sem_post {name}"),
            Self::SemWait(name) => write!(f, "sem_wait {name}"),
            Self::Runtime(time) => write!(f, "runtime {}", Exact(*time)),
            Self::Timer { name, period, .. } => write!(f, "timer {name} {}", Exact(*period)),
            Self::Suspend(name) => write!(f, "suspend {name}"),
            Self::Resume(name) => write!(f, "resume {name}"),
            Self::Fork(name) => write!(f, "fork {name}"),
            Self::Mem(bytes) => write!(f, "mem {bytes}"),
            Self::IoRun(bytes) => write!(f, "iorun {bytes}"),
        }
    }
}

impl FromStr for Protocol {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Self, CallError> {
        const PROTECT: &str = "protect(<ceiling>)";
        let call = Call::parse(text)?;
        match call.name.to_ascii_lowercase().as_str() {
            "none" => call.takes(0, "none").map(|()| Self::None),
            "inherit" => call.takes(0, "inherit").map(|()| Self::Inherit),
            "protect" => {
                call.takes(1, PROTECT)?;
                let ceiling = call.argument(0, "ceiling", PROTECT)?;
                let ceiling = ceiling.parse().map_err(|_| {
                    call.refused("ceiling", format!("`{ceiling}` is no priority from 1 to 98"))
                })?;
                Ok(Self::Protect { ceiling })
            }
            _ => {
                let reason = "write none, inherit or protect(50)".to_owned();
                Err(call.refused("protocol", reason))
            }
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Inherit => f.write_str("inherit"),
            Self::Protect { ceiling } => write!(f, "protect({ceiling})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::no_tables;

    #[test]
    fn steps_and_protocols_read_back_as_they_print() {
        for text in [
            "run 2ms",
            "run uniform(1ms,2ms)",
            "lock bus",
            "unlock bus",
            "barrier b",
            "push q",
            "pop q",
            "sleep 1500us",
            "yield",
            "wait c m",
            "sync c m",
            "signal c",
            "broadcast c",
            "sem_post s",
            "sem_wait s",
        ] {
            assert_eq!(Step::parse(text, &no_tables).unwrap().to_string(), text);
        }
        for text in ["none", "inherit", "protect(50)"] {
            assert_eq!(text.parse::<Protocol>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_step_is_refused_with_what_to_write() {
        for (text, word) in [
            ("", "name is missing"),
            ("jump 2ms", "no step"),
            ("run", "lacks its time"),
            ("run 0ms", "zero"),
            ("run 2ms 3ms", "too many"),
            ("sleep 2", "no unit"),
            ("lock", "lacks its name"),
            ("lock a b", "too many"),
            ("wait c", "lacks its mutex"),
            ("sem_post", "lacks its name"),
            ("timer t 10ms", "no step"),
            ("yield 3ms", "too many"),
            ("run table(a.txt)", "tables cannot be read here"),
        ] {
            let error = Step::parse(text, &no_tables).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        for text in ["", "ceiling", "protect", "protect(300)", "inherit 5"] {
            assert!(text.parse::<Protocol>().is_err(), "{text}");
        }
    }
}
