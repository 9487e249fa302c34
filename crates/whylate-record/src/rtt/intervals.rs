//! Histograms on their way from the measuring thread to the disk, interval by interval.
//!
//! Filled ones go one way and emptied ones the other, so that the measuring thread allocates
//! nothing. What is kept in memory does not grow with the run.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_net::OpenLoop;
use whylate_net::open_loop::Latencies;

use super::flow::{Names, Of};
use crate::intervals::{Interval, Tables};
use crate::storage::Storage;

/// Sets of histograms on the way beside those that are filled until they are taken in: one under way, one
/// that waits.
const SPARES: u128 = 2;

/// The measuring thread's end.
pub(super) struct Hand {
    filled: Sender<(u64, Latencies)>,
    empty: Receiver<Latencies>,
}

/// The recording thread's end, and what it has kept.
pub(super) struct Collected {
    /// What its series are called.
    pub(super) names: Names,
    /// Names of them, as in [`Of::ALL`].
    tags: [String; 4],
    filled: Receiver<(u64, Latencies)>,
    empty: Sender<Latencies>,
    width: Nanos,
    width_ticks: TicksDelta,
    tables: [Tables; 4],
    sum: Latencies,
    /// One more than the number of the last interval.
    intervals: u64,
}

/// Both ends, where the recording thread takes them in this often.
pub(super) fn between(
    names: Names,
    settings: &OpenLoop,
    rate: Hertz,
    wait: Duration,
) -> (Collected, Hand) {
    let (filled, to_collect) = channel();
    let (emptied, empty) = channel();
    let whole = u128::from(settings.duration.0);
    let between_takes = wait.as_nanos().min(whole) / u128::from(settings.interval.0.max(1));
    for _ in 0..SPARES + between_takes {
        // The other end is in this very function.
        let _ = emptied.send(Latencies::touched());
    }
    let width_ticks = settings.interval.to_ticks(rate);
    let collected = Collected {
        tags: Of::ALL.map(|of| of.series(&names.flow)),
        names,
        filled: to_collect,
        empty: emptied,
        width: settings.interval,
        width_ticks,
        tables: [(); 4].map(|()| Tables::new(width_ticks)),
        sum: Latencies::default(),
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
            let named = Of::ALL.into_iter().zip(&self.tags);
            for ((of, tag), table) in named.zip(&mut self.tables) {
                let values = of.pick(&latencies);
                if !values.is_empty() {
                    storage.interval(tag, values, start, self.width);
                    table.add(offset, Interval::of(values));
                }
            }
            for (sum, more) in [
                (&mut self.sum.service, &latencies.service),
                (&mut self.sum.response, &latencies.response),
                (&mut self.sum.lateness, &latencies.lateness),
                (&mut self.sum.uninterrupted, &latencies.uninterrupted),
            ] {
                sum.add(more);
            }
            self.intervals = self.intervals.max(index + 1);
            latencies.clear();
            // The measuring thread may have ended.
            let _ = self.empty.send(latencies);
        }
    }

    /// All that has come so far.
    pub(super) fn sum(&self) -> &Latencies {
        &self.sum
    }

    /// The whole intervals of one kind of time.
    pub(super) fn tables(&self, of: Of) -> &[Interval] {
        let end = self.intervals.saturating_mul(self.width_ticks.0);
        self.tables[of as usize].whole(TicksDelta(end))
    }
}
