//! At which distances messages of a constant flow come at a sink.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::Pid;
use whylate_sys::signal::send_to_process;

use crate::between::SIGINT;
use crate::needs;
use crate::program::{self, Started, record_ending, whylate};
use crate::requests::series;

/// Distance of the messages, in nanoseconds: 1 000 a second.
const APART: f64 = 1e6;

pub(crate) const FIGURE: Figure = Figure {
    name: "sink_distances",
    method: "1 000 messages that ask for no answer, 1 ms apart, to `reflect -o`",
    rows: &[
        Row {
            claim: "median distance over that of the departures",
            unit: "ratio",
            bound: Bound::Within(0.95, 1.05),
        },
        Row { claim: "it has an interval", unit: "share", bound: Bound::Always },
    ],
    rounds: 7,
    seconds: 2.2,
    most_taken: Some(0.05),
    needs: || needs::can_use(2),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("sink");
    let mut command = whylate(["reflect", "--listen", "127.0.0.1:0", "--wait", "block", "-o"]);
    command.arg(&directory).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut sink = Started(command.spawn().unwrap());
    let mut said = BufReader::new(sink.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = said.find(|line| line.starts_with("listening on ")).expect("it listens");
    let at = line.split(' ').nth(2).unwrap();
    let words = format!("rtt {at} --one-way --rate 1kpps --duration 1s --warmup 100ms --no-trace");
    record_ending(&words, &[0, 4]);
    send_to_process(Pid(sink.0.id() as i32), SIGINT).unwrap();
    // Whatever it says is read, so that it ends.
    said.for_each(drop);
    assert!(matches!(sink.status(), Some(0 | 4)));
    let run = program::read(&directory);
    let median = series(&run, "reflect-gaps").expect("distances of receptions").quantiles[0];
    let value = median.value.expect("1 000 have a median");
    let between =
        median.low.zip(median.high).is_some_and(|(low, high)| low <= value && value <= high);
    Ok(vec![Reading::Value(value.0 as f64 / APART), Reading::held(between)])
}
