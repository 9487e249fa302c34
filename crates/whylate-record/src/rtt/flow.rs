//! From what a client leaves behind to a flow of the run, its series and its warnings.

use whylate_clock::{Counter, HardwareCounter};
use whylate_model::flow::{
    Across, Asked, Departures, Flow, OtherEnd, Pacing, Packets, Part, ProcessVerdict, Way,
};
use whylate_model::frames::{Cost, TurnCosts};
use whylate_model::series::{Censored, Definition, Series};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, TicksDelta};
use whylate_net::OpenLoop;
use whylate_net::message::CountedOneWay;
use whylate_net::open_loop::{Ended, Interrupted, Latencies, OpenOutcome};
use whylate_net::serve::frames::{not_to_be_had, told_frames};
use whylate_net::serve::told_socket;
use whylate_port::open::{Target as Place, Transport};
use whylate_stats::Histogram;

use super::across::OuterPorts;
use super::ends::Target;
use super::intervals::Collected;
use super::line::Line;
use super::process;
use super::request::{FlowRequest, Request};
use crate::intervals::Interval;
use crate::summary::{self, Description};

/// Bytes of Ethernet (addresses, type, check sequence), IPv4, IPv6, UDP and TCP around a message.
const ETHERNET: usize = 18;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// Of a VLAN tag.
const TAG: usize = 4;
/// With the time stamps option, which Linux sends.
const TCP: usize = 32;

/// Where the time of a message begins that its sender hears itself.
pub(crate) const SENT: &str = "before sending by the port that it leaves by";
/// Where it ends.
pub(crate) const HEARD: &str = "after receiving by the port that it comes back by";

/// The times of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Service,
    Response,
    Lateness,
    /// The lateness of those that did not leave late behind long turns of the sender's loop.
    Uninterrupted,
}

impl Of {
    pub(super) const ALL: [Self; 4] =
        [Self::Service, Self::Response, Self::Lateness, Self::Uninterrupted];

    pub(super) fn pick(self, latencies: &Latencies) -> &Histogram {
        match self {
            Self::Service => &latencies.service,
            Self::Response => &latencies.response,
            Self::Lateness => &latencies.lateness,
            Self::Uninterrupted => &latencies.uninterrupted,
        }
    }

    /// Name of the series.
    pub(super) fn series(self, flow: &str) -> String {
        let of = match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Lateness => "lateness",
            Self::Uninterrupted => "lateness-uninterrupted",
        };
        format!("{flow}-{of}")
    }

    fn label(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Lateness => "send lateness",
            Self::Uninterrupted => "send lateness, uninterrupted",
        }
    }

    fn definition(self) -> Definition {
        match self {
            Self::Service => Definition::RoundTrip,
            Self::Response => Definition::Response,
            Self::Lateness => Definition::SendLateness,
            Self::Uninterrupted => Definition::UninterruptedLateness,
        }
    }

    /// Is it about departures alone?
    pub(super) fn of_departures(self) -> bool {
        matches!(self, Self::Lateness | Self::Uninterrupted)
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

pub(super) fn of<'a>(request: &Request, line: &Line<'_>, outcome: &'a OpenOutcome) -> Told<'a> {
    let (asked_for, settings) = (line.flow, &line.settings);
    let packets = packets(outcome);
    let names = &line.collected.names;
    let mut series: Vec<Series> = Of::ALL
        .into_iter()
        .filter_map(|of| one_series(of, outcome, &line.collected, &packets))
        .collect();
    let departures = departures_series(outcome, names);
    let name_of = |of: Of| {
        let name = of.series(&asked_for.name);
        series.iter().any(|series| series.name == name).then_some(name)
    };
    let mut flow = Flow {
        name: asked_for.name.clone(),
        way: Way {
            resolved_in: asked_for.resolved_in,
            costs: costs(outcome, settings.rate),
            across: names.across.clone(),
            ..way(outcome, asked_for.cpu)
        },
        asked: asked(asked_for, settings, request.options.link.tags.count()),
        departures: left(request, settings, outcome),
        packets,
        service: name_of(Of::Service),
        response: name_of(Of::Response),
        lateness: name_of(Of::Lateness),
        parts: Vec::new(),
        anomalies: None,
        other_end: other_end(asked_for, outcome, settings.rate),
        began: outcome.began,
        ended: outcome.ended,
        tail: None,
        breakdown: None,
        trust: None,
        planted: None,
        recordings: Vec::new(),
    };
    flow.departures.pacing = pacing(outcome, settings.rate, name_of(Of::Uninterrupted));
    flow.departures.gaps = departures.as_ref().map(|series| series.name.clone());
    let mut whole = Vec::new();
    if let Some(departures) = departures {
        whole.push((departures.name.clone(), &outcome.departures.gaps));
        series.push(departures);
    }
    for (label, latencies) in settings.plan.arrivals.parts().iter().zip(&outcome.parts) {
        if let Some(part) = part_series(label, latencies, outcome, names) {
            flow.parts.push(Part { label: label.clone(), response: part.name.clone() });
            whole.push((part.name.clone(), &latencies.response));
            series.push(part);
        }
    }
    flow.departures.process.lateness_p999 = flow.lateness_p999(&series);
    let warnings = warnings(&flow, outcome, &series);
    Told { flow, whole, series, warnings }
}

/// What the series of a flow have in common.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) flow: String,
    /// There is no other flow.
    pub(super) alone: bool,
    /// The ports of a client that hears its messages itself.
    pub(super) across: Option<Across>,
    pub(super) resolution_ns: f64,
}

