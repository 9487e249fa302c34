//! Stamps of requests that lie not on their way: how long after its sending each request had one.
//!
//! The other end's kernel says that it has a request while that goes on to its reader, and a card that it
//! is done with it while it is on the wire: such a stamp divides no part. It has a distance of its own,
//! from the client's reading before the call that sent the request.
//!
//! Guarantees: of each request one distance at most; what never came, what is nobody's and what lies
//! before its sending is counted; memory does not grow with the run.

use std::collections::BTreeMap;

use whylate_model::breakdown::{Aside, Source};
use whylate_model::series::Definition;
use whylate_model::series::summary::Identity;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;

use crate::compose::{Bounds, Composed};

/// Requests that wait for their stamp, and stamps that wait for their request.
const MOST_OPEN: usize = 1 << 16;

/// One kind of stamp of a flow.
#[derive(Debug, Clone)]
pub struct Asides {
    rate: Hertz,
    /// By so much a stamp may lie before its request's sending and be as late as that.
    apart: TicksDelta,
    open: BTreeMap<u64, Open>,
    values: Histogram,
    facts: Aside,
}

/// What is known of a request.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    sent: Option<Ticks>,
    came: Option<Ticks>,
    /// Nobody was asked for it.
    not_asked: bool,
}

impl Asides {
    /// Stamps that are called `stamp`, as sure as those of the kernel are.
    #[must_use]
    pub fn new(stamp: &str, rate: Hertz, bounds: &Bounds) -> Self {
        let certainty = bounds.of(Source::Software);
        Self {
            rate,
            apart: bounds.apart(Source::Own, Source::Software).to_ticks(rate),
            open: BTreeMap::new(),
            values: Histogram::new(),
            facts: Aside {
                stamp: stamp.to_owned(),
                requests: 0,
                came: 0,
                missing: 0,
                not_asked: 0,
                unknown: 0,
                unordered: 0,
                contradicted: 0,
                resolution: certainty.resolution,
                bound: certainty.bound,
                median: None,
                p99: None,
                most: None,
                series: None,
            },
        }
    }

    /// The kernel's stamps are so sure by now: it counts from here on, and is what is said of all in the
    /// end.
    pub fn sure(&mut self, bounds: &Bounds) {
        let certainty = bounds.of(Source::Software);
        self.apart = bounds.apart(Source::Own, Source::Software).to_ticks(self.rate);
        (self.facts.resolution, self.facts.bound) = (certainty.resolution, certainty.bound);
    }

    /// A request was sent: the reading before the call.
    pub fn sent(&mut self, request: u64, at: Ticks) {
        self.facts.requests += 1;
        let open = self.entry(request);
        open.sent = Some(at);
        let not_asked = open.not_asked;
        self.facts.not_asked += u64::from(not_asked);
        self.meet(request);
    }

    /// Nobody was asked for the stamp of this request.
    pub fn not_asked(&mut self, request: u64) {
        let open = self.entry(request);
        let counts = !open.not_asked && open.sent.is_some();
        open.not_asked = true;
        self.facts.not_asked += u64::from(counts);
    }

    /// Its stamp came, by the counter.
    pub fn came(&mut self, request: u64, at: Ticks) {
        let open = self.entry(request);
        if open.came.is_some() {
            self.facts.unknown += 1;
            return;
        }
        open.came = Some(at);
        self.meet(request);
    }

    /// What there is of a request; the oldest one goes where there is no room.
    fn entry(&mut self, request: u64) -> &mut Open {
        if self.open.len() >= MOST_OPEN
            && !self.open.contains_key(&request)
            && let Some((_, oldest)) = self.open.pop_first()
        {
            self.facts.unknown += u64::from(oldest.is_nobodys());
        }
        self.open.entry(request).or_default()
    }

    fn meet(&mut self, request: u64) {
        let Some(Open { sent: Some(sent), came: Some(came), .. }) =
            self.open.get(&request).copied()
        else {
            return;
        };
        self.open.remove(&request);
        self.facts.came += 1;
        let early = sent.since(came);
        if early.0 > self.apart.0 {
            self.facts.contradicted += 1;
            return;
        }
        self.facts.unordered += u64::from(early.0 > 0);
        self.values.record(came.since(sent).to_nanos(self.rate).0);
    }

    /// Puts what came of it beside what was composed of the flow of this name: `from` and `to` say in
    /// words what the distance is.
    pub fn keep(mut self, composed: &mut Composed, flow: &str, (from, to): (&str, &str)) {
        let nobodys = self.open.values().filter(|open| open.is_nobodys()).count();
        let facts = &mut self.facts;
        facts.unknown += nobodys as u64;
        facts.missing = facts.requests.saturating_sub(facts.came + facts.not_asked);
        let value = |percent| self.values.value_at(percent).map(Nanos);
        (facts.median, facts.p99) = (value(50.0), value(99.0));
        facts.most = self.values.max().map(Nanos);
        if !self.values.is_empty() {
            let name = format!("{flow}-{}", facts.stamp.replace(' ', "-"));
            let label = format!("{from} to {to}, {flow}");
            facts.series = Some(name.clone());
            composed.histograms.push((name.clone(), label.clone(), self.values));
            composed.identities.push(Identity {
                name,
                label,
                paper_row: None,
                from: from.to_owned(),
                to: to.to_owned(),
                clock: format!("{}; {}", Source::Own.clock(), Source::Software.clock()),
                definition: Definition::PartOfRequest,
                resolution_ns: facts.resolution.0 as f64,
                lost: 0,
            });
        }
        composed.breakdown.asides.push(self.facts);
    }
}

