//! How well the instrument found what was planted.

use whylate_model::cause::Validation;
use whylate_model::run::{Run, SelfTestKind};

use crate::numbers::{count, percent};
use crate::render::terminal::Page;

pub(super) fn sections(page: &mut Page, run: &Run) {
    if let Some(test) = &run.selftest {
        page.section("Self-test: known interruptions");
        let rows: Vec<Vec<String>> = test.kinds.iter().map(row).collect();
        let head = ["kind", "injected", "recall", "precision", "named", "length error (p99)"];
        page.table(&head, &rows, &[]);
        for (kind, reason) in &test.skipped {
            page.item(&format!("{kind}: not injected: {reason}"));
        }
        if test.kinds.iter().any(|kind| !kind.with_trace) {
            page.paragraph(
                "Without the kernel's trace nothing could be named, and precision is not known.",
            );
        }
    }
    if let Some(validation) = &run.validation {
        page.section("Evidence B judged by evidence A");
        page.table(&["", "truth: switch", "truth: none"], &matrix(validation), &[]);
        page.item(&judged(
            "context switch",
            validation.switch_recall(),
            validation.switch_precision(),
        ));
        page.item(&judged(
            "no context switch",
            validation.none_recall(),
            validation.none_precision(),
        ));
    }
}

fn row(kind: &SelfTestKind) -> Vec<String> {
    let share = |part: u64, all: u64| match all {
        0 => "-".to_owned(),
        all => percent(part as f64 / all as f64),
    };
    let length = match (kind.length_error_ns, kind.length_error_p99_ns) {
        (Some(median), Some(p99)) => format!("{median:+.0}ns ({p99:.0}ns)"),
        _ => "not known".to_owned(),
    };
    let named = if kind.with_trace { share(kind.named_right, kind.found) } else { "-".to_owned() };
    let precision =
        if kind.with_trace { share(kind.ascribed_rightly, kind.ascribed) } else { "-".to_owned() };
    vec![
        kind.kind.clone(),
        count(kind.injected),
        share(kind.found, kind.injected),
        precision,
        named,
        length,
    ]
}

fn matrix(validation: &Validation) -> Vec<Vec<String>> {
    vec![
        vec![
            "B says context switch".to_owned(),
            count(validation.switch_as_switch),
            count(validation.none_as_switch),
        ],
        vec![
            "B says none".to_owned(),
            count(validation.switch_as_none),
            count(validation.none_as_none),
        ],
        vec!["undecided".to_owned(), count(validation.undecided), String::new()],
    ]
}

fn judged(class: &str, recall: Option<f64>, precision: Option<f64>) -> String {
    let show = |share: Option<f64>| share.map_or("not known".to_owned(), percent);
    format!("{class}: recall {}, precision {}", show(recall), show(precision))
}
