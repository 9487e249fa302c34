//! The sending side: what is due, and sending it.

use std::iter::Peekable;

use whylate_model::{Nanos, Ticks};
use whylate_port::{Port, PortError};

use super::OpenLoop;
use super::departures::Departures;
use super::flight::{Flight, Request};
use super::ledger::Ledger;
use super::pacing::Pacing;
use crate::conversation::Scale;
use crate::protocol::{Phase, Protocol};
use crate::schedule::{Alike, Due, Pace, Picos, Plan, Schedule, gather};

/// How sending went.
pub(super) enum Sending {
    /// It left.
    Left,
    /// The kernel did not take it, in time or at this length: it is lost, and counted.
    Refused,
    /// The port failed.
    Failed(PortError),
}

/// Sends requests of one phase by one schedule.
pub(super) struct Sender<'a> {
    protocol: &'a dyn Protocol,
    phase: Phase,
    flight: &'a Flight,
    most_under_way: u64,
    one_way: bool,
    schedule: Peekable<Schedule>,
    pace: Pace,
    scale: Scale,
    /// Nothing is intended: the schedule tells its beginning alone.
    closed: bool,
    /// Instants at or after this one belong to no request any more.
    end: Ticks,
    length: Nanos,
    request: Vec<u8>,
    number: u64,
    pub(super) departures: Departures,
    pub(super) pacing: Pacing,
}

impl<'a> Sender<'a> {
    /// Requests of `phase`, due from `begin` on for the time of `length`.
    pub(super) fn new(
        settings: &OpenLoop,
        (protocol, phase): (&'a dyn Protocol, Phase),
        flight: &'a Flight,
        (begin, length): (Ticks, Nanos),
        pacing: Pacing,
    ) -> Self {
        let scale = Scale::new(settings.rate);
        let mut request = vec![0; settings.bytes];
        protocol.prepare(&mut request);
        Self {
            protocol,
            phase,
            flight,
            most_under_way: settings.most_under_way.unwrap_or(u64::MAX),
            one_way: settings.one_way,
            schedule: settings.plan.begin().peekable(),
            pace: Pace::new(begin, settings.rate),
            scale,
            closed: settings.plan.is_closed(),
            end: Ticks(begin.0.saturating_add(scale.ticks(length).0)),
            length,
            request,
            number: 0,
            departures: Departures::new(&settings.plan),
            pacing,
        }
    }

    /// Does the next request wait for the reply?
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The end of the time to send in.
    pub(super) fn end(&self) -> Ticks {
        self.end
    }

    /// When the next request is due; none when the schedule is over.
    #[inline]
    pub(super) fn due(&mut self) -> Option<Ticks> {
        let due = self.next_due()?;
        Some(self.pace.ticks(due.after))
    }

    #[inline]
    fn next_due(&mut self) -> Option<Due> {
        let length_ps = self.length.0.saturating_mul(1_000);
        self.schedule.peek().copied().filter(|due| due.after.0 < length_ps)
    }

    /// Is there room for one more under way?
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.flight.has_room() && self.flight.under_way() < self.most_under_way
    }

    /// Sends the request that is due; `now` has just been read.
    #[inline]
    pub(super) fn send<P: Port + ?Sized>(&mut self, port: &mut P, now: Ticks) -> Sending {
        let Some(due) = self.schedule.next() else { return Sending::Left };
        self.departures.intended += 1;
        let intended = self.pace.ticks(due.after);
        let interrupted = self.pacing.explains(intended, now);
        self.depart(port, Request { intended, sent: now, part: due.part, interrupted })
    }

    /// Sends a request that nobody intended, at `now`, which has just been read.
    #[inline]
    pub(super) fn send_now<P: Port + ?Sized>(&mut self, port: &mut P, now: Ticks) -> Sending {
        self.depart(port, Request { intended: now, sent: now, part: 0, interrupted: false })
    }

    #[inline]
    fn depart<P: Port + ?Sized>(&mut self, port: &mut P, request: Request) -> Sending {
        self.protocol.number(self.phase, self.number, &mut self.request);
        if self.one_way {
            self.protocol.one_way(&mut self.request);
        }
        self.number += 1;
        self.flight.take_off(request);
        let sent = port.send(&self.request);
        let refused = sent.as_ref().is_err_and(|error| self.is_refusal(error));
        if refused && self.flight.refused() {
            self.departures.refused(sent.err());
            return Sending::Refused;
        }
        self.departures.left(request.sent, request.sent < self.end, self.scale);
        match sent {
            Err(error) if !refused => Sending::Failed(error),
            _ => Sending::Left,
        }
    }

    /// Is it about this message alone? A path that has become too narrow may become wide again; a
    /// closed loop, which waits for nothing else, would send to it without end.
    fn is_refusal(&self, error: &PortError) -> bool {
        match error {
            PortError::SendTimedOut { .. } => true,
            PortError::MtuTooSmall { .. } => !self.closed,
            _ => false,
        }
    }

    /// Settles what is intended until the schedule's end, and has not been sent at `now`.
    pub(super) fn rest(&mut self, plan: &Plan, now: Ticks, ledger: &mut Ledger<'_>) {
        if self.closed {
            return;
        }
        let (pace, pacing) = (self.pace, self.pacing);
        let request = |due: Due| {
            let intended = pace.ticks(due.after);
            let interrupted = pacing.explains(intended, now);
            Request { intended, sent: now, part: due.part, interrupted }
        };
        let end = Picos(self.length.0.saturating_mul(1_000));
        let each = || self.schedule.clone().take_while(|due| due.after < end);
        let told = ledger.tell_never_sent(each().map(request));
        let kinds = ledger.kinds();
        let kind = |due| kinds.of(&request(due));
        let mut count = 0;
        let settle = |run: Alike| {
            count += run.count;
            ledger.never_sent([request(run.first), request(run.last)], run.count);
        };
        match plan.begin().beginning_at(self.departures.intended) {
            Some(schedule) => schedule.leap_over(end, kind, settle),
            None => gather(each(), kind, settle),
        }
        self.departures.intended += count;
        ledger.untold(count - told);
    }
}
