//! What a forwarder carried, where some was lost, and how long it stayed.

use whylate_model::Printable;
use whylate_model::forward::{Forward, ForwardEnd};

use super::{Screen, residence};
use crate::doc::Table;
use crate::forward::{carried, dropped, name, port_losses, residences, sum};
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, sentence};
use crate::terminal::Style;

pub(super) fn screen(of: &Forward, style: Style) -> Screen {
    let (one, _) = carried(of);
    let mut notes = Vec::new();
    if residences(of).is_empty() {
        notes.push("Nothing was stamped: how long they stayed is not known.".to_owned());
    } else {
        let kernel = of.directions.iter().any(|of| of.kernel_residence.is_some());
        let kernel = if kernel { "; kernel: counted from its receive timestamp" } else { "" };
        notes.push(format!(
            "Residence: from seeing a {one} at one port to handing it to the other{kernel}."
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

fn headline(of: &Forward) -> Sentence {
    let (one, several) = carried(of);
    let received = sum(of, |direction| direction.received);
    if received == 0 {
        return sentence!["No ", one, " came in ", of.lasted, "."];
    }
    let dropped = match sum(of, dropped) {
        0 => "none was dropped here".into(),
        1 => sentence![Value::Count(1), " was dropped here"],
        dropped => sentence![Value::Count(dropped), " were dropped here"],
    };
    let forwarded = Value::Count(sum(of, |direction| direction.forwarded));
    let all = sentence![Value::Count(received), " ", several];
    sentence!["Forwarded ", forwarded, " of ", all, " in ", of.lasted, "; ", dropped, "."]
}

/// An end that nobody asked for.
fn ended(of: &Forward) -> Option<Sentence> {
    match of.ended {
        ForwardEnd::PortLost => Some("It ended early: a port was lost.".into()),
        ForwardEnd::ThreadFailed => Some("It ended early: one of its threads failed.".into()),
        ForwardEnd::Stopped | ForwardEnd::Duration | ForwardEnd::GoingOn => None,
    }
}

fn directions(of: &Forward) -> Table {
    let seconds = of.lasted.0 as f64 / 1e9;
    let (_, several) = carried(of);
    let per_second = format!("{several}/s");
    let head = ["direction", "received", "forwarded", &per_second, "dropped", "waiting"];
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
        1 => ", and more at 1 other place".to_owned(),
        more => format!(", and more at {more} places"),
    };
    let [place, counter, lost] = first.as_slice() else { return None };
    let (place, counter) = (Printable(place), Printable(counter));
    Some(format!("Also lost: {lost} at {place} ({counter}){more}."))
}
