//! Programs in processes of their own: this one, and those of others.
//!
//! What was run is the command that is named, to the last word; there is no shell. A child is told of a
//! stop once, with SIGTERM, as Ctrl-C would tell it; one that does not end by then is killed, by its own
//! process alone. A child whose parent is killed is told the same by the kernel, unless it gained rights as it
//! began. Nothing waits for ever where a time is given, and what a child says is kept up to a bound, its end
//! rather than its beginning.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use whylate_model::{CpuId, Pid};
use whylate_net::lab::{Bed, Role};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, process, signal};

/// A child that is waited for ends by itself; this often it is looked at whether it is to end before.
const LOOK: Duration = Duration::from_millis(100);
/// Whoever waits for a word of a child looks this often: it is about to begin.
const LISTEN: Duration = Duration::from_millis(10);
/// Ends a recording as Ctrl-C does: SIGTERM, which nobody ignores.
const TERMINATE: i32 = 15;
/// Words of a failed one that are told.
const MOST_WORDS: usize = 60;
/// Bytes that are kept of what a child says on one of its streams.
const MOST_SAID: usize = 1 << 20;
/// How recordings end that left a run: whole, beyond a limit of their own, not to be relied on.
pub const RECORDED: [i32; 3] = [0, 3, 4];

/// A process that did not start, or did not do what it was started for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct ChildError {
    /// Its command line.
    pub what: String,
    /// What became of it.
    pub why: String,
}

/// A program and its words, and where it is to run.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    words: Vec<String>,
    named: String,
    /// Where its run goes.
    into: Option<PathBuf>,
    place: Option<(Bed, Role)>,
    cpus: Vec<CpuId>,
}

/// A child that ended.
#[derive(Debug, Clone)]
pub struct EndedChild {
    /// Its command line, as it is named.
    pub what: String,
    /// How.
    pub status: ExitStatus,
    /// What it printed, of long texts the end.
    pub stdout: String,
    /// What it said, of long texts the end.
    pub stderr: String,
    /// It was still there after its time, and was killed.
    pub killed: bool,
}

/// A child that runs. Dropped, it is killed: nothing outlives whoever started it, and where that is killed it is
/// told to end.
#[derive(Debug)]
pub struct Running {
    what: String,
    child: Child,
    stdout: Said,
    stderr: Said,
    /// The thread that made it, whose end would be its end, waits until this is gone.
    _parent: Sender<()>,
}

/// What comes by one stream of a child, taken by a thread that sleeps.
#[derive(Debug)]
struct Said {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Program {
    /// This program, `whylate WORDS`, which are apart by blanks.
    #[must_use]
    pub fn whylate(path: &Path, words: &str) -> Self {
        let named = format!("whylate {words}");
        let words = words.split_whitespace().map(str::to_owned).collect();
        Self { path: path.to_owned(), words, named, into: None, place: None, cpus: Vec::new() }
    }

    /// A program of somebody else, looked for in PATH.
    #[must_use]
    pub fn foreign(path: &str, words: Vec<String>) -> Self {
        let mut named = path.to_owned();
        for word in &words {
            named.push(' ');
            named.push_str(word);
        }
        Self { path: PathBuf::from(path), words, named, into: None, place: None, cpus: Vec::new() }
    }

    /// Its run goes into this directory, whose parents are made. That is not among the words by which it
    /// is named.
    #[must_use]
    pub fn into_directory(mut self, directory: &Path) -> Self {
        self.into = Some(directory.to_owned());
        self
    }

    /// It runs in a namespace of the bed.
    #[must_use]
    pub fn inside(mut self, bed: &Bed, role: Role) -> Self {
        self.place = Some((bed.clone(), role));
        self
    }

