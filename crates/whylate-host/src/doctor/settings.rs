//! What the checks read beside the knobs of [`crate::knobs`], as knobs: settings of interrupts,
//! ports and services, so that a run keeps them and a change is named.
//!
//! Settings only: nothing that counts, moves with the load, or goes by a process. What cannot be
//! read is unknown. Interrupts are told by the CPUs that they may go to, since where they go now
//! changes by itself.

use std::collections::BTreeMap;
use std::path::Path;

use whylate_model::host::Knob;
use whylate_model::{CpuId, CpuList};

use super::network::{held, offloads_of, ports, speed};
use super::view::{Look, View};
use super::{live, pcie, processes, scheduling};

/// Knobs that are the whole text of one file.
const PLAIN: [(&str, &str); 11] = [
    ("hugepages", "/proc/sys/vm/nr_hugepages"),
    ("icmp.ignore_all", "/proc/sys/net/ipv4/icmp_echo_ignore_all"),
    ("icmp.ratelimit", "/proc/sys/net/ipv4/icmp_ratelimit"),
    ("icmp.ratemask", "/proc/sys/net/ipv4/icmp_ratemask"),
    ("irq.default_affinity", "/proc/irq/default_smp_affinity"),
    ("net.backlog", "/proc/sys/net/core/netdev_max_backlog"),
    ("net.busy_poll", "/proc/sys/net/core/busy_poll"),
    ("net.busy_read", "/proc/sys/net/core/busy_read"),
    ("timer_slack_ns", "/proc/self/timerslack_ns"),
    ("watchdog.soft", "/proc/sys/kernel/soft_watchdog"),
    ("workqueue.writeback_cpus", "/sys/devices/virtual/workqueue/writeback/cpumask"),
];

/// Services that change what the checks look at, by the name of their process.
const SERVICES: [(&str, &str); 2] =
    [("service.auditd", "auditd"), ("service.irqbalance", "irqbalance")];

/// Most ports that are told: hosts with more make them by the hundred for their guests.
const MAX_PORTS: usize = 64;

/// Longest text of where interrupts may go; a host with thousands of queues spreads them all.
const MAX_AFFINITY: usize = 4_000;

/// Reads them below `root`.
pub(crate) fn read(root: &Path) -> BTreeMap<String, Knob> {
    let Ok(view) = View::open(root) else { return BTreeMap::new() };
    let mut knobs = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        knobs.insert(name.to_owned(), value.map_or(Knob::Unknown, Knob::Value));
    };
    for (name, path) in PLAIN {
        put(name, value(view.text(path)));
    }
    put("pcie.aspm", value(view.chosen("/sys/module/pcie_aspm/parameters/policy")));
    put("irq.affinity", affinity(&view));
    let share = scheduling::own_share(&view).and_then(|(_, share)| value(share));
    put("rt.group_us", share.map(|us| us.to_string()));
    let running = processes::read(&view);
    for (name, process) in SERVICES {
        let runs = running.iter().any(|one| one.name == process);
        let told = if runs { "runs" } else { "not seen" };
        put(name, (!running.is_empty()).then(|| told.to_owned()));
    }
    let mut ports = ports(&view);
    ports.truncate(MAX_PORTS);
    let here = root == Path::new("/");
    let coalescing = here.then(|| live::coalescing_of(&ports));
    let offloads = here.then(|| live::offloads_of(&ports));
    for port in &ports {
        let mut put = |what: &str, value| put(&format!("port.{port}.{what}"), value);
        let node = view.text(&format!("/sys/class/net/{port}/device/numa_node"));
        put("aspm", aspm(&view, port));
        put("coalescing", value(held(&view, coalescing.as_ref(), port)).map(|held| held.words()));
        put("link", value(pcie::link(&view, port, "current")).map(pcie::Link::words));
        put("node", value(node));
        put("offloads", value(offloads_of(&view, offloads.as_ref(), port)).map(|on| words(&on)));
        put("speed_mbits", value(speed(&view, port)).map(|mbits| mbits.to_string()));
        let sending = steering(&view, port, "tx-", "xps_cpus");
        put("sending", sending.map(|words| words.replacen("to ", "by queues of ", 1)));
        put("steering", steering(&view, port, "rx-", "rps_cpus"));
    }
    knobs
}

fn value<T>(look: Look<T>) -> Option<T> {
    look.ok().map(|said| said.value)
}

/// The offloads that are on.
fn words(on: &[&str]) -> String {
    if on.is_empty() { "off".to_owned() } else { on.join(" ") }
}

/// The interrupts by the CPUs that they may go to: `0-1: 24-31,36; 1: 40`. Where that is too long
/// to be read, what tells it from another.
fn affinity(view: &View) -> Option<String> {
    let mut by_list: BTreeMap<Vec<CpuId>, Vec<u32>> = BTreeMap::new();
    for number in view.numbers("/proc/irq") {
        let list = value(view.cpu_list(&format!("/proc/irq/{number}/smp_affinity_list")));
        by_list.entry(list?).or_default().push(number);
    }
    let group = |(cpus, numbers): (&Vec<CpuId>, &Vec<u32>)| {
        // Numbers in order, as a list of CPUs is written.
        let numbers: Vec<CpuId> = numbers.iter().copied().map(CpuId).collect();
        format!("{}: {}", CpuList(cpus), CpuList(&numbers))
    };
    let text = by_list.iter().map(group).collect::<Vec<_>>().join("; ");
    if text.len() > MAX_AFFINITY {
        let digest = digest(text.as_bytes());
        return Some(format!("{} different lists, digest {digest:016x}", by_list.len()));
    }
    (!text.is_empty()).then_some(text)
}

