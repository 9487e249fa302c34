//! What a thread can know of its gap without the kernel's trace.
//!
//! The rseq critical-section word is certain when it is still set: the thread was not preempted,
//! migrated or signalled. Cleared, it means perhaps: the kernel also clears it on other work on
//! its way out. Then the involuntary switches, which the loop reads only when it finds the word
//! cleared, decide. A changed CPU number is certain by itself. Where the word is not to be had,
//! the count of switches alone decides, and no rule is named for it: it is none of METHOD's.
//!
//! What it cannot know: who had the CPU, and which interrupt it was.

use whylate_model::cause::{Cause, Rule};
use whylate_model::gap::{Gap, GapKind, RseqWord};
use whylate_model::run::Confidence;

use crate::rules;

/// A conclusion about one gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `ContextSwitch`, `NotSwitched`, `Migration` or `Unknown`.
    pub cause: Cause,
    /// The rule that says so.
    pub rule: Option<Rule>,
    /// How sure it is.
    pub confidence: Confidence,
}

/// What evidence B says of `gap`.
#[must_use]
pub fn infer(gap: &Gap) -> Cause {
    verdict(gap).cause
}

/// What evidence B says of `gap`, by which rule, and how sure.
#[must_use]
pub fn verdict(gap: &Gap) -> Verdict {
    if gap.kind == GapKind::LateTimer {
        let confidence = Confidence::Certain;
        return Verdict { cause: Cause::TimerLate, rule: None, confidence };
    }
    rules::r7_cpu_changed(gap)
        .or_else(|| rules::r6_rseq_word(gap))
        .or_else(|| switches_alone(gap))
        .unwrap_or(Verdict { cause: Cause::Unknown, rule: None, confidence: Confidence::Possible })
}

/// Does this inference mean that the thread lost the CPU? `None` when it says neither.
#[must_use]
pub fn says_switched(cause: &Cause) -> Option<bool> {
    match cause {
        Cause::ContextSwitch | Cause::Migration => Some(true),
        Cause::NotSwitched => Some(false),
        _ => None,
    }
}

fn switches_alone(gap: &Gap) -> Option<Verdict> {
    if gap.evidence.rseq != RseqWord::Unarmed {
        return None;
    }
    let cause = match gap.evidence.involuntary_switches? {
        0 => Cause::NotSwitched,
        _ => Cause::ContextSwitch,
    };
    Some(Verdict { cause, rule: None, confidence: Confidence::Likely })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::gap::{Evidence, GapKind};
    use whylate_model::{CpuId, Ticks};

    fn gap(rseq: RseqWord, involuntary_switches: Option<u32>, cpu_after: u32) -> Gap {
        Gap {
            start: Ticks(0),
            end: Ticks(10),
            resumed: Ticks(11),
            cpu_before: CpuId(0),
            cpu_after: CpuId(cpu_after),
            kind: GapKind::Interruption,
            evidence: Evidence { rseq, involuntary_switches, in_recording: false },
        }
    }

    #[test]
    fn every_state_of_the_evidence_has_its_verdict() {
        use Confidence::{Certain, Likely, Possible};
        use RseqWord::{Cleared, Set, Unarmed};
        for (rseq, switches, cpu, cause, rule, confidence) in [
            (Set, None, 0, Cause::NotSwitched, Some(Rule::R6), Certain),
            (Set, Some(1), 0, Cause::NotSwitched, Some(Rule::R6), Certain),
            (Cleared, Some(2), 0, Cause::ContextSwitch, Some(Rule::R6), Likely),
            (Cleared, Some(0), 0, Cause::NotSwitched, Some(Rule::R6), Likely),
            (Cleared, None, 0, Cause::Unknown, None, Possible),
            (Unarmed, Some(1), 0, Cause::ContextSwitch, None, Likely),
            (Unarmed, Some(0), 0, Cause::NotSwitched, None, Likely),
            (Unarmed, None, 0, Cause::Unknown, None, Possible),
            (Cleared, Some(0), 1, Cause::Migration, Some(Rule::R7), Certain),
            (Set, None, 1, Cause::Migration, Some(Rule::R7), Certain),
        ] {
            let verdict = verdict(&gap(rseq, switches, cpu));
            assert_eq!(verdict, Verdict { cause, rule, confidence });
        }
    }

    #[test]
    fn a_migration_counts_as_a_switch_and_no_evidence_as_neither() {
        assert_eq!(says_switched(&Cause::Migration), Some(true));
        assert_eq!(says_switched(&Cause::ContextSwitch), Some(true));
        assert_eq!(says_switched(&Cause::NotSwitched), Some(false));
        assert_eq!(says_switched(&Cause::Unknown), None);
    }
}
