//! A reflector in a process of its own.
//!
//! The parent starts the program with one end of a socket pair as its standard input; the child
//! opens that as a port and reflects. Neither outlives the other: the parent kills and reaps its
//! child, by id, when it lets go of it, and the child looks ten times a second whether its parent
//! is still there.

mod told;

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions, waitid};
use whylate_clock::{Counter, HardwareCounter};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid};
use whylate_port::{Setup, Wait, inherited};
use whylate_sys::affinity;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_threads::Placement;

use crate::error::NetError;
use crate::reflect::{ReflectSummary, Reflector, reflect};

pub use told::ToldStalls;

/// A process that is ending is asked this often whether it has.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// The child finds its counter's frequency in this time. It bounds waits with it and converts no
/// stamp, so a thousandth more or less does not matter.
const RATE_TIME: Duration = Duration::from_millis(5);

/// A reflector that does not say where it listens within this time will not.
const LISTENING_LIMIT: Duration = Duration::from_secs(5);
/// What it says where it listens with.
const LISTENING: &str = "listening on ";
/// Lines before that, and bytes of each, that are read.
const MOST_LINES: usize = 100;
const MOST_BYTES: u64 = 1 << 16;

/// A reflector in a child process, which is killed and reaped when this is dropped.
#[derive(Debug)]
pub struct ReflectorProcess {
    child: Child,
}

impl ReflectorProcess {
    /// Starts `exe` with `args`, `end` as its standard input, and its first thread on `cpu`. Its
    /// standard output goes nowhere; what it says on standard error is seen.
    ///
    /// The program is expected to call [`reflect_stdin`]; it pins itself again, and reports what
    /// it could not do.
    pub fn spawn<I, S>(exe: &Path, args: I, end: OwnedFd, cpu: CpuId) -> Result<Self, NetError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let child = Command::new(exe)
            .args(args)
            .stdin(Stdio::from(end))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|source| NetError::Spawn { exe: exe.to_owned(), source })?;
        // From here on the child is killed and reaped whatever happens.
        let process = Self { child };
        affinity::set_of(process.pid(), &[cpu]).map_err(|source| NetError::Pin { cpu, source })?;
        Ok(process)
    }

    /// Starts `exe` with `args`, which is expected to listen by itself and to say so on standard
    /// error, and its first thread on `cpu`. Gives where it listens, in its own words.
    pub fn spawn_listening<I, S>(
        exe: &Path,
        args: I,
        cpu: CpuId,
    ) -> Result<(Self, String), NetError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args = args.into_iter().map(|word| word.as_ref().to_owned()).collect();
        Self::listen(exe, args, cpu, Stdio::null())
    }

    /// As [`ReflectorProcess::spawn_listening`], of a program that also tells its stalls on standard
    /// output: gives the end to read them from.
    pub fn spawn_telling<I, S>(
        exe: &Path,
        args: I,
        cpu: CpuId,
    ) -> Result<(Self, String, ToldStalls), NetError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args = args.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let (mut process, said) = Self::listen(exe, args, cpu, Stdio::piped())?;
        let told = process.child.stdout.take().map(ToldStalls::new).transpose()?;
        told.map(|told| (process, said.clone(), told))
            .ok_or_else(|| NetError::NotListening { exe: exe.to_owned(), said })
    }

    fn listen(
        exe: &Path,
        args: Vec<OsString>,
        cpu: CpuId,
        output: Stdio,
    ) -> Result<(Self, String), NetError> {
        let mut child = Command::new(exe)
            .args(args)
            // It ends with this process, however that ends, when it looks at its standard input.
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| NetError::Spawn { exe: exe.to_owned(), source })?;
        let said = child.stderr.take();
        let process = Self { child };
        affinity::set_of(process.pid(), &[cpu]).map_err(|source| NetError::Pin { cpu, source })?;
        let said = said.map_or_else(|| Err(String::new()), listening);
        match said {
            Ok(address) => Ok((process, address)),
            Err(said) => Err(NetError::NotListening { exe: exe.to_owned(), said }),
        }
    }

    /// The child's process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid(self.child.id() as i32)
    }

    /// Has the child ended, and not well? It stays to be waited for.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let at_once = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let child = rustix::process::Pid::from_child(&self.child);
        let ended = waitid(WaitId::Pid(child), at_once);
        matches!(ended, Ok(Some(status)) if status.exit_status() != Some(0))
    }

    /// Waits until the child has ended by itself, for `limit` at most; none when it has not.
    pub fn wait(&mut self, limit: Nanos) -> Result<Option<ExitStatus>, NetError> {
        let begin = clock_ns(Clock::Monotonic);
        loop {
            match self.child.try_wait() {
                Ok(None) if clock_ns(Clock::Monotonic) - begin < limit.0 => {
                    thread::sleep(ASK_EVERY);
                }
                Ok(status) => return Ok(status),
                Err(source) => return Err(NetError::Wait { source }),
            }
        }
    }
}

