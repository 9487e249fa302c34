//! One client's side of a conversation: greeting, requests, drain, farewell.

use std::sync::atomic::{AtomicBool, Ordering};

use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_port::{Port, PortError, Received};

use crate::error::{NetError, other_protocol};
use crate::message::{Cookie, FAREWELL_BYTES, Header, Kind, ReflectorReport};
use crate::protocol::raw;
use crate::sequence::{Arrival, SequenceSet};

/// A wait is cut into pieces of this length, so that a stop is noticed.
const LOOK: Nanos = Nanos(100_000_000);
/// A greeting is repeated this often while a reflector starts.
const GREET_EVERY: Nanos = Nanos(20_000_000);
/// A reflector that has not answered after this time will not.
const GREET_LIMIT: Nanos = Nanos(5_000_000_000);
/// An end is sent this often, each time waiting for [`LOOK`].
const ENDS: u32 = 3;
/// Messages read in a drain at most: a flood must not keep it from ending.
const DRAIN_MESSAGES: u32 = 1 << 20;
/// For waits that go on while the run is being stopped.
static NEVER: AtomicBool = AtomicBool::new(false);

/// One request and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// The reply came in time.
    Answered { sent: Ticks, replied: Ticks },
    /// No reply within the timeout.
    TimedOut { sent: Ticks, given_up: Ticks },
    /// The run is to stop, and the reply was not there yet.
    Stopped,
}

/// Converts this host's ticks to nanoseconds and back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    ns_per_tick: f64,
}

impl Scale {
    pub(crate) fn new(rate: Hertz) -> Self {
        Self { ns_per_tick: 1e9 / rate.0 }
    }

    #[inline]
    pub(crate) fn nanos(self, from: Ticks, to: Ticks) -> Nanos {
        Nanos((to.since(from).0 as f64 * self.ns_per_tick).round() as u64)
    }

    pub(crate) fn ticks(self, length: Nanos) -> TicksDelta {
        TicksDelta((length.0 as f64 / self.ns_per_tick).round() as u64)
    }
}

/// A conversation over a port. Whatever arrives and is not what is being waited for is accounted.
pub(crate) struct Conversation<'a, P: ?Sized> {
    port: &'a mut P,
    scale: Scale,
    cookie: Cookie,
    request: Vec<u8>,
    incoming: Vec<u8>,
    set: SequenceSet,
}

impl<'a, P: Port + ?Sized> Conversation<'a, P> {
    pub(crate) fn new(port: &'a mut P, scale: Scale, cookie: Cookie, bytes: usize) -> Self {
        let (request, incoming) = (vec![0; bytes], vec![0; bytes.max(FAREWELL_BYTES)]);
        Self { port, scale, cookie, request, incoming, set: SequenceSet::default() }
    }

    pub(crate) fn set(&self) -> &SequenceSet {
        &self.set
    }

    /// Waits until a reflector answers; false when the run is to stop before that.
    pub(crate) fn greet(&mut self, stop: &AtomicBool) -> Result<bool, NetError> {
        let mut first = None;
        loop {
            let sent = self.send(Kind::Hello, 0)?;
            let first = *first.get_or_insert(sent);
            match self.wait((Kind::Welcome, 0), sent, GREET_EVERY, stop)? {
                Exchange::Answered { .. } => return Ok(true),
                Exchange::Stopped => return Ok(false),
                Exchange::TimedOut { given_up, .. } => {
                    let limit = self.scale.nanos(first, given_up);
                    if limit >= GREET_LIMIT {
                        let facts = self.port.facts();
                        let (backend, path) = (facts.backend, facts.path.clone());
                        let advice = other_protocol(raw::NAME);
                        return Err(NetError::NoReflector { backend, path, limit, advice });
                    }
                }
            }
        }
    }

    /// Sends one request of the warm-up and waits for its reply.
    pub(crate) fn warm(
        &mut self,
        sequence: u64,
        timeout: Nanos,
        stop: &AtomicBool,
    ) -> Result<Exchange, PortError> {
        let sent = self.send(Kind::Warm, sequence)?;
        self.wait((Kind::WarmReply, sequence), sent, timeout, stop)
    }

