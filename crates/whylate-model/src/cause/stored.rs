//! Lost time by cause as `run.json` holds it: each cause once, for all CPUs and, inside, for each of them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cause, CauseTotal};
use crate::units::{CpuId, Nanos};

/// What one cause took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CauseTotal"))]
pub(crate) struct Stored {
    /// The cause.
    cause: Cause,
    /// On all measured CPUs together; none where that was not added up.
    all_cpus: Option<Took>,
    /// On each of them, in the order of their numbers; empty where they were not told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    per_cpu: Vec<TookOnCpu>,
}

/// How much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Took {
    /// Gaps whose largest part this was.
    gaps: u64,
    /// Parts of any gap that it took.
    parts: u64,
    /// Time in those parts.
    lost_ns: f64,
    /// Share of all time lost there.
    lost_share: f64,
    /// Share of the elapsed time there; in a set of threads, of the time of all of them.
    elapsed_share: f64,
    /// Longest gap whose largest part this was.
    #[serde(rename = "longest_ns")]
    longest: Nanos,
}

/// How much on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TookOnCpu {
    /// The CPU.
    cpu: CpuId,
    /// How much.
    #[serde(flatten)]
    took: Took,
}

impl From<&CauseTotal> for Took {
    fn from(of: &CauseTotal) -> Self {
        Self {
            gaps: of.gaps,
            parts: of.parts,
            lost_ns: of.lost_ns,
            lost_share: of.share_of_lost,
            elapsed_share: of.share_of_elapsed,
            longest: of.longest,
        }
    }
}

impl Took {
    fn total(self, cause: &Cause, cpu: Option<CpuId>) -> CauseTotal {
        CauseTotal {
            cause: cause.clone(),
            cpu,
            gaps: self.gaps,
            parts: self.parts,
            lost_ns: self.lost_ns,
            share_of_lost: self.lost_share,
            share_of_elapsed: self.elapsed_share,
            longest: self.longest,
        }
    }
}

/// Each cause once, in the order in which they come first.
pub(crate) fn folded(totals: &[CauseTotal]) -> Vec<Stored> {
    let mut all: Vec<Stored> = Vec::new();
    for total in totals {
        let known = all.iter().position(|of| of.cause == total.cause);
        let at = known.unwrap_or_else(|| {
            all.push(Stored { cause: total.cause.clone(), all_cpus: None, per_cpu: Vec::new() });
            all.len() - 1
        });
        match total.cpu {
            None => all[at].all_cpus = Some(total.into()),
            Some(cpu) => all[at].per_cpu.push(TookOnCpu { cpu, took: total.into() }),
        }
    }
    all
}

/// Those of all CPUs first, in their order; then CPU by CPU, what took most first.
fn unfolded(all: Vec<Stored>) -> Vec<CauseTotal> {
    let (mut totals, mut of_cpus) = (Vec::new(), Vec::new());
    for Stored { cause, all_cpus, per_cpu } in all {
        totals.extend(all_cpus.map(|took| took.total(&cause, None)));
        of_cpus.extend(per_cpu.into_iter().map(|of| of.took.total(&cause, Some(of.cpu))));
    }
    of_cpus.sort_by(|a, b| {
        let most_first = b.lost_ns.total_cmp(&a.lost_ns);
        a.cpu.cmp(&b.cpu).then(most_first).then_with(|| a.cause.cmp(&b.cause))
    });
    totals.append(&mut of_cpus);
    totals
}

pub(crate) fn serialize<S: Serializer>(totals: &[CauseTotal], to: S) -> Result<S::Ok, S::Error> {
    folded(totals).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<CauseTotal>, D::Error> {
    Vec::<Stored>::deserialize(from).map(unfolded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(cause: &Cause, cpu: Option<u32>, lost_ns: f64) -> CauseTotal {
        let took = Took {
            gaps: 3,
            parts: 4,
            lost_ns,
            lost_share: 0.25,
            elapsed_share: 0.5,
            longest: Nanos(7),
        };
        took.total(cause, cpu.map(CpuId))
    }

    #[test]
    fn each_cause_is_stored_once_and_what_was_stored_is_what_comes_back() {
        let totals = [
            total(&Cause::Nmi, None, 9.0),
            total(&Cause::Host, None, 8.0),
            total(&Cause::Host, Some(1), 6.0),
            total(&Cause::Nmi, Some(1), 5.0),
            total(&Cause::Nmi, Some(4), 4.0),
            total(&Cause::Host, Some(4), 2.0),
        ];
        let all = folded(&totals);
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|of| of.per_cpu.len() == 2));
        assert_eq!(unfolded(all), totals);
    }

    #[test]
    fn a_cause_that_was_not_added_up_over_cpus_or_not_told_apart_by_them_comes_back_as_it_was() {
        let totals = [total(&Cause::Nmi, None, 9.0), total(&Cause::Host, Some(2), 8.0)];
        assert_eq!(unfolded(folded(&totals)), totals);
    }
}
