//! Ports: messages in and out, each with the counter's reading beside it.
//!
//! [`Port`] is the one trait; each backend is one file: [`unix`] (Unix datagram sockets), [`udp`]
//! (UDP over IPv4 and IPv6), [`memory`] (no kernel at all, faults planted: for proofs). Each port
//! says by which clock it stamps, how fine and how dear that is, and how it waits ([`PortFacts`]).
//!
//! A socket port is made from an open descriptor and gives it back, so that one end of a pair can
//! become the standard input of a child process, which opens it with [`inherited::open`].
//!
//! Guarantees: a message is sent and received whole or not at all; every wait is bounded. Does not
//! know what is in a message.

mod datagram;
pub mod error;
pub mod facts;
pub mod framing;
pub mod inherited;
pub mod memory;
pub mod port;
pub mod udp;
pub mod unix;

pub use error::PortError;
pub use facts::{PortFacts, StampFacts};
pub use framing::{Frame, Framing};
pub use memory::MemoryPort;
pub use port::{Port, Received, Setup, Wait};
pub use udp::Udp;
pub use unix::UnixDatagram;
