//! A private bed of three network namespaces, to try things that need a network on one machine.
//!
//! Client, device and server are namespaces of their own, joined by pairs of virtual links; what
//! lies between client and server is the bed's kind, and a passive tap where one is wished for. Links and addresses (198.18.0.0/15, RFC 2544)
//! exist inside the namespaces only: nothing outside them changes but the names in `/run/netns`.
//!
//! Guarantees: a bed is up when datagrams have come through and back (an open one, which nothing passes
//! before a box is there, when its links are); what is half done is
//! announced in the journal, and goes with an error or with the next start; taking one down ends
//! the processes that were started for it, and no others.

mod bed;
mod fan_in;
mod ip;
mod make;
mod open;
mod ovs;
mod probe;
mod queues;
mod status;
mod tap;

pub use bed::Bed;
pub use fan_in::{Joining, MOST_SOURCES, Narrow, Source, borrow_fan_in};
pub use make::{Borrowed, borrow, down, up};
pub use open::OPEN_PORTS;
pub use status::{of, of_all};
pub use tap::Tap;
pub use whylate_host::bed::Role;
