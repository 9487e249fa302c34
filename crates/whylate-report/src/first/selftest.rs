//! Are interruptions that were injected found, and named right?

use whylate_model::cause::Validation;
use whylate_model::run::{Run, SelfTestKind};
use whylate_stats::share;

use super::Screen;
use super::layout::name;
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};

/// Is it a self-test?
pub(super) fn is_it(run: &Run) -> bool {
    run.selftest.is_some() && !run.is_merged()
}

pub(super) fn screen(run: &Run) -> Screen {
    let Some(test) = &run.selftest else { return Screen::default() };
    let mut notes = Vec::new();
    if test.kinds.iter().any(|kind| !kind.with_trace) {
        notes.push("Without the kernel's trace none of them can be named.".to_owned());
    }
    for (kind, why) in &test.skipped {
        notes.push(format!("Not injected: {} ({}).", name(kind), why.trim_end_matches('.')));
    }
    Screen {
        answer: answer(&test.kinds),
        tables: [table(&test.kinds)].into_iter().chain(inferred(run)).collect(),
        notes,
        more: vec![
            "whylate gaps --verify-causes  checks inferred causes in a run of your own".to_owned(),
        ],
        ..Screen::default()
    }
}

fn sum<'a>(kinds: impl Iterator<Item = &'a SelfTestKind>, of: fn(&SelfTestKind) -> u64) -> u64 {
    kinds.map(of).fold(0, u64::saturating_add)
}

fn answer(kinds: &[SelfTestKind]) -> Vec<String> {
    let (injected, found) =
        (sum(kinds.iter(), |kind| kind.injected), sum(kinds.iter(), |kind| kind.found));
    if injected == 0 {
        return vec!["No interruption was injected, so that nothing can be judged.".to_owned()];
    }
    let traced = || kinds.iter().filter(|kind| kind.with_trace);
    let (named, of) = (sum(traced(), |kind| kind.named_right), sum(traced(), |kind| kind.found));
    let first = told(found, injected, "injected interruptions", "were found");
    let second = (of > 0).then(|| told(named, of, "found", "were named right"));
    std::iter::once(first).chain(second).collect()
}

/// So many of so many, with the share and its interval.
fn told(part: u64, all: u64, what: &str, did: &str) -> String {
    let share = of(part, all);
    let (part, ends) = (count(part), share.ends().said());
    let all = count(all);
    if part == all {
        format!("All {all} {what} {did} (95% CI {ends}).")
    } else {
        format!("{part} of {all} {what} {did} ({}, 95% CI {ends}).", share.said())
    }
}

/// A share of counts with its exact interval; of nothing, or of less than itself, there is none.
fn of(part: u64, all: u64) -> Cell {
    if all == 0 || part > all {
        return Value::Absent.into();
    }
    let (part, all) = (part as f64, all as f64);
    let (low, high) = share::interval(part, all);
    Cell::from(Value::Share(part / all)).within(Some((Value::Share(low), Value::Share(high))))
}

fn table(kinds: &[SelfTestKind]) -> Table {
    let head =
        ["interruptions", "injected", "found", "95% CI", "named right", "95% CI", "error, p99"];
    let mut table = Table::new("", &head);
    for kind in kinds {
        let named = kind.with_trace.then_some(Value::Count(kind.named_right));
        let ends =
            if kind.with_trace { of(kind.named_right, kind.found) } else { Value::Absent.into() };
        table.row([
            Cell::from(name(&kind.kind)),
            Value::Count(kind.injected).into(),
            Value::Count(kind.found).into(),
            of(kind.found, kind.injected).ends(),
            named.into(),
            ends.ends(),
            kind.length_error_p99_ns.map(Value::Time).into(),
        ]);
    }
    table
}

/// What was inferred without the trace, judged by it; none where that was not asked.
pub(super) fn inferred(run: &Run) -> Option<Table> {
    let of_run: &Validation = run.validation.as_ref()?;
    let Validation { switch_as_switch, switch_as_none, none_as_switch, none_as_none, undecided } =
        *of_run;
    let mut table = Table::new("", &["inferred without the trace", "stalls", "right", "95% CI"]);
    for (what, right, wrong) in [
        ("context switch", switch_as_switch, none_as_switch),
        ("no context switch", none_as_none, switch_as_none),
    ] {
        let all = right.saturating_add(wrong);
        let share = of(right, all);
        table.row([Cell::from(what), Value::Count(all).into(), share.clone(), share.ends()]);
    }
    if undecided > 0 {
        let absent = || Cell::from(Value::Absent);
        table.row([Cell::from("undecided"), Value::Count(undecided).into(), absent(), absent()]);
    }
    Some(table)
}
