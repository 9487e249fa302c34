//! Request and reply over ports: client, reflector, accounting.
//!
//! [`ClosedLoop`] sends one request, waits for its reply, and sends the next: the named mode of the
//! papers' request-reply rows. [`reflect`] is the other end, in a thread, or in a process of its
//! own ([`ReflectorProcess`], [`reflect_stdin`]). Every request and every message that arrives is
//! accounted for by its sequence number ([`Accounting`]).
//!
//! The latency is the round trip at the socket: from the counter's reading before the sending
//! system call to the one after the receiving system call that brought the reply, both on the
//! client's CPU. It is never halved.
//!
//! Guarantees: every wait, every count and every buffer is bounded; a request that got no reply in
//! time stays in the sample as a censored value. Does not draw, does not write files.

pub mod capture;
pub mod closed_loop;
mod conversation;
pub mod delay;
pub mod error;
pub mod feed;
pub mod forward;
pub mod lab;
pub mod message;
pub mod open_loop;
pub mod probe_stamps;
pub mod process;
#[cfg(test)]
mod proofs;
pub mod protocol;
pub mod reflect;
pub mod resolve;
pub mod schedule;
pub mod sequence;
pub mod serve;
pub mod turns;

pub use closed_loop::{ClosedLoop, Ended, Interval, Outcome, Placed};
pub use error::NetError;
pub use message::{Cookie, ReflectorReport};
pub use open_loop::{OpenLoop, OpenOutcome};
pub use process::{ReflectorProcess, StdinReflector, reflect_stdin};
pub use protocol::{Protocol, Raw, Sockperf, Speaks};
pub use reflect::{ReflectEnd, ReflectSummary, Reflector, reflect};
pub use resolve::{Resolved, resolve};
pub use sequence::{Accounting, SequenceSet};
pub use serve::{Serve, Served, serve};
