//! Requests and replies: what a client intended, what left, what came back, and what became of
//! every one.

mod planted;
mod process;
mod wire;

use serde::{Deserialize, Serialize};

use crate::breakdown::Breakdown;
use crate::calibration::Trust;
use crate::frames::{Frames, TurnCosts};
use crate::series::Series;
use crate::tail::Tail;
use crate::units::{CpuId, Nanos, Ticks};
pub use planted::PlantedLate;
pub use process::{Distribution, OutOf, Process, ProcessVerdict};
pub use wire::OnWire;

/// One flow of requests from a client and of replies to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// What it is called, also in the names of its series.
    pub name: String,
    /// The way it takes.
    pub way: Way,
    /// What was asked for.
    pub asked: Asked,
    /// What left, against it.
    pub departures: Departures,
    /// Requests and messages: how many were sent, answered and lost.
    pub packets: Packets,
    /// Name of the series of service times, from the actual send to the reply; none for messages
    /// that ask for no reply.
    pub service: Option<String>,
    /// Name of the series of response times, from the intended send to the reply; none for a
    /// closed loop, which intends nothing, and for messages that ask for no reply.
    pub response: Option<String>,
    /// Name of the series of send lateness, from the intended to the actual send.
    pub lateness: Option<String>,
    /// Response times by parts of the pattern of arrivals; empty for a pattern of one part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The first odd messages, in a file of the run directory; none where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anomalies: Option<Kept>,
    /// The other end's own account, where it gave one.
    pub other_end: Option<OtherEnd>,
    /// The first intended send; none when it was not reached.
    #[serde(rename = "began_ticks")]
    pub began: Option<Ticks>,
    /// When sending ended.
    #[serde(rename = "ended_ticks")]
    pub ended: Option<Ticks>,
    /// Why the slow ones were slow, where that was looked at; none in a sum, whose recordings each
    /// have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
    /// Where its requests spent their time, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Box<Breakdown>>,
    /// How far its numbers may be trusted, where its backend was calibrated on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Messages whose receptions were stamped late on purpose, to see whether a calibration finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedLate>,
    /// In a sum: what of each recording does not add up. Empty in a recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<OfRecording>,
}

/// What one recording of a sum says of a flow and what no sum has: medians, claims, files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfRecording {
    /// Its directory, as it was named.
    pub directory: String,
    /// The other end's own account, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_end: Option<OtherEnd>,
    /// Why its slow ones were slow, with the causes that are claimed and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
    /// Its first odd messages, in a file of that directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anomalies: Option<Kept>,
}

impl Flow {
    /// How late its p99.9 left, by the series that says so and by no other count.
    #[must_use]
    pub fn lateness_p999(&self, series: &[Series]) -> Option<Nanos> {
        let late = series.iter().find(|series| Some(&series.name) == self.lateness.as_ref())?;
        late.at(99.9)
    }

    /// Is the series of that name one of its own?
    #[must_use]
    pub fn has_series(&self, name: &str) -> bool {
        let apart = self.departures.pacing.as_ref().and_then(|of| of.lateness.as_ref());
        let gaps = self.departures.gaps.as_ref();
        let own = [&self.service, &self.response, &self.lateness].map(Option::as_ref);
        let mut all = own.into_iter().chain([apart, gaps]).flatten();
        all.any(|one| one == name)
            || self.parts.iter().any(|part| part.response == name)
            || self.breakdown.as_ref().is_some_and(|of| of.has_series(name))
    }
}

/// The way that messages take, and who stamps them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Way {
    /// `udp over ipv4`, `tcp over ipv6`, `unix datagram`, ...
    pub backend: String,
    /// From where to where.
    pub path: String,
    /// How the client waits for replies.
    pub wait: String,
    /// The protocol.
    pub protocol: String,
    /// Who stamps, by which clock, and where.
    pub stamps: String,
    /// Smallest step of that clock.
    pub resolution_ns: f64,
    /// What a stamp costs: smallest.
    pub read_cost_min_ns: f64,
    /// What a stamp costs: median.
    pub read_cost_median_ns: f64,
    /// Spread of repeated measurements of a constant, from p1 to p99.
    pub precision_ns: f64,
    /// What the kernel gave the client's socket; none where no socket is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Socket>,
    /// Of a port of whole frames: its rings, and what it saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// What packets cost the client's CPU; none of a client that sleeps, and where too few came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<TurnCosts>,
    /// How long resolving the target's name took, before the run; none where it has no name.
    #[serde(rename = "resolved_in_ns", default, skip_serializing_if = "Option::is_none")]
    pub resolved_in: Option<Nanos>,
    /// Of a client that receives what it sent itself, by a second port: the two ports. None where an
    /// other end answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<Across>,
}

