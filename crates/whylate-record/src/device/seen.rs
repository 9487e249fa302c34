//! What a measurement by the client left, and what a box wrote down of itself, read from their run
//! directories.

use whylate_model::calibration::Trust;
use whylate_model::device::PacketPoint;
use whylate_model::directory::RunDir;
use whylate_model::flow::{Direction, Flow};
use whylate_model::run::{Run, Verdict};
use whylate_model::{ModelError, Nanos, Ticks};
use whylate_stats::Histogram;
use whylate_stats::sample::{Blocks, counts};

/// Both ways, in their order.
pub(super) const WAYS: [Direction; 2] = [Direction::There, Direction::Back];
/// What stamps of software are of: whole frames.
pub(super) const POINT: PacketPoint = PacketPoint::EndToEnd;
/// The series of a forwarder's residence, by direction.
const RESIDENCE: [&str; 2] = ["forward-residence-0", "forward-residence-1"];

/// A stretch of time, in seconds since a run's epoch or a box's beginning.
type Window = (f64, f64);

/// What one flow of a measurement came to.
#[derive(Debug, Clone)]
pub(super) struct SeenWay {
    pub(super) direction: Direction,
    pub(super) values: Histogram,
    pub(super) blocks: Blocks,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) lost: u64,
    /// Frames that left in a second.
    pub(super) per_second: f64,
    pub(super) from: String,
    pub(super) to: String,
    /// How far it may be trusted, by the calibration of the client.
    pub(super) trust: Option<Trust>,
}

/// Reads a client's run.
pub(super) fn client(directory: &RunDir, run: &Run) -> Result<Vec<SeenWay>, ModelError> {
    run.flows.iter().map(|flow| of_flow(directory, run, flow)).collect()
}

fn of_flow(directory: &RunDir, run: &Run, flow: &Flow) -> Result<SeenWay, ModelError> {
    let name = flow.service.clone().unwrap_or_default();
    let of = run.series.iter().find(|series| series.name == name);
    let given_up = of.and_then(|of| of.censored).map(|censored| censored.above);
    let (values, blocks) = series(directory, run, &name, (given_up, None))?;
    let point = |of: Option<&String>| of.cloned().unwrap_or_default();
    let packets = &flow.packets;
    Ok(SeenWay {
        direction: direction(flow),
        values,
        blocks,
        sent: packets.sent,
        received: packets.received,
        lost: packets.lost.saturating_add(packets.unaccounted).saturating_add(packets.late),
        per_second: flow.departures.per_second.unwrap_or(0.0),
        from: point(of.map(|of| &of.from)),
        to: point(of.map(|of| &of.to)),
        trust: flow.trust.clone(),
    })
}

/// Which way a flow goes: by its name, as `rtt --across` gives it.
pub(super) fn direction(flow: &Flow) -> Direction {
    if flow.name == "back" { Direction::Back } else { Direction::There }
}

/// All values of a series, and the same by stretches of time: of whole intervals within the window, where
/// there is one. What was given up is no latency: it is among the losses.
fn series(
    directory: &RunDir,
    run: &Run,
    name: &str,
    (given_up, window): (Option<Nanos>, Option<Window>),
) -> Result<(Histogram, Blocks), ModelError> {
    let (mut values, mut blocks, mut first) = (Histogram::new(), Blocks::new(1), None);
    for interval in directory.histograms_of(run)? {
        let interval = interval?;
        let end = interval.start_s + interval.length_s;
        let inside = window.is_none_or(|(from, to)| interval.start_s >= from && end <= to);
        if interval.tag != name || !inside {
            continue;
        }
        let from = *first.get_or_insert(interval.start_s);
        let histogram = match given_up {
            Some(above) => came(&interval.histogram, above),
            None => interval.histogram,
        };
        blocks.add(interval.start_s - from, interval.length_s, &counts(&histogram));
        values.add(&histogram);
    }
    Ok((values, blocks))
}

/// The values below the one from which on they were given up; the smallest stays exact.
fn came(values: &Histogram, above: Nanos) -> Histogram {
    let limit = values.bin_of(above.0);
    if values.max().is_none_or(|max| values.bin_of(max) < limit) {
        return values.clone();
    }
    let mut came = Histogram::new();
    for (bin, count) in values.bins().filter(|(bin, _)| values.bin_of(*bin) < limit) {
        let exact = if came.is_empty() { values.min() } else { None };
        if let Some(min) = exact {
            came.record(min);
        }
        came.record_n(bin, count - u64::from(exact.is_some()));
    }
    came
}

/// How long frames stayed by a forwarder's own log, each way, while a client measured: its warm-up is in no
/// bound, and so in no truth either. None where it is not known when that was.
pub(super) fn residence(
    (directory, run): (&RunDir, &Run),
    client: &Run,
) -> Result<Option<[(Histogram, Blocks); 2]>, ModelError> {
    let since_ns = run.forward.as_ref().map(|forward| forward.since_ns);
    let Some(window) = since_ns.and_then(|since_ns| measured_in(since_ns, client)) else {
        return Ok(None);
    };
    let [there, back] = RESIDENCE;
    let of = |name| series(directory, run, name, (None, Some(window)));
    Ok(Some([of(there)?, of(back)?]))
}

/// When all flows of a client were measured, in seconds since a box began.
fn measured_in(since_ns: u64, client: &Run) -> Option<Window> {
    let at = |ticks: Option<Ticks>| client.clock.realtime_ns(ticks?);
    let began: Option<Vec<u64>> = client.flows.iter().map(|flow| at(flow.began)).collect();
    let ended: Option<Vec<u64>> = client.flows.iter().map(|flow| at(flow.ended)).collect();
    let (began, ended) = (began?.into_iter().max()?, ended?.into_iter().min()?);
    // Both are of this day: as differences they are exact.
    let seconds = |ns: u64| ns.wrapping_sub(since_ns).cast_signed() as f64 / 1e9;
    (ended > began).then(|| (seconds(began), seconds(ended)))
}

/// Why a run is not to be relied on; empty where it is.
pub(super) fn doubts(run: &Run) -> &[String] {
    match &run.verdict {
        Verdict::Untrustworthy { reasons } => reasons,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_no_latency_and_the_smallest_stays_exact() {
        let mut values: Histogram = (1..=1_000_u64).map(|n| n * 1_237).collect();
        let whole = came(&values, Nanos(200_000_000));
        assert_eq!((whole.len(), whole.min()), (1_000, Some(1_237)));
        values.record_n(200_000_000, 7);
        values.record_n(200_000_913, 3);
        let left = came(&values, Nanos(200_000_000));
        assert_eq!((left.len(), left.min()), (1_000, Some(1_237)));
        assert!(left.max().is_some_and(|max| max <= 1_239_000), "{:?}", left.max());
        let mut lost = Histogram::new();
        lost.record_n(200_000_000, 5);
        assert!(came(&lost, Nanos(200_000_000)).is_empty());
    }
}
