//! What is asked about where requests spend their time, and what of it can be had.

use std::path::PathBuf;

use whylate_model::breakdown::{Part, Point, Source, Station};
use whylate_model::tap::TapClock;
use whylate_model::warning::Warning;
use whylate_net::lab::Bed;
use whylate_port::StampKind;
use whylate_port::open::{Target as Place, Transport};

use super::super::ends::Target;
use super::super::pace::Shared;
use super::super::request::{FlowRequest, Request};
use super::super::tap;
use crate::RecordError;

/// Requests a second that are taken apart: each costs the recording's thread some microseconds.
const MOST: f64 = 50_000.0;
/// The same with the kernel's trace, in which each leaves some twenty events.
const MOST_TRACED: f64 = 20_000.0;
/// The same where that thread shares a CPU with an end, which would be late for it.
const MOST_BESIDE_AN_END: f64 = 5_000.0;

/// Requests that wait until a tap's file is read.
const MOST_AGAINST_A_FILE: f64 = 60_000.0;

/// What is asked about where requests spend their time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each source is asked for or not, by itself")]
pub struct TakeApart {
    /// By the kernel's stamps of the client's sockets, and of the reflector's.
    pub stamps: bool,
    /// By the kernel's tracepoints.
    pub trace: bool,
    /// By what the reflector that the recording starts tells of each request.
    pub told: bool,
    /// By the tap of a bed that has one.
    pub bed_tap: bool,
    /// By what a tap between both ends has written when the run is over.
    pub tap: Option<TapFile>,
    /// One of so many requests has its sending stamped.
    pub stamp_every: u32,
    /// What looking costs, in so many rounds after the measurement; none where that is not asked.
    pub cost_rounds: Option<u32>,
}

/// What a tap writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapFile {
    /// Where.
    pub path: PathBuf,
    /// By whose clock.
    pub clock: TapClock,
}

/// What tells of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each source is there or not, by itself")]
pub(in crate::rtt) struct Sources {
    /// The client's sockets are stamped.
    pub(in crate::rtt) stamps: bool,
    /// The reflector's, too.
    pub(in crate::rtt) far_stamps: bool,
    /// The client's card stamps what is sent, and what is received.
    pub(in crate::rtt) card_sent: bool,
    pub(in crate::rtt) card_received: bool,
    /// The client's frames are, by their metadata.
    pub(in crate::rtt) metadata: bool,
    /// What the other end's kernel acknowledged is stamped, and what the card said is out.
    pub(in crate::rtt) acks: bool,
    pub(in crate::rtt) completions: bool,
    pub(in crate::rtt) trace: bool,
    pub(in crate::rtt) told: bool,
    pub(in crate::rtt) tap: bool,
}

impl Sources {
    /// Kinds of stamps of what the client sends that lie not on the way.
    pub(in crate::rtt) fn asides(self) -> impl Iterator<Item = StampKind> {
        let of = [(self.acks, StampKind::Ack), (self.completions, StampKind::Completion)];
        of.into_iter().filter_map(|(asked, kind)| asked.then_some(kind))
    }

    /// Does nobody tell anything but the client its own readings?
    pub(in crate::rtt) fn are_none(self) -> bool {
        let stamps = self.stamps || self.far_stamps || self.metadata;
        !(stamps || self.trace || self.told || self.tap)
    }
}

/// Which flows are taken apart.
pub(in crate::rtt) struct Extent {
    taken: Vec<bool>,
    /// Flows of requests that are not taken apart, and why.
    pub(in crate::rtt) left_out: Vec<Warning>,
}

impl TakeApart {
    /// Refuses what cannot be taken apart, before anything is touched.
    pub(in crate::rtt) fn check(&self, request: &Request) -> Result<(), RecordError> {
        for flow in &request.flows {
            if let Some(reason) = self.unfit(flow) {
                return Err(RecordError::Flow { flow: flow.name.clone(), reason });
            }
        }
        let Some(tap) = &self.tap else { return Ok(()) };
        tap::checked(&tap.path)?;
        let seconds = request.duration.0 as f64 / 1e9;
        let requests: f64 = request.flows.iter().map(FlowRequest::expected_rate).sum();
        if requests * seconds > MOST_AGAINST_A_FILE {
            let reason = format!(
                "{:.0} requests would wait for the end of the tap's file, and no more than \
                 {MOST_AGAINST_A_FILE} can: give a shorter --duration or a lower --rate",
                requests * seconds
            );
            return Err(RecordError::Flow { flow: request.flows[0].name.clone(), reason });
        }
        Ok(())
    }

