//! A calibration that is stopped, and one whose line is killed: what it has is kept, and nothing is left.

use std::path::Path;
use std::process::Stdio;

use whylate_model::run::RunState;
use whylate_sys::signal;

use super::{backend, found, ready};
use crate::program::{self, until, whylate};

/// SIGTERM.
const TERMINATE: i32 = 15;

/// Names of namespaces that a process made, and processes that name it.
fn left_by(pid: u32) -> Vec<String> {
    let name = format!("cal-{pid}");
    let beds = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mut left: Vec<String> = beds
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|bed| bed.contains(&name))
        .collect();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        if words.contains(&name) {
            left.push(words);
        }
    }
    left
}

#[test]
fn a_calibration_that_is_stopped_keeps_what_it_has_and_leaves_neither_beds_nor_children() {
    let _alone = program::alone();
    if !ready() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "--backends udp:spin --rate 2kpps --runs 50 --duration 200ms --warmup 20ms \
                 --line-port packet";
    let mut command = whylate(["calibrate"]);
    command.args(words.split_whitespace()).arg("-o").arg(&directory);
    command.stdout(Stdio::null()).env("XDG_STATE_HOME", home.path());
    let mut child = command.spawn().unwrap();
    let pid = child.id();
    let third = |path: &Path| std::fs::read_dir(path).is_ok_and(|parts| parts.count() >= 3);
    until("parts are measured", || third(&directory.join("parts")).then_some(()));
    signal::send_to_process(whylate_model::Pid(pid.cast_signed()), TERMINATE).unwrap();
    let status = child.wait().unwrap();
    let run = program::read(&directory);
    // Of its first parts a busy machine may leave nothing that tells of a backend.
    program::ended_but_for(status.code(), &run, &["nothing was measured"]);
    assert_eq!(run.state, RunState::Stopped);
    assert!(!found(&run).1.parts.is_empty());
    assert!(!home.path().join("whylate/calibrations.json").exists(), "half a calibration is none");
    assert_eq!(left_by(pid), Vec::<String>::new());
}

/// The delay line of a calibration whose beds have this process in their names.
fn line_of(pid: u32) -> Option<whylate_model::Pid> {
    let name = format!("cal-{pid}");
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|process| {
        let words = std::fs::read(process.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_line = words.contains(" delay ") && words.contains(&name);
        let number = process.file_name().to_str()?.parse().ok()?;
        is_line.then_some(whylate_model::Pid(number))
    })
}

#[test]
fn a_calibration_whose_line_is_killed_names_the_part_that_failed_ends_and_leaves_nothing() {
    const SIGKILL: i32 = 9;
    let _alone = program::alone();
    if !ready() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "--backends udp:spin --delays 20us --rate 500pps --runs 50 --duration 1s --warmup 10ms \
         --line-port packet";
    let mut command = whylate(["calibrate"]);
    command.args(words.split_whitespace()).arg("-o").arg(&directory);
    command.stdout(Stdio::null()).env("XDG_STATE_HOME", home.path());
    let mut child = program::Started(command.spawn().unwrap());
    let pid = child.0.id();
    // A round has one delay and the way back to back. In the second one a client measures through a line:
    // it is written once something came through.
    let line = until("a part of the second round is measured through a line", || {
        let parts = std::fs::read_dir(directory.join("parts")).ok()?.flatten();
        let mut parts: Vec<_> = parts.map(|part| part.path()).collect();
        parts.sort();
        let newest = parts.get(2..)?.last()?;
        newest.join("client/run.json").exists().then(|| line_of(pid))?
    });
    signal::send_to_process(line, SIGKILL).unwrap();
    let status = child.status();
    let run = program::read(&directory);
    program::ended(status, &run);
    let (calibration, parts) = found(&run);
    let failed: Vec<&String> = parts.parts.iter().filter_map(|part| part.failed.as_ref()).collect();
    let [why] = failed[..] else { panic!("{failed:?}") };
    assert!(why.contains("delay"), "{why}");
    let notes = &backend(calibration, "udp spin").notes;
    assert!(notes.iter().any(|note| note.contains("it ended early")), "{notes:?}");
    assert_eq!(left_by(pid), Vec::<String>::new());
}
