//! The program in processes of its own, each bounded in time.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use tempfile::TempDir;
use whylate_model::directory::RunDir;
use whylate_model::flow::Flow;
use whylate_model::run::Run;
use whylate_model::{CpuId, Pid};
use whylate_stats::histogram::Histogram;
use whylate_sys::signal::send_to_process;

use crate::program;

const SIGINT: i32 = 2;
const SIGSEGV: i32 = 11;
/// After that a measurement is ended.
const MOST_SECONDS: &str = "240";

/// Nothing of the caller's terminal and home.
pub fn clean(command: &mut Command) -> &mut Command {
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state()).stdin(Stdio::null())
}

/// Everything that it said.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

/// Runs `whylate WORDS` to its end.
pub fn run(words: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--signal=INT", "--kill-after=3", MOST_SECONDS]).arg(program::path());
    clean(command.args(words.split_whitespace())).output().unwrap()
}

/// A `whylate forward`, `delay` or `reflect` that goes on, killed with the test.
pub struct Service {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Service {
    /// Starts `whylate WORDS` and waits until it says that it is ready.
    pub fn start(words: &str, ready: &str) -> Self {
        let mut command = Command::new(program::path());
        command.args(words.split_whitespace()).args(["--format", "json", "--no-dma-latency"]);
        clean(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        while !all.contains(ready) {
            let read = stderr.read_line(&mut all).unwrap();
            assert!(read > 0, "whylate {words}: {all}");
        }
        Self { child, stderr }
    }

    /// Ends it, where it has not ended with its link, and gives what it did, in JSON.
    pub fn stop(self) -> String {
        self.stop_unless_fallen().expect("it ended by itself")
    }

    /// The same of one whose other end of shared memory is gone already. None where it fell over that: the
    /// driver takes the memory away on a thread of its own, also beneath a burst that is under way.
    pub fn stop_unless_fallen(mut self) -> Option<String> {
        let _ = send_to_process(Pid(self.child.id() as i32), SIGINT);
        let (mut told, mut rest) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        let _ = self.stderr.read_to_string(&mut rest);
        let status = self.child.wait().unwrap();
        if status.signal() == Some(SIGSEGV) {
            eprintln!("the driver fell over the end of its peer");
            return None;
        }
        // Whoever was at the other end of shared memory may be gone before: a port is lost then.
        assert!(matches!(status.code(), Some(0 | 4)), "{status}: {told} {rest}");
        Some(told)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `whylate rtt` found.
pub struct Measured {
    pub run: Run,
    directory: PathBuf,
    _home: TempDir,
}

impl Measured {
    /// Runs `whylate rtt WORDS` on this CPU.
    pub fn new(words: &str, cpu: CpuId) -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let output =
            run(&format!("rtt {words} --cpus {cpu} --no-trace -o {}", directory.display()));
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 4)), "whylate rtt {words}: {code:?}: {}", said(&output));
        let run = RunDir::open(&directory).unwrap().read_run().unwrap();
        Self { run, directory, _home: home }
    }

    /// Its flow.
    pub fn flow(&self) -> &Flow {
        self.run.flows.first().expect("a flow")
    }

    /// All times of it from the actual send.
    pub fn times(&self) -> Histogram {
        let name = self.flow().service.as_deref().expect("a series");
        let mut sum = Histogram::new();
        for (tag, _, _, histogram) in
            RunDir::open(&self.directory).unwrap().read_histograms().unwrap()
        {
            if tag == name {
                sum.add(&histogram);
            }
        }
        sum
    }

    /// Something of what was sent came, once each, by a device of this name, and the account says so.
    pub fn is_accounted_by(&self, device: &str) {
        let flow = self.flow();
        let packets = flow.packets;
        assert!(packets.add_up() && packets.received > 0, "{packets:?}");
        assert_eq!((packets.duplicates, packets.foreign), (0, 0), "{packets:?}");
        let frames = flow.way.frames.as_ref().expect("a port of frames");
        assert_eq!(frames.interface, device);
        // What came after it was given up is in none.
        let timed = packets.received.saturating_sub(packets.given_up)..=packets.received;
        assert!(timed.contains(&self.times().len()), "{packets:?}");
    }
}

/// A device of shared memory of its number, at a place of this process's own: `server` or `client`.
pub fn memif(what: &str, number: usize, role: &str) -> String {
    let socket = format!("whylate-{what}-{}-{number}", std::process::id());
    format!("net_memif{number},role={role},id=0,socket={socket}")
}
