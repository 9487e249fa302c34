//! The messages between client and reflector.
//!
//! A header of 24 bytes, big-endian, then padding to the size of the request:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `wlat` |
//! | 4 | version of this format, 1 |
//! | 5 | kind |
//! | 6..8 | length of the whole message |
//! | 8..16 | cookie: chosen at random by the client, tells its messages from any other |
//! | 16..24 | sequence number |
//!
//! The length frames messages in a stream, and shows one that was cut. Whatever is not exactly this
//! is foreign: it is counted and never answered.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use whylate_model::TicksDelta;
use whylate_port::Frame;

/// Bytes of the header, and so of the shortest message.
pub const HEADER_BYTES: usize = 24;
/// The longest message: 65 535 less the headers of IPv4 and UDP.
pub const MAX_BYTES: usize = 65_507;
/// The size of a farewell, whatever the size of the requests.
pub(crate) const FAREWELL_BYTES: usize = HEADER_BYTES + 5 * 8;

const MAGIC: [u8; 4] = *b"wlat";
const VERSION: u8 = 1;

/// Tells one client's messages from any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie(pub u64);

impl Cookie {
    /// A cookie that nobody else has: 64 bits from the system's random source.
    #[must_use]
    pub fn fresh() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Is anybody there? Tells a reflector that knows no cookie yet which one to answer.
    Hello = 1,
    /// Answer to a hello.
    Welcome = 2,
    /// A request of the warm-up.
    Warm = 3,
    /// Answer to it.
    WarmReply = 4,
    /// A request that is measured.
    Probe = 5,
    /// Answer to it.
    Reply = 6,
    /// The client has finished.
    End = 7,
    /// Answer to the end, with the reflector's own account.
    Farewell = 8,
}

impl Kind {
    /// The answer to a message of this kind; none to an answer.
    #[must_use]
    pub fn answer(self) -> Option<Self> {
        match self {
            Self::Hello => Some(Self::Welcome),
            Self::Warm => Some(Self::WarmReply),
            Self::Probe => Some(Self::Reply),
            Self::End => Some(Self::Farewell),
            Self::Welcome | Self::WarmReply | Self::Reply | Self::Farewell => None,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        use Kind::{End, Farewell, Hello, Probe, Reply, Warm, WarmReply, Welcome};
        [Hello, Welcome, Warm, WarmReply, Probe, Reply, End, Farewell]
            .into_iter()
            .find(|&kind| kind as u8 == byte)
    }
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Whose it is.
    pub cookie: Cookie,
    /// Its number.
    pub sequence: u64,
}

impl Header {
    /// Reads the header of a whole message; none when it is not well-formed.
    #[must_use]
    pub fn parse(message: &[u8]) -> Option<Self> {
        let (header, _) = message.split_first_chunk::<HEADER_BYTES>()?;
        let [m0, m1, m2, m3, version, kind, high, low, numbers @ ..] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if [m0, m1, m2, m3] != MAGIC || version != VERSION || length != message.len() {
            return None;
        }
        let (cookie, sequence) = (Cookie(number(&numbers, 0)?), number(&numbers, 1)?);
        Some(Self { kind: Kind::from_byte(kind)?, cookie, sequence })
    }

    /// Writes the header to the beginning of a message, whose length it tells.
    ///
    /// # Panics
    /// When `message` is shorter than a header.
    pub fn write(&self, message: &mut [u8]) {
        message[..4].copy_from_slice(&MAGIC);
        message[4] = VERSION;
        message[5] = self.kind as u8;
        debug_assert!(message.len() <= MAX_BYTES, "no message is longer");
        let length = message.len() as u16;
        message[6..8].copy_from_slice(&length.to_be_bytes());
        message[8..16].copy_from_slice(&self.cookie.0.to_be_bytes());
        message[16..24].copy_from_slice(&self.sequence.to_be_bytes());
    }
}

/// Where the first message of a stream ends.
#[must_use]
pub fn frame(bytes: &[u8]) -> Frame {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] || bytes.get(4).is_some_and(|&byte| byte != VERSION) {
        return Frame::Broken;
    }
    let (Some(&high), Some(&low)) = (bytes.get(6), bytes.get(7)) else { return Frame::Unknown };
    match usize::from(u16::from_be_bytes([high, low])) {
        length @ HEADER_BYTES..=MAX_BYTES => Frame::Length(length),
        _ => Frame::Broken,
    }
}

