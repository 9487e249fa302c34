//! What is stamped of a forwarder's bursts, and what that costs.
//!
//! A burst has four readings of the counter: the end of what was done before it, when it was seen in
//! the ring, when it was about to be handed over, and when the kernel had been called. The second and
//! the third are the ring's own. Sockets take them whether anybody wants them or not; so there a burst
//! pays for one more reading, for sums, and for its place in a histogram. Between devices of DPDK nobody
//! takes any where nothing is stamped; so there a burst pays for all three.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use whylate_clock::Counter;
use whylate_model::{Hertz, Nanos, Ticks};
use whylate_port::frames::BURST;
use whylate_stats::Histogram;
use whylate_sys::nanosleep::{Clock, clock_ns};

use super::steady::{Reading, Steady};
use crate::conversation::Scale;

/// Sizes of bursts that are told apart: 1, 2, up to 4, 8, 16, 32, 64.
pub const SIZES: usize = 7;
/// A stamp of the kernel that is older than this is none of this burst.
const OLDEST: Nanos = Nanos(10 * Nanos::SECOND.0);
/// The largest number of bursts of which one is stamped.
const MOST_SAMPLED: u32 = 1_000_000;

/// What is stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stamps {
    /// The residence of every frame, and the ticks of every burst.
    #[default]
    Every,
    /// The residence of the frames of one burst in so many, and the ticks of every burst.
    Sampled(u32),
    /// Nothing: counts alone.
    Off,
}

impl fmt::Display for Stamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.pad("every"),
            Self::Sampled(of) => f.pad(&format!("sampled:{of}")),
            Self::Off => f.pad("off"),
        }
    }
}

impl FromStr for Stamps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sampled = || {
            let of = text.strip_prefix("sampled:")?.parse().ok()?;
            (2..=MOST_SAMPLED).contains(&of).then_some(Self::Sampled(of))
        };
        match text {
            "every" => Ok(Self::Every),
            "off" => Ok(Self::Off),
            _ => sampled().ok_or_else(|| {
                format!("`{text}` does not say what gets timestamps: use every, sampled:N (2 to 1000000) or off")
            }),
        }
    }
}

/// Residence, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// From when a frame was seen in the ring to when it was handed over.
    pub residence: Histogram,
    /// The same from when the kernel had it, by the wall clock.
    pub kernel: Histogram,
}

impl Times {
    /// Empty histograms whose memory has been touched.
    #[must_use]
    pub fn touched() -> Self {
        let mut fresh = Self::default();
        fresh.clear();
        fresh
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.residence.clear();
        self.kernel.clear();
    }
}

/// Ticks of the bursts of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// Bursts.
    pub bursts: u64,
    /// Their frames.
    pub frames: u64,
    /// Ticks from the end of what was done before to when they were seen.
    pub receive: u64,
    /// From there to when they were about to be handed over.
    pub work: u64,
    /// From there to when the kernel had been called.
    pub transmit: u64,
}

impl Part {
    /// All of its ticks.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.receive + self.work + self.transmit
    }

    fn add(&mut self, other: &Self) {
        self.bursts += other.bursts;
        self.frames += other.frames;
        self.receive += other.receive;
        self.work += other.work;
        self.transmit += other.transmit;
    }
}

/// Ticks by the size of the burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Of each size: see [`Parts::sizes`].
    pub by_size: [Part; SIZES],
}

impl Parts {
    /// The least and most frames of a burst of each size.
    #[must_use]
    pub fn sizes() -> [(u32, u32); SIZES] {
        [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, BURST as u32)]
    }

    /// All of them together.
    #[must_use]
    pub fn all(&self) -> Part {
        let mut all = Part::default();
        self.by_size.iter().for_each(|part| all.add(part));
        all
    }

    #[inline]
    fn of(&mut self, frames: usize) -> &mut Part {
        // One more than the place of the highest bit of what is below it.
        let size = (usize::BITS - frames.saturating_sub(1).leading_zeros()) as usize;
        &mut self.by_size[size.min(SIZES - 1)]
    }
}

