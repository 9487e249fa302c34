//! Where the frequency settings of a CPU lie.
//!
//! CPUs that change their speed together share a policy: since Linux 4.3 `cpuN/cpufreq` is a link to
//! `cpufreq/policyM`. A copy of the tree may lack the links; then the policy that names the CPU is
//! taken, and the CPUs it names are as good as the link.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whylate_model::CpuId;

use crate::files::{trimmed, under};

const CPU: &str = "/sys/devices/system/cpu";

/// Most policies that are looked at: one for each CPU of the largest machines.
const MAX_POLICIES: usize = 8192;

/// The policies below a root, read once.
#[derive(Debug)]
pub(crate) struct Policies {
    root: PathBuf,
    by_cpu: BTreeMap<CpuId, String>,
}

impl Policies {
    pub(crate) fn read(root: &Path) -> Self {
        let mut by_cpu = BTreeMap::new();
        for name in names(&under(root, &format!("{CPU}/cpufreq"))) {
            let dir = format!("{CPU}/cpufreq/{name}");
            // Documentation/admin-guide/pm/cpufreq.rst: the CPUs online that share the policy, and
            // all that do. Numbers with blanks between, and no ranges.
            for file in ["affected_cpus", "related_cpus"] {
                let cpus = trimmed(&under(root, &format!("{dir}/{file}"))).unwrap_or_default();
                for cpu in cpus.split_whitespace().filter_map(|word| word.parse().ok()) {
                    by_cpu.entry(CpuId(cpu)).or_insert_with(|| dir.clone());
                }
            }
        }
        Self { root: root.to_owned(), by_cpu }
    }

    /// The directory of a CPU's settings, below the root; it may not be there.
    pub(crate) fn directory(&self, cpu: CpuId) -> String {
        let own = format!("{CPU}/cpu{cpu}/cpufreq");
        if under(&self.root, &own).is_dir() {
            return own;
        }
        self.by_cpu.get(&cpu).cloned().unwrap_or(own)
    }
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let names = entries.take(MAX_POLICIES).flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("policy")).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn a_policy_names_its_cpus_where_the_link_is_missing() {
        let tree = Tree::empty();
        let policy = |number: u32, file: &str, cpus: &str| {
            tree.file(&format!("{CPU}/cpufreq/policy{number}/{file}"), cpus);
        };
        policy(0, "affected_cpus", "0 1\n");
        policy(2, "affected_cpus", "2\n");
        policy(2, "related_cpus", "2 13\n");
        policy(4, "affected_cpus", "rubbish\n");
        tree.file(&format!("{CPU}/cpu1/cpufreq/scaling_governor"), "performance\n");
        let policies = Policies::read(tree.root());
        let of = |cpu| policies.directory(CpuId(cpu));
        assert_eq!(of(0), format!("{CPU}/cpufreq/policy0"));
        assert_eq!(of(1), format!("{CPU}/cpu1/cpufreq"), "its own comes first");
        assert_eq!(of(13), format!("{CPU}/cpufreq/policy2"));
        assert_eq!(of(4), format!("{CPU}/cpu4/cpufreq"), "no policy names it");
    }
}
