//! Late wake-ups beside what the kernel did meanwhile: where their time went, and what each is
//! named after.
//!
//! The gaps between the instant that a wait was for and the first reading of the running thread
//! belong to one wake-up: the time until a coarse timer was to fire, and the dispatch after it.

use std::collections::BTreeMap;

use whylate_cause::{Attributed, naming};
use whylate_model::cause::{Cause, Part};
use whylate_model::gap::GapKind;
use whylate_model::wake::{LATER_THAN, LateWake, WakeCause, WakePart, WakeStage};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};

use super::ledgers::nanos;

/// The latest wake-ups of a thread that are kept with their parts.
const LATEST: usize = 5;

/// The wake-ups of one thread.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    /// The first part of a wake-up whose dispatch is still to come.
    open: Option<Wake>,
    stages: BTreeMap<WakeStage, Stage>,
    causes: BTreeMap<Cause, Named>,
    latest: Vec<Wake>,
    /// Later than each of [`LATER_THAN`] for what the host took of them alone.
    by_host: [u64; LATER_THAN.len()],
    /// Of the others, later than each of these for what came before their wake-up alone, of which
    /// nothing tells how much was the host's.
    perhaps: [u64; LATER_THAN.len()],
}

#[derive(Debug)]
struct Wake {
    start: Ticks,
    end: Ticks,
    parts: Vec<Part>,
    /// Time until a coarse timer was to fire: late by its design, and nobody else's.
    coarse: u64,
}

#[derive(Debug, Default)]
struct Stage {
    ticks: u64,
    wakes: u64,
    most: u64,
}

#[derive(Debug, Default)]
struct Named {
    wakes: u64,
    ticks: u64,
    latest: u64,
    later: [u64; LATER_THAN.len()],
}

impl Wakes {
    /// A gap of the thread has been attributed.
    pub(super) fn gap(&mut self, of: &Attributed, rate: Hertz) {
        let gap = &of.gap;
        match gap.kind {
            GapKind::LateTimer => {
                self.close(rate);
                let (start, end, parts) = (gap.start, gap.end, of.parts.clone());
                let late = parts.iter().filter(|part| part.cause == Cause::TimerLate);
                let coarse = late.map(|part| part.length.0).sum();
                self.open = Some(Wake { start, end, parts, coarse });
            }
            GapKind::Dispatch => {
                let mut wake = match self.open.take() {
                    Some(open) if open.end == gap.start => open,
                    Some(other) => {
                        self.enter(other, rate);
                        Wake { start: gap.start, end: gap.end, parts: Vec::new(), coarse: 0 }
                    }
                    None => Wake { start: gap.start, end: gap.end, parts: Vec::new(), coarse: 0 },
                };
                wake.end = gap.end;
                wake.parts.extend(of.parts.iter().cloned());
                self.enter(wake, rate);
            }
            _ => {}
        }
    }

    /// No dispatch follows what is open.
    pub(super) fn close(&mut self, rate: Hertz) {
        if let Some(open) = self.open.take() {
            self.enter(open, rate);
        }
    }

    fn enter(&mut self, wake: Wake, rate: Hertz) {
        let mut stages: BTreeMap<WakeStage, u64> = BTreeMap::new();
        for part in &wake.parts {
            *stages.entry(WakeStage::of(&part.cause)).or_default() += part.length.0;
        }
        let of_stage = |stage| stages.get(&stage).copied().unwrap_or(0);
        let late = wake.length().0;
        let without = late.saturating_sub(of_stage(WakeStage::Host));
        let before = of_stage(WakeStage::TimerLate) + of_stage(WakeStage::IdleExit);
        let surely = without.saturating_sub(before.saturating_sub(wake.coarse));
        let beyond = LATER_THAN.map(|than| than.to_ticks(rate).0);
        for (index, beyond) in beyond.iter().enumerate() {
            self.by_host[index] += u64::from(late > *beyond && without <= *beyond);
            self.perhaps[index] += u64::from(without > *beyond && surely <= *beyond);
        }
        for (stage, ticks) in stages {
            let of = self.stages.entry(stage).or_default();
            of.ticks += ticks;
            of.wakes += 1;
            of.most = of.most.max(ticks);
        }
        let named = self.causes.entry(wake.cause()).or_default();
        named.wakes += 1;
        named.ticks += late;
        named.latest = named.latest.max(late);
        for (count, beyond) in named.later.iter_mut().zip(beyond) {
            *count += u64::from(late > beyond);
        }
        let at = self.latest.partition_point(|known| known.length().0 >= late);
        if at < LATEST {
            self.latest.insert(at, wake);
            self.latest.truncate(LATEST);
        }
    }

