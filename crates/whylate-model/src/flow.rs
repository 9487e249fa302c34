//! Requests and replies: what a client intended, what left, what came back, and what became of
//! every one.

use serde::{Deserialize, Serialize};

use crate::units::{Nanos, Ticks};

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
    /// What became of requests and messages.
    pub packets: Packets,
    /// Name of the series of service times, from the actual send to the reply.
    pub service: String,
    /// Name of the series of response times, from the intended send to the reply; none for a
    /// closed loop, which intends nothing.
    pub response: Option<String>,
    /// Name of the series of send lateness, from the intended to the actual send.
    pub lateness: Option<String>,
    /// Response times by parts of the pattern of arrivals; empty for a pattern of one part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The other end's own account, where it gave one.
    pub other_end: Option<OtherEnd>,
    /// The first intended send; none when it was not reached.
    pub began: Option<Ticks>,
    /// When sending ended.
    pub ended: Option<Ticks>,
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
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// The pattern of arrivals; `closed loop` where the next request waits for the reply.
    pub arrivals: String,
    /// Requests per second, in the mean; none for a closed loop.
    pub per_second: Option<f64>,
    /// Bytes of a request and of its reply.
    pub bytes: u32,
    /// Bytes of the Ethernet frame that carries it, check sequence included; none where it
    /// takes no network.
    pub frame_bytes: Option<u32>,
    /// A request without a reply so long after it left is given up.
    pub timeout: Nanos,
    /// Requests under way at most, where that was bounded.
    pub most_under_way: Option<u64>,
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
    pub per_second: Option<f64>,
    /// Name of the series of distances of neighbours.
    pub gaps: Option<String>,
    /// Against the process that was asked for.
    pub process: Process,
}

/// Is the process of departures the one that was asked for?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// The verdict.
    pub verdict: ProcessVerdict,
    /// How late a departure of the p99.9 was; none for a closed loop or when too few left.
    pub lateness_p999: Option<Nanos>,
    /// What that may be.
    pub tolerance: Nanos,
    /// For Poisson arrivals: how far the distances are from exponential.
    pub distribution: Option<Distribution>,
}

/// How far distances of neighbours are from their distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Distances.
    pub n: u64,
    /// Largest distance of the distribution functions.
    pub largest: f64,
    /// Anderson and Darling's A squared, after the probability integral transform.
    pub a_squared: f64,
    /// A squared per distance: the size of the difference, whatever their number.
    pub effect: f64,
}

/// What the departures were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessVerdict {
    /// The process that was asked for, within the tolerance.
    Held,
    /// All left, yet later than the tolerance or at other distances.
    Disturbed,
    /// The rate could not be held.
    Saturated,
    /// Nothing was asked for: a closed loop.
    ClosedLoop,
}

/// What became of requests and messages.
///
/// requests: sent = received + late + lost; messages: arrived = received + late + duplicates +
/// foreign + unplaced.
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
    /// Requests that the kernel did not take.
    pub refused: u64,
    /// Requests under way when the port failed: in no histogram.
    pub abandoned: u64,
}

impl Packets {
    /// Do the counts add up?
    #[must_use]
    pub fn add_up(&self) -> bool {
        let came = [self.late, self.duplicates, self.foreign, self.unplaced];
        let requests = self.received.checked_add(self.late).and_then(|n| n.checked_add(self.lost));
        let messages = came.iter().try_fold(self.received, |sum, n| sum.checked_add(*n));
        requests == Some(self.sent) && messages == Some(self.arrived)
    }
}

/// One part of a pattern of arrivals: a step of a sweep, a place in a train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Which part.
    pub label: String,
    /// Name of the series of its response times.
    pub response: String,
}

/// What the other end says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherEnd {
    /// Measured requests that it answered.
    pub answered: u64,
    /// Messages that it took for foreign.
    pub foreign: u64,
    /// From its reading after receiving to the one before sending: smallest.
    pub residence_min: Nanos,
    /// Median.
    pub residence_median: Nanos,
    /// Largest.
    pub residence_max: Nanos,
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
        assert!(!Packets { received: u64::MAX, late: u64::MAX, ..good }.add_up());
    }
}
