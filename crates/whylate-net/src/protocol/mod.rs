//! Protocols: what the bytes of requests and replies mean.
//!
//! [`Protocol`] is the one trait; each protocol is one file: [`raw`], the tool's own echo with a
//! cookie and a number in every message. A protocol knows neither sockets nor clocks: when a
//! request was sent is kept by the client, and never read from the wire.

pub mod raw;

use std::ops::RangeInclusive;

use whylate_port::Framing;

use crate::message::ReflectorReport;

pub use raw::Raw;

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

    /// What a whole message is that came to the client whose requests have `size` bytes.
    fn read(&self, message: &[u8], size: usize) -> Incoming;

    /// Turns a whole message that came to a server into its reply.
    fn answer(&self, message: &mut [u8]) -> Answer;

    /// Makes the buffer the farewell that asks for the other end's account; false where the
    /// protocol has none.
    fn farewell(&self, message: &mut [u8]) -> bool;

    /// How the protocol's messages lie in a stream.
    fn framing(&self) -> Framing;
}
