//! The rules of inference R1 to R9, each a function of what it needs and nothing else.
//!
//! R1 and R2 live in `switches.rs`, R9 in `periodic.rs`; all are offered here. A rule that does
//! not apply says nothing. Confidence: `Certain` by construction, `Likely` when the evidence
//! supports it and nothing speaks against it, `Possible` when it merely fits.

use whylate_model::cause::{Cause, Rule};
use whylate_model::gap::{Gap, RseqWord};
use whylate_model::run::{BORNE_OUT, Confidence, Finding};
use whylate_model::{CpuId, Nanos};
use whylate_stats::rate;

use crate::error::CauseError;
use crate::evidence_b::Verdict;

pub use crate::periodic::{Among, Periodic, r9_finding, r9_period};
pub use crate::switches::{
    Habit, Interval, SwitchCost, r1_cost, r1_findings, r1_gaps, r1_switches, r2_involuntary,
};

/// Two samples differ when chance would make them so in less than one of a hundred cases.
const P_DIFFER: f64 = 0.01;

/// R5: timer A is late and B is not when A is late at least this many times as often.
const LATE_RATIO: f64 = 10.0;

/// What is known of a thread's place in the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Under SCHED_FIFO at this priority, as read back, and it never blocks.
    RealTime(u8),
    /// Anything else.
    Ordinary,
}

/// R3: gaps of the highest-priority thread that never blocks are interrupts, softirqs, NMIs, SMIs
/// or the host. `with_thread` is the number of gaps in which the trace shows another thread, or in
/// which the thread itself counted a switch; none where neither looked. The rule's premise does not
/// hold when there are any.
#[must_use]
pub fn r3_highest_priority(
    standing: Standing,
    cpu: CpuId,
    gaps: u64,
    with_thread: Option<u64>,
) -> Option<Finding> {
    let (Standing::RealTime(priority), 1..) = (standing, gaps) else { return None };
    let ours = format!("the thread runs under SCHED_FIFO {priority} and never blocks");
    let kinds = "interrupts, softirqs, NMIs, SMIs or the hypervisor";
    let (text, confidence) = match with_thread {
        None => (format!("all {gaps} gaps are {kinds}: {ours}"), Confidence::Possible),
        Some(0) => (
            format!("all {gaps} gaps are {kinds}: {ours}, and the trace shows no other"),
            Confidence::Certain,
        ),
        Some(with_thread) => (
            format!(
                "{with_thread} of {gaps} gaps hold another thread although {ours}: one of higher \
                 priority, the kernel's own, or RT throttling"
            ),
            Confidence::Certain,
        ),
    };
    Some(Finding { rule: Rule::R3, cpu: Some(cpu), text, confidence })
}

/// Gaps counted over a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// How many.
    pub gaps: u64,
    /// In how long.
    pub time: Nanos,
}

impl Counted {
    fn per_second(&self) -> f64 {
        self.gaps as f64 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.time.0 as f64 / 1e9
    }
}

/// R4: the gap rate differs between idle and loaded, so the load causes gaps (or keeps some
/// away). A two-sample test of Poisson rates. Gaps that come in bursts are less independent than
/// that: the confidence is never more than `Likely`.
pub fn r4_load(idle: Counted, loaded: Counted) -> Result<Finding, CauseError> {
    if idle.time.0 == 0 || loaded.time.0 == 0 {
        return Err(CauseError::EmptySample { what: "the rates of gaps, idle and loaded," });
    }
    let p = rate::rates_differ(idle.gaps, idle.seconds(), loaded.gaps, loaded.seconds());
    let rates = format!(
        "{:.3} gaps per second idle ({} in {}), {:.3} loaded ({} in {}), p = {p:.2e}",
        idle.per_second(),
        idle.gaps,
        idle.time,
        loaded.per_second(),
        loaded.gaps,
        loaded.time
    );
    let (conclusion, confidence) = if p >= P_DIFFER {
        ("no difference shown", Confidence::Possible)
    } else if loaded.per_second() > idle.per_second() {
        ("the load causes gaps", Confidence::Likely)
    } else {
        ("gaps are rarer under load", Confidence::Likely)
    };
    let text = format!("{conclusion}: {rates}");
    Ok(Finding { rule: Rule::R4, cpu: None, text, confidence })
}

