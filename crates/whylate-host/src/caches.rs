//! The data caches of a CPU, and how much memory is free, as the kernel describes them.

use std::path::Path;

use whylate_model::CpuId;
use whylate_model::switch_cost::Cache;

use crate::cpus::parse_list;
use crate::files::{text, trimmed, under};

/// Caches of a CPU that are looked at: none has more.
const MOST: usize = 16;

/// The data and unified caches of `cpu`, smallest first; empty where the kernel does not tell.
#[must_use]
pub fn of(root: &Path, cpu: CpuId) -> Vec<Cache> {
    let folder = under(root, &format!("/sys/devices/system/cpu/cpu{cpu}/cache"));
    let caches = (0..MOST).filter_map(|index| one(&folder.join(format!("index{index}"))));
    let mut caches: Vec<Cache> = caches.collect();
    caches.sort_by_key(|cache| (cache.bytes, cache.level));
    caches
}

fn one(folder: &Path) -> Option<Cache> {
    let word = |name: &str| trimmed(&folder.join(name));
    if word("type")? == "Instruction" {
        return None;
    }
    let bytes = size(&word("size")?).filter(|bytes| *bytes > 0)?;
    let shared = word("shared_cpu_list").and_then(|list| parse_list(&list).ok());
    let shared_by = shared.map_or(1, |cpus| cpus.len().max(1) as u32);
    Some(Cache { level: word("level")?.parse().ok()?, bytes, shared_by })
}

/// `32K`, `1M`, `12345`.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Memory that could be had without swapping, in bytes; none where the kernel does not tell.
#[must_use]
pub fn memory_available(root: &Path) -> Option<u64> {
    let meminfo = text(&under(root, "/proc/meminfo")).ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn data_caches_are_found_by_size_and_instructions_are_left_out() {
        let tree = Tree::empty();
        for (index, kind, level, size, shared) in [
            (0, "Data", 1, "32K", "1"),
            (1, "Instruction", 1, "64K", "1"),
            (2, "Unified", 2, "512K", "1"),
            (3, "Unified", 3, "32M", "0-7"),
        ] {
            let file = |name: &str, text: &str| {
                let path = format!("/sys/devices/system/cpu/cpu1/cache/index{index}/{name}");
                tree.file(&path, text);
            };
            file("type", kind);
            file("level", &level.to_string());
            file("size", size);
            file("shared_cpu_list", shared);
        }
        let found = of(tree.root(), CpuId(1));
        let sizes: Vec<(u8, u64, u32)> =
            found.iter().map(|cache| (cache.level, cache.bytes, cache.shared_by)).collect();
        assert_eq!(sizes, [(1, 32 << 10, 1), (2, 512 << 10, 1), (3, 32 << 20, 8)]);
        assert!(of(tree.root(), CpuId(0)).is_empty());
    }

    #[test]
    fn sizes_that_are_none_and_memory_that_is_not_told_are_left_out() {
        for bad in ["", "K", "-1K", "5T", "99999999999999999999G", "1 M"] {
            assert_eq!(size(bad), None, "{bad}");
        }
        let tree = Tree::empty();
        assert_eq!(memory_available(tree.root()), None);
        tree.file("/proc/meminfo", "MemTotal: 10 kB\nMemAvailable:    7 kB\n");
        assert_eq!(memory_available(tree.root()), Some(7 * 1024));
    }
}
