//! The packets of a capture with what they hold, as a tap between two ends has seen them.
//!
//! Guarantees: any bytes give packets or a reason; memory does not grow with the file. Packets come in
//! the order of the file, whose times may go back: cards and kernels write by several queues.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use whylate_model::Nanos;

use super::input::{Fault, Input};
use super::{CaptureError, Cut, Raw, Taker, all, plain};

/// Bytes of a packet that are kept at most: a whole frame, and the beginning of one that a card is
/// still to cut into several.
pub const MOST_KEPT: u32 = 1 << 16;

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was seen, since 1970, by the clock of whoever captured it.
    pub at: Nanos,
    /// What it begins with, by the numbers of link types at tcpdump.org.
    pub link: u16,
    /// Its bytes, as far as they were captured and are kept.
    pub bytes: &'a [u8],
    /// How many it had.
    pub length: u32,
}

/// What is known of a capture beside its packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureFacts {
    /// Its format by name: `pcap`, `pcapng`, `ERF`.
    pub format: &'static str,
    /// The coarsest step of its times, in picoseconds; 0 of a capture without packets. It is that of the
    /// format: a clock may be coarser.
    pub resolution_ps: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that whoever captured it says were lost.
    pub lost: u64,
    /// Records that hold no packet which can be read.
    pub skipped: u64,
    /// Packets whose time is before that of the one before them.
    pub back: u64,
    /// Did the file end in the middle of something?
    pub was_cut: bool,
    /// Bytes at its end that belong to what is not whole, and were not taken.
    pub cut_bytes: u64,
}

struct Reader<'a> {
    facts: CaptureFacts,
    last: u64,
    each: &'a mut dyn FnMut(&Packet<'_>),
}

impl Taker for Reader<'_> {
    const WANTED: u32 = MOST_KEPT;

    fn format(&mut self, name: &'static str) {
        self.facts.format = name;
    }

    fn packet(&mut self, raw: &Raw<'_>) -> Result<(), Fault> {
        let Ok(at) = u64::try_from(raw.at.div_euclid(1_000)) else {
            let what = "a packet that was seen before 1970, or centuries from now".to_owned();
            return Err(Fault::Damaged(what));
        };
        self.facts.packets += 1;
        self.facts.back += u64::from(at < self.last);
        self.facts.resolution_ps = self.facts.resolution_ps.max(raw.resolution_ps);
        self.last = at;
        let Raw { link, bytes, length, .. } = *raw;
        (self.each)(&Packet { at: Nanos(at), link, bytes, length });
        Ok(())
    }

    fn lost(&mut self, packets: u64) {
        self.facts.lost = self.facts.lost.saturating_add(packets);
    }

    fn skipped(&mut self) {
        self.facts.skipped += 1;
    }
}

/// Gives each packet of a capture file to `each`; a file that is named `.erf` and begins like no other
/// is taken for ERF.
///
/// # Errors
/// A file that cannot be read, is no capture, is damaged, cut (where that is refused), or too large.
pub fn packets(
    path: &Path,
    cut: Cut,
    each: &mut dyn FnMut(&Packet<'_>),
) -> Result<CaptureFacts, CaptureError> {
    let file: File = plain(path)?;
    packets_of(path, BufReader::with_capacity(1 << 16, file), cut, each)
}

/// As [`packets`], from anything; `path` names it in errors, and tells ERF.
///
/// # Errors
/// As [`packets`].
pub fn packets_of(
    path: &Path,
    from: impl Read,
    cut: Cut,
    each: &mut dyn FnMut(&Packet<'_>),
) -> Result<CaptureFacts, CaptureError> {
    let mut reader = Reader { facts: CaptureFacts::default(), last: 0, each };
    let mut input = Input::new(from);
    match all(path, &mut input, &mut reader) {
        Ok(()) => (),
        Err(Fault::Ends(_)) if cut == Cut::Taken => {
            reader.facts.was_cut = true;
            reader.facts.cut_bytes = input.behind();
        }
        Err(fault) => {
            let packets = usize::try_from(reader.facts.packets).unwrap_or(usize::MAX);
            return Err(CaptureError::of(path, fault, packets));
        }
    }
    Ok(reader.facts)
}
