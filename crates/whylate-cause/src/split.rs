//! The parts of one gap.
//!
//! METHOD's list, on the timeline of the gap's CPU: entry residual, hard interrupt, softirq,
//! switched out to a thread until switched in, page fault, NMI, signal, inter-processor interrupt
//! with its sender, exit residual, no kernel event. Nested events count once, the inner wins.
//!
//! Guarantees, for any events whatever: parts are ordered, adjacent, none is empty, and they sum
//! to the gap exactly.
//!
//! Where METHOD's words leave room:
//! - A device handler inside a vector gives the vector its name.
//! - Work items are time of the thread that runs them.
//! - A page fault or a signal lasts to the next of either or to the end of the gap: an interrupt
//!   on the way is nested in it and returns to it. Those of other threads are their own time.
//! - A gap with a change of CPU follows our thread: the first CPU's events up to the move (the
//!   kernel's record of it, else the switch to our thread on the second CPU), then the second's.
//!   A thread that moves away and back within one gap is followed on the first CPU only.
//! - A stretch that nobody claims is `TraceLost` where the trace lost events, and so is a whole
//!   gap without any event if the trace lost some anywhere in it.
//! - A residual that is too long to be the price of the event beside it is what a gap without any
//!   event is ([`naming::unclaimed`]).
//! - In a late wake-up, the time before the kernel woke the thread is the timer's or the exit from
//!   idle's, whoever had the CPU then, or the host's where the CPU was seen to be stopped
//!   ([`waking`]).
//! - A gap without any event whose CPU changed, or of which the thread itself counted an
//!   involuntary switch, is named by that evidence, not as the host's.

use whylate_model::cause::{Cause, Part, Rule, Sender};
use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Gap, GapKind};
use whylate_model::{CpuId, Nanos, Pid, Ticks, TicksDelta};

use crate::context::Context;
use crate::evidence_b;
use crate::naming;
use crate::overlay::{Claim, Piece, lay};
use crate::waking;
use crate::walk::{Walk, Walked};

/// What is known beside a gap and its events.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Platform, clock, names.
    pub context: &'a Context,
    /// The measuring thread whose gap it is.
    pub own: Pid,
    /// Sends and wake-ups of any CPU, from the trace of all CPUs, in time order, not answered
    /// before the gap.
    pub sends: &'a [Event],
    /// Where the trace of the gap's CPUs lost events.
    pub lost: &'a [Span],
    /// How much later than asked the thread's timer may fire.
    pub slack: TicksDelta,
}

/// A closed interval on the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First tick.
    pub from: Ticks,
    /// Last tick.
    pub to: Ticks,
}

impl Span {
    /// Do they share a tick?
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

/// A gap taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The parts.
    pub parts: Vec<Part>,
    /// What the gap is named after.
    pub cause: Cause,
    /// The rule that named it, where no event did.
    pub rule: Option<Rule>,
    /// Interrupts and threads in it whose sender is known.
    pub arrivals: Vec<Arrival>,
    /// Indices into [`Setting::sends`] of those that led to something in the gap.
    pub sends: Vec<usize>,
}

/// An interrupt that was sent, or a thread that was woken, and what it took of the gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The interrupt or the thread.
    pub cause: Cause,
    /// Who sent or woke it.
    pub sender: Sender,
    /// The CPU it was sent to.
    pub cpu: CpuId,
    /// Time it took, without what was nested in it.
    pub length: TicksDelta,
}

/// Takes `gap` apart and names it. `events` are those of its CPU (of both, where it changed) in any
/// order; those outside the gap are left aside.
#[must_use]
pub fn split(gap: &Gap, events: &[Event], setting: &Setting<'_>) -> Split {
    let mut events: Vec<&Event> = events
        .iter()
        .filter(|event| {
            (event.cpu == gap.cpu_before || event.cpu == gap.cpu_after)
                && gap.start <= event.ticks
                && event.ticks <= gap.end
        })
        .collect();
    events.sort_by_key(|event| event.ticks);
    let lost: Vec<Span> = {
        let whole = Span { from: gap.start, to: gap.end };
        setting.lost.iter().filter(|span| span.meets(&whole)).copied().collect()
    };
    if events.is_empty() {
        return without_events(gap, !lost.is_empty(), setting.context);
    }

    let path = Path::of(gap, &events, setting.own);
    let Walked { mut pieces, mut sends, landed } = path.walk(gap, setting);
    let followed: Vec<&Event> = path.before.iter().chain(&path.after).copied().collect();
    let residuals = Residuals::of(&followed, setting.context);
    waking::name_wake_up(&mut pieces, gap, &followed, setting, &lost);
    lay_losses(&mut pieces, &lost);
    sends.sort_unstable();
    sends.dedup();
    let arrivals = arrivals(&pieces, &landed);
    let mut parts = merge(pieces, &residuals);
    for part in parts.iter_mut().filter(|part| naming::is_residual(&part.cause)) {
        part.cause = naming::unclaimed(part.cause.clone(), part.length, setting.context);
    }
    let cause = naming::cause(&parts, setting.context);
    let rule = matches!(cause, Cause::Host | Cause::Firmware).then_some(Rule::R8);
    Split { parts, cause, rule, arrivals, sends }
}

/// A gap in which the kernel recorded nothing.
fn without_events(gap: &Gap, lost: bool, context: &Context) -> Split {
    if gap.kind == GapKind::LateTimer {
        let cause = Cause::TimerLate;
        let (arrivals, sends) = (Vec::new(), Vec::new());
        return Split { parts: whole(gap, &cause), cause, rule: None, arrivals, sends };
    }
    let verdict = evidence_b::verdict(gap);
    let (cause, rule) = match verdict.cause {
        Cause::Migration | Cause::ContextSwitch => (verdict.cause, verdict.rule),
        _ if lost => (Cause::TraceLost, None),
        _ if context.virtualised => (Cause::Host, Some(Rule::R8)),
        _ => (Cause::Firmware, Some(Rule::R8)),
    };
    Split { parts: whole(gap, &cause), cause, rule, arrivals: Vec::new(), sends: Vec::new() }
}

