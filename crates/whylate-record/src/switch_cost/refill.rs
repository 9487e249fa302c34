//! What filling the caches again should take: bytes by the bandwidth of where they come from.
//!
//! Pure: sizes and bandwidths in, times out. A set that is read over and over comes from the smallest
//! cache that holds it, and ten sets whose runners take turns from the smallest that holds all ten;
//! what fits into none comes from memory. Caches are taken whole: what others who share one keep in
//! it is not known, and shows as a measured cost above the predicted one.

use whylate_model::Nanos;
use whylate_model::switch_cost::{Cache, ReadBandwidth, Refill};

/// A set is this many times the cache before the one that it is to be read from, at least and at most:
/// little more than that cache would stay in it in part.
const BEYOND: (u64, u64) = (2, 8);
/// And at most this part of the cache that it is to be read from, which holds other things, too.
const INSIDE: u64 = 2;
/// The set that is read from memory, by the last cache.
const BEYOND_THE_LAST: (u64, u64) = (2, 4);
/// At most so much of it: touching it takes a second.
const LARGEST: u64 = 1 << 30;
/// Of the memory that could be had it takes this part at most.
const PART_OF_MEMORY: u64 = 4;

/// A set that is read for the bandwidth of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LevelSet {
    /// Of which cache; none for memory.
    pub(super) level: Option<u8>,
    /// Its size.
    pub(super) bytes: u64,
    /// Why it is not read.
    pub(super) refused: Option<String>,
}

/// A set for each cache, and for memory; none where the caches are not known.
pub(super) fn sets(caches: &[Cache], available: Option<u64>) -> Vec<LevelSet> {
    let Some(last) = caches.last() else { return Vec::new() };
    let before = std::iter::once(None).chain(caches.iter().map(Some));
    let mut sets: Vec<LevelSet> =
        before.zip(caches).map(|(before, cache)| inside(cache, before)).collect();
    let limit = available.map_or(LARGEST, |bytes| LARGEST.min(bytes / PART_OF_MEMORY));
    let (twice, most) = (
        last.bytes.saturating_mul(BEYOND_THE_LAST.0),
        last.bytes.saturating_mul(BEYOND_THE_LAST.1),
    );
    let bytes = most.min(limit);
    let refused = (bytes < twice).then(|| {
        format!(
            "a set of twice the last cache has {} MiB, and {} MiB are the most that is read here",
            twice >> 20,
            limit >> 20
        )
    });
    sets.push(LevelSet { level: None, bytes: bytes.max(twice), refused });
    sets
}

fn inside(cache: &Cache, before: Option<&Cache>) -> LevelSet {
    let level = Some(cache.level);
    let half = cache.bytes / INSIDE;
    let Some(before) = before else { return LevelSet { level, bytes: half, refused: None } };
    let bytes = half.min(before.bytes.saturating_mul(BEYOND.1));
    let refused = (bytes < before.bytes.saturating_mul(BEYOND.0)).then(|| {
        format!(
            "L{} is less than {} times L{}: no set lies in the one and clearly beyond the other",
            cache.level,
            BEYOND.0 * INSIDE,
            before.level
        )
    });
    LevelSet { level, bytes, refused }
}

/// The level that sets of so many bytes in all are read from again and again; none for memory.
fn source(caches: &[Cache], bytes: u64) -> Option<u8> {
    caches.iter().find(|cache| cache.bytes >= bytes).map(|cache| cache.level)
}

/// What filling the caches again should take of a switch; none where a bandwidth is not known.
///
/// `C` counts work that was lost, and a runner alone reads its set, too: so the time of a warm pass
/// is taken off that of a cold one.
pub(super) fn predicted(
    (bytes, runners): (u64, u32),
    turn: Option<Nanos>,
    caches: &[Cache],
    bandwidths: &[ReadBandwidth],
) -> Option<Refill> {
    if caches.is_empty() {
        return None;
    }
    let time = |level: Option<u8>| {
        let of = bandwidths.iter().find(|of| of.level == level)?;
        of.gb_per_s.map(|per_ns| bytes as f64 / per_ns)
    };
    let warm_from = source(caches, bytes);
    let cold_from = source(caches, bytes.saturating_mul(u64::from(runners)));
    let (warm_ns, cold_ns) = (time(warm_from)?, time(cold_from)?);
    let reached = reached(turn, cold_ns);
    let predicted_ns = reached * (cold_ns - warm_ns);
    Some(Refill { warm_from, cold_from, warm_ns, cold_ns, reached, predicted_ns })
}

