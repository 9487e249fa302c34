//! What a set of threads asks for, against the CPUs that there are: before it runs.
//!
//! Only what is written is counted. A periodic thread asks for its amount in each period, a
//! reservation for its budget, a program for what it runs until a timer in the timer's period, at the
//! time that this is its turn. A thread that takes whatever is left asks for nothing; what hangs on
//! other threads is not guessed, and such threads are told apart. Drawn amounts count at their mean.
//! Sums are exact as long as 128 bits hold them, so that sets which fill the CPUs are not accused.
//!
//! Threads may be bound to CPUs. So every set of CPUs that a thread is bound to is looked at with all
//! threads that can go nowhere else, every union of such sets where there are few, and each thread
//! beside the one CPU that it can have at a time.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use whylate_model::{CpuId, Nanos};

use crate::analysis::Load;
use crate::demand::{Demand, Tables};
use crate::task_set::{ReservationKind, Step, TaskSet, Thread};

mod program;

/// Every union of sets of CPUs is looked at where there are so few of them: 63 unions.
const MOST_UNITED: usize = 6;
/// Stretches of different demand of all threads; what comes later in the run is not looked at.
const MOST_STRETCHES: usize = 1 << 16;

/// Threads that ask for more than their CPUs have.
#[derive(Debug, Clone, PartialEq)]
pub struct Excess {
    /// The CPUs.
    pub cpus: Vec<CpuId>,
    /// What is asked of them, in CPUs.
    pub asked: f64,
    /// When that is so first, from the beginning of the run.
    pub from: Nanos,
    /// Numbers of the threads, and what each asks for in CPUs; the largest first.
    pub askers: Vec<(usize, f64)>,
}

/// What a set asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Commitment {
    /// Where that is more than there is; sets of many CPUs last.
    pub excesses: Vec<Excess>,
    /// Numbers of threads of which it cannot be said what they ask for, or not to the end.
    pub unknown: Vec<usize>,
}

/// For some time a thread asks for `part` in each `whole`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    from: u64,
    until: u64,
    part: u64,
    whole: u64,
    cpus: BTreeSet<CpuId>,
}

/// How a periodic thread is written.
const USAGE: &str = "PERIODIC <amount> <period>";

/// What is known of a thread.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    stretches: Vec<Stretch>,
    /// Is that all?
    all: bool,
}

/// What the threads of a set ask for in a run of this length; `cpus` are those of threads that name
/// none.
#[must_use]
pub fn commitment(
    set: &TaskSet,
    cpus: &[CpuId],
    duration: Nanos,
    tables: Tables<'_>,
) -> Commitment {
    let mut asked = Vec::new();
    let mut found = Commitment::default();
    let room = MOST_STRETCHES / set.threads.len().max(1);
    for (index, thread) in set.threads.iter().enumerate() {
        let known = of_thread(thread, cpus, duration, tables, room);
        if !known.all {
            found.unknown.push(index);
        }
        asked.extend(known.stretches.into_iter().map(|stretch| (index, stretch)));
    }
    found.excesses = alone(&asked);
    for cpus in candidates(&asked) {
        let within: Vec<&(usize, Stretch)> =
            asked.iter().filter(|(_, stretch)| stretch.cpus.is_subset(&cpus)).collect();
        found.excesses.extend(excess(&within, &cpus, cpus.len()));
    }
    found
}

/// Threads that ask for more than the one CPU that they can have at a time, each with its worst time.
fn alone(asked: &[(usize, Stretch)]) -> Vec<Excess> {
    let threads: BTreeSet<usize> = asked.iter().map(|(thread, _)| *thread).collect();
    let of = |thread| {
        let own: Vec<_> = asked.iter().filter(|(other, _)| *other == thread).collect();
        let cpus: BTreeSet<CpuId> = own.iter().flat_map(|(_, of)| of.cpus.clone()).collect();
        // On one CPU it is told with all others of that CPU.
        if cpus.len() > 1 { excess(&own, &cpus, 1) } else { None }
    };
    threads.into_iter().filter_map(of).collect()
}

/// The sets of CPUs to look at, the smaller ones first.
fn candidates(asked: &[(usize, Stretch)]) -> Vec<BTreeSet<CpuId>> {
    let own: BTreeSet<&BTreeSet<CpuId>> = asked.iter().map(|(_, stretch)| &stretch.cpus).collect();
    let own: Vec<_> = own.into_iter().collect();
    let mut all: BTreeSet<BTreeSet<CpuId>> = own.iter().map(|cpus| (*cpus).clone()).collect();
    all.insert(own.iter().flat_map(|cpus| cpus.iter().copied()).collect());
    if own.len() <= MOST_UNITED {
        for chosen in 1..1_usize << own.len() {
            let united = own.iter().enumerate().filter(|(at, _)| (chosen >> at) & 1 == 1);
            all.insert(united.flat_map(|(_, cpus)| cpus.iter().copied()).collect());
        }
    }
    let mut all: Vec<_> = all.into_iter().filter(|cpus| !cpus.is_empty()).collect();
    all.sort_by_key(BTreeSet::len);
    all
}

