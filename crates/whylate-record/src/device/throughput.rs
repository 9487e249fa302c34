//! The search for the highest rate without loss: RFC 2544 (section 26.1), as a pure function of trials.
//!
//! It begins at the most that the client can send. Where the box carries that, there is nothing to look
//! for; else the rate is halved between the highest one that passed and the lowest one that did not, until
//! both are near each other or the trials are used up. A trial in which the client itself did not reach the
//! rate counts at the rate that it reached. One that was spoilt counts for nothing, and is made again a few
//! times.

use whylate_model::device::{Throughput, Trial};

/// Both ends are near each other when they differ by less than this share of the higher one.
const NEAR: f64 = 0.02;
/// The rate that the search ends at from below: less is none.
const LEAST_PPS: f64 = 10.0;
/// Trials of a search that were spoilt and are made again.
pub(super) const MOST_SPOILT: u32 = 3;

/// A search that goes on.
#[derive(Debug, Clone)]
pub(super) struct Search {
    trials_left: u32,
    tolerated: f64,
    /// The highest rate that passed.
    passed: f64,
    /// The lowest rate that did not; the first rate to try as long as there is none.
    failed: f64,
    has_failed: bool,
    trials: Vec<Trial>,
    spoilt: u32,
}

/// What one trial came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tried {
    pub(super) achieved_pps: f64,
    pub(super) sent: u64,
    pub(super) lost: u64,
}

impl Search {
    /// From the most that the client can send.
    pub(super) fn new(client_pps: f64, trials: u32, tolerated: f64) -> Self {
        Self {
            trials_left: trials,
            tolerated,
            passed: 0.0,
            failed: client_pps,
            has_failed: false,
            trials: Vec::new(),
            spoilt: 0,
        }
    }

    /// The rate to try next; none when the search is over.
    pub(super) fn next(&self) -> Option<f64> {
        let is_spoilt = self.spoilt > MOST_SPOILT;
        if is_spoilt || self.trials_left == 0 || self.failed < LEAST_PPS {
            return None;
        }
        if !self.has_failed {
            // Nothing lost at the most that can be sent: that is all that can be found.
            return (self.passed <= 0.0).then_some(self.failed);
        }
        let apart = self.failed - self.passed;
        (apart > NEAR * self.failed).then(|| self.passed + apart / 2.0)
    }

    /// What came of it is of another state of the host than was asked for: it is no trial.
    pub(super) fn leave_out(&mut self) {
        self.spoilt += 1;
    }

    /// Takes what came of it.
    pub(super) fn take(&mut self, asked_pps: f64, tried: Tried) {
        self.trials_left = self.trials_left.saturating_sub(1);
        let Tried { achieved_pps, sent, lost } = tried;
        let passed = sent > 0 && lost as f64 <= self.tolerated * sent as f64;
        self.trials.push(Trial { asked_pps, achieved_pps, sent, lost, passed });
        let rate = achieved_pps.min(asked_pps);
        if passed {
            self.passed = self.passed.max(rate);
        } else {
            // A rate that was lost at, below one that passed: by chance, which the lower one believes.
            self.failed = if self.has_failed { self.failed.min(rate) } else { rate };
            self.has_failed = true;
            self.passed = self.passed.min(self.failed);
        }
    }

    /// What was found.
    pub(super) fn found(
        self,
        configuration: Option<String>,
        frame_bytes: u32,
        client: Option<Tried>,
    ) -> Throughput {
        let highest = self.trials.iter().filter(|trial| trial.passed).map(rate_of);
        let highest = highest.filter(|rate| !self.has_failed || *rate < self.failed);
        Throughput {
            configuration,
            frame_bytes,
            client_pps: client.map(|of| of.achieved_pps),
            client_lost: client.map_or(0, |of| of.lost),
            highest_pps: highest.reduce(f64::max),
            lowest_lossy_pps: self.has_failed.then_some(self.failed),
            tolerated: self.tolerated,
            trials: self.trials,
        }
    }
}

fn rate_of(trial: &Trial) -> f64 {
    trial.achieved_pps.min(trial.asked_pps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box that carries so much, and a client that sends so much.
    fn searched(carries: f64, client: f64, trials: u32) -> Throughput {
        let mut search = Search::new(client, trials, 0.0);
        while let Some(rate) = search.next() {
            let sent = rate as u64;
            let lost = (rate - carries).max(0.0).ceil() as u64;
            search.take(rate, Tried { achieved_pps: rate, sent, lost });
        }
        search.found(None, 64, Some(Tried { achieved_pps: client, sent: 1, lost: 0 }))
    }

    #[test]
    fn a_trial_that_is_left_out_moves_nothing_and_is_made_again_a_few_times() {
        let mut search = Search::new(100_000.0, 5, 0.0);
        for _ in 0..MOST_SPOILT {
            search.leave_out();
            assert_eq!(search.next(), Some(100_000.0));
        }
        search.take(100_000.0, Tried { achieved_pps: 100_000.0, sent: 100_000, lost: 7 });
        assert_eq!(search.next(), Some(50_000.0));
        search.leave_out();
        assert_eq!(search.next(), None, "somebody changes it all the time");
        let found = search.found(None, 64, None);
        assert_eq!((found.trials.len(), found.highest_pps), (1, None));
    }

    #[test]
    fn the_rate_at_which_a_box_begins_to_lose_is_enclosed() {
        for carries in [40_000.0, 123_456.0, 399_000.0] {
            let found = searched(carries, 400_000.0, 20);
            let (high, low) = (found.highest_pps.unwrap(), found.lowest_lossy_pps.unwrap());
            assert!(high <= carries && carries < low, "{high} {carries} {low}");
            assert!(low - high <= 0.02 * low, "{high} {low}");
            assert!(!found.is_limited_by_the_client());
        }
    }

    #[test]
    fn trials_are_bounded_and_a_box_faster_than_the_client_takes_one() {
        let found = searched(9e9, 400_000.0, 8);
        assert_eq!(found.trials.len(), 1);
        assert!(found.is_limited_by_the_client());
        assert_eq!(found.highest_pps, Some(400_000.0));
        // 400, 200 and 100 kpps lose; 50 would have passed.
        let found = searched(50_000.0, 400_000.0, 3);
        assert_eq!((found.trials.len(), found.highest_pps), (3, None));
        assert_eq!(searched(50_000.0, 400_000.0, 4).highest_pps, Some(50_000.0));
    }

    #[test]
    fn a_box_that_loses_at_every_rate_has_no_highest() {
        let found = searched(0.0, 1_000.0, 8);
        assert_eq!((found.highest_pps, found.trials.len()), (None, 8));
        assert!(found.trials.iter().all(|trial| !trial.passed));
    }

    #[test]
    fn a_loss_below_a_rate_that_passed_takes_that_back() {
        let mut search = Search::new(100_000.0, 8, 0.0);
        let tried = |sent, lost| Tried { achieved_pps: sent as f64, sent, lost };
        search.take(100_000.0, tried(100_000, 5));
        search.take(50_000.0, tried(50_000, 0));
        // The client did not reach what was asked, and lost below what had passed.
        search.take(75_000.0, tried(40_000, 1));
        assert!(search.next().is_none_or(|rate| rate <= 40_000.0));
        let found = search.found(None, 64, None);
        assert_eq!(found.lowest_lossy_pps, Some(40_000.0));
        assert_eq!(found.highest_pps, None);
    }
}
