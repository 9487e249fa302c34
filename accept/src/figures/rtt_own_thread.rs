//! What the recording's own thread takes of a CPU that it shares with an end that spins.

use std::process::Stdio;
use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::needs;
use crate::program::{read, reflector_of};
use crate::requests::{both_ends_spin, flow, logged, series};

const MEASURED: Duration = Duration::from_secs(1);
/// Requests that are intended in 2 seconds.
const INTENDED: u64 = 10_000;

pub(crate) const FIGURE: Figure = Figure {
    name: "rtt_own_thread",
    method: "CPU time of the recording's thread within 1 s of 5 000 requests a second, both ends spinning",
    rows: &[
        Row {
            claim: "the recording's thread of the CPU of an end",
            unit: "share",
            bound: Bound::AtMost(0.001),
        },
        Row { claim: "4 of 5 requests were looked at", unit: "share", bound: Bound::Always },
    ],
    rounds: 6,
    seconds: 3.0,
    most_taken: None,
    needs: || {
        needs::can_use(2)?;
        needs::can_run("taskset")
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let cpus = whylate_sys::affinity::get();
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "--duration 2s --warmup 100ms";
    // There is no third CPU for the recording's thread.
    let mut command = both_ends_spin([cpus[0], cpus[1]], words, &directory);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    reflector_of(child.id());
    std::thread::sleep(Duration::from_millis(700));
    let before = had_by_the_first_thread(child.id());
    std::thread::sleep(MEASURED);
    let had = had_by_the_first_thread(child.id()) - before;
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 4)));
    // What waited is all there.
    let run = read(&directory);
    let service = series(&run, "rtt-service").unwrap();
    assert_eq!(logged(&directory, "rtt-service").len(), service.n);
    assert_eq!(series(&run, "rtt-response").unwrap().n, INTENDED);
    let looked_at = flow(&run).tail.as_ref().is_some_and(|tail| tail.requests > INTENDED * 4 / 5);
    Ok(vec![Reading::Value(had / MEASURED.as_nanos() as f64), Reading::held(looked_at)])
}

/// CPU time that the first thread of a process has had, in nanoseconds.
fn had_by_the_first_thread(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/task/{process}/schedstat"));
    stat.unwrap().split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap()
}
