//! What response time a request sees at a rate, and what became of the requests; of messages that nobody answers,
//! how many came, or how long they were on their way.

use whylate_model::flow::{Flow, Packets, ProcessVerdict};
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::tail::{End, Tail};
use whylate_model::warning::Warning;

use super::layout::short;
use super::{COMPARE, Screen, series, steps};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, Told, sentence};
use crate::terminal::Style;
use crate::trusted;

/// What may help a client that was late.
const ON_TIME: &str = "may keep the client on time";
/// CPUs of which a client and whylate's own reflector leave none.
const BOTH: usize = 2;

/// Is it a recording of requests, or of messages that nobody answers?
pub(super) fn is_it(run: &Run) -> bool {
    !run.is_merged()
        && is_of_flows(run)
        && run.flows.first().is_some_and(|flow| is_shown(run, flow))
}

/// Does it hold times of requests, or of messages from port to port, and nothing that is a question of its own?
pub(super) fn holds_times(run: &Run) -> bool {
    let is_timed = |flow: &Flow| !flow.asked.one_way && times(run, flow).is_some();
    is_of_flows(run) && run.flows.first().is_some_and(is_timed)
}

/// Has it flows, and nothing that is a question of its own, such as where requests spent their time?
fn is_of_flows(run: &Run) -> bool {
    let apart = run.flows.iter().any(|flow| flow.breakdown.is_some());
    let others = apart || run.backends.is_some() || run.watched.is_some() || run.device.is_some();
    !others && run.calibration.is_none()
}

fn is_shown(run: &Run, flow: &Flow) -> bool {
    flow.asked.one_way || times(run, flow).is_some()
}

/// The times that the headline is about, and how they are called.
pub(super) fn times<'a>(run: &'a Run, flow: &Flow) -> Option<(&'a Series, &'static str)> {
    let named = |name: &Option<String>| name.as_ref().and_then(|name| series::named(run, name));
    let [response, service] = names(flow);
    let responses = named(&flow.response).map(|series| (series, response));
    responses.or_else(|| named(&flow.service).map(|series| (series, service)))
}

/// What the times are called that count from when a message was due, and from when it was sent.
fn names(flow: &Flow) -> [&'static str; 2] {
    match flow.way.across {
        Some(_) => ["one-way latency, from due", "one-way latency"],
        None => ["response time", "service time"],
    }
}

pub(super) fn screen(run: &Run, style: Style) -> Screen {
    let Some(flow) = run.flows.first() else { return Screen::default() };
    let mut answer = vec![headline(run, flow)];
    let departures = departures(run, flow);
    let answered = departures.iter().flat_map(|_| of_departures(run, flow)).collect();
    answer.extend(departures);
    let tables = vec![latency(run, style), requests(run)];
    let mut notes: Vec<String> =
        beyond(&tables).into_iter().chain(flow.tail.iter().filter_map(slow)).collect();
    if flow.response.is_some() && flow.service.is_some() && flow.way.across.is_none() {
        notes.push(
            "Response time counts from when a request was due, service time from when it was sent; only \
             response time includes queueing behind a stalled client."
                .to_owned(),
        );
    }
    if let Some(other) = flow.other_end.filter(|other| other.answered > 0) {
        notes.push(format!(
            "The reflector held a request for {} in the median, {} at most.",
            Cell::from(other.residence_median).said(),
            Cell::from(other.residence_max).said()
        ));
    }
    let is_late = matches!(
        flow.departures.process.verdict,
        ProcessVerdict::Disturbed | ProcessVerdict::Saturated
    );
    let on_time = if is_late { on_time(run, flow) } else { None };
    let more_advises = on_time.is_some();
    let more = match on_time {
        Some(said) => format!("{said}  {ON_TIME}"),
        None => COMPARE.to_owned(),
    };
    let more = vec![more];
    Screen { answer, tables, notes, answered, more_advises, more, ..Screen::default() }
}

/// The run's own command with what the client can have that it had not, or that option where the command has no room
/// on a line; none where nothing is known to help, and of a recording that another command made. A real-time client
/// that waits by spinning leaves nothing of its CPU: where the reflector has the only other one, no CPU is left for the
/// rest of the machine.
fn on_time(run: &Run, flow: &Flow) -> Option<String> {
    if run.command_line.get(1).is_none_or(|word| word != "rtt") {
        return None;
    }
    let of = |name: &str| name == "other end" || name.starts_with("other end of ");
    let mut ends = run.settings.iter().filter(|(name, _)| of(name));
    let is_own = ends.any(|(_, end)| end.to_string().starts_with("a reflector "));
    let has = |option: &str| steps::has(&run.command_line, option);
    let option = if is_own && run.host.cpus_online.len() <= BOTH {
        // Who cannot hold a rate by looking all the time does so less by sleeping.
        let is_saturated = flow.departures.process.verdict == ProcessVerdict::Saturated;
        (!is_saturated && flow.way.wait != "block").then_some("--wait block")
    } else {
        (!has("--sched") && !has("--fifo")).then_some("--sched fifo:50")
    }?;
    // What it is for is left out where only the command has room.
    let command = steps::again(&run.command_line, option).filter(|command| steps::fits(command));
    Some(command.unwrap_or_else(|| option.to_owned()))
}

