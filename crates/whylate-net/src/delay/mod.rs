//! The delay line: each frame from one port to the other is held back for a time that is known, and the
//! truth of each is told. It is what instruments are judged by.
//!
//! Each direction is a queue, first in and first out, of bounded memory that was touched before: a frame
//! is released when the counter has reached its arrival and its delay ([`Law`]), and never before one that
//! came earlier, unless reordering was asked for. Arrival is the counter's reading immediately after the
//! frame was seen in the ring, departure the one immediately before the flush that handed it over: what a
//! client measures between its own ends has both rings' ways on top.
//!
//! ```text
//! let Opened { mut line, truths, base, .. } = open(&plan, counter, rate, tells)?;
//! // Another thread drains `truths`; this one goes on until `halt` is set or `orders` say so.
//! let why = line.run(&halt, &mut orders, &mut |told| ...);
//! ```
//!
//! Guarantees: no byte of a frame is changed, a tag that the kernel took out goes back to its place; what
//! is not ours passes as well; every frame that was received is counted once by what became of it; losses,
//! duplicates and reordering are those that the seed makes, counted one by one; who ends, ends within an
//! interval, and what waits then is counted. Does not know hosts, and writes no files.

mod base;
mod capacity;
pub mod control;
mod dice;
mod error;
mod fifo;
mod hot;
mod lane;
mod law;
mod limiter;
mod line;
mod mark;
mod open;
#[cfg(test)]
mod proofs;
pub mod proxy;
mod truth;

pub use capacity::{Capacity, MOST_CAPACITY_BYTES};
pub use control::{Control, ControlError, Inbox};
pub use error::DelayError;
pub use lane::{Delayed, Lane};
pub use law::{Amount, BACKLOG, LONGEST_DELAY, Law, LawError, Limit};
pub use line::{Account, LaneAccount, Line, NoOrders, Order, Orders, Told, Watch};
pub use mark::{Mark, Tells};
pub use open::{Opened, Plan, open};
pub use proxy::{
    OpenedProxy, Proxy, ProxyError, ProxyKind, ProxyPlan, ProxyTold, ProxyWay, open_proxy,
};
pub use truth::{MOST_TRUTH_ROOM, TRUTH_ROOM, TruthReader};
