//! Requests and what a delay line did with them, joined by their numbers.
//!
//! Both logs are nearly in the order of numbers: a request that was given up stands where that was noticed,
//! a message that was held back where it left. So either side is read where the other one is ahead, and what
//! has no partner yet waits, up to [`WINDOW`] rows of a side. What waits longer has none. Memory does not
//! grow with the logs. Every row of either log is in exactly one of the counts.

use std::collections::{BTreeMap, BTreeSet};

use whylate_model::{Ticks, TicksDelta};

/// What became of all rows.
pub use whylate_model::calibration_parts::{Met, Met as JoinCounts};

/// Rows of one side that may wait for the other: two seconds of 100 000 messages a second, and a timeout
/// is one.
pub const WINDOW: usize = 1 << 18;

/// A request as its client logged it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// When it was handed over.
    pub sent: Ticks,
    /// When it was taken in; none of what did not come.
    pub received: Option<Ticks>,
}

/// A message as the line logged it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The number that it bears; none of what is not ours.
    pub number: Option<u64>,
    /// When the line saw it.
    pub arrival: Ticks,
    /// When the line had handed it over; none of what the line itself lost.
    pub departure: Option<Ticks>,
    /// It is a copy that the line made on purpose.
    pub copy: bool,
}

/// A request of which both are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// Its number.
    pub number: u64,
    /// When it was handed over.
    pub sent: Ticks,
    /// m: from there until it was taken in.
    pub measured: TicksDelta,
    /// t: how long the line had it.
    pub truth: TicksDelta,
}

impl Joined {
    /// e = m - t, in ticks.
    #[must_use]
    pub fn error(&self) -> i64 {
        self.measured.0.wrapping_sub(self.truth.0).cast_signed()
    }
}

/// Joins two logs, and hands over every request of which both are known. The first row that cannot be
/// read ends it.
///
/// # Errors
/// The first row that cannot be read, as its reader tells it.
pub fn join<E>(
    requests: impl IntoIterator<Item = Result<Sent, E>>,
    passed: impl IntoIterator<Item = Result<Passed, E>>,
    mut each: impl FnMut(&Joined),
) -> Result<Met, E> {
    join_within(WINDOW, requests.into_iter(), passed.into_iter(), &mut each)
}

fn join_within<E>(
    window: usize,
    requests: impl Iterator<Item = Result<Sent, E>>,
    passed: impl Iterator<Item = Result<Passed, E>>,
    each: &mut dyn FnMut(&Joined),
) -> Result<Met, E> {
    let (mut requests, mut passed) = (requests.fuse(), passed.fuse());
    let mut waiting = Waiting::new(window, each);
    // The side that is behind is read; of one that is over nothing is.
    let (mut behind, mut ahead) = (Some(0_u64), Some(0_u64));
    loop {
        let client_next = match (behind, ahead) {
            (None, None) => break,
            (Some(client), Some(line)) => client <= line,
            (client, _) => client.is_some(),
        };
        if client_next {
            behind = requests.next().transpose()?.map(|of| {
                waiting.request(of);
                of.number
            });
        } else {
            let last = ahead.unwrap_or(0);
            ahead = passed.next().transpose()?.map(|of| {
                waiting.passed(of);
                of.number.unwrap_or(last)
            });
        }
    }
    Ok(waiting.finish())
}

/// What has no partner yet.
struct Waiting<'a> {
    window: usize,
    counts: Met,
    requests: BTreeMap<u64, Sent>,
    passed: BTreeMap<u64, Passed>,
    /// The line's numbers that found their request: a second one is no stranger. Bounded as the rest.
    met: BTreeSet<u64>,
    /// Smallest and largest number of a request so far.
    span: Option<(u64, u64)>,
    each: &'a mut dyn FnMut(&Joined),
}

impl<'a> Waiting<'a> {
    fn new(window: usize, each: &'a mut dyn FnMut(&Joined)) -> Self {
        Self {
            window,
            counts: Met::default(),
            requests: BTreeMap::new(),
            passed: BTreeMap::new(),
            met: BTreeSet::new(),
            span: None,
            each,
        }
    }

