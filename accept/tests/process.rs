//! A process with its limit. One test alone: it has all children of this process.

use std::process::{Command, Stdio};
use std::time::Duration;

use accept::process;

#[test]
fn what_was_started_is_ended_with_a_process_and_what_was_there_before_is_left_alone() {
    let mut before = Command::new("sleep")
        .arg("600")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let shell = |words: &str, limit: Duration| {
        let mut command = Command::new("sh");
        process::run(command.args(["-c", words]).stdout(Stdio::null()).stderr(Stdio::null()), limit)
            .unwrap()
    };
    let long = Duration::from_secs(300);
    let ended = shell("exit 3", long);
    assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
    assert!(ended.left.is_empty() && ended.remain.is_empty(), "{ended:?}");

    // Behind its back, and with no wish to end.
    let ended = shell("(trap '' TERM; echo; exec sleep 600) > /dev/null & sleep 1", long);
    assert!(ended.status.is_some_and(|status| status.success()), "{ended:?}");
    assert_eq!((ended.left, ended.remain), (vec!["sleep".to_owned()], Vec::new()));

    let ended = shell("sleep 600", Duration::from_millis(500));
    assert!(ended.status.is_none() && ended.remain.is_empty(), "{ended:?}");
    assert!(!ended.left.is_empty(), "{ended:?}");

    assert!(before.try_wait().unwrap().is_none(), "it was ended, too");
    before.kill().unwrap();
    before.wait().unwrap();
}
