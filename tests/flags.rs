//! Flags that change what is printed or how a command ends, without measuring anything.

use std::process::Output;

use crate::needs;
use crate::program::{said, whylate};

fn run(words: &[&str]) -> Output {
    whylate(words).output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn check_of_rta_ends_with_3_unless_every_deadline_is_met_by_analysis() {
    let status = |words: &[&str]| run(&[&["rta"], words].concat()).status.code();
    let (met, missed) = (["--task", "3ms 8ms"], ["--task", "9ms 8ms"]);
    assert_eq!(status(&met), Some(0));
    assert_eq!(status(&[&met[..], &["--check"]].concat()), Some(0));
    assert_eq!(status(&missed), Some(0), "without --check it is an answer like any other");
    assert_eq!(status(&[&missed[..], &["--check"]].concat()), Some(3));
    let tight = ["--task", "3ms 8ms", "--task", "17ms 33ms, deadline 20ms", "--check"];
    assert_eq!(status(&tight), Some(3));
    assert_eq!(status(&[&tight[..], &["--format", "json"]].concat()), Some(3));
}

#[test]
fn a_command_for_one_cpu_refuses_a_list_with_the_reason() {
    if needs::cpus(2).is_none() {
        return;
    }
    for (words, reason) in [
        ("rta --task '1ms 8ms' --run", "the analysis is of one"),
        ("rtt", "a client runs on one"),
        ("switch-cost", "switches are of one"),
        ("paper hourglass2002", "experiments of a paper run on one"),
        ("calibrate", "a client runs on one"),
        ("", "the check-up is of one"),
        ("reflect", "a thread here runs on one"),
        ("delay a b", "a thread here runs on one"),
        ("device --box bridge", "a thread here runs on one"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let mut all = shlex::split(words).unwrap();
        all.extend(["--cpus".to_owned(), "0,1".to_owned()]);
        let output = whylate(&all).current_dir(home.path()).output().unwrap();
        let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert!(text.contains(reason), "{words}: {text}");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "{words}");
    }
}

/// A machine with transparent huge pages, which doctor looks at in place of this one.
fn planted() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/stat", "cpu0 1 0 0 9 0 0 0 0\ncpu1 1 0 0 9 0 0 0 0\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
    ] {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    tree
}

#[test]
fn doctor_explains_one_check_and_prints_scripts_that_it_does_not_run() {
    let tree = planted();
    let root = tree.path().to_str().unwrap();
    let check = "transparent-hugepages";
    let text = printed(&run(&["doctor", "--root", root, "--explain", check]));
    for part in [check, "Why:", "Fix", "transparent_hugepage/enabled", "[always] madvise never"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains("steal"), "one check alone: {text}");
    let refused = run(&["doctor", "--root", root, "--explain", "hugepages"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains(check), "{}", said(&refused));

    let script = printed(&run(&["doctor", "--root", root, "--fix-script"]));
    let lines: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(script.starts_with("#!/bin/sh\n"), "{script}");
    assert!(lines.iter().any(|line| line.contains("transparent_hugepage/enabled")), "{script}");
    let enabled = tree.path().join("sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(std::fs::read_to_string(enabled).unwrap(), "[always] madvise never\n");

    let script = printed(&run(&["doctor", "--collect-script"]));
    assert!(script.contains("proc/cpuinfo") && script.contains("$PWD/host"), "{script}");
    let help = printed(&run(&["doctor", "--help"]));
    assert!(!help.contains("proc/cpuinfo"), "the script is not in the help");
}

#[test]
fn a_box_is_measured_in_five_rounds_where_nobody_says_otherwise() {
    let output = whylate(["device", "--help"]).output().unwrap();
    let help = said(&output);
    let (_, rounds) = help.split_once("--rounds <N>").expect("rounds can be asked for");
    let (rounds, _) = rounds.split_once("--duration <TIME>").expect("what comes next");
    let rounds = rounds.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(rounds.contains("[default: 5, or 3 with --quick]"), "{rounds}");
}
