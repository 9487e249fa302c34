//! A protocol without an other end: the request itself comes back, at a second port of the client that
//! sent it.
//!
//! What arrives there whole, with the client's cookie and of the size that it left with, is what another
//! client would take for the reply: greeting, warm-up and measured requests alike. Nobody answers, so
//! there is no farewell and no account; whatever else comes is foreign, replies of somebody between the
//! two ports among it, and is counted as that. Where a protocol has no cookie, requests of another client
//! of the same protocol are not told apart.

use std::ops::RangeInclusive;

use whylate_port::Framing;

use crate::protocol::{Answer, Incoming, Phase, Protocol};

/// The messages of `P`, heard by whoever sent them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Through<P>(pub P);

impl<P: Protocol> Protocol for Through<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn sizes(&self) -> RangeInclusive<usize> {
        self.0.sizes()
    }

    fn prepare(&self, request: &mut [u8]) {
        self.0.prepare(request);
    }

    #[inline]
    fn number(&self, phase: Phase, sequence: u64, request: &mut [u8]) {
        self.0.number(phase, sequence, request);
    }

    #[inline]
    fn read(&self, message: &[u8], size: usize) -> Incoming {
        match self.0.heard(message, size) {
            Some((phase, number)) => Incoming::Reply(phase, number),
            None => Incoming::Foreign,
        }
    }

    #[inline]
    fn heard(&self, message: &[u8], size: usize) -> Option<(Phase, u64)> {
        self.0.heard(message, size)
    }

    /// Nothing is answered: the client has both ends.
    fn answer(&self, _message: &mut [u8]) -> Answer {
        Answer::Nothing
    }

    fn flow(&self, message: &[u8]) -> Option<u64> {
        self.0.flow(message)
    }

    fn sequence(&self, message: &[u8]) -> Option<u64> {
        self.0.sequence(message)
    }

    fn farewell(&self, _size: usize, _message: &mut [u8]) -> bool {
        false
    }

    fn framing(&self) -> Framing {
        self.0.framing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Cookie;
    use crate::protocol::Speaks;

    #[test]
    fn a_request_that_arrives_whole_is_its_own_reply_and_anything_else_is_foreign() {
        for speaks in Speaks::ALL {
            let through = speaks.through(Cookie(7));
            let mut message = vec![0; 64];
            through.prepare(&mut message);
            for (phase, number) in [(Phase::WarmUp, 3), (Phase::Measured, 9)] {
                through.number(phase, number, &mut message);
                assert_eq!(through.read(&message, 64), Incoming::Reply(phase, number), "{speaks}");
                assert_eq!(through.read(&message[..63], 64), Incoming::Foreign, "{speaks}: cut");
                assert_eq!(through.read(&message, 65), Incoming::Foreign, "{speaks}: another size");
                assert_eq!(through.sequence(&message), Some(number));
                let mut answered = message.clone();
                speaks.with(Cookie(7)).answer(&mut answered);
                let told = through.read(&answered, 64);
                assert_eq!(told, Incoming::Foreign, "{speaks}: somebody answers in between");
            }
            assert!(!through.farewell(64, &mut [0; 256]), "{speaks}");
            assert!(!through.one_way(&mut message) && !through.older(&mut message));
        }
    }

    #[test]
    fn requests_of_another_client_are_foreign_where_the_protocol_has_cookies() {
        let (ours, theirs) = (Speaks::Raw.through(Cookie(7)), Speaks::Raw.through(Cookie(8)));
        let mut message = vec![0; 64];
        theirs.prepare(&mut message);
        theirs.number(Phase::Measured, 1, &mut message);
        assert_eq!(ours.read(&message, 64), Incoming::Foreign);
        assert_eq!(theirs.read(&message, 64), Incoming::Reply(Phase::Measured, 1));
    }
}
