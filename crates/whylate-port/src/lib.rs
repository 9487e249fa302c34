//! Ports: messages in and out, each with the counter's reading beside it.
//!
//! [`Port`] is the one trait; each backend is one file: [`unix`] (Unix datagram sockets), [`udp`]
//! (UDP over IPv4 and IPv6, groups), [`tcp`], [`serving`] (a server of several sockets), [`memory`]
//! (no kernel at all, faults planted: for proofs). [`open`] opens any of them by words. Each port
//! says by which clock it stamps, how fine and how dear that is, how it waits ([`Wait`]) and what the
//! kernel gave ([`PortFacts`]).
//!
//! A datagram port is made from an open descriptor and gives it back, so that one end of a pair can
//! become the standard input of a child process, which opens it with [`inherited::open`].
//!
//! Guarantees: a message is sent and received whole or not at all; every wait is bounded; receiving
//! and sending allocate nothing. Does not know what is in a message: who opens a stream brings a
//! [`Framing`] along.

mod address;
mod datagram;
pub mod error;
pub mod facts;
pub mod framing;
mod holder;
pub mod inherited;
mod interface;
pub mod memory;
pub mod open;
pub mod options;
pub mod peer;
pub mod port;
pub mod serving;
mod socket;
mod stream;
pub mod tcp;
pub mod udp;
pub mod unix;
mod unix_path;
pub mod waiting;

pub use error::PortError;
pub use facts::{PortFacts, SocketFacts, StampFacts};
pub use framing::{Frame, Framing};
pub use memory::MemoryPort;
pub use open::{Client, Server, Target, Transport};
pub use options::Options;
pub use peer::Peer;
pub use port::{Connections, Port, Received, Setup, Wait};
pub use tcp::Tcp;
pub use udp::Udp;
pub use unix::UnixDatagram;
pub use waiting::BusyPolling;
