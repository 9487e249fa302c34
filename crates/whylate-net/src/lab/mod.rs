//! A private bed of three network namespaces, to try things that need a network on one machine.
//!
//! Client, device and server are namespaces of their own, joined by pairs of virtual links; what
//! lies between client and server is the bed's kind. Links and addresses (198.18.0.0/15, RFC 2544)
//! exist inside the namespaces only: nothing outside them changes but the names in `/run/netns`.
//!
//! Guarantees: a bed is up when datagrams have come through and back; what is half done is
//! announced in the journal, and goes with an error or with the next start; taking one down ends
//! the processes that were started for it, and no others.

mod bed;
mod ip;
mod make;
mod ovs;
mod pair;
mod probe;
mod status;

pub use bed::Bed;
pub use make::{down, up};
pub use pair::udp_pair;
pub use status::{of, of_all};
pub use whylate_host::bed::Role;
