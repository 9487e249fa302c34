//! cyclictest, of rt-tests.

use std::process::Command;

use whylate_model::CpuId;

/// The priority that `wake` uses by itself; cyclictest is given the same.
pub(crate) const PRIORITY: u8 = 95;

/// Lateness of each wake-up by cyclictest, in nanoseconds.
pub(crate) fn samples(cpu: CpuId, period_us: u64, wakes: u64) -> Vec<u64> {
    let cpu = cpu.to_string();
    let output = Command::new("cyclictest")
        .args(["-N", "-m", "-q", "-v", "-t", "1", "-i", &period_us.to_string(), "-a", &cpu, "-p"])
        .args([PRIORITY.to_string(), "-l".to_owned(), wakes.to_string()])
        .output()
        .unwrap();
    // Lines of a sample: thread, number, nanoseconds.
    let lines = String::from_utf8(output.stdout).unwrap();
    let late = lines.lines().filter_map(|line| {
        let mut fields = line.split(':').map(|field| field.trim().parse::<u64>());
        match (fields.next()?, fields.next()?, fields.next()?) {
            (Ok(0), Ok(_), Ok(late)) => Some(late),
            _ => None,
        }
    });
    late.collect()
}