impl Names {
    fn label(&self, of: &str) -> String {
        if self.alone { of.to_owned() } else { format!("{of}, {}", self.flow) }
    }

    fn description(&self, of: Of, lost: u64) -> Description {
        let (from, to) = match (of, self.across.is_some()) {
            (Of::Service, false) => ("before the sending system call", "after the receiving one"),
            (Of::Response, false) => ("intended send", "after the receiving system call"),
            (Of::Lateness | Of::Uninterrupted, false) => {
                ("intended send", "before the sending system call")
            }
            (Of::Service, true) => (SENT, HEARD),
            (Of::Response, true) => ("intended send", HEARD),
            (Of::Lateness | Of::Uninterrupted, true) => ("intended send", SENT),
        };
        let (label, definition) = match (of, self.across.is_some()) {
            (Of::Service, true) => ("one way", Definition::OneWay),
            (Of::Response, true) => ("one way, as intended", Definition::OneWayResponse),
            _ => (of.label(), of.definition()),
        };
        Description {
            name: of.series(&self.flow),
            label: self.label(label),
            paper_row: None,
            from,
            to,
            clock: HardwareCounter::KIND.to_owned(),
            definition,
            resolution_ns: self.resolution_ns,
            lost,
        }
    }
}

/// What is known of one of the times; none when there was no request.
fn one_series(
    of: Of,
    outcome: &OpenOutcome,
    by_time: &Collected,
    packets: &Packets,
) -> Option<Series> {
    // Those under way when the port failed are lost, too.
    let lost = if of.of_departures() { 0 } else { packets.lost };
    let above = match of {
        Of::Service => outcome.given_up.service_above,
        Of::Response => outcome.given_up.response_above,
        Of::Lateness => outcome.given_up.lateness_above,
        Of::Uninterrupted => outcome.given_up.uninterrupted_above,
    };
    series_of(of, of.pick(&outcome.latencies), by_time, (lost, above))
}

/// The series of one of the times, of which so many were lost and nothing is known from a value
/// on; none without a request.
pub(super) fn series_of(
    of: Of,
    values: &Histogram,
    by_time: &Collected,
    (lost, above): (u64, Option<Nanos>),
) -> Option<Series> {
    series_over(of, values, (&by_time.names, by_time.tables(of)), (lost, above))
}

