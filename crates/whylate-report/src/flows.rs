//! Flows of requests, in tables and sentences that the terminal and the page share.

use whylate_model::flow::{Flow, Packets, ProcessVerdict};
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::{Nanos, Printable};

use crate::svg::Table;
use crate::terminal::{count, percent, rate};

/// How the three times are to be read.
pub(crate) const TIMES: &str = "Service counts from the actual send to the reply, response from the \
     intended send, and lateness is what lies between the two sends. Requests that were given up \
     or never sent stay in the sample, as values of which only a lower bound is known. No time \
     is halved.";
/// The same for the account.
pub(crate) const ACCOUNT: &str = "By sequence numbers. Requests: sent = received + late + lost. \
     Messages: arrived = received + late + duplicates + foreign + beside. Late came after the \
     drain; reordered is of the received (RFC 4737); beside are replies of the warm-up and the \
     farewell's.";

const ABSENT: &str = "-";

/// The answer in a sentence.
pub(crate) fn answer(run: &Run) -> String {
    let Some(flow) = run.flows.first() else { return String::new() };
    let times = flow.response.as_ref().unwrap_or(&flow.service);
    let Some(series) = run.series.iter().find(|series| series.name == *times) else {
        return "No request was measured.".to_owned();
    };
    let what = if flow.response.is_some() { "from its intended send" } else { "from its send" };
    let median = quantile(series, 50.0);
    let tail = [99.99, 99.9, 99.0].into_iter().find_map(|percent| {
        let value = quantile(series, percent)?;
        Some(format!(", {value} at p{percent}"))
    });
    let lost = flow.packets.lost + flow.packets.abandoned;
    let lost = if lost == 0 { "none lost".to_owned() } else { format!("{} lost", count(lost)) };
    match median {
        Some(median) => format!(
            "A request by {} has its reply {median} {what} in the median{}; {} sent, {lost}.",
            flow.way.backend,
            tail.unwrap_or_default(),
            count(flow.packets.sent),
        ),
        None => format!("Of {} requests too few were answered.", count(flow.packets.sent)),
    }
}

fn quantile(series: &Series, percent: f64) -> Option<Nanos> {
    let same = |known: f64| (known - percent).abs() < 1e-9;
    series.quantiles.iter().find(|quantile| same(quantile.percent))?.value
}

/// Who sends what by which way, and who stamps it.
pub(crate) fn ways(run: &Run) -> Table {
    let head = ["flow", "way", "waiting", "resolution", "stamp min", "median", "precision"];
    let mut table = Table::new("Flows and their stamps", &head);
    table.left = vec![1, 2];
    table.rows = run
        .flows
        .iter()
        .map(|flow| {
            let way = &flow.way;
            vec![
                flow.name.clone(),
                format!("{}, {}", way.backend, way.protocol),
                way.wait.clone(),
                ns(way.resolution_ns),
                ns(way.read_cost_min_ns),
                ns(way.read_cost_median_ns),
                ns(way.precision_ns),
            ]
        })
        .collect();
    table
}

/// What was asked for and what left.
pub(crate) fn departures(run: &Run) -> Table {
    let head = ["flow", "arrivals", "asked", "left", "in time", "late p99.9", "process"];
    let mut table = Table::new("What was intended, and what left", &head);
    table.left = vec![1, 6];
    table.rows = run.flows.iter().map(departures_row).collect();
    table
}

fn departures_row(flow: &Flow) -> Vec<String> {
    let (asked, left) = (&flow.asked, &flow.departures);
    let share = (left.intended > 0).then(|| left.in_time as f64 / left.intended as f64);
    let late = left.process.lateness_p999;
    vec![
        flow.name.clone(),
        asked.arrivals.clone(),
        asked.per_second.map_or_else(absent, rate),
        left.per_second.map_or_else(absent, rate),
        share.map_or_else(absent, percent),
        late.map_or_else(absent, |late| late.to_string()),
        verdict(left.process.verdict).to_owned(),
    ]
}

fn verdict(verdict: ProcessVerdict) -> &'static str {
    match verdict {
        ProcessVerdict::Held => "held",
        ProcessVerdict::Disturbed => "disturbed",
        ProcessVerdict::Saturated => "SATURATED",
        ProcessVerdict::ClosedLoop => "closed loop",
    }
}

/// One of the counts.
type Count = fn(&Packets) -> u64;

