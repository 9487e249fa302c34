//! Windows of time against stretches of it: how much of each window went to which cause.
//!
//! Stretches come in lanes, one for each thread that is looked at, a little late and in any order;
//! windows come when they end. A window is met once its caller says that everything up to its end
//! has come. Two threads of one end may wait for one CPU at once: of a cause, the lane that lost most
//! counts, and not the sum.
//!
//! Memory is bounded: stretches older than what is kept are let go, and a window that reaches back
//! behind them is not met.

use std::collections::VecDeque;
use std::ops::Range;

use whylate_model::{Ticks, TicksDelta};

/// Stretches kept of one lane: at 10 000 interruptions a second those of six seconds.
const MOST_STRETCHES: usize = 1 << 16;
/// Windows that may wait.
const MOST_WAITING: usize = 1 << 18;
/// Stretches in one window that are looked at: bounds the work for windows of seconds.
const MOST_IN_WINDOW: usize = 4_096;

/// Number of a cause at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u16);

/// From a request's intended send to its reply; a half-open interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Beginning.
    pub from: Ticks,
    /// End.
    pub to: Ticks,
}

/// A part of an interruption; a half-open interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Beginning.
    pub from: Ticks,
    /// End.
    pub to: Ticks,
    /// What it went to.
    pub key: Key,
}

/// What a cause took of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The cause.
    pub key: Key,
    /// How much.
    pub overlap: TicksDelta,
}

/// An episode that no window can meet any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// What it was.
    pub key: Key,
    /// Of the windows that it met, the length of the one that is longest and has most taken of it.
    pub window: TicksDelta,
    /// What its cause took from that one.
    pub overlap: TicksDelta,
}

/// The lanes, and the windows that wait for them.
#[derive(Debug)]
pub struct Join {
    lanes: Vec<Lane>,
    waiting: Vec<Window>,
    /// Windows that found no room, and stretches that came too late or upon others.
    pub refused: u64,
}

#[derive(Debug, Default)]
struct Lane {
    stretches: VecDeque<Held>,
    episodes: VecDeque<Over>,
    /// Number of the first of them.
    first: u64,
    /// Since when all stretches are there.
    known_from: Ticks,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    of: Stretch,
    episode: u64,
}

impl Window {
    /// How long it is.
    #[must_use]
    pub fn length(self) -> TicksDelta {
        self.to.since(self.from)
    }
}

impl Over {
    /// Keeps the window that would still count as slow and struck when the fewest do: a request is
    /// struck by half of what makes it slow.
    fn see(&mut self, window: TicksDelta, overlap: TicksDelta) {
        let worth = |window: TicksDelta, overlap: TicksDelta| {
            (window.0.min(overlap.0.saturating_mul(2)), overlap)
        };
        if worth(window, overlap) > worth(self.window, self.overlap) {
            (self.window, self.overlap) = (window, overlap);
        }
    }
}

impl Join {
    /// So many lanes, of which everything from `start` on will come.
    #[must_use]
    pub fn new(lanes: usize, start: Ticks) -> Self {
        let lane = || Lane { known_from: start, ..Lane::default() };
        Self { lanes: (0..lanes).map(|_| lane()).collect(), waiting: Vec::new(), refused: 0 }
    }

