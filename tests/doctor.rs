//! `whylate doctor` as a user runs it: on this host, on a collected tree, against a run.

use std::path::Path;

use whylate_model::doctor::{Diagnosis, Level};

use crate::program;

fn diagnosis(words: &[&str]) -> Diagnosis {
    let output = program::whylate(["doctor", "--format", "json"]).args(words).output().unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn doctor_looks_at_this_host_and_changes_nothing() {
    let _alone = program::alone();
    let settings = || {
        [
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/proc/sys/kernel/sched_rt_runtime_us",
            "/proc/irq/default_smp_affinity",
        ]
        .map(|path| std::fs::read_to_string(path).ok())
    };
    let before = settings();
    let here = tempfile::tempdir().unwrap();
    let output = program::whylate(["doctor", "--all"]).current_dir(here.path()).output().unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    assert_eq!(settings(), before);
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0, "a file was left");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\u{1b}'), "an escape sequence is in it");
}

#[test]
fn every_symptom_of_this_host_has_evidence_and_what_is_bad_a_remedy() {
    let _alone = program::alone();
    let diagnosis = diagnosis(&[]);
    assert!(!diagnosis.cpus.is_empty());
    for symptom in &diagnosis.symptoms {
        let bad = symptom.level > Level::Unknown;
        assert!(!bad || !symptom.remedy.is_empty(), "{symptom:?}");
        assert!(!bad || !symptom.evidence.is_empty(), "{symptom:?}");
        assert!(!symptom.finding.is_empty() && !symptom.why.is_empty(), "{symptom:?}");
    }
}

#[test]
fn a_planted_pitfall_of_a_collected_tree_is_found_and_this_host_is_not_asked() {
    let _alone = program::alone();
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/stat", "cpu0 1 0 0 9 0 0 0 0\ncpu1 1 0 0 9 0 0 0 0\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
        ("sys/kernel/mm/ksm/run", "0\n"),
    ] {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = tree.path().to_str().unwrap();
    let diagnosis = diagnosis(&["--root", root]);
    let of = |level| diagnosis.of_level(level).map(|s| s.check.as_str()).collect::<Vec<_>>();
    assert_eq!(of(Level::Spoils), ["transparent-hugepages"]);
    assert_eq!(of(Level::Note), [] as [&str; 0]);
    assert_eq!(of(Level::Fine), ["same-page-merging", "steal"]);
    assert_eq!(diagnosis.host.hostname, "");
}

#[test]
fn differences_from_a_run_of_another_host_are_named() {
    let _alone = program::alone();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("runs/gaps");
    let recorded = program::read(&run).host;
    let diagnosis = diagnosis(&["--diff", run.to_str().unwrap()]);
    let compared = diagnosis.compared.unwrap();
    assert_eq!(compared.differences, recorded.differences(&diagnosis.host));
    // Its own recording does not differ from itself.
    assert_eq!(recorded.differences(&recorded), []);
}

#[test]
fn what_cannot_be_looked_at_is_named_and_ends_with_1() {
    let _alone = program::alone();
    let nowhere = "/nowhere/at/all";
    for words in [["--root", nowhere], ["--diff", nowhere]] {
        let output = program::whylate(["doctor"]).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", program::said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(nowhere));
    }
    let output = program::whylate(["doctor", "--cpus", "banana"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", program::said(&output));
}
