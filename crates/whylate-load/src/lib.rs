//! Load on purpose: bounded generators that stop by themselves.
//!
//! A measurement under contention needs contention that is known. Each generator is a child process
//! (this program again, by a hidden command), so that it shares no lock and no page with whoever
//! measures, and can be killed. It counts what it did.
//!
//! Guarantees: a generator is bounded in rate, in size and in time; it ends at its time limit, when
//! it is told to, and when its parent is gone; load goes to loopback or into namespaces that whylate
//! made, and nowhere else; files are announced in the journal before they are made. A generator that
//! ends before it was told to is a warning that spoils trust ([`Load::poll`]).
//!
//! Does not measure anybody but itself.

mod arrivals;
mod child;
mod course;
mod error;
mod jobs;
mod kind;
mod load;
mod order;
mod plan;
mod process;
mod record;
mod words;

pub use child::generate_stdin;
pub use error::LoadError;
pub use kind::{Kind, Net};
pub use load::{HELD_BACK, Load, Program, Wanted, start, start_by};
pub use words::parse;
