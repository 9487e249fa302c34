//! What a box between two ports adds to the time of frames: latency with bounds, loss, throughput, the
//! shares of a fan-in; or the same of two captures taken on both sides.
//!
//! The box, a bare link in its place (back to back) and a delay line whose truth is known are measured
//! in interleaved rounds, in an order that the seed draws. Each measurement is a process of this program
//! with a run directory of its own; what is judged is read from those directories alone. A frame's
//! measured time M is T + E, the box's and everything else; the smallest E comes from the bare link, which
//! has a hop less, and its quantiles from the delay line, whose own receiving and sending is among them.
//! So the bounds hold whether T and E depend on each other or not.
//!
//! Guarantees: whatever is set up for it goes with it, also after a crash; a process that was started for
//! it ends with it; everything has an end in time. What cannot be done here is refused by name.

pub mod captures;
mod configured;
mod errors;
pub mod fan_in;
mod judge;
mod outcome;
mod place;
mod plan;
mod question;
mod recording;
mod seen;
mod the_box;
mod throughput;
mod words;

pub use captures::{CaptureQuestion, Changed, Stamped, record as record_captures};
pub use fan_in::{FanInOver, FanInQuestion, RealPorts};
pub use outcome::DeviceError;
pub use question::{LineBetween, Question, Searching};
pub use recording::record;
pub use the_box::{Driver, TheBox, TheBoxError};

/// Sizes of frames in bytes, check sequence included, that RFC 2544 (section 9.1) names for Ethernet.
pub const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
