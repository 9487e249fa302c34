//! The path of frames from one port to the other, by the names that a forwarder and a delay line use.
//!
//! It is compiled with the ports, where their backends are known: [`whylate_port::passing::hot`].

pub(crate) use whylate_port::passing::hot::write;
pub use whylate_port::passing::{Counts, Room};
