//! Queues of a network interface, and by which of them a CPU sends.
//!
//! [`Documentation/networking/scaling.rst`](https://docs.kernel.org/networking/scaling.html): where
//! transmit queues are mapped to CPUs (XPS), what a CPU sends goes by a queue of its own; otherwise the
//! kernel chooses by a hash of the flow. Maps by receive queue (`xps_rxqs`) are not looked at.

use std::collections::BTreeMap;
use std::path::Path;

use whylate_model::CpuId;
use whylate_sys::sysfs::Sysfs;

/// Queues of an interface that are listed at most.
const MOST: usize = 4_096;
/// Bits of one group of a mask.
const GROUP: u32 = 32;
/// Groups of a mask: more CPUs than Linux can have.
const MOST_GROUPS: usize = 512;

/// The queues of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Queues {
    /// Queues that it receives by.
    pub receive: u32,
    /// The CPUs that each transmit queue is mapped to, by its number; empty where it is to none.
    pub transmit: Vec<Vec<CpuId>>,
}

/// Where the last message came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IncomingFacts {
    /// The receiving queue's NAPI id; none where it came through none, as on loopback.
    pub napi: Option<u32>,
    /// The CPU on which the kernel took it in.
    pub cpu: Option<CpuId>,
}

impl Queues {
    /// Those of an interface of the calling thread's network namespace. Without the right to look into
    /// a namespace, those that `/sys` shows.
    pub(crate) fn of(interface: &str) -> Option<Self> {
        match Sysfs::of_this_namespace() {
            Ok(sysfs) => Self::read(&sysfs.path(), interface),
            Err(_) => Self::read(Path::new("/sys"), interface),
        }
    }

    /// Those in a tree of files; none where it has no such interface.
    fn read(sys: &Path, interface: &str) -> Option<Self> {
        let folder = sys.join("class/net").join(interface).join("queues");
        let (mut receive, mut transmit) = (0, BTreeMap::new());
        for entry in std::fs::read_dir(folder).ok()?.flatten().take(2 * MOST) {
            let name = entry.file_name();
            let Some((kind, number)) = name.to_str().and_then(|name| name.split_once('-')) else {
                continue;
            };
            let Ok(number) = number.parse::<u32>() else { continue };
            match kind {
                "rx" => receive += 1,
                // An interface with one queue has no map: it answers that there is none.
                "tx" => {
                    let mask = std::fs::read_to_string(entry.path().join("xps_cpus"));
                    transmit.insert(number, cpus(&mask.unwrap_or_default())?);
                }
                _ => (),
            }
        }
        // Numbers follow each other from 0: otherwise something else lies there.
        let numbers = transmit.keys().copied();
        let whole = !transmit.is_empty() && numbers.eq(0..transmit.len() as u32);
        whole.then(|| Self { receive, transmit: transmit.into_values().collect() })
    }

    /// The transmit queues that a CPU's messages may take by the maps; empty where the kernel chooses
    /// among all by a hash.
    #[must_use]
    pub fn sent_by(&self, cpu: CpuId) -> Vec<u32> {
        if self.transmit.len() == 1 {
            return vec![0];
        }
        let mapped = (0..).zip(&self.transmit).filter(|(_, cpus)| cpus.contains(&cpu));
        mapped.map(|(queue, _)| queue).collect()
    }
}

/// The kernel's mask notation: groups of 32 bits in hex, highest first. None for something else; an
/// empty text is an empty mask.
fn cpus(mask: &str) -> Option<Vec<CpuId>> {
    let mask = mask.trim();
    if mask.is_empty() {
        return Some(Vec::new());
    }
    let groups: Vec<&str> = mask.split(',').collect();
    if groups.len() > MOST_GROUPS {
        return None;
    }
    let mut cpus = Vec::new();
    for (first, group) in (0..).step_by(GROUP as usize).zip(groups.iter().rev()) {
        let bits = u32::from_str_radix(group, 16).ok()?;
        let set = (0..GROUP).filter(|bit| (bits >> bit) & 1 == 1);
        cpus.extend(set.map(|bit| CpuId(first + bit)));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with one interface, whose transmit queues have these masks.
    fn planted(receive: usize, masks: &[Option<&str>]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let queues = tree.path().join("class/net/nic7/queues");
        for queue in 0..receive {
            std::fs::create_dir_all(queues.join(format!("rx-{queue}"))).unwrap();
        }
        for (queue, mask) in masks.iter().enumerate() {
            let queue = queues.join(format!("tx-{queue}"));
            std::fs::create_dir_all(&queue).unwrap();
            if let Some(mask) = mask {
                std::fs::write(queue.join("xps_cpus"), mask).unwrap();
            }
        }
        tree
    }

    fn read(tree: &tempfile::TempDir) -> Option<Queues> {
        Queues::read(tree.path(), "nic7")
    }

    #[test]
    fn a_cpu_sends_by_the_queue_that_it_is_mapped_to_and_otherwise_by_a_hash() {
        let tree = planted(2, &[Some("00000001\n"), Some("00000002\n"), Some("00000000,00000008")]);
        let queues = read(&tree).unwrap();
        assert_eq!((queues.receive, queues.transmit.len()), (2, 3));
        let by = |cpu| queues.sent_by(CpuId(cpu));
        assert_eq!([by(0), by(1), by(3)], [vec![0], vec![1], vec![2]]);
        assert!(by(2).is_empty(), "it is mapped to none");
        let both = planted(1, &[Some("3"), Some("3")]);
        assert_eq!(read(&both).unwrap().sent_by(CpuId(1)), [0, 1]);
        let unset = planted(4, &[Some("0"), Some("0"), Some("0"), Some("0")]);
        let unset = read(&unset).unwrap();
        assert_eq!((unset.sent_by(CpuId(0)), unset.receive), (vec![], 4));
    }

    #[test]
    fn the_only_queue_takes_everything_and_more_than_ten_queues_keep_their_order() {
        let one = planted(1, &[None]);
        assert_eq!(read(&one).unwrap().sent_by(CpuId(63)), [0]);
        let masks: Vec<String> = (0..12).map(|queue| format!("{:x}", 1 << queue)).collect();
        let masks: Vec<Option<&str>> = masks.iter().map(|mask| Some(&**mask)).collect();
        let many = planted(12, &masks);
        assert_eq!(read(&many).unwrap().sent_by(CpuId(11)), [11]);
        // A mask of CPUs above 32 has its highest group first.
        let high = planted(1, &[Some("00000002,00000000,00000000"), Some("1")]);
        assert_eq!(read(&high).unwrap().sent_by(CpuId(65)), [0]);
    }

    #[test]
    fn what_is_not_there_or_no_mask_is_not_known() {
        let tree = planted(1, &[Some("nonsense"), Some("1")]);
        assert_eq!(read(&tree), None);
        assert_eq!(Queues::read(tree.path(), "nic8"), None);
        let gap = planted(1, &[Some("1"), Some("2")]);
        std::fs::remove_dir_all(gap.path().join("class/net/nic7/queues/tx-0")).unwrap();
        assert_eq!(read(&gap), None);
    }
}
