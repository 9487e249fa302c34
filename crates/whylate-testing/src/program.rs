//! The program under test: built once, run one at a time.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, Verdict};
use whylate_suite as suite;
use whylate_sys::signal::send_to_process;

pub use crate::ended::{closes, doubted, ended, ended_but_for};
use crate::needs;

/// No test takes so long, on a busy machine either; over as many packets as somebody asks for, one may.
const LIMIT: Duration = Duration::from_secs(300);
const LIMIT_OF_MANY: Duration = Duration::from_secs(3_600);
/// A test whose processes were ended fails within this time.
const GRACE: Duration = Duration::from_secs(30);

/// Held by every test that measures: two at once would measure each other, those of another suite too.
pub struct Alone {
    _limit: Limit,
    _suite: Option<suite::Held>,
    _one: MutexGuard<'static, ()>,
}

/// Waits for the others; from then on the test has its limit. Of one that hangs the name is said and what it
/// started is ended, so that it fails where it waited for that; one that hangs all the same ends all of them.
pub fn alone() -> Alone {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let suite = (!suite::is_held()).then(suite::hold);
    let many = std::env::var_os("WHYLATE_TESTS_PACKETS").is_some();
    let longest = if many { LIMIT_OF_MANY } else { LIMIT };
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let hangs = name.clone();
    // Not by a macro: the test harness would keep it to itself, and what it keeps is lost with the process.
    let limit = Limit::begin([
        Step::new(longest, move || {
            let seconds = longest.as_secs();
            suite::say(&format!(
                "{name} has not ended within {seconds} s: what it started is ended"
            ));
            end_what_was_started_by(std::process::id());
        }),
        Step::new(GRACE, move || {
            suite::say(&format!("{hangs} hangs by itself: all tests end"));
            std::process::exit(101);
        }),
    ]);
    Alone { _limit: limit, _suite: suite, _one: one }
}

/// Processes that were started by this one, and by those.
fn started_by(pid: u32) -> Vec<whylate_model::Pid> {
    let mut all = Vec::new();
    for child in children(pid) {
        all.push(child);
        all.extend(started_by(child.0 as u32));
    }
    all
}

fn end_what_was_started_by(pid: u32) {
    const SIGKILL: i32 = 9;
    for process in started_by(pid) {
        // It may have ended since.
        let _ = send_to_process(process, SIGKILL);
    }
}

/// Processes that threads of this one started. That the kernel lists them is an option of its build; elsewhere each
/// process is asked for its parent.
fn children(pid: u32) -> Vec<whylate_model::Pid> {
    if Path::new("/proc/thread-self/children").exists() { listed(pid) } else { by_parent(pid) }
}

fn listed(pid: u32) -> Vec<whylate_model::Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |task: std::fs::DirEntry| {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let numbers = children.split_whitespace().filter_map(|child| child.parse().ok());
        numbers.map(whylate_model::Pid).collect::<Vec<_>>()
    };
    tasks.flat_map(of).collect()
}

fn by_parent(pid: u32) -> Vec<whylate_model::Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |of: &i32| {
        // It may have ended since. Behind its name, which may hold anything, stand its state and its parent.
        let told = std::fs::read_to_string(format!("/proc/{of}/stat")).unwrap_or_default();
        let parent = told.rsplit(") ").next().and_then(|rest| rest.split_whitespace().nth(1));
        parent.and_then(|parent| parent.parse().ok()) == Some(pid)
    };
    numbers.filter(is_child).map(whylate_model::Pid).collect()
}

#[test]
fn children_are_found_by_their_parent_where_the_kernel_lists_none() {
    let sleep = || Started(Command::new("sleep").arg("600").spawn().unwrap());
    let both = [sleep(), sleep()].map(|of| (of.0.id() as i32, of));
    let own = by_parent(std::process::id());
    assert!(both.iter().all(|(pid, _)| own.contains(&whylate_model::Pid(*pid))), "{own:?}");
    assert!(!own.contains(&whylate_model::Pid(std::process::id() as i32)));
    // Nobody else starts any below one of them.
    assert!(both.iter().all(|(pid, _)| by_parent(*pid as u32).is_empty()));
}

