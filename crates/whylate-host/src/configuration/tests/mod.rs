//! Configurations on planted hosts and on this one, taken back by drop and after a kill.

mod here;
mod killed;
mod planted;
mod refused;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;
use crate::cpus::format_list;
use crate::kernel;
use crate::tree::{self, Idle, Tree};

const CPU: &str = "/sys/devices/system/cpu";

/// Two CPUs of this host: what is planted is a tree of files, and its threads are real.
fn two_cpus() -> Option<[CpuId; 2]> {
    let all = whylate_sys::affinity::get();
    let [first, .., last] = all[..] else {
        tree::skip(&"this process has a single CPU: there is none to move to");
        return None;
    };
    Some([first, last])
}

/// A host with two memory nodes of one CPU each, eth9 on the first, and every knob that is a file.
fn two_nodes([first, last]: [CpuId; 2]) -> Tree {
    let tree = Tree::empty();
    let online = format_list(&[first, last]);
    for list in ["possible", "present", "online"] {
        tree.file(&format!("{CPU}/{list}"), &format!("{online}\n"));
    }
    let both = format!("{:x}\n", (1_u64 << first.0) | (1 << last.0));
    tree.file("/sys/devices/system/node/node0/cpulist", &format!("{first}\n"))
        .file("/sys/devices/system/node/node1/cpulist", &format!("{last}\n"))
        .file("/sys/class/net/eth9/device/numa_node", "0\n")
        .file("/sys/devices/virtual/workqueue/cpumask", &both)
        .file("/sys/devices/virtual/workqueue/writeback/cpumask", &both)
        .file("/proc/irq/default_smp_affinity", &both)
        .file("/proc/irq/40/smp_affinity_list", &format!("{last}\n"))
        .file("/proc/irq/41/smp_affinity_list", &format!("{online}\n"))
        .file("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")
        .file("/sys/devices/system/cpu/cpufreq/boost", "1\n")
        .file("/sys/module/pcie_aspm/parameters/policy", "[default] performance powersave\n")
        .file("/proc/sys/kernel/numa_balancing", "1\n")
        .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        .file("/proc/sys/kernel/nmi_watchdog", "1\n")
        .file("/proc/cmdline", "quiet audit=1\n");
    for cpu in [first, last] {
        let dir = format!("{CPU}/cpu{cpu}");
        tree.file(&format!("{dir}/power/pm_qos_resume_latency_us"), "0\n")
            .file(&format!("{dir}/cpufreq/scaling_governor"), "powersave\n")
            .file(&format!("{dir}/cpufreq/scaling_available_governors"), "performance powersave\n")
            .file(&format!("{dir}/cpufreq/scaling_max_freq"), "3900000\n")
            .file(&format!("{dir}/cpufreq/scaling_min_freq"), "800000\n")
            .file(&format!("{dir}/cpufreq/base_frequency"), "2400000\n");
        for (number, (name, latency)) in [("POLL", 0), ("C1", 2), ("C6", 133)].iter().enumerate() {
            let state = format!("{dir}/cpuidle/state{number}");
            tree.file(&format!("{state}/name"), &format!("{name}\n"))
                .file(&format!("{state}/latency"), &format!("{latency}\n"))
                .file(&format!("{state}/disable"), "0\n");
        }
    }
    tree
}

/// All files below, as settings are compared: white space and choices not in force aside.
fn settings_of(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(path, choice(text.trim()).to_owned());
            }
        }
    }
    found
}

/// A journal beside the tree, so that it is none of its settings.
fn journal() -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
    (dir, journal)
}

fn ground(tree: &Tree, others: &[&Idle]) -> Ground {
    Ground {
        root: tree.root().to_owned(),
        others: Some(others.iter().map(|idle| idle.pid()).collect()),
        interrupts: None,
    }
}

fn words(text: &str) -> Configuration {
    text.parse().unwrap()
}

fn says(tree: &Tree, path: &str) -> String {
    let text = fs::read_to_string(crate::files::under(tree.root(), path)).unwrap();
    text.trim().to_owned()
}

fn reading<'a>(applied: &'a Applied, name: &str) -> &'a KnobReading {
    let found = applied.read_back().iter().find(|one| one.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:#?}", applied.facts()))
}
