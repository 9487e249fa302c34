//! The section of flows of requests: by which way, what left, what became of it.

use whylate_model::flow::{
    Direction, Flow, OfRecording, OtherEnd, Packets, ProcessVerdict, Receptions, Socket,
};
use whylate_model::run::Run;

use crate::doc::{Block, Section, Table};
use crate::numbers::{ABSENT, Cell, Value, bit_rate, count, number, rate, time};
use crate::series::at_percent;
use crate::{frames, pacing, queues, tail, trusted};

/// How the three times are to be read.
const TIMES: &str = "Service time counts from the actual send to the reply, response time from the \
     due send, and send delay is what lies between the two sends. Requests that were given up \
     or never sent stay in the sample, as values of which only a lower bound is known. All times \
     are round trips.";
/// The same where a client hears its messages itself.
const TIMES_ACROSS: &str = "One way counts from the actual send by the one port to the \
     reception at the other, by one clock; as intended, from the due send, and send delay is what \
     lies between the two sends. Messages that were given up or never sent stay in the sample, as \
     values of which only a lower bound is known. All times are one way; nobody answers.";
/// The same for the account.
const ACCOUNT: &str = "By sequence numbers. Requests: sent = received + late replies + lost, \
     and unknown. Messages: arrived = received + late replies + duplicates + foreign + \
     not measured. Messages that ask for no reply are counted where they came. Late replies came after \
     the drain; reordered is of the received (RFC 4737); not measured are warm-up and final replies.";

/// What is to be known of a closed loop, wherever its times stand.
const CLOSED: &str = "closed loop: it sends the next request when the reply has come, and hides what \
     happens between";

/// What is to be known of losses where the other end gave no account.
const NOT_LOCATED: &str = "losses are not located: the other end told nothing of what it answered, so those \
     on the way there and those on the way back cannot be told apart";

/// How the times of a run's flows are to be read.
fn times(run: &Run) -> &'static str {
    let across = run.flows.iter().any(|flow| flow.way.across.is_some());
    if across { TIMES_ACROSS } else { TIMES }
}

/// The share of what was sent that was lost.
fn lost_share(of: &Packets) -> Value {
    Value::Share(of.lost as f64 / (of.sent as f64).max(1.0))
}

/// The section of flows; none for a run without.
pub(crate) fn section(run: &Run) -> Option<Section> {
    if run.flows.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::How(times(run).to_owned())];
    let tables = [Some(departures(run)), Some(ways(run)), parts(run)];
    blocks.extend(tables.into_iter().flatten().map(Block::Table));
    blocks.push(Block::Items(remarks(run)));
    blocks.extend(Block::explained(account(run), ACCOUNT));
    blocks
        .extend(pacing::table(run).into_iter().flat_map(|of| Block::explained(of, pacing::APART)));
    blocks.extend(tail::blocks(run));
    Some(Section::new("flows", "Requests and replies", blocks))
}

/// Who sends what by which way, and who stamps it.
fn ways(run: &Run) -> Table {
    let head = ["flow", "way", "waiting", "resolution", "stamp min", "median", "precision"];
    let mut table = Table::new("Flows and their stamps", &head).words(&[1, 2]);
    for flow in &run.flows {
        let way = &flow.way;
        table.row([
            flow.name.clone(),
            format!("{}, {}", way.backend, way.protocol),
            way.wait.clone(),
            ns(way.resolution_ns),
            ns(way.read_cost_min_ns),
            ns(way.read_cost_median_ns),
            ns(way.precision_ns),
        ]);
    }
    table
}

/// What was asked for and what left.
fn departures(run: &Run) -> Table {
    let head = ["flow", "arrivals", "asked", "left", "sent by end", "late p99.9", "schedule"];
    let mut table = Table::new("Send schedule: asked, sent, and how late", &head).words(&[1, 6]);
    for flow in &run.flows {
        table.row(departures_row(run, flow));
    }
    table
}

