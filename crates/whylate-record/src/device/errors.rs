//! What the client and its way add to the time in a box: by a delay line, frame by frame.
//!
//! The line tells when each frame came and left; the client, when it sent and had it. Joined by the
//! message's number, their difference is the error of that frame, on one counter.

use whylate_model::directory::RunDir;
use whylate_model::flow::Direction;
use whylate_model::run::Run;
use whylate_model::{Hertz, ModelError};

use super::seen::{WAYS, direction};
use crate::calibrate::join::{Joined, Met, join};
use crate::calibrate::rows::{passed, requests};

/// What the joined frame says in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frame {
    /// Which way it went.
    pub(super) direction: Direction,
    /// What the client measured, less what the line says.
    pub(super) error_ns: i64,
    /// How long the line had it.
    pub(super) truth_ns: u64,
}

/// Joins a client's run with that of the delay line it went through; hands over each frame of which both
/// are known. Counts of each way.
pub(super) fn joined(
    (client, run): (&RunDir, &Run),
    line: &RunDir,
    mut each: impl FnMut(Frame),
) -> Result<[Met; 2], ModelError> {
    let rate = run.clock.hz;
    let mut counts = [Met::default(); 2];
    for (number, (way, counts)) in WAYS.into_iter().zip(&mut counts).enumerate() {
        // A flow has the number of its place in the run; a line's first port is the client's.
        let Some(flow) = run.flows.iter().position(|flow| direction(flow) == way) else { continue };
        let requests = requests(client, u16::try_from(flow).unwrap_or(u16::MAX))?;
        let passed = passed(line, u8::try_from(number).unwrap_or(u8::MAX))?;
        *counts = join(requests, passed, |joined| each(frame(way, joined, rate)))?;
    }
    Ok(counts)
}

fn frame(direction: Direction, joined: &Joined, rate: Hertz) -> Frame {
    let ns = |ticks: i64| (ticks as f64 * 1e9 / rate.0).round() as i64;
    Frame { direction, error_ns: ns(joined.error()), truth_ns: joined.truth.to_nanos(rate).0 }
}

#[cfg(test)]
mod tests {
    use whylate_model::{Ticks, TicksDelta};

    use super::*;

    #[test]
    fn an_error_is_signed_and_in_nanoseconds() {
        let joined = |measured, truth| Joined {
            number: 1,
            sent: Ticks(0),
            measured: TicksDelta(measured),
            truth: TicksDelta(truth),
        };
        let of = frame(Direction::Back, &joined(500, 200), Hertz(2e9));
        assert_eq!((of.error_ns, of.truth_ns, of.direction), (150, 100, Direction::Back));
        assert_eq!(frame(Direction::There, &joined(100, 200), Hertz(2e9)).error_ns, -50);
    }
}
