//! Which CPUs there are and how they lie to each other.
//!
//! Read once from `/sys/devices/system`; a CPU that goes away later is noticed by
//! [`crate::watch`], not here. Nothing is changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whylate_model::CpuId;

use crate::cpus;
use crate::error::HostError;
use crate::files::{required, text, trimmed, under};

/// The CPUs of a host. Lists are ascending and hold each CPU once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    root: PathBuf,
    possible: Vec<CpuId>,
    present: Vec<CpuId>,
    online: Vec<CpuId>,
    isolated: Vec<CpuId>,
    siblings: BTreeMap<CpuId, Vec<CpuId>>,
    nodes: BTreeMap<u32, Vec<CpuId>>,
}

impl Topology {
    /// Reads the topology of the host whose `/proc` and `/sys` lie below `root`.
    ///
    /// Where sysfs is hidden, as in some sandboxes, the CPUs of `/proc/stat` are taken, each a core
    /// of its own.
    pub fn read(root: &Path) -> Result<Self, HostError> {
        let cpu_dir = under(root, "/sys/devices/system/cpu");
        let online = match list_of(&cpu_dir.join("online"))? {
            Some(list) if !list.is_empty() => list,
            _ => online_by_proc_stat(root)?,
        };
        let possible = match list_of(&cpu_dir.join("possible"))? {
            Some(list) if !list.is_empty() => list,
            _ => online.clone(),
        };
        let present = match list_of(&cpu_dir.join("present"))? {
            Some(list) if !list.is_empty() => list,
            _ => possible.clone(),
        };
        let mut isolated = list_of(&cpu_dir.join("isolated"))?.unwrap_or_default();
        for mount in cpus::cgroup_mounts(root) {
            // Isolated partitions of cgroup v2: older kernels do not show them in sysfs.
            isolated.extend(list_of(&mount.join("cpuset.cpus.isolated"))?.unwrap_or_default());
        }
        isolated.sort_unstable();
        isolated.dedup();

        let mut siblings = BTreeMap::new();
        for &cpu in &online {
            let topology = cpu_dir.join(format!("cpu{cpu}/topology"));
            let list = match list_of(&topology.join("core_cpus_list"))? {
                Some(list) => Some(list),
                None => list_of(&topology.join("thread_siblings_list"))?,
            };
            siblings.insert(cpu, list.unwrap_or_else(|| vec![cpu]));
        }
        let nodes = nodes(&under(root, "/sys/devices/system/node"))?;
        Ok(Self { root: root.to_owned(), possible, present, online, isolated, siblings, nodes })
    }

    /// The directory this was read below.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// CPUs the kernel has made room for: virtual machines leave slots for many more than they have.
    #[must_use]
    pub fn possible(&self) -> &[CpuId] {
        &self.possible
    }

    /// CPUs that exist, online or not.
    #[must_use]
    pub fn present(&self) -> &[CpuId] {
        &self.present
    }

    /// CPUs that are online.
    #[must_use]
    pub fn online(&self) -> &[CpuId] {
        &self.online
    }

    /// CPUs the scheduler leaves alone: `isolcpus=` and isolated cpuset partitions.
    #[must_use]
    pub fn isolated(&self) -> &[CpuId] {
        &self.isolated
    }

    /// CPUs on the same core as `cpu`, itself included.
    #[must_use]
    pub fn core_of(&self, cpu: CpuId) -> &[CpuId] {
        self.siblings.get(&cpu).map_or(&[], Vec::as_slice)
    }

    /// Are these two CPUs threads of one core? A CPU shares its core with itself.
    #[must_use]
    pub fn share_core(&self, a: CpuId, b: CpuId) -> bool {
        a == b || self.core_of(a).contains(&b) || self.core_of(b).contains(&a)
    }

    /// The memory node of `cpu`, where the kernel has nodes.
    #[must_use]
    pub fn node_of(&self, cpu: CpuId) -> Option<u32> {
        self.nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)).map(|(&node, _)| node)
    }

    /// Memory nodes and their CPUs.
    #[must_use]
    pub fn nodes(&self) -> &BTreeMap<u32, Vec<CpuId>> {
        &self.nodes
    }
}

/// The CPU list a file holds; `None` when there is no such file.
fn list_of(path: &Path) -> Result<Option<Vec<CpuId>>, HostError> {
    let Some(text) = trimmed(path) else { return Ok(None) };
    // `nohz_full` and its like print `(null)` when the feature is off.
    if text.is_empty() || text.contains("(null)") {
        return Ok(Some(Vec::new()));
    }
    let mut list = cpus::parse_list(&text).map_err(|error| HostError::NotUnderstood {
        path: path.to_owned(),
        what: error.to_string(),
    })?;
    list.sort_unstable();
    list.dedup();
    Ok(Some(list))
}

