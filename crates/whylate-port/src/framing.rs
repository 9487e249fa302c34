//! Where messages end in a stream of bytes.

/// Where the first message of a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// The first message has so many bytes in all.
    Length(usize),
    /// More bytes are needed to tell.
    Unknown,
    /// No message begins like this: the stream cannot be followed any further.
    Broken,
}

/// Tells where the first message of a stream ends, from the bytes that have come so far. A port
/// does not know what is in a message: whoever opens it brings this along.
pub type Framing = fn(&[u8]) -> Frame;
