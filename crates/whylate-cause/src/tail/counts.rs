//! Counts of requests by response time, by what causes took of them, and by block of time.
//!
//! Which requests are slow is known only at the end, and with it how much a cause must take to have
//! struck one: both are kept as bins of a sixteenth of an octave (6 %), sparsely.

use std::collections::BTreeMap;

use whylate_model::TicksDelta;

use super::join::{Hit, Key, Over};

/// Bins of each octave.
const PER_OCTAVE: u64 = 16;
/// Bins there are.
const BINS: usize = (64 - 4 + 1) * PER_OCTAVE as usize;
/// Cells kept: some 40 MiB.
const MOST_CELLS: usize = 1 << 20;
/// The place of slow requests is looked up anew after so many.
const LOOK_UP: u64 = 512;
/// Requests that may turn out to be slow: the slowest tenth.
const MAY_BE_SLOW: f64 = 0.9;

/// A bin of times.
pub(crate) type Bin = u16;

/// The bin of a time.
pub(crate) fn bin(time: TicksDelta) -> Bin {
    let ticks = time.0;
    if ticks < PER_OCTAVE {
        return ticks as Bin;
    }
    let octave = u64::from(ticks.ilog2()) - 4;
    (octave * PER_OCTAVE + (ticks >> octave)) as Bin
}

/// The least time of a bin.
pub(crate) fn least(bin: Bin) -> TicksDelta {
    let bin = u64::from(bin);
    if bin < 2 * PER_OCTAVE {
        return TicksDelta(bin);
    }
    let octave = bin / PER_OCTAVE - 1;
    TicksDelta((bin - octave * PER_OCTAVE) << octave)
}

/// Windows of one length from which a cause took so much.
pub(crate) type Cells = BTreeMap<(Key, Bin, Bin), u64>;

/// What is counted in one block of time.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// Requests by response time.
    pub(crate) requests: Vec<u32>,
    /// Requests by cause, response time, and what the cause took.
    pub(crate) struck: Cells,
    /// Requests by response time and the most that any cause took.
    pub(crate) most: BTreeMap<(Bin, Bin), u64>,
    /// Windows elsewhere, by the response time of the request that they are as long as.
    pub(crate) elsewhere: Vec<u32>,
    /// The same by cause and what it took.
    pub(crate) chance: Cells,
}

/// All counts.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) blocks: Vec<Block>,
    /// Episodes by cause, by the response time of the request that it took most from, and by that.
    pub(crate) episodes: Cells,
    cells: usize,
    requests: u64,
    all: Vec<u64>,
    may_be_slow: Bin,
}

impl Block {
    fn new() -> Self {
        Self {
            requests: vec![0; BINS],
            struck: Cells::new(),
            most: BTreeMap::new(),
            elsewhere: vec![0; BINS],
            chance: Cells::new(),
        }
    }
}

impl Counts {
    pub(crate) fn new(blocks: usize) -> Self {
        Self {
            blocks: (0..blocks.max(1)).map(|_| Block::new()).collect(),
            episodes: Cells::new(),
            cells: 0,
            requests: 0,
            all: vec![0; BINS],
            may_be_slow: 0,
        }
    }

    /// Leaves no room.
    #[cfg(test)]
    pub(crate) fn fill(&mut self) {
        self.cells = MOST_CELLS;
    }

    /// Is there room for one more?
    pub(crate) fn has_room(&self) -> bool {
        self.cells < MOST_CELLS
    }

    /// Counts a request; the last block holds what comes after it, too.
    pub(crate) fn request(&mut self, block: usize, response: TicksDelta, hits: &[Hit]) {
        let bin_of = bin(response);
        self.requests += 1;
        self.all[usize::from(bin_of)] += 1;
        if self.requests.is_multiple_of(LOOK_UP) {
            self.may_be_slow = self.quantile(MAY_BE_SLOW);
        }
        let last = self.blocks.len() - 1;
        let block = &mut self.blocks[block.min(last)];
        block.requests[usize::from(bin_of)] += 1;
        if let Some(most) = hits.iter().map(|hit| hit.overlap).max() {
            *block.most.entry((bin_of, bin(most))).or_default() += 1;
        }
        self.cells += count(&mut block.struck, bin_of, hits);
    }

    /// May a request with this response time turn out to be slow?
    pub(crate) fn may_be_slow(&self, response: TicksDelta) -> bool {
        bin(response) >= self.may_be_slow
    }

    /// Counts a window elsewhere that is as long as a request's.
    pub(crate) fn elsewhere(&mut self, block: usize, response: TicksDelta, hits: &[Hit]) {
        let bin_of = bin(response);
        let last = self.blocks.len() - 1;
        let block = &mut self.blocks[block.min(last)];
        block.elsewhere[usize::from(bin_of)] += 1;
        self.cells += count(&mut block.chance, bin_of, hits);
    }

