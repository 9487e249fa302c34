//! The receiving side: replies, duplicates, what is foreign, and what is given up.

use whylate_model::{Nanos, Ticks};
use whylate_port::{Port, PortError, Received};

use super::flight::{Flight, Request};
use super::ledger::Ledger;
use crate::conversation::Scale;
use crate::message::{FAREWELL_BYTES, ReflectorReport};
use crate::protocol::{Incoming, Phase, Protocol};
use crate::sequence::{Arrival, SequenceSet};

/// What a look brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// Nothing.
    Nothing,
    /// A reply of the warm-up.
    WarmUp,
    /// Something else.
    Message,
}

/// What replies are waited for, and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) phase: Phase,
    pub(super) timeout: Nanos,
    pub(super) scale: Scale,
}

/// Takes in what comes to a client.
pub(super) struct Receiver<'a> {
    protocol: &'a dyn Protocol,
    bytes: usize,
    timeout_ticks: u64,
    waiting: Waiting,
    flight: &'a Flight,
    incoming: Vec<u8>,
    pub(super) set: SequenceSet,
    pub(super) ledger: Ledger<'a>,
    pub(super) account: Option<ReflectorReport>,
}

impl<'a> Receiver<'a> {
    pub(super) fn new(
        protocol: &'a dyn Protocol,
        bytes: usize,
        waiting: Waiting,
        flight: &'a Flight,
        ledger: Ledger<'a>,
    ) -> Self {
        Self {
            protocol,
            bytes,
            timeout_ticks: waiting.scale.ticks(waiting.timeout).0,
            waiting,
            flight,
            incoming: vec![0; bytes.max(FAREWELL_BYTES)],
            set: SequenceSet::default(),
            ledger,
            account: None,
        }
    }

    /// Waits for one message, for `limit` at most, and accounts for it.
    #[inline]
    pub(super) fn look<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
        limit: Nanos,
    ) -> Result<Looked, PortError> {
        match port.receive(&mut self.incoming, limit)? {
            Received::Nothing { .. } => Ok(Looked::Nothing),
            Received::Message { length, at } => Ok(self.take(length, at)),
        }
    }

    #[inline]
    fn take(&mut self, length: usize, at: Ticks) -> Looked {
        self.catch_up();
        let message = self.incoming.get(..length);
        let incoming =
            message.map_or(Incoming::Foreign, |message| self.protocol.read(message, self.bytes));
        match incoming {
            Incoming::Reply(Phase::Measured, number) => {
                if self.set.arrived(number) == Arrival::First
                    && let Some(request) = self.flight.land(number)
                {
                    self.settle(request, at);
                }
            }
            Incoming::Reply(Phase::WarmUp, number) => {
                // A straggler of the warm-up settles no measured request.
                if self.waiting.phase == Phase::WarmUp {
                    self.flight.land(number);
                }
                self.set.unplaced();
                return Looked::WarmUp;
            }
            Incoming::Account(report) => {
                self.account = Some(report);
                self.set.unplaced();
            }
            Incoming::Beside => self.set.unplaced(),
            Incoming::Foreign => self.set.foreign(),
        }
        Looked::Message
    }

    /// A reply after the timeout is one of a request that has been given up, even when nobody has
    /// looked until now.
    #[inline]
    fn settle(&mut self, request: Request, at: Ticks) {
        if at.since(request.sent).0 > self.timeout_ticks {
            self.ledger.unanswered(request, at, self.waiting.timeout);
        } else {
            self.ledger.answered(request, at);
        }
    }

    /// Tells the account what the sending side has sent.
    #[inline]
    fn catch_up(&mut self) {
        let sent = self.flight.sent();
        while self.set.next() < sent {
            self.set.sent();
        }
    }

    /// Gives up what has been under way for longer than the timeout.
    #[inline]
    pub(super) fn give_up(&mut self, now: Ticks) {
        self.catch_up();
        while let Some((number, request)) = self.flight.oldest() {
            let until = request.sent.0.saturating_add(self.timeout_ticks);
            if now.0 <= until {
                return;
            }
            self.flight.land(number);
            self.ledger.unanswered(request, now, self.waiting.timeout);
        }
    }

    /// Forgets what is under way, for nothing can come any more; how many that are.
    pub(super) fn abandon(&mut self) -> u64 {
        self.catch_up();
        let mut abandoned = 0;
        while let Some((number, _)) = self.flight.oldest() {
            self.flight.land(number);
            abandoned += 1;
        }
        abandoned
    }

    /// Is anything under way?
    pub(super) fn is_waiting(&self) -> bool {
        self.flight.oldest().is_some()
    }
}
