//! Why frames are not held back.

use whylate_model::Nanos;

use super::law::LawError;

/// A delay line that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DelayError {
    /// A law that cannot be kept.
    #[error(transparent)]
    Law(#[from] LawError),
    /// More frames wait than there is room for.
    #[error(
        "a delay of up to {longest} at {rate} holds {needed_frames} frames, {needed_bytes} bytes: beyond \
         the {frames} frames and {bytes} bytes of this line; choose a shorter one, or give it more \
         capacity"
    )]
    BeyondCapacity {
        /// The longest delay.
        longest: Nanos,
        /// The rate at which frames may come, in words.
        rate: String,
        /// Frames that would wait.
        needed_frames: u64,
        /// Bytes of them.
        needed_bytes: u64,
        /// Frames that find room.
        frames: u64,
        /// Bytes that find room.
        bytes: u64,
    },
    /// More datagrams wait than a proxy has room for.
    #[error(
        "a delay of up to {longest} at {rate} holds {needed_messages} messages, {needed_bytes} bytes: \
         beyond the {messages} messages and {bytes} bytes of a proxy; choose a shorter one, or say by \
         --fastest how much slower they come"
    )]
    BeyondProxy {
        /// The longest delay.
        longest: Nanos,
        /// The rate at which datagrams may come, in words.
        rate: String,
        /// Messages that would wait.
        needed_messages: u64,
        /// Bytes of them.
        needed_bytes: u64,
        /// Messages that find room.
        messages: u64,
        /// Bytes that find room.
        bytes: u64,
    },
    /// More memory than a delay line may take.
    #[error(
        "a capacity of {frames} frames and {bytes} bytes for each direction is outside 64 frames to {most} \
         bytes: choose a shorter delay, a lower rate, or a capacity inside"
    )]
    Capacity {
        /// Frames.
        frames: u64,
        /// Bytes.
        bytes: u64,
        /// Bytes at most.
        most: u64,
    },
    /// The ports of a bed in the other order: laws would be of the other directions.
    #[error(
        "`{first}` is the server's side of a bed, and `{second}` the client's: what is set for the way \
         there would hold for the way back; name {second} first"
    )]
    Swapped {
        /// What was named first.
        first: String,
        /// What was named behind it.
        second: String,
    },
    /// There is no such direction.
    #[error("a delay line has the directions 0 and 1, not {0}")]
    NoDirection(usize),
    /// A part of a stream that is lost, doubled or let past others breaks the stream.
    #[error(
        "{0} would break a stream for both ends: tcp has delay and rate alone; take a udp proxy, or \
         frames (--transport)"
    )]
    NotForStreams(&'static str),
}
