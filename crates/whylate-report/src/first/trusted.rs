//! How far to trust it, in three lines: the level, at most two reasons, and what to do about them.

use std::collections::BTreeSet;

use whylate_model::trust::{BELOW_THE_WHOLE, Level, Reason, Trust};
use whylate_model::warning::Warning;

use super::layout::Fitting;

/// Reasons that are told; the others are counted.
const REASONS: usize = 2;
const LABEL: &str = "Trust: ";

/// Other measurements at the same time are one reason, however many there were, and are told without the numbers of
/// their processes; with what to do about each reason.
pub(super) fn others_once(
    mut trust: Trust,
    warnings: &[Warning],
) -> (Trust, Vec<(String, String)>) {
    let mut advice = advice(warnings);
    for same in [true, false] {
        let is_one =
            |of: &&Warning| matches!(of, Warning::AnotherRun { same_cpu, .. } if *same_cpu == same);
        let others: Vec<&Warning> = warnings.iter().filter(is_one).collect();
        let told: BTreeSet<String> = others.iter().map(ToString::to_string).collect();
        let is_told = |reason: &Reason| told.contains(&reason.what);
        let pids: BTreeSet<i32> = others.iter().filter_map(|of| of.process()).collect();
        let Some(first) = trust.reasons.iter().position(is_told) else { continue };
        let where_to = if same { "measuring on the same CPU" } else { "running on this machine" };
        let (what, they) = match pids.len() {
            1 => (format!("another whylate was {where_to}"), "it has"),
            many => (format!("{many} other whylate processes were {where_to}"), "they have"),
        };
        let level = trust.reasons[first].level;
        trust.reasons.retain(|reason| !is_told(reason));
        trust.reasons.insert(first, Reason { level, what: what.clone() });
        advice.insert(0, (what, format!("Wait until {they} ended, and record again.")));
    }
    for (end, what_to_do) in WITHOUT_WARNING {
        let of_it = trust.reasons.iter().filter(|of| of.what.ends_with(end));
        advice.extend(of_it.map(|reason| (reason.what.clone(), what_to_do.to_owned())));
    }
    (trust, advice)
}

/// The end of each reason that no warning gave, and what to do about it.
const WITHOUT_WARNING: [(&str, &str); 2] = [
    (
        "of the lost time has no kernel event",
        "Look for its cause with hwlatdetect, or on the hypervisor's side.",
    ),
    (BELOW_THE_WHOLE, "Record more rounds (--rounds)."),
];

/// What to do about each reason that a warning gave: the last sentence of its advice.
fn advice(warnings: &[Warning]) -> Vec<(String, String)> {
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
    let advice = known.map(|(what, advice)| (what.as_str(), advice.as_str())).next();
    let said = |reasons: usize, advice: Option<(&str, &str)>| {
        let mut told: Vec<String> =
            trust.reasons.iter().take(reasons).map(|reason| reason.what.clone()).collect();
        let more = trust.reasons.len() - told.len();
        // What to do stands behind its reason: at the end, or in brackets where something follows.
        let mut last = String::new();
        if let Some((what, advice)) = advice {
            match told.iter().position(|of| of == what) {
                Some(at) if (at + 1 < told.len() || more > 0) && !advice.contains('(') => {
                    told[at] = format!("{what} ({})", lower(advice.trim_end_matches('.')));
                }
                _ => last = format!(" {advice}"),
            }
        }
        let more = if more > 0 { format!("; and {more} more: --full") } else { String::new() };
        let text = format!("{level}. {}{more}.{last}", upper(&told.join("; ")));
        fitting.wrapped(&text, LABEL)
    };
    let tries = [(REASONS, advice), (REASONS, None), (1, advice), (1, None)];
    let fits = tries.iter().map(|(reasons, advice)| said(*reasons, *advice));
    let fits = fits.into_iter().find(|lines| lines.len() <= most);
    fits.unwrap_or_else(|| fitting.cut(said(1, None), most))
}

/// The sentence without its capital letter, unless a name begins with it.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let Some(first) = letters.next() else { return String::new() };
    if letters.clone().next().is_none_or(|second| !second.is_lowercase() && second != ' ') {
        return sentence.to_owned();
    }
    first.to_lowercase().chain(letters).collect()
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
