//! From what a client leaves behind to a flow of the run, its series and its warnings.

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::flow::{
    Asked, Departures, Distribution, Flow, OtherEnd, Packets, Part, Process, ProcessVerdict, Way,
};
use whylate_model::series::{Censored, Definition, Series};
use whylate_model::warning::Warning;
use whylate_model::{Hertz, Nanos};
use whylate_net::OpenLoop;
use whylate_net::open_loop::{Latencies, OpenOutcome};
use whylate_port::open::{Target as Place, Transport};
use whylate_stats::Histogram;
use whylate_stats::uniformity::Uniformity;

use super::Request;
use super::ends::Target;
use super::intervals::Collected;
use crate::summary::{self, Description};

/// Below this share of the intended departures the rate was not held: curves whose achieved rates
/// differ by more are not compared either.
const HELD: f64 = 0.99;
/// Distances of Poisson departures whose distribution function differs by more are no Poisson
/// process.
const LIKE_POISSON: f64 = 0.02;
/// Name of the one flow.
const NAME: &str = "rtt";
/// Bytes of Ethernet (addresses, type, check sequence), IPv4, IPv6, UDP and TCP around a message.
const ETHERNET: usize = 18;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// With the time stamps option, which Linux sends.
const TCP: usize = 32;

/// The three times of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Service,
    Response,
    Lateness,
}

impl Of {
    pub(super) const ALL: [Self; 3] = [Self::Service, Self::Response, Self::Lateness];

    pub(super) fn pick(self, latencies: &Latencies) -> &Histogram {
        match self {
            Self::Service => &latencies.service,
            Self::Response => &latencies.response,
            Self::Lateness => &latencies.lateness,
        }
    }

    /// Name of the series.
    pub(super) fn series(self) -> &'static str {
        match self {
            Self::Service => "rtt-service",
            Self::Response => "rtt-response",
            Self::Lateness => "rtt-lateness",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Lateness => "send lateness",
        }
    }

    fn definition(self) -> Definition {
        match self {
            Self::Service => Definition::RoundTrip,
            Self::Response => Definition::Response,
            Self::Lateness => Definition::SendLateness,
        }
    }
}

/// A flow of the run, and what belongs to it.
pub(super) struct Told<'a> {
    pub(super) flow: Flow,
    /// Values of series without intervals of time, for the log.
    pub(super) whole: Vec<(String, &'a Histogram)>,
    pub(super) series: Vec<Series>,
    pub(super) warnings: Vec<Warning>,
}

pub(super) fn of<'a>(
    request: &Request,
    settings: &OpenLoop,
    outcome: &'a OpenOutcome,
    by_time: &Collected,
    resolution_ns: f64,
) -> Told<'a> {
    let packets = packets(outcome);
    let mut series: Vec<Series> = Of::ALL
        .into_iter()
        .filter_map(|of| one_series(of, outcome, by_time, &packets, resolution_ns))
        .collect();
    let departures = departures_series(outcome, resolution_ns);
    let has = |of: Of| series.iter().any(|series| series.name == of.series());
    let mut flow = Flow {
        name: NAME.to_owned(),
        way: way(outcome),
        asked: asked(request, settings),
        departures: left(request, settings, outcome),
        packets,
        service: Of::Service.series().to_owned(),
        response: has(Of::Response).then(|| Of::Response.series().to_owned()),
        lateness: has(Of::Lateness).then(|| Of::Lateness.series().to_owned()),
        parts: Vec::new(),
        other_end: other_end(request, outcome, settings.rate),
        began: outcome.began,
        ended: outcome.ended,
    };
    flow.departures.gaps = departures.as_ref().map(|series| series.name.clone());
    let mut whole = Vec::new();
    if let Some(departures) = departures {
        whole.push((departures.name.clone(), &outcome.departures.gaps));
        series.push(departures);
    }
    for (label, latencies) in settings.plan.arrivals.parts().iter().zip(&outcome.parts) {
        if let Some(part) = part_series(label, latencies, outcome, resolution_ns) {
            flow.parts.push(Part { label: label.clone(), response: part.name.clone() });
            whole.push((part.name.clone(), &latencies.response));
            series.push(part);
        }
    }
    let warnings = warnings(&flow, outcome);
    Told { flow, whole, series, warnings }
}

fn description(of: Of, resolution_ns: f64, lost: u64) -> Description {
    let (from, to) = match of {
        Of::Service => ("before the sending system call", "after the receiving one"),
        Of::Response => ("intended send", "after the receiving system call"),
        Of::Lateness => ("intended send", "before the sending system call"),
    };
    Description {
        name: of.series().to_owned(),
        label: of.label().to_owned(),
        paper_row: None,
        from,
        to,
        clock: HardwareCounter::KIND.to_owned(),
        definition: of.definition(),
        resolution_ns,
        lost,
    }
}

