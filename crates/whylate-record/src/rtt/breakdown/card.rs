//! Stamps of a network card, by its own clock, laid on the counter's timeline.
//!
//! The card's clock is read beside the system's for as long as a flow goes on, and through that it is
//! related to the counter. A stamp waits until the card's clock was read behind it: before that nobody
//! knows whether it was set in between. One that was made about the moment at which the card's clock or
//! the system's was set has no place on the timeline: it is dropped and counted.
//!
//! Does not: set a clock. What the card is told to stamp is put back by a guard.

use std::collections::VecDeque;

use whylate_clock::card::{CardClock, CardRelation};
use whylate_clock::relation::{Relation, Unrelated};
use whylate_host::guard::{Guard, HardwareStamps};
use whylate_host::journal::Journal;
use whylate_model::breakdown::{CardTold, Point, Station};
use whylate_model::warning::Warning;
use whylate_model::{Hertz, Nanos, Ticks};
use whylate_port::{Port, StampKind};
use whylate_sys::hardware_stamps::{self, Receives, Stampable};
use whylate_sys::ptp::PtpClock;

use crate::rtt::ends::{self, Target};
use crate::rtt::request::FlowRequest;

/// How often its clock is read: readings that are closer than 10 ms say nothing of its rate.
const EVERY: Nanos = Nanos(12_000_000);
/// Stamps that wait at most.
const MOST_WAITING: usize = 1 << 16;
/// A stamp that has no place after so many more readings, a tenth of a second, has none.
const MOST_READINGS: u32 = 8;
/// What is kept of the clock's past beyond what was asked for last.
const KEPT: Nanos = Nanos(2_000_000_000);

/// A card that stamps a flow's messages.
#[derive(Debug)]
pub(in crate::rtt) struct Card<K> {
    clock: K,
    relation: CardRelation,
    /// In the order in which they came.
    waiting: VecDeque<(u64, Point, Nanos)>,
    /// So many of them came before the last reading.
    behind: usize,
    /// Readings since the first of them could have been placed.
    readings: u32,
    last: Option<Ticks>,
    /// Dropped: they lie nowhere on the timeline.
    unplaced: u64,
    /// Dropped for want of room.
    crowded: u64,
    guard: Option<HardwareStamps>,
    /// What it was told to stamp, and whether that was put back: known in the end.
    told: Option<CardTold>,
}

impl<K: CardClock> Card<K> {
    pub(super) fn new(clock: K) -> Self {
        Self {
            clock,
            relation: CardRelation::new(),
            waiting: VecDeque::new(),
            behind: 0,
            readings: 0,
            last: None,
            unplaced: 0,
            crowded: 0,
            guard: None,
            told: None,
        }
    }

    /// Takes a stamp by the card's clock.
    pub(super) fn wait(&mut self, request: u64, point: Point, at: Nanos) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((request, point, at));
        } else {
            self.crowded += 1;
        }
    }

    /// Reads its clock where that is due; what came so far was made before.
    pub(super) fn read(&mut self, now: Ticks, rate: Hertz) {
        let due = |last: Ticks| now.since(last).to_nanos(rate) >= EVERY;
        if self.last.is_some_and(|last| !due(last)) {
            return;
        }
        self.last = Some(now);
        let spoilt = self.relation.spoilt();
        let done = self.relation.observe(&mut self.clock);
        // A refusal is counted, and what waits goes on waiting.
        if done.is_ok() && self.relation.spoilt() == spoilt {
            self.readings = if self.behind == 0 { 0 } else { self.readings + 1 };
            self.behind = self.waiting.len();
        }
    }

    /// Hands over the stamps whose ticks are known by now.
    pub(super) fn place(&mut self, system: &Relation, each: &mut dyn FnMut(u64, Point, Ticks)) {
        let mut placed = None;
        while self.behind > 0
            && let Some((request, point, at)) = self.waiting.front().copied()
        {
            match self.relation.ticks_of(at, system) {
                Ok((ticks, _)) => {
                    each(request, point, ticks);
                    placed = Some(at);
                }
                Err(Unrelated::NotYet) if self.readings < MOST_READINGS => break,
                Err(_) => self.unplaced += 1,
            }
            self.waiting.pop_front();
            self.behind -= 1;
            self.readings = 0;
        }
        if let Some((now, _)) = placed.and_then(|at| self.relation.system_of(at).ok()) {
            self.relation.forget_before(Nanos(now.0.saturating_sub(KEPT.0)));
        }
    }

    /// How far its stamps may lie from the counter's timeline at most, by both steps.
    pub(super) fn bound(&self, system: &Relation) -> Nanos {
        Nanos(self.relation.bound().0.saturating_add(system.bound().0))
    }

    /// Nothing more comes: what there is to say of its stamps, and of what it is told to stamp.
    pub(super) fn end(&mut self, flow: &str) -> Vec<Warning> {
        let unplaced = self.unplaced + self.waiting.len() as u64;
        self.waiting.clear();
        let (steps, refusals) = (self.relation.steps(), self.relation.refusals());
        let mut warnings = Vec::new();
        let mut told = |count: u64, what: &str, reason: String| {
            let part = format!("{count} {what} of {flow}");
            warnings.push(Warning::PartLeftOut { part, reason });
        };
        if unplaced > 0 || steps > 0 {
            let reason = format!(
                "the card's clock or the system's was set {steps} times, and what it stamped about \
                 then, or when it was not related to the counter, lies nowhere"
            );
            told(unplaced, "stamps by the card", reason);
        }
        if self.crowded > 0 {
            told(self.crowded, "stamps by the card", "there was no room for them".to_owned());
        }
        if refusals > 0 {
            let reason = "its driver refused them: what is known of it in between is as much wider";
            told(refusals, "readings of the card's clock", reason.to_owned());
        }
        if let Some(guard) = &mut self.guard {
            let (told, changed) = (guard.describe().join("; "), guard.is_changed());
            let left = guard.restore();
            self.told = Some(CardTold { told, changed, put_back: left.is_empty() });
            warnings.extend(left);
        }
        warnings
    }

    /// What it was told to stamp; none before the end, and where nobody told it.
    pub(super) fn told(&self) -> Option<CardTold> {
        self.told.clone()
    }
}

