//! Bytes of a capture in their order, with an end that is either between two things or within one.

use std::io::{ErrorKind, Read};

use whylate_model::Nanos;

use super::{LONGEST, MOST_BYTES};

/// Bytes that are passed over at a time.
const STEP: usize = 1 << 12;

/// What stands in the way of reading on.
pub(super) enum Fault {
    Io(std::io::Error),
    /// It begins like no capture.
    Unknown,
    /// It ends in the middle of this.
    Ends(&'static str),
    /// The next packet is so much before the last one.
    GoesBack(Nanos),
    Damaged(String),
    /// It has more than this.
    TooLarge(String),
}

/// The order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    pub(super) fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Self::Little => i64::from_le_bytes(bytes),
            Self::Big => i64::from_be_bytes(bytes),
        }
    }

    /// Four numbers of 32 bits.
    pub(super) fn four(self, bytes: [u8; 16]) -> [u32; 4] {
        let (parts, _) = bytes.as_chunks::<4>();
        std::array::from_fn(|at| self.u32(parts[at]))
    }
}

/// The bytes.
pub(super) struct Input<R> {
    from: R,
    read: u64,
    /// Where the last thing ended that was read as a whole.
    whole: u64,
    kept: Vec<u8>,
}

impl<R: Read> Input<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, read: 0, whole: 0, kept: Vec::new() }
    }

    /// Everything read so far belongs to what is whole.
    pub(super) fn is_whole(&mut self) {
        self.whole = self.read;
    }

    /// Bytes behind the last thing that was whole.
    pub(super) fn behind(&self) -> u64 {
        self.read.saturating_sub(self.whole)
    }

    /// The next bytes; none where the input ends before the first of them. `what` they belong to.
    pub(super) fn next<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<Option<[u8; N]>, Fault> {
        let mut bytes = [0; N];
        match self.fill(&mut bytes)? {
            0 => Ok(None),
            read if read == N => Ok(Some(bytes)),
            _ => Err(Fault::Ends(what)),
        }
    }

    /// The next bytes, which must be there.
    pub(super) fn must<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Fault> {
        self.next(what)?.ok_or(Fault::Ends(what))
    }

    /// As many bytes as that, which must be there.
    pub(super) fn many(&mut self, count: u32, what: &'static str) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; count as usize];
        if self.fill(&mut bytes)? == bytes.len() { Ok(bytes) } else { Err(Fault::Ends(what)) }
    }

    /// Keeps the first of that many bytes, `wanted` at most, until the next call, and passes over the
    /// others. All of them must be there.
    pub(super) fn keep(
        &mut self,
        count: u32,
        wanted: u32,
        what: &'static str,
    ) -> Result<(), Fault> {
        possible(count, what)?;
        let mut kept = std::mem::take(&mut self.kept);
        kept.resize(count.min(wanted) as usize, 0);
        let filled = self.fill(&mut kept);
        let whole = kept.len();
        self.kept = kept;
        if filled? < whole {
            return Err(Fault::Ends(what));
        }
        self.skip(count - count.min(wanted), what)
    }

    /// What was kept last.
    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Passes over that many bytes, which must be there.
    pub(super) fn skip(&mut self, count: u32, what: &'static str) -> Result<(), Fault> {
        possible(count, what)?;
        let mut bytes = [0; STEP];
        let mut left = count as usize;
        while left > 0 {
            let step = left.min(STEP);
            if self.fill(&mut bytes[..step])? < step {
                return Err(Fault::Ends(what));
            }
            left -= step;
        }
        Ok(())
    }

    /// Fills the buffer as far as the input goes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(Fault::Io(error)),
            }
        }
        self.read += filled as u64;
        if self.read > MOST_BYTES {
            return Err(Fault::TooLarge(format!("{MOST_BYTES} bytes")));
        }
        Ok(filled)
    }
}

fn possible(count: u32, what: &str) -> Result<(), Fault> {
    if count > LONGEST {
        return Err(Fault::Damaged(format!("{what} says that it has {count} bytes")));
    }
    Ok(())
}
