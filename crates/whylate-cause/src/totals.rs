//! Lost time added up: by cause and CPU, how much of it is explained, the longest gaps, the
//! senders, and what the rules for one thread make of it.
//!
//! A gap has lost its length less one period of the loop, which ran in it as it does between
//! gaps. That loss is shared out over the parts in proportion to their lengths, so the lost time
//! of the causes sums to the lost time of the gaps.
//!
//! Everything of a gap counts for the CPU its thread is listed under: the one it is pinned to, or
//! the one a floating thread began on. Memory is bounded by the constants below.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use whylate_model::cause::{Cause, CauseTotal, Coverage, SenderTotal, WorstGap};
use whylate_model::run::{Evidence, Finding};
use whylate_model::{CpuId, Hertz, Nanos, Ticks, TicksDelta};

use crate::attribute::{Attributed, Basis};
use crate::context::Context;
use crate::naming;
use crate::periodic::{self, Among, Periodic};
use crate::rules::{self, Corroboration, Standing, Tally};
use crate::senders::Table;
use crate::worst::Worst;

/// Causes kept per CPU. Threads with ever new names would make them endless: those that come
/// after are added up under [`naming::OTHERS`].
const CAUSES_MAX: usize = 4096;

/// Adds up attributed gaps.
#[derive(Debug, Clone)]
pub struct Totals {
    cpus: BTreeMap<CpuId, Sums>,
    worst: Worst,
    senders: Table,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Lost time by cause: for all CPUs together first, then for each; largest first.
    pub causes: Vec<CauseTotal>,
    /// How much of the lost time is explained; none without lost time.
    pub coverage: Option<Coverage>,
    /// The longest gaps.
    pub worst: Vec<WorstGap>,
    /// Who sent interrupts and wake-ups.
    pub senders: Vec<SenderTotal>,
}

/// What the rules are told beside the gaps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside<'a> {
    /// The measuring threads' place in the scheduler.
    pub standing: Standing,
    /// Steal time and SMI count.
    pub evidence: &'a Evidence,
}

impl Beside<'_> {
    /// What may bear out that the time of a CPU was taken: its own steal time, where that is known.
    fn corroboration(&self, cpu: CpuId) -> Corroboration {
        let by_cpu = &self.evidence.steal_by_cpu;
        let own = by_cpu.iter().find(|of| of.cpu == cpu).map(|of| of.steal_ns);
        let all = self.evidence.steal_ns.filter(|_| by_cpu.is_empty());
        Corroboration { steal_ns: own.or(all), smi_count: self.evidence.smi_count }
    }
}

/// Sums of one CPU.
#[derive(Debug, Clone, Default)]
struct Sums {
    causes: BTreeMap<Cause, Sum>,
    covered: Covered,
    tally: Tally,
    gaps: u64,
    traced: u64,
    with_thread: u64,
    without_event: u64,
    starts: BTreeMap<Kind, Starts>,
}

/// Where gaps of one kind began, of threads that never wait: others see the tick only while they
/// run, which is at a period of their own.
#[derive(Debug, Clone, Default)]
struct Starts {
    /// The first ones.
    first: Vec<Ticks>,
    /// How many there were.
    all: u64,
    /// What R9 makes of them once no more are kept: a look takes a good part of a second.
    judged: OnceLock<Option<Periodic>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    gaps: u64,
    parts: u64,
    loss: Loss,
    longest: TicksDelta,
}

/// Ticks of gaps, and of how many gaps: each of them holds one period of the loop, which is known
/// for good only at the end.
#[derive(Debug, Clone, Copy, Default)]
struct Loss {
    ticks: f64,
    gaps: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Covered {
    events: Loss,
    residuals: Loss,
    nothing: Loss,
}

/// What turns ticks of one CPU into lost time.
#[derive(Debug, Clone, Copy)]
struct Scale {
    period_ticks: f64,
    hz: Hertz,
}

/// What a gap holds, for R9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Timer,
    OtherEvents,
    NoEvent,
    Untraced,
}

impl Totals {
    /// Sums of nothing yet, keeping the `worst` longest gaps.
    #[must_use]
    pub fn new(worst: usize) -> Self {
        Self { cpus: BTreeMap::new(), worst: Worst::new(worst), senders: Table::default() }
    }

