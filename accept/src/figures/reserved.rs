//! The paper's task set of 5.6 with reservations: with a margin, and without any.

use accept::figure::{Bound, Figure, Reading, Round, Row};
use tempfile::TempDir;
use whylate_model::cause::Cause;
use whylate_model::directory::RunDir;
use whylate_model::execution::StoredJob;
use whylate_model::run::Run;
use whylate_model::segments;

use crate::program::{self, said, whylate};
use crate::{misses, needs};

/// What the set with a margin reserves beyond its execution time, and its longest period, in nanoseconds.
const MARGIN: u64 = 100_000;
const PERIOD: f64 = 33e6;

pub(crate) const FIGURE: Figure = Figure {
    name: "reserved",
    method: "the paper's two threads for 2 s with 0.1 ms reserved beyond their needs, and for 2 s with nothing",
    rows: &[
        Row {
            claim: "with a margin, misses that what was taken explains",
            unit: "share",
            bound: Bound::Always,
        },
        Row { claim: "with a margin, deadlines are met", unit: "rounds", bound: Bound::Always },
        Row {
            claim: "with a margin, threads whose switches are the kernel's",
            unit: "share",
            bound: Bound::Always,
        },
        Row {
            claim: "reserved exactly, deadlines that are missed",
            unit: "share",
            bound: Bound::AtLeast(60.0 / 621.0),
        },
        Row {
            claim: "reserved exactly, some are named after the throttling",
            unit: "rounds",
            bound: Bound::Always,
        },
        Row {
            claim: "reserved exactly, overruns are counted",
            unit: "rounds",
            bound: Bound::Always,
        },
    ],
    rounds: 4,
    seconds: 6.0,
    most_taken: None,
    needs: || {
        needs::can_be_root()?;
        needs::can_trace()?;
        reserved("3.1ms", "17.1ms", "100ms").map(|_| ())
    },
    round,
};

/// The set with reservations of these amounts; why not, where the kernel has no room for it.
fn reserved(first: &str, second: &str, duration: &str) -> Result<(TempDir, Run), String> {
    let words = format!(
        "hourglass -d {duration} -n 2 -t 0 -w PERIODIC 3ms 8ms -rh {first} 8ms \
         -t 1 -w PERIODIC 17ms 33ms -rh {second} 33ms"
    );
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let output = whylate(words.split_whitespace()).arg("-o").arg(&directory).output().unwrap();
    match output.status.code() {
        Some(1) => Err(format!("no reservations here: {}", said(&output).trim())),
        status => {
            let run = program::read(&directory);
            program::ended(status, &run);
            Ok((home, run))
        }
    }
}

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let mut readings = with_a_margin()?;
    readings.extend(exactly()?);
    Ok(readings)
}

fn with_a_margin() -> Result<Vec<Reading>, String> {
    let (home, run) = reserved("3.1ms", "17.1ms", "2s")?;
    let directory = RunDir::open(home.path().join("run")).unwrap();
    let jobs: Vec<StoredJob> =
        segments::read_jobs(&directory).unwrap().collect::<Result<_, _>>().unwrap();
    let found = misses::reserved(&jobs, MARGIN, PERIOD, run.clock.hz);
    for job in &found.unexplained {
        eprintln!("not explained: {job:?}");
    }
    let explained = match found.misses {
        0 => Reading::Absent("no deadline was missed".to_owned()),
        of => Reading::Share { hits: of - found.unexplained.len() as u64, of },
    };
    let counted = run.threads.iter().filter(|thread| {
        let of = &thread.switches;
        of.traced == Some(of.voluntary + of.involuntary)
    });
    let switches = Reading::Share { hits: counted.count() as u64, of: run.threads.len() as u64 };
    Ok(vec![explained, Reading::held(found.hits > 0), switches])
}

fn exactly() -> Result<Vec<Reading>, String> {
    let (_home, run) = reserved("3ms", "17ms", "2s")?;
    let of = || run.threads.iter().map(|thread| thread.deadlines.as_ref().unwrap());
    let misses: u64 = of().map(|of| of.misses).sum();
    let hits: u64 = of().map(|of| of.hits).sum();
    let named = of().flat_map(|of| &of.causes).any(|of| of.cause == Cause::Throttled);
    let overruns: u64 = run.threads.iter().filter_map(|thread| thread.overruns).sum();
    let late = Reading::Share { hits: misses, of: hits + misses };
    Ok(vec![late, Reading::held(named), Reading::held(overruns > 0)])
}
