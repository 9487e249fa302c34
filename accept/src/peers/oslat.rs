//! oslat, of rt-tests.

use std::process::{Command, Stdio};

use serde_json::Value;
use whylate_model::CpuId;

/// What a run of it says, and what one of `gaps` says in the same terms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looked {
    /// Elapsed time over iterations.
    pub(crate) iteration_ns: f64,
    /// Gaps of 2 us and more per second.
    pub(crate) gaps_per_second: f64,
    pub(crate) longest_us: f64,
}

/// Looks at a CPU for so many seconds.
pub(crate) fn look(cpu: CpuId, seconds: u64) -> Looked {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("oslat.json");
    let status = Command::new("oslat")
        .args(["--cpu-list", &cpu.to_string(), "--cpu-main-thread", "0", "--quiet", "--zero-omit"])
        .args(["--bucket-size", "1024", "--duration", &seconds.to_string()])
        .arg(format!("--json={}", file.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "oslat ended with {status}");
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let thread = &told["thread"]["0"];
    let seconds = thread["duration"].as_f64().expect("oslat's duration");
    let buckets = thread["histogram"].as_object().expect("oslat's histogram");
    let counts = buckets.iter().filter_map(|(us, count)| Some((us.parse().ok()?, count.as_f64()?)));
    let counts: Vec<(u64, f64)> = counts.collect();
    let iterations: f64 = counts.iter().map(|(_, count)| count).sum();
    // Bucket k holds iterations of k-1 to k us.
    let long: f64 = counts.iter().filter(|(us, _)| *us >= 3).map(|(_, count)| count).sum();
    Looked {
        iteration_ns: seconds * 1e9 / iterations,
        gaps_per_second: long / seconds,
        longest_us: thread["max"].as_f64().unwrap_or(0.0),
    }
}
