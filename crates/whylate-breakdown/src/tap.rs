//! What a tap between two ends saw: requests and replies of a capture, paired.
//!
//! [`wire`] reads what crosses a link, [`stream`] finds the messages of a TCP stream by their bytes,
//! and [`Pairing`] pairs them by the messages' own numbers. A message passes the tap when its last byte
//! does.
//!
//! Guarantees: the instant of a message is given once, that of its first passing; what comes again,
//! out of order, without its other half, or cannot be read is counted, never guessed; memory is bounded
//! whatever is captured.
//!
//! Does not: know protocols. A function is handed in that reads the beginning of a message
//! ([`Heading`]).

mod open;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod wire;

use core::net::SocketAddr;
use std::collections::HashMap;

use whylate_model::Nanos;
use whylate_model::breakdown::{Leg, Point, Station};
use whylate_model::tap::{Heading, TapCounts, TapPairing};
use whylate_stats::Histogram;

use open::Numbered;
use stream::{Passing, Stream};
use wire::{Content, Crossing, Unread};

/// Connections that are followed at once; messages of more are counted as foreign.
const MOST_CONNECTIONS: usize = 4_096;

/// What is to be paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Where the server listens; everything else is foreign. None takes all messages that the reader
    /// knows.
    pub server: Option<SocketAddr>,
}

impl Settings {
    /// By the messages' own numbers.
    #[must_use]
    pub fn numbered(server: Option<SocketAddr>) -> Self {
        Self { server }
    }

    /// The word for it in a run.
    #[must_use]
    pub fn pairing(&self) -> TapPairing {
        TapPairing::Numbers
    }
}

/// What came of a capture.
#[derive(Debug)]
pub struct Paired {
    /// What was counted.
    pub counts: TapCounts,
    /// Distances from request to reply at the tap, in nanoseconds.
    pub distances: Histogram,
}

/// Who sends to whom.
type Way = (SocketAddr, SocketAddr);
/// Takes what a message's first bytes tell; none where no message begins like this.
type Read = Box<dyn Fn(&[u8]) -> Option<Heading> + Send>;

/// Requests and replies of a capture on their way to each other.
pub struct Pairing {
    settings: Settings,
    read: Read,
    streams: HashMap<Way, Stream>,
    numbered: Numbered,
    counts: TapCounts,
    distances: Histogram,
}

impl std::fmt::Debug for Pairing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pairing").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Pairing {
    /// Nothing yet.
    pub fn new(
        settings: Settings,
        read: impl Fn(&[u8]) -> Option<Heading> + Send + 'static,
    ) -> Self {
        Self {
            settings,
            read: Box::new(read),
            streams: HashMap::new(),
            numbered: Numbered::default(),
            counts: TapCounts::default(),
            distances: Histogram::new(),
        }
    }

    /// A packet of the capture that could not be read.
    pub fn unread(&mut self, _why: Unread) {
        self.counts.unread += 1;
    }

    /// What it was made for.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What has been counted so far; what is still open counts when it is finished.
    #[must_use]
    pub fn counts(&self) -> &TapCounts {
        &self.counts
    }

    /// The next that came by. Each message that it completes is given to `each` with its request's
    /// number, the point, and the time of the capture's clock.
    pub fn crossing(&mut self, crossing: &Crossing<'_>, each: &mut dyn FnMut(u64, Point, Nanos)) {
        let leg = self.leg(crossing);
        if leg.is_none() && self.settings.server.is_some() {
            self.counts.foreign += 1;
            return;
        }
        match crossing.content {
            Content::Datagram { bytes, length } => {
                self.datagram(crossing, leg, (bytes, length), each);
            }
            Content::Segment { .. } => self.segment(crossing, leg, each),
        }
    }

    /// What is still open counts as such.
    #[must_use]
    pub fn finish(mut self) -> Paired {
        self.numbered.finish(&mut self.counts);
        Paired { counts: self.counts, distances: self.distances }
    }

    /// Which way it goes, as far as addresses tell.
    fn leg(&self, crossing: &Crossing<'_>) -> Option<Leg> {
        match self.settings.server? {
            server if crossing.to == server => Some(Leg::Request),
            server if crossing.from == server => Some(Leg::Reply),
            _ => None,
        }
    }

    fn datagram(
        &mut self,
        crossing: &Crossing<'_>,
        leg: Option<Leg>,
        (bytes, length): (&[u8], u32),
        each: &mut dyn FnMut(u64, Point, Nanos),
    ) {
        // One that says of itself that it is of another length, or goes the other way, is none.
        let heading = (self.read)(bytes)
            .filter(|heading| heading.length == length && leg.is_none_or(|leg| leg == heading.leg));
        match heading {
            Some(heading) => self.passed(crossing, heading, each),
            None => self.counts.foreign += 1,
        }
    }

    fn segment(
        &mut self,
        crossing: &Crossing<'_>,
        leg: Option<Leg>,
        each: &mut dyn FnMut(u64, Point, Nanos),
    ) {
        let way = (crossing.from, crossing.to);
        if !self.streams.contains_key(&way) && self.streams.len() == MOST_CONNECTIONS {
            self.counts.foreign += 1;
            return;
        }
        let mut passed = Vec::new();
        let reads = &self.read;
        let read = move |bytes: &[u8]| {
            reads(bytes).filter(|heading| leg.is_none_or(|leg| leg == heading.leg))
        };
        let stream = self.streams.entry(way).or_default();
        let seen = stream.segment(&crossing.content, &read, &mut |heading| passed.push(heading));
        match seen {
            Passing::New => (),
            Passing::Again => self.counts.retransmitted += 1,
            Passing::Late => self.counts.reordered += 1,
            Passing::Gap => self.counts.gaps += 1,
        }
        self.counts.unframed += stream.take_unframed();
        for heading in passed {
            self.passed(crossing, heading, each);
        }
    }

    /// A message has come by as a whole.
    fn passed(
        &mut self,
        crossing: &Crossing<'_>,
        heading: Heading,
        each: &mut dyn FnMut(u64, Point, Nanos),
    ) {
        let (leg, at) = (heading.leg, crossing.at);
        let Some(number) = heading.number else {
            self.counts.beside += 1;
            return;
        };
        let (counts, distances) = (&mut self.counts, &mut self.distances);
        let known = self.numbered.passed((number, leg, at), counts, distances);
        if let Some(number) = known {
            each(number, Point { leg, station: Station::Tap }, at);
        }
    }
}
