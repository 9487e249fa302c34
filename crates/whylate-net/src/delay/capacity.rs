//! How much a direction can hold back at once: bounded memory, from the delay and the rate at which frames
//! may come, or as told.

use whylate_model::Nanos;

use super::error::DelayError;
use super::law::Law;
use crate::schedule::{Layer, Rate};

/// Memory of a direction at most.
pub const MOST_CAPACITY_BYTES: u64 = 4 << 30;
/// Frames of a direction at least: what one look takes.
const FEWEST_FRAMES: u64 = 64;
/// Frames that find room in any case: bursts come at once, however short the delay.
const USUAL_FRAMES: u64 = 1 << 12;
/// Frames come a little faster than their mean rate, and leave a little late.
const SLACK: f64 = 1.25;
/// Bytes of a frame in memory are rounded up to this: one line of a processor's cache.
pub(super) const LINE: usize = 64;
/// Bytes of a frame in memory that is told of by itself.
const RECORD: u64 = 64;
/// The shortest frame, and the longest usual one, without check sequence.
const SHORTEST: u64 = 60;
const LONGEST: u64 = 1_514;
/// Bytes of a frame's check sequence.
pub(super) const CHECK: u32 = 4;
/// Bits of the longest usual frame on the wire.
const LONGEST_BITS: f64 = 8.0 * 1_538.0;

/// What a direction can hold back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Frames.
    pub frames: u64,
    /// Bytes of them, each rounded up to 64.
    pub bytes: u64,
}

impl Default for Capacity {
    /// 4096 frames of any usual length: 6 MiB.
    fn default() -> Self {
        Self { frames: USUAL_FRAMES, bytes: USUAL_FRAMES * room_of(LONGEST) }
    }
}

/// Bytes that a frame of so many takes in memory.
fn room_of(length: u64) -> u64 {
    length.next_multiple_of(LINE as u64)
}

impl Capacity {
    /// What this delay needs where frames come at this rate at most: as many of the shortest as come
    /// meanwhile, and as many bytes of the longest as do; never less than the default.
    #[must_use]
    pub fn of(longest: Nanos, rate: Rate) -> Self {
        let needed = Self::needed(longest, rate);
        let usual = Self::default();
        Self { frames: needed.frames.max(usual.frames), bytes: needed.bytes.max(usual.bytes) }
    }

    /// The same without a least.
    fn needed(longest: Nanos, rate: Rate) -> Self {
        let seconds = longest.0 as f64 / 1e9 * SLACK;
        let frames = (seconds * rate.per_second(SHORTEST as u32 + CHECK)).ceil() as u64;
        // A rate in packets says nothing of their length.
        let long = match rate {
            Rate::Packets(_) | Rate::Every(_) => rate.per_second(LONGEST as u32 + CHECK),
            Rate::Bits(bits, Layer::L1 | Layer::L2) => bits / LONGEST_BITS,
        };
        let long_frames = (seconds * long).ceil() as u64;
        // Short ones take a line of memory each.
        let bytes = (frames * room_of(SHORTEST)).max(long_frames * room_of(LONGEST));
        Self { frames, bytes }
    }

    /// Can it be had?
    ///
    /// # Errors
    /// It is too small for a burst, or more than a delay line may take.
    pub fn check(&self) -> Result<(), DelayError> {
        let Self { frames, bytes } = *self;
        let most = MOST_CAPACITY_BYTES;
        let takes = bytes.saturating_add(frames.saturating_mul(RECORD));
        let enough = frames >= FEWEST_FRAMES && bytes >= FEWEST_FRAMES * room_of(LONGEST);
        if enough && takes <= most {
            return Ok(());
        }
        Err(DelayError::Capacity { frames, bytes, most })
    }

    /// Does a law fit, where frames come at this rate at most? A law with a limit of its own fits where
    /// what may wait for that limit does.
    ///
    /// # Errors
    /// It needs more, and how much there is.
    pub fn holds(&self, law: &Law, rate: Rate) -> Result<(), DelayError> {
        let longest = law.longest();
        let rate = match law.rate {
            Some(limit) if slower(limit.rate, rate) => limit.rate,
            _ => rate,
        };
        let needed = Self::needed(longest, rate);
        if needed.frames <= self.frames && needed.bytes <= self.bytes {
            return Ok(());
        }
        Err(DelayError::BeyondCapacity {
            longest,
            rate: rate.to_string(),
            needed_frames: needed.frames,
            needed_bytes: needed.bytes,
            frames: self.frames,
            bytes: self.bytes,
        })
    }
}

/// Does the first let fewer frames through, short ones and long ones?
fn slower(first: Rate, second: Rate) -> bool {
    [SHORTEST, LONGEST].into_iter().all(|length| {
        let of = |rate: Rate| rate.per_second(length as u32 + CHECK);
        of(first) < of(second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn a_capacity_holds_what_comes_meanwhile_and_never_less_than_a_few_bursts() {
        let ten = Nanos(10_000_000);
        // 14.88 million a second for 10 ms, and a quarter more.
        let of = Capacity::of(ten, rate("10Gbit/s"));
        assert_eq!(of.frames, 186_012);
        assert!(of.bytes >= 12_500_000 && of.bytes < 20_000_000, "{of:?}");
        assert_eq!(Capacity::of(Nanos(1_000), rate("10Gbit/s")), Capacity::default());
        assert_eq!(Capacity::of(ten, rate("1Mpps")).frames, 12_500);
        assert_eq!(of.check(), Ok(()));
    }

    #[test]
    fn a_delay_beyond_the_capacity_is_refused_with_the_capacity() {
        let capacity = Capacity::of(Nanos(10_000), rate("1Mpps"));
        assert_eq!(capacity.holds(&Law::constant(Nanos(10_000)), rate("1Mpps")), Ok(()));
        let long = Law::constant(Nanos(10_000_000));
        let refused = capacity.holds(&long, rate("1Mpps")).unwrap_err().to_string();
        assert!(refused.contains("4096 frames") && refused.contains("12500 frames"), "{refused}");
        // A limit of its own keeps others from coming in, up to what may wait for it.
        let limited = Law { rate: Some(rate("10kpps").into()), ..long };
        assert_eq!(capacity.holds(&limited, rate("1Mpps")), Ok(()));
    }

    #[test]
    fn a_capacity_of_no_burst_or_of_more_than_there_may_be_is_refused() {
        for (frames, bytes) in
            [(0, 0), (63, 1 << 20), (64, 64), (64, u64::MAX), (u64::MAX, 1 << 20)]
        {
            let refused = Capacity { frames, bytes }.check().unwrap_err();
            assert!(refused.to_string().contains(&frames.to_string()), "{refused}");
        }
    }
}
