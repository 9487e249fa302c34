//! A set of threads: what each received, and whether it met its deadlines.

use whylate_model::run::{Closure, Run};
use whylate_model::threads::{Deadlines, Miss, TakenFrom, ThreadSummary};
use whylate_model::{Nanos, Printable};

use super::text::{Page, count, percent};

/// Threads with a row each; the others are in run.json.
const MOST_ROWS: usize = 256;
/// Misses told one by one, per thread.
const MOST_MISSES: usize = 3;
/// Causes of misses told, per thread.
const MOST_CAUSES: usize = 4;
/// A share of the kernel's CPU time beyond which the two accounts do not agree.
const AGREEMENT: f64 = 0.002;

pub(super) fn sections(page: &mut Page, run: &Run) {
    if run.threads.is_empty() {
        return;
    }
    let shown = &run.threads[..run.threads.len().min(MOST_ROWS)];
    deadlines(page, run, shown);
    received(page, run, shown);
    accounts(page, shown);
    if run.threads.len() > shown.len() {
        page.item(&format!("{} more are in run.json", run.threads.len() - shown.len()));
    }
}

fn deadlines(page: &mut Page, run: &Run, shown: &[ThreadSummary]) {
    let with: Vec<_> =
        shown.iter().filter_map(|thread| Some((thread, thread.deadlines.as_ref()?))).collect();
    if with.is_empty() {
        return;
    }
    page.section("Deadlines");
    let rows: Vec<Vec<String>> = with.iter().map(|(thread, of)| deadline_row(thread, of)).collect();
    let head = ["thread", "workload", "hit", "missed", "95 % interval", "skipped"];
    page.table(&head, &rows, &[1]);
    page.paragraph(
        "skipped: jobs that never began, because their deadline was over before the job before \
         was done; they are among the missed.",
    );
    for (thread, of) in with.iter().filter(|(_, of)| of.misses > 0) {
        misses(page, run, thread, of);
    }
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

fn misses(page: &mut Page, run: &Run, thread: &ThreadSummary, of: &Deadlines) {
    let causes: Vec<String> = of
        .causes
        .iter()
        .take(MOST_CAUSES)
        .map(|cause| format!("{} ({})", cause.cause, count(cause.misses)))
        .collect();
    page.item(&format!(
        "thread {}: missed deadlines are named after {}",
        Printable(&thread.name),
        causes.join(", ")
    ));
    for miss in of.first.iter().take(MOST_MISSES) {
        page.item(&told(run, miss));
    }
    if let Some(ordinary) = &of.ordinary {
        page.item(&format!("a job that was in time did not have, on average, {}", taken(ordinary)));
    }
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
        format!("{} for interrupts", time(of.interrupts_ns)),
        format!("{} for the host", time(of.host_ns)),
    ];
    if of.unknown_ns > 0.0 {
        parts.push(format!("{} for nothing known", time(of.unknown_ns)));
    }
    parts.join(", ")
}

fn received(page: &mut Page, run: &Run, shown: &[ThreadSummary]) {
    page.section("CPU time of each thread");
    let rows: Vec<Vec<String>> = shown
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
    let head = ["thread", "policy", "received", "share", "waited", "lost", "blocks"];
    page.table(&head, &rows, &[1]);
    page.paragraph(
        "received: the sum of the blocks, which lie between gaps; waited: of its own accord; \
         lost: it wanted the CPU and did not have it.",
    );
    for thread in shown {
        details(page, thread);
    }
}

fn details(page: &mut Page, thread: &ThreadSummary) {
    let name = Printable(&thread.name);
    if let Closure::Broken(why) = &thread.closure {
        page.item(&format!("thread {name}: the closure is BROKEN: {}", Printable(why)));
    }
    if let Some(reservation) = &thread.reservation {
        let overruns = thread.overruns.map_or(String::new(), |n| format!("; {} overruns", count(n)));
        page.item(&format!("thread {name}: reserved {}{overruns}", Printable(reservation)));
    }
    if let Some(passes) = thread.passes {
        page.item(&format!("thread {name}: {passes:.1} passes over its working set"));
    }
    if let Some(drift) = thread.drift {
        page.item(&format!("thread {name}: its schedule drifted by {drift}"));
    }
    if thread.skipped_wakeups > 0 {
        let skipped = count(thread.skipped_wakeups);
        page.item(&format!("thread {name}: {skipped} wake-ups were skipped"));
    }
}

/// The kernel's two counts beside ours.
fn accounts(page: &mut Page, shown: &[ThreadSummary]) {
    let apart = |thread: &&ThreadSummary| {
        thread.cpu_time.is_some_and(|time| time.residual.abs() > AGREEMENT)
    };
    let known = shown.iter().filter(|thread| thread.cpu_time.is_some()).count();
    let disagreeing: Vec<&ThreadSummary> = shown.iter().filter(apart).collect();
    if known > 0 {
        page.item(&format!(
            "the kernel's CPU time of {} of {known} threads is that of the gaps within {}",
            known - disagreeing.len(),
            percent(AGREEMENT)
        ));
    }
    for thread in disagreeing {
        if let Some(time) = thread.cpu_time {
            let name = Printable(&thread.name);
            let sign = if time.residual < 0.0 { "-" } else { "" };
            let residual = percent(time.residual.abs());
            page.item(&format!("thread {name}: the kernel's differs by {sign}{residual}"));
        }
    }
    let kernel: u64 = shown.iter().map(|t| t.switches.voluntary + t.switches.involuntary).sum();
    let traced: Option<u64> = shown.iter().map(|thread| thread.switches.traced).sum();
    let inferred: u64 = shown.iter().map(|thread| thread.switches.inferred).sum();
    let by = match traced {
        Some(traced) => format!("{} by the trace, {} by the gaps alone", count(traced), count(inferred)),
        None => format!("{} by the gaps alone", count(inferred)),
    };
    page.item(&format!("context switches: {} by the kernel's count, {by}", count(kernel)));
}
