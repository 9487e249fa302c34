//! Resource limits of this process.
//!
//! [`getrlimit(2)`](https://man7.org/linux/man-pages/man2/getrlimit.2.html). Capability: none to
//! read.

use rustix::process::{Resource, getrlimit};

/// `RLIMIT_MEMLOCK`, the bytes that may be locked; `None` is unlimited.
#[must_use]
pub fn memory_lock() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// `RLIMIT_RTPRIO`, the highest real-time priority that may be asked for; `None` is unlimited.
#[must_use]
pub fn real_time_priority() -> Option<u64> {
    getrlimit(Resource::Rtprio).current
}

/// The lowest niceness that `RLIMIT_NICE` allows; `None` is unlimited.
#[must_use]
pub fn niceness() -> Option<i64> {
    getrlimit(Resource::Nice).current.map(|ceiling| 20 - ceiling.min(40) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_that_proc_shows() {
        let shown = std::fs::read_to_string("/proc/self/limits").unwrap();
        let soft = |name: &str| -> Option<u64> {
            let line = shown.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().ok()
        };
        assert_eq!(memory_lock(), soft("Max locked memory"));
        assert_eq!(real_time_priority(), soft("Max realtime priority"));
        assert_eq!(niceness(), soft("Max nice priority").map(|limit| 20 - limit as i64));
    }
}
