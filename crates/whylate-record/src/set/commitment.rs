//! What a set asks for beyond its CPUs: said before it starts, and kept with the run.

use whylate_model::Nanos;
use whylate_model::warning::{Asking, Warning};
use whylate_rta::commitment::{Commitment, Excess, commitment, of_each_job};
use whylate_rta::file;

use super::Request;

/// Sets of CPUs that are told of; the smaller ones first.
const MOST_TOLD: usize = 4;
/// Threads named for each.
const MOST_NAMED: usize = 4;

/// What a thread asks for, as far as that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// Each of its jobs, where all ask for the same.
    pub(super) of_each_job: Option<Nanos>,
    /// It is among threads that ask for more than their CPUs have.
    pub(super) overcommitted: bool,
}

/// A warning for each set of CPUs of which the threads ask for more than there is, and what each thread asks
/// for.
pub(super) fn of(request: &Request) -> (Vec<Warning>, Vec<Asked>) {
    let tables = |name: &str| match &request.tables_in {
        Some(folder) => file::beside(folder, name),
        None => file::table(name),
    };
    let set = &request.set;
    let Commitment { excesses, unknown } =
        commitment(set, &request.cpus, request.duration, &tables);
    let among = |index| excesses.iter().flat_map(|of| &of.askers).any(|(asker, _)| *asker == index);
    let asked = set.threads.iter().enumerate().map(|(index, thread)| Asked {
        of_each_job: of_each_job(thread, &tables),
        overcommitted: among(index),
    });
    let asked = asked.collect();
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
    (excesses.into_iter().take(MOST_TOLD).map(warning).collect(), asked)
}
