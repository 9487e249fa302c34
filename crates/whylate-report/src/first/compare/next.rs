//! Where the rest of a comparison is: its own command with what shows more of it.

use std::collections::BTreeSet;

use crate::compare::{Comparison, PairResult, RunFacts, allowed_by};
use crate::first::for_a_shell;
use crate::first::steps::fits;

pub(super) fn steps(of: &Comparison) -> Vec<String> {
    if of.pairs.is_empty() {
        return apart(of);
    }
    let judged = of.pairs.iter().any(|pair| matches!(pair.result, PairResult::Compared(_)));
    let next = match (judged, of.limits.is_empty()) {
        (_, false) => Some("--junit FILE  writes the limits for a CI system"),
        (true, true) => Some("--limit 'p99=+10%'  makes it fail in CI (exit status 3)"),
        (false, true) => None,
    };
    [Some(whole(of)), next.map(str::to_owned)].into_iter().flatten().collect()
}

/// The whole report: its own command, or the option alone where the names of its runs leave no room.
fn whole(of: &Comparison) -> String {
    let both = "  has every number; --html FILE draws them";
    let own = own(of);
    let all = [both, "  has every number"].map(|what| format!("{own} --full{what}"));
    let alone = format!("--full{both}");
    all.into_iter().find(|said| fits(said)).unwrap_or(alone)
}

/// The command that was typed, as far as the comparison knows it.
fn own(of: &Comparison) -> String {
    let names = |side: &[RunFacts]| -> Vec<String> {
        side.iter().map(|run| for_a_shell(&run.directory)).collect()
    };
    let (before, after) = (names(&of.before).join(" "), names(&of.after).join(" "));
    let begin = match (of.before.len(), of.after.len()) {
        (1, 1) => format!("whylate compare {before} {after}"),
        _ => format!("whylate compare {after} --baseline {before}"),
    };
    let allowed = of.pairs.iter().filter_map(|pair| match &pair.result {
        PairResult::Compared(compared) => allowed_by(&compared.across),
        _ => None,
    });
    let allowed: BTreeSet<String> = allowed.filter(|names| !names.is_empty()).collect();
    let mut own = vec![begin];
    if !allowed.is_empty() {
        let names: Vec<String> = allowed.into_iter().collect();
        own.push(format!("--across {}", names.join(",")));
    }
    if of.pairs.iter().any(|pair| matches!(pair.result, PairResult::SideBySide)) {
        own.push("--side-by-side".to_owned());
    }
    let limits: BTreeSet<&String> = of.limits.iter().map(|judged| &judged.limit).collect();
    own.extend(limits.into_iter().map(|limit| format!("--limit {}", for_a_shell(limit))));
    own.join(" ")
}

/// What each run says by itself, where nothing pairs what they measured.
fn apart(of: &Comparison) -> Vec<String> {
    let sides = [of.before.first(), of.after.first()].into_iter().flatten();
    let each = sides.map(|run| format!("whylate report {}", for_a_shell(&run.directory)));
    let each: Vec<String> = each.collect();
    if each.iter().all(|said| fits(said)) {
        return each;
    }
    vec!["`whylate report` says of each run what it measured.".to_owned()]
}
