//! The tool's own echo: header and padding as in [`message`](crate::message), sent back unchanged
//! but for the kind.

use std::ops::RangeInclusive;

use whylate_port::{Frame, Framing};

use crate::message::{
    Cookie, FAREWELL_BYTES, HEADER_BYTES, Header, Kind, MAX_BYTES, ReflectorReport,
};
use crate::protocol::{Answer, Incoming, Phase, Protocol};

/// The raw echo of one client.
#[derive(Debug, Clone, Copy)]
pub struct Raw {
    cookie: Cookie,
}

impl Raw {
    /// The echo of the client with this cookie.
    #[must_use]
    pub fn new(cookie: Cookie) -> Self {
        Self { cookie }
    }
}

impl Protocol for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn sizes(&self) -> RangeInclusive<usize> {
        HEADER_BYTES..=MAX_BYTES
    }

    fn prepare(&self, request: &mut [u8]) {
        request.fill(0);
        self.number(Phase::WarmUp, 0, request);
    }

    #[inline]
    fn number(&self, phase: Phase, sequence: u64, request: &mut [u8]) {
        let kind = match phase {
            Phase::WarmUp => Kind::Warm,
            Phase::Measured => Kind::Probe,
        };
        Header { kind, cookie: self.cookie, sequence }.write(request);
    }

    #[inline]
    fn read(&self, message: &[u8], size: usize) -> Incoming {
        let Some(header) = Header::parse(message) else { return Incoming::Foreign };
        if header.cookie != self.cookie {
            return Incoming::Foreign;
        }
        match header.kind {
            Kind::Reply if message.len() == size => {
                Incoming::Reply(Phase::Measured, header.sequence)
            }
            Kind::WarmReply if message.len() == size => {
                Incoming::Reply(Phase::WarmUp, header.sequence)
            }
            Kind::Farewell if message.len() == FAREWELL_BYTES => {
                ReflectorReport::parse(message).map_or(Incoming::Foreign, Incoming::Account)
            }
            Kind::Welcome => Incoming::Beside,
            _ => Incoming::Foreign,
        }
    }

    #[inline]
    fn answer(&self, message: &mut [u8]) -> Answer {
        let Some(header) = Header::parse(message) else { return Answer::Foreign };
        let Some(kind) = header.kind.answer() else { return Answer::Foreign };
        Header { kind, ..header }.write(message);
        match kind {
            Kind::Reply => Answer::Reply(Phase::Measured),
            Kind::Farewell => Answer::Farewell,
            _ => Answer::Reply(Phase::WarmUp),
        }
    }

    fn farewell(&self, message: &mut [u8]) -> bool {
        Header { kind: Kind::End, cookie: self.cookie, sequence: 0 }.write(message);
        true
    }

    fn framing(&self) -> Framing {
        // The header does not tell a message's length yet.
        |_| Frame::Broken
    }
}