impl Open {
    /// Is it a stamp of a request that nobody sent?
    fn is_nobodys(self) -> bool {
        self.sent.is_none() && self.came.is_some()
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::breakdown::{Part, Point, Station};

    use super::*;
    use crate::compose::{Composer, Settings};

    /// A tick is half a nanosecond; stamps may be 50 ns off.
    const RATE: Hertz = Hertz(2e9);

    fn asides() -> Asides {
        Asides::new("tx ack", RATE, &Bounds::default().with(Source::Software, Nanos(1), Nanos(49)))
    }

    fn kept(asides: Asides) -> Composed {
        let whole = Part { from: Point::there(Station::Sent), to: Point::back(Station::Read) };
        let composer = Composer::new(Settings {
            rate: RATE,
            whole,
            bounds: Bounds::default(),
            expected: Vec::new(),
            slow_percent: 99.9,
            slowest: 1,
            name: "rtt".to_owned(),
        });
        let mut whole = composer.finish();
        asides.keep(&mut whole, "rtt", ("sent", "acknowledged"));
        whole
    }

    #[test]
    fn each_request_has_one_distance_to_its_stamp_whichever_of_both_comes_first() {
        let mut all = asides();
        for request in 0..10_u64 {
            let sent = Ticks(1_000_000 * request + 500);
            // Planted: 3 us and 10 ns more each.
            let came = Ticks(sent.0 + 6_000 + 20 * request);
            if request % 2 == 0 {
                all.sent(request, sent);
                all.came(request, came);
            } else {
                all.came(request, came);
                all.sent(request, sent);
            }
        }
        let composed = kept(all);
        let [of] = &composed.breakdown.asides[..] else { panic!("{composed:?}") };
        assert_eq!((of.requests, of.came, of.missing, of.unknown), (10, 10, 0, 0));
        assert_eq!((of.unordered, of.contradicted), (0, 0));
        let median = of.median.expect("ten came").0;
        assert!((3_030..=3_060).contains(&median), "{median}");
        assert_eq!((of.resolution, of.bound), (Nanos(1), Nanos(49)));
        // The series is the flow's own, and has as many samples.
        assert_eq!(of.series.as_deref(), Some("rtt-tx-ack"));
        assert!(composed.breakdown.has_series("rtt-tx-ack"));
        assert_eq!(composed.histograms[0].2.len(), 10);
        assert_eq!(composed.identities[0].to, "acknowledged");
    }

    #[test]
    fn what_never_came_is_nobodys_or_lies_before_its_sending_is_counted() {
        let mut all = asides();
        for request in 0..6 {
            all.sent(request, Ticks(10_000 * (request + 1)));
        }
        // Within what readings and stamps may be off; by more; a second one; of nobody.
        all.came(0, Ticks(10_000 - 90));
        all.came(1, Ticks(20_000 - 400));
        all.came(2, Ticks(30_000 + 4_000));
        all.came(2, Ticks(30_000 + 4_000));
        all.came(77, Ticks(1));
        let composed = kept(all);
        let of = &composed.breakdown.asides[0];
        assert_eq!((of.requests, of.came, of.missing), (6, 3, 3));
        assert_eq!((of.unknown, of.unordered, of.contradicted), (2, 1, 1));
        assert_eq!(composed.histograms[0].2.len(), 2);
        let none = kept(asides());
        assert_eq!((none.breakdown.asides[0].series.as_ref(), none.histograms.len()), (None, 0));
    }

    #[test]
    fn what_was_not_asked_for_is_not_missing() {
        let mut all = asides();
        for request in 0..6 {
            if request < 2 {
                all.not_asked(request);
            }
            all.sent(request, Ticks(10_000 * (request + 1)));
        }
        all.not_asked(2);
        all.not_asked(2);
        all.came(3, Ticks(40_000 + 4_000));
        // Of a request that was never sent.
        all.not_asked(99);
        let composed = kept(all);
        let of = &composed.breakdown.asides[0];
        assert_eq!((of.requests, of.came, of.missing, of.not_asked), (6, 1, 2, 3));
        assert_eq!((of.unknown, of.came + of.missing + of.not_asked), (0, of.requests));
    }

    #[test]
    fn a_bound_that_is_renewed_counts_from_then_on_and_is_what_is_said() {
        let mut all = asides();
        // 100 ns early: more than 50 ns, and less than 250.
        for request in 0..2 {
            all.sent(request, Ticks(10_000 * (request + 1)));
        }
        all.came(0, Ticks(10_000 - 200));
        all.sure(&Bounds::default().with(Source::Software, Nanos(2), Nanos(248)));
        all.came(1, Ticks(20_000 - 200));
        let composed = kept(all);
        let of = &composed.breakdown.asides[0];
        assert_eq!((of.came, of.contradicted, of.unordered), (2, 1, 1));
        assert_eq!((of.resolution, of.bound), (Nanos(2), Nanos(248)));
    }

    #[test]
    fn requests_without_a_stamp_take_no_more_memory_than_there_is_for_them() {
        let mut all = asides();
        let most = MOST_OPEN as u64;
        for request in 0..most + 10 {
            all.sent(request, Ticks(request));
        }
        assert_eq!(all.open.len(), MOST_OPEN);
        all.came(3, Ticks(5));
        all.came(most, Ticks(most + 7));
        let composed = kept(all);
        let of = &composed.breakdown.asides[0];
        assert_eq!((of.requests, of.came, of.missing, of.unknown), (most + 10, 1, most + 9, 1));
    }
}
