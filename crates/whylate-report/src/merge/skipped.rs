//! Wake-ups with those that were skipped, in a sum.
//!
//! A recording that skipped no wake-up has no second row: with or without the skipped ones, its
//! wake-ups are the same. Where another recording of the sum has one, its only row stands for both,
//! so that the second row is of all recordings, as the first is.

use whylate_model::origin::Share;
use whylate_model::run::Run;
use whylate_model::series::Series;

/// Wake-ups that happened.
pub(super) const RAW: &str = "wake";
/// The same and those that were skipped.
pub(super) const CORRECTED: &str = "wake-corrected";

/// Has the run wake-ups, and skipped none?
pub(super) fn none_in(run: &Run) -> bool {
    let has = |name| run.series.iter().any(|series| series.name == name);
    has(RAW) && !has(CORRECTED)
}

/// Lets the wake-ups of a run that skipped none stand for both rows.
pub(super) fn stand_for_both(run: &mut Run) {
    let raw = run.series.iter().find(|series| series.name == RAW).cloned();
    run.series.extend(raw.map(|raw| Series { name: CORRECTED.to_owned(), ..raw }));
}

/// The same for what a recording added.
pub(super) fn share_for_both(shares: &mut Vec<Share>) {
    let raw = shares.iter().find(|share| share.series == RAW).cloned();
    shares.extend(raw.map(|raw| Share { series: CORRECTED.to_owned(), ..raw }));
}

/// Says in the label of the second row how many were skipped in all recordings.
pub(super) fn label(series: &mut [Series]) {
    let n = |name: &str| series.iter().find(|series| series.name == name).map(|series| series.n);
    let Some((corrected, raw)) = n(CORRECTED).zip(n(RAW)) else { return };
    for row in series.iter_mut().filter(|series| series.name == CORRECTED) {
        row.label = format!("  and {} skipped", corrected.saturating_sub(raw));
    }
}
