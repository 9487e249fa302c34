//! The wire format of sockperf 3, as its client and server speak it over UDP and TCP.
//!
//! A header of 14 bytes, big-endian, then padding to the length told:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | sequence number |
//! | 8..10 | flags: 1 from a client, 2 asks for a reply, 4 for the warm-up, which nobody answers |
//! | 10..14 | length of the whole message |
//!
//! A reply is the request with flag 1 taken away; a server leaves the other flags as they are. So
//! requests of our warm-up, which are to be answered, carry a flag that sockperf does not know.
//!
//! There is no cookie: a stranger's message of the same length is not told from a reply. Nobody says
//! farewell, and a server gives no account.

use std::ops::RangeInclusive;

use whylate_model::breakdown::Leg;
use whylate_model::tap::Heading;
use whylate_port::{Frame, Framing};

use crate::message::MAX_BYTES;
use crate::protocol::{Answer, Incoming, Phase, Protocol};

/// The name in reports and on the command line.
pub(crate) const NAME: &str = "sockperf";
/// Bytes of the header, and so of the shortest message.
pub const HEADER_BYTES: usize = 14;

const CLIENT: u16 = 1;
const PONG: u16 = 2;
const WARM_UP: u16 = 4;
/// Ours: the request is answered and not measured.
const UNMEASURED: u16 = 0x8000;

/// What sockperf speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockperf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    sequence: u64,
    flags: u16,
}

impl Header {
    fn parse(message: &[u8]) -> Option<Self> {
        let (header, _) = message.split_first_chunk::<HEADER_BYTES>()?;
        let (sequence, rest) = header.split_first_chunk::<8>()?;
        let (flags, length) = rest.split_first_chunk::<2>()?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        let (sequence, flags) = (u64::from_be_bytes(*sequence), u16::from_be_bytes(*flags));
        (length as usize == message.len()).then_some(Self { sequence, flags })
    }

    fn write(self, message: &mut [u8]) {
        let length = message.len() as u32;
        message[..8].copy_from_slice(&self.sequence.to_be_bytes());
        message[8..10].copy_from_slice(&self.flags.to_be_bytes());
        message[10..14].copy_from_slice(&length.to_be_bytes());
    }

    fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    fn phase(self) -> Phase {
        if self.has(UNMEASURED) { Phase::WarmUp } else { Phase::Measured }
    }
}

impl Protocol for Sockperf {
    fn name(&self) -> &'static str {
        NAME
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
        let unmeasured = if phase == Phase::WarmUp { UNMEASURED } else { 0 };
        Header { sequence, flags: CLIENT | PONG | unmeasured }.write(request);
    }

    #[inline]
    fn read(&self, message: &[u8], size: usize) -> Incoming {
        match Header::parse(message) {
            Some(header) if header.has(CLIENT) || message.len() != size => Incoming::Foreign,
            // Servers warm up, too.
            Some(header) if header.has(WARM_UP) => Incoming::Beside,
            Some(header) if header.has(PONG) => Incoming::Reply(header.phase(), header.sequence),
            _ => Incoming::Foreign,
        }
    }

    #[inline]
    fn heard(&self, message: &[u8], size: usize) -> Option<(Phase, u64)> {
        let header = Header::parse(message)?;
        let ours = header.has(CLIENT) && header.has(PONG) && !header.has(WARM_UP);
        (ours && message.len() == size).then(|| (header.phase(), header.sequence))
    }

    #[inline]
    fn answer(&self, message: &mut [u8]) -> Answer {
        match Header::parse(message) {
            Some(header) if !header.has(CLIENT) => Answer::Foreign,
            Some(header) if header.has(WARM_UP) || !header.has(PONG) => Answer::Nothing,
            Some(header) => {
                Header { flags: header.flags & !CLIENT, ..header }.write(message);
                Answer::Reply(header.phase())
            }
            None => Answer::Foreign,
        }
    }

    fn sequence(&self, message: &[u8]) -> Option<u64> {
        Header::parse(message).map(|header| header.sequence)
    }

    fn farewell(&self, _size: usize, _message: &mut [u8]) -> bool {
        false
    }

    fn framing(&self) -> Framing {
        frame
    }
}

