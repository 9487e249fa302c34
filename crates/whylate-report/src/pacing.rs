//! How late requests left, with and without what long turns of the sender's loop explain.

use whylate_model::flow::{Flow, NamedTurns, Pacing, TookTurn, TurnsBy};
use whylate_model::run::Run;

use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::series::at_percent;

/// How the table is to be read.
pub(crate) const APART: &str = "Without: leaving out requests that were sent late behind long turns of the \
     sender's loop, which explain the larger part of their send delay. A long turn is an interruption, or a \
     system call of the sender's own that took longer than the last ones: the kernel's trace tells \
     which. What it is late by itself stays in; so does what shorter turns do.";

/// Send lateness of all requests beside that of those that no long turn explains; none where nothing
/// was intended.
pub(crate) fn table(run: &Run) -> Option<Table> {
    let head =
        ["flow", "late p99", "without", "late p99.9", "without", "excluded", "long turns", "known"];
    let mut table = Table::new("Send delay, with and without interruptions of the sender", &head);
    for flow in &run.flows {
        if let Some(pacing) = &flow.departures.pacing {
            table.row(row(run, flow, pacing));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn row(run: &Run, flow: &Flow, pacing: &Pacing) -> [Cell; 8] {
    let at = |name: Option<&String>, percent: f64| -> Cell {
        let series = run.series.iter().find(|series| Some(&series.name) == name);
        series.map_or_else(|| Value::Absent.into(), |series| at_percent(series, percent))
    };
    let (all, apart) = (flow.lateness.as_ref(), pacing.lateness.as_ref());
    [
        flow.name.as_str().into(),
        at(all, 99.0),
        at(apart, 99.0),
        at(all, 99.9),
        at(apart, 99.9),
        Value::from(pacing.share().map(Value::Share)).into(),
        Value::Count(pacing.long_turns).into(),
        Value::from(pacing.named.as_ref().map(|named| Value::Count(named.sum().0))).into(),
    ]
}

/// The same in words: what counts as a long turn, and what they were.
pub(crate) fn said(pacing: &Pacing) -> String {
    let named = match &pacing.named {
        Some(named) => were(named, pacing.long_turns),
        None => "their cause was not recorded".to_owned(),
    };
    format!(
        "{} long turns of the sender's loop (longer than {} while polling, {} while sending), {} in all, \
         and {} of {} requests were sent late behind them; {named}",
        count(pacing.long_turns),
        Value::from(pacing.looking),
        Value::from(pacing.sending),
        Value::from(pacing.took),
        count(pacing.excluded),
        count(pacing.of)
    )
}

fn were(named: &NamedTurns, long_turns: u64) -> String {
    let (turns, took) = named.sum();
    let mut said = vec![if turns == 0 {
        "none has a cause in the kernel's trace".to_owned()
    } else {
        let by = |of: &TurnsBy| {
            format!("{} {} ({})", word(of.what), count(of.turns), Value::from(of.took))
        };
        let by: Vec<String> = named.by.iter().map(by).collect();
        let took = Value::from(took);
        format!("{} ({took}) have a known cause: {}", count(turns), by.join(", "))
    }];
    let own = named.own_or_unnamed();
    if own > 0 {
        said.push(format!("{} are its own system calls or have no known cause", count(own)));
    }
    let unseen = long_turns.saturating_sub(named.looked_at);
    if unseen > 0 {
        said.push(format!("of {} the cause was not recorded", count(unseen)));
    }
    said.join("; ")
}

fn word(what: TookTurn) -> &'static str {
    match what {
        TookTurn::Interrupt => "interrupts",
        TookTurn::Softirq => "soft interrupts",
        TookTurn::Thread => "other threads",
        TookTurn::Whylate => "threads of whylate",
        TookTurn::Host => "no kernel event",
        TookTurn::Other => "stops, faults and signals",
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::Nanos;

    use super::*;

    fn pacing(named: Option<NamedTurns>) -> Pacing {
        Pacing {
            long_turns: 20,
            took: Nanos(4_400_000),
            named,
            looking: Nanos(3_000),
            sending: Nanos(9_000),
            excluded: 86,
            of: 1_000,
            lateness: None,
        }
    }

    #[test]
    fn long_turns_are_called_interruptions_by_their_names_alone() {
        let limits = "20 long turns of the sender's loop (longer than 3 µs while polling, 9 µs while \
             sending), 4.4 ms in all, and 86 of 1,000 requests were sent late behind them; ";
        let unknown = said(&pacing(None));
        assert_eq!(unknown, format!("{limits}their cause was not recorded"));
        let by = |what, turns, took| TurnsBy { what, turns, took: Nanos(took) };
        let named = NamedTurns {
            looked_at: 19,
            by: vec![by(TookTurn::Interrupt, 7, 90_000), by(TookTurn::Thread, 1, 4_000_000)],
        };
        let expected = format!(
            "{limits}8 (4.09 ms) have a known cause: interrupts 7 (90 µs), other threads 1 (4 ms); 11 are \
             its own system calls or have no known cause; of 1 \
             the cause was not recorded"
        );
        assert_eq!(said(&pacing(Some(named))), expected);
        let none = said(&pacing(Some(NamedTurns { looked_at: 20, by: Vec::new() })));
        assert!(none.contains("none has a cause in the kernel's trace; 20 are its own"), "{none}");
        for said in [unknown, none] {
            assert!(!said.contains("interrupted"), "{said}");
        }
    }
}
