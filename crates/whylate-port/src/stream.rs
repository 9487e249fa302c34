//! A stream of bytes as messages.

use whylate_model::Ticks;

use crate::framing::{Frame, Framing};

/// The longest message in a stream: as long as the longest datagram, so that sizes can be compared.
pub(crate) const MAX_MESSAGE: usize = 65_507;
/// Bytes read ahead: a whole message and most of the next one.
const CAPACITY: usize = 2 << 16;

/// Bytes that have come and were not taken yet. Never grows.
#[derive(Debug)]
pub(crate) struct Incoming {
    bytes: Box<[u8]>,
    begin: usize,
    end: usize,
    /// When the last bytes came.
    at: Ticks,
}

/// What there is at the beginning of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A whole message of so many bytes.
    Whole(usize),
    /// Less than a message.
    Part,
    /// No message begins like this.
    Broken,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        let bytes = vec![0; CAPACITY].into_boxed_slice();
        Self { bytes, begin: 0, end: 0, at: Ticks(0) }
    }

    /// Nothing is waiting to be taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    #[inline]
    pub(crate) fn next(&self, framing: Framing) -> Next {
        if self.is_empty() {
            return Next::Part;
        }
        let there = &self.bytes[self.begin..self.end];
        match framing(there) {
            Frame::Length(length) if length == 0 || length > MAX_MESSAGE => Next::Broken,
            Frame::Length(length) if length <= there.len() => Next::Whole(length),
            // A header that does not end is no header.
            Frame::Unknown if there.len() > MAX_MESSAGE => Next::Broken,
            Frame::Length(_) | Frame::Unknown => Next::Part,
            Frame::Broken => Next::Broken,
        }
    }

    /// Room for what comes next.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.is_empty() {
            (self.begin, self.end) = (0, 0);
        } else if self.bytes.len() - self.end < MAX_MESSAGE {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes came at `at`.
    #[inline]
    pub(crate) fn came(&mut self, length: usize, at: Ticks) {
        self.end = (self.end + length).min(self.bytes.len());
        self.at = at;
    }

    /// Takes the message of this length; gives the stamp of the bytes that completed it.
    #[inline]
    pub(crate) fn take(&mut self, length: usize, buffer: &mut [u8]) -> Ticks {
        let kept = length.min(buffer.len());
        buffer[..kept].copy_from_slice(&self.bytes[self.begin..self.begin + kept]);
        self.begin += length;
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first two bytes tell the length.
    fn framing(bytes: &[u8]) -> Frame {
        match bytes {
            [255, ..] => Frame::Broken,
            [high, low, ..] => Frame::Length(usize::from(*high) << 8 | usize::from(*low)),
            _ => Frame::Unknown,
        }
    }

    fn put(incoming: &mut Incoming, bytes: &[u8], at: u64) {
        incoming.room()[..bytes.len()].copy_from_slice(bytes);
        incoming.came(bytes.len(), Ticks(at));
    }

    #[test]
    fn messages_come_whole_however_the_stream_was_cut() {
        let stream: Vec<u8> = (0..600_u16)
            .flat_map(|n| {
                let length = 2 + n % 300;
                let mut message = vec![(length >> 8) as u8, length as u8];
                message.resize(usize::from(length), n as u8);
                message
            })
            .collect();
        for piece in [1, 7, 1_000, 60_000] {
            let (mut incoming, mut taken, mut buffer) = (Incoming::new(), 0_u16, [0; 400]);
            for part in stream.chunks(piece) {
                put(&mut incoming, part, u64::from(taken));
                while let Next::Whole(length) = incoming.next(framing) {
                    incoming.take(length, &mut buffer);
                    assert_eq!(length, usize::from(2 + taken % 300));
                    assert!(buffer[2..length].iter().all(|&byte| byte == taken as u8));
                    taken += 1;
                }
            }
            assert_eq!((taken, incoming.is_empty()), (600, true), "pieces of {piece}");
        }
    }

    #[test]
    fn lengths_that_no_message_has_break_the_stream() {
        for bytes in [[0, 0], [255, 255], [255, 0]] {
            let mut incoming = Incoming::new();
            put(&mut incoming, &bytes, 1);
            assert_eq!(incoming.next(framing), Next::Broken, "{bytes:?}");
        }
        let mut incoming = Incoming::new();
        put(&mut incoming, &[0], 1);
        assert_eq!(incoming.next(framing), Next::Part);
        let endless: Framing = |_| Frame::Unknown;
        put(&mut incoming, &vec![1; MAX_MESSAGE], 1);
        assert_eq!(incoming.next(endless), Next::Broken);
    }

    #[test]
    fn the_longest_message_fits_wherever_it_begins() {
        let mut incoming = Incoming::new();
        let mut long = vec![7; MAX_MESSAGE];
        (long[0], long[1]) = ((MAX_MESSAGE >> 8) as u8, MAX_MESSAGE as u8);
        // The first byte would be 255: one less.
        let length = 0xfe00;
        (long[0], long[1]) = (0xfe, 0);
        let mut buffer = vec![0; MAX_MESSAGE];
        for round in 0..5 {
            put(&mut incoming, &[0, 3, 9], round);
            put(&mut incoming, &long[..length], round + 100);
            assert_eq!(incoming.next(framing), Next::Whole(3));
            incoming.take(3, &mut buffer);
            assert_eq!(incoming.next(framing), Next::Whole(length));
            assert_eq!(incoming.take(length, &mut buffer), Ticks(round + 100));
            assert_eq!(buffer[..length], long[..length]);
        }
    }
}
