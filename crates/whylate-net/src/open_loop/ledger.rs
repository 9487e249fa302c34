//! What became of the requests: three histograms, by interval and in all, and the account.
//!
//! - *service*: actual send to reply
//! - *response*: intended send to reply
//! - *lateness*: intended send to actual send
//!
//! A request that is given up stays in service and response, as a value of which only a lower
//! bound is known.

use whylate_model::{Hertz, Nanos, Ticks};
use whylate_stats::histogram::Histogram;

use super::flight::Request;
use crate::conversation::Scale;

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Actual send to reply.
    pub service: Histogram,
    /// Intended send to reply.
    pub response: Histogram,
    /// Intended send to actual send.
    pub lateness: Histogram,
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
    watch: &'a mut Watch<'a>,
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
    }

    /// No request?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.response.is_empty() && self.service.is_empty()
    }
}

impl<'a> Ledger<'a> {
    /// Measured from `begin` on; `parts` of them have histograms of their own.
    pub(super) fn new(
        rate: Hertz,
        begin: Ticks,
        interval: Nanos,
        parts: usize,
        watch: &'a mut Watch<'a>,
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
            watch,
        }
    }

    /// The reply came.
    #[inline]
    pub(super) fn answered(&mut self, request: Request, replied: Ticks) {
        let service = self.scale.nanos(request.sent, replied);
        let response = self.scale.nanos(request.intended, replied);
        self.record(request, replied, Some(service), response);
    }

    /// No reply came within the timeout.
    pub(super) fn unanswered(&mut self, request: Request, now: Ticks, timeout: Nanos) {
        let late = self.scale.nanos(request.intended, request.sent);
        let response = Nanos(late.0 + timeout.0);
        self.given_up.unanswered += 1;
        lower(&mut self.given_up.service_above, timeout);
        lower(&mut self.given_up.response_above, response);
        self.record(request, now, Some(timeout), response);
    }

    /// It was intended, and the run ended before it could be sent.
    pub(super) fn never_sent(&mut self, intended: Ticks, part: u8, now: Ticks) {
        let late = self.scale.nanos(intended, now);
        self.given_up.never_sent += 1;
        lower(&mut self.given_up.response_above, late);
        lower(&mut self.given_up.lateness_above, late);
        self.record(Request { intended, sent: now, part }, now, None, late);
    }

    #[inline]
    fn record(&mut self, request: Request, now: Ticks, service: Option<Nanos>, response: Nanos) {
        if now >= self.end {
            self.close();
            let index = now.since(self.begin).0 / self.interval_ticks;
            self.index = index;
            let end = (index + 1).saturating_mul(self.interval_ticks);
            self.end = Ticks(self.begin.0.saturating_add(end));
        }
        let lateness = self.scale.nanos(request.intended, request.sent);
        let part = self.parts.get_mut(usize::from(request.part));
        let always = [&mut self.all, &mut self.open];
        for latencies in always.into_iter().chain(part) {
            if let Some(service) = service {
                latencies.service.record(service.0);
            }
            latencies.response.record(response.0);
            latencies.lateness.record(lateness.0);
        }
    }

    /// Closes the interval that is open.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            (self.watch)(self.index, &mut self.open);
        }
    }
}

fn lower(bound: &mut Option<Nanos>, value: Nanos) {
    *bound = Some(bound.map_or(value, |bound| bound.min(value)));
}
