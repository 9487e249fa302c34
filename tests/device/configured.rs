//! A configuration that takes CPUs away from everybody else, as the box has it: each knob reads back as it
//! was asked or is told to be missing, and afterwards what was changed is as before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{SHORT, adds_up, device, possible};
use crate::needs;
use crate::program::{self, recorded_beside};

const CONFIGURATION: &str = "local+isolset+power";

/// What files of the kernel say that such a configuration changes, where they can be read. Interrupts may be moved
/// by others at any time: of those the ones that `changed` has.
fn affected(changed: &BTreeSet<PathBuf>) -> BTreeMap<PathBuf, String> {
    let mut files = vec![
        PathBuf::from("/sys/devices/virtual/workqueue/cpumask"),
        PathBuf::from("/sys/module/pcie_aspm/parameters/policy"),
        PathBuf::from("/sys/devices/system/cpu/intel_pstate/no_turbo"),
        PathBuf::from("/sys/devices/system/cpu/cpufreq/boost"),
    ];
    for cpu in whylate_sys::affinity::get() {
        let of = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}"));
        files.push(of.join("power/pm_qos_resume_latency_us"));
        files.push(of.join("cpufreq/scaling_governor"));
    }
    files.extend(changed.iter().cloned());
    let read = |file: PathBuf| std::fs::read_to_string(&file).ok().map(|text| (file, text));
    files.into_iter().filter_map(read).collect()
}

/// Where the CPUs of each interrupt stand.
fn interrupts() -> BTreeSet<PathBuf> {
    let interrupts = std::fs::read_dir("/proc/irq").into_iter().flatten().flatten();
    interrupts.map(|entry| entry.path().join("smp_affinity_list")).collect()
}

/// Files that a process changes, as it notes them to put them back; looks until it has ended.
fn noted_by(process: u32) -> BTreeSet<PathBuf> {
    let begin = format!("{process}-");
    let mut noted = BTreeSet::new();
    while Path::new(&format!("/proc/{process}")).exists() {
        let journals = std::fs::read_dir("/run/whylate").into_iter().flatten().flatten();
        for journal in journals {
            if journal.file_name().to_string_lossy().starts_with(&begin) {
                let text = std::fs::read_to_string(journal.path()).unwrap_or_default();
                let words = text.split('"').filter(|word| word.starts_with('/'));
                noted.extend(words.map(PathBuf::from));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    noted
}

#[test]
fn a_configuration_with_cpus_of_its_own_reads_back_and_leaves_the_host_as_it_was() {
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let words = format!("device --box forward:packet {SHORT} --config {CONFIGURATION}");
    let all = interrupts();
    let before = affected(&all);
    let words: Vec<&str> = words.split_whitespace().collect();
    let (recorded, noted) = recorded_beside(&words, noted_by);
    let changed: BTreeSet<PathBuf> = all.intersection(&noted).cloned().collect();
    let of_run = |file: &PathBuf| !all.contains(file) || changed.contains(file);
    let before: BTreeMap<PathBuf, String> =
        before.into_iter().filter(|(file, _)| of_run(file)).collect();
    assert_eq!(affected(&changed), before, "the host is as it was");
    let of = device(&recorded);
    of.sizes.iter().for_each(adds_up);
    let Some(told) = of.configurations.iter().find(|one| one.name == CONFIGURATION) else {
        // A host of few CPUs cannot spare one.
        let why = of.notes.iter().find(|note| note.contains(CONFIGURATION));
        let why = why.unwrap_or_else(|| panic!("nothing is said of it: {:?}", of.notes));
        return needs::absent(why);
    };
    assert!(!told.knobs.is_empty(), "{told:?}");
    for knob in &told.knobs {
        // One number, one word or one list of CPUs; others are sentences of their own, and one that does not
        // read back as it was asked ends the run.
        let is_plain =
            knob.name == "affinity" || (knob.name.starts_with("cpu") && knob.name.contains('.'));
        if let Some(asked) = knob.asked.as_ref().filter(|_| is_plain) {
            assert_eq!(asked, &knob.got, "{knob:?}");
        }
        assert!(!knob.got.is_empty(), "{knob:?}");
        assert!(told.missing.iter().all(|missing| missing.knob != knob.name), "{knob:?}");
    }
    assert!(told.missing.iter().all(|missing| !missing.why.is_empty()), "{told:?}");
    let ways = of.sizes.iter().filter(|at| at.configuration.as_deref() == Some(CONFIGURATION));
    assert_eq!(ways.count(), 2, "both ways");
}