fn departures_row(run: &Run, flow: &Flow) -> [Cell; 7] {
    let (asked, left) = (&flow.asked, &flow.departures);
    let late = run.series.iter().find(|series| Some(&series.name) == flow.lateness.as_ref());
    let share = (left.intended > 0).then(|| left.in_time as f64 / left.intended as f64);
    [
        flow.name.as_str().into(),
        asked.arrivals.as_str().into(),
        Value::from(asked.per_second.map(Value::Rate)).into(),
        Value::from(left.per_second.map(Value::Rate)).into(),
        Value::from(share.map(Value::Share)).into(),
        late.map_or_else(|| Value::Absent.into(), |series| at_percent(series, 99.9)),
        verdict(left.process.verdict).into(),
    ]
}

fn verdict(verdict: ProcessVerdict) -> &'static str {
    match verdict {
        ProcessVerdict::Held => "held",
        ProcessVerdict::Disturbed => "disturbed",
        ProcessVerdict::Saturated => "SATURATED",
        ProcessVerdict::TooFew => "too few to tell",
        ProcessVerdict::ClosedLoop => "closed loop",
    }
}

/// One of the counts.
type Count = fn(&Packets) -> u64;

/// Requests and messages that were sent, answered and lost.
fn account(run: &Run) -> Table {
    let head: Vec<&str> =
        ["count"].into_iter().chain(run.flows.iter().map(|flow| flow.name.as_str())).collect();
    let mut table = Table::new("Requests sent, answered and lost", &head);
    let counts: [(&str, Count); 15] = [
        ("sent", |of| of.sent),
        ("received", |of| of.received),
        ("late replies", |of| of.late),
        ("lost", |of| of.lost),
        ("given up", |of| of.given_up),
        ("answered later", Packets::answered_too_late),
        ("never sent", |of| of.never_sent),
        ("refused by the kernel", |of| of.refused),
        ("in flight when the run failed", |of| of.abandoned),
        ("unknown", |of| of.unaccounted),
        ("reordered", |of| of.reordered),
        ("arrived", |of| of.arrived),
        ("duplicates", |of| of.duplicates),
        ("foreign", |of| of.foreign),
        ("not measured", |of| of.unplaced),
    ];
    for (name, of) in counts {
        let cells = run.flows.iter().map(|flow| Value::Count(of(&flow.packets)));
        table.row([Value::from(name)].into_iter().chain(cells));
    }
    let share = run.flows.iter().map(|flow| lost_share(&flow.packets));
    table.row([Value::from("lost, of the sent")].into_iter().chain(share));
    table
}

