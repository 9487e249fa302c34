//! The section of a reflector: where, what became of messages, whose they were.

use whylate_model::reflect::{Reflected, ReflectedClient, ReflectedEnd};
use whylate_model::run::Run;

use crate::doc::{Block, Document, Section, Table, Warning};
use crate::first;
use crate::flows::socket;
use crate::html::utc;
use crate::numbers::{Value, count};
use crate::terminal::Percentiles;
use crate::{frames, queues, residence};

/// Clients that are listed; JSON has all.
const MOST_CLIENTS: usize = 64;

/// Heading of the table of residences.
const RESIDENCE: &str = "Residence: from receiving a request to sending its reply";
/// How it is to be read.
const WAITED: &str = "What a request waited in the socket or in the receiving ring before it was seen is \
                      not in it.";

/// The section of a reflector; none for a run of something else.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let of = run.reflected.as_deref()?;
    Some(
        Section::new("reflected", "What was reflected", said(of).chain(clients(of)).collect())
            .headed(),
    )
}

/// The account of one of which no run is kept.
pub(crate) fn document(of: &Reflected, columns: Percentiles) -> Document {
    let stayed = match &of.residence {
        Some(found) => {
            let all = [("all clients".to_owned(), found)];
            let table = residence::table(RESIDENCE, "", &all, columns);
            vec![Block::Table(table), Block::How(WAITED.to_owned()), residence::resolution(found)]
        }
        None if of.answered == 0 => {
            vec![Block::apart(), Block::Text("No measured request was answered.".to_owned())]
        }
        None => Vec::new(),
    };
    Document::new(format!("Reflected {} by {} at {}", of.protocol, of.backend, of.listening))
        .naming(of)
        .with([Block::Text(first::of_account(of))])
        .with(said(of).chain(stayed).chain(clients(of)))
        .with([Warning::of_account(&of.warnings)])
}

/// Where, when and how much.
pub(crate) fn said(of: &Reflected) -> impl Iterator<Item = Block> {
    let unsent = of.first_unsent.as_ref();
    let unsent = unsent.map(|why| Block::Note(format!("the first reply not sent: {why}")));
    Block::texts(std::iter::once(circumstances(of)).chain(remarks(of)))
        .chain([Block::Table(counts(of))])
        .chain(unsent)
}

/// Whose messages they were.
pub(crate) fn clients(of: &Reflected) -> impl Iterator<Item = Block> {
    let replaced = (of.clients_replaced > 0)
        .then(|| format!("{} made room for others.", count(of.clients_replaced)));
    let nobody = (of.without_account > 0).then(|| {
        let n = count(of.without_account);
        format!("{n} requests are in nobody's account: too many clients at once.")
    });
    [Block::Table(by_client(of)), Block::Table(one_way(of))]
        .into_iter()
        .chain(Block::texts(replaced.into_iter().chain(nobody)))
}

/// Since when, for how long and where.
fn circumstances(of: &Reflected) -> String {
    let cpu = of.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let ended = match of.ended {
        ReflectedEnd::Stopped => "until it was stopped",
        ReflectedEnd::Idle => "until its idle timeout",
        ReflectedEnd::ClientFinished => "until a client had finished",
        ReflectedEnd::Lost => "until its interface was gone",
        ReflectedEnd::GoingOn => "and its end is not known",
    };
    if of.program.is_some() {
        return format!("Since {} for {}, {ended}.", utc(of.since_ns), of.lasted);
    }
    format!(
        "Since {} for {}, {ended}; on {cpu}, with --wait {}.",
        utc(of.since_ns),
        of.lasted,
        of.wait
    )
}

/// What else is to be said of it.
fn remarks(of: &Reflected) -> Vec<String> {
    let polling = of.busy_polling.as_ref().map(|outcome| format!("Busy polling: {outcome}."));
    let given =
        of.socket.as_ref().and_then(|of| socket("its socket", of)).map(|of| format!("{of}."));
    let queues = of.socket.as_ref().and_then(queues::said).map(|of| format!("{of}."));
    let frames = of.frames.iter().flat_map(frames::said).map(|of| format!("{of}."));
    let program = of.program.as_ref().map(frames::program);
    program.into_iter().chain(polling).chain(given).chain(queues).chain(frames).collect()
}

/// What became of messages.
fn counts(of: &Reflected) -> Table {
    let mut rows = vec![
        ("requests answered", of.answered),
        ("of warm-ups, answered", of.warm_ups),
        ("one way, counted by client", of.one_way),
        ("that ask for no reply", of.unasked),
        ("foreign, not answered", of.foreign),
        ("of another version, not answered", of.other_version),
        ("replies that could not be sent", of.unsent),
    ];
    let left = [of.foreign, of.other_version, of.unsent].into_iter().fold(0, u64::saturating_add);
    rows.extend((left > 0).then_some(("without a reply, in all", left)));
    rows.push(("clients", clients_seen(of)));
    if let Some(connections) = &of.connections {
        rows.extend([
            ("connections taken", connections.accepted),
            ("connections turned away", connections.turned_away),
            ("connections closed: no message", connections.broken),
            ("connections cut in a message", connections.cut),
            ("connections that did not read", connections.stuck),
        ]);
    }
    let program = of.program.iter().flat_map(frames::judged);
    let rows = rows.into_iter().map(|(what, n)| vec![what.to_owned(), count(n)]).chain(program);
    Table::new("Messages by outcome", &["messages", "count"]).with(rows)
}

/// How many clients there were, those among them that made room for others.
pub(crate) fn clients_seen(of: &Reflected) -> u64 {
    (of.clients.len() as u64).saturating_add(of.clients_replaced)
}

/// The first clients.
fn by_client(of: &Reflected) -> Table {
    let head = ["from", "answered", "median", "max", "end"];
    let mut table = Table::new("Clients", &head).words(&[4]).most(MOST_CLIENTS);
    for client in &of.clients {
        table.row([
            who(client).into(),
            Value::Count(client.answered),
            client.median.into(),
            client.max.into(),
            client.finished.then_some("finished").into(),
        ]);
    }
    table
}

/// What came of messages that asked for no reply, and how far apart.
fn one_way(of: &Reflected) -> Table {
    let head = ["from", "received", "twice", "reordered", "rate", "min", "p50", "p99", "max"];
    let caption = "Messages that asked for no reply, and the distances at which they came";
    let mut table = Table::new(caption, &head).most(MOST_CLIENTS);
    for client in &of.clients {
        let Some(sink) = &client.one_way else { continue };
        let came = &sink.receptions;
        table.row([
            who(client).into(),
            Value::Count(sink.received),
            Value::Count(sink.duplicates),
            Value::Count(sink.reordered),
            came.per_second.map(Value::Rate).into(),
            came.gap_min.into(),
            came.gap_median.into(),
            came.gap_p99.into(),
            came.gap_max.into(),
        ]);
    }
    table
}

fn who(client: &ReflectedClient) -> &str {
    client.from.as_deref().unwrap_or("unnamed")
}

#[cfg(test)]
pub(crate) mod tests;