impl Card<PtpClock> {
    /// Has the card of this interface, which this thread's namespace has, stamp; else why not.
    fn open(journal: &Journal, interface: &str) -> Result<(Self, Stamped), String> {
        let refused = |error: &dyn std::fmt::Display| format!("hardware: not used: {error}");
        let guard = HardwareStamps::ask(journal, interface).map_err(|error| refused(&error))?;
        let stamped = Stamped::of(guard.can())?;
        let clock = PtpClock::open(stamped.clock).map_err(|error| refused(&error))?;
        Ok((Self { guard: Some(guard), ..Self::new(clock) }, stamped))
    }
}

/// What a card stamps of ordinary messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamped {
    pub(super) sent: bool,
    pub(super) received: bool,
    /// The number of its clock.
    clock: u32,
}

impl Stamped {
    /// None where it stamps none of them, and why.
    fn of(can: &Stampable) -> Result<Self, String> {
        let Some(clock) = can.clock else {
            return Err(format!(
                "hardware: not present: {} has no clock of its own",
                can.interface
            ));
        };
        if !can.has_hardware() {
            return Err(can.to_string());
        }
        let received = can.hardware_received == Receives::Everything;
        Ok(Self { sent: can.hardware_sent, received, clock })
    }

    /// Kinds of its stamps that come of no ordinary message, and why.
    pub(super) fn missing(self) -> impl Iterator<Item = (StampKind, &'static str)> {
        let sent = (StampKind::Hardware, "the card stamps nothing that it sends");
        let received = (
            StampKind::ReceivedHardware,
            "of what it receives the card stamps messages of PTP at most, and none of these",
        );
        let of = [(self.sent, sent), (self.received, received)];
        of.into_iter().filter_map(|(stamps, kind)| (!stamps).then_some(kind))
    }
}

/// Has the card by which the client's socket goes stamp; else why not.
pub(super) fn of_client(
    flow: &FlowRequest,
    journal: &Journal,
    near: &dyn Port,
) -> Result<(Card<PtpClock>, Stamped), String> {
    let socket = near.facts().socket.as_ref();
    let Some(interface) = socket.and_then(|socket| socket.interface.clone()) else {
        let why = "hardware: not present: no single interface, and so no card's clock";
        return Err(why.to_owned());
    };
    if let Target::Own { bed: Some(bed), .. } = &flow.target {
        let role = ends::roles(flow.direction)[0];
        let can = ends::inside(bed, role, || Ok(hardware_stamps::stampable(&interface)));
        let can = can.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        // A guard puts back what it changed from this thread's namespace, which is not the card's.
        return Err(match Stamped::of(&can) {
            Ok(_) => format!("hardware: not used: {interface} is inside of a bed"),
            Err(why) => why,
        });
    }
    Card::open(journal, &interface)
}

/// Which point a stamp of the client's card is; none of what the kernel stamps.
pub(super) fn point(kind: StampKind) -> Option<Point> {
    match kind {
        StampKind::Hardware => Some(Point::there(Station::WireOut)),
        StampKind::ReceivedHardware => Some(Point::back(Station::WireIn)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
