//! Who took the lost time.

use whylate_model::cause::{Cause, CauseTotal, WorstGap};
use whylate_model::event::EventKind;
use whylate_model::run::{Confidence, Run};
use whylate_model::{Nanos, TicksDelta};

use crate::numbers::{count, percent};
use crate::render::terminal::Page;

/// Rows of the table of causes: the rest is one row.
const MOST_CAUSES: usize = 12;
/// Rows of the table of senders.
const MOST_SENDERS: usize = 6;
/// Rows of the table of foreign threads.
const MOST_FOREIGN: usize = 12;
/// Parts shown of a worst gap.
const MOST_PARTS: usize = 5;

pub(super) fn sections(page: &mut Page, run: &Run) {
    if !run.causes.is_empty() {
        page.section("Who took it");
        table(page, run);
    }
    // Without a trace nobody looked for events, and none of them is the host's for that.
    if let (Some(coverage), Some(_)) = (run.coverage, &run.evidence.trace) {
        page.paragraph(&format!(
            "Of the lost time {} is explained by events, {} lies in residuals beside events, {} \
             has no event.",
            percent(coverage.by_events),
            percent(coverage.by_residuals),
            percent(coverage.by_nothing),
        ));
    }
    senders(page, run);
    foreign(page, run);
    worst(page, run);
    findings(page, run);
}

fn table(page: &mut Page, run: &Run) {
    let mut totals: Vec<&CauseTotal> = run.causes.iter().filter(|t| t.cpu.is_none()).collect();
    if totals.is_empty() {
        totals = run.causes.iter().collect();
    }
    totals.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
    let mut rows: Vec<Vec<String>> =
        totals.iter().take(MOST_CAUSES).map(|total| cells(total)).collect();
    let rest: Vec<&&CauseTotal> = totals.iter().skip(MOST_CAUSES).collect();
    if !rest.is_empty() {
        let lost: f64 = rest.iter().map(|total| total.lost_ns).sum();
        rows.push(vec![
            format!("{} others", rest.len()),
            count(rest.iter().map(|total| total.gaps).sum()),
            Nanos(lost.round() as u64).to_string(),
            percent(rest.iter().map(|total| total.share_of_lost).sum()),
            percent(rest.iter().map(|total| total.share_of_elapsed).sum()),
            rest.iter().map(|total| total.longest).max().unwrap_or_default().to_string(),
        ]);
    }
    page.table(&["cause", "gaps", "lost", "of lost", denominator(run), "longest"], &rows, &[]);
}

/// What the share of a cause is of: threads of one CPU lose the same time at once.
pub(crate) fn denominator(run: &Run) -> &'static str {
    if run.threads.is_empty() { "of elapsed" } else { "of thread time" }
}

fn senders(page: &mut Page, run: &Run) {
    if run.senders.is_empty() {
        return;
    }
    let mut totals: Vec<_> = run.senders.iter().collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.count));
    let rows: Vec<Vec<String>> = totals
        .iter()
        .take(MOST_SENDERS)
        .map(|total| {
            let name = if total.comm.is_empty() { "(unnamed)" } else { &total.comm };
            vec![
                format!("{name} on CPU {}", total.from),
                total.cause.to_string(),
                format!("CPU {}", total.to),
                count(total.count),
                Nanos(total.lost_ns.round() as u64).to_string(),
            ]
        })
        .collect();
    page.blank();
    page.table(&["sent by", "what", "to", "times", "lost"], &rows, &[1]);
}

fn foreign(page: &mut Page, run: &Run) {
    let Some(mut table) = crate::foreign::table(run) else { return };
    let more = table.rows.len().saturating_sub(MOST_FOREIGN);
    table.rows.truncate(MOST_FOREIGN);
    page.section(&table.caption);
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    page.table(&head, &table.rows, &table.left);
    if more > 0 {
        page.item(&format!("{more} more are in run.json"));
    }
}

