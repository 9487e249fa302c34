//! What the host took from the threads of a set, stretch by stretch.
//!
//! Seen by the threads that had the CPU, so nothing is known of time in which it was idle.

use std::collections::BTreeMap;

use whylate_cause::{Attributed, Basis};
use whylate_model::cause::Cause;
use whylate_model::{CpuId, Ticks};

/// Stretches kept: 24 bytes each.
const MOST: usize = 1 << 20;

/// Without a kernel event in it: the host's or, on bare metal, the firmware's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The CPU.
    pub cpu: CpuId,
    /// Begin.
    pub start: Ticks,
    /// End.
    pub end: Ticks,
}

/// The stretches so far.
#[derive(Debug)]
pub(super) struct Stretches {
    kept: Vec<Stretch>,
    known: bool,
}

impl Stretches {
    pub(super) fn new() -> Self {
        Self { kept: Vec::new(), known: true }
    }

    /// A gap has been attributed.
    pub(super) fn gap(&mut self, of: &Attributed) {
        self.known &= of.basis == Basis::Trace;
        for part in &of.parts {
            if !matches!(part.cause, Cause::Host | Cause::Firmware) {
                continue;
            }
            let (cpu, start, end) = (of.gap.cpu_after, part.start, part.start + part.length);
            self.known &= self.kept.len() < MOST;
            if self.known {
                self.kept.push(Stretch { cpu, start, end });
            }
        }
    }

    /// All of them, CPU by CPU in the order of time and apart from each other; none where the trace
    /// does not tell all of them, or there were too many.
    pub(super) fn finish(self) -> Option<Vec<Stretch>> {
        let mut by_cpu: BTreeMap<CpuId, Vec<Stretch>> = BTreeMap::new();
        for of in self.kept {
            by_cpu.entry(of.cpu).or_default().push(of);
        }
        self.known.then(|| by_cpu.into_values().flat_map(apart).collect())
    }
}

/// In order; two threads may have seen the same one.
fn apart(mut of: Vec<Stretch>) -> Vec<Stretch> {
    of.sort_by_key(|stretch| stretch.start);
    let mut all: Vec<Stretch> = Vec::new();
    for next in of {
        match all.last_mut() {
            Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
            _ => all.push(next),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use whylate_model::TicksDelta;
    use whylate_model::cause::Part;
    use whylate_model::gap::{Evidence, Gap, GapKind};

    use super::*;

    fn gap(cpu: u32, parts: &[(u64, u64, Cause)], basis: Basis) -> Attributed {
        let (start, end) = (Ticks(parts[0].0), Ticks(parts[parts.len() - 1].1));
        let parts = parts.iter().map(|(from, to, cause)| Part {
            start: Ticks(*from),
            length: TicksDelta(to - from),
            cause: cause.clone(),
            sender: None,
        });
        let (cpu, evidence) = (CpuId(cpu), Evidence::default());
        let kind = GapKind::Interruption;
        Attributed {
            thread: 0,
            gap: Gap { start, end, resumed: end, cpu_before: cpu, cpu_after: cpu, kind, evidence },
            cause: Cause::Host,
            parts: parts.collect(),
            rule: None,
            basis,
            switched: Some(false),
            switched_out: 0,
            own: TicksDelta(0),
            events: Vec::new(),
            sends: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    fn tick() -> Cause {
        Cause::Interrupt { name: "local_timer".to_owned() }
    }

    #[test]
    fn only_the_hosts_parts_count_each_once_and_cpu_by_cpu() {
        let mut all = Stretches::new();
        let of = |cpu, parts: &[_]| gap(cpu, parts, Basis::Trace);
        all.gap(&of(1, &[(500, 600, Cause::Host)]));
        all.gap(&of(1, &[(100, 140, tick()), (140, 180, Cause::Host), (180, 200, tick())]));
        all.gap(&of(0, &[(150, 190, Cause::Firmware)]));
        // The same stretch, as another thread saw it.
        all.gap(&of(1, &[(160, 185, Cause::Host)]));
        let found: Vec<(u32, u64, u64)> =
            all.finish().unwrap().iter().map(|of| (of.cpu.0, of.start.0, of.end.0)).collect();
        assert_eq!(found, [(0, 150, 190), (1, 140, 185), (1, 500, 600)]);
    }

    #[test]
    fn without_the_trace_of_one_gap_nothing_is_claimed() {
        let mut all = Stretches::new();
        all.gap(&gap(1, &[(0, 5, Cause::Host)], Basis::Trace));
        all.gap(&gap(1, &[(7, 9, Cause::NotSwitched)], Basis::Thread));
        assert_eq!(all.finish(), None);
    }
}