    /// Takes one interruption of a lane: its stretches, in order. Those of one cause are one episode.
    pub fn interruption(&mut self, lane: usize, stretches: &[Stretch]) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        let begin = lane.first + lane.episodes.len() as u64;
        for of in stretches {
            let known = (begin..).zip(lane.episodes.iter().skip((begin - lane.first) as usize));
            let known = known.into_iter().find(|(_, over)| over.key == of.key);
            let episode = known.map(|(number, _)| number);
            let episode = episode.unwrap_or_else(|| lane.new_episode(of.key));
            self.refused += u64::from(!lane.insert(Held { of: *of, episode }));
        }
    }

    /// Takes a window that has ended.
    pub fn window(&mut self, window: Window) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push(window);
        } else {
            self.refused += 1;
        }
    }

    /// The windows that ended before `to`, up to which every lane is complete.
    pub fn ready(&mut self, to: Ticks) -> Vec<Window> {
        let (ready, waiting) = self.waiting.iter().partition(|window| window.to <= to);
        self.waiting = waiting;
        ready
    }

    /// What each cause took of `window`; false when that is not known.
    #[must_use]
    pub fn overlaps(&self, window: Window, hits: &mut Vec<Hit>) -> bool {
        hits.clear();
        for lane in &self.lanes {
            if window.from < lane.known_from {
                return false;
            }
            let range = lane.range(window);
            if range.len() > MOST_IN_WINDOW {
                return false;
            }
            let begin = hits.len();
            for held in lane.stretches.range(range) {
                let Stretch { from, to, key } = held.of;
                let overlap = to.min(window.to).since(from.max(window.from));
                match hits[begin..].iter_mut().find(|hit| hit.key == key) {
                    Some(hit) => hit.overlap = hit.overlap + overlap,
                    None => hits.push(Hit { key, overlap }),
                }
            }
        }
        most_of_each(hits);
        true
    }

    /// The same for a window of a request, which every episode in it has met.
    #[must_use]
    pub fn meet(&mut self, window: Window, hits: &mut Vec<Hit>) -> bool {
        if !self.overlaps(window, hits) {
            return false;
        }
        if hits.is_empty() {
            return true;
        }
        for lane in &mut self.lanes {
            for index in lane.range(window) {
                let Some(held) = lane.stretches.get(index) else { continue };
                let (key, at) = (held.of.key, held.episode.wrapping_sub(lane.first) as usize);
                let hit = hits.iter().find(|hit| hit.key == key);
                if let (Some(episode), Some(hit)) = (lane.episodes.get_mut(at), hit) {
                    episode.see(window.length(), hit.overlap);
                }
            }
        }
        true
    }

    /// Lets go of what ended before `before`; `over` is told of each episode that has met a window.
    pub fn forget(&mut self, before: Ticks, mut over: impl FnMut(Over)) {
        for lane in &mut self.lanes {
            lane.forget(before);
            let oldest = lane.stretches.front().map(|held| held.episode);
            while oldest.is_none_or(|oldest| lane.first < oldest)
                && let Some(episode) = lane.episodes.pop_front()
            {
                lane.first += 1;
                if episode.overlap.0 > 0 {
                    over(episode);
                }
            }
        }
    }
}

/// Of hits of one cause in several lanes, the longest.
fn most_of_each(hits: &mut Vec<Hit>) {
    if hits.len() > 1 {
        hits.sort_unstable_by_key(|hit| (hit.key, std::cmp::Reverse(hit.overlap)));
        hits.dedup_by_key(|hit| hit.key);
    }
}

impl Lane {
    fn new_episode(&mut self, key: Key) -> u64 {
        let nothing = TicksDelta(0);
        self.episodes.push_back(Over { key, window: nothing, overlap: nothing });
        self.first + self.episodes.len() as u64 - 1
    }

    /// Puts a stretch into its place, cut to the room between its neighbours; false when there is
    /// none, or when it comes too late.
    fn insert(&mut self, mut held: Held) -> bool {
        let at = self.stretches.partition_point(|other| other.of.from <= held.of.from);
        let before = at.checked_sub(1).and_then(|before| self.stretches.get(before));
        let whole = held.of;
        held.of.from = held.of.from.max(before.map_or(self.known_from, |before| before.of.to));
        if let Some(after) = self.stretches.get(at) {
            held.of.to = held.of.to.min(after.of.from);
        }
        if held.of.from >= held.of.to {
            // One without length, or of before the beginning, is not missed.
            return whole.from >= whole.to || whole.to <= self.known_from;
        }
        self.stretches.insert(at, held);
        if self.stretches.len() > MOST_STRETCHES
            && let Some(gone) = self.stretches.pop_front()
        {
            self.known_from = self.known_from.max(gone.of.to);
        }
        true
    }

    /// Indices of the stretches that meet a window.
    fn range(&self, window: Window) -> Range<usize> {
        let from = self.stretches.partition_point(|held| held.of.to <= window.from);
        let to = self.stretches.partition_point(|held| held.of.from < window.to);
        from..to.max(from)
    }

