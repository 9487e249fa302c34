//! Who took the lost time.

use whylate_model::Nanos;
use whylate_model::cause::{CauseTotal, WorstGap};
use whylate_model::run::{Confidence, Run};

use super::text::{Page, count, percent};

/// Rows of the table of causes: the rest is one row.
const MOST_CAUSES: usize = 12;
/// Rows of the table of senders.
const MOST_SENDERS: usize = 6;
/// Parts shown of a worst gap.
const MOST_PARTS: usize = 5;

pub(super) fn sections(page: &mut Page, run: &Run) {
    if !run.causes.is_empty() {
        page.section("Who took it");
        table(page, run);
    }
    if let Some(coverage) = run.coverage {
        page.paragraph(&format!(
            "Of the lost time {} is explained by events, {} lies in residuals beside events, {} \
             has no event.",
            percent(coverage.by_events),
            percent(coverage.by_residuals),
            percent(coverage.by_nothing),
        ));
    }
    senders(page, run);
    worst(page, run);
    findings(page, run);
}

fn table(page: &mut Page, run: &Run) {
    let mut totals: Vec<&CauseTotal> = run.causes.iter().filter(|t| t.cpu.is_none()).collect();
    if totals.is_empty() {
        totals = run.causes.iter().collect();
    }
    totals.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
    let mut rows: Vec<Vec<String>> = totals
        .iter()
        .take(MOST_CAUSES)
        .map(|total| {
            vec![
                total.cause.to_string(),
                count(total.gaps),
                Nanos(total.lost_ns.round() as u64).to_string(),
                percent(total.share_of_lost),
                percent(total.share_of_elapsed),
                total.longest.to_string(),
            ]
        })
        .collect();
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
    page.table(&["cause", "gaps", "lost", "of lost", "of elapsed", "longest"], &rows, &[]);
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

fn worst(page: &mut Page, run: &Run) {
    if run.worst.is_empty() {
        return;
    }
    page.section(&format!("The {} longest gaps", run.worst.len()));
    let rows: Vec<Vec<String>> = run.worst.iter().map(|gap| worst_row(run, gap)).collect();
    page.table(&["at", "length", "CPU", "cause", "parts"], &rows, &[2, 3, 4]);
}

fn worst_row(run: &Run, gap: &WorstGap) -> Vec<String> {
    let at = gap.start.since(run.clock.epoch).to_nanos(run.clock.hz);
    let cpu = if gap.cpu_before == gap.cpu_after {
        gap.cpu_before.to_string()
    } else {
        format!("{} to {}", gap.cpu_before, gap.cpu_after)
    };
    let mut parts: Vec<_> = gap.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.length));
    let mut words: Vec<String> = parts
        .iter()
        .take(MOST_PARTS)
        .map(|part| format!("{} {}", part.cause, part.length.to_nanos(run.clock.hz)))
        .collect();
    if parts.len() > MOST_PARTS {
        words.push(format!("and {} more", parts.len() - MOST_PARTS));
    }
    let cause = match gap.rule {
        Some(rule) => format!("{} ({rule:?})", gap.cause),
        None => gap.cause.to_string(),
    };
    vec![format!("{:.6}s", at.0 as f64 / 1e9), gap.length.to_string(), cpu, cause, words.join(", ")]
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
