//! The messages between client and reflector.
//!
//! A header of 24 bytes, big-endian, then padding to the size of the request:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `wlat` |
//! | 4 | version of this format, 2 |
//! | 5 | kind |
//! | 6..8 | length of the whole message |
//! | 8..16 | cookie: chosen at random by the client, tells its messages from any other |
//! | 16..24 | sequence number |
//!
//! A message that has no room for that is compact: a header of 18 bytes, which is what the shortest frame
//! of Ethernet, 64 bytes, carries over IPv4 and UDP, then padding to 23 bytes at most:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `wlac` |
//! | 4 | version of this format, 2 |
//! | 5 | kind |
//! | 6..8 | length of the whole message, 18 to 23 |
//! | 8..12 | the lower half of the cookie |
//! | 12..18 | the lower 48 bits of the sequence number |
//!
//! A client of compact messages has the lower half of its cookie as its cookie in everything that it sends,
//! its farewell among it, so that the other end knows one client. The numbers of 48 bits last for 30 days,
//! the longest measurement, at 108 million messages a second. Beginnings and lengths of the two forms differ:
//! nothing is a message of both. Neither has an instant in it, so that nothing is missing from the short one:
//! when a request was intended and sent is in the memory of its client alone.
//!
//! The length frames messages in a stream, and shows one that was cut. Whatever is not exactly this
//! is foreign: it is counted and never answered. A message of another version is named as that.

#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::RangeInclusive;

use whylate_model::flow::Receptions;
use whylate_model::{Hertz, TicksDelta};
use whylate_port::Frame;
use whylate_port::bpf::{Compact, Treatment, WireForm};

/// Bytes of the header; a message that has fewer is compact.
pub const HEADER_BYTES: usize = 24;
/// Bytes of the compact header, and so of the shortest message.
pub const COMPACT_BYTES: usize = 18;
/// The longest message that is compact.
const COMPACT_MOST: usize = HEADER_BYTES - 1;
/// The longest message: 65 535 less the headers of IPv4 and UDP.
pub const MAX_BYTES: usize = 65_507;
/// The size of a farewell, whatever the size of the requests.
pub(crate) const FAREWELL_BYTES: usize = HEADER_BYTES + NUMBERS * 8;
/// Numbers of an account.
const NUMBERS: usize = 14;

const MAGIC: [u8; 4] = *b"wlat";
const COMPACT_MAGIC: [u8; 4] = *b"wlac";
/// The version of this format.
pub(crate) const VERSION: u8 = 2;
/// One that some reflectors may still speak: they answer nothing of this one.
const OLDER: u8 = 1;

/// Tells one client's messages from any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie(pub u64);

impl Cookie {
    /// A cookie that nobody else has: 64 bits from the system's random source.
    #[must_use]
    pub fn fresh() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// The cookie of a client whose messages have this size: compact ones have room for the lower half.
    #[must_use]
    pub fn of_size(self, bytes: usize) -> Self {
        if bytes < HEADER_BYTES { self.half() } else { self }
    }

    /// The lower half.
    pub(crate) fn half(self) -> Self {
        Self(self.0 & u64::from(u32::MAX))
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
    /// A message of the warm-up that asks for no reply.
    WarmOneWay = 9,
    /// A measured message that asks for no reply: the other end counts it.
    OneWay = 10,
}

impl Kind {
    /// The answer to a message of this kind; none to an answer, and to what asks for none.
    #[must_use]
    pub fn answer(self) -> Option<Self> {
        match self {
            Self::Hello => Some(Self::Welcome),
            Self::Warm => Some(Self::WarmReply),
            Self::Probe => Some(Self::Reply),
            Self::End => Some(Self::Farewell),
            Self::Welcome
            | Self::WarmReply
            | Self::Reply
            | Self::Farewell
            | Self::WarmOneWay
            | Self::OneWay => None,
        }
    }

    /// All of them, by their numbers.
    const ALL: [Self; 10] = [
        Self::Hello,
        Self::Welcome,
        Self::Warm,
        Self::WarmReply,
        Self::Probe,
        Self::Reply,
        Self::End,
        Self::Farewell,
        Self::WarmOneWay,
        Self::OneWay,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == byte)
    }

    /// What a program in the kernel does with such a message; none where it is foreign to a server.
    fn treatment(self) -> Option<Treatment> {
        match (self, self.answer()) {
            (Self::OneWay, _) => Some(Treatment::Count),
            (Self::WarmOneWay, _) => Some(Treatment::CountBeside),
            // The account is more than a program can write.
            (_, Some(Self::Farewell)) => Some(Treatment::Leave),
            (_, Some(Self::Reply)) => Some(Treatment::Answer(Self::Reply as u8)),
            (_, Some(answer)) => Some(Treatment::AnswerBeside(answer as u8)),
            (_, None) => None,
        }
    }
}