/// The same of whoever has intervals of time of its own.
pub(super) fn series_over(
    of: Of,
    values: &Histogram,
    (names, tables): (&Names, &[Interval]),
    (lost, above): (u64, Option<Nanos>),
) -> Option<Series> {
    if values.is_empty() {
        return None;
    }
    let description = names.description(of, lost);
    let mut series = summary::of_histogram(values, tables, &description);
    censor(&mut series, values, above);
    Some(series)
}

/// From the smallest lower bound on, no value is known for what it is.
fn censor(series: &mut Series, values: &Histogram, above: Option<Nanos>) {
    if let Some(above) = above {
        series.censor(values, Censored { count: values.count_at_least(above.0), above });
    }
}

/// Neighbours depend on each other: no intervals.
fn departures_series(outcome: &OpenOutcome, names: &Names) -> Option<Series> {
    let gaps = &outcome.departures.gaps;
    if gaps.is_empty() {
        return None;
    }
    let (from, to) = match names.across {
        Some(_) => (SENT, "before sending the next one by it"),
        None => ("before a sending system call", "before the next one"),
    };
    let description = Description {
        name: format!("{}-departures", names.flow),
        label: names.label("departures"),
        from,
        to,
        definition: Definition::Departures,
        ..names.description(Of::Lateness, 0)
    };
    Some(summary::without_intervals(gaps, &description))
}

fn part_series(
    label: &str,
    latencies: &Latencies,
    outcome: &OpenOutcome,
    names: &Names,
) -> Option<Series> {
    let values = &latencies.response;
    if values.is_empty() {
        return None;
    }
    let description = Description {
        name: format!("{}-{}", Of::Response.series(&names.flow), label.replace([' ', '.'], "-")),
        label: match names.across {
            Some(_) => names.label(&format!("one way, as intended, {label}")),
            None => names.label(&format!("response, {label}")),
        },
        ..names.description(Of::Response, 0)
    };
    let mut series = summary::without_intervals(values, &description);
    censor(&mut series, values, outcome.given_up.response_above);
    Some(series)
}

pub(super) fn packets(outcome: &OpenOutcome) -> Packets {
    let counts = outcome.accounting;
    // What the kernel refused never left: it is counted once, as that.
    let refused = outcome.departures.refused;
    let packets = Packets {
        sent: counts.sent.saturating_sub(refused),
        received: counts.received,
        late: counts.late,
        lost: counts.lost.saturating_sub(refused),
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        foreign: counts.foreign,
        unplaced: counts.unplaced,
        arrived: counts.arrived,
        given_up: outcome.given_up.unanswered,
        never_sent: outcome.given_up.never_sent,
        refused,
        abandoned: outcome.abandoned,
        unaccounted: 0,
    };
    if outcome.one_way { one_way(packets, outcome.account.map(|of| of.one_way)) } else { packets }
}

/// Of messages without a reply the other end says what came.
fn one_way(packets: Packets, account: Option<CountedOneWay>) -> Packets {
    let came = account.filter(|of| of.received <= packets.sent);
    let Some(CountedOneWay { received, duplicates, reordered, .. }) = came else {
        return Packets { lost: 0, unaccounted: packets.sent, ..packets };
    };
    Packets {
        received,
        lost: packets.sent - received,
        duplicates,
        reordered,
        arrived: received + duplicates + packets.foreign + packets.unplaced,
        ..packets
    }
}

pub(super) fn way(outcome: &OpenOutcome, cpu: CpuId) -> Way {
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
        socket: port.socket.as_ref().map(|socket| told_socket(socket, Some(cpu))),
        frames: port.frames.as_ref().map(|of| told_frames(of, outcome.frames.as_ref())),
        costs: None,
        resolved_in: None,
        across: None,
    }
}

/// What turns of a loop that does not sleep usually took: they are followed anyway, to find long ones.
fn costs(outcome: &OpenOutcome, rate: Hertz) -> Option<TurnCosts> {
    let cost = |turn: TicksDelta| Cost { ticks: turn.0, time: turn.to_nanos(rate) };
    let asleep = outcome.port.wait.sleeps();
    let [look, receive, send] = outcome.interrupted.usual.filter(|_| !asleep)?.map(cost);
    Some(TurnCosts { look, receive, send })
}

