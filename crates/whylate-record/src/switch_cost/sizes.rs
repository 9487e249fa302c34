//! Which working sets to try on a host.

use whylate_model::switch_cost::Cache;

/// The smallest: less is a handful of reads between two readings of the counter.
pub const SMALLEST: u64 = 4096;
/// Of the memory that could be had, all working sets together take this share at most.
const SHARE_OF_MEMORY: u64 = 4;
/// Where the kernel does not tell of caches: around what most processors have.
const USUAL: [u64; 8] =
    [16 << 10, 32 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20];

/// The largest that is swept unasked: ten of them are read through a dozen times before the first
/// trial, which takes half a minute where memory is slow.
const LARGEST: u64 = 512 << 20;

/// Which sizes are tried, and which not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sweep {
    /// Ascending, none twice.
    pub(super) sizes: Vec<u64>,
    /// Sizes that the caches of the host ask for, each with the reason why it is not tried.
    pub(super) left_out: Vec<(u64, String)>,
}

/// The largest working set of which `runners` fit into memory; none where memory is not known.
pub(super) fn largest(available: Option<u64>, runners: u32) -> Option<u64> {
    available.map(|bytes| bytes / SHARE_OF_MEMORY / u64::from(runners.max(1)))
}

/// Half, the whole and twice each cache, and a quarter of the last of several. Where one of them is
/// larger than `in_memory` or than is swept unasked, the largest that is not stands for it.
pub(super) fn across(caches: &[Cache], in_memory: Option<u64>) -> Sweep {
    let around = |cache: &Cache| [cache.bytes / 2, cache.bytes, cache.bytes.saturating_mul(2)];
    let mut sizes: Vec<u64> = match caches {
        [] => USUAL.to_vec(),
        [only] => around(only).to_vec(),
        [.., last] => caches.iter().flat_map(around).chain([last.bytes / 4]).collect(),
    };
    let (limit, reason) = match in_memory {
        Some(bytes) if bytes < LARGEST => {
            let reason = format!(
                "not tried: of the memory that is available working sets have a {SHARE_OF_MEMORY}th, \
                 {} MiB each",
                bytes >> 20
            );
            (bytes, reason)
        }
        _ => {
            let most = LARGEST >> 20;
            (LARGEST, format!("not tried: unasked, sets of {most} MiB are the largest (--sizes)"))
        }
    };
    sizes.retain(|size| *size >= SMALLEST);
    sizes.sort_unstable();
    sizes.dedup();
    let beyond = sizes.split_off(sizes.partition_point(|size| *size <= limit));
    // The largest that can be tried, in whole pages.
    let stands = limit / SMALLEST * SMALLEST;
    let new = stands >= SMALLEST && sizes.last().is_none_or(|largest| *largest < stands);
    sizes.extend((new && !beyond.is_empty()).then_some(stands));
    let left_out = beyond.into_iter().map(|size| (size, reason.clone())).collect();
    Sweep { sizes, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches(bytes: &[u64]) -> Vec<Cache> {
        let of = |(level, bytes): (u8, &u64)| Cache { level, bytes: *bytes, shared_by: 1 };
        (1..).zip(bytes).map(of).collect()
    }

    #[test]
    fn sizes_lie_below_in_and_above_each_cache_and_the_last_is_exceeded() {
        let caches = caches(&[32 << 10, 512 << 10, 32 << 20]);
        let all = across(&caches, None);
        let kib: Vec<u64> = all.sizes.iter().map(|bytes| bytes >> 10).collect();
        assert_eq!(kib, [16, 32, 64, 256, 512, 1024, 8192, 16384, 32768, 65536]);
        assert!(all.left_out.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_left_out_by_name_and_the_largest_that_does_stands_for_it() {
        let caches = caches(&[32 << 10, 512 << 10, 32 << 20]);
        let few = across(&caches, Some((20 << 20) + 5));
        assert_eq!(few.sizes.last(), Some(&(20 << 20)));
        let left: Vec<u64> = few.left_out.iter().map(|(bytes, _)| bytes >> 20).collect();
        assert_eq!(left, [32, 64]);
        assert!(few.left_out.iter().all(|(_, why)| why.contains("memory")), "{few:?}");
        // A cache of 400 MiB: twice that is not swept unasked, however much memory there is.
        let huge = across(&self::caches(&[32 << 10, 400 << 20]), None);
        assert_eq!(huge.sizes[huge.sizes.len() - 2..], [400 << 20, LARGEST]);
        let [(bytes, why)] = huge.left_out.as_slice() else { panic!("{huge:?}") };
        assert!(*bytes == 800 << 20 && why.contains("--sizes"), "{why}");
        assert!(across(&caches, Some(0)).sizes.is_empty());
    }

    #[test]
    fn hosts_that_tell_of_one_cache_or_of_none_get_sizes_too() {
        assert_eq!(across(&[], None).sizes.len(), 8);
        assert_eq!(across(&caches(&[32 << 10]), None).sizes, [16 << 10, 32 << 10, 64 << 10]);
        assert_eq!(across(&caches(&[1 << 10, 2 << 10]), None).sizes, [4 << 10]);
        assert_eq!(largest(Some(80 << 20), 10), Some(2 << 20));
        assert_eq!(largest(None, 10), None);
    }
}
