//! What SCHED_DEADLINE may grant on this host.
//!
//! Of each CPU the kernel grants `sched_rt_runtime_us` in `sched_rt_period_us`, less what the *fair
//! server* holds (Linux 6.12: 50 ms of each second, so that ordinary tasks are not starved). The
//! server's share is shown in debugfs, which is often closed or not mounted: then it is unknown,
//! never none.

use std::path::Path;

use whylate_host::guard::RtThrottling;
use whylate_model::{CpuId, Nanos};

/// The least runtime that the kernel takes (`DL_SCALE`: bandwidths are counted in units of 2^10 ns).
pub const LEAST_AMOUNT: Nanos = Nanos(1_024);

const PERIOD_MIN: &str = "proc/sys/kernel/sched_deadline_period_min_us";
const PERIOD_MAX: &str = "proc/sys/kernel/sched_deadline_period_max_us";
const FAIR_SERVER: &str = "sys/kernel/debug/sched/fair_server";
/// Bytes of a setting; longer ones are none.
const LONGEST: usize = 64;

/// The limits of deadlines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The share of each CPU that real-time tasks and deadlines may have; none where unlimited or
    /// unknown.
    pub share: Option<f64>,
    /// What the fair server holds of each of the CPUs, the most of them; none where unknown.
    pub fair_server: Option<f64>,
    /// Shortest period; none where unknown.
    pub period_min: Option<Nanos>,
    /// Longest period; none where unknown.
    pub period_max: Option<Nanos>,
}

impl Limits {
    /// Reads them below `root`.
    #[must_use]
    pub fn read(root: &Path, cpus: &[CpuId]) -> Self {
        let limits = RtThrottling::detect(root).filter(|limits| limits.runtime_us >= 0);
        let microseconds = |path| number(&root.join(path)).map(|us| Nanos(us * 1_000));
        let server = |cpu: &CpuId| {
            let dir = root.join(FAIR_SERVER).join(format!("cpu{cpu}"));
            let (runtime, period) = (number(&dir.join("runtime"))?, number(&dir.join("period"))?);
            Some(runtime as f64 / period.max(1) as f64)
        };
        let shares: Option<Vec<f64>> = cpus.iter().map(server).collect();
        Self {
            share: limits.map(|limits| limits.runtime_us as f64 / limits.period_us.max(1) as f64),
            fair_server: shares.and_then(|shares| shares.into_iter().reduce(f64::max)),
            period_min: microseconds(PERIOD_MIN),
            period_max: microseconds(PERIOD_MAX),
        }
    }

    /// What the kernel grants of `cpus` CPUs at most; none where unlimited or unknown.
    #[must_use]
    pub fn grants(&self, cpus: usize) -> Option<f64> {
        let share = self.share? - self.fair_server.unwrap_or(0.0);
        Some(share * cpus as f64)
    }

    /// How that comes about, for an error.
    #[must_use]
    pub fn reason(&self) -> String {
        let share = self.share.unwrap_or(1.0);
        let server = match self.fair_server {
            Some(server) => format!("less {server:.2} for the fair server"),
            None => {
                "less what the fair server holds, which debugfs does not show here (0.05 since \
                     Linux 6.12)"
                    .to_owned()
            }
        };
        format!("sched_rt_runtime_us / sched_rt_period_us = {share:.2} of each CPU, {server}")
    }
}

fn number(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok().filter(|text| text.len() <= LONGEST)?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    const USUAL: [(&str, &str); 4] = [
        ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        (PERIOD_MIN, "100\n"),
        (PERIOD_MAX, "4194304\n"),
    ];

    #[test]
    fn what_is_not_shown_is_unknown_and_not_none() {
        let limits = Limits::read(host(&[]).path(), &[CpuId(0)]);
        assert_eq!((limits.share, limits.fair_server, limits.grants(1)), (None, None, None));
        let limits = Limits::read(host(&USUAL).path(), &[CpuId(0)]);
        assert_eq!(limits.grants(2), Some(1.9));
        assert_eq!(limits.period_min, Some(Nanos(100_000)));
        assert!(limits.reason().contains("debugfs"), "{}", limits.reason());
    }

    #[test]
    fn the_fair_server_is_taken_off_where_it_is_shown() {
        let server = [
            ("sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000\n"),
            ("sys/kernel/debug/sched/fair_server/cpu1/period", "1000000000\n"),
        ];
        let dir = host(&[&USUAL[..], &server[..]].concat());
        let limits = Limits::read(dir.path(), &[CpuId(1)]);
        assert!((limits.grants(1).unwrap() - 0.90).abs() < 1e-12);
        // Of another CPU nothing is shown.
        assert_eq!(Limits::read(dir.path(), &[CpuId(0), CpuId(1)]).fair_server, None);
    }

    #[test]
    fn a_lifted_limit_grants_without_end() {
        let mut files = USUAL;
        files[0].1 = "-1\n";
        assert_eq!(Limits::read(host(&files).path(), &[CpuId(0)]).grants(1), None);
    }
}
