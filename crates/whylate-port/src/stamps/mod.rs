//! Kernel stamps of the messages of a port: what is asked for, what came, and what never did.
//!
//! The kernel takes a wish for stamps without saying whether they will come. So each one that was asked
//! for is counted, and each one that comes is matched to its message ([`matching`]) or counted as what
//! it is: a second one, one of nobody, one without a time. A stamp that never comes is missing.
//!
//! Stamps of sendings lie in the socket's error queue until somebody takes them, and take room from
//! what is received: who asks for them takes them soon. The kernel drops what finds no room there and
//! says nothing; it shows as stamps that were skipped.
//!
//! A client that sleeps in `poll` or `epoll` is woken by each stamp. A port without stamps makes the same
//! system calls as ever.

mod card;
mod matching;
mod sent;
mod socket;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::OnceLock;

use whylate_model::Nanos;
use whylate_sys::timestamping::{self, Asked, Flags};

pub(crate) use socket::SocketStamps;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "kinds are wished for one by one")]
pub struct StampWish {
    /// When a message was given to the queueing discipline.
    pub sched: bool,
    /// When it was given to the driver.
    pub software: bool,
    /// When the card sent it.
    pub hardware: bool,
    /// When the other end had said that it has it: of TCP alone.
    pub ack: bool,
    /// When the card had told that it is out.
    pub completion: bool,
    /// When a message was received: by the stack, and by the card where `hardware` is asked for.
    pub receive: bool,
    /// One of so many messages has its sending stamped; 1: all.
    pub every: u32,
}

impl StampWish {
    /// Nothing.
    pub const NOTHING: Self = Self {
        sched: false,
        software: false,
        hardware: false,
        ack: false,
        completion: false,
        receive: false,
        every: 1,
    };

    /// Is a stamp of this kind asked for?
    #[must_use]
    pub fn has(&self, kind: StampKind) -> bool {
        match kind {
            StampKind::Sched => self.sched,
            StampKind::Software => self.software,
            StampKind::Hardware => self.hardware,
            StampKind::Ack => self.ack,
            StampKind::Completion => self.completion,
            StampKind::ReceivedSoftware => self.receive,
            StampKind::ReceivedHardware => self.receive && self.hardware,
        }
    }

    /// The kinds of stamps of sendings that are asked for, a bit each by [`StampKind::index`].
    fn sendings(&self) -> u8 {
        let of = StampKind::ALL.into_iter().filter(|kind| self.has(*kind) && !kind.is_received());
        of.fold(0, |bits, kind| bits | kind.bit())
    }

    /// What is recorded of a message that is sent.
    fn records(&self) -> Flags {
        let of = [
            (self.sched, Flags::TX_SCHED),
            (self.software, Flags::TX_SOFTWARE),
            (self.hardware, Flags::TX_HARDWARE),
            (self.ack, Flags::TX_ACK),
            (self.completion, Flags::TX_COMPLETION),
        ];
        of.into_iter()
            .filter(|(wished, _)| *wished)
            .fold(Flags::default(), |flags, (_, flag)| flags.with(flag))
    }

    /// All but what is recorded of messages that are sent.
    fn ways(&self, stream: bool) -> Flags {
        let mut flags = Flags::SOFTWARE.with(Flags::OPT_TSONLY);
        if self.records() != Flags::default() {
            flags = flags.with(Flags::OPT_ID);
            if stream {
                flags = flags.with(Flags::OPT_ID_TCP);
            }
        }
        if self.receive {
            flags = flags.with(Flags::RX_SOFTWARE);
        }
        if self.hardware {
            flags = flags.with(Flags::RAW_HARDWARE);
            if self.receive {
                flags = flags.with(Flags::RX_HARDWARE);
            }
            if self.software {
                flags = flags.with(Flags::OPT_TX_SWHW);
            }
        }
        flags
    }
}

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StampKind {
    /// It was given to the queueing discipline.
    Sched,
    /// It was given to the driver.
    Software,
    /// The card sent it.
    Hardware,
    /// The other end had said that it has it.
    Ack,
    /// The card had told that it is out.
    Completion,
    /// The stack took it in.
    ReceivedSoftware,
    /// The card received it.
    ReceivedHardware,
}

