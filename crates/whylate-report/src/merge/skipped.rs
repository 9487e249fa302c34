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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::recorded;

    /// A run with these series and so many samples in each.
    fn run(of: &[(&str, u64)]) -> Run {
        let mut run = recorded();
        let any = run.series[0].clone();
        let series = |(name, n): &(&str, u64)| {
            let (name, label) = ((*name).to_owned(), "as recorded".to_owned());
            Series { name, label, n: *n, ..any.clone() }
        };
        run.series = of.iter().map(series).collect();
        run
    }

    fn told(run: &Run) -> Vec<(&str, u64, &str)> {
        run.series.iter().map(|of| (of.name.as_str(), of.n, of.label.as_str())).collect()
    }

    #[test]
    fn wake_ups_of_a_run_that_skipped_none_stand_for_both_rows() {
        assert!(none_in(&run(&[("gap-cpu1", 5), (RAW, 7)])));
        assert!(!none_in(&run(&[(RAW, 7), (CORRECTED, 9)])));
        assert!(!none_in(&run(&[("gap-cpu1", 5)])));
        let mut both = run(&[(RAW, 7), ("gap-cpu1", 5)]);
        stand_for_both(&mut both);
        let row = |name, n| (name, n, "as recorded");
        assert_eq!(told(&both), [row(RAW, 7), row("gap-cpu1", 5), row(CORRECTED, 7)]);
        let mut none = run(&[("gap-cpu1", 5)]);
        stand_for_both(&mut none);
        assert_eq!(told(&none), [row("gap-cpu1", 5)]);
    }

    #[test]
    fn what_a_recording_added_stands_for_both_rows_under_the_name_it_had() {
        let json = include_bytes!("../../../../tests/runs/merge/run.json");
        let path = std::path::Path::new("run.json");
        let kept = whylate_model::directory::parse_run(path, json).unwrap();
        let any = kept.origins[0].series[0].clone();
        let share = |series: &str, n| {
            let (series, recorded_as) = (series.to_owned(), "wake".to_owned());
            Share { series, recorded_as, n, ..any.clone() }
        };
        let mut shares = vec![share("gap-cpu1", 5), share(RAW, 7)];
        share_for_both(&mut shares);
        assert_eq!(shares, [share("gap-cpu1", 5), share(RAW, 7), share(CORRECTED, 7)]);
        let mut none = vec![share("gap-cpu1", 5)];
        share_for_both(&mut none);
        assert_eq!(none, [share("gap-cpu1", 5)]);
    }

    #[test]
    fn the_second_row_says_how_many_were_skipped_in_all_recordings() {
        let mut sum = run(&[(RAW, 7), (CORRECTED, 10), ("gap-cpu1", 5)]);
        label(&mut sum.series);
        let second = (CORRECTED, 10, "  and 3 skipped");
        assert_eq!(told(&sum), [(RAW, 7, "as recorded"), second, ("gap-cpu1", 5, "as recorded")]);
        let mut alone = run(&[(RAW, 7)]);
        label(&mut alone.series);
        assert_eq!(told(&alone), [(RAW, 7, "as recorded")]);
    }
}
