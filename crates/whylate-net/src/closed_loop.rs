//! The closed loop: one request at a time, the next as soon as the reply is there.
//!
//! A named mode, for the papers' request-reply rows. It shows what one request takes on an
//! otherwise idle path; it does not show what a request would take that is sent while another one
//! stalls, because it sends none.
//!
//! A request without a reply within the timeout is a *censored* value: it stays in the histogram
//! at the timeout, and is counted, so that every quantile from [`Outcome::censored_from_rank`] on
//! reads "more than".

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Ticks};
use whylate_port::{Port, PortError, PortFacts};
use whylate_stats::histogram::Histogram;
use whylate_sys::switches::{Switches, thread_switches};
use whylate_threads::ThreadsError;
use whylate_threads::placement::{Placement, Seat};

use crate::conversation::{Conversation, Exchange, Scale};
use crate::error::NetError;
use crate::message::{Cookie, HEADER_BYTES, MAX_BYTES, ReflectorReport};
use crate::sequence::Accounting;

/// A run of ten thousand million requests takes a day at 10 us each.
pub const MAX_REQUESTS: u64 = 10_000_000_000;
/// Thirty days: ten times the longest run the tool is made for.
pub const MAX_DURATION: Nanos = Nanos(30 * 86_400 * 1_000_000_000);
/// Below this a scheduler's tick alone makes a request time out.
pub const MIN_TIMEOUT: Nanos = Nanos(10_000);
/// Above this a lost message holds a run up for minutes.
pub const MAX_TIMEOUT: Nanos = Nanos(60_000_000_000);
/// Name of the client's thread, as `ps -L` shows it.
pub const THREAD_NAME: &str = "client/0";
/// Shorter intervals are taken as this: each has a histogram.
const MIN_INTERVAL: Nanos = Nanos(1_000_000);

/// A closed-loop measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClosedLoop {
    /// Tells this client's messages from any other.
    pub cookie: Cookie,
    /// Size of requests and replies.
    pub bytes: usize,
    /// A request without a reply after this time is censored, and the next one is sent.
    pub timeout: Nanos,
    /// In the end, replies to censored requests are waited for so long.
    pub drain: Nanos,
    /// Requests before the measurement, discarded.
    pub warmup_requests: u64,
    /// Requests measured at most.
    pub requests: u64,
    /// Time measured at most.
    pub duration: Nanos,
    /// Length of the intervals that have a histogram of their own; 1 ms at least.
    pub interval: Nanos,
    /// Frequency of the port's counter.
    pub rate: Hertz,
}

/// What a closed loop leaves behind. Latencies in nanoseconds.
#[derive(Debug)]
pub struct Outcome {
    /// Service time: actual send to reply. Censored requests are in it at the timeout.
    pub service: Histogram,
    /// Requests without a reply within the timeout.
    pub censored: u64,
    /// Requests that were waiting for their reply when the run was stopped: in no histogram.
    pub abandoned: u64,
    /// Requests after which the thread was on another CPU than the one it was pinned to.
    pub elsewhere: u64,
    /// What became of every request and every message.
    pub accounting: Accounting,
    /// From a reply to the next send: what recording a sample and making the next message cost.
    pub turnaround: Histogram,
    /// The first measured send; none when nothing was sent.
    pub started: Option<Ticks>,
    /// The last reply or timeout.
    pub ended: Option<Ticks>,
    /// Why the measurement ended.
    pub why: Ended,
    /// The timeout of this run.
    pub timeout: Nanos,
    /// The port.
    pub port: PortFacts,
    /// The reflector's own account, where its farewell arrived.
    pub reflector: Option<ReflectorReport>,
}

/// Why a measurement ended.
#[derive(Debug)]
pub enum Ended {
    /// All requests were made.
    Requests,
    /// The time was up.
    Duration,
    /// The stop flag was set.
    Stopped,
    /// The port failed, or the reflector's process died; what was measured before is good.
    Failed(PortError),
}

/// One interval of a run, by the instants of sending.
#[derive(Debug)]
pub struct Interval {
    /// Number since the first measured send, from 0. An interval without a send is left out.
    pub index: u64,
    /// Service time, censored requests at the timeout.
    pub service: Histogram,
    /// Requests without a reply within the timeout.
    pub censored: u64,
}

/// A measurement on a thread of its own.
#[derive(Debug)]
pub struct Placed {
    /// What was measured.
    pub outcome: Outcome,
    /// Where and how the thread ran.
    pub seat: Seat,
    /// Its switches: with a blocking port one voluntary switch per request is the rule.
    pub switches: Switches,
    /// What a reader must know before trusting the outcome.
    pub warnings: Vec<Warning>,
}

