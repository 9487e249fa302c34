//! Protocols: what the bytes of requests and replies mean.
//!
//! [`Protocol`] is the one trait; each protocol is one file: [`raw`], the tool's own echo with a
//! cookie and a number in every message, and [`sockperf`], that tool's wire format. A protocol knows neither sockets nor clocks: when a
//! request was sent is kept by the client, and never read from the wire.

pub mod raw;
pub mod sockperf;
pub mod tap;
pub mod through;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use whylate_port::Framing;

use crate::error::NetError;
use crate::message::{Cookie, ReflectorReport};

pub use raw::Raw;
pub use sockperf::Sockperf;
pub use through::Through;

/// Whether a request is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is not: it greets, or warms the path up.
    WarmUp,
    /// It is.
    Measured,
}

/// What a message is that came to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming {
    /// The reply to the request of this phase with this number.
    Reply(Phase, u64),
    /// The other end's account, in answer to the farewell.
    Account(ReflectorReport),
    /// Well-formed and for this client, yet no reply.
    Beside,
    /// Not well-formed, or for somebody else.
    Foreign,
}

/// What a server does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The message has become the reply to a request of this phase, and goes back.
    Reply(Phase),
    /// The client says farewell, and asks for the account of what was answered.
    Farewell,
    /// Nothing goes back: a message of this phase and with this number, which is counted.
    OneWay(Phase, u64),
    /// Nothing goes back; the message is this protocol's, and asks for no reply.
    Nothing,
    /// Nothing goes back; the message is foreign.
    Foreign,
}

/// What client and server of a protocol write and read.
pub trait Protocol: Send + Sync {
    /// The name in reports and on the command line.
    fn name(&self) -> &'static str;

    /// The sizes in bytes that a request may have.
    fn sizes(&self) -> RangeInclusive<usize>;

    /// Fills a buffer of a request's size with what all requests have in common.
    fn prepare(&self, request: &mut [u8]);

    /// Makes a prepared buffer, or the request before, the request with this number.
    fn number(&self, phase: Phase, sequence: u64, request: &mut [u8]);

    /// Makes a numbered request one that asks for no reply, and is counted by the other end; false
    /// where the protocol has no such message.
    fn one_way(&self, request: &mut [u8]) -> bool {
        let _ = request;
        false
    }

    /// Makes a numbered request one of an older version of the protocol, to find out who answers that
    /// one alone; false where there is none.
    fn older(&self, request: &mut [u8]) -> bool {
        let _ = request;
        false
    }

    /// The version of the protocol that a foreign message is of, where it is of another one.
    fn other_version(&self, message: &[u8]) -> Option<u8> {
        let _ = message;
        None
    }

    /// What a whole message is that came to the client whose requests have `size` bytes.
    fn read(&self, message: &[u8], size: usize) -> Incoming;

    /// Of a client that hears its own requests: the phase and the number of the request that a whole
    /// message is, as it left with `size` bytes. None where it is anything else, or the protocol does not
    /// tell.
    fn heard(&self, message: &[u8], size: usize) -> Option<(Phase, u64)> {
        let _ = (message, size);
        None
    }

    /// Is a whole message that came to the client whose requests have `size` bytes one of these, of whatever
    /// version, as it left? Then the other end returns what it gets, and answers nothing.
    fn returned(&self, message: &[u8], size: usize) -> bool {
        self.heard(message, size).is_some()
    }

    /// Turns a whole message that came to a server into its reply.
    fn answer(&self, message: &mut [u8]) -> Answer;

    /// Whose message this is, where the protocol tells: what a server keeps its accounts by.
    fn flow(&self, message: &[u8]) -> Option<u64> {
        let _ = message;
        None
    }

    /// The number of the request that a message is, or that it is the reply to, where the protocol tells.
    fn sequence(&self, message: &[u8]) -> Option<u64> {
        let _ = message;
        None
    }

    /// Of a server: turns a farewell that was answered in place into the account; its length, which
    /// is never more than the farewell's. None where it has no room, or the protocol has none.
    fn account(&self, report: ReflectorReport, farewell: &mut [u8]) -> Option<usize> {
        let _ = (report, farewell);
        None
    }

    /// Makes the buffer the farewell of a client whose requests have `size` bytes, which asks for the other
    /// end's account; false where the protocol has none, or the buffer is too short for one.
    fn farewell(&self, size: usize, message: &mut [u8]) -> bool;

    /// How the protocol's messages lie in a stream.
    fn framing(&self) -> Framing;
}

/// The protocols by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaks {
    /// The tool's own echo.
    Raw,
    /// The wire format of sockperf.
    Sockperf,
}

impl Speaks {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Raw, Self::Sockperf];

    /// The protocol; a client's messages have this cookie, where the protocol has any.
    #[must_use]
    pub fn with(self, cookie: Cookie) -> Box<dyn Protocol> {
        match self {
            Self::Raw => Box::new(Raw::new(cookie)),
            Self::Sockperf => Box::new(Sockperf),
        }
    }

    /// The same for a client that has both ends: its requests come back as they left.
    #[must_use]
    pub fn through(self, cookie: Cookie) -> Box<dyn Protocol> {
        match self {
            Self::Raw => Box::new(Through(Raw::new(cookie))),
            Self::Sockperf => Box::new(Through(Sockperf)),
        }
    }
}

impl fmt::Display for Speaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Raw => raw::NAME,
            Self::Sockperf => sockperf::NAME,
        })
    }
}

impl FromStr for Speaks {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        let known = Self::ALL.into_iter().find(|protocol| protocol.to_string() == text);
        known.ok_or_else(|| NetError::UnknownProtocol(text.to_owned()))
    }
}
