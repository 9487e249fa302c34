//! When the packets of a capture file were seen, so that requests can leave at the same distances; and
//! what they hold ([`seen`]), where the capture is a tap's.
//!
//! pcap in microseconds and nanoseconds, and pcapng with whatever resolution its interfaces tell,
//! each in either byte order; ERF, in files that are named so. For a replay only times and lengths are
//! read: what packets hold is passed over. Nothing is uncompressed.
//!
//! Guarantees: any bytes give instants or a reason with the number of the packet; memory is 8 bytes
//! for each packet and has an end ([`MOST_PACKETS`]); instants never go back.

mod erf;
mod input;
mod pcap;
mod pcapng;
pub mod seen;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whylate_model::Nanos;

use crate::schedule::{Arrivals, Picos};

use input::{Fault, Input};

/// Packets of a capture at most: their instants take 80 MB.
pub const MOST_PACKETS: usize = 10_000_000;
/// Bytes of a capture at most: that many packets of 6 KiB.
pub const MOST_BYTES: u64 = 1 << 36;
/// A packet that says that it is longer is damaged: those of USB captures have up to 128 MiB.
const LONGEST: u32 = 1 << 28;

/// Why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be read.
    #[error("cannot read the capture {path}: {why}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: std::io::Error,
    },
    /// It is a directory, a pipe or a device.
    #[error("cannot replay {path}: it is no plain file; write the capture into one first")]
    NotAPlainFile {
        /// The file.
        path: PathBuf,
    },
    /// It is something else.
    #[error(
        "{path} is no capture that can be replayed: it begins like neither pcap nor pcapng, and \
         is not named .erf; if it is compressed, unpack it, otherwise convert it with editcap"
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// It ends in the middle of something.
    #[error(
        "{path} is truncated: it ends in the middle of {place}, after {packets} whole packets; \
         copy it again, or replay those with capture({path},cut)"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Of what.
        place: &'static str,
        /// Packets before.
        packets: usize,
    },
    /// A packet is earlier than the one before it.
    #[error(
        "{path} goes back in time: packet {packet} was seen {by} before the one before it; put \
         its packets in order with reordercap, and replay that"
    )]
    GoesBack {
        /// The file.
        path: PathBuf,
        /// Its number, from 1.
        packet: usize,
        /// By how much.
        by: Nanos,
    },
    /// What stands there cannot be.
    #[error("{path} is damaged: {what}, after {packets} whole packets")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// Packets before.
        packets: usize,
    },
    /// More than is taken.
    #[error("{path} is too large: it has more than {limit}; cut a part out of it with editcap")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Than what.
        limit: String,
    },
    /// There is no distance in it.
    #[error(
        "{path} has {packets} packets and no distance between two of them: a replay needs two \
         packets at different times"
    )]
    NoDistance {
        /// The file.
        path: PathBuf,
        /// Packets.
        packets: usize,
    },
}

/// What to do with a file that ends in the middle of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// It is refused.
    Refused,
    /// Its whole packets are taken.
    Taken,
}

/// When the packets of a file were seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Since the first one.
    pub instants: Arc<[Picos]>,
    /// Did the file end in the middle of something?
    pub was_cut: bool,
}

impl Capture {
    /// Reads a capture file.
    ///
    /// # Errors
    /// A file that cannot be read, is none, is damaged or too large, goes back in time, or has no two
    /// packets at different times.
    pub fn read(path: &Path, cut: Cut) -> Result<Self, CaptureError> {
        let file = plain(path)?;
        Self::parse(path, BufReader::with_capacity(1 << 16, file), cut)
    }

    /// Reads a capture from anything; `path` names it in errors.
    ///
    /// # Errors
    /// As [`Capture::read`].
    pub fn parse(path: &Path, from: impl Read, cut: Cut) -> Result<Self, CaptureError> {
        let mut instants = Instants::default();
        let mut input = Input::new(from);
        let was_cut = match all(path, &mut input, &mut instants) {
            Ok(()) => false,
            Err(Fault::Ends(_)) if cut == Cut::Taken => true,
            Err(fault) => {
                return Err(CaptureError::of(path, fault, instants.since_first.len()));
            }
        };
        let packets = instants.since_first.len();
        match instants.since_first.last() {
            Some(Picos(1..)) => Ok(Self { instants: instants.since_first.into(), was_cut }),
            _ => Err(CaptureError::NoDistance { path: path.to_owned(), packets }),
        }
    }