impl ClosedLoop {
    /// One million requests of 64 bytes in ten seconds at most, after a thousand for warm-up; a
    /// request times out after a second.
    #[must_use]
    pub fn new(rate: Hertz) -> Self {
        Self {
            cookie: Cookie::fresh(),
            bytes: 64,
            timeout: Nanos(1_000_000_000),
            drain: Nanos(1_000_000_000),
            warmup_requests: 1_000,
            requests: 1_000_000,
            duration: Nanos(10_000_000_000),
            interval: Nanos::SECOND,
            rate,
        }
    }

    /// Refuses settings that cannot be measured.
    pub fn check(&self) -> Result<(), NetError> {
        if !(HEADER_BYTES..=MAX_BYTES).contains(&self.bytes) {
            return Err(NetError::Size(self.bytes));
        }
        for limit in [self.timeout, self.drain.max(MIN_TIMEOUT)] {
            if !(MIN_TIMEOUT..=MAX_TIMEOUT).contains(&limit) {
                return Err(NetError::Timeout(limit));
            }
        }
        let (requests, duration) = (self.requests, self.duration);
        let within = (1..=MAX_REQUESTS).contains(&requests)
            && self.warmup_requests <= MAX_REQUESTS
            && duration.0 > 0
            && duration <= MAX_DURATION;
        if within { Ok(()) } else { Err(NetError::Length { requests, duration }) }
    }

