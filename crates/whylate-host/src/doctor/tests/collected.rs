//! A tree collected by the documented lines, from a host whose `/proc` and `/sys` have the links
//! that a kernel's have.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use whylate_model::doctor::{Diagnosis, Level, Symptom};

use super::clean::patient;
use super::planted::PITFALLS;
use crate::cpus::CpuSpec;
use crate::doctor::{COLLECT, Request, checks, examine};
use crate::files::under;

const CPU: &str = "/sys/devices/system/cpu";

/// What a kernel shows behind a link: the link, where it leads, and what moves there.
const LINKS: [(&str, &str); 5] = [
    ("/sys/class/net/eth0", "../../devices/pci0000:3a/0000:3b:00.0/net/eth0"),
    ("/sys/class/dmi/id", "../../devices/virtual/dmi/id"),
    ("/sys/fs/cgroup/cpu", "cpu,cpuacct"),
    ("/proc/net", "self/net"),
    ("/proc/self", "50"),
];

/// Moves what a path holds to where the kernel has it, and leaves the link.
fn behind_a_link(root: &Path, path: &str, target: &str) {
    let link = under(root, path);
    let place = link.parent().unwrap().join(target);
    fs::create_dir_all(&place).unwrap();
    for entry in fs::read_dir(&link).unwrap().flatten() {
        fs::rename(entry.path(), place.join(entry.file_name())).unwrap();
    }
    fs::remove_dir(&link).unwrap();
    symlink(target, link).unwrap();
}

/// CPUs 0 and 1 share a policy; a group has two names.
fn as_a_kernel_has_it(root: &Path) {
    for (cpu, policy, cpus) in [(0, 0, "0 1\n"), (1, 0, "0 1\n"), (2, 2, "2\n"), (3, 3, "3\n")] {
        let target = format!("../cpufreq/policy{policy}");
        behind_a_link(root, &format!("{CPU}/cpu{cpu}/cpufreq"), &target);
        let policy = under(root, &format!("{CPU}/cpufreq/policy{policy}"));
        fs::write(policy.join("affected_cpus"), cpus).unwrap();
        fs::write(policy.join("related_cpus"), cpus).unwrap();
    }
    symlink("cpu,cpuacct", under(root, "/sys/fs/cgroup/cpuacct")).unwrap();
    let device = "/sys/devices/pci0000:3a/0000:3b:00.0";
    fs::create_dir_all(under(root, &format!("{device}/net"))).unwrap();
    fs::rename(under(root, "/sys/class/net/eth0/device"), under(root, "/device")).unwrap();
    for entry in fs::read_dir(under(root, "/device")).unwrap().flatten() {
        let place = under(root, device).join(entry.file_name());
        fs::rename(entry.path(), place).unwrap();
    }
    fs::remove_dir(under(root, "/device")).unwrap();
    for (path, target) in LINKS {
        behind_a_link(root, path, target);
    }
    let port = under(root, &format!("{device}/net/eth0"));
    symlink("../../../0000:3b:00.0", port.join("device")).unwrap();
    fs::rename(under(root, "/proc/mounts"), under(root, "/proc/50/mounts")).unwrap();
    symlink("self/mounts", under(root, "/proc/mounts")).unwrap();
}

/// Programs that the lines call and that would ask this host.
fn stubs(outside: &Path) -> PathBuf {
    let programs = outside.join("programs");
    fs::create_dir(&programs).unwrap();
    let coalescing = "Adaptive RX: on  TX: off\\nrx-usecs: 50\\ntx-usecs: 8\\n";
    let offloads = "generic-receive-offload: on\\ntcp-segmentation-offload: off\\n";
    for (name, script) in [
        (
            "ethtool",
            format!(
                "test $2 = eth0 || exit 1\ncase $1 in -c) printf '{coalescing}';; -k) printf \
                 '{offloads}';; esac"
            ),
        ),
        ("auditctl", "printf 'enabled 1\\nfailure 1\\n'".to_owned()),
    ] {
        let program = programs.join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    programs
}

/// Runs the documented lines below `root` in place of `/`; the tree lies in `host` of `outside`.
fn collect(root: &Path, outside: &Path) -> PathBuf {
    let programs = outside.join("programs");
    let programs = if programs.exists() { programs } else { stubs(outside) };
    assert_eq!(COLLECT.matches("cd /;").count(), 1, "the lines go to the root once");
    let lines = COLLECT.replace("cd /;", "cd \"$ROOT\";");
    let path = std::env::var("PATH").unwrap_or_default();
    let status = Command::new("sh")
        .args(["-c", &lines])
        .env("ROOT", root)
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(outside)
        .status()
        .unwrap();
    // What is not there is left out, and that is not told.
    assert!(status.code().is_some(), "{status}");
    outside.join("host")
}

fn diagnosis(root: &Path) -> Diagnosis {
    let cpus: CpuSpec = "2-3".parse().unwrap();
    examine(&Request { root, cpus: Some(&cpus), live: None, last: None }).unwrap()
}

fn symptom<'a>(diagnosis: &'a Diagnosis, check: &str) -> &'a Symptom {
    diagnosis.symptoms.iter().find(|symptom| symptom.check == check).unwrap()
}

