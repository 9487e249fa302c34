//! What is said of a set of threads, for a terminal and for a page: the same cells and sentences.

use whylate_model::run::{Closure, Run};
use whylate_model::threads::{Deadlines, Miss, TakenFrom, ThreadSummary};
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Printable};

use crate::svg::Table;
use crate::terminal::{count, percent};

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
pub(crate) const SKIPPED: &str = "skipped: jobs that never began, because their deadline was over \
                                  before the job before was done; they are among the missed.";
/// What the columns of the table of CPU time mean.
pub(crate) const RECEIVED: &str = "received: the sum of the blocks, which lie between gaps; waited: \
                                   of its own accord; lost: it wanted the CPU and did not have it.";

/// What came of the deadlines of a set.
pub(crate) struct Judged {
    /// Hits and misses of each thread that has some.
    pub(crate) table: Table,
    /// The misses of each thread, and what they are named after.
    pub(crate) misses: Vec<String>,
}

/// What the threads of a set received.
pub(crate) struct Received {
    /// A row for each thread.
    pub(crate) table: Table,
    /// What else there is to say, one sentence each.
    pub(crate) items: Vec<String>,
}

/// The threads of a run that have a row.
fn shown(run: &Run) -> &[ThreadSummary] {
    &run.threads[..run.threads.len().min(MOST_ROWS)]
}

/// The deadlines; none where no thread has some.
pub(crate) fn judged(run: &Run) -> Option<Judged> {
    let with: Vec<_> =
        shown(run).iter().filter_map(|thread| Some((thread, thread.deadlines.as_ref()?))).collect();
    if with.is_empty() {
        return None;
    }
    let head = ["thread", "workload", "hit", "missed", "95 % interval", "skipped"];
    let mut table = Table::new("Deadlines", &head);
    table.left = vec![1];
    table.rows = with.iter().map(|(thread, of)| deadline_row(thread, of)).collect();
    let late = with.iter().filter(|(_, of)| of.misses > 0).take(MOST_TOLD);
    let misses = late.flat_map(|(thread, of)| misses(run, thread, of)).collect();
    Some(Judged { table, misses })
}

fn deadline_row(thread: &ThreadSummary, of: &Deadlines) -> Vec<String> {
    let interval = of
        .miss_share_interval
        .map_or("-".to_owned(), |(low, high)| format!("{} .. {}", percent(low), percent(high)));
    vec![
        Printable(&thread.name).to_string(),
        Printable(&thread.workload).to_string(),
        count(of.hits),
        count(of.misses),
        interval,
        count(of.skipped),
    ]
}

fn misses(run: &Run, thread: &ThreadSummary, of: &Deadlines) -> Vec<String> {
    let causes: Vec<String> = of
        .causes
        .iter()
        .take(MOST_CAUSES)
        .map(|cause| format!("{} ({})", cause.cause, count(cause.misses)))
        .collect();
    let mut said = vec![format!(
        "thread {}: missed deadlines are named after {}",
        Printable(&thread.name),
        causes.join(", ")
    )];
    said.extend(of.first.iter().take(MOST_MISSES).map(|miss| told(run, miss)));
    said.extend(of.ordinary.as_ref().map(|ordinary| {
        format!("a job that was in time did not have, on average, {}", taken(ordinary))
    }));
    said
}

fn told(run: &Run, miss: &Miss) -> String {
    let end = match miss.done {
        Some(done) => {
            format!("{} late", done.since(miss.deadline).to_nanos(run.clock.hz))
        }
        None => "never done".to_owned(),
    };
    let gap = miss.gap.as_ref().map_or(String::new(), |gap| {
        format!("; the longest gap took {}: {}", gap.length, gap.cause)
    });
    format!("job {}: {end}; it did not have {}{gap}", miss.job, taken(&miss.taken))
}

fn taken(of: &TakenFrom) -> String {
    let time = |ns: f64| Nanos(ns.round() as u64).to_string();
    let mut parts = vec![
        format!("{} for other threads", time(of.threads_ns)),
        format!("{} for its wake-up", time(of.waking_ns)),
        format!("{} for interrupts", time(of.interrupts_ns)),
        format!("{} for the host", time(of.host_ns)),
    ];
    if of.unknown_ns > 0.0 {
        parts.push(format!("{} for nothing known", time(of.unknown_ns)));
    }
    parts.join(", ")
}