    /// Measures on a thread of its own, placed as asked. `watch` is called on that thread, between
    /// two requests.
    pub fn run_placed<P: Port + ?Sized>(
        &self,
        placement: Placement,
        port: &mut P,
        stop: &AtomicBool,
        watch: &mut (dyn FnMut(Interval) + Send),
    ) -> Result<Placed, NetError> {
        let body = || {
            let (seat, mut warnings) = placement.settle()?;
            let before = thread_switches();
            let outcome = self.run_on(seat.cpu, port, stop, watch)?;
            let after = thread_switches();
            let switches = Switches {
                voluntary: after.voluntary.saturating_sub(before.voluntary),
                involuntary: after.involuntary.saturating_sub(before.involuntary),
            };
            if let (1.., Some(cpu)) = (outcome.elsewhere, seat.cpu) {
                let what = format!(
                    "after {} requests the client pinned to cpu {cpu} was on another cpu",
                    outcome.elsewhere
                );
                warnings.push(Warning::HostChanged { what });
            }
            Ok(Placed { outcome, seat, switches, warnings })
        };
        thread::scope(|scope| {
            let named = thread::Builder::new().name(THREAD_NAME.to_owned());
            let client = named.spawn_scoped(scope, body).map_err(ThreadsError::Spawn)?;
            client.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Measures on the calling thread, until requests or time are used up or `stop` is set. Calls
    /// `watch` with each interval as it closes, between two requests.
    pub fn run<P: Port + ?Sized>(
        &self,
        port: &mut P,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(Interval),
    ) -> Result<Outcome, NetError> {
        self.run_on(None, port, stop, watch)
    }

    /// As [`ClosedLoop::run`], and counts requests after which the thread is not where it was
    /// `pinned` to.
    fn run_on<P: Port + ?Sized>(
        &self,
        pinned: Option<CpuId>,
        port: &mut P,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(Interval),
    ) -> Result<Outcome, NetError> {
        self.check()?;
        let scale = Scale::new(self.rate);
        let facts = port.facts().clone();
        let mut talk = Conversation::new(port, scale, self.cookie, self.bytes);
        let mut record = Record::new(scale, self, pinned);
        let why = if talk.greet(stop)? {
            self.measure(&mut talk, &mut record, stop, watch)
        } else {
            Ended::Stopped
        };
        // A port that failed cannot be drained; what is unanswered stays so.
        let reflector = match why {
            Ended::Failed(_) => None,
            _ => talk.drain(self.drain, stop).ok().and_then(|()| talk.farewell()),
        };
        record.close(watch);
        Ok(Outcome {
            service: record.service,
            censored: record.censored,
            abandoned: record.abandoned,
            elsewhere: record.elsewhere,
            accounting: talk.set().counts(),
            turnaround: record.turnaround,
            started: record.started,
            ended: record.ended,
            why,
            timeout: self.timeout,
            port: facts,
            reflector,
        })
    }

    fn measure<P: Port + ?Sized>(
        &self,
        talk: &mut Conversation<'_, P>,
        record: &mut Record,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(Interval),
    ) -> Ended {
        for sequence in 0..self.warmup_requests {
            match talk.warm(sequence, self.timeout, stop) {
                Ok(Exchange::Stopped) => return Ended::Stopped,
                Ok(_) => (),
                Err(error) => return Ended::Failed(error),
            }
        }
        loop {
            if talk.set().next() == self.requests {
                return Ended::Requests;
            }
            if record.is_over() {
                return Ended::Duration;
            }
            if stop.load(Ordering::Relaxed) {
                return Ended::Stopped;
            }
            record.look_where_we_are();
            let before = talk.set().next();
            match talk.probe(self.timeout, stop) {
                Ok(Exchange::Answered { sent, replied }) => record.answered(sent, replied, watch),
                Ok(Exchange::TimedOut { sent, given_up }) => {
                    record.timed_out(sent, given_up, watch);
                }
                Ok(Exchange::Stopped) => {
                    record.abandoned += 1;
                    return Ended::Stopped;
                }
                Err(error) => {
                    record.abandoned += talk.set().next() - before;
                    return Ended::Failed(error);
                }
            }
        }
    }
}

impl Outcome {
    /// The rank, counted from 1, from which on values are only known to be more than the timeout;
    /// none when every request was answered in time.
    #[must_use]
    pub fn censored_from_rank(&self) -> Option<u64> {
        (self.censored > 0).then(|| self.service.len() - self.censored + 1)
    }

    /// Does every request have its place, in a histogram and in the account?
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let requests = self.service.len() + self.abandoned;
        self.accounting.adds_up() && requests == self.accounting.sent
    }
}

/// What is recorded between two requests.
struct Record {
    scale: Scale,
    timeout: Nanos,
    duration_ticks: u64,
    interval_ticks: u64,
    service: Histogram,
    turnaround: Histogram,
    censored: u64,
    abandoned: u64,
    pinned: Option<CpuId>,
    elsewhere: u64,
    started: Option<Ticks>,
    ended: Option<Ticks>,
    open: Option<(Interval, Ticks)>,
}

impl Record {
    fn new(scale: Scale, settings: &ClosedLoop, pinned: Option<CpuId>) -> Self {
        Self {
            scale,
            timeout: settings.timeout,
            duration_ticks: scale.ticks(settings.duration).0,
            interval_ticks: scale.ticks(settings.interval.max(MIN_INTERVAL)).0.max(1),
            service: Histogram::new(),
            turnaround: Histogram::new(),
            censored: 0,
            abandoned: 0,
            pinned,
            elsewhere: 0,
            started: None,
            ended: None,
            open: None,
        }
    }

    /// Between two requests: a thread that is moved away measures another CPU.
    #[inline]
    fn look_where_we_are(&mut self) {
        if let Some(CpuId(pinned)) = self.pinned {
            let here = rustix::thread::sched_getcpu();
            self.elsewhere += u64::from(here != pinned as usize);
        }
    }

    fn is_over(&self) -> bool {
        let elapsed = self.started.zip(self.ended).map_or(0, |(from, to)| to.since(from).0);
        elapsed >= self.duration_ticks
    }

    #[inline]
    fn answered(&mut self, sent: Ticks, replied: Ticks, watch: &mut dyn FnMut(Interval)) {
        let service = self.scale.nanos(sent, replied);
        self.interval(sent, watch).service.record(service.0);
        self.ended = Some(replied);
    }

    fn timed_out(&mut self, sent: Ticks, given_up: Ticks, watch: &mut dyn FnMut(Interval)) {
        let timeout = self.timeout.0;
        let interval = self.interval(sent, watch);
        interval.service.record(timeout);
        interval.censored += 1;
        self.ended = Some(given_up);
    }

    /// The interval that a request sent at `sent` belongs to.
    #[inline]
    fn interval(&mut self, sent: Ticks, watch: &mut dyn FnMut(Interval)) -> &mut Interval {
        let started = *self.started.get_or_insert(sent);
        if let Some(ended) = self.ended {
            self.turnaround.record(self.scale.nanos(ended, sent).0);
        }
        if self.open.as_ref().is_some_and(|&(_, end)| sent >= end) {
            self.close(watch);
        }
        let length = self.interval_ticks;
        let (interval, _) = self.open.get_or_insert_with(|| {
            let index = sent.since(started).0 / length;
            let end = Ticks(started.0.saturating_add((index + 1).saturating_mul(length)));
            (Interval { index, service: Histogram::new(), censored: 0 }, end)
        });
        interval
    }

    fn close(&mut self, watch: &mut dyn FnMut(Interval)) {
        if let Some((closed, _)) = self.open.take() {
            self.service.add(&closed.service);
            self.censored += closed.censored;
            watch(closed);
        }
    }
}
