//! How long a delay line holds frames back, by the truth of each, beside what was set and the error that it
//! prints.

use std::net::UdpSocket;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_model::TicksDelta;

use crate::between::Bed;
use crate::delaying::{Delaying, closes, truths};
use crate::needed;
use crate::needs;
use crate::plant;
use crate::program;

/// What is set, in nanoseconds, and how many messages go through.
const STEPS: [(u64, u32); 5] =
    [(1_000, 400), (10_000, 400), (100_000, 400), (1_000_000, 200), (10_000_000, 60)];
/// Where the server listens.
const SERVER: &str = "198.18.0.2:7000";

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "share", bound: Bound::Always }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "delay_steps",
    method: "messages one by one through a line, from 1 us to 10 ms of delay, by packet and by xdp",
    rows: &[
        row("steps whose median lies within the error that the line printed, by packet"),
        row("the median rises by 0.999 to 1.001 of what was set, by packet"),
        row("steps whose median lies within the error that the line printed, by xdp"),
        row("the median rises by 0.999 to 1.001 of what was set, by xdp"),
    ],
    rounds: 2,
    seconds: 9.6,
    most_taken: Some(0.05),
    needs: || needed::two_ends(&["ip"]),
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    Ok([of_a_backend("packet")?, of_a_backend("xdp")?].concat())
}

fn of_a_backend(backend: &str) -> Result<[Reading; 2], String> {
    let bed = plant::links()?;
    let (mut hits, mut points) = (0, Vec::new());
    for (set, messages) in STEPS {
        let (times, error) = stayed(&bed, backend, set, messages);
        let middle = median(times);
        // Half a nanosecond for the rounding to ticks.
        hits += u64::from((-1.0..=error).contains(&(middle - set as f64)));
        points.push((set as f64, middle));
    }
    let within = Reading::Share { hits, of: STEPS.len() as u64 };
    Ok([within, Reading::held((slope(&points) - 1.0).abs() <= 0.001)])
}

/// How long frames stayed, in nanoseconds, by the truths of a run; and the error that the line printed.
fn stayed(bed: &Bed, backend: &str, set: u64, messages: u32) -> (Vec<f64>, f64) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let cpu = needs::last_cpu();
    let words = format!("--port {backend} --cpu {cpu} --delay {set}ns -o {}", directory.display());
    let delaying = Delaying::new(bed, &words);
    let sockets = bed.sockets();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The line has its CPU for itself.
            whylate_sys::affinity::set(&whylate_sys::affinity::get()[..1]).unwrap();
            there(&sockets, messages);
        });
    });
    let line = delaying.stop();
    closes(&line);
    let run = program::read(&directory);
    assert_eq!(line.directions[0].counts.passed_on, u64::from(messages), "{line:?}");
    let nanos = |ticks: TicksDelta| ticks.0 as f64 * 1e9 / run.clock.hz.0;
    let times = truths(&directory).into_iter().map(|truth| {
        let departure = truth.departure.expect("it left");
        assert!(departure >= truth.due && truth.due > truth.arrival, "{truth:?}");
        nanos(departure.since(truth.arrival))
    });
    (times.collect(), line.base.error.0 as f64)
}

/// Sends so many datagrams there, each when the one before has come.
fn there((client, server): &(UdpSocket, UdpSocket), times: u32) {
    let mut buffer = [0; 64];
    for number in 0..times {
        client.send_to(&number.to_le_bytes(), SERVER).unwrap();
        let length = server.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], &number.to_le_bytes()[..]);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Least squares over points of what was set and what came of it.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), of| (x + of.0 / n, y + of.1 / n));
    let covariance: f64 = points.iter().map(|of| (of.0 - x) * (of.1 - y)).sum();
    covariance / points.iter().map(|of| (of.0 - x).powi(2)).sum::<f64>()
}