    /// Sends the next measured request and waits for its reply.
    #[inline]
    pub(crate) fn probe(
        &mut self,
        timeout: Nanos,
        stop: &AtomicBool,
    ) -> Result<Exchange, PortError> {
        let sequence = self.set.next();
        let sent = self.send(Kind::Probe, sequence)?;
        self.set.sent();
        let waited = self.wait((Kind::Reply, sequence), sent, timeout, stop)?;
        // A port may wait a little longer than its limit; a reply that came then is not in time.
        match waited {
            Exchange::Answered { sent, replied } if self.scale.nanos(sent, replied) > timeout => {
                Ok(Exchange::TimedOut { sent, given_up: replied })
            }
            other => Ok(other),
        }
    }

    /// Reads what is still under way, for `limit` at most while requests are unanswered. After it,
    /// answers are late.
    pub(crate) fn drain(&mut self, limit: Nanos, stop: &AtomicBool) -> Result<(), PortError> {
        let mut began = None;
        let mut passed = Nanos(0);
        for _ in 0..DRAIN_MESSAGES {
            let waiting = self.set.unanswered() > 0 && !stop.load(Ordering::Relaxed);
            let left = if waiting { limit.0.saturating_sub(passed.0) } else { 0 };
            let look = Nanos(if began.is_none() { 0 } else { left.min(LOOK.0) });
            // The first look takes no time and tells when the drain began.
            let at = match self.port.receive(&mut self.incoming, look)? {
                Received::Nothing { .. } if left == 0 => break,
                Received::Nothing { at } => at,
                Received::Message { length, at } => {
                    self.take(length, None);
                    at
                }
            };
            passed = self.scale.nanos(*began.get_or_insert(at), at);
        }
        Ok(())
    }

    /// Tells the reflector that this is the end, and asks for its account. Answers to requests
    /// that come meanwhile are late.
    pub(crate) fn farewell(&mut self) -> Option<ReflectorReport> {
        self.set.drained();
        // Long enough for the account: a server does not answer with more than it got.
        let mut end = vec![0; self.request.len().max(FAREWELL_BYTES)];
        Header { kind: Kind::End, cookie: self.cookie, sequence: 0 }.write(&mut end);
        for _ in 0..ENDS {
            let sent = self.port.send(&end).ok()?;
            let waited = self.wait((Kind::Farewell, 0), sent, LOOK, &NEVER).ok()?;
            if matches!(waited, Exchange::Answered { .. }) {
                return ReflectorReport::parse(&self.incoming);
            }
        }
        None
    }

    #[inline]
    fn send(&mut self, kind: Kind, sequence: u64) -> Result<Ticks, PortError> {
        Header { kind, cookie: self.cookie, sequence }.write(&mut self.request);
        self.port.send(&self.request)
    }

    /// Waits until the awaited answer comes, for `timeout` after `sent` at most.
    #[inline]
    fn wait(
        &mut self,
        awaited: (Kind, u64),
        sent: Ticks,
        timeout: Nanos,
        stop: &AtomicBool,
    ) -> Result<Exchange, PortError> {
        let mut left = timeout;
        loop {
            let now = match self.port.receive(&mut self.incoming, left.min(LOOK))? {
                Received::Message { length, at } => {
                    if self.take(length, Some(awaited)) {
                        return Ok(Exchange::Answered { sent, replied: at });
                    }
                    at
                }
                Received::Nothing { at } => at,
            };
            let passed = self.scale.nanos(sent, now);
            if passed >= timeout {
                return Ok(Exchange::TimedOut { sent, given_up: now });
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Exchange::Stopped);
            }
            left = Nanos(timeout.0 - passed.0);
        }
    }

    /// Accounts for the message that has just come; says whether it is the awaited one.
    #[inline]
    fn take(&mut self, length: usize, awaited: Option<(Kind, u64)>) -> bool {
        let Some(header) = self.ours(length) else {
            self.set.foreign();
            return false;
        };
        let is_awaited = awaited == Some((header.kind, header.sequence));
        if header.kind == Kind::Reply {
            return self.set.arrived(header.sequence) == Arrival::First && is_awaited;
        }
        if !is_awaited {
            self.set.unplaced();
        }
        is_awaited
    }

    /// The header of the message that has just come, when it is an answer to this client.
    #[inline]
    fn ours(&self, length: usize) -> Option<Header> {
        let header = Header::parse(self.incoming.get(..length)?)?;
        let expected =
            if header.kind == Kind::Farewell { FAREWELL_BYTES } else { self.request.len() };
        let is_answer = header.kind.answer().is_none();
        (header.cookie == self.cookie && is_answer && length == expected).then_some(header)
    }
}