/// The two ports of one client: its messages leave by one and come back by the other, through whatever
/// lies between. Both are stamped by one clock, so that all times are one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Across {
    /// The interface, or the device, that messages leave by.
    pub out: String,
    /// The one that they come back by.
    pub back: String,
    /// Does one thread send and receive, and the other way too where there is one?
    pub one_thread: bool,
}

/// A socket as the kernel gave it, read back after it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Socket {
    /// The interface that has its address; none where several may be used.
    pub interface: Option<String>,
    /// The longest packet of IP that the interface sends, in bytes.
    #[serde(rename = "mtu_bytes")]
    pub mtu: Option<u32>,
    /// Room for what came and was not read yet, in bytes as the kernel counts them.
    #[serde(rename = "receive_buffer_bytes")]
    pub receive_buffer: Option<u64>,
    /// The same for what was sent and is still here.
    #[serde(rename = "send_buffer_bytes")]
    pub send_buffer: Option<u64>,
    /// Is a message that does not fit the path's MTU refused rather than cut into fragments?
    pub whole_packets: Option<bool>,
    /// The byte of IP for type of service or traffic class.
    pub traffic_class: Option<u8>,
    /// How many routers a packet may pass.
    pub hops: Option<u8>,
    /// Queues of the interface, where it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Queues>,
    /// The receiving queue that the last message came through (its NAPI id); none where it came
    /// through none, as on loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub napi: Option<u32>,
    /// The CPU on which the kernel took the last message in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoming_cpu: Option<CpuId>,
}

/// The queues of an interface, as the sender of a flow uses them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queues {
    /// Queues that it sends by.
    pub transmit: u32,
    /// Queues that it receives by.
    pub receive: u32,
    /// Those of them that the sender's CPU is mapped to; empty where the kernel chooses among all by a
    /// hash of the flow, none where the sender has no CPU of its own.
    pub sent_by: Option<Vec<u32>>,
}

/// Messages that were kept in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    /// The file's name in the run directory.
    pub file: String,
    /// Messages of this flow in it.
    pub messages: u64,
    /// Odd messages of this flow that came after their kind's room was full.
    #[serde(default)]
    pub left_out: u64,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// The pattern of arrivals; `closed loop` where the next request waits for the reply.
    pub arrivals: String,
    /// Requests per second, in the mean; none for a closed loop.
    #[serde(rename = "per_s")]
    pub per_second: Option<f64>,
    /// Bytes of a request and of its reply.
    pub bytes: u32,
    /// Bytes of the Ethernet frame that carries it, check sequence included; none where it
    /// takes no network, and of a sum whose recordings had several.
    pub frame_bytes: Option<u32>,
    /// A request is given up after this time without a reply; none of a sum whose recordings had several.
    #[serde(rename = "timeout_ns", default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Nanos>,
    /// Requests in flight at most, where that was bounded.
    pub most_under_way: Option<u64>,
    /// Nothing asks for a reply: the other end counts what comes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_way: bool,
    /// From which end of a bed it is sent.
    #[serde(default)]
    pub direction: Direction,
    /// After so long the pattern began again, where it has a length of its own: a capture.
    #[serde(rename = "repeats_after_ns", default, skip_serializing_if = "Option::is_none")]
    pub repeats_after: Option<Nanos>,
}

/// Which end of a bed sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The client's end; where there is no bed, there is no other.
    #[default]
    There,
    /// The server's end.
    Back,
}

impl Direction {
    /// What goes through a device is called in that direction.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::There => "outbound",
            Self::Back => "inbound",
        }
    }
}

/// What left, against what was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Departures {
    /// Requests intended within the measured time.
    pub intended: u64,
    /// Requests that left, some of them after the end of the measured time.
    pub sent: u64,
    /// Requests that left within the measured time.
    pub in_time: u64,
    /// Requests that left per second of the measured time.
    #[serde(rename = "per_s")]
    pub per_second: Option<f64>,
    /// Name of the series of distances of neighbours.
    pub gaps: Option<String>,
    /// Against the process that was asked for.
    pub process: Process,
    /// What long turns of the sender's loop did to it; none for a closed loop, which intends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
}