    fn unfit(&self, flow: &FlowRequest) -> Option<String> {
        // What asks for no reply has no way back, and is left aside where others are taken apart.
        match flow.transport {
            Transport::Unix => Some(
                "a Unix socket has no stack and no driver, and the kernel stamps none of its \
                 messages: leave --breakdown out, or take udp or tcp"
                    .to_owned(),
            ),
            // Frames of AF_XDP have stamps of their own.
            transport if is_unstamped(transport) && self.stamps => Some(format!(
                "whole frames by {transport} pass the sockets that the kernel stamps: write \
                 --breakdown=trace,told, or take udp, tcp or xdp"
            )),
            _ => None,
        }
    }

    /// The bed that this flow goes through, where its tap is read.
    pub(in crate::rtt) fn tapped_bed<'a>(&self, flow: &'a FlowRequest) -> Option<&'a Bed> {
        match &flow.target {
            Target::Own { bed: Some(bed), .. } if self.bed_tap && bed.tap().is_ok() => Some(bed),
            _ => None,
        }
    }

    /// What is to tell of this flow.
    pub(in crate::rtt) fn sources(&self, flow: &FlowRequest) -> Sources {
        let own = matches!(flow.target, Target::Own { .. });
        let frames = flow.transport.carries_frames();
        Sources {
            stamps: self.stamps && !frames,
            // A reflector over frames tells what it read.
            far_stamps: self.stamps && own && !frames,
            metadata: self.stamps && flow.transport == Transport::Xdp,
            // Known when its socket is there.
            card_sent: false,
            card_received: false,
            acks: self.stamps && no_acks(flow).is_none(),
            // Known when some came.
            completions: false,
            trace: self.trace,
            told: self.told && own,
            tap: self.tapped_bed(flow).is_some()
                || self.tap.as_ref().is_some_and(|tap| tap.clock == TapClock::System),
        }
    }
}

impl Extent {
    /// Flows come in their order, until there are as many requests as can be taken apart. `looked_at`
    /// says of which flows the threads will be known.
    pub(in crate::rtt) fn of(
        request: &Request,
        shared: Shared,
        looked_at: impl Fn(usize) -> bool,
    ) -> Self {
        let Some(asked) = &request.take_apart else {
            return Self { taken: Vec::new(), left_out: Vec::new() };
        };
        let most = match (shared.beside, asked.trace) {
            (true, _) => MOST_BESIDE_AN_END,
            (false, true) => MOST_TRACED,
            (false, false) => MOST,
        };
        let (mut sum, mut taken, mut left_out) = (0.0, Vec::new(), Vec::new());
        for (number, flow) in request.flows.iter().enumerate() {
            let per_second = flow.expected_rate();
            let fits = sum + per_second <= most && looked_at(number);
            taken.push(fits && !flow.one_way);
            if flow.one_way {
                continue;
            }
            if fits {
                sum += per_second;
            } else {
                left_out.push(left_aside(flow, most, shared.beside));
            }
        }
        Self { taken, left_out }
    }

    /// Is this flow taken apart?
    pub(in crate::rtt) fn takes(&self, number: usize) -> bool {
        self.taken.get(number).copied().unwrap_or(false)
    }
}

/// Do whole frames go this way that nobody stamps?
fn is_unstamped(transport: Transport) -> bool {
    transport.carries_frames() && transport != Transport::Xdp
}

/// Why acknowledgements are not stamped; none where they are.
pub(super) fn no_acks(flow: &FlowRequest) -> Option<&'static str> {
    match flow.transport {
        // Its stamp ends a sleep, and comes with the acknowledgement that the reply brings: before that
        // is delivered.
        Transport::Tcp if flow.wait.sleeps() => {
            Some("not asked for: it would wake a client that sleeps before its reply does")
        }
        Transport::Tcp => None,
        _ => Some("only TCP is told what the other end has"),
    }
}

fn left_aside(flow: &FlowRequest, most: f64, beside: bool) -> Warning {
    let shares = if beside { ", for it shares a CPU with an end" } else { "" };
    let reason =
        format!("the recording's thread takes {most} requests a second apart at most{shares}");
    Warning::PartLeftOut { part: what(&flow.name), reason }
}

/// What is left out where nothing is taken apart.
pub(in crate::rtt) fn what(flow: &str) -> String {
    format!("where requests of {flow} spent their time")
}

/// From where to where a request is taken apart: from where it was meant to leave, where something was.
pub(in crate::rtt) fn whole(closed: bool) -> Part {
    let from = if closed { Station::Sent } else { Station::Intended };
    Part { from: Point::there(from), to: Point::back(Station::Read) }
}

/// Are both ends on this host, where the kernel's trace sees both?
fn is_here(target: &Target) -> bool {
    match target {
        Target::Own { .. } | Target::Across(_) | Target::At(Place::Path(_)) => true,
        Target::At(Place::Address(address)) => address.ip().is_loopback(),
    }
}

