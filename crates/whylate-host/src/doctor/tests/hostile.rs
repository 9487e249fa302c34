//! Files that are absent, unreadable, binary, huge or lying: unknown, and never a conclusion.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use whylate_model::doctor::Level;

use super::Patient;
use super::clean::patient;
use crate::doctor::{Request, examine};
use crate::error::HostError;

/// Every file of the clean host, as an absolute path of it.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let inside: PathBuf = entry.path().strip_prefix(root).unwrap().to_owned();
                found.push(format!("/{}", inside.display()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn an_absent_file_is_unknown_and_never_a_finding() {
    let patient = patient();
    for file in files(patient.root()) {
        let path = crate::files::under(patient.root(), &file);
        let before = std::fs::read(&path).unwrap();
        patient.remove(&file);
        assert_eq!(patient.claims(), [], "without {file}");
        std::fs::write(path, before).unwrap();
    }
}

#[test]
fn the_files_that_decide_make_their_check_unknown_when_absent() {
    for (file, check) in [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "transparent-hugepages"),
        ("/sys/kernel/mm/ksm/run", "same-page-merging"),
        ("/proc/sys/kernel/numa_balancing", "numa-balancing"),
        ("/proc/swaps", "swap"),
        ("/sys/devices/system/cpu/isolated", "isolated-cpus"),
        ("/sys/devices/system/cpu/nohz_full", "nohz-full"),
        ("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "governor"),
        ("/proc/interrupts", "interrupt-affinity"),
        ("/proc/irq/31/smp_affinity_list", "interrupt-affinity"),
        ("/proc/sys/kernel/nmi_watchdog", "nmi-watchdog"),
        ("/sys/class/net/eth0/device/numa_node", "nic-node"),
        ("/sys/class/net/eth0/device/current_link_width", "nic-pcie-width"),
    ] {
        let patient = patient();
        patient.remove(file);
        let complaints = patient.complaints();
        let [(name, level, finding)] = &complaints[..] else { panic!("{file}: {complaints:?}") };
        assert_eq!((name.as_str(), *level), (check, Level::Unknown), "{finding}");
        assert!(finding.contains("absent"), "{finding}");
    }
}

#[test]
fn turbo_is_unknown_without_a_file_that_says_and_is_never_off() {
    let patient = patient();
    patient.remove("/sys/devices/system/cpu/cpufreq/boost");
    for cpu in 0..4 {
        patient.remove(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver"));
    }
    let complaints = patient.complaints();
    let [(name, level, _)] = &complaints[..] else { panic!("{complaints:?}") };
    assert_eq!((name.as_str(), *level), ("turbo", Level::Unknown));
    patient.set("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    patient.set("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    assert_eq!(patient.complaints()[0].1, Level::Unknown, "two files that disagree");
}

#[test]
fn what_a_feature_that_is_not_built_in_lacks_is_fine_when_absent() {
    let patient = patient();
    for (file, option) in [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "CONFIG_TRANSPARENT_HUGEPAGE"),
        ("/sys/kernel/mm/ksm/run", "CONFIG_KSM"),
        ("/proc/sys/kernel/numa_balancing", "CONFIG_NUMA_BALANCING"),
        ("/proc/swaps", "CONFIG_SWAP"),
    ] {
        patient.remove(file);
        patient.edit(
            "/boot/config-6.6.30",
            &format!("{option}=y"),
            &format!("# {option} is not set"),
        );
        assert_eq!(patient.complaints(), [], "{option}");
    }
}

/// Contents that no file of a host has, and that must not be taken for one.
const LIES: [&[u8]; 7] = [
    b"banana\n",
    b"",
    b"-7\n",
    b"99999999999999999999999999\n",
    b"\xff\xfe\x00\x01",
    b"4294967295-4294967295\n",
    b"[]\n",
];

/// Files whose whole content is free text of the machine: any content of theirs is true.
fn free_text(file: &str) -> bool {
    file.contains("/proc/sys/kernel/hostname")
        || file.ends_with("sys_vendor")
        || file.ends_with("uevent")
        || file.ends_with("/cmdline")
}

#[test]
fn lying_files_are_never_a_finding() {
    let patient = patient();
    for file in files(patient.root()).iter().filter(|file| !free_text(file)) {
        for lie in LIES {
            let claims = patient.while_file_holds(file, lie, Patient::claims);
            assert_eq!(claims, [], "{file} says {:?}", String::from_utf8_lossy(lie));
        }
    }
}

#[test]
fn huge_files_pipes_and_folders_are_never_a_finding_and_never_waited_for() {
    let huge = vec![b'1'; 5 << 20];
    let patient = patient();
    for file in files(patient.root()) {
        let claims = patient.while_file_holds(&file, &huge, Patient::claims);
        assert_eq!(claims, [], "{file} is huge");
        let path = crate::files::under(patient.root(), &file);
        let before = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        let fifo = rustix::fs::FileType::Fifo;
        if let Err(refusal) = rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0) {
            return crate::tree::skip(&refusal);
        }
        assert_eq!(patient.claims(), [], "{file} is a pipe");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(patient.claims(), [], "{file} is a folder");
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, before).unwrap();
    }
}

#[test]
fn files_that_may_not_be_read_are_unknown_and_say_so() {
    use std::os::unix::fs::PermissionsExt;

    let patient = patient();
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    let path = crate::files::under(patient.root(), thp);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        return crate::tree::skip(&"this user may read everything");
    }
    let complaints = patient.complaints();
    let [(name, level, finding)] = &complaints[..] else { panic!("{complaints:?}") };
    assert_eq!((name.as_str(), *level), ("transparent-hugepages", Level::Unknown));
    assert!(finding.contains("not permitted"), "{finding}");
}