    /// Adds a gap.
    pub fn add(&mut self, gap: &Attributed, context: &Context) {
        let measured = context.thread(gap.thread);
        let cpu = measured.map_or(gap.gap.cpu_before, |measured| measured.cpu);
        let always_runs = measured.is_none_or(|measured| measured.always_runs);
        self.cpus.entry(cpu).or_default().add(gap, always_runs);
        for arrival in &gap.arrivals {
            self.senders.add(arrival, arrival.length.0 as f64 * 1e9 / context.hz.0);
        }
        self.worst.offer(gap);
    }

    /// The sums so far. `elapsed` is the time measured on each CPU; the share of elapsed is zero
    /// for a CPU without it.
    #[must_use]
    pub fn summary(&self, context: &Context, elapsed: &[(CpuId, Nanos)]) -> Summary {
        let hz = context.hz;
        let mut overall = BTreeMap::<&Cause, (Sum, f64)>::new();
        for (cpu, sums) in &self.cpus {
            let scale = Scale::of(*cpu, context);
            for (cause, sum) in &sums.causes {
                let (whole, lost_ns) = overall.entry(cause).or_default();
                whole.add(sum);
                *lost_ns += sum.loss.ns(scale);
            }
        }
        let all: u64 = elapsed.iter().map(|(_, time)| time.0).sum();
        let lost: f64 = overall.values().map(|(_, lost_ns)| lost_ns).sum();
        let row =
            |cause: &Cause, cpu, (sum, lost_ns): (&Sum, f64), lost: f64, elapsed: u64| CauseTotal {
                cause: cause.clone(),
                cpu,
                gaps: sum.gaps,
                parts: sum.parts,
                lost_ns,
                share_of_lost: share(lost_ns, lost),
                share_of_elapsed: share(lost_ns, elapsed as f64),
                longest: sum.longest.to_nanos(hz),
            };
        let mut causes: Vec<CauseTotal> = overall
            .iter()
            .map(|(cause, (sum, ns))| row(cause, None, (sum, *ns), lost, all))
            .collect();
        sort(&mut causes);
        for (cpu, sums) in &self.cpus {
            let time: u64 =
                elapsed.iter().filter(|(of, _)| of == cpu).map(|(_, time)| time.0).sum();
            let scale = Scale::of(*cpu, context);
            let lost = sums.causes.values().map(|sum| sum.loss.ns(scale)).sum();
            let rows = sums
                .causes
                .iter()
                .map(|(cause, sum)| row(cause, Some(*cpu), (sum, sum.loss.ns(scale)), lost, time));
            let mut rows: Vec<_> = rows.collect();
            sort(&mut rows);
            causes.append(&mut rows);
        }
        Summary {
            causes,
            coverage: self.coverage(context),
            worst: self.worst.list(hz),
            senders: self.senders.rows(),
        }
    }

    /// What R3, R6, R7, R8 and R9 make of the gaps of each CPU.
    #[must_use]
    pub fn findings(&self, context: &Context, beside: Beside<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (cpu, sums) in &self.cpus {
            let counted = (sums.tally.switched > 0).then_some(sums.tally.switched);
            let with_thread = (sums.traced > 0).then_some(sums.with_thread).or(counted);
            findings.extend(rules::r3_highest_priority(
                beside.standing,
                *cpu,
                sums.gaps,
                with_thread,
            ));
            findings.extend(sums.tally.findings(*cpu));
            let scale = Scale::of(*cpu, context);
            let lost_to = |cause| sums.causes.get(&cause).map_or(0.0, |sum| sum.loss.ns(scale));
            findings.extend(rules::r8_no_kernel_event(
                context.virtualised,
                *cpu,
                sums.without_event,
                lost_to(Cause::Host) + lost_to(Cause::Firmware),
                beside.corroboration(*cpu),
            ));
            for (kind, starts) in &sums.starts {
                let among = kind.among(context.virtualised);
                findings.extend(
                    starts
                        .period(context.hz)
                        .map(|found| rules::r9_finding(&found, among, *cpu, starts.all)),
                );
            }
        }
        findings
    }

    fn coverage(&self, context: &Context) -> Option<Coverage> {
        let sum = |of: fn(&Covered) -> Loss| -> f64 {
            let cpus = self.cpus.iter();
            cpus.map(|(cpu, sums)| of(&sums.covered).ns(Scale::of(*cpu, context))).sum()
        };
        let (events, residuals) = (sum(|c| c.events), sum(|c| c.residuals));
        let nothing = sum(|c| c.nothing);
        let all = events + residuals + nothing;
        (all > 0.0).then(|| Coverage {
            by_events: events / all,
            by_residuals: residuals / all,
            by_nothing: nothing / all,
        })
    }
}

