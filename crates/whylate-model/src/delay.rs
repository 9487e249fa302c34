//! What a delay line did, and the truth of each frame that came to it.
//!
//! A delay line holds each frame back for a time that is known. What it says of itself is here: what
//! became of the frames of each direction, with counts that add up, how late they left against when they
//! were to leave, and what its own error was before the first of them ([`DelayBase`]). The truth frame by
//! frame ([`Truth`]) is in `truths-0001.parquet` and so on ([`crate::segments`]).

use serde::{Deserialize, Serialize};

use crate::calibration::Emulator;
use crate::forward::ForwardPort;
use crate::reflect::Residence;
use crate::units::{CpuId, Nanos, Ticks};
use crate::warning::Warning;

/// Version of the format of this account.
pub const DELAY_VERSION: u32 = 2;

/// What a delay line did from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayLine {
    /// [`DELAY_VERSION`] when it was made.
    pub format_version: u32,
    /// What carried frames or messages: `packet`, `xdp`, `dpdk`, `proxy udp`, `proxy tcp`.
    pub transport: String,
    /// How it waited for them.
    pub wait: String,
    /// The two ports as they were named.
    pub ports: [String; 2],
    /// What the ports are; empty for a proxy.
    pub ends: Vec<ForwardPort>,
    /// From the first port to the second, then back.
    pub directions: Vec<DelayDirection>,
    /// Its own delay and error before the first frame.
    pub base: DelayBase,
    /// What netem of this kernel makes of a delay, or why that is not known; none where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netem: Option<Emulator>,
    /// Frames that each direction can hold back at once.
    pub capacity_frames: u64,
    /// Bytes of frames that each direction can hold back at once.
    pub capacity_bytes: u64,
    /// Random seed.
    pub seed: u64,
    /// When it began, nanoseconds since 1970.
    pub since_ns: u64,
    /// How long it went on.
    #[serde(rename = "lasted_ns")]
    pub lasted: Nanos,
    /// Why it ended.
    pub ended: DelayEnd,
    /// Settings that were changed meanwhile, in their order.
    pub changes: Vec<DelayChange>,
    /// The side log of truths; none where none was kept.
    pub truths: Option<TruthLog>,
    /// The CPU that its thread was pinned to.
    pub cpu: Option<CpuId>,
    /// Looks at rings.
    pub looks: u64,
    /// Looks that found nothing.
    pub in_vain: u64,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// Why a delay line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelayEnd {
    /// It was stopped.
    Stopped,
    /// Its time was over.
    Duration,
    /// A port went away or failed.
    PortLost,
    /// It had not when this was written: it was killed after that, or still goes on.
    GoingOn,
}

/// One direction of a delay line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayDirection {
    /// The port that frames came by.
    pub from: String,
    /// The port that they left by.
    pub to: String,
    /// How they were held back, as it was set last.
    pub law: String,
    /// What became of them.
    pub counts: DelayCounts,
    /// Bytes of those received, without check sequence.
    pub received_bytes: u64,
    /// Bytes of those passed on, duplicates among them.
    pub passed_bytes: u64,
    /// From when a frame was seen in the ring to when it was handed over to the other one; none without
    /// frames.
    pub residence: Option<Residence>,
    /// From when it was to leave to when it did; none without frames.
    pub lateness: Option<Residence>,
    /// Occasions on which the kernel refused to send.
    pub refusals: u64,
    /// Why the first of them.
    pub first_refusal: Option<String>,
    /// Names of its series of residence and lateness.
    pub series: Vec<String>,
}

/// What became of the frames of one direction. Each that was received is in one of `passed_on`,
/// `lost_on_purpose`, `overflow`, `rate_dropped`, `runts`, `too_long`, `ring_full`, `refused` and
/// `waiting_at_the_end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayCounts {
    /// Received.
    pub received: u64,
    /// Handed over to the other port, each once.
    pub passed_on: u64,
    /// Lost because they were to be.
    pub lost_on_purpose: u64,
    /// Handed over a second time because they were to be; not among `passed_on`.
    pub duplicated: u64,
    /// Of those passed on, those that were let past at least one that had come before them.
    pub let_past: u64,
    /// Of those passed on, those that left after one that had come after them: what a receiver counts as
    /// reordered (RFC 4737).
    pub reordered: u64,
    /// Lost: as many frames or bytes as find room were waiting.
    pub overflow: u64,
    /// Lost: the limit of the rate had more waiting than it keeps.
    pub rate_dropped: u64,
    /// Not passed on: shorter than a header.
    pub runts: u64,
    /// Not passed on: longer than the other side sends.
    pub too_long: u64,
    /// Lost: the sending ring was full when their time had come.
    pub ring_full: u64,
    /// Handed over on an occasion on which the kernel refused to send: none or some of them have left.
    pub refused: u64,
    /// Duplicates that were made and found no room, here or in the sending ring.
    pub duplicates_lost: u64,
    /// Still waiting when it ended, or when this was written.
    pub waiting_at_the_end: u64,
}

