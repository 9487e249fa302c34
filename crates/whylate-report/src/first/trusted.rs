//! How far to trust it, in three lines: the level, at most two reasons, and what to do about them.

use std::collections::BTreeSet;

use whylate_model::trust::{Level, NO_REQUEST, Reason, TOO_FEW_ROUNDS, Trust};
use whylate_model::warning::Warning;

use super::Screen;
use super::layout::Fitting;
use crate::render::{CUT, whole_numbers};

/// Reasons that are told; the others are counted.
const REASONS: usize = 2;
const LABEL: &str = "Trust: ";
/// That of a self-test with nothing to judge.
pub(super) const NONE_INJECTED: &str = "the self-test injected no interruption";

/// Other measurements at the same time are one reason, however many there were, and are told without the numbers of
/// their processes; with what to do about each reason.
pub(super) fn others_once(
    mut trust: Trust,
    warnings: &[Warning],
    advised: impl Fn(&Warning) -> String,
) -> (Trust, Vec<(String, String)>) {
    let of = |warning: &Warning| (warning.to_string(), last_sentence(&advised(warning)));
    let mut advice: Vec<(String, String)> = warnings.iter().map(of).collect();
    trust.reasons.retain(|reason| !follows(&reason.what, warnings));
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
    for (words, what_to_do) in WITHOUT_WARNING {
        let of_it = trust.reasons.iter().filter(|of| of.what.contains(words));
        advice.extend(of_it.map(|reason| (reason.what.clone(), what_to_do.to_owned())));
    }
    (trust, advice)
}

/// Words of each reason that no warning gave, and what to do about it.
const WITHOUT_WARNING: [(&str, &str); 8] = [
    (
        "of the lost time has no kernel event",
        "For time with no kernel event check CPU pinning and overcommit of the physical machine; on bare metal run \
         hwlatdetect.",
    ),
    ("do not bound p99", "Run longer (--duration)."),
    (" jobs of thread ", "Run longer (--duration)."),
    ("a quick run: ", "Leave --quick out."),
    ("the CPU was shared: ", "Give this machine CPUs of its own."),
    (TOO_FEW_ROUNDS, "Record more rounds (--rounds)."),
    (NO_REQUEST, "Watch it while clients ask it, or another process."),
    (NONE_INJECTED, "Record it again as root, and let it end by itself."),
];

/// Does it follow from another reason, about which something can be done? Where no CPU was left for whylate's own
/// threads, they ran where requests were sent or answered.
pub(super) fn follows(what: &str, warnings: &[Warning]) -> bool {
    let is_own = |of: &Warning| matches!(of, Warning::OwnThreadsInTheWay { .. });
    warnings.contains(&Warning::NoHousekeepingCpu)
        && warnings.iter().any(|of| is_own(of) && of.to_string() == what)
}