    /// Where the time went, longest first.
    pub(super) fn split(&self, rate: Hertz) -> Vec<WakePart> {
        let part = |(stage, of): (&WakeStage, &Stage)| WakePart {
            stage: *stage,
            total_ns: of.ticks as f64 * 1e9 / rate.0,
            wakes: of.wakes,
            most: nanos(of.most, rate),
        };
        let mut parts: Vec<WakePart> = self.stages.iter().map(part).collect();
        parts.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
        parts
    }

    /// What the wake-ups are named after, most frequent first.
    pub(super) fn causes(&self, rate: Hertz) -> Vec<WakeCause> {
        let cause = |(cause, of): (&Cause, &Named)| WakeCause {
            cause: cause.clone(),
            wakes: of.wakes,
            late_ns: of.ticks as f64 * 1e9 / rate.0,
            latest: nanos(of.latest, rate),
            later: of.later.to_vec(),
        };
        let mut causes: Vec<WakeCause> = self.causes.iter().map(cause).collect();
        causes.sort_by(|a, b| b.wakes.cmp(&a.wakes).then_with(|| a.cause.cmp(&b.cause)));
        causes
    }

    /// How many wake-ups were later than each of [`LATER_THAN`] for what the host took of them alone.
    pub(super) fn by_host(&self) -> [u64; LATER_THAN.len()] {
        self.by_host
    }

    /// Of the others, how many were later than each of [`LATER_THAN`] for what came before their
    /// wake-up alone.
    pub(super) fn perhaps_by_host(&self) -> [u64; LATER_THAN.len()] {
        self.perhaps
    }

    /// The latest wake-ups, latest first.
    pub(super) fn latest(&self, rate: Hertz) -> Vec<LateWake> {
        let late = |wake: &Wake| -> LateWake {
            let (late, cause) = (nanos(wake.length().0, rate), wake.cause());
            LateWake { intended: wake.start, late, cause, parts: wake.parts.clone() }
        };
        self.latest.iter().map(late).collect()
    }
}

impl Wake {
    fn length(&self) -> TicksDelta {
        self.end.since(self.start)
    }

    /// The cause with the most of it; the way into the kernel belongs to what made it necessary.
    fn cause(&self) -> Cause {
        let mut causes: BTreeMap<&Cause, u64> = BTreeMap::new();
        for part in &self.parts {
            *causes.entry(&part.cause).or_default() += part.length.0;
        }
        let most =
            causes.into_iter().max_by_key(|(cause, ticks)| (!naming::is_residual(cause), *ticks));
        most.map_or(Cause::Unknown, |(cause, _)| cause.clone())
    }
}

/// Lateness of all wake-ups, by what their histogram holds.
pub(super) fn late_ns(lateness: &whylate_stats::Histogram) -> f64 {
    lateness.mean().unwrap_or(0.0) * lateness.len() as f64
}

