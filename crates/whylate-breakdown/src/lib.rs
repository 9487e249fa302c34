//! Where each request spent its time.
//!
//! Instants of a request come from several vantage points: the ends' own readings, stamps of the kernel
//! and of cards, the kernel's tracepoints, a tap on the wire. All of them are on the counter's one
//! timeline when they come here. What the tracepoints say of messages on their way is put together by
//! `follow`; whose request a message belongs to, by `meet`, and what a process that knows nothing was
//! asked, by `watch`; how many of them each way, by [`pairs`]; what of a request's time each part was, by
//! `compose`; stamps that lie not on the way, by `asides`; what a tap saw of requests and replies, by
//! [`tap`].
//!
//! Guarantees: parts are ordered, adjacent and sum to the whole exactly, whatever the instants look
//! like; what is missing, comes twice or contradicts is counted; memory does not grow with the run.
//!
//! Does not: read files or clocks, measure, or need privilege.

pub mod asides;
pub mod compose;
pub mod follow;
pub mod instants;
pub mod meet;
pub mod met;
pub mod pairs;
pub mod tap;
pub mod turns;
pub mod watch;

#[cfg(test)]
mod planted;

pub use asides::Asides;
pub use compose::{Bounds, Certainty, Composed, Composer, Settings};
pub use follow::{FollowCounts, Follower, Limits, Passage};
pub use instants::Instants;
pub use meet::{MeetCounts, Meeting};
pub use met::Met;
pub use turns::TurnCounts;
pub use watch::Watching;
