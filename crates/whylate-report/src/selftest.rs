//! How well the instrument found what was planted.

use whylate_model::cause::Validation;
use whylate_model::run::{Run, SelfTest, SelfTestKind};

use crate::doc::{Block, Table};
use crate::numbers::Value;

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
    let skipped = Block::items(skipped.collect());
    [Block::Table(table)].into_iter().chain(skipped).chain(blind).collect()
}

fn row(kind: &SelfTestKind) -> [Value; 8] {
    let share = |part: u64, all: u64| -> Value {
        (all > 0).then(|| Value::Share(part as f64 / all as f64)).into()
    };
    let traced = |value: Value| if kind.with_trace { value } else { Value::Absent };
    let length = match (kind.length_error_ns, kind.length_error_p99_ns) {
        (Some(median), Some(p99)) => format!("{median:+.0}ns ({p99:.0}ns)"),
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
    let head = ["evidence B says", "truth: switch", "truth: none", "recall", "precision"];
    let mut table = Table::new("Evidence B judged by evidence A", &head);
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
