//! A server of requests that is stopped again and again while it is asked.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use whylate_sys::signal::send_to_process;

use crate::program::{reflector_of, said, whylate};
use crate::requests::{SIGCONT, SIGSTOP};

/// How long it is stopped, and how long it is left alone.
const STOPPED: Duration = Duration::from_millis(30);
const LEFT_ALONE: Duration = Duration::from_millis(120);

/// What was recorded meanwhile.
pub(crate) struct Stalled {
    pub(crate) directory: PathBuf,
    _home: TempDir,
}

/// Records by these words; from its start on the reflector is stopped in turn.
pub(crate) fn stalled(words: &str) -> Stalled {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(&directory).stdout(std::process::Stdio::piped());
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let reflector = reflector_of(child.id());
    // Until it has gone: a short run tells of itself only at its end. What is stopped once it has ended
    // is woken all the same.
    while send_to_process(reflector, SIGSTOP).is_ok() {
        std::thread::sleep(STOPPED);
        let _ = send_to_process(reflector, SIGCONT);
        std::thread::sleep(LEFT_ALONE);
    }
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    Stalled { directory, _home: home }
}