/// The reflector's own account, as its farewell brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReflectorReport {
    /// Measured requests answered. Requests sent and not among these were lost on the way there.
    pub echoed: u64,
    /// Messages that were not well-formed or not this client's, and not answered.
    pub foreign: u64,
    /// Residence, from its reading after the receiving system call to the one before the sending
    /// one, in ticks of the reflector's counter: smallest.
    pub residence_min: TicksDelta,
    /// Residence: median.
    pub residence_median: TicksDelta,
    /// Residence: largest.
    pub residence_max: TicksDelta,
}

impl ReflectorReport {
    /// Writes the account behind the header of a farewell, which has [`FAREWELL_BYTES`].
    pub(crate) fn write(&self, farewell: &mut [u8]) {
        let numbers = [
            self.echoed,
            self.foreign,
            self.residence_min.0,
            self.residence_median.0,
            self.residence_max.0,
        ];
        for (bytes, number) in farewell[HEADER_BYTES..].chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
    }

    /// Reads the account behind the header of a farewell; none when it is too short.
    pub(crate) fn parse(farewell: &[u8]) -> Option<Self> {
        let numbers = farewell.get(HEADER_BYTES..)?;
        Some(Self {
            echoed: number(numbers, 0)?,
            foreign: number(numbers, 1)?,
            residence_min: TicksDelta(number(numbers, 2)?),
            residence_median: TicksDelta(number(numbers, 3)?),
            residence_max: TicksDelta(number(numbers, 4)?),
        })
    }
}

fn number(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(8 * index..8 * index + 8)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_has_the_documented_bytes() {
        let mut message = [0xff; HEADER_BYTES];
        let header = Header { kind: Kind::Probe, cookie: Cookie(0x0102), sequence: 3 };
        header.write(&mut message);
        let expected = b"wlat\x01\x05\0\x18\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x03";
        assert_eq!(&message, expected);
    }

    #[test]
    fn a_change_of_any_byte_that_marks_a_message_makes_it_foreign() {
        let mut message = [0; 64];
        Header { kind: Kind::Probe, cookie: Cookie(9), sequence: 3 }.write(&mut message);
        for at in 0..8 {
            let mut changed = message;
            changed[at] ^= 0x80;
            assert_eq!(Header::parse(&changed), None, "byte {at}");
        }
        for length in 0..message.len() {
            assert_eq!(Header::parse(&message[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn a_stream_is_cut_where_its_messages_end_and_is_broken_by_anything_else() {
        let mut message = [0; 100];
        Header { kind: Kind::Probe, cookie: Cookie(9), sequence: 3 }.write(&mut message);
        for length in 0..message.len() {
            let expected = if length < 8 { Frame::Unknown } else { Frame::Length(100) };
            assert_eq!(frame(&message[..length]), expected, "{length} bytes");
        }
        for at in 0..5 {
            let mut broken = message;
            broken[at] ^= 1;
            assert_eq!(frame(&broken[..=at]), Frame::Broken, "byte {at}");
        }
        for length in [0, 23, 65_508, 65_535_u16] {
            message[6..8].copy_from_slice(&length.to_be_bytes());
            assert_eq!(frame(&message), Frame::Broken, "{length}");
        }
    }

    #[test]
    fn answers_are_never_answered() {
        for kind in (0..=255).filter_map(Kind::from_byte) {
            if let Some(answer) = kind.answer() {
                assert_eq!(answer.answer(), None);
            }
        }
    }

    #[test]
    fn fresh_cookies_differ() {
        assert_ne!(Cookie::fresh(), Cookie::fresh());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_parsed_to_what_writes_them_again_or_to_nothing(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            forged in any::<bool>(),
            kind in 0_u8..12,
        ) {
            let mut bytes = bytes;
            if forged && bytes.len() >= HEADER_BYTES {
                let length = bytes.len() as u8;
                bytes[..8].copy_from_slice(&[b'w', b'l', b'a', b't', 1, kind, 0, length]);
            }
            let _ = frame(&bytes);
            if let Some(header) = Header::parse(&bytes) {
                let mut again = bytes.clone();
                header.write(&mut again);
                prop_assert_eq!(again, bytes.clone());
            }
            let _ = ReflectorReport::parse(&bytes);
        }

        #[test]
        fn a_report_comes_back_as_it_was_sent(numbers in any::<[u64; 5]>()) {
            let [echoed, foreign, min, median, max] = numbers;
            let report = ReflectorReport {
                echoed,
                foreign,
                residence_min: TicksDelta(min),
                residence_median: TicksDelta(median),
                residence_max: TicksDelta(max),
            };
            let mut bytes = [0; FAREWELL_BYTES];
            report.write(&mut bytes);
            prop_assert_eq!(ReflectorReport::parse(&bytes), Some(report));
            prop_assert_eq!(ReflectorReport::parse(&bytes[..FAREWELL_BYTES - 1]), None);
        }
    }
}
