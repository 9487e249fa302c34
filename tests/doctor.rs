//! `whylate doctor` as a user runs it: on this host, on a collected tree, against a run.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use whylate_model::doctor::{Diagnosis, Level, Symptom};

use crate::{needs, program};

fn diagnosis(words: &[&str]) -> Diagnosis {
    parsed(&program::whylate(["doctor", "--format", "json"]).args(words).output().unwrap())
}

fn parsed(output: &Output) -> Diagnosis {
    assert!(output.status.success(), "{}", program::said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What is said of changes since the last recording.
fn changed(output: &Output) -> Symptom {
    let mut symptoms = parsed(output).symptoms.into_iter();
    symptoms.rfind(|symptom| symptom.check == "host-changed").unwrap()
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
    let first = program::as_used(["doctor"]).current_dir(here.path()).output().unwrap();
    assert!(first.status.success(), "{}", program::said(&first));
    let first = String::from_utf8(first.stdout).unwrap();
    // The command of the user is a line, too.
    assert!(first.lines().count() < 24 && first.contains("\nMore:  whylate doctor"), "{first}");
    assert!(first.lines().all(|line| line.chars().count() <= 80), "{first}");
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
    let run = program::file("runs/gaps");
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

#[test]
fn a_recording_is_remembered_and_a_kernel_that_changed_since_is_found() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    let whylate = |words: &str| {
        let mut command = program::whylate(words.split_whitespace());
        command.env("XDG_STATE_HOME", &state).current_dir(home.path()).output().unwrap()
    };
    let doctor = || changed(&whylate("doctor --format json"));
    assert_eq!(doctor().level, Level::Unknown, "there was no recording");
    for words in [
        "gaps --duration 100ms --warmup 50ms --no-trace -o first",
        "gaps --duration 100ms --warmup 50ms --no-trace -o second",
    ] {
        let output = whylate(words);
        assert!(output.status.code().is_some_and(|code| [0, 4].contains(&code)), "{output:?}");
        let name = words.rsplit(' ').next().unwrap();
        program::ended(output.status.code(), &program::read(&home.path().join(name)));
        assert!(!program::said(&output).contains("remember"), "{}", program::said(&output));
        let same = doctor();
        assert_eq!(same.level, Level::Fine, "{same:#?}");
    }
    let file = state.join("whylate/last-run.json");
    let remembered = std::fs::read_to_string(&file).unwrap();
    assert!(remembered.contains("/second\""), "{remembered}");
    let kernel = program::read(&home.path().join("second")).host.kernel;
    let another = remembered.replace(&format!("\"{kernel}\""), "\"5.4.0-yesterday\"");
    assert_ne!(another, remembered);
    std::fs::write(&file, another).unwrap();
    let found = doctor();
    assert_eq!(found.level, Level::Spoils);
    let told = format!("kernel from 5.4.0-yesterday to {kernel}");
    assert!(found.finding.contains(&told), "{found:?}");
}

#[test]
fn a_recording_that_cannot_be_remembered_is_one_line_and_no_failure() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let record = |name: &str, state: &str| {
        let words = "gaps --duration 100ms --warmup 50ms --no-trace --format json -o";
        let mut command = program::whylate(words.split_whitespace());
        command.arg(home.path().join(name)).env("XDG_STATE_HOME", state).output().unwrap()
    };
    let output = record("run", "/proc/nowhere");
    assert!(output.status.code().is_some_and(|code| [0, 4].contains(&code)), "{output:?}");
    program::ended(output.status.code(), &program::read(&home.path().join("run")));
    let talk = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = talk.lines().filter(|line| line.contains("remember")).collect();
    assert!(matches!(lines[..], [line] if line.contains("/proc/nowhere")), "{talk}");
}

/// A user without any privilege.
const NOBODY: u32 = 65_534;

#[test]
fn what_another_user_recorded_is_unknown_and_nobody_is_told_to_delete_it() {
    let _alone = program::alone();
    if !needs::root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = home.path().join("whylate");
    std::fs::copy(program::path(), &copy).unwrap();
    let state = home.path().join("state/whylate");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("last-run.json"), "{}").unwrap();
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).unwrap();
    let doctor = || {
        let mut command = Command::new(&copy);
        command.args(["doctor", "--format", "json"]).current_dir("/");
        command.env("XDG_STATE_HOME", home.path().join("state")).uid(NOBODY).gid(NOBODY);
        changed(&command.output().unwrap())
    };
    let found = doctor();
    assert_eq!(found.level, Level::Unknown, "{found:?}");
    assert!(found.finding.contains("cannot be read"), "{found:?}");
    assert!(found.evidence.iter().any(|one| one.said.contains("denied")), "{found:?}");
    assert!(!format!("{:?}", found.remedy).contains("rm "), "{found:?}");
    // What is theirs and no recording, they are told to remove.
    chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    let found = doctor();
    assert!(found.finding.contains("damaged"), "{found:?}");
    assert!(format!("{:?}", found.remedy).contains("rm "), "{found:?}");
}
