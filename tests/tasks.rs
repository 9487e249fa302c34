//! Threads of a program that runs: found by name, and looked at by what the kernel counts of them.
//!
//! What a thread has done is told by its own CPU time and sleeps, not by the time that has passed: on a busy
//! machine it may not have run at all meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use whylate_model::Pid;

use crate::program::until;

/// A thread.
pub(crate) struct Task {
    folder: PathBuf,
    pub(crate) id: Pid,
}

impl Task {
    /// The thread of this name, once a process has it.
    pub(crate) fn named(process: u32, wanted: &str) -> Self {
        until(&format!("the thread {wanted} runs"), || Self::find(process, wanted))
    }

    /// The thread of this name, where a process has it now.
    pub(crate) fn find(process: u32, wanted: &str) -> Option<Self> {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
        tasks.flatten().find_map(|task| {
            let folder = task.path();
            let name = std::fs::read_to_string(folder.join("comm")).ok()?;
            let id = task.file_name().to_str()?.parse().ok()?;
            (name.trim_end() == wanted).then_some(Self { folder, id: Pid(id) })
        })
    }

    /// The first thread of a process.
    pub(crate) fn first(process: Pid) -> Self {
        Self { folder: Path::new("/proc").join(process.to_string()), id: process }
    }

    /// Is it still there?
    pub(crate) fn is_there(&self) -> bool {
        self.sleeps().is_some()
    }

    /// How often it has gone to sleep; none once it has ended.
    pub(crate) fn sleeps(&self) -> Option<u64> {
        self.told("voluntary_ctxt_switches:")?.parse().ok()
    }

    /// Whether it sleeps, and how often it has gone to; where both stay the same it slept all the time.
    pub(crate) fn asleep(&self) -> Option<u64> {
        (self.state()? == 'S').then(|| self.sleeps()).flatten()
    }

    /// Its state as the kernel writes it; none once it has ended.
    pub(crate) fn state(&self) -> Option<char> {
        self.told("State:")?.chars().next()
    }

    /// CPU time that it has had; none once it has ended.
    pub(crate) fn ran(&self) -> Option<Duration> {
        let text = std::fs::read_to_string(self.folder.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    fn told(&self, what: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(what))?;
        Some(line.trim().to_owned())
    }
}