/// Which points are to come, by whom.
pub(in crate::rtt) fn expected(
    flow: &FlowRequest,
    sources: Sources,
    closed: bool,
) -> Vec<(Point, Source)> {
    use Station::{
        Arrived, Delivered, Driver, Intended, Queued, Read, Running, Sent, Tap, WireIn, WireOut,
        Woken,
    };
    let (there, back) = (Point::there, Point::back);
    let mut expected = Vec::new();
    let mut of = |source: Source, points: &[Point]| {
        expected.extend(points.iter().map(|point| (*point, source)));
    };
    if !closed {
        of(Source::Own, &[there(Intended)]);
    }
    of(Source::Own, &[there(Sent), back(Read)]);
    if sources.told {
        of(Source::Told, &[there(Read), back(Sent)]);
    }
    if sources.stamps {
        of(Source::Software, &[there(Queued), there(Driver), back(Arrived)]);
    }
    if sources.metadata {
        of(Source::Metadata, &[back(Arrived)]);
    }
    if sources.card_sent {
        of(Source::Hardware, &[there(WireOut)]);
    }
    if sources.card_received {
        of(Source::Hardware, &[back(WireIn)]);
    }
    if sources.far_stamps {
        of(Source::Software, &[there(Arrived), back(Queued), back(Driver)]);
    }
    if sources.trace {
        // A device without a queueing discipline is given its messages all the same.
        let leaving = [Sent, Queued, Driver];
        let mut coming = vec![Arrived, Delivered];
        if flow.wait.sleeps() {
            coming.extend([Woken, Running]);
        }
        coming.push(Read);
        of(Source::Trace, &leaving.map(there));
        of(Source::Trace, &coming.iter().copied().map(back).collect::<Vec<_>>());
        if is_here(&flow.target) {
            of(Source::Trace, &coming.iter().copied().map(there).collect::<Vec<_>>());
            of(Source::Trace, &leaving.map(back));
        }
    }
    if sources.tap {
        of(Source::Tap, &[there(Tap), back(Tap)]);
    }
    expected
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::breakdown::Leg;
    use whylate_model::flow::Direction;
    use whylate_net::Speaks;
    use whylate_net::schedule::Arrivals;
    use whylate_port::Wait;

    use super::*;

    fn asked() -> TakeApart {
        TakeApart {
            stamps: true,
            trace: true,
            told: true,
            bed_tap: false,
            tap: None,
            stamp_every: 1,
            cost_rounds: None,
        }
    }

    fn flow(target: Target) -> FlowRequest {
        FlowRequest {
            name: "rtt".to_owned(),
            cpu: CpuId(0),
            fifo: None,
            target,
            direction: Direction::There,
            transport: Transport::Udp,
            protocol: "raw".parse::<Speaks>().unwrap(),
            wait: Wait::Block,
            bytes: 64,
            arrivals: Arrivals::Constant,
            replayed: None,
            per_second: 1e3,
            most_under_way: None,
            one_way: false,
            resolved_in: None,
        }
    }

    fn at(address: &str) -> Target {
        Target::At(Place::Address(address.parse().unwrap()))
    }

    /// What is expected of the other end: of a request once it arrived, and of a reply until the driver
    /// has it.
    fn of_the_other_end(target: Target) -> Vec<(Point, Source)> {
        let flow = flow(target);
        let mut all = expected(&flow, asked().sources(&flow), false);
        all.retain(|(point, _)| match point.leg {
            Leg::Request => point.station >= Station::Arrived,
            Leg::Reply => point.station <= Station::Driver,
        });
        all
    }

    #[test]
    fn of_an_end_on_another_host_nothing_is_expected_and_of_one_on_this_what_the_trace_sees() {
        for address in ["198.51.100.7:4021", "[2001:db8::7]:4021"] {
            assert!(!is_here(&at(address)), "{address}");
            assert_eq!(of_the_other_end(at(address)), [], "{address}");
            // One end is told of otherwise, by all that there is.
            let flow = flow(at(address));
            let near = expected(&flow, asked().sources(&flow), false);
            for source in [Source::Own, Source::Software, Source::Trace] {
                assert!(near.iter().any(|(_, by)| *by == source), "{source} at {address}");
            }
        }
        for address in ["127.0.0.1:4021", "[::1]:4021"] {
            assert!(is_here(&at(address)), "{address}");
            let there = of_the_other_end(at(address));
            assert!(there.contains(&(Point::there(Station::Read), Source::Trace)), "{there:?}");
            assert!(there.contains(&(Point::back(Station::Sent), Source::Trace)), "{there:?}");
            // Its sockets are not ours, and it tells nothing.
            assert!(there.iter().all(|(_, by)| *by == Source::Trace), "{there:?}");
        }
        let own = of_the_other_end(Target::Own { cpu: CpuId(1), bed: None });
        for source in [Source::Told, Source::Software, Source::Trace] {
            assert!(own.iter().any(|(_, by)| *by == source), "{source}: {own:?}");
        }
    }
}
