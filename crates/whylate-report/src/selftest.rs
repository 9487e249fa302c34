//! How well the instrument found what was planted.

use whylate_model::cause::Validation;
use whylate_model::run::{Run, SelfTest, SelfTestKind};
use whylate_stats::share;

use crate::doc::{Block, Table};
use crate::numbers::{Cell, Value, count, difference, time};

/// What there is to say; nothing where nothing was planted or judged.
pub(crate) fn blocks(run: &Run) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(test) = &run.selftest {
        blocks.extend(planted(test));
    }
    blocks.extend(run.validation.iter().map(|of| Block::Table(judged(of))));
    blocks
}

fn planted(test: &SelfTest) -> Vec<Block> {
    let head = [
        "kind",
        "injected",
        "found",
        "ascribed",
        "recall",
        "precision",
        "named",
        "length error (p99)",
    ];
    let mut table = Table::new("Self-test: known interruptions", &head).page_columns(&[2, 3]);
    for kind in &test.kinds {
        table.row(row(kind));
    }
    let skipped = test.skipped.iter().map(|(kind, why)| format!("{kind}: not injected: {why}"));
    let blind = test.kinds.iter().any(|kind| !kind.with_trace).then(|| {
        let said = "Without the kernel's trace nothing could be named, and precision is not known.";
        Block::How(said.to_owned())
    });
    let skipped = Block::items(in_all(&test.kinds).into_iter().chain(skipped).collect());
    [Block::Table(table)].into_iter().chain(skipped).chain(blind).collect()
}

/// Of all kinds how many were found, and of those how many were named right, with the shares and their intervals.
pub(crate) struct InAll {
    pub(crate) injected: u64,
    pub(crate) found: u64,
    /// Of those that the trace was on for: found, and named right.
    pub(crate) traced: u64,
    pub(crate) named: u64,
}

impl InAll {
    pub(crate) fn of(kinds: &[SelfTestKind]) -> Self {
        let sum = |of: fn(&SelfTestKind) -> u64| kinds.iter().map(of).fold(0, u64::saturating_add);
        Self {
            injected: sum(|kind| kind.injected),
            found: sum(|kind| kind.found),
            traced: sum(|kind| if kind.with_trace { kind.found } else { 0 }),
            named: sum(|kind| if kind.with_trace { kind.named_right } else { 0 }),
        }
    }
}

/// A share of counts with its exact interval; of nothing, or of less than itself, there is none.
pub(crate) fn part(part: u64, all: u64) -> Cell {
    if all == 0 || part > all {
        return Value::Absent.into();
    }
    let (part, all) = (part as f64, all as f64);
    let (low, high) = share::interval(part, all);
    Cell::from(Value::Share(part / all)).within(Some((Value::Share(low), Value::Share(high))))
}

/// The same in words; none where nothing was injected.
fn in_all(kinds: &[SelfTestKind]) -> Option<String> {
    let InAll { injected, found, traced, named } = InAll::of(kinds);
    let told = |of: u64, all: u64| format!("{} of {}, {}", count(of), count(all), part(of, all));
    let named = if traced > 0 {
        format!("; attributed to the right cause: {}", told(named, traced))
    } else {
        String::new()
    };
    (injected > 0).then(|| format!("all kinds: found: {}{named}", told(found, injected)))
}

fn row(kind: &SelfTestKind) -> [Value; 8] {
    let share = |part: u64, all: u64| -> Value {
        (all > 0).then(|| Value::Share(part as f64 / all as f64)).into()
    };
    let traced = |value: Value| if kind.with_trace { value } else { Value::Absent };
    let length = match (kind.length_error_ns, kind.length_error_p99_ns) {
        (Some(median), Some(p99)) => format!("{} ({})", difference(median), time(p99)),
        _ => "not known".to_owned(),
    };
    [
        kind.kind.as_str().into(),
        Value::Count(kind.injected),
        Value::Count(kind.found),
        traced(Value::Count(kind.ascribed)),
        share(kind.found, kind.injected),
        traced(share(kind.ascribed_rightly, kind.ascribed)),
        traced(share(kind.named_right, kind.found)),
        length.into(),
    ]
}

/// Both classes with what of them was found, and how much of what was said is right.
fn judged(of: &Validation) -> Table {
    let share = |share: Option<f64>| share.map_or(Value::from("not known"), Value::Share);
    let head = ["inferred", "traced: switch", "traced: none", "recall", "precision"];
    let mut table = Table::new("Inferred causes against the kernel trace", &head);
    table.row([
        "context switch".into(),
        Value::Count(of.switch_as_switch),
        Value::Count(of.none_as_switch),
        share(of.switch_recall()),
        share(of.switch_precision()),
    ]);
    table.row([
        "no context switch".into(),
        Value::Count(of.switch_as_none),
        Value::Count(of.none_as_none),
        share(of.none_recall()),
        share(of.none_precision()),
    ]);
    let blank = || Value::from("");
    table.row(["undecided".into(), Value::Count(of.undecided), blank(), blank(), blank()]);
    table
}
