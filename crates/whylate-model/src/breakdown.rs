//! Where each request spent its time: points on its way, parts between them, and what of the whole
//! each part is.

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::tail::End;
use crate::tap::TapFacts;
use crate::units::{CpuId, Nanos, Pid, Ticks};

mod account;
mod agreement;
mod stamps;
mod stored;
mod words;
pub use account::CardTold;
pub use agreement::{Agreement, Differences, PartAgreement};
pub use stamps::{Aside, CountedStamps, FarStamps, Probed};
pub use stored::StoredJourney;
pub(crate) use words::shown_steps;

/// A message's way from a thread that sends to a thread that reads, in the order in which it comes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Station {
    /// The schedule wanted it to leave. Requests of an open loop only.
    Intended,
    /// The sender was about to call the kernel.
    Sent,
    /// Through the protocols, and given to the interface's queueing discipline.
    Queued,
    /// Given to the driver.
    Driver,
    /// On the wire, by the sending card's clock.
    WireOut,
    /// Past a tap between both ends.
    Tap,
    /// Off the wire, by the receiving card's clock.
    WireIn,
    /// Taken from the driver by the receiving stack.
    Arrived,
    /// In the queue of the receiver's socket.
    Delivered,
    /// The reader was woken; none of a reader that was awake.
    Woken,
    /// The reader had a CPU again; none of a reader that was awake.
    Running,
    /// The reader had the message.
    Read,
}

/// Which of a request's two messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Leg {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Reply,
}

/// A point on the way of a request and its reply. Points are ordered as a request passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// On which way.
    pub leg: Leg,
    /// Where on it.
    pub station: Station,
}

/// What lies between two points, of which no other between them is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RequestPart"))]
pub struct Part {
    /// Where it begins.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
}

/// Who says when a point was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The client's own reading of the counter.
    Own,
    /// The other end's own reading, told by it.
    Told,
    /// The kernel's stamp of a socket (`SO_TIMESTAMPING`), by the system's clock.
    Software,
    /// The card's stamp, by its own clock.
    Hardware,
    /// The kernel's tracepoints, by the counter itself.
    Trace,
    /// A tap between both ends.
    Tap,
    /// Metadata of a frame of AF_XDP.
    Metadata,
}

/// Where the requests of a flow spent their time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Breakdown {
    /// From where to where a request is taken apart.
    pub whole: Part,
    /// Name of the series of the whole time, over the requests that were taken apart; none where no
    /// series is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// What is known of each point that was looked for, in their order: one entry for each source that
    /// was to tell it, the one that is used first.
    pub points: Vec<PointFacts>,
    /// What the stamps that were asked for came to, before anything was measured; empty without stamps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probed>,
    /// What became of the stamps that the client's sockets asked for while it measured, and in its
    /// warm-up, by kind; empty without stamps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stamps: Vec<CountedStamps>,
    /// The same of the sockets of the other end that was started here, for the requests that it told of;
    /// empty without. It does not tell which were not asked for, skipped, without a time, merged or split:
    /// these are 0 here and mean nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far_stamps: Vec<FarStamps>,
    /// What was dropped before it could be counted by kind or put together with its request, by what it
    /// was and where it was dropped; empty where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Reasoned>,
    /// What the client's card was told to stamp meanwhile; none without one that stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardTold>,
    /// Requests that were taken apart.
    pub requests: u64,
    /// Requests that ended and were not taken apart, by the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Of all that were taken apart.
    pub all: Composition,
    /// Of the slow ones; none where too few are known to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    /// How the kernel's tracepoints were put together to messages, and these to requests; none without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Box<Pairs>>,
    /// Two sources of one point, beside each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreements: Vec<Agreement>,
    /// Two sources of one part, beside each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub part_agreements: Vec<PartAgreement>,
    /// The slowest requests, slowest first, with what the kernel did in their time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Journey>,
    /// Stamps of requests that lie not on the way, and what became of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asides: Vec<Aside>,
    /// What a tap between both ends saw, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tap: Option<Box<TapFacts>>,
    /// What looking costs, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<LookingCost>,
}

/// What is known of a point by one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointFacts {
    /// Which.
    pub point: Point,
    /// Who told; of several the first one that came is used, the others are set beside it.
    pub source: Source,
    /// Requests for which it came, used or beside.
    pub came: u64,
    /// Requests for which it was looked for and never came.
    pub missing: u64,
    /// Requests for which it was not asked for: they are none of the sample, or the card had no room for
    /// one more. Neither came nor missing.
    #[serde(default)]
    pub not_asked: u64,
    /// Requests for which it came twice; the first is used.
    pub twice: u64,
    /// Requests in which it lay before its predecessor, or after the end of the whole, by no more than
    /// the bounds and resolutions of the two: it is taken to be at the same time.
    pub unordered: u64,
    /// Requests in which it did so by more: it is not used.
    pub contradicted: u64,
    /// Smallest step of its clock.
    #[serde(rename = "resolution_ns")]
    pub resolution: Nanos,
    /// How far it may lie from the counter's timeline.
    #[serde(rename = "bound_ns")]
    pub bound: Nanos,
}

