//! The section of a set of threads: its deadlines, its phases, its CPU time.

use whylate_model::Nanos;
use whylate_model::cause::Cause;
use whylate_model::gap::GapKind;
use whylate_model::run::{Closure, Run, RunState};
use whylate_model::threads::{CpuTime, Deadlines, Miss, MissGap, TakenFrom, ThreadSummary};
use whylate_model::warning::Warning;

use crate::doc::{Block, Section, Table};
use crate::numbers::{Cell, Value, between, count, number, percent, time};

mod phases;

use phases::phases;

/// Threads with a row each; the others are in run.json.
const MOST_ROWS: usize = 256;
/// Misses told one by one, per thread.
const MOST_MISSES: usize = 3;
/// Causes of misses told, per thread.
const MOST_CAUSES: usize = 4;
/// Threads whose misses or particulars are told in sentences.
const MOST_TOLD: usize = 64;
/// A share of the kernel's CPU time beyond which the two accounts do not agree.
const AGREEMENT: f64 = 0.002;

/// What the columns of the table of deadlines mean.
const SKIPPED: &str = "skipped: jobs that never began, because their deadline was over \
                                  before the job before was done; they are among the missed.";
/// What the columns of the table of CPU time mean.
const RECEIVED: &str = "received: the sum of the blocks of CPU time; waited: \
                                   asleep or blocked; lost: it was runnable and did not run.";

/// The name of the section.
pub(crate) const ID: &str = "threads";

/// The section of a set of threads; none for a run without, or whose threads did nothing but wake.
pub(crate) fn section(run: &Run) -> Option<Section> {
    if run.threads.is_empty() || run.only_wakes() {
        return None;
    }
    let mut blocks = judged(run);
    for (table, how) in phases(run) {
        blocks.extend(Block::explained(table, how));
    }
    blocks.extend(received(run));
    Some(Section::new(ID, "The set of threads", blocks))
}

/// The threads of a run that have a row.
fn shown(run: &Run) -> &[ThreadSummary] {
    &run.threads[..run.threads.len().min(MOST_ROWS)]
}

/// What came of the deadlines; nothing where no thread has some.
fn judged(run: &Run) -> Vec<Block> {
    let with: Vec<_> =
        shown(run).iter().filter_map(|thread| Some((thread, thread.deadlines.as_ref()?))).collect();
    if with.is_empty() {
        return Vec::new();
    }
    let head = ["thread", "workload", "jobs", "hit", "missed", "share", "95% interval", "skipped"];
    let mut table = Table::new("Deadlines", &head).words(&[1]);
    for (thread, of) in &with {
        table.row(deadline_row(thread, of));
    }
    if with.len() > 1 {
        let each = || run.threads.iter().filter_map(|thread| thread.deadlines.as_ref());
        let all = |of: fn(&Deadlines) -> u64| each().map(of).fold(0, u64::saturating_add);
        table.row([
            "all".into(),
            "".into(),
            Value::Count(all(jobs)),
            Value::Count(all(|of| of.hits)),
            Value::Count(all(|of| of.misses)),
            share(all(|of| of.misses), all(jobs)),
            "".into(),
            Value::Count(all(|of| of.skipped)),
        ]);
    }
    let late = with.iter().filter(|(_, of)| of.misses > 0).take(MOST_TOLD);
    let mut misses: Vec<String> = late.flat_map(|(thread, of)| misses(run, thread, of)).collect();
    let unknown = with.iter().filter(|(_, of)| of.unrecorded > 0).take(MOST_TOLD);
    misses.extend(unknown.map(|(thread, of)| {
        let (name, jobs) = (&thread.name, count(of.unrecorded));
        format!("thread {name}: of {jobs} jobs it is not known what came of them")
    }));
    Block::explained(table, SKIPPED).into_iter().chain([Block::Items(misses)]).collect()
}

/// All that were judged.
fn jobs(of: &Deadlines) -> u64 {
    of.hits.saturating_add(of.misses)
}

/// The share of all jobs that these are; none of none.
pub(crate) fn share(misses: u64, jobs: u64) -> Value {
    (jobs > 0).then(|| Value::Share(misses as f64 / jobs as f64)).into()
}

fn deadline_row(thread: &ThreadSummary, of: &Deadlines) -> [Cell; 8] {
    let ends = of.miss_share_interval.map(|(low, high)| (Value::Share(low), Value::Share(high)));
    let missed = Cell::from(share(of.misses, jobs(of))).within(ends);
    [
        thread.name.as_str().into(),
        thread.workload.as_str().into(),
        Value::Count(jobs(of)).into(),
        Value::Count(of.hits).into(),
        Value::Count(of.misses).into(),
        missed.alone(),
        missed.ends(),
        Value::Count(of.skipped).into(),
    ]
}