/// Does the kernel preempt itself?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preemption {
    /// PREEMPT or PREEMPT_RT: long stretches without a reaction are rare, so lateness is the
    /// timer's.
    Full,
    /// Voluntary preemption or none: lateness may also be the kernel's.
    Partial,
}

impl Preemption {
    fn name(self) -> &'static str {
        match self {
            Self::Full => "fully preemptible",
            Self::Partial => "not fully preemptible",
        }
    }
}

/// R5: wake-ups are late with timer A and not with timer B: timer A is at fault. `late` is the
/// lateness from which on a wake-up counts as late. `None` when A is not late or B is, too.
pub fn r5_timers(
    (name_a, a): (&str, &[Nanos]),
    (name_b, b): (&str, &[Nanos]),
    late: Nanos,
    preemption: Preemption,
) -> Result<Option<Finding>, CauseError> {
    if a.is_empty() || b.is_empty() {
        return Err(CauseError::EmptySample { what: "the lateness of two timers" });
    }
    let count = |sample: &[Nanos]| sample.iter().filter(|lateness| **lateness >= late).count();
    let (late_a, late_b) = (count(a), count(b));
    let (share_a, share_b) = (late_a as f64 / a.len() as f64, late_b as f64 / b.len() as f64);
    let p = rate::rates_differ(late_a as u64, a.len() as f64, late_b as u64, b.len() as f64);
    if p >= P_DIFFER || share_a < share_b * LATE_RATIO {
        return Ok(None);
    }
    let confidence = match preemption {
        Preemption::Full => Confidence::Likely,
        Preemption::Partial => Confidence::Possible,
    };
    let text = format!(
        "timer {name_a} is at fault: {late_a} of {} wake-ups are {late} late or more, with \
         {name_b} {late_b} of {} (p = {p:.2e}, the kernel is {})",
        a.len(),
        b.len(),
        preemption.name()
    );
    Ok(Some(Finding { rule: Rule::R5, cpu: None, text, confidence }))
}

/// R6: the rseq word. Still set is certain; cleared is confirmed or refuted by the count of
/// involuntary switches, and says nothing where that was not read.
#[must_use]
pub fn r6_rseq_word(gap: &Gap) -> Option<Verdict> {
    let (cause, confidence) = match (gap.evidence.rseq, gap.evidence.involuntary_switches) {
        (RseqWord::Set, _) => (Cause::NotSwitched, Confidence::Certain),
        (RseqWord::Cleared, Some(0)) => (Cause::NotSwitched, Confidence::Likely),
        (RseqWord::Cleared, Some(_)) => (Cause::ContextSwitch, Confidence::Likely),
        (RseqWord::Cleared, None) | (RseqWord::Unarmed, _) => return None,
    };
    Some(Verdict { cause, rule: Some(Rule::R6), confidence })
}

/// R7: the CPU changed, so the thread was migrated.
#[must_use]
pub fn r7_cpu_changed(gap: &Gap) -> Option<Verdict> {
    gap.migrated().then_some(Verdict {
        cause: Cause::Migration,
        rule: Some(Rule::R7),
        confidence: Confidence::Certain,
    })
}

/// What may bear out that the host or the firmware took time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Corroboration {
    /// Steal time of the CPU while it was measured, where readable; of all measured ones together, where
    /// that of each is not known.
    pub steal_ns: Option<f64>,
    /// System management interrupts over the run, where readable.
    pub smi_count: Option<u64>,
}

