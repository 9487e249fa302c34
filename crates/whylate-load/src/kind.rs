//! The kinds of load, each with its limits.

use std::fmt;

/// One load to make.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Packets that a process on a disturbed CPU receives.
    Net(Net),
    /// A recursive walk over many small files, from a disturbed CPU.
    Disk {
        /// How many.
        files: u32,
        /// How large each is.
        bytes: u32,
    },
    /// Interrupts that one CPU sends another: TLB shootdowns and expedited barriers.
    Ipi {
        /// How many each second.
        per_second: u32,
    },
    /// Busy threads on the disturbed CPUs.
    Cpu {
        /// Share of each period that they ask for, above 0 and at most 1.
        share: f64,
    },
    /// Streams over a buffer, on the disturbed CPUs and on another.
    Mem {
        /// Bytes of each buffer: more than the last cache holds.
        bytes: u64,
    },
}

/// A kind of network load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Net {
    /// As much as the receiver takes, up to [`MOST_TCP_BYTES`] a second.
    TcpBulk,
    /// Datagrams at a constant rate.
    Udp {
        /// How many each second.
        pps: u32,
        /// Bytes of each.
        bytes: u32,
    },
}

/// Bytes that one TCP sender offers in a second: what a link of 10 Gbit/s carries.
pub(crate) const MOST_TCP_BYTES: u64 = 1_250_000_000;
/// Datagrams in a second: more than one sender manages, and none is sent that was not asked for.
pub(crate) const PPS: (u32, u32) = (1, 1_000_000);
/// Bytes of a datagram: a sequence number at least, a full frame at most.
pub(crate) const UDP_BYTES: (u32, u32) = (8, 1472);
/// Files of a tree: the paper walked 60 000.
pub(crate) const FILES: (u32, u32) = (1, 200_000);
/// Bytes of a file.
pub(crate) const FILE_BYTES: (u32, u32) = (1, 1 << 20);
/// Bytes of a whole tree.
pub(crate) const TREE_BYTES: u64 = 4 << 30;
/// Interrupts in a second.
pub(crate) const PER_SECOND: (u32, u32) = (1, 200_000);
/// Bytes of a buffer.
pub(crate) const MEM: (u64, u64) = (1 << 20, 4 << 30);

impl Kind {
    /// Network load without more words.
    pub const NET: Self = Self::Net(Net::TcpBulk);
    /// Disk load without more words.
    pub const DISK: Self = Self::Disk { files: 2_000, bytes: 4_096 };
    /// Interrupts without more words.
    pub const IPI: Self = Self::Ipi { per_second: 10_000 };
    /// CPU load without more words.
    pub const CPU: Self = Self::Cpu { share: 1.0 };
    /// Memory load without more words.
    pub const MEM: Self = Self::Mem { bytes: 64 << 20 };

    /// Its word, by which facts and warnings call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Net(Net::TcpBulk) => "net",
            Self::Net(Net::Udp { .. }) => "net:udp",
            Self::Disk { .. } => "disk",
            Self::Ipi { .. } => "ipi",
            Self::Cpu { .. } => "cpu",
            Self::Mem { .. } => "mem",
        }
    }
}

impl Net {
    /// UDP without more words.
    pub const UDP: Self = Self::Udp { pps: 10_000, bytes: 64 };
}

impl fmt::Display for Kind {
    /// The words that ask for it, with all its parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(Net::TcpBulk) => f.write_str("net"),
            Self::Net(Net::Udp { pps, bytes }) => write!(f, "net:udp={pps}pps,bytes={bytes}"),
            Self::Disk { files, bytes } => write!(f, "disk:files={files},bytes={bytes}"),
            Self::Ipi { per_second } => write!(f, "ipi:rate={per_second}"),
            Self::Cpu { share } => write!(f, "cpu:{}%", share * 100.0),
            Self::Mem { bytes } => write!(f, "mem:{bytes}"),
        }
    }
}
