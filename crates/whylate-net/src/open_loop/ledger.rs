//! What became of the requests: histograms, by interval and in all, and the account.
//!
//! - *service*: actual send to reply
//! - *response*: intended send to reply
//! - *lateness*: intended send to actual send; once more of those that left while the sender was not
//!   interrupted
//!
//! A request that is given up stays in service and response, as a value of which only a lower
//! bound is known.

use std::time::Duration;

use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::histogram::Histogram;

use super::Tell;
use super::flight::Request;
use super::settled::Settled;
use crate::conversation::Scale;

/// Whoever takes in what is told of requests is waited for so often, and so long, when all is over.
const MOST_WAITS: u32 = 1_000;
const WAIT: Duration = Duration::from_millis(1);

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Actual send to reply.
    pub service: Histogram,
    /// Intended send to reply.
    pub response: Histogram,
    /// Intended send to actual send.
    pub lateness: Histogram,
    /// The same without those that left late because the sender was interrupted.
    pub uninterrupted: Histogram,
}

/// Values of which only a lower bound is known: they are in the histograms at that bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenUp {
    /// Requests that were sent and given up.
    pub unanswered: u64,
    /// Requests that were intended and never sent.
    pub never_sent: u64,
    /// The smallest lower bound among the services.
    pub service_above: Option<Nanos>,
    /// The smallest lower bound among the responses.
    pub response_above: Option<Nanos>,
    /// The smallest lower bound among the latenesses: of requests that were never sent.
    pub lateness_above: Option<Nanos>,
    /// The same among those that no interruption of the sender explains.
    pub uninterrupted_above: Option<Nanos>,
}

/// Is called with each interval as it closes, on the measuring thread: its number since the
/// beginning, from 0, and its requests, by the instants at which they were settled. Leaves empty
/// histograms behind, which are those of the next interval: nothing need be allocated. An interval
/// without a request is left out.
pub type Watch<'a> = dyn FnMut(u64, &mut Latencies) + Send + 'a;

/// Fills the histograms.
pub(super) struct Ledger<'a> {
    scale: Scale,
    begin: Ticks,
    interval_ticks: u64,
    open: Latencies,
    index: u64,
    end: Ticks,
    pub(super) all: Latencies,
    pub(super) parts: Vec<Latencies>,
    pub(super) given_up: GivenUp,
    /// Requests that are not among the uninterrupted ones.
    pub(super) interrupted: u64,
    /// Nothing asks for a reply.
    pub(super) one_way: bool,
    /// Nothing is intended.
    pub(super) closed: bool,
    pub(super) tell: Tell<'a>,
}

/// Tells which requests that are settled at one instant count alike: they are as late as far as the
/// histograms know, and interruptions explain all or none of them.
pub(super) struct Kinds {
    scale: Scale,
    /// For its bins.
    bins: Histogram,
}

impl Kinds {
    pub(super) fn of(&self, request: &Request) -> (bool, u64) {
        let late = self.scale.nanos(request.intended, request.sent);
        (request.interrupted, self.bins.bin_of(late.0))
    }
}

impl Latencies {
    /// Empty histograms whose memory has been touched.
    #[must_use]
    pub fn touched() -> Self {
        let mut fresh = Self::default();
        fresh.clear();
        fresh
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.service.clear();
        self.response.clear();
        self.lateness.clear();
        self.uninterrupted.clear();
    }

    /// No request?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.response.is_empty() && self.service.is_empty() && self.lateness.is_empty()
    }
}

impl<'a> Ledger<'a> {
    /// Measured from `begin` on; `parts` of them have histograms of their own.
    pub(super) fn new(
        rate: Hertz,
        begin: Ticks,
        interval: Nanos,
        parts: usize,
        tell: Tell<'a>,
    ) -> Self {
        let scale = Scale::new(rate);
        let interval_ticks = scale.ticks(interval).0.max(1);
        Self {
            scale,
            begin,
            interval_ticks,
            open: Latencies::touched(),
            index: 0,
            end: Ticks(begin.0.saturating_add(interval_ticks)),
            all: Latencies::touched(),
            parts: (0..parts).map(|_| Latencies::touched()).collect(),
            given_up: GivenUp::default(),
            interrupted: 0,
            one_way: false,
            closed: false,
            tell,
        }
    }

    /// The reply came.
    #[inline]
    pub(super) fn answered(&mut self, number: u64, request: Request, replied: Ticks) {
        let service = self.scale.nanos(request.sent, replied);
        let response = self.scale.nanos(request.intended, replied);
        self.record(request, replied, Some(service), Some(response));
        self.settled(Some(number), request, replied, true);
    }

    /// No reply came within the timeout.
    pub(super) fn unanswered(&mut self, number: u64, request: Request, now: Ticks, timeout: Nanos) {
        let late = self.scale.nanos(request.intended, request.sent);
        let response = Nanos(late.0 + timeout.0);
        self.given_up.unanswered += 1;
        lower(&mut self.given_up.service_above, timeout);
        lower(&mut self.given_up.response_above, response);
        self.record(request, now, Some(timeout), Some(response));
        self.settled(Some(number), request, now, false);
    }

