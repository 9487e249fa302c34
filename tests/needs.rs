//! What a test needs from the machine.
//!
//! A test that cannot run says so on stderr and returns. Where `WHYLATE_TESTS_REQUIRE=everything`
//! is set nothing may be left out, and a missing thing is a failure.

use std::io::Write;
use std::path::{Path, PathBuf};

use whylate_model::CpuId;
use whylate_sys::affinity;
use whylate_sys::tracefs::Tracefs;

/// Share of all CPUs that other processes may use while names of gaps are judged.
const QUIET: f64 = 0.1;

/// Says that a test is left out, or fails where nothing may be.
pub(crate) fn missing(reason: &str) {
    let everything = std::env::var("WHYLATE_TESTS_REQUIRE").is_ok_and(|v| v == "everything");
    assert!(!everything, "nothing may be skipped, but: {reason}");
    // Not by a macro: the test harness would keep it to itself.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Root, for what only root may do.
pub(crate) fn root() -> bool {
    let uid = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
        let line = status.lines().find(|line| line.starts_with("Uid:"))?.to_owned();
        line.split_whitespace().nth(2)?.parse::<u32>().ok()
    });
    given(uid == Some(0), "this test needs root")
}

/// The kernel's tracing.
pub(crate) fn tracefs() -> Option<Tracefs> {
    Tracefs::open().map_err(|error| missing(&format!("no kernel tracing: {error}"))).ok()
}

/// At least so many CPUs for this process.
pub(crate) fn cpus(count: usize) -> Option<Vec<CpuId>> {
    let cpus = affinity::get();
    given(cpus.len() >= count, &format!("this test needs {count} CPUs")).then_some(cpus)
}

/// A program in `$PATH`.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    given(found.is_some(), &format!("{name} is not installed"));
    found
}

/// Time that all CPUs together were busy, less what ended children of this process used.
pub(crate) struct Busy {
    total: u64,
    foreign: u64,
}

impl Busy {
    pub(crate) fn now() -> Self {
        let read = |path| std::fs::read_to_string(Path::new(path)).unwrap();
        let stat = read("/proc/stat");
        let row = stat.lines().next().unwrap().split_whitespace().skip(1).take(8);
        let fields: Vec<u64> = row.map(|field| field.parse().unwrap()).collect();
        let own = read("/proc/self/stat");
        let after_name = own.rsplit(')').next().unwrap();
        let own: u64 =
            after_name.split_whitespace().skip(11).take(4).map(|t| t.parse::<u64>().unwrap()).sum();
        // user, nice and system; not the host's steal, and not the interrupts of the run itself.
        Self { total: fields.iter().sum(), foreign: fields[..3].iter().sum::<u64>() - own }
    }

    /// Share of the CPUs' time since then that others used.
    pub(crate) fn share_until_now(&self) -> f64 {
        let now = Self::now();
        now.foreign.saturating_sub(self.foreign) as f64 / (now.total - self.total).max(1) as f64
    }

    /// Were others busy since then?
    pub(crate) fn disturbed(&self) -> bool {
        self.share_until_now() > QUIET
    }
}

fn given(there: bool, reason: &str) -> bool {
    if !there {
        missing(reason);
    }
    there
}