fn worst(page: &mut Page, run: &Run) {
    if run.worst.is_empty() {
        return;
    }
    page.section(&format!("The {} longest gaps", run.worst.len()));
    let rows: Vec<Vec<String>> = run.worst.iter().map(|gap| worst_row(run, gap)).collect();
    page.table(&["at", "length", "CPU", "cause", "parts"], &rows, &[2, 3, 4]);
}

fn worst_row(run: &Run, gap: &WorstGap) -> Vec<String> {
    let at = gap.start.since(crate::timeline::start_of(run)).to_nanos(run.clock.hz);
    let mut at = format!("{:.6}s", at.0 as f64 / 1e9);
    if let Some(wall) = run.clock.realtime_ns(gap.start) {
        at = format!("{at} {}", time_of_day(wall));
    }
    let cpu = if gap.cpu_before == gap.cpu_after {
        gap.cpu_before.to_string()
    } else {
        format!("{} to {}", gap.cpu_before, gap.cpu_after)
    };
    let parts = by_cause(gap);
    let mut words: Vec<String> = parts
        .iter()
        .take(MOST_PARTS)
        .map(|(cause, length, times)| {
            let who = who(gap, cause);
            let times = if *times > 1 { format!(" x{times}") } else { String::new() };
            format!("{cause}{who}{times} {}", length.to_nanos(run.clock.hz))
        })
        .collect();
    if parts.len() > MOST_PARTS {
        words.push(format!("and {} more", parts.len() - MOST_PARTS));
    }
    let cause = match gap.rule {
        Some(rule) => format!("{} ({rule:?})", gap.cause),
        None => gap.cause.to_string(),
    };
    vec![at, gap.length.to_string(), cpu, cause, words.join(", ")]
}

/// The parts of a gap by cause, with how often it came, the longest first.
fn by_cause(gap: &WorstGap) -> Vec<(&Cause, TicksDelta, u32)> {
    let mut sums: Vec<(&Cause, TicksDelta, u32)> = Vec::new();
    for part in &gap.parts {
        match sums.iter_mut().find(|(cause, ..)| *cause == &part.cause) {
            Some((_, length, times)) => {
                *length = *length + part.length;
                *times += 1;
            }
            None => sums.push((&part.cause, part.length, 1)),
        }
    }
    sums.sort_by_key(|(_, length, _)| std::cmp::Reverse(*length));
    sums
}

/// Which thread of that name it was, where the gap's own events tell: its id and priority.
fn who(gap: &WorstGap, cause: &Cause) -> String {
    let Cause::Thread { comm, .. } = cause else { return String::new() };
    // Its process may stand behind its name.
    let named = |own: &str| {
        comm.strip_prefix(own).is_some_and(|of| of.is_empty() || of.starts_with(" of "))
    };
    let switched_to = gap.events.iter().find_map(|event| match &event.kind {
        EventKind::Switch { to, .. } if named(&to.comm) => Some(to),
        _ => None,
    });
    switched_to.map_or(String::new(), |task| format!(" pid {} prio {}", task.pid, task.prio))
}

/// `CLOCK_REALTIME` as the time of day in UTC.
fn time_of_day(realtime_ns: u64) -> String {
    let ms = realtime_ns / 1_000_000 % 86_400_000;
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", ms % 1_000)
}

fn findings(page: &mut Page, run: &Run) {
    if run.findings.is_empty() {
        return;
    }
    page.section("What follows");
    for finding in &run.findings {
        let confidence = match finding.confidence {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Possible => "possible",
        };
        page.item(&format!("{:?}, {confidence}: {}", finding.rule, finding.text));
    }
}

/// A row of the table of causes: cause, gaps, lost time, its shares, the longest.
pub(crate) fn cells(total: &CauseTotal) -> Vec<String> {
    vec![
        total.cause.to_string(),
        count(total.gaps),
        Nanos(total.lost_ns.round() as u64).to_string(),
        percent(total.share_of_lost),
        percent(total.share_of_elapsed),
        total.longest.to_string(),
    ]
}