/// How many values of a histogram are above a length.
pub(super) fn above(values: &whylate_stats::Histogram, than: Nanos) -> u64 {
    values.count_at_least(than.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::planted::attributed;

    const HZ: Hertz = Hertz(1e9);

    fn timer() -> Cause {
        Cause::Interrupt { name: "local_timer".to_owned() }
    }

    #[test]
    fn the_parts_of_all_wake_ups_sum_to_their_lateness() {
        let mut wakes = Wakes::default();
        let idle = [(3_000, Cause::IdleExit), (800, timer()), (1_200, Cause::ExitResidual)];
        wakes.gap(&attributed(10_000, GapKind::Dispatch, &idle), HZ);
        wakes.gap(&attributed(15_000, GapKind::Sleep, &[(5_000, Cause::IdleExit)]), HZ);
        wakes.gap(
            &attributed(20_000, GapKind::Dispatch, &[(900_000, Cause::Host), (5, timer())]),
            HZ,
        );
        let split = wakes.split(HZ);
        let total: f64 = split.iter().map(|part| part.total_ns).sum();
        assert!((total - 905_005.0).abs() < 1e-6, "{total}");
        assert_eq!((split[0].stage, split[0].wakes), (WakeStage::Host, 1));
        let interrupts = split.iter().find(|part| part.stage == WakeStage::Interrupt).unwrap();
        assert_eq!((interrupts.wakes, interrupts.most), (2, Nanos(800)));
        let latest = wakes.latest(HZ);
        assert_eq!((latest[0].late, &latest[0].cause), (Nanos(900_005), &Cause::Host));
        assert_eq!(wakes.causes(HZ).len(), 2, "each is named after its largest part");
    }

    #[test]
    fn a_coarse_timer_and_the_dispatch_after_it_are_one_wake_up() {
        let mut wakes = Wakes::default();
        wakes.gap(&attributed(1_000, GapKind::LateTimer, &[(7_000, Cause::TimerLate)]), HZ);
        wakes.gap(&attributed(8_000, GapKind::Dispatch, &[(40, timer())]), HZ);
        wakes.gap(&attributed(20_000, GapKind::LateTimer, &[(500, Cause::TimerLate)]), HZ);
        wakes.close(HZ);
        let causes = wakes.causes(HZ);
        assert_eq!((causes[0].cause.clone(), causes[0].wakes), (Cause::TimerLate, 2));
        assert_eq!(wakes.latest(HZ)[0].late, Nanos(7_040));
    }

    #[test]
    fn only_the_latest_wake_ups_are_kept_with_their_parts() {
        let mut wakes = Wakes::default();
        for late in [5, 9, 1, 7, 3, 8, 2] {
            wakes.gap(&attributed(late * 1_000, GapKind::Dispatch, &[(late, Cause::Host)]), HZ);
        }
        let late: Vec<u64> = wakes.latest(HZ).iter().map(|wake| wake.late.0).collect();
        assert_eq!(late, [9, 8, 7, 5, 3]);
        assert_eq!(wakes.causes(HZ)[0].wakes, 7);
    }

    #[test]
    fn wake_ups_that_only_the_host_made_late_are_counted_apart_by_length() {
        let mut wakes = Wakes::default();
        let ms = 1_000_000;
        // 12 ms, of which the host took 8; 7 ms, all of another thread; 2 ms, all of the host.
        let other = || Cause::Blocked;
        let both = [(8 * ms, Cause::Host), (4 * ms, other())];
        wakes.gap(&attributed(10 * ms, GapKind::Dispatch, &both), HZ);
        wakes.gap(&attributed(30 * ms, GapKind::Dispatch, &[(7 * ms, other())]), HZ);
        wakes.gap(&attributed(50 * ms, GapKind::Dispatch, &[(2 * ms, Cause::Host)]), HZ);
        // Later than 1, 5, 10 and 50 ms.
        assert_eq!(wakes.by_host(), [1, 1, 1, 0]);
        assert_eq!(wakes.perhaps_by_host(), [0; 4], "what came after the wake-ups is known");
        let later = |cause: &Cause| {
            let causes = wakes.causes(HZ);
            causes.into_iter().find(|of| of.cause == *cause).unwrap().later
        };
        assert_eq!(later(&Cause::Host), [2, 1, 1, 0]);
        assert_eq!(later(&other()), [1, 1, 0, 0]);
    }

    #[test]
    fn what_came_before_a_wake_up_may_be_the_hosts_but_for_a_coarse_timers_own_lateness() {
        let mut wakes = Wakes::default();
        let ms = 1_000_000;
        // 12 ms: 6 of the host, 5 of the exit from idle. 7 ms of a timer that fired late.
        let both = [(6 * ms, Cause::Host), (5 * ms, Cause::IdleExit), (ms, Cause::Blocked)];
        wakes.gap(&attributed(10 * ms, GapKind::Dispatch, &both), HZ);
        let late = [(7 * ms, Cause::TimerLate)];
        wakes.gap(&attributed(30 * ms, GapKind::Dispatch, &late), HZ);
        // 8 ms that a coarse clock is late by its design, and 2 ms of the exit from idle.
        wakes.gap(&attributed(50 * ms, GapKind::LateTimer, &[(8 * ms, Cause::TimerLate)]), HZ);
        wakes.gap(&attributed(58 * ms, GapKind::Dispatch, &[(2 * ms, Cause::IdleExit)]), HZ);
        // Later than 1, 5, 10 and 50 ms.
        assert_eq!(wakes.by_host(), [0, 0, 1, 0]);
        assert_eq!(wakes.perhaps_by_host(), [2, 2, 0, 0]);
    }
}
