//! Huge pages that are free, by a tree of files like `/sys/kernel/mm/hugepages`.

use std::path::Path;

/// Where the kernel tells of them.
pub const PLACE: &str = "/sys/kernel/mm/hugepages";

/// Megabytes in free huge pages of all sizes; 0 where the kernel has none or does not tell.
#[must_use]
pub fn free_mb(place: &Path) -> u64 {
    let Ok(sizes) = std::fs::read_dir(place) else { return 0 };
    let kilobytes = sizes.flatten().filter_map(|size| {
        let name = size.file_name().to_string_lossy().into_owned();
        let of_one: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let free = std::fs::read_to_string(size.path().join("free_hugepages")).ok()?;
        free.trim().parse::<u64>().ok()?.checked_mul(of_one)
    });
    kilobytes.sum::<u64>() / 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_pages_of_all_sizes_add_up_and_what_is_unreadable_is_none() {
        let tree = tempfile::tempdir().unwrap();
        for (size, free) in [("hugepages-2048kB", "3\n"), ("hugepages-1048576kB", "1\n")] {
            let of_size = tree.path().join(size);
            std::fs::create_dir(&of_size).unwrap();
            std::fs::write(of_size.join("free_hugepages"), free).unwrap();
        }
        std::fs::create_dir(tree.path().join("hugepages-odd")).unwrap();
        std::fs::create_dir(tree.path().join("hugepages-64kB")).unwrap();
        assert_eq!(free_mb(tree.path()), 6 + 1_024);
        assert_eq!(free_mb(&tree.path().join("nothing")), 0);
    }
}