/// What the first bytes of a message tell to whoever looks on; none where no message begins so.
#[must_use]
pub fn heading(bytes: &[u8]) -> Option<Heading> {
    let (beginning, _) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let Frame::Length(length) = frame(beginning) else { return None };
    let (sequence, rest) = beginning.split_first_chunk::<8>()?;
    let (flags, _) = rest.split_first_chunk::<2>()?;
    let header =
        Header { sequence: u64::from_be_bytes(*sequence), flags: u16::from_be_bytes(*flags) };
    if header.flags & !(CLIENT | PONG | WARM_UP | UNMEASURED) != 0 {
        return None;
    }
    let leg = if header.has(CLIENT) { Leg::Request } else { Leg::Reply };
    let measured = header.has(PONG) && !header.has(WARM_UP) && !header.has(UNMEASURED);
    Some(Heading { leg, number: measured.then_some(header.sequence), length: length as u32 })
}

/// Where the first message of a stream ends.
#[must_use]
pub fn frame(bytes: &[u8]) -> Frame {
    let Some(Ok(length)) = bytes.get(10..HEADER_BYTES).map(<[u8; 4]>::try_from) else {
        return Frame::Unknown;
    };
    match u32::from_be_bytes(length) as usize {
        length @ HEADER_BYTES..=MAX_BYTES => Frame::Length(length),
        _ => Frame::Broken,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_has_the_documented_bytes_and_its_reply_all_but_the_clients_flag() {
        let mut message = [0xee; 16];
        Sockperf.prepare(&mut message);
        Sockperf.number(Phase::Measured, 0x0102, &mut message);
        assert_eq!(message, *b"\0\0\0\0\0\0\x01\x02\0\x03\0\0\0\x10\0\0");
        assert_eq!(Sockperf.read(&message, 16), Incoming::Foreign, "a request is no reply");
        assert_eq!(Sockperf.answer(&mut message), Answer::Reply(Phase::Measured));
        assert_eq!(message, *b"\0\0\0\0\0\0\x01\x02\0\x02\0\0\0\x10\0\0");
        assert_eq!(Sockperf.read(&message, 16), Incoming::Reply(Phase::Measured, 0x0102));
        assert_eq!(Sockperf.read(&message, 17), Incoming::Foreign, "of another size");
        assert_eq!(Sockperf.answer(&mut message), Answer::Foreign, "a reply is not answered");
        Sockperf.number(Phase::WarmUp, 5, &mut message);
        assert_eq!(Sockperf.answer(&mut message), Answer::Reply(Phase::WarmUp));
        assert_eq!(Sockperf.read(&message, 16), Incoming::Reply(Phase::WarmUp, 5));
    }

    #[test]
    fn warm_ups_and_requests_that_ask_for_nothing_get_nothing() {
        let mut message = [0; HEADER_BYTES];
        for flags in [CLIENT, CLIENT | WARM_UP, CLIENT | PONG | WARM_UP] {
            Header { sequence: 1, flags }.write(&mut message);
            assert_eq!(Sockperf.answer(&mut message), Answer::Nothing, "{flags}");
        }
        Header { sequence: 1, flags: PONG | WARM_UP }.write(&mut message);
        assert_eq!(Sockperf.read(&message, HEADER_BYTES), Incoming::Beside);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_neither_panic_nor_grow_and_a_cut_message_is_foreign(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            flags in 0_u16..8,
            told in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if told && bytes.len() >= HEADER_BYTES {
                Header { sequence: 3, flags }.write(&mut bytes);
                prop_assert_eq!(frame(&bytes), Frame::Length(bytes.len()));
                let cut = bytes.len() - 1;
                prop_assert_eq!(Sockperf.read(&bytes[..cut], cut), Incoming::Foreign);
            }
            let _ = (frame(&bytes), Sockperf.read(&bytes, bytes.len()));
            let before = bytes.clone();
            if !matches!(Sockperf.answer(&mut bytes), Answer::Reply(_)) {
                prop_assert_eq!(&bytes, &before);
            }
        }
    }
}
