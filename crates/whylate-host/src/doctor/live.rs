//! Facts that no file tells: they need a call, or a short try, on the running host.
//!
//! Nothing is changed. The disk is tried with a file that has no name, so that it is gone with the
//! process however that ends; where the file system has no such files, the disk is not tried.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use whylate_clock::{Counter, HardwareCounter};
use whylate_sys::ethtool::{self, Coalescing, Offloads};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{SysError, disk, timerslack};

use super::network::{self, Asked};
use super::view::View;

/// Facts of the running host; what could not be found out says why.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// Timer slack of this process, which programs inherit from the shell that starts them.
    pub timer_slack_ns: Result<u64, String>,
    /// What one reading of the cycle counter costs.
    pub clock_read_ns: Result<f64, String>,
    /// How fast records can be written where recordings go.
    pub disk: Result<DiskSpeed, String>,
    /// Coalescing by port.
    pub coalescing: BTreeMap<String, Result<Coalescing, String>>,
    /// Offloads by port.
    pub offloads: BTreeMap<String, Result<Offloads, String>>,
}

/// Speed of a disk by a short try.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskSpeed {
    /// Where.
    pub directory: String,
    /// How much was written.
    pub bytes: u64,
    /// Written and brought down to the disk.
    pub bytes_per_second: f64,
}

impl Live {
    /// Finds them out on the running host; records would go into `directory`.
    #[must_use]
    pub fn look(directory: &Path) -> Self {
        let ports =
            View::open(Path::new("/")).map(|view| network::ports(&view)).unwrap_or_default();
        Self {
            timer_slack_ns: timerslack::get_ns().map_err(|refusal| refusal.to_string()),
            clock_read_ns: clock_read_ns(),
            disk: disk_speed(directory),
            coalescing: coalescing_of(&ports),
            offloads: offloads_of(&ports),
        }
    }
}

/// Coalescing of ports of the running host.
pub(super) fn coalescing_of(ports: &[String]) -> Asked<Coalescing> {
    asked(ports, ethtool::coalescing)
}

/// Offloads of ports of the running host.
pub(super) fn offloads_of(ports: &[String]) -> Asked<Offloads> {
    asked(ports, ethtool::offloads)
}

fn asked<T>(ports: &[String], ask: fn(&str) -> Result<T, SysError>) -> Asked<T> {
    let answer = |port: &String| (port.clone(), ask(port).map_err(|refusal| refusal.to_string()));
    ports.iter().map(answer).collect()
}

/// Readings in a row, long beside the two of the clock around them.
const READINGS: u32 = 1000;

/// Tries, of which the best counts: what a neighbour takes is no cost of the clock.
const TRIES: usize = 5;

fn clock_read_ns() -> Result<f64, String> {
    let mut counter = HardwareCounter::open().map_err(|refusal| refusal.to_string())?;
    let tries = (0..TRIES).map(|_| {
        let start = clock_ns(Clock::MonotonicRaw);
        for _ in 0..READINGS {
            std::hint::black_box(counter.read());
        }
        clock_ns(Clock::MonotonicRaw).saturating_sub(start)
    });
    let best = tries.min().unwrap_or(0);
    Ok(best as f64 / f64::from(READINGS))
}

/// Enough to leave the caches of a disk's interface behind, and little beside its wear.
const TRY_BYTES: u64 = 16 << 20;

/// One write, synced: the time is looked at between two.
const BLOCK_BYTES: usize = 4 << 20;

/// After this time the try ends, however slow the disk.
const TRY_NS: u64 = 500_000_000;

/// Nothing is written to a disk that is fuller than this.
const LEAVE_FREE: u64 = 4 * TRY_BYTES;

fn disk_speed(directory: &Path) -> Result<DiskSpeed, String> {
    let free = disk::free_bytes(directory).map_err(|refusal| refusal.to_string())?;
    if free < LEAVE_FREE {
        return Err(format!("only {} MiB are free at {}", free >> 20, directory.display()));
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file =
        rustix::fs::openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| {
            format!("no nameless file can be made in {}: {errno}", directory.display())
        })?;
    let mut file = File::from(file);
    let block = noise();
    let start = clock_ns(Clock::MonotonicRaw);
    let (mut bytes, mut taken) = (0, 0);
    while bytes < TRY_BYTES && taken < TRY_NS {
        let wrote = file.write_all(&block).and_then(|()| {
            bytes += block.len() as u64;
            file.sync_data()
        });
        wrote.map_err(|why| format!("cannot write in {}: {why}", directory.display()))?;
        taken = clock_ns(Clock::MonotonicRaw).saturating_sub(start);
    }
    Ok(DiskSpeed {
        directory: directory.display().to_string(),
        bytes,
        bytes_per_second: bytes as f64 * 1e9 / taken.max(1) as f64,
    })
}

/// Bytes that a disk which compresses must really write.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(BLOCK_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_tried_without_leaving_a_file() {
        let dir = tempfile::tempdir().unwrap();
        match disk_speed(dir.path()) {
            Ok(speed) => assert!(speed.bytes >= BLOCK_BYTES as u64 && speed.bytes_per_second > 0.0),
            Err(why) => return crate::tree::skip(&why),
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let why = disk_speed(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(why.contains("/nowhere/at/all"), "{why}");
        assert!(disk_speed(Path::new("/proc")).unwrap_err().contains("/proc"));
    }

    #[test]
    fn reading_the_clock_costs_something() {
        match clock_read_ns() {
            Ok(cost) => assert!(cost > 0.0 && cost.is_finite(), "{cost}"),
            Err(refusal) => crate::tree::skip(&refusal),
        }
    }
}
