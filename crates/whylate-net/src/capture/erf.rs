//! ERF, as capture cards of Endace write it: records of a time, a type and a length, one behind the
//! other. Nothing begins such a file, so that only its name tells what it is.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | seconds since 1970 with 32 bits before the point and 32 behind it, little-endian |
//! | 8 | type; its highest bit: headers of 8 bytes follow, each with such a bit |
//! | 9 | flags |
//! | 10..12 | length of the record, big-endian |
//! | 12..14 | packets that were lost since the record before; a colour in records of some types |
//! | 14..16 | length of the packet as it was |
//!
//! Frames of Ethernet have two bytes of padding before them. Records of other types are counted and
//! passed over, as are frames that the card received with an error. (Extensible Record Format,
//! Endace)

use std::io::Read;
use std::path::Path;

use super::input::{Fault, Input};
use super::{Raw, Taker};

const HEADER: u16 = 16;
const EXTENSION: u16 = 8;
/// Before a frame of Ethernet.
const PADDING: u16 = 2;

const ETHERNET: u8 = 2;
/// With a colour where others have their losses.
const COLOURED: [u8; 3] = [11, 16, 20];
const MORE: u8 = 0x80;
/// Flags of a frame that was received wrongly, by the card's word or by its own fault.
const WRONG: u8 = 0x30;

/// What kind of link its frames are from, by the numbers of tcpdump.org.
const LINK_ETHERNET: u16 = 1;
/// 2^-32 of a second, rounded up.
const RESOLUTION_PS: u64 = 233;

const RECORD: &str = "a record";

/// Does its name say that it is one?
pub(super) fn is_named(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("erf"))
}

/// Reads records, of which the first begins with these bytes.
pub(super) fn packets<R: Read, T: Taker>(
    begin: [u8; 4],
    input: &mut Input<R>,
    taker: &mut T,
) -> Result<(), Fault> {
    taker.format("ERF");
    let mut next = Some(begin);
    while let Some(begin) = next {
        let behind = input.must::<12>(RECORD)?;
        let (mut time, mut header) = ([0; 8], [0; 8]);
        time[..4].copy_from_slice(&begin);
        time[4..].copy_from_slice(&behind[..4]);
        header.copy_from_slice(&behind[4..]);
        record(u64::from_le_bytes(time), header, input, taker)?;
        input.is_whole();
        next = input.next::<4>(RECORD)?;
    }
    Ok(())
}

fn record<R: Read, T: Taker>(
    time: u64,
    header: [u8; 8],
    input: &mut Input<R>,
    taker: &mut T,
) -> Result<(), Fault> {
    let [kind, flags, high, low, lost_high, lost_low, wire_high, wire_low] = header;
    let whole = u16::from_be_bytes([high, low]);
    let short = || Fault::Damaged(format!("a record of {whole} bytes, too few for its headers"));
    let mut left = whole.checked_sub(HEADER).ok_or_else(short)?;
    let mut more = kind & MORE != 0;
    while more {
        left = left.checked_sub(EXTENSION).ok_or_else(short)?;
        let [first, ..] = input.must::<8>(RECORD)?;
        more = first & MORE != 0;
    }
    let kind = kind & !MORE;
    if kind == ETHERNET {
        taker.lost(u64::from(u16::from_be_bytes([lost_high, lost_low])));
    } else if !COLOURED.contains(&kind) {
        taker.skipped();
        return input.skip(u32::from(left), RECORD);
    }
    left = left.checked_sub(PADDING).ok_or_else(short)?;
    input.skip(u32::from(PADDING), RECORD)?;
    input.keep(u32::from(left), T::WANTED, RECORD)?;
    if flags & WRONG != 0 {
        taker.skipped();
        return Ok(());
    }
    let length = u16::from_be_bytes([wire_high, wire_low]);
    // Behind the frame there may be bytes that fill the record up.
    let kept = input.kept();
    let bytes = kept.get(..usize::from(length)).unwrap_or(kept);
    let at = (i128::from(time) * 1_000_000_000_000) >> 32;
    let length = u32::from(length);
    taker.packet(&Raw { at, resolution_ps: RESOLUTION_PS, link: LINK_ETHERNET, bytes, length })
}