/// What a reflector inside the kernel must know of these messages to answer them as a server does.
#[must_use]
pub fn wire_form() -> WireForm {
    let treated = |kind: Kind| Some((kind as u8, kind.treatment()?));
    WireForm {
        magic: MAGIC,
        version: VERSION,
        shortest: HEADER_BYTES as u16,
        compact: Compact { magic: COMPACT_MAGIC, shortest: COMPACT_BYTES as u16 },
        kinds: Kind::ALL.into_iter().filter_map(treated).collect(),
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
        let (header, length) = Self::beginning(message)?;
        (length == message.len()).then_some(header)
    }

    /// Reads the header of a message of which only the beginning is there, with its whole length.
    #[inline]
    pub(crate) fn beginning(bytes: &[u8]) -> Option<(Self, usize)> {
        let marks = Marks::of(bytes)?;
        if marks.version != VERSION || !marks.form.lengths().contains(&marks.length) {
            return None;
        }
        let (cookie, sequence) = match marks.form {
            Form::Long => (number(bytes, 1)?, number(bytes, 2)?),
            Form::Compact => {
                let (header, _) = bytes.split_first_chunk::<COMPACT_BYTES>()?;
                let [.., c0, c1, c2, c3, n0, n1, n2, n3, n4, n5] = *header;
                let cookie = u32::from_be_bytes([c0, c1, c2, c3]);
                (u64::from(cookie), u64::from_be_bytes([0, 0, n0, n1, n2, n3, n4, n5]))
            }
        };
        let (kind, cookie) = (Kind::from_byte(marks.kind)?, Cookie(cookie));
        Some((Self { kind, cookie, sequence }, marks.length))
    }

    /// Writes the header to the beginning of a message, whose length it tells: the compact one where there
    /// is no room for the other.
    ///
    /// # Panics
    /// When `message` is shorter than a compact header.
    #[inline]
    pub fn write(&self, message: &mut [u8]) {
        debug_assert!(message.len() <= MAX_BYTES, "no message is longer");
        let form = Form::of_size(message.len());
        message[..4].copy_from_slice(&form.magic());
        message[4] = VERSION;
        message[5] = self.kind as u8;
        let length = message.len() as u16;
        message[6..8].copy_from_slice(&length.to_be_bytes());
        let (cookie, sequence) = (self.cookie.0.to_be_bytes(), self.sequence.to_be_bytes());
        match form {
            Form::Long => {
                message[8..16].copy_from_slice(&cookie);
                message[16..24].copy_from_slice(&sequence);
            }
            Form::Compact => {
                message[8..12].copy_from_slice(&cookie[4..]);
                message[12..18].copy_from_slice(&sequence[2..]);
            }
        }
    }
}

/// Which of the two headers a message has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Long,
    Compact,
}

impl Form {
    /// That of a message of this size.
    fn of_size(bytes: usize) -> Self {
        if bytes < HEADER_BYTES { Self::Compact } else { Self::Long }
    }

    /// That which begins so.
    fn of_magic(magic: [u8; 4]) -> Option<Self> {
        [Self::Long, Self::Compact].into_iter().find(|form| form.magic() == magic)
    }

    fn magic(self) -> [u8; 4] {
        match self {
            Self::Long => MAGIC,
            Self::Compact => COMPACT_MAGIC,
        }
    }

    /// Lengths that a message of it has.
    fn lengths(self) -> RangeInclusive<usize> {
        match self {
            Self::Long => HEADER_BYTES..=MAX_BYTES,
            Self::Compact => COMPACT_BYTES..=COMPACT_MOST,
        }
    }
}

/// The first eight bytes, which both headers and all versions have in common.
#[derive(Debug, Clone, Copy)]
struct Marks {
    form: Form,
    version: u8,
    kind: u8,
    length: usize,
}

impl Marks {
    #[inline]
    fn of(bytes: &[u8]) -> Option<Self> {
        let (marks, _) = bytes.split_first_chunk::<8>()?;
        let [m0, m1, m2, m3, version, kind, high, low] = *marks;
        let length = usize::from(u16::from_be_bytes([high, low]));
        Some(Self { form: Form::of_magic([m0, m1, m2, m3])?, version, kind, length })
    }
}

/// Makes a message one of an older version, as far as that had it: it had no compact ones.
pub(crate) fn older(message: &mut [u8]) -> bool {
    let known = Form::of_size(message.len()) == Form::Long
        && Header::parse(message).is_some_and(|header| header.kind as u8 <= Kind::End as u8);
    if known {
        message[4] = OLDER;
    }
    known
}

/// The header of a whole message that [`older`] made.
pub(crate) fn of_older(message: &[u8]) -> Option<Header> {
    let (beginning, _) = message.split_first_chunk::<HEADER_BYTES>()?;
    let mut beginning = *beginning;
    if beginning[4] != OLDER {
        return None;
    }
    beginning[4] = VERSION;
    let (header, length) = Header::beginning(&beginning)?;
    (length == message.len()).then_some(header)
}

/// The version of a whole message of whylate's that is of another one than this.
#[must_use]
pub fn other_version(message: &[u8]) -> Option<u8> {
    let marks = Marks::of(message)?;
    let whole = marks.length == message.len() && marks.form.lengths().contains(&marks.length);
    (marks.version != VERSION && whole).then_some(marks.version)
}

