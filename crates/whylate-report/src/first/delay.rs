//! What a delay line held back, how late it let it go, and what became of the rest.

use whylate_model::delay::{DelayCounts, DelayDirection, DelayEnd, DelayLine};
use whylate_model::{Nanos, Printable};

use super::{Screen, residence};
use crate::delay::{name, times};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::terminal::Style;

pub(super) fn screen(of: &DelayLine, style: Style) -> Screen {
    let said = |time: Nanos| Cell::from(time).said();
    let (base, error) = (said(of.base.base), said(of.base.error));
    let mut notes =
        vec![format!("By itself it adds {base} (p50), and 99 of 100 leave at most {error} late.")];
    if let Some(log) = of.truths.filter(|log| log.missed > 0) {
        let (kept, missed) = (count(log.kept), count(log.missed));
        notes.push(format!("The truth of {missed} is missing; that of {kept} is kept."));
    }
    let changes = of.changes.len();
    if changes > 0 {
        let times = if changes == 1 { "once".to_owned() } else { format!("{changes} times") };
        notes.push(format!("The settings were changed {times} meanwhile: --full."));
    }
    let [first, other] = &of.ports;
    let ports = format!("{} and {}", Printable(first), Printable(other));
    Screen {
        answer: [Some(headline(of, &ports)), trouble(of)].into_iter().flatten().collect(),
        tables: vec![directions(of), residence::table("stayed, and left late", &times(of), style)],
        notes,
        ..Screen::default()
    }
}

fn sum(of: &DelayLine, what: fn(&DelayCounts) -> u64) -> u64 {
    of.directions.iter().map(|direction| what(&direction.counts)).fold(0, u64::saturating_add)
}

/// What was meant to pass and did not.
fn dropped(of: &DelayCounts) -> u64 {
    let gone = of.passed_on.saturating_add(of.lost_on_purpose);
    of.received.saturating_sub(gone.saturating_add(of.waiting_at_the_end))
}

fn headline(of: &DelayLine, ports: &str) -> String {
    let lasted = Cell::from(of.lasted).said();
    let received = sum(of, |counts| counts.received);
    if received == 0 {
        return format!("Nothing came between {ports} in {lasted}.");
    }
    let passed = count(sum(of, |counts| counts.passed_on));
    let late = of.directions.iter().filter_map(|of| of.lateness.as_ref());
    let late = late.max_by_key(|of| of.max);
    let late = late.map_or_else(String::new, |of| {
        format!(", {} late in the median", residence::at(of, 50.0).said())
    });
    format!("Passed on {passed} of {} between {ports} in {lasted}{late}.", count(received))
}

/// What went wrong, in a sentence; none where nothing did.
fn trouble(of: &DelayLine) -> Option<String> {
    if of.ended == DelayEnd::PortLost {
        return Some("It ended early: a port was lost.".to_owned());
    }
    let dropped = sum(of, dropped);
    let room = match sum(of, |counts| counts.overflow) {
        0 => " against the settings".to_owned(),
        overflow if overflow == dropped => " for want of room".to_owned(),
        overflow => format!(" against the settings, {} for want of room", count(overflow)),
    };
    (dropped > 0).then(|| format!("Dropped {}{room}.", count(dropped)))
}

fn directions(of: &DelayLine) -> Table {
    let head = ["direction", "delay", "received", "passed on", "lost", "dropped", "reordered"];
    let mut table = Table::new("", &head).words(&[1]);
    let row = |direction: &DelayDirection| {
        let counts = &direction.counts;
        let number = |of: u64| Cell::from(Value::Count(of));
        [
            Cell::from(name(direction)),
            Printable(&direction.law).to_string().into(),
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
