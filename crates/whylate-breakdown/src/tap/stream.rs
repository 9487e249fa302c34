//! The messages of one way of a TCP stream, found by their bytes.
//!
//! Segments are neither messages nor parts of them: several messages come in one, one in several. Where
//! the next message begins is known from the stream's beginning, or from a segment that begins with a
//! message. After a gap it is not known until such a segment comes; what came by before is not timed.

use whylate_model::tap::{HEADING_BYTES, Heading};

use super::wire::Content;

/// What a segment was to its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// What follows the one before it, or nothing but a flag.
    New,
    /// Bytes that had come by already, all or some.
    Again,
    /// Bytes that had been missing.
    Late,
    /// Bytes before it are missing.
    Gap,
}

/// Where the next byte of a stream lies.
#[derive(Debug)]
enum Place {
    /// Not known.
    Lost,
    /// At the beginning of a message, of which these bytes have come by.
    Begins(Vec<u8>),
    /// Within this one, so many bytes before its end.
    Within(Heading, u32),
}

/// One way of a stream.
#[derive(Debug)]
pub struct Stream {
    /// The number of the next byte; none before the first segment.
    next: Option<u32>,
    /// Bytes that were passed over: from, to. The last such place.
    missing: Option<(u32, u32)>,
    place: Place,
    unframed: u64,
}

type Reads<'a> = &'a dyn Fn(&[u8]) -> Option<Heading>;

impl Default for Stream {
    /// One of which nothing has come by.
    fn default() -> Self {
        Self { next: None, missing: None, place: Place::Lost, unframed: 0 }
    }
}

impl Stream {
    /// Times since the last call at which it was not known any more where messages begin.
    pub fn take_unframed(&mut self) -> u64 {
        std::mem::take(&mut self.unframed)
    }

    /// The next segment; each message that ends in it is given to `passed`.
    pub fn segment(
        &mut self,
        content: &Content<'_>,
        read: Reads<'_>,
        passed: &mut dyn FnMut(Heading),
    ) -> Passing {
        let Content::Segment { sequence, begins, bytes, length } = *content else {
            return Passing::New;
        };
        if begins {
            self.next = Some(sequence.wrapping_add(1));
            self.missing = None;
            self.place = Place::Begins(Vec::new());
            return Passing::New;
        }
        if length == 0 {
            return Passing::New;
        }
        let end = sequence.wrapping_add(length);
        let Some(next) = self.next else {
            // Captured from its middle on.
            self.next = Some(end);
            self.follow(bytes, 0, length, read, passed);
            return Passing::New;
        };
        let ahead = sequence.wrapping_sub(next).cast_signed();
        let beyond = end.wrapping_sub(next).cast_signed();
        if beyond <= 0 {
            return self.before(sequence, end);
        }
        self.next = Some(end);
        match ahead {
            0 => {
                self.follow(bytes, 0, length, read, passed);
                Passing::New
            }
            1.. => {
                self.missing = Some((next, sequence));
                self.lose();
                self.follow(bytes, 0, length, read, passed);
                Passing::Gap
            }
            _ => {
                self.follow(bytes, ahead.unsigned_abs(), length, read, passed);
                Passing::Again
            }
        }
    }

    /// A segment of which nothing is new.
    fn before(&mut self, sequence: u32, end: u32) -> Passing {
        let within = |(from, to): (u32, u32)| {
            sequence.wrapping_sub(from).cast_signed() >= 0
                && to.wrapping_sub(end).cast_signed() >= 0
        };
        match self.missing {
            Some(missing) if within(missing) => {
                // The same bytes once more are no news.
                self.missing = Some((end, missing.1)).filter(|(from, to)| from != to);
                Passing::Late
            }
            _ => Passing::Again,
        }
    }

    fn lose(&mut self) {
        if !matches!(self.place, Place::Lost) {
            self.unframed += 1;
            self.place = Place::Lost;
        }
    }

    /// Goes through a segment's bytes from `at` on, of which only the first may have been kept.
    fn follow(
        &mut self,
        bytes: &[u8],
        mut at: u32,
        length: u32,
        read: Reads<'_>,
        passed: &mut dyn FnMut(Heading),
    ) {
        if matches!(self.place, Place::Lost) {
            let begins = at == 0 && read(first(bytes)).is_some();
            if !begins {
                return;
            }
            self.place = Place::Begins(Vec::new());
        }
        while at < length {
            match &mut self.place {
                Place::Lost => return,
                Place::Within(heading, left) => {
                    let step = (*left).min(length - at);
                    (*left, at) = (*left - step, at + step);
                    if *left == 0 {
                        passed(*heading);
                        self.place = Place::Begins(Vec::new());
                    }
                }
                Place::Begins(before) => {
                    let had = before.len();
                    let here = bytes.get(at as usize..).unwrap_or_default();
                    let here = &here[..here.len().min((length - at) as usize)];
                    before.extend(&here[..here.len().min(HEADING_BYTES - had)]);
                    match read(before) {
                        Some(heading) if heading.length as usize > had => {
                            let left = heading.length - had as u32;
                            self.place = Place::Within(heading, left);
                        }
                        // More bytes may tell, and all that are in the segment were seen.
                        None if before.len() < HEADING_BYTES
                            && here.len() == (length - at) as usize =>
                        {
                            return;
                        }
                        _ => return self.lose(),
                    }
                }
            }
        }
    }
}

fn first(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(HEADING_BYTES)]
}