/// FNV-1a: it tells texts apart and keeps no secret.
fn digest(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The states of the link that are shown, and which are on.
fn aspm(view: &View, port: &str) -> Option<String> {
    let shown = ["l0s", "l1"].into_iter().filter_map(|state| {
        let path = format!("/sys/class/net/{port}/device/link/{state}_aspm");
        let on = value(view.number(&path)).filter(|flag| *flag <= 1)? == 1;
        Some(format!("{state} {}", if on { "on" } else { "off" }))
    });
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// CPUs of the masks that a file of each queue of one kind holds: those that received packets are
/// steered to, or that have a queue of their own to send by.
fn steering(view: &View, port: &str, kind: &str, file: &str) -> Option<String> {
    let queues = format!("/sys/class/net/{port}/queues");
    let ours = view.names(&queues).into_iter().filter(|name| name.starts_with(kind));
    let masks: Option<Vec<Vec<CpuId>>> =
        ours.map(|queue| value(view.cpu_mask(&format!("{queues}/{queue}/{file}")))).collect();
    let mut cpus = masks.filter(|masks| !masks.is_empty())?.concat();
    cpus.sort_unstable();
    cpus.dedup();
    Some(if cpus.is_empty() { "off".to_owned() } else { format!("to {}", CpuList(&cpus)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn told(tree: &Tree, name: &str) -> Knob {
        read(tree.root())[name].clone()
    }

    fn value(text: &str) -> Knob {
        Knob::Value(text.to_owned())
    }

    #[test]
    fn what_is_absent_is_unknown() {
        for (name, knob) in read(Tree::empty().root()) {
            assert_eq!(knob, Knob::Unknown, "{name}");
        }
    }

    #[test]
    fn interrupts_are_told_by_the_cpus_that_they_may_go_to() {
        let tree = Tree::empty();
        for (number, list) in [(24, "0-1"), (25, "0-1"), (30, "1"), (36, "0-1")] {
            tree.file(&format!("/proc/irq/{number}/smp_affinity_list"), &format!("{list}\n"));
        }
        assert_eq!(told(&tree, "irq.affinity"), value("0-1: 24-25,36; 1: 30"));
        tree.file("/proc/irq/31/smp_affinity_list", "banana\n");
        assert_eq!(told(&tree, "irq.affinity"), Knob::Unknown);
    }

    #[test]
    fn interrupts_that_are_too_many_to_tell_are_told_from_others() {
        let tree = Tree::empty();
        let path = |number| format!("/proc/irq/{number}/smp_affinity_list");
        for number in 0..600 {
            tree.file(&path(number), &format!("{number}\n"));
        }
        let before = told(&tree, "irq.affinity");
        assert!(format!("{before:?}").contains("600 different lists"), "{before:?}");
        assert_eq!(told(&tree, "irq.affinity"), before);
        tree.file(&path(7), "1000\n");
        assert_ne!(told(&tree, "irq.affinity"), before);
    }

    #[test]
    fn ports_are_told_by_their_settings() {
        let tree = Tree::empty();
        let port = "/sys/class/net/eth0";
        tree.file(&format!("{port}/device/uevent"), "DRIVER=x\n")
            .file(&format!("{port}/device/numa_node"), "1\n")
            .file(&format!("{port}/device/current_link_speed"), "8.0 GT/s PCIe\n")
            .file(&format!("{port}/device/current_link_width"), "4\n")
            .file(&format!("{port}/device/link/l1_aspm"), "1\n")
            .file(&format!("{port}/queues/rx-0/rps_cpus"), "0\n")
            .file(&format!("{port}/queues/rx-1/rps_cpus"), "6\n")
            .file(&format!("{port}/queues/tx-0/xps_cpus"), "1\n")
            .file(&format!("{port}/queues/tx-1/xps_cpus"), "2\n")
            .file(
                "/commands/ethtool-c-eth0.txt",
                "Adaptive RX: off TX: off\nrx-usecs: 50\ntx-usecs: 0\n",
            )
            .file("/commands/ethtool-k-eth0.txt", "generic-receive-offload: on\n");
        let port = |what: &str| told(&tree, &format!("port.eth0.{what}"));
        assert_eq!(port("coalescing"), value("rx 50 us, tx 0 us"));
        assert_eq!(port("offloads"), value("gro"));
        assert_eq!(port("link"), value("8.0 GT/s x4"));
        assert_eq!(port("aspm"), value("l1 on"));
        assert_eq!(port("node"), value("1"));
        assert_eq!(port("steering"), value("to 1-2"));
        assert_eq!(port("sending"), value("by queues of 0-1"));
        assert_eq!(port("speed_mbits"), Knob::Unknown);
    }

    #[test]
    fn services_are_seen_or_not_and_unknown_where_no_process_is() {
        let tree = Tree::empty();
        tree.file("/proc/7/status", "Name:\tirqbalance\nState:\tS\n");
        assert_eq!(told(&tree, "service.irqbalance"), value("runs"));
        assert_eq!(told(&tree, "service.auditd"), value("not seen"));
    }

    #[test]
    fn two_looks_at_this_host_find_the_same() {
        // Others move an interrupt or end a service between two looks, but not all the time.
        let look = || read(Path::new("/"));
        let same = (0..1_000).any(|_| {
            let same = look() == look();
            if !same {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            same
        });
        assert!(same, "{:?}\n{:?}", look(), look());
    }
}
