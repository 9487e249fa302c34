//! How fast a working set is read from where it is kept: the bandwidth of a level of memory.
//!
//! A set that is read from end to end and over again, and does not fit into the caches before the one
//! that it is to be read from, has left those before whenever its turn comes again: each pass comes
//! from that level, in the order in which a runner of a trial reads its set.

use whylate_clock::Counter;
use whylate_gap::workload::{LINE, Scan};
use whylate_model::{Hertz, TicksDelta};

use super::passes::{median, timed};
use super::runner::Seating;
use crate::error::ThreadsError;
use crate::placement::Placement;

/// Lines between two readings of the counter, 256 KiB: reading it is little beside that, and what
/// interrupts one piece is not in the others.
const PIECE: usize = 4096;
/// The fewest pieces that are timed, and that are read before.
const FEWEST: (usize, usize) = (101, 16);

/// How long pieces of a set took to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed {
    /// The median piece.
    pub piece: TicksDelta,
    /// Bytes of each.
    pub bytes: u64,
    /// Pieces that were timed.
    pub pieces: u64,
}

impl Streamed {
    /// Bytes in a nanosecond, which are GB/s; none where a piece took no time.
    #[must_use]
    pub fn bytes_per_ns(&self, rate: Hertz) -> Option<f64> {
        let ns = self.piece.0 as f64 * 1e9 / rate.0;
        (ns > 0.0).then(|| self.bytes as f64 / ns)
    }
}

/// Reads a set of `bytes` over and over on a thread of its own on the CPU of the seating: once, and
/// then piece by piece for at least another pass. None where `go_on` said no before the end.
pub fn measure<C: Counter + Send + Clone>(
    counter: &C,
    seating: Seating,
    bytes: usize,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Streamed>, ThreadsError> {
    let mut counter = counter.clone();
    std::thread::scope(|scope| {
        let body = || {
            Placement { cpu: Some(seating.cpu), fifo: None }.settle()?;
            if !go_on() {
                return Ok(None);
            }
            has_room(bytes)?;
            let mut set = Scan::new(bytes);
            let pass = bytes.div_ceil(LINE).div_ceil(PIECE);
            let (timed_pieces, before) = (pass.max(FEWEST.0), pass.max(FEWEST.1));
            let mut pieces = Vec::with_capacity(timed_pieces);
            for number in 0..before + timed_pieces {
                if !go_on() {
                    return Ok(None);
                }
                let took = timed(&mut counter, &mut set, PIECE);
                if number >= before {
                    pieces.push(took);
                }
            }
            let of = |piece| Streamed {
                piece,
                bytes: (PIECE * LINE) as u64,
                pieces: timed_pieces as u64,
            };
            Ok(median(&mut pieces).map(of))
        };
        let spawned = std::thread::Builder::new().spawn_scoped(scope, body);
        spawned.map_err(ThreadsError::Spawn)?.join().map_err(|_| ThreadsError::Died)?
    })
}

/// Is there memory for a set? Where all memory is locked, a limit of the user's may refuse it, and an
/// array that finds none ends the process.
fn has_room(bytes: usize) -> Result<(), ThreadsError> {
    let mut room: Vec<u8> = Vec::new();
    let reserved = room.try_reserve_exact(bytes);
    std::hint::black_box(&room);
    reserved.map_err(|refusal| ThreadsError::RunnerRefused {
        why: format!("there is no memory for a set of {} MiB: {refusal}", bytes >> 20),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_time_make_a_bandwidth_at_the_counters_rate() {
        let streamed = Streamed { piece: TicksDelta(52_000), bytes: 262_144, pieces: 101 };
        // 52 000 ticks of 2.6 GHz are 20 us.
        let found = streamed.bytes_per_ns(Hertz(2.6e9)).unwrap();
        assert!((found - 13.107_2).abs() < 1e-9, "{found}");
        assert!(has_room(1 << 20).is_ok());
        let refused = has_room(usize::MAX / 4).unwrap_err().to_string();
        assert!(refused.contains("no memory"), "{refused}");
        let nothing = Streamed { piece: TicksDelta(0), ..streamed };
        assert_eq!(nothing.bytes_per_ns(Hertz(2.6e9)), None);
    }
}
