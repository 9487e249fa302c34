//! Causes, senders and evidence, added up.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::CpuId;
use whylate_model::cause::{Cause, CauseTotal, Coverage, SenderTotal, Validation};
use whylate_model::foreign::ForeignThread;
use whylate_model::run::{CpuSteal, Evidence, GapSummary, ProcDelta, Run};

use crate::ReportError;

/// Most different causes, and senders, of a sum: a host has some dozens of each.
const MOST: usize = 50_000;

/// What causes took and what was lost may differ by so much where histograms alone tell what was left out.
const OF_BINS: f64 = 0.01;

type SenderKey = (String, CpuId, CpuId, Cause);

/// Sums over the runs.
#[derive(Default)]
pub(super) struct Sums {
    causes: BTreeMap<(Option<CpuId>, Cause), CauseTotal>,
    senders: BTreeMap<SenderKey, (u64, f64)>,
    foreign: BTreeSet<ForeignThread>,
    /// Coverage times lost time, and that lost time.
    coverage: (Coverage, f64),
    counters: BTreeMap<(String, CpuId), u64>,
    rseq: Option<bool>,
    steal_ns: Known<f64>,
    /// Of each CPU, and of how many recordings; and the recordings.
    steal_by_cpu: (BTreeMap<CpuId, (f64, u64)>, u64),
    smi_count: Known<u64>,
    validation: Option<Validation>,
    /// Some are of a part of the gaps of their recording.
    cut: bool,
}

/// A sum that is unknown once a run does not know its part.
#[derive(Default)]
enum Known<T> {
    #[default]
    Nothing,
    Sum(T),
    Unknown,
}

impl<T: Copy> Known<T> {
    fn add(&mut self, more: Option<T>, plus: impl Fn(T, T) -> T) {
        *self = match (&*self, more) {
            (Self::Nothing, Some(more)) => Self::Sum(more),
            (Self::Sum(sum), Some(more)) => Self::Sum(plus(*sum, more)),
            _ => Self::Unknown,
        };
    }

    fn sum(&self) -> Option<T> {
        if let Self::Sum(sum) = self { Some(*sum) } else { None }
    }
}

/// What the sums give.
pub(super) struct Totals {
    pub(super) causes: Vec<CauseTotal>,
    pub(super) coverage: Option<Coverage>,
    pub(super) senders: Vec<SenderTotal>,
    pub(super) foreign_threads: Vec<ForeignThread>,
    pub(super) evidence: Evidence,
    pub(super) validation: Option<Validation>,
}

impl Sums {
    /// Adds a run whose causes are of a part of its gaps.
    pub(super) fn add_cut(&mut self, run: &Run, across_cpus: bool) -> Result<(), ReportError> {
        self.cut = true;
        self.add(run, across_cpus)
    }

    /// Adds a run; where CPUs are added up, too, only its totals over all of them.
    pub(super) fn add(&mut self, run: &Run, across_cpus: bool) -> Result<(), ReportError> {
        for total in run.causes.iter().filter(|total| !across_cpus || total.cpu.is_none()) {
            let key = (total.cpu, total.cause.clone());
            match self.causes.get_mut(&key) {
                None => {
                    self.causes.insert(key, total.clone());
                }
                Some(sum) => {
                    sum.gaps = sum.gaps.saturating_add(total.gaps);
                    sum.parts = sum.parts.saturating_add(total.parts);
                    sum.lost_ns += total.lost_ns;
                    sum.longest = sum.longest.max(total.longest);
                }
            }
        }
        for sender in &run.senders {
            let key = (sender.comm.clone(), sender.from, sender.to, sender.cause.clone());
            let sum = self.senders.entry(key).or_default();
            *sum = (sum.0.saturating_add(sender.count), sum.1 + sender.lost_ns);
        }
        self.foreign.extend(run.foreign_threads.iter().cloned());
        if let Some(coverage) = run.coverage {
            let lost: f64 = run.gaps.iter().map(|gaps| gaps.lost.0 as f64).sum();
            let (sum, weight) = &mut self.coverage;
            sum.by_events += coverage.by_events * lost;
            sum.by_residuals += coverage.by_residuals * lost;
            sum.by_nothing += coverage.by_nothing * lost;
            *weight += lost;
        }
        self.add_evidence(&run.evidence);
        if let Some(validation) = &run.validation {
            let sum = self.validation.get_or_insert_with(Validation::default);
            sum.switch_as_switch = sum.switch_as_switch.saturating_add(validation.switch_as_switch);
            sum.switch_as_none = sum.switch_as_none.saturating_add(validation.switch_as_none);
            sum.none_as_switch = sum.none_as_switch.saturating_add(validation.none_as_switch);
            sum.none_as_none = sum.none_as_none.saturating_add(validation.none_as_none);
            sum.undecided = sum.undecided.saturating_add(validation.undecided);
        }
        for (what, size) in [
            ("causes", self.causes.len()),
            ("senders", self.senders.len()),
            ("foreign threads", self.foreign.len()),
        ] {
            if size > MOST {
                let what = format!("there are {size} different {what}");
                return Err(ReportError::TooMuch { what, most: MOST.to_string() });
            }
        }
        Ok(())
    }