/// Send lateness apart from what long turns of the sender's loop explain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pacing {
    /// Turns of the sender's loop that took too long, and sleeps of one that sleeps that ended too
    /// late: interruptions, unless its own system call took so long.
    #[serde(alias = "interruptions")]
    pub long_turns: u64,
    /// What they took in all, beyond a usual turn.
    #[serde(rename = "took_ns")]
    pub took: Nanos,
    /// What they were, by the kernel's trace; none where it was not read for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<NamedTurns>,
    /// Longer turns are long, where the sender only looked.
    #[serde(rename = "looking_ns")]
    pub looking: Nanos,
    /// Longer turns are long, where it sent.
    #[serde(rename = "sending_ns")]
    pub sending: Nanos,
    /// Requests excluded: they left late, and long turns explain the larger part of it.
    pub excluded: u64,
    /// Requests of which the lateness is known, the excluded ones among them.
    pub of: u64,
    /// Name of the series of send lateness without them; none where nothing is left.
    pub lateness: Option<String>,
}

impl Pacing {
    /// The share of the requests that is excluded; none where there were none.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| self.excluded as f64 / self.of as f64)
    }
}

/// Long turns of a loop, by what the kernel's trace says of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedTurns {
    /// Long turns that were looked at.
    pub looked_at: u64,
    /// Those of which something else than the thread took half and more, by what took the most. The
    /// rest are the thread's own system calls, or nothing is known of them.
    pub by: Vec<TurnsBy>,
}

/// Long turns by one kind of cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnsBy {
    /// Which.
    pub what: TookTurn,
    /// Turns by this cause.
    pub turns: u64,
    /// What others than the thread took of them.
    #[serde(rename = "took_ns")]
    pub took: Nanos,
}

/// What takes a turn from a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TookTurn {
    /// A hard interrupt, a non-maskable one among them.
    Interrupt,
    /// A soft interrupt that the thread's own system call did not run.
    Softirq,
    /// Another thread.
    Thread,
    /// A thread of whylate itself.
    Whylate,
    /// The hypervisor, or the firmware: no kernel event at all.
    Host,
    /// Something else that has a name: a stop, a signal, a page fault, a reservation used up.
    Other,
}

impl NamedTurns {
    /// Turns that are named, and what others than the thread took of them.
    #[must_use]
    pub fn sum(&self) -> (u64, Nanos) {
        let add = |(turns, took): (u64, Nanos), of: &TurnsBy| {
            (turns.saturating_add(of.turns), Nanos(took.0.saturating_add(of.took.0)))
        };
        self.by.iter().fold((0, Nanos(0)), add)
    }

    /// Turns that are the thread's own system calls, or of which nothing is known.
    #[must_use]
    pub fn own_or_unnamed(&self) -> u64 {
        self.looked_at.saturating_sub(self.sum().0)
    }

    /// Adds those of another recording.
    pub fn add(&mut self, more: &Self) {
        self.looked_at = self.looked_at.saturating_add(more.looked_at);
        for of in &more.by {
            match self.by.iter_mut().find(|own| own.what == of.what) {
                Some(own) => {
                    own.turns = own.turns.saturating_add(of.turns);
                    own.took = Nanos(own.took.0.saturating_add(of.took.0));
                }
                None => self.by.push(*of),
            }
        }
        self.by.sort_by_key(|of| of.what);
    }
}

