//! Gaps made up for the tests of what is done with them.
//!
//! Parts stand behind each other without a hole; nothing else of a gap is claimed.

use whylate_cause::{Attributed, Basis, naming};
use whylate_model::cause::{Cause, Part};
use whylate_model::gap::{Evidence, Gap, GapKind};
use whylate_model::{CpuId, Ticks, TicksDelta};

/// A gap of thread 0 with these parts behind each other.
pub(super) fn attributed(start: u64, kind: GapKind, parts: &[(u64, Cause)]) -> Attributed {
    let mut at = Ticks(start);
    let mut taken = Vec::new();
    for (length, cause) in parts {
        let (length, cause) = (TicksDelta(*length), cause.clone());
        taken.push(Part { start: at, length, cause, sender: None });
        at = at + length;
    }
    let (cpu_before, cpu_after) = (CpuId(1), CpuId(1));
    let (start, end, evidence) = (Ticks(start), at, Evidence::default());
    let largest = parts.iter().max_by_key(|(length, _)| *length);
    Attributed {
        thread: 0,
        gap: Gap { start, end, resumed: end, cpu_before, cpu_after, kind, evidence },
        cause: largest.map_or(Cause::Unknown, |(_, cause)| cause.clone()),
        parts: taken,
        rule: None,
        basis: Basis::Trace,
        switched: Some(parts.iter().any(|(_, cause)| naming::is_thread(cause))),
        switched_out: 0,
        own: TicksDelta(0),
        events: Vec::new(),
        sends: Vec::new(),
        arrivals: Vec::new(),
    }
}
