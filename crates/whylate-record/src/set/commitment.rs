//! What a set asks for beyond its CPUs: said before it starts, and kept with the run.

use whylate_model::warning::{Asking, Warning};
use whylate_rta::commitment::{Commitment, Excess, commitment};
use whylate_rta::file;

use super::Request;

/// Sets of CPUs that are told of; the smaller ones first.
const MOST_TOLD: usize = 4;
/// Threads named for each.
const MOST_NAMED: usize = 4;

/// A warning for each set of CPUs of which the threads ask for more than there is.
pub(super) fn warnings(request: &Request) -> Vec<Warning> {
    let tables = |name: &str| match &request.tables_in {
        Some(folder) => file::beside(folder, name),
        None => file::table(name),
    };
    let set = &request.set;
    let Commitment { excesses, unknown } =
        commitment(set, &request.cpus, request.duration, &tables);
    let warning = |Excess { cpus, asked, from, askers }: Excess| Warning::Overcommitted {
        cpus,
        asked,
        from,
        most: askers
            .iter()
            .take(MOST_NAMED)
            .map(|(index, share)| Asking {
                thread: set.threads[*index].name.clone(),
                share: *share,
            })
            .collect(),
        others: askers.len().saturating_sub(MOST_NAMED) as u64,
        unknown: unknown.len() as u64,
    };
    excesses.into_iter().take(MOST_TOLD).map(warning).collect()
}
