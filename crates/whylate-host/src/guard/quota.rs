//! A limit of CPU time, or a weight, for a group of threads.
//!
//! The bandwidth control of ordinary tasks: in each period the group runs for its quota at most,
//! and is *throttled* to the end of the period then. It promises no time: the group competes with
//! everybody else for it, and the weight says how strongly. Accounting is by slices of
//! `sched_cfs_bandwidth_slice_us` (5 ms), so short quotas are kept in the mean only. Real-time
//! threads are not limited by it.

use std::path::Path;

use whylate_model::warning::Warning;
use whylate_model::{Nanos, Pid};

use super::Guard;
use super::changes::Changes;
use super::group::{Below, Group, Kind, Place};
use crate::error::HostError;
use crate::files::text;
use crate::journal::Journal;

const CONTROLLER: &str = "cpu";
/// The kernel's least period and quota, and its longest period.
const LEAST: Nanos = Nanos(1_000_000);
const LONGEST_PERIOD: Nanos = Nanos(1_000_000_000);
const NANOS_PER_MICROSECOND: u64 = 1_000;
const QUOTA_REMEDY: &str = "the cgroup above may allow less, and this needs root";
const ADOPT_REMEDY: &str = "a real-time thread cannot enter a cgroup without real-time run time \
                            (cpu.rt_runtime_us): give it an ordinary priority, and a deadline none";

/// At most so much CPU time in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// CPU time.
    pub amount: Nanos,
    /// The period.
    pub period: Nanos,
}

/// The share of a group among those that compete with it: 1 to 10000, 100 is everybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

impl Weight {
    /// What a group has unless it is changed.
    pub const DEFAULT: Self = Self(100);
    const RANGE: std::ops::RangeInclusive<u32> = 1..=10_000;

    /// The nearest weight that there is.
    #[must_use]
    pub fn nearest(weight: f64) -> Self {
        // A cast of a float stops at the bounds of the integer.
        Self((weight.round() as u32).clamp(*Self::RANGE.start(), *Self::RANGE.end()))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// As version 1 counts, where everybody has 1024.
    fn shares(self) -> u64 {
        (u64::from(self.0) * 1024 / 100).max(2)
    }
}

impl CpuQuota {
    /// Refuses what the kernel would.
    pub fn check(self) -> Result<(), HostError> {
        let Self { amount, period } = self;
        let why = if period < LEAST || period > LONGEST_PERIOD {
            format!("periods go from {LEAST} to {LONGEST_PERIOD}")
        } else if amount < LEAST {
            format!("the least quota is {LEAST}: take a longer period")
        } else {
            return Ok(());
        };
        Err(HostError::Quota { amount, period, why })
    }
}

/// A cgroup with a quota or a weight, until the guard goes.
#[derive(Debug)]
pub struct CgroupQuota {
    // Before the changes: nobody may be inside when the group is removed.
    group: Group,
    changes: Changes,
    told: String,
}

impl CgroupQuota {
    /// What would be changed on the host below `root`; for an offer.
    pub fn what_would_be_changed(root: &Path) -> Result<String, HostError> {
        let place = Place::find(root, CONTROLLER, Below::Home)?;
        let parent = place.parent.display();
        let who = match place.kind {
            Kind::TwoProcess => "this whole process",
            Kind::One | Kind::TwoThreaded => "the threads that have one",
        };
        Ok(format!(
            "for each quota a cgroup is made below {parent}, and {who} move into it; then they go \
             back and it is removed"
        ))
    }

    /// Makes a cgroup; `tag` tells several of one process apart. Without a quota it has a weight
    /// only.
    pub fn make(
        journal: &Journal,
        tag: &str,
        quota: Option<CpuQuota>,
        weight: Weight,
    ) -> Result<Self, HostError> {
        Self::make_below(Path::new("/"), journal, tag, quota, weight)
    }

    fn make_below(
        root: &Path,
        journal: &Journal,
        tag: &str,
        quota: Option<CpuQuota>,
        weight: Weight,
    ) -> Result<Self, HostError> {
        quota.map_or(Ok(()), CpuQuota::check)?;
        let place = Place::find(root, CONTROLLER, Below::Home)?;
        let mut changes = Changes::new(journal);
        let name = format!("whylate-{}-quota-{tag}", journal.owner());
        let group = Group::make(&mut changes, &place, &name, CONTROLLER)?;
        let told = format!("{}: {}", group.dir.display(), described(quota, weight));
        let guard = Self { group, changes, told };
        guard.limit(place.kind, quota, weight)?;
        Ok(guard)
    }

    fn limit(&self, kind: Kind, quota: Option<CpuQuota>, weight: Weight) -> Result<(), HostError> {
        let microseconds = |nanos: Nanos| nanos.0 / NANOS_PER_MICROSECOND;
        let write = |file: &str, value: String| self.group.write(file, &value, QUOTA_REMEDY);
        if kind == Kind::One {
            if let Some(CpuQuota { amount, period }) = quota {
                write("cpu.cfs_period_us", microseconds(period).to_string())?;
                write("cpu.cfs_quota_us", microseconds(amount).to_string())?;
            }
            return write("cpu.shares", weight.shares().to_string());
        }
        if let Some(CpuQuota { amount, period }) = quota {
            write("cpu.max", format!("{} {}", microseconds(amount), microseconds(period)))?;
        }
        write("cpu.weight", weight.0.to_string())
    }