impl DelayCounts {
    /// Is every frame that was received accounted for?
    #[must_use]
    pub fn closes(&self) -> bool {
        let Self { passed_on, lost_on_purpose, overflow, rate_dropped, .. } = *self;
        let Self { runts, too_long, ring_full, refused, waiting_at_the_end, .. } = *self;
        let at_the_ring = runts + too_long + ring_full + refused;
        let gone = lost_on_purpose + overflow + rate_dropped + at_the_ring;
        self.received == passed_on + gone + waiting_at_the_end
            && self.let_past <= passed_on
            && self.reordered <= passed_on
    }
}

/// What a delay line adds by itself, measured at its start with frames of memory that went through it
/// while it looked at its own rings: what the kernel or a card take to hand frames over is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayBase {
    /// Median residence where no delay is set.
    #[serde(rename = "base_ns")]
    pub base: Nanos,
    /// `departure - arrival - delay` was not larger for 99 of 100 frames that follow each other; and twice what it
    /// was at most for 9 of 10 that were held so long that caches had forgotten the way out, where that is more;
    /// never below the resolution.
    #[serde(rename = "error_ns")]
    pub error: Nanos,
    /// Its median.
    #[serde(rename = "error_median_ns")]
    pub error_median: Nanos,
    /// Its largest, and no less than the error.
    #[serde(rename = "error_max_ns")]
    pub error_max: Nanos,
    /// The delay at which the error was measured.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// Frames behind each of these numbers.
    pub frames: u64,
    /// Smallest step of the counter, rounded up to a nanosecond.
    #[serde(rename = "resolution_ns")]
    pub resolution: Nanos,
}

/// A setting that was changed while frames went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayChange {
    /// Since it began.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// Of which direction: 0 leads from the first port to the second.
    pub direction: u8,
    /// How frames that came after it were held back.
    pub law: String,
}

/// The side log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TruthLog {
    /// Rows that were kept.
    pub kept: u64,
    /// Truths that found no room in the ring to whoever writes them down.
    pub missed: u64,
}

/// What became of a frame at a delay line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Handed over to the other port.
    Released,
    /// Handed over a second time; the first has a row of its own.
    Duplicate,
    /// Lost because it was to be.
    Lost,
    /// Lost: as many as find room were waiting.
    Overflow,
    /// Lost: beyond what the limit of the rate keeps waiting.
    RateDropped,
    /// Lost: the sending ring was full when its time had come.
    RingFull,
    /// Handed over when the kernel refused to send; it may have left all the same.
    Refused,
    /// Not passed on: longer than the other side sends.
    TooLong,
    /// Not passed on: shorter than a header.
    Runt,
    /// Still waiting when the line ended.
    Waiting,
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Released,
        Self::Duplicate,
        Self::Lost,
        Self::Overflow,
        Self::RateDropped,
        Self::RingFull,
        Self::Refused,
        Self::TooLong,
        Self::Runt,
        Self::Waiting,
    ];

    /// As it is written in a segment.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Duplicate => "duplicate",
            Self::Lost => "lost",
            Self::Overflow => "overflow",
            Self::RateDropped => "rate_dropped",
            Self::RingFull => "ring_full",
            Self::Refused => "refused",
            Self::TooLong => "too_long",
            Self::Runt => "runt",
            Self::Waiting => "waiting",
        }
    }

    /// Did it leave?
    #[must_use]
    pub fn has_left(self) -> bool {
        matches!(self, Self::Released | Self::Duplicate)
    }
}

