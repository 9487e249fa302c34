//! The forwarder: whole frames from one port to the other and back, as the network function of the
//! KBNets paper ("How to Measure the Killer Microsecond", section 3) does it.
//!
//! One thread carries both directions, or one each ([`Forwarder`]). It looks at rings again and again
//! and never sleeps: one that slept at one port would not see what comes by the other. Between sockets of UDP
//! ([`whylate_port::relay`]) it may, for as long as nothing comes by either. Bursts go from ring
//! to ring by one call of each port ([`whylate_port::passing`]), and are stamped ([`Stamped`]). [`open`] refuses what cannot be forwarded
//! between: one interface twice, ports that are joined outside, ports of another forwarder.
//!
//! Guarantees: no byte of a frame is changed, a tag that the kernel took out goes back to its place where
//! the port shows it (AF_XDP shows none that a driver keeps beside the frame: who calls has the driver leave
//! tags in frames, or it is said at the start);
//! every frame that was received is counted once by what became of it, and none that was taken back from a
//! sending ring as forwarded; what a port drops is counted by its ring; who ends, ends within an interval;
//! what has not left a sending ring by then is counted apart. What lies in the receiving rings at the end is
//! in no count. Does not know hosts or protocols, and writes no files.

#[cfg(test)]
mod calls;
mod claim;
mod counters;
mod error;
pub mod hot;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod open;
pub(crate) mod ports;
pub(crate) mod probe;
#[cfg(test)]
mod proofs;
pub(crate) mod run;
mod sockets;
mod stamps;
mod steady;
pub(crate) mod way;

pub use claim::Claim;
pub use counters::counters;
pub use error::ForwardError;
pub use hot::{Counts, Room};
pub use open::{Hold, Opened, Plan, open, taken_from_driver};
pub use run::{Account, DirectionAccount, Ending, Forwarder, Halt, Told, Watch, Why};
pub use sockets::addresses;
pub use stamps::{Cost, Part, Parts, RingStamps, SIZES, Stamped, Stamps, Times, cost};
pub use way::Way;
