//! Histograms on their way from the measuring thread to the disk, interval by interval.
//!
//! Filled ones go one way and emptied ones the other, so that the measuring thread allocates
//! nothing. What is kept in memory does not grow with the run.

use std::sync::mpsc::{Receiver, Sender, channel};

use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_net::OpenLoop;
use whylate_net::open_loop::Latencies;

use super::flow::Of;
use crate::intervals::{Interval, Tables};
use crate::storage::Storage;

/// Sets of histograms on the way: one that is filled, one under way, one that waits.
const SPARES: usize = 2;

/// The measuring thread's end.
pub(super) struct Hand {
    filled: Sender<(u64, Latencies)>,
    empty: Receiver<Latencies>,
}

/// The recording thread's end, and what it has kept.
pub(super) struct Collected {
    filled: Receiver<(u64, Latencies)>,
    empty: Sender<Latencies>,
    width: Nanos,
    width_ticks: TicksDelta,
    tables: [Tables; 3],
    /// One more than the number of the last interval.
    intervals: u64,
}

pub(super) fn between(settings: &OpenLoop, rate: Hertz) -> (Collected, Hand) {
    let (filled, to_collect) = channel();
    let (emptied, empty) = channel();
    for _ in 0..SPARES {
        // The other end is in this very function.
        let _ = emptied.send(Latencies::touched());
    }
    let width_ticks = settings.interval.to_ticks(rate);
    let collected = Collected {
        filled: to_collect,
        empty: emptied,
        width: settings.interval,
        width_ticks,
        tables: [(); 3].map(|()| Tables::new(width_ticks)),
        intervals: 0,
    };
    (collected, Hand { filled, empty })
}

impl Hand {
    /// Hands a filled set over, and leaves an empty one behind.
    pub(super) fn over(&mut self, index: u64, latencies: &mut Latencies) {
        let empty = self.empty.try_recv().unwrap_or_default();
        let filled = std::mem::replace(latencies, empty);
        // The recording thread is there for as long as this one: it waits for its end.
        let _ = self.filled.send((index, filled));
    }
}

impl Collected {
    /// Writes what has come into the log, and keeps it in tables.
    pub(super) fn write(&mut self, storage: &mut Storage) {
        while let Ok((index, mut latencies)) = self.filled.try_recv() {
            let start = Nanos(index.saturating_mul(self.width.0));
            let offset = TicksDelta(index.saturating_mul(self.width_ticks.0));
            for (of, table) in Of::ALL.into_iter().zip(&mut self.tables) {
                let values = of.pick(&latencies);
                if !values.is_empty() {
                    storage.interval(of.series(), values, start, self.width);
                    table.add(offset, Interval::of(values));
                }
            }
            self.intervals = self.intervals.max(index + 1);
            latencies.clear();
            // The measuring thread may have ended.
            let _ = self.empty.send(latencies);
        }
    }

    /// The whole intervals of one kind of time.
    pub(super) fn tables(&self, of: Of) -> &[Interval] {
        let end = self.intervals.saturating_mul(self.width_ticks.0);
        self.tables[of as usize].whole(TicksDelta(end))
    }
}