    /// The pattern that repeats it.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        Arrivals::Capture { instants: Arc::clone(&self.instants) }
    }

    /// From the first packet to the last.
    #[must_use]
    pub fn lasts(&self) -> Nanos {
        Nanos(self.instants.last().map_or(0, |last| last.0 / 1_000))
    }
}

/// A packet as a format tells it.
struct Raw<'a> {
    /// In picoseconds of whatever the file counts from.
    at: i128,
    /// The smallest step of such times.
    resolution_ps: u64,
    link: u16,
    /// As many as were wanted and captured.
    bytes: &'a [u8],
    length: u32,
}

/// What is done with the packets of a capture.
trait Taker {
    /// Bytes of each packet that are wanted at most.
    const WANTED: u32;

    /// The file is of this format.
    fn format(&mut self, _name: &'static str) {}

    /// The next packet.
    fn packet(&mut self, packet: &Raw<'_>) -> Result<(), Fault>;

    /// So many packets more were lost by whoever captured.
    fn lost(&mut self, _packets: u64) {}

    /// A record holds no packet that can be read.
    fn skipped(&mut self) {}
}

/// Opens a plain file.
fn plain(path: &Path) -> Result<File, CaptureError> {
    let unreadable = |why| CaptureError::Unreadable { path: path.to_owned(), why };
    // A pipe without a writer would never be opened.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(CaptureError::NotAPlainFile { path: path.to_owned() });
    }
    File::open(path).map_err(unreadable)
}

fn all<R: Read, T: Taker>(path: &Path, input: &mut Input<R>, taker: &mut T) -> Result<(), Fault> {
    let Some(magic) = input.next::<4>("its header")? else { return Err(Fault::Unknown) };
    match pcap::Format::of(magic) {
        Some(format) => format.packets(input, taker),
        None if magic == pcapng::SECTION => pcapng::packets(input, taker),
        None if erf::is_named(path) => erf::packets(magic, input, taker),
        None => Err(Fault::Unknown),
    }
}

impl CaptureError {
    /// What stood in the way, after so many whole packets.
    fn of(path: &Path, fault: Fault, packets: usize) -> Self {
        let path = path.to_owned();
        match fault {
            Fault::Io(why) => Self::Unreadable { path, why },
            Fault::Unknown => Self::Unknown { path },
            Fault::Ends(place) => Self::Truncated { path, place, packets },
            Fault::GoesBack(by) => Self::GoesBack { path, packet: packets + 1, by },
            Fault::Damaged(what) => Self::Damaged { path, what, packets },
            Fault::TooLarge(limit) => Self::TooLarge { path, limit },
        }
    }
}

/// The instants so far.
#[derive(Default)]
struct Instants {
    first: Option<i128>,
    since_first: Vec<Picos>,
}

impl Taker for Instants {
    const WANTED: u32 = 0;

    fn packet(&mut self, packet: &Raw<'_>) -> Result<(), Fault> {
        let at = packet.at;
        let first = *self.first.get_or_insert(at);
        let before = self.since_first.last().map_or(0, |last| last.0);
        let since = at - first;
        if since < i128::from(before) {
            let by = (i128::from(before) - since) / 1_000;
            return Err(Fault::GoesBack(Nanos(u64::try_from(by).unwrap_or(u64::MAX))));
        }
        let Ok(since) = u64::try_from(since) else {
            return Err(Fault::TooLarge("213 days from its first packet to its last".to_owned()));
        };
        if self.since_first.len() == MOST_PACKETS {
            return Err(Fault::TooLarge(format!("{MOST_PACKETS} packets")));
        }
        self.since_first.push(Picos(since));
        Ok(())
    }
}