/// The truth of one frame: when it came, when it was to leave, when it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth {
    /// 0 leads from the first port to the second, 1 back.
    pub direction: u8,
    /// Its number among those that came by this direction, from 0; a duplicate has its original's.
    pub ordinal: u64,
    /// The counter's reading immediately after it was seen in the ring.
    pub arrival: Ticks,
    /// When it was to leave: `arrival` and the delay, a limit of the rate and those before it considered.
    /// The arrival, of what was not to wait.
    pub due: Ticks,
    /// The counter's reading immediately before it was handed over; none of what was not.
    pub departure: Option<Ticks>,
    /// Its bytes, tags among them, without check sequence.
    pub bytes: u32,
    /// The number of the message in it, where that is a measured one of ours.
    pub number: Option<u64>,
    /// The cookie of that message, where its protocol has one.
    pub flow: Option<u64>,
    /// What became of it.
    pub fate: Fate,
}

/// Adds up truths, for whoever wants to see that they are all there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TruthSums {
    counts: DelayCounts,
    /// One more than the largest ordinal that left.
    next: u64,
}

impl TruthSums {
    /// Takes one more, of one direction, in the order of the log.
    pub fn take(&mut self, truth: &Truth) {
        let counts = &mut self.counts;
        let place = match truth.fate {
            Fate::Duplicate => {
                counts.duplicated += 1;
                return;
            }
            Fate::Released => {
                counts.reordered += u64::from(truth.ordinal < self.next);
                self.next = self.next.max(truth.ordinal + 1);
                &mut counts.passed_on
            }
            Fate::Lost => &mut counts.lost_on_purpose,
            Fate::Overflow => &mut counts.overflow,
            Fate::RateDropped => &mut counts.rate_dropped,
            Fate::RingFull => &mut counts.ring_full,
            Fate::Refused => &mut counts.refused,
            Fate::TooLong => &mut counts.too_long,
            Fate::Runt => &mut counts.runts,
            Fate::Waiting => &mut counts.waiting_at_the_end,
        };
        *place += 1;
        counts.received += 1;
    }

    /// The counts that the truths come to: those of the line, but for `let_past` and `duplicates_lost`,
    /// which no single truth tells.
    #[must_use]
    pub fn counts(&self) -> DelayCounts {
        self.counts
    }

    /// Are these the line's own counts?
    #[must_use]
    pub fn agree(&self, with: &DelayCounts) -> bool {
        let told = DelayCounts { let_past: 0, duplicates_lost: 0, ..*with };
        self.counts == told && with.closes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(ordinal: u64, fate: Fate) -> Truth {
        let departure = fate.has_left().then_some(Ticks(9));
        Truth {
            direction: 0,
            ordinal,
            arrival: Ticks(1),
            due: Ticks(5),
            departure,
            bytes: 60,
            number: None,
            flow: None,
            fate,
        }
    }

    #[test]
    fn truths_add_up_to_the_counts_and_one_that_is_missing_shows() {
        let order = [0, 3, 1, 2, 4].map(|ordinal| truth(ordinal, Fate::Released));
        let gone = Fate::ALL[2..].iter().zip(5..).map(|(fate, ordinal)| truth(ordinal, *fate));
        let again = [truth(4, Fate::Duplicate)];
        let mut sums = TruthSums::default();
        order.into_iter().chain(again).chain(gone).for_each(|truth| sums.take(&truth));
        let counts = DelayCounts {
            received: 13,
            passed_on: 5,
            lost_on_purpose: 1,
            duplicated: 1,
            let_past: 1,
            reordered: 2,
            overflow: 1,
            rate_dropped: 1,
            runts: 1,
            too_long: 1,
            ring_full: 1,
            refused: 1,
            duplicates_lost: 3,
            waiting_at_the_end: 1,
        };
        assert!(counts.closes() && sums.agree(&counts), "{sums:?}");
        assert!(!sums.agree(&DelayCounts { received: 14, ..counts }));
        assert!(!sums.agree(&DelayCounts { received: 14, passed_on: 6, ..counts }));
        assert!(!DelayCounts { received: 14, ..counts }.closes());
        assert!(!DelayCounts { reordered: 6, ..counts }.closes());
    }

    #[test]
    fn every_fate_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<_> = Fate::ALL.map(Fate::word).into();
        assert_eq!(words.len(), Fate::ALL.len());
    }
}
