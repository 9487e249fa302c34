//! Taking changes back, one kind after the other.

use super::*;

fn here() -> Surroundings {
    Surroundings::of(Pid(0))
}

#[test]
fn file_is_put_back_only_where_it_says_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("knob");
    let undo = Undo::WriteFile {
        path: path.display().to_string(),
        value: "950000".to_owned(),
        ours: "-1".to_owned(),
    };
    let after = |text: &str| {
        std::fs::write(&path, text).unwrap();
        (undo.apply(&here()), std::fs::read_to_string(&path).unwrap())
    };
    assert_eq!(after("-1\n"), (Outcome::Restored, "950000".to_owned()));
    assert_eq!(after("950000\n"), (Outcome::AsBefore, "950000\n".to_owned()));
    let changed = Outcome::ChangedSince { now: "980000".to_owned() };
    assert_eq!(after("980000\n"), (changed, "980000\n".to_owned()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(undo.apply(&here()), Outcome::Gone);
}

#[test]
fn masks_are_the_same_whatever_their_zeros_and_commas() {
    assert!(same_text("3\n", "00000003"));
    assert!(same_text("00000000,0000000F", "f"));
    assert!(same_text("0", "00000000,00000000"));
    assert!(!same_text("1,2", "12"));
    assert!(!same_text("3", "f"));
    assert!(!same_text("-1", "1"));
    assert!(!same_text("", "0"));
}

#[test]
fn of_a_setting_that_lists_its_choices_the_one_in_force_counts_and_is_written_back() {
    assert_eq!(choice("always [madvise] never"), "madvise");
    assert_eq!(choice("[default] performance powersave"), "default");
    for whole in ["madvise", "[a] [b]", "[]", "[a b] c", "[a", "a] b", "950000"] {
        assert_eq!(choice(whole), whole);
    }
    assert!(same_text("always madvise [never]\n", "never"));
    assert!(!same_text("always [madvise] never", "never"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("enabled");
    let undo = Undo::WriteFile {
        path: path.display().to_string(),
        value: "madvise".to_owned(),
        ours: "never".to_owned(),
    };
    std::fs::write(&path, "always madvise [never]\n").unwrap();
    assert_eq!(undo.apply(&here()), Outcome::Restored);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "madvise");
    std::fs::write(&path, "[always] madvise never\n").unwrap();
    assert!(matches!(undo.apply(&here()), Outcome::ChangedSince { .. }));
}

#[test]
fn task_with_another_start_time_is_another_task() {
    let me = Task::this_process().unwrap();
    let undo = Undo::SetAffinity {
        pid: me.tid,
        start_time: me.start_time + 1,
        cpus: vec![CpuId(0)],
        ours: kernel::affinity(me.tid).unwrap(),
    };
    assert_eq!(undo.apply(&here()), Outcome::Gone);
}

#[test]
fn undos_that_lead_elsewhere_are_not_plausible() {
    let writable = ["/proc/sys", "/sys"];
    let file = |path: &str| Undo::WriteFile {
        path: path.to_owned(),
        value: String::new(),
        ours: String::new(),
    };
    assert!(file("/proc/sys/kernel/watchdog").plausible(&writable).is_ok());
    for path in
        ["/etc/passwd", "/proc/sys/../../etc/passwd", "/sysroot/x", "proc/sys/x", "", "/sys/./../x"]
    {
        assert!(file(path).plausible(&writable).is_err(), "{path}");
    }
    for name in ["whylate-../x", "other", "whylate-1/x", "", "whylate-\0"] {
        let undo = Undo::RemoveTraceInstance { name: name.to_owned() };
        assert!(undo.plausible(&writable).is_err(), "{name}");
        assert!(!undo.apply(&here()).settled());
    }
    let everybody =
        Undo::SetAffinity { pid: Pid(-1), start_time: 0, cpus: Vec::new(), ours: Vec::new() };
    assert!(everybody.plausible(&writable).is_err());
}

#[test]
fn controller_is_taken_back_where_it_is_still_handed_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cgroup.subtree_control");
    let undo = Undo::DisableController {
        path: path.display().to_string(),
        controller: "cpuset".to_owned(),
    };
    assert_eq!(undo.apply(&here()), Outcome::Gone);
    std::fs::write(&path, "cpu memory\n").unwrap();
    assert_eq!(undo.apply(&here()), Outcome::AsBefore);
    std::fs::write(&path, "cpu cpuset memory\n").unwrap();
    assert_eq!(undo.apply(&here()), Outcome::Restored);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "-cpuset");
    assert!(undo.plausible(&["/sys"]).is_err());
}

#[test]
fn directory_is_removed_when_empty_and_kept_when_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("group");
    std::fs::create_dir_all(path.join("inner")).unwrap();
    let undo = Undo::RemoveDir { path: path.display().to_string() };
    assert!(!undo.apply(&here()).settled());
    std::fs::remove_dir(path.join("inner")).unwrap();
    assert_eq!(undo.apply(&here()), Outcome::Restored);
    assert_eq!(undo.apply(&here()), Outcome::Gone);
}
