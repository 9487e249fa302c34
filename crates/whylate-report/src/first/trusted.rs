//! How far to trust it, in three lines: the level, at most two reasons, and what to do about them.

use whylate_model::trust::{Level, Reason, Trust};
use whylate_model::warning::Warning;

use super::layout::Fitting;
use crate::numbers::respelled::respelled;

/// Reasons that are told; the others are counted.
const REASONS: usize = 2;
const LABEL: &str = "Trust: ";

/// What to do about each reason that a warning gave: the last sentence of its advice.
pub(super) fn advice(warnings: &[Warning]) -> Vec<(String, String)> {
    let of = |warning: &Warning| (warning.to_string(), last_sentence(&warning.advice()));
    warnings.iter().map(of).collect()
}

/// What to do stands at the end of an advice.
pub(super) fn last_sentence(advice: &str) -> String {
    advice.trim_end().rsplit(". ").next().unwrap_or_default().to_owned()
}

/// How far an account without a run may be trusted: by its warnings alone; none where nothing limits it.
pub(super) fn of_warnings(warnings: &[Warning]) -> Option<Trust> {
    let limiting = warnings.iter().filter(|warning| warning.level() > Level::Good);
    let reason = |of: &Warning| Reason { level: of.level(), what: of.to_string() };
    let mut reasons: Vec<Reason> = limiting.map(reason).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
    (!reasons.is_empty()).then_some(Trust { reasons })
}

/// The lines of it, no more than so many: the advice goes first, then the second reason.
pub(super) fn lines(
    trust: &Trust,
    advice: &[(String, String)],
    fitting: &Fitting,
    most: usize,
) -> Vec<String> {
    let level = trust.level().name();
    if trust.reasons.is_empty() {
        return fitting.wrapped(&format!("{level}."), LABEL);
    }
    let told = trust.reasons.iter().take(REASONS);
    let known = told.filter_map(|reason| advice.iter().find(|(what, _)| *what == reason.what));
    let advice = known.map(|(_, advice)| advice.as_str()).next();
    let said = |reasons: usize, advice: Option<&str>| {
        let told: Vec<&str> =
            trust.reasons.iter().take(reasons).map(|reason| reason.what.as_str()).collect();
        let more = trust.reasons.len() - told.len();
        let more = if more > 0 { format!("; and {more} more: --full") } else { String::new() };
        let mut text = format!("{level}. {}{more}.", upper(&told.join("; ")));
        if let Some(advice) = advice {
            text = format!("{text} {advice}");
        }
        fitting.wrapped(&respelled(&text), LABEL)
    };
    let tries = [(REASONS, advice), (REASONS, None), (1, advice), (1, None)];
    let fits = tries.iter().map(|(reasons, advice)| said(*reasons, *advice));
    let fits = fits.into_iter().find(|lines| lines.len() <= most);
    fits.unwrap_or_else(|| fitting.cut(said(1, None), most))
}

/// The sentence with a capital letter; a name before a colon and that of a file stay as they are.
pub(super) fn upper(sentence: &str) -> String {
    let is_name = |word: &str| word.ends_with(':') || word.contains(['.', '/', '_']);
    if sentence.split(' ').next().is_some_and(is_name) {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