/// R8: no kernel event accounts for `gaps` gaps of `cpu`, so the host or the firmware took them;
/// those and what they took of other gaps lost `lost_ns` in all.
#[must_use]
pub fn r8_no_kernel_event(
    virtualised: bool,
    cpu: CpuId,
    gaps: u64,
    lost_ns: f64,
    beside: Corroboration,
) -> Option<Finding> {
    if gaps == 0 {
        return None;
    }
    let lost = Nanos(lost_ns.max(0.0).round() as u64);
    let accounted = format!("no kernel event accounts for {gaps} gaps, {lost} in all");
    let (taker, confidence) = if virtualised {
        match beside.steal_ns {
            Some(steal) if steal > 0.0 => {
                let (counted, part) = (Nanos(steal.round() as u64), steal / lost_ns.max(1.0));
                if part >= BORNE_OUT {
                    let taker = format!(
                        "the hypervisor took them: {counted} of steal time were counted meanwhile"
                    );
                    (taker, Confidence::Likely)
                } else {
                    let taker = format!(
                        "perhaps the hypervisor took them: {counted} of steal time were counted \
                         meanwhile, {:.0}% of that",
                        100.0 * part
                    );
                    (taker, Confidence::Possible)
                }
            }
            Some(_) => {
                let taker = "perhaps the hypervisor took them, but no steal time was counted";
                (taker.to_owned(), Confidence::Possible)
            }
            None => {
                let taker = "perhaps the hypervisor took them: steal time is not readable";
                (taker.to_owned(), Confidence::Possible)
            }
        }
    } else {
        let (taker, confidence) = match beside.smi_count {
            Some(0) => ("the hardware took them: no SMI was counted", Confidence::Possible),
            Some(_) => ("the firmware took them: SMIs were counted", Confidence::Likely),
            None => (
                "firmware or hardware took them: the SMI count is not readable",
                Confidence::Possible,
            ),
        };
        (taker.to_owned(), confidence)
    };
    let text = format!("{accounted}; {taker}");
    Some(Finding { rule: Rule::R8, cpu: Some(cpu), text, confidence })
}

/// How often R6 and R7 said what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// R6: the thread kept the CPU, certainly.
    pub kept_certain: u64,
    /// R6: it kept the CPU, by the count of switches.
    pub kept: u64,
    /// R6: it was switched out.
    pub switched: u64,
    /// R7: it was migrated.
    pub migrated: u64,
    /// Neither rule said anything.
    pub undecided: u64,
}

impl Tally {
    /// Counts one gap.
    pub fn count(&mut self, gap: &Gap) {
        let verdict = r7_cpu_changed(gap).or_else(|| r6_rseq_word(gap));
        let slot = match verdict.map(|verdict| (verdict.cause, verdict.confidence)) {
            Some((Cause::Migration, _)) => &mut self.migrated,
            Some((Cause::ContextSwitch, _)) => &mut self.switched,
            Some((_, Confidence::Certain)) => &mut self.kept_certain,
            Some(_) => &mut self.kept,
            None => &mut self.undecided,
        };
        *slot += 1;
    }

    /// R6 and R7 in sentences; nothing for a rule that said nothing.
    #[must_use]
    pub fn findings(&self, cpu: CpuId) -> Vec<Finding> {
        let of = self.kept_certain + self.kept + self.switched + self.migrated + self.undecided;
        let finding = |rule, text, confidence| Finding { rule, cpu: Some(cpu), text, confidence };
        let mut findings = Vec::new();
        if self.kept_certain > 0 {
            let text = format!(
                "in {} of {of} gaps the thread was not preempted, migrated or signalled: the rseq \
                 word was still set",
                self.kept_certain
            );
            findings.push(finding(Rule::R6, text, Confidence::Certain));
        }
        // That nothing was counted is no observation that a rule could speak from.
        if self.switched > 0 {
            let text = format!(
                "in {} gaps with the rseq word cleared the thread was switched out {} times, by \
                 the kernel's count of switches",
                self.switched + self.kept,
                self.switched
            );
            findings.push(finding(Rule::R6, text, Confidence::Likely));
        }
        if self.migrated > 0 {
            let text = format!("in {} of {of} gaps the thread was migrated", self.migrated);
            findings.push(finding(Rule::R7, text, Confidence::Certain));
        }
        findings
    }
}

#[cfg(test)]
mod tests;