/// Requests that were not taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Why.
    pub reason: String,
    /// How many.
    pub requests: u64,
}

/// How messages were followed by the kernel's tracepoints, and how requests got theirs. Every request has
/// a reply by its socket or by order, or is unpaired; every message was read, left, was a mere
/// acknowledgement or is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pairs {
    /// Requests whose reply was looked for.
    pub requests: u64,
    /// Of these: its reply was followed from the socket that it was read from, by which it was sent next.
    pub by_socket: u64,
    /// Of these: its reply was met by order alone: the only message that its client read between two of
    /// its readings, or what the thread that read it sent next by another socket.
    pub by_order: u64,
    /// Of these: without a reply among the messages, by the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpaired: Vec<Reasoned>,
    /// Requests of which no message was seen to be sent, whatever was found of their replies.
    pub unsent: u64,
    /// Messages that were sent where nothing had been read, or after the answer.
    pub unasked: u64,
    /// Answers by another thread than the one that had read.
    pub by_another_thread: u64,
    /// Messages whose way was begun, of whomever the trace showed.
    pub messages: u64,
    /// Of these: followed to the call that read them.
    pub read: u64,
    /// Of these: left this machine.
    pub left: u64,
    /// Of these: frames of TCP without data.
    pub acknowledgements: u64,
    /// Of these: their end is not known, by the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Reasoned>,
    /// Reads that took several pieces of a stream at once.
    pub merged: u64,
    /// Pieces of a stream that took several reads.
    pub split: u64,
    /// Reads from sockets whose queue was not known at that time, after events had been lost.
    pub untrusted: u64,
}

/// So many, for that reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reasoned {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// What some requests consist of, on average. The parts add up to the total.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Composition {
    /// How many requests.
    pub requests: u64,
    /// Mean of their whole time.
    pub total_mean_ns: f64,
    /// The parts in the order of the way.
    pub parts: Vec<PartShare>,
    /// Of the total: what parts took that lie between points which are not neighbours, because no point
    /// between them came.
    pub not_told_apart_ns: f64,
    /// The total less all parts.
    pub residual_ns: f64,
}

/// A part's share of the requests' time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartShare {
    /// Which.
    pub part: Part,
    /// Requests that have it.
    pub requests: u64,
    /// Its time, spread over ALL requests of the composition.
    pub mean_ns: f64,
    /// Of the total.
    pub share: f64,
    /// Its points are neighbours among those that were looked for.
    pub told_apart: bool,
    /// Name of its series, over the requests that have it; none where no series is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
}

/// What slow requests consist of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slow {
    /// The percentile of the whole time from which on a request is slow.
    pub percent: f64,
    /// The time at it.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// Their parts.
    pub composition: Composition,
}

/// A request with every point that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Journey {
    /// Its number in the order of sending.
    pub number: u64,
    /// The points in their order, those within the whole as its parts are made of them.
    pub passed: Vec<Passed>,
    /// What the kernel did on the CPUs of both ends in its time; the longest stretches where there were
    /// too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// Events that there was no room for.
    #[serde(default)]
    pub events_left_out: u64,
    /// More of them, nobody knows how many, may have been thrown away before it was known to be slow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub events_gone: bool,
}

/// A point as one request passed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Passed {
    /// Which.
    pub point: Point,
    /// When.
    #[serde(rename = "at_ticks")]
    pub at: Ticks,
    /// Who says so.
    pub source: Source,
}

/// Something that the kernel did beside a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "KernelEventBeside")
)]
pub struct Beside {
    /// At which end, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// What.
    pub event: Event,
}

/// A process that is looked at, and knows nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedProcess {
    /// Its number.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    /// Its threads that read or answered, and where they ran last.
    pub threads: Vec<(Pid, CpuId)>,
    /// The port that was named, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A process that was watched, and where its requests spent their time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ProcessWatched"))]
pub struct Watched {
    /// Which.
    pub process: WatchedProcess,
    /// Its requests, from the first point that the kernel knows of to the last.
    pub breakdown: Breakdown,
    /// How long it was watched; none in runs of older versions, which say it among their settings.
    #[serde(rename = "lasted_ns", default, skip_serializing_if = "Option::is_none")]
    pub lasted: Option<Nanos>,
    /// How its threads were found; none in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looking: Option<ThreadsFound>,
}