    fn request(&mut self, of: Sent) {
        self.counts.requests += 1;
        self.span = Some(match self.span {
            None => (of.number, of.number),
            Some((first, last)) => (first.min(of.number), last.max(of.number)),
        });
        if let Some(passed) = self.passed.remove(&of.number) {
            self.meet(&of, &passed);
            return;
        }
        if let Some(old) = self.requests.insert(of.number, of) {
            self.alone_request(&old);
        }
        if self.requests.len() > self.window
            && let Some((_, oldest)) = self.requests.pop_first()
        {
            self.alone_request(&oldest);
        }
    }

    fn passed(&mut self, of: Passed) {
        if of.copy {
            self.counts.copies += 1;
            return;
        }
        let Some(number) = of.number else {
            self.counts.foreign += 1;
            return;
        };
        self.counts.passed += 1;
        if let Some(request) = self.requests.remove(&number) {
            self.meet(&request, &of);
            return;
        }
        if self.met.contains(&number) || self.passed.contains_key(&number) {
            self.counts.again += 1;
            return;
        }
        self.passed.insert(number, of);
        if self.passed.len() > self.window
            && let Some((oldest, _)) = self.passed.pop_first()
        {
            self.alone_passed(oldest);
        }
    }

    fn meet(&mut self, request: &Sent, passed: &Passed) {
        self.met.insert(request.number);
        if self.met.len() > self.window {
            self.met.pop_first();
        }
        match (request.received, passed.departure) {
            (_, None) => self.counts.lost_in += 1,
            (None, Some(_)) => self.counts.lost_behind += 1,
            (Some(received), Some(departure)) if received < departure => {
                self.counts.too_early += 1;
            }
            (Some(received), Some(departure)) => {
                self.counts.joined += 1;
                (self.each)(&Joined {
                    number: request.number,
                    sent: request.sent,
                    measured: received.since(request.sent),
                    truth: departure.since(passed.arrival),
                });
            }
        }
    }

    fn alone_request(&mut self, of: &Sent) {
        if of.received.is_some() {
            self.counts.without_truth += 1;
        } else {
            self.counts.lost_before += 1;
        }
    }

    fn alone_passed(&mut self, number: u64) {
        let inside = self.span.is_some_and(|(first, last)| (first..=last).contains(&number));
        if inside {
            self.counts.without_request += 1;
        } else {
            self.counts.outside += 1;
        }
    }