#[test]
fn what_a_process_started_is_ended_with_what_that_started_and_who_reads_from_it_goes_on() {
    let mut sh = Command::new("sh");
    // Behind the second one stands a command, so that the shell does not become it.
    sh.args(["-c", "sh -c 'sleep 600; true'; true"]).stdout(Stdio::piped());
    let sh = Started(sh.spawn().unwrap());
    until("all three run", || (started_by(sh.0.id()).len() == 2).then_some(()));
    end_what_was_started_by(sh.0.id());
    let mut sh = sh;
    let (tell, told) = mpsc::channel();
    let mut out = sh.0.stdout.take().unwrap();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut out, &mut std::io::sink());
        let _ = tell.send(());
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()));
}

/// What is done once a test has taken so long, or so much longer than the step before.
struct Step {
    after: Duration,
    what: Box<dyn FnOnce() + Send>,
}

impl Step {
    fn new(after: Duration, what: impl FnOnce() + Send + 'static) -> Self {
        Self { after, what: Box::new(what) }
    }
}

/// Takes its steps unless it is dropped before their time.
struct Limit {
    _ended: mpsc::Sender<()>,
}

impl Limit {
    fn begin<const N: usize>(steps: [Step; N]) -> Self {
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            for step in steps {
                if end.recv_timeout(step.after) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
                (step.what)();
            }
        });
        Self { _ended: ended }
    }
}

#[test]
fn a_limit_takes_its_steps_for_what_hangs_and_none_for_what_has_ended() {
    let (tell, told) = mpsc::channel();
    let again = tell.clone();
    let short = Duration::from_millis(1);
    let hangs = Limit::begin([
        Step::new(short, move || tell.send("first").unwrap()),
        Step::new(short, move || again.send("second").unwrap()),
    ]);
    for expected in ["first", "second"] {
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(expected));
    }
    drop(hangs);
    let (tell, told) = mpsc::channel::<()>();
    let long = Duration::from_secs(3_600);
    drop(Limit::begin([Step::new(long, move || tell.send(()).unwrap())]));
    // Its thread has ended, and with it what it would have told.
    assert_eq!(
        told.recv_timeout(Duration::from_secs(60)),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
}

/// The program, where whoever runs this has named it.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program is this one, from the first look at it on.
pub fn is(path: &Path) {
    let first = PROGRAM.get_or_init(|| path.to_owned());
    assert_eq!(first, path, "another one is run already");
}

/// The program: the one that is named ([`is`]), or that which cargo built for these tests.
pub fn path() -> &'static Path {
    PROGRAM.get_or_init(|| beside(&std::env::current_exe().unwrap()))
}

/// What cargo builds for a program of tests lies one folder above it.
fn beside(tests: &Path) -> PathBuf {
    let folder = tests.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    folder.unwrap_or(tests).join("whylate")
}

#[test]
fn the_program_lies_above_its_tests() {
    let built = Path::new("/t/debug/whylate");
    assert_eq!(beside(Path::new("/t/debug/deps/live-0123")), built);
    assert_eq!(beside(Path::new("/t/debug/accept")), built);
}

/// A file that is committed beside these tests.
pub fn file(name: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    root.unwrap_or(package).join("tests").join(name)
}

/// Where the program remembers its last recording in place of the home of who runs the tests.
pub fn state() -> PathBuf {
    // Below the target folder: `target/PROFILE/whylate`.
    let target = path().ancestors().nth(2).unwrap_or(Path::new("."));
    target.join("tmp/state")
}

/// Commands that print a report: its first screen, unless `--full` asks for all of it.
const PRINT_RUNS: [&str; 17] = [
    "calibrate",
    "compare",
    "delay",
    "device",
    "doctor",
    "forward",
    "gaps",
    "merge",
    "reflect",
    "paper",
    "report",
    "rta",
    "rtt",
    "switch-cost",
    "threads",
    "wake",
    "watch",
];

