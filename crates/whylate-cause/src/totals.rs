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

use whylate_model::cause::{Cause, CauseTotal, Coverage, SenderTotal, WorstGap};
use whylate_model::run::Finding;
use whylate_model::{CpuId, Nanos, Ticks, TicksDelta};

use crate::attribute::{Attributed, Basis};
use crate::context::Context;
use crate::naming;
use crate::periodic::{self, Among};
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
pub struct Beside {
    /// The measuring threads' place in the scheduler.
    pub standing: Standing,
    /// Steal time and SMI count.
    pub corroboration: Corroboration,
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
    starts: BTreeMap<Kind, Vec<Ticks>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    gaps: u64,
    parts: u64,
    lost_ns: f64,
    longest: TicksDelta,
}

#[derive(Debug, Clone, Copy, Default)]
struct Covered {
    events: f64,
    residuals: f64,
    nothing: f64,
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
        let period = measured.map_or(0.0, |measured| measured.period_ticks);
        let length = gap.gap.length().0 as f64;
        // Nanoseconds lost per tick of the gap.
        let scale = if length > 0.0 {
            (length - period).max(0.0) / length * 1e9 / context.hz.0
        } else {
            0.0
        };
        self.cpus.entry(cpu).or_default().add(gap, scale);
        for arrival in &gap.arrivals {
            self.senders.add(arrival, arrival.length.0 as f64 * scale);
        }
        self.worst.offer(gap);
    }

    /// The sums so far. `elapsed` is the time measured on each CPU; the share of elapsed is zero
    /// for a CPU without it.
    #[must_use]
    pub fn summary(&self, context: &Context, elapsed: &[(CpuId, Nanos)]) -> Summary {
        let hz = context.hz;
        let mut overall = BTreeMap::<&Cause, Sum>::new();
        for (cause, sum) in self.cpus.values().flat_map(|sums| &sums.causes) {
            overall.entry(cause).or_default().add(sum);
        }
        let all: u64 = elapsed.iter().map(|(_, time)| time.0).sum();
        let lost: f64 = overall.values().map(|sum| sum.lost_ns).sum();
        let row = |cause: &Cause, cpu, sum: &Sum, lost: f64, elapsed: u64| CauseTotal {
            cause: cause.clone(),
            cpu,
            gaps: sum.gaps,
            parts: sum.parts,
            lost_ns: sum.lost_ns,
            share_of_lost: share(sum.lost_ns, lost),
            share_of_elapsed: share(sum.lost_ns, elapsed as f64),
            longest: sum.longest.to_nanos(hz),
        };
        let mut causes: Vec<CauseTotal> =
            overall.iter().map(|(cause, sum)| row(cause, None, sum, lost, all)).collect();
        sort(&mut causes);
        for (cpu, sums) in &self.cpus {
            let time: u64 =
                elapsed.iter().filter(|(of, _)| of == cpu).map(|(_, time)| time.0).sum();
            let lost = sums.causes.values().map(|sum| sum.lost_ns).sum();
            let rows = sums.causes.iter();
            let mut rows: Vec<_> =
                rows.map(|(cause, sum)| row(cause, Some(*cpu), sum, lost, time)).collect();
            sort(&mut rows);
            causes.append(&mut rows);
        }
        Summary {
            causes,
            coverage: self.coverage(),
            worst: self.worst.list(hz),
            senders: self.senders.rows(),
        }
    }

    /// What R3, R6, R7, R8 and R9 make of the gaps of each CPU.
    #[must_use]
    pub fn findings(&self, context: &Context, beside: Beside) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (cpu, sums) in &self.cpus {
            let with_thread = (sums.traced > 0).then_some(sums.with_thread);
            findings.extend(rules::r3_highest_priority(
                beside.standing,
                *cpu,
                sums.gaps,
                with_thread,
            ));
            findings.extend(sums.tally.findings(*cpu));
            let lost_to = |cause| sums.causes.get(&cause).map_or(0.0, |sum: &Sum| sum.lost_ns);
            findings.extend(rules::r8_no_kernel_event(
                context.virtualised,
                *cpu,
                sums.without_event,
                lost_to(Cause::Host) + lost_to(Cause::Firmware),
                beside.corroboration,
            ));
            for (kind, starts) in &sums.starts {
                let mut starts = starts.clone();
                starts.sort_unstable();
                let among = kind.among(context.virtualised);
                findings.extend(
                    rules::r9_period(&starts, context.hz)
                        .map(|found| rules::r9_finding(&found, among, *cpu)),
                );
            }
        }
        findings
    }

    fn coverage(&self) -> Option<Coverage> {
        let sum =
            |of: fn(&Covered) -> f64| self.cpus.values().map(|sums| of(&sums.covered)).sum::<f64>();
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
    fn add(&mut self, gap: &Attributed, scale: f64) {
        let has_event = gap.parts.iter().any(|part| {
            naming::is_named_by_events(&part.cause) || naming::is_residual(&part.cause)
        });
        for part in &gap.parts {
            let lost = part.length.0 as f64 * scale;
            let sum = self.sum_of(&part.cause);
            sum.parts += 1;
            sum.lost_ns += lost;
            let covered = &mut self.covered;
            *if naming::is_named_by_events(&part.cause) {
                &mut covered.events
            } else if has_event {
                &mut covered.residuals
            } else {
                &mut covered.nothing
            } += lost;
        }
        let sum = self.sum_of(&gap.cause);
        sum.gaps += 1;
        sum.longest = sum.longest.max(gap.gap.length());

        self.gaps += 1;
        self.tally.count(&gap.gap);
        self.traced += u64::from(gap.basis != Basis::Thread);
        self.with_thread +=
            u64::from(gap.parts.iter().any(|part| matches!(part.cause, Cause::Thread { .. })));
        self.without_event += u64::from(matches!(gap.cause, Cause::Host | Cause::Firmware));
        if let Some(kind) = Kind::of(gap) {
            let starts = self.starts.entry(kind).or_default();
            if starts.len() < periodic::STARTS_MAX {
                starts.push(gap.gap.start);
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

impl Sum {
    fn add(&mut self, other: &Self) {
        self.gaps += other.gaps;
        self.parts += other.parts;
        self.lost_ns += other.lost_ns;
        self.longest = self.longest.max(other.longest);
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