/// What the rings told of a burst.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) frames: usize,
    /// Bit 0 is the first frame: those that left.
    pub(super) leaving: u64,
    /// The end of what was done before.
    pub(super) before: Ticks,
    pub(super) at: Ticks,
    pub(super) handed: Ticks,
    /// The wall clock when it was about to be handed over, where the kernel's stamps are wanted.
    pub(super) wall: Option<u64>,
}

/// The stamps of one direction.
#[derive(Debug, Clone)]
pub struct Stamped {
    stamps: Stamps,
    /// Bursts until the next one that is sampled.
    left: u32,
    scale: Scale,
    /// Ticks by part.
    pub parts: Parts,
    /// Of the open interval.
    pub times: Times,
    /// Stamps of the kernel that cannot be right, or are from before its clock was set.
    pub unfit: u64,
    steady: Steady,
    /// The kernel stamps: its clock is watched.
    watches: bool,
}

impl Stamped {
    pub(super) fn new(stamps: Stamps, rate: Hertz) -> Self {
        Self {
            stamps,
            left: 0,
            scale: Scale::new(rate),
            parts: Parts::default(),
            times: Times::touched(),
            unfit: 0,
            steady: Steady::default(),
            watches: false,
        }
    }

    /// How often the wall clock was set while it was watched.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steady.steps()
    }

    /// Looks at the wall clock while nothing comes, where it matters.
    #[inline]
    pub(super) fn watch<C: Counter>(&mut self, counter: &mut C) {
        if self.watches {
            let from = counter.read();
            let reading = Reading { from, wall: wall(), to: counter.read() };
            self.steady.read(reading, self.scale);
        }
    }

    /// Is anything stamped?
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.stamps != Stamps::Off
    }

    /// Is the residence of the burst that comes wanted? Counts bursts.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        match self.stamps {
            Stamps::Every => true,
            Stamps::Off => false,
            Stamps::Sampled(of) => {
                let due = self.left == 0;
                self.left = if due { of - 1 } else { self.left - 1 };
                due
            }
        }
    }

    /// Takes in what a burst was stamped with; `due` says whether its residence is wanted, and `kernel`
    /// when the kernel had each frame. Gives the reading at its end.
    #[inline]
    pub(super) fn take<C: Counter>(
        &mut self,
        counter: &mut C,
        seen: Seen,
        due: bool,
        kernel: impl Fn(usize) -> Option<Nanos>,
    ) -> Ticks {
        let after = counter.read();
        let part = self.parts.of(seen.frames);
        part.bursts += 1;
        part.frames += seen.frames as u64;
        part.receive += seen.at.since(seen.before).0;
        part.work += seen.handed.since(seen.at).0;
        part.transmit += after.since(seen.handed).0;
        if due {
            let stayed = self.scale.nanos(seen.at, seen.handed).0;
            self.times.residence.record_n(stayed, u64::from(seen.leaving.count_ones()));
            if let Some(wall) = seen.wall {
                self.take_kernels(seen, wall, kernel);
            }
        }
        after
    }

    fn take_kernels(&mut self, seen: Seen, wall: u64, kernel: impl Fn(usize) -> Option<Nanos>) {
        self.watches = true;
        // It was read between these two.
        let reading = Reading { from: seen.at, wall, to: seen.handed };
        self.steady.read(reading, self.scale);
        for at in (0..seen.frames).filter(|at| (seen.leaving >> at) & 1 == 1) {
            let Some(since) = kernel(at) else { continue };
            match wall.checked_sub(since.0) {
                Some(stayed) if stayed <= OLDEST.0 && self.steady.vouches_for(since.0) => {
                    self.times.kernel.record(stayed);
                }
                // The wall clock was set, or it is another one.
                _ => self.unfit += 1,
            }
        }
    }
}

/// The wall clock, for the kernel's stamps are by it.
#[inline]
pub(super) fn wall() -> u64 {
    clock_ns(Clock::Realtime)
}