impl Drop for ReflectorProcess {
    fn drop(&mut self) {
        // Both fail only when the child has ended and been reaped: then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a child listens, or what it said instead. Its standard error is read to the end by a thread
/// of its own, so that it never waits for a reader.
fn listening(errors: ChildStderr) -> Result<String, String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(errors.take(MOST_BYTES)).lines();
        for line in lines.by_ref().take(MOST_LINES).map_while(Result::ok) {
            // Nobody listens any more once the address is known.
            let _ = tell.send(line);
        }
    });
    let mut said = String::new();
    while let Ok(line) = told.recv_timeout(LISTENING_LIMIT) {
        if let Some(rest) = line.strip_prefix(LISTENING) {
            return Ok(rest.split(' ').next().unwrap_or(rest).to_owned());
        }
        said.push_str(&line);
        said.push(' ');
    }
    Err(said.trim().to_owned())
}

/// How a child process reflects on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdinReflector {
    /// Pinned to this CPU.
    pub cpu: Option<CpuId>,
    /// SCHED_FIFO with this priority.
    pub fifo: Option<u8>,
    /// How it waits.
    pub wait: Wait,
    /// Whom it answers, and how long it waits for anybody.
    pub reflector: Reflector,
}

/// The child's part: opens the socket on standard input and reflects until the parent says that it
/// has finished, or is gone. Gives what was done and what was refused.
pub fn reflect_stdin(settings: StdinReflector) -> Result<(ReflectSummary, Vec<Warning>), NetError> {
    let parent = rustix::process::getppid();
    let (_, warnings) = Placement { cpu: settings.cpu, fifo: settings.fifo }.settle()?;
    let mut counter = HardwareCounter::open()?;
    let rate = rough_rate(&mut counter);
    let mut port = inherited::open_stdin(Setup { counter, rate, wait: settings.wait })?;
    let mut parent_lives = || rustix::process::getppid() == parent;
    let summary = reflect(&mut port, settings.reflector, &mut parent_lives)?;
    Ok((summary, warnings))
}

fn rough_rate<C: Counter>(counter: &mut C) -> Hertz {
    let (from, at) = (counter.read(), clock_ns(Clock::Monotonic));
    thread::sleep(RATE_TIME);
    let (to, then) = (counter.read(), clock_ns(Clock::Monotonic));
    Hertz(to.since(from).0.max(1) as f64 * 1e9 / (then - at).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_child_that_ended_badly_has_failed_and_can_be_waited_for_and_one_that_ended_well_has_not() {
        let cpu = affinity::get()[0];
        for (script, well) in
            [("read x; exit 0", true), ("read x; exit 3", false), ("kill -9 $$", false)]
        {
            let (held, end) = UnixStream::pair().unwrap();
            let args = ["-c", script];
            let spawned = ReflectorProcess::spawn(Path::new("/bin/sh"), args, end.into(), cpu);
            let mut process = spawned.unwrap();
            if script.starts_with("read") {
                assert!(!process.has_failed(), "{script}: it waits for its input");
            }
            drop(held);
            let pid = rustix::process::Pid::from_child(&process.child);
            let at_its_end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(pid), at_its_end).unwrap();
            assert_eq!(process.has_failed(), !well, "{script}");
            let status = process.wait(Nanos(0)).unwrap().expect("its status is kept");
            assert_eq!(status.success(), well, "{script}");
        }
    }
}
