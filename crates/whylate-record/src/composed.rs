//! What was composed of requests becomes series of the run, and histograms of its log.

use whylate_breakdown::compose::Composed;
use whylate_model::Nanos;
use whylate_model::series::Series;

use crate::storage::Storage;
use crate::summary;

/// The series of the whole and of its parts. Parts of one request depend on each other, and those of
/// neighbours too: no intervals are claimed.
pub(crate) fn series(composed: &Composed) -> Vec<Series> {
    let all = composed.identities.iter().zip(&composed.histograms);
    let known = all.filter(|(_, (_, _, values))| !values.is_empty());
    known.map(|(identity, (_, _, values))| summary::of_identity(values, identity.clone())).collect()
}

/// Writes their values into the log, as one interval of this length.
pub(crate) fn log(composed: &Composed, length: Nanos, storage: &mut Storage) {
    for (name, _, values) in &composed.histograms {
        if !values.is_empty() {
            storage.interval(name, values, Nanos(0), length);
        }
    }
}
