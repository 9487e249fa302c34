//! Noticing that the host changes under a measurement.
//!
//! A measured CPU that goes offline, an affinity changed from outside, another clock source: each
//! makes the numbers mean something else. The housekeeping thread polls (ten times a second is
//! plenty); a poll reads two small files and asks the kernel once per thread.

use std::path::{Path, PathBuf};

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Pid};

use crate::cpus::{format_list, parse_list};
use crate::files::{text, under};
use crate::kernel;

/// A measuring thread and where it is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Thread id.
    pub tid: Pid,
    /// Its affinity as set by the measurement.
    pub cpus: Vec<CpuId>,
}

/// Watches measured CPUs and threads. Each change is told once; one that is taken back and made
/// again is told again.
#[derive(Debug)]
pub struct HostWatch {
    online_file: PathBuf,
    online_text: Option<String>,
    clock_file: PathBuf,
    clock: Option<String>,
    cpus: Vec<CpuId>,
    offline: Vec<CpuId>,
    threads: Vec<(Watched, Vec<CpuId>)>,
}

impl HostWatch {
    /// Watches `cpus` and `threads` from now on. CPUs that are offline already are told by the
    /// first poll.
    #[must_use]
    pub fn start(root: &Path, cpus: &[CpuId], threads: &[Watched]) -> Self {
        let clock_file =
            under(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let sorted = |watched: &Watched| {
            let mut cpus = watched.cpus.clone();
            cpus.sort_unstable();
            cpus
        };
        Self {
            online_file: under(root, "/sys/devices/system/cpu/online"),
            online_text: None,
            clock: text(&clock_file).ok(),
            clock_file,
            cpus: cpus.to_vec(),
            offline: Vec::new(),
            threads: threads.iter().map(|thread| (thread.clone(), sorted(thread))).collect(),
        }
    }

    /// What has changed since the last poll.
    pub fn poll(&mut self) -> Vec<Warning> {
        let mut changes = Vec::new();
        self.poll_online(&mut changes);
        self.poll_clock(&mut changes);
        for (watched, last) in &mut self.threads {
            // A thread that has ended is the measurement's business.
            let Ok(now) = kernel::affinity(watched.tid) else { continue };
            if now != *last {
                let (before, after) = (format_list(last), format_list(&now));
                let tid = watched.tid;
                changes
                    .push(format!("affinity of measuring thread {tid} from {before} to {after}"));
                *last = now;
            }
        }
        changes.into_iter().map(|what| Warning::HostChanged { what }).collect()
    }

    fn poll_online(&mut self, changes: &mut Vec<String>) {
        let Ok(text) = text(&self.online_file) else { return };
        if self.online_text.as_ref() == Some(&text) {
            return;
        }
        if let Ok(online) = parse_list(text.trim()) {
            for &cpu in &self.cpus {
                let was_offline = self.offline.contains(&cpu);
                match (online.contains(&cpu), was_offline) {
                    (false, false) => changes.push(format!("cpu {cpu} went offline")),
                    (true, true) => changes.push(format!("cpu {cpu} came back online")),
                    _ => {}
                }
            }
            self.offline = self.cpus.iter().copied().filter(|cpu| !online.contains(cpu)).collect();
        }
        self.online_text = Some(text);
    }

    fn poll_clock(&mut self, changes: &mut Vec<String>) {
        let now = text(&self.clock_file).ok();
        if let (Some(before), Some(now)) = (&self.clock, &now)
            && before != now
        {
            changes.push(format!("clock source from {} to {}", before.trim(), now.trim()));
        }
        if now.is_some() {
            self.clock = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{self, Tree};

    const ONLINE: &str = "/sys/devices/system/cpu/online";
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

    fn told(watch: &mut HostWatch) -> Vec<String> {
        let what = |warning| match warning {
            Warning::HostChanged { what } => what,
            other => panic!("{other:?}"),
        };
        watch.poll().into_iter().map(what).collect()
    }

    #[test]
    fn measured_cpu_that_goes_offline_is_told_once() {
        let tree = Tree::empty();
        tree.file(ONLINE, "0-3\n").file(CLOCK, "tsc\n");
        let mut watch = HostWatch::start(tree.root(), &[CpuId(2)], &[]);
        assert_eq!(told(&mut watch), Vec::<String>::new());
        tree.file(ONLINE, "0-2\n");
        assert_eq!(told(&mut watch), Vec::<String>::new(), "cpu 3 is not measured");
        tree.file(ONLINE, "0-1\n");
        assert_eq!(told(&mut watch), ["cpu 2 went offline"]);
        assert_eq!(told(&mut watch), Vec::<String>::new());
        tree.file(ONLINE, "0-2\n");
        assert_eq!(told(&mut watch), ["cpu 2 came back online"]);
        tree.file(ONLINE, "0\n");
        assert_eq!(told(&mut watch), ["cpu 2 went offline"]);
    }

    #[test]
    fn clock_source_that_changes_is_told() {
        let tree = Tree::empty();
        tree.file(ONLINE, "0-3\n").file(CLOCK, "tsc\n");
        let mut watch = HostWatch::start(tree.root(), &[CpuId(0)], &[]);
        tree.file(CLOCK, "hpet\n");
        assert_eq!(told(&mut watch), ["clock source from tsc to hpet"]);
        assert_eq!(told(&mut watch), Vec::<String>::new());
    }

    #[test]
    fn hidden_files_tell_nothing() {
        let tree = Tree::empty();
        let mut watch = HostWatch::start(tree.root(), &[CpuId(0)], &[]);
        assert_eq!(watch.poll(), []);
    }

    #[test]
    fn affinity_changed_from_outside_is_told_once() {
        let _turn = tree::turn(&tree::CPUSETS);
        let before = whylate_sys::affinity::get();
        if before.len() < 2 {
            return tree::skip(&"this process has a single CPU");
        }
        let idle = tree::Idle::start();
        let tid = idle.pid();
        let watched = Watched { tid, cpus: before.iter().rev().copied().collect() };
        let mut watch = HostWatch::start(Path::new("/"), &before, &[watched]);
        assert_eq!(watch.poll(), []);
        kernel::set_affinity(tid, &before[..1]).unwrap();
        let changes = told(&mut watch);
        assert_eq!(changes.len(), 1);
        assert!(changes[0].contains(&format!("thread {tid} from")), "{changes:?}");
        assert_eq!(watch.poll(), []);
        drop(idle);
        assert_eq!(watch.poll(), [], "a thread that has ended is not told");
    }
}