/// The reasons of trust that are about when requests of a flow left.
fn of_departures<'a>(run: &'a Run, flow: &'a Flow) -> impl Iterator<Item = String> + 'a {
    let is_one = move |warning: &&Warning| match warning {
        Warning::Saturated { flow: of, .. } | Warning::DeparturesDisturbed { flow: of, .. } => {
            *of == flow.name
        }
        _ => false,
    };
    run.warnings.iter().filter(is_one).map(ToString::to_string)
}

/// The main cause of slow requests, where one is claimed.
fn slow(of: &Tail) -> Option<String> {
    let cause = of.claimed().next()?;
    let at = match cause.end {
        End::Client => "the client",
        End::Other => "the other end",
    };
    let [slow, others] =
        [cause.of_slow, cause.of_ordinary].map(|of| Cell::from(Value::Share(of)).said());
    Some(format!(
        "Cause of slow requests (above p{}): {} at {at} ({slow} of them, {others} of the others).",
        of.percent, cause.cause
    ))
}

/// What the mark of numbers beyond trust means, below tables that have some.
pub(super) fn beyond(tables: &[Table]) -> Option<String> {
    let mut cells = tables.iter().flat_map(|table| &table.rows).flatten();
    cells.any(Cell::is_beyond).then(|| BEYOND.to_owned())
}

const BEYOND: &str = "~: beyond what the calibration of this transport supports.";

pub(super) fn headline(run: &Run, flow: &Flow) -> Sentence {
    if flow.asked.one_way {
        return came(flow);
    }
    let Some((series, what)) = times(run, flow) else {
        return "No request was measured.".into();
    };
    let closed = flow.departures.process.verdict == ProcessVerdict::ClosedLoop;
    let closed = if closed { "closed loop, " } else { "" };
    let backend = short(&flow.way.backend);
    let ports = flow
        .way
        .across
        .as_ref()
        .map(|ports| sentence![", ", short(&ports.out), " to ", short(&ports.back)]);
    let way = sentence![capital(what), ports, " (", closed, backend, "): "];
    sentence![way, series::said_in(run, series), "; ", lost(&flow.packets), "."]
}

/// How many of the messages came that ask for no reply.
fn came(flow: &Flow) -> Sentence {
    let (packets, sent) = (&flow.packets, Value::Count(flow.packets.sent));
    if packets.unaccounted > 0 {
        return sentence!["How many of the ", sent, " messages came is unknown."];
    }
    let receptions = flow.other_end.and_then(|other| other.receptions);
    let at = receptions.and_then(|of| of.per_second).map(|of| sentence![" at ", Value::Rate(of)]);
    let came = sentence![Value::Count(packets.received), " of ", sent, " messages came", at];
    sentence![came, "; ", lost(packets), "."]
}

/// What a time is called, at the beginning of a sentence.
pub(super) fn capital(what: &'static str) -> Told {
    Told::of(super::trusted::upper(what))
}

/// How many requests nobody answered, or not before they were given up.
pub(super) fn lost(of: &Packets) -> Sentence {
    let lost = match of.lost {
        0 => "none lost".into(),
        lost => sentence![Value::Count(lost), " lost"],
    };
    match of.answered_too_late() {
        0 => lost,
        late => sentence![lost, ", ", Value::Count(late), " answered after the timeout"],
    }
}

/// What has to be said of when requests left.
pub(super) fn departures(run: &Run, flow: &Flow) -> Option<Sentence> {
    let late = flow.lateness.as_ref().and_then(|name| series::named(run, name));
    match flow.departures.process.verdict {
        ProcessVerdict::Saturated => {
            let rate = |of: Option<f64>| Sentence::unitless(of.map(Value::Rate));
            let (sent, asked) = (rate(flow.departures.per_second), rate(flow.asked.per_second));
            let rates = sentence!["sent ", sent, " of ", asked, " requests/s"];
            Some(sentence!["Saturated: ", rates, "; times are of that rate."])
        }
        ProcessVerdict::Disturbed => {
            let process = &flow.departures.process;
            // Where nearly all left in time, it is by their distances that they are not what was asked for.
            let in_time = process.lateness_p999.is_some_and(|late| late <= process.tolerance);
            if in_time && process.distribution.is_some() {
                return Some("The send intervals do not follow a Poisson process.".into());
            }
            if let Some(late) = process.beyond_tolerance.filter(|late| late.count > 0) {
                let [late, of] = [late.count, late.of].map(|of| Sentence::asked(Value::Count(of)));
                let answered = !flow.asked.one_way && flow.way.across.is_none();
                let what = if answered { " requests" } else { " messages" };
                let requests = sentence![late, " of ", of, what];
                let tolerance = Sentence::asked(process.tolerance);
                let than = sentence![" left more than ", tolerance, " late."];
                return Some(sentence!["The client fell behind: ", requests, than]);
            }
            let late = Sentence::bound(series::at(late?, 99.0));
            let behind = "The client fell behind: 1% of requests left at least ";
            Some(sentence![behind, late, " late."])
        }
        ProcessVerdict::Held | ProcessVerdict::TooFew | ProcessVerdict::ClosedLoop => None,
    }
}

