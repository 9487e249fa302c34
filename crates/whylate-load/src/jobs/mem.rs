//! A stream over a buffer that no cache holds.

use std::hint::black_box;

use crate::child::Meter;
use crate::error::LoadError;

/// Words between two looks at the end: half a mebibyte.
const CHUNK: usize = 64 << 10;

/// Reads and writes each word of a buffer, over and over; counts bytes read and bytes written.
pub(super) fn stream(bytes: u64, meter: &Meter) -> Result<(), LoadError> {
    let words = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
    let mut buffer: Vec<u64> = Vec::new();
    buffer.try_reserve_exact(words).map_err(|_| LoadError::Work {
        what: "take memory for a stream",
        source: std::io::ErrorKind::OutOfMemory.into(),
    })?;
    buffer.resize(words, 1);
    while !meter.stopped() {
        for chunk in buffer.chunks_mut(CHUNK) {
            for word in chunk.iter_mut() {
                *word = word.wrapping_mul(3);
            }
            meter.add(2 * 8 * black_box(chunk).len() as u64);
            if meter.stopped() {
                break;
            }
        }
    }
    Ok(())
}