impl Sums {
    fn add(&mut self, gap: &Attributed, always_runs: bool) {
        for part in &gap.parts {
            let ticks = part.length.0 as f64;
            let loss = Loss { ticks, gaps: ticks / gap.gap.length().0 as f64 };
            let sum = self.sum_of(&part.cause);
            sum.parts += 1;
            sum.loss.add(loss);
            let covered = &mut self.covered;
            if naming::is_named_by_events(&part.cause) {
                covered.events.add(loss);
            } else if naming::is_residual(&part.cause) {
                covered.residuals.add(loss);
            } else {
                covered.nothing.add(loss);
            }
        }
        let sum = self.sum_of(&gap.cause);
        sum.gaps += 1;
        sum.longest = sum.longest.max(gap.gap.length());

        self.gaps += 1;
        self.tally.count(&gap.gap);
        self.traced += u64::from(gap.basis != Basis::Thread);
        self.with_thread += u64::from(gap.parts.iter().any(|part| naming::is_thread(&part.cause)));
        self.without_event += u64::from(matches!(gap.cause, Cause::Host | Cause::Firmware));
        if let Some(kind) = Kind::of(gap).filter(|_| always_runs) {
            let starts = self.starts.entry(kind).or_default();
            starts.all += 1;
            if starts.first.len() < periodic::STARTS_MAX {
                starts.first.push(gap.gap.start);
            }
        }
    }

    fn sum_of(&mut self, cause: &Cause) -> &mut Sum {
        if !self.causes.contains_key(cause) {
            let full = self.causes.len() >= CAUSES_MAX;
            let key = if full { naming::without_name(cause) } else { cause.clone() };
            return self.causes.entry(key).or_default();
        }
        self.causes.entry(cause.clone()).or_default()
    }
}

impl Starts {
    fn period(&self, hz: Hertz) -> Option<Periodic> {
        let judge = || {
            let mut sorted = self.first.clone();
            sorted.sort_unstable();
            rules::r9_period(&sorted, hz)
        };
        if self.first.len() < periodic::STARTS_MAX {
            return judge();
        }
        *self.judged.get_or_init(judge)
    }
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.gaps += other.gaps;
        self.parts += other.parts;
        self.loss.add(other.loss);
        self.longest = self.longest.max(other.longest);
    }
}

impl Loss {
    fn add(&mut self, other: Self) {
        self.ticks += other.ticks;
        self.gaps += other.gaps;
    }

    fn ns(self, scale: Scale) -> f64 {
        (self.ticks - self.gaps * scale.period_ticks).max(0.0) * 1e9 / scale.hz.0
    }
}

impl Scale {
    fn of(cpu: CpuId, context: &Context) -> Self {
        let measured = context.threads.iter().find(|thread| thread.cpu == cpu);
        let period_ticks = measured.map_or(0.0, |measured| measured.period_ticks);
        Self { period_ticks, hz: context.hz }
    }
}

impl Kind {
    /// None where the trace lost what the gap holds.
    fn of(gap: &Attributed) -> Option<Self> {
        let is_timer = |cause: &Cause| {
            matches!(cause, Cause::Interrupt { name }
                if name == "local_timer" || name == "arch_timer")
        };
        match gap.basis {
            Basis::Thread => Some(Self::Untraced),
            Basis::TraceWithLosses => None,
            Basis::Trace if gap.events.is_empty() => Some(Self::NoEvent),
            Basis::Trace if gap.parts.iter().any(|part| is_timer(&part.cause)) => Some(Self::Timer),
            Basis::Trace => Some(Self::OtherEvents),
        }
    }

    fn among(self, virtualised: bool) -> Among {
        match self {
            Self::Timer => Among::Timer,
            Self::OtherEvents => Among::OtherEvents,
            Self::NoEvent if virtualised => Among::NoEventVirtual,
            Self::NoEvent => Among::NoEventMetal,
            Self::Untraced => Among::Untraced,
        }
    }
}

fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

fn sort(rows: &mut [CauseTotal]) {
    rows.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns).then_with(|| a.cause.cmp(&b.cause)));
}

#[cfg(test)]
mod tests;