/// What the rings do for stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingStamps {
    /// They have the kernel's stamps.
    pub kernel: bool,
    /// They take their own two readings for the stamps alone, and none without.
    pub own: bool,
}

/// What the stamps cost, on the calling thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Each burst, in nanoseconds.
    pub per_burst_ns: f64,
    /// Each frame on top, in nanoseconds.
    pub per_frame_ns: f64,
    /// Planted bursts behind it.
    pub bursts: u64,
}

/// Bursts in a block, and blocks behind a median.
const BLOCK: u64 = 256;
const BLOCKS: usize = 201;
/// Frames of the larger planted bursts.
const MANY: usize = 32;

/// Measures what the stamps of bursts cost by planting some; none where nothing is stamped.
pub fn cost<C: Counter>(
    counter: &mut C,
    rate: Hertz,
    stamps: Stamps,
    rings: RingStamps,
) -> Option<Cost> {
    if stamps == Stamps::Off {
        return None;
    }
    let mut planted = Stamped::new(stamps, rate);
    let one = block(counter, &mut planted, 1, rings);
    let many = block(counter, &mut planted, MANY, rings);
    let ns = 1e9 / rate.0;
    let per_frame = ((many - one) / (MANY - 1) as f64).max(0.0);
    Some(Cost {
        per_burst_ns: (one - per_frame).max(0.0) * ns,
        per_frame_ns: per_frame * ns,
        bursts: 2 * BLOCK * BLOCKS as u64,
    })
}