    /// So many were intended, from the first to the last of these, and the run ended before they could be
    /// sent: then. They are of one kind.
    pub(super) fn never_sent(&mut self, [first, last]: [Request; 2], count: u64) {
        let now = last.sent;
        let late = self.scale.nanos(last.intended, now);
        self.given_up.never_sent += count;
        self.late_above(&last, late);
        let asks = !self.one_way;
        if asks {
            lower(&mut self.given_up.response_above, late);
        }
        // What lies between both ends lies in the same bin, halfway in the mean.
        let apart = last.intended.since(first.intended).0 / 2;
        let middle = Request { intended: Ticks(first.intended.0 + apart), ..first };
        let ends = [(first, 1), (middle, count.saturating_sub(2)), (last, u64::from(count > 1))];
        for (request, count) in ends {
            let late = self.scale.nanos(request.intended, now);
            self.record_many((request, count), now, None, asks.then_some(late));
        }
    }

    /// Tells whoever is told each request of those that were never sent, as long as there is room: it is
    /// waited for, but not for long. Gives how many were told.
    pub(super) fn tell_never_sent(&mut self, requests: impl Iterator<Item = Request>) -> u64 {
        let (mut told, mut waits) = (0, 0);
        let Some(ring) = &mut self.tell.requests else { return 0 };
        for Request { intended, sent: at, .. } in requests {
            let settled = Settled { number: None, intended, sent: None, at, answered: false };
            while !ring.offer(settled) {
                if waits == MOST_WAITS {
                    return told;
                }
                waits += 1;
                std::thread::sleep(WAIT);
            }
            told += 1;
        }
        told
    }

    /// So many requests more found no room.
    pub(super) fn untold(&mut self, count: u64) {
        if let Some(ring) = &mut self.tell.requests {
            ring.missed += count;
        }
    }

    /// Which requests count alike.
    pub(super) fn kinds(&self) -> Kinds {
        Kinds { scale: self.scale, bins: Histogram::new() }
    }

    /// The kernel did not take it: it never left, and so has no service time. How late it is known to be
    /// is what it was, and as long as a reply would have been waited for.
    pub(super) fn refused(&mut self, number: u64, request: Request, now: Ticks, timeout: Nanos) {
        let given_up = request.sent.max(now) + self.scale.ticks(timeout);
        let late = self.scale.nanos(request.intended, given_up);
        let asks = !self.one_way && !self.closed;
        if !self.closed {
            self.late_above(&request, late);
        }
        if asks {
            lower(&mut self.given_up.response_above, late);
        }
        let never = Request { sent: given_up, ..request };
        self.record(never, now, None, asks.then_some(late));
        if let Some(requests) = &mut self.tell.requests {
            let (number, intended) = (Some(number), request.intended);
            requests.push(Settled { number, intended, sent: None, at: now, answered: false });
        }
    }

    /// Of a lateness only this lower bound is known.
    fn late_above(&mut self, request: &Request, late: Nanos) {
        lower(&mut self.given_up.lateness_above, late);
        if !request.interrupted {
            lower(&mut self.given_up.uninterrupted_above, late);
        }
    }

    /// The calling thread is one of the client's.
    pub(super) fn thread(&mut self, at: Ticks) {
        if let Some(stalls) = &mut self.tell.stalls {
            stalls.thread(at);
        }
    }

    /// The spinning client was interrupted.
    #[cold]
    pub(super) fn stall(&mut self, from: Ticks, to: Ticks) {
        if let Some(stalls) = &mut self.tell.stalls {
            stalls.stall(from, to);
        }
    }

    /// Every interruption before `now` has been told; turns that look, and that send, may take so long.
    #[inline]
    pub(super) fn told_until(&mut self, now: Ticks, limits: [TicksDelta; 2]) {
        if let Some(stalls) = &mut self.tell.stalls {
            stalls.told_until(now, limits);
        }
    }

    #[inline]
    fn settled(&mut self, number: Option<u64>, request: Request, at: Ticks, answered: bool) {
        let Request { intended, sent, .. } = request;
        if let Some(requests) = &mut self.tell.requests {
            let sent = number.map(|_| sent);
            requests.push(Settled { number, intended, sent, at, answered });
        }
    }

    /// It left, and asks for no reply.
    #[inline]
    pub(super) fn left(&mut self, number: u64, request: Request) {
        self.record(request, request.sent, None, None);
        self.settled(Some(number), request, request.sent, false);
    }

    #[inline]
    fn record(
        &mut self,
        request: Request,
        now: Ticks,
        service: Option<Nanos>,
        response: Option<Nanos>,
    ) {
        self.record_many((request, 1), now, service, response);
    }

    #[inline]
    fn record_many(
        &mut self,
        (request, count): (Request, u64),
        now: Ticks,
        service: Option<Nanos>,
        response: Option<Nanos>,
    ) {
        if now >= self.end {
            self.close();
            let index = now.since(self.begin).0 / self.interval_ticks;
            self.index = index;
            let end = (index + 1).saturating_mul(self.interval_ticks);
            self.end = Ticks(self.begin.0.saturating_add(end));
        }
        let lateness = self.scale.nanos(request.intended, request.sent);
        self.interrupted += if request.interrupted && !self.closed { count } else { 0 };
        let part = self.parts.get_mut(usize::from(request.part));
        let always = [&mut self.all, &mut self.open];
        for latencies in always.into_iter().chain(part) {
            if let Some(service) = service {
                latencies.service.record_n(service.0, count);
            }
            if self.closed {
                continue;
            }
            if let Some(response) = response {
                latencies.response.record_n(response.0, count);
            }
            latencies.lateness.record_n(lateness.0, count);
            if !request.interrupted {
                latencies.uninterrupted.record_n(lateness.0, count);
            }
        }
    }

    /// Closes the interval that is open.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            (self.tell.intervals)(self.index, &mut self.open);
        }
    }
}

fn lower(bound: &mut Option<Nanos>, value: Nanos) {
    *bound = Some(bound.map_or(value, |bound| bound.min(value)));
}
