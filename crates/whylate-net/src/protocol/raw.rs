//! The tool's own echo: header and padding as in [`message`](crate::message), sent back unchanged
//! but for the kind.

use std::ops::RangeInclusive;

use whylate_port::Framing;

use crate::message::{
    Cookie, FAREWELL_BYTES, HEADER_BYTES, Header, Kind, MAX_BYTES, ReflectorReport, frame,
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

    fn flow(&self, message: &[u8]) -> Option<u64> {
        Header::parse(message).map(|header| header.cookie.0)
    }

    fn account(&self, report: ReflectorReport, farewell: &mut [u8]) -> Option<usize> {
        let header = Header::parse(farewell)?;
        let message = farewell.get_mut(..FAREWELL_BYTES)?;
        message.fill(0);
        Header { kind: Kind::Farewell, ..header }.write(message);
        report.write(message);
        Some(FAREWELL_BYTES)
    }

    fn farewell(&self, message: &mut [u8]) -> bool {
        // A server never answers with more than it got.
        if message.len() < FAREWELL_BYTES {
            return false;
        }
        message.fill(0);
        Header { kind: Kind::End, cookie: self.cookie, sequence: 0 }.write(message);
        true
    }

    fn framing(&self) -> Framing {
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_never_longer_than_the_farewell_that_asked_for_it() {
        let raw = Raw::new(Cookie(7));
        let report = ReflectorReport { echoed: 5, ..ReflectorReport::default() };
        for length in [HEADER_BYTES, FAREWELL_BYTES - 1, FAREWELL_BYTES, 1_400] {
            let mut message = vec![0; length];
            let asks = raw.farewell(&mut message);
            assert_eq!(asks, length >= FAREWELL_BYTES);
            Header { kind: Kind::End, cookie: Cookie(7), sequence: 0 }.write(&mut message);
            assert_eq!(raw.answer(&mut message), Answer::Farewell);
            let told = raw.account(report, &mut message);
            assert_eq!(told, asks.then_some(FAREWELL_BYTES));
            if let Some(length) = told {
                let read = raw.read(&message[..length], length);
                assert_eq!(read, Incoming::Account(report));
            }
        }
    }

    #[test]
    fn a_request_becomes_the_reply_that_its_client_knows_and_no_other() {
        let (ours, theirs) = (Raw::new(Cookie(7)), Raw::new(Cookie(8)));
        let mut message = vec![0; 64];
        ours.prepare(&mut message);
        ours.number(Phase::Measured, 9, &mut message);
        assert_eq!(ours.flow(&message), Some(7));
        assert_eq!(ours.read(&message, 64), Incoming::Foreign, "a request is no reply");
        assert_eq!(theirs.answer(&mut message), Answer::Reply(Phase::Measured));
        assert_eq!(ours.read(&message, 64), Incoming::Reply(Phase::Measured, 9));
        assert_eq!(theirs.read(&message, 64), Incoming::Foreign);
        assert_eq!(ours.read(&message[..63], 64), Incoming::Foreign, "cut");
        assert_eq!(ours.answer(&mut message), Answer::Foreign, "a reply is not answered");
    }
}
