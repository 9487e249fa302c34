//! Each pitfall alone is found by its check and by no other; all together, all are found.

use whylate_model::doctor::Level::{self, Note, Spoils};
use whylate_model::doctor::Remedy;
use whylate_sys::ethtool::Coalescing;

use super::Patient;
use super::clean::patient;
use crate::doctor::checks;

type Plant = fn(&mut Patient);

/// A pitfall: the check that is to find it, how bad it is, a word of the finding, and how it is
/// planted. The first of each check is planted together with all the others.
type Pitfall = (&'static str, Level, &'static str, Plant);

const CPU: &str = "/sys/devices/system/cpu";

pub(super) const PITFALLS: &[Pitfall] = &[
    ("smt-siblings", Spoils, "CPU 2 shares its core with CPU 0", |p| {
        p.set(&format!("{CPU}/cpu2/topology/core_cpus_list"), "0,2\n");
    }),
    ("isolated-cpus", Spoils, "CPU 2 is not isolated, though", |p| {
        p.set(&format!("{CPU}/isolated"), "3\n");
    }),
    ("isolated-cpus", Spoils, "CPU 2-3 are not isolated", |p| {
        p.set(&format!("{CPU}/isolated"), "\n");
    }),
    ("nohz-full", Note, "CPU 3 1000 times a second", |p| {
        p.set(&format!("{CPU}/nohz_full"), "2\n");
    }),
    ("nohz-full", Note, "built without NO_HZ_FULL", |p| {
        p.remove(&format!("{CPU}/nohz_full"));
        p.edit("/boot/config-6.6.30", "CONFIG_NO_HZ_FULL=y", "# CONFIG_NO_HZ_FULL is not set");
    }),
    ("rcu-callbacks", Note, "CPU 3", |p| {
        p.edit("/proc/cmdline", "rcu_nocbs=2-3", "rcu_nocbs=2");
        p.set(&format!("{CPU}/nohz_full"), "2\n");
    }),
    ("kernel-work", Note, "CPU 2-3", |p| p.set("/sys/devices/virtual/workqueue/cpumask", "f\n")),
    ("kernel-work", Note, "writeback", |p| {
        p.set("/sys/devices/virtual/workqueue/writeback/cpumask", "0000000f\n");
    }),
    ("interrupt-affinity", Spoils, "IRQ 31 eth0 (7 since boot)", |p| {
        p.set("/proc/irq/31/smp_affinity_list", "1-2\n");
        p.edit("/proc/interrupts", "0  5  0  0", "0  5  7  0");
    }),
    ("interrupt-affinity", Note, "none has come yet", |p| {
        p.set("/proc/irq/30/effective_affinity_list", "3\n");
    }),
    (
        "interrupt-affinity",
        Note,
        "1 interrupt may go to CPUs 2-3: IRQ 30 nvme0q0 (9 since boot)",
        |p| {
            p.set("/proc/irq/30/smp_affinity_list", "0-3\n");
            p.edit("/proc/interrupts", "99  0  0  0", "99  0  0  9");
        },
    ),
    ("interrupt-default", Note, "CPU 2-3", |p| p.set("/proc/irq/default_smp_affinity", "f\n")),
    ("irqbalance", Note, "process 77", |p| {
        p.set("/proc/77/status", "Name:\tirqbalance\nState:\tS\nVmSize:\t 9 kB\n");
    }),
    ("receive-steering", Note, "eth0 rx-0", |p| {
        p.set("/sys/class/net/eth0/queues/rx-0/rps_cpus", "4\n");
    }),
    ("governor", Spoils, "powersave on CPU 3 (1200 to 2400 MHz)", |p| {
        p.set(&format!("{CPU}/cpu3/cpufreq/scaling_governor"), "powersave\n");
    }),
    ("governor", Note, "energy preference of CPU 2", |p| {
        p.set(&format!("{CPU}/cpu2/cpufreq/energy_performance_preference"), "balance_power\n");
    }),
    ("turbo", Note, "turbo is on", |p| {
        for cpu in 2..4 {
            p.set(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_max_freq"), "2401000\n");
        }
    }),
    ("turbo", Note, "turbo is on", |p| {
        for cpu in 0..4 {
            p.set(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_driver"), "intel_pstate\n");
        }
        p.remove(&format!("{CPU}/cpufreq/boost"));
        p.set(&format!("{CPU}/intel_pstate/no_turbo"), "0\n");
    }),
    ("idle-states", Spoils, "C6 (133 us to leave) on CPU 2", |p| {
        p.set(&format!("{CPU}/cpu2/cpuidle/state1/disable"), "0\n");
    }),
    ("idle-states", Note, "C1E (4 us", |p| {
        p.set(&format!("{CPU}/cpu2/cpuidle/state1/disable"), "0\n");
        p.set(&format!("{CPU}/cpu2/cpuidle/state1/latency"), "4\n");
        p.set(&format!("{CPU}/cpu2/cpuidle/state1/name"), "C1E\n");
    }),
    ("transparent-hugepages", Spoils, "every program", |p| {
        p.set("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    }),
    ("same-page-merging", Spoils, "runs", |p| p.set("/sys/kernel/mm/ksm/run", "1\n")),
    ("numa-balancing", Spoils, "is on", |p| p.set("/proc/sys/kernel/numa_balancing", "1\n")),
    ("swap", Note, "unused", |p| {
        p.edit("/proc/swaps", "Priority\n", "Priority\n/dev/dm-1 partition 8388604 0 -2\n");
    }),
    ("swap", Spoils, "2 MiB", |p| {
        p.edit("/proc/swaps", "Priority\n", "Priority\n/dev/dm-1 partition 8388604 2048 -2\n");
    }),
    ("other-jobs", Spoils, "60 stress", |p| {
        let status = "Name:\tstress\nState:\tR\nVmSize:\t 9 kB\nCpus_allowed_list:\t2-3\n";
        p.set("/proc/60/status", status);
    }),
    ("other-jobs", Note, "7.50 tasks", |p| p.set("/proc/loadavg", "7.50 1.00 1.00 8/99 9\n")),
    ("rt-throttling", Note, "50 ms in every 1000 ms", |p| {
        p.set("/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    }),
    ("rt-group-scheduling", Spoils, "no real-time share", |p| {
        p.edit("/proc/self/cgroup", "4:cpu:/\n", "4:cpu:/user\n");
        p.set("/sys/fs/cgroup/cpu/user/cpu.rt_runtime_us", "0\n");
    }),
    ("timer-slack", Note, "50 us", |p| p.live.timer_slack_ns = Ok(50_000)),
    ("clocksource", Spoils, "hpet", |p| {
        p.set("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    }),
    ("cycle-counter", Spoils, "nonstop_tsc", |p| p.edit("/proc/cpuinfo", "nonstop_tsc ", "")),
    ("nmi-watchdog", Note, "is on", |p| p.set("/proc/sys/kernel/nmi_watchdog", "1\n")),
    ("lockup-watchdog", Note, "CPU 2-3", |p| p.set("/proc/sys/kernel/watchdog_cpumask", "0-3\n")),
    ("audit", Note, "auditing is on", |p| {
        p.edit("/proc/cmdline", " audit=0", "");
        p.set("/proc/70/status", "Name:\tauditd\nState:\tS\nVmSize:\t 9 kB\n");
    }),
    ("audit", Note, "auditing is on", |p| {
        p.edit("/proc/cmdline", " audit=0", "");
        p.set("/commands/auditctl-s.txt", "enabled 1\nfailure 1\npid 0\n");
    }),
    ("mitigations", Note, "in force for spectre_v2", |p| {
        p.set(&format!("{CPU}/vulnerabilities/spectre_v2"), "Mitigation: Retpolines\n");
    }),
    ("mitigations", Note, "vulnerable to meltdown", |p| {
        p.set(&format!("{CPU}/vulnerabilities/meltdown"), "Vulnerable\n");
    }),
    ("microcode", Spoils, "0x2b000571, 0x2b000572", |p| {
        p.edit(
            "/proc/cpuinfo",
            "processor\t: 1\nmodel name\t: Some Xeon\nmicrocode\t: 0x2b000571",
            "processor\t: 1\nmodel name\t: Some Xeon\nmicrocode\t: 0x2b000572",
        );
    }),
    ("nic-node", Spoils, "eth0 is on node 0, CPU 2-3 is not", |p| {
        p.set("/sys/class/net/eth0/device/numa_node", "0\n");
    }),
    ("nic-pcie-width", Spoils, "100.0 Gb/s through a link of 8.0 GT/s x8 (63.0 Gb/s)", |p| {
        p.set("/sys/class/net/eth0/speed", "100000\n");
    }),
    ("nic-pcie-width", Spoils, "eth0, eth1 together bring 80.0 Gb/s", two_ports_of_40),
    ("nic-pcie-width", Note, "8.0 GT/s x4 of 8.0 GT/s x8", |p| {
        p.set("/sys/class/net/eth0/device/current_link_width", "4\n");
    }),
    ("pcie-power", Note, "eth0 (l1)", |p| {
        p.set("/sys/class/net/eth0/device/link/l1_aspm", "1\n");
    }),
    ("pcie-power", Note, "powersave", |p| {
        p.set("/sys/module/pcie_aspm/parameters/policy", "default performance [powersave]\n");
    }),
    ("nic-coalescing", Spoils, "rx 50 us, tx 8 us, adaptive", |p| {
        let held = Coalescing { rx_usecs: 50, tx_usecs: 8, adaptive_rx: true, adaptive_tx: false };
        p.live.coalescing.insert("eth0".to_owned(), Ok(held));
    }),
    ("nic-offloads", Note, "eth0 has gro, tso on", |p| {
        let mut said = p.live.offloads["eth0"].clone().unwrap();
        (said.gro, said.tso) = (Some(true), Some(true));
        p.live.offloads.insert("eth0".to_owned(), Ok(said));
    }),
    ("network-drops", Note, "17 packets", |p| {
        p.set("/proc/net/softnet_stat", "0000fe12 00000011 00000001\n");
    }),
    ("icmp-rate-limit", Note, "one ping in 1000 ms", |p| {
        p.set("/proc/sys/net/ipv4/icmp_ratemask", "6169\n");
    }),
    ("icmp-rate-limit", Note, "answers no ping", |p| {
        p.set("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1\n");
    }),
    ("hypervisor", Spoils, "virtual machine", |p| {
        p.edit("/proc/cpuinfo", "rdtscp", "rdtscp hypervisor");
    }),
    ("steal", Spoils, "CPU 2", |p| {
        p.edit("/proc/stat", "cpu2 500 0 300 9000 10 0 7 0", "cpu2 500 0 300 9000 10 0 7 90");
    }),
    ("host-changed", Spoils, "kernel from 6.5.0 to 6.6.30", |p| {
        change(p, |host| {
            "6.5.0".clone_into(&mut host.kernel);
        });
    }),
    ("host-changed", Note, "thp from always to never", |p| {
        change(p, |host| {
            host.knobs
                .insert("thp".to_owned(), whylate_model::host::Knob::Value("always".to_owned()));
        });
    }),
    ("clock-cost", Spoils, "522.0 ns", |p| p.live.clock_read_ns = Ok(522.0)),
    ("clock-cost", Note, "90.0 ns", |p| p.live.clock_read_ns = Ok(90.0)),
    ("disk-speed", Spoils, "2 MB/s", |p| slow_disk(p, 2e6)),
    ("disk-speed", Note, "450 MB/s and eth0 brings up to 3125 MB/s", |p| slow_disk(p, 450e6)),
];

/// Two ports of one adapter in a slot of generation 3 with 8 lanes.
fn two_ports_of_40(patient: &mut Patient) {
    for (number, port) in ["eth0", "eth1"].into_iter().enumerate() {
        let dir = format!("/sys/class/net/{port}");
        for file in ["current_link_speed", "max_link_speed"] {
            patient.set(&format!("{dir}/device/{file}"), "8.0 GT/s PCIe\n");
        }
        for file in ["current_link_width", "max_link_width"] {
            patient.set(&format!("{dir}/device/{file}"), "8\n");
        }
        patient
            .set(&format!("{dir}/device/uevent"), &format!("PCI_SLOT_NAME=0000:3b:00.{number}\n"));
        patient.set(&format!("{dir}/device/numa_node"), "1\n");
        patient.set(&format!("{dir}/operstate"), "up\n");
        patient.set(&format!("{dir}/speed"), "40000\n");
    }
    let live = &mut patient.live;
    let (coalescing, offloads) = (live.coalescing["eth0"].clone(), live.offloads["eth0"].clone());
    live.coalescing.insert("eth1".to_owned(), coalescing);
    live.offloads.insert("eth1".to_owned(), offloads);
    // A disk that takes what these bring.
    slow_disk(patient, 6e9);
}

fn change(patient: &mut Patient, edit: impl FnOnce(&mut whylate_model::host::Fingerprint)) {
    let mut host = crate::fingerprint::read(patient.root());
    edit(&mut host);
    patient.last = Some(crate::last_run::LastRun::of(&host, std::path::Path::new("/runs/last")));
}

fn slow_disk(patient: &mut Patient, bytes_per_second: f64) {
    let mut disk = patient.live.disk.clone().unwrap();
    disk.bytes_per_second = bytes_per_second;
    patient.live.disk = Ok(disk);
}

/// What planting this unavoidably plants beside it: truths about the same files.
fn beside(check: &str, word: &str) -> &'static [&'static str] {
    match (check, word) {
        // Callbacks follow the list of CPUs without a tick, and here it is shortened.
        ("rcu-callbacks", _) => &["nohz-full"],
        // A port of 100 Gb/s brings more than the disk takes.
        ("nic-pcie-width", word) if word.starts_with("100.0") => &["disk-speed"],
        // A hypervisor hides time that it gives to others.
        ("hypervisor", _) => &["steal"],
        _ => &[],
    }
}

#[test]
fn each_pitfall_alone_is_found_by_its_check_and_by_no_other() {
    for (check, level, word, plant) in PITFALLS {
        let mut patient = patient();
        plant(&mut patient);
        let mut complaints = patient.complaints();
        complaints.retain(|(name, ..)| {
            // Under a hypervisor the machine's own side is hidden: the tests of guests say how.
            let hidden = *check == "hypervisor" && crate::doctor::guest::hidden(name).is_some();
            !hidden && !beside(check, word).contains(&name.as_str())
        });
        let [(found, how_bad, finding)] = &complaints[..] else {
            panic!("{check} ({word}): {complaints:#?}")
        };
        assert_eq!((found.as_str(), how_bad), (*check, level), "{finding}");
        assert!(finding.contains(word), "{check}: `{finding}` has no `{word}`");
    }
}

#[test]
fn what_is_found_says_why_where_and_what_to_do() {
    for (check, _, word, plant) in PITFALLS {
        let mut patient = patient();
        plant(&mut patient);
        let diagnosis = patient.examine();
        let symptom = diagnosis.symptoms.iter().find(|symptom| symptom.check == *check).unwrap();
        assert!(!symptom.why.is_empty(), "{check}");
        assert!(!symptom.remedy.is_empty(), "{check} ({word}) has no remedy");
        assert!(!symptom.evidence.is_empty(), "{check} ({word}) has no evidence");
        assert!(symptom.evidence.iter().all(|one| !one.source.is_empty() && !one.said.is_empty()));
    }
}

#[test]
fn all_pitfalls_together_are_all_found() {
    let mut patient = patient();
    let mut planted: Vec<&str> = Vec::new();
    for (check, _, _, plant) in PITFALLS {
        // That of the last run compares with the host as planted, so it comes last.
        if !planted.contains(check) && *check != "host-changed" {
            plant(&mut patient);
            planted.push(check);
        }
    }
    change(&mut patient, |host| "6.5.0".clone_into(&mut host.kernel));
    planted.push("host-changed");
    let found: Vec<String> = patient.claims().into_iter().map(|(name, ..)| name).collect();
    let lacking: Vec<&&str> =
        planted.iter().filter(|name| !found.iter().any(|f| f == **name)).collect();
    assert!(lacking.is_empty(), "not found: {lacking:?}");
    assert_eq!(found.len(), planted.len());
}

#[test]
fn every_check_has_a_pitfall_planted_for_it() {
    for name in checks() {
        assert!(PITFALLS.iter().any(|(check, ..)| *check == name), "none is planted for {name}");
    }
}

#[test]
fn microcode_that_the_kernel_knows_to_be_old_is_noted_beside_the_vulnerability() {
    let patient = patient();
    patient.set(&format!("{CPU}/vulnerabilities/old_microcode"), "Vulnerable\n");
    let names: Vec<String> = patient.claims().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["mitigations", "microcode"]);
}

#[test]
fn a_fixed_speed_is_fine_under_any_governor() {
    let patient = patient();
    for cpu in 0..4 {
        patient.set(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"), "userspace\n");
        patient.set(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_min_freq"), "2400000\n");
    }
    assert_eq!(patient.complaints(), []);
}

#[test]
fn what_leads_to_a_command_is_followed_by_one_and_other_jobs_are_found_by_theirs() {
    for (check, _, _, plant) in PITFALLS {
        let mut patient = patient();
        plant(&mut patient);
        for symptom in patient.examine().symptoms {
            let mut fixes = symptom.remedy.iter().peekable();
            while let Some(fix) = fixes.next() {
                let leads = matches!(fix, Remedy::Advice(text) if text.ends_with(':'));
                let leads_to = matches!(fixes.peek(), Some(Remedy::Command(_)));
                assert!(!leads || leads_to, "{check}: {:?}", symptom.remedy);
            }
        }
    }
    let patient = patient();
    patient.set(&format!("{CPU}/isolated"), "\n");
    patient.set("/proc/loadavg", "7.50 1.00 1.00 8/99 9\n");
    let symptoms = patient.examine().symptoms;
    let jobs = symptoms.iter().find(|symptom| symptom.check == "other-jobs").unwrap();
    assert_eq!(jobs.level, Spoils, "{jobs:?}");
    let fixes = [
        Remedy::Advice("find and stop other jobs:".to_owned()),
        Remedy::Command("top -b -n 1 | head -20".to_owned()),
    ];
    assert_eq!(jobs.remedy, fixes);
}

#[test]
fn throttling_is_lifted_and_put_back_by_who_measures_and_not_by_whylate() {
    let patient = patient();
    patient.set("/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    let symptoms = patient.examine().symptoms;
    let throttling = symptoms.iter().find(|symptom| symptom.check == "rt-throttling").unwrap();
    let lift = Remedy::Command("sysctl kernel.sched_rt_runtime_us=-1".to_owned());
    let [command, Remedy::Advice(advice)] = throttling.remedy.as_slice() else {
        panic!("{:?}", throttling.remedy)
    };
    assert_eq!(*command, lift);
    assert!(advice.starts_with("put it back afterwards; whylate lifts it for no "), "{advice}");
}

#[test]
fn from_linux_6_12_on_the_fair_server_is_asked_and_not_the_throttle() {
    let patient = patient();
    patient.set("/proc/sys/kernel/osrelease", "6.12.0\n");
    patient
        .set("/boot/config-6.12.0", "CONFIG_HZ=1000\nCONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n");
    patient.set("/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    let told = |patient: &Patient| -> Vec<(String, Level)> {
        patient.complaints().into_iter().map(|(name, level, _)| (name, level)).collect()
    };
    assert_eq!(told(&patient), [("rt-throttling".to_owned(), Level::Unknown)]);
    for cpu in 2..4 {
        patient.set(&format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"), "50000000\n");
    }
    assert_eq!(told(&patient), [("rt-throttling".to_owned(), Note)]);
    for cpu in 2..4 {
        patient.set(&format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"), "0\n");
    }
    assert_eq!(told(&patient), []);
}