/// How the threads of a process that is watched are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadsFound {
    /// They are looked for so often: of one that began later, what it did before is not known.
    #[serde(rename = "every_ns")]
    pub every: Nanos,
    /// Threads that were found, whether they read and answered or not.
    pub threads: u64,
}

/// What looking costs: the same requests with and without it, in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookingCost {
    /// Rounds of each.
    pub rounds: u64,
    /// How requests were looked at, the unlooked-at first.
    pub ways: Vec<LookedAt>,
    /// Round by round: the ways in the order in which they were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Vec<String>>,
    /// Ways of which it is not told what they cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<Untold>,
}

/// A way of looking of which it is not told what it costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "UnmeasuredWatching")
)]
pub struct Untold {
    /// Which: see [`LookedAt::by`].
    pub by: String,
    /// Why not.
    pub why: String,
}

/// One way of looking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookedAt {
    /// `nothing`, `nothing, again`, `stamps`, `trace`, `stamps and trace`.
    pub by: String,
    /// Median of the service time, over the rounds.
    #[serde(rename = "median_ns")]
    pub median: Nanos,
    /// This less the first way, with its interval, at the median and at p99: nanoseconds; none of the
    /// first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<More>,
}

/// How much longer requests took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AddedResponse"))]
pub struct More {
    /// At the median: estimate, lower and upper end.
    pub median_ns: [f64; 3],
    /// At p99: the same.
    pub p99_ns: [f64; 3],
}

impl Pairs {
    /// Do both accounts close?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let sum = |all: &[Reasoned]| all.iter().map(|of| of.count).sum::<u64>();
        let replies = self.by_socket + self.by_order + sum(&self.unpaired);
        let messages = self.read + self.left + self.acknowledgements + sum(&self.lost);
        (replies, messages) == (self.requests, self.messages)
    }
}

impl Breakdown {
    /// Is the series of that name one of its own?
    #[must_use]
    pub fn has_series(&self, name: &str) -> bool {
        let parts = self.all.parts.iter().filter_map(|part| part.series.as_deref());
        let tap = self.tap.iter().filter_map(|tap| tap.series.as_deref());
        let asides = self.asides.iter().filter_map(|aside| aside.series.as_deref());
        let mut all = self.series.as_deref().into_iter().chain(parts).chain(tap).chain(asides);
        all.any(|own| own == name)
    }
}

impl Station {
    /// All of them, in their order.
    pub const ALL: [Self; 12] = [
        Self::Intended,
        Self::Sent,
        Self::Queued,
        Self::Driver,
        Self::WireOut,
        Self::Tap,
        Self::WireIn,
        Self::Arrived,
        Self::Delivered,
        Self::Woken,
        Self::Running,
        Self::Read,
    ];

    /// Its word: `intended`, `sent`, `queued`, ...
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Sent => "sent",
            Self::Queued => "queued",
            Self::Driver => "driver",
            Self::WireOut => "wire out",
            Self::Tap => "tap",
            Self::WireIn => "wire in",
            Self::Arrived => "arrived",
            Self::Delivered => "delivered",
            Self::Woken => "woken",
            Self::Running => "running",
            Self::Read => "read",
        }
    }
}

impl Point {
    /// How many there are.
    pub const COUNT: usize = 2 * Station::ALL.len();

    /// On the way of the request.
    #[must_use]
    pub const fn there(station: Station) -> Self {
        Self { leg: Leg::Request, station }
    }

    /// On the way of the reply.
    #[must_use]
    pub const fn back(station: Station) -> Self {
        Self { leg: Leg::Reply, station }
    }

    /// Its number in the order of the way, below [`Point::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        let leg = match self.leg {
            Leg::Request => 0,
            Leg::Reply => Station::ALL.len(),
        };
        leg + self.station as usize
    }

    /// The point of that number; none beyond the last.
    #[must_use]
    pub fn at(index: usize) -> Option<Self> {
        let leg = if index < Station::ALL.len() { Leg::Request } else { Leg::Reply };
        (index < Self::COUNT)
            .then(|| Self { leg, station: Station::ALL[index % Station::ALL.len()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_numbered_in_the_order_in_which_they_are_passed() {
        let all: Vec<Point> = (0..Point::COUNT).filter_map(Point::at).collect();
        assert_eq!(all.len(), Point::COUNT);
        assert!(all.is_sorted() && all.iter().enumerate().all(|(at, point)| point.index() == at));
        assert_eq!(Point::at(Point::COUNT), None);
        assert!(Point::there(Station::Read) < Point::back(Station::Sent));
    }
}
