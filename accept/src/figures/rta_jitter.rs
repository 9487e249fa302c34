//! Releases by a coarse clock: late, as the paper's 5.5 has it.

use accept::figure::{Bound, Figure, Reading, Round, Row};

use crate::program::{self, whylate};

pub(crate) const FIGURE: Figure = Figure {
    name: "rta_jitter",
    method: "3 ms of 8 ms and, by a clock of 10 ms, 17 ms of 33 ms, predicted and run for 2 s",
    rows: &[
        Row { claim: "release jitter by a clock of 10 ms", unit: "ns", bound: Bound::AtLeast(1e6) },
        Row {
            claim: "jobs that are known, of the task that has fewest",
            unit: "share",
            bound: Bound::AtLeast(0.5),
        },
    ],
    rounds: 7,
    seconds: 3.0,
    most_taken: Some(0.05),
    needs: crate::needs::can_be_root,
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let video = "17ms 33ms, name video, timer grid(10ms)";
    let words = ["rta", "--task", "3ms 8ms, name audio", "--task", video, "--run"];
    let more = ["--duration", "2s", "--jitter", "measured", "-o"];
    let output = whylate([&words[..], &more].concat()).arg(&directory).output().unwrap();
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    let prediction = run.prediction.unwrap();
    let known = prediction.tasks.iter().map(|task| {
        let measured = task.measured.as_ref().unwrap();
        let periods = 2_000_000_000 / task.period.0;
        (measured.jobs + measured.never_done) as f64 / periods as f64
    });
    let fewest = known.fold(f64::INFINITY, f64::min);
    let releases = prediction.tasks[1].measured.as_ref().unwrap().releases.unwrap();
    if releases.n <= 20 {
        return Err(format!("{} releases", releases.n));
    }
    Ok(vec![Reading::Value(releases.jitter.0 as f64), Reading::Value(fewest)])
}