    /// It may run on these CPUs alone; none of them leaves it those of the calling thread.
    #[must_use]
    pub fn on(mut self, cpus: &[CpuId]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// Its command line, as it is named.
    #[must_use]
    pub fn named(&self) -> &str {
        &self.named
    }

    /// Runs it to its end, which it is told of when `stop` is set or the time is over.
    ///
    /// # Errors
    /// It cannot be started, or the system does not tell how it ended. That it had to be killed is in what is
    /// returned.
    pub fn run(&self, stop: &AtomicBool, most: Option<Duration>) -> Result<EndedChild, ChildError> {
        self.start()?.wait(stop, most)
    }

    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started, or not in its place.
    pub fn start(&self) -> Result<Running, ChildError> {
        let failed = |why: String| ChildError { what: self.named.clone(), why };
        let mut command = Command::new(&self.path);
        command.args(&self.words).env("NO_COLOR", "1");
        if let Some(into) = &self.into {
            let parent = into.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(parent)
                .map_err(|why| failed(format!("cannot make {}: {why}", parent.display())))?;
            command.arg("-o").arg(into);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C of a terminal reaches this process alone, which tells it once: twice would abandon it.
        command.process_group(0);
        let spawned = self.spawn(command);
        let (mut child, parent) =
            spawned.map_err(|error| failed(format!("it did not start: {error}")))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Running {
            what: self.named.clone(),
            child,
            stdout: Said::of(stdout),
            stderr: Said::of(stderr),
            _parent: parent,
        })
    }

    /// A process is born where the thread is that makes it, and is told to end with it: that thread goes there,
    /// and stays as long as somebody has what is given.
    fn spawn(&self, mut command: Command) -> Result<(Child, Sender<()>), String> {
        let (place, cpus) = (self.place.clone(), self.cpus.clone());
        process::end_with_parent(&mut command);
        let mut there = move || -> Result<Child, String> {
            if let Some((bed, role)) = &place {
                bed.enter(*role).map_err(|error| error.to_string())?;
            }
            if !cpus.is_empty() {
                affinity::set(&cpus).map_err(|error| error.to_string())?;
            }
            command.spawn().map_err(|error| error.to_string())
        };
        let (tell, born) = mpsc::channel();
        let (parent, is_over) = mpsc::channel();
        thread::spawn(move || {
            let _ = tell.send(there());
            let _ = is_over.recv();
        });
        let gone = |_| Err("the thread that was to start it failed".to_owned());
        Ok((born.recv().unwrap_or_else(gone)?, parent))
    }
}

impl Running {
    /// Its process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        i32::try_from(self.child.id()).map_or(Pid(0), Pid)
    }

    /// Has it ended?
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The first line on its standard error that holds these words, as soon as there is one: that is how
    /// a program says that it is ready.
    ///
    /// # Errors
    /// It ended before, `stop` was set, or the time was over.
    pub fn wait_for(
        &mut self,
        words: &str,
        stop: &AtomicBool,
        most: Duration,
    ) -> Result<String, ChildError> {
        let until = now().saturating_add(nanos(most));
        loop {
            let over = self.is_over();
            if over {
                // Its last words may still be on their way.
                self.stderr.whole();
            }
            if let Some(line) = self.stderr.line(words) {
                return Ok(line);
            }
            let why = if over {
                format!("it ended before it said `{words}`: {}", last_words(&self.stderr.text()))
            } else if stop.load(Ordering::Relaxed) {
                "stopped".to_owned()
            } else if now() >= until {
                format!("it did not say `{words}` within {} s", most.as_secs())
            } else {
                thread::sleep(LISTEN);
                continue;
            };
            return Err(ChildError { what: self.what.clone(), why });
        }
    }

    /// Waits for its end, which it is told of when `stop` is set or the time is over.
    ///
    /// # Errors
    /// The system does not tell how it ended. That it had to be killed is in what is returned.
    pub fn wait(
        mut self,
        stop: &AtomicBool,
        most: Option<Duration>,
    ) -> Result<EndedChild, ChildError> {
        let until = most.map(|most| now().saturating_add(nanos(most)));
        let late = |after: u64| until.is_some_and(|until| now() >= until.saturating_add(after));
        let (mut told, mut killed) = (false, false);
        while !self.is_over() {
            if !told && (stop.load(Ordering::Relaxed) || late(0)) {
                self.tell();
                told = true;
            }
            if !killed && late(nanos(GRACE)) {
                let _ = self.child.kill();
                killed = true;
            }
            self.until_it_ends(LOOK);
        }
        self.ended(killed)
    }

    /// Tells it to end, and waits for that so long; then it is killed.
    ///
    /// # Errors
    /// As [`Running::wait`].
    pub fn end(mut self, most: Duration) -> Result<EndedChild, ChildError> {
        self.tell();
        let until = now().saturating_add(nanos(most));
        let mut killed = false;
        while !self.is_over() {
            if !killed && now() >= until {
                let _ = self.child.kill();
                killed = true;
            }
            self.until_it_ends(LISTEN);
        }
        self.ended(killed)
    }

    /// Sleeps for so long, or until it has ended: nobody waits longer than it takes.
    fn until_it_ends(&self, most: Duration) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let (Ok(child), Ok(most_of_it)) =
            (pidfd_open(pid, PidfdFlags::empty()), Timespec::try_from(most))
        else {
            // Kernels before 5.3.
            return thread::sleep(most);
        };
        // A signal wakes it up as well: who sleeps here looks again.
        let _ = poll(&mut [PollFd::new(&child, PollFlags::IN)], Some(&most_of_it));
    }

