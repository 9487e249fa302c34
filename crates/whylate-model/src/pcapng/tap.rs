//! What a tap saw, as a capture file that other tools open: frames as they came by, when, and how many
//! were lost.
//!
//! Guarantees: the file is whole after each block that was written, and has an end ([`MOST_BYTES`]):
//! frames beyond it are counted.

use std::io::{self, Write};

use super::{
    COMMENT, Direction, ENHANCED, INTERFACE, INTERFACE_NAME, INTERFACE_RESOLUTION, PACKET_FLAGS,
    SECTION, block, end, option, pad, section,
};

const STATISTICS: u32 = 5;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;

/// Frames of Ethernet.
const LINK_ETHERNET: u16 = 1;

/// Bytes of such a file at most: some ten million requests with their replies.
pub const MOST_BYTES: u64 = 4 << 30;

/// A capture in the making.
#[derive(Debug)]
pub struct TapWriter<W> {
    to: W,
    block: Vec<u8>,
    content: Vec<u8>,
    written: u64,
    packets: u64,
    /// Frames that the file had no room for.
    unwritten: u64,
}

impl<W: Write> TapWriter<W> {
    /// Begins a file of what one interface sees, whose own comment this is; `kept` bytes of each frame
    /// are kept at most.
    pub fn new(to: W, comment: &str, interface: &str, kept: u32) -> io::Result<Self> {
        let (block, content) = (Vec::new(), Vec::new());
        let mut file = Self { to, block, content, written: 0, packets: 0, unwritten: 0 };
        file.content = section(comment);
        file.write(SECTION)?;
        file.content.extend(LINK_ETHERNET.to_le_bytes());
        file.content.extend([0, 0]);
        file.content.extend(kept.to_le_bytes());
        option(&mut file.content, INTERFACE_NAME, interface.as_bytes());
        option(&mut file.content, INTERFACE_RESOLUTION, &[9]);
        end(&mut file.content);
        file.write(INTERFACE)?;
        Ok(file)
    }

    /// Adds a frame of which these bytes were kept.
    pub fn frame(
        &mut self,
        at_ns: u64,
        direction: Direction,
        bytes: &[u8],
        length: u32,
    ) -> io::Result<()> {
        if self.written >= MOST_BYTES {
            self.unwritten += 1;
            return Ok(());
        }
        let [high, low] = [(at_ns >> 32) as u32, at_ns as u32];
        let kept = bytes.len() as u32;
        for number in [0, high, low, kept, length.max(kept)] {
            self.content.extend(number.to_le_bytes());
        }
        self.content.extend(bytes);
        pad(&mut self.content);
        let flags: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        option(&mut self.content, PACKET_FLAGS, &flags.to_le_bytes());
        end(&mut self.content);
        self.packets += 1;
        self.write(ENHANCED)
    }

    /// Frames that the file had no room for.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Ends it with how many frames were lost by that time; gives back where it was written to.
    pub fn finish(mut self, at_ns: u64, lost: u64) -> io::Result<W> {
        for number in [0, (at_ns >> 32) as u32, at_ns as u32] {
            self.content.extend(number.to_le_bytes());
        }
        if self.unwritten > 0 {
            let comment = format!("{} more frames had no room in this file", self.unwritten);
            option(&mut self.content, COMMENT, comment.as_bytes());
        }
        let received = self.packets + self.unwritten + lost;
        option(&mut self.content, STATISTICS_RECEIVED, &received.to_le_bytes());
        option(&mut self.content, STATISTICS_DROPPED, &lost.to_le_bytes());
        end(&mut self.content);
        self.write(STATISTICS)?;
        self.to.flush()?;
        Ok(self.to)
    }

    /// Writes the content as a block of this kind.
    fn write(&mut self, kind: u32) -> io::Result<()> {
        self.block.clear();
        block(&mut self.block, kind, &self.content);
        self.content.clear();
        self.to.write_all(&self.block)?;
        self.written += self.block.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_length_at_both_ends_and_the_frames_their_times() {
        let mut file = TapWriter::new(Vec::new(), "planted", "to-client", 1_952).unwrap();
        let at = 1_700_000_000_123_456_789;
        file.frame(at, Direction::Inbound, b"abcde", 9).unwrap();
        let bytes = file.finish(at + 1, 3).unwrap();
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut place, mut kinds) = (0, Vec::new());
        while place < bytes.len() {
            let length = number(place + 4);
            assert_eq!((length % 4, length), (0, number(place + length as usize - 4)));
            kinds.push(number(place));
            if number(place) == ENHANCED {
                let told = u64::from(number(place + 12)) << 32 | u64::from(number(place + 16));
                assert_eq!((told, number(place + 20), number(place + 24)), (at, 5, 9));
                assert_eq!(bytes[place + 28..place + 36], *b"abcde\0\0\0");
            }
            place += length as usize;
        }
        assert_eq!(kinds, [SECTION, INTERFACE, ENHANCED, STATISTICS]);
    }
}
