//! How causes, verdicts and the other small types read in a report.
//!
//! Short enough for a column of a table of 80; nothing from outside is printed unescaped.

use std::fmt;

use crate::cause::{Cause, LOCAL_TIMER, PriorityClass, Rule, Sender};
use crate::event::Softirq;
use crate::gap::RseqWord;
use crate::host::Knob;
use crate::run::{Closure, Confidence, LoopKind, RunState, Verdict};
use crate::series::{Class, Definition, Denominator};
use crate::text::Printable;

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Interrupt { name } if name == LOCAL_TIMER => "timer interrupt".to_owned(),
            Self::Interrupt { name } => format!("interrupt {}", Printable(name)),
            Self::Tick => "timer tick".to_owned(),
            Self::Softirq { vector } => format!("softirq {vector}"),
            Self::Thread { comm, class } => format!("task {} ({class})", Printable(comm)),
            Self::Member { comm, .. } => format!("task {} of the set", Printable(comm)),
            Self::Whylate => "whylate itself".to_owned(),
            Self::PageFault => "page fault".to_owned(),
            Self::Nmi => "NMI".to_owned(),
            Self::Signal { signal } => format!("signal {signal}"),
            Self::EntryResidual => "IRQ entry".to_owned(),
            Self::InnerResidual => "IRQ exit and entry".to_owned(),
            Self::ExitResidual => "IRQ exit".to_owned(),
            Self::Host => "no kernel event".to_owned(),
            Self::Hypervisor => "hypervisor".to_owned(),
            Self::Firmware => "firmware or hardware".to_owned(),
            Self::TraceLost => "trace lost".to_owned(),
            Self::ContextSwitch => "context switch".to_owned(),
            Self::NotSwitched => "no context switch".to_owned(),
            Self::Throttled => "throttled".to_owned(),
            Self::OwnDemand => "own demand".to_owned(),
            Self::LeftOver => "work left over from the job before".to_owned(),
            Self::Blocked => "blocked on a resource".to_owned(),
            Self::Stopped => "stopped or asleep".to_owned(),
            Self::TimerLate => "timer fired late".to_owned(),
            Self::IdleExit => "leaving idle".to_owned(),
            Self::Migration => "migration".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        })
    }
}

impl fmt::Display for PriorityClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Deadline => "deadline",
            Self::RealTime => "real-time",
            Self::Ordinary => "normal",
            Self::Idle => "idle",
        })
    }
}

impl fmt::Display for Softirq {
    /// The kernel's names in small letters; `softirq 12` for one this version does not know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(number) => f.pad(&number.to_string()),
            known => f.pad(known.name()),
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.comm.is_empty() { "thread" } else { &self.comm };
        f.pad(&format!("{} {} on CPU {}", Printable(name), self.pid, self.cpu))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        })
    }
}

impl fmt::Display for RseqWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unarmed => "unarmed",
            Self::Set => "set",
            Self::Cleared => "cleared",
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trustworthy => f.write_str("trust is good or limited"),
            Self::LimitExceeded { what, .. } => write!(f, "limit exceeded: {}", Printable(what)),
            Self::Untrustworthy { reasons } => {
                f.write_str("trust is poor")?;
                for (index, reason) in reasons.iter().enumerate() {
                    let before = if index == 0 { ": " } else { "; " };
                    write!(f, "{before}{}", Printable(reason))?;
                }
                Ok(())
            }
            Self::Pending => f.write_str("none yet: the run has not ended"),
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Stopped => "stopped",
        })
    }
}

impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Chain => "chain",
            Self::Pair => "pair",
        })
    }
}

impl fmt::Display for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => f.write_str("holds"),
            Self::Broken(why) => write!(f, "broken: {}", Printable(why)),
            Self::SumsOnly => f.write_str("only the sums close: records were dropped"),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "Good",
            Self::Bad => "Bad",
            Self::Ugly => "Ugly",
        })
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ReadDelta => "read delta",
            Self::Gap => "stall",
            Self::DispatchLatency => "dispatch latency",
            Self::ResponseTime => "response time",
            Self::Slack => "slack",
            Self::Tardiness => "tardiness",
            Self::RoundTrip => "rtt",
            Self::Response => "response time, from the due send",
            Self::SendLateness => "send delay",
            Self::UninterruptedLateness => "uninterrupted send delay",
            Self::Departures => "distance of departures",
            Self::Receptions => "distance of receptions",
            Self::Residence => "residence",
            Self::ContextSwitch => "context switch",
            Self::PartOfRequest => "part of a request",
            Self::OneWay => "one way",
            Self::OneWayResponse => "one way, from the due send",
        })
    }
}

impl fmt::Display for Denominator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Elapsed => "elapsed time",
            Self::Measured => "measured time",
        })
    }
}

impl fmt::Display for Knob {
    /// What the file says, or `unknown`: an absent file never reads as `off`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(text) => Printable(text.trim_end()).fmt(f),
            Self::Unknown => f.pad("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_read_in_the_words_of_the_field() {
        let thread = Cause::Thread { comm: "stress-ng".to_owned(), class: PriorityClass::Ordinary };
        for (cause, text) in [
            (Cause::Interrupt { name: "local_timer".to_owned() }, "timer interrupt"),
            (Cause::Softirq { vector: Softirq::NetRx }, "softirq net_rx"),
            (Cause::Softirq { vector: Softirq::Unknown(12) }, "softirq 12"),
            (thread, "task stress-ng (normal)"),
            (Cause::Firmware, "firmware or hardware"),
        ] {
            assert_eq!(cause.to_string(), text);
        }
        assert_eq!(format!("{:>6}|{:<12}|", Cause::Nmi, Cause::Hypervisor), "   NMI|hypervisor  |");
    }

    #[test]
    fn a_hostile_thread_name_prints_harmlessly() {
        let cause = Cause::Thread {
            comm: "\u{1b}]0;owned\u{7}".to_owned(),
            class: PriorityClass::RealTime,
        };
        assert!(cause.to_string().chars().all(|c| !c.is_control()), "{cause}");
    }

    #[test]
    fn a_verdict_gives_every_reason() {
        let reasons = vec!["trace lost 3 events".to_owned(), "CPU 2 went offline".to_owned()];
        assert_eq!(
            Verdict::Untrustworthy { reasons }.to_string(),
            "trust is poor: trace lost 3 events; CPU 2 went offline"
        );
    }
}