/// Times with their percentiles, each by its name.
pub(super) fn times_of<'a>(
    run: &Run,
    style: Style,
    rows: impl IntoIterator<Item = (String, &'a Series)>,
) -> Table {
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let mut head = vec!["latency".to_owned(), "min".to_owned()];
    for percent in &percents {
        head.push(series::name(*percent));
        if (percent - 99.0).abs() < 1e-9 {
            head.push("95% CI, p99".to_owned());
        }
    }
    head.push("max".to_owned());
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    for (label, of) in rows {
        let mut cells = vec![Cell::from(label), series::min(of)];
        for percent in &percents {
            let is_beyond = trusted::is_beyond(run, &of.name, *percent);
            cells.push(series::at(of, *percent).marked(is_beyond));
            if (percent - 99.0).abs() < 1e-9 {
                cells.push(series::ends(of, *percent).marked(is_beyond));
            }
        }
        cells.push(series::max(of).marked(trusted::is_beyond(run, &of.name, trusted::MAX)));
        table.row(cells);
    }
    table
}

/// The three times of the first flow, and the first of them of each other one.
pub(super) fn latency(run: &Run, style: Style) -> Table {
    let mut rows: Vec<(String, &Series)> = Vec::new();
    for (at, flow) in run.flows.iter().enumerate() {
        let of_flow = |what: &str| {
            if run.flows.len() == 1 { what.to_owned() } else { format!("{}: {what}", flow.name) }
        };
        let [response, service] = names(flow);
        let all =
            [(&flow.response, response), (&flow.service, service), (&flow.lateness, "send delay")];
        let known = all
            .into_iter()
            .filter_map(|(name, what)| Some((series::named(run, name.as_ref()?)?, what)));
        // Of the others the first alone: `--full` has all of them.
        for (series, what) in known.take(if at == 0 { 3 } else { 1 }) {
            // Flows that were added up have one row together.
            if !run.is_merged() || !rows.iter().any(|(_, of)| of.name == series.name) {
                rows.push((of_flow(what), series));
            }
        }
    }
    times_of(run, style, rows)
}

/// One of the counts of requests.
type Counted = fn(&Packets) -> u64;

/// What is told of requests only where it happened.
const SELDOM: [(&str, Counted); 6] = [
    ("given up", |of| of.given_up),
    ("never sent", |of| of.never_sent),
    ("refused", |of| of.refused),
    ("reordered", |of| of.reordered),
    ("foreign", |of| of.foreign),
    ("unknown", |of| of.unaccounted),
];

/// What became of the requests, flow by flow.
fn requests(run: &Run) -> Table {
    let seldom: Vec<_> = SELDOM
        .iter()
        .filter(|(_, of)| run.flows.iter().any(|flow| of(&flow.packets) > 0))
        .collect();
    let is_answered = |flow: &Flow| !flow.asked.one_way && flow.way.across.is_none();
    let (what, arrived) = if run.flows.iter().all(is_answered) {
        ("requests", "answered")
    } else {
        ("messages", "received")
    };
    let head = [what, "asked", "sent", arrived, "lost", "late replies", "duplicates"];
    let heads: Vec<&str> = head.into_iter().chain(seldom.iter().map(|(name, _)| *name)).collect();
    let mut table = Table::new("", &heads);
    for flow in &run.flows {
        let rate = match flow.asked.per_second {
            Some(per_second) => Cell::from(Value::Rate(per_second)).said(),
            None => flow.asked.arrivals.clone(),
        };
        let label = if run.flows.len() == 1 { rate } else { format!("{} {rate}", flow.name) };
        let packets = &flow.packets;
        let counts = [
            flow.departures.intended,
            packets.sent,
            packets.received,
            packets.lost,
            packets.late,
            packets.duplicates,
        ];
        let counts = counts.into_iter().chain(seldom.iter().map(|(_, of)| of(packets)));
        let counts = counts.map(|count| Cell::from(Value::Count(count)));
        table.row([Cell::from(label)].into_iter().chain(counts));
    }
    table
}