/// Words of a command line with `--full` among them, where a report is printed:
/// what tests read is the whole report.
pub fn in_full<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
    let first = words.first().and_then(|word| word.to_str());
    let is_checkup = first.is_none_or(|word| word.starts_with("--"));
    let of_lab = first == Some("lab") && words.get(1).is_some_and(|word| word == "status");
    // These print no report.
    let others = ["--list", "--explain", "--fix-script", "--collect-script"];
    let other = words.iter().any(|word| others.iter().any(|of| word == of));
    // What is no text of a report is printed whole.
    let follows = |pair: &[OsString]| pair[0] == "--format" && pair[1] == "json";
    let of_report = first == Some("report") && words.iter().any(|word| word == "--html");
    let other = other || of_report || words.windows(2).any(follows);
    let prints = first.is_some_and(|word| PRINT_RUNS.contains(&word));
    if other {
        return words;
    }
    if is_checkup || of_lab || prints {
        words.insert(usize::from(!is_checkup) + usize::from(of_lab), "--full".into());
    }
    words
}

/// The program with words to run it by, which prints whole reports, and nothing of the caller's terminal and
/// home.
pub fn whylate<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    as_used(in_full(words))
}

/// The same with these words alone: a run is printed as its first screen.
pub fn as_used<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    by(path(), words)
}

/// The program that lies there, with words to run it by.
fn by<S: AsRef<OsStr>>(program: &Path, words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(words).env("NO_COLOR", "1").env("XDG_STATE_HOME", state()).stdin(Stdio::null());
    command.env_remove("COLUMNS");
    command
}

/// What a run left.
pub struct Recorded {
    pub directory: PathBuf,
    pub run: Run,
    pub output: Output,
    _home: TempDir,
}

/// Runs `whylate WORDS -o DIR`, which must end with `status`.
pub fn record(words: &str, status: i32) -> Recorded {
    record_ending(words, &[status])
}

/// Runs `whylate WORDS -o DIR`, which must end with one of these. Where that is 0 or 4 its closures hold: so it is
/// with all that follow.
pub fn record_ending(words: &str, statuses: &[i32]) -> Recorded {
    record_words(&words.split_whitespace().collect::<Vec<_>>(), statuses)
}

/// The same of words that may have spaces in them.
pub fn record_words(words: &[&str], statuses: &[i32]) -> Recorded {
    record_by(path(), words, statuses, |_| ()).0
}

fn record_by<T>(
    program: &Path,
    words: &[&str],
    statuses: &[i32],
    look: impl FnOnce(u32) -> T,
) -> (Recorded, T) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let mut command = by(program, in_full(words.iter().copied()));
    command.arg("-o").arg(&directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = child.id();
    let (output, seen) = std::thread::scope(|scope| {
        let waits = scope.spawn(|| child.wait_with_output().unwrap());
        let seen = look(pid);
        (waits.join().unwrap(), seen)
    });
    let status = output.status.code();
    let expected = status.is_some_and(|status| statuses.contains(&status));
    assert!(expected, "whylate {}: {status:?}: {}", words.join(" "), said(&output));
    let run = read(&directory);
    if matches!(status, Some(0 | 4)) {
        closes(&run);
    }
    (Recorded { directory, run, output, _home: home }, seen)
}

/// Runs `whylate WORDS -o DIR`, which must end well but for what a noisy machine may take from it.
pub fn recorded(words: &str) -> Recorded {
    recorded_but_for(words, &[])
}

/// The same where the test itself gave it these reasons for poor trust.
pub fn recorded_but_for(words: &str, planted: &[&str]) -> Recorded {
    let recorded = record_ending(words, &[0, 4]);
    ended_but_for(recorded.output.status.code(), &recorded.run, planted);
    recorded
}

/// [`recorded`] of words that may have spaces in them.
pub fn recorded_words(words: &[&str]) -> Recorded {
    recorded_beside(words, |_| ()).0
}