/// Ticks that the stamps of a burst of so many frames take, in the median over blocks.
fn block<C: Counter>(
    counter: &mut C,
    planted: &mut Stamped,
    frames: usize,
    rings: RingStamps,
) -> f64 {
    let leaving = u64::MAX >> (u64::BITS - frames.clamp(1, BURST) as u32);
    let mut means: Vec<f64> = (0..BLOCKS)
        .map(|_| {
            let start = counter.read();
            let mut before = start;
            for number in 0..BLOCK {
                let due = planted.is_due();
                let wall = (due && rings.kernel).then(wall);
                if rings.own {
                    black_box((counter.read_ordered(), counter.read_ordered()));
                }
                // Residences differ, as they do outside.
                let at = Ticks(before.0.saturating_sub(1_000 + 64 * number));
                let seen = Seen { frames, leaving, before, at, handed: before, wall };
                let of = black_box(wall.unwrap_or_default());
                before = planted.take(counter, black_box(seen), due, |_| Some(Nanos(of)));
            }
            before.since(start).0 as f64 / BLOCK as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    means[BLOCKS / 2]
}

#[cfg(test)]
mod tests {
    use whylate_clock::MockCounter;
    use whylate_model::TicksDelta;

    use super::*;

    #[test]
    fn what_to_stamp_is_read_as_it_is_shown_and_nothing_else_is() {
        for stamps in [Stamps::Every, Stamps::Sampled(64), Stamps::Off] {
            assert_eq!(stamps.to_string().parse(), Ok(stamps));
        }
        for wrong in ["", "all", "sampled", "sampled:1", "sampled:1000001", "sampled:x"] {
            assert!(wrong.parse::<Stamps>().unwrap_err().contains("sampled:N"), "{wrong}");
        }
    }

    #[test]
    fn bursts_are_told_apart_by_their_sizes() {
        for (place, (least, most)) in Parts::sizes().into_iter().enumerate() {
            for frames in least..=most {
                let mut parts = Parts::default();
                parts.of(frames as usize).bursts = 1;
                assert_eq!(parts.by_size[place].bursts, 1, "{frames}");
            }
        }
    }

    #[test]
    fn one_burst_in_so_many_is_sampled() {
        let mut stamped = Stamped::new(Stamps::Sampled(4), Hertz(1e9));
        let due: Vec<bool> = (0..9).map(|_| stamped.is_due()).collect();
        let expected = [true, false, false, false, true, false, false, false, true];
        assert_eq!(due, expected);
        let mut off = Stamped::new(Stamps::Off, Hertz(1e9));
        assert!(!off.is_due() && !off.is_on());
    }

    #[test]
    fn the_parts_of_a_burst_are_the_distances_of_its_readings_and_all_frames_stayed_as_long() {
        let mut counter = MockCounter::new(Hertz(1e9)).starting_at(Ticks(5_000));
        let mut stamped = Stamped::new(Stamps::Every, Hertz(1e9));
        let now = counter.read();
        counter.advance(TicksDelta(70));
        let (before, at) = (Ticks(now.0 - 800), Ticks(now.0 - 500));
        let wall = Some(1_000_000);
        let seen = Seen { frames: 3, leaving: 0b101, before, at, handed: now, wall };
        let kernel = [Some(Nanos(999_000)), Some(Nanos(1)), Some(Nanos(1_000_001))];
        let after = stamped.take(&mut counter, seen, true, |at| kernel[at]);
        let part = stamped.parts.by_size[2];
        assert_eq!((part.bursts, part.frames, part.receive, part.work), (1, 3, 300, 500));
        assert_eq!(part.transmit, after.since(now).0);
        assert!(part.transmit >= 70 && stamped.parts.all() == part);
        let residence = &stamped.times.residence;
        assert_eq!((residence.len(), residence.min(), residence.max()), (2, Some(500), Some(500)));
        // The second frame did not leave, and the third one's stamp lies behind.
        assert_eq!((stamped.times.kernel.len(), stamped.unfit), (1, 1));
        assert_eq!(stamped.times.kernel.max(), Some(1_000));
    }

    #[test]
    fn stamps_from_before_the_wall_clock_was_set_are_counted_and_none_is_a_residence() {
        let rate = Hertz(1e9);
        let mut counter = MockCounter::new(rate).starting_at(Ticks(1_000_000));
        let mut stamped = Stamped::new(Stamps::Every, rate);
        let start = 1_700_000_000_000_000_000;
        for burst in 0..6_u64 {
            counter.advance(TicksDelta(1_000_000));
            let at = counter.read();
            // Set by 50 us between the third and the fourth.
            let set = if burst < 3 { 0 } else { 50_000 };
            let wall = start + at.0 + set;
            // The first frame of the fourth burst came before; so did one of the fifth.
            let old = if burst < 3 { 0 } else { 900_000 + 1_000_000 * (burst - 3) };
            let kernel = [Some(Nanos(wall - 2_000)), Some(Nanos(wall - 2_000 - old))];
            let (before, handed) = (at, at + TicksDelta(500));
            let seen = Seen { frames: 2, leaving: 0b11, before, at, handed, wall: Some(wall) };
            stamped.take(&mut counter, seen, true, |at| kernel[at]);
        }
        assert_eq!(stamped.steps(), 1);
        // All of the fourth burst, and the frames of the two after it that are older than it is.
        assert_eq!((stamped.times.kernel.len(), stamped.unfit), (8, 4));
        assert!(stamped.times.kernel.max() <= Some(2_100));
    }

    #[test]
    fn the_cost_of_stamps_is_that_of_a_burst_and_of_each_frame_and_none_without_them() {
        let rate = Hertz(1e9);
        let mut counter = MockCounter::new(rate).with_period(&[40]);
        let sockets = RingStamps::default();
        assert_eq!(cost(&mut counter, rate, Stamps::Off, sockets), None);
        // One reading of this counter takes 40 ticks, and only bursts have one, or three.
        for (own, expected) in [(false, 40.0), (true, 120.0)] {
            let rings = RingStamps { own, ..sockets };
            let found = cost(&mut counter, rate, Stamps::Every, rings).unwrap();
            assert!((found.per_burst_ns - expected).abs() < 1.0, "{found:?}");
            assert!(found.per_frame_ns.abs() < 1e-9 && found.bursts > 100_000, "{found:?}");
        }
    }
}
