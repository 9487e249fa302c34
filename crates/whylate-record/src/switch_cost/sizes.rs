//! Which working sets to try on a host.

use whylate_model::switch_cost::Cache;

/// The smallest: less is a handful of reads between two readings of the counter.
pub const SMALLEST: u64 = 4096;
/// Of the memory that could be had, all working sets together take this share at most.
const SHARE_OF_MEMORY: u64 = 4;
/// Where the kernel does not tell of caches: around what most processors have.
const USUAL: [u64; 8] =
    [16 << 10, 32 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20];

/// The largest working set of which `runners` fit into memory; none where memory is not known.
pub(super) fn largest(available: Option<u64>, runners: u32) -> Option<u64> {
    available.map(|bytes| bytes / SHARE_OF_MEMORY / u64::from(runners.max(1)))
}

/// Half, the whole and twice each cache but the last, a quarter and half of the last: ascending,
/// none twice, none larger than `largest`.
pub(super) fn across(caches: &[Cache], largest: Option<u64>) -> Vec<u64> {
    let mut sizes: Vec<u64> = match caches.split_last() {
        None => USUAL.to_vec(),
        Some((last, [])) => {
            [2, 1].iter().map(|part| last.bytes / part).chain([last.bytes * 2]).collect()
        }
        Some((last, smaller)) => smaller
            .iter()
            .flat_map(|cache| [cache.bytes / 2, cache.bytes, cache.bytes.saturating_mul(2)])
            .chain([last.bytes / 4, last.bytes / 2])
            .collect(),
    };
    sizes.retain(|size| *size >= SMALLEST && largest.is_none_or(|largest| *size <= largest));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches(bytes: &[u64]) -> Vec<Cache> {
        let of = |(level, bytes): (u8, &u64)| Cache { level, bytes: *bytes, shared_by: 1 };
        (1..).zip(bytes).map(of).collect()
    }

    #[test]
    fn sizes_lie_below_in_and_above_each_cache() {
        let caches = caches(&[32 << 10, 512 << 10, 32 << 20]);
        let kib: Vec<u64> = across(&caches, None).iter().map(|bytes| bytes >> 10).collect();
        assert_eq!(kib, [16, 32, 64, 256, 512, 1024, 8192, 16384]);
        assert_eq!(across(&caches, Some(600 << 10)).len(), 5);
    }

    #[test]
    fn hosts_that_tell_of_one_cache_or_of_none_get_sizes_too() {
        assert_eq!(across(&[], None).len(), 8);
        assert_eq!(across(&caches(&[32 << 10]), None), [16 << 10, 32 << 10, 64 << 10]);
        assert_eq!(across(&caches(&[1 << 10, 2 << 10]), None), [] as [u64; 0]);
        assert_eq!(largest(Some(80 << 20), 10), Some(2 << 20));
        assert_eq!(largest(None, 10), None);
    }
}