/// Where the first message of a stream ends.
#[must_use]
pub fn frame(bytes: &[u8]) -> Frame {
    let begins = |form: &Form| {
        let known = bytes.len().min(MAGIC.len());
        bytes[..known] == form.magic()[..known]
    };
    let form = [Form::Long, Form::Compact].into_iter().find(begins);
    let Some(form) = form.filter(|_| bytes.get(4).is_none_or(|&byte| byte == VERSION)) else {
        return Frame::Broken;
    };
    let (Some(&high), Some(&low)) = (bytes.get(6), bytes.get(7)) else { return Frame::Unknown };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if form.lengths().contains(&length) { Frame::Length(length) } else { Frame::Broken }
}

/// The reflector's own account, as its farewell brings it. Times are in ticks of the reflector's
/// counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReflectorReport {
    /// Measured requests answered. Requests sent and not among these were lost on the way there.
    pub echoed: u64,
    /// Messages that were not well-formed or not this client's, and not answered.
    pub foreign: u64,
    /// Residence, from its reading after the receiving system call to the one before the sending
    /// one: smallest.
    pub residence_min: TicksDelta,
    /// Residence: median.
    pub residence_median: TicksDelta,
    /// Residence: largest.
    pub residence_max: TicksDelta,
    /// Frequency of its counter, in thousandths of a hertz; 0 where it does not know it.
    pub rate_mhz: u64,
    /// Messages that asked for no reply.
    pub one_way: CountedOneWay,
}

/// What became of one client's measured messages that asked for no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountedOneWay {
    /// Messages that came, each number once.
    pub received: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Of the received ones, those that came after a later one (RFC 4737).
    pub reordered: u64,
    /// From the first to the last reception.
    pub span: TicksDelta,
    /// Distance of neighbours: smallest.
    pub gap_min: TicksDelta,
    /// Distance of neighbours: median.
    pub gap_median: TicksDelta,
    /// Distance of neighbours: 99th percentile.
    pub gap_p99: TicksDelta,
    /// Distance of neighbours: largest.
    pub gap_max: TicksDelta,
}

impl CountedOneWay {
    /// How they came, by a counter of this frequency.
    #[must_use]
    pub fn receptions(&self, rate: Hertz) -> Receptions {
        let distances = self.received.saturating_add(self.duplicates).saturating_sub(1);
        let seconds = self.span.0 as f64 / rate.0;
        Receptions {
            per_second: (seconds > 0.0).then(|| distances as f64 / seconds),
            gap_min: self.gap_min.to_nanos(rate),
            gap_median: self.gap_median.to_nanos(rate),
            gap_p99: self.gap_p99.to_nanos(rate),
            gap_max: self.gap_max.to_nanos(rate),
        }
    }
}

impl ReflectorReport {
    fn numbers(&self) -> [u64; NUMBERS] {
        let of = self.one_way;
        [
            self.echoed,
            self.foreign,
            self.residence_min.0,
            self.residence_median.0,
            self.residence_max.0,
            self.rate_mhz,
            of.received,
            of.duplicates,
            of.reordered,
            of.span.0,
            of.gap_min.0,
            of.gap_median.0,
            of.gap_p99.0,
            of.gap_max.0,
        ]
    }

    fn of(numbers: [u64; NUMBERS]) -> Self {
        let [echoed, foreign, min, median, max, rate_mhz, one_way @ ..] = numbers;
        let [received, duplicates, reordered, span, gap_min, gap_median, gap_p99, gap_max] =
            one_way;
        Self {
            echoed,
            foreign,
            residence_min: TicksDelta(min),
            residence_median: TicksDelta(median),
            residence_max: TicksDelta(max),
            rate_mhz,
            one_way: CountedOneWay {
                received,
                duplicates,
                reordered,
                span: TicksDelta(span),
                gap_min: TicksDelta(gap_min),
                gap_median: TicksDelta(gap_median),
                gap_p99: TicksDelta(gap_p99),
                gap_max: TicksDelta(gap_max),
            },
        }
    }

    /// The frequency of its counter, where it knows it.
    #[must_use]
    pub fn rate(&self) -> Option<Hertz> {
        (self.rate_mhz > 0).then(|| Hertz(self.rate_mhz as f64 / 1e3))
    }

    /// Writes the account behind the header of a farewell, which has [`FAREWELL_BYTES`].
    pub(crate) fn write(&self, farewell: &mut [u8]) {
        for (bytes, number) in farewell[HEADER_BYTES..].chunks_exact_mut(8).zip(self.numbers()) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
    }

    /// Reads the account behind the header of a farewell; none when it is too short.
    pub(crate) fn parse(farewell: &[u8]) -> Option<Self> {
        let bytes = farewell.get(HEADER_BYTES..)?;
        let mut numbers = [0; NUMBERS];
        for (index, at) in numbers.iter_mut().enumerate() {
            *at = number(bytes, index)?;
        }
        Some(Self::of(numbers))
    }
}

fn number(bytes: &[u8], index: usize) -> Option<u64> {
    let bytes = bytes.get(8 * index..8 * index + 8)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}