/// `tags` are those of VLAN on each frame of a port that carries frames.
pub(super) fn asked(flow: &FlowRequest, settings: &OpenLoop, tags: usize) -> Asked {
    let tags = if flow.transport.carries_frames() { tags * TAG } else { 0 };
    Asked {
        arrivals: settings.plan.arrivals.to_string(),
        per_second: (!settings.plan.is_closed()).then(|| settings.plan.mean_rate()),
        bytes: settings.bytes as u32,
        frame_bytes: frame_of(flow.transport, &flow.target, flow.bytes + tags)
            .map(|bytes| bytes as u32),
        timeout: Some(settings.timeout),
        most_under_way: settings.most_under_way,
        one_way: flow.one_way,
        direction: flow.direction,
        repeats_after: settings.plan.repeats_after().filter(|after| *after < settings.duration),
    }
}

/// Bytes of the frame around a message, on a link that carries Ethernet, check sequence included; the
/// shortest is 64. None for a Unix socket, which sends no frames.
#[must_use]
pub fn frame_of(transport: Transport, target: &Target, bytes: usize) -> Option<usize> {
    const SHORTEST: usize = 64;
    let ip = match (transport, target) {
        (Transport::Unix, _) => return None,
        (_, Target::At(Place::Address(address))) if address.is_ipv6() => IPV6,
        (_, Target::Across(OuterPorts::Host { near, .. })) if near.address.is_ipv6() => IPV6,
        _ => IPV4,
    };
    let transport = if transport == Transport::Tcp { TCP } else { UDP };
    Some((bytes + transport + ip + ETHERNET).max(SHORTEST))
}

fn left(request: &Request, settings: &OpenLoop, outcome: &OpenOutcome) -> Departures {
    let departures = &outcome.departures;
    let went = match (outcome.began, outcome.ended) {
        (Some(began), Some(ended)) if ended > began => {
            Some(ended.since(began).to_nanos(settings.rate))
        }
        _ => None,
    };
    let seconds = measured(&outcome.why, went, settings.duration).0 as f64 / 1e9;
    Departures {
        intended: departures.intended,
        sent: departures.sent,
        in_time: departures.in_time,
        per_second: (seconds > 0.0).then(|| departures.in_time as f64 / seconds),
        gaps: None,
        process: process::of(request.tolerance, outcome),
        pacing: None,
    }
}

/// The time over which departures are counted. Sending ends with the last one, a distance before the
/// time asked for: rates are of that time, unless the run was stopped or failed before.
fn measured(why: &Ended, went: Option<Nanos>, asked: Nanos) -> Nanos {
    match (why, went) {
        (_, None) => Nanos(0),
        (Ended::Duration, Some(_)) => asked,
        (_, Some(went)) => went.min(asked),
    }
}

/// What long turns of the sender did to its departures; what they were is added where it is known.
fn pacing(outcome: &OpenOutcome, rate: Hertz, lateness: Option<String>) -> Option<Pacing> {
    if outcome.closed {
        return None;
    }
    let Interrupted { interruptions, took, limits, excluded, .. } = outcome.interrupted;
    let [looking, sending] = limits.map(|limit| limit.to_nanos(rate));
    let (took, of) = (took.to_nanos(rate), outcome.latencies.lateness.len());
    let (long_turns, named) = (interruptions, None);
    Some(Pacing { long_turns, took, named, looking, sending, excluded, of, lateness })
}

/// Ticks of this host's own reflector are converted by the rate that was found over the whole run,
/// those of others by the rate that they tell.
fn other_end(flow: &FlowRequest, outcome: &OpenOutcome, here: Hertz) -> Option<OtherEnd> {
    let account = outcome.account?;
    let rate = match flow.target {
        Target::Own { .. } | Target::Across(_) => here,
        Target::At(_) => account.rate()?,
    };
    let receptions = outcome.one_way.then(|| account.one_way.receptions(rate));
    Some(OtherEnd {
        answered: account.echoed,
        foreign: account.foreign,
        residence_min: account.residence_min.to_nanos(rate),
        residence_median: account.residence_median.to_nanos(rate),
        residence_max: account.residence_max.to_nanos(rate),
        receptions,
    })
}