/// What is known of one of the three times; none when there was no request.
fn one_series(
    of: Of,
    outcome: &OpenOutcome,
    by_time: &Collected,
    packets: &Packets,
    resolution_ns: f64,
) -> Option<Series> {
    let values = of.pick(&outcome.latencies);
    let lost = if of == Of::Lateness { 0 } else { packets.lost + packets.abandoned };
    let description = description(of, resolution_ns, lost);
    if values.is_empty() {
        return None;
    }
    let mut series = summary::of_histogram(values, by_time.tables(of), &description);
    let above = match of {
        Of::Service => outcome.given_up.service_above,
        Of::Response => outcome.given_up.response_above,
        Of::Lateness => outcome.given_up.lateness_above,
    };
    censor(&mut series, values, above);
    if of == Of::Lateness {
        // The paper's classes are about latencies.
        (series.class, series.class_by, series.tail, series.snr) = (None, None, None, None);
    }
    Some(series)
}

/// From the smallest lower bound on, no value is known for what it is.
fn censor(series: &mut Series, values: &Histogram, above: Option<Nanos>) {
    if let Some(above) = above {
        series.censor(values, Censored { count: values.count_at_least(above.0), above });
    }
}

/// Neighbours depend on each other: no intervals.
fn departures_series(outcome: &OpenOutcome, resolution_ns: f64) -> Option<Series> {
    let gaps = &outcome.departures.gaps;
    if gaps.is_empty() {
        return None;
    }
    let description = Description {
        name: "rtt-departures".to_owned(),
        label: "departures".to_owned(),
        from: "before a sending system call",
        to: "before the next one",
        definition: Definition::Departures,
        ..description(Of::Lateness, resolution_ns, 0)
    };
    let mut series = summary::without_intervals(gaps, &description);
    (series.class, series.class_by, series.tail, series.snr) = (None, None, None, None);
    Some(series)
}

fn part_series(
    label: &str,
    latencies: &Latencies,
    outcome: &OpenOutcome,
    resolution_ns: f64,
) -> Option<Series> {
    let values = &latencies.response;
    if values.is_empty() {
        return None;
    }
    let description = Description {
        name: format!("rtt-response-{}", label.replace([' ', '.'], "-")),
        label: format!("response, {label}"),
        ..description(Of::Response, resolution_ns, 0)
    };
    let mut series = summary::without_intervals(values, &description);
    censor(&mut series, values, outcome.given_up.response_above);
    Some(series)
}

fn packets(outcome: &OpenOutcome) -> Packets {
    let counts = outcome.accounting;
    Packets {
        sent: counts.sent,
        received: counts.received,
        late: counts.late,
        lost: counts.lost,
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        foreign: counts.foreign,
        unplaced: counts.unplaced,
        arrived: counts.arrived,
        given_up: outcome.given_up.unanswered,
        never_sent: outcome.given_up.never_sent,
        refused: outcome.departures.refused,
        abandoned: outcome.abandoned,
    }
}

fn way(outcome: &OpenOutcome) -> Way {
    let (port, stamps) = (&outcome.port, &outcome.port.stamps);
    Way {
        backend: port.backend.to_owned(),
        path: port.path.clone(),
        wait: port.wait.to_string(),
        protocol: outcome.protocol.to_owned(),
        stamps: stamps.source.clone(),
        resolution_ns: stamps.resolution_ns,
        read_cost_min_ns: stamps.read_cost_min_ns,
        read_cost_median_ns: stamps.read_cost_median_ns,
        precision_ns: stamps.precision_ns,
    }
}

fn asked(request: &Request, settings: &OpenLoop) -> Asked {
    Asked {
        arrivals: settings.plan.arrivals.to_string(),
        per_second: Some(settings.plan.mean_rate()),
        bytes: settings.bytes as u32,
        frame_bytes: frame_of(request.transport, &request.target, request.bytes)
            .map(|bytes| bytes as u32),
        timeout: settings.timeout,
        most_under_way: settings.most_under_way,
    }
}

/// Bytes of the frame around a message, on a link that carries Ethernet; the shortest is 64.
fn frame_of(transport: Transport, target: &Target, bytes: usize) -> Option<usize> {
    const SHORTEST: usize = 64;
    let ip = match (transport, target) {
        (Transport::Unix, _) => return None,
        (_, Target::At(Place::Address(address))) if address.is_ipv6() => IPV6,
        _ => IPV4,
    };
    let transport = if transport == Transport::Tcp { TCP } else { UDP };
    Some((bytes + transport + ip + ETHERNET).max(SHORTEST))
}