    /// Moves a thread of this process in. Where the kernel moves whole processes only, this process
    /// moves.
    pub fn adopt(&self, thread: Pid) -> Result<(), HostError> {
        self.group.adopt(thread, ADOPT_REMEDY)
    }

    /// Periods so far in which the quota was used up and somebody had to wait; `None` where the
    /// kernel does not say.
    #[must_use]
    pub fn throttled_periods(&self) -> Option<u64> {
        let stat = text(&self.group.dir.join("cpu.stat")).ok()?;
        let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
        line.trim().parse().ok()
    }
}

fn described(quota: Option<CpuQuota>, weight: Weight) -> String {
    match quota {
        Some(CpuQuota { amount, period }) => {
            format!("{amount} in each {period} at most, weight {}", weight.0)
        }
        None => format!("weight {}", weight.0),
    }
}

impl Guard for CgroupQuota {
    fn describe(&self) -> Vec<String> {
        let mut lines = vec![format!("CPU time by cgroup {}", self.told)];
        if self.group.moves_the_process() {
            lines.push("the whole process is inside, housekeeping included".to_owned());
        }
        lines
    }

    fn restore(&mut self) -> Vec<Warning> {
        let mut warnings = self.group.evacuate();
        warnings.extend(self.changes.restore());
        warnings
    }
}

impl Drop for CgroupQuota {
    fn drop(&mut self) {
        for warning in self.restore() {
            super::say(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use whylate_sys::nanosleep::{Clock, clock_ns};
    use whylate_sys::process;

    use super::*;
    use crate::tree::{self, Tree};

    const MS: u64 = 1_000_000;

    fn quota(amount: u64, period: u64) -> CpuQuota {
        CpuQuota { amount: Nanos(amount), period: Nanos(period) }
    }

    #[test]
    fn amounts_that_the_kernel_refuses_are_refused_first() {
        for (amount, period) in [(MS / 2, 10 * MS), (MS, MS / 2), (MS, 2_000 * MS), (0, 0)] {
            let error = quota(amount, period).check().unwrap_err();
            assert!(matches!(error, HostError::Quota { .. }), "{error}");
        }
        // More than one CPU's worth is a quota for several threads.
        quota(30 * MS, 10 * MS).check().unwrap();
    }

    #[test]
    fn a_weight_stays_inside_what_the_kernel_knows() {
        assert_eq!(Weight::nearest(-3.0).get(), 1);
        assert_eq!(Weight::nearest(1e9).get(), 10_000);
        assert_eq!(Weight::nearest(f64::NAN).get(), 1);
        assert_eq!((Weight::DEFAULT.shares(), Weight::nearest(1.0).shares()), (1024, 10));
    }

    #[test]
    fn version_two_gets_its_own_files() {
        let tree = Tree::empty();
        tree.file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
            .file("/proc/thread-self/cgroup", "0::/\n")
            .file("/sys/fs/cgroup/cgroup.controllers", "cpu\n")
            .file("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
        let journal = Journal::open_in(&tree.root().join("journals")).unwrap();
        let (limit, weight) = (Some(quota(3 * MS, 8 * MS)), Weight::nearest(250.0));
        let guard = CgroupQuota::make_below(tree.root(), &journal, "0", limit, weight).unwrap();
        let dir = guard.group.dir.clone();
        assert_eq!(fs::read_to_string(dir.join("cpu.max")).unwrap(), "3000 8000");
        assert_eq!(fs::read_to_string(dir.join("cpu.weight")).unwrap(), "250");
        assert!(guard.describe()[0].contains("weight 250"), "{:?}", guard.describe());
        fs::write(dir.join("cpu.stat"), "nr_periods 9\nnr_throttled 4\n").unwrap();
        assert_eq!(guard.throttled_periods(), Some(4));
        for file in fs::read_dir(&dir).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        drop(guard);
        assert!(!dir.exists() && journal.entries().is_empty());
    }

    #[test]
    fn a_thread_of_this_host_is_held_at_its_quota_and_its_cgroup_is_gone_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(&dir.path().join("journals")).unwrap();
        let limit = quota(20 * MS, 100 * MS);
        let guard = match CgroupQuota::make(&journal, "test", Some(limit), Weight::DEFAULT) {
            Ok(guard) => guard,
            Err(error) => return tree::skip(&error),
        };
        if guard.group.moves_the_process() {
            return tree::skip(&"here a quota holds the whole process, other tests included");
        }
        let path = guard.group.dir.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let me = process::tid();
                let home = guard.group.place_of(me);
                guard.adopt(me).unwrap();
                assert_ne!(guard.group.place_of(me), home);
                // Whoever else wants the CPU, in some period it gets what it may have and wants more.
                let end = clock_ns(Clock::Monotonic) + 180_000 * MS;
                while guard.throttled_periods().unwrap() == 0 {
                    assert!(clock_ns(Clock::Monotonic) < end, "never held in minutes");
                }
            });
        });
        drop(guard);
        assert!(!path.exists());
        assert_eq!(journal.entries(), []);
    }
}
