//! What a reflector did, in tables and sentences that the terminal and the page share.

use whylate_model::reflect::{Reflected, ReflectedClient, ReflectedEnd};
use whylate_model::run::Run;
use whylate_model::series::Definition;
use whylate_model::{Nanos, Printable};

use crate::flows::{absent, socket};
use crate::frames;
use crate::html::utc;
use crate::queues;
use crate::terminal::{count, rate};

/// Columns of the table of clients.
pub(crate) const CLIENTS: [&str; 5] = ["from", "answered", "median", "max", "end"];
/// Heading of the table of what came one way.
pub(crate) const ONE_WAY: &str =
    "Messages that asked for no answer, and the distances at which they came";
/// Its columns.
pub(crate) const RECEPTIONS: [&str; 9] =
    ["from", "came", "twice", "reordered", "rate", "min", "p50", "p99", "max"];

/// The answer of a recorded reflector in a sentence.
pub(crate) fn answer(run: &Run, of: &Reflected) -> String {
    let answered = of.answered;
    let of_kind = |kind: Definition| run.series.iter().find(|series| series.definition == kind);
    let Some(series) = of_kind(Definition::Residence) else {
        let apart = of_kind(Definition::Receptions).and_then(|gaps| gaps.at(50.0));
        let apart = apart.map_or_else(String::new, |apart| {
            format!(", each {apart} after the one before of its client in the median")
        });
        if of.program.is_some() && of.answered > 0 {
            return format!("{} requests were answered in the kernel.", count(answered));
        }
        return match of.one_way {
            0 => "No measured request was answered.".to_owned(),
            came => format!("{} messages came that asked for no answer{apart}.", count(came)),
        };
    };
    let median = series.at(50.0).map_or_else(absent, |of| of.to_string());
    let tail = [99.99, 99.9, 99.0]
        .into_iter()
        .find_map(|percent| Some(format!(", {} at p{percent}", series.at(percent)?)));
    format!(
        "{} requests were answered, each after {median} in the median{}.",
        count(answered),
        tail.unwrap_or_default()
    )
}

/// Since when, for how long and where.
pub(crate) fn circumstances(of: &Reflected) -> String {
    let cpu = of.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let ended = match of.ended {
        ReflectedEnd::Stopped => "until it was stopped",
        ReflectedEnd::Idle => "until nothing came any more",
        ReflectedEnd::ClientFinished => "until a client had finished",
        ReflectedEnd::Lost => "until its interface was gone",
        ReflectedEnd::GoingOn => "and its end is not known",
    };
    if of.program.is_some() {
        return format!("Since {} for {}, {ended}.", utc(of.since_ns), of.lasted);
    }
    format!(
        "Since {} for {}, {ended}; on {cpu}, waiting by {}.",
        utc(of.since_ns),
        of.lasted,
        of.wait
    )
}

/// What else is to be said of it.
pub(crate) fn remarks(of: &Reflected) -> Vec<String> {
    let polling = of.busy_polling.as_ref().map(|outcome| format!("Busy polling: {outcome}."));
    let given =
        of.socket.as_ref().and_then(|of| socket("its socket", of)).map(|of| format!("{of}."));
    let queues = of.socket.as_ref().and_then(queues::said).map(|of| format!("{of}."));
    let frames = of.frames.iter().flat_map(frames::said).map(|of| format!("{of}."));
    let program = of.program.as_ref().map(frames::program);
    program.into_iter().chain(polling).chain(given).chain(queues).chain(frames).collect()
}

/// What became of messages.
pub(crate) fn counts(of: &Reflected) -> Vec<Vec<String>> {
    let mut rows = vec![
        ("requests answered", of.answered),
        ("of warm-ups, answered", of.warm_ups),
        ("one way, counted by client", of.one_way),
        ("that ask for no answer", of.unasked),
        ("foreign, not answered", of.foreign),
        ("of another version, not answered", of.other_version),
        ("answers that could not be sent", of.unsent),
    ];
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
    rows.into_iter().map(|(what, n)| vec![what.to_owned(), count(n)]).chain(program).collect()
}

/// The first clients.
pub(crate) fn clients(of: &Reflected, most: usize) -> Vec<Vec<String>> {
    let value = |value: Option<Nanos>| value.map_or_else(absent, |ns| ns.to_string());
    let row = |client: &ReflectedClient| {
        vec![
            who(client),
            count(client.answered),
            value(client.median),
            value(client.max),
            if client.finished { "finished" } else { "-" }.to_owned(),
        ]
    };
    of.clients.iter().take(most).map(row).collect()
}

/// What came of messages that asked for no answer, and how far apart.
pub(crate) fn one_way(of: &Reflected, most: usize) -> Vec<Vec<String>> {
    let sinks = of.clients.iter().filter_map(|client| Some((client, client.one_way.as_ref()?)));
    let row = |(client, sink): (&ReflectedClient, &whylate_model::reflect::OneWay)| {
        let came = &sink.receptions;
        vec![
            who(client),
            count(sink.received),
            count(sink.duplicates),
            count(sink.reordered),
            came.per_second.map_or_else(absent, rate),
            came.gap_min.to_string(),
            came.gap_median.to_string(),
            came.gap_p99.to_string(),
            came.gap_max.to_string(),
        ]
    };
    sinks.take(most).map(row).collect()
}

fn who(client: &ReflectedClient) -> String {
    let from = client.from.clone().unwrap_or_else(|| "unnamed".to_owned());
    Printable(&from).to_string()
}
