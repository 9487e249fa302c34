//! How many requests a server answered, how long they stayed, and whose they were.

use whylate_model::Printable;
use whylate_model::reflect::{Reflected, ReflectedClient, ReflectedEnd};

use super::{Screen, residence};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::reflected::clients_seen;
use crate::spans::{Sentence, sentence};
use crate::terminal::Style;

pub(super) fn screen(of: &Reflected, style: Style) -> Screen {
    let stayed = of.residence.as_ref().map(|of| ("all clients".to_owned(), of));
    let residence = residence::table("residence", &stayed.into_iter().collect::<Vec<_>>(), style);
    Screen {
        answer: [Some(headline(of)), trouble(of)].into_iter().flatten().collect(),
        tables: vec![residence, clients(of)],
        notes: notes(of),
        ..Screen::default()
    }
}

/// So many of them; one is one.
fn several(number: u64, one: &'static str, more: &'static str) -> Sentence {
    sentence![Value::Count(number), " ", if number == 1 { one } else { more }]
}

fn headline(of: &Reflected) -> Sentence {
    let clients = clients_seen(of);
    let from = (clients > 0).then(|| sentence![" from ", several(clients, "client", "clients")]);
    // The requests may have come in a part of it.
    let lasted = sentence!["; it listened for ", of.lasted];
    if of.answered == 0 {
        return match of.one_way {
            0 => sentence!["No measured request was answered", lasted, "."],
            came => {
                let came = several(came, "message", "messages");
                sentence![came, " that ask for no reply came", from, lasted, "."]
            }
        };
    }
    let answered = sentence!["Answered ", several(of.answered, "request", "requests")];
    if of.program.is_some() {
        return sentence![answered, " in the kernel", lasted, "."];
    }
    let left = left(of).iter().map(|(number, _)| *number).fold(0, u64::saturating_add);
    let turned_away = of.connections.as_ref().map_or(0, |of| of.turned_away);
    let left = match (left, turned_away) {
        (0, 0) => "none was refused".into(),
        (0, away) => {
            sentence![several(away, "connection was", "connections were"), " turned away"]
        }
        (left, _) => sentence![several(left, "message", "messages"), " got no reply"],
    };
    sentence![answered, from, "; ", left, lasted, "."]
}

/// What got no reply, and why.
fn left(of: &Reflected) -> Vec<(u64, &'static str)> {
    let all = [
        (of.foreign, "of another protocol"),
        (of.other_version, "of another version"),
        (of.unsent, "not sent"),
    ];
    all.into_iter().filter(|(number, _)| *number > 0).collect()
}

/// What went wrong, in a sentence; none where nothing did.
fn trouble(of: &Reflected) -> Option<Sentence> {
    if of.ended == ReflectedEnd::Lost {
        return Some("It ended early: its interface went away.".into());
    }
    let left = left(of);
    let said = left.iter().map(|(number, what)| sentence![Value::Count(*number), " ", *what]);
    let said = Sentence::joined(said, ", ");
    (!left.is_empty()).then(|| sentence!["Without a reply: ", said, "."])
}

/// Clients with the most requests first, with what came of messages that ask for no reply.
fn clients(of: &Reflected) -> Table {
    let sinks = of.clients.iter().any(|client| client.one_way.is_some());
    let mut heads = vec!["residence by client", "answered"];
    if sinks {
        heads.extend(["one way", "reordered"]);
    }
    heads.extend(["p50", "max", "ended"]);
    let last = heads.len() - 1;
    let mut table = Table::new("", &heads).words(&[last]);
    for client in &of.clients {
        let mut cells = vec![who(client), Cell::from(Value::Count(client.answered))];
        if sinks {
            let sink = client.one_way.as_ref();
            cells.push(sink.map(|of| Value::Count(of.received)).into());
            cells.push(sink.map(|of| Value::Count(of.reordered)).into());
        }
        let ended = if client.finished { "finished" } else { "open" };
        cells.extend([client.median.into(), client.max.into(), ended.into()]);
        table.row(cells);
    }
    table
}

fn who(client: &ReflectedClient) -> Cell {
    Printable(client.from.as_deref().unwrap_or("unnamed")).to_string().into()
}

fn notes(of: &Reflected) -> Vec<String> {
    let mut notes = Vec::new();
    if of.without_account > 0 {
        let requests = several(of.without_account, "request is", "requests are").said();
        notes.push(format!("{requests} in no client's account: too many clients at once."));
    }
    if let Some(connections) = &of.connections {
        let all = [
            (connections.turned_away, "turned away"),
            (connections.broken, "closed without a message"),
            (connections.cut, "cut in a message"),
            (connections.stuck, "closed as they did not read"),
        ];
        let said = all.into_iter().filter(|(number, _)| *number > 0);
        let said: Vec<String> =
            said.map(|(number, what)| format!("{} {what}", count(number))).collect();
        if !said.is_empty() {
            notes.push(format!("Connections: {}.", said.join(", ")));
        }
    }
    if let Some(residence) = &of.residence {
        let step = Value::Time(residence.resolution_ns);
        let warm_ups = match of.warm_ups {
            0 => String::new(),
            warm_ups => format!(
                " {} not counted.",
                several(warm_ups, "warm-up request is", "warm-up requests are").said()
            ),
        };
        notes.push(format!(
            "Residence: from receiving a request to sending its reply (this machine's share of the round \
             trip). Resolution {step}.{warm_ups}"
        ));
    }
    notes
}
