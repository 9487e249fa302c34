//! The tool's own echo: header and padding as in [`message`](crate::message), sent back unchanged
//! but for the kind. Requests that have no room for the header have the compact one; the farewell and the
//! account, which belong to no measurement, have room for theirs whatever the size of the requests.

use std::ops::RangeInclusive;

use whylate_port::Framing;

use crate::message::{
    COMPACT_BYTES, Cookie, FAREWELL_BYTES, Header, Kind, MAX_BYTES, ReflectorReport, frame,
    of_older, older, other_version,
};
use crate::protocol::{Answer, Incoming, Phase, Protocol};

/// The name in reports and on the command line.
pub(crate) const NAME: &str = "raw";

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

    /// The phase and the number of the request of this client that a whole message with this header is.
    #[inline]
    fn asked(self, header: Header, message: &[u8], size: usize) -> Option<(Phase, u64)> {
        let phase = match header.kind {
            Kind::Probe => Phase::Measured,
            Kind::Warm => Phase::WarmUp,
            _ => return None,
        };
        let ours = header.cookie == self.cookie.of_size(size) && message.len() == size;
        ours.then_some((phase, header.sequence))
    }
}

impl Protocol for Raw {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sizes(&self) -> RangeInclusive<usize> {
        COMPACT_BYTES..=MAX_BYTES
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
    fn one_way(&self, request: &mut [u8]) -> bool {
        let Some(header) = Header::parse(request) else { return false };
        let kind = match header.kind {
            Kind::Warm => Kind::WarmOneWay,
            Kind::Probe => Kind::OneWay,
            _ => return false,
        };
        Header { kind, ..header }.write(request);
        true
    }

    fn older(&self, request: &mut [u8]) -> bool {
        older(request)
    }

    fn other_version(&self, message: &[u8]) -> Option<u8> {
        other_version(message)
    }

