//! For how long the kernel lets a thread run, as far as it says so.

use std::path::Path;

use whylate_model::Nanos;
use whylate_model::switch_cost::KernelQuanta;

use crate::files::{trimmed, under};

/// Reads the kernel's slices below `root`. That of ordinary threads lies in debugfs, which need not
/// be mounted and only root may read; its name changed with the scheduler in 6.6.
#[must_use]
pub fn read(root: &Path) -> KernelQuanta {
    let number = |path: &str| trimmed(&under(root, path))?.parse::<u64>().ok();
    let slice = ["base_slice_ns", "min_granularity_ns"]
        .iter()
        .find_map(|name| number(&format!("/sys/kernel/debug/sched/{name}")));
    let round_robin = number("/proc/sys/kernel/sched_rr_timeslice_ms");
    KernelQuanta {
        base_slice: slice.map(Nanos),
        round_robin: round_robin.and_then(|ms| ms.checked_mul(1_000_000)).map(Nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn slices_are_read_where_they_are_and_absent_where_not() {
        let tree = Tree::empty();
        assert_eq!(read(tree.root()), KernelQuanta::default());
        tree.file("/proc/sys/kernel/sched_rr_timeslice_ms", "100\n");
        tree.file("/sys/kernel/debug/sched/base_slice_ns", "2800000\n");
        let found = read(tree.root());
        assert_eq!(found.base_slice, Some(Nanos(2_800_000)));
        assert_eq!(found.round_robin, Some(Nanos(100_000_000)));
        tree.file("/proc/sys/kernel/sched_rr_timeslice_ms", "many\n");
        assert_eq!(read(tree.root()).round_robin, None);
    }
}