fn left(request: &Request, settings: &OpenLoop, outcome: &OpenOutcome) -> Departures {
    let departures = &outcome.departures;
    let measured = match (outcome.began, outcome.ended) {
        // A run that was stopped has measured for less.
        (Some(began), Some(ended)) if ended > began => {
            ended.since(began).to_nanos(settings.rate).min(settings.duration)
        }
        _ => Nanos(0),
    };
    let seconds = measured.0 as f64 / 1e9;
    Departures {
        intended: departures.intended,
        sent: departures.sent,
        in_time: departures.in_time,
        per_second: (seconds > 0.0).then(|| departures.in_time as f64 / seconds),
        gaps: None,
        process: process(request, outcome),
    }
}

fn process(request: &Request, outcome: &OpenOutcome) -> Process {
    let departures = &outcome.departures;
    // Of what was never sent only a lower bound is known, and that is no p99.9.
    let known = |late: &Nanos| outcome.given_up.lateness_above.is_none_or(|above| *late < above);
    let lateness_p999 = outcome.latencies.lateness.value_at(99.9).map(Nanos).filter(known);
    let distance = departures.uniformity.as_ref().and_then(Uniformity::distance);
    let distribution = distance.map(|of| Distribution {
        n: of.n,
        largest: of.largest,
        a_squared: of.a_squared,
        effect: of.effect(),
    });
    let like = distribution.is_none_or(|of| of.largest <= LIKE_POISSON);
    let verdict = if departures.share_in_time().is_some_and(|share| share < HELD) {
        ProcessVerdict::Saturated
    } else if like && lateness_p999.is_some_and(|late| late <= request.tolerance) {
        ProcessVerdict::Held
    } else {
        ProcessVerdict::Disturbed
    };
    Process { verdict, lateness_p999, tolerance: request.tolerance, distribution }
}

fn other_end(request: &Request, outcome: &OpenOutcome, rate: Hertz) -> Option<OtherEnd> {
    // It counts in ticks of its own counter, whose rate is known only where it is this host's.
    if !matches!(request.target, Target::Own { .. }) {
        return None;
    }
    outcome.account.map(|account| OtherEnd {
        answered: account.echoed,
        foreign: account.foreign,
        residence_min: account.residence_min.to_nanos(rate),
        residence_median: account.residence_median.to_nanos(rate),
        residence_max: account.residence_max.to_nanos(rate),
    })
}

fn warnings(flow: &Flow, outcome: &OpenOutcome) -> Vec<Warning> {
    let name = || flow.name.clone();
    let mut warnings = Vec::new();
    if !outcome.adds_up() && super::failure(&outcome.why).is_none() {
        warnings.push(Warning::AccountBroken { flow: name() });
    }
    let process = &flow.departures.process;
    match process.verdict {
        ProcessVerdict::Saturated => {
            let share = outcome.departures.share_in_time().unwrap_or(0.0);
            warnings.push(Warning::Saturated { flow: name(), share });
        }
        ProcessVerdict::Disturbed => {
            let how = disturbed(flow);
            warnings.push(Warning::DeparturesDisturbed { flow: name(), how });
        }
        ProcessVerdict::Held | ProcessVerdict::ClosedLoop => (),
    }
    warnings
}

fn disturbed(flow: &Flow) -> String {
    let process = &flow.departures.process;
    match (process.lateness_p999, process.distribution) {
        (Some(late), _) if late > process.tolerance => {
            format!("the p99.9 left {late} late, tolerance {}", process.tolerance)
        }
        (_, Some(of)) => format!(
            "their distances differ from a Poisson process by {:.3} of the distribution function",
            of.largest
        ),
        (None, _) => "too few left to tell".to_owned(),
        (Some(late), None) => format!("the p99.9 left {late} late"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_fills_its_frame_and_a_frame_is_never_shorter_than_the_shortest() {
        let of = |transport, target: &str, bytes| {
            frame_of(transport, &Target::At(Place::Address(target.parse().unwrap())), bytes)
        };
        assert_eq!(of(Transport::Udp, "127.0.0.1:1", 64), Some(110));
        assert_eq!(of(Transport::Udp, "[::1]:1", 64), Some(130));
        assert_eq!(of(Transport::Udp, "127.0.0.1:1", 14), Some(64));
        assert_eq!(of(Transport::Tcp, "127.0.0.1:1", 64), Some(134));
        assert_eq!(of(Transport::Unix, "127.0.0.1:1", 14), None);
    }
}
