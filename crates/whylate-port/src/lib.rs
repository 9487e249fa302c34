//! Ports: messages in and out, each with the counter's reading beside it.
//!
//! [`Port`] is the one trait; each backend is one file: [`unix`] (Unix datagram sockets), [`udp`]
//! (UDP over IPv4 and IPv6, groups), [`tcp`], [`serving`] (a server of several sockets), [`memory`]
//! (no kernel at all, faults planted: for proofs). [`open`] opens any of them by words. Each port
//! says by which clock it stamps, how fine and how dear that is, how it waits ([`Wait`]) and what the
//! kernel gave ([`PortFacts`]).
//!
//! Past the socket there are whole frames: [`Frames`] is the trait of those backends ([`packet`],
//! [`xdp`]), [`frame`] reads and writes what is in them, and [`host`] makes a port of messages of any
//! of them. Rings that the kernel writes to, and their unsafe code, are in `packet/ring.rs`,
//! `xdp/ring.rs` and `xdp/umem.rs`; options that no library knows in `raw.rs`.
//!
//! Bursts that go from one port to another, as a forwarder's do: [`passing`]. Single frames that are sent as
//! they are due, or not at all: [`packet::sender`].
//!
//! Datagrams between clients and a server by ordinary sockets, as the two ends of a forwarder: [`relay`].
//!
//! A backend of another crate, such as DPDK's, is opened through [`device`], where it registered itself.
//!
//! A client that has both ports of what lies between them sends by one and receives by the other:
//! [`across`].
//!
//! A datagram port is made from an open descriptor and gives it back, so that one end of a pair can
//! become the standard input of a child process, which opens it with [`inherited::open`].
//!
//! [`bpf`] is no port: programs that the kernel runs on what an interface receives, which hand messages
//! to sockets of AF_XDP or answer them.
//!
//! Guarantees: a message is sent and received whole or not at all; every wait is bounded; receiving
//! and sending allocate nothing. Does not know what is in a message: who opens a stream brings a
//! [`Framing`] along.

pub mod across;
mod address;
pub mod bpf;
mod datagram;
pub mod device;
pub mod end;
pub mod error;
pub mod facts;
pub mod frame;
pub mod frames;
pub mod framing;
mod holder;
pub mod host;
pub mod inherited;
mod interface;
pub mod link;
pub mod memory;
pub mod open;
pub mod options;
pub mod packet;
pub mod passing;
pub mod peer;
pub mod port;
pub mod queues;
mod raw;
pub mod relay;
pub mod serving;
mod socket;
pub mod stamps;
mod stream;
pub mod tcp;
pub mod udp;
pub mod unix;
mod unix_path;
pub mod waiting;
pub mod xdp;

pub use across::{Across, Crossed, Side, SideAddress};
pub use device::Device;
pub use end::{End, Threads};
pub use error::PortError;
pub use facts::{PortFacts, SocketFacts, StampFacts};
pub use frames::{FrameStamps, Frames, FramesFacts, SentStamp, StampedBy};
pub use framing::{Frame, Framing};
pub use host::{FrameCounts, HostCounts, MessageStage, MessageStamp};
pub use link::{Copying, FrameStamping, LinkOptions, Queueing, Waking};
pub use memory::MemoryPort;
pub use open::{Client, Server, Target, Transport};
pub use options::Options;
pub use peer::Peer;
pub use port::{Connections, Port, Received, Setup, Wait};
pub use queues::{IncomingFacts, Queues};
pub use stamps::{Stamp, StampCounts, StampKind, StampWish};
pub use tcp::Tcp;
pub use udp::Udp;
pub use unix::UnixDatagram;
pub use waiting::BusyPolling;
