//! Reading the HdrHistogram V2 format, as data from an untrusted file.
//!
//! Guarantees: never panics, never loops, allocates nothing in proportion to what a header claims.
//! The hdrhistogram crate writes the format for us; its reader is not used because it reserves the
//! payload length a header claims (up to 4 GiB) before it looks, and negates counts unchecked.
//!
//! Layout (HdrHistogram's `V2EncodingCookieBase`, all big endian): cookie u32, payload length u32,
//! normalising offset u32, significant digits u32, lowest u64, highest u64, conversion ratio f64;
//! then zig-zag LEB128 numbers of at most 9 bytes: a count of the next bin, or, when negative, how
//! many empty bins to skip.

use crate::error::StatsError;
use crate::histogram::{BINS, HIGHEST_NS, SIGNIFICANT_DIGITS};

const COOKIE: u32 = 0x1c84_9303 | 0x10;
const HEADER: usize = 40;

/// Reads a histogram of whylate's own layout; calls `bin(index, count)` for each occupied bin in
/// ascending order. The sum of the counts is below 2^63.
pub(crate) fn decode(bytes: &[u8], mut bin: impl FnMut(usize, u64)) -> Result<(), StatsError> {
    let payload = payload(bytes)?;
    let (mut at, mut index, mut total) = (0usize, 0usize, 0u64);
    while at < payload.len() {
        let number = number(payload, &mut at)
            .ok_or(StatsError::Truncated { have: bytes.len(), need: bytes.len() + 1 })?;
        let past_the_end = StatsError::TooManyBins { bins: BINS };
        if number < 0 {
            let skip = usize::try_from(number.unsigned_abs()).map_err(|_| past_the_end.clone())?;
            index = index.checked_add(skip).filter(|&i| i <= BINS).ok_or(past_the_end)?;
            continue;
        }
        if index >= BINS {
            return Err(past_the_end);
        }
        let count = number.unsigned_abs();
        if count > 0 {
            total = total
                .checked_add(count)
                .filter(|&t| i64::try_from(t).is_ok())
                .ok_or(StatsError::CountOverflow { bin: index })?;
            bin(index, count);
        }
        index += 1;
    }
    Ok(())
}

/// Checks the header; what follows it.
fn payload(bytes: &[u8]) -> Result<&[u8], StatsError> {
    let short = StatsError::Truncated { have: bytes.len(), need: HEADER };
    let (header, rest) = bytes.split_at_checked(HEADER).ok_or(short)?;
    let u32_at = |at: usize| header[at..at + 4].iter().fold(0u32, |n, &b| n << 8 | u32::from(b));
    let u64_at = |at: usize| u64::from(u32_at(at)) << 32 | u64::from(u32_at(at + 4));
    if u32_at(0) != COOKIE {
        return Err(StatsError::NotV2 { cookie: u32_at(0), expected: COOKIE });
    }
    let (digits, low, high) = (u32_at(12), u64_at(16), u64_at(24));
    let own = digits == u32::from(SIGNIFICANT_DIGITS) && low == 1 && high == HIGHEST_NS;
    let plain = u32_at(8) == 0 && u64_at(32) == 1.0f64.to_bits();
    if !own || !plain {
        return Err(StatsError::OtherLayout { low, high, digits });
    }
    let length = u32_at(4) as usize;
    match length.cmp(&rest.len()) {
        std::cmp::Ordering::Equal => Ok(rest),
        std::cmp::Ordering::Less => Err(StatsError::TooManyBins { bins: BINS }),
        std::cmp::Ordering::Greater => {
            Err(StatsError::Truncated { have: bytes.len(), need: HEADER + length })
        }
    }
}

/// One zig-zag LEB128 number: seven bits a byte, low first, the ninth byte whole.
fn number(payload: &[u8], at: &mut usize) -> Option<i64> {
    let mut raw = 0u64;
    for place in 0..9 {
        let byte = *payload.get(*at)?;
        *at += 1;
        if place == 8 {
            raw |= u64::from(byte) << 56;
        } else {
            raw |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
}