/// Requests and messages: how many were sent, answered and lost.
///
/// requests: sent = received + late + lost + unaccounted; messages: arrived = received + late +
/// duplicates + foreign + unplaced. Of messages that ask for no reply, those that came are counted
/// by the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Packets {
    /// Requests sent.
    pub sent: u64,
    /// Requests whose first reply came before the end of the drain, in time or not.
    pub received: u64,
    /// Requests whose first reply came after the drain.
    pub late: u64,
    /// Requests that were never answered.
    pub lost: u64,
    /// Replies to a request that had been answered.
    pub duplicates: u64,
    /// Of the received ones, those that came after the reply to a later request (RFC 4737).
    pub reordered: u64,
    /// Messages that are not well-formed or for somebody else.
    pub foreign: u64,
    /// Well-formed messages for this client that reply to none of its measured requests.
    pub unplaced: u64,
    /// Messages that came.
    pub arrived: u64,
    /// Requests given up: no reply within the timeout.
    pub given_up: u64,
    /// Requests intended that the run had no time left to send.
    pub never_sent: u64,
    /// Requests that the kernel did not take: they are none of those sent.
    pub refused: u64,
    /// Requests in flight when the port failed: in no histogram, and among those lost.
    pub abandoned: u64,
    /// Messages without a reply of which nobody knows whether they came: the other end gave no
    /// account.
    #[serde(default)]
    pub unaccounted: u64,
}

impl Packets {
    /// Requests that were given up, and whose reply came after all.
    #[must_use]
    pub fn answered_too_late(&self) -> u64 {
        self.given_up.saturating_sub(self.lost.saturating_sub(self.abandoned))
    }

    /// Do the counts add up?
    #[must_use]
    pub fn add_up(&self) -> bool {
        let came = [self.late, self.duplicates, self.foreign, self.unplaced];
        let sum = |counts: &[u64]| {
            counts.iter().try_fold(self.received, |sum, count| sum.checked_add(*count))
        };
        let (requests, messages) = (sum(&[self.late, self.lost, self.unaccounted]), sum(&came));
        requests == Some(self.sent) && messages == Some(self.arrived)
    }

    /// Adds the counts of other requests.
    pub fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.sent, more.sent),
            (&mut self.received, more.received),
            (&mut self.late, more.late),
            (&mut self.lost, more.lost),
            (&mut self.duplicates, more.duplicates),
            (&mut self.reordered, more.reordered),
            (&mut self.foreign, more.foreign),
            (&mut self.unplaced, more.unplaced),
            (&mut self.arrived, more.arrived),
            (&mut self.given_up, more.given_up),
            (&mut self.never_sent, more.never_sent),
            (&mut self.refused, more.refused),
            (&mut self.abandoned, more.abandoned),
            (&mut self.unaccounted, more.unaccounted),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// One part of a pattern of arrivals: a step of a sweep, a place in a train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PatternPart"))]
pub struct Part {
    /// Which part.
    pub label: String,
    /// Name of the series of its response times.
    pub response: String,
}

/// What the other end says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherEnd {
    /// Measured requests that it answered.
    pub answered: u64,
    /// Messages that it took for foreign.
    pub foreign: u64,
    /// From its reading after receiving to the one before sending: smallest.
    #[serde(rename = "residence_min_ns")]
    pub residence_min: Nanos,
    /// Median.
    #[serde(rename = "residence_median_ns")]
    pub residence_median: Nanos,
    /// Largest.
    #[serde(rename = "residence_max_ns")]
    pub residence_max: Nanos,
    /// What it counted of messages that ask for no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receptions: Option<Receptions>,
}

/// How messages that ask for no reply came to the other end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receptions {
    /// Messages a second, from the first to the last; none for fewer than two.
    #[serde(rename = "per_s")]
    pub per_second: Option<f64>,
    /// Distance of neighbours: smallest.
    #[serde(rename = "gap_min_ns")]
    pub gap_min: Nanos,
    /// Distance of neighbours: median.
    #[serde(rename = "gap_median_ns")]
    pub gap_median: Nanos,
    /// Distance of neighbours: 99th percentile.
    #[serde(rename = "gap_p99_ns")]
    pub gap_p99: Nanos,
    /// Distance of neighbours: largest.
    #[serde(rename = "gap_max_ns")]
    pub gap_max: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_do_not_add_up_are_found_and_hostile_ones_overflow_nothing() {
        let good = Packets {
            sent: 10,
            received: 7,
            late: 1,
            lost: 2,
            duplicates: 3,
            foreign: 4,
            unplaced: 5,
            arrived: 20,
            ..Packets::default()
        };
        assert!(good.add_up());
        assert!(!Packets { lost: 1, ..good }.add_up());
        assert!(!Packets { arrived: 21, ..good }.add_up());
        assert!(Packets { lost: 1, unaccounted: 1, ..good }.add_up());
        assert!(!Packets { received: u64::MAX, late: u64::MAX, ..good }.add_up());
    }
}
