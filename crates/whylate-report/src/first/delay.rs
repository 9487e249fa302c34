//! What a delay line held back, how late it let it go, and what became of the rest.

use whylate_model::delay::{DelayDirection, DelayEnd, DelayLine};
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Printable};

use super::{Screen, residence};
use crate::delay::{dropped, name, sum, times};
use crate::doc::Table;
use crate::numbers::{Cell, Names, Value, count};
use crate::spans::{Name, Sentence, sentence};
use crate::terminal::Style;

pub(super) fn screen(of: &DelayLine, style: Style) -> Screen {
    let said = |time: Nanos| Cell::from(time).said();
    let (base, error) = (said(of.base.base), said(of.base.error));
    let mut notes = vec![format!(
        "Check before the run: it added {base} (p50); 99% of frames left at most {error} late."
    )];
    if let Some(log) = of.truths.filter(|log| log.missed > 0) {
        let (kept, missed) = (count(log.kept), count(log.missed));
        notes.push(format!("Log of true delays: {kept} frames, {missed} missing."));
    }
    let changes = of.changes.len();
    if changes > 0 {
        let times = if changes == 1 { "once".to_owned() } else { format!("{changes} times") };
        notes.push(format!("The settings were changed {times} during the run (see --full)."));
    }
    let [first, other] = &of.ports;
    let ports = sentence![Name::of(first), " and ", Name::of(other)];
    Screen {
        answer: [Some(headline(of, ports)), trouble(of)].into_iter().flatten().collect(),
        tables: vec![directions(of), residence::table("time in the delay line", &times(of), style)],
        notes,
        answered: overflows(of),
        ..Screen::default()
    }
}

fn headline(of: &DelayLine, ports: Sentence) -> Sentence {
    let received = sum(of, |counts| counts.received);
    if received == 0 {
        return sentence!["Nothing came between ", ports, " in ", of.lasted, "."];
    }
    let passed = Value::Count(sum(of, |counts| counts.passed_on));
    let late = of.directions.iter().filter_map(|of| of.lateness.as_ref());
    let late = late.max_by_key(|of| of.max).filter(|of| crate::residence::shows(of, 50.0));
    let late = late.map(|of| sentence![", ", residence::at(of, 50.0), " late (p50)"]);
    let received = Value::Count(received);
    let between = sentence![" frames between ", ports, " in ", of.lasted];
    sentence!["Passed on ", passed, " of ", received, between, late, "."]
}

/// What went wrong, in a sentence; none where nothing did.
fn trouble(of: &DelayLine) -> Option<Sentence> {
    if of.ended == DelayEnd::PortLost {
        return Some("It ended early: a port was lost.".into());
    }
    let dropped = sum(of, crate::delay::dropped);
    let full = "because the delay line was full";
    let why = match sum(of, |counts| counts.overflow) {
        0 => "though the settings asked for no loss".into(),
        overflow if overflow == dropped => full.into(),
        overflow => {
            sentence!["though the settings asked for no loss: ", Value::Count(overflow), " ", full]
        }
    };
    let frames = if dropped == 1 { " frame " } else { " frames " };
    (dropped > 0).then(|| sentence!["Dropped ", Value::Count(dropped), frames, why, "."])
}

/// What its warnings say of dropped frames, which the answer counts.
fn overflows(of: &DelayLine) -> Vec<String> {
    let is_one = |of: &&Warning| matches!(of, Warning::DelayOverflow { .. });
    of.warnings.iter().filter(is_one).map(ToString::to_string).collect()
}

fn directions(of: &DelayLine) -> Table {
    let head =
        ["direction", "delay", "received", "passed on", "dropped as asked", "dropped", "reordered"];
    let mut table = Table::new("", &head);
    let row = |direction: &DelayDirection| {
        let counts = &direction.counts;
        let number = |of: u64| Cell::from(Value::Count(of));
        [
            Cell::from(name(direction)),
            Names::default().respelled(&Printable(&direction.law).to_string()).into(),
            number(counts.received),
            number(counts.passed_on),
            number(counts.lost_on_purpose),
            number(dropped(counts)),
            number(counts.reordered),
        ]
    };
    of.directions.iter().for_each(|direction| table.row(row(direction)));
    table
}
