//! Debian's testpmd beside us: started, bounded, ended by its own process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

pub use whylate_suite::{absent, missing};

/// Is it installed?
pub fn installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|place| place.join("dpdk-testpmd").is_file());
    if !found {
        missing("dpdk-testpmd is not installed (package dpdk-dev)");
    }
    found
}

/// A testpmd that runs, gone with this.
pub struct Testpmd {
    child: Child,
    lines: Receiver<String>,
}

impl Testpmd {
    /// Starts it on two CPUs, the second of which forwards; `words` come behind its `--`.
    pub fn start(cpus: (u32, u32), devices: &[&str], words: &[&str]) -> Self {
        Self::start_with(&["--no-huge", "-m", "256"], cpus, devices, words)
    }

    /// The same with memory as `memory` says.
    pub fn start_with(memory: &[&str], cpus: (u32, u32), devices: &[&str], words: &[&str]) -> Self {
        let lcores = format!("--lcores=0@{},1@{}", cpus.0, cpus.1);
        let mut command = Command::new("dpdk-testpmd");
        command.args([lcores.as_str(), "--no-pci", "--no-shconf"]).args(memory);
        command.args(["--no-telemetry", "--iova-mode=va"]);
        command.args(devices.iter().map(|device| format!("--vdev={device}")));
        command.args(["--", "--stats-period=1", "--total-num-mbufs=8192"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (told, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line that `wanted` makes something of; none when none comes for a minute and a half.
    pub fn next<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> Option<T> {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(90)).ok()?;
            if let Some(found) = wanted(&line) {
                return Some(found);
            }
        }
    }

    /// What it said until now is nobody's.
    pub fn forget(&self) {
        self.lines.try_iter().for_each(drop);
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        self.kill();
    }
}
