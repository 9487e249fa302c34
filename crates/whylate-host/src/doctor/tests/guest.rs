//! A virtual machine: what its hypervisor shows of the machine is unknown of the machine.

use whylate_model::doctor::Level;

use super::Patient;
use super::clean::patient;
use crate::doctor::guest::hidden;

fn guest() -> Patient {
    let patient = patient();
    patient.edit("/proc/cpuinfo", "rdtscp", "rdtscp hypervisor");
    patient
}

#[test]
fn what_a_guest_cannot_know_of_its_host_is_unknown_and_never_fine() {
    let complaints = guest().complaints();
    let names: Vec<&str> = complaints.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "smt-siblings",
            "governor",
            "turbo",
            "idle-states",
            "transparent-hugepages",
            "same-page-merging",
            "numa-balancing",
            "swap",
            "nmi-watchdog",
            "mitigations",
            "microcode",
            "nic-node",
            "nic-pcie-width",
            "pcie-power",
            "nic-coalescing",
            "nic-offloads",
            "hypervisor",
            "steal",
        ]
    );
    for (name, level, finding) in &complaints {
        let expected = if name == "hypervisor" { Level::Spoils } else { Level::Unknown };
        assert_eq!(*level, expected, "{name}");
        let told = hidden(name).is_none_or(|other_side| finding.contains(other_side));
        assert!(told, "{name}: {finding}");
    }
    let told = |check: &str| complaints.iter().find(|(name, ..)| name == check).unwrap().2.clone();
    assert!(told("microcode").contains("in the guest all CPUs have microcode 0x2b000571"));
    assert!(told("smt-siblings").contains("not known on a virtual machine"));
}

#[test]
fn what_is_bad_in_a_guest_is_found_there() {
    let patient = guest();
    patient.set("/sys/kernel/mm/ksm/run", "1\n");
    patient.set("/sys/devices/system/cpu/cpu2/topology/core_cpus_list", "0,2\n");
    patient.set("/sys/devices/system/cpu/cpu2/cpuidle/state1/disable", "0\n");
    let claims: Vec<String> = patient.claims().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(claims, ["smt-siblings", "idle-states", "same-page-merging", "hypervisor"]);
}

#[test]
fn what_the_guests_own_kernel_rules_out_is_fine_there() {
    let patient = guest();
    patient.edit("/proc/cmdline", "audit=0", "audit=0 idle=poll");
    let names: Vec<String> = patient.complaints().into_iter().map(|(name, ..)| name).collect();
    assert!(!names.iter().any(|name| name == "idle-states"), "it never halts: {names:?}");
}