impl StampKind {
    /// All of them: those of sendings in the order of the way, then those of receptions.
    pub const ALL: [Self; 7] = [
        Self::Sched,
        Self::Software,
        Self::Hardware,
        Self::Ack,
        Self::Completion,
        Self::ReceivedSoftware,
        Self::ReceivedHardware,
    ];

    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Its word: `tx sched`, `tx software`, ..., `rx hardware`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Sched => "tx sched",
            Self::Software => "tx software",
            Self::Hardware => "tx hardware",
            Self::Ack => "tx ack",
            Self::Completion => "tx completion",
            Self::ReceivedSoftware => "rx software",
            Self::ReceivedHardware => "rx hardware",
        }
    }

    /// Is it of a message that was received?
    #[must_use]
    pub fn is_received(self) -> bool {
        matches!(self, Self::ReceivedSoftware | Self::ReceivedHardware)
    }

    /// Its bit among several kinds.
    #[must_use]
    pub const fn bit(self) -> u8 {
        1 << self.index()
    }

    /// Its place in [`StampKind::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for StampKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A stamp of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its number among the messages that this port was given to send, also those that the kernel then
    /// refused, or among those that it received; from 0.
    pub message: u64,
    /// What happened to it.
    pub kind: StampKind,
    /// When: since 1970 by the system's clock; by the card's own for [`StampKind::Hardware`] and
    /// [`StampKind::ReceivedHardware`].
    pub at: Nanos,
}

/// What became of the stamps of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KindCounts {
    /// Messages of which one was asked for.
    pub expected: u64,
    /// Messages that were sent and of which none was asked for: they are none of the sample, or the card
    /// had no room for one more.
    pub not_asked: u64,
    /// Messages for which one came.
    pub delivered: u64,
    /// Came for a message that had one.
    pub twice: u64,
    /// Came for a message that nobody sent, or that was sent too long ago.
    pub unknown: u64,
    /// Came without a time.
    pub zero: u64,
    /// Of those delivered: came for a later message in the same segment of TCP. Of receptions, of those
    /// missing: one call read it together with later bytes, whose stamp came instead.
    pub merged: u64,
    /// Came for a part of a message, which TCP had cut.
    pub split: u64,
    /// Never came, while one of a later message did: the error queue was full, or the card had no room
    /// for one more.
    pub skipped: u64,
}

impl KindCounts {
    /// Never came, so far.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.expected.saturating_sub(self.delivered)
    }

    /// These and the others.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self {
            expected: self.expected + other.expected,
            not_asked: self.not_asked + other.not_asked,
            delivered: self.delivered + other.delivered,
            twice: self.twice + other.twice,
            unknown: self.unknown + other.unknown,
            zero: self.zero + other.zero,
            merged: self.merged + other.merged,
            split: self.split + other.split,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// What became of the stamps of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StampCounts {
    /// By kind, in the order of [`StampKind::ALL`].
    pub kinds: [KindCounts; StampKind::COUNT],
    /// Kinds of stamps that were asked for.
    pub wished: [bool; StampKind::COUNT],
    /// Lay in an error queue and could not be read.
    pub unreadable: u64,
    /// Errors of the network that lay in an error queue, and were told to whoever took stamps.
    pub errors: u64,
    /// Stamps of receptions that nobody took in time.
    pub crowded_out: u64,
    /// Messages that found no room in the socket, where the kernel counts them.
    pub dropped: u64,
}

impl StampCounts {
    /// Of one kind.
    #[must_use]
    pub fn of(&self, kind: StampKind) -> &KindCounts {
        &self.kinds[kind.index()]
    }

    fn kind(&mut self, kind: StampKind) -> &mut KindCounts {
        &mut self.kinds[kind.index()]
    }

    /// These and those of another socket of the port.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let kinds = std::array::from_fn(|at| self.kinds[at].with(&other.kinds[at]));
        let wished = std::array::from_fn(|at| self.wished[at] || other.wished[at]);
        Self {
            kinds,
            wished,
            unreadable: self.unreadable + other.unreadable,
            errors: self.errors + other.errors,
            crowded_out: self.crowded_out + other.crowded_out,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// How many messages a card can have waiting for their stamp, where its driver is known to have a limit:
/// one register of the 82576 and I350 (driver igb), four of the I225 and I226 (driver igc), by the
/// manuals of these controllers. The drivers e1000e, ixgbe and i40e have one such message on its way at a
/// time, and stamp none of those that come meanwhile.
#[must_use]
pub fn registers(driver: &str) -> Option<u64> {
    match driver {
        "igb" | "e1000e" | "ixgbe" | "i40e" => Some(1),
        "igc" => Some(4),
        _ => None,
    }
}

/// Does the kernel take ids of the caller's? Asked once, of a socket that sends one datagram to itself.
pub(crate) fn takes_own_ids() -> bool {
    static TAKES: OnceLock<bool> = OnceLock::new();
    *TAKES.get_or_init(|| try_own_id().is_some())
}

fn try_own_id() -> Option<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    socket.connect(socket.local_addr().ok()?).ok()?;
    let told = Flags::SOFTWARE.with(Flags::OPT_ID).with(Flags::OPT_TSONLY);
    timestamping::set(&socket, told).ok()?;
    let asked = Asked { records: Some(Flags::TX_SOFTWARE), id: Some(1) };
    timestamping::send(&socket, b"id", None, 0, asked).ok().map(|_| ())
}
