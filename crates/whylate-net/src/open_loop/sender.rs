//! The sending side: what is due, and sending it.

use std::iter::Peekable;

use whylate_model::{Nanos, Ticks};
use whylate_port::{Port, PortError};

use super::OpenLoop;
use super::departures::Departures;
use super::flight::{Flight, Request};
use crate::conversation::Scale;
use crate::protocol::{Phase, Protocol};
use crate::schedule::{Due, Pace, Schedule};

/// How sending went.
pub(super) enum Sending {
    /// It left.
    Left,
    /// The kernel did not take it in time: it is lost, and counted.
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
    schedule: Peekable<Schedule>,
    pace: Pace,
    scale: Scale,
    /// Instants at or after this one belong to no request any more.
    end: Ticks,
    length: Nanos,
    request: Vec<u8>,
    number: u64,
    pub(super) departures: Departures,
}

impl<'a> Sender<'a> {
    /// Requests of `phase`, due from `begin` on for the time of `length`.
    pub(super) fn new(
        settings: &OpenLoop,
        protocol: &'a dyn Protocol,
        phase: Phase,
        flight: &'a Flight,
        begin: Ticks,
        length: Nanos,
    ) -> Self {
        let scale = Scale::new(settings.rate);
        let mut request = vec![0; settings.bytes];
        protocol.prepare(&mut request);
        Self {
            protocol,
            phase,
            flight,
            most_under_way: settings.most_under_way.unwrap_or(u64::MAX),
            schedule: settings.plan.begin().peekable(),
            pace: Pace::new(begin, settings.rate),
            scale,
            end: Ticks(begin.0.saturating_add(scale.ticks(length).0)),
            length,
            request,
            number: 0,
            departures: Departures::new(&settings.plan),
        }
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
        let intended = self.pace.ticks(due.after);
        self.protocol.number(self.phase, self.number, &mut self.request);
        self.number += 1;
        self.flight.take_off(Request { intended, sent: now, part: due.part });
        let sent = port.send(&self.request);
        self.departures.intended += 1;
        self.departures.left(now, now < self.end, self.scale);
        match sent {
            Ok(_) => Sending::Left,
            Err(PortError::SendTimedOut { .. }) => {
                self.departures.refused += 1;
                Sending::Refused
            }
            Err(error) => Sending::Failed(error),
        }
    }

    /// What is intended and has not been sent, until the schedule's end.
    pub(super) fn rest(&mut self, mut told: impl FnMut(Ticks, u8)) {
        while let Some(due) = self.next_due() {
            self.schedule.next();
            self.departures.intended += 1;
            told(self.pace.ticks(due.after), due.part);
        }
    }
}
