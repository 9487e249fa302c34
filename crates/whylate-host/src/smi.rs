//! How many system management interrupts a CPU has had, where it counts them.
//!
//! Firmware takes the whole machine in such an interrupt and the kernel sees nothing of it; Intel
//! CPUs count them in the model-specific register `MSR_SMI_COUNT` (0x34; Intel SDM volume 4).
//! Reading needs the `msr` driver and `CAP_SYS_RAWIO`. Elsewhere the answer is `None`: not known.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use whylate_model::CpuId;

use crate::files::under;

const MSR_SMI_COUNT: u64 = 0x34;

/// The count of one CPU, 32 bits wide, below `root`.
#[must_use]
pub fn count(root: &Path, cpu: CpuId) -> Option<u32> {
    let msr = File::open(under(root, &format!("/dev/cpu/{cpu}/msr"))).ok()?;
    let mut register = [0; 8];
    msr.read_exact_at(&mut register, MSR_SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(register) as u32)
}

/// The counts of several CPUs; compare two with [`SmiCounts::delta`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmiCounts(Vec<(CpuId, u32)>);

impl SmiCounts {
    /// Reads the counts of `cpus` below `root`; `None` unless every one of them can be read.
    #[must_use]
    pub fn read(root: &Path, cpus: &[CpuId]) -> Option<Self> {
        let counts: Option<Vec<_>> =
            cpus.iter().map(|&cpu| Some((cpu, count(root, cpu)?))).collect();
        counts.filter(|counts| !counts.is_empty()).map(Self)
    }

    /// The largest increase of any one CPU from `self` to `later`: an SMI takes all CPUs at once,
    /// so a sum would count it once per CPU.
    #[must_use]
    pub fn delta(&self, later: &Self) -> Option<u64> {
        let increases = self.0.iter().filter_map(|(cpu, before)| {
            let (_, after) = later.0.iter().find(|(other, _)| other == cpu)?;
            Some(u64::from(after.wrapping_sub(*before)))
        });
        increases.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn register(tree: &Tree, cpu: u32, count: u32) {
        let mut image = vec![0; MSR_SMI_COUNT as usize];
        image.extend_from_slice(&u64::from(count).to_le_bytes());
        tree.bytes(&format!("/dev/cpu/{cpu}/msr"), &image);
    }

    #[test]
    fn counts_are_read_where_the_register_is_and_the_largest_increase_is_told() {
        let tree = Tree::empty();
        let cpus = [CpuId(0), CpuId(1)];
        register(&tree, 0, u32::MAX);
        assert_eq!(SmiCounts::read(tree.root(), &cpus), None);
        register(&tree, 1, 5);
        let before = SmiCounts::read(tree.root(), &cpus).unwrap();
        register(&tree, 0, 1);
        register(&tree, 1, 6);
        let later = SmiCounts::read(tree.root(), &cpus).unwrap();
        assert_eq!(before.delta(&later), Some(2));
    }

    #[test]
    fn absent_or_short_registers_are_not_known() {
        let tree = Tree::empty();
        assert_eq!(count(tree.root(), CpuId(0)), None);
        tree.bytes("/dev/cpu/0/msr", &[1, 2, 3]);
        assert_eq!(count(tree.root(), CpuId(0)), None);
        assert_eq!(SmiCounts::read(tree.root(), &[]), None);
    }
}