#[test]
fn links_out_of_a_collected_tree_are_not_followed() {
    let patient = patient();
    let outside = tempfile::tempdir().unwrap();
    let always = outside.path().join("enabled");
    std::fs::write(&always, "[always] never\n").unwrap();
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    patient.remove(thp);
    std::os::unix::fs::symlink(&always, crate::files::under(patient.root(), thp)).unwrap();
    assert_eq!(patient.claims(), []);
}

#[test]
fn an_empty_tree_is_all_unknown() {
    let tree = crate::tree::Tree::empty();
    tree.file("/proc/nothing", "");
    let request = Request { root: tree.root(), cpus: None, live: None, last: None };
    for symptom in examine(&request).unwrap().symptoms {
        assert_eq!(symptom.level, Level::Unknown, "{}: {}", symptom.check, symptom.finding);
    }
}

#[test]
fn a_root_that_cannot_be_read_is_an_error_that_names_it() {
    for root in ["/nowhere/at/all", "/etc/passwd"] {
        let request = Request { root: Path::new(root), cpus: None, live: None, last: None };
        let error = examine(&request).unwrap_err();
        assert!(matches!(error, HostError::Root { .. }), "{error}");
        assert!(error.to_string().contains(root), "{error}");
    }
    let empty = tempfile::tempdir().unwrap();
    let request = Request { root: empty.path(), cpus: None, live: None, last: None };
    assert!(examine(&request).unwrap_err().to_string().contains("neither"));
}

#[test]
fn a_tree_of_another_architecture_is_read_as_far_as_it_goes() {
    let patient = patient();
    patient.set("/proc/sys/kernel/arch", "aarch64\n");
    let arm = "processor\t: 0\nFeatures\t: fp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n";
    patient.set("/proc/cpuinfo", &arm.repeat(4));
    patient.set(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "arch_sys_counter\n",
    );
    patient
        .set("/proc/interrupts", "  CPU0 CPU1 CPU2 CPU3\n 11: 9 9 9 9 GICv3 27 Level arch_timer\n");
    let complaints = patient.complaints();
    let [(name, level, _)] = &complaints[..] else { panic!("{complaints:?}") };
    assert_eq!((name.as_str(), *level), ("microcode", Level::Unknown));
}

thread_local! {
    /// One tree for all cases: making one takes longer than looking at it.
    static CLEAN: (Patient, Vec<String>) = {
        let patient = patient();
        let files = files(patient.root());
        (patient, files)
    };
}

/// What is claimed while a file, by its number, holds these bytes; and which one it was.
fn claims_with(file: usize, bytes: &[u8]) -> (Vec<(String, Level, String)>, String) {
    CLEAN.with(|(patient, files)| {
        let file = &files[file % files.len()];
        (patient.while_file_holds(file, bytes, Patient::claims), file.clone())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_bytes_in_any_file_never_panic_and_spoil_nothing_where_they_are_no_text(
        file in any::<usize>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (claims, file) = claims_with(file, &bytes);
        if std::str::from_utf8(&bytes).is_err() {
            let spoilt = claims.iter().any(|(_, level, _)| *level == Level::Spoils);
            prop_assert!(!spoilt, "{} {:?}", file, claims);
        }
    }

    #[test]
    fn words_of_the_kernel_in_the_wrong_file_never_panic(
        file in any::<usize>(),
        text in "(cpu|CPU|enabled|on|off|0x|GT/s|[0-9]{1,30}|[-:,./ \\n\\t\\[\\]]){0,40}",
    ) {
        let _ = claims_with(file, text.as_bytes());
    }
}
