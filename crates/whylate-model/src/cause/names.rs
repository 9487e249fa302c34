//! What causes are called: in tables of gaps, whose names stay those of the format, and in reports, which read in
//! the field's terms whatever a run stored.

use std::borrow::Cow;

use super::{Cause, PriorityClass};
use crate::text::Printable;

/// How tables of gaps of format version 1 call time without a kernel event.
pub const STORED_NO_EVENT: &str = "host";

/// The local timer's interrupt, as the kernel calls it.
pub(crate) const LOCAL_TIMER: &str = "local_timer";

/// Names that the format keeps and reports do not.
const STORED: [(&str, Cause); 6] = [
    ("entry residual", Cause::EntryResidual),
    ("inner residual", Cause::InnerResidual),
    ("exit residual", Cause::ExitResidual),
    ("timer late", Cause::TimerLate),
    ("exit from idle", Cause::IdleExit),
    ("firmware/hardware", Cause::Firmware),
];
const THREAD: &str = "thread ";
const ORDINARY: &str = " (ordinary)";

impl Cause {
    /// As tables of gaps store it.
    #[must_use]
    pub fn stored(&self) -> String {
        match self {
            Self::Host | Self::Hypervisor => STORED_NO_EVENT.to_owned(),
            Self::Tick => format!("interrupt {LOCAL_TIMER}"),
            Self::Interrupt { name } => format!("interrupt {}", Printable(name)),
            Self::Thread { comm, class: PriorityClass::Ordinary } => {
                format!("{THREAD}{}{ORDINARY}", Printable(comm))
            }
            Self::Thread { comm, class } => format!("{THREAD}{} ({class})", Printable(comm)),
            Self::Member { comm, .. } => format!("{THREAD}{} of the set", Printable(comm)),
            other => {
                let known = STORED.iter().find(|(_, cause)| cause == other);
                known.map_or_else(|| other.to_string(), |(name, _)| (*name).to_owned())
            }
        }
    }
}

/// What reports call a cause that is stored so; `ticks` says whether the run's timer interrupts are the tick
/// ([`Run::ticks`](crate::run::Run::ticks)). Time without a kernel event is left: its name depends on the CPU.
#[must_use]
pub fn shown_name(stored: &str, ticks: bool) -> Cow<'_, str> {
    if let Some(comm) = stored.strip_prefix(THREAD) {
        let normal = comm.strip_suffix(ORDINARY);
        return Cow::Owned(normal.map_or_else(
            || format!("task {comm}"),
            |comm| format!("task {comm} ({})", PriorityClass::Ordinary),
        ));
    }
    if stored.strip_prefix("interrupt ") == Some(LOCAL_TIMER) {
        let timer = Cause::Interrupt { name: LOCAL_TIMER.to_owned() };
        return Cow::Owned(if ticks { Cause::Tick } else { timer }.to_string());
    }
    let known = STORED.iter().find(|(name, _)| *name == stored);
    known.map_or(Cow::Borrowed(stored), |(_, cause)| Cow::Owned(cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Softirq;

    /// One cause of each kind, with its name in tables of gaps.
    fn each() -> Vec<(Cause, &'static str)> {
        let comm = || "rustc".to_owned();
        vec![
            (Cause::Interrupt { name: "local_timer".to_owned() }, "interrupt local_timer"),
            (Cause::Interrupt { name: "virtio1-req.0".to_owned() }, "interrupt virtio1-req.0"),
            (Cause::Softirq { vector: Softirq::NetRx }, "softirq net_rx"),
            (
                Cause::Thread { comm: comm(), class: PriorityClass::Ordinary },
                "thread rustc (ordinary)",
            ),
            (
                Cause::Thread { comm: comm(), class: PriorityClass::RealTime },
                "thread rustc (real-time)",
            ),
            (
                Cause::Member { comm: comm(), class: PriorityClass::RealTime },
                "thread rustc of the set",
            ),
            (Cause::Whylate, "whylate itself"),
            (Cause::PageFault, "page fault"),
            (Cause::Nmi, "NMI"),
            (Cause::Signal { signal: 9 }, "signal 9"),
            (Cause::EntryResidual, "entry residual"),
            (Cause::InnerResidual, "inner residual"),
            (Cause::ExitResidual, "exit residual"),
            (Cause::Firmware, "firmware/hardware"),
            (Cause::TraceLost, "trace lost"),
            (Cause::Throttled, "throttled"),
            (Cause::OwnDemand, "own demand"),
            (Cause::LeftOver, "work left over from the job before"),
            (Cause::TimerLate, "timer late"),
            (Cause::IdleExit, "exit from idle"),
            (Cause::Blocked, "blocked on a resource"),
            (Cause::Stopped, "stopped or asleep"),
            (Cause::ContextSwitch, "context switch"),
            (Cause::NotSwitched, "no context switch"),
            (Cause::Migration, "migration"),
            (Cause::Unknown, "unknown"),
        ]
    }

    #[test]
    fn what_is_stored_keeps_the_names_of_the_format_and_is_shown_as_its_cause() {
        for (cause, name) in each() {
            assert_eq!(cause.stored(), name);
            assert_eq!(shown_name(name, false), cause.to_string(), "{name}");
            assert_eq!(shown_name(&cause.to_string(), false), cause.to_string(), "shown twice");
        }
        assert_eq!(
            (Cause::Host.stored(), Cause::Hypervisor.stored()),
            ("host".into(), "host".into())
        );
        assert_eq!(Cause::Tick.stored(), "interrupt local_timer");
        assert_eq!(shown_name("interrupt local_timer", true), "timer tick");
    }

    #[test]
    fn no_cause_is_shown_in_a_word_that_reports_do_not_use() {
        let shown = each().into_iter().map(|(cause, _)| cause).chain([Cause::Host, Cause::Tick]);
        for cause in shown.map(|cause| cause.to_string()) {
            for old in ["residual", "ordinary", "local_timer", "thread ", "host"] {
                assert!(!cause.contains(old), "{cause:?} has {old:?}");
            }
        }
    }
}
