//! The program under test: built once, run one at a time.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tempfile::TempDir;
use whylate_model::directory::RunDir;
use whylate_model::run::Run;

use crate::needs;

/// Held by every test that starts the program: two at once would measure each other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The program, built with the profile that these tests were built with.
pub(crate) fn path() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        let profile = this.parent().and_then(Path::parent).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "whylate", "--locked"]);
        // The features that these tests were built with: nothing is compiled twice.
        build.args(["--features", "schema", "--target-dir"]);
        build.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "the program does not build");
        profile.join("whylate")
    })
}

/// Where the program remembers its last recording in place of the home of who runs the tests.
pub(crate) fn state() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state")
}

/// The program with words to run it by, and nothing of the caller's terminal and home.
pub(crate) fn whylate<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(path());
    command.args(words).env("NO_COLOR", "1").env("XDG_STATE_HOME", state()).stdin(Stdio::null());
    command
}

/// What a run left.
pub(crate) struct Recorded {
    pub(crate) directory: PathBuf,
    pub(crate) run: Run,
    pub(crate) output: Output,
    _home: TempDir,
}

/// Runs `whylate WORDS -o DIR`, which must end with `status`.
pub(crate) fn record(words: &str, status: i32) -> Recorded {
    record_ending(words, &[status])
}

/// Runs `whylate WORDS -o DIR`, which must end with one of these.
pub(crate) fn record_ending(words: &str, statuses: &[i32]) -> Recorded {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let output = whylate(words.split_whitespace()).arg("-o").arg(&directory).output().unwrap();
    let status = output.status.code();
    let expected = status.is_some_and(|status| statuses.contains(&status));
    assert!(expected, "whylate {words}: {status:?}: {}", said(&output));
    let run = read(&directory);
    Recorded { directory, run, output, _home: home }
}

/// Runs `whylate WORDS -o DIR` as a user without any right, which must end with 0 or 4; none where
/// this machine cannot.
pub(crate) fn record_without_rights(words: &str) -> Option<Recorded> {
    let setpriv = needs::program("setpriv")?;
    if !needs::root() {
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(65_534), Some(65_534)).unwrap();
    let directory = home.path().join("run");
    let output = Command::new(setpriv)
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(path())
        .args(words.split_whitespace())
        .arg("-o")
        .arg(&directory)
        .env("XDG_STATE_HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = read(&directory);
    Some(Recorded { directory, run, output, _home: home })
}

/// The stored run.
pub(crate) fn read(directory: &Path) -> Run {
    RunDir::open(directory).unwrap().read_run().unwrap()
}

/// Everything the program said, for messages.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

/// Runs a program to its good end; the most memory that it had, as far as looks at it can tell.
pub(crate) fn peak_kib(mut command: Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let look = || {
        let status = std::fs::read_to_string(&status).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let mut peak = 0;
    loop {
        peak = peak.max(look().unwrap_or(0));
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success());
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A started program that is ended with the test.
pub(crate) struct Started(pub(crate) Child);

impl Started {
    pub(crate) fn new(mut command: Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> whylate_model::Pid {
        whylate_model::Pid(self.0.id() as i32)
    }

    /// Waits for the end and returns the exit status.
    pub(crate) fn status(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    /// Waits until the measuring thread runs; returns its thread id.
    pub(crate) fn measuring_thread(&self) -> whylate_model::Pid {
        let tasks = format!("/proc/{}/task", self.0.id());
        let found = until("the measuring thread runs", || {
            std::fs::read_dir(&tasks).ok()?.flatten().find_map(|task| {
                let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
                let number = task.file_name().to_str()?.parse().ok()?;
                (name.trim_end() == "gap/0").then_some(number)
            })
        });
        whylate_model::Pid(found)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for something to come true.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..4_500 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited a minute and a half in vain until {what}")
}

/// The child of a recording that reflects, once it does.
pub(crate) fn reflector_of(parent: u32) -> whylate_model::Pid {
    let children = format!("/proc/{parent}/task");
    until("a reflector runs", || {
        std::fs::read_dir(&children).ok()?.flatten().find_map(|task| {
            let children = std::fs::read_to_string(task.path().join("children")).ok()?;
            children.split_whitespace().find_map(|child| {
                let words = std::fs::read(format!("/proc/{child}/cmdline")).ok()?;
                let reflects = words
                    .split(|byte| *byte == 0)
                    .any(|w| w == b"reflect-stdin" || w == b"reflect");
                reflects.then(|| whylate_model::Pid(child.parse().unwrap()))
            })
        })
    })
}
