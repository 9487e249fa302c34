//! One thread of an end: where what it tells goes, and up to where it is known.

use std::collections::VecDeque;

use whylate_cause::tail::scheduled::Scheduled;
use whylate_cause::{Attributor, Measured, Placement};
use whylate_model::gap::{Evidence, Gap, GapKind};
use whylate_model::tail::End;
use whylate_model::{CpuId, Pid, Ticks, TicksDelta};

/// How a thread's interruptions are found.
pub(super) enum By {
    /// It spins and tells them itself.
    Turns,
    /// It sleeps, and the scheduler tells.
    Scheduler(Box<Scheduled>),
    /// Not at all.
    Nothing,
}

impl By {
    pub(super) fn scheduler(own: Pid, cpu: CpuId) -> Self {
        Self::Scheduler(Box::new(Scheduled::new(own, cpu)))
    }
}

/// One thread.
pub(super) struct Lane {
    pub(super) end: End,
    pub(super) own: Pid,
    pub(super) cpu: CpuId,
    pub(super) by: By,
    /// What its turns may take, as it told at its end.
    pub(super) limits: [TicksDelta; 2],
    /// Told, and not handed over to be named.
    fresh: Vec<Gap>,
    /// Beginnings of those that are not named yet.
    unnamed: VecDeque<Ticks>,
    until: Ticks,
}

impl Lane {
    pub(super) fn new(end: End, own: Pid, cpu: CpuId, by: By) -> Self {
        let (fresh, unnamed) = (Vec::new(), VecDeque::new());
        Self { end, own, cpu, by, limits: [TicksDelta(0); 2], fresh, unnamed, until: Ticks(0) }
    }

    /// What the attribution knows of it.
    pub(super) fn measured(&self, index: u16) -> Measured {
        Measured {
            index,
            pid: self.own,
            cpu: self.cpu,
            placement: Placement::Pinned,
            period_ticks: 0.0,
            always_runs: matches!(self.by, By::Turns),
            slack: TicksDelta(0),
        }
    }

    /// It did not run from one of its readings to the next.
    pub(super) fn stall(&mut self, from: Ticks, to: Ticks) {
        self.fresh.push(Gap {
            start: from,
            end: to,
            resumed: to,
            cpu_before: self.cpu,
            cpu_after: self.cpu,
            kind: GapKind::Interruption,
            evidence: Evidence::default(),
        });
        self.told_until(to);
    }

    /// Every stall before has been told.
    pub(super) fn told_until(&mut self, until: Ticks) {
        self.until = self.until.max(until);
    }

    pub(super) fn scheduled(&mut self) -> Option<&mut Scheduled> {
        match &mut self.by {
            By::Scheduler(scheduled) => Some(scheduled),
            _ => None,
        }
    }

    /// Hands what was told over to be named. The kernel's events are complete until `complete`.
    pub(super) fn hand_over(&mut self, index: u16, complete: Ticks, attributor: &mut Attributor) {
        match &mut self.by {
            By::Scheduler(scheduled) => {
                let until = scheduled.complete(complete, &mut self.fresh);
                self.until = self.until.max(until);
            }
            By::Nothing => self.until = self.until.max(complete),
            By::Turns => (),
        }
        self.unnamed.extend(self.fresh.iter().map(|gap| gap.start));
        // The attribution was made for the lanes.
        let _ = attributor.push_gaps(index, &self.fresh);
        let _ = attributor.ran_until(index, self.until);
        self.fresh.clear();
    }

    /// The oldest that was handed over has its name.
    pub(super) fn named(&mut self) {
        self.unnamed.pop_front();
    }

    /// Everything that began before has been told and named.
    pub(super) fn known_to(&self) -> Ticks {
        self.unnamed.front().map_or(self.until, |first| self.until.min(*first))
    }
}
