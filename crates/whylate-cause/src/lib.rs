//! Gaps and evidence, resolved into parts and causes.
//!
//! A gap is what a busy loop did not get. This crate lays the kernel's events beside it on the one
//! timeline both are stamped on and says what each stretch of the gap went to ([`split`]), which
//! of the stretches names the gap ([`naming`]), who sent the interrupt or woke the thread behind
//! it ([`senders`]), what can be said without the kernel's help ([`evidence_b`]), how good that
//! is ([`validate`]), and what follows from many gaps ([`rules`], [`periodic`]). [`attribute`]
//! does it while a run goes on, [`totals`] adds it up.
//!
//! Guarantees: the parts of a gap are ordered, adjacent and sum to the gap exactly, whatever the
//! events look like; every queue has a limit, and what falls out of one is counted.
//!
//! Does not: read files or clocks, measure, or need privilege. Everything here replays from a
//! recorded run.

pub mod attribute;
pub mod context;
pub mod error;
pub mod evidence_b;
mod lane;
pub mod lateness;
pub mod naming;
mod overlay;
pub mod own_time;
pub mod periodic;
#[cfg(test)]
mod planted;
pub mod rules;
pub mod senders;
pub mod split;
pub mod switches;
pub mod tail;
pub mod totals;
pub mod validate;
mod waking;
mod walk;
pub mod worst;

pub use attribute::{Attributed, Attributor, Basis};
pub use context::{Context, Measured, Placement};
pub use error::CauseError;
pub use totals::Totals;