/// Is it all that an answer says already? `58% of the lost time has no kernel event` is said by `Of that, 58% has no
/// kernel event`.
pub(super) fn is_said(what: &str, answer: &str) -> bool {
    let Some((share, rest)) = what.split_once(" of the lost time ") else { return false };
    let fact = rest.split_once(',').map_or(rest, |(fact, _)| fact);
    answer.contains(&format!("{share} {fact}"))
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

/// The lines of it, no more than so many: the advice goes first, then the second reason. A reason that stands in the
/// answer is not given again: what to do about it is all that is said of it.
pub(super) fn lines(trust: &Trust, screen: &Screen, fitting: &Fitting, most: usize) -> Vec<String> {
    let level = trust.level().name();
    if trust.reasons.is_empty() {
        return fitting.wrapped(&format!("{level}."), LABEL);
    }
    let known = |what: &str| screen.advice.iter().find(|(of, _)| of == what);
    let is_above = |reason: &&Reason| screen.answered.contains(&reason.what);
    let others = trust.reasons.iter().any(|reason| !is_above(&reason));
    let is_advised = !(others && screen.more_advises);
    let mut above = trust.reasons.iter().filter(|reason| is_advised && is_above(reason));
    let above = above.find_map(|reason| known(&reason.what));
    // Lesser reasons alone would stand there as what makes trust this poor: before them that is told again, or what to
    // do about it.
    let is_led = trust.reasons.iter().any(|of| !is_above(&of) && of.level == trust.level());
    let is_repeated = others && !is_led && above.is_none();
    let leads = |reason: &Reason| is_repeated && reason.level == trust.level();
    // With neither another reason nor advice there would be nothing to say.
    let is_told =
        |reason: &&Reason| !is_above(reason) || leads(reason) || !(others || above.is_some());
    let reasons: Vec<&str> =
        trust.reasons.iter().filter(is_told).map(|reason| reason.what.as_str()).collect();
    let advice = above.or_else(|| reasons.iter().take(REASONS).find_map(|what| known(what)));
    let advice = advice.map(|(what, advice)| (what.as_str(), advice.as_str()));
    let said = |many: usize, advice: Option<(&str, &str)>| {
        let mut told: Vec<String> =
            reasons.iter().take(many).map(|what| (*what).to_owned()).collect();
        let rest = reasons.len() + screen.follow - told.len();
        // What to do stands behind its reason: at the end, or in brackets where something follows.
        let mut last = String::new();
        if let Some((what, advice)) = advice {
            match told.iter().position(|of| of == what) {
                Some(at) if (at + 1 < told.len() || rest > 0) && !advice.contains('(') => {
                    told[at] = format!("{what} ({})", lower(advice.trim_end_matches('.')));
                }
                _ => last = format!(" {advice}"),
            }
        }
        let more = if rest > 0 { format!("; and {rest} more: --full") } else { String::new() };
        let why = upper(&told.join("; "));
        let text = match rest {
            _ if !why.is_empty() => format!("{level}. {why}{more}.{last}"),
            0 => format!("{level}.{last}"),
            1 => format!("{level}.{last} 1 more reason: --full."),
            many => format!("{level}.{last} {many} more reasons: --full."),
        };
        fitting.wrapped(&text, LABEL)
    };
    let usual = [(REASONS, advice), (REASONS, None), (1, advice), (1, None)];
    let with_advice = [(REASONS, advice), (1, advice), (0, advice), (1, None)];
    let alone = [(0, advice), (1, advice), (0, advice), (1, None)];
    let tries = match above {
        None => usual,
        Some(_) if is_led => with_advice,
        Some(_) => alone,
    };
    let fits = tries.iter().map(|(reasons, advice)| said(*reasons, *advice));
    let fits = fits.into_iter().find(|lines| lines.len() <= most);
    let last = if reasons.is_empty() { advice } else { None };
    fits.or_else(|| shortened(&reasons, screen.follow, level, fitting, most))
        .unwrap_or_else(|| fitting.cut(said(1, last), most))
}

/// As much of the first reason as there is room for beside the number of the others.
fn shortened(
    reasons: &[&str],
    follow: usize,
    level: &str,
    fitting: &Fitting,
    most: usize,
) -> Option<Vec<String>> {
    let first = upper(reasons.first()?);
    let more = match reasons.len() + follow - 1 {
        0 => String::new(),
        more => format!("; and {more} more: --full."),
    };
    let ends = first.char_indices().filter(|(_, letter)| *letter == ' ').map(|(at, _)| at);
    let ends: Vec<usize> = ends.collect();
    ends.into_iter().rev().find_map(|end| {
        let kept = whole_numbers(&first[..end], &first[end..]);
        let lines = fitting.wrapped(&format!("{level}. {kept}{CUT}{more}"), LABEL);
        (lines.len() <= most).then_some(lines)
    })
}

/// The sentence without its capital letter, unless a name begins with it.
pub(super) fn lower(sentence: &str) -> String {
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
