//! A host without a fault: two nodes, CPUs 2 and 3 isolated and measured, a port on their node.

use std::collections::BTreeMap;

use whylate_model::doctor::Level;
use whylate_sys::ethtool::{Coalescing, Offloads};

use super::Patient;
use crate::doctor::{DiskSpeed, Live, checks};
use crate::tree::Tree;

/// Files that each CPU has.
const PER_CPU: [(&str, &str); 8] = [
    ("cpufreq/scaling_driver", "acpi-cpufreq\n"),
    ("cpufreq/scaling_governor", "performance\n"),
    ("cpufreq/scaling_available_frequencies", "2401000 2400000 1200000\n"),
    ("cpufreq/scaling_min_freq", "1200000\n"),
    ("cpufreq/scaling_max_freq", "2400000\n"),
    ("cpuidle/state0/name", "POLL\n"),
    ("cpuidle/state0/latency", "0\n"),
    ("cpuidle/state0/disable", "0\n"),
];

/// A state that is switched off, on each CPU.
const DEEP_STATE: [(&str, &str); 3] = [
    ("cpuidle/state1/name", "C6\n"),
    ("cpuidle/state1/latency", "133\n"),
    ("cpuidle/state1/disable", "1\n"),
];

const FILES: [(&str, &str); 60] = [
    ("/sys/devices/system/cpu/possible", "0-3\n"),
    ("/sys/devices/system/cpu/present", "0-3\n"),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/cpu/isolated", "2-3\n"),
    ("/sys/devices/system/cpu/nohz_full", "2-3\n"),
    ("/sys/devices/system/cpu/smt/control", "on\n"),
    ("/sys/devices/system/cpu/smt/active", "1\n"),
    ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
    ("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
    ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
    ("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Not affected\n"),
    ("/sys/devices/system/cpu/vulnerabilities/old_microcode", "Not affected\n"),
    ("/sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("/sys/devices/system/node/node1/cpulist", "2-3\n"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm\n"),
    ("/sys/devices/virtual/workqueue/cpumask", "3\n"),
    ("/sys/devices/virtual/workqueue/writeback/cpumask", "3\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
    ("/sys/kernel/mm/ksm/run", "0\n"),
    ("/sys/module/pcie_aspm/parameters/policy", "default [performance] powersave\n"),
    ("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n"),
    ("/sys/class/net/lo/queues/rx-0/rps_cpus", "0\n"),
    ("/sys/class/net/eth0/speed", "25000\n"),
    ("/sys/class/net/eth0/operstate", "up\n"),
    ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
    ("/sys/class/net/eth0/device/uevent", "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:3b:00.0\n"),
    ("/sys/class/net/eth0/device/numa_node", "1\n"),
    ("/sys/class/net/eth0/device/current_link_speed", "8.0 GT/s PCIe\n"),
    ("/sys/class/net/eth0/device/current_link_width", "8\n"),
    ("/sys/class/net/eth0/device/max_link_speed", "8.0 GT/s PCIe\n"),
    ("/sys/class/net/eth0/device/max_link_width", "8\n"),
    ("/sys/class/net/eth0/device/link/l1_aspm", "0\n"),
    ("/proc/cmdline", "root=/dev/sda1 isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3 audit=0\n"),
    ("/proc/sys/kernel/osrelease", "6.6.30\n"),
    ("/proc/sys/kernel/hostname", "box\n"),
    ("/proc/sys/kernel/version", "#1 SMP PREEMPT\n"),
    ("/proc/sys/kernel/arch", "x86_64\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
    ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("/proc/sys/kernel/numa_balancing", "0\n"),
    ("/proc/sys/kernel/nmi_watchdog", "0\n"),
    ("/proc/sys/kernel/soft_watchdog", "1\n"),
    ("/proc/sys/kernel/watchdog_cpumask", "0-1\n"),
    ("/proc/sys/net/ipv4/icmp_echo_ignore_all", "0\n"),
    ("/proc/sys/net/ipv4/icmp_ratelimit", "1000\n"),
    ("/proc/sys/net/ipv4/icmp_ratemask", "6168\n"),
    ("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n"),
    ("/proc/loadavg", "0.08 0.03 0.01 1/120 4711\n"),
    ("/proc/meminfo", "MemTotal:       16384000 kB\n"),
    ("/proc/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"),
    ("/proc/self/cgroup", "4:cpu:/\n0::/\n"),
    ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000\n"),
    ("/proc/irq/default_smp_affinity", "3\n"),
    ("/proc/irq/30/effective_affinity_list", "0\n"),
    ("/proc/irq/30/smp_affinity_list", "0-1\n"),
    ("/proc/irq/31/smp_affinity_list", "1\n"),
    ("/proc/1/status", "Name:\tsystemd\nState:\tS\nVmSize:\t 9 kB\nCpus_allowed_list:\t0-1\n"),
    ("/proc/40/status", "Name:\tmigration/2\nState:\tS\nCpus_allowed_list:\t2\n"),
    ("/proc/50/status", "Name:\tbash\nState:\tS\nVmSize:\t 9 kB\nCpus_allowed_list:\t0-3\n"),
];

const INTERRUPTS: &str = "            CPU0  CPU1  CPU2  CPU3\n\
     30:  99  0  0  0  IR-PCI-MSI 1-edge nvme0q0\n\
     31:  0  5  0  0  IR-PCI-MSI 2-edge eth0\n\
    LOC:  9  9  9  9  Local timer interrupts\n";

const CONFIG: &str = "CONFIG_HZ=1000\nCONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n\
    CONFIG_TRANSPARENT_HUGEPAGE=y\nCONFIG_KSM=y\nCONFIG_NUMA_BALANCING=y\nCONFIG_SWAP=y\n\
    CONFIG_AUDIT=y\nCONFIG_RT_GROUP_SCHED=y\n";

pub(super) fn patient() -> Patient {
    let tree = Tree::empty();
    for (path, text) in FILES {
        tree.file(path, text);
    }
    for cpu in 0..4 {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}");
        for (file, text) in PER_CPU.into_iter().chain(DEEP_STATE) {
            tree.file(&format!("{dir}/{file}"), text);
        }
        tree.file(&format!("{dir}/topology/core_cpus_list"), &format!("{cpu}\n"));
    }
    let cpuinfo = |cpu| {
        format!(
            "processor\t: {cpu}\nmodel name\t: Some Xeon\nmicrocode\t: 0x2b000571\n\
             flags\t\t: fpu constant_tsc nonstop_tsc rdtscp\n\n"
        )
    };
    tree.file("/proc/cpuinfo", &(0..4).map(cpuinfo).collect::<String>())
        .file("/proc/stat", &stat())
        .file("/proc/net/softnet_stat", &"0000fe12 00000000 00000001\n".repeat(4))
        .file("/proc/interrupts", INTERRUPTS)
        .file("/boot/config-6.6.30", CONFIG);
    Patient { tree, live: live(), last: None }
}

fn stat() -> String {
    let cpu = |name: &str| format!("{name} 500 0 300 9000 10 0 7 0 0 0\n");
    let each: String = (0..4).map(|number| cpu(&format!("cpu{number}"))).collect();
    format!("{}{each}intr 5\n", cpu("cpu"))
}

fn live() -> Live {
    let coalescing =
        Coalescing { rx_usecs: 0, tx_usecs: 0, adaptive_rx: false, adaptive_tx: false };
    let off = Some(false);
    Live {
        timer_slack_ns: Ok(1),
        clock_read_ns: Ok(9.0),
        disk: Ok(DiskSpeed {
            directory: "/runs".to_owned(),
            bytes: 16 << 20,
            bytes_per_second: 4e9,
        }),
        coalescing: BTreeMap::from([("eth0".to_owned(), Ok(coalescing))]),
        offloads: BTreeMap::from([(
            "eth0".to_owned(),
            Ok(Offloads { gro: off, lro: off, tso: off, gso: off }),
        )]),
    }
}

#[test]
fn doctor_invents_nothing_on_a_clean_tree() {
    let patient = patient();
    assert_eq!(patient.complaints(), []);
    let diagnosis = patient.examine();
    assert_eq!(diagnosis.symptoms.len(), checks().count());
    for symptom in &diagnosis.symptoms {
        assert_eq!(symptom.level, Level::Fine);
        assert!(!symptom.evidence.is_empty(), "{} is fine without evidence", symptom.check);
        assert!(symptom.remedy.is_empty(), "{} is fine and to be mended", symptom.check);
    }
}

#[test]
fn names_of_checks_are_stable_words_and_each_is_there_once() {
    let names: Vec<&str> = checks().collect();
    for (at, name) in names.iter().enumerate() {
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{name}");
        assert!(!names[..at].contains(name), "{name} is there twice");
    }
}