/// What became of requests and messages.
pub(crate) fn account(run: &Run) -> Table {
    let mut head = vec!["count"];
    head.extend(run.flows.iter().map(|flow| flow.name.as_str()));
    let mut table = Table::new("What became of requests and messages", &head);
    let counts: [(&str, Count); 13] = [
        ("sent", |of| of.sent),
        ("received", |of| of.received),
        ("late", |of| of.late),
        ("lost", |of| of.lost),
        ("given up", |of| of.given_up),
        ("never sent", |of| of.never_sent),
        ("refused by the kernel", |of| of.refused),
        ("under way at a failure", |of| of.abandoned),
        ("reordered", |of| of.reordered),
        ("arrived", |of| of.arrived),
        ("duplicates", |of| of.duplicates),
        ("foreign", |of| of.foreign),
        ("beside", |of| of.unplaced),
    ];
    for (name, of) in counts {
        let cells = run.flows.iter().map(|flow| count(of(&flow.packets)));
        table.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    table
}

/// Response times by parts of the pattern; none for patterns of one part.
pub(crate) fn parts(run: &Run) -> Option<Table> {
    let mut table = Table::new("Response times by part", &["part", "n", "p50", "p99", "p99.9"]);
    for flow in &run.flows {
        for part in &flow.parts {
            let series = run.series.iter().find(|series| series.name == part.response);
            let at = |percent| {
                let value = series.and_then(|series| quantile(series, percent));
                value.map_or_else(absent, |value| value.to_string())
            };
            let n = series.map_or_else(absent, |series| count(series.n));
            table.rows.push(vec![part.label.clone(), n, at(50.0), at(99.0), at(99.9)]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What is to be said of each flow.
pub(crate) fn remarks(run: &Run) -> Vec<String> {
    run.flows.iter().flat_map(remarks_of).collect()
}

fn remarks_of(flow: &Flow) -> Vec<String> {
    let (way, asked) = (&flow.way, &flow.asked);
    let mut said = vec![
        format!("{}: {}", flow.name, Printable(&way.path)),
        format!("stamps: {}", Printable(&way.stamps)),
        size(flow),
        format!("given up after {}", asked.timeout),
    ];
    if let Some(most) = asked.most_under_way {
        said.push(format!("at most {} under way: the client waits for replies", count(most)));
    }
    if let Some(of) = flow.departures.process.distribution {
        said.push(format!(
            "distances of departures against a Poisson process: at most {:.4} of the distribution \
             function apart, Anderson-Darling A2 {:.1} over {} distances, {:.6} for each",
            of.largest,
            of.a_squared,
            count(of.n),
            of.effect
        ));
    }
    if let Some(other) = flow.other_end {
        if let Some((there, back)) = where_lost(&flow.packets, other.answered) {
            said.push(format!(
                "of those lost, {} were on their way there or not read, and {} on their way back",
                count(there),
                count(back)
            ));
        }
        said.push(format!(
            "the other end answered {} and took {} for foreign; it held a request for {} at least, \
             {} in the median, {} at most",
            count(other.answered),
            count(other.foreign),
            other.residence_min,
            other.residence_median,
            other.residence_max
        ));
    }
    said
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
    let said = format!("{} bytes each way", asked.bytes);
    if let (Some(frame), Some(left)) = (asked.frame_bytes, flow.departures.per_second) {
        let bits = |extra: u32| left * f64::from(8 * (frame + extra)) / 1e6;
        // Preamble, delimiter and gap: 20 bytes that no memory holds.
        return format!(
            "{said}, in frames of {frame} bytes: {:.1} Mbit/s at L2, {:.1} at L1",
            bits(0),
            bits(20)
        );
    }
    said
}

fn ns(value: f64) -> String {
    format!("{value:.1}ns")
}

fn absent() -> String {
    ABSENT.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_located_by_what_the_other_end_answered_unless_duplicates_hide_it() {
        let packets = Packets { sent: 100, received: 90, lost: 10, ..Packets::default() };
        assert_eq!(where_lost(&packets, 93), Some((7, 3)));
        assert_eq!(where_lost(&packets, 101), None, "it answered more than was sent");
        assert_eq!(where_lost(&packets, 80), None, "it answered less than came back");
        assert_eq!(where_lost(&Packets { duplicates: 1, ..packets }, 93), None);
        assert_eq!(where_lost(&Packets { received: 100, lost: 0, ..packets }, 100), None);
    }
}