    /// Counts an episode that is over.
    pub(crate) fn over(&mut self, episode: Over) {
        let cell = (episode.key, bin(episode.window), bin(episode.overlap));
        *self.episodes.entry(cell).or_default() += 1;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Requests from this bin on.
    pub(crate) fn from(&self, bin: Bin) -> u64 {
        self.all[usize::from(bin)..].iter().sum()
    }

    /// The bin of this quantile.
    pub(crate) fn quantile(&self, share: f64) -> Bin {
        let rank = (self.requests as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        let at = self.all.iter().position(|count| {
            below += count;
            below >= rank
        });
        at.unwrap_or(0) as Bin
    }
}

/// Adds one to the cell of each hit; how many cells are new.
fn count(cells: &mut Cells, response: Bin, hits: &[Hit]) -> usize {
    let before = cells.len();
    for hit in hits {
        *cells.entry((hit.key, response, bin(hit.overlap))).or_default() += 1;
    }
    cells.len() - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bin_whose_least_time_is_no_more_than_a_sixteenth_below() {
        for shift in 0..63 {
            for step in 0..64_u64 {
                let ticks = (1_u64 << shift) + (step << shift >> 6);
                let low = least(bin(TicksDelta(ticks))).0;
                assert!(low <= ticks && ticks - low <= ticks / 16, "{ticks} {low}");
                assert_eq!(bin(TicksDelta(low)), bin(TicksDelta(ticks)));
            }
        }
        assert!(usize::from(bin(TicksDelta(u64::MAX))) < BINS);
        let edges: Vec<u64> = (0..BINS as Bin).map(|bin| least(bin).0).collect();
        assert!(edges.is_sorted());
    }

    #[test]
    fn quantiles_are_those_of_the_counts() {
        let mut counts = Counts::new(3);
        for ticks in 1..=1_000 {
            counts.request(ticks as usize, TicksDelta(ticks), &[]);
        }
        assert_eq!(counts.quantile(0.5), bin(TicksDelta(500)));
        assert_eq!(counts.quantile(0.99), bin(TicksDelta(990)));
        assert_eq!(counts.from(0), 1_000);
    }

    #[test]
    fn a_bin_is_a_tick_up_to_thirty_two_of_them_and_a_sixteenth_of_an_octave_from_there_on() {
        let bins = [0, 15, 16, 31, 32, 33, 34, 63, 64, 68].map(|ticks| bin(TicksDelta(ticks)));
        assert_eq!(bins, [0, 15, 16, 31, 32, 32, 33, 47, 48, 49]);
        assert_eq!([15, 31, 32, 33, 47, 48].map(|bin| least(bin).0), [15, 31, 32, 34, 62, 64]);
    }

    fn hits(of: &[(u16, u64)]) -> Vec<Hit> {
        of.iter()
            .map(|(key, overlap)| Hit { key: Key(*key), overlap: TicksDelta(*overlap) })
            .collect()
    }

    #[test]
    fn a_request_is_counted_in_its_block_with_what_each_cause_and_the_greatest_took() {
        let mut counts = Counts::new(2);
        counts.request(0, TicksDelta(20), &hits(&[(1, 5), (2, 7)]));
        counts.request(0, TicksDelta(20), &hits(&[(1, 5)]));
        // What comes after the last block is counted there.
        counts.request(9, TicksDelta(30), &hits(&[(2, 3)]));
        counts.elsewhere(9, TicksDelta(30), &hits(&[(2, 4), (3, 4)]));
        let [first, last] = &counts.blocks[..] else { panic!("{}", counts.blocks.len()) };
        let cell = |key, response, overlap, count| ((Key(key), response, overlap), count);
        assert_eq!(first.struck, Cells::from([cell(1, 20, 5, 2), cell(2, 20, 7, 1)]));
        assert_eq!(first.most, BTreeMap::from([((20, 7), 1), ((20, 5), 1)]));
        assert_eq!((first.requests[20], last.requests[30], last.elsewhere[30]), (2, 1, 1));
        assert_eq!(last.struck, Cells::from([cell(2, 30, 3, 1)]));
        assert_eq!(last.chance, Cells::from([cell(2, 30, 4, 1), cell(3, 30, 4, 1)]));
        assert_eq!((counts.requests(), counts.from(0), counts.from(21)), (3, 3, 1));
        assert_eq!(counts.cells, 5, "cells that were there already take no room");
    }

    #[test]
    fn there_is_room_up_to_the_last_cell_and_a_run_has_a_block_at_least() {
        let mut counts = Counts::new(0);
        assert_eq!(counts.blocks.len(), 1);
        counts.cells = MOST_CELLS - 1;
        assert!(counts.has_room());
        counts.cells = MOST_CELLS;
        assert!(!counts.has_room());
    }

    #[test]
    fn an_episode_is_counted_by_its_window_and_what_it_took() {
        let mut counts = Counts::new(1);
        let episode = Over { key: Key(3), window: TicksDelta(20), overlap: TicksDelta(7) };
        counts.over(episode);
        counts.over(episode);
        assert_eq!(counts.episodes, Cells::from([((Key(3), 20, 7), 2)]));
    }

    #[test]
    fn the_slowest_tenth_may_be_slow_once_enough_have_come_and_all_may_before() {
        let mut counts = Counts::new(1);
        for number in 1..LOOK_UP {
            counts.request(0, TicksDelta(number % 10), &[]);
        }
        assert!(counts.may_be_slow(TicksDelta(0)));
        counts.request(0, TicksDelta(0), &[]);
        assert!(counts.may_be_slow(TicksDelta(8)) && !counts.may_be_slow(TicksDelta(7)));
    }
}