/// Response times by parts of the pattern; none for patterns of one part.
fn parts(run: &Run) -> Option<Table> {
    let heard = run.flows.iter().any(|flow| flow.way.across.is_some());
    let caption = if heard { "One way, as intended, by part" } else { "Response times by part" };
    let mut table = Table::new(caption, &["part", "n", "p50", "p99", "p99.9"]);
    for part in run.flows.iter().flat_map(|flow| &flow.parts) {
        let series = run.series.iter().find(|series| series.name == part.response);
        let at = |percent| {
            let value =
                series.map_or_else(|| Cell::from(Value::Absent), |of| at_percent(of, percent));
            value.marked(trusted::is_beyond(run, &part.response, percent))
        };
        let n = Cell::from(series.map(|series| Value::Count(series.n)));
        table.row([part.label.as_str().into(), n, at(50.0), at(99.0), at(99.9)]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What is to be said of each flow.
fn remarks(run: &Run) -> Vec<String> {
    run.flows.iter().flat_map(remarks_of).chain(queues::shared(run)).collect()
}

fn remarks_of(flow: &Flow) -> Vec<String> {
    let (way, asked) = (&flow.way, &flow.asked);
    let mut said =
        vec![format!("{}: {}", flow.name, way.path), format!("stamps: {}", way.stamps), size(flow)];
    if let Some(took) = way.resolved_in {
        said.push(format!("its target's name was resolved in {took}, before the run"));
    }
    if asked.one_way {
        said.push("asks for no reply: the other end counts what comes".to_owned());
    } else if let Some(timeout) = asked.timeout {
        said.push(format!("given up after {}", Value::from(timeout)));
    }
    if let Some(ports) = &way.across {
        let (out, back) = (&ports.out, &ports.back);
        let threads = if ports.one_thread { "one thread" } else { "threads of its own" };
        said.push(format!(
            "leaves by {out} and comes back by {back}, two ports of one client: one clock, and {threads} \
             for both"
        ));
    } else if asked.direction == Direction::Back {
        said.push("sent from the server's end of the bed".to_owned());
    }
    if let Some(most) = asked.most_under_way {
        said.push(format!("at most {} in flight: the client waits for replies", count(most)));
    }
    if flow.departures.process.verdict == ProcessVerdict::ClosedLoop {
        said.push(format!("{CLOSED}; it has no response times"));
    }
    if let Some(after) = asked.repeats_after {
        said.push(format!(
            "the arrivals began again from the first after each {}",
            Value::from(after)
        ));
    }
    said.extend(way.socket.as_ref().and_then(|of| socket("the client's socket", of)));
    said.extend(way.socket.as_ref().and_then(queues::said));
    said.extend(way.frames.iter().flat_map(frames::said));
    said.extend(way.costs.as_ref().map(frames::costs));
    if let Some(kept) = &flow.anomalies {
        let full = match kept.left_out {
            0 => String::new(),
            more => {
                format!("; of some kinds there were {} more, for which it has no room", count(more))
            }
        };
        said.push(format!(
            "{} odd messages are in {}, each with a comment{full}",
            count(kept.messages),
            kept.file
        ));
    }
    let process = &flow.departures.process;
    if let Some(late) = process.beyond_tolerance.filter(|late| late.count > 0) {
        said.push(format!(
            "{} of {} left more than {} after they were due, or never",
            count(late.count),
            count(late.of),
            Value::from(process.tolerance)
        ));
    }
    if let Some(of) = process.distribution {
        said.push(format!(
            "distances of departures against a Poisson process: at most {} of the distribution \
             function apart, Anderson-Darling A2 {} over {} distances, {} for each",
            number(of.largest),
            number(of.a_squared),
            count(of.n),
            number(of.effect)
        ));
    }
    said.extend(flow.departures.pacing.as_ref().map(pacing::said));
    said.extend(of_recordings(flow));
    if flow.other_end.is_none() && flow.recordings.is_empty() {
        said.push(NOT_LOCATED.to_owned());
    }
    if let Some(other) = flow.other_end {
        if let Some((there, back)) = where_lost(&flow.packets, other.answered) {
            said.push(format!(
                "of those lost, {} were on their way there or not read, and {} on their way back",
                count(there),
                count(back)
            ));
        }
        if let Some(of) = other.receptions {
            said.push(received(&of));
            return said;
        }
        said.push(format!(
            "the other end answered {} and rejected {} foreign messages; it held a request for {} at least, \
             {} in the median, {} at most",
            count(other.answered),
            count(other.foreign),
            Value::from(other.residence_min),
            Value::from(other.residence_median),
            Value::from(other.residence_max)
        ));
    }
    said
}

/// What each recording of a sum says for itself, and what all other ends say together.
fn of_recordings(flow: &Flow) -> Vec<String> {
    let ends: Vec<&OtherEnd> =
        flow.recordings.iter().filter_map(|of| of.other_end.as_ref()).collect();
    let all = (ends.len() > 1).then(|| {
        let least = ends.iter().map(|of| of.residence_min).min().unwrap_or_default();
        let most = ends.iter().map(|of| of.residence_max).max().unwrap_or_default();
        let [least, most] = [least, most].map(Value::from);
        format!(
            "of {} recordings the other ends answered {}, and held a request for {least} at least and \
             {most} at most",
            ends.len(),
            count(ends.iter().map(|of| of.answered).fold(0, u64::saturating_add))
        )
    });
    all.into_iter().chain(flow.recordings.iter().map(of_recording)).collect()
}

fn of_recording(of: &OfRecording) -> String {
    let mut said = Vec::new();
    if let Some(end) = &of.other_end {
        said.push(match end.receptions {
            Some(of) => received(&of),
            None => {
                format!(
                    "the other end held a request for {} in the median",
                    Value::from(end.residence_median)
                )
            }
        });
    }
    if let Some(kept) = &of.anomalies {
        let (messages, file) = (count(kept.messages), &kept.file);
        said.push(format!("{messages} odd messages are in its {file}"));
    }
    said.extend(of.tail.as_ref().map(tail::answer));
    if said.is_empty() {
        said.push("nothing of its own".to_owned());
    }
    format!("{}: {}", of.directory, said.join("; "))
}

fn received(of: &Receptions) -> String {
    let came = of.per_second.map_or_else(absent, rate);
    format!(
        "they came at {came}, {} apart at least, {} in the median, {} at p99 and {} at most",
        Value::from(of.gap_min),
        Value::from(of.gap_median),
        Value::from(of.gap_p99),
        Value::from(of.gap_max)
    )
}

/// What the kernel gave a socket; none where nothing is known of it.
pub(crate) fn socket(owner: &str, of: &Socket) -> Option<String> {
    let dscp = of.traffic_class.map(|class| format!("DSCP {}", class >> 2));
    let whole = of.whole_packets.map(|whole| {
        if whole { "packets are not fragmented" } else { "packets may be fragmented" }
    });
    let facts = [
        of.interface.as_ref().map(|name| format!("interface {name}")),
        of.mtu.map(|mtu| format!("MTU {}", count(mtu.into()))),
        of.receive_buffer.map(|bytes| format!("{} bytes to receive", count(bytes))),
        of.send_buffer.map(|bytes| format!("{} to send", count(bytes))),
        dscp,
        of.hops.map(|hops| format!("{hops} hops")),
        whole.map(str::to_owned),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| format!("{owner}: {}", facts.join(", ")))
}

/// Where requests were lost: before the other end answered, and after it. With duplicates nobody
/// can tell.
fn where_lost(packets: &Packets, answered: u64) -> Option<(u64, u64)> {
    if packets.duplicates > 0 || packets.lost == 0 {
        return None;
    }
    let there = packets.sent.checked_sub(answered)?;
    let back = packets.lost.checked_sub(there)?;
    Some((there, back))
}

fn size(flow: &Flow) -> String {
    let asked = &flow.asked;
    let way = if asked.one_way || flow.way.across.is_some() { "" } else { " each way" };
    let said = format!("{} bytes{way}", count(asked.bytes.into()));
    let Some((frame, left)) = asked.frame_bytes.zip(flow.departures.per_second) else {
        return said;
    };
    let Some(wire) = flow.on_wire() else {
        return format!("{said}, in 1 frame or several: what a link holds is not recorded");
    };
    let frames = match (wire.frames, wire.mtu) {
        (1, _) | (_, None) => format!("in frames of {} bytes", count(frame.into())),
        (frames, Some(mtu)) => {
            let cut = if flow.way.backend.starts_with("tcp") { "segments" } else { "fragments" };
            format!(
                "each in {frames} {cut} (MTU {}), frames of {} bytes together",
                count(mtu.into()),
                count(wire.bytes.into())
            )
        }
    };
    let bits = |bytes: u32| bit_rate(left * 8.0 * f64::from(bytes));
    let (l2, l1) = (bits(wire.bytes), bits(wire.bytes_at_l1()));
    format!("{said}, {frames}: {l2} at L2, {l1} at L1")
}

fn ns(value: f64) -> String {
    time(value)
}

pub(crate) fn absent() -> String {
    ABSENT.to_owned()
}

#[cfg(test)]
mod tests;