/// The same by a process of this name, of at most fifteen letters: others may run the program meanwhile, and the
/// kernel calls their threads by its own.
pub fn recorded_words_as(name: &str, words: &[&str]) -> Recorded {
    let home = tempfile::tempdir().unwrap();
    let link = home.path().join(name);
    std::os::unix::fs::symlink(path(), &link).unwrap();
    let recorded = record_by(&link, words, &[0, 4], |_| ()).0;
    ended(recorded.output.status.code(), &recorded.run);
    recorded
}

/// [`recorded_words`], and what is seen of the process while it runs.
pub fn recorded_beside<T>(words: &[&str], look: impl FnOnce(u32) -> T) -> (Recorded, T) {
    let (recorded, seen) = record_by(path(), words, &[0, 4], look);
    ended(recorded.output.status.code(), &recorded.run);
    (recorded, seen)
}

/// Runs `whylate report DIRECTORY WORDS`, which ends with 4 where the recording did: its numbers are not to be
/// relied on. Of one that was killed nothing was said yet.
pub fn reported(directory: &Path, words: &[&str]) -> Output {
    let output = whylate([&["report"], words].concat()).arg(directory).output().unwrap();
    let expected: &[i32] = match read(directory).verdict {
        Verdict::Untrustworthy { .. } => &[4],
        Verdict::LimitExceeded { .. } => &[3],
        Verdict::Trustworthy => &[0],
        Verdict::Pending => &[0, 4],
    };
    let status = output.status.code();
    let ended = status.is_some_and(|status| expected.contains(&status));
    assert!(ended, "{status:?}, not of {expected:?}: {}", said(&output));
    output
}

/// Runs `whylate WORDS -o DIR` as a user without any right, which must end as [`recorded`] does; none where this
/// machine cannot.
pub fn record_without_rights(words: &str) -> Option<Recorded> {
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
        .args(in_full(words.split_whitespace()))
        .arg("-o")
        .arg(&directory)
        .env("XDG_STATE_HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = read(&directory);
    ended(output.status.code(), &run);
    Some(Recorded { directory, run, output, _home: home })
}

/// Does something with each of these, two at a time: for what holds whatever is beside it, of runs that have
/// nothing in common.
pub fn two_at_once<T: Copy + Sync>(all: &[T], work: impl Fn(T) + Sync) {
    for two in all.chunks(2) {
        std::thread::scope(|scope| {
            for one in two {
                scope.spawn(|| work(*one));
            }
        });
    }
}

/// The stored run.
pub fn read(directory: &Path) -> Run {
    RunDir::open(directory).unwrap().read_run().unwrap()
}

/// Everything the program said, for messages.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

/// Runs a program to its good end; the most memory that it had, as far as looks at it can tell.
pub fn peak_kib(command: Command) -> u64 {
    peak_kib_ending(command, &[0])
}

/// The same of one that must end with one of these.
pub fn peak_kib_ending(mut command: Command, statuses: &[i32]) -> u64 {
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
            assert!(ended.code().is_some_and(|code| statuses.contains(&code)), "{ended}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A started program that is ended with the test.
pub struct Started(pub Child);

impl Started {
    pub fn new(mut command: Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn pid(&self) -> whylate_model::Pid {
        whylate_model::Pid(self.0.id() as i32)
    }

    /// Waits for the end and returns the exit status.
    pub fn status(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    /// Waits until the measuring thread runs; returns its thread id.
    pub fn measuring_thread(&self) -> whylate_model::Pid {
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

/// A thread that does something beside a run until it is told to stop; it ends with this, also where the
/// test panics meanwhile.
pub struct Beside<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Beside<T> {
    pub fn begin(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        Self { stop, thread: Some(std::thread::spawn(move || work(&stopped))) }
    }

    /// Ends it; what it came to.
    pub fn end(mut self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl<T> Drop for Beside<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for something to come true.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..4_500 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited a minute and a half in vain until {what}")
}

/// The child of a recording that reflects, once it does.
pub fn reflector_of(parent: u32) -> whylate_model::Pid {
    until("a reflector runs", || {
        children(parent).into_iter().find(|child| {
            let words = std::fs::read(format!("/proc/{}/cmdline", child.0)).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|w| w == b"reflect-stdin" || w == b"reflect")
        })
    })
}
