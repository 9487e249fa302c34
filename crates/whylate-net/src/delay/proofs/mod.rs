//! Proofs with ports of memory and a counter that moves as it is told: the delay is the one that was set,
//! and everything that was planted is found again, frame by frame.

mod faults;
mod flow;
mod many;
mod times;

use whylate_model::Nanos;
use whylate_model::delay::{Truth, TruthSums};
use whylate_port::frames::Frames;

use super::capacity::Capacity;
use super::fifo::Fifo;
use super::law::Law;
use super::line::{Line, Settings};
use super::mark::Tells;
use super::truth::{TruthReader, truths};
use crate::forward::memory::{RATE, Shared};
use crate::schedule::Rate;

/// Reads nothing.
fn nothing() -> [Tells; 2] {
    [Box::new(|_| None), Box::new(|_| None)]
}

fn capacity(frames: u64) -> Capacity {
    Capacity { frames, bytes: frames * 1_536 }
}

/// A line of this law both ways with room for so many frames, and its truths.
fn line_of<F: Frames>(
    ports: (F, F),
    clock: &Shared,
    law: &Law,
    capacity: Capacity,
    tells: [Tells; 2],
) -> (Line<Shared, F>, TruthReader) {
    let (writer, reader) = truths(1 << 14);
    let settings = Settings {
        laws: [law.clone(), law.clone()],
        capacity,
        queues: [Fifo::new(capacity), Fifo::new(capacity)],
        fastest: Rate::Packets(1e6),
        tells,
        truths: Some(writer),
        duration: None,
        rate: RATE,
        // Interfaces that nobody has.
        interfaces: [u32::MAX, u32::MAX - 1],
    };
    (Line::new(ports, clock.clone(), settings), reader)
}

/// Truths of both directions, added up.
#[derive(Debug, Default)]
struct Sums([TruthSums; 2]);

impl Sums {
    fn take(&mut self, truth: &Truth) {
        self.0[usize::from(truth.direction)].take(truth);
    }

    /// Holds them against the line's own counts.
    fn check<F: Frames>(&self, line: &Line<Shared, F>) {
        let account = line.account();
        for (sums, of) in self.0.iter().zip(&account.directions) {
            assert!(of.counts.closes(), "{:?}", of.counts);
            assert!(sums.agree(&of.counts), "{sums:?} {:?}", of.counts);
        }
    }
}

/// A constant delay.
fn constant(nanos: u64) -> Law {
    Law::constant(Nanos(nanos))
}
