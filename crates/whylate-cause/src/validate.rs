//! Evidence B judged against evidence A.
//!
//! Truth: the trace shows a switch away from the measuring thread inside the gap, or, complete
//! over the gap, shows none. Gaps over which the trace was not complete, and those of which
//! evidence B says neither, are left out and counted.

use whylate_model::cause::Validation;

use crate::attribute::Attributed;
use crate::evidence_b;

/// Counts one gap.
pub fn count(validation: &mut Validation, attributed: &Attributed) {
    let inferred = evidence_b::says_switched(&evidence_b::infer(&attributed.gap));
    let cell = match (attributed.switched, inferred) {
        (Some(true), Some(true)) => &mut validation.switch_as_switch,
        (Some(true), Some(false)) => &mut validation.switch_as_none,
        (Some(false), Some(true)) => &mut validation.none_as_switch,
        (Some(false), Some(false)) => &mut validation.none_as_none,
        _ => &mut validation.undecided,
    };
    *cell += 1;
}

/// The confusion matrix of all these gaps.
pub fn validate<'a>(attributed: impl IntoIterator<Item = &'a Attributed>) -> Validation {
    let mut validation = Validation::default();
    attributed.into_iter().for_each(|gap| count(&mut validation, gap));
    validation
}