fn warnings(flow: &Flow, outcome: &OpenOutcome, series: &[Series]) -> Vec<Warning> {
    let name = || flow.name.clone();
    let mut warnings = Vec::new();
    warnings.extend(flow.way.frames.iter().flat_map(|of| not_to_be_had(&flow.name, of)));
    if !outcome.adds_up() && super::failure(&outcome.why).is_none() {
        warnings.push(Warning::AccountBroken { flow: name() });
    }
    if flow.packets.unaccounted > 0 {
        warnings.push(Warning::NoAccount { flow: name() });
    }
    if let Some(why) = &outcome.departures.why_refused {
        let (refused, reason) = (outcome.departures.refused, why.to_string());
        warnings.push(Warning::MessagesRefused { flow: name(), refused, reason });
    }
    let process = &flow.departures.process;
    match process.verdict {
        ProcessVerdict::Saturated => {
            let share = outcome.departures.share_in_time().unwrap_or(0.0);
            warnings.push(Warning::Saturated { flow: name(), share });
        }
        ProcessVerdict::Disturbed => {
            let how = process::disturbed(flow, series);
            warnings.push(Warning::DeparturesDisturbed { flow: name(), how });
        }
        ProcessVerdict::Held | ProcessVerdict::TooFew | ProcessVerdict::ClosedLoop => (),
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_time_asked_for_and_of_the_time_taken_where_the_run_was_stopped() {
        // Five requests in a second leave at 0, 0.2, 0.4, 0.6 and 0.8 s.
        let (asked, went) = (Nanos(1_000_000_000), Some(Nanos(800_000_000)));
        assert_eq!(measured(&Ended::Duration, went, asked), asked, "5/s, not 6.25/s");
        assert_eq!(measured(&Ended::Stopped, went, asked), Nanos(800_000_000));
        // What caught up after the end does not count.
        let late = Some(Nanos(1_200_000_000));
        assert_eq!(measured(&Ended::Stopped, late, asked), asked);
        assert_eq!(measured(&Ended::Duration, None, asked), Nanos(0));
    }

    #[test]
    fn the_times_of_a_client_that_hears_itself_meet_at_one_point_and_none_is_a_round_trip() {
        let ports = || Across { out: "a".to_owned(), back: "b".to_owned(), one_thread: true };
        let names = |across: Option<Across>| {
            let flow = if across.is_some() { "there" } else { "rtt" };
            Names { flow: flow.to_owned(), alone: false, across, resolution_ns: 1.0 }
        };
        let told = |across: bool, of| names(across.then(ports)).description(of, 0);
        for across in [false, true] {
            let [service, response, late, apart] = Of::ALL.map(|of| told(across, of));
            // Intended send to actual send to reception: what lies between is named once.
            assert_eq!((late.from, late.to), (response.from, service.from));
            assert_eq!((apart.from, apart.to), (late.from, late.to));
            assert_eq!(late.definition, Definition::SendLateness);
            assert_eq!(apart.definition, Definition::UninterruptedLateness);
            let clocks = [&service, &response, &late, &apart].map(|of| of.clock.as_str());
            assert_eq!(clocks, [HardwareCounter::KIND; 4]);
            let one_way = (Definition::OneWay, Definition::OneWayResponse);
            let round = (Definition::RoundTrip, Definition::Response);
            let expected = if across { one_way } else { round };
            assert_eq!((service.definition, response.definition), expected);
            assert_eq!(service.to == HEARD, across);
            assert_eq!(response.to == HEARD, across);
        }
        assert_eq!(told(true, Of::Lateness).label, "send lateness, there");
    }

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