/// The instant of the largest sum, where that is more than so many CPUs.
fn excess(asked: &[&(usize, Stretch)], cpus: &BTreeSet<CpuId>, have: usize) -> Option<Excess> {
    let from = busiest(asked)?;
    let then = asked.iter().filter(|(_, stretch)| stretch.from <= from && from < stretch.until);
    let mut load = Load::NONE;
    let mut askers = Vec::new();
    for (thread, stretch) in then {
        load.add(stretch.part, stretch.whole);
        askers.push((*thread, stretch.part as f64 / stretch.whole as f64));
    }
    if load.beside(have as u64) != Some(Ordering::Greater) {
        return None;
    }
    askers.retain(|(_, share)| *share > 0.0);
    askers.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let cpus = cpus.iter().copied().collect();
    Some(Excess { cpus, asked: load.share(), from: Nanos(from), askers })
}

/// When the sum of all is largest: sums in fixed point, which do not drift as they rise and fall.
fn busiest(asked: &[&(usize, Stretch)]) -> Option<u64> {
    let scaled = |stretch: &Stretch| (u128::from(stretch.part) << 32) / u128::from(stretch.whole);
    let mut changes: Vec<(u64, bool, u128)> = Vec::new();
    for (_, stretch) in asked {
        changes.push((stretch.from, true, scaled(stretch)));
        changes.push((stretch.until, false, scaled(stretch)));
    }
    // At one instant what ends goes before what begins.
    changes.sort_unstable();
    let (mut sum, mut most) = (0_u128, None);
    for (at, begins, share) in changes {
        sum = if begins { sum + share } else { sum - share };
        if begins && most.is_none_or(|(_, known)| sum > known) {
            most = Some((at, sum));
        }
    }
    most.map(|(at, _)| at)
}

fn of_thread(
    thread: &Thread,
    cpus: &[CpuId],
    duration: Nanos,
    tables: Tables<'_>,
    room: usize,
) -> Known {
    let own = thread.cpus.as_deref().unwrap_or(cpus);
    let until = thread.finish.unwrap_or(duration).min(duration).0;
    let always = |part: Nanos, whole: Nanos| {
        let stretch = Stretch {
            from: thread.start.0,
            until,
            part: part.0,
            whole: whole.0,
            cpus: own.iter().copied().collect(),
        };
        let some = whole.0 > 0 && stretch.from < until;
        Known { stretches: some.then_some(stretch).into_iter().collect(), all: true }
    };
    let demand = if let Some(program) = &thread.program {
        let walk = program::Walk { start: thread.start.0, until, cpus: own, room };
        walk.of(program)
    } else {
        match periodic(thread, tables) {
            Ok(Some((amount, period))) => always(amount, period),
            Ok(None) => Known { stretches: Vec::new(), all: true },
            Err(()) => Known::default(),
        }
    };
    let Some(reserved) = thread.reservation else { return demand };
    let reservation = always(reserved.amount, reserved.period);
    // What it asks for beyond a hard one it does not get.
    let beyond = |stretch: &Stretch| {
        let asked = u128::from(stretch.part) * u128::from(reserved.period.0);
        asked > u128::from(reserved.amount.0) * u128::from(stretch.whole)
    };
    if reserved.kind == ReservationKind::Soft && demand.stretches.iter().any(beyond) {
        return demand;
    }
    reservation
}

/// What a periodic thread asks for in which period; none for a thread that asks for nothing.
fn periodic(thread: &Thread, tables: Tables<'_>) -> Result<Option<(Nanos, Nanos)>, ()> {
    let workload = &thread.workload;
    if !workload.is("PERIODIC") && !workload.is("CPU_PERIODIC") {
        return Ok(None);
    }
    let amount = if thread.steps.is_empty() {
        let text = workload.argument(0, "amount", USAGE).map_err(drop)?;
        mean(&Demand::parse(text, tables).map_err(drop)?)
    } else {
        let runs = thread.steps.iter().map(|step| match step {
            Step::Run(demand) => mean(demand).0,
            _ => 0,
        });
        Nanos(runs.fold(0, u64::saturating_add))
    };
    let period = workload.time(1, "period", USAGE).map_err(drop)?;
    Ok(Some((amount, period)))
}

/// What each job of a periodic thread asks for; none where they differ, or nobody can say.
#[must_use]
pub fn of_each_job(thread: &Thread, tables: Tables<'_>) -> Option<Nanos> {
    let fixed = |step: &Step| matches!(step, Step::Run(Demand::Fixed(_)));
    let text = thread.workload.argument(0, "amount", USAGE).ok();
    let always = if thread.steps.is_empty() {
        matches!(text.map(|text| Demand::parse(text, tables)), Some(Ok(Demand::Fixed(_))))
    } else {
        thread.steps.iter().all(fixed)
    };
    if always { periodic(thread, tables).ok().flatten().map(|(amount, _)| amount) } else { None }
}

/// What is drawn in the long run; never too much.
fn mean(demand: &Demand) -> Nanos {
    match demand {
        Demand::Fixed(time) => *time,
        drawn => Nanos(drawn.mean().floor() as u64),
    }
}

#[cfg(test)]
mod tests;
