//! Tables of phases from planted facts.

use whylate_model::Nanos;
use whylate_model::threads::{ActivationSummary, RuntimeSummary, StepTime};

use super::*;
use crate::execution::recorded::tests::set;
use crate::numbers::{Cell, Value};

const MS: u64 = 1_000_000;

fn phase(name: &str) -> PhaseSummary {
    PhaseSummary {
        name: name.to_owned(),
        passes: 100,
        run_asked: Nanos(3 * MS),
        run_ns: Some(3.001e6),
        runtime: None,
        period_asked: None,
        activations: None,
        length_asked: None,
        period_ns: Some(12.5e6),
        lost_ns: Some(0.5e6),
    }
}

/// The recorded set, of which the first thread has phases.
fn run() -> Run {
    let mut run = set();
    let busy = RuntimeSummary {
        asked: Nanos(4 * MS),
        lasted_ns: Some(5e6),
        received_ns: Some(2e6),
        longest_over: Nanos(3 * MS),
    };
    let activations = ActivationSummary {
        count: 99,
        distance_ns: Some(8.02e6),
        put_off: 2,
        put_off_by: Nanos(MS),
        last_late: Nanos(0),
    };
    run.threads[0].phases = vec![
        PhaseSummary { length_asked: Some(Nanos(12 * MS)), ..phase("sleeps") },
        PhaseSummary { runtime: Some(busy), ..phase("busy") },
        PhaseSummary {
            period_asked: Some(Nanos(8 * MS)),
            activations: Some(activations),
            ..phase("timed")
        },
        PhaseSummary { period_asked: Some(Nanos(8 * MS)), ..phase("shared") },
    ];
    run.threads[0].steps =
        Some(StepTime { run: Nanos(900 * MS), runtime: Nanos(200 * MS), other: Nanos(7 * MS) });
    run
}

fn rows<'a>(tables: &'a [Explained], caption: &str) -> Vec<&'a [Cell]> {
    let (found, _) = tables.iter().find(|(of, _)| of.caption == caption).unwrap();
    assert!(found.rows.iter().all(|row| row.len() == found.columns.len()), "{caption}");
    found.rows.iter().map(|row| &row[1..]).collect()
}

#[test]
fn each_kind_of_step_has_a_table_of_its_own_and_what_is_not_known_is_a_dash() {
    let run = run();
    let tables = phases(&run);
    assert_eq!(
        rows(&tables, "Phases")[..2],
        [
            ["sleeps", "100", "3 ms", "3.00 ms", "12 ms", "12.5 ms", "500 µs"],
            ["busy", "100", "3 ms", "3.00 ms", "–", "12.5 ms", "500 µs"],
        ]
    );
    assert_eq!(
        rows(&tables, "Timers"),
        [["timed", "8 ms", "99", "8.02 ms", "2", "1 ms"], ["shared", "8 ms", "–", "–", "–", "–"]]
    );
    assert_eq!(
        rows(&tables, "Busy by the clock"),
        [["busy", "4 ms", "5 ms", "3 ms", "2 ms", "40%"]]
    );
    let received = Value::from(run.threads[0].received).to_string();
    assert_eq!(rows(&tables, "What steps received"), [[&received, "900 ms", "200 ms", "7 ms"]]);
}

#[test]
fn a_set_without_programs_has_none_of_these_tables() {
    assert!(phases(&set()).is_empty());
}