    fn forget(&mut self, before: Ticks) {
        while self.stretches.front().is_some_and(|held| held.of.to <= before) {
            self.stretches.pop_front();
        }
        self.known_from = self.known_from.max(before);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(from: u64, to: u64) -> Window {
        Window { from: Ticks(from), to: Ticks(to) }
    }

    fn stretch(from: u64, to: u64, key: u16) -> Stretch {
        Stretch { from: Ticks(from), to: Ticks(to), key: Key(key) }
    }

    fn hits(join: &mut Join, of: Window) -> Option<Vec<(u16, u64)>> {
        let mut hits = Vec::new();
        let known = join.meet(of, &mut hits);
        known.then(|| hits.iter().map(|hit| (hit.key.0, hit.overlap.0)).collect())
    }

    #[test]
    fn a_window_meets_what_lies_in_it_and_of_two_lanes_the_one_that_lost_most() {
        let mut join = Join::new(2, Ticks(0));
        join.interruption(0, &[stretch(10, 20, 1), stretch(20, 25, 2), stretch(25, 30, 1)]);
        join.interruption(1, &[stretch(12, 18, 1)]);
        assert_eq!(hits(&mut join, window(15, 28)), Some(vec![(1, 8), (2, 5)]));
        assert_eq!(hits(&mut join, window(0, 10)), Some(vec![]), "ends are open");
        assert_eq!(hits(&mut join, window(30, 99)), Some(vec![]));
        let mut over = Vec::new();
        join.forget(Ticks(50), |episode| over.push((episode.key.0, episode.overlap.0)));
        over.sort_unstable();
        assert_eq!(over, [(1, 8), (1, 8), (2, 5)], "one episode for each cause of each lane");
        assert_eq!(hits(&mut join, window(40, 60)), None, "what was let go is not known");
    }

    #[test]
    fn a_window_waits_until_everything_up_to_its_end_has_come() {
        let mut join = Join::new(1, Ticks(0));
        join.window(window(10, 40));
        join.window(window(5, 20));
        assert_eq!(join.ready(Ticks(19)), []);
        assert_eq!(join.ready(Ticks(20)), [window(5, 20)]);
        assert_eq!(join.ready(Ticks(90)), [window(10, 40)]);
    }

    #[test]
    fn a_lane_that_is_full_forgets_its_oldest_and_windows_of_that_time_are_not_known() {
        let mut join = Join::new(1, Ticks(0));
        for number in 0..=MOST_STRETCHES as u64 {
            join.interruption(0, &[stretch(number * 10, number * 10 + 5, 0)]);
        }
        assert_eq!(hits(&mut join, window(0, 8)), None);
        assert_eq!(hits(&mut join, window(10, 18)), Some(vec![(0, 5)]));
        assert_eq!(hits(&mut join, window(10, 900_000)), None, "more than are looked at");
    }

    #[test]
    fn as_many_stretches_as_are_looked_at_in_a_window_are_and_one_more_is_not_known() {
        let mut join = Join::new(1, Ticks(0));
        let mut add =
            |number: u64| join.interruption(0, &[stretch(number * 10, number * 10 + 5, 0)]);
        (0..MOST_IN_WINDOW as u64).for_each(&mut add);
        assert_eq!(hits(&mut join, window(0, 900_000)), Some(vec![(0, 5 * MOST_IN_WINDOW as u64)]));
        join.interruption(0, &[stretch(800_000, 800_001, 0)]);
        assert_eq!(hits(&mut join, window(0, 900_000)), None);
    }

    #[test]
    fn a_stretch_is_cut_to_the_room_between_its_neighbours_and_refused_without_any() {
        let mut join = Join::new(1, Ticks(5));
        for of in [stretch(10, 20, 1), stretch(30, 40, 1), stretch(15, 35, 2), stretch(1, 7, 3)] {
            join.interruption(0, &[of]);
        }
        assert_eq!(hits(&mut join, window(5, 50)), Some(vec![(1, 20), (2, 10), (3, 2)]));
        assert_eq!(
            hits(&mut join, window(4, 50)),
            None,
            "of before the beginning nothing is known"
        );
        // What has no length, or ended before the beginning, is not missed; nor is what nobody looks at.
        for of in [stretch(45, 45, 1), stretch(1, 5, 1)] {
            join.interruption(0, &[of]);
        }
        join.interruption(1, &[stretch(12, 18, 1)]);
        assert_eq!(join.refused, 0);
        join.interruption(0, &[stretch(12, 18, 1), stretch(13, 20, 1)]);
        assert_eq!(join.refused, 2);
    }

    #[test]
    fn of_two_stretches_that_begin_at_once_the_later_one_has_what_the_other_leaves() {
        let mut join = Join::new(1, Ticks(0));
        for of in [stretch(10, 20, 1), stretch(10, 25, 2)] {
            join.interruption(0, &[of]);
        }
        assert_eq!(hits(&mut join, window(0, 50)), Some(vec![(1, 10), (2, 5)]));
        assert_eq!(join.refused, 0);
    }

    #[test]
    fn windows_wait_up_to_their_limit_and_those_beyond_are_refused() {
        let mut join = Join::new(1, Ticks(0));
        join.waiting = vec![window(0, 1); MOST_WAITING - 1];
        join.window(window(0, 1));
        join.window(window(0, 1));
        assert_eq!((join.waiting.len(), join.refused), (MOST_WAITING, 1));
    }

    #[test]
    fn an_episode_remembers_the_window_that_is_slow_and_struck_the_longest() {
        let mut join = Join::new(1, Ticks(0));
        join.interruption(0, &[stretch(10, 20, 1)]);
        join.interruption(0, &[stretch(30, 50, 1)]);
        join.interruption(0, &[stretch(60, 90, 2)]);
        // Twice what it took counts of a window at most, so that the first of these is not exceeded.
        for of in [window(12, 30), window(0, 25), window(5, 25), window(10, 25)] {
            assert!(hits(&mut join, of).is_some());
        }
        let mut told = |before: u64| {
            let mut over = Vec::new();
            join.forget(Ticks(before), |of| over.push((of.key.0, of.window.0, of.overlap.0)));
            over
        };
        assert_eq!(told(19), []);
        assert_eq!(told(20), [(1, 25, 10)]);
        assert_eq!(told(99), [], "what met no window is not told");
    }

    #[test]
    fn stretches_of_one_cause_are_one_episode_within_an_interruption_and_two_in_two() {
        let mut join = Join::new(1, Ticks(0));
        join.interruption(0, &[stretch(10, 12, 1), stretch(12, 14, 2), stretch(14, 16, 1)]);
        join.interruption(0, &[stretch(20, 22, 1), stretch(22, 24, 1)]);
        assert!(hits(&mut join, window(0, 90)).is_some());
        let mut over = Vec::new();
        join.forget(Ticks(16), |of| over.push((of.key.0, of.window.0, of.overlap.0)));
        assert_eq!(over, [(1, 90, 8), (2, 90, 2)]);
        join.interruption(0, &[stretch(30, 33, 3), stretch(33, 35, 3)]);
        assert!(hits(&mut join, window(25, 40)).is_some());
        over.clear();
        join.forget(Ticks(99), |of| over.push((of.key.0, of.window.0, of.overlap.0)));
        assert_eq!(over, [(1, 90, 8), (3, 15, 5)]);
    }

    /// What `Join` says, the slow way.
    fn naive(lanes: &[Vec<Stretch>], of: Window) -> Vec<(u16, u64)> {
        let overlap =
            |a: &Stretch| (a.key.0, a.to.0.min(of.to.0).saturating_sub(a.from.0.max(of.from.0)));
        let mut most = std::collections::BTreeMap::new();
        for lane in lanes {
            let mut sums = std::collections::BTreeMap::<u16, u64>::new();
            for (key, overlap) in lane.iter().map(overlap).filter(|(_, overlap)| *overlap > 0) {
                *sums.entry(key).or_default() += overlap;
            }
            for (key, sum) in sums {
                let known = most.entry(key).or_insert(0);
                *known = sum.max(*known);
            }
        }
        most.into_iter().collect()
    }

    /// Disjoint stretches: distances and lengths.
    fn lane() -> impl Strategy<Value = Vec<Stretch>> {
        proptest::collection::vec((0..40_u64, 1..30_u64, 0..4_u16), 0..30).prop_map(|steps| {
            let mut at = 0;
            let steps = steps.into_iter().map(|(gap, length, key)| {
                let from = at + gap;
                at = from + length;
                stretch(from, at, key)
            });
            steps.collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_window_meets_what_a_naive_join_says_in_whatever_order_things_come(
            lanes in proptest::collection::vec(lane(), 1..4),
            windows in proptest::collection::vec((0..900_u64, 1..300_u64), 1..40),
            order in any::<u64>(),
        ) {
            let mut join = Join::new(lanes.len(), Ticks(0));
            let mut all: Vec<(usize, Stretch)> = lanes
                .iter()
                .enumerate()
                .flat_map(|(lane, of)| of.iter().map(move |stretch| (lane, *stretch)))
                .collect();
            whylate_stats::rng::Rng::new(order).shuffle(&mut all);
            for (lane, stretch) in all {
                join.interruption(lane, &[stretch]);
            }
            prop_assert_eq!(join.refused, 0);
            for (from, length) in windows {
                let of = window(from, from + length);
                prop_assert_eq!(hits(&mut join, of), Some(naive(&lanes, of)));
            }
        }
    }
}