    /// Ends it as Ctrl-C does. Where it has gone meanwhile there is nobody to tell.
    fn tell(&self) {
        if self.pid().0 > 0 {
            let _ = signal::send_to_process(self.pid(), TERMINATE);
        }
    }

    fn ended(mut self, killed: bool) -> Result<EndedChild, ChildError> {
        let status = self.child.wait();
        let what = self.what.clone();
        let status =
            status.map_err(|error| ChildError { what: what.clone(), why: error.to_string() })?;
        let (stdout, stderr) = (self.stdout.whole(), self.stderr.whole());
        Ok(EndedChild { what, status, stdout, stderr, killed })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl EndedChild {
    /// An error unless it ended as a recording does that left a run.
    ///
    /// # Errors
    /// It ended with another status or by a signal, or had to be killed.
    pub fn recorded(self) -> Result<Self, ChildError> {
        self.with_one_of(&RECORDED)
    }

    /// An error unless it ended with one of these, by itself.
    ///
    /// # Errors
    /// It ended with another status or by a signal, or had to be killed.
    pub fn with_one_of(self, statuses: &[i32]) -> Result<Self, ChildError> {
        let good = self.status.code().is_some_and(|status| statuses.contains(&status));
        if good && !self.killed {
            return Ok(self);
        }
        let how = if self.killed {
            "it did not end in time and was killed".to_owned()
        } else {
            format!("it ended with {}", self.status)
        };
        let why = match last_words(&self.stderr) {
            said if said.is_empty() => how,
            said => format!("{how}: {said}"),
        };
        Err(ChildError { what: self.what, why })
    }
}

impl Said {
    fn of(stream: Option<impl Read + Send + 'static>) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&text);
        let reader = stream.map(|stream| thread::spawn(move || keep(stream, &kept)));
        Self { text, reader }
    }

    fn text(&self) -> String {
        let bytes = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The first whole line with these words.
    fn line(&self, words: &str) -> Option<String> {
        let text = self.text();
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.find(|line| line.contains(words)).map(|line| line.trim_end().to_owned())
    }

    /// Everything, when the child has ended. A grandchild may hold the stream open: nobody waits for it.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let until = now().saturating_add(nanos(GRACE));
            while !reader.is_finished() && now() < until {
                thread::sleep(LISTEN);
            }
        }
        self.text()
    }
}

/// A child that was told to end has so long.
const GRACE: Duration = Duration::from_secs(5);

/// Keeps the end of what comes.
fn keep(mut stream: impl Read, into: &Mutex<Vec<u8>>) {
    let mut some = [0_u8; 4096];
    while let Ok(read @ 1..) = stream.read(&mut some) {
        let mut text = into.lock().unwrap_or_else(PoisonError::into_inner);
        text.extend_from_slice(&some[..read]);
        if text.len() > 2 * MOST_SAID {
            let old = text.len() - MOST_SAID;
            text.drain(..old);
        }
    }
}

/// The last words of a text.
#[must_use]
pub fn last_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words[words.len().saturating_sub(MOST_WORDS)..].join(" ")
}