fn misses(run: &Run, thread: &ThreadSummary, of: &Deadlines) -> Vec<String> {
    let causes: Vec<String> = of
        .causes
        .iter()
        .take(MOST_CAUSES)
        .map(|cause| format!("{} ({})", cause.cause, count(cause.misses)))
        .collect();
    let unexplained = of.unexplained.filter(|misses| *misses > 0).map_or(String::new(), |misses| {
        format!("; of {} of them the known parts add up to less than they were late", count(misses))
    });
    let mut said = vec![format!(
        "thread {}: deadline misses by cause: {}{unexplained}",
        thread.name,
        causes.join(", ")
    )];
    said.extend(of.first.iter().take(MOST_MISSES).map(|miss| told(run, thread, miss)));
    said.extend(of.ordinary.as_ref().map(|ordinary| {
        let name = &thread.name;
        format!("thread {name}: a job that met its deadline lost, on average, {}", taken(ordinary))
    }));
    said
}

fn told(run: &Run, thread: &ThreadSummary, miss: &Miss) -> String {
    let job = format!("thread {}, job {}", thread.name, miss.job);
    if miss.skipped {
        return format!("{job}: skipped, the job before it ended after its deadline");
    }
    let end = match miss.done {
        Some(done) => {
            format!("{} late", done.since(miss.deadline).to_nanos(run.clock.hz))
        }
        None => "not done by its deadline".to_owned(),
    };
    let why = asked(run, miss).or_else(|| miss.gap.as_ref().map(of_gap)).unwrap_or_default();
    format!("{job}: {end}; it lost {}{why}", taken(&miss.taken))
}

/// The gap that holds most of what a miss is named after.
fn of_gap(gap: &MissGap) -> String {
    let doing = match gap.kind {
        GapKind::Blocked | GapKind::HandOff => "it waited for a resource, mostly while ",
        _ => "",
    };
    let (length, cause) = (gap.length, &gap.cause);
    format!("; the longest stall behind the miss is {length}: {doing}{cause}")
}

/// What of a miss lies in what was asked for; none where that is not what it is named after.
fn asked(run: &Run, miss: &Miss) -> Option<String> {
    let allowed = miss.deadline.since(miss.release).to_nanos(run.clock.hz);
    let demand = miss.demand.as_ref();
    match miss.cause.as_ref()? {
        Cause::OwnDemand => Some(match demand.filter(|of| of.asked_ns > allowed) {
            Some(of) => format!("; it needs {} and is due after {allowed}", of.asked_ns),
            None => "; the set needs more than its CPUs have".to_owned(),
        }),
        Cause::LeftOver => {
            let of = demand?;
            Some(format!("; the job before it ended {} after its release", of.left_over_ns))
        }
        _ => None,
    }
}

/// What a job did not have, by what took it.
pub(crate) fn taken(of: &TakenFrom) -> String {
    let parts = [
        (of.threads_ns, "to other threads"),
        (of.waking_ns, "to its wake-up"),
        (of.interrupts_ns, "to interrupts"),
        (of.host_ns, "with no kernel event"),
        (of.blocked_ns, "to resources"),
        (of.away_ns, "to interrupts and with no kernel event while it was off the CPU"),
        (of.unknown_ns, "to nothing known"),
    ];
    let some = parts.iter().filter(|(ns, _)| *ns > 0.0);
    let some: Vec<String> = some.map(|(ns, to)| format!("{} {to}", time(*ns))).collect();
    if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
}

/// What each thread received, and whether that agrees with the kernel's accounts.
fn received(run: &Run) -> Vec<Block> {
    let shown = shown(run);
    let head = ["thread", "policy", "elapsed", "received", "share", "waited", "lost", "blocks"];
    let mut table = Table::new("CPU time of each thread", &head).words(&[1]);
    for thread in shown {
        let elapsed = thread.end.since(thread.start).to_nanos(run.clock.hz);
        table.row([
            thread.name.as_str().into(),
            thread.policy.as_str().into(),
            elapsed.into(),
            thread.received.into(),
            Value::Share(thread.received.0 as f64 / (elapsed.0 as f64).max(1.0)),
            thread.waited.into(),
            thread.lost.into(),
            Value::Count(thread.blocks),
        ]);
    }
    if run.threads.len() > 1 {
        let sum =
            |of: fn(&ThreadSummary) -> u64| run.threads.iter().map(of).fold(0, u64::saturating_add);
        table.row([
            "all".into(),
            "".into(),
            "".into(),
            Nanos(sum(|thread| thread.received.0)).into(),
            "".into(),
            Nanos(sum(|thread| thread.waited.0)).into(),
            Nanos(sum(|thread| thread.lost.0)).into(),
            Value::Count(sum(|thread| thread.blocks)),
        ]);
    }
    let mut items: Vec<String> = shown.iter().take(MOST_TOLD).flat_map(particulars).collect();
    items.extend(accounts(run, shown));
    items.push(trace(run));
    if run.threads.len() > shown.len() {
        items.push(format!("{} more are in run.json", run.threads.len() - shown.len()));
    }
    Block::explained(table, RECEIVED).into_iter().chain([Block::Items(items)]).collect()
}