    #[inline]
    fn read(&self, message: &[u8], size: usize) -> Incoming {
        let Some(header) = Header::parse(message) else { return Incoming::Foreign };
        if header.cookie != self.cookie.of_size(size) {
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
    fn heard(&self, message: &[u8], size: usize) -> Option<(Phase, u64)> {
        self.asked(Header::parse(message)?, message, size)
    }

    fn returned(&self, message: &[u8], size: usize) -> bool {
        let header = Header::parse(message).or_else(|| of_older(message));
        header.is_some_and(|header| self.asked(header, message, size).is_some())
    }

    #[inline]
    fn answer(&self, message: &mut [u8]) -> Answer {
        let Some(header) = Header::parse(message) else { return Answer::Foreign };
        let Some(kind) = header.kind.answer() else {
            return match header.kind {
                Kind::OneWay => Answer::OneWay(Phase::Measured, header.sequence),
                Kind::WarmOneWay => Answer::OneWay(Phase::WarmUp, header.sequence),
                _ => Answer::Foreign,
            };
        };
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

    fn sequence(&self, message: &[u8]) -> Option<u64> {
        Header::parse(message).map(|header| header.sequence)
    }

    fn account(&self, report: ReflectorReport, farewell: &mut [u8]) -> Option<usize> {
        let header = Header::parse(farewell)?;
        let message = farewell.get_mut(..FAREWELL_BYTES)?;
        message.fill(0);
        Header { kind: Kind::Farewell, ..header }.write(message);
        report.write(message);
        Some(FAREWELL_BYTES)
    }

    fn farewell(&self, size: usize, message: &mut [u8]) -> bool {
        // A server never answers with more than it got.
        if message.len() < FAREWELL_BYTES {
            return false;
        }
        message.fill(0);
        let cookie = self.cookie.of_size(size);
        Header { kind: Kind::End, cookie, sequence: 0 }.write(message);
        true
    }

    fn framing(&self) -> Framing {
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::HEADER_BYTES;

    #[test]
    fn messages_of_another_version_are_foreign_and_named_and_others_are_not() {
        let raw = Raw::new(Cookie(7));
        let mut message = [0; 40];
        raw.prepare(&mut message);
        assert_eq!(raw.other_version(&message), None);
        assert!(raw.older(&mut message));
        assert_eq!(
            (raw.answer(&mut message), raw.other_version(&message)),
            (Answer::Foreign, Some(1))
        );
        assert_eq!(raw.other_version(&message[..39]), None, "it was cut");
        message[0] = b'x';
        assert_eq!(raw.other_version(&message), None);
        assert!(!raw.older(&mut message));
    }

    #[test]
    fn a_request_that_comes_back_as_it_left_is_told_from_a_reply_of_an_older_version() {
        for size in [COMPACT_BYTES, HEADER_BYTES, 64] {
            let (ours, theirs) = (Raw::new(Cookie(7)), Raw::new(Cookie(8)));
            let mut request = vec![0; size];
            ours.prepare(&mut request);
            assert!(ours.returned(&request, size) && !theirs.returned(&request, size));
            assert!(!ours.returned(&request, size + 1), "of another size");
            let mut reply = request.clone();
            theirs.answer(&mut reply);
            assert!(!ours.returned(&reply, size), "a reply");
            if size < HEADER_BYTES {
                continue;
            }
            // As a reflector of version 1 would: the kind of a request becomes that of its reply.
            for message in [&mut request, &mut reply] {
                assert!(ours.older(message));
                assert_eq!(ours.other_version(message), Some(1));
            }
            assert!(ours.returned(&request, size) && !ours.returned(&reply, size));
            assert!(!theirs.returned(&request, size), "somebody else's");
        }
    }

    #[test]
    fn an_account_is_never_longer_than_the_farewell_that_asked_for_it() {
        let raw = Raw::new(Cookie(7));
        let report = ReflectorReport { echoed: 5, ..ReflectorReport::default() };
        for length in [COMPACT_BYTES, HEADER_BYTES, FAREWELL_BYTES - 1, FAREWELL_BYTES, 1_400] {
            let mut message = vec![0; length];
            let asks = raw.farewell(64, &mut message);
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
        assert_eq!((ours.flow(&message), ours.sequence(&message)), (Some(7), Some(9)));
        assert_eq!(ours.read(&message, 64), Incoming::Foreign, "a request is no reply");
        assert_eq!(theirs.answer(&mut message), Answer::Reply(Phase::Measured));
        assert_eq!(ours.read(&message, 64), Incoming::Reply(Phase::Measured, 9));
        assert_eq!(theirs.read(&message, 64), Incoming::Foreign);
        assert_eq!(ours.read(&message[..63], 64), Incoming::Foreign, "cut");
        assert_eq!(ours.answer(&mut message), Answer::Foreign, "a reply is not answered");
    }

    #[test]
    fn what_asks_for_no_reply_is_counted_by_its_number_and_gets_none() {
        let raw = Raw::new(Cookie(7));
        let mut message = vec![0; 64];
        for phase in [Phase::WarmUp, Phase::Measured] {
            raw.number(phase, 9, &mut message);
            assert!(raw.one_way(&mut message));
            let sent = message.clone();
            assert_eq!(raw.answer(&mut message), Answer::OneWay(phase, 9));
            assert_eq!(message, sent, "it is left as it came");
            assert_eq!(raw.read(&message, 64), Incoming::Foreign);
        }
    }

    #[test]
    fn a_client_of_compact_messages_has_one_cookie_in_all_that_it_sends_and_numbers_come_back() {
        // Cookies of 64 bits, whose lower halves alone are sent.
        let (ours, theirs) = (Raw::new(Cookie(0xaaaa_bbbb_0000_0007)), Raw::new(Cookie(8)));
        for size in COMPACT_BYTES..HEADER_BYTES {
            let mut message = vec![0xff; size];
            ours.prepare(&mut message);
            for (phase, number) in [(Phase::WarmUp, 3), (Phase::Measured, (1 << 48) - 1)] {
                ours.number(phase, number, &mut message);
                assert_eq!((ours.flow(&message), ours.sequence(&message)), (Some(7), Some(number)));
                assert_eq!(ours.heard(&message, size), Some((phase, number)));
                assert_eq!(theirs.heard(&message, size), None, "somebody else's");
                assert_eq!(ours.heard(&message, size + 1), None, "another size");
                assert_eq!(ours.read(&message, size), Incoming::Foreign, "a request is no reply");
                let mut reply = message.clone();
                assert_eq!(theirs.answer(&mut reply), Answer::Reply(phase));
                assert_eq!(ours.read(&reply, size), Incoming::Reply(phase, number));
                assert_eq!(ours.read(&reply, 64), Incoming::Foreign, "of no client of 64 bytes");
                assert_eq!(theirs.read(&reply, size), Incoming::Foreign);
                assert_eq!(ours.read(&reply[..size - 1], size), Incoming::Foreign, "cut");
                assert!(ours.one_way(&mut message));
                assert_eq!(ours.answer(&mut message), Answer::OneWay(phase, number));
            }
            ours.prepare(&mut message);
            assert!(!ours.older(&mut message), "older versions had no compact messages");
            let mut farewell = vec![0; FAREWELL_BYTES];
            assert!(ours.farewell(size, &mut farewell));
            assert_eq!(ours.flow(&farewell), Some(7), "the server finds its account");
            assert_eq!(theirs.answer(&mut farewell), Answer::Farewell);
            let report = ReflectorReport { echoed: 5, ..ReflectorReport::default() };
            let length = theirs.account(report, &mut farewell).expect("there is room");
            assert_eq!(ours.read(&farewell[..length], size), Incoming::Account(report));
            assert_eq!(ours.read(&farewell[..length], 64), Incoming::Foreign);
        }
    }
}