/// What each thread received, and whether that agrees with the kernel's accounts.
pub(crate) fn received(run: &Run) -> Received {
    let shown = shown(run);
    let head = ["thread", "policy", "received", "share", "waited", "lost", "blocks"];
    let mut table = Table::new("CPU time of each thread", &head);
    table.left = vec![1];
    table.rows = shown
        .iter()
        .map(|thread| {
            let elapsed = thread.end.since(thread.start).to_nanos(run.clock.hz);
            let share = thread.received.0 as f64 / (elapsed.0 as f64).max(1.0);
            vec![
                Printable(&thread.name).to_string(),
                Printable(&thread.policy).to_string(),
                thread.received.to_string(),
                percent(share),
                thread.waited.to_string(),
                thread.lost.to_string(),
                count(thread.blocks),
            ]
        })
        .collect();
    let mut items: Vec<String> = shown.iter().take(MOST_TOLD).flat_map(particulars).collect();
    items.extend(accounts(shown));
    items.push(trace(run));
    if run.threads.len() > shown.len() {
        items.push(format!("{} more are in run.json", run.threads.len() - shown.len()));
    }
    Received { table, items }
}

fn particulars(thread: &ThreadSummary) -> Vec<String> {
    let name = Printable(&thread.name);
    let mut said = Vec::new();
    if let Closure::Broken(why) = &thread.closure {
        said.push(format!("thread {name}: the closure is BROKEN: {}", Printable(why)));
    }
    if let Some(reservation) = &thread.reservation {
        let overruns =
            thread.overruns.map_or(String::new(), |n| format!("; {} overruns", count(n)));
        said.push(format!("thread {name}: reserved {}{overruns}", Printable(reservation)));
    }
    if let Some(passes) = thread.passes {
        said.push(format!("thread {name}: {passes:.1} passes over its working set"));
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
fn accounts(shown: &[ThreadSummary]) -> Vec<String> {
    let apart =
        |thread: &&ThreadSummary| thread.cpu_time.is_some_and(|time| !time.agrees(AGREEMENT));
    let known = shown.iter().filter(|thread| thread.cpu_time.is_some()).count();
    let disagreeing: Vec<&ThreadSummary> = shown.iter().filter(apart).collect();
    let mut said = Vec::new();
    if known > 0 {
        said.push(format!(
            "the kernel's CPU time of {} of {known} threads is that of the gaps within {}",
            known - disagreeing.len(),
            percent(AGREEMENT)
        ));
    }
    for thread in disagreeing.into_iter().take(MOST_TOLD) {
        if let Some(time) = thread.cpu_time {
            let name = Printable(&thread.name);
            let sign = if time.residual < 0.0 { "-" } else { "" };
            let residual = percent(time.residual.abs());
            said.push(format!("thread {name}: the kernel's differs by {sign}{residual}"));
        }
    }
    said.push(switches(shown));
    said
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
        .map_or(String::new(), |ns| format!("; a record takes {ns:.0}ns (median)"));
    format!(
        "execution trace: {} blocks, {} of them without room ({}){cost}",
        count(blocks),
        count(lost),
        percent(share)
    )
}

/// The kernel's count of context switches beside ours. Numbers of a run file are added up with
/// care: they may be any.
fn switches(shown: &[ThreadSummary]) -> String {
    let sum = |of: fn(&ThreadSummary) -> u64| shown.iter().map(of).fold(0, u64::saturating_add);
    let kernel = sum(|t| t.switches.voluntary.saturating_add(t.switches.involuntary));
    let inferred = count(sum(|t| t.switches.inferred));
    let by = if shown.iter().all(|thread| thread.switches.traced.is_some()) {
        let traced = sum(|t| t.switches.traced.unwrap_or_default());
        format!("{} by the trace, {inferred} by the gaps alone", count(traced))
    } else {
        format!("{inferred} by the gaps alone")
    };
    format!("context switches: {} by the kernel's count, {by}", count(kernel))
}