fn now() -> u64 {
    clock_ns(Clock::Monotonic)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::{BufRead, BufReader};
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn shell(script: &str) -> Program {
        Program::foreign("/bin/sh", vec!["-c".to_owned(), script.to_owned()])
    }

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn a_run_goes_below_parents_that_are_made_under_any_name() {
        let home = tempfile::tempdir().unwrap();
        let parent = home.path().join(OsStr::from_bytes(b"parts\xff/0001"));
        let said = Program::whylate(Path::new("/bin/echo"), "rtt --rate 1kpps")
            .into_directory(&parent.join("client"))
            .run(&GO_ON, None)
            .unwrap();
        assert!(parent.is_dir());
        assert!(said.stdout.starts_with("rtt --rate 1kpps -o "), "{}", said.stdout);
        assert!(said.stdout.ends_with("/0001/client\n"), "{}", said.stdout);
        assert_eq!(said.what, "whylate rtt --rate 1kpps");
    }

    #[test]
    fn a_child_is_told_of_a_stop_and_its_last_words_are_kept() {
        let stopped = shell("exec sleep 60").run(&AtomicBool::new(true), None).unwrap();
        assert!(!stopped.status.success() && !stopped.killed, "it slept to its end");
        let output = shell("echo 7; echo no room >&2; exit 1").run(&GO_ON, None).unwrap();
        assert_eq!((output.stdout.as_str(), output.status.code()), ("7\n", Some(1)));
        let error = output.recorded().unwrap_err().to_string();
        assert!(error.contains("exit status: 1: no room"), "{error}");
        let gone = Program::whylate(Path::new("/nowhere/whylate"), "rtt").run(&GO_ON, None);
        let error = gone.unwrap_err().to_string();
        assert!(error.starts_with("whylate rtt: it did not start"), "{error}");
    }

    #[test]
    fn who_waits_for_a_child_goes_on_as_soon_as_it_has_ended() {
        const LONG: Duration = Duration::from_secs(120);
        let mut child = shell("exit 0").start().unwrap();
        let begun = now();
        child.until_it_ends(LONG);
        assert!(child.is_over() && now() - begun < nanos(LONG), "its time was waited for");
        let mut goes_on = shell("exec sleep 600").start().unwrap();
        goes_on.until_it_ends(LISTEN);
        assert!(!goes_on.is_over());
    }

    #[test]
    fn a_child_that_does_not_listen_is_killed_after_its_time() {
        let deaf = shell("trap '' TERM; echo ready >&2; while :; do sleep 0.05; done");
        let mut running = deaf.start().unwrap();
        running.wait_for("ready", &GO_ON, Duration::from_secs(20)).unwrap();
        let ended = running.end(Duration::from_millis(200)).unwrap();
        assert!(ended.killed);
        let error = ended.recorded().unwrap_err().to_string();
        assert!(error.contains("did not end in time and was killed"), "{error}");
    }

    #[test]
    fn a_word_of_a_child_is_waited_for_and_not_for_ever() {
        let mut speaks = shell("echo one >&2; echo two >&2; exec sleep 60").start().unwrap();
        let line = speaks.wait_for("two", &GO_ON, Duration::from_secs(20)).unwrap();
        assert_eq!(line, "two");
        let never = speaks.wait_for("three", &GO_ON, Duration::from_millis(50)).unwrap_err();
        assert!(never.why.contains("did not say `three`"), "{never}");
        drop(speaks);
        let mut ends = shell("echo cannot >&2; exit 2").start().unwrap();
        let over = ends.wait_for("ready", &GO_ON, Duration::from_secs(20)).unwrap_err();
        assert!(over.why.contains("ended before") && over.why.contains("cannot"), "{over}");
    }

    /// Set where this program is the one that starts a child and is killed.
    const PARENT: &str = "WHYLATE_TEST_STARTS_A_CHILD";

    #[test]
    fn a_child_ends_with_whoever_started_it_though_that_is_killed() {
        if std::env::var_os(PARENT).is_some() {
            let affinity = affinity::get();
            let running =
                [&[][..], &affinity].map(|on| shell("exec sleep 600").on(on).start().unwrap());
            println!("\nstarted {} {}", running[0].pid(), running[1].pid());
            thread::sleep(Duration::from_secs(600));
            return;
        }
        let own = "child::tests::a_child_ends_with_whoever_started_it_though_that_is_killed";
        let mut parent = Command::new(std::env::current_exe().unwrap());
        parent.args(["--exact", own, "--nocapture"]).env(PARENT, "1").stdout(Stdio::piped());
        let mut parent = parent.spawn().unwrap();
        let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines().map_while(Result::ok);
        let started = lines.find_map(|line| line.strip_prefix("started ").map(str::to_owned));
        let pids =
            started.unwrap().split(' ').map(|pid| Pid(pid.parse().unwrap())).collect::<Vec<_>>();
        let children = pids.iter().map(|pid| (*pid, process::start_time(*pid).unwrap()));
        let children: Vec<(Pid, u64)> = children.collect();
        assert!(children.len() == 2 && children.iter().all(|(pid, at)| process::alive(*pid, *at)));
        parent.kill().unwrap();
        parent.wait().unwrap();
        let until = now() + nanos(Duration::from_secs(60));
        while children.iter().any(|(pid, at)| process::alive(*pid, *at)) {
            assert!(now() < until, "{children:?} go on");
            thread::sleep(LISTEN);
        }
    }

    #[test]
    fn of_much_that_is_said_the_end_is_kept() {
        let much = "i=0; while [ $i -lt 60000 ]; do echo 0123456789012345678901234567890123456789; \
                    i=$((i+1)); done; echo last";
        let output = shell(much).run(&GO_ON, None).unwrap();
        assert!(output.stdout.ends_with("last\n"));
        assert!(output.stdout.len() <= 2 * MOST_SAID);
    }

    #[test]
    fn a_child_runs_on_the_cpus_that_it_is_given() {
        let cpu = *affinity::get().last().unwrap();
        let own = affinity::get();
        let allowed = shell("grep Cpus_allowed_list /proc/self/status").on(&[cpu]);
        let output = allowed.run(&GO_ON, None).unwrap();
        assert_eq!(output.stdout.split_whitespace().last(), Some(cpu.to_string().as_str()));
        assert_eq!(affinity::get(), own);
    }
}