    fn finish(mut self) -> Met {
        for of in std::mem::take(&mut self.requests).into_values() {
            self.alone_request(&of);
        }
        for number in std::mem::take(&mut self.passed).into_keys() {
            self.alone_passed(number);
        }
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use whylate_stats::rng::Rng;

    use super::*;

    type Rows<T> = Vec<Result<T, String>>;

    fn sent(number: u64) -> Sent {
        let at = 1_000 * number;
        Sent { number, sent: Ticks(at), received: Some(Ticks(at + 150)) }
    }

    fn passed(number: u64) -> Passed {
        let at = 1_000 * number;
        let (arrival, departure) = (Ticks(at + 20), Some(Ticks(at + 120)));
        Passed { number: Some(number), arrival, departure, copy: false }
    }

    fn joined(window: usize, requests: Vec<Sent>, truths: Vec<Passed>) -> (Met, Vec<Joined>) {
        let requests: Rows<Sent> = requests.into_iter().map(Ok).collect();
        let truths: Rows<Passed> = truths.into_iter().map(Ok).collect();
        let mut found = Vec::new();
        let mut keep = |of: &Joined| found.push(*of);
        let counts =
            join_within(window, requests.into_iter(), truths.into_iter(), &mut keep).unwrap();
        assert!(counts.adds_up(), "{counts:?}");
        (counts, found)
    }

    #[test]
    fn rows_of_one_number_are_one_request_and_its_error_is_what_the_client_added() {
        let (counts, found) =
            joined(WINDOW, (0..1_000).map(sent).collect(), (0..1_000).map(passed).collect());
        assert_eq!((counts.joined, counts.requests, counts.passed), (1_000, 1_000, 1_000));
        for (number, of) in (0..).zip(&found) {
            let expected = (number, TicksDelta(150), TicksDelta(100), 50);
            assert_eq!((of.number, of.measured, of.truth, of.error()), expected);
        }
    }

    #[test]
    fn planted_losses_copies_and_rows_without_a_partner_are_counted_each_as_what_it_is() {
        let mut requests: Vec<Sent> = (100..1_100).map(sent).collect();
        // Warm-up and drain of the line, too.
        let mut truths: Vec<Passed> = (0..1_150).map(passed).collect();
        // Lost behind the line, and in it.
        requests[10].received = None;
        requests[11].received = None;
        truths[111].departure = None;
        // Lost before it: no row of the line.
        requests[12].received = None;
        truths.retain(|of| of.number != Some(112));
        // Came past it.
        truths.retain(|of| of.number != Some(113));
        // The line's row of 114, and no request.
        requests.retain(|of| of.number != 114);
        // A copy on purpose, a number twice, and two of others.
        truths.insert(500, Passed { copy: true, ..passed(500) });
        truths.insert(600, passed(300));
        truths.push(Passed { number: None, ..passed(1) });
        truths.push(Passed { number: None, ..passed(2) });
        // Taken in before it was handed over.
        requests.iter_mut().filter(|of| of.number == 900).for_each(|of| {
            of.received = Some(Ticks(of.sent.0 + 119));
        });
        let (counts, found) = joined(WINDOW, requests, truths);
        let expected = Met {
            requests: 999,
            passed: 1_149,
            joined: 994,
            lost_behind: 1,
            lost_in: 1,
            without_truth: 1,
            lost_before: 1,
            without_request: 1,
            outside: 150,
            again: 1,
            copies: 1,
            foreign: 2,
            too_early: 1,
        };
        assert_eq!(counts, expected);
        assert_eq!(found.len(), 994);
        assert!(found.iter().all(|of| of.error() == 50));
    }

    #[test]
    fn what_waits_longer_than_the_window_has_no_partner_and_nothing_is_counted_twice() {
        // A request that was noticed very late, and rows of the line that nobody sent: they crowd out the
        // one that waits for it where there is room for few.
        let mut requests: Vec<Sent> = (0..1_000).map(sent).collect();
        let late = requests.remove(5);
        requests.push(late);
        requests.retain(|of| !(500..520).contains(&of.number));
        let truths: Vec<Passed> = (0..1_000).map(passed).collect();
        let (counts, _) = joined(WINDOW, requests.clone(), truths.clone());
        assert_eq!((counts.joined, counts.without_request), (980, 20));
        let (counts, _) = joined(8, requests, truths);
        assert_eq!((counts.joined, counts.without_truth, counts.without_request), (979, 1, 21));
    }

    #[test]
    fn a_row_that_cannot_be_read_ends_the_join_with_its_reason() {
        let requests: Rows<Sent> = vec![Ok(sent(0)), Err("torn".to_owned()), Ok(sent(1))];
        let truths: Rows<Passed> = (0..5).map(|number| Ok(passed(number))).collect();
        assert_eq!(join(requests, truths, |_| ()).unwrap_err(), "torn");
    }

    #[test]
    fn whatever_is_lost_copied_and_moved_about_every_row_is_in_one_count() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let window = 4 + rng.below(60) as usize;
            let (mut requests, mut truths) = (Vec::new(), Vec::new());
            for number in 0..400 {
                let draw = rng.below(100);
                if draw >= 3 {
                    let received = (draw >= 8).then_some(Ticks(1_000 * number + 150));
                    requests.push(Sent { received, ..sent(number) });
                }
                if rng.below(100) >= 4 {
                    let departure = passed(number).departure.filter(|_| rng.below(100) >= 2);
                    truths.push(Passed { departure, ..passed(number) });
                }
                if rng.below(100) < 2 {
                    truths.push(passed(number.saturating_sub(rng.below(30))));
                }
            }
            for _ in 0..40 {
                let at = rng.below(requests.len() as u64 - 6) as usize;
                requests[at..at + 5].rotate_left(1);
                let at = rng.below(truths.len() as u64 - 6) as usize;
                truths[at..at + 5].rotate_left(2);
            }
            let (rows, lines) = (requests.len() as u64, truths.len() as u64);
            let (counts, found) = joined(window, requests, truths);
            assert_eq!((counts.requests, counts.passed), (rows, lines), "seed {seed}");
            assert_eq!(found.len() as u64, counts.joined, "seed {seed}");
            assert!(found.iter().all(|of| of.error() == 50), "seed {seed}");
        }
    }
}