fn particulars(thread: &ThreadSummary) -> Vec<String> {
    let name = &thread.name;
    let mut said = Vec::new();
    if let Closure::Broken(why) = &thread.closure {
        said.push(format!("thread {name}: the closure is BROKEN: {why}"));
    }
    if let Some(reservation) = &thread.reservation {
        let overruns = thread.overruns.map(|n| format!("; {} overruns", count(n)));
        let held = thread.held_periods.map(|n| format!("; held in {} periods", count(n)));
        let told = overruns.or(held).unwrap_or_default();
        said.push(format!("thread {name}: {reservation}{told}"));
    }
    if let Some(passes) = thread.passes {
        said.push(format!("thread {name}: {} passes over its working set", number(passes)));
    }
    if let Some(drift) = thread.drift {
        said.push(format!("thread {name}: its schedule drifted by {drift}"));
    }
    if thread.skipped_wakeups > 0 {
        let skipped = count(thread.skipped_wakeups);
        said.push(format!("thread {name}: {skipped} wake-ups were skipped"));
    }
    said
}

/// The kernel's two counts beside ours.
fn accounts(run: &Run, shown: &[ThreadSummary]) -> Vec<String> {
    let known: Vec<(&ThreadSummary, CpuTime)> =
        shown.iter().filter_map(|thread| Some((thread, thread.cpu_time?))).collect();
    let mut said = Vec::new();
    if !known.is_empty() {
        let apart = known.iter().filter(|(_, time)| !time.agrees(AGREEMENT));
        let apart: Vec<_> = apart.collect();
        said.push(cpu_times(&known, known.len() - apart.len()));
        for (thread, time) in apart.into_iter().take(MOST_TOLD) {
            let (name, residual) = (&thread.name, percent(time.residual));
            said.push(format!("thread {name}: the kernel's differs by {residual}"));
        }
    }
    said.push(switches(run, shown));
    said
}

/// How far the kernel's clocks of the threads lie from their gaps, and what that allows for.
fn cpu_times(known: &[(&ThreadSummary, CpuTime)], agreeing: usize) -> String {
    let residuals = known.iter().map(|(_, time)| time.residual);
    let (least, most) = residuals.fold((f64::MAX, f64::MIN), |(least, most), residual| {
        (least.min(residual), most.max(residual))
    });
    let host = known.iter().map(|(_, time)| time.host_share()).fold(0.0, f64::max);
    let allowed = if host < AGREEMENT / 10.0 {
        String::new()
    } else {
        format!(", once time with no kernel event (up to {}) is allowed for", percent(host))
    };
    let untraced = known.iter().any(|(_, time)| time.around_switches.is_none());
    let untraced = if untraced {
        "; without the trace, the kernel's own time around switches is in it"
    } else {
        ""
    };
    format!(
        "the kernel's CPU time less that of the gaps: {} of it; within {} for {agreeing} of {} \
         threads{allowed}{untraced}",
        between(Some(Value::Share(least)), Some(Value::Share(most))),
        percent(AGREEMENT),
        known.len()
    )
}

/// How large the execution trace is, what it lost, and what a record of it costs.
fn trace(run: &Run) -> String {
    let blocks = run.threads.iter().map(|thread| thread.blocks).fold(0, u64::saturating_add);
    let lost = run.warnings.iter().find_map(|warning| match warning {
        Warning::ExecutionCut { lost, .. } => Some(*lost),
        _ => None,
    });
    let lost = lost.unwrap_or(0);
    let share = lost as f64 / (blocks as f64).max(1.0);
    let cost = run
        .clock
        .gap_recording_ns
        .map_or(String::new(), |ns| format!("; a record takes {} (median)", time(ns)));
    format!(
        "execution trace: {} blocks, {} dropped ({}){cost}",
        count(blocks),
        count(lost),
        percent(share)
    )
}

/// The kernel's count of context switches beside ours. Numbers of a run file are added up with
/// care: they may be any.
fn switches(run: &Run, shown: &[ThreadSummary]) -> String {
    let sum = |of: fn(&ThreadSummary) -> u64| shown.iter().map(of).fold(0, u64::saturating_add);
    let kernel = sum(|t| t.switches.voluntary.saturating_add(t.switches.involuntary));
    let by_gaps = sum(|t| t.switches.inferred);
    let inferred = count(by_gaps);
    if run.state == RunState::Running {
        return format!(
            "context switches: {inferred} by the gaps alone; the kernel's count is read when a \
             thread ends"
        );
    }
    let by = if shown.iter().all(|thread| thread.switches.traced.is_some()) {
        let traced = sum(|t| t.switches.traced.unwrap_or_default());
        format!("{} by the trace, {inferred} by the gaps alone", count(traced))
    } else {
        let difference = i128::from(by_gaps) - i128::from(kernel);
        format!("{inferred} by the gaps alone: a difference of {difference:+}")
    };
    format!("context switches: {} by the kernel's count, {by}", count(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_nothing_of_a_job_is_not_named() {
        assert_eq!(taken(&TakenFrom::default()), "nothing");
        let of = TakenFrom { threads_ns: 2e6, unknown_ns: 3e3, ..TakenFrom::default() };
        assert_eq!(taken(&of), "2 ms to other threads, 3 µs to nothing known");
    }
}
