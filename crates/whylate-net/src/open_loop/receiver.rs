//! The receiving side: replies, duplicates, what is foreign, and what is given up.

use whylate_model::{Nanos, Ticks};
use whylate_port::{Port, PortError, Received};

use super::anomalies::{Anomalies, Anomaly, KEPT_BYTES, Odd};
use super::flight::{Fate, Flight, Request};
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
    /// Nothing is waited for: what has left is settled.
    pub(super) one_way: bool,
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
    pub(super) anomalies: Anomalies,
    /// A request came back as it had left.
    pub(super) returned: bool,
    /// The version of a message of another version that came.
    pub(super) other_version: Option<u8>,
    /// The measured request that the message received last was the first to answer.
    replied: Option<u64>,
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
            incoming: vec![0; bytes.max(FAREWELL_BYTES).max(KEPT_BYTES)],
            set: SequenceSet::default(),
            ledger,
            account: None,
            anomalies: Anomalies::touched(),
            returned: false,
            other_version: None,
            replied: None,
        }
    }

    /// Waits for one message, for `limit` at most, and accounts for it. Takes the stamps that wait where
    /// many messages have come since they were taken.
    #[inline]
    pub(super) fn look<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
        limit: Nanos,
    ) -> Result<Looked, PortError> {
        match port.receive(&mut self.incoming, limit)? {
            Received::Nothing { .. } => Ok(Looked::Nothing),
            Received::Message { length, at } => {
                let looked = self.take(length, at);
                let answers = self.replied.take();
                if let Some(stamps) = &mut self.ledger.tell.stamps {
                    stamps.received(port, answers)?;
                }
                Ok(looked)
            }
        }
    }

    /// Bytes of a request and of its reply.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Are the kernel's stamps taken?
    #[inline]
    pub(super) fn has_stamps(&self) -> bool {
        self.ledger.tell.stamps.is_some()
    }

    /// Takes the stamps that have come, a bounded number, without waiting; says whether there were any.
    pub(super) fn take_stamps<P: Port + ?Sized>(
        &mut self,
        port: &mut P,
    ) -> Result<bool, PortError> {
        match &mut self.ledger.tell.stamps {
            Some(stamps) => Ok(stamps.take(port)? > 0),
            None => Ok(false),
        }
    }

    /// What is sent from now on is measured.
    pub(super) fn begin_stamps<P: Port + ?Sized>(&mut self, port: &P) {
        if let Some(stamps) = &mut self.ledger.tell.stamps {
            stamps.begin(port);
        }
    }

    /// What is sent from now on is no request, and no stamps are taken any more.
    pub(super) fn end_stamps(&mut self) {
        if let Some(stamps) = &mut self.ledger.tell.stamps {
            stamps.end();
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
                let behind = number < self.set.expected();
                match self.set.arrived(number) {
                    Arrival::First => {
                        self.replied = Some(number);
                        match self.flight.land(number, at) {
                            Some(request) => {
                                self.settle(number, request, at, behind.then_some(length));
                            }
                            None => self.came_late(number, length, at),
                        }
                    }
                    Arrival::Duplicate => self.came_again(number, length, at),
                    Arrival::Unplaced => (),
                }
            }
            Incoming::Reply(Phase::WarmUp, number) => {
                // A straggler of the warm-up settles no measured request.
                if self.waiting.phase == Phase::WarmUp {
                    self.flight.land(number, at);
                }
                self.set.unplaced();
                return Looked::WarmUp;
            }
            Incoming::Account(report) => {
                self.account = Some(report);
                self.set.unplaced();
            }
            Incoming::Beside => self.set.unplaced(),
            Incoming::Foreign => {
                self.set.foreign();
                let message = self.incoming.get(..length).unwrap_or(&self.incoming);
                self.returned |= self.protocol.returned(message, self.bytes);
                self.other_version = self.protocol.other_version(message).or(self.other_version);
                self.keep(Anomaly::new(Odd::Foreign, None, at), length);
            }
        }
        Looked::Message
    }

    /// A reply after the timeout is one of a request that has been given up, even when nobody has
    /// looked until now.
    ///
    /// A reply that came behind one to a later request has its length here.
    #[inline]
    fn settle(&mut self, number: u64, request: Request, at: Ticks, behind: Option<usize>) {
        if at.since(request.sent).0 > self.timeout_ticks {
            self.ledger.unanswered(number, request, at, self.waiting.timeout);
            let length = behind.unwrap_or(self.bytes);
            let late = Anomaly::new(Odd::Late, Some(number), at);
            self.keep(Anomaly { sent: Some(request.sent), ..late }, length);
        } else {
            self.ledger.answered(number, request, at);
            if let Some(length) = behind {
                let reordered = Anomaly::new(Odd::Reordered, Some(number), at);
                let (sent, after) = (Some(request.sent), self.set.expected().checked_sub(1));
                self.keep(Anomaly { sent, after, ..reordered }, length);
            }
        }
    }

    /// The first reply to a request that had been given up.
    #[cold]
    fn came_late(&mut self, number: u64, length: usize, at: Ticks) {
        self.anomalies.found(number);
        let sent = self.flight.fate(number).map(|(sent, _)| sent);
        self.keep(Anomaly { sent, ..Anomaly::new(Odd::Late, Some(number), at) }, length);
    }

    /// Another reply to a request that had been answered.
    #[cold]
    fn came_again(&mut self, number: u64, length: usize, at: Ticks) {
        let fate = self.flight.fate(number);
        let first = fate.and_then(|(_, fate)| match fate {
            Fate::Answered(first) => Some(first),
            Fate::GivenUp => None,
        });
        let sent = fate.map(|(sent, _)| sent);
        let again = Anomaly::new(Odd::Duplicate, Some(number), at);
        self.keep(Anomaly { sent, first, ..again }, length);
    }

    /// Keeps the message that was received last.
    fn keep(&mut self, anomaly: Anomaly, length: usize) {
        // What is longer than any message of ours was cut.
        let message = self.incoming.get(..length).unwrap_or(&self.incoming);
        self.anomalies.keep(anomaly, message, length);
    }

    /// Tells the account what the sending side has sent.
    #[inline]
    fn catch_up(&mut self) {
        let sent = self.flight.sent();
        while self.set.next() < sent {
            self.set.sent();
        }
    }

    /// Gives up what has been under way for longer than the timeout; of what asks for no reply,
    /// settles what has left.
    #[inline]
    pub(super) fn give_up(&mut self, now: Ticks) {
        self.catch_up();
        if self.waiting.one_way {
            while let Some((number, request, refused)) = self.flight.oldest() {
                if refused {
                    self.flight.dismiss(number);
                    self.ledger.refused(number, request, now, self.waiting.timeout);
                } else if self.flight.give_up(number) {
                    self.ledger.left(number, request);
                }
            }
            return;
        }
        while let Some((number, request, refused)) = self.flight.oldest() {
            if refused {
                self.flight.dismiss(number);
                self.ledger.refused(number, request, now, self.waiting.timeout);
                continue;
            }
            let until = request.sent.0.saturating_add(self.timeout_ticks);
            if now.0 <= until {
                return;
            }
            // It may be refused at this very moment: then it is met once more.
            if self.flight.give_up(number) {
                self.ledger.unanswered(number, request, now, self.waiting.timeout);
                let lost = Anomaly::new(Odd::Lost, Some(number), request.sent);
                self.anomalies.keep(Anomaly { sent: Some(request.sent), ..lost }, &[], 0);
            }
        }
    }

    /// Forgets what is under way, for nothing can come any more; how many that are.
    pub(super) fn abandon(&mut self) -> u64 {
        self.catch_up();
        let mut abandoned = 0;
        while let Some((number, request, refused)) = self.flight.oldest() {
            if refused {
                self.flight.dismiss(number);
                self.ledger.refused(number, request, request.sent, self.waiting.timeout);
            } else if self.flight.give_up(number) {
                abandoned += 1;
            }
        }
        abandoned
    }

    /// So long a reply is waited for.
    pub(super) fn timeout(&self) -> Nanos {
        self.waiting.timeout
    }

    /// Is anything under way?
    pub(super) fn is_waiting(&self) -> bool {
        self.flight.oldest().is_some()
    }
}