    fn add_evidence(&mut self, evidence: &Evidence) {
        for delta in &evidence.proc_deltas {
            let count = self.counters.entry((delta.name.clone(), delta.cpu)).or_default();
            *count = count.saturating_add(delta.count);
        }
        self.rseq = Some(self.rseq.unwrap_or(true) && evidence.rseq);
        self.steal_ns.add(evidence.steal_ns, |sum, more| sum + more);
        let (by_cpu, recordings) = &mut self.steal_by_cpu;
        *recordings += 1;
        for of in &evidence.steal_by_cpu {
            let sum = by_cpu.entry(of.cpu).or_default();
            *sum = (sum.0 + of.steal_ns, sum.1 + 1);
        }
        self.smi_count.add(evidence.smi_count, u64::saturating_add);
    }

    pub(super) fn finish(mut self, gaps: &[GapSummary]) -> Totals {
        let elapsed = |cpu: Option<CpuId>| -> f64 {
            let of_cpu = gaps.iter().filter(|gaps| cpu.is_none_or(|cpu| gaps.cpu == cpu));
            of_cpu.map(|gaps| gaps.end.since(gaps.start).0 as f64).sum()
        };
        let mut lost: BTreeMap<Option<CpuId>, f64> = BTreeMap::new();
        for total in self.causes.values() {
            *lost.entry(total.cpu).or_default() += total.lost_ns;
        }
        if self.cut {
            for total in self.causes.values_mut() {
                let of_cpu = |of: &&GapSummary| total.cpu.is_none_or(|cpu| of.cpu == cpu);
                let whole: f64 = gaps.iter().filter(of_cpu).map(|of| of.lost.0 as f64).sum();
                let factor = whole / lost[&total.cpu];
                // Of gaps that were left out several recordings of a directory know no more than bins.
                if (factor - 1.0).abs() < OF_BINS {
                    total.lost_ns *= factor;
                }
            }
            lost.clear();
            for total in self.causes.values() {
                *lost.entry(total.cpu).or_default() += total.lost_ns;
            }
        }
        let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let mut causes: Vec<CauseTotal> = self.causes.into_values().collect();
        for total in &mut causes {
            total.share_of_lost = share(total.lost_ns, lost[&total.cpu]);
            total.share_of_elapsed = share(total.lost_ns, elapsed(total.cpu));
        }
        causes.sort_by(|a, b| a.cpu.cmp(&b.cpu).then(b.lost_ns.total_cmp(&a.lost_ns)));
        let (sum, weight) = self.coverage;
        let counters = self.counters.into_iter();
        let (by_cpu, recordings) = self.steal_by_cpu;
        let known = by_cpu.into_iter().filter(|(_, (_, known))| *known == recordings);
        let steal_by_cpu = known.map(|(cpu, (steal_ns, _))| CpuSteal { cpu, steal_ns });
        Totals {
            causes,
            coverage: (weight > 0.0).then(|| Coverage {
                by_events: sum.by_events / weight,
                by_residuals: sum.by_residuals / weight,
                by_nothing: sum.by_nothing / weight,
            }),
            foreign_threads: self.foreign.into_iter().collect(),
            senders: self
                .senders
                .into_iter()
                .map(|((comm, from, to, cause), (count, lost_ns))| SenderTotal {
                    comm,
                    from,
                    to,
                    cause,
                    count,
                    lost_ns,
                })
                .collect(),
            evidence: Evidence {
                rseq: self.rseq.unwrap_or(false),
                proc_deltas: counters
                    .map(|((name, cpu), count)| ProcDelta { name, cpu, count })
                    .collect(),
                steal_ns: self.steal_ns.sum(),
                steal_by_cpu: steal_by_cpu.collect(),
                smi_count: self.smi_count.sum(),
                ..Evidence::default()
            },
            validation: self.validation,
        }
    }
}

#[cfg(test)]
mod tests;
