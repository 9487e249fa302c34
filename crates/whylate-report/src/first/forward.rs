//! What a forwarder carried, where some was lost, and how long it stayed.

use whylate_model::Printable;
use whylate_model::forward::{Forward, ForwardDirection, ForwardEnd};

use super::{Screen, residence};
use crate::doc::Table;
use crate::forward::{carried, name, port_losses, residences};
use crate::numbers::{Cell, Value, count};
use crate::terminal::Style;

pub(super) fn screen(of: &Forward, style: Style) -> Screen {
    let (one, _) = carried(of);
    let mut notes = Vec::new();
    if residences(of).is_empty() {
        notes.push("Nothing was stamped: how long they stayed is not known.".to_owned());
    } else {
        notes.push(format!(
            "Residence: from seeing a {one} at one port to handing it to the other."
        ));
    }
    notes.extend(elsewhere(of));
    Screen {
        answer: [Some(headline(of)), ended(of)].into_iter().flatten().collect(),
        tables: vec![directions(of), residence::table("residence", &residences(of), style)],
        notes,
        ..Screen::default()
    }
}

fn sum(of: &Forward, what: fn(&ForwardDirection) -> u64) -> u64 {
    of.directions.iter().map(what).fold(0, u64::saturating_add)
}

/// What was dropped by the forwarder itself.
fn dropped(of: &ForwardDirection) -> u64 {
    of.received.saturating_sub(of.forwarded.saturating_add(of.waiting))
}

fn headline(of: &Forward) -> String {
    let (one, several) = carried(of);
    let lasted = Cell::from(of.lasted).said();
    let received = sum(of, |direction| direction.received);
    if received == 0 {
        return format!("No {one} came in {lasted}.");
    }
    let dropped = match sum(of, dropped) {
        0 => "none was dropped here".to_owned(),
        1 => "1 was dropped here".to_owned(),
        dropped => format!("{} were dropped here", count(dropped)),
    };
    let forwarded = count(sum(of, |direction| direction.forwarded));
    let received = count(received);
    format!("Forwarded {forwarded} of {received} {several} in {lasted}; {dropped}.")
}

/// An end that nobody asked for.
fn ended(of: &Forward) -> Option<String> {
    match of.ended {
        ForwardEnd::PortLost => Some("It ended early: a port was lost.".to_owned()),
        ForwardEnd::ThreadFailed => Some("It ended early: one of its threads failed.".to_owned()),
        ForwardEnd::Stopped | ForwardEnd::Duration | ForwardEnd::GoingOn => None,
    }
}

fn directions(of: &Forward) -> Table {
    let seconds = of.lasted.0 as f64 / 1e9;
    let head = ["direction", "received", "forwarded", "per second", "dropped", "waiting"];
    let mut table = Table::new("", &head);
    for direction in &of.directions {
        let per_second = if seconds > 0.0 { direction.forwarded as f64 / seconds } else { 0.0 };
        table.row([
            Cell::from(name(direction)),
            Value::Count(direction.received).into(),
            Value::Count(direction.forwarded).into(),
            Value::Rate(per_second).into(),
            Value::Count(dropped(direction)).into(),
            Value::Count(direction.waiting).into(),
        ]);
    }
    table
}

/// What rings and interfaces lost besides: the first place, and how many more there are.
fn elsewhere(of: &Forward) -> Option<String> {
    let places = port_losses(&of.ports);
    let first = places.first()?;
    let more = match places.len() - 1 {
        0 => String::new(),
        more => format!(" and at {more} more places"),
    };
    let [place, counter, lost] = first.as_slice() else { return None };
    let (place, counter) = (Printable(place), Printable(counter));
    Some(format!("Lost beside it: {lost} at {place} ({counter}){more}."))
}