/// The share of a cold pass that a runner comes through in its turn.
pub(super) fn reached(turn: Option<Nanos>, cold_ns: f64) -> f64 {
    let turn_ns = turn.map_or(f64::INFINITY, |turn| turn.0 as f64);
    if cold_ns > 0.0 { (turn_ns / cold_ns).min(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: [Cache; 3] = [
        Cache { level: 1, bytes: 32 << 10, shared_by: 1 },
        Cache { level: 2, bytes: 1 << 20, shared_by: 1 },
        Cache { level: 3, bytes: 32 << 20, shared_by: 8 },
    ];

    /// 64, 32, 16 and 4 bytes in a nanosecond.
    fn planted() -> Vec<ReadBandwidth> {
        let of = |(level, gb_per_s)| ReadBandwidth {
            level,
            bytes: 1,
            gb_per_s: Some(gb_per_s),
            pieces: 101,
            reason: None,
        };
        [(Some(1), 64.0), (Some(2), 32.0), (Some(3), 16.0), (None, 4.0)].map(of).into()
    }

    fn of(bytes: u64, turn: Option<Nanos>) -> Refill {
        predicted((bytes, 10), turn, &CACHES, &planted()).unwrap()
    }

    #[test]
    fn refilling_is_bytes_by_the_bandwidth_they_come_from_less_the_warm_pass() {
        // (set, where one is kept, where ten are, ns)
        for (bytes, warm, cold, expected) in [
            (2 << 10, Some(1), Some(1), 0.0),
            (16 << 10, Some(1), Some(2), 16_384.0 * (1.0 / 32.0 - 1.0 / 64.0)),
            (64 << 10, Some(2), Some(2), 0.0),
            (512 << 10, Some(2), Some(3), 524_288.0 * (1.0 / 16.0 - 1.0 / 32.0)),
            (8 << 20, Some(3), None, 8_388_608.0 * (1.0 / 4.0 - 1.0 / 16.0)),
            (64 << 20, None, None, 0.0),
        ] {
            let found = of(bytes, None);
            assert_eq!((found.warm_from, found.cold_from), (warm, cold), "{bytes}");
            assert!((found.predicted_ns - expected).abs() < 1e-6, "{found:?}");
            assert!((found.reached - 1.0).abs() < 1e-12, "{found:?}");
        }
        let grows: Vec<f64> =
            [128, 256, 512, 1024].map(|kib| of(kib << 10, None).predicted_ns).into();
        assert!(grows.windows(2).all(|pair| pair[0] < pair[1]), "{grows:?}");
    }

    #[test]
    fn a_turn_refills_no_more_than_it_reads() {
        // Cold, 512 KiB take 32.768 us.
        let half = of(512 << 10, Some(Nanos(16_384)));
        assert!((half.reached - 0.5).abs() < 1e-12, "{half:?}");
        assert!((half.predicted_ns - 8_192.0).abs() < 1e-6, "{half:?}");
    }

    #[test]
    fn nothing_is_predicted_by_a_bandwidth_that_is_not_known() {
        let mut some = planted();
        some[3].gb_per_s = None;
        assert!(predicted((16 << 10, 10), None, &CACHES, &some).is_some(), "memory is not asked");
        assert_eq!(predicted((8 << 20, 10), None, &CACHES, &some), None);
        some.truncate(1);
        assert_eq!(predicted((16 << 10, 10), None, &CACHES, &some), None);
        assert_eq!(predicted((16 << 10, 10), None, &[], &planted()), None);
    }

    #[test]
    fn each_level_has_a_set_inside_it_and_clearly_beyond_the_one_before() {
        let kib = |sets: &[LevelSet]| sets.iter().map(|set| set.bytes >> 10).collect::<Vec<_>>();
        let found = sets(&CACHES, None);
        assert_eq!(kib(&found), [16, 256, 8 << 10, 128 << 10]);
        let levels: Vec<Option<u8>> = found.iter().map(|set| set.level).collect();
        assert_eq!(levels, [Some(1), Some(2), Some(3), None]);
        assert!(found.iter().all(|set| set.refused.is_none()), "{found:?}");
        // 300 MiB could be had: a quarter of that is twice the last cache, and not four times.
        assert_eq!(kib(&sets(&CACHES, Some(300 << 20)))[3], 75 << 10);
        let few = sets(&CACHES, Some(100 << 20));
        assert!(few[3].refused.as_ref().unwrap().contains("64 MiB"), "{few:?}");
        let near = [CACHES[0], Cache { level: 2, bytes: 64 << 10, shared_by: 1 }];
        let why = sets(&near, None)[1].refused.clone().unwrap();
        assert!(why.contains("L2 is less than 4 times L1"), "{why}");
        assert!(sets(&[], None).is_empty());
    }
}
