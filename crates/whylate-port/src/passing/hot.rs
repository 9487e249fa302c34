//! The path of frames from one port to another: what is done for each of them.
//!
//! A burst is looked at where it lies, and each frame is copied once, into the other ring. Both ports may
//! be of any backend, but none is asked for a frame by way of a table: [`gather`] is compiled for the one
//! and [`take_in`] for the other, and a burst takes one call between them. There is no allocation and no
//! reading of the counter. Nothing is fetched ahead: the copy reads a frame from its beginning on, which
//! the processor fetches ahead by itself, and the slot that it writes to was the ring's oldest.
//!
//! `cargo xtask asm gather` and `cargo xtask asm take_in` print what became of it.

use whylate_model::Nanos;

use super::{Carried, Counts, Failure, Room, STATIONS};
use crate::frame::{ETHERNET, TAG, Tag};
use crate::frames::{Arrival, BURST, Frames};

/// Frames of a burst that is shown in a small row: to fill a large one takes longer than to carry one
/// frame.
const FEW: usize = 8;

/// Looks once, and carries what came to `to`; how many frames that were.
#[inline]
pub fn pass<F>(
    from: &mut F,
    to: &mut dyn Frames,
    room: Room,
    counts: &mut Counts,
) -> Result<usize, Failure>
where
    F: Frames + ?Sized,
{
    let burst = from.receive(Nanos(0)).map_err(Failure::receiving)?;
    if burst.count > 0 {
        from.carry(burst.count, to, room, counts);
        to.flush().map_err(Failure::sending)?;
    }
    Ok(burst.count)
}

/// Shows the `frames` frames of the last burst of `from` to `to`, which takes them in: see
/// [`Frames::carry`].
#[inline(never)]
pub fn gather<F>(
    from: &F,
    frames: usize,
    to: &mut dyn Frames,
    room: Room,
    counts: &mut Counts,
) -> u64
where
    F: Frames + ?Sized,
{
    debug_assert!(frames <= BURST, "a look takes a burst at most");
    if frames <= FEW {
        gather_most::<F, FEW>(from, frames, to, room, counts)
    } else {
        gather_most::<F, BURST>(from, frames, to, room, counts)
    }
}

#[inline]
fn gather_most<F, const MOST: usize>(
    from: &F,
    frames: usize,
    to: &mut dyn Frames,
    room: Room,
    counts: &mut Counts,
) -> u64
where
    F: Frames + ?Sized,
{
    let mut row = [Carried { bytes: &[], stripped: None }; MOST];
    let row = &mut row[..frames.min(MOST)];
    for (at, place) in row.iter_mut().enumerate() {
        let Arrival { bytes, stripped, .. } = from.frame(at);
        *place = Carried { bytes, stripped };
    }
    to.take_in(row, room, counts)
}

/// Copies frames into the sending ring of `to`, with the tags that the kernel took out, and counts them.
/// Nothing is handed over yet. Says which of them are to leave: bit 0 is the first.
#[inline(never)]
pub fn take_in<T>(to: &mut T, burst: &[Carried<'_>], room: Room, counts: &mut Counts) -> u64
where
    T: Frames + ?Sized,
{
    let mut leaving = 0;
    counts.bursts += 1;
    counts.received += burst.len() as u64;
    for (at, frame) in burst.iter().enumerate() {
        let length = frame.length();
        counts.received_bytes += length as u64;
        if frame.bytes.len() < ETHERNET {
            counts.runts += 1;
        } else if !room.holds(length, frame.bytes, frame.stripped) {
            counts.too_long += 1;
        } else if let Some(place) = to.put(length) {
            write(place, frame.bytes, frame.stripped);
            counts.forwarded += 1;
            counts.forwarded_bytes += length as u64;
            leaving |= 1_u64.wrapping_shl(at as u32);
        } else {
            counts.ring_full += 1;
        }
    }
    leaving
}

/// Writes a frame as it was sent: what is left out of the ring goes back to its place. The place has to
/// have the frame's length.
#[inline]
pub fn write(place: &mut [u8], bytes: &[u8], stripped: Option<Tag>) {
    let Some(tag) = stripped else { return place.copy_from_slice(bytes) };
    let (stations, behind) = place.split_at_mut(STATIONS);
    let (between, rest) = behind.split_at_mut(TAG);
    stations.copy_from_slice(&bytes[..STATIONS]);
    between.copy_from_slice(&tag.bytes());
    rest.copy_from_slice(&bytes[STATIONS..]);
}
