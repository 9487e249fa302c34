//! Late wake-ups beside what the kernel did meanwhile: where their time went, and what each is
//! named after.
//!
//! The gaps between the instant that a wait was for and the first reading of the running thread
//! belong to one wake-up: the time until a coarse timer was to fire, and the dispatch after it.

use std::collections::BTreeMap;

use whylate_cause::{Attributed, naming};
use whylate_model::cause::{Cause, Part};
use whylate_model::gap::GapKind;
use whylate_model::wake::{LateWake, WakeCause, WakePart, WakeStage};
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
}

#[derive(Debug)]
struct Wake {
    start: Ticks,
    end: Ticks,
    parts: Vec<Part>,
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
}

impl Wakes {
    /// A gap of the thread has been attributed.
    pub(super) fn gap(&mut self, of: &Attributed) {
        let gap = &of.gap;
        match gap.kind {
            GapKind::LateTimer => {
                self.close();
                let (start, end, parts) = (gap.start, gap.end, of.parts.clone());
                self.open = Some(Wake { start, end, parts });
            }
            GapKind::Dispatch => {
                let mut wake = match self.open.take() {
                    Some(open) if open.end == gap.start => open,
                    Some(other) => {
                        self.enter(other);
                        Wake { start: gap.start, end: gap.end, parts: Vec::new() }
                    }
                    None => Wake { start: gap.start, end: gap.end, parts: Vec::new() },
                };
                wake.end = gap.end;
                wake.parts.extend(of.parts.iter().cloned());
                self.enter(wake);
            }
            _ => {}
        }
    }

    /// No dispatch follows what is open.
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.enter(open);
        }
    }

    fn enter(&mut self, wake: Wake) {
        let mut stages: BTreeMap<WakeStage, u64> = BTreeMap::new();
        for part in &wake.parts {
            *stages.entry(WakeStage::of(&part.cause)).or_default() += part.length.0;
        }
        for (stage, ticks) in stages {
            let of = self.stages.entry(stage).or_default();
            of.ticks += ticks;
            of.wakes += 1;
            of.most = of.most.max(ticks);
        }
        let late = wake.length().0;
        let named = self.causes.entry(wake.cause()).or_default();
        named.wakes += 1;
        named.ticks += late;
        named.latest = named.latest.max(late);
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
        };
        let mut causes: Vec<WakeCause> = self.causes.iter().map(cause).collect();
        causes.sort_by(|a, b| b.wakes.cmp(&a.wakes).then_with(|| a.cause.cmp(&b.cause)));
        causes
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
    use whylate_cause::Basis;
    use whylate_model::CpuId;
    use whylate_model::gap::{Evidence, Gap};

    use super::*;

    const HZ: Hertz = Hertz(1e9);

    fn attributed(start: u64, kind: GapKind, parts: &[(u64, Cause)]) -> Attributed {
        let mut at = Ticks(start);
        let mut taken = Vec::new();
        for (length, cause) in parts {
            let (length, cause) = (TicksDelta(*length), cause.clone());
            taken.push(Part { start: at, length, cause, sender: None });
            at = at + length;
        }
        let (start, end, evidence) = (Ticks(start), at, Evidence::default());
        let cpu = CpuId(1);
        Attributed {
            thread: 0,
            gap: Gap { start, end, resumed: end, cpu_before: cpu, cpu_after: cpu, kind, evidence },
            cause: Cause::Unknown,
            parts: taken,
            rule: None,
            basis: Basis::Trace,
            switched: Some(true),
            switched_out: 1,
            own: TicksDelta(0),
            events: Vec::new(),
            sends: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    fn timer() -> Cause {
        Cause::Interrupt { name: "local_timer".to_owned() }
    }

    #[test]
    fn the_parts_of_all_wake_ups_sum_to_their_lateness() {
        let mut wakes = Wakes::default();
        let idle = [(3_000, Cause::IdleExit), (800, timer()), (1_200, Cause::ExitResidual)];
        wakes.gap(&attributed(10_000, GapKind::Dispatch, &idle));
        wakes.gap(&attributed(15_000, GapKind::Sleep, &[(5_000, Cause::IdleExit)]));
        wakes.gap(&attributed(20_000, GapKind::Dispatch, &[(900_000, Cause::Host), (5, timer())]));
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
        wakes.gap(&attributed(1_000, GapKind::LateTimer, &[(7_000, Cause::TimerLate)]));
        wakes.gap(&attributed(8_000, GapKind::Dispatch, &[(40, timer())]));
        wakes.gap(&attributed(20_000, GapKind::LateTimer, &[(500, Cause::TimerLate)]));
        wakes.close();
        let causes = wakes.causes(HZ);
        assert_eq!((causes[0].cause.clone(), causes[0].wakes), (Cause::TimerLate, 2));
        assert_eq!(wakes.latest(HZ)[0].late, Nanos(7_040));
    }

    #[test]
    fn only_the_latest_wake_ups_are_kept_with_their_parts() {
        let mut wakes = Wakes::default();
        for late in [5, 9, 1, 7, 3, 8, 2] {
            wakes.gap(&attributed(late * 1_000, GapKind::Dispatch, &[(late, Cause::Host)]));
        }
        let late: Vec<u64> = wakes.latest(HZ).iter().map(|wake| wake.late.0).collect();
        assert_eq!(late, [9, 8, 7, 5, 3]);
        assert_eq!(wakes.causes(HZ)[0].wakes, 7);
    }
}
