//! Why slow requests were slow: interruptions of either end against the time of each request.
//!
//! What interrupted a thread comes as attributed gaps ([`interruptions`]); those of a thread that
//! sleeps are made of the scheduler's events ([`scheduled`]). Each request is met with what lay in it
//! ([`join`]); at the end the slow ones are set against the others and against chance ([`judge`]). What
//! the long turns of a client's own loop were is counted beside it ([`turns`]).
//!
//! Guarantees: a request is looked at only when everything of its time has come; what is left aside is
//! counted; memory does not grow with the run. Does not tell a cause from what comes together with it:
//! a lift is no proof, and a cause that strikes ordinary windows as often is never claimed.

pub(crate) mod counts;
pub mod interruptions;
pub mod join;
pub mod judge;
pub mod scheduled;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
pub mod turns;

use whylate_model::cause::Cause;
use whylate_model::tail::{End, Tail};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::rng::Rng;

use self::counts::Counts;
use self::join::{Hit, Join, Key, Stretch, Window};
use crate::naming;

/// Causes kept; names are all that can be endless, and those that come after are added up.
const MOST_CAUSES: usize = 256;
/// Windows elsewhere for each request that may be slow.
const ELSEWHERE: u32 = 4;
/// Blocks of time over which intervals are.
const BLOCKS: u64 = 40;
/// Shorter ones depend on each other: a host's stall lasts tens of milliseconds.
const SHORTEST_BLOCK: Nanos = Nanos(25_000_000);
/// A window elsewhere begins at most this long before its request's.
const FARTHEST: Nanos = Nanos(1_000_000_000);

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// Threads whose interruptions come.
    pub lanes: usize,
    /// The first intended send, about: interruptions from here on come.
    pub start: Ticks,
    /// How long requests will be sent.
    pub duration: Nanos,
    /// The longest that a request may take.
    pub longest: Nanos,
    /// Frequency of the counter.
    pub rate: Hertz,
    /// Seed of everything random.
    pub seed: u64,
}

/// Meets requests with interruptions while they come.
#[derive(Debug)]
pub struct Looking {
    scope: Scope,
    join: Join,
    causes: Vec<(End, Cause)>,
    counts: Counts,
    rng: Rng,
    block: TicksDelta,
    farthest: u64,
    /// Interruptions are kept for so long.
    keep: TicksDelta,
    left_aside: u64,
    by_whylate: u64,
    interruptions: Vec<u64>,
}

/// A part of an interruption with its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Beginning.
    pub from: Ticks,
    /// End.
    pub to: Ticks,
    /// What took it.
    pub cause: Cause,
}

impl Looking {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        let ticks = |time: Nanos| time.to_ticks(scope.rate);
        let block = Nanos((scope.duration.0 / BLOCKS).max(SHORTEST_BLOCK.0));
        let blocks = (scope.duration.0 / block.0.max(1)).clamp(1, BLOCKS);
        let farthest = Nanos((scope.duration.0 / 8).min(FARTHEST.0));
        let keep = Nanos(scope.longest.0.saturating_mul(2).saturating_add(2 * FARTHEST.0));
        Self {
            scope,
            join: Join::new(scope.lanes, scope.start),
            causes: Vec::new(),
            counts: Counts::new(blocks as usize),
            rng: Rng::stream(scope.seed, 0x7a11),
            block: ticks(block),
            farthest: ticks(farthest).0.max(1),
            keep: ticks(keep),
            left_aside: 0,
            by_whylate: 0,
            interruptions: vec![0; scope.lanes],
        }
    }

    /// Takes an interruption of the thread of `lane`, which belongs to `end`: its parts, in order.
    pub fn interruption(&mut self, lane: usize, end: End, taken: &[Taken]) {
        if taken.is_empty() {
            return;
        }
        if let Some(count) = self.interruptions.get_mut(lane) {
            *count += 1;
        }
        let stretches: Vec<Stretch> = taken
            .iter()
            .map(|of| Stretch { from: of.from, to: of.to, key: self.key(end, &of.cause) })
            .collect();
        self.join.interruption(lane, &stretches);
    }

    /// Takes a request that has ended: from its intended send to its reply.
    pub fn request(&mut self, window: Window) {
        if window.from < window.to {
            self.join.window(window);
        } else {
            self.left_aside += 1;
        }
    }

    /// Every interruption that began before `to` has come.
    pub fn complete(&mut self, to: Ticks) {
        let mut hits = Vec::new();
        for window in self.join.ready(to) {
            self.meet(window, &mut hits);
        }
        let before = Ticks(to.0.saturating_sub(self.keep.0));
        let counts = &mut self.counts;
        self.join.forget(before, |over| counts.over(over));
    }

    /// Interruptions of the thread of `lane`.
    #[must_use]
    pub fn interruptions(&self, lane: usize) -> u64 {
        self.interruptions.get(lane).copied().unwrap_or(0)
    }

    /// What has come of it; `percent` is from which on a request is slow, none for the usual one.
    #[must_use]
    pub fn finish(mut self, percent: Option<f64>) -> Tail {
        self.complete(Ticks(u64::MAX));
        let left_aside = self.left_aside + self.join.refused;
        let judged = judge::judge(&self.counts, &self.causes, percent, self.scope);
        Tail { left_aside, by_whylate: self.by_whylate, ..judged }
    }

    fn meet(&mut self, window: Window, hits: &mut Vec<Hit>) {
        if !self.counts.has_room() || !self.join.meet(window, hits) {
            self.left_aside += 1;
            return;
        }
        let (block, response) = (self.block_of(window), window.length());
        let own = hits.iter().filter(|of| self.causes[usize::from(of.key.0)].1 == Cause::Whylate);
        if own.map(|of| of.overlap.0).sum::<u64>() * 2 >= response.0 {
            self.by_whylate += 1;
            return;
        }
        self.counts.request(block, response, hits);
        if !self.counts.may_be_slow(response) {
            return;
        }
        for _ in 0..ELSEWHERE {
            let earlier = response.0.saturating_add(self.rng.below(self.farthest));
            let (Some(from), Some(to)) =
                (window.from.0.checked_sub(earlier), window.to.0.checked_sub(earlier))
            else {
                return;
            };
            if self.join.overlaps(Window { from: Ticks(from), to: Ticks(to) }, hits) {
                self.counts.elsewhere(block, response, hits);
            }
        }
    }

    fn block_of(&self, window: Window) -> usize {
        (window.from.since(self.scope.start).0 / self.block.0.max(1)) as usize
    }

    fn key(&mut self, end: End, cause: &Cause) -> Key {
        let known = |causes: &[(End, Cause)], cause: &Cause| {
            causes.iter().position(|(at, of)| *at == end && of == cause)
        };
        if let Some(index) = known(&self.causes, cause) {
            return Key(index as u16);
        }
        let cause = if self.causes.len() < MOST_CAUSES {
            cause.clone()
        } else {
            naming::without_name(cause)
        };
        let index = known(&self.causes, &cause).unwrap_or_else(|| {
            self.causes.push((end, cause));
            self.causes.len() - 1
        });
        Key(index as u16)
    }
}
