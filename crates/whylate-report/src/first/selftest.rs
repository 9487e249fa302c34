//! Are interruptions that were injected found, and attributed to the right cause?

use whylate_model::cause::Validation;
use whylate_model::run::{Run, SelfTestKind};

use super::Screen;
use super::layout::name;
use super::trusted::NONE_INJECTED;
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::selftest::{InAll, part as of};
use crate::spans::{Sentence, sentence};

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
    let is_none = InAll::of(&test.kinds).injected == 0;
    Screen {
        answer: answer(&test.kinds),
        answered: is_none.then(|| NONE_INJECTED.to_owned()).into_iter().collect(),
        tables: [table(&test.kinds)].into_iter().chain(inferred(run)).collect(),
        notes,
        more: vec![
            "whylate gaps --verify-causes  checks inferred causes in a run of your own".to_owned(),
        ],
        ..Screen::default()
    }
}

fn answer(kinds: &[SelfTestKind]) -> Vec<Sentence> {
    let InAll { injected, found, traced, named } = InAll::of(kinds);
    if injected == 0 {
        return vec!["No interruption was injected, so there is nothing to judge.".into()];
    }
    let first = told(found, injected, " injected interruptions were found");
    let second = (traced > 0).then(|| told(named, traced, " were attributed to the right cause"));
    std::iter::once(first).chain(second).collect()
}

/// So many of so many, with the share and its interval.
fn told(part: u64, all: u64, what: &'static str) -> Sentence {
    let share = self::of(part, all);
    let ends = sentence!["95% CI ", share.ends()];
    let all_of_them = Value::Count(all);
    if part == all {
        sentence!["All ", all_of_them, what, " (", ends, ")."]
    } else {
        sentence![Value::Count(part), " of ", all_of_them, what, " (", share, ", ", ends, ")."]
    }
}

fn table(kinds: &[SelfTestKind]) -> Table {
    let head =
        ["interruptions", "injected", "found", "95% CI", "right cause", "95% CI", "error, p99"];
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