/// Checks that hear of their pitfall by a call, or from this host's past: no tree holds those.
const NOT_IN_A_TREE: [&str; 4] = ["timer-slack", "host-changed", "clock-cost", "disk-speed"];

/// Those that a command of the other machine tells.
const BY_COMMAND: [&str; 3] = ["nic-coalescing", "nic-offloads", "audit"];

fn not_in_the_tree(check: &str) -> bool {
    NOT_IN_A_TREE.contains(&check) || BY_COMMAND.contains(&check)
}

/// The first pitfall of each check together, then the second, and so on.
#[test]
fn a_collected_tree_tells_every_planted_pitfall_as_the_host_does() {
    for round in 0.. {
        let mut patient = patient();
        as_a_kernel_has_it(patient.root());
        let mut planted: Vec<&str> = Vec::new();
        for check in checks().filter(|check| !not_in_the_tree(check)) {
            let pitfall = PITFALLS.iter().filter(|(name, ..)| *name == check).nth(round);
            if let Some((.., plant)) = pitfall {
                plant(&mut patient);
                planted.push(check);
            }
        }
        if planted.is_empty() {
            assert!(round > 2, "some checks have three");
            return;
        }
        let outside = tempfile::tempdir().unwrap();
        let collected = diagnosis(&collect(patient.root(), outside.path()));
        let there = diagnosis(patient.root());
        for check in planted {
            let (found, expected) = (symptom(&collected, check), symptom(&there, check));
            assert!(found.level > Level::Unknown, "{check}: {}", found.finding);
            assert_eq!((found.level, &found.finding), (expected.level, &expected.finding));
        }
    }
}

#[test]
fn a_collected_tree_tells_of_a_clean_host_what_the_host_tells_and_the_same_host() {
    let patient = patient();
    as_a_kernel_has_it(patient.root());
    let outside = tempfile::tempdir().unwrap();
    let tree = collect(patient.root(), outside.path());
    for cpu in 0..4 {
        let governor = under(&tree, &format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"));
        assert!(
            governor.is_file(),
            "{}: the second name of a policy is left out",
            governor.display()
        );
    }
    let collected = diagnosis(&tree);
    let there = diagnosis(patient.root());
    let differ: Vec<String> =
        there.host.differences(&collected.host).into_iter().map(|one| one.name).collect();
    // Here commands tell them, and there nobody was asked.
    assert_eq!(differ, ["port.eth0.coalescing", "port.eth0.offloads"]);
    for symptom in &collected.symptoms {
        let by_command = BY_COMMAND.contains(&symptom.check.as_str());
        let no_tree = NOT_IN_A_TREE.contains(&symptom.check.as_str());
        match symptom.level {
            Level::Fine => assert!(!no_tree, "{symptom:?}"),
            Level::Unknown => assert!(no_tree, "{symptom:?}"),
            _ => assert!(by_command, "{symptom:?}"),
        }
    }
}

#[test]
fn what_commands_tell_of_the_other_machine_is_in_its_tree() {
    let patient = patient();
    as_a_kernel_has_it(patient.root());
    patient.edit("/proc/cmdline", " audit=0", "");
    let outside = tempfile::tempdir().unwrap();
    let collected = diagnosis(&collect(patient.root(), outside.path()));
    for (check, word) in [
        ("nic-coalescing", "eth0 holds back rx 50 us, tx 8 us, adaptive"),
        ("nic-offloads", "eth0 has gro on"),
        ("audit", "auditing is on"),
    ] {
        let found = symptom(&collected, check);
        assert!(found.finding.contains(word), "{check}: {}", found.finding);
    }
}

#[test]
fn a_tree_that_was_copied_without_links_tells_the_governor_by_its_policy() {
    let patient = patient();
    as_a_kernel_has_it(patient.root());
    patient.set(&format!("{CPU}/cpufreq/policy3/scaling_governor"), "powersave\n");
    for cpu in 0..4 {
        patient.remove(&format!("{CPU}/cpu{cpu}/cpufreq"));
    }
    let diagnosis = diagnosis(patient.root());
    let governor = symptom(&diagnosis, "governor");
    assert_eq!(governor.level, Level::Spoils);
    assert!(governor.finding.contains("powersave on CPU 3 (1200 to 2400 MHz)"), "{governor:?}");
    let knob = &diagnosis.host.knobs["cpufreq.governor"];
    assert_eq!(format!("{knob:?}"), "Value(\"performance on 0-2, powersave on 3\")");
    assert_eq!(symptom(&diagnosis, "turbo").level, Level::Fine);
}