fn online_by_proc_stat(root: &Path) -> Result<Vec<CpuId>, HostError> {
    let path = under(root, "/proc/stat");
    let mut online: Vec<CpuId> = required(&path)?
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.strip_prefix("cpu")?.parse().ok())
        .map(CpuId)
        .collect();
    online.sort_unstable();
    if online.is_empty() {
        return Err(HostError::NotUnderstood { path, what: "it names no cpu".to_owned() });
    }
    Ok(online)
}

fn nodes(dir: &Path) -> Result<BTreeMap<u32, Vec<CpuId>>, HostError> {
    let mut nodes = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(nodes) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node")?.parse().ok());
        let Some(number) = number else { continue };
        if let Some(list) = list_of(&entry.path().join("cpulist"))? {
            nodes.insert(number, list);
        }
    }
    Ok(nodes)
}

/// Lines of `/proc/mounts` as (type, mount point, options), octal escapes undone.
pub(crate) fn mounts(root: &Path) -> Vec<(String, String, String)> {
    let text = text(&under(root, "/proc/mounts")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let point = fields.next()?;
            let kind = fields.next()?;
            let options = fields.next()?;
            Some((kind.to_owned(), unescape(point), options.to_owned()))
        })
        .collect()
}

/// Undoes the `\040` escapes of `/proc/mounts`.
fn unescape(field: &str) -> String {
    let mut out = Vec::with_capacity(field.len());
    let bytes = field.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes
            .get(at..at + 4)
            .filter(|escape| escape[0] == b'\\')
            .and_then(|escape| std::str::from_utf8(&escape[1..]).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(code) = code {
            out.push(code);
            at += 4;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn ids(list: &[u32]) -> Vec<CpuId> {
        list.iter().copied().map(CpuId).collect()
    }

    #[test]
    fn host_with_smt_an_offline_cpu_and_isolation_is_read() {
        let tree = Tree::smt_host();
        let topology = Topology::read(tree.root()).unwrap();
        assert_eq!(topology.possible().len(), 128);
        assert_eq!(topology.present(), ids(&[0, 1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(topology.online(), ids(&[0, 1, 2, 3, 4, 5, 6]));
        assert_eq!(topology.isolated(), ids(&[2, 6]));
        assert_eq!(topology.core_of(CpuId(2)), ids(&[2, 6]));
        assert!(topology.share_core(CpuId(6), CpuId(2)));
        assert!(!topology.share_core(CpuId(1), CpuId(2)));
        assert_eq!(topology.node_of(CpuId(1)), Some(0));
        assert_eq!(topology.node_of(CpuId(2)), Some(1));
        assert_eq!(topology.node_of(CpuId(99)), None);
    }

    #[test]
    fn hidden_sysfs_falls_back_to_proc_stat() {
        let tree = Tree::empty();
        tree.file("/proc/stat", "cpu  1 2\ncpu0 1 2 3\ncpu2 1 2 3\nintr 5\n");
        let topology = Topology::read(tree.root()).unwrap();
        assert_eq!(topology.online(), ids(&[0, 2]));
        assert_eq!(topology.possible(), ids(&[0, 2]));
        assert_eq!(topology.present(), ids(&[0, 2]));
        assert_eq!(topology.core_of(CpuId(2)), ids(&[2]));
    }

    #[test]
    fn nothing_to_read_is_an_error_that_names_the_file() {
        let tree = Tree::empty();
        let error = Topology::read(tree.root()).unwrap_err().to_string();
        assert!(error.contains("/proc/stat"), "{error}");
    }

    #[test]
    fn garbage_in_sysfs_is_an_error_and_not_a_guess() {
        let tree = Tree::empty();
        tree.file("/sys/devices/system/cpu/online", "0-3;rm\n");
        let error = Topology::read(tree.root()).unwrap_err();
        assert!(matches!(error, HostError::NotUnderstood { .. }), "{error}");
    }

    #[test]
    fn isolated_partitions_of_cgroup_v2_count_as_isolated() {
        let tree = Tree::smt_host();
        tree.file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
        tree.file("/sys/fs/cgroup/cpuset.cpus.isolated", "3\n");
        let topology = Topology::read(tree.root()).unwrap();
        assert_eq!(topology.isolated(), ids(&[2, 3, 6]));
    }

    #[test]
    fn this_very_host_has_a_topology_in_which_every_cpu_shares_a_core_with_itself() {
        let topology = Topology::read(Path::new("/")).unwrap();
        assert!(!topology.online().is_empty());
        for &cpu in topology.online() {
            assert!(topology.core_of(cpu).contains(&cpu));
            assert!(topology.present().contains(&cpu));
        }
    }

    #[test]
    fn escapes_of_mount_points_are_undone() {
        assert_eq!(unescape(r"/mnt/a\040b\134c"), "/mnt/a b\\c");
        assert_eq!(unescape(r"/mnt/a\04"), r"/mnt/a\04");
    }
}
