//! What the machine was like during a round: what the hypervisor took, what other processes had, and how
//! long something waited for a CPU.

use std::path::Path;

use serde::{Deserialize, Serialize};
use whylate_sys::nanosleep::{Clock, clock_ns};

/// Milliseconds of a clock tick of `/proc/stat`, which Linux tells in hundredths of a second.
const TICK_MS: f64 = 10.0;

/// Counters at one moment, over all CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counters {
    at_ns: u64,
    cpus: usize,
    steal_ticks: u64,
    busy_ticks: u64,
    own_ticks: u64,
    waited_us: Option<u64>,
}

/// What they came to over a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// How long it took, in milliseconds.
    pub took_ms: f64,
    /// CPUs.
    pub cpus: usize,
    /// CPU time that the hypervisor took, in milliseconds, as coarse as the kernel counts it.
    pub steal_ms: f64,
    /// CPU time of processes that do not belong to the round.
    pub foreign_ms: f64,
    /// Time during which something waited for a CPU (`/proc/pressure/cpu`); none where the kernel does not
    /// tell.
    pub pressure_ms: Option<f64>,
}

impl Counters {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
        let at_ns = clock_ns(Clock::Monotonic);
        Self::parse(
            at_ns,
            &read("/proc/stat"),
            &read("/proc/self/stat"),
            &read("/proc/pressure/cpu"),
        )
    }

    /// Of the texts of `/proc/stat`, `/proc/self/stat` and `/proc/pressure/cpu`.
    fn parse(at_ns: u64, stat: &str, own: &str, pressure: &str) -> Self {
        let row = stat.lines().next().unwrap_or_default();
        let of = |at: usize| row.split_whitespace().nth(at).and_then(|of| of.parse().ok());
        let field = |at: usize| of(at).unwrap_or(0_u64);
        let is_cpu = |line: &&str| {
            line.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        // Behind the name, which may hold anything: user and system time, and those of ended children.
        let after_name = own.rsplit(')').next().unwrap_or_default();
        let own = after_name.split_whitespace().skip(11).take(4);
        let waited = pressure.lines().find(|line| line.starts_with("some "));
        let waited = waited.and_then(|line| line.rsplit("total=").next()?.trim().parse().ok());
        Self {
            at_ns,
            cpus: stat.lines().filter(is_cpu).count(),
            steal_ticks: field(8),
            // user, nice and system: interrupts belong to whom they serve.
            busy_ticks: field(1) + field(2) + field(3),
            own_ticks: own.filter_map(|of| of.parse::<u64>().ok()).sum(),
            waited_us: waited,
        }
    }

    /// What they came to since then.
    #[must_use]
    pub fn since(&self, then: &Self) -> Conditions {
        let ticks = |now: u64, then: u64| now.saturating_sub(then) as f64 * TICK_MS;
        let busy = ticks(self.busy_ticks, then.busy_ticks);
        let own = ticks(self.own_ticks, then.own_ticks);
        let waited = self.waited_us.zip(then.waited_us);
        Conditions {
            took_ms: self.at_ns.saturating_sub(then.at_ns) as f64 / 1e6,
            cpus: self.cpus,
            steal_ms: ticks(self.steal_ticks, then.steal_ticks),
            foreign_ms: (busy - own).max(0.0),
            pressure_ms: waited.map(|(now, then)| now.saturating_sub(then) as f64 / 1e3),
        }
    }
}

impl Conditions {
    /// Share of the CPU time of all CPUs that was not the round's to have.
    #[must_use]
    pub fn taken(&self) -> f64 {
        (self.steal_ms + self.foreign_ms) / (self.took_ms * self.cpus.max(1) as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Counters;

    const STAT: &str = "cpu  100 20 30 9000 5 6 7 40 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\ncpufreq 0\n";
    const OWN: &str = "7 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
    const WAITED: &str =
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500\nfull avg10=0 total=1\n";

    #[test]
    fn what_others_and_the_hypervisor_took_is_what_was_not_our_own() {
        let then = Counters::parse(0, STAT, OWN, WAITED);
        assert_eq!((then.cpus, then.steal_ticks, then.busy_ticks), (2, 40, 150));
        assert_eq!((then.own_ticks, then.waited_us), (11 + 12 + 13 + 14, Some(2_500)));
        let later = Counters {
            at_ns: 1_000_000_000,
            steal_ticks: 50,
            busy_ticks: 190,
            own_ticks: 60,
            waited_us: Some(4_000),
            ..then
        };
        let found = later.since(&then);
        assert_eq!((found.steal_ms, found.foreign_ms), (100.0, 300.0));
        assert_eq!((found.took_ms, found.pressure_ms), (1_000.0, Some(1.5)));
        assert!((found.taken() - 0.2).abs() < 1e-9);
        // All of it was our own, as far as two counters of one time agree.
        let own = Counters { own_ticks: then.own_ticks + 50, ..later };
        assert!(own.since(&then).foreign_ms.abs() < 1e-9);
    }

    #[test]
    fn a_kernel_that_tells_nothing_gives_nothing_and_no_shares_below_zero() {
        let none = Counters::parse(5, "", "", "");
        let found = none.since(&Counters::parse(9, STAT, OWN, WAITED));
        assert_eq!((found.steal_ms, found.foreign_ms, found.took_ms), (0.0, 0.0, 0.0));
        assert_eq!((found.pressure_ms, found.taken()), (None, 0.0));
    }
}