/// One part for the whole gap; none for a gap without length.
pub(crate) fn whole(gap: &Gap, cause: &Cause) -> Vec<Part> {
    let length = gap.length();
    let part = Part { start: gap.start, length, cause: cause.clone(), sender: None };
    if length.0 == 0 { Vec::new() } else { vec![part] }
}

/// The events along our thread.
struct Path<'a> {
    before: Vec<&'a Event>,
    /// When it changed the CPU.
    moved: Option<Ticks>,
    after: Vec<&'a Event>,
}

impl<'a> Path<'a> {
    fn of(gap: &Gap, events: &[&'a Event], own: Pid) -> Self {
        if !gap.migrated() {
            return Self { before: events.to_vec(), moved: None, after: Vec::new() };
        }
        let at = moved_at(gap, events, own);
        let on = |cpu: CpuId| events.iter().copied().filter(move |event| event.cpu == cpu);
        Self {
            before: on(gap.cpu_before).filter(|event| event.ticks <= at).collect(),
            moved: Some(at),
            after: on(gap.cpu_after).filter(|event| event.ticks >= at).collect(),
        }
    }

    fn walk(&self, gap: &Gap, setting: &Setting<'_>) -> Walked {
        let mut walk = Walk::new(gap.start, gap.end, setting);
        self.before.iter().for_each(|event| walk.step(event));
        if let Some(at) = self.moved {
            walk.moved(at, self.after.first().copied());
            self.after.iter().for_each(|event| walk.step(event));
        }
        walk.finish()
    }
}

/// When our thread changed from the first CPU to the second.
fn moved_at(gap: &Gap, events: &[&Event], own: Pid) -> Ticks {
    let recorded = events.iter().rev().find(|event| {
        matches!(&event.kind, EventKind::Migrate { task, to, .. }
            if task.pid == own && *to == gap.cpu_after)
    });
    let switched_in = || {
        events.iter().find(|event| {
            event.cpu == gap.cpu_after
                && matches!(&event.kind, EventKind::Switch { to, .. } if to.pid == own)
        })
    };
    let switched_out = || {
        events.iter().rev().find(|event| {
            event.cpu == gap.cpu_before
                && matches!(&event.kind, EventKind::Switch { from, .. } if from.pid == own)
        })
    };
    recorded.or_else(switched_in).or_else(switched_out).map_or(gap.end, |event| event.ticks)
}

/// When what an event records began: an NMI is stamped at its end.
pub(crate) fn began(event: &Event, context: &Context) -> Ticks {
    match event.kind {
        EventKind::Nmi { duration_ns } => {
            let took = Nanos(u64::try_from(duration_ns).unwrap_or(0)).to_ticks(context.hz);
            Ticks(event.ticks.0.saturating_sub(took.0))
        }
        _ => event.ticks,
    }
}

/// What nobody claims while the trace lost events is not known.
fn lay_losses(pieces: &mut Vec<Piece>, lost: &[Span]) {
    for span in lost {
        let claim = Claim::Named(Cause::TraceLost, None);
        lay(pieces, (span.from, span.to), (&claim, 0), |claim| *claim == Claim::Residual);
    }
}

/// Which residual a stretch is: before, between or after the events.
struct Residuals {
    first: Ticks,
    last: Ticks,
}

impl Residuals {
    fn of(events: &[&Event], context: &Context) -> Self {
        let first = events.iter().map(|event| began(event, context)).min();
        let last = events.iter().map(|event| event.ticks).max();
        Self { first: first.unwrap_or_default(), last: last.unwrap_or_default() }
    }

    fn name(&self, piece: &Piece) -> Cause {
        if piece.end <= self.first {
            Cause::EntryResidual
        } else if piece.start >= self.last {
            Cause::ExitResidual
        } else {
            Cause::InnerResidual
        }
    }
}

/// Time of each interrupt or thread whose sender is known, all its pieces together.
fn arrivals(pieces: &[Piece], landed: &[(u32, CpuId)]) -> Vec<Arrival> {
    let mut found: Vec<(u32, Arrival)> = Vec::new();
    for piece in pieces {
        let Claim::Named(cause, Some(sender)) = &piece.claim else { continue };
        let length = piece.end.since(piece.start);
        if let Some((_, arrival)) = found.iter_mut().find(|(id, _)| *id == piece.id) {
            arrival.length = arrival.length + length;
        } else {
            let Some((_, cpu)) = landed.iter().find(|(id, _)| *id == piece.id) else { continue };
            let (cause, sender) = (cause.clone(), sender.clone());
            found.push((piece.id, Arrival { cause, sender, cpu: *cpu, length }));
        }
    }
    found.into_iter().map(|(_, arrival)| arrival).collect()
}

/// Pieces become parts; neighbours of one frame, one thread or one residual become one part.
fn merge(pieces: Vec<Piece>, residuals: &Residuals) -> Vec<Part> {
    let mut parts: Vec<(u32, Part)> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let start = piece.start;
        let length = piece.end.since(start);
        let id = piece.id;
        let (cause, sender) = match piece.claim {
            Claim::Residual => (residuals.name(&piece), None),
            Claim::Named(cause, sender) => (cause, sender),
        };
        match parts.last_mut() {
            Some((last, part)) if *last == id && part.cause == cause && part.sender == sender => {
                part.length = part.length + length;
            }
            _ => parts.push((id, Part { start, length, cause, sender })),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}
